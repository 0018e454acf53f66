/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Executing a planned schedule. An op that is ready becomes a message on a link, a receive
 * that its link expects, or work that is done at once.
 *
 * An exec is *running* from its begin until its schedule is finished or its group has failed. It is
 * *completed* while queues, links or kernel requests still refer to its memory, then *idle*: on
 * its plan's spare list, for another run. Until it is idle it is among its group's active ones,
 * unless it is executed in order (in_order.h).
 */
#ifndef COLL_EXEC_H
#define COLL_EXEC_H

#include "core/match.h"
#include "libcoll/link/link.h"
#include "planned.h"

enum {
	IN_ORDER_MAX = 64,		/* ops of a schedule executed in order: bits of exec->ahead */
	LONG_WORK_BYTES = 4096,		/* a reduce or copy that the flight recorder tells, and samples */
};

enum coll_exec_state {
	EXEC_IDLE,
	EXEC_RUNNING,
	EXEC_COMPLETED,			/* its result is known */
};

/* Of a message, point to point: each is an exec of its own. */
enum coll_point_state {
	POINT_SENT,			/* it goes with what the peer lets this rank send unasked */
	POINT_OFFERED,			/* the peer was asked */
	POINT_SENDING,			/* the peer has agreed */
	POINT_POSTED,			/* a receive without its message */
	POINT_ARRIVING,			/* ... with it; its payload is on the way */
	POINT_GRANTED,			/* ... the sender was told to send it */
};

struct coll_envelope {
	enum coll_point_state state;
	uint32_t rank;			/* the other one; COLL_NONE: any, until there is a message */
	int32_t tag;			/* COLL_ANY_TAG: any, until there is a message */
	uint32_t number;		/* of the message between the two ranks */
	uint64_t bytes;			/* of the message */
};

struct coll_exec {
	struct coll_exec *next;		/* in group->active or planned->spare */
	struct coll_exec **slot;	/* while it is active: what names it in group->active */
	struct coll_group *group;
	struct coll_planned *planned;
	struct coll_run *run;		/* the handle that waits for it, or NULL */
	uint32_t number;
	uint8_t flight;			/* its entry of the flight page */
	uint16_t timed;			/* ... of timed runs and one more; 0: it is not timed */
	uint32_t age;			/* among all runs of the context; lower is older */
	enum coll_exec_state state;
	int status;			/* once completed */
	uint32_t in_flight;		/* references from queues, links and the engine */
	uint64_t started, deadline, pinged, checked;
	bool held;			/* completed, and a caller waits until it is idle */
	bool stepping;			/* ops are being started right now */
	bool in_order;			/* it is executed so (in_order.h): its step says nothing */
	bool sampled;			/* the times of its messages are looked at (samples.h) */
	bool reads_boards;		/* it is active, and looks at them (board.h) */
	struct coll_step step;
	uint64_t ahead;			/* bits: ops done before the step comes to them */
	uint8_t *buffer[COLL_BUFFERS];
	struct coll_engine *scratch_of;	/* its arena has the scratch; NULL: malloc() has */
	struct coll_envelope envelope;
	struct coll_message *messages;	/* one per send op */
	uint32_t *message_of;		/* per op */
	uint32_t *cursor;		/* per peer: lowest slot that has not arrived */
	uint32_t *posted;		/* per peer: receives started, not arrived */
	uint32_t *connects;		/* per peer and direction: connect ops so far */
	uint8_t *arrived;		/* per op: the message has arrived */
	uint8_t *fused;			/* per op: it is reduced as it arrives (fused.h) */
	uint64_t *got;			/* per op: bytes that have arrived */
	uint64_t *posted_at;		/* per op: when it started; NULL without injection */
};

/* A call of this collective, without its arguments. */
struct coll_call coll_call_of(const struct coll_group *group, enum coll_collective collective);

struct coll_user_op {
	coll_function *function;
	void *argument;
	bool commutative, used;
};

/*
 * Opens the links of a schedule that this rank connects. With `exec`: those that wait for
 * no circuit.
 */
void coll_exec_open_links(const struct coll_planned *planned, const struct coll_exec *exec);
/*
 * A run's exec, as its group's next one, without a step done. -ENOMEM, or the error with which
 * the group has failed.
 */
int coll_exec_begin(struct coll_run *run, uint64_t deadline, struct coll_exec **begun);
/* Starts a run, which may complete at once. */
int coll_exec_start(struct coll_run *run, uint64_t deadline);
/*
 * For in_order.h: the next exec of the plan's group, which has not failed, for a call that blocks. It
 * is not active, and has no run. Until it ends or is adopted the engine must not be advanced: it would
 * take messages for it for those of a run that is over. NULL: no memory.
 */
struct coll_exec *coll_exec_begin_in_order(struct coll_planned *planned, void *in, void *out);
/*
 * The engine goes on with it: it is the exec of this run, which has no plan yet. It may complete at
 * once.
 */
void coll_exec_adopt(struct coll_run *run, struct coll_exec *exec);
/* Does the ops of an active exec that are ready, until none is or it has completed. */
void coll_exec_step(struct coll_exec *exec);

/* ---- single ops, for in_order.h --------------------------------------------- */

/* A send whose message the peer can have now. False: nothing was sent. */
bool coll_exec_send_now(struct coll_exec *exec, uint32_t op);
/*
 * The first send of a publication that boards are for. What is posted for others is done with it: bits of exec->ahead.
 * Whether this send's peer needs no message any more.
 */
