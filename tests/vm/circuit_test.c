// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Circuits in the kernel: two network namespaces are two nodes, and this program is who
 * drives the switch. What is sent in the dark is held, in order and within bounds, or
 * refused so that the sender hears of it; and nothing stays behind.
 *
 * Length: the plays share one domain and its fake switch.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/netlink.h"
#include "uapi/coll_circuit.h"
#include "vm.h"

enum { PORT = 4000, PATIENCE_MS = 20000 };

static struct netlink *owner, *events;

/* ---- two nodes: 10.9.0.1 here, 10.9.0.2 and 10.9.0.3 there --------------- */

static void load_veth(void)
{
	const int fd = open("/veth.ko", O_RDONLY);

	if (fd >= 0)
		syscall(SYS_finit_module, fd, "", 0);
	close(fd);
}

/* The kernel's answer, 0 or -errno. Frees the message. */
static int ask_link(struct nl_msg *message)
{
	struct { struct nlmsghdr header; struct nlmsgerr error; char rest[256]; } answer;
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct nlmsghdr *header = nlmsg_hdr(message);
	ssize_t got;

	got = send(fd, header, header->nlmsg_len, 0) < 0 ? -1
							 : recv(fd, &answer, sizeof(answer), 0);
	nlmsg_free(message);
	close(fd);
	return got < (ssize_t)sizeof(answer.header) + 4 ? -EIO : answer.error.error;
}

static int delete_veth(void)
{
	const struct ifinfomsg info = { 0 };
	struct nl_msg *message = nlmsg_alloc_size(1024);

	nlmsg_put(message, 0, 1, RTM_DELLINK, 0, NLM_F_REQUEST | NLM_F_ACK);
	nlmsg_append(message, (void *)&info, sizeof(info), NLMSG_ALIGNTO);
	nla_put_string(message, IFLA_IFNAME, "near");
	return ask_link(message);
}

static int make_veth(pid_t peer)
{
	const struct ifinfomsg info = { 0 };
	struct nl_msg *message = nlmsg_alloc_size(1024);
	struct nlattr *linkinfo, *data, *other;

	nlmsg_put(message, 0, 1, RTM_NEWLINK, 0,
		  NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK);
	nlmsg_append(message, (void *)&info, sizeof(info), NLMSG_ALIGNTO);
	nla_put_string(message, IFLA_IFNAME, "near");
	linkinfo = nla_nest_start(message, IFLA_LINKINFO);
	nla_put_string(message, IFLA_INFO_KIND, "veth");
	data = nla_nest_start(message, IFLA_INFO_DATA);
	other = nla_nest_start(message, VETH_INFO_PEER);
	nlmsg_append(message, (void *)&info, sizeof(info), NLMSG_ALIGNTO);
	nla_put_string(message, IFLA_IFNAME, "far");
	nla_put_u32(message, IFLA_NET_NS_PID, peer);
	nla_nest_end(message, other);
	nla_nest_end(message, data);
	nla_nest_end(message, linkinfo);
	return ask_link(message);
}

static void set_address(const char *device, const char *text)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct ifreq request = { .ifr_flags = 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
	inet_pton(AF_INET, text, &address.sin_addr);
	memcpy(&request.ifr_addr, &address, sizeof(address));
	ioctl(fd, SIOCSIFADDR, &request);
	inet_pton(AF_INET, "255.255.0.0", &address.sin_addr);
	memcpy(&request.ifr_addr, &address, sizeof(address));
	ioctl(fd, SIOCSIFNETMASK, &request);
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	ioctl(fd, SIOCSIFFLAGS, &request);
	close(fd);
}

/* The far node: takes datagrams on two addresses and counts; echoes TCP. In shared memory. */
static struct far {
	int got, out_of_order, latest;
	int ready;
} *far;

static int bound(int type, int port)
{
	const struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	const int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    (type == SOCK_STREAM && listen(fd, 5)))
		_exit(1);
	return fd;
}

