/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Runs that the kernel carries on by itself (uapi/coll_device.h, docs/guide/offload.md).
 * All links of a group are either the engine's or lent to /dev/coll. What the
 * kernel does not take, an exec does, for which the links come back; while runs
 * are under way on one side, those that belong on the other wait or join them.
 */
#ifndef COLL_OFFLOAD_H
#define COLL_OFFLOAD_H

#include "libcoll/link/link.h"

/* Opens /dev/coll for this context; -errno, and why in words. */
int coll_offload_open(struct coll_context *context, char *why, size_t why_bytes);
/* When all groups have gone. */
void coll_offload_close(struct coll_context *context);

/*
 * Starts a planned run where it belongs: in the kernel or by an exec, at once or
 * when those before it allow. `planned->aside` says why not in the kernel.
 */
int coll_offload_start(struct coll_run *run, uint64_t deadline);
/* Whether it waits for its start or is in the kernel. 20 ns: no system call. */
bool coll_offload_in_flight(struct coll_run *run);
/* The runs in the kernel, one after the other by next_offloaded. */
struct coll_run *coll_offload_runs(const struct coll_context *context);
void coll_offload_deadline(const struct coll_run *run, uint64_t deadline);

/*
 * Ends runs that have ended and starts those that waited. Until when the engine may
 * wait, at most `deadline`: it wakes up when the kernel ends another.
 */
uint64_t coll_offload_poll(struct coll_context *context, uint64_t deadline);
/* From now on the engine, and coll_fd(), report runs that end after the latest poll began. */
void coll_offload_arm(struct coll_context *context);

/* A new link of a group whose links are lent. */
int coll_offload_attach(struct coll_link *link);
/* Whether a run in the kernel needs the link. */
bool coll_offload_needs_link(const struct coll_link *link);
/* Takes the links back. -EBUSY: not yet, the kernel still uses one. */
int coll_offload_detach(struct coll_group *group);
/* Takes them back whatever is under way. */
void coll_offload_drop(struct coll_group *group);
/* The group has failed: its runs in the kernel end, and the peers hear of it. */
void coll_offload_fail(struct coll_group *group);
/* The plan goes. */
void coll_offload_forget(struct coll_planned *planned);

#endif
