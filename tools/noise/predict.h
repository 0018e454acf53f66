/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* collnoise predict: options and results. */
#ifndef COLL_NOISE_PREDICT_H
#define COLL_NOISE_PREDICT_H

#include "algo/redundancy/redundancy.h"
#include "algo/tuning.h"
#include "formats.h"
#include "steps.h"

enum { COUNTS_MAX = 32, WITHOUT_MAX = 16, CAPTURES_MAX = 64, ROUNDS_MAX = 8 };

enum remedy { NOTHING, PINNED, TOGETHER, REDUNDANT, OFFLOADED, REMEDIES };

extern const struct predict_remedy {
	const char *key, *about;
} predict_remedies[REMEDIES];

struct predict {
	int collective;
	u64 bytes, grain;
	double ideal;			/* s; 0: the algorithm's formula */
	double idle;			/* s between steps in which noise costs nothing */
	struct noise_base base;		/* the collective's times as measured; none: formula */
	const struct coll_algo *algo;	/* NULL: the library's choice */
	struct coll_tuning tuning;
	const char *algo_text;
	struct coll_machine machine;
	u32 ranks[COUNTS_MAX], counts;
	const char *without[WITHOUT_MAX];
	u32 withouts;
	struct node_capture capture[CAPTURES_MAX];
	struct node_capture pinned[CAPTURES_MAX];	/* without those sources */
	u32 captures;
	double moved;			/* share of the noise that pinning removes */
	const char *plot;
	bool json;
};

struct predict_times {
	double mean, p99;
};

/* At one N, seconds. */
struct predict_row {
	u32 ranks;
	const char *algo;
	double base;			/* a step without noise */
	struct coll_redundancy with;
	struct predict_times of[REMEDIES];
	bool simulated;			/* simulated, not by order statistics */
	bool beyond;			/* more ranks than the captures have windows */
};

/* `row`: one for each of predict->ranks. */
void predict_print(const struct predict *p, const struct predict_row *row);
void predict_print_json(const struct predict *p, const struct predict_row *row);
/* Draws to predict->plot. 0 or -errno. */
int predict_draw(const struct predict *p, const struct predict_row *row);

#endif
