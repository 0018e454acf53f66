// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Arguments are checked and become a struct coll_call; then that is planned and started. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/names.h"
#include "core/reduce.h"
#include "libcoll/exec/exec.h"
#include "libcoll/exec/group.h"
#include "libcoll/exec/in_order.h"
#include "libcoll/exec/poll.h"
#include "libcoll/progress/progress.h"
#include "request.h"

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "counts are handed on as they are");

struct coll_request coll_request_begin(enum coll_collective collective, struct coll_group *group)
{
	return (struct coll_request){
		.group = group,
		.call = coll_call_of(group, collective),
	};
}

/* ---- arguments ---------------------------------------------------------- */

void coll_request_refuse(struct coll_request *request, const char *format, ...)
{
	va_list arguments;

	if (request->error)
		return;
	request->error = -EINVAL;
	va_start(arguments, format);
	if (vasprintf(&request->refusal, format, arguments) < 0)
		request->refusal = NULL;
	va_end(arguments);
}

void coll_request_type(struct coll_request *request, enum coll_type type)
{
	const uint32_t number = type;
	struct coll_call *call = &request->call;

	if (number >= COLL_OPAQUE(1) && number <= COLL_OPAQUE_MAX) {
		call->type = COLL_OPAQUE_TYPE;
		call->element = number - COLL_OPAQUE(0);
	} else {
		call->type = number;
		call->element = coll_type_bytes(number);
	}
	if (!call->element) {
		call->element = 1;
		coll_request_refuse(request, "type (%u) is unknown; valid: an enum coll_type below "
				    "COLL_TYPES (%u), or COLL_OPAQUE(bytes)", number, COLL_TYPES);
	}
}

static void request_user_op(struct coll_request *request, uint32_t user)
{
	const struct coll_context *context = request->group->context;

	if (user >= context->ops_count || !context->ops[user].used) {
		coll_request_refuse(request, "op (%u) was freed or never made; valid: a number "
				    "from coll_op_create() of this context",
				    user + COLL_USER_REDUCTION + 1);
		return;
	}
	request->call.reduction = COLL_USER_REDUCTION;
	request->call.commutative = context->ops[user].commutative;
	request->user_op = user;
}

void coll_request_reduction(struct coll_request *request, enum coll_reduction op)
{
	struct coll_call *call = &request->call;

	if (op > COLL_USER_REDUCTION) {
		request_user_op(request, op - COLL_USER_REDUCTION - 1);
		return;
	}
	call->reduction = op;
	if (op >= COLL_REDUCTIONS)
		coll_request_refuse(request, "op (%u) is unknown; valid: an enum coll_reduction "
				    "below COLL_REDUCTIONS (%u), or a number from coll_op_create()",
				    op, COLL_REDUCTIONS);
	else if (!request->error && !coll_reduction_fits(call->type, op))
		coll_request_refuse(request, "op (%s) is not defined for type (%s); valid: see "
				    "coll_allreduce(3), or a number from coll_op_create()",
				    coll_reduction_name(op), coll_type_name(call->type));
}

void coll_request_root(struct coll_request *request, int root)
{
	if (root < 0 || (uint32_t)root >= request->group->ranks)
		coll_request_refuse(request, "root (%d) is no rank of the group; valid: 0 to %u",
				    root, request->group->ranks - 1);
	request->call.root = root;
}

static uint64_t elements_max(const struct coll_request *request)
{
	return COLL_BYTES_MAX / request->call.element;
}

void coll_request_count(struct coll_request *request, size_t count, uint64_t blocks)
{
	const uint64_t max = elements_max(request) / (blocks ? blocks : 1);

	if (count > max)
		coll_request_refuse(request, "count (%zu) of %u bytes each, for %llu blocks, is "
				    "too large; valid: 0 to %llu (2^48 bytes in all)", count,
				    request->call.element, (unsigned long long)blocks,
				    (unsigned long long)max);
	request->call.count = count;
}

static void request_no_array(struct coll_request *request, const char *name)
{
	coll_request_refuse(request, "%s is NULL; valid: an array with an entry for each of the "
			    "%u ranks", name, request->group->ranks);
}

