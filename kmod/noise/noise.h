/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Injected noise: an injector is a plan on a set of CPUs. For each CPU it has a
 * struct kcoll_noise_cpu: the stream of the plan there, its timer or thread, its
 * limits and its log.
 *
 *	noise.c		injectors, started and stopped by netlink
 *	noise_list.c	the injectors that there are
 *	noise_read.c	what NOISE_START asks for
 *	noise_dump.c	counters and logs
 *	noise_cpu.c	the events on one CPU
 */
#ifndef COLL_KMOD_NOISE_H
#define COLL_KMOD_NOISE_H

#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/spinlock.h>

#include "core/noise/noise.h"
#include "kmod/common/subsystem.h"

/* ---- rails ------------------------------------------------------------------- */

#define COLL_NOISE_GAP_MIN	(20 * NSEC_PER_USEC)	/* mean time from event to event */
#define COLL_NOISE_LIFETIME_MAX	(86400ull * NSEC_PER_SEC)
#define COLL_NOISE_LIFETIME	(60ull * NSEC_PER_SEC)
#define COLL_NOISE_SHARE_MAX_HERE 9000u			/* of 10000, for all injectors of a CPU */
#define COLL_NOISE_SHARE	5000u
#define COLL_NOISE_LOG_MAX	1048576u
#define COLL_NOISE_INJECTORS	64u
#define COLL_NOISE_COST_MAX	1000000u

/* No event of this context lasts longer. */
u64 kcoll_noise_context_longest(u8 context);

/* ---- CPUs -------------------------------------------------------------------- */

enum kcoll_noise_state {
	COLL_NOISE_ENDED,
	COLL_NOISE_INJECTING,
	COLL_NOISE_OFFLINE,
};

struct kcoll_noise_injector;

/*
 * Of one injector on one CPU. The CPU's timer or thread alone writes what is
 * below `stream` while it is on; all others may read the counters, and the
 * log behind `logged`.
 */
struct kcoll_noise_cpu {
	struct kcoll_noise_injector *injector;
	unsigned int number;		/* of the CPU */
	u8 state;			/* under the mutex of noise.c */
	bool on;			/* cleared to stop it: nothing new begins */
	bool due;			/* the timer's word to the thread */
	struct hrtimer timer;
	struct task_struct *thread;	/* of the contexts that have one */

	struct coll_noise_stream stream;
	struct coll_noise_span next;	/* not yet carried out; on the plan's clock */

	u32 in_a_row;			/* interrupts whose next event was late already */
	u64 budget, budget_at;		/* ns it may take, as of then */
	u64 busy, busy_end;		/* how long without a pause, until when */

	u64 injected, missed, refused, taken, lost;

	struct coll_noise_injected *log;	/* a ring of injector->log entries */
	u64 logged, read;
} ____cacheline_aligned_in_smp;

struct kcoll_noise_injector {
	struct list_head list;
	u32 id;
	struct kcoll_owner owner;
	bool ended;
	u8 context;
	struct coll_noise_model model;
	struct coll_noise_plan plan;
	struct coll_noise_span *table;
	u64 epoch;		/* CLOCK_REALTIME */
	u64 lifetime, deadline;	/* deadline: CLOCK_MONOTONIC */
	u64 longest;		/* no event of the plan is longer */
	u32 share, log, stream;
	u32 cost;		/* ns; events are that much shorter */
	u32 cpus;
	struct kcoll_noise_cpu *cpu;
};

/*
 * Starts the events on the CPU. Called with CPU hotplug held off, and the
 * CPU online. May sleep.
 */
int kcoll_noise_cpu_start(struct kcoll_noise_cpu *ncpu);

/* Afterwards no event is in progress: one that was has been cut short. May sleep. */
void kcoll_noise_cpu_stop(struct kcoll_noise_cpu *ncpu);

/* noise_list.c */
extern struct mutex kcoll_noise_mutex;		/* of the injectors */
extern spinlock_t kcoll_noise_lock;		/* of their list: under the mutex to change it, alone to read it */
extern struct list_head kcoll_noise_injectors;	/* by ascending id */
struct kcoll_noise_injector *kcoll_noise_find(u32 id);

/* noise_read.c */
extern const struct nla_policy kcoll_noise_start_policy[__COLL_NOISE_A_MAX];
int kcoll_noise_read_numbers(struct genl_info *info, struct kcoll_noise_injector *injector);
int kcoll_noise_read_model(struct genl_info *info, struct kcoll_noise_injector *injector);

/* noise_dump.c */
int kcoll_noise_get(struct sk_buff *skb, struct netlink_callback *cb);
int kcoll_noise_log(struct sk_buff *skb, struct netlink_callback *cb);

#endif
