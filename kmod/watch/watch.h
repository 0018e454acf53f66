/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The attributor: what took the time of a CPU.
 *
 *	watch.c		watches, started and stopped by netlink
 *	watch_list.c	the CPUs that are watched
 *	watch_dump.c	what was counted, and logs
 *	watch_copy.c	a watch as it was at one moment, for a dump
 *	watch_dump_case.c	latencies, and what passed a threshold
 *	watch_latency.c	a timer and the thread that it wakes
 *	watch_count.c	counts, in the kernel's tracepoints
 *	watch_source.c	whom it counts for
 *	watch_wait.c	whether the task that is watched waits
 *	watch_steal.c	what the hypervisor took from it
 *	watch_cost.c	what watching takes itself, and whether that is too much
 *	watch_case.c	who had a piece of time; what passes a threshold
 */
#ifndef COLL_KMOD_WATCH_H
#define COLL_KMOD_WATCH_H

#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>

#include "core/noise/buckets.h"
#include "uapi/coll_noise.h"
#include "kmod/common/subsystem.h"
#include "kmod/common/sum.h"

enum {
	WATCH_SOURCES = 1024,	/* of a CPU; a power of two */
	WATCH_BUCKETS = 32,	/* of a histogram */
	WATCH_DEPTH = 8,	/* thread, softirq, interrupt, injected, and some to spare */
	WATCH_NAME = 32,
	WATCH_LOG_MAX = 1 << 20,
	WATCH_PARTS = 12,	/* of a case */
	WATCH_WORST = 8,	/* cases that are kept */
	WATCH_STACK = 40,	/* functions of a stack */
	WATCH_PRIORITY = 95,	/* of a thread whose latency is measured */
	WATCH_WAITERS = 8,	/* threads that are known to wait for a CPU at once */
};

/*
 * A source of noise. The first COLL_NOISE_CAUSES of a CPU are the rest, one per cause: what those had that were
 * folded, and what comes when all others are in use. `used` is set last.
 */
struct watch_source {
	u8 cause;
	bool used;
	u32 number;
	u32 reused;		/* so many other sources had this place before */
	u64 born;		/* of a thread: CLOCK_BOOTTIME; else 0 */
	u64 latest;		/* when it last took some */
	u64 cgroup;
	u64 count;
	u64 total;
	u64 inclusive;		/* with what interrupted it */
	u64 max;
	u64 histogram[WATCH_BUCKETS];
	char name[WATCH_NAME];	/* its last byte is 0 always: a thread's changes */
};

/* A source at work: while it is the topmost, time is its own. */
struct watch_frame {
	struct watch_source *source;	/* NULL: nobody, or the task itself */
	u64 *nobody;			/* whose time it is then */
	u64 start;
	u64 spent;
};

struct watch_log {
	u32 size;	/* a power of two; 0: no log */
	u32 head;	/* the CPU's */
	u32 tail;	/* the reader's */
	struct coll_noise_event *events;
};

/* A piece of time, and who had it. */
struct watch_case {
	u64 start;	/* 0: none is open */
	u64 total;
	u64 timer;	/* of a latency: to the timer's interrupt; 0: it has not come */
	u32 parts;
	struct {
		const struct watch_source *source;
		u64 time;
	} part[WATCH_PARTS];	/* the last one takes what comes when all are in use */
};

/*
 * The threshold of one START, for all its CPUs. The CPU that sets `passed` writes what
 * follows; `whole` is set last.
 */
struct watch_limit {
	u64 threshold;
	u32 cpus;		/* that have it; under the mutex */
	atomic_t passed;
	bool whole;
	u32 cpu;
	struct watch_case kept;
	pid_t pid;
	char comm[TASK_COMM_LEN];
	u32 depth;
	unsigned long stack[WATCH_STACK];
};

struct watch_stage {
	u64 count;
	u64 total;
	u64 min;
	u64 max;
	u64 histogram[COLL_BUCKETS];
};

