/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The flight recorder of a context: what it does now and its latest events, in the page of
 * uapi/coll_flight.h. The context's owner writes, anybody who may reads, without a lock.
 *
 * page.c has the page itself, timed.c what runs cost, dump.c files of it, find.c the pages of other
 * processes of this node, process.c what the kernel says of these, cause.c why they wait, wait_graph.c for whom,
 * late.c who calls last again and again.
 *
 * An event costs two stores and no look at the clock: its time is when the engine looked last.
 */
#ifndef COLL_FLIGHT_H
#define COLL_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcoll/base/core_wait.h"
#include "uapi/coll_flight.h"

enum { COLL_FLIGHT_PEER_NONE = 0xffffff };

struct coll_flight {
	struct coll_flight_page *page;
	uint64_t head;			/* events so far */
	uint64_t taken;			/* bits: entries of page->run in use */
	uint64_t strays;		/* ... of these, runs whose call has lost its entry to another one */
	uint32_t groups, calls;		/* entries given so far */
	/* Whose entry it is: a group, a planned call. Only compared. */
	const void *group_of[COLL_FLIGHT_GROUPS], *call_of[COLL_FLIGHT_CALLS];
	bool slow;			/* a run has taken long: the lists are kept */
	uint64_t shown_head;		/* events when they were written */
	uint64_t entered;		/* the application's call has begun a run since; 0: it has not */
	struct coll_core_wait core_wait;	/* of the thread that makes progress */
	uint64_t delay_looked;		/* the time that has been used for asking the kernel for page->delayed */
	uint64_t timed_ns;		/* what the latest timed run took */
	uint32_t timed_next;		/* where to look for a free entry */
	uint64_t drawn_group;		/* the level that was drawn last: of this group's ... */
	uint32_t drawn_block, drawn;	/* ... block of runs, and one more */
	uint64_t stolen[COLL_FLIGHT_TIMED];	/* ns so far, when that run began */
	int fd;				/* -1: nobody else can see the page */
};

/* What a page says of its rank from the beginning on. */
struct coll_flight_rank {
	const char *job, *progress, *engine;
	uint32_t rank, ranks;
	int local_rank, local_ranks;
};

/*
 * Makes the page. Where it cannot be shared it is private memory, and *why says why. -ENOMEM.
 * `shared` false: the user wants it private.
 */
int coll_flight_open(struct coll_flight *flight, const struct coll_flight_rank *rank, bool shared,
		     const char **why);
void coll_flight_close(struct coll_flight *flight);

/* The thread that calls makes progress from now on. */
void coll_flight_own(struct coll_flight *flight);

/* The latest look at the clock. Threads of the application read it when they leave. */
static inline void coll_flight_now(struct coll_flight *flight, uint64_t now)
{
	__atomic_store_n(&flight->page->now, now, __ATOMIC_RELAXED);
}

/* ---- writing --------------------------------------------------------------- */

static inline void coll_flight_event(struct coll_flight *flight, uint64_t now,
				     enum coll_flight_kind kind, uint32_t group, uint32_t run,
				     uint32_t peer, uint32_t op)
{
	struct coll_flight_page *page = flight->page;
	struct coll_flight_event *event = &page->event[flight->head & (COLL_FLIGHT_EVENTS - 1)];

	event->when = (now - page->opened) << 12 | (uint64_t)kind << 6 | group;
	event->what = (uint64_t)run << 48 | (uint64_t)(peer & 0xffffff) << 24 | (op & 0xffffff);
	__atomic_store_n(&page->head, ++flight->head, __ATOMIC_RELEASE);
}

/* A free entry of page->run; COLL_FLIGHT_RUNS: there is none. */
static inline uint32_t coll_flight_run_take(struct coll_flight *flight)
{
	uint32_t entry;

	if (flight->taken == UINT64_MAX)
		return COLL_FLIGHT_RUNS;
	entry = __builtin_ctzll(~flight->taken);
	flight->taken |= 1ull << entry;
	return entry;
}

static inline void coll_flight_run_free(struct coll_flight *flight, uint32_t entry)
{
	if (entry >= COLL_FLIGHT_RUNS)
		return;
	flight->page->run[entry].where = COLL_FLIGHT_FREE;
	flight->taken &= ~(1ull << entry);
	flight->strays &= ~(1ull << entry);
}

/* Where the end of a run with an entry counts: with its call, or with those that have lost their entries. */
static inline struct coll_flight_sum *coll_flight_run_sum(const struct coll_flight *flight, uint32_t entry)
{
	struct coll_flight_page *page = flight->page;

	return flight->strays >> entry & 1 ? &page->past : &page->call[page->run[entry].call].sum;
}

/*
 * An entry for a group or a call, instead of the oldest one. A call with a run in flight keeps its entry, unless
 * all have one: more runs than page->run has entries for.
 */
struct coll_flight_group *coll_flight_group_take(struct coll_flight *flight, const void *owner,
						 uint8_t *entry);
struct coll_flight_call *coll_flight_call_take(struct coll_flight *flight, const void *owner,
					       uint8_t *entry);

/* ---- dumps ------------------------------------------------------------------ */

/* The file written beside takes the place of `path`; after an error it is removed. Returns that. */
int coll_flight_replace(const char *path, const char *beside, int error);

/* A name that comes from outside, a job's: printable ASCII alone, no blanks and no /, so that it can be of a file. */
void coll_flight_make_plain(char *name);
/* Writes `folder`/coll-JOB-RANK.flight, for this user alone. -errno. */
int coll_flight_dump(const struct coll_flight *flight, const char *folder);
/*
 * From now on this signal writes that file. -EBUSY: the process has a handler for it; -EINVAL:
 * the folder's name is too long. The latest context's holds.
 */
int coll_flight_dump_on(struct coll_flight *flight, int signal, const char *folder);
/* ... no more. */
void coll_flight_dump_off(struct coll_flight *flight);

#endif
