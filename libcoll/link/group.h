/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A group: ranks that act together, and the links between them. The floors above keep their
 * state of a group here too; this floor knows only the names of its types.
 */
#ifndef COLL_LINK_GROUP_H
#define COLL_LINK_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "libcoll/base/costs.h"
#include "libcoll/base/options.h"

struct coll_circuit_fabric;
struct coll_context;
struct coll_unexpected;
struct coll_exec;
struct coll_levels;
struct coll_link;
struct coll_link_events;
struct coll_own_costs;
struct coll_point_peer;
struct coll_run;
struct coll_samples;
struct coll_survey;
struct coll_planned;

enum { PLANNED_MAX = 256, LATEST_CALLS = 64, RECENT_RUNS = 64 };

enum coll_group_state {
	GROUP_OK,
	GROUP_FAILING,		/* the news is on its way to the other ranks */
	GROUP_FAILED,
};

struct coll_group {
	struct coll_context *context;
	struct coll_group *next, *previous;	/* of all groups, the latest first (groups.h) */
	struct coll_group *next_same;	/* ... in the same slot of the table */
	struct coll_group *next_freed;	/* ... of those that are freed */
	uint64_t id;
	uint32_t rank, ranks;
	uint32_t *cluster;		/* per rank; NULL: all are near each other */
	uint32_t clusters;
	struct coll_levels *levels;	/* of nodes and what they are made of; NULL: none */
	uint32_t *world;		/* rank in the job, per rank */
	enum coll_link_class farthest;	/* of its links (exec/machine.h) */
	struct coll_link **links;	/* per rank, NULL until needed */
	const struct coll_link_events *events;	/* of its links; NULL: the context's */
	struct coll_options options;
	uint32_t open_links;		/* links whose sockets are not closed yet */
	bool own_connections;		/* its links have connections of their own */
	bool watchful;			/* links without expected messages are read too */
	bool freed;			/* by the caller; goes when its links have closed */

	/* Of the exec floor: active runs, planned schedules, unexpected messages. */
	uint32_t next_run;		/* number of the next run */
	uint8_t flight;			/* one more than its entry of the flight page, or 0 */
	uint64_t received;		/* messages of its runs, so far */
	uint32_t recent[RECENT_RUNS];	/* hashes of the latest runs, by number */
	uint32_t splits;		/* so far: names the children */
	uint32_t agrees;		/* so far: names the agreements */
	struct coll_exec *active;	/* in order of start, until idle */
	struct coll_exec **active_end;
	uint32_t draining;		/* of these: completed, but not idle */
	struct coll_planned *planned[PLANNED_MAX];	/* cache, by hash of the call */
	uint8_t latest[LATEST_CALLS];	/* ... its slots, by the arguments that all calls have */
	struct coll_circuit_fabric *fabric; /* NULL: no circuits are planned */
	uint32_t fabric_agreed;		/* version of the fabric that all ranks have */
	uint64_t fabric_asked;		/* rank 0: when the manager was asked */
	bool surveyed;			/* its messages are sampled (exec/survey.h), in: */
	uint32_t unsampled;		/* ... after so many runs more */
	struct coll_samples *samples;	/* NULL until its first run */
	struct coll_own_costs *own;	/* ... and what its own part takes; likewise */
	struct coll_survey *survey;
	struct coll_costs costs;	/* measured, as its options have them where none was given */
	uint32_t costs_agreed;		/* times that they have changed: the same on all ranks */
	struct coll_unexpected *unexpected_free; /* memory to be used again */
	uint64_t unexpected_bytes;	/* of these and of those in use */
	struct coll_group_board *board;	/* its boards (exec/board.h); NULL: it has none */

	/*
	 * Point to point has a group of the same ranks, so that its links carry nothing else
	 * (exec/point_to_point.h). Both fail together.
	 */
	struct coll_group *twin;	/* of each the other; NULL: there is none yet */
	struct coll_point_peer *peers;	/* per rank, in the one for messages; else NULL */
	uint32_t next_source;		/* ... the rank from which any source is looked for */

	/* Its part in /dev/coll (offload.c). */
	struct {
		uint32_t number;
		bool made, gone;	/* it exists there; it did */
		bool attached;		/* all links that are up, and later ones */
		bool partly;		/* not all could be attached: they are to be detached */
		uint32_t running;	/* runs there */
		struct coll_run *waiting, **waiting_end;	/* runs that cannot start yet */
		struct coll_planned *plans;	/* loaded, linked by next_loaded */
	} offload;

	/* Its failure (exec/failure.c). */
	enum coll_group_state state;
	int error;			/* why it failed */
	uint32_t failed_rank, reporter;	/* ranks, or COLL_NONE */
	uint64_t failing_until;
	struct coll_link *lost;		/* the first lost link; the group fails for it ... */
	uint64_t lost_until;		/* ... at this time */
	int lost_error;
	const char *lost_reason;
	uint8_t *failed;		/* per rank: known to have failed */
	char text[256];			/* why it failed, or why the last call did */
	char shown[256];		/* a copy for the application's thread */
};

/*
 * Whether a group has more unexpected messages than it may. Then links are read only where
 * a message is expected; other messages stay with their senders.
 */
static inline bool coll_group_is_full(const struct coll_group *group)
{
	return group->unexpected_bytes > group->options.unexpected_bytes;
}

#endif
