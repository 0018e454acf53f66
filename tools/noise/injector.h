/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Noise by plans. In user space a thread on each CPU sleeps until an event begins, then keeps the
 * CPU busy for its length. Or the module injects. Starts are absolute times of day: they do not
 * drift, and nodes with synchronized clocks stay in phase.
 */
#ifndef COLL_NOISE_INJECTOR_H
#define COLL_NOISE_INJECTOR_H

#include <pthread.h>

#include "core/noise/noise.h"
#include "node/capture.h"
#include "clock.h"
#include "node/cpus.h"
#include "module.h"
#include "policy.h"

struct noise_injector_options {
	struct node_cpus cpus;
	const struct coll_noise_plan *plan;	/* one per CPU, or one for all CPUs: */
	u32 plans;
	u64 epoch;		/* of the plans; CLOCK_REALTIME, ns */
	bool from_now;		/* the epoch is the start of the injection */
	u64 duration;		/* ns */
	u64 cost;		/* ns; of an event beyond its length, which is shortened by it */
	struct noise_policy policy;
	u64 capacity;		/* log capacity in events, per CPU */
	bool module;		/* for injection by the module: */
	enum coll_noise_context context;
	double max_share;	/* maximum share of a CPU's time */
};

/* Requested in ns of CLOCK_REALTIME, done in ticks. */
struct noise_injected {
	u64 asked, asked_duration;
	u64 begin, end;
};

struct noise_injector_cpu {
	struct noise_injector *injector;
	pthread_t thread;
	u32 cpu, stream;
	struct noise_injected *log;
	u64 count, lost, merged;	/* logged; injected but not logged; merged or missed */
	u64 refused;		/* by the module: above max_share */
	u32 id;			/* of the module's injector */
	int error;
	const char *refusal;	/* what failed with `error` */
};

struct noise_injector {
	struct noise_injector_options options;
	struct noise_clock *clock;	/* the measuring loop uses the same clock */
	struct noise_injector_cpu *cpu;
	u32 cpus;
	pthread_barrier_t ready;
	struct noise_module *module;
	u64 from, until;		/* CLOCK_REALTIME, ns: no event starts outside */
	bool stop;			/* set it to end early */
};

/* "fifo", or the name of the module's context. */
const char *noise_injector_context(const struct noise_injector_options *options);

/* FIFO where that is allowed, else OTHER with a short slice; `policy` gets the result. */
struct noise_policy noise_injector_policy(void);

/*
 * Returns when all threads run; errors are reported on stderr. Call wait afterwards. 0 or -errno.
 */
int noise_injector_begin(struct noise_injector *injector,
			 const struct noise_injector_options *options, struct noise_clock *clock,
			 const char *command);
void noise_injector_wait(struct noise_injector *injector);
void noise_injector_free(struct noise_injector *injector);

/* Writes the log. Call when the clock is settled. */
struct coll_noise_injected noise_injector_entry(const struct noise_injector *injector,
						const struct noise_injected *done);
int noise_injector_capture(const struct noise_injector *injector, struct node_capture *capture);

/*
 * Number of events in the plan for the CPU with that index, within its time. Each was injected,
 * merged, refused or missed.
 */
u64 noise_injector_planned(const struct noise_injector *injector, u32 index);

/* A fingerprint of a plan: of the first events of a stream. */
u64 noise_plan_fingerprint(const struct coll_noise_plan *plan, u32 stream);

#endif
