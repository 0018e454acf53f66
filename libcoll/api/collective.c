// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The public calls. Each collective has a function that makes a request of its arguments,
 * and three public ones that block on it, start it or prepare it (request.c).
 *
 * Length: four functions for each collective.
 */
#include "libcoll/progress/progress.h"
#include "request.h"

/* ---- barrier ----------------------------------------------------------- */

static struct coll_request barrier_request(struct coll_group *group)
{
	return coll_request_begin(COLL_BARRIER, group);
}

/* The blocking form is the point where a group's plans of circuits may change. */
int coll_barrier(struct coll_group *group)
{
	const struct coll_repeat repeat = { .collective = COLL_BARRIER };
	int error;

	if (!coll_request_repeat(group, &repeat, &error))
		error = coll_request_block(barrier_request(group));
	if (!error && group->fabric)
		coll_progress_do(group->context, group->context->job->agree_again, group);
	return error;
}

int coll_ibarrier(struct coll_group *group, struct coll_run **run)
{
	return coll_request_start(barrier_request(group), run);
}

int coll_barrier_init(struct coll_group *group, struct coll_run **run)
{
	return coll_request_prepare(barrier_request(group), run);
}

/* ---- bcast ------------------------------------------------------------- */

static struct coll_request bcast_request(void *data, size_t count, enum coll_type type, int root,
					 struct coll_group *group)
{
	struct coll_request request = coll_request_begin(COLL_BCAST, group);

	coll_request_type(&request, type);
	coll_request_count(&request, count, 1);
	coll_request_root(&request, root);
	request.out = data;
	return request;
}

int coll_bcast(void *data, size_t count, enum coll_type type, int root, struct coll_group *group)
{
	const struct coll_repeat repeat = { COLL_BCAST, NULL, data, count, type, 0, root };
	int error;

	return coll_request_repeat(group, &repeat, &error) ? error :
	       coll_request_block(bcast_request(data, count, type, root, group));
}

int coll_ibcast(void *data, size_t count, enum coll_type type, int root, struct coll_group *group,
		struct coll_run **run)
{
	return coll_request_start(bcast_request(data, count, type, root, group), run);
}

int coll_bcast_init(void *data, size_t count, enum coll_type type, int root,
		    struct coll_group *group, struct coll_run **run)
{
	return coll_request_prepare(bcast_request(data, count, type, root, group), run);
}

/* ---- gather ------------------------------------------------------------ */

static struct coll_request gather_request(const void *in, void *out, size_t count,
					  enum coll_type type, int root, struct coll_group *group)
{
	struct coll_request request = coll_request_begin(COLL_GATHER, group);

	coll_request_type(&request, type);
	coll_request_count(&request, count, group->ranks);
	coll_request_root(&request, root);
	coll_request_buffers(&request, in, out);
	coll_request_in_place_on_root(&request, "in");
	return request;
}

int coll_gather(const void *in, void *out, size_t count, enum coll_type type, int root,
		struct coll_group *group)
{
	const struct coll_repeat repeat = { COLL_GATHER, in, out, count, type, 0, root };
	int error;

	return coll_request_repeat(group, &repeat, &error) ? error :
	       coll_request_block(gather_request(in, out, count, type, root, group));
}

int coll_igather(const void *in, void *out, size_t count, enum coll_type type, int root,
		 struct coll_group *group, struct coll_run **run)
{
	return coll_request_start(gather_request(in, out, count, type, root, group), run);
}

int coll_gather_init(const void *in, void *out, size_t count, enum coll_type type, int root,
		     struct coll_group *group, struct coll_run **run)
{
	return coll_request_prepare(gather_request(in, out, count, type, root, group), run);
}

/* ---- gatherv ----------------------------------------------------------- */

/*
 * Elsewhere than on the root counts and displs mean nothing, whatever they are: unless an
 * algorithm is requested that routes through other ranks.
 */
static bool request_reads_counts(const struct coll_request *request)
{
	const struct coll_call *call = &request->call;
	const struct coll_algo *requested = request->group->options.algo[call->collective];

	return call->rank == call->root || (requested && requested->needs_counts);
}

static void request_blocks_of_root(struct coll_request *request, const size_t *counts,
				   const size_t *displs)
{
	struct coll_call *call = &request->call;
	const bool root = call->rank == call->root;

	if (!request_reads_counts(request))
		return;
	call->counts = coll_request_counts(request, counts, "counts", root);
	if (root)
		call->displs = coll_request_displs(request, displs, "displs", call->counts);
	if (!request->error && call->counts)
		call->count = call->counts[call->rank];
}

