// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>

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