static void be_far(int go)
{
	char byte, buffer[8192];
	int udp, tcp, one = -1;

	if (unshare(CLONE_NEWNET))
		_exit(1);
	__atomic_store_n(&far->ready, 1, __ATOMIC_SEQ_CST);
	if (read(go, &byte, 1) != 1)
		_exit(1);
	set_address("far", "10.9.0.2");
	set_address("far:1", "10.9.0.3");
	vm_loopback_up();
	udp = bound(SOCK_DGRAM, PORT);
	tcp = bound(SOCK_STREAM, PORT);
	__atomic_store_n(&far->ready, 2, __ATOMIC_SEQ_CST);
	for (;;) {
		struct pollfd fds[] = { { udp, POLLIN, 0 },
					{ tcp, POLLIN, 0 },
					{ one, POLLIN, 0 } };
		ssize_t got;

		poll(fds, 3, -1);
		if (fds[0].revents && recv(udp, buffer, sizeof(buffer), 0) >= 4) {
			int number;

			memcpy(&number, buffer, 4);
			far->out_of_order += number <= far->latest;
			far->latest = number;
			__atomic_add_fetch(&far->got, 1, __ATOMIC_SEQ_CST);
		}
		if (fds[1].revents)
			one = accept(tcp, NULL, NULL);
		if (one >= 0 && fds[2].revents) {
			got = recv(one, buffer, sizeof(buffer), 0);
			if (got <= 0 || send(one, buffer, got, MSG_NOSIGNAL) != got) {
				close(one);
				one = -1;
			}
		}
	}
}

static bool reach(const int *value, int wanted)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += 5) {
		if (__atomic_load_n(value, __ATOMIC_SEQ_CST) >= wanted)
			return true;
		vm_sleep_ms(5);
	}
	return false;
}

static pid_t make_nodes(void)
{
	int go[2], error;
	pid_t child;

	load_veth();
	far = mmap(NULL, sizeof(*far), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pipe(go))
		return -1;
	child = fork();
	if (!child)
		be_far(go[0]);
	if (!reach(&far->ready, 1))
		return -1;
	error = make_veth(child);
	vm_is(error, 0, "two nodes, joined");
	set_address("near", "10.9.0.1");
	vm_loopback_up();
	if (write(go[1], "", 1) != 1 || !reach(&far->ready, 2))
		return -1;
	return child;
}

/* ---- the module ---------------------------------------------------------- */

static uint32_t address_of(const char *text)
{
	uint32_t address;

	inet_pton(AF_INET, text, &address);
	return address;
}

/* How often a circuit that failed or was lost is asked for again. */
static uint32_t retries;

static uint32_t keep_ms = 300;	/* of the next domain */
static uint8_t prefix = 24;

static int domain(uint32_t ports, uint32_t bytes, uint32_t age, bool refuse)
{
	struct nl_msg *message = netlink_message(owner, COLL_CMD_CIRCUIT_DOMAIN, 0);
	const uint32_t address = address_of("10.9.0.0");

	nla_put(message, COLL_CIRCUIT_A_ADDRESS, 4, &address);
	nla_put_u8(message, COLL_CIRCUIT_A_PREFIX, prefix);
	nla_put_u32(message, COLL_CIRCUIT_A_PORTS, ports);
	nla_put_u32(message, COLL_CIRCUIT_A_BYTES, bytes);
	nla_put_u32(message, COLL_CIRCUIT_A_AGE, age);
	nla_put_u32(message, COLL_CIRCUIT_A_KEEP, keep_ms);
	nla_put_u32(message, COLL_CIRCUIT_A_GRACE, 0);
	nla_put_u32(message, COLL_CIRCUIT_A_LEASE, 200);
	nla_put_u32(message, COLL_CIRCUIT_A_TIMEOUT, 30000);
	nla_put_u32(message, COLL_CIRCUIT_A_RETRIES, retries);
	if (refuse)
		nla_put_flag(message, COLL_CIRCUIT_A_REFUSE);
	return netlink_ask(owner, message, NULL, NULL);
}

static struct event {
	int kind;
	uint32_t id, serial, address;
	char name[32];
} last, wanted;

