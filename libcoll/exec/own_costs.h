/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What this rank's own sends, receives and reductions take (option measure=auto or always): the overhead, the
 * gap of a byte and gamma. They are local, so no two halves have to meet: in a sampled run (samples.h) the
 * rank looks at the clock before and after.
 *
 * A send that a link takes at once took o + n G. One that is queued ends when its bytes have gone; those
 * queued until then are a *burst*, and count as that many sends of mean length and time. Whoever waited
 * meanwhile, or worked at something else, did not only send. So such a burst counts for nothing; but between
 * nodes, where its messages are so long that they fill the socket: then the time is the wire's, which is G
 * there, unless a channel of a shared connection waited for its reader. What a core copies into a socket is not
 * the time in which the wire can carry nothing else.
 *
 * Who takes a message that is there pays for it, too, and algorithms count the overhead at both ends: the
 * longer one is it. What a socket's receive takes is not seen here.
 *
 * Each rank fits its latest sends, a level each (base/fit.h), and writes what it finds into a slot
 * of the survey's sum. Of more ranks than slots some are drawn, by the call's number, spread over all.
 *
 * Fixed memory, no clock of its own but in coll_own_init() and coll_own_gamma(). A run that is not sampled pays for
 * a comparison a long reduction or copy.
 */
#ifndef COLL_OWN_COSTS_H
#define COLL_OWN_COSTS_H

#include "libcoll/base/costs.h"
#include "libcoll/link/link.h"

enum {
	OWN_SENDS = 64,			/* of a level, the latest */
	OWN_SUMS = 32,			/* reductions, the latest */
	OWN_A_RUN = 4,			/* bursts, receives and reductions of a run: more do not tell more */
	OWN_LEAST = 8,			/* fewer may all have been held up */
	OWN_SLOTS = 16,			/* ranks that a survey asks */
	OWN_KEPT = 4,			/* surveys that count where there are more ranks */
};

struct coll_own_message {
	uint32_t run;
	bool waited;			/* for the socket to take all of it */
	double bytes, seconds;
};

struct coll_own_messages {
	struct coll_own_message latest[OWN_SENDS];
	uint32_t count;			/* so far */
};

struct coll_own_sum {
	uint32_t run;
	double per_byte;
};

/* A look at what may keep a rank from sending. */
struct coll_own_time {
	uint64_t now;
	uint64_t looks, recvs;		/* so far: for what has arrived; messages that have */
	uint64_t grants;		/* times that a channel had to wait for its reader */
	uint32_t blocked;		/* channels that wait for theirs now */
};

/* Sends that have not all gone. */
struct coll_own_burst {
	struct coll_own_time since;
	uint32_t run, sends, left;	/* left 0: there is none */
	enum coll_level_kind level;
	uint64_t bytes;
	bool spoilt;			/* it says nothing */
};

struct coll_own_costs {
	uint32_t clock_ns;		/* that a look at the clock takes */
	uint32_t run, bursts, takes, reductions;	/* of the latest run, those that were looked at */
	struct coll_own_burst burst;
	struct coll_own_messages send[COLL_LEVELS_MAX], take[COLL_LEVELS_MAX];
	struct coll_own_sum sum[OWN_SUMS];
	uint32_t sums;
	struct coll_link_events events;	/* the group's, as long as a burst is under way */
};

/* What a rank has found; seconds, 0: not known. */
struct coll_own_found {
	double overhead[COLL_LEVELS_MAX], byte_gap[COLL_LEVELS_MAX], gamma;
};

/* The same in a sum of all ranks: 16 bits a number, and how many ranks have written. */
struct coll_own_slot {
	uint64_t word[2];
};

void coll_own_init(struct coll_own_costs *own);

/* ---- a sampled run ------------------------------------------------------------ */

/* Whether one more of which there were `so_far` in its run tells anything: then its clock is looked at. */
static inline bool coll_own_wants(const struct coll_own_costs *own, uint32_t run, uint32_t so_far)
{
	return own->run != run || so_far < OWN_A_RUN;
}

/* A link took a message at once. */
void coll_own_sent(struct coll_own_costs *own, uint32_t run, enum coll_link_class class, uint64_t bytes,
		   uint64_t ns);
/* A message was taken that was there. */
void coll_own_took(struct coll_own_costs *own, uint32_t run, enum coll_link_class class, uint64_t bytes,
		   uint64_t ns);
/* A message is about to be queued. Returns whether a burst is under way, whose end is looked for. */
bool coll_own_queued(struct coll_own_costs *own, uint32_t run, enum coll_link_class class, uint64_t bytes,
		     struct coll_own_time time);
/* A message of this run has gone. Returns whether no burst is under way now. */
bool coll_own_gone(struct coll_own_costs *own, uint32_t run, struct coll_own_time time);
/* This rank works at something else. */
void coll_own_disturb(struct coll_own_costs *own);
/* A reduction of so many bytes took so long. */
void coll_own_reduced(struct coll_own_costs *own, uint32_t run, uint64_t bytes, uint64_t ns);

/* ---- a survey ------------------------------------------------------------------- */

/* Seconds a byte of a sum of so many bytes of doubles, by itself, as often as said; 0: no memory. */
double coll_own_gamma(size_t bytes, uint32_t rounds);

/* What the sends and reductions of runs from `recent` on tell, by a machine with these costs. */
struct coll_own_found coll_own_fit(const struct coll_own_costs *own, const struct coll_machine *machine,
				   uint32_t recent);

/* The slot that a rank has in the survey of this call; COLL_NONE: it has none. */
uint32_t coll_own_slot_of(uint32_t rank, uint32_t ranks, uint32_t call);
struct coll_own_slot coll_own_write(const struct coll_own_found *found);
/* False: not exactly one rank has written. A number that no honest rank writes is not known. */
bool coll_own_read(const struct coll_own_slot *slot, struct coll_own_found *found);

#endif
