// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A switch made of this machine's network: port P is the device sw<P> in this namespace,
 * one end of a veth whose other end is a port of a node, which is a namespace of its own.
 * A crossbar of filters forwards frames between two devices. Without a circuit it forwards
 * nothing and the device is down: frames are lost, and the node's end has no carrier. With
 * `hold`, the carrier stays for that time, as on a port with a debounced link: taking a
 * device down and up costs 0.6 ms here.
 *
 * A node with several ports reaches a peer through the port of their circuit: with `netns`
 * and `address`, that route is added in the node's namespace when the circuit is up, and
 * removed before it goes down. Without a circuit, data takes the packet network, if there is
 * one.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/pkt_sched.h>
#include <netlink/route/link.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/qdisc.h>
#include <netlink/route/route.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/noise/text.h"
#include "daemon/common/clock.h"
#include "crossbar.h"
#include "delay.h"
#include "switch.h"

enum {
	EMUL_NODES_MAX = 256,
	CARRIER_LOOK_US = 100,
	ANSWER_BYTES = 32768,
};

struct emul {
	struct switch_delay delay;
	u64 hold;			/* ns */
	char device[32], port[32];	/* with %u: the switch's port; the node's, from 0 */
	char netns[128], address[64];	/* with %s: the node's name; with %u: its index + 1 */
	struct crossbar crossbar;
	struct nl_sock *socket;
	int flags;			/* a socket for reading a device's flags */
	struct emul_node {		/* in the node's namespace; NULL: no `netns` */
		struct nl_sock *socket;
		int flags;
	} node[EMUL_NODES_MAX];
	struct emul_port {
		int ifindex;		/* 0: no such device */
		int at_node;		/* of its other end */
		u32 mtu;		/* of that; 0: no `netns` */
		u64 down;		/* when it loses its carrier; 0: not by itself */
		u32 route;		/* over it to this port's node; 0: none */
	} at[SWITCH_PORTS_MAX + 1];
};

/* ---- text ----------------------------------------------------------------- */

/* The format takes a number, or a name. */
static void switch_emul_fill(char *to, size_t bytes, const char *format, u32 number,
			     const char *name)
{
	size_t used = 0;

	for (; *format && used + 1 < bytes; format++) {
		if (format[0] == '%' && (format[1] == 'u' || format[1] == 's')) {
			if (*++format == 'u')
				used += snprintf(to + used, bytes - used, "%u", number);
			else
				used += snprintf(to + used, bytes - used, "%s", name);
			if (used >= bytes)
				used = bytes - 1;
		} else {
			to[used++] = *format;
		}
	}
	to[used] = 0;
}

static bool switch_emul_set(struct emul *emul, const char *key, const char *value)
{
	const struct { const char *key; char *to; size_t bytes; } texts[] = {
		{ "device", emul->device, sizeof(emul->device) },
		{ "port", emul->port, sizeof(emul->port) },
		{ "netns", emul->netns, sizeof(emul->netns) },
		{ "address", emul->address, sizeof(emul->address) },
	};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!strcmp(key, texts[i].key) && strlen(value) < texts[i].bytes) {
			strcpy(texts[i].to, value);
			return true;
		}
	if (!strcmp(key, "hold"))
		return coll_text_time(value, 1000000000, &emul->hold);
	return switch_delay_set(&emul->delay, key, value);
}

/* ---- devices -------------------------------------------------------------- */

/* 0: no such device. */
static int index_of(struct nl_sock *socket, const char *name, u32 *mtu)
{
	struct rtnl_link *link;
	int index;

	if (rtnl_link_get_kernel(socket, 0, name, &link))
		return 0;
	index = rtnl_link_get_ifindex(link);
	*mtu = rtnl_link_get_mtu(link);
	rtnl_link_put(link);
	return index;
}

