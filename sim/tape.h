/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A tape: one rank's part of a whole program, as a schedule that grows. Ops are appended one
 * by one, or whole schedules are inserted. At the end the tapes of all ranks become
 * schedules for sim_open_schedules().
 *
 * Slots of messages do not follow the order of the list as a builder's do: a program's
 * receives may come in another order than the sends. A message has a key instead, equal at
 * both ends, and tapes_finish() assigns slots by the keys.
 */
#ifndef COLL_SIM_TAPE_H
#define COLL_SIM_TAPE_H

#include "core/schedule.h"

struct sim_tape_message {
	u32 from, to;
	u64 key;	/* of all messages from `from` to `to` this one only */
	u32 part;	/* which of the spliced schedule that has this key; else 0 */
	u32 op, line;
	bool at_most;	/* a receive whose buffer may be larger than the message */
};

struct sim_tape {
	const char *name;	/* of the file it was read from, and the line that is read */
	u32 line;
	u32 rank;
	struct coll_op *op;
	u32 *wait;
	struct sim_tape_message *message;
	u32 ops, op_capacity, waits, wait_capacity, messages, message_capacity;
	u32 next_wait;
	int error;		/* -ENOMEM, -E2BIG: nothing is added any more */
};

void tape_free(struct sim_tape *tape);

/* The next op waits for `op`; COLL_NONE means nothing. */
void tape_after(struct sim_tape *tape, u32 op);

/* Each returns the op's index, COLL_NONE after an error. `peer` is another rank. */
u32 tape_send(struct sim_tape *tape, u32 peer, u64 bytes, u64 key);
/* Receives a message of up to `bytes`. */
u32 tape_recv(struct sim_tape *tape, u32 peer, u64 bytes, u64 key);
/* CPU time: a reduction of the application's own, as struct sim_costs has it. */
u32 tape_compute(struct sim_tape *tape, u64 units);
u32 tape_join(struct sim_tape *tape);
u32 tape_connect(struct sim_tape *tape, u32 peer);
u32 tape_release(struct sim_tape *tape, u32 peer);

/*
 * A whole schedule, whose rank i is rank[i] here; it begins when `after` is done.
 * Returns the op that is done when it is over: what is optional and has not begun by
 * then never does, as in a run of its own.
 */
u32 tape_splice(struct sim_tape *tape, const struct coll_schedule *s, const u32 *rank, u32 after,
		u64 key);

static inline bool tape_computes(const struct coll_op *op)
{
	return op->kind == COLL_OP_REDUCE && op->reduction == COLL_USER_REDUCTION;
}

/*
 * Schedules of all ranks, to free() one by one. 0, or -EINVAL: a message has one end
 * only or its ends differ; -ENOMEM, -E2BIG; `why` says where.
 */
int tapes_finish(struct sim_tape *tape, u32 ranks, struct coll_schedule **schedule, char *why,
		 size_t bytes);

#endif
