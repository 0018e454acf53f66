/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What a capture means: how good it is, what its noise costs, and what to do about it. */
#ifndef COLL_NOISE_ASSESSMENT_H
#define COLL_NOISE_ASSESSMENT_H

#include "cost.h"
#include "view.h"

enum { NOISE_ADVICES = 8 };

/* One thing to do, against the noise of one or several sources. */
struct noise_advice {
	const char *text;
	char command[96];	/* for a shell; may be empty */
	char who[80];		/* the source that takes most of it */
	u32 others;		/* more sources that it helps against */
	u64 total;		/* ns that they take in the capture */
};

struct noise_assessment {
	const struct noise_view *view;
	const char *profile;			/* the strictest that holds, or NULL */
	bool attributed;			/* events have causes */
	bool unbearable;			/* noise leaves no time to compute: no costs */
	struct noise_cost cost[NOISE_COSTS];
	struct noise_advice advice[NOISE_ADVICES];	/* that against most time first */
	u32 advices;
};

/* 0 or -ENOMEM. */
int noise_assess(const struct noise_view *view, struct noise_assessment *assessment);
/* Adds "profile", "cost" and "advice" to the view's JSON. */
void noise_assessment_json(const struct noise_assessment *assessment, json_t *all);

#endif
