// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <string.h>

#include "libcoll/base/open_error.h"
#include "libcoll/progress/progress.h"

int coll_progress(struct coll_context *context)
{
	const char *why;
	int error = coll_progress_check(context, &why);

	if (error)
		return error;
	return coll_progress_of(context)->poll(context);
}

int coll_fd(struct coll_context *context)
{
	context->polled = true;
	return coll_progress_of(context)->fd(context);
}

struct coll_group *coll_world(struct coll_context *context)
{
	return context->world;
}

const char *coll_context_error(const struct coll_context *context)
{
	return context ? context->error : coll_open_error();
}

struct counters_copy {
	struct coll_context *context;
	struct coll_counters *to;
};

static void copy_counters(void *argument)
{
	const struct counters_copy *copy = argument;

	memcpy(copy->to, &copy->context->counters, copy->to->size);
}

int coll_counters(struct coll_context *context, struct coll_counters *counters)
{
	uint64_t size = counters->size;

	if (size < sizeof(uint64_t) || size > sizeof(*counters))
		return -EINVAL;
	coll_progress_do_now(context, copy_counters, &(struct counters_copy){ context, counters });
	counters->size = size;
	return 0;
}