const u64 *coll_request_counts(struct coll_request *request, const size_t *counts, const char *name,
			       bool required)
{
	const uint64_t max = elements_max(request);
	uint64_t sum = 0;
	uint32_t i;

	if (!counts) {
		if (required)
			request_no_array(request, name);
		return NULL;
	}
	for (i = 0; i < request->group->ranks; i++) {
		if (counts[i] > max - sum) {
			coll_request_refuse(request, "%s[%u] (%zu) is too large, after %llu before "
					    "it; valid: %llu in all (2^48 bytes)", name, i,
					    counts[i], (unsigned long long)sum,
					    (unsigned long long)max);
			return NULL;
		}
		sum += counts[i];
	}
	return (const u64 *)counts;
}

const u64 *coll_request_displs(struct coll_request *request, const size_t *displs, const char *name,
			       const u64 *counts)
{
	const uint64_t max = elements_max(request);
	uint32_t i;

	if (!displs)
		request_no_array(request, name);
	for (i = 0; displs && counts && i < request->group->ranks; i++)
		if (counts[i] && (displs[i] > max || counts[i] > max - displs[i]))
			coll_request_refuse(request, "%s[%u] (%zu) with %llu elements is too "
					    "large; valid: an end at or before %llu (2^48 bytes)",
					    name, i, displs[i], (unsigned long long)counts[i],
					    (unsigned long long)max);
	return (const u64 *)displs;
}

void coll_request_buffers(struct coll_request *request, const void *in, void *out)
{
	request->call.in_place = in == COLL_IN_PLACE;
	request->in = in == COLL_IN_PLACE ? NULL : (void *)in;
	request->out = out;
}

void coll_request_in_place_on_root(struct coll_request *request, const char *name)
{
	const struct coll_call *call = &request->call;

	if (call->in_place && call->rank != call->root)
		coll_request_refuse(request, "%s is COLL_IN_PLACE on rank %u; valid: a buffer, "
				    "except on the root (%u)", name, call->rank, call->root);
}

static void request_lacks(struct coll_request *request, const char *name, const void *buffer, uint64_t bytes)
{
	if (coll_call_lacks(buffer, bytes))
		coll_request_refuse(request, "%s is %s; valid: a buffer of %llu bytes", name,
				    buffer ? "COLL_IN_PLACE" : "NULL", (unsigned long long)bytes);
}

/*
 * Here, and not by the owner: a run that was posted and then refused would leave its number to the next one, which
 * other ranks take for it. Other arguments are looked at before, as they say how long the buffers are.
 */
static void request_look_at_buffers(struct coll_request *request)
{
	const struct coll_call *call = &request->call;
	const bool one = call->collective == COLL_BCAST || coll_call_is_message(call);
	u64 in, out;

	if (request->error)
		return;
	coll_call_buffers(call, &in, &out);
	request_lacks(request, one ? "data" : "in", request->in, in);
	request_lacks(request, one ? "data" : "out", request->out, out);
	if (!request->error && coll_call_overlaps(call, request->in, in, request->out, out))
		coll_request_refuse(request, "in (%p, %llu bytes) and out (%p, %llu bytes) overlap; valid: two "
				    "buffers, or COLL_IN_PLACE", request->in, (unsigned long long)in, request->out,
				    (unsigned long long)out);
}

/* ---- the three forms ---------------------------------------------------- */

static int request_check(struct coll_request *request)
{
	const char *name = coll_collective_names[request->call.collective], *why;
	int error = coll_progress_check(request->group->context, &why);

	request_look_at_buffers(request);
	/* A call that may not come is not handed to the owner: the text is all that it changes. */
	if (error)
		coll_group_explain(request->group, "%s: %s", name, why);
	else if (request->error)
		error = coll_call_refuse(request->group, name, request->error,
					 request->refusal ? request->refusal :
							    "an argument is not valid");
	free(request->refusal);
	return error;
}

static struct coll_run run_of(const struct coll_request *request)
{
	return (struct coll_run){
		.group = request->group,
		.call = request->call,
		.user_op = request->user_op,
		.tag = request->tag,
		.received = request->received,
		.in = request->in,
		.out = request->out,
	};
}

static int request_run(const struct coll_request *request,
		       const struct coll_progress_ops *progress)
{
	struct coll_run run = run_of(request);
	int error;

	run.local = true;
	error = progress->start(&run);
	return error ? error : progress->wait(&run);
}

