/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A timer that makes coll_fd() readable when the context is to be polled and no other descriptor
 * says so: a deadline, a ping, a peer whose address is to be looked for again. Without it, a
 * program that sleeps on coll_fd() sleeps too long. Made by the first coll_fd().
 */
#ifndef COLL_ALARM_H
#define COLL_ALARM_H

#include "libcoll/link/context.h"

/* Returns 0 or a negative errno. Opened already: does nothing. */
int coll_alarm_open(struct coll_context *context);
void coll_alarm_close(struct coll_context *context);

/*
 * The context is to be polled at `when` (coll_now()), at the latest. A timer that is set to an
 * earlier time stays: it is set again when it expires, so that most calls take no system call.
 */
void coll_alarm_set(struct coll_context *context, uint64_t when);

#endif
