// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 *	fuzz_test [MESSAGES [SEED [PER_MILLE]]]
 *
 * Messages of the family that are nearly right. Nothing is expected but that the kernel
 * lives, says nothing, and that every socket's belongings go with it; and with so many
 * per mille of the kernel's allocations and copies failing meanwhile, that memory comes back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include "node/netlink.h"
#include "uapi/coll_noise.h"
#include "faults.h"
#include "vm.h"

enum {
	BATCH = 64, MESSAGE_MAX = 1024, SOCKET_MESSAGES = 20000,
	ANSWERS = 64, ANSWER_MAX = 1 << 14,	/* at once */
	BUFFER = 1 << 20,			/* a socket's */
};

static uint64_t state;

/* xorshift64* */
static uint32_t number(uint32_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return ((state * 0x2545f4914f6cdd1dULL) >> 32) % below;
}

static size_t append(char *to, const void *value, size_t bytes)
{
	memcpy(to, value, bytes);
	return bytes;
}

/* Values at the edges of what is valid, and beyond. */
static size_t put_value(char *to)
{
	static const char *const texts[] = {
		"0", "1", "0-1", "1-0", "0-4095", "-1", "", "all", "*", "known", "0-1,", "\xff\xfe",
	};
	static const uint64_t edges[] = {
		0, 1, 2, 3, 255, 256, 9000, 9001, 10000, 65535, 1 << 20, (1 << 20) + 1, 10000000,
		60000000000, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX,
	};
	uint64_t value = edges[number(sizeof(edges) / sizeof(*edges))];
	const char *text = texts[number(sizeof(texts) / sizeof(*texts))];
	size_t bytes;

	switch (number(6)) {
	case 0:
		return append(to, &value, 1);
	case 1:
		return append(to, &value, 4);
	case 2:
		return append(to, &value, 8);
	case 3:
		return append(to, text, strlen(text) + !!number(4));
	case 4:
		bytes = number(100);
		for (size_t i = 0; i < bytes; i++)
			to[i] = number(256);
		return bytes;
	default:
		return 0;
	}
}

/* Attributes until there are enough, nested ones among them; at most `room` bytes. */
static size_t put_attributes(char *to, size_t room, int depth)
{
	struct nlattr attribute;
	size_t used = 0, bytes;

	while (room - used > 200 && number(6)) {
		bytes = !number(6) && depth < 3 ? put_attributes(to + used + NLA_HDRLEN, room / 2, depth + 1) :
						  put_value(to + used + NLA_HDRLEN);
		attribute.nla_type = number(48) | (number(8) ? 0 : NLA_F_NESTED);
		attribute.nla_len = NLA_HDRLEN + bytes;
		if (!number(50))
			attribute.nla_len = number(65536);
		memcpy(to + used, &attribute, sizeof(attribute));
		bytes = NLA_ALIGN(NLA_HDRLEN + bytes) - NLA_HDRLEN;
		used += NLA_HDRLEN + bytes;
	}
	return used;
}

static size_t put(char *to, int type, const void *value, size_t bytes)
{
	const struct nlattr attribute = { .nla_type = type, .nla_len = NLA_HDRLEN + bytes };

	memcpy(to, &attribute, sizeof(attribute));
	memcpy(to + NLA_HDRLEN, value, bytes);
	return NLA_ALIGN(NLA_HDRLEN + bytes);
}

static size_t put_cpus(char *to, int type)
{
	static const char *const cpus[] = { "0", "1", "0-1" };
	const char *text = cpus[number(3)];

	return put(to, type, text, strlen(text) + 1);
}

/* What really starts something, or nearly: one member of it may be out of bounds. */
static size_t put_watch_start(char *to)
{
	uint32_t log = 1 << number(12), task = number(10) ? 1 : number(100), priority = number(101);
	uint64_t period = 90000 + number(5000000), threshold = 900 + number(20000000);
	size_t bytes = put_cpus(to, COLL_WATCH_A_CPUS);

	if (number(2))
		bytes += put(to + bytes, COLL_WATCH_A_LOG, &log, 4);
	if (!number(4))
		bytes += put(to + bytes, COLL_WATCH_A_TASK, &task, 4);
	if (number(2))
		bytes += put(to + bytes, COLL_WATCH_A_PERIOD, &period, 8);
	if (!number(3))
		bytes += put(to + bytes, COLL_WATCH_A_PRIORITY, &priority, 4);
	if (number(2))
		bytes += put(to + bytes, COLL_WATCH_A_THRESHOLD, &threshold, 8);
	return bytes;
}

