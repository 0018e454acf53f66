// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "match.h"

static u64 match_overlap(const struct noise_gap *a, const struct noise_gap *b)
{
	const u64 begin = a->begin > b->begin ? a->begin : b->begin;
	const u64 end = a->end < b->end ? a->end : b->end;

	return end > begin ? end - begin : 0;
}

static bool match_covers(const struct noise_gap *gap, const struct noise_gap *injected)
{
	return 2 * match_overlap(gap, injected) >= injected->end - injected->begin;
}

/* A gap, and the injected events in it, from `*next` on. */
static void match_gap(struct noise_match *match, const struct noise_gap *gap,
		      const struct noise_gap *injected, u64 count, u64 *next)
{
	u64 i = *next, inside = 0, length = 0;

	for (; i < count && injected[i].begin < gap->end; i++) {
		if (!match_covers(gap, &injected[i]))
			continue;
		inside++;
		length += injected[i].end - injected[i].begin;
		*next = i + 1;	/* found: belongs to no other gap */
	}
	match->found += inside;
	if (inside == 1) {
		match->seen += gap->end - gap->begin;
		match->extra[match->alone++] = (double)(gap->end - gap->begin) - length;
	} else if (inside) {
		match->together += inside;
		match->together_length += length;
	}
}

int noise_match(const struct noise_gap *injected, u64 count, const struct noise_gap *gap, u64 gaps,
		struct noise_match *match)
{
	u64 next = 0, k;

	*match = (struct noise_match){
		.injected = count,
		.extra = calloc(count + 1, sizeof(*match->extra)),
		.matched = calloc(gaps + 1, sizeof(*match->matched)),
	};
	if (!match->extra || !match->matched) {
		noise_match_free(match);
		return -ENOMEM;
	}
	for (k = 0; k < gaps; k++) {
		const u64 before = match->found;

		while (next < count && injected[next].end <= gap[k].begin)
			next++;
		match_gap(match, &gap[k], injected, count, &next);
		match->matched[k] = match->found > before;
	}
	return 0;
}

void noise_match_free(struct noise_match *match)
{
	free(match->extra);
	free(match->matched);
	*match = (struct noise_match){ 0 };
}
