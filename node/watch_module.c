// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>

#include "watch_module.h"

static int put_cpus(struct nl_msg *message, const struct node_cpus *cpus)
{
	char list[NODE_CPUS_TEXT];

	return nla_put_string(message, COLL_WATCH_A_CPUS, node_cpus_list(cpus, list, sizeof(list)));
}

static int put_order(struct nl_msg *message, const struct node_watch_order *order)
{
	int error = 0;

	if (order->task)
		error = nla_put_u32(message, COLL_WATCH_A_TASK, order->task);
	if (!error && order->log)
		error = nla_put_u32(message, COLL_WATCH_A_LOG, order->log);
	if (!error && order->threshold)
		error = nla_put_u64(message, COLL_WATCH_A_THRESHOLD, order->threshold);
	if (!error && order->yields)
		error = nla_put_flag(message, COLL_WATCH_A_YIELDS);
	return error;
}

int node_watch_begin(struct netlink *netlink, const struct node_cpus *cpus, const struct node_watch_order *order)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);

	if (message && !put_cpus(message, cpus) && !put_order(message, order))
		return netlink_ask(netlink, message, NULL, NULL);
	nlmsg_free(message);
	return netlink_fail(netlink, -ENOMEM, "no memory");
}

int node_watch_end(struct netlink *netlink, const struct node_cpus *cpus)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_WATCH_STOP, 0);

	if (message && !put_cpus(message, cpus))
		return netlink_ask(netlink, message, NULL, NULL);
	nlmsg_free(message);
	return netlink_fail(netlink, -ENOMEM, "no memory");
}

/* ---- what it counted -------------------------------------------------------- */

static u64 u64_of(struct nlattr *attribute)
{
	return attribute ? nla_get_u64(attribute) : 0;
}

static u32 u32_of(struct nlattr *attribute)
{
	return attribute ? nla_get_u32(attribute) : 0;
}

static int read_source(struct nlattr *nest, struct node_watched *watched)
{
	struct nlattr *member[__COLL_WATCH_A_MAX] = { 0 };

	if (nla_parse_nested(member, __COLL_WATCH_A_MAX - 1, nest, NULL) || !member[COLL_WATCH_A_CAUSE] ||
	    !member[COLL_WATCH_A_INDEX])
		return -EPROTO;
	watched->index = nla_get_u32(member[COLL_WATCH_A_INDEX]);
	watched->cause = nla_get_u8(member[COLL_WATCH_A_CAUSE]);
	watched->number = u32_of(member[COLL_WATCH_A_NUMBER]);
	watched->name = member[COLL_WATCH_A_NAME] ? nla_get_string(member[COLL_WATCH_A_NAME]) : "";
	watched->count = u64_of(member[COLL_WATCH_A_COUNT]);
	watched->total = u64_of(member[COLL_WATCH_A_TOTAL]);
	watched->inclusive = u64_of(member[COLL_WATCH_A_INCLUSIVE]);
	return 0;
}

struct watch_reader {
	node_watch_each each;
	void *argument;
};

static int take_watched(enum coll_command command, struct nlattr **attributes, void *data)
{
	struct node_watched watched = {
		.cpu = u32_of(attributes[COLL_WATCH_A_CPU]), .own = attributes[COLL_WATCH_A_OWN],
		.is_source = attributes[COLL_WATCH_A_SOURCE], .name = "",
	};
	const struct watch_reader *reader = data;
	int error = 0;

	(void)command;
	if (watched.is_source) {
		error = read_source(attributes[COLL_WATCH_A_SOURCE], &watched);
	} else {
		watched.watched = u64_of(attributes[COLL_WATCH_A_WATCHED]);
		watched.cost = u64_of(attributes[COLL_WATCH_A_COST]);
	}
	return error ? error : reader->each(&watched, reader->argument);
}

int node_watch_read(struct netlink *netlink, node_watch_each each, void *argument)
{
	struct watch_reader reader = { each, argument };

	return netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_GET, NLM_F_DUMP), take_watched,
			   &reader);
}
