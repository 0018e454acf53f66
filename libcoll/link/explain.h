/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Why the latest call failed: for coll_last_error() and coll_context_error(). */
#ifndef COLL_EXPLAIN_H
#define COLL_EXPLAIN_H

struct coll_context;
struct coll_group;

void coll_context_explain(struct coll_context *context, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* ... and of the group's context. */
void coll_group_explain(struct coll_group *group, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The same for a call that found no memory. A failed group keeps its reason. Returns -ENOMEM. */
int coll_group_no_memory(struct coll_group *group, const char *call);

#endif