static int take_event(enum coll_command command, struct nlattr **a, void *data)
{
	(void)command;
	(void)data;
	last = (struct event){ .kind = a[COLL_EVENT_A_KIND] ? nla_get_u8(a[COLL_EVENT_A_KIND])
							    : -1 };
	if (a[COLL_EVENT_A_ID])
		last.id = nla_get_u32(a[COLL_EVENT_A_ID]);
	if (a[COLL_EVENT_A_SERIAL])
		last.serial = nla_get_u32(a[COLL_EVENT_A_SERIAL]);
	if (a[COLL_EVENT_A_ADDRESS])
		memcpy(&last.address, nla_data(a[COLL_EVENT_A_ADDRESS]), 4);
	if (a[COLL_EVENT_A_NAME])
		snprintf(last.name, sizeof(last.name), "%s", nla_get_string(a[COLL_EVENT_A_NAME]));
	if (last.kind == wanted.kind && (!wanted.address || last.address == wanted.address) &&
	    (!*wanted.name || !strcmp(last.name, wanted.name)) &&
	    (!wanted.id || last.id == wanted.id))
		wanted = last, wanted.kind = -2;	/* found */
	return 0;
}

/* The next event of this kind, of this peer or lease; what comes before is passed over. */
static bool await(int kind, const char *address, const char *name, uint32_t id)
{
	const uint64_t end = vm_now() + PATIENCE_MS * 1000000ull;

	wanted = (struct event){ .kind = kind,
				 .address = address ? address_of(address) : 0,
				 .id = id };
	snprintf(wanted.name, sizeof(wanted.name), "%s", name ? name : "");
	while (wanted.kind != -2 && vm_now() < end) {
		struct pollfd fd = { netlink_fd(events), POLLIN, 0 };

		if (poll(&fd, 1, 1000) > 0)
			netlink_events(events, take_event, NULL);
	}
	return wanted.kind == -2;
}

/* Clears what there is, and begins anew. */
static void begin(uint32_t ports, uint32_t bytes, uint32_t age, bool refuse)
{
	/* Its events are behind us then: no order of before is taken for one of now. */
	if (!netlink_ask(owner, netlink_message(owner, COLL_CMD_CIRCUIT_CLEAR, 0), NULL, NULL))
		await(COLL_EVENT_CIRCUIT_ENDED, NULL, NULL, 0);
	if (domain(ports, bytes, age, refuse))
		vm_ok(false, "a domain: %s", netlink_reason(owner));
	far->got = far->out_of_order = 0;
	far->latest = -1;
}

static int set(uint8_t state, uint32_t error)
{
	struct nl_msg *message = netlink_message(owner, COLL_CMD_CIRCUIT_SET, 0);

	nla_put_u32(message, COLL_CIRCUIT_A_ID, wanted.id);
	nla_put_u32(message, COLL_CIRCUIT_A_SERIAL, wanted.serial);
	nla_put_u8(message, COLL_CIRCUIT_A_STATE, state);
	if (error)
		nla_put_u32(message, COLL_CIRCUIT_A_ERROR, error);
	return netlink_ask(owner, message, NULL, NULL);
}

/* The switch sets up a circuit to it. */
static bool light(const char *address)
{
	return await(COLL_EVENT_CIRCUIT_UP, address, NULL, 0) && !set(COLL_CIRCUIT_SWITCHING, 0) &&
	       !set(COLL_CIRCUIT_UP, 0);
}

static bool darken(const char *address)
{
	return await(COLL_EVENT_CIRCUIT_DOWN, address, NULL, 0) && !set(COLL_CIRCUIT_DOWN, 0);
}

static struct counters {
	uint64_t passed, held, sent, refused, expired;
	uint32_t queued;
	uint8_t state;
} counters;

static int take_counters(enum coll_command command, struct nlattr **a, void *data)
{
	(void)command;
	if (a[COLL_CIRCUIT_A_PREFIX] || !a[COLL_CIRCUIT_A_ADDRESS] ||
	    memcmp(nla_data(a[COLL_CIRCUIT_A_ADDRESS]), data, 4))
		return 0;
	counters = (struct counters){
		.passed = nla_get_u64(a[COLL_CIRCUIT_A_PASSED]),
		.held = nla_get_u64(a[COLL_CIRCUIT_A_HELD]),
		.sent = nla_get_u64(a[COLL_CIRCUIT_A_SENT]),
		.refused = nla_get_u64(a[COLL_CIRCUIT_A_REFUSED]),
		.expired = nla_get_u64(a[COLL_CIRCUIT_A_EXPIRED]),
		.queued = nla_get_u32(a[COLL_CIRCUIT_A_QUEUED]),
		.state = nla_get_u8(a[COLL_CIRCUIT_A_STATE]),
	};
	return 0;
}

