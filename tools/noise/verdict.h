/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What noise is too much: limits, asked for one by one or as a profile with a name. */
#ifndef COLL_NOISE_VERDICT_H
#define COLL_NOISE_VERDICT_H

#include "view.h"

/* Of each CPU by itself. Negative: no limit. */
struct noise_limits {
	const char *profile;	/* or NULL */
	double share;		/* of the time */
	double length;		/* ns, the longest event */
	double rate;		/* events a second */
};

#define NOISE_NO_LIMITS ((struct noise_limits){ .share = -1, .length = -1, .rate = -1 })

/* False: said on stderr which there are. */
bool noise_limits_profile(const char *command, const char *name, struct noise_limits *limits);
void noise_limits_list(FILE *to);
bool noise_limits_any(const struct noise_limits *limits);

/* Whether all CPUs are within; prints the verdict, or gives it. */
bool noise_verdict_print(const struct noise_limits *limits, const struct noise_view *view,
			 FILE *to);
json_t *noise_verdict_json(const struct noise_limits *limits, const struct noise_view *view,
			   bool *passed);

#endif
