// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <math.h>

#include "counted_noise.h"

enum {
	NOISE_BITS = 8,		/* of a number that counts */
	LOG_TERMS = 24,		/* of a series, for eight digits */
	EVIDENCE_LEAST = 7,	/* of an end; as much more, to the most, as ... */
	EVIDENCE_MOST = 10,
	EVIDENCE_EXCHANGES = 700,	/* ... so many exchanges give */
};

static const double change_least = 1.5, share_most = 0.95, rate_most = 1e9,	/* rate_most: as options take it */
		    event_evidence = 2.0794415416798357,	/* log 8 */
		    none_evidence = 0.875;		/* of the share: about log((1 - share / 8) / (1 - share)) */

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

/* -log(1 - part), of sums and products alone: part is at most 0.8. */
static double minus_log(double part)
{
	const double z = part / (2 - part);
	double power = z, sum = 0;
	int i;

	for (i = 0; i < LOG_TERMS; i++, power *= z * z)
		sum += 2 * power / (2 * i + 1);
	return sum;
}

struct coll_noise_rate coll_counted_link_noise(double late, double exchanges, double usual, double excess)
{
	const double share = fmin(late / exchanges, share_most), chance = 1 - sqrt(1 - share);
	const double length = excess / late * (1 - chance / 2);

	return coll_counted_noise(minus_log(chance) / (usual / exchanges + length), length);
}

bool coll_counted_changed(double before, double now, double events)
{
	const double least = fmax(change_least, 1 + 2 / sqrt(events));

	return now > before * least || before > now * least;
}

/* What few events tell of their share for sure. */
static double share_least(double events, double exchanges)
{
	return fmax(events - sqrt(events), 0) / exchanges;
}

/* The share only grows: that of what comes after the end is less. */
void coll_counted_look(struct coll_late_quiet *quiet, bool event, double events, double exchanges)
{
	if (!event) {
		quiet->evidence = fmin(quiet->evidence + none_evidence * quiet->share, EVIDENCE_MOST);
		return;
	}
	if (coll_counted_ended(quiet))		/* this one begins anew */
		*quiet = (struct coll_late_quiet){ 0, 0 };
	quiet->share = fmin(fmax(quiet->share, share_least(events, exchanges)), 1);
	quiet->evidence = fmax(quiet->evidence - event_evidence, 0);
}

bool coll_counted_ended(const struct coll_late_quiet *quiet)
{
	return quiet->evidence >= fmin(fmax(EVIDENCE_EXCHANGES * quiet->share, EVIDENCE_LEAST), EVIDENCE_MOST);
}
