// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdlib.h>
#include <string.h>

#include "delays.h"

static int delay_compare(const void *a, const void *b)
{
	const u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

u64 circuit_delays_figure(const struct circuit_delays *delays, enum circuit_delay which)
{
	const u64 count = delays->samples < CIRCUIT_SAMPLES ? delays->samples : CIRCUIT_SAMPLES;
	const bool p90 = which == CIRCUIT_DELAY_P90;
	u64 sorted[CIRCUIT_SAMPLES];

	coll_assert(which < CIRCUIT_DELAYS);
	memcpy(sorted, delays->sample[p90 ? CIRCUIT_DELAY_ALL : which], sizeof(sorted));
	qsort(sorted, count, sizeof(*sorted), delay_compare);
	return count ? sorted[p90 ? count * 9 / 10 : count / 2] : 0;
}

void circuit_delays_add(struct circuit_delays *delays, struct circuit_times *times, u64 now)
{
	const u64 parts[CIRCUIT_DELAY_SAMPLED] = {
		[CIRCUIT_DELAY_QUEUE] = times->begun - times->given,
		[CIRCUIT_DELAY_SWITCH] = times->moved - times->begun,
		[CIRCUIT_DELAY_LOCK] = times->locked - times->moved,
		[CIRCUIT_DELAY_NOTIFY] = now - times->locked,
		[CIRCUIT_DELAY_ALL] = now - times->given,
	};
	u32 i;

	if (!times->given)
		return;
	for (i = 0; i < CIRCUIT_DELAY_SAMPLED; i++)
		delays->sample[i][delays->samples % CIRCUIT_SAMPLES] = parts[i];
	delays->samples++;
	times->given = 0;
}