bool coll_exec_send_by_board(struct coll_exec *exec, uint32_t first);
/*
 * What there is for a receive in the memory that this process shares with its peer. The message, if
 * it is the next one there, is taken to where it belongs. OTHER: something that is for the engine,
 * or the peer is not reached through memory.
 */
enum coll_look coll_exec_take_next(struct coll_exec *exec, uint32_t op);
/* The same of a sampled run: its time, and what this rank takes for it (own_costs.h), are noted. */
bool coll_exec_send_now_sampled(struct coll_exec *exec, uint32_t op);
/*
 * A receive of a sampled run begins. Returns the time if the rank is to note what its first look takes, which then
 * finds the message; else 0.
 */
uint64_t coll_exec_post_sampled(struct coll_exec *exec, uint32_t op);
void coll_exec_took_sampled(struct coll_exec *exec, uint32_t op, uint64_t before);
/* Of a send's message. */
struct coll_header coll_exec_header(const struct coll_exec *exec, const struct coll_op *send);
/* A reduce or a copy. Before one that takes long, peers are woken. */
void coll_exec_compute(struct coll_exec *exec, uint32_t op);
/*
 * The whole message of a receive goes to where it belongs, or is reduced (fused.h). Before one that is long, peers are
 * woken.
 */
void coll_exec_store(struct coll_exec *exec, uint32_t recv, const uint8_t *data);
void coll_exec_count_recv(struct coll_exec *exec, const struct coll_op *recv);

/* ---- messages ----------------------------------------------------------------- */

/* A message for a started receive is complete. It is reported now or, when injected, later. */
void coll_exec_deliver(struct coll_link *link, struct coll_exec *exec, uint32_t op);

/* A started receive has its bytes, or a connect op its circuit. */
void coll_exec_received(struct coll_exec *exec, uint32_t op);
/* All bytes of a receive have arrived. It may be reported later. */
void coll_exec_arrived(struct coll_exec *exec, uint32_t op);
/* If the message for this started receive is here already, takes it. */
bool coll_exec_take_unexpected(struct coll_exec *exec, uint32_t op);
/* coll_exec_take_next() for a started receive, and its board. With a message the exec may have ended. */
enum coll_look coll_exec_look(struct coll_exec *exec, uint32_t op);
/* Its board alone. */
bool coll_exec_take_from_board(struct coll_exec *exec, uint32_t op);
/* A message has begun to arrive that no run needs any more. */
void coll_exec_stale(const struct coll_link *link, const struct coll_header *header);
/* A message has gone out, so its memory is free again. */
void coll_exec_sent(struct coll_message *message);

/* The lowest slot from this peer whose receive has started and whose message has not arrived. */
bool coll_exec_awaits(const struct coll_exec *exec, uint32_t peer, uint32_t *op);
/* The op that the link's next message is most likely for: oldest run, lowest slot. */
struct coll_exec *coll_exec_expecting(struct coll_link *link, uint32_t *op);
/* The active exec of this number, or NULL. */
struct coll_exec *coll_exec_find(const struct coll_group *group, uint32_t number);
/* Whether the run of this number has completed: its messages are stale. */
bool coll_run_has_completed(const struct coll_group *group, uint32_t number);

/*
 * Whether a run needs a message that the link still has to receive or to send. Costs the
 * ops of all active runs.
 */
bool coll_exec_needs_link(const struct coll_link *link);

/* All runs of a group complete with this error. They are idle when nothing is in flight. */
void coll_exec_fail_all(struct coll_group *group, int error);

/* A queue, a link or the engine refers to the memory of a running exec. */
void coll_exec_get(struct coll_exec *exec);
/* That reference is gone. coll_exec_maybe_idle() follows, at once or after more work. */
void coll_exec_put(struct coll_exec *exec);
/* Makes a completed exec idle when nothing refers to it any more. */
void coll_exec_maybe_idle(struct coll_exec *exec);
void coll_exec_free(struct coll_exec *exec);

/* A reusable exec of this plan, or a new one. NULL: no memory. coll_exec_reset() is to follow. */
struct coll_exec *coll_exec_take(struct coll_planned *planned, bool injected);
/* No op is done. */
void coll_exec_reset(struct coll_exec *exec);

/* The one place where its state changes: IDLE -> RUNNING -> COMPLETED -> IDLE. */
void coll_exec_set_state(struct coll_exec *exec, enum coll_exec_state state);

/* Its schedule is finished, or its group has failed. */
void coll_exec_complete(struct coll_exec *exec, int status);
/* The schedule of one that was never active is finished: it is idle. */
void coll_exec_end(struct coll_exec *exec);

/* Whether the peer sends and receives no more. Messages that arrived before still count. */
static inline bool coll_exec_link_is_gone(const struct coll_link *link)
{
	return link->state == LINK_LEFT || link->state == LINK_CLOSED;
}

static inline const struct coll_op *coll_exec_op(const struct coll_exec *exec, uint32_t op)
{
	return &coll_ops(exec->planned->schedule)[op];
}

/* Of a send or a receive. */
static inline struct coll_link *coll_exec_link(const struct coll_exec *exec, uint32_t op)
{
	return exec->planned->links[coll_exec_op(exec, op)->peer];
}

/* Whether the op was done in order, before the engine went on with the exec. */
static inline bool coll_exec_is_ahead(const struct coll_exec *exec, uint32_t op)
{
	return op < IN_ORDER_MAX && exec->ahead >> op & 1;
}

/* Where an address of the schedule is in this process's memory. */
uint8_t *coll_exec_address(const struct coll_exec *exec, uint64_t address);

#endif
