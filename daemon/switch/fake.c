// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A simulated switch: a table of paths with a reconfiguration delay. For tests, and to
 * measure what a delay costs a program.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "delay.h"
#include "switch.h"

struct fake {
	struct switch_delay delay;
	double fails;			/* probability that an order fails */
	u32 leads[SWITCH_PORTS_MAX + 1];
};

static bool switch_fake_set(struct fake *fake, struct switch_device *s, const char *key,
			    const char *value)
{
	char *rest;
	u64 number;

	if (switch_delay_set(&fake->delay, key, value))
		return true;
	if (!strcmp(key, "fails")) {
		fake->fails = strtod(value, &rest);
		return rest != value && !*rest && fake->fails >= 0 && fake->fails <= 1;
	}
	number = strtoull(value, &rest, 10);
	if (rest == value || *rest)
		return false;
	s->ports = number;
	return !strcmp(key, "ports") && number > 0 && number <= SWITCH_PORTS_MAX;
}

static int fake_open(struct switch_device *s, const char *argument, char *why)
{
	char copy[512], *save, *word, *equals;
	struct fake *fake = calloc(1, sizeof(*fake));

	s->state = fake;
	if (!fake)
		return -ENOMEM;
	fake->delay.mean = 10000000;
	snprintf(copy, sizeof(copy), "%s", argument);
	for (word = strtok_r(copy, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
		equals = strchr(word, '=');
		if (equals)
			*equals = 0;
		if (!equals || !switch_fake_set(fake, s, word, equals + 1)) {
			snprintf(why, SWITCH_WHY, "'%s': not one of delta=10ms max=20ms fails=0.1 "
				 "seed=1 ports=32, or its value is not", word);
			return -EINVAL;
		}
	}
	return 0;
}

static void fake_change(struct switch_device *s, struct switch_order *order, u32 orders)
{
	struct fake *fake = s->state;
	u32 i;

	for (i = 0; i < orders; i++) {
		if (order[i].what == COLL_CIRCUIT_ORDER_UP)
			order[i].ready = switch_delay_end(&fake->delay);
		else
			fake->leads[order[i].port[0]] = fake->leads[order[i].port[1]] = 0;
	}
}

static void fake_settle(struct switch_device *s, struct switch_order *order)
{
	struct fake *fake = s->state;
	double uniform;

	drand48_r(&fake->delay.random, &uniform);
	if (uniform < fake->fails || fake->leads[order->port[0]] || fake->leads[order->port[1]]) {
		order->error = uniform < fake->fails ? -EIO : -EBUSY;
		snprintf(order->why, SWITCH_WHY, "the fake switch %s ports %u and %u",
			 uniform < fake->fails ? "failed, as ordered, at" : "uses",
			 order->port[0], order->port[1]);
		return;
	}
	fake->leads[order->port[0]] = order->port[1];
	fake->leads[order->port[1]] = order->port[0];
}

static int fake_read(struct switch_device *s, struct switch_path *path, u32 max, char *why)
{
	const struct fake *fake = s->state;
	u32 port, count = 0;

	(void)why;
	for (port = 1; port <= SWITCH_PORTS_MAX && count < max; port++)
		if (fake->leads[port])
			path[count++] = (struct switch_path){ port, fake->leads[port] };
	return count;
}

static int fake_remove(struct switch_device *s, struct switch_path path)
{
	((struct fake *)s->state)->leads[path.in] = 0;
	return 0;
}

static void fake_close(struct switch_device *s)
{
	free(s->state);
}

const struct switch_ops switch_fake = {
	.name = "fake",
	.valid = "[delta=10ms] [max=20ms] [min=5ms] [fails=0.1] [seed=1] [ports=32]",
	.open = fake_open,
	.close = fake_close,
	.change = fake_change,
	.settle = fake_settle,
	.read = fake_read,
	.remove = fake_remove,
};
