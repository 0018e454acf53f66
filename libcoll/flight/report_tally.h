/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What was lost in the timed runs, added up; report.c has the runs, report_rank.c what follows. */
#ifndef COLL_FLIGHT_REPORT_TALLY_H
#define COLL_FLIGHT_REPORT_TALLY_H

#include "algo/common/algo.h"
#include "report_remedy.h"

enum { REPORT_SENDERS = 8 };		/* of late messages to a rank that are told apart */

/* Of one rank and kind. */
struct loss_tally {
	double ns;		     /* of all ranks that waited */
	struct report_saved saved;
	double in[COLL_COLLECTIVES]; /* of ns */
	double most, noted;	     /* of the run that is looked at; of all runs that had it */
	struct loss_tally *lost_before; /* in that run, if `most` is not 0; NULL: none */
	uint64_t runs, odd;	     /* odd: of those runs, by their numbers */
	struct {
		uint32_t rank;
		double ns;
	} from[REPORT_SENDERS];
};

/* Of a rank: what it waited for in runs that were followed from its end. */
struct loss_waits {
	double ns;			/* of all these runs */
	double lost[COLL_FLIGHT_LOSS_KINDS + 1];	/* the last one: not known */
};

struct report_tally {
	struct coll_flight_report *report;
	const struct coll_flight_job *job;
	struct report_record *record;
	size_t records;
	uint64_t base;
	struct report_flights flights;
	struct loss_tally *of[COLL_FLIGHT_LOSS_KINDS];	/* per index of job->seen */
	struct loss_waits *waits;			/* the same */
	uint32_t *host;					/* ... the number of its host */
	struct report_remedies remedies;
	struct report_blocks blocks;			/* of the losses */
	struct report_took took;			/* of all timed runs on all ranks ... */
	double unknown;					/* ... ns lost in them to what is not known */
	uint64_t runs, followed;			/* ... and each on so many ranks, together */
	double left;					/* ns of the rank that is followed, without a cause */
	/* Of the run that is looked at. */
	struct loss_tally *lost;	/* the latest one, or NULL: lost_before is the one before */
	uint32_t collective;
	size_t follows;		/* the index of the rank that is followed */
	double others;		/* ranks that the mean of all is divided by, for that of all but one */
	double second_began, would_wait; /* for the second: what is not saved without the last */
};

/* All runs, with what is known of their messages and clocks by then. */
struct report_runs coll_report_tally_runs(const struct report_tally *tally);
/* The run that these records are of; then the block ends with it, or not. */
void coll_report_tally_run(struct report_tally *tally, size_t first, size_t end);
void coll_report_tally_end_block(struct report_tally *tally);
/* Of job->seen. False: the rank has no page. */
bool coll_report_index_of(const struct report_tally *tally, uint32_t rank, size_t *index);

/* ---- report_rank.c --------------------------------------------------------- */

/* Fills the report from the sums, the costliest losses first. -ENOMEM. */
int coll_report_rank(struct report_tally *tally);

/* ---- report_without.c ------------------------------------------------------ */

/*
 * What would be saved without each cause of the losses, on all ranks at once; what saves most first. `scale`:
 * seconds of the job, of one ns in timed runs of all ranks. -ENOMEM.
 */
int coll_report_take_without(struct report_tally *tally, struct report_rerun *rerun, double scale);

/* ---- report_choice.c ------------------------------------------------------- */

/* A timed run's time without waiting for late ranks, for the calls that are equal to it. */
void coll_report_choice_run(struct coll_flight_report *report, const struct coll_flight_job *job,
			    const struct report_runs *runs, size_t first, size_t end);
/* What each choice cost, when all runs have been looked at. */
void coll_report_take_regrets(struct coll_flight_report *report);

/* ---- report_nodes.c -------------------------------------------------------- */

/*
 * Sums up the losses, whose causes have been looked for, by node; the costliest first. It leaves the
 * losses sorted by node.
 */
void coll_report_take_nodes(struct report_tally *tally);

#endif
