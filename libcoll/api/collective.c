// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The public calls: arguments into a struct coll_call, checked, then planned
 * and started. Each collective has one function that makes its call and three
 * public ones that differ in what happens then.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/reduce.h"
#include "libcoll/circuit/circuit.h"
#include "libcoll/exec/exec.h"
#include "libcoll/progress/progress.h"
#include "run.h"

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "counts are handed on as they are");

/* A call on its way: what to run, on which buffers. */
struct request {
	struct coll_group *group;
	struct coll_call call;
	uint32_t user_op;
	void *in, *out;
	const char *argument, *valid;	/* what is wrong, or NULL */
	int error;
};

static void collective_refuse(struct request *request, const char *argument, const char *valid)
{
	request->argument = argument;
	request->valid = valid;
	request->error = -EINVAL;
}

static struct request collective_begin(enum coll_collective collective, struct coll_group *group)
{
	return (struct request){
		.group = group,
		.call = {
			.collective = collective,
			.rank = group->rank,
			.ranks = group->ranks,
			.cluster = group->clusters > 1 ? group->cluster : NULL,
			.clusters = group->clusters,
			.element = 1,
			.commutative = true,
		},
	};
}

/* ---- arguments ---------------------------------------------------------- */

static void set_type(struct request *request, int type)
{
	struct coll_call *call = &request->call;

	if (type >= COLL_OPAQUE(1)) {
		call->type = COLL_OPAQUE_TYPE;
		call->element = type - COLL_OPAQUE(0);
	} else {
		call->type = type;
		call->element = type < 0 ? 0 : coll_type_bytes(type);
	}
	if (!call->element) {
		call->element = 1;
		collective_refuse(request, "type", "an enum coll_type or COLL_OPAQUE(bytes)");
	}
}

static void set_reduction(struct request *request, int op)
{
	const struct coll_context *context = request->group->context;
	struct coll_call *call = &request->call;
	uint32_t user = op - COLL_USER_REDUCTION - 1;

	if (op > COLL_USER_REDUCTION) {
		if (user >= context->ops_count || !context->ops[user].used) {
			collective_refuse(request, "op", "a number from coll_op_create()");
			return;
		}
		call->reduction = COLL_USER_REDUCTION;
		call->commutative = context->ops[user].commutative;
		request->user_op = user;
		return;
	}
	call->reduction = op;
	if (op < 0 || op >= COLL_REDUCTIONS)
		collective_refuse(request, "op",
				  "an enum coll_reduction or a number from coll_op_create()");
	else if (!request->error && !coll_reduction_fits(call->type, op))
		collective_refuse(request, "op", "a reduction that is defined for this type");
}

static void set_root(struct request *request, int root)
{
	if (root < 0 || (uint32_t)root >= request->group->ranks)
		collective_refuse(request, "root", "a rank of the group");
	request->call.root = root;
}

/* `blocks` of count elements must fit into memory. */
static void set_count(struct request *request, size_t count, uint64_t blocks)
{
	if (count > COLL_BYTES_MAX / request->call.element / (blocks ? blocks : 1))
		collective_refuse(request, "count", "such that the data has less than 2^48 bytes");
	request->call.count = count;
}

static const u64 *counts_of(struct request *request, const size_t *counts, const char *name,
				 bool required)
{
	uint64_t sum = 0;
	uint32_t i;

	if (!counts) {
		if (required)
			collective_refuse(request, name, "an array with an entry for each rank");
		return NULL;
	}
	for (i = 0; i < request->group->ranks; i++) {
		if (counts[i] > COLL_BYTES_MAX / request->call.element ||
		    (sum += counts[i]) > COLL_BYTES_MAX / request->call.element) {
			collective_refuse(request, name,
					  "such that the data has less than 2^48 bytes");
			return NULL;
		}
	}
	return (const u64 *)counts;
}

/* Where the blocks begin. `counts` are checked, or NULL after an error. */
static const u64 *displs_of(struct request *request, const size_t *displs, const u64 *counts)
{
	const uint64_t max = COLL_BYTES_MAX / request->call.element;
	uint32_t i;

	if (!displs)
		collective_refuse(request, "displs", "an array with an entry for each rank");
	for (i = 0; displs && counts && i < request->group->ranks; i++)
		if (counts[i] && (displs[i] > max || counts[i] > max - displs[i]))
			collective_refuse(request, "displs",
					  "such that each block ends within 2^48 bytes");
	return (const u64 *)displs;
}

static void set_buffers(struct request *request, const void *in, void *out)
{
	request->call.in_place = in == COLL_IN_PLACE;
	request->in = in == COLL_IN_PLACE ? NULL : (void *)in;
	request->out = out;
}

/* ---- planning ----------------------------------------------------------- */

