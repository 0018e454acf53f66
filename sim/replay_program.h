/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The program as read from traces. Private to sim/replay*.c. */
#ifndef COLL_SIM_REPLAY_PROGRAM_H
#define COLL_SIM_REPLAY_PROGRAM_H

#include "replay.h"

enum replay_event_kind { EVENT_CPU, EVENT_SEND, EVENT_RECV, EVENT_WAIT, EVENT_COLLECTIVE };

enum { REPLAY_ANY = -1, REPLAY_NONE = -2 };	/* for a peer or a tag */

struct replay_event {
	u8 kind;		/* enum replay_event_kind */
	u8 collective;		/* enum coll_collective */
	bool nonblocking, commutative;
	u32 line;
	u32 group;		/* of the program */
	s32 peer;		/* rank of the job, REPLAY_ANY, REPLAY_NONE */
	s32 tag;
	u32 root;		/* in the group */
	u32 element;		/* bytes; 0: not in the trace */
	u64 bytes;		/* cpu: nanoseconds */
	u64 took;		/* nanoseconds, as recorded */
	/* Parts of the rank's `list`: events of a wait; a collective's sent and received sizes. */
	u32 sent, sents, received, receiveds;
	u64 message;		/* number of sizes sent or received; 0: none */
	u32 call;		/* collective: its number among its group's */
};

struct replay_member {
	u32 rank, index;	/* of the job, in the group */
};

struct replay_group {
	u64 id;
	u32 nth;		/* number among groups with these ranks and no id */
	u32 ranks;
	u32 *rank;		/* of the job */
	struct replay_member *member;	/* in the order of the job's ranks */
};

struct replay_rank {
	char *name;		/* of the file */
	struct replay_event *event;
	u64 *list;
	u32 events, event_capacity, lists, list_capacity;
	u32 *group;		/* the file's numbers -> the program's, + 1 */
	u32 *calls;		/* per group of the program: collectives so far */
	u32 groups, group_capacity, call_capacity;
};

struct sim_replay {
	u32 ranks, read;	/* of the program; traces read */
	bool alike, matched;
	struct replay_rank *rank;
	struct replay_group *group;
	u32 groups, group_capacity;
};

/* The rank of the job in the group; COLL_NONE: it is not in it. */
u32 replay_group_index(const struct replay_group *group, u32 rank);

/* Room for one more of `count`; doubles. */
bool replay_grow(void **array, u32 *capacity, u32 count, size_t piece);

/* "NAME:LINE: ..." Returns -EINVAL. */
__attribute__((format(printf, 5, 6)))
int replay_wrong(char *why, size_t bytes, const struct replay_rank *rank, u32 line,
		 const char *format, ...);

/* Matches all sends and receives. Errors as replay_add(). */
int replay_match(struct sim_replay *replay, char *why, size_t why_bytes);

#endif
