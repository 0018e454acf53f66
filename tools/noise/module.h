/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The module, coll.ko: injects noise in contexts that user space cannot, and attributes the time
 * that a CPU lost. Closing it ends all that was started.
 */
#ifndef COLL_NOISE_MODULE_H
#define COLL_NOISE_MODULE_H

#include "core/noise/noise.h"
#include "node/capture.h"
#include "cases.h"
#include "clock.h"
#include "node/cpus.h"

struct noise_module;

/* -ENOENT: it is not loaded. If *module is not NULL, close it, also after an error. */
int noise_module_open(struct noise_module **module);
void noise_module_close(struct noise_module *module);
/* The reason why the last call failed. */
const char *noise_module_reason(const struct noise_module *module);

/* For people, and as a value: "loaded", or why it cannot be used. */
const char *noise_module_state(void);

/* ---- attribution ---------------------------------------------------------------------- */

/*
 * Records which tasks and interrupts take time from this process on those CPUs, up to `capacity`
 * events for each CPU; up to the first time longer than `threshold` ns, unless that is 0.
 */
int noise_module_watch(struct noise_module *module, const struct node_cpus *cpus, u32 capacity,
		       u64 threshold);
/* What was longer than the threshold. Before noise_module_explain(), which ends the recording. */
int noise_module_passed(struct noise_module *module, struct noise_passed *passed);
/*
 * Sets the cause of each event of a capture of the recorded time, and the kernel's count for each
 * source. *cost: CPU time that the recording took, in ns. An event without a kernel event is the
 * hardware's.
 */
int noise_module_explain(struct noise_module *module, struct node_capture *capture, u64 *cost);

/* ---- injecting -------------------------------------------------------------------------- */

struct noise_module_order {
	const struct node_cpus *cpus;
	const struct coll_noise_plan *plan;
	enum coll_noise_context context;
	u64 epoch, lifetime;
	u32 share, log, stream;		/* share: in 1/10000 */
	u32 cost;			/* ns beyond an event's length, subtracted from it */
};

extern const char *const noise_context_names[COLL_NOISE_CONTEXTS];

int noise_module_inject(struct noise_module *module, const struct noise_module_order *order,
			u32 *id);
/* After a stop the log is available until the module is closed. */
int noise_module_stop(struct noise_module *module, u32 id);

typedef void noise_module_take(u32 cpu, const struct coll_noise_injected *events, u32 count,
			       u64 lost, void *data);
int noise_module_log(struct noise_module *module, u32 id, noise_module_take *take, void *data);
/* Of one CPU: events that were merged with another, and events that were refused. */
int noise_module_missed(struct noise_module *module, u32 id, u32 cpu, u64 *missed, u64 *refused);

#endif
