/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * An engine that wraps another and injects faults (engine/inject.h). It is on this floor
 * because it delays reports to runs.
 */
#ifndef COLL_INJECT_ENGINE_H
#define COLL_INJECT_ENGINE_H

#include "libcoll/link/link.h"

/*
 * Wraps the context's open engine as the option `inject` says. received(): coll_exec_received(),
 * for messages that were delayed.
 */
int coll_inject_open(struct coll_context *context,
		     void (*received)(struct coll_exec *exec, uint32_t op));

/* When the next late message is due; COLL_FOREVER: none is late. */
uint64_t coll_inject_due(const struct coll_context *context);

/* A run of this group has started. */
void coll_inject_started(struct coll_group *group);

/*
 * A message is complete. Whether it is reported later: then received() of coll_inject_open() is
 * called at *due.
 */
bool coll_inject_delays(struct coll_link *link, struct coll_exec *exec, uint32_t op, uint64_t *due);

#endif
