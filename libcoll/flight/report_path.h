/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Between the files of the report: a timed run on all of its ranks, on one clock. */
#ifndef COLL_FLIGHT_REPORT_PATH_H
#define COLL_FLIGHT_REPORT_PATH_H

#include "report.h"

/* A record, and what to add to its rank's clock. */
struct report_record {
	const struct coll_flight_timed *run;
	uint32_t rank; /* of the job */
	uint32_t index; /* of job->seen */
	uint32_t host; /* hosts are numbered */
	int64_t offset;
};

/* ns; `base` is near to all times of the job, so that the difference is exact. */
static inline double report_time(const struct report_record *record, uint64_t base, uint64_t time)
{
	return (double)(int64_t)(time + record->offset - base);
}

static inline double report_began(const struct report_record *record, uint64_t base)
{
	return report_time(record, base, record->run->began);
}

/* NULL: they exchanged nothing that was timed. */
static inline const struct coll_flight_exchange *
report_exchange(const struct coll_flight_timed *run, uint32_t peer)
{
	uint32_t i;

	for (i = 0; i < run->exchanges; i++)
		if (run->with[i].peer == peer)
			return &run->with[i];
	return NULL;
}

enum {
	REPORT_WAITED_NS = 2000,	/* a receive that waited less had its message at once */
	REPORT_LATE_TIMES = 5,		/* a message that takes longer than usual by that is late, as for `measure=auto` */
};

static inline bool report_waited(const struct coll_flight_exchange *with)
{
	return with->arrived && with->posted && with->arrived > with->posted &&
	       (uint64_t)(with->arrived - with->posted) * COLL_FLIGHT_TICK >= REPORT_WAITED_NS;
}

/* ---- report_sums.c ------------------------------------------------------- */

/* A page from a file may say anything: of one job, and times of at most 100 years. */
bool coll_report_pages_fit(const struct coll_flight_job *job);
/* All that is summed over all runs. */
void coll_report_take_sums(struct coll_flight_report *report, const struct coll_flight_job *job);
/* With the shortest runs, which are known when the timed ones have been looked at. */
void coll_report_take_least(struct coll_flight_report *report);
/* Of all ranks. */
struct coll_flight_sum coll_report_ended_runs(const struct coll_flight_report *report);

/* ---- report_flight.c ----------------------------------------------------- */

/* What a message of equal calls usually takes, between ranks of one host, or of two. */
struct report_usual {
	uint32_t collective;
	uint64_t bytes;
	double ns[2]; /* [1]: of two hosts */
	/* All that came; of those that were waited for: those that took many times as long ... */
	uint64_t messages, late;
	/* ... and what they took longer. */
	double late_ns;
};

struct report_flights {
	struct report_usual *usual;
	size_t count;
};

/*
 * From all records, sorted by run; [first, end) of them are one. The usual time is the lower
 * quartile of the pairs' medians: most pairs may be slow, but not all. -ENOMEM.
 */
int coll_report_flights_find(struct report_flights *flights, const struct report_record *records,
			     size_t count, uint64_t base);
double coll_report_usual_ns(const struct report_flights *flights,
			    const struct coll_flight_timed *run, bool far);
/* Of one run's records, which are sorted by rank. NULL: it has none. */
const struct report_record *coll_report_of_rank(const struct report_record *first, size_t count,
						uint32_t rank);
/* Whether two records are of one run. */
bool coll_report_same_run(const struct report_record *a, const struct report_record *b);

/* ---- report_saved.c ------------------------------------------------------ */

/*
 * Sums over blocks of runs: runs of one block are not independent of each other. Of all ranks, ns;
 * `block` is of the one that is looked at.
 */
struct report_took {
	double ns, squares, block;
	uint64_t blocks;
};

/* ... what would be saved without a loss; with_took: each block's, times what it took. */
struct report_saved {
	double ns, squares, with_took, block;
	bool open;			/* something was added in the block that goes on: */
	struct report_saved *next;	/* the next one that is open, or NULL */
};

/* Those that are open. A job of many small groups has many blocks, of few ranks each. */
struct report_blocks {
	struct report_saved *first;
};

/*
 * Standard errors to both sides of a mean that nine of ten are within: Student's t by two terms of
 * its series, to 1 % from 4 degrees of freedom on.
 */
double coll_report_nine_of_ten(double freedom);
/* To what is saved in the block that goes on. */
void coll_report_saved_add(struct report_blocks *blocks, struct report_saved *saved, double ns);
/* All losses first, then the time. */
void coll_report_saved_end_block(struct report_saved *saved, const struct report_took *took);
/* ... of all that are open. */
void coll_report_blocks_end(struct report_blocks *blocks, const struct report_took *took);
void coll_report_took_end_block(struct report_took *took);
/* Seconds of the job, none of them negative; least and most -1: there are too few blocks. */
struct report_interval {
	double mean, least, most;
};

/* What is saved of the job's `seconds`, and between what; `scale`: seconds of it, of one ns here. */
struct report_interval coll_report_interval(const struct report_saved *saved,
					    const struct report_took *took, double scale,
					    double seconds);

/* ---- report_path.c ------------------------------------------------------- */

/*
 * So many ns of the time of the rank that is followed. `from`: who sends, or the rank itself: it was
 * before its call; COLL_FLIGHT_NO_RANK: in it.
 */
typedef void report_lost(void *argument, enum coll_flight_loss_kind kind, uint32_t rank,
			 uint32_t from, double ns);

/* All records, sorted by group, number and rank. */
struct report_runs {
	const struct report_record *record;
	size_t count;
	uint64_t base;
	const struct report_flights *flights;
	double blur; /* ns: of two hosts' clocks; what is less is not known to be a loss */
};

/* The record of this rank, of the run of another record or, with `back` 1, the one before. */
const struct report_record *coll_report_find(const struct report_runs *runs,
					     const struct report_record *of, uint32_t back,
					     uint32_t rank);

/* Behind the last record of the run whose first one this is. */
size_t coll_report_run_end(const struct report_runs *runs, size_t first);
/* Whether nothing is known of the run before: it is the first that was timed of its block. */
bool coll_report_is_first(const struct report_runs *runs, const struct report_record *record);
/* Whether the records are of one block of runs. */
bool coll_report_same_block(const struct report_record *a, const struct report_record *b);

/* Follows the path of a rank back from its end. */
void coll_report_follow(const struct report_runs *runs, const struct report_record *from,
			report_lost *lost, void *argument);

#endif