/* What the hypervisor took. The CPU alone uses it, with interrupts off. */
struct watch_steal {
	u64 seen;		/* of what the kernel knows */
	u64 owed;		/* the task's part of that: it is to be taken off */
	u64 wanted[2], busy[2];	/* of late, ns that the task wanted the CPU, and that this did not sleep */
};

/* What watching takes of a CPU. The CPU alone writes it, with interrupts off. */
struct watch_cost {
	u64 total;		/* ns */
	u64 sampled;		/* when the probe that runs began; 0: it is not timed */
	u64 called;		/* when the latest call by another CPU ended */
	u32 stride;		/* of so many probes one is timed: */
	u32 left;		/* after so many more */
	u32 random;
	u32 share;		/* in 1/1000000: more is too much; 0: nothing is */
	u64 since;		/* the window's begin, */
	u64 before;		/* and the total then */
	bool passed;		/* it was too much: the CPU counts no more */
};

/* Wake-ups of one CPU. The CPU alone writes it, with interrupts off. */
struct watch_latency {
	struct watch_cpu *watch;
	u64 period;
	u32 priority;
	bool on;		/* cleared to stop it: nothing new begins */
	bool woken;		/* the timer's word to the thread */
	struct task_struct *thread;
	struct hrtimer timer;
	u64 missed;
	struct watch_stage stage[COLL_WATCH_STAGES];
	u32 worsts;
	struct watch_case worst[WATCH_WORST];
	u32 shown_worsts;	/* a copy for readers, under the mutex */
	struct watch_case shown[WATCH_WORST];
};

/*
 * One watched CPU. The CPU alone writes it, with interrupts off, but for what
 * NMIs write; others read whole words of it.
 */
struct watch_cpu {
	struct watch_cpu *next;	/* of those that are to be freed */
	u32 cpu;
	unsigned long serial;	/* no other watch has it: a dump sees that this one came in between */
	struct kcoll_owner owner;
	pid_t task;		/* a process; 0: whatever runs */
	pid_t thread[2];	/* of it these alone; 0: all of its threads */
	bool yields;		/* to a START that does not */
	bool online;		/* under the CPUs' hotplug lock, as all that follows until `last` */

	u64 last;		/* everything before is counted */
	u64 watched;
	u64 ran;
	u64 idle;
	u64 lost;
	struct watch_cost cost;
	pid_t waiting[WATCH_WAITERS];	/* threads of `task` that are ready to run here: their time is taken */
	u64 came;		/* when the first of them was woken, or came from elsewhere */
	u64 left;		/* when one went elsewhere */
	atomic64_t away;	/* how often one went to where it is not watched */

	struct watch_nmi {
		u64 total;	/* ns, */
		u64 taken;	/* and of them from the task */
	} nmi, nmi_seen;	/* `nmi`, with what follows, is written by NMIs, and counted from nmi_seen on */
	u64 nmi_start;
	u64 nmi_hits;

	struct watch_steal steal;

	struct watch_limit *limit;	/* or NULL */
	struct watch_latency *latency;	/* or NULL */
	struct watch_case open;

	int depth;
	struct watch_frame frames[WATCH_DEPTH];
	struct watch_log log;
	bool folds;		/* nothing but the frames names its sources: they may be folded */
	bool folding;		/* the CPU is at it; */
	bool held;		/* it is not to be: a reader copies them, under the mutex */
	u32 threads;		/* sources that are one, */
	u32 hand;		/* the next place that is looked at for one to fold, */
	u64 folded;		/* and how many were */
	struct watch_source sources[WATCH_SOURCES];
};

/* Set while this CPU is watched. Changed by the CPU itself, with interrupts off. */
DECLARE_PER_CPU(struct watch_cpu *, kcoll_watched);

/* Probes on, for all CPUs; 0 or -errno. Once they are: 0. After detach none runs, and they are off. */
int kcoll_watch_attach(void);
void kcoll_watch_detach(void);