static struct coll_request gatherv_request(const void *in, size_t count, void *out,
					   const size_t *counts, const size_t *displs,
					   enum coll_type type, int root,
					   struct coll_group *group)
{
	struct coll_request request = coll_request_begin(COLL_GATHERV, group);

	coll_request_type(&request, type);
	coll_request_root(&request, root);
	coll_request_count(&request, count, 1);
	request_blocks_of_root(&request, counts, displs);
	coll_request_buffers(&request, in, out);
	coll_request_in_place_on_root(&request, "in");
	return request;
}

int coll_gatherv(const void *in, size_t count, void *out, const size_t *counts,
		 const size_t *displs, enum coll_type type, int root, struct coll_group *group)
{
	return coll_request_block(gatherv_request(in, count, out, counts, displs, type, root,
						  group));
}

int coll_igatherv(const void *in, size_t count, void *out, const size_t *counts,
		  const size_t *displs, enum coll_type type, int root, struct coll_group *group,
		  struct coll_run **run)
{
	return coll_request_start(gatherv_request(in, count, out, counts, displs, type, root,
						  group), run);
}

int coll_gatherv_init(const void *in, size_t count, void *out, const size_t *counts,
		      const size_t *displs, enum coll_type type, int root,
		      struct coll_group *group, struct coll_run **run)
{
	return coll_request_prepare(gatherv_request(in, count, out, counts, displs, type, root,
						    group), run);
}

/* ---- scatter ----------------------------------------------------------- */

/* In place is said by `out`, since the root's block stays in `in`. */
static void request_scatter_buffers(struct coll_request *request, const void *in, void *out)
{
	request->in = (void *)in;
	request->out = out;
	request->call.in_place = out == COLL_IN_PLACE;
	coll_request_in_place_on_root(request, "out");
}

static struct coll_request scatter_request(const void *in, void *out, size_t count,
					   enum coll_type type, int root,
					   struct coll_group *group)
{
	struct coll_request request = coll_request_begin(COLL_SCATTER, group);

	coll_request_type(&request, type);
	coll_request_count(&request, count, group->ranks);
	coll_request_root(&request, root);
	request_scatter_buffers(&request, in, out);
	return request;
}

int coll_scatter(const void *in, void *out, size_t count, enum coll_type type, int root,
		 struct coll_group *group)
{
	const struct coll_repeat repeat = { COLL_SCATTER, in, out, count, type, 0, root };
	int error;

	return coll_request_repeat(group, &repeat, &error) ? error :
	       coll_request_block(scatter_request(in, out, count, type, root, group));
}

int coll_iscatter(const void *in, void *out, size_t count, enum coll_type type, int root,
		  struct coll_group *group, struct coll_run **run)
{
	return coll_request_start(scatter_request(in, out, count, type, root, group), run);
}

int coll_scatter_init(const void *in, void *out, size_t count, enum coll_type type, int root,
		      struct coll_group *group, struct coll_run **run)
{
	return coll_request_prepare(scatter_request(in, out, count, type, root, group), run);
}

/* ---- scatterv ---------------------------------------------------------- */

static struct coll_request scatterv_request(const void *in, const size_t *counts,
					    const size_t *displs, void *out, size_t count,
					    enum coll_type type, int root,
					    struct coll_group *group)
{
	struct coll_request request = coll_request_begin(COLL_SCATTERV, group);

	coll_request_type(&request, type);
	coll_request_root(&request, root);
	coll_request_count(&request, count, 1);
	request_blocks_of_root(&request, counts, displs);
	request_scatter_buffers(&request, in, out);
	return request;
}

int coll_scatterv(const void *in, const size_t *counts, const size_t *displs, void *out,
		  size_t count, enum coll_type type, int root, struct coll_group *group)
{
	return coll_request_block(scatterv_request(in, counts, displs, out, count, type, root,
						   group));
}

int coll_iscatterv(const void *in, const size_t *counts, const size_t *displs, void *out,
		   size_t count, enum coll_type type, int root, struct coll_group *group,
		   struct coll_run **run)
{
	return coll_request_start(scatterv_request(in, counts, displs, out, count, type, root,
						   group), run);
}

int coll_scatterv_init(const void *in, const size_t *counts, const size_t *displs, void *out,
		       size_t count, enum coll_type type, int root, struct coll_group *group,
		       struct coll_run **run)
{
	return coll_request_prepare(scatterv_request(in, counts, displs, out, count, type, root,
						     group), run);
}

/* ---- allgather --------------------------------------------------------- */

static struct coll_request allgather_request(const void *in, void *out, size_t count,
					     enum coll_type type, struct coll_group *group)
{
	struct coll_request request = coll_request_begin(COLL_ALLGATHER, group);

