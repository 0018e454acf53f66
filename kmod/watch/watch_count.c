// SPDX-License-Identifier: GPL-2.0
/*
 * Counts what takes the time of a CPU. What runs is a stack: a thread, a
 * softirq on it, an interrupt on that. At every change the time since the last
 * one goes to the topmost: no time is counted twice, and none is left out. An
 * interruption is the time that a source took from its begin to its end,
 * without the sources that interrupted it.
 *
 * An interruption that was under way when watching began is not counted as one;
 * its time goes to the thread.
 */
#include <linux/cgroup.h>
#include <linux/interrupt.h>
#include <linux/log2.h>
#include <trace/events/irq.h>
#include <trace/events/nmi.h>
#include <trace/events/sched.h>
#ifdef CONFIG_X86_LOCAL_APIC
#include <asm/trace/irq_vectors.h>
#endif

#include "kmod/common/coll_events.h"
#include "kmod/common/compat.h"
#include "kmod/common/trace.h"
#include "watch.h"

/* ---- the log --------------------------------------------------------------------- */

/* The reader frees room by moving the tail. */
static void log_add(struct watch_cpu *watch, struct watch_source *source, u64 start, u64 duration)
{
	struct watch_log *log = &watch->log;

	if (!log->size)
		return;
	/* Pairs with watch_put_events(): what is written over was read. */
	if (log->head - smp_load_acquire(&log->tail) == log->size) {
		kcoll_sum_add(&watch->lost, 1);
		return;
	}
	log->events[log->head & (log->size - 1)] = (struct coll_noise_event){
		.start = start,
		.duration = duration,
		.source = source - watch->sources + 1,
		.cpu = watch->cpu,
		.cause = source->cause,
	};
	smp_store_release(&log->head, log->head + 1);	/* whole, before it may be read */
}

/* ---- the stack -------------------------------------------------------------------- */

/* The clock, with what NMIs had and took until then. */
static u64 read_clock(const struct watch_cpu *watch, struct watch_nmi *nmi)
{
	u64 hits, now;

	do {
		hits = READ_ONCE(watch->nmi_hits);
		barrier();
		now = kcoll_watch_now();
		nmi->total = READ_ONCE(watch->nmi.total);
		nmi->taken = READ_ONCE(watch->nmi.taken);
		barrier();
	} while (hits != READ_ONCE(watch->nmi_hits));
	return now;
}

/*
 * What they had, and took, of the time since the last change. They say so themselves, for they know whether the
 * task wanted the CPU; but they may touch neither sums that add up, nor the log: that is done here.
 */
static struct watch_nmi take_nmi(struct watch_cpu *watch, const struct watch_nmi *until, u64 passed)
{
	struct watch_source *source = &watch->sources[COLL_NOISE_NMI];
	struct watch_nmi had;

	had.total = min(until->total - watch->nmi_seen.total, passed);
	had.taken = min(until->taken - watch->nmi_seen.taken, had.total);
	watch->nmi_seen = *until;
	if (!had.taken)
		return had;
	kcoll_sum_add(&source->total, had.taken);
	kcoll_sum_add(&source->inclusive, had.taken);
	log_add(watch, source, READ_ONCE(watch->nmi_start), had.taken);
	return had;
}

/*
 * To all that are under way: also to a thread, whose own clock runs on while it is
 * interrupted (but for kernels with IRQ_TIME_ACCOUNTING).
 */
static void charge_inclusive(struct watch_cpu *watch, u64 time)
{
	int depth;

	for (depth = watch->depth; depth >= 0; depth--)
		if (watch->frames[depth].source)
			kcoll_sum_add(&watch->frames[depth].source->inclusive, time);
}

/* Where the task does not want the CPU it is idle, whoever has it. */
static void charge_top(struct watch_cpu *watch, struct watch_frame *top, u64 own, u64 counted)
{
	const u64 stolen = watch->depth ? 0 : kcoll_steal_take(watch, counted);

	if (top->source) {
		kcoll_source_took(top->source, counted - stolen, watch->last);
		top->spent += counted - stolen;
		kcoll_sum_add(&watch->idle, own - counted);
	} else {
		kcoll_sum_add(top->nobody, own - stolen);
	}
}

