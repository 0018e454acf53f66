/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_EXEC_POLL_H
#define COLL_EXEC_POLL_H

#include "libcoll/link/context.h"

/*
 * Polls once: hands work to the engine, waits for something to happen until `deadline`
 * at most (0: does not wait), looks at deadlines and at links that wait for acceptance.
 */
int coll_context_poll(struct coll_context *context, uint64_t deadline);

#endif
