/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Short messages of a call by boards (libcoll/engine/board.h): sends of the same bytes that start together, of
 * a blocking call that is executed in order (in_order.h), are posted in one write, if two ranks or more read it.
 * All else goes by rings. A receiver does not know which: a message may come either way.
 *
 * Who executes a run in order looks at the boards, then at the rings. Who does not says so on its own board
 * before the first op, and keeps what was posted for it as unexpected messages; from then on it needs no board
 * for that run. So nobody that sleeps, or does other work, is told by a board.
 */
#ifndef COLL_EXEC_BOARD_H
#define COLL_EXEC_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "planned.h"

struct coll_exec;
struct coll_header;

/* A group's. */
struct coll_group_board {
	struct coll_board *shared;
	uint32_t index;			/* of it */
	uint32_t next;			/* nothing was posted from this run on */
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

/* Whether calls of this plan are to have a board: planned->boards. */
bool coll_board_suits(const struct coll_planned *planned);
/*
 * A call of such a plan is to begin, and none is under way in its context: the group gets its board, and peers
 * are told. When that is done planned->boards is 0.
 */
void coll_board_join(struct coll_planned *planned);

/* ---- of a group that has a board, in order -------------------------------------------- */

/*
 * The first send of a publication starts, in order. Those whose peers need no message any more, which the caller
 * tells: bits of exec->ahead. Costs a line of each reader's board, and a full barrier.
 */
uint64_t coll_board_send(struct coll_exec *exec, uint32_t first);
/* Whether the message for this receive was posted: it has been taken to where it belongs. */
bool coll_board_take(struct coll_exec *exec, uint32_t op);
/* A run that was executed in order is done. */
void coll_board_end(const struct coll_exec *exec);

/* ---- of any group ---------------------------------------------------------------- */

/* The engine goes on with this exec, before it does any op. */
void coll_board_leave(struct coll_exec *exec);
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