static size_t put_noise_start(char *to)
{
	struct coll_noise_model model = {
		.arrival = number(COLL_NOISE_ARRIVALS),
		.phase = number(COLL_NOISE_PHASES),
		.length = number(COLL_NOISE_LENGTHS),
		.zero = !number(20),
		.shape = number(3) ? 0 : 500 + number(2000),
		.period = 100000 + number(10000000),
		.duration = number(200000),
		.longest = number(1000000),
		.seed = number(100),
	};
	const struct coll_noise_span table[] = { { 0, number(5000) }, { number(2000000), 700 } };
	uint64_t lifetime = number(20000000);
	uint8_t context = number(COLL_NOISE_CONTEXTS + 1);
	uint32_t log = number(1000);
	size_t bytes = put_cpus(to, COLL_NOISE_A_CPUS);

	bytes += put(to + bytes, COLL_NOISE_A_CONTEXT, &context, 1);
	bytes += put(to + bytes, COLL_NOISE_A_MODEL, &model, sizeof(model));
	bytes += put(to + bytes, COLL_NOISE_A_LIFETIME, &lifetime, 8);
	bytes += put(to + bytes, COLL_NOISE_A_LOG, &log, 4);
	if (number(2))
		bytes += put(to + bytes, COLL_NOISE_A_TABLE, table, sizeof(table));
	return bytes;
}

/* Now and then one that the kernel takes: it is busy for a while then. */
static size_t put_body(char *to, size_t room, uint8_t *command)
{
	switch (number(2000)) {
	case 0:
		*command = COLL_CMD_WATCH_START;
		return put_watch_start(to);
	case 1:
	case 2:
	case 3:
		*command = COLL_CMD_NOISE_START;
		return put_noise_start(to);
	default:
		*command = number(COLL_CMD_EVENT + 2);
		return put_attributes(to, room, 0);
	}
}

static size_t put_message(char *to, int family)
{
	struct genlmsghdr genl = {
		.version = number(20) ? COLL_GENL_VERSION : number(256),
	};
	struct nlmsghdr header = {
		.nlmsg_type = family,
		.nlmsg_flags = NLM_F_REQUEST | (number(4) ? 0 : NLM_F_DUMP) | (number(8) ? 0 : NLM_F_ACK),
		.nlmsg_seq = number(1000),
	};
	size_t bytes = NLMSG_HDRLEN + GENL_HDRLEN;

	memset(to, 0, MESSAGE_MAX);
	bytes += put_body(to + bytes, MESSAGE_MAX - bytes - 200, &genl.cmd);
	if (genl.cmd == COLL_CMD_WATCH_START || genl.cmd == COLL_CMD_NOISE_START)
		header.nlmsg_flags &= ~NLM_F_DUMP;
	header.nlmsg_len = bytes;
	memcpy(to, &header, sizeof(header));
	memcpy(to + NLMSG_HDRLEN, &genl, sizeof(genl));
	return NLMSG_ALIGN(bytes);
}

/* Refusals come without what they refuse. */
static int open_socket(void)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	const int one = 1, buffer = BUFFER;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_GENERIC);
	int error;

	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)&kernel, sizeof(kernel))) {
		error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
	return fd;
}

static long refusals, dumps, unsent;

static void count_answers(const char *answer, ssize_t bytes)
{
	const struct nlmsghdr *header = (const void *)answer;

	for (; NLMSG_OK(header, bytes); header = NLMSG_NEXT(header, bytes)) {
		refusals += header->nlmsg_type == NLMSG_ERROR;
		dumps += header->nlmsg_type == NLMSG_DONE;
	}
}