/* Gives the time since the last change to the topmost. */
static u64 stack_charge(struct watch_cpu *watch)
{
	struct watch_frame *top = &watch->frames[watch->depth];
	const bool sleeps = !watch->depth && top->nobody == &watch->idle;
	struct watch_nmi nmi;
	u64 now = read_clock(watch, &nmi), passed, part, own, counted, since;

	if (now < watch->last)	/* the clock of NMIs may step back a little */
		now = watch->last;
	passed = now - watch->last;
	nmi = take_nmi(watch, &nmi, passed);
	own = passed - nmi.total;
	part = kcoll_wait_part(watch, passed);
	counted = min(own, part - min(part, nmi.taken));
	since = watch->last;
	watch->last = now;
	kcoll_sum_add(&watch->watched, passed);
	kcoll_sum_add(&watch->idle, nmi.total - nmi.taken);
	kcoll_steal_add(watch, counted + nmi.taken, sleeps ? counted + nmi.taken : passed);
	charge_inclusive(watch, counted + nmi.taken);
	charge_top(watch, top, own, counted);
	if (watch->limit || watch->latency)
		kcoll_case_charge(watch, &(struct watch_charge){ top, since, nmi.taken, own, counted,
								 kcoll_wait_any(watch) });
	return now;
}

static void stack_push(struct watch_cpu *watch, u8 cause, u32 number, const char *name)
{
	struct watch_frame *frame;
	u64 now = stack_charge(watch);

	if (watch->depth == WATCH_DEPTH - 1)
		return;
	frame = &watch->frames[++watch->depth];
	frame->source = kcoll_source_of(watch, cause, number, name);
	frame->start = now;
	frame->spent = 0;
}

/* The topmost is over. */
static void stack_finish(struct watch_cpu *watch)
{
	struct watch_frame *frame = &watch->frames[watch->depth];
	struct watch_source *source = frame->source;

	if (source && frame->spent) {
		kcoll_source_event(source, frame->spent);
		log_add(watch, source, frame->start, frame->spent);
		trace_coll_watch_taken(source->cause, source->number, frame->spent);
	}
	frame->spent = 0;
}

/* Its end; if its beginning was not seen, nothing. What it had left open is over too. */
static void stack_pop(struct watch_cpu *watch, u8 cause, u32 number)
{
	const struct watch_source *source;
	int depth;

	stack_charge(watch);
	for (depth = watch->depth; depth > 0; depth--) {
		source = watch->frames[depth].source;
		if (source->cause == cause &&
		    (source->number == number || source == &watch->sources[cause]))
			break;
	}
	if (!depth)
		return;
	while (watch->depth >= depth) {
		stack_finish(watch);
		watch->depth--;
	}
}

/* ---- threads ------------------------------------------------------------------------ */

static u64 thread_cgroup(struct task_struct *task)
{
	u64 id = 0;

#ifdef CONFIG_CGROUPS
	rcu_read_lock();
	id = cgroup_id(task_dfl_cgroup(task));
	rcu_read_unlock();
#endif
	return id;
}

static bool is_injector(const struct task_struct *task)
{
	return (READ_ONCE(task->flags) & PF_KTHREAD) &&
	       !strncmp(task->comm, COLL_INJECTOR_COMM, strlen(COLL_INJECTOR_COMM));
}

static void set_thread(struct watch_cpu *watch, struct task_struct *task)
{
	struct watch_frame *frame = &watch->frames[0];
	struct watch_source *source = NULL;
	u8 cause = is_injector(task) ? COLL_NOISE_INJECTED : COLL_NOISE_THREAD;

	frame->start = watch->last;
	frame->spent = 0;
	frame->nobody = NULL;
	if (watch->latency ? task == READ_ONCE(watch->latency->thread) : kcoll_wait_is_for(watch, task)) {
		frame->nobody = &watch->ran;
	} else if (is_idle_task(task)) {
		frame->nobody = &watch->idle;
	} else if (watch->task && task->tgid == watch->task) {
		source = kcoll_source_of(watch, COLL_NOISE_THREAD, watch->task, "other threads");
	} else {
		source = kcoll_source_of_thread(watch, cause, task);
		if (source->born)
			WRITE_ONCE(source->cgroup, thread_cgroup(task));
	}
	frame->source = source;
}

static void switch_threads(struct watch_cpu *watch, const struct task_struct *prev,
			   struct task_struct *next, bool runnable)
{
	stack_charge(watch);
	for (; watch->depth; watch->depth--)
		stack_finish(watch);
	stack_finish(watch);
	if (watch->task)
		kcoll_wait_switch(watch, prev, next, runnable);
	kcoll_sources_tidy(watch, 1);
	set_thread(watch, next);
}

/* ---- probes ------------------------------------------------------------------------- */

/*
 * Interrupts are off from begin to end, so that the stack is ours: an interrupt
 * could put itself onto it half way.
 */
static struct watch_cpu *probe_begin(unsigned long *flags)
{
	struct watch_cpu *watch;

	raw_local_irq_save(*flags);
	watch = this_cpu_read(kcoll_watched);
	if (watch && !kcoll_watch_over(watch)) {
		watch->cost.sampled = --watch->cost.left ? 0 : kcoll_watch_now();
		return watch;
	}
	raw_local_irq_restore(*flags);
	return NULL;
}

