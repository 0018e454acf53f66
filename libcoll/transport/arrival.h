/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * An arrival: a connection or a channel that a peer has made for a link. It waits until its
 * group exists here too, and then becomes part of the link.
 */
#ifndef COLL_ARRIVAL_H
#define COLL_ARRIVAL_H

#include "libcoll/link/link.h"

struct coll_arrival;

struct coll_arrival_ops {
	/* Gives it to a link that will have so many streams. -errno: nothing has changed. */
	int (*attach)(struct coll_arrival *arrival, struct coll_link *link, uint32_t streams);
	/* Notifies the peer that the group has failed, and ends it. */
	void (*notify)(struct coll_arrival *arrival, const struct coll_header *news);
	/* Ends it. With a reason it is refused and counted. */
	void (*drop)(struct coll_arrival *arrival, const char *reason);
	/* Whether the peer has ended it: nothing more will come. */
	bool (*is_ended)(const struct coll_arrival *arrival);
};

struct coll_arrival {
	struct coll_arrival *next, *previous;	/* the latest first */
	bool waits;			/* it is in that list */
	const struct coll_arrival_ops *ops;
	struct coll_context *context;
	uint32_t world;			/* the peer's rank in the job; COLL_NONE: as it says */
	uint64_t group;
	uint32_t from, to;		/* ranks in the group: the peer's, and this one's */
	uint8_t streams, stream;	/* of the link; which one of them, or 0 */
	uint64_t bytes;			/* of memory that it holds while it waits */
};

/* Authenticated: it becomes part of its link, waits for its group, or ends. */
void coll_arrival_add(struct coll_arrival *arrival);
/*
 * It holds so many bytes now. If all that wait hold too many, those of the rank that holds the most are refused from
 * the oldest on, perhaps itself. Harmless when it does not wait.
 */
void coll_arrival_hold(struct coll_arrival *arrival, uint64_t bytes);
/* It has ended by itself. Harmless when it does not wait. */
void coll_arrival_remove(struct coll_arrival *arrival);
/* Attaches those that came for a new group before it existed. */
void coll_arrivals_adopt(struct coll_group *group);
/* Ends all that wait, and forgets the groups below. */
void coll_arrivals_drop(struct coll_context *context);

/*
 * A group has failed, and exists here no more, or never will. Who comes for it later is told so,
 * and who asks; the latest 256 such groups are remembered. Without memory it is forgotten.
 */
void coll_arrivals_bury(struct coll_context *context, uint64_t group,
			const struct coll_header *news);
/*
 * How this group has failed. False: it lives, and `news` has no errno, but may name the rank
 * that is suspected; or it was never heard of.
 */
bool coll_arrivals_news(const struct coll_context *context, uint64_t id, struct coll_header *news);

#endif
