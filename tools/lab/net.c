// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Namespaces, switches and links, made by ip(8) and tc(8) of iproute2:
 *
 *	node's namespace          the lab's namespace
 *	  rail0 ── veth ────────── p<node>.0 ── bridge s<cluster> ── w<cluster>
 *	  (tbf: its NIC out)       (tbf: the switch's port)            │ veth
 *	                           forwarder, or bridge wan ──────── x<cluster>
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/port.h"
#include "lab.h"

enum {
	SUBNET = 77,		/* 10.77.<cluster>.<node>; the next rail: 10.78... */
	NETEM_PACKETS = 1000,	/* netem's default */
};
#define NETEM_RATE 1e11		/* bit/s of a WAN without a limit */

/* ---- commands ----------------------------------------------------------- */

/*
 * Runs `ip -batch -` or `tc -batch -` with these lines. Over a socket, not a pipe: a program that
 * ends at the first wrong line must not kill the lab by SIGPIPE.
 */
static bool net_batch(const char *program, const char *lines)
{
	int fd[2], status;
	ssize_t length = strlen(lines);
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		return false;
	pid = fork();
	if (!pid) {
		dup2(fd[0], STDIN_FILENO);
		execlp(program, program, "-batch", "-", (char *)NULL);
		fprintf(stderr, "coll lab: cannot run %s (package iproute2): %s\n", program,
			strerror(errno));
		_exit(127);
	}
	close(fd[0]);
	if (pid > 0 && send(fd[1], lines, length, MSG_NOSIGNAL) != length)
		kill(pid, SIGKILL);
	close(fd[1]);
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

/* Lines of a batch under construction: about 100 bytes per node, rail and port. */
struct lines {
	char text[LAB_NODES_MAX * (LAB_RAILS_MAX + LAB_PORTS_MAX) * 128];
	size_t used;
};

__attribute__((format(printf, 2, 3)))
static void net_line(struct lines *lines, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	lines->used += vsnprintf(lines->text + lines->used, sizeof(lines->text) - lines->used,
				 format, arguments);
	va_end(arguments);
	coll_assert(lines->used + 2 <= sizeof(lines->text));
	lines->text[lines->used++] = '\n';
	lines->text[lines->used] = 0;
}

static bool net_setting(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool fine = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);

	if (fd >= 0)
		close(fd);
	return fine;
}

/* ---- a node ------------------------------------------------------------- */

void lab_address(const struct lab *lab, uint32_t node, uint32_t rail, char *text, size_t bytes)
{
	const struct lab_node *n = &lab->node[node];

	if (lab->ipv6)
		snprintf(text, bytes, "fd%u:%u::%u:%u", SUBNET, rail, n->cluster, n->index + 1);
	else
		snprintf(text, bytes, "10.%u.%u.%u", SUBNET + rail, n->cluster, n->index + 1);
}

/*
 * A limit that holds the sender back (a NIC), or drops (a switch's port). TCP hands over up to 64 KB
 * in one packet, which tbf splits only if it is longer than the burst: the queue has to have room for some. A burst
 * goes at once, so it is short: a message of as many bytes would know no limit. A timer comes some 50 us late.
 */
static void net_limit(struct lines *lines, const struct lab *lab, const char *device, double queue)
{
	const double ms = lab->nic / 8 * 0.2e-3, burst = ms > 4000 ? ms : 4000;

	if (lab->nic > 0)
		net_line(lines, "qdisc add dev %s root tbf rate %.0fbit burst %.0f limit %.0f",
			 device, lab->nic, burst, queue > 2 * burst ? queue : 2 * burst);
}

/* In the node's namespace, when its veths exist. */
static bool configure_node(const struct lab *lab, uint32_t node)
{
	static struct lines ip, tc;
	char address[64];
	uint32_t rail;

	ip.used = tc.used = 0;
	net_line(&ip, "link set lo up");
	for (rail = 0; rail < lab->rails; rail++) {
		char device[32];

		snprintf(device, sizeof(device), "rail%u", rail);
		lab_address(lab, node, rail, address, sizeof(address));
		net_line(&ip, "addr add %s/%d dev %s%s", address, lab->ipv6 ? 64 : 16, device,
			 lab->ipv6 ? " nodad" : "");
		net_line(&ip, "link set %s up", device);
		/* A full local queue holds the node's own connections back. */
		net_limit(&tc, lab, device, lab->nic_queue);
	}
	for (rail = 0; rail < lab->ports; rail++) {
		char device[32];

		/*
		 * All ports have the same MAC address and no ARP: the node at the other end takes
		 * the frame.
		 */
		snprintf(device, sizeof(device), "port%u", rail);
		net_line(&ip, "link set %s arp off address 02:00:00:00:00:01 up", device);
		net_limit(&tc, lab, device, 4 << 20);
	}
	if (!lab->ipv6)
		net_setting("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	if (lab->warm && !net_setting("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0"))
		return false;
	return net_batch("ip", ip.text) && (!tc.used || net_batch("tc", tc.text));
}

static bool net_wait(int fd)
{
	char byte;

	return read(fd, &byte, 1) == 1;
}

static bool net_signal(int fd)
{
	return write(fd, "", 1) == 1;
}

/*
 * The lab takes the namespace from this descriptor of the node, which only the lab has open: no other of
 * this process has its number.
 */
static bool show_namespace(int as)
{
	const int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	const bool fine = fd == as || (fd >= 0 && dup3(fd, as, O_CLOEXEC) >= 0);

	if (fd != as)
		close(fd);
	return fine;
}

/* In the node's process, which dies with the lab. */
static void node_main(const struct lab *lab, uint32_t node, int go, int ready,
		      int namespace, lab_node_main *node_life, void *argument)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET) || !show_namespace(namespace) || !net_signal(ready) || !net_wait(go) ||
	    !configure_node(lab, node) || !net_signal(ready) || !net_wait(go))
		_exit(1);
	close(go);
	close(ready);
	node_life(lab, node, argument);
	_exit(127);
}

