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
	if (!strcmp(key, "most"))
		return coll_text_time(value, 1000000000, &delay->most);
	if (!strcmp(key, "sure"))
		return coll_text_time(value, 1000000000, &delay->sure);
	if (strcmp(key, "seed"))
		return false;
	srand48_r(strtol(value, &rest, 10), &delay->random);
	return rest != value && !*rest;
}

u64 switch_delay_end(struct switch_delay *delay)
{
	const double most = delay->most ? delay->most : 2. * delay->mean;
	const double sure = delay->sure ? delay->sure : delay->mean / 2.;
	double uniform, ns;

	drand48_r(&delay->random, &uniform);
	ns = sure - log(1 - uniform) * (delay->mean > sure ? delay->mean - sure : 0);
	return colld_now() + (u64)(ns > most ? most : ns);
}
