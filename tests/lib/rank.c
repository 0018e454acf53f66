// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "rank.h"

struct coll_context *rank_open(const char *options)
{
	struct coll_context *context;
	int error = coll_open(options, &context);

	if (error) {
		printf("coll_open: %s: %s\n", coll_strerror(error), coll_context_error(NULL));
		exit(2);
	}
	return context;
}

void rank_fail(const struct coll_group *group, const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	printf("rank %d of %d: %s\n", coll_rank(group), coll_ranks(group), text);
	fflush(stdout);
	_Exit(1);
}

void rank_check(const struct coll_group *group, int error, const char *call)
{
	if (error)
		rank_fail(group, "%s: %s (%s)", call, coll_strerror(error),
			  coll_last_error(group));
}

double rank_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}
