// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The application's handles on runs, of a context; and what a call answers. */
#include <errno.h>
#include <stdlib.h>

#include "libcoll/exec/group.h"
#include "libcoll/progress/progress.h"
#include "run.h"

void coll_run_register(struct coll_run *run)
{
	struct coll_context *context = run->group->context;

	pthread_mutex_lock(&context->handles_lock);
	run->next_handle = context->handles;
	run->slot = &context->handles;
	if (run->next_handle)
		run->next_handle->slot = &run->next_handle;
	context->handles = run;
	pthread_mutex_unlock(&context->handles_lock);
}

void coll_run_unregister(struct coll_run *run)
{
	struct coll_context *context = run->group->context;

	pthread_mutex_lock(&context->handles_lock);
	*run->slot = run->next_handle;
	if (run->next_handle)
		run->next_handle->slot = run->slot;
	pthread_mutex_unlock(&context->handles_lock);
	free(run->explanation);
	free(run);
}

void coll_runs_forget_plans(struct coll_context *context)
{
	struct coll_run *run;

	for (run = context->handles; run; run = run->next_handle) {
		run->persistent = false;
		coll_run_ended(run);
	}
}

void coll_runs_free(struct coll_context *context)
{
	struct coll_run *run;

	while ((run = context->handles)) {	/* their groups are gone */
		context->handles = run->next_handle;
		free(run->explanation);
		free(run);
	}
}

struct refusal {
	struct coll_group *group;
	const char *call, *why;
};

static void refuse_here(void *argument)
{
	const struct refusal *refusal = argument;

	if (refusal->why)
		coll_group_explain(refusal->group, "%s: %s", refusal->call, refusal->why);
	else
		coll_group_no_memory(refusal->group, refusal->call);
}

int coll_call_refuse(struct coll_group *group, const char *call, int error, const char *why)
{
	coll_progress_do_now(group->context, refuse_here, &(struct refusal){ group, call, why });
	return error;
}

int coll_run_answer(struct coll_group *group, enum coll_collective collective, int status)
{
	if (status == -ENOMEM)
		coll_call_refuse(group, coll_collective_names[collective], -ENOMEM, NULL);
	return status;
}
