// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"

char *node_time_text(double ns, char text[24])
{
	static const char *const names[] = { "ns", "us", "ms", "s" };
	int unit = 0;

	while (unit < 3 && fabs(ns) >= 999.5) {
		ns /= 1000;
		unit++;
	}
	if (!unit && ns == floor(ns))
		snprintf(text, 24, "%.0f ns", ns);
	else
		snprintf(text, 24, "%.*f %s", fabs(ns) < 9.995 ? 2 : fabs(ns) < 99.95 ? 1 : 0, ns,
			 names[unit]);
	return text;
}

bool node_share_read(const char *text, double *share)
{
	char *rest;

	*share = strtod(text, &rest);
	if (rest != text && !strcmp(rest, "%")) {
		*share /= 100;
		rest++;
	}
	return rest != text && !*rest && *share >= 0 && *share <= 1;
}
