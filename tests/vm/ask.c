// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <netlink/genl/genl.h>

#include "ask.h"
#include "uapi/coll_noise.h"
#include "vm.h"

int ask_nothing(enum coll_command command, struct nlattr **attributes, void *data)
{
	(void)command, (void)attributes, (void)data;
	return 0;
}

int ask_dump(struct netlink *netlink, enum coll_command command)
{
	return netlink_ask(netlink, netlink_message(netlink, command, NLM_F_DUMP), ask_nothing,
			   NULL);
}

int ask_watch(struct netlink *netlink)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);

	nla_put_string(message, COLL_WATCH_A_CPUS, "1");
	return netlink_ask(netlink, message, NULL, NULL);
}

int ask_noise(struct netlink *netlink, uint64_t duration)
{
	const struct coll_noise_model model = {
		.arrival = COLL_NOISE_PERIODIC, .period = 10000000, .duration = duration,
	};
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_NOISE_START, 0);

	nla_put_string(message, COLL_NOISE_A_CPUS, "1");
	nla_put_u8(message, COLL_NOISE_A_CONTEXT, COLL_NOISE_HARDIRQ);
	nla_put(message, COLL_NOISE_A_MODEL, sizeof(model), &model);
	return netlink_ask(netlink, message, ask_nothing, NULL);
}

/* ---- slowly ------------------------------------------------------------------------ */

enum { ATTRIBUTES_MAX = 64 };

int ask_slowly(struct netlink *netlink, struct nl_msg *message)
{
	const struct timeval limit = { .tv_sec = 10 };
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	struct nlmsghdr *header = nlmsg_hdr(message);

	header->nlmsg_type = netlink_family(netlink);
	header->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	header->nlmsg_seq = 1;
	header->nlmsg_pid = 0;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	vm_ok(send(fd, header, header->nlmsg_len, 0) == (ssize_t)header->nlmsg_len, "a dump is asked for");
	nlmsg_free(message);
	return fd;
}

int ask_receive(int fd, netlink_answer answer, void *data)
{
	static char buffer[1 << 17] __attribute__((aligned(8)));
	const ssize_t bytes = recv(fd, buffer, sizeof(buffer), 0);
	int left = bytes, error = bytes < 0 ? -errno : 0;
	struct nlmsghdr *header;

	for (header = (void *)buffer; !error && nlmsg_ok(header, left); header = nlmsg_next(header, &left)) {
		struct nlattr *attributes[ATTRIBUTES_MAX + 1] = { 0 };

		if (header->nlmsg_type == NLMSG_DONE)
			return 1;
		if (header->nlmsg_type == NLMSG_ERROR)
			return -EIO;
		error = genlmsg_parse(header, 0, attributes, ATTRIBUTES_MAX, NULL);
		if (!error)
			error = answer(((struct genlmsghdr *)nlmsg_data(header))->cmd, attributes, data);
	}
	return error;
}

/* ---- parts of a test --------------------------------------------------------------- */

static bool is_named(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc == 1;
}

int ask_parts(int argc, char **argv, const struct ask_part *parts, size_t count, bool *exact)
{
	struct netlink *netlink;

	*exact = argc > 1 && !strcmp(argv[1], "exact");
	argc -= *exact;
	argv += *exact;
	vm_run_on(0);
	if (!vm_ok(!netlink_open(&netlink), "the family"))
		return vm_end();
	for (size_t i = 0; i < count; i++)
		if (is_named(parts[i].name, argc, argv))
			parts[i].run(netlink);
	netlink_close(netlink);
	return vm_end();
}
