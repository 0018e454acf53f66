// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <math.h>

#include "counted_noise.h"

enum { NOISE_BITS = 8 };		/* of a number that counts */

static const double change_least = 1.5, rate_most = 1e9;	/* rate_most: as options take it */

double coll_counted_round(double value)
{
	int exponent;
	const double part = frexp(value, &exponent);

	return ldexp(floor(ldexp(part, NOISE_BITS) + 0.5), exponent - NOISE_BITS);
}

struct coll_noise_rate coll_counted_noise(double rate, double duration)
{
	if (!(rate > 0 && duration > 0))
		return (struct coll_noise_rate){ 0, 0 };
	duration = fmin(duration, COUNTED_SECONDS_MOST);
	return (struct coll_noise_rate){ fmin(rate, fmin(rate_most, 1 / duration)), duration };
}

bool coll_counted_changed(double before, double now, double events)
{
	const double least = fmax(change_least, 1 + 2 / sqrt(events));

	return now > before * least || before > now * least;
}