static bool start_node(struct lab *lab, uint32_t node, lab_node_main *node_life, void *argument)
{
	int go[2], ready[2];

	if (pipe2(go, O_CLOEXEC) || pipe2(ready, O_CLOEXEC))
		return false;
	coll_assert(!lab->node[node].pid);
	lab->node[node].pid = fork();
	if (!lab->node[node].pid) {
		close(go[1]);
		close(ready[0]);
		node_main(lab, node, go[0], ready[1], ready[0], node_life, argument);
	}
	close(go[0]);
	close(ready[1]);
	lab->node[node].go = go[1];
	lab->node[node].ready = ready[0];
	return lab->node[node].pid > 0 && net_wait(ready[0]);
}

/* ---- the lab's namespace -------------------------------------------------- */

/* Without root: becomes root of a new user namespace. */
static bool become_root(void)
{
	char map[64];
	const uid_t uid = geteuid();
	const gid_t gid = getegid();

	if (!uid)
		return true;
	if (unshare(CLONE_NEWUSER))
		return false;
	snprintf(map, sizeof(map), "0 %u 1", uid);
	if (!net_setting("/proc/self/uid_map", map))
		return false;
	net_setting("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", gid);
	return net_setting("/proc/self/gid_map", map);
}

/* The forwarder must see wire frames: the sender's side segments and computes checksums. */
static bool plain_frames(int fd, const char *device)
{
	static const uint32_t offloads[] = { ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_STXCSUM };
	bool fine = true;
	size_t i;

	for (i = 0; i < sizeof(offloads) / sizeof(offloads[0]); i++) {
		struct ethtool_value off = { .cmd = offloads[i] };
		struct ifreq request = { .ifr_data = (char *)&off };

		snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
		fine &= !ioctl(fd, SIOCETHTOOL, &request);
	}
	return fine;
}

/* Receives all frames from x<cluster>, with their time stamps. */
static int open_port(uint32_t cluster)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	const int yes = 1, room = 64 << 20;
	char near[32], far[32];
	int fd;

	snprintf(near, sizeof(near), "w%u", cluster);
	snprintf(far, sizeof(far), "x%u", cluster);
	address.sll_ifindex = if_nametoindex(far);
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	/* Without CAP_NET_ADMIN: the system's maximum. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	if (!plain_frames(fd, near) || !plain_frames(fd, far) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes)) ||
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof(yes)) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * The node's namespace, in an `ip` that inherits the descriptor. Not by pid: the lab's /proc has other
 * pids, and newer versions of ip look there.
 */
static const char *namespace_path(const struct lab *lab, uint32_t node)
{
	static char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", lab->node[node].namespace);
	return path;
}