static void look(const char *text)
{
	uint32_t address = address_of(text);

	memset(&counters, 0, sizeof(counters));
	netlink_ask(owner, netlink_message(owner, COLL_CMD_CIRCUIT_GET, NLM_F_DUMP), take_counters,
		    &address);
}

/* Does as the module orders, until the circuit to it is in that state. */
static bool settle(const char *address, int state)
{
	const uint64_t end = vm_now() + PATIENCE_MS * 1000000ull;

	for (look(address); counters.state != state && vm_now() < end; look(address)) {
		struct pollfd fd = { netlink_fd(events), POLLIN, 0 };

		if (poll(&fd, 1, 100) <= 0)
			continue;
		wanted = (struct event){ .kind = -1 };
		netlink_events(events, take_event, NULL);
		wanted = last;
		if (last.kind == COLL_EVENT_CIRCUIT_UP)
			set(COLL_CIRCUIT_UP, 0);
		else if (last.kind == COLL_EVENT_CIRCUIT_DOWN)
			set(COLL_CIRCUIT_DOWN, 0);
	}
	return counters.state == state;
}

static int sender_that_hears(const char *text, int on)
{
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT),
					.sin_addr.s_addr = address_of(text) };
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	/* Else a socket is not told that a host cannot be reached: it may be for now only. */
	setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
	connect(fd, (struct sockaddr *)&to, sizeof(to));
	return fd;
}

static int sender(const char *text)
{
	return sender_that_hears(text, 0);
}

/* How many were taken, of those with the numbers from `first` on. */
static int send_some(int fd, int first, int count)
{
	int taken = 0, i;

	for (i = first; i < first + count; i++)
		taken += send(fd, &i, sizeof(i), 0) == sizeof(i);
	return taken;
}

/* ---- what is tested ------------------------------------------------------ */

static void held_in_order(void)
{
	int fd;

	keep_ms = 3000;		/* it is there for those that follow, however slow we are */
	begin(1, 1 << 20, 60000, false);
	keep_ms = 300;
	fd = sender("10.9.0.2");
	vm_is(send_some(fd, 0, 50), 50, "datagrams in the dark are taken");
	vm_ok(await(COLL_EVENT_CIRCUIT_UP, "10.9.0.2", NULL, 0), "their circuit is asked for");
	look("10.9.0.2");
	vm_is(counters.held, 50, "they are held");
	vm_is(far->got, 0, "and not sent");
	vm_ok(counters.queued > 0 && counters.queued <= 1 << 20, "memory is counted: %u bytes",
	      counters.queued);
	vm_is(set(COLL_CIRCUIT_SWITCHING, 0), 0, "the switch moves");
	send_some(fd, 50, 10);
	vm_is(far->got, 0, "what comes meanwhile waits too");
	vm_is(set(COLL_CIRCUIT_UP, 0), 0, "light");
	vm_ok(reach(&far->got, 60), "all of them arrive");
	send_some(fd, 60, 10);
	vm_ok(reach(&far->got, 70), "and those that follow");
	vm_is(far->out_of_order, 0, "in order");
	look("10.9.0.2");
	vm_is(counters.sent, counters.held, "what was held was sent");
	vm_is(counters.queued, 0, "and its memory is free");
	vm_ok(darken("10.9.0.2"), "without traffic it is given back");
	close(fd);
}

static void one_port(void)
{
	int a, b;

	begin(1, 1 << 20, 60000, false);
	a = sender("10.9.0.2");
	b = sender("10.9.0.3");
	send_some(a, 0, 1);
	vm_ok(light("10.9.0.2"), "one port: a circuit for the first");
	send_some(b, 1, 1);
	vm_ok(darken("10.9.0.2") && light("10.9.0.3"), "which makes room for the second");
	vm_ok(reach(&far->got, 2), "both datagrams arrive");
	send_some(a, 2, 1);
	vm_ok(darken("10.9.0.3") && light("10.9.0.2"), "and back again");
	vm_ok(reach(&far->got, 3), "the third too");
	close(a);
	close(b);
}

