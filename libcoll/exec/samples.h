/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * How long messages take, sampled from the traffic of a group (option measure=auto or always), on clocks
 * that nobody has synchronized. Where two ranks of a run send each other a message, each of them
 * takes the time from its own send to the other's arrival. In the sum of both times it does not
 * matter who sent when, nor what the clocks say: two latencies are left.
 *
 * So the times of two ranks have to meet. Each adds its half to the same cell of a table, and the
 * sum of all ranks' tables has the pairs; a tag tells cells with other than two halves. One run of
 * some is sampled, and of it the pairs that a lottery draws: all ranks compute the same from the
 * run's number.
 *
 * A message that waited for its receiver says nothing about the link. Then the receiver waited
 * hardly at all, and both halves say how long it did; also how long it waited for a core, and how
 * long it did not look what had arrived.
 *
 * A message that comes after its run has ended counts as well: where a run ends by what came
 * another way, those would be just the late ones.
 *
 * Fixed memory, no clock of its own. A run that is not sampled pays for a comparison an op.
 */
#ifndef COLL_SAMPLES_H
#define COLL_SAMPLES_H

#include "delays.h"
#include "libcoll/base/costs.h"
#include "libcoll/flight/stolen.h"

struct coll_own_found;

enum {
	/* Runs, one of which is sampled: at least and at most. What it adds is to be little of their time. */
	SAMPLE_OFTEN = 4,
	SAMPLE_SELDOM = 1024,		/* at most, where a call takes less than what its sample adds */
	SAMPLE_RARELY = 4096,
	SAMPLE_CELLS = 120,		/* sampled runs that the table has, the latest */
	SAMPLE_CLASS_SHIFT = 56,
	SAMPLE_ANSWER_NS = 5000,	/* a message is an answer if it goes so long after an arrival */
	SAMPLE_OPEN = 8,		/* exchanges of this rank that have not ended */
};

/* The sum of two halves. */
struct coll_sample_cell {
	int64_t ns;			/* from send to arrival */
	/* ns of the lower rank for its arrival, or SAMPLE_ANSWERED too; << 32: of the higher one. */
	uint64_t waited;
	uint64_t bytes;			/* of each message; << SAMPLE_CLASS_SHIFT: the link's class */
	uint64_t held, away;		/* ns of that in which it had no core; did not look: likewise */
	uint64_t ranks;			/* the lower rank; << 32: the higher one */
	uint64_t run;			/* of the lower rank: what it knows of the run, all know */
	uint64_t begun;			/* ranks that have begun a sampled run for this cell */
	uint64_t tag;			/* SAMPLE_PAIR: of one exchange; 0: of none */
};

#define SAMPLE_PAIR (1ull << 60)
#define SAMPLE_ANSWERED (1ull << 31)

/* What this rank knows of one; times in ns, 0 for what has not happened. */
struct coll_sample_open {
	uint32_t run, peer, class;
	bool used;
	uint64_t sent_bytes, arrived_bytes, sent, posted, arrived;
	uint64_t waited;		/* from `posted` to `arrived`, unless it was there already */
	uint64_t held, away;		/* at `posted`; then from there to `arrived` */
	uint64_t looks;
	uint32_t thread;
};

/*
 * When something happened, for how many ns its thread had waited for a core until then, and had not
 * looked what had arrived: the program was elsewhere. What the first look after a receive was posted
 * finds was there already. Where the account of cores is another thread's, its numbers are no
 * difference.
 */
struct coll_sample_time {
	uint64_t now, held, away;
	uint64_t looks;			/* how often what had arrived was looked at */
	uint32_t thread;		/* whose account it is: a number */
};

struct coll_samples {
	uint32_t rank, ranks;
	uint32_t pairs;			/* of so many that exchange one is drawn */
	uint32_t every;			/* runs, one of which is sampled */
	uint32_t next;
	uint32_t drawn;			/* the next run that is sampled */
	struct coll_sample_open open[SAMPLE_OPEN];
	uint32_t run[SAMPLE_CELLS];	/* whose cells these are */
	struct coll_sample_cell cell[SAMPLE_CELLS];
};