/* On the CPU itself, interrupts off. */
void kcoll_watch_begin(struct watch_cpu *watch);
void kcoll_watch_end(struct watch_cpu *watch);
/* Counts what is open up to now. */
void kcoll_watch_flush(struct watch_cpu *watch);
/* What another CPU had done here for this watch was its cost: since the interrupt began; where none is seen, `began`. */
void kcoll_watch_called(struct watch_cpu *watch, u64 began);

/* Its threshold was passed, or it cost too much: it counts no more. */
static inline bool kcoll_watch_over(const struct watch_cpu *watch)
{
	return READ_ONCE(watch->cost.passed) || (watch->limit && atomic_read(&watch->limit->passed));
}

/* CLOCK_MONOTONIC; in any context. */
static inline u64 kcoll_watch_now(void)
{
	return ktime_get_mono_fast_ns();
}

/* ---- watch_source.c: on the CPU itself, interrupts off ---- */

struct watch_source *kcoll_source_of(struct watch_cpu *watch, u8 cause, u32 number, const char *name);
/* By the name that it has now. */
struct watch_source *kcoll_source_of_thread(struct watch_cpu *watch, u8 cause, const struct task_struct *task);
/* One interruption was so long. */
void kcoll_source_event(struct watch_source *source, u64 duration);
/* Before a thread comes whose source is found anew: looks at so many places for threads that took nothing for long. */
void kcoll_sources_tidy(struct watch_cpu *watch, u32 places);

static inline void kcoll_source_took(struct watch_source *source, u64 time, u64 now)
{
	if (!time)
		return;
	kcoll_sum_add(&source->total, time);
	source->latest = now;
}

/*
 * From when this returns until the release the CPU folds nothing, and what comes when all places are in use is the
 * rest's. It waits for the CPU where that is at it, for less than a microsecond. With the mutex held all the while.
 */
void kcoll_sources_hold(struct watch_cpu *watch);
void kcoll_sources_release(struct watch_cpu *watch);

/* ---- watch_wait.c: interrupts off ---- */

/* This thread is what noise delays. */
bool kcoll_wait_is_for(const struct watch_cpu *watch, const struct task_struct *task);
/* One of them is ready to run here, and does not. */
bool kcoll_wait_any(const struct watch_cpu *watch);
/* One of them runs here, or waits; in an NMI, too. */
bool kcoll_wait_wants(const struct watch_cpu *watch);
/* The watch begins, on the CPU itself: those that are ready to run here wait from now on. */
void kcoll_wait_find(struct watch_cpu *watch);
/* How much of the latest `passed` ns was taken from the task: it ran, or waited, or left or came meanwhile. */
u64 kcoll_wait_part(const struct watch_cpu *watch, u64 passed);
/* On the CPU itself. `runnable`: prev would go on. */
void kcoll_wait_switch(struct watch_cpu *watch, const struct task_struct *prev, const struct task_struct *next,
		       bool runnable);
/* From any CPU. */
void kcoll_wait_begin(const struct task_struct *task, int cpu);
void kcoll_wait_elsewhere(const struct task_struct *task, int cpu);

/* ---- watch_steal.c: on the CPU itself, interrupts off ---- */

/* The watch begins, or its CPU has come back. */
void kcoll_steal_begin(struct watch_cpu *watch);
/* Of the time that has passed, the task wanted so much, and the CPU did not sleep for so much. */
void kcoll_steal_add(struct watch_cpu *watch, u64 wanted, u64 busy);
/* Time of the task's, or of threads that keep it waiting: how much of it the hypervisor had. That has been counted. */
u64 kcoll_steal_take(struct watch_cpu *watch, u64 most);

/* ---- watch_cost.c: on the CPU itself, interrupts off ---- */

