/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Short messages of a call by boards (libcoll/engine/board.h): sends of the same bytes, or of as many each, that start
 * together, of a call that could be executed in order (in_order.h), are posted in one write, if two ranks or more read
 * it. All else goes by rings. A receiver does not know which: a message may come either way.
 *
 * Who executes a run in order looks at the boards, then at the rings. One that is the engine's looks at them when a
 * receive starts, while its caller waits or polls, and no more before the thread sleeps, or does not come back by
 * itself (board_runs.c): then it *leaves*. It says so on its own board, looks once more, and keeps what was posted for
 * it as unexpected messages; from then on it needs no board for that run. So nobody that sleeps is told by a board.
 *
 * Who leaves a run has left all earlier ones: `from` is one number. An entry is there until no active run may read it.
 */
#ifndef COLL_EXEC_BOARD_H
#define COLL_EXEC_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "planned.h"

struct coll_context;
struct coll_exec;
struct coll_group;
struct coll_header;

/* A group's. */
struct coll_group_board {
	struct coll_board *shared;
	uint32_t next;			/* nothing was posted from this run on */
	uint32_t eager;			/* runs that look for peers' boards yet; then one of some does */
	uint32_t first;			/* of the latest entry, with its ... */
	uint32_t completed;		/* ... runs that these had completed, as it was seen last */
	uint64_t readers;
	/* Per rank, once it was found: the peer's board, and whether that reads this one. Until the link closes. */
	struct coll_board_peer {
		const struct coll_board *board;
		bool reads;
	} peer[];
};

/* A peer that maps nothing is not asked in each call. */
enum { COLL_BOARD_TRIES = 64 };

/* Whether calls of this plan are to have a board: planned->board_tries. */
bool coll_board_suits(const struct coll_planned *planned);
/*
 * A call of such a plan is to begin: the group gets its board, and peers are told. When that is done
 * planned->board_tries is 0, and the next runs look for the peers' boards. Waits for nothing. Costs what it takes to
 * make the region once, and a message to each peer.
 */
void coll_board_join(struct coll_planned *planned);
/* A link is up: its peer is told of boards, if the group has one. */
void coll_board_tell(const struct coll_link *link);

/* ---- of a group that has a board, in order -------------------------------------------- */

/*
 * The first send of a publication starts, in order. Those whose peers need no message any more, which the caller
 * tells: bits of exec->ahead. Costs a line of each reader's board, and a full barrier.
 */
uint64_t coll_board_send(struct coll_exec *exec, uint32_t first);
/* Whether the message for this receive was posted: it has been taken to where it belongs. */
bool coll_board_take(struct coll_exec *exec, uint32_t op);
/* A run that was executed in order is done. */
void coll_board_end(struct coll_exec *exec);

/* ---- runs that are the engine's -------------------------------------------------------- */

/*
 * A run is one of its group's active ones, and no op of it is done by the engine. It reads boards, or leaves: if
 * `sleeps`, and where something else than its caller may wait for it. One without short receives does neither.
 */
void coll_board_begin(struct coll_exec *exec, bool sleeps);
/* As coll_board_take(), for a receive that has started, of a run that reads boards. */
bool coll_board_take_awaited(struct coll_exec *exec, uint32_t op);
/*
 * The context is polled: takes what was posted for its runs; if there is nothing, and the thread may sleep, all leave.
 * Whether anything has come, after which runs may have ended.
 */
bool coll_board_poll(struct coll_context *context, bool sleeps);
/* All runs of the group leave. Some may end by that. Costs a barrier. */
void coll_board_leave(struct coll_group *group);
/*
 * The run has left, or has completed: from then on it reads no board, if it has before. Tells peers, now and then, of
 * which runs no entry is read any more.
 */
void coll_board_read_no_more(struct coll_exec *exec);

/* For board_runs.c: it reads boards from now on. */
void coll_board_read(struct coll_exec *exec);
/* ... peers' boards are looked for; `hears`: nothing is being received. */
void coll_board_find_peers(const struct coll_exec *exec, bool hears);
/* ... of which runs no entry is read any more. */
void coll_board_tell_completed(const struct coll_group *group);
/* ... what this peer has posted for a run that leaves is kept. The op that it is for; COLL_NONE: there is none. */
uint32_t coll_board_keep_posted(const struct coll_exec *exec, uint32_t peer);

/* ---- of any group ---------------------------------------------------------------- */

/* Whether this message, of a run that is the engine's, has come by a board. */
bool coll_board_has_brought(const struct coll_exec *exec, const struct coll_link *link,
			    const struct coll_header *header);
/* The link closes: what was posted for runs to come is kept. */
void coll_board_keep(struct coll_link *link);

/* 2^31 runs of the group were begun: entries of the 2^32nd before must not be taken for new ones. */
void coll_board_forget(struct coll_group *group);
/* The group is freed by the application, or a peer has left it: it waits for none of the earlier runs. */
void coll_board_rest(struct coll_group *group);
void coll_board_free(struct coll_group *group);

#endif
