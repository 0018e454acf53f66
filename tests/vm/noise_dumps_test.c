// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Two dumps of an injector's log at once: the second reads on behind the first. Neither
 * gets an entry that was never logged, and the log goes on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/netlink.h"
#include "uapi/coll_noise.h"
#include "ask.h"
#include "vm.h"

enum { CPU = 1, LOG = 65536 };

struct events {
	int64_t count, disordered;
	uint64_t last;
};

static void events_add(struct events *events, const void *from, size_t bytes)
{
	struct coll_noise_injected event;
	size_t at;

	for (at = 0; at + sizeof(event) <= bytes; at += sizeof(event)) {
		memcpy(&event, (const char *)from + at, sizeof(event));
		events->disordered += event.asked_start < events->last;
		events->last = event.asked_start;
		events->count++;
	}
}

static int take_events(enum coll_command command, struct nlattr **a, void *data)
{
	(void)command;
	if (a[COLL_NOISE_A_EVENTS])
		events_add(data, nla_data(a[COLL_NOISE_A_EVENTS]),
			   nla_len(a[COLL_NOISE_A_EVENTS]));
	return 0;
}

static int take_id(enum coll_command command, struct nlattr **a, void *data)
{
	(void)command;
	*(uint32_t *)data = nla_get_u32(a[COLL_NOISE_A_ID]);
	return 0;
}

static uint32_t start(struct netlink *netlink)
{
	const struct coll_noise_model model = {
		.phase = COLL_NOISE_RANDOM, .period = 200000, .duration = 5000, .seed = 7,
	};
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_NOISE_START, 0);
	uint32_t id = 0;

	nla_put_string(message, COLL_NOISE_A_CPUS, "1");
	nla_put_u8(message, COLL_NOISE_A_CONTEXT, COLL_NOISE_HARDIRQ);
	nla_put(message, COLL_NOISE_A_MODEL, sizeof(model), &model);
	nla_put_u32(message, COLL_NOISE_A_LOG, LOG);
	vm_is(netlink_ask(netlink, message, take_id, &id), 0, "an injector with a long log");
	return id;
}

static struct nl_msg *dump_message(struct netlink *netlink, uint32_t id)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_NOISE_LOG, NLM_F_DUMP);

	nla_put_u32(message, COLL_NOISE_A_ID, id);
	return message;
}

/* False: it was the last, or an error. */
static bool receive_part(int fd, struct events *events)
{
	return !ask_receive(fd, take_events, events);
}

static int begin_dump(struct netlink *netlink, uint32_t id, struct events *events)
{
	const int fd = ask_slowly(netlink, dump_message(netlink, id));

	vm_ok(receive_part(fd, events), "a first dump begins");
	return fd;
}

int main(void)
{
	struct events first = { 0 }, second = { 0 }, rest = { 0 }, later = { 0 };
	struct netlink *netlink;
	uint32_t id;
	int fd;

	vm_is(netlink_open(&netlink), 0, "netlink");
	id = start(netlink);
	vm_sleep_ms(2000);
	fd = begin_dump(netlink, id, &first);
	vm_sleep_ms(100);	/* more is logged than the first dump will read */
	vm_is(netlink_ask(netlink, dump_message(netlink, id), take_events, &second), 0,
	      "a second dump reads all");
	while (receive_part(fd, &rest))
		;
	vm_note("%lld events, then %lld; the first goes on with %lld", (long long)first.count,
		(long long)second.count, (long long)rest.count);
	vm_ok(first.count > 0 && second.count > 0, "both have read events");
	/* Parts of a dump are filled one ahead of the reader. */
	vm_ok(!rest.count || rest.last < second.last, "the first gets none that are not there");
	vm_is(first.disordered + second.disordered + rest.disordered, 0, "all are in order");
	vm_sleep_ms(100);
	vm_is(netlink_ask(netlink, dump_message(netlink, id), take_events, &later), 0,
	      "a third dump");
	vm_ok(later.count > 0 && !later.disordered && later.last > second.last &&
	      later.count < 60000, "reads what was logged since: %lld", (long long)later.count);
	close(fd);
	netlink_close(netlink);
	return vm_end();
}