/* All that are there. */
static void take_answers(int fd)
{
	static char answer[ANSWERS][ANSWER_MAX];
	struct iovec part[ANSWERS];
	struct mmsghdr messages[ANSWERS] = { 0 };
	int got;

	for (int i = 0; i < ANSWERS; i++) {
		part[i] = (struct iovec){ answer[i], ANSWER_MAX };
		messages[i].msg_hdr.msg_iov = &part[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	do {
		got = recvmmsg(fd, messages, ANSWERS, 0, NULL);
		for (int i = 0; i < got; i++)
			count_answers(answer[i], messages[i].msg_len);
	} while (got == ANSWERS || (got < 0 && errno == ENOBUFS));
}

/* They are lost together where memory for them is not there. */
static bool may_fail(int error)
{
	return error == EAGAIN || error == ENOBUFS || error == ENOMEM || error == EFAULT;
}

/* Of a socket that cannot be made while memory fails. */
static bool may_be_none(int error)
{
	return error == ENOMEM || error == ENFILE || error == ENOBUFS || error == EFAULT;
}

/* Some messages to a socket that is closed then, with all it has started. */
static long fuzz_socket(int family, long most)
{
	static char batch[BATCH * MESSAGE_MAX];
	int fd = open_socket();
	long sent = 0;
	size_t bytes;

	if (fd < 0 && !may_be_none(errno))
		vm_note("a socket: %s", strerror(errno));
	if (fd < 0)
		return may_be_none(errno) ? 0 : -1;
	while (sent < most) {
		bytes = 0;
		for (int i = 0; i < BATCH; i++)
			bytes += put_message(batch + bytes, family);
		if (send(fd, batch, bytes, 0) >= 0)
			sent += BATCH;
		else if (may_fail(errno))
			unsent += BATCH;
		else {
			vm_note("sending: %s", strerror(errno));
			most = -1;
		}
		take_answers(fd);
	}
	close(fd);
	return most < 0 ? -1 : sent;
}

/* ---- all of them, perhaps while memory fails ---------------------------------------- */

/* How many were sent. */
static long fuzz(int family, long wanted)
{
	long sent = 0, more = 0;

	while (sent < wanted && more >= 0) {
		more = fuzz_socket(family, number(SOCKET_MESSAGES) + 1);
		sent += more;
	}
	return sent;
}

static long fuzz_amid_faults(int family, long wanted, unsigned int per_mille)
{
	long sent, before;

	if (!faults_possible()) {
		vm_skip("memory that is not there", "this kernel cannot let allocations fail");
		return fuzz(family, wanted);
	}
	sent = fuzz(family, BATCH);	/* what is kept of the first, is not lost */
	before = vm_available_kib();
	faults_mark_self(true);
	faults_of_marked(per_mille, true);
	sent += fuzz(family, wanted - sent);
	vm_ok(faults_count() > 0, "%ld allocations and copies failed meanwhile, and %ld messages with them",
	      faults_count(), unsent);
	faults_of_marked(0, true);
	faults_mark_self(false);
	vm_comes_back(before);
	return sent;
}

static int count_summaries(enum coll_command command, struct nlattr **attributes, void *data)
{
	(void)command;
	*(int *)data += !attributes[COLL_WATCH_A_SOURCE];
	return 0;
}

int main(int argc, char **argv)
{
	const long wanted = argc > 1 ? atol(argv[1]) : 500000;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : vm_now() | 1;
	const unsigned int per_mille = argc > 3 ? atoi(argv[3]) : 0;
	struct netlink *netlink;
	int family, left = 0;
	long sent;

	state = seed;
	if (!vm_ok(!netlink_open(&netlink), "the family"))
		return vm_end();
	family = netlink_family(netlink);
	sent = per_mille ? fuzz_amid_faults(family, wanted, per_mille) : fuzz(family, wanted);
	vm_ok(sent >= wanted, "%ld messages, seed %#llx", sent, (unsigned long long)seed);
	vm_note("%ld acknowledged or refused, %ld dumped", refusals, dumps);
	vm_ok(refusals > 0 && dumps > 0, "with answers of either kind");
	vm_is(netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_GET, NLM_F_DUMP),
			  count_summaries, &left), 0, "the family still answers");
	vm_is(left, 0, "nothing is left of their watches");
	netlink_close(netlink);
	return vm_end();
}