static int tell_refusal(struct coll_group *group, enum coll_collective collective,
			const char *argument, const char *valid)
{
	snprintf(group->text, sizeof(group->text), "%s: argument %s: it must be %s",
		 coll_collective_names[collective], argument, valid);
	return -EINVAL;
}

static bool no_memory(const void *buffer, uint64_t bytes)
{
	return bytes && (!buffer || buffer == COLL_IN_PLACE);
}

/* The schedule says which buffers this rank needs. */
static int check_buffers(const struct coll_run *run)
{
	const struct coll_schedule *s = run->planned->schedule;
	const enum coll_collective collective = run->planned->call.collective;

	if (no_memory(run->in, s->buffer[COLL_IN]))
		return tell_refusal(run->group, collective, "in",
				    "a buffer, since there are elements to send");
	if (no_memory(run->out, s->buffer[COLL_OUT]))
		return tell_refusal(run->group, collective,
				    collective == COLL_BCAST ? "data" : "out",
				    "a buffer, since there are elements to go into it");
	return 0;
}

int coll_run_plan(struct coll_run *run)
{
	int error;

	if (run->planned)
		return 0;
	if (run->group->freed)
		return -EINVAL;
	error = coll_planned_get(run->group, &run->call, run->user_op, &run->planned);
	if (!error)
		error = check_buffers(run);
	return error;
}

/* ---- the three forms ---------------------------------------------------- */

static void refuse_here(void *argument)
{
	const struct request *request = argument;

	tell_refusal(request->group, request->call.collective, request->argument, request->valid);
}

static int collective_check(struct request *request)
{
	if (request->error)
		coll_progress_do_now(request->group->context, refuse_here, request);
	return request->error;
}

static struct coll_run run_of(const struct request *request)
{
	return (struct coll_run){
		.group = request->group,
		.call = request->call,
		.user_op = request->user_op,
		.in = request->in,
		.out = request->out,
	};
}

static int now(struct request request)
{
	const struct coll_progress_ops *progress = coll_progress_of(request.group->context);
	struct coll_run run = run_of(&request);
	int error = collective_check(&request);

	run.local = true;
	if (!error)
		error = progress->start(&run);
	return error ? error : progress->wait(&run);
}

static int make_run(struct request *request, struct coll_run **made)
{
	int error = collective_check(request);

	*made = NULL;
	if (error)
		return error;
	*made = malloc(sizeof(**made));
	if (!*made)
		return -ENOMEM;
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
	coll_circuits_prefetch(run);
}

static int prepare(struct request request, struct coll_run **made)
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
		return error;
	}
	*made = run;
	return 0;
}

static int later(struct request request, struct coll_run **made)
{
	struct coll_run *run;
	int error = make_run(&request, &run);

	*made = NULL;
	if (error)
		return error;
	error = coll_progress_of(request.group->context)->start(run);
	if (error) {
		free(run);
		return error;
	}
	*made = run;
	return 0;
}

#define ARGUMENTS(...) __VA_ARGS__
/* The three public functions of a collective whose request `name` makes. */
#define FORMS(name, parameters, arguments)                                                 \
	int coll_##name(parameters)                                                        \
	{                                                                                  \
		return now(name(arguments));                                               \
	}                                                                                  \
	LATER_FORMS(name, ARGUMENTS(parameters), ARGUMENTS(arguments))
#define LATER_FORMS(name, parameters, arguments)                                           \
	int coll_i##name(parameters, struct coll_run **run)                                \
	{                                                                                  \
		return later(name(arguments), run);                                        \
	}                                                                                  \
	int coll_##name##_init(parameters, struct coll_run **run)                          \
	{                                                                                  \
		return prepare(name(arguments), run);                                \
	}

/* ---- collectives -------------------------------------------------------- */

static struct request barrier(struct coll_group *group)
{
	return collective_begin(COLL_BARRIER, group);
}

/* The blocking one is where a group's plans of circuits may change. */
int coll_barrier(struct coll_group *group)
{
	int error = now(barrier(group));

	if (!error && group->terms)
		coll_progress_do(group->context, coll_circuits_agree_again, group);
	return error;
}
LATER_FORMS(barrier, struct coll_group *group, group)

static struct request bcast(void *data, size_t count, int type, int root,
			    struct coll_group *group)
{
	struct request request = collective_begin(COLL_BCAST, group);

	set_type(&request, type);
	set_count(&request, count, 1);
	set_root(&request, root);
	request.out = data;
	return request;
}
FORMS(bcast, ARGUMENTS(void *data, size_t count, int type, int root, struct coll_group *group),
      ARGUMENTS(data, count, type, root, group))

static struct request gather(const void *in, void *out, size_t count, int type, int root,
			     struct coll_group *group)
{
	struct request request = collective_begin(COLL_GATHER, group);

