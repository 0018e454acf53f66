/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The timed runs once more, as if something had been otherwise: each rank computes between its calls and in
 * them for as long as it did, and waits for a message if that is not there yet. So what all ranks lose to one
 * cause, or to each other, is taken away from all at once, and what is left decides.
 */
#ifndef COLL_FLIGHT_REPORT_RERUN_H
#define COLL_FLIGHT_REPORT_RERUN_H

#include "report_path.h"

/* Of a rank, what would be otherwise. */
struct rerun_less {
	double stolen;			/* the part of its time without a core that it has back */
	double late;			/* before a call it takes no longer than the others, or by this part less */
	bool messages;			/* those to it take no longer than is usual */
};

struct rerun_rank {
	double actual, instead;		/* where it is, ns: as it was, and as it would be */
	double held;			/* ns without a core that were not met yet in this run */
	double gap, work;		/* before the run: since the run before, and of that not without a core */
};

struct rerun_event {
	double time;			/* as it was */
	uint32_t at;			/* the rank's place in the run */
	uint8_t exchange;
	bool arrived;			/* or sent */
};

/* A message, when it would have been sent; and what its sender was without a core from then on. */
struct rerun_sent {
	double instead, held;
};

struct report_rerun {
	const struct report_runs *runs;
	double *usual_gap;		/* per index of job->seen: ns between two runs without a stop; 0: not known */
	/* Of the run that is looked at, by its ranks' places. */
	struct rerun_rank *rank;
	struct rerun_event *event;
	struct rerun_sent (*sent)[COLL_FLIGHT_EXCHANGES];
	/* Of each run, at its first record: ns of all ranks that it takes, from the run before. */
	double *actual, *instead;
	bool *counts;			/* whether it is in what is saved, as in the time below */
	size_t every;			/* of so many chains of runs one is rerun: there are too many records */
	struct report_took took;
	struct rerun_less *calm;	/* ... of a job in which no rank is without a core, too */
	size_t ranks;			/* of the job */
};

/* `ranks` of the job. -ENOMEM */
int coll_report_rerun_open(struct report_rerun *rerun, const struct report_runs *runs, size_t ranks);
void coll_report_rerun_close(struct report_rerun *rerun);


/*
 * What would be saved if all ranks, by their indices in job->seen, had that less; of runs in which this host
 * has a rank, RERUN_ALL_HOSTS: of all. In blocks, as the time that the runs took. Stops that are left come
 * as often in time as they did, so in a shorter job there are fewer of them.
 */
#define RERUN_ALL_HOSTS	UINT32_MAX
struct report_saved coll_report_rerun(struct report_rerun *rerun, const struct rerun_less *less,
				       uint32_t host);
/* What is saved of the job, as coll_report_interval(), by what all timed runs took. */
struct report_interval coll_report_rerun_interval(const struct report_rerun *rerun,
						  const struct report_saved *saved,
						  const struct report_took *all, double scale, double seconds);

#endif
