/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Waiting for short messages straight at the memory that two processes share (coll_exec_look()): a
 * message that is the next one there needs no turn of the engine and none of the mux, which cost as
 * much as all the rest of a call of 8 bytes. Whatever else is there, or comes, the next poll finds,
 * as ever.
 *
 * A receive that starts looks, too. So a rank whose messages are always there would never poll:
 * coll_straight_is_due() says when it is time.
 */
#ifndef COLL_STRAIGHT_H
#define COLL_STRAIGHT_H

#include "exec.h"

/*
 * Waits shortly for a message that a running exec awaits: as long as a poll looks before it
 * sleeps, but at most 50 us. Whether any was taken; false also where something is for the engine to do.
 */
bool coll_straight_await(struct coll_exec *exec);

/* Such a wait by hand: while now < until, go on after each look that found nothing. */
struct coll_straight_wait {
	uint64_t now, yields_from, until;
};
void coll_straight_begin(struct coll_straight_wait *wait, struct coll_engine *engine);
/* Yields, if the wait is as old as that. It is `now` then. */
void coll_straight_go_on(struct coll_straight_wait *wait, struct coll_engine *engine);

/* Whether there was no poll for so long that peers may miss an answer. */
bool coll_straight_is_due(const struct coll_context *context);

#endif
