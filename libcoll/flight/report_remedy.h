/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What could be done, and what it would save: each timed run once more, as if it had been done. Of
 * several ranks that are late only the last one counts, so what several losses save is not their sum.
 */
#ifndef COLL_FLIGHT_REPORT_REMEDY_H
#define COLL_FLIGHT_REPORT_REMEDY_H

#include "report_leaf.h"
#include "report_rerun.h"

/* Of a rank. */
struct remedy_rank {
	double pin, stop;		/* parts of the time without a core that these give back */
	uint32_t host;			/* the number of its host */
};

/* Of a host, by its number. */
struct remedy_host {
	uint32_t ranks;			/* 0: it is the number of none */
	bool looked, full;		/* it has no CPU without a rank, if that was looked for */
	double held;			/* ns that its ranks were without a core in timed runs, and before */
	struct report_saved without;
};

struct report_remedies {
	const struct coll_flight_job *job;
	struct remedy_rank *rank;	/* per index of job->seen */
	struct remedy_host *host;
	bool observed;			/* somebody looked at the ranks ... */
	bool nowhere;			/* ... whose CPUs are all that their nodes have */
	char stopped[32];		/* the program that took most; "": none has a name */
	struct report_redundancy redundancy;
	struct report_saved redundant;
	struct report_leaf leaf;
	struct report_blocks blocks;		/* of all that is saved here but by a leaf */
	/* Of the run that is looked at. */
	const struct redundant_site *site;	/* NULL also where it is not of all ranks */
	uint32_t fit;			/* the number of its fitting site; redundancy.fitting: none */
	double before;			/* ns that all ranks waited for others to begin */
};

/* -ENOMEM */
int coll_report_remedies_open(struct report_remedies *remedies, const struct coll_flight_job *job,
			      const uint32_t *host, const struct report_runs *runs);
void coll_report_remedies_close(struct report_remedies *remedies);

/* A run; what ranks lost in it; its records are [first, end) of runs->record. Blocks end as in report_saved.c. */
void coll_report_remedies_begin(struct report_remedies *remedies, const struct report_runs *runs,
				size_t first, size_t end);
/* In the call. `sender`: of a late message; indices of job->seen. */
void coll_report_remedies_lost(struct report_remedies *remedies, enum coll_flight_loss_kind kind,
			       size_t index, size_t sender, double ns);
void coll_report_remedies_end(struct report_remedies *remedies, const struct report_runs *runs,
			      size_t first, size_t end);
void coll_report_remedies_end_block(struct report_remedies *remedies,
				    const struct report_took *took);

/* Fills report->remedy. `scale`: seconds of the job, of one ns in timed runs of all ranks. -ENOMEM. */
int coll_report_take_remedies(struct coll_flight_report *report, const struct report_remedies *remedies,
			      struct report_rerun *rerun, const struct report_took *took, double scale);

#endif
