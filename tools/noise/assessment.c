// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "assessment.h"
#include "node/rules.h"
#include "verdict.h"

/* ---- advice ------------------------------------------------------------------------------ */

/* What takes less than this of the taken time is not worth a change. */
#define WORTH 0.01

/* By what the source's name looks like: the first that matches. */
static const struct remedy {
	enum coll_noise_cause cause;
	const char *name;		/* a glob */
	bool numbered;			/* only interrupts with a line of their own */
	const char *text, *command;	/* %s: the name, as a glob */
} remedies[] = {
	{ COLL_NOISE_IRQ, "*", true, "Move this interrupt to a housekeeping CPU.",
	  "collnoise pin init --rule 'pin irq=%s'" },
	{ COLL_NOISE_IRQ, "*", false,
	  "The kernel's own interrupts, such as its tick, cannot be moved. The tick stops on CPUs "
	  "that are booted with nohz_full and run one task.", "collnoise check" },
	{ COLL_NOISE_SOFTIRQ, "*", false,
	  "Softirqs run where their interrupt or timer came: move the interrupts, and boot with "
	  "rcu_nocbs for RCU's.", "collnoise pin init --rule 'pin irq=*'" },
	{ COLL_NOISE_THREAD, "*/u*", false,
	  "The kernel's unbound work goes to the housekeeping CPUs by a rule of one word.",
	  "collnoise pin init --rule workqueues" },
	{ COLL_NOISE_THREAD, "*/[0-9]*", false,
	  "A kernel thread of one CPU cannot be moved; what gives it work can.",
	  "collnoise check" },
	{ COLL_NOISE_THREAD, "*", false,
	  "Move this task to a housekeeping CPU; with kthread behind the name if the kernel "
	  "made it.", "collnoise pin init --rule 'pin comm=%s'" },
	{ COLL_NOISE_NMI, "*", false,
	  "The kernel's watchdog and profilers make NMIs: switch the watchdog off.",
	  "sysctl -w kernel.nmi_watchdog=0" },
	{ COLL_NOISE_STEAL, "*", false,
	  "The host of this virtual machine gives its CPUs to others: ask for CPUs of its own.",
	  "" },
	{ COLL_NOISE_HARDWARE, "*", false,
	  "Nothing in the kernel explains it: it is the firmware (power management, error "
	  "scrubbing) or, of a virtual machine, the host.", "" },
	{ COLL_NOISE_INJECTED, "*", false, "It was injected on purpose: end what injects it.", "" },
	{ COLL_NOISE_UNKNOWN, "*", false,
	  "This capture does not say who takes the time. Load coll.ko and record as root: each "
	  "event then has its cause.", "modprobe coll && collnoise record -d 60s -o node.noise" },
};

static const struct remedy *find_remedy(const struct noise_blame *blame)
{
	const char *name = blame->source ? blame->source->name : "";
	size_t i;

	for (i = 0; i < sizeof(remedies) / sizeof(*remedies); i++)
		if (remedies[i].cause == blame->cause && !fnmatch(remedies[i].name, name, 0) &&
		    (!remedies[i].numbered || (blame->source && blame->source->number)))
			return &remedies[i];
	return NULL;
}

static int advice_most_first(const void *a, const void *b)
{
	const struct noise_advice *x = a, *y = b;

	return (x->total < y->total) - (x->total > y->total);
}

/* Blames come with the most time first: the first names the advice. */
static void add_advice(struct noise_assessment *a, const struct noise_blame *blame)
{
	const struct remedy *remedy = find_remedy(blame);
	const u32 longest = blame->cause == COLL_NOISE_THREAD ? NODE_TASK_COMM : 40;
	char glob[40], command[96];
	u32 i;

	if (!remedy)
		return;
	node_rules_glob(blame->source ? blame->source->name : "", glob, longest);
	snprintf(command, sizeof(command), remedy->command, glob);
	for (i = 0; i < a->advices; i++)
		if (a->advice[i].text == remedy->text && !strcmp(a->advice[i].command, command))
			break;
	if (i == NOISE_ADVICES)
		return;
	if (i == a->advices) {
		a->advice[a->advices++] = (struct noise_advice){ .text = remedy->text };
		strcpy(a->advice[i].command, command);
		noise_blame_text(blame, a->advice[i].who);
	} else {
		a->advice[i].others++;
	}
	a->advice[i].total += blame->total;
}

/* ---- all of it ----------------------------------------------------------------------------- */

int noise_assess(const struct noise_view *view, struct noise_assessment *a)
{
	int status;
	u32 i;

	*a = (struct noise_assessment){ .view = view, .profile = noise_profile_passed(view) };
	a->attributed = view->blames > 1 ||
			(view->blames && view->blame->cause != COLL_NOISE_UNKNOWN);
	for (i = 0; i < view->blames; i++)
		if (view->blame[i].total >= WORTH * view->all.length.total)
			add_advice(a, &view->blame[i]);
	qsort(a->advice, a->advices, sizeof(*a->advice), advice_most_first);
	status = noise_costs(view->capture, a->cost);
	a->unbearable = status == -EINVAL;
	return a->unbearable ? 0 : status;
}

void noise_assessment_json(const struct noise_assessment *a, json_t *all)
{
	json_t *costs = json_array(), *advices = json_array();
	u32 i;

	for (i = 0; i < NOISE_COSTS && !a->unbearable; i++)
		json_array_append_new(costs, json_pack("{sI sI sf sb}", "grain_ns",
			(json_int_t)a->cost[i].grain, "ranks", (json_int_t)a->cost[i].ranks,
			"slowdown", a->cost[i].slowdown, "beyond_capture", a->cost[i].beyond));
	for (i = 0; i < a->advices; i++)
		json_array_append_new(advices, json_pack("{ss sI sI ss ss}", "who",
			a->advice[i].who, "others", (json_int_t)a->advice[i].others, "total_ns",
			(json_int_t)a->advice[i].total, "text", a->advice[i].text, "command",
			a->advice[i].command));
	json_object_set_new(all, "profile", a->profile ? json_string(a->profile) : json_null());
	json_object_set_new(all, "cost", costs);
	json_object_set_new(all, "advice", advices);
}