/* The watch begins, or its CPU has come back. */
void kcoll_cost_begin(struct watch_cost *cost);
/* A probe that was timed ends. Returns whether it all is too much, which is said once. */
bool kcoll_cost_add(struct watch_cost *cost);
/* A call by another CPU ends, whose interrupt began then. The same. */
bool kcoll_cost_add_call(struct watch_cost *cost, u64 began);

/* ---- watch_case.c: on the CPU itself, interrupts off ---- */

/* Time that was counted just now: from `since` to watch->last. */
struct watch_charge {
	const struct watch_frame *top;
	u64 since;
	u64 nmi;	/* of it NMIs took; */
	u64 own;	/* the topmost had what no NMI had, */
	u64 counted;	/* of which this counts as taken: */
	bool late;	/* the last part, and the task still waits; else the first */
};

/* Adds it to the open case, and stops the watch if that passes the threshold. */
void kcoll_case_charge(struct watch_cpu *watch, const struct watch_charge *charge);

/* ---- watch_latency.c: with CPU hotplug held off; may sleep ---- */

struct watch_latency *kcoll_latency_make(struct watch_cpu *watch, u64 period, u32 priority);
/* The CPU is online and watched: wakes its thread from now on. 0 or -errno. */
int kcoll_latency_start(struct watch_latency *latency);
/* Afterwards its timer and thread are gone. */
void kcoll_latency_stop(struct watch_latency *latency);

/* watch_list.c */
extern struct mutex kcoll_watch_mutex;
DECLARE_PER_CPU(struct watch_cpu *, kcoll_watch_records);

/* ---- watch_copy.c ---- */

/* A watch at one moment: its summary, and each source that took something. */
struct watch_copy {
	unsigned long serial;		/* of the watch; another one of its CPU has another */
	struct kcoll_owner owner;
	u32 cpu;
	u8 state;			/* enum coll_watch_state */
	u64 watched, ran, idle, cost, lost, folded, away;
	u32 count, places;
	struct {
		u32 index;
		struct watch_source source;
	} of[];				/* in the order of their places */
};

/* So many places suffice for its sources, with some that may come. With the mutex held. */
u32 kcoll_copy_places(const struct watch_cpu *watch);
/*
 * For kvfree(); NULL: no memory. Without the mutex: who is to get little memory, or little of a CPU, may take seconds, and
 * would hold up everybody.
 */
struct watch_copy *kcoll_copy_new(u32 places);
/* The CPU counts what it has open before. false: it has more sources than places. With the mutex held; may sleep. */
bool kcoll_copy_fill(struct watch_copy *copy, struct watch_cpu *watch);

/* watch_dump.c */
/* What GET takes: COLL_WATCH_A_OWN alone. */
extern const struct nla_policy kcoll_watch_get_policy[COLL_WATCH_A_OWN + 1];
/* A source's number for who asks: threads have those of the reader's pid namespace, or 0. */
u32 kcoll_watch_number(const struct watch_source *source);
u32 kcoll_watch_pid(pid_t number);
int kcoll_watch_put_name(struct sk_buff *skb, const struct watch_source *source);
int kcoll_watch_get_start(struct netlink_callback *cb);
int kcoll_watch_get(struct sk_buff *skb, struct netlink_callback *cb);
int kcoll_watch_get_done(struct netlink_callback *cb);
int kcoll_watch_log(struct sk_buff *skb, struct netlink_callback *cb);

/* watch_dump_case.c */
int kcoll_watch_latency_start(struct netlink_callback *cb);
int kcoll_watch_latency(struct sk_buff *skb, struct netlink_callback *cb);
int kcoll_watch_passed(struct sk_buff *skb, struct netlink_callback *cb);

/*
 * The injector brackets what it takes in an interrupt, softirq or thread;
 * nothing may be scheduled between. Costs a load while nobody watches. Its
 * threads are known by their names too: they begin with this.
 */
#define COLL_INJECTOR_COMM "coll-noise"
void kcoll_watch_injected_begin(u32 id);
void kcoll_watch_injected_end(u32 id);

#endif
