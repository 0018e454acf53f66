// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "../../core/text_noise.h"
#include "delay.h"

bool switch_delay_set(struct switch_delay *delay, const char *key, const char *value)
{
	char *rest;

	if (!strcmp(key, "delta"))
		return coll_text_time(value, 1000000000, &delay->mean);
	if (!strcmp(key, "most"))
		return coll_text_time(value, 1000000000, &delay->most);
	if (strcmp(key, "seed"))
		return false;
	srand48_r(strtol(value, &rest, 10), &delay->random);
	return rest != value && !*rest;
}

void switch_delay_take(struct switch_delay *delay)
{
	const double most = delay->most ? delay->most : 2. * delay->mean;
	struct timespec left;
	double uniform, ns;

	drand48_r(&delay->random, &uniform);
	ns = delay->mean / 2. - log(1 - uniform) * delay->mean / 2.;
	if (ns > most)
		ns = most;
	left = (struct timespec){ ns / 1e9, (u64)ns % 1000000000 };
	while (nanosleep(&left, &left) && errno == EINTR)
		;
}
