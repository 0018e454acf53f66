// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The public functions of a context. */
#include <errno.h>
#include <string.h>

#include "libcoll/base/open_error.h"
#include "libcoll/exec/group.h"
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
	const char *why;
	int error = coll_progress_check(context, &why);

	if (error)
		return error;
	context->polled = true;
	return coll_progress_of(context)->fd(context);
}

struct coll_group *coll_world(struct coll_context *context)
{
	return context->world;
}

static void show_error(void *argument)
{
	struct coll_context *context = argument;

	memcpy(context->shown, context->error, sizeof(context->shown));
}

const char *coll_context_error(const struct coll_context *context)
{
	if (!context)
		return coll_open_error();
	coll_progress_do_now((struct coll_context *)context, show_error, (void *)context);
	return context->shown;
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

static void refuse_counters(void *argument)
{
	const struct counters_copy *copy = argument;

	coll_context_explain(copy->context, "counters: size (%llu) is not valid; valid: 8 to %zu, "
			     "sizeof(struct coll_counters)", (unsigned long long)copy->to->size,
			     sizeof(*copy->to));
}

int coll_counters(struct coll_context *context, struct coll_counters *counters)
{
	uint64_t size = counters->size;

	if (size < sizeof(uint64_t) || size > sizeof(*counters)) {
		coll_progress_do_now(context, refuse_counters, &(struct counters_copy){ context,
				     counters });
		return -EINVAL;
	}
	coll_progress_do_now(context, copy_counters, &(struct counters_copy){ context, counters });
	counters->size = size;
	return 0;
}