	set_type(&request, type);
	set_count(&request, count, group->ranks);
	set_root(&request, root);
	set_buffers(&request, in, out);
	if (request.call.in_place && request.call.rank != request.call.root)
		collective_refuse(&request, "in", "a buffer: only the root gathers in place");
	return request;
}
FORMS(gather, ARGUMENTS(const void *in, void *out, size_t count, int type, int root,
			struct coll_group *group),
      ARGUMENTS(in, out, count, type, root, group))

static struct request gatherv(const void *in, size_t count, void *out, const size_t *counts,
			      const size_t *displs, int type, int root, struct coll_group *group)
{
	struct request request = collective_begin(COLL_GATHERV, group);
	bool is_root;

	set_type(&request, type);
	set_root(&request, root);
	is_root = request.call.rank == request.call.root;
	set_count(&request, count, 1);
	request.call.counts = counts_of(&request, counts, "counts", is_root);
	if (is_root)
		request.call.displs = displs_of(&request, displs, request.call.counts);
	set_buffers(&request, in, out);
	if (request.call.in_place && !is_root)
		collective_refuse(&request, "in", "a buffer: only the root gathers in place");
	if (!request.error && request.call.counts)
		request.call.count = request.call.counts[group->rank];
	return request;
}
FORMS(gatherv, ARGUMENTS(const void *in, size_t count, void *out, const size_t *counts,
			 const size_t *displs, int type, int root, struct coll_group *group),
      ARGUMENTS(in, count, out, counts, displs, type, root, group))

static struct request scatter(const void *in, void *out, size_t count, int type, int root,
			      struct coll_group *group)
{
	struct request request = collective_begin(COLL_SCATTER, group);

	set_type(&request, type);
	set_count(&request, count, group->ranks);
	set_root(&request, root);
	request.in = (void *)in;
	request.out = out;
	request.call.in_place = out == COLL_IN_PLACE;
	if (request.call.in_place && request.call.rank != request.call.root)
		collective_refuse(&request, "out", "a buffer: only the root scatters in place");
	return request;
}
FORMS(scatter, ARGUMENTS(const void *in, void *out, size_t count, int type, int root,
			 struct coll_group *group),
      ARGUMENTS(in, out, count, type, root, group))

static struct request scatterv(const void *in, const size_t *counts, const size_t *displs,
			       void *out, size_t count, int type, int root,
			       struct coll_group *group)
{
	struct request request = collective_begin(COLL_SCATTERV, group);
	bool is_root;

	set_type(&request, type);
	set_root(&request, root);
	is_root = request.call.rank == request.call.root;
	set_count(&request, count, 1);
	request.call.counts = counts_of(&request, counts, "counts", is_root);
	if (is_root)
		request.call.displs = displs_of(&request, displs, request.call.counts);
	request.in = (void *)in;
	request.out = out;
	request.call.in_place = out == COLL_IN_PLACE;
	if (request.call.in_place && !is_root)
		collective_refuse(&request, "out", "a buffer: only the root scatters in place");
	if (!request.error && request.call.counts)
		request.call.count = request.call.counts[group->rank];
	return request;
}
FORMS(scatterv, ARGUMENTS(const void *in, const size_t *counts, const size_t *displs, void *out,
			  size_t count, int type, int root, struct coll_group *group),
      ARGUMENTS(in, counts, displs, out, count, type, root, group))

static struct request allgather(const void *in, void *out, size_t count, int type,
				struct coll_group *group)
{
	struct request request = collective_begin(COLL_ALLGATHER, group);

	set_type(&request, type);
	set_count(&request, count, group->ranks);
	set_buffers(&request, in, out);
	return request;
}
FORMS(allgather, ARGUMENTS(const void *in, void *out, size_t count, int type,
			   struct coll_group *group),
      ARGUMENTS(in, out, count, type, group))

static struct request allgatherv(const void *in, size_t count, void *out, const size_t *counts,
				 const size_t *displs, int type, struct coll_group *group)
{
	struct request request = collective_begin(COLL_ALLGATHERV, group);

	set_type(&request, type);
	set_count(&request, count, 1);
	request.call.counts = counts_of(&request, counts, "counts", true);
	request.call.displs = displs_of(&request, displs, request.call.counts);
	set_buffers(&request, in, out);
	if (!request.error && !request.call.in_place && counts[group->rank] != count)
		collective_refuse(&request, "count", "what counts says of this rank");
	if (!request.error)
		request.call.count = counts[group->rank];
	return request;
}
FORMS(allgatherv, ARGUMENTS(const void *in, size_t count, void *out, const size_t *counts,
			    const size_t *displs, int type, struct coll_group *group),
      ARGUMENTS(in, count, out, counts, displs, type, group))