static void bounds(void)
{
	uint32_t most = 0;
	int fd, i, refused = 0;

	begin(1, 8192, 60000, false);
	fd = sender("10.9.0.2");
	for (i = 0; i < 100; i++) {
		refused += send(fd, &i, sizeof(i), 0) < 0;
		look("10.9.0.2");
		most = counters.queued > most ? counters.queued : most;
	}
	vm_ok(most > 0 && most <= 8192, "never more than 8192 bytes are held: %u", most);
	vm_ok(refused > 50, "the others are refused, %d of 100", refused);
	vm_is(counters.held + counters.refused, 100, "each is counted");
	vm_ok(light("10.9.0.2") && reach(&far->got, counters.held), "what was held arrives");
	vm_is(far->out_of_order, 0, "in order");
	close(fd);
}

static bool hears(int fd, int error)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += 10) {
		int said = 0;
		socklen_t bytes = sizeof(said);

		getsockopt(fd, SOL_SOCKET, SO_ERROR, &said, &bytes);
		if (said)
			return said == error;
		vm_sleep_ms(10);
	}
	return false;
}

static void failures(void)
{
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT),
					.sin_addr.s_addr = address_of("10.9.0.2") };
	int fd, tcp;

	begin(1, 1 << 20, 60000, false);
	fd = sender_that_hears("10.9.0.2", 1);
	send_some(fd, 0, 5);
	vm_ok(await(COLL_EVENT_CIRCUIT_UP, "10.9.0.2", NULL, 0) &&
		      !set(COLL_CIRCUIT_FAILED, EBUSY) && darken("10.9.0.2"),
	      "the switch cannot");
	vm_ok(hears(fd, EHOSTUNREACH), "the sender hears of it");
	VM_COMES((look("10.9.0.2"), !counters.queued));	/* it hears of the first of them */
	vm_is(counters.expired, 5, "what was held is counted");
	vm_is(counters.queued, 0, "and gone");
	close(fd);

	begin(1, 1 << 20, 100, false);
	fd = sender_that_hears("10.9.0.2", 1);
	send_some(fd, 0, 5);
	vm_ok(hears(fd, EHOSTUNREACH), "held for too long: the sender hears of it");
	close(fd);

	begin(0, 1 << 20, 60000, true);
	fd = sender("10.9.0.2");
	vm_is(send_some(fd, 0, 3), 0, "where nothing is to be held it is refused at once");
	look("10.9.0.2");
	vm_ok(counters.refused >= 3 && !counters.held, "and counted");
	tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	vm_is(connect(tcp, (const struct sockaddr *)&to, sizeof(to)) ? errno : 0, EHOSTUNREACH,
	      "a connect() does not hang");
	close(tcp);
	close(fd);
}

/* Bytes of TCP over a circuit that goes in the middle and comes back. */
static void tcp(void)
{
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT),
					.sin_addr.s_addr = address_of("10.9.0.2") };
	static char out[100000], in[100000];
	size_t sent = 0, got = 0, i;
	bool interrupted = false;
	int fd;

	retries = 3;
	begin(1, 4 << 20, 60000, false);
	retries = 0;
	for (i = 0; i < sizeof(out); i++)
		out[i] = i * 7 + i / 251;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	connect(fd, (const struct sockaddr *)&to, sizeof(to));
	vm_ok(light("10.9.0.2"), "a connect() asks for a circuit");
	for (uint64_t end = vm_now() + 30000000000ull; got < sizeof(in) && vm_now() < end;) {
		struct pollfd p = { fd, POLLIN | (sent < sizeof(out) ? POLLOUT : 0), 0 };
		ssize_t n;

		poll(&p, 1, 100);
		n = p.revents & POLLOUT ? send(fd, out + sent, sizeof(out) - sent < 5000 ?
					       sizeof(out) - sent : 5000, MSG_NOSIGNAL) : 0;
		sent += n > 0 ? n : 0;
		n = p.revents & POLLIN ? recv(fd, in + got, sizeof(in) - got, 0) : 0;
		got += n > 0 ? n : 0;
		if (got > sizeof(in) / 2 && !interrupted) {
			interrupted = true;
			set(COLL_CIRCUIT_DOWN, 0);	/* lost: `wanted` is the circuit yet */
			vm_ok(darken("10.9.0.2") && light("10.9.0.2"),
			      "it is lost, and made again");
		}
	}
	vm_ok(interrupted && got == sizeof(in) && !memcmp(in, out, sizeof(in)),
	      "and all bytes came back, %zu", got);
	close(fd);
}

