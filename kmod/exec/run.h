/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A run: one execution of a loaded schedule.
 *
 * A run is completed when its schedule is finished or its group has failed. It is
 * idle when it is completed and no message of it is in flight. Its word is set when
 * it completes; after a failure only once it is idle, because a message that is
 * partly sent goes on from the application's memory.
 */
#ifndef COLL_KMOD_RUN_H
#define COLL_KMOD_RUN_H

#include "load.h"

struct kcoll_run {
	struct list_head node;		/* in group->runs */
	struct kcoll_loaded *loaded;
	u32 number, word;
	bool completed, reported;
	int status;			/* once completed */
	bool stepping;			/* its ops are being started */
	struct list_head fresh;		/* in device->fresh while ops may start at once */
	u32 in_flight;			/* messages queued in links, receives in progress */
	u64 started, deadline, next_ping;
	struct coll_step step;
	struct kcoll_memory *buffer[COLL_BUFFERS];
	u64 offset[COLL_BUFFERS];	/* of byte 0 of the run's buffer in its memory */
	struct kcoll_sending *sends;
	u32 *send_of;			/* per op */
	u8 *arrived;			/* per op: the whole message is here, or kept as unexpected */
	u64 *got;			/* per op: bytes received, reduced or copied so far */
	u64 accounted;
};

/* pool.c: memory of runs */
struct kcoll_run *kcoll_run_take(struct kcoll_loaded *loaded);
/* The run is idle: kept as the spare one, or freed. */
void kcoll_run_give(struct kcoll_run *run);
void kcoll_run_free(struct kcoll_run *run);

/* op.c: the ops of a schedule */
enum kcoll_op_result {
	COLL_OP_BEGUN,		/* in flight; or optional and the peer is gone */
	COLL_OP_COMPLETE,
	COLL_OP_PART,		/* done in part: to be started again */
};

/*
 * Starts an op: enum kcoll_op_result, or a negative errno with the ranks to blame:
 * the peer is gone, or its message is not the one that this schedule wants.
 */
int kcoll_op_start(struct kcoll_run *run, u32 index, u32 *failed_rank, u32 *reporter);
/* If the receive's message is kept as an unexpected one: results as above. */
int kcoll_op_take_unexpected(struct kcoll_run *run, u32 index, u32 *failed_rank, u32 *reporter);
/* Where an address of a schedule is; its buffer is mapped. */
void *kcoll_op_address(const struct kcoll_run *run, u64 place);
/* The memory that a receive's message goes to. */
const struct kcoll_memory *kcoll_op_target(const struct kcoll_run *run, u32 index, u64 *offset);

/* run.c */
int kcoll_run_start(struct kcoll_loaded *loaded, const struct coll_device_run *asked);
int kcoll_run_deadline(struct kcoll_group *group, const struct coll_device_deadline *asked);
struct kcoll_run *kcoll_run_find(const struct kcoll_group *group, u32 number);
/*
 * Starts ops that are ready, until there are none or the run is completed. If the device
 * yields, the thread goes on with them.
 */
void kcoll_run_step(struct kcoll_run *run);
/* The op is complete: its message was sent or received. */
void kcoll_run_op_done(struct kcoll_run *run, u32 op);
/* The receive's message is kept as an unexpected one: the op completes. */
void kcoll_run_take_unexpected(struct kcoll_run *run, u32 op);
/* Makes the run idle if nothing of it is in flight. */
void kcoll_run_maybe_idle(struct kcoll_run *run);
/* Ends the group's runs with this error and tells its peers why. The first failure holds. */
void kcoll_run_fail(struct kcoll_group *group, int error, u32 failed_rank, u32 reporter);
/* All runs of the group end with the error; queued messages are discarded (see kcoll_link_drop). */
void kcoll_run_end_all(struct kcoll_group *group, int error, bool all);

/* wait.c: what runs wait for */
/* The rank that a run waits for first, or COLL_NONE. */
u32 kcoll_run_awaits(const struct kcoll_run *run);
/*
 * The rank that stalls the oldest run, as far as pongs tell: the rank it waits for,
 * or the rank that one waits for. COLL_NONE: none.
 */
u32 kcoll_group_suspect(struct kcoll_group *group);
/* Whether a run in progress sends to the peer or receives from it. */
bool kcoll_link_needed(const struct kcoll_link *link);
/* Whether a receive of any run, started or to come, needs this link. */
bool kcoll_link_awaited(const struct kcoll_link *link);

#endif
