/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Messages that came before their receive: kept by link, in the order they came,
 * which is nearly always the order they are asked for. Their memory is used
 * again, and given back beyond the option unexpected_bytes.
 */
#ifndef COLL_UNEXPECTED_H
#define COLL_UNEXPECTED_H

#include "libcoll/link/link.h"

/* A message that came before its receive. */
struct coll_unexpected {
	struct coll_unexpected *next;
	struct coll_header header;
	uint64_t capacity;
	uint64_t got;			/* bytes of it that are here */
	bool complete;
	uint8_t data[];
};

/* A place for the message that link->header announces. NULL: no memory. */
struct coll_unexpected *coll_unexpected_keep(struct coll_link *link);

/* The one that the chunk of link->header goes on with, or NULL. */
struct coll_unexpected *coll_unexpected_begun(const struct coll_link *link);

/* The message of this run and slot, if all of it is here, else NULL. */
struct coll_unexpected *coll_unexpected_find(const struct coll_link *link, uint32_t run,
					     uint32_t slot);

/* It has been taken, or is of no use. */
void coll_unexpected_release(struct coll_link *link, struct coll_unexpected *unexpected);

/* Those of runs that are over go. */
void coll_unexpected_drop_completed(struct coll_link *link);

/* With the group. */
void coll_unexpected_free_all(struct coll_group *group);

#endif
