/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What it would save to make a rank a leaf (docs/guide/late-ranks.md): others do not wait for it but for its vector. Of what
 * they lost in calls to one rank, the part that the library's model says is not left, less the leaf's own messages.
 */
#ifndef COLL_FLIGHT_REPORT_LEAF_H
#define COLL_FLIGHT_REPORT_LEAF_H

#include "report_redundancy.h"

/* What was lost in calls to one rank, and the part of it that was lost to messages of and to it; else it had no core. */
struct leaf_lost {
	struct report_saved all;
	double messages;		/* ns */
};

struct report_leaf {
	struct leaf_lost *lost;		/* per index of job->seen */
	size_t ranks;
	struct report_blocks blocks;
	uint64_t runs[REPORT_REDUNDANT_SITES];	/* of each fitting site, that were looked at */
};

/* -ENOMEM */
int coll_report_leaf_open(struct report_leaf *leaf, size_t ranks);
void coll_report_leaf_close(struct report_leaf *leaf);

/* In a run of a fitting site, to a late message, or to a rank without a core. Blocks end as in report_saved.c. */
void coll_report_leaf_message(struct report_leaf *leaf, size_t to, size_t from, double ns);
void coll_report_leaf_stop(struct report_leaf *leaf, size_t index, double ns);
void coll_report_leaf_end_block(struct report_leaf *leaf, const struct report_took *took);

/* The rank that others lost most to, by its index. */
size_t coll_report_leaf_rank(const struct report_leaf *leaf);
/* What is saved if it is a leaf: nothing where the model finds no gain. */
struct report_saved coll_report_leaf_saved(const struct report_leaf *leaf, const struct coll_flight_job *job,
					   const struct report_redundancy *redundancy,
					   const struct report_runs *runs);

#endif