	coll_request_type(&request, type);
	coll_request_count(&request, count, group->ranks);
	coll_request_buffers(&request, in, out);
	return request;
}

int coll_allgather(const void *in, void *out, size_t count, enum coll_type type,
		   struct coll_group *group)
{
	const struct coll_repeat repeat = { COLL_ALLGATHER, in, out, count, type, 0, 0 };
	int error;

	return coll_request_repeat(group, &repeat, &error) ? error :
	       coll_request_block(allgather_request(in, out, count, type, group));
}

int coll_iallgather(const void *in, void *out, size_t count, enum coll_type type,
		    struct coll_group *group, struct coll_run **run)
{
	return coll_request_start(allgather_request(in, out, count, type, group), run);
}

int coll_allgather_init(const void *in, void *out, size_t count, enum coll_type type,
			struct coll_group *group, struct coll_run **run)
{
	return coll_request_prepare(allgather_request(in, out, count, type, group), run);
}

/* ---- allgatherv -------------------------------------------------------- */

static struct coll_request allgatherv_request(const void *in, size_t count, void *out,
					      const size_t *counts, const size_t *displs,
					      enum coll_type type, struct coll_group *group)
{
	struct coll_request request = coll_request_begin(COLL_ALLGATHERV, group);

	coll_request_type(&request, type);
	coll_request_count(&request, count, 1);
	request.call.counts = coll_request_counts(&request, counts, "counts", true);
	request.call.displs = coll_request_displs(&request, displs, "displs", request.call.counts);
	coll_request_buffers(&request, in, out);
	if (request.error)
		return request;
	if (!request.call.in_place && counts[group->rank] != count)
		coll_request_refuse(&request, "count (%zu) differs from counts[%u] (%zu), this "
				    "rank's; valid: the same", count, group->rank,
				    counts[group->rank]);
	request.call.count = counts[group->rank];
	return request;
}

int coll_allgatherv(const void *in, size_t count, void *out, const size_t *counts,
		    const size_t *displs, enum coll_type type, struct coll_group *group)
{
	return coll_request_block(allgatherv_request(in, count, out, counts, displs, type, group));
}

int coll_iallgatherv(const void *in, size_t count, void *out, const size_t *counts,
		     const size_t *displs, enum coll_type type, struct coll_group *group,
		     struct coll_run **run)
{
	return coll_request_start(allgatherv_request(in, count, out, counts, displs, type,
						     group), run);
}

int coll_allgatherv_init(const void *in, size_t count, void *out, const size_t *counts,
			 const size_t *displs, enum coll_type type, struct coll_group *group,
			 struct coll_run **run)
{
	return coll_request_prepare(allgatherv_request(in, count, out, counts, displs, type,
						       group), run);
}

/* ---- alltoall ---------------------------------------------------------- */

static struct coll_request alltoall_request(const void *in, void *out, size_t count,
					    enum coll_type type, struct coll_group *group)
{
	struct coll_request request = coll_request_begin(COLL_ALLTOALL, group);

	coll_request_type(&request, type);
	coll_request_count(&request, count, group->ranks);
	coll_request_buffers(&request, in, out);
	return request;
}

int coll_alltoall(const void *in, void *out, size_t count, enum coll_type type,
		  struct coll_group *group)
{
	const struct coll_repeat repeat = { COLL_ALLTOALL, in, out, count, type, 0, 0 };
	int error;

	return coll_request_repeat(group, &repeat, &error) ? error :
	       coll_request_block(alltoall_request(in, out, count, type, group));
}

int coll_ialltoall(const void *in, void *out, size_t count, enum coll_type type,
		   struct coll_group *group, struct coll_run **run)
{
	return coll_request_start(alltoall_request(in, out, count, type, group), run);
}

int coll_alltoall_init(const void *in, void *out, size_t count, enum coll_type type,
		       struct coll_group *group, struct coll_run **run)
{
	return coll_request_prepare(alltoall_request(in, out, count, type, group), run);
}

/* ---- alltoallv --------------------------------------------------------- */

static struct coll_request alltoallv_request(const void *in, const size_t *send_counts,
					     const size_t *send_displs, void *out,
					     const size_t *recv_counts, const size_t *recv_displs,
					     enum coll_type type, struct coll_group *group)
{
	struct coll_request request = coll_request_begin(COLL_ALLTOALLV, group);
	struct coll_call *call = &request.call;

