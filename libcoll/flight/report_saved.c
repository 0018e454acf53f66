// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What would be saved without a loss, and how far that can be trusted. */
#include <math.h>

#include "report_path.h"

enum { BLOCKS_LEAST = 5 };	/* that an interval is of */

double coll_report_nine_of_ten(double freedom)
{
	return 1.645 + 1.524 / freedom + 1.420 / (freedom * freedom);
}

void coll_report_saved_add(struct report_blocks *blocks, struct report_saved *saved, double ns)
{
	if (!saved->open) {
		saved->open = true;
		saved->next = blocks->first;
		blocks->first = saved;
	}
	saved->ns += ns;
	saved->block += ns;
}

void coll_report_saved_end_block(struct report_saved *saved, const struct report_took *took)
{
	saved->squares += saved->block * saved->block;
	saved->with_took += saved->block * took->block;
	saved->block = 0;
}

void coll_report_blocks_end(struct report_blocks *blocks, const struct report_took *took)
{
	struct report_saved *saved;

	for (saved = blocks->first; saved; saved = saved->next) {
		coll_report_saved_end_block(saved, took);
		saved->open = false;
	}
	blocks->first = NULL;
}

void coll_report_took_end_block(struct report_took *took)
{
	took->squares += took->block * took->block;
	took->blocks += took->block > 0;
	took->block = 0;
}

/*
 * Of a ratio, saved to took, by the spread of the blocks around it (its linear part): what 9 of 10
 * jobs would save whose blocks are drawn from where these are, if the blocks are independent.
 * Nothing saves more than the job took.
 */
struct report_interval coll_report_interval(const struct report_saved *saved,
					    const struct report_took *took, double scale,
					    double seconds)
{
	const double ratio = took->ns > 0 ? saved->ns / took->ns : 0, n = took->blocks;
	const double squares = saved->squares - 2 * ratio * saved->with_took +
			       ratio * ratio * took->squares;
	const double mean = saved->ns * scale;
	double spread;

	if (took->blocks < BLOCKS_LEAST)
		return (struct report_interval){ fmax(0, fmin(mean, seconds)), -1, -1 };
	spread = coll_report_nine_of_ten(n - 1) * sqrt(fmax(0, squares) * n / (n - 1)) * scale;
	return (struct report_interval){
		.mean = fmax(0, fmin(mean, seconds)), .least = fmax(0, fmin(mean, seconds) - spread),
		.most = fmax(0, fmin(mean + spread, seconds)),
	};
}