/* The node's ends of its optical ports; the others are the switch's. */
static void add_ports(struct lines *ip, const struct lab *lab, uint32_t node)
{
	uint32_t port;

	for (port = 0; port < lab->ports; port++)
		net_line(ip, "link add sw%u type veth peer name port%u netns %s",
			 node * lab->ports + port + 1, port, namespace_path(lab, node));
}

/* Each rail has its own switches; all share the WAN. */
static void add_switch(struct lines *ip, const struct lab *lab, uint32_t cluster, uint32_t rail)
{
	uint32_t i;

	net_line(ip, "link add s%u.%u type bridge stp_state 0 mcast_snooping 0", cluster, rail);
	net_line(ip, "link set s%u.%u up", cluster, rail);
	for (i = 0; i < lab->nodes; i++) {
		if (lab->node[i].cluster != cluster)
			continue;
		net_line(ip, "link add p%u.%u type veth peer name rail%u netns %s", i, rail, rail,
			 namespace_path(lab, i));
		net_line(ip, "link set p%u.%u master s%u.%u up", i, rail, cluster, rail);
	}
}

static bool start_forwarder(struct lab *lab)
{
	int port[LAB_CLUSTERS_MAX];
	uint32_t i;

	for (i = 0; i < lab->clusters; i++) {
		port[i] = open_port(i);
		if (port[i] < 0) {
			fprintf(stderr, "coll lab: the WAN's port: %s\n", strerror(errno));
			return false;
		}
	}
	coll_assert(!lab->wan_pid);
	lab->wan_pid = fork();
	if (!lab->wan_pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		lab_forward(lab, port, lab->clusters);
	}
	for (i = 0; i < lab->clusters; i++)
		close(port[i]);
	return lab->wan_pid > 0;
}

static bool add_wan(struct lab *lab)
{
	const double rate = lab->wan > 0 ? lab->wan : NETEM_RATE;
	/* In the queue, and under way; without a limit the queue is netem's own. */
	const double packets = (lab->queue + rate / 8 * lab->delay) / 1500 + (lab->wan > 0 ? 1 : NETEM_PACKETS);
	static struct lines ip, tc;
	uint32_t i;

	ip.used = tc.used = 0;
	if (lab->netem)
		net_line(&ip, "link add wan up type bridge stp_state 0 mcast_snooping 0");
	for (i = 0; i < lab->clusters; i++) {
		net_line(&ip, "link add w%u type veth peer name x%u", i, i);
		net_line(&ip, "link set w%u master s%u.0 up", i, i);
		net_line(&ip, "link set x%u %s up", i, lab->netem ? "master wan" : "");
		net_line(&tc,
			 "qdisc add dev w%u root netem delay %.0fus rate %.0fbit limit %.0f loss "
			 "%f%%",
			 i, lab->delay * 1e6, rate, packets < UINT32_MAX ? packets : UINT32_MAX,
			 lab->loss * 100);
	}
	if (!net_batch("ip", ip.text))
		return false;
	return lab->netem ? net_batch("tc", tc.text) : start_forwarder(lab);
}

/* Rails beyond the first reach other clusters through the first rail's switch. */
static void join_rails(struct lines *ip, const struct lab *lab, uint32_t cluster)
{
	uint32_t rail;

	for (rail = 1; rail < lab->rails; rail++) {
		net_line(ip, "link add u%u.%u type veth peer name v%u.%u", cluster, rail, cluster,
			 rail);
		net_line(ip, "link set u%u.%u master s%u.%u up", cluster, rail, cluster, rail);
		net_line(ip, "link set v%u.%u master s%u.0 up", cluster, rail, cluster);
	}
}

int lab_namespace(const struct lab *lab, uint32_t node)
{
	const int process = syscall(SYS_pidfd_open, lab->node[node].pid, 0);
	const int fd = syscall(SYS_pidfd_getfd, process, lab->node[node].ready, 0);

	if (fd < 0)
		fprintf(stderr, "coll lab: node %u's namespace: %s\n", node, strerror(errno));
	close(process);
	return fd;
}

static void close_namespaces(struct lab *lab, uint32_t nodes)
{
	while (nodes--)
		close(lab->node[nodes].namespace);
}

/* For programs that are executed until they are closed. */
static bool open_namespaces(struct lab *lab)
{
	uint32_t i;

	for (i = 0; i < lab->nodes; i++) {
		lab->node[i].namespace = lab_namespace(lab, i);
		if (lab->node[i].namespace < 0 || fcntl(lab->node[i].namespace, F_SETFD, 0)) {
			close_namespaces(lab, i);
			return false;
		}
	}
	return true;
}