	coll_request_type(&request, type);
	coll_request_buffers(&request, in, out);
	call->recv_counts = coll_request_counts(&request, recv_counts, "recv_counts", true);
	call->recv_displs = coll_request_displs(&request, recv_displs, "recv_displs",
						call->recv_counts);
	if (call->in_place) {	/* what comes replaces what goes */
		call->send_counts = call->recv_counts;
		call->send_displs = call->recv_displs;
	} else {
		call->send_counts = coll_request_counts(&request, send_counts, "send_counts", true);
		call->send_displs = coll_request_displs(&request, send_displs, "send_displs",
							call->send_counts);
	}
	return request;
}

int coll_alltoallv(const void *in, const size_t *send_counts, const size_t *send_displs, void *out,
		   const size_t *recv_counts, const size_t *recv_displs, enum coll_type type,
		   struct coll_group *group)
{
	return coll_request_block(alltoallv_request(in, send_counts, send_displs, out, recv_counts,
						    recv_displs, type, group));
}

int coll_ialltoallv(const void *in, const size_t *send_counts, const size_t *send_displs,
		    void *out, const size_t *recv_counts, const size_t *recv_displs,
		    enum coll_type type, struct coll_group *group, struct coll_run **run)
{
	return coll_request_start(alltoallv_request(in, send_counts, send_displs, out, recv_counts,
						    recv_displs, type, group), run);
}

int coll_alltoallv_init(const void *in, const size_t *send_counts, const size_t *send_displs,
			void *out, const size_t *recv_counts, const size_t *recv_displs,
			enum coll_type type, struct coll_group *group, struct coll_run **run)
{
	return coll_request_prepare(alltoallv_request(in, send_counts, send_displs, out,
						      recv_counts, recv_displs, type, group), run);
}

/* ---- reduce ------------------------------------------------------------ */

static struct coll_request reduction_request(enum coll_collective collective, const void *in,
					     void *out, size_t count, enum coll_type type,
					     enum coll_reduction op, struct coll_group *group)
{
	struct coll_request request = coll_request_begin(collective, group);

	coll_request_type(&request, type);
	coll_request_reduction(&request, op);
	coll_request_count(&request, count, 1);
	coll_request_buffers(&request, in, out);
	return request;
}

/* The blocking form of those without a root. */
static int reduction_block(enum coll_collective collective, const void *in, void *out, size_t count,
			   enum coll_type type, enum coll_reduction op, struct coll_group *group)
{
	const struct coll_repeat repeat = { collective, in, out, count, type, op, 0 };
	int error;

	return coll_request_repeat(group, &repeat, &error) ? error :
	       coll_request_block(reduction_request(collective, in, out, count, type, op, group));
}

static struct coll_request reduce_request(const void *in, void *out, size_t count,
					  enum coll_type type, enum coll_reduction op, int root,
					  struct coll_group *group)
{
	struct coll_request request = reduction_request(COLL_REDUCE, in, out, count, type, op,
							group);

	coll_request_root(&request, root);
	coll_request_in_place_on_root(&request, "in");
	return request;
}

int coll_reduce(const void *in, void *out, size_t count, enum coll_type type,
		enum coll_reduction op, int root, struct coll_group *group)
{
	const struct coll_repeat repeat = { COLL_REDUCE, in, out, count, type, op, root };
	int error;

	return coll_request_repeat(group, &repeat, &error) ? error :
	       coll_request_block(reduce_request(in, out, count, type, op, root, group));
}

int coll_ireduce(const void *in, void *out, size_t count, enum coll_type type,
		 enum coll_reduction op, int root, struct coll_group *group, struct coll_run **run)
{
	return coll_request_start(reduce_request(in, out, count, type, op, root, group), run);
}

int coll_reduce_init(const void *in, void *out, size_t count, enum coll_type type,
		     enum coll_reduction op, int root, struct coll_group *group,
		     struct coll_run **run)
{
	return coll_request_prepare(reduce_request(in, out, count, type, op, root, group), run);
}

/* ---- allreduce --------------------------------------------------------- */

int coll_allreduce(const void *in, void *out, size_t count, enum coll_type type,
		   enum coll_reduction op, struct coll_group *group)
{
	return reduction_block(COLL_ALLREDUCE, in, out, count, type, op, group);
}

int coll_iallreduce(const void *in, void *out, size_t count, enum coll_type type,
		    enum coll_reduction op, struct coll_group *group, struct coll_run **run)
{
	return coll_request_start(reduction_request(COLL_ALLREDUCE, in, out, count, type, op,
						    group), run);
}

int coll_allreduce_init(const void *in, void *out, size_t count, enum coll_type type,
			enum coll_reduction op, struct coll_group *group, struct coll_run **run)
{
	return coll_request_prepare(reduction_request(COLL_ALLREDUCE, in, out, count, type, op,
						      group), run);
}