/* ---- leases ---- */

static int take_id(enum coll_command command, struct nlattr **a, void *data)
{
	(void)command;
	if (a[COLL_CIRCUIT_A_ID])
		*(uint32_t *)data = nla_get_u32(a[COLL_CIRCUIT_A_ID]);
	return 0;
}

static uint32_t want(struct netlink *netlink, const char *text)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_CIRCUIT_REQUEST, 0);
	const uint32_t address = address_of(text);
	uint32_t id = 0;

	nla_put(message, COLL_CIRCUIT_A_ADDRESS, 4, &address);
	return netlink_ask(netlink, message, take_id, &id) ? 0 : id;
}

static int release(struct netlink *netlink, uint32_t id)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_CIRCUIT_RELEASE, 0);

	nla_put_u32(message, COLL_CIRCUIT_A_ID, id);
	return netlink_ask(netlink, message, NULL, NULL);
}

static void leases(void)
{
	struct netlink *one, *two;
	uint32_t a, b;

	begin(1, 1 << 20, 60000, false);
	netlink_open(&one);
	netlink_open(&two);
	a = want(one, "10.9.0.2");
	vm_ok(a && light("10.9.0.2") && await(COLL_EVENT_CIRCUIT_LEASE, NULL, "up", a),
	      "a socket is given a circuit");
	b = want(two, "10.9.0.3");
	vm_is(release(two, a), -ENOENT, "another cannot release it");
	vm_ok(b && settle("10.9.0.3", COLL_CIRCUIT_UP), "which takes its turn");
	vm_ok(settle("10.9.0.2", COLL_CIRCUIT_UP), "and then the first again");
	netlink_close(one);
	vm_ok(settle("10.9.0.3", COLL_CIRCUIT_UP), "one that is closed has nothing any more");
	vm_is(release(two, b), 0, "released");
	vm_ok(settle("10.9.0.3", COLL_CIRCUIT_DOWN), "and gone");
	netlink_close(two);
}

/* ---- more peers than there is room for ---- */

