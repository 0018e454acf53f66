// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <math.h>

#include "counted_noise.h"
#include "late_calls.h"

enum {
	COVERED_TIMES = 8,	/* of so many late messages one call waited at most: they do not, mostly */
	EXPECTED_MOST = 8,	/* that an eighth of so many or fewer came is chance once in 300 */
};

/* Of the time. Below that a machine has delays of its own, and no answer to them is worth its price. */
static const double part_least = 0.02;

static bool calls_matter(const struct coll_late_calls *calls)
{
	return calls->seconds > 0 && calls->held >= part_least * calls->seconds;
}

void coll_late_calls_fade(struct coll_late_calls *calls, double keep)
{
	calls->seen *= keep;
	calls->calls *= keep;
	calls->held *= keep;
	calls->exchanges *= keep;
	calls->seconds *= keep;
}

/* Where calls do not wait for late messages, they do not tell how many would have been held up. */
void coll_late_calls_add(struct coll_late_calls *calls, const struct coll_samples_found *found, bool late)
{
	const double seconds = found->seconds, events = found->delays.runs + found->unmissed;

	if (found->unmissed <= COVERED_TIMES * fmax(found->delays.runs, 1)) {
		calls->seen += found->delays.seen;
		calls->calls += found->delays.runs;
		calls->held += found->delays.seconds;
		calls->exchanges += found->received / 2;
		calls->seconds += seconds;
	}
	if (found->delays.seen && calls_matter(calls))
		calls->rate = calls->calls / calls->seconds;
	calls->go_on = calls->rate > 0 && seconds > 0 && EXPECTED_MOST * events > calls->rate * seconds;
	calls->expected = calls->go_on || late ? 0 : calls->expected + calls->rate * seconds;
}

bool coll_late_calls_ended(const struct coll_late_calls *calls)
{
	return calls->expected >= EXPECTED_MOST;
}

struct coll_noise_rate coll_late_calls_noise(const struct coll_late_calls *calls, double usual)
{
	if (calls->seen < 1 || !calls_matter(calls) || calls->exchanges < calls->calls)
		return (struct coll_noise_rate){ 0, 0 };
	return coll_counted_link_noise(calls->calls, calls->exchanges, usual * calls->exchanges, calls->held);
}
