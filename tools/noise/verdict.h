/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Limits of noise: single ones, or a named profile. */
#ifndef COLL_NOISE_VERDICT_H
#define COLL_NOISE_VERDICT_H

#include "view.h"

/* For each CPU. Negative: no limit. */
struct noise_limits {
	const char *profile;	/* or NULL */
	double share;		/* share of the time */
	double length;		/* ns, the longest event */
	double rate;		/* events per second */
};

#define NOISE_NO_LIMITS ((struct noise_limits){ .share = -1, .length = -1, .rate = -1 })

/* False: unknown name; stderr lists the profiles. */
bool noise_limits_profile(const char *command, const char *name, struct noise_limits *limits);
void noise_limits_list(FILE *to);
bool noise_limits_any(const struct noise_limits *limits);

/* The strictest profile that all CPUs of the capture are within, or NULL. */
const char *noise_profile_passed(const struct noise_view *view);

/* Whether all CPUs are within the limits; prints the verdict, or adds it to the JSON. */
bool noise_verdict_print(const struct noise_limits *limits, const struct noise_view *view,
			 FILE *to);
json_t *noise_verdict_json(const struct noise_limits *limits, const struct noise_view *view,
			   bool *passed);

#endif
