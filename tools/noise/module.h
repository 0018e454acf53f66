/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The module, coll.ko: it injects where user space cannot, and knows who took the
 * time of a CPU. What is started ends when it is closed.
 */
#ifndef COLL_NOISE_MODULE_H
#define COLL_NOISE_MODULE_H

#include "core/noise/noise.h"
#include "node/capture.h"
#include "clock.h"
#include "node/cpus.h"

struct noise_module;

/* -ENOENT: it is not loaded. Other than NULL: close it, also after a failure. */
int noise_module_open(struct noise_module **module);
void noise_module_close(struct noise_module *module);
/* Why the last call failed. */
const char *noise_module_reason(const struct noise_module *module);

/* For people, and as a value: "loaded", or what is the matter. */
const char *noise_module_state(void);

/* ---- who ------------------------------------------------------------------------------ */

/* Watches who takes time from this process on those CPUs, `room` events each. */
int noise_module_watch(struct noise_module *module, const struct noise_cpus *cpus, u32 room);
/*
 * Names the cause of each event of a capture of that time, and what the kernel
 * counted of each source; *cost: ns that watching took. An event that nothing in
 * the kernel explains is the hardware's.
 */
int noise_module_explain(struct noise_module *module, struct noise_capture *capture, u64 *cost);

/* ---- injecting -------------------------------------------------------------------------- */

struct noise_module_order {
	const struct noise_cpus *cpus;
	const struct coll_noise_plan *plan;
	enum coll_noise_context context;
	u64 epoch, lifetime;
	u32 share, log, stream;		/* share: in 1/10000 */
	u32 cost;			/* ns; what an event takes beyond itself, and is shortened by */
};

extern const char *const noise_context_names[COLL_NOISE_CONTEXTS];

int noise_module_inject(struct noise_module *module, const struct noise_module_order *order,
			u32 *id);
/* Stopped, its log is still there until it is closed. */
int noise_module_stop(struct noise_module *module, u32 id);

typedef void noise_module_take(u32 cpu, const struct coll_noise_injected *events, u32 count,
			       u64 lost, void *data);
int noise_module_log(struct noise_module *module, u32 id, noise_module_take *take, void *data);
/* Of one CPU, events that joined another or were refused by the rails. */
int noise_module_missed(struct noise_module *module, u32 id, u32 cpu, u64 *missed, u64 *refused);

#endif
