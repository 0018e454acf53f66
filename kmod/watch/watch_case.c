// SPDX-License-Identifier: GPL-2.0
/*
 * A case is a piece of time and who had it: a latency, from the time for which the timer
 * was set until the thread runs; a time for which the task was kept from running; or one
 * event of one source. It grows with each charge. The first one to pass its threshold
 * stops the watch on all its CPUs, and is kept with the stack of its CPU: whoever has it
 * then is still at work, or about to leave.
 */
#include <linux/sched.h>
#include <linux/stacktrace.h>

#include "watch.h"

/* Those that are no source of the CPU. */
static const struct watch_source idle = { .cause = COLL_NOISE_UNKNOWN, .name = "idle" };
static const struct watch_source itself = { .cause = COLL_NOISE_THREAD, .name = "itself" };
static const struct watch_source others = { .cause = COLL_NOISE_UNKNOWN, .name = "others" };

static void case_end(struct watch_case *open)
{
	open->start = open->total = open->parts = 0;
}

static void case_add(struct watch_case *open, const struct watch_source *source, u64 time)
{
	u32 i;

	if (!time)
		return;
	for (i = 0; i < open->parts && open->part[i].source != source; i++)
		;
	if (i >= WATCH_PARTS - 1) {
		i = WATCH_PARTS - 1;
		source = &others;
	}
	if (i == open->parts) {
		open->part[open->parts++].time = 0;
		open->part[i].source = source;
	}
	open->part[i].time += time;
}

/* Not in an NMI, but under any lock: it only reads the stack. */
static noinline void case_keep(const struct watch_cpu *watch, const struct watch_case *passed)
{
	struct watch_limit *limit = watch->limit;

	if (atomic_cmpxchg(&limit->passed, 0, 1))
		return;
	limit->cpu = watch->cpu;
	limit->kept = *passed;
	limit->pid = current->pid;
	memcpy(limit->comm, current->comm, sizeof(limit->comm));
	limit->comm[sizeof(limit->comm) - 1] = 0;
#ifdef CONFIG_STACKTRACE
	limit->depth = stack_trace_save(limit->stack, WATCH_STACK, 1);
#endif
	smp_store_release(&limit->whole, true);	/* for readers on other CPUs */
}

static void case_judge(const struct watch_cpu *watch, const struct watch_case *open)
{
	if (watch->limit && open->total > watch->limit->threshold)
		case_keep(watch, open);
}

/* From the time for which the timer was set; until then it is in the future. */
static void charge_latency(struct watch_cpu *watch, const struct watch_charge *charge)
{
	const struct watch_frame *top = charge->top;
	struct watch_case *open = &watch->open;
	u64 from = max(charge->since, open->start), span, nmi;

	if (!open->start || watch->last <= from)
		return;
	span = watch->last - from;
	nmi = min(charge->nmi, span);
	case_add(open, &watch->sources[COLL_NOISE_NMI], nmi);
	case_add(open, top->source ?: top->nobody == &watch->idle ? &idle : &itself, span - nmi);
	open->total = watch->last - open->start;
	case_judge(watch, open);
}

/* The task is kept from running until it runs again, or does not want to. */
static void charge_task(struct watch_cpu *watch, const struct watch_charge *charge)
{
	const struct watch_source *source = charge->top->source;
	const u64 taken = source ? charge->counted : 0;
	struct watch_case *open = &watch->open;

	if ((!source && charge->own) || (charge->late && charge->own > taken))
		case_end(open);
	if (!open->start)
		open->start = charge->late ? watch->last - charge->nmi - taken : charge->since;
	case_add(open, &watch->sources[COLL_NOISE_NMI], charge->nmi);
	case_add(open, source, taken);
	open->total += charge->nmi + taken;
	case_judge(watch, open);
	if (charge->own > taken && !charge->late)
		case_end(open);
}

static void charge_event(struct watch_cpu *watch, const struct watch_charge *charge)
{
	const struct watch_frame *top = charge->top;
	struct watch_case event = { .start = top->start };

	if (top->source) {
		case_add(&event, top->source, top->spent);
		event.total = top->spent;
		case_judge(watch, &event);
	}
	if (charge->nmi) {
		event = (struct watch_case){ .start = charge->since, .total = charge->nmi };
		case_add(&event, &watch->sources[COLL_NOISE_NMI], charge->nmi);
		case_judge(watch, &event);
	}
}

void kcoll_case_charge(struct watch_cpu *watch, const struct watch_charge *charge)
{
	if (watch->latency)
		charge_latency(watch, charge);
	else if (watch->task)
		charge_task(watch, charge);
	else
		charge_event(watch, charge);
}
