/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * An engine around another that injects what the option `inject` says (engine/inject.h).
 * It stands on this floor, for it delays what runs hear.
 */
#ifndef COLL_INJECT_ENGINE_H
#define COLL_INJECT_ENGINE_H

#include "libcoll/link/link.h"

/* Wraps the context's open engine in one that injects what its options say. */
int coll_inject_open(struct coll_context *context);

/* A run of this group has started. */
void coll_inject_started(struct coll_group *group);

/* A message is complete: its run hears of it now, or when it is due. */
void coll_inject_deliver(struct coll_link *link, struct coll_exec *exec, uint32_t op);

#endif
