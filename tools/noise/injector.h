/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Noise made after plans. In user space: a thread on each CPU sleeps until an
 * event begins, and then keeps the CPU for as long as it lasts. Or the module
 * does it. Starts are times of day, so they do not drift, and many nodes keep in
 * phase.
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
	struct noise_cpus cpus;
	const struct coll_noise_plan *plan;	/* one for each CPU, or one for all: */
	u32 plans;
	u64 epoch;		/* of the plans; CLOCK_REALTIME, ns */
	bool from_now;		/* no: their epoch is when it begins */
	u64 duration;		/* ns */
	u64 cost;		/* ns; what an event takes beyond itself, and is shortened by */
	struct noise_policy policy;
	u64 room;		/* events logged a CPU */
	bool module;		/* it injects: */
	enum coll_noise_context context;
	double max_share;	/* of the time of a CPU */
};

/* Asked in ns of CLOCK_REALTIME, done in ticks. */
struct noise_injected {
	u64 asked, asked_duration;
	u64 begin, end;
};

struct noise_injector_cpu {
	struct noise_injector *injector;
	pthread_t thread;
	u32 cpu, stream;
	struct noise_injected *log;
	u64 count, lost, merged;	/* logged; done, not logged; part of another, or missed */
	u64 refused;		/* by the module: too much of the time */
	u32 id;			/* of the module's injector */
	int error;
	const char *refusal;	/* what the error was met with */
};

struct noise_injector {
	struct noise_injector_options options;
	struct noise_clock *clock;	/* whoever measures has the same */
	struct noise_injector_cpu *cpu;
	u32 cpus;
	pthread_barrier_t ready;
	struct noise_module *module;
	u64 from, until;		/* CLOCK_REALTIME, ns: no event starts outside */
	bool stop;			/* set it to end early */
};

/* "fifo", or what the module's context is called. */
const char *noise_injector_context(const struct noise_injector_options *options);

/* FIFO where that is allowed, else OTHER with a short slice: says which. */
struct noise_policy noise_injector_policy(void);

/* Returns when all threads run; what fails says so. Wait comes after it. 0 or -errno. */
int noise_injector_begin(struct noise_injector *injector,
			 const struct noise_injector_options *options, struct noise_clock *clock,
			 const char *command);
void noise_injector_wait(struct noise_injector *injector);
void noise_injector_free(struct noise_injector *injector);

/* The log, when the clock is settled. */
struct coll_noise_injected noise_injector_entry(const struct noise_injector *injector,
						const struct noise_injected *done);
int noise_injector_capture(const struct noise_injector *injector, struct noise_capture *capture);

/*
 * Events of the plan that begin within its time on the CPU with that index. Each was injected,
 * became part of another, was refused, or was missed.
 */
u64 noise_injector_planned(const struct noise_injector *injector, u32 index);

/* A number that tells plans apart: of the first events of a stream. */
u64 noise_plan_fingerprint(const struct coll_noise_plan *plan, u32 stream);

#endif
