/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The exec floor by itself: fake links below, in place of libcoll/link, and a fake job above.
 * This process is rank 0 of a group of three. A message arrives, and leaves, when a test says so.
 */
#ifndef TESTS_UNIT_EXEC_WORLD_H
#define TESTS_UNIT_EXEC_WORLD_H

#include "core/build.h"
#include "libcoll/exec/run.h"

#define MS 1000000ull

enum {
	RANKS = 3,
	SMALL = 100,			/* sent from the library's copy */
	LARGE = 5000,			/* sent from the application's buffer */
	HASH = 0x1234,			/* of each planned schedule */
	CONTROLS = 64,
};

struct world {
	struct coll_context context;
	struct coll_group *group;
	struct coll_link **links;	/* the group's, per rank */
	uint8_t in[LARGE], out[2 * LARGE];
	uint32_t completed;		/* runs */
	/* What the links were asked to do: the first CONTROLS messages. */
	struct {
		uint32_t opened[RANKS], sent[RANKS], sent_now[RANKS], closed[RANKS];
		struct {
			enum coll_message_kind kind;
			uint32_t rank, run, slot, hash;
		} control[CONTROLS];
		uint32_t controls;
	} asked;
	/* How they answer. */
	uint32_t sends_now;		/* so many messages go at once */
	uint32_t publishes, published;	/* so many chunks may be published; so many were */
	bool refuses;			/* all of them, when it is asked to */
	struct coll_header publication;	/* the latest ... */
	struct coll_published_place place;	/* ... and where it is */
	bool undelivered;		/* the peers' hosts have not acknowledged all */
	uint32_t suspect[RANKS];	/* the answer to a ping; COLL_NONE: nobody */
	bool answers[RANKS];
};
extern struct world w;

void world_begin(void);
/* All is freed: no exec is in use. */
void world_end(void);
/* Until the group has failed and its runs have ended; at most 5 s. */
void poll_until_failed(void);

/* ---- links ------------------------------------------------------------------ */

/* A link gets connections of its own for bulk. */
void streams_begin(struct coll_link *link, uint32_t streams);
/* The connection breaks, of the link or of one of its streams. */
void link_breaks(struct coll_link *link);
/* A closed link, or stream, has no transfer in flight any more. */
void link_detaches(struct coll_link *link);
/* The first message of the queue has been sent, or never will be. */
void message_leaves(struct coll_link *link);
uint32_t controls_to(uint32_t rank, enum coll_message_kind kind);

/* ---- schedules and runs --------------------------------------------------------- */

/* Of rank 0, with IN and OUT of so many bytes; it is built by core/build.h. */
struct coll_build *schedule_begin(uint64_t in, uint64_t out);
/* What coll_planned_get() makes; coll_planned_put() frees it. */
struct coll_planned *schedule_end(void);
/* Sends IN to rank 1 and receives OUT from it. */
struct coll_planned *exchange(uint64_t bytes);
/* Receives OUT from ranks 1 and 2. */
struct coll_planned *gather(uint64_t bytes);
/* Receives OUT from rank 1, and perhaps the same from rank 2. */
struct coll_planned *with_optional_receive(uint64_t bytes);
/*
 * OUT is the sum, as COLL_INT32, of rank 2's message and rank 1's, which is reduced as it arrives as
 * soon as that of rank 2 is there.
 */
struct coll_planned *sum_of_two(uint64_t bytes);

/* ---- messages that arrive ---------------------------------------------------------- */

struct coll_header header_of(uint32_t run, uint32_t slot, uint64_t bytes);
/* A valid header of data has arrived. */
void message_begins(struct coll_link *link, struct coll_header header);
/* At most so many bytes of its payload, of this value. */
void message_brings(struct coll_link *link, uint8_t value, uint64_t bytes);
/* These bytes of its payload, which are not at their place. */
void message_brings_bytes(struct coll_link *link, const uint8_t *data, uint64_t bytes);
/* The rest of its payload. */
void message_ends(struct coll_link *link, uint8_t value);
void message_arrives(struct coll_link *link, struct coll_header header, uint8_t value);

#endif
