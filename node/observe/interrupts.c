// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The kernel says for how long all interrupts of a CPU ran, and how often each came. Those that took much
 * came often, so the most frequent one gives the name. What a CPU has with its tick is most frequent
 * where nothing happens: of that only counts what is more than ticks are.
 */
#include <stdio.h>
#include <string.h>

#include "interrupts.h"
#include "libcoll/base/clock.h"

enum {
	TICKS_MOST = 1000,	/* a second: HZ */
	STANDS_OUT = 100,	/* a second: what comes less often has no name */
};

/* The longest row of each kind, by what ticks do not explain. */
struct interrupts_most {
	double seconds, hard, soft;
	struct observed_names *names;
};

static bool comes_with_ticks(const struct coll_noise_source *came)
{
	static const char *const names[] = {
		"TIMER", "SCHED", "HRTIMER", "RCU", "Local timer interrupts", "arch_timer", "timer",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(came->name, names[i]))
			return true;
	return false;
}

static void take_most(double rate, const char *name, double *most, char *text, size_t bytes)
{
	if (rate <= *most)
		return;
	*most = rate;
	snprintf(text, bytes, "%.31s", name);
}

static void interrupt_came(const struct coll_noise_source *came, void *argument)
{
	struct interrupts_most *most = argument;
	const double rate = came->times / most->seconds - (comes_with_ticks(came) ? TICKS_MOST : 0);

	if (came->cause == COLL_NOISE_SOFTIRQ)
		take_most(rate, came->name, &most->soft, most->names->soft, sizeof(most->names->soft));
	else
		take_most(rate, came->name, &most->hard, most->names->hard, sizeof(most->names->hard));
}

void node_observed_interrupts(struct observed_rank *rank, struct observed_names *names)
{
	struct node_cpus cpu = { .bits = { 0 } };
	const uint64_t now = coll_now();
	struct interrupts_most most = {
		.seconds = (double)(now - rank->counted.time) / COLL_SECOND, .hard = STANDS_OUT,
		.soft = STANDS_OUT, .names = names,
	};
	struct node_activity *came;

	*names = (struct observed_names){ "", "" };
	node_cpus_add(&cpu, rank->now.cpu);
	came = node_activity_interrupts(&cpu);
	if (came && rank->counted.came && rank->counted.cpu == rank->now.cpu && most.seconds > 0)
		node_activity_came(rank->counted.came, came, interrupt_came, &most);
	node_observed_interrupts_forget(rank);
	rank->counted.came = came;
	rank->counted.cpu = rank->now.cpu;
	rank->counted.time = now;
}

void node_observed_interrupts_forget(struct observed_rank *rank)
{
	node_activity_free(rank->counted.came);
	rank->counted.came = NULL;
}
