/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Unexpected messages: they arrived before their receive has started. Each link keeps its
 * own, in the order of arrival, which is nearly always the order of the receives. Their
 * memory is used again; beyond the option unexpected_bytes it is freed.
 */
#ifndef COLL_UNEXPECTED_H
#define COLL_UNEXPECTED_H

#include "libcoll/link/link.h"

struct coll_unexpected {
	struct coll_unexpected *next;
	struct coll_header header;
	uint64_t capacity;
	uint64_t got;			/* bytes that have arrived */
	bool complete;
	bool claimed;			/* point to point: a receive waits for the rest of it */
	uint8_t data[];
};

/*
 * Memory for the messages of partners that are one run of this schedule ahead, so that its
 * runs allocate none. A group reserves at most 64 KB, and half of what it may keep. Best
 * effort: what is missing is allocated when a message needs it.
 */
void coll_unexpected_reserve(struct coll_group *group, const struct coll_schedule *schedule);

/* Memory for the message of this header, which comes by the link. NULL: there is none. */
struct coll_unexpected *coll_unexpected_keep(struct coll_link *link, const struct coll_header *header);

/* The message whose next chunk link->header announces, or NULL. */
struct coll_unexpected *coll_unexpected_begun(const struct coll_link *link);

/* The whole message of this run and slot; NULL: it has not arrived. */
struct coll_unexpected *coll_unexpected_find(const struct coll_link *link, uint32_t run,
					     uint32_t slot);

/* It has been received, or is discarded. */
void coll_unexpected_release(struct coll_link *link, struct coll_unexpected *unexpected);

/* Releases messages of runs that have completed, up to the first that may still be needed. */
void coll_unexpected_drop_completed(struct coll_link *link);

/* All of a group that ends. */
void coll_unexpected_free_all(struct coll_group *group);

#endif