static int set_up(struct emul *emul, u32 port, bool up)
{
	struct rtnl_link *old = rtnl_link_alloc(), *change = rtnl_link_alloc();
	int error = old && change ? 0 : -NLE_NOMEM;

	if (!error) {
		rtnl_link_set_ifindex(old, emul->at[port].ifindex);
		if (up)
			rtnl_link_set_flags(change, IFF_UP);
		else
			rtnl_link_unset_flags(change, IFF_UP);
		error = rtnl_link_change(emul->socket, old, change, 0);
	}
	rtnl_link_put(old);
	rtnl_link_put(change);
	return error;
}

/* A socket's namespace is the one that it was made in. */
static bool has_flag(int socket, const char *device, short flag)
{
	struct ifreq request = { .ifr_flags = 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s", device);
	return !ioctl(socket, SIOCGIFFLAGS, &request) && request.ifr_flags & flag;
}

static const struct emul_node *node_at(const struct switch_device *s, u32 port)
{
	const struct emul *emul = s->state;
	const u32 index = s->at[port].index;

	return index < EMUL_NODES_MAX && emul->node[index].socket ? &emul->node[index] : NULL;
}

static void name_device(const struct switch_device *s, u32 port, char *device, size_t bytes)
{
	switch_emul_fill(device, bytes, ((const struct emul *)s->state)->device, port,
			 s->at[port].name);
}

static void name_port(const struct switch_device *s, u32 port, char *device, size_t bytes)
{
	switch_emul_fill(device, bytes, ((const struct emul *)s->state)->port, s->at[port].port,
			 s->at[port].name);
}

/* Both ends of the veth: before that, frames of the node are dropped. */
static bool has_carrier(const struct switch_device *s, u32 port)
{
	const struct emul *emul = s->state;
	const struct emul_node *node = node_at(s, port);
	char device[64];

	name_device(s, port, device, sizeof(device));
	if (!has_flag(emul->flags, device, IFF_RUNNING))
		return false;
	name_port(s, port, device, sizeof(device));
	return !node || has_flag(node->flags, device, IFF_RUNNING);
}

/* ---- paths ---------------------------------------------------------------- */

static void add_clsact(struct emul *emul, u32 port)
{
	struct rtnl_qdisc *qdisc = rtnl_qdisc_alloc();

	rtnl_tc_set_ifindex(TC_CAST(qdisc), emul->at[port].ifindex);
	rtnl_tc_set_parent(TC_CAST(qdisc), TC_H_CLSACT);
	rtnl_tc_set_handle(TC_CAST(qdisc), TC_HANDLE(TC_H_CLSACT >> 16, 0));
	rtnl_tc_set_kind(TC_CAST(qdisc), "clsact");
	rtnl_qdisc_add(emul->socket, qdisc, NLM_F_CREATE);	/* it may be there already */
	rtnl_qdisc_put(qdisc);
}

/* Connects two ports both ways, or disconnects them. */
static int switch_emul_lead(struct emul *emul, const u32 *port, bool there)
{
	int error = 0;
	u32 end;

	for (end = 0; end < 2 && !error; end++)
		error = crossbar_lead(&emul->crossbar, emul->at[port[end]].ifindex,
				      there ? emul->at[port[!end]].ifindex : 0);
	return error;
}

/* The port that it leads to, or 0. */
static u32 path_from(const struct emul *emul, u32 ports, u32 in)
{
	const int out = crossbar_where(&emul->crossbar, emul->at[in].ifindex);
	u32 port;

	for (port = 1; out && port <= ports; port++)
		if (emul->at[port].ifindex == out)
			return port;
	return 0;
}

/* ---- routes in the nodes' namespaces -------------------------------------- */

static struct nl_addr *address_of(const struct emul *emul, const struct switch_node *node)
{
	struct nl_addr *address = NULL;
	char text[80];

	switch_emul_fill(text, sizeof(text), emul->address, node->index + 1, node->name);
	return nl_addr_parse(text, AF_UNSPEC, &address) ? NULL : address;
}

/*
 * Adds or removes the route between two nodes over the ports of their circuit. The route
 * has an explicit MTU: a connection whose route is removed keeps the kernel's blackhole
 * device with an MTU of 68, and would start its next message in segments of 36 bytes.
 */
static void set_route(struct switch_device *s, u32 from, u32 to, bool there)
{
	struct emul *emul = s->state;
	const struct switch_node *here = &s->at[from], *peer = &s->at[to];
	const struct emul_node *node = node_at(s, from);
	struct nl_addr *destination, *source;
	struct rtnl_nexthop *nexthop;
	struct rtnl_route *route;

	if (!node)
		return;
	destination = address_of(emul, peer);
	source = address_of(emul, here);
	route = rtnl_route_alloc();
	nexthop = rtnl_route_nh_alloc();
	rtnl_route_set_family(route, nl_addr_get_family(destination));
	rtnl_route_set_table(route, RT_TABLE_MAIN);
	rtnl_route_set_scope(route, RT_SCOPE_LINK);
	rtnl_route_set_dst(route, destination);
	rtnl_route_set_pref_src(route, source);
	rtnl_route_nh_set_ifindex(nexthop, emul->at[from].at_node);
	rtnl_route_add_nexthop(route, nexthop);
	rtnl_route_set_metric(route, RTAX_MTU, emul->at[from].mtu);
	if (there)
		rtnl_route_add(node->socket, route, NLM_F_CREATE | NLM_F_REPLACE);
	else
		rtnl_route_delete(node->socket, route, 0);
	rtnl_route_put(route);
	nl_addr_put(destination);
	nl_addr_put(source);
}

/* Over this port to the other's node; 0: to none. */
static void lead_node(struct switch_device *s, u32 port, u32 to)
{
	struct emul_port *at = &((struct emul *)s->state)->at[port];

	if (at->route && at->route != to)
		set_route(s, port, at->route, false);
	if (to)
		set_route(s, port, to, true);
	at->route = to;
}

static int open_sockets(struct nl_sock **made, int *flags)
{
	*flags = -1;
	*made = nl_socket_alloc();
	if (!*made || nl_connect(*made, NETLINK_ROUTE))
		return -EIO;
	nl_socket_set_msg_buf_size(*made, ANSWER_BYTES);
	nl_socket_disable_msg_peek(*made);
	*flags = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return *flags < 0 ? -errno : 0;
}

/* Sockets of that namespace; the thread returns to its own. */
static int enter_node(struct emul *emul, const struct switch_node *at, char *why)
{
	const int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	struct emul_node *node = &emul->node[at->index];
	char path[256];
	int there, error = 0;

	switch_emul_fill(path, sizeof(path), emul->netns, at->index + 1, at->name);
	there = open(path, O_RDONLY | O_CLOEXEC);
	if (there < 0 || setns(there, CLONE_NEWNET)) {
		error = -errno;
		snprintf(why, SWITCH_WHY, "%.100s: %s", path, strerror(errno));
	} else {
		error = open_sockets(&node->socket, &node->flags);
		if (setns(home, CLONE_NEWNET))
			error = -errno;
	}
	close(there);
	close(home);
	return error;
}

/* ---- orders --------------------------------------------------------------- */

static void lose_carrier(struct emul *emul, u32 port)
{
	emul->at[port].down = 0;
	set_up(emul, port, false);
}

static void take_down(struct switch_device *s, struct switch_order *order)
{
	struct emul *emul = s->state;
	u32 end;
	int error;

	for (end = 0; end < 2; end++)
		lead_node(s, order->port[end], 0);
	error = switch_emul_lead(emul, order->port, false);
	for (end = 0; end < 2; end++)
		if (emul->hold)
			emul->at[order->port[end]].down = colld_now() + emul->hold;
		else
			lose_carrier(emul, order->port[end]);
	if (error) {
		order->error = error;
		snprintf(order->why, SWITCH_WHY, "the path of port %u stays: %s", order->port[0],
			 strerror(-error));
	}
}

/* Takes the carrier from a port without a circuit. One per call: orders may be due. */
static u64 emul_tick(struct switch_device *s, u64 now)
{
	struct emul *emul = s->state;
	u64 next = COLL_CIRCUIT_FOREVER;
	u32 port;

	for (port = 1; port <= s->ports; port++) {
		struct emul_port *at = &emul->at[port];

		if (at->down && at->down <= now) {
			lose_carrier(emul, port);
			return now;
		}
		if (at->down && at->down < next)
			next = at->down;
	}
	return next;
}

static bool wait_carrier(struct switch_device *s, struct switch_order *order)
{
	const u64 end = colld_now() + s->timeout;

	while (!has_carrier(s, order->port[0]) || !has_carrier(s, order->port[1])) {
		if (colld_now() > end) {
			order->error = -ETIMEDOUT;
			snprintf(order->why, SWITCH_WHY, "no carrier at port %u or %u",
				 order->port[0], order->port[1]);
			return false;
		}
		usleep(CARRIER_LOOK_US);
	}
	return true;
}

static int light_up(struct emul *emul, u32 port)
{
	if (!emul->at[port].down)
		return set_up(emul, port, true);
	emul->at[port].down = 0;	/* it still has a carrier */
	return 0;
}

static void make_path(struct switch_device *s, struct switch_order *order)
{
	struct emul *emul = s->state;
	const bool held = emul->at[order->port[0]].down && emul->at[order->port[1]].down;
	int error = 0;
	u32 end;

	for (end = 0; end < 2; end++)
		if (path_from(emul, s->ports, order->port[end])) {
			order->error = -EBUSY;
			snprintf(order->why, SWITCH_WHY, "port %u is in use", order->port[end]);
			return;
		}
	for (end = 0; end < 2 && !error; end++)
		error = light_up(emul, order->port[end]);
	if (!error)
		error = switch_emul_lead(emul, order->port, true);
	if (error) {
		order->error = -EIO;
		snprintf(order->why, SWITCH_WHY, "no path between ports %u and %u", order->port[0],
			 order->port[1]);
		return;
	}
	order->moved = colld_now();
	if (!held && !wait_carrier(s, order))
		return;
	for (end = 0; end < 2; end++)
		lead_node(s, order->port[end], order->port[!end]);
	order->locked = colld_now();
}

static void emul_change(struct switch_device *s, struct switch_order *order, u32 orders)
{
	struct emul *emul = s->state;
	u32 i;

	for (i = 0; i < orders; i++) {
		order[i].error = 0;
		if (order[i].what == COLL_CIRCUIT_ORDER_DOWN)
			take_down(s, &order[i]);
		else
			order[i].ready = switch_delay_end(&emul->delay);
	}
}

static int emul_read(struct switch_device *s, struct switch_path *path, u32 max, char *why)
{
	struct emul *emul = s->state;
	u32 port, count = 0;

	(void)why;
	for (port = 1; port <= s->ports && count < max; port++) {
		const u32 out = emul->at[port].ifindex ? path_from(emul, s->ports, port) : 0;

		if (out)
			path[count++] = (struct switch_path){ port, out };
	}
	return count;
}

static int emul_remove(struct switch_device *s, struct switch_path path)
{
	struct emul *emul = s->state;
	int error;

	lead_node(s, path.in, 0);
	error = crossbar_lead(&emul->crossbar, emul->at[path.in].ifindex, 0);
	lose_carrier(emul, path.in);
	return error;
}

/* ---- open, close ---------------------------------------------------------- */

static int read_argument(struct emul *emul, const char *argument, char *why)
{
	char copy[512], *save, *word, *equals;

	snprintf(copy, sizeof(copy), "%s", argument);
	for (word = strtok_r(copy, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
		equals = strchr(word, '=');
		if (equals)
			*equals = 0;
		if (!equals || !switch_emul_set(emul, word, equals + 1)) {
			snprintf(
				why, SWITCH_WHY,
				"'%.30s': not one of delta=10ms max=20ms min=5ms hold=0ms seed=1 "
				"device=sw%%u port=port%%u netns=/run/netns/%%s address=10.0.0.%%u",
				word);
			return -EINVAL;
		}
	}
	return 0;
}

/* Whether the node of this port can have routes, for which its address is needed. */
static int check_address(const struct emul *emul, const struct switch_node *at, char *why)
{
	struct nl_addr *address = address_of(emul, at);
	const int family = address ? nl_addr_get_family(address) : AF_UNSPEC;

	nl_addr_put(address);
	if (family != AF_INET && family != AF_INET6) {	/* libnl takes 10.0.0.256 for one of DECnet */
		snprintf(why, SWITCH_WHY, "node %.32s: '%.50s' gives it no address; valid: 10.0.0.%%u for 255 nodes",
			 at->name, emul->address);
		return -EINVAL;
	}
	return 0;
}

/* The two ends of its veth. */
static int find_port(struct switch_device *s, u32 port, char *why)
{
	struct emul *emul = s->state;
	const struct switch_node *at = &s->at[port];
	const struct emul_node *node;
	char device[64];
	u32 mtu;
	int error = 0;

	name_device(s, port, device, sizeof(device));
	emul->at[port].ifindex = index_of(emul->socket, device, &mtu);
	if (!emul->at[port].ifindex) {
		snprintf(why, SWITCH_WHY, "port %u: no device %.40s here", port, device);
		return -ENODEV;
	}
	add_clsact(emul, port);
	if (emul->crossbar.table < 0)
		error = crossbar_open(&emul->crossbar, emul->socket, emul->at[port].ifindex);
	if (!error)
		error = crossbar_attach(&emul->crossbar, emul->socket, emul->at[port].ifindex);
	if (error) {
		snprintf(why, SWITCH_WHY, "port %u: no filter: %s", port, strerror(-error));
		return error;
	}
	if (emul->netns[0] && emul->address[0] && at->index < EMUL_NODES_MAX &&
	    !emul->node[at->index].socket) {
		error = check_address(emul, at, why);
		if (!error)
			error = enter_node(emul, at, why);
	}
	node = node_at(s, port);
	if (node && !error) {
		name_port(s, port, device, sizeof(device));
		emul->at[port].at_node = index_of(node->socket, device, &emul->at[port].mtu);
	}
	return error;
}

static int emul_open(struct switch_device *s, const char *argument, char *why)
{
	struct emul *emul = calloc(1, sizeof(*emul));
	u32 port;
	int error;

	s->state = emul;
	if (!emul)
		return -ENOMEM;
	emul->flags = emul->crossbar.table = emul->crossbar.program = -1;
	emul->delay.mean = 10000000;
	strcpy(emul->device, "sw%u");
	strcpy(emul->port, "port%u");
	error = read_argument(emul, argument, why);
	if (!error)
		error = open_sockets(&emul->socket, &emul->flags);
	for (port = 1; !error && port <= SWITCH_PORTS_MAX; port++)
		if (s->at[port].name) {
			s->ports = port;
			error = find_port(s, port, why);
		}
	for (port = 1; !error && port <= s->ports; port++) {
		const u32 to = path_from(emul, s->ports, port);

		if (to)		/* its colld may have died before the route was added */
			lead_node(s, port, to);
		else if (emul->at[port].ifindex)
			lose_carrier(emul, port);
	}
	return error;
}

static void close_sockets(struct nl_sock *socket, int flags)
{
	if (socket && flags >= 0)
		close(flags);
	nl_socket_free(socket);
}

static void emul_close(struct switch_device *s)
{
	struct emul *emul = s->state;
	u32 i;

	if (!emul)
		return;
	for (i = 0; i < EMUL_NODES_MAX; i++)
		close_sockets(emul->node[i].socket, emul->node[i].flags);
	close_sockets(emul->socket, emul->flags);
	crossbar_close(&emul->crossbar);
	free(emul);
}

const struct switch_ops switch_emul = {
	.name = "emul", .valid = "[delta=10ms] [max=20ms] [min=5ms] [hold=0ms] [seed=1] "
		"[device=sw%u] [port=port%u netns=/run/netns/%s address=10.0.0.%u]",
	.open = emul_open, .close = emul_close, .change = emul_change,
	.settle = make_path, .read = emul_read,
	.remove = emul_remove, .tick = emul_tick,
};