/* It costs too much: what was counted until now is read as long as the watch is there. */
static void watch_give_up(struct watch_cpu *watch)
{
	stack_charge(watch);
	this_cpu_write(kcoll_watched, NULL);
}

static void probe_end(struct watch_cpu *watch, unsigned long flags)
{
	if (watch->cost.sampled && kcoll_cost_add(&watch->cost))
		watch_give_up(watch);
	raw_local_irq_restore(flags);
}

static void probe_taken(u8 cause, u32 number, const char *name)
{
	unsigned long flags;
	struct watch_cpu *watch = probe_begin(&flags);

	if (!watch)
		return;
	stack_push(watch, cause, number, name);
	probe_end(watch, flags);
}

static void probe_given_back(u8 cause, u32 number)
{
	unsigned long flags;
	struct watch_cpu *watch = probe_begin(&flags);

	if (!watch)
		return;
	stack_pop(watch, cause, number);
	probe_end(watch, flags);
}

static void probe_irq_handler_entry(void *data, int irq, struct irqaction *action)
{
	probe_taken(COLL_NOISE_IRQ, irq, action->name ?: "?");
}

static void probe_irq_handler_exit(void *data, int irq, struct irqaction *action, int result)
{
	probe_given_back(COLL_NOISE_IRQ, irq);
}

static const char *const softirqs[] = {
	[HI_SOFTIRQ] = "hi",		[TIMER_SOFTIRQ] = "timer",
	[NET_TX_SOFTIRQ] = "net_tx",	[NET_RX_SOFTIRQ] = "net_rx",
	[BLOCK_SOFTIRQ] = "block",	[IRQ_POLL_SOFTIRQ] = "irq_poll",
	[TASKLET_SOFTIRQ] = "tasklet",	[SCHED_SOFTIRQ] = "sched",
	[HRTIMER_SOFTIRQ] = "hrtimer",	[RCU_SOFTIRQ] = "rcu",
};

static void probe_softirq_entry(void *data, unsigned int number)
{
	probe_taken(COLL_NOISE_SOFTIRQ, number,
		    number < ARRAY_SIZE(softirqs) ? softirqs[number] : "?");
}

static void probe_softirq_exit(void *data, unsigned int number)
{
	probe_given_back(COLL_NOISE_SOFTIRQ, number);
}

static void probe_sched_switch(void *data, bool preempt, struct task_struct *prev,
			       struct task_struct *next, unsigned int prev_state)
{
	unsigned long flags;
	struct watch_cpu *watch = probe_begin(&flags);

	if (!watch)
		return;
	/* Who wants to sleep and has a signal does not: `prev_state` does not say so on all kernels. */
	switch_threads(watch, prev, next, preempt || task_is_running(prev));
	probe_end(watch, flags);
}

/* These two are about another CPU, perhaps. Where this one is watched as well it is that which pays for them. */
static void probe_sched_migrate_task(void *data, struct task_struct *task, int cpu)
{
	unsigned long flags;
	struct watch_cpu *here = probe_begin(&flags);

	kcoll_wait_elsewhere(task, cpu);
	if (here)
		probe_end(here, flags);
}

/* Of a thread that has just been made, too: sched_wakeup_new. */
static void probe_sched_wakeup(void *data, struct task_struct *task)
{
	unsigned long flags;
	struct watch_cpu *here = probe_begin(&flags);

	rcu_read_lock();
	kcoll_wait_begin(task, task_cpu(task));
	rcu_read_unlock();
	if (here)
		probe_end(here, flags);
}

/* In NMI context: only what nobody else writes. `delta` is what the handler had, and took if the task wanted the CPU. */
static void probe_nmi_handler(void *data, void *handler, s64 delta, int handled)
{
	struct watch_cpu *watch = this_cpu_read(kcoll_watched);

	if (!watch || delta < 0 || kcoll_watch_over(watch))
		return;
	WRITE_ONCE(watch->nmi_start, kcoll_watch_now() - delta);
	WRITE_ONCE(watch->nmi_hits, watch->nmi_hits + 1);
	kcoll_sum_add(&watch->nmi.total, delta);
	if (!kcoll_wait_wants(watch))
		return;
	kcoll_sum_add(&watch->nmi.taken, delta);
	kcoll_source_event(&watch->sources[COLL_NOISE_NMI], delta);
}

COLL_PROBE_CHECK(irq_handler_entry, probe_irq_handler_entry);
COLL_PROBE_CHECK(irq_handler_exit, probe_irq_handler_exit);
COLL_PROBE_CHECK(softirq_entry, probe_softirq_entry);
COLL_PROBE_CHECK(softirq_exit, probe_softirq_exit);
COLL_PROBE_CHECK(sched_switch, probe_sched_switch);
COLL_PROBE_CHECK(sched_migrate_task, probe_sched_migrate_task);
COLL_PROBE_CHECK(sched_wakeup, probe_sched_wakeup);
COLL_PROBE_CHECK(sched_wakeup_new, probe_sched_wakeup);
COLL_PROBE_CHECK(nmi_handler, probe_nmi_handler);