static struct request alltoall(const void *in, void *out, size_t count, int type,
			       struct coll_group *group)
{
	struct request request = collective_begin(COLL_ALLTOALL, group);

	set_type(&request, type);
	set_count(&request, count, group->ranks);
	set_buffers(&request, in, out);
	return request;
}
FORMS(alltoall, ARGUMENTS(const void *in, void *out, size_t count, int type,
			  struct coll_group *group),
      ARGUMENTS(in, out, count, type, group))

static struct request alltoallv(const void *in, const size_t *send_counts,
				const size_t *send_displs, void *out, const size_t *recv_counts,
				const size_t *recv_displs, int type, struct coll_group *group)
{
	struct request request = collective_begin(COLL_ALLTOALLV, group);
	struct coll_call *call = &request.call;

	set_type(&request, type);
	set_buffers(&request, in, out);
	call->recv_counts = counts_of(&request, recv_counts, "recv_counts", true);
	call->recv_displs = displs_of(&request, recv_displs, call->recv_counts);
	if (call->in_place) {	/* what comes replaces what goes */
		call->send_counts = call->recv_counts;
		call->send_displs = call->recv_displs;
	} else {
		call->send_counts = counts_of(&request, send_counts, "send_counts", true);
		call->send_displs = displs_of(&request, send_displs, call->send_counts);
	}
	return request;
}
FORMS(alltoallv, ARGUMENTS(const void *in, const size_t *send_counts, const size_t *send_displs,
			   void *out, const size_t *recv_counts, const size_t *recv_displs,
			   int type, struct coll_group *group),
      ARGUMENTS(in, send_counts, send_displs, out, recv_counts, recv_displs, type, group))

static struct request reduce(const void *in, void *out, size_t count, int type, int op, int root,
			     struct coll_group *group)
{
	struct request request = collective_begin(COLL_REDUCE, group);

	set_type(&request, type);
	set_reduction(&request, op);
	set_count(&request, count, 1);
	set_root(&request, root);
	set_buffers(&request, in, out);
	if (request.call.in_place && request.call.rank != request.call.root)
		collective_refuse(&request, "in", "a buffer: only the root reduces in place");
	return request;
}
FORMS(reduce, ARGUMENTS(const void *in, void *out, size_t count, int type, int op, int root,
			struct coll_group *group),
      ARGUMENTS(in, out, count, type, op, root, group))

/* allreduce, scan and exscan have the same arguments. */
static struct request reduce_all(enum coll_collective collective, const void *in, void *out,
				 size_t count, int type, int op, struct coll_group *group)
{
	struct request request = collective_begin(collective, group);

	set_type(&request, type);
	set_reduction(&request, op);
	set_count(&request, count, 1);
	set_buffers(&request, in, out);
	return request;
}

#define REDUCE_ALL(name, collective)                                                          \
	static struct request name(const void *in, void *out, size_t count, int type, int op,  \
				   struct coll_group *group)                                    \
	{                                                                                      \
		return reduce_all(collective, in, out, count, type, op, group);                \
	}                                                                                      \
	FORMS(name, ARGUMENTS(const void *in, void *out, size_t count, int type, int op,       \
			      struct coll_group *group),                                        \
	      ARGUMENTS(in, out, count, type, op, group))

REDUCE_ALL(allreduce, COLL_ALLREDUCE)
REDUCE_ALL(scan, COLL_SCAN)
REDUCE_ALL(exscan, COLL_EXSCAN)

static struct request reduce_scatter(const void *in, void *out, const size_t *counts, int type,
				     int op, struct coll_group *group)
{
	struct request request = collective_begin(COLL_REDUCE_SCATTER, group);

	set_type(&request, type);
	set_reduction(&request, op);
	request.call.counts = counts_of(&request, counts, "counts", true);
	set_buffers(&request, in, out);
	if (!request.error)
		request.call.count = counts[group->rank];
	return request;
}
FORMS(reduce_scatter, ARGUMENTS(const void *in, void *out, const size_t *counts, int type, int op,
				struct coll_group *group),
      ARGUMENTS(in, out, counts, type, op, group))

static struct request reduce_scatter_block(const void *in, void *out, size_t count, int type,
					   int op, struct coll_group *group)
{
	struct request request = collective_begin(COLL_REDUCE_SCATTER_BLOCK, group);

	set_type(&request, type);
	set_reduction(&request, op);
	set_count(&request, count, group->ranks);
	set_buffers(&request, in, out);
	return request;
}
FORMS(reduce_scatter_block, ARGUMENTS(const void *in, void *out, size_t count, int type, int op,
				      struct coll_group *group),
      ARGUMENTS(in, out, count, type, op, group))