/* ---- reduce_scatter ---------------------------------------------------- */

static struct coll_request reduce_scatter_request(const void *in, void *out, const size_t *counts,
						  enum coll_type type, enum coll_reduction op,
						  struct coll_group *group)
{
	struct coll_request request = coll_request_begin(COLL_REDUCE_SCATTER, group);

	coll_request_type(&request, type);
	coll_request_reduction(&request, op);
	request.call.counts = coll_request_counts(&request, counts, "counts", true);
	coll_request_buffers(&request, in, out);
	if (!request.error)
		request.call.count = counts[group->rank];
	return request;
}

int coll_reduce_scatter(const void *in, void *out, const size_t *counts, enum coll_type type,
			enum coll_reduction op, struct coll_group *group)
{
	return coll_request_block(reduce_scatter_request(in, out, counts, type, op, group));
}

int coll_ireduce_scatter(const void *in, void *out, const size_t *counts, enum coll_type type,
			 enum coll_reduction op, struct coll_group *group, struct coll_run **run)
{
	return coll_request_start(reduce_scatter_request(in, out, counts, type, op, group), run);
}

int coll_reduce_scatter_init(const void *in, void *out, const size_t *counts, enum coll_type type,
			     enum coll_reduction op, struct coll_group *group,
			     struct coll_run **run)
{
	return coll_request_prepare(reduce_scatter_request(in, out, counts, type, op, group), run);
}

/* ---- reduce_scatter_block ---------------------------------------------- */

static struct coll_request reduce_scatter_block_request(const void *in, void *out, size_t count,
							enum coll_type type,
							enum coll_reduction op,
							struct coll_group *group)
{
	struct coll_request request = coll_request_begin(COLL_REDUCE_SCATTER_BLOCK, group);

	coll_request_type(&request, type);
	coll_request_reduction(&request, op);
	coll_request_count(&request, count, group->ranks);
	coll_request_buffers(&request, in, out);
	return request;
}

int coll_reduce_scatter_block(const void *in, void *out, size_t count, enum coll_type type,
			      enum coll_reduction op, struct coll_group *group)
{
	const struct coll_repeat repeat = { COLL_REDUCE_SCATTER_BLOCK, in, out, count, type, op, 0 };
	int error;

	return coll_request_repeat(group, &repeat, &error) ? error :
	       coll_request_block(reduce_scatter_block_request(in, out, count, type, op, group));
}

int coll_ireduce_scatter_block(const void *in, void *out, size_t count, enum coll_type type,
			       enum coll_reduction op, struct coll_group *group,
			       struct coll_run **run)
{
	return coll_request_start(reduce_scatter_block_request(in, out, count, type, op,
							       group), run);
}

int coll_reduce_scatter_block_init(const void *in, void *out, size_t count, enum coll_type type,
				   enum coll_reduction op, struct coll_group *group,
				   struct coll_run **run)
{
	return coll_request_prepare(reduce_scatter_block_request(in, out, count, type, op,
								 group), run);
}

/* ---- scan -------------------------------------------------------------- */

int coll_scan(const void *in, void *out, size_t count, enum coll_type type, enum coll_reduction op,
	      struct coll_group *group)
{
	return reduction_block(COLL_SCAN, in, out, count, type, op, group);
}

int coll_iscan(const void *in, void *out, size_t count, enum coll_type type,
	       enum coll_reduction op, struct coll_group *group, struct coll_run **run)
{
	return coll_request_start(reduction_request(COLL_SCAN, in, out, count, type, op,
						    group), run);
}

int coll_scan_init(const void *in, void *out, size_t count, enum coll_type type,
		   enum coll_reduction op, struct coll_group *group, struct coll_run **run)
{
	return coll_request_prepare(reduction_request(COLL_SCAN, in, out, count, type, op,
						      group), run);
}

/* ---- exscan ------------------------------------------------------------ */

int coll_exscan(const void *in, void *out, size_t count, enum coll_type type,
		enum coll_reduction op, struct coll_group *group)
{
	return reduction_block(COLL_EXSCAN, in, out, count, type, op, group);
}

int coll_iexscan(const void *in, void *out, size_t count, enum coll_type type,
		 enum coll_reduction op, struct coll_group *group, struct coll_run **run)
{
	return coll_request_start(reduction_request(COLL_EXSCAN, in, out, count, type, op,
						    group), run);
}

int coll_exscan_init(const void *in, void *out, size_t count, enum coll_type type,
		     enum coll_reduction op, struct coll_group *group, struct coll_run **run)
{
	return coll_request_prepare(reduction_request(COLL_EXSCAN, in, out, count, type, op,
						      group), run);
}