/* The processor's own interrupts, which have no number in /proc/interrupts but a name. */
#define VECTOR_PROBES(vector)							\
	static void probe_##vector##_entry(void *data, int number)		\
	{									\
		probe_taken(COLL_NOISE_IRQ, number, #vector);				\
	}									\
	static void probe_##vector##_exit(void *data, int number)		\
	{									\
		probe_given_back(COLL_NOISE_IRQ, number);				\
	}
#define VECTOR(vector)								\
	{ .name = #vector "_entry", .function = probe_##vector##_entry, .optional = true }, \
	{ .name = #vector "_exit", .function = probe_##vector##_exit, .optional = true }

#ifdef CONFIG_X86_LOCAL_APIC
VECTOR_PROBES(local_timer)
VECTOR_PROBES(reschedule)
VECTOR_PROBES(call_function)
VECTOR_PROBES(call_function_single)
VECTOR_PROBES(irq_work)
VECTOR_PROBES(x86_platform_ipi)
VECTOR_PROBES(thermal_apic)
VECTOR_PROBES(threshold_apic)
VECTOR_PROBES(deferred_error_apic)
VECTOR_PROBES(error_apic)
VECTOR_PROBES(spurious_apic)
COLL_PROBE_CHECK(local_timer_entry, probe_local_timer_entry);
#endif

#define PROBE(event) { .name = #event, .function = probe_##event }
static struct kcoll_probe probes[] = {
	PROBE(irq_handler_entry),
	PROBE(irq_handler_exit),
	PROBE(softirq_entry),
	PROBE(softirq_exit),
	PROBE(sched_switch),
	PROBE(sched_migrate_task),
	PROBE(sched_wakeup),
	{ .name = "sched_wakeup_new", .function = probe_sched_wakeup },
	{ .name = "nmi_handler", .function = probe_nmi_handler, .optional = true }, /* x86 only */
#ifdef CONFIG_X86_LOCAL_APIC
	VECTOR(local_timer),
	VECTOR(reschedule),
	VECTOR(call_function),
	VECTOR(call_function_single),
	VECTOR(irq_work),
	VECTOR(x86_platform_ipi),
	VECTOR(thermal_apic),
	VECTOR(threshold_apic),
	VECTOR(deferred_error_apic),
	VECTOR(error_apic),
	VECTOR(spurious_apic),
#endif
};

int kcoll_watch_attach(void)
{
	return kcoll_probes_attach(probes, ARRAY_SIZE(probes), NULL);
}

void kcoll_watch_detach(void)
{
	kcoll_probes_detach(probes, ARRAY_SIZE(probes), NULL);
}

/* ---- for the injector ---------------------------------------------------------------- */

void kcoll_watch_injected_begin(u32 id)
{
	probe_taken(COLL_NOISE_INJECTED, id, "injected");
}

void kcoll_watch_injected_end(u32 id)
{
	probe_given_back(COLL_NOISE_INJECTED, id);
}

/* ---- calls by other CPUs, begin, end ------------------------------------------------------------------------ */

/* No probe: the interrupt that this came in is on the stack, where the kernel tells of it. */
void kcoll_watch_called(struct watch_cpu *watch, u64 began)
{
	const struct watch_frame *top = &watch->frames[watch->depth];

	if (this_cpu_read(kcoll_watched) != watch || kcoll_watch_over(watch))
		return;
	if (watch->depth && top->source->cause == COLL_NOISE_IRQ)
		began = top->start;
	if (kcoll_cost_add_call(&watch->cost, began))
		watch_give_up(watch);
}

void kcoll_watch_begin(struct watch_cpu *watch)
{
	const u64 began = kcoll_watch_now();

	WRITE_ONCE(watch->online, true);
	watch->depth = 0;
	watch->last = began;
	watch->nmi_seen = watch->nmi;
	kcoll_steal_begin(watch);
	memset(watch->waiting, 0, sizeof(watch->waiting));	/* before it was offline */
	watch->came = watch->left = 0;
	watch->open = (struct watch_case){ 0 };
	kcoll_cost_begin(&watch->cost);
	set_thread(watch, current);
	if (watch->cost.passed)
		return;
	this_cpu_write(kcoll_watched, watch);
	kcoll_wait_find(watch);
	kcoll_watch_called(watch, began);
}

void kcoll_watch_flush(struct watch_cpu *watch)
{
	if (!kcoll_watch_over(watch))
		stack_charge(watch);
}

void kcoll_watch_end(struct watch_cpu *watch)
{
	kcoll_watch_flush(watch);
	this_cpu_write(kcoll_watched, NULL);
	WRITE_ONCE(watch->online, false);
}
