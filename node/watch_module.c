// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "watch_module.h"

static int put_cpus(struct nl_msg *message, const struct node_cpus *cpus)
{
	char list[NODE_CPUS_TEXT];

	return nla_put_string(message, COLL_WATCH_A_CPUS, node_cpus_list(cpus, list, sizeof(list)));
}

/* In millionths: of the least that there is one. */
static u32 share_of(double share)
{
	return share < 1e-6 ? 1 : share > 1 ? 1000000 : share * 1e6 + 0.5;
}

static int put_order(struct nl_msg *message, const struct node_watch_order *order)
{
	int error = 0;

	if (order->task)
		error = nla_put_u32(message, COLL_WATCH_A_TASK, order->task);
	if (!error && order->thread)
		error = nla_put_u32(message, COLL_WATCH_A_THREAD, order->thread);
	if (!error && order->log)
		error = nla_put_u32(message, COLL_WATCH_A_LOG, order->log);
	if (!error && order->threshold)
		error = nla_put_u64(message, COLL_WATCH_A_THRESHOLD, order->threshold);
	if (!error && order->share > 0)
		error = nla_put_u32(message, COLL_WATCH_A_SHARE, share_of(order->share));
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

/* As /proc has it. */
static u64 ticks_of(u64 ns)
{
	const long ticks = sysconf(_SC_CLK_TCK);

	return ns / (1000000000 / (ticks > 0 ? ticks : 100));
}

static int read_source(struct nlattr *nest, struct node_watched *watched)
{
	struct nlattr *member[__COLL_WATCH_A_MAX] = { 0 };

	if (nla_parse_nested(member, __COLL_WATCH_A_MAX - 1, nest, NULL) || !member[COLL_WATCH_A_CAUSE] ||
	    !member[COLL_WATCH_A_INDEX])
		return -EPROTO;
	watched->index = nla_get_u32(member[COLL_WATCH_A_INDEX]);
	watched->cause = nla_get_u8(member[COLL_WATCH_A_CAUSE]);
	watched->reused = u32_of(member[COLL_WATCH_A_REUSED]);
	watched->number = u32_of(member[COLL_WATCH_A_NUMBER]);
	watched->name = member[COLL_WATCH_A_NAME] ? nla_get_string(member[COLL_WATCH_A_NAME]) : "";
	watched->born = ticks_of(u64_of(member[COLL_WATCH_A_BORN]));
	watched->cgroup = u64_of(member[COLL_WATCH_A_CGROUP]);
	watched->count = u64_of(member[COLL_WATCH_A_COUNT]);
	watched->total = u64_of(member[COLL_WATCH_A_TOTAL]);
	watched->inclusive = u64_of(member[COLL_WATCH_A_INCLUSIVE]);
	return 0;
}

/* Sources of a CPU, until its summary says that these are all. */
struct watch_held {
	struct node_watched watched;
	char name[32];
};

struct watch_reader {
	node_watch_each each;
	void *argument;
	struct watch_held *held;
	u32 count, room;
};

static int hold_source(struct watch_reader *reader, const struct node_watched *watched)
{
	struct watch_held *held;

	if (reader->count == reader->room) {
		const u32 room = reader->room ? 2 * reader->room : 64;

		held = reallocarray(reader->held, room, sizeof(*held));
		if (!held)
			return -ENOMEM;
		reader->held = held;
		reader->room = room;
	}
	held = &reader->held[reader->count++];
	held->watched = *watched;
	snprintf(held->name, sizeof(held->name), "%s", watched->name);
	return 0;
}

/* The CPU is complete: its summary, and then what was held. */
static int give_cpu(struct watch_reader *reader, const struct node_watched *summary)
{
	int error = reader->each(summary, reader->argument);
	u32 i;

	for (i = 0; i < reader->count && error >= 0; i++) {
		reader->held[i].watched.name = reader->held[i].name;
		error = reader->each(&reader->held[i].watched, reader->argument);
	}
	reader->count = 0;
	return error;
}

static int take_watched(enum coll_command command, struct nlattr **attributes, void *data)
{
	struct node_watched watched = {
		.cpu = u32_of(attributes[COLL_WATCH_A_CPU]), .own = attributes[COLL_WATCH_A_OWN],
		.is_source = attributes[COLL_WATCH_A_SOURCE], .name = "",
	};
	struct watch_reader *reader = data;
	int error;

	(void)command;
	if (reader->count && reader->held->watched.cpu != watched.cpu)
		reader->count = 0;	/* that CPU's summary has not come */
	if (!watched.is_source) {
		watched.watched = u64_of(attributes[COLL_WATCH_A_WATCHED]);
		watched.cost = u64_of(attributes[COLL_WATCH_A_COST]);
		watched.away = u64_of(attributes[COLL_WATCH_A_AWAY]);
		watched.dear = attributes[COLL_WATCH_A_STATE] &&
			       nla_get_u8(attributes[COLL_WATCH_A_STATE]) == COLL_WATCH_DEAR;
		return give_cpu(reader, &watched);
	}
	error = read_source(attributes[COLL_WATCH_A_SOURCE], &watched);
	return error ? error : hold_source(reader, &watched);
}

int node_watch_read(struct netlink *netlink, enum node_watch_whose whose, node_watch_each each, void *argument)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_WATCH_GET, NLM_F_DUMP);
	struct watch_reader reader = { .each = each, .argument = argument };
	int error;

	if (message && whose == NODE_WATCH_OWN && nla_put_flag(message, COLL_WATCH_A_OWN)) {
		nlmsg_free(message);
		message = NULL;
	}
	error = netlink_ask(netlink, message, take_watched, &reader);
	free(reader.held);
	return error;
}