/* Two messages that ranks have sent each other, from the sum of all ranks' cells. */
struct coll_sample {
	enum coll_link_class class;
	uint32_t run, rank[2];
	uint64_t bytes, ns;		/* of each; the mean of both */
	/* ns of each rank for its message; of that, without a core, and without a look. */
	uint32_t waited[2], held[2], away[2];
	bool answered[2];		/* it had the other's message long before it sent its own */
};

/* ns that a rank with a core looked for its message, and it was not there yet. */
uint32_t coll_sample_waited(const struct coll_sample *sample, int half);

/* Neither message waited for its receiver, as far as these times tell. */
bool coll_sample_is_good(const struct coll_sample *sample);

/* What a survey found before this call. */
struct coll_samples_found {
	const struct coll_sample *sample;
	uint32_t samples, call;
	uint32_t ranks;			/* of the group; 0: late ranks are not looked for */
	double seconds;			/* since the one before; 0: not known */
	/* Samples of these runs are whole, and new: from .. until - 1. */
	uint32_t from, until;
	uint32_t recent;		/* samples of runs before this one are old */
	bool looks;			/* calls are long: the ranks looked for how long they had no core */
	bool held;			/* ... and all kernels told them */
	bool own_cores;			/* no rank's threads share a core */
	bool shared;			/* cores are: neither costs nor late ranks are to follow */
	uint32_t told;			/* ranks whose colld has told what others took of their cores; */
	struct coll_stolen stolen;	/* ... of these, in all */
	/* What ranks found of their own sends and reductions, in this survey and those before. */
	const struct coll_own_found *own;
	uint32_t owns;
	/* Calls that a late message held up, and messages of all calls, since the survey before. */
	struct coll_delays_found delays;
	double received, unmissed;	/* unmissed: that were as late, and held up none */
};

void coll_samples_init(struct coll_samples *samples, uint32_t rank, uint32_t ranks);

/* A number that looks random, the same on all ranks: for what they draw alike. */
uint64_t coll_samples_mix(uint64_t value);

/*
 * Of so many runs one is sampled from this one on: a power of two. All ranks say so before the same run. Where
 * that is new the table is empty: it had what was long ago, or soon will be.
 */
void coll_samples_pace(struct coll_samples *samples, uint32_t every, uint32_t run);

/* The same for a run that is not before `drawn`. */
bool coll_samples_begin_drawn(struct coll_samples *samples, uint32_t run);

/* A run begins, later than those before. Returns whether it is sampled; then its cells are empty. */
static inline bool coll_samples_begin(struct coll_samples *samples, uint32_t run)
{
	return (int32_t)(run - samples->drawn) >= 0 && coll_samples_begin_drawn(samples, run);
}

/* Whether the exchange with this peer is drawn in a sampled run. */
bool coll_samples_draw(const struct coll_samples *samples, uint32_t run, uint32_t peer);

/*
 * Of a sampled run and a drawn peer the first message goes out; the first receive is posted, and if that is said
 * again, was before; its message turns out to have been kept, for nothing was waited for; and it has its message.
 */
void coll_samples_sent(struct coll_samples *samples, uint32_t run, uint32_t peer,
		       enum coll_link_class class, uint64_t bytes, uint64_t now);
void coll_samples_posted(struct coll_samples *samples, uint32_t run, uint32_t peer,
			 struct coll_sample_time time);
void coll_samples_kept(struct coll_samples *samples, uint32_t run, uint32_t peer,
		       struct coll_sample_time time);
void coll_samples_arrived(struct coll_samples *samples, uint32_t run, uint32_t peer,
			  enum coll_link_class class, uint64_t bytes, struct coll_sample_time time);

/* Whether a message of this run, which may have ended, belongs to an exchange that is drawn. */
bool coll_samples_want(const struct coll_samples *samples, uint32_t run, uint32_t peer);

/*
 * The exchanges in the sum of the tables, by the sum alone: so all ranks find the same, whatever
 * runs they have begun since. Cells that no honest ranks add up to are left out. Returns their
 * number. Draws more pairs from now on where most cells were empty, fewer where halves of several
 * pairs have met; the table is empty then, as what it had would be judged again.
 */
uint32_t coll_samples_collect(struct coll_samples *samples, const struct coll_sample_cell *sum,
			      struct coll_sample sample[SAMPLE_CELLS]);

#endif