/* As a user: one datagram to each of so many addresses 10.9.x.y. How many were taken. */
static int send_to_many(int network, int count)
{
	int status = -1, i, fd, taken = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		if (setuid(1000))
			_exit(255);
		for (i = 0; i < count; i++) {
			char text[32];

			snprintf(text, sizeof(text), "10.9.%d.%d", network + i / 200, 1 + i % 200);
			fd = sender(text);
			taken += send_some(fd, i, 1);
			close(fd);
		}
		_exit(taken * 100 / count);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void crowd(void)
{
	int fd;

	prefix = 16;
	begin(1, 1 << 20, 60000, false);
	prefix = 24;
	vm_is(send_to_many(1, 400), 100, "a user sends to 400 addresses, and none is refused");
	fd = sender("10.9.0.2");
	vm_is(send_some(fd, 0, 1), 1, "a new peer of another user has room");
	look("10.9.0.2");
	vm_is(counters.held, 1, "what is sent to it is held");
	vm_is(send_to_many(3, 400), 100, "the user goes on, to 400 others");
	look("10.9.0.2");
	vm_ok(counters.held == 1 && counters.queued, "and makes room at its own expense");
	close(fd);
}

static void refusals(void)
{
	struct nl_msg *message;
	struct netlink *other;

	begin(1, 1 << 20, 60000, false);
	netlink_open(&other);
	vm_is(netlink_ask(other, netlink_message(other, COLL_CMD_CIRCUIT_CLEAR, 0), NULL, NULL),
	      -EBUSY, "a domain is one socket's");
	vm_is(want(other, "10.8.0.1"), 0, "an address of no domain");
	vm_says(netlink_reason(other), "of no domain", "says so");
	message = netlink_message(owner, COLL_CMD_CIRCUIT_SET, 0);
	nla_put_u32(message, COLL_CIRCUIT_A_ID, 200);
	nla_put_u32(message, COLL_CIRCUIT_A_SERIAL, 0);
	nla_put_u8(message, COLL_CIRCUIT_A_STATE, COLL_CIRCUIT_UP);
	vm_is(netlink_ask(owner, message, NULL, NULL), -ENOENT, "no such circuit");
	message = netlink_message(owner, COLL_CMD_CIRCUIT_DOMAIN, 0);
	nla_put_u32(message, COLL_CIRCUIT_A_AGE, 70000);
	vm_is(netlink_ask(owner, message, NULL, NULL), -ERANGE, "too long an age");
	vm_says(netlink_reason(owner), "age: 1 to 60000", "says what is valid");
	netlink_close(other);
}

/* ---- colld drives the switch: what is held leaves when it says so ---- */

static pid_t start_colld(void)
{
	const pid_t colld = fork();

	if (!colld) {
		execl("/bin/colld", "colld", "--circuits", "/tmp/setup", "--metrics", "0",
		      "--state", "/tmp/state", (char *)NULL);
		_exit(127);
	}
	for (int ms = 0; ms < PATIENCE_MS && access("/tmp/circuits", F_OK); ms += 10)
		vm_sleep_ms(10);
	return colld;
}

static void with_colld(void)
{
	static const char setup[] =
		"socket /tmp/circuits\nswitch fake delta=30ms\nnode here 1 10.9.0.1\n"
		"node far 2 10.9.0.2\nnode farther 3 10.9.0.3\nkernel here 24\nkeep 300ms\n"
		"lease 200ms\ntimeout 20s\n";
	FILE *file = fopen("/tmp/setup", "w");
	pid_t colld;
	int a, b;

	if (access("/bin/colld", X_OK)) {
		vm_skip("colld drives the switch", "colld was not taken along");
		fclose(file);
		return;
	}
	begin(1, 1 << 20, 60000, false);
	netlink_ask(owner, netlink_message(owner, COLL_CMD_CIRCUIT_CLEAR, 0), NULL, NULL);
	fwrite(setup, 1, sizeof(setup) - 1, file);
	fclose(file);
	colld = start_colld();
	vm_is(access("/tmp/circuits", F_OK), 0, "colld manages this node's traffic");
	a = sender("10.9.0.2");
	b = sender("10.9.0.3");
	send_some(a, 0, 30);
	vm_ok(reach(&far->got, 30), "what is sent in the dark arrives");
	send_some(b, 30, 30);
	vm_ok(reach(&far->got, 60), "to another peer too, over the same port");
	vm_is(far->out_of_order, 0, "in order");
	look("10.9.0.3");
	vm_ok(counters.sent == counters.held, "what was held was sent: %u",
	      (unsigned int)counters.held);
	/* Killed with packets held, or just sent. */
	send_some(a, 60, 30);
	kill(colld, SIGKILL);
	waitpid(colld, NULL, 0);
	unlink("/tmp/circuits");
	vm_ok(reach(&far->got, 90), "colld is killed in the middle: no datagram is lost");
	colld = start_colld();
	vm_is(access("/tmp/circuits", F_OK), 0, "it is started again");
	send_some(b, 90, 30);
	vm_ok(reach(&far->got, 120), "what is sent now arrives too");
	look("10.9.0.3");
	vm_is(counters.sent, counters.held, "nothing stays held");
	vm_is(far->out_of_order, 0, "all in order");
	kill(colld, SIGTERM);
	waitpid(colld, NULL, 0);
	send_some(a, 120, 10);
	vm_ok(reach(&far->got, 130), "without colld traffic goes its way");
	close(a);
	close(b);
}

/* ---- a device goes whose packets are held ---- */

enum { DEVICE_AGE_MS = 3000 };

static int sum_counters(enum coll_command command, struct nlattr **a, void *data)
{
	struct counters *sum = data;

	(void)command;
	if (!a[COLL_CIRCUIT_A_PREFIX] && a[COLL_CIRCUIT_A_HELD]) {
		sum->held += nla_get_u64(a[COLL_CIRCUIT_A_HELD]);
		sum->expired += nla_get_u64(a[COLL_CIRCUIT_A_EXPIRED]);
	}
	return 0;
}

static struct counters all_peers(void)
{
	struct counters sum = { 0 };

	netlink_ask(owner, netlink_message(owner, COLL_CMD_CIRCUIT_GET, NLM_F_DUMP), sum_counters,
		    &sum);
	return sum;
}

/* Link-local multicasts of IPv6: what the kernel itself says about a device that comes up. */
static int multicast_domain(void)
{
	static const uint8_t address[16] = { 0xff, 0x02 };
	struct nl_msg *message = netlink_message(owner, COLL_CMD_CIRCUIT_DOMAIN, 0);

	nla_put(message, COLL_CIRCUIT_A_ADDRESS, sizeof(address), address);
	nla_put_u8(message, COLL_CIRCUIT_A_PREFIX, 16);
	nla_put_u32(message, COLL_CIRCUIT_A_PORTS, 1);
	nla_put_u32(message, COLL_CIRCUIT_A_AGE, DEVICE_AGE_MS);
	return netlink_ask(owner, message, NULL, NULL);
}

/* In a namespace of its own: 0, or which step failed. */
static int delete_device_of_held(void)
{
	struct netlink *mine = NULL;

	if (unshare(CLONE_NEWNET) || netlink_open(&mine))
		return 1;
	owner = mine;
	if (multicast_domain() || make_veth(getpid()))
		return 2;
	set_address("far", "10.8.0.1");
	set_address("near", "10.9.0.1");
	if (!VM_COMES(all_peers().held))
		return 3;
	if (delete_veth() || all_peers().expired)
		return 4;
	return VM_COMES(all_peers().expired == all_peers().held) ? 0 : 5;
}

/* Packets of the kernel's own name their device without a reference; KASAN sees if that is used. */
static void device_gone(void)
{
	pid_t child;
	int status = -1;

	fflush(stdout);
	child = fork();
	if (!child)
		_exit(delete_device_of_held());
	waitpid(child, &status, 0);
	vm_is(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0,
	      "packets are refused whose device has been deleted");
}

/* ---- nothing stays behind ---- */

static void ends(void)
{
	pid_t child;
	int fd, status = -1;

	begin(1, 1 << 20, 60000, false);
	fd = sender("10.9.0.2");
	send_some(fd, 0, 20);
	netlink_close(owner);
	vm_ok(reach(&far->got, 20), "the manager dies: what was held goes its way");
	vm_is(far->out_of_order, 0, "in order");
	vm_is(netlink_open(&owner), 0, "another manager");
	await(COLL_EVENT_CIRCUIT_ENDED, NULL, NULL, 0);

	/* A namespace that is removed with packets in its queues. */
	child = fork();
	if (!child) {
		struct netlink *mine = NULL;

		if (unshare(CLONE_NEWNET) || netlink_open(&mine) || make_veth(getpid()))
			_exit(1);
		owner = mine;
		set_address("far", "10.8.0.1");
		set_address("near", "10.9.0.1");
		_exit(domain(1, 1 << 20, 60000, false) ||
		      send_some(sender("10.9.0.2"), 0, 20) != 20);
	}
	waitpid(child, &status, 0);
	vm_is(status, 0, "a namespace is removed with packets held");

	begin(1, 1 << 20, 60000, false);
	send_some(fd, 0, 20);
	netlink_close(events);
	vm_is(vm_unload(), 0, "coll.ko unloads with packets held");
	vm_ok(reach(&far->got, 20), "which go their way");
	vm_is(vm_load(""), 0, "it loads again");
	close(fd);
	netlink_close(owner);
}

int main(void)
{
	const pid_t child = make_nodes();

	if (child <= 0 || netlink_open(&owner) || netlink_open(&events) || netlink_listen(events)) {
		vm_ok(false, "the nodes are not there");
		return vm_end();
	}
	held_in_order();
	one_port();
	bounds();
	failures();
	tcp();
	leases();
	crowd();
	refusals();
	with_colld();
	device_gone();
	ends();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return vm_end();
}
