/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The ops of a plan as a list: each comes after those it waits for, sends as soon as they may, a
 * receive only when nothing else is left to do, and of several receives the first of the schedule.
 * Ranks that all go through their lists, and wait in each receive until its message is there, come
 * to their ends: no algorithm of ours has lists that wait for each other (tests/unit/in_order_test.c).
 */
#ifndef COLL_EXEC_ORDER_H
#define COLL_EXEC_ORDER_H

struct coll_planned;

/*
 * Makes it, planned->order, for a schedule whose messages all go straight, without a long publication, whose
 * ops are few and all needed, and which calls no function of the user's: that may take any time, or not
 * return. Without memory there is none.
 */
void coll_order_make(struct coll_planned *planned);

#endif