static bool join_nodes(struct lab *lab)
{
	static struct lines ip, tc;
	char device[32];
	uint32_t i, rail;

	ip.used = tc.used = 0;
	net_setting("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	for (i = 0; i < lab->clusters; i++) {
		for (rail = 0; rail < lab->rails; rail++)
			add_switch(&ip, lab, i, rail);
		join_rails(&ip, lab, i);
	}
	for (i = 0; i < lab->nodes; i++) {
		add_ports(&ip, lab, i);
		for (rail = 0; rail < lab->rails; rail++) {
			snprintf(device, sizeof(device), "p%u.%u", i, rail);
			net_limit(&tc, lab, device, lab->port_queue);
		}
	}
	return net_batch("ip", ip.text) && (!tc.used || net_batch("tc", tc.text)) &&
	       (lab->clusters == 1 || add_wan(lab));
}

static bool build_network(struct lab *lab)
{
	bool fine = open_namespaces(lab);

	if (fine) {
		fine = join_nodes(lab);
		close_namespaces(lab, lab->nodes);
	}
	return fine;
}

int lab_enter(int (*inside)(void *argument), void *argument)
{
	sigset_t all, before;
	int status;
	pid_t pid;

	if (!become_root() || unshare(CLONE_NEWNET | CLONE_NEWPID)) {
		fprintf(stderr, "coll lab: cannot create namespaces: %s\n", strerror(errno));
		return 1;
	}
	/* Blocked before there is a process that can end: no SIGCHLD of it is missed. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigprocmask(SIG_SETMASK, &before, NULL);
		exit(inside(argument));
	}
	if (pid < 0)
		fprintf(stderr, "coll lab: cannot start a process: %s\n", strerror(errno));
	/* The process inside handles signals, ends everything and returns the exit code. */
	while (pid > 0 && waitpid(pid, &status, WNOHANG) != pid) {
		const int signal = sigwaitinfo(&all, NULL);

		if (signal > 0 && signal != SIGCHLD)
			kill(pid, signal);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid < 0 ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool lab_build(struct lab *lab, lab_node_main *node_life, void *argument)
{
	uint32_t i, k;

	for (i = 0, lab->nodes = 0; i < lab->clusters; i++)
		for (k = 0; k < lab->size[i]; k++)
			lab->node[lab->nodes++] = (struct lab_node){ .cluster = i, .index = k };
	if (lab->ports && !lab_circuits_prepare(lab))
		return false;
	for (i = 0; i < lab->nodes; i++)
		if (!start_node(lab, i, node_life, argument)) {
			fprintf(stderr, "coll lab: node %u does not start\n", i);
			return false;
		}
	if (!build_network(lab)) {
		fprintf(stderr, "coll lab: the network cannot be built\n");
		return false;
	}
	for (i = 0; i < lab->nodes; i++)
		if (!net_signal(lab->node[i].go) || !net_wait(lab->node[i].ready)) {
			fprintf(stderr, "coll lab: node %u has no network\n", i);
			return false;
		}
	return !lab->ports || lab_circuits_start(lab);
}

void lab_begin(struct lab *lab)
{
	uint32_t i;

	for (i = 0; i < lab->nodes; i++) {
		coll_assert(lab->node[i].pid > 0);
		net_signal(lab->node[i].go);
		close(lab->node[i].go);
		close(lab->node[i].ready);
	}
}

void lab_end(struct lab *lab)
{
	uint32_t i;

	for (i = 0; i < lab->nodes; i++)
		if (lab->node[i].pid > 0) {
			kill(lab->node[i].pid, SIGKILL);
			waitpid(lab->node[i].pid, NULL, 0);
			lab->node[i].pid = 0;
		}
	lab_circuits_end(lab);
	if (lab->wan_pid > 0) {
		kill(lab->wan_pid, SIGKILL);
		waitpid(lab->wan_pid, NULL, 0);
		lab->wan_pid = 0;
	}
}

bool lab_down(const struct lab *lab, const struct lab_event *event)
{
	static struct lines ip;
	uint32_t i;

	ip.used = 0;
	for (i = 0; i < (event->node < 0 ? lab->clusters : lab->rails); i++) {
		if (event->node < 0)
			net_line(&ip, "link set w%u down", i);
		else
			net_line(&ip, "link set p%d.%u down", event->node, i);
	}
	return net_batch("ip", ip.text);
}
