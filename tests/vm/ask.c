// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "ask.h"
#include "uapi/coll_noise.h"

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
