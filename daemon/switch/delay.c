// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <math.h>
#include <string.h>

#include "core/noise/text.h"
#include "daemon/common/clock.h"
#include "delay.h"

bool switch_delay_set(struct switch_delay *delay, const char *key, const char *value)
{
	char *rest;

	if (!strcmp(key, "delta"))
		return coll_text_time(value, 1000000000, &delay->mean);
	if (!strcmp(key, "max"))
		return coll_text_time(value, 1000000000, &delay->max);
	if (!strcmp(key, "min"))
		return coll_text_time(value, 1000000000, &delay->min);
	if (strcmp(key, "seed"))
		return false;
	srand48_r(strtol(value, &rest, 10), &delay->random);
	return rest != value && !*rest;
}

u64 switch_delay_end(struct switch_delay *delay)
{
	const double max = delay->max ? delay->max : 2. * delay->mean;
	const double min = delay->min ? delay->min : delay->mean / 2.;
	double uniform, ns;

	drand48_r(&delay->random, &uniform);
	ns = min - log(1 - uniform) * (delay->mean > min ? delay->mean - min : 0);
	return colld_now() + (u64)(ns > max ? max : ns);
}
