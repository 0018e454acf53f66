// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "uapi/coll_noise.h"
#include "ask.h"
#include "vm.h"
#include "watches.h"

struct reader {
	void (*each)(const struct watches_said *said, void *argument);
	void *argument;
};

static uint64_t u64_of(struct nlattr *attribute)
{
	return attribute ? nla_get_u64(attribute) : 0;
}

static uint64_t events_of(struct nlattr *histogram)
{
	uint64_t bucket[32] = { 0 }, events = 0;

	if (histogram)
		memcpy(bucket, nla_data(histogram), sizeof(bucket));
	for (int i = 0; i < 32; i++)
		events += bucket[i];
	return events;
}

static int read_source(struct nlattr *nest, struct watches_said *said)
{
	struct nlattr *member[__COLL_WATCH_A_MAX] = { 0 };

	if (nla_parse_nested(member, __COLL_WATCH_A_MAX - 1, nest, NULL))
		return -EPROTO;
	said->is_source = true;
	said->index = nla_get_u32(member[COLL_WATCH_A_INDEX]);
	said->reused = member[COLL_WATCH_A_REUSED] ? nla_get_u32(member[COLL_WATCH_A_REUSED]) : 0;
	said->number = nla_get_u32(member[COLL_WATCH_A_NUMBER]);
	said->cause = nla_get_u8(member[COLL_WATCH_A_CAUSE]);
	snprintf(said->name, sizeof(said->name), "%s", nla_get_string(member[COLL_WATCH_A_NAME]));
	said->count = u64_of(member[COLL_WATCH_A_COUNT]);
	said->total = u64_of(member[COLL_WATCH_A_TOTAL]);
	said->inclusive = u64_of(member[COLL_WATCH_A_INCLUSIVE]);
	said->longest = u64_of(member[COLL_WATCH_A_MAX]);
	said->events = events_of(member[COLL_WATCH_A_HISTOGRAM]);
	return 0;
}

static int take(enum coll_command command, struct nlattr **attributes, void *data)
{
	struct watches_said said = { .cpu = nla_get_u32(attributes[COLL_WATCH_A_CPU]) };
	const struct reader *reader = data;

	(void)command;
	if (attributes[COLL_WATCH_A_SOURCE] && read_source(attributes[COLL_WATCH_A_SOURCE], &said))
		return -EPROTO;
	said.watched = u64_of(attributes[COLL_WATCH_A_WATCHED]);
	said.ran = u64_of(attributes[COLL_WATCH_A_RAN]);
	said.idle = u64_of(attributes[COLL_WATCH_A_IDLE]);
	said.cost = u64_of(attributes[COLL_WATCH_A_COST]);
	said.lost = u64_of(attributes[COLL_WATCH_A_LOST]);
	said.state = attributes[COLL_WATCH_A_STATE] ? nla_get_u8(attributes[COLL_WATCH_A_STATE]) : 0;
	said.own = attributes[COLL_WATCH_A_OWN];
	said.folded = u64_of(attributes[COLL_WATCH_A_FOLDED]);
	reader->each(&said, reader->argument);
	return 0;
}

int watches_read(struct netlink *netlink, void (*each)(const struct watches_said *said, void *argument), void *argument)
{
	struct reader reader = { each, argument };
	const int error = netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_GET, NLM_F_DUMP), take, &reader);

	if (error)
		vm_ok(false, "reading: %s", netlink_reason(netlink));
	return error;
}

int watches_ask(struct netlink *netlink)
{
	return ask_slowly(netlink, netlink_message(netlink, COLL_CMD_WATCH_GET, NLM_F_DUMP));
}

int watches_receive(int fd, void (*each)(const struct watches_said *said, void *argument), void *argument)
{
	struct reader reader = { each, argument };
	int error = 0;

	while (!error)
		error = ask_receive(fd, take, &reader);
	if (error < 0)
		vm_ok(false, "receiving: %s", strerror(-error));
	close(fd);
	return error < 0 ? error : 0;
}

int watches_start(struct netlink *netlink, uint32_t task, uint32_t log)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);

	nla_put_string(message, COLL_WATCH_A_CPUS, "1");
	if (task)
		nla_put_u32(message, COLL_WATCH_A_TASK, task);
	if (log)
		nla_put_u32(message, COLL_WATCH_A_LOG, log);
	return netlink_ask(netlink, message, NULL, NULL);
}

void watches_stop(struct netlink *netlink)
{
	vm_is(netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_STOP, 0), NULL, NULL), 0, "stopped");
}
