/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Runs that the kernel progresses by itself (uapi/coll_device.h, docs/guide/offload.md).
 * All links of a group belong to the engine, or all are attached to /dev/coll. An exec runs
 * what the kernel does not take, and the links are detached for it. While runs are under
 * way on one side, runs for the other side wait or join them.
 */
#ifndef COLL_OFFLOAD_H
#define COLL_OFFLOAD_H

#include "libcoll/link/link.h"

/* Opens /dev/coll for this context. -errno, and why in words. */
int coll_offload_open(struct coll_context *context, char *why, size_t why_bytes);
/* Called when all groups are gone. */
void coll_offload_close(struct coll_context *context);

/*
 * Starts a planned run in the kernel or by an exec, at once or after earlier runs.
 * planned->aside says why it is not in the kernel.
 */
int coll_offload_start(struct coll_run *run, uint64_t deadline);
/* Whether it waits for its start or is in the kernel. Costs 20 ns, no system call. */
bool coll_offload_in_flight(struct coll_run *run);
/* The runs in the kernel, linked by next_offloaded. */
struct coll_run *coll_offload_runs(const struct coll_context *context);
void coll_offload_deadline(const struct coll_run *run, uint64_t deadline);

/*
 * Completes runs that have ended and starts runs that waited. Returns until when the engine
 * may wait, at most `deadline`; the end of another run wakes it.
 */
uint64_t coll_offload_poll(struct coll_context *context, uint64_t deadline);
/* From now on the engine, and coll_fd(), report runs that end after the latest poll began. */
void coll_offload_arm(struct coll_context *context);

/* Attaches a new link of a group whose links are attached. */
int coll_offload_attach(struct coll_link *link);
/* Whether a run in the kernel needs the link. */
bool coll_offload_needs_link(const struct coll_link *link);
/* Detaches all links. -EBUSY: the kernel still uses one. */
int coll_offload_detach(struct coll_group *group);
/* Detaches them whatever is under way. */
void coll_offload_drop(struct coll_group *group);
/* The group was dropped and is about to be freed: none of its runs is in flight any longer. */
void coll_offload_let_go(struct coll_group *group);
/* The group has failed: ends its runs in the kernel, which tells the peers. */
void coll_offload_fail(struct coll_group *group);
/* The plan is about to be freed. */
void coll_offload_forget(struct coll_planned *planned);

#endif