/* A short call that has begun. It needs no run, unless it takes long. */
static int request_in_order(struct coll_exec *exec, void *in, void *out)
{
	struct coll_group *group = exec->group;
	struct coll_run run;

	if (coll_in_order_execute(exec)) {
		coll_context_rest(group->context);
		return 0;
	}
	run = (struct coll_run){ .group = group, .in = in, .out = out, .local = true };
	coll_exec_adopt(&run, exec);
	return coll_progress_call.wait(&run);
}

/* COLL_OPAQUE types have no number of their own there, nor have users' functions. */
static bool request_may_repeat(const struct coll_repeat *repeat)
{
	return (uint32_t)repeat->type != COLL_OPAQUE_TYPE &&
	       (uint32_t)repeat->reduction != COLL_USER_REDUCTION && repeat->out != COLL_IN_PLACE;
}

bool coll_request_repeat(struct coll_group *group, const struct coll_repeat *repeat, int *error)
{
	struct coll_context *context = group->context;
	void *in = repeat->in == COLL_IN_PLACE ? NULL : (void *)repeat->in;
	struct coll_planned *planned;
	struct coll_exec *exec;
	uint64_t since;
	const char *why;

	if (!request_may_repeat(repeat) || coll_progress_check(context, &why) ||
	    coll_progress_of(context) != &coll_progress_call)
		return false;
	planned = coll_planned_before(group, (struct coll_call_brief){
		.collective = repeat->collective,
		.type = repeat->type,
		.root = (u32)repeat->root,
		.reduction = repeat->reduction,
		.count = repeat->count,
		.in_place = repeat->in == COLL_IN_PLACE,
	});
	if (!planned)
		return false;
	since = coll_context_enter(context, false);
	exec = coll_in_order_begin(planned, in, repeat->out);
	if (exec)
		*error = coll_run_answer(group, repeat->collective,
					 request_in_order(exec, in, repeat->out));
	coll_context_leave(context, since);
	return exec;
}

/* It has been checked. */
static int request_execute(const struct coll_request *request)
{
	const struct coll_progress_ops *progress = coll_progress_of(request->group->context);
	struct coll_planned *planned;
	struct coll_exec *exec = NULL;

	if (progress == &coll_progress_call) {
		planned = coll_planned_latest(request->group, &request->call, request->user_op);
		if (planned)
			exec = coll_in_order_begin(planned, request->in, request->out);
	}
	return exec ? request_in_order(exec, request->in, request->out) :
		      request_run(request, progress);
}

int coll_request_block(struct coll_request request)
{
	int error = request_check(&request);
	uint64_t since;

	if (!error) {
		since = coll_context_enter(request.group->context, false);
		error = request_execute(&request);
		coll_context_leave(request.group->context, since);
	}
	return coll_run_answer(request.group, request.call.collective, error);
}

static int make_run(struct coll_request *request, struct coll_run **made)
{
	int error = request_check(request);

	*made = NULL;
	if (error)
		return error;
	*made = malloc(sizeof(**made));
	if (!*made)
		return coll_run_answer(request->group, request->call.collective, -ENOMEM);
	**made = run_of(request);
	return 0;
}

static void plan_here(void *argument)
{
	struct coll_run *run = argument;

	run->status = coll_run_plan(run);
	if (run->status) {
		coll_run_ended(run);
		return;
	}
	run->persistent = true;
	run->group->context->job->circuits_prefetch(run);
}

int coll_request_prepare(struct coll_request request, struct coll_run **made)
{
	struct coll_run *run;
	int error = make_run(&request, &run);

	*made = NULL;
	if (error)
		return error;
	coll_progress_do(request.group->context, plan_here, run);
	error = run->status;
	if (error) {
		free(run);
		return coll_run_answer(request.group, request.call.collective, error);
	}
	coll_run_register(run);
	*made = run;
	return 0;
}

int coll_request_start(struct coll_request request, struct coll_run **made)
{
	struct coll_run *run;
	int error = make_run(&request, &run);

	*made = NULL;
	if (error)
		return error;
	run->active = true;
	error = coll_progress_of(request.group->context)->start(run);
	if (error) {
		free(run);
		return coll_run_answer(request.group, request.call.collective, error);
	}
	coll_run_register(run);
	*made = run;
	return 0;
}
