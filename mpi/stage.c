// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The buffers of a call, as libcoll takes them. Data that is only moved travels as bytes:
 * from where it lies if its type is dense, else packed before the call and unpacked after
 * it (piece.c). So ranks may describe the same data by different types.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "piece.h"

/* ---- blocks --------------------------------------------------------------- */

/* Blocks of a v or w collective, one a rank. */
struct blocks {
	const struct call *call;
	const void *user;
	const void *counts, *displs;	/* of int, or large */
	MPI_Datatype type;
	const MPI_Datatype *types;	/* w: one a block, displacements in bytes */
	int ranks;
};

static MPI_Datatype block_type(const struct blocks *blocks, int i)
{
	return blocks->types ? blocks->types[i] : blocks->type;
}

/* NULL: an empty block. */
static const struct type *block_info(const struct blocks *blocks, int i)
{
	const struct type *info = NULL;

	if (count_at(blocks->call, blocks->counts, i) > 0)
		info = type_find(block_type(blocks, i));
	return info && info->size ? info : NULL;
}

/* Where it begins, from the user's buffer. */
static MPI_Aint block_at(const struct blocks *blocks, int i, const struct type *info)
{
	MPI_Aint at = displ_at(blocks->call, blocks->displs, i);

	return blocks->types ? at : at * (MPI_Aint)info->extent;
}

static bool blocks_dense(const struct blocks *blocks)
{
	const struct type *info;
	int i;

	for (i = 0; i < blocks->ranks; i++) {
		info = block_info(blocks, i);
		if (info && !info->dense)
			return false;
	}
	return true;
}

static void blocks_count(const struct blocks *blocks, size_t *counts)
{
	const struct type *info;
	int i;

	for (i = 0; i < blocks->ranks; i++) {
		info = block_info(blocks, i);
		counts[i] = info ? count_at(blocks->call, blocks->counts, i) * info->size : 0;
	}
}

/* Not packed. libcoll's displacements are not negative: they count from the lowest block. */
static void blocks_direct(const struct blocks *blocks, size_t *displs, void **packed)
{
	const struct type *info;
	MPI_Aint low = 0, at;
	bool first = true;
	int i;

	for (i = 0; i < blocks->ranks; i++) {
		info = block_info(blocks, i);
		at = info ? block_at(blocks, i, info) + info->true_lb : 0;
		if (info && (first || at < low)) {
			low = at;
			first = false;
		}
	}
	for (i = 0; i < blocks->ranks; i++) {
		info = block_info(blocks, i);
		displs[i] = info ? block_at(blocks, i, info) + info->true_lb - low : 0;
	}
	*packed = first ? (void *)displs : (uint8_t *)blocks->user + low;
}

static int blocks_pack(struct stage *stage, const struct blocks *blocks, const size_t *counts,
		       size_t *displs, enum use use, void **packed)
{
	const struct type *info;
	size_t bytes = 0;
	int i;

	for (i = 0; i < blocks->ranks; i++) {
		displs[i] = bytes;
		bytes += counts[i];
	}
	if (!pieces_reserve(stage, blocks->ranks) || !(*packed = piece_buffer(stage, bytes)))
		return -ENOMEM;
	for (i = 0; i < blocks->ranks; i++) {
		info = block_info(blocks, i);
		if (info)
			piece_add(stage, (uint8_t *)blocks->user + block_at(blocks, i, info),
				  count_at(blocks->call, blocks->counts, i), block_type(blocks, i),
				  info, (uint8_t *)*packed + displs[i], use);
	}
	return 0;
}

static int stage_blocks(struct stage *stage, const struct blocks *blocks, size_t *counts,
			size_t *displs, enum use use, void **packed)
{
	blocks_count(blocks, counts);
	if (!blocks_dense(blocks))
		return blocks_pack(stage, blocks, counts, displs, use, packed);
	blocks_direct(blocks, displs, packed);
	return 0;
}

static struct blocks in_blocks(const struct task *task)
{
	const struct call *call = &task->call;

	return (struct blocks){ call, call->in, call->in_counts, call->in_displs, call->in_type,
				call->in_types, task->comm->ranks };
}

static struct blocks out_blocks(const struct task *task)
{
	const struct call *call = &task->call;

	return (struct blocks){ call, call->out, call->out_counts, call->out_displs,
				call->out_type, call->out_types, task->comm->ranks };
}

/* ---- collectives ----------------------------------------------------------- */

static int make_bcast(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	bool root = task->comm->rank == call->root;

	stage->count = stage->bytes = type_bytes(call->out_count, call->out_type);
	return piece_row(stage, call->out, call->out_count, call->out_type, root ? USE_IN : USE_OUT,
			 &stage->out);
}

/*
 * What this rank sends to itself it receives: MPI requires the same of both. Else the run goes on, as that of the
 * other ranks does, with a buffer of ours where the program's has another size, and then the call fails.
 */
static bool own_block_fits(struct stage *stage, size_t sent, size_t received)
{
	if (sent == received)
		return true;
	stage->refused = MPI_ERR_TRUNCATE;
	stage->sent = sent;
	stage->received = received;
	return false;
}

/* This rank's input, unless it is in place: so many blocks of `bytes`. */
static int make_in(struct task *task, MPI_Count blocks, size_t bytes)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	void *packed;
	int error;

	if (call->in == MPI_IN_PLACE) {
		stage->in = COLL_IN_PLACE;
		return 0;
	}
	if (!own_block_fits(stage, type_bytes(call->in_count, call->in_type), bytes)) {
		stage->in = piece_buffer(stage, bytes * blocks);
		return stage->in ? 0 : -ENOMEM;
	}
	error = piece_row(stage, call->in, call->in_count * blocks, call->in_type, USE_IN, &packed);
	stage->in = packed;
	return error;
}

/* Its output; in place libcoll reads it, too. */
static int make_out(struct task *task, MPI_Count blocks)
{
	const struct call *call = &task->call;

	return piece_row(&task->stage, call->out, call->out_count * blocks, call->out_type,
			 call->in == MPI_IN_PLACE ? USE_IN | USE_OUT : USE_OUT, &task->stage.out);
}

/* The one block that this rank gets of a scatter, unless it is in place. */
static int make_out_block(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;

	if (call->out == MPI_IN_PLACE) {
		stage->out = COLL_IN_PLACE;
		return 0;
	}
	if (own_block_fits(stage, stage->count, type_bytes(call->out_count, call->out_type)))
		return make_out(task, 1);
	stage->out = piece_buffer(stage, stage->count);
	return stage->out ? 0 : -ENOMEM;
}

static int make_gather(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	bool root = task->comm->rank == call->root;
	int error;

	stage->count = root ? type_bytes(call->out_count, call->out_type) :
			      type_bytes(call->in_count, call->in_type);
	stage->bytes = stage->count;
	error = make_in(task, 1, stage->count);
	return !error && root ? make_out(task, task->comm->ranks) : error;
}

static int make_scatter(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	bool root = task->comm->rank == call->root;
	int error;

	stage->count = root ? type_bytes(call->in_count, call->in_type) :
			      type_bytes(call->out_count, call->out_type);
	stage->bytes = stage->count;
	error = root ? make_in(task, task->comm->ranks, stage->count) : 0;
	return error ? error : make_out_block(task);
}

/* allgather, alltoall: the receive side has the count, also in place. */
static int make_all(struct task *task)
{
	const struct call *call = &task->call;
	MPI_Count in_blocks = call->which == WHICH_Alltoall ? task->comm->ranks : 1;
	int error;

	task->stage.count = task->stage.bytes = type_bytes(call->out_count, call->out_type);
	error = make_in(task, in_blocks, task->stage.count);
	return error ? error : make_out(task, task->comm->ranks);
}

static int make_gatherv(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	struct blocks blocks = out_blocks(task);
	int error = 0;

	if (task->comm->rank == call->root) {
		error = stage_blocks(stage, &blocks, stage->counts, stage->displs,
				     call->in == MPI_IN_PLACE ? USE_IN | USE_OUT : USE_OUT,
				     &stage->out);
		stage->count = stage->counts[task->comm->rank];
	} else {
		stage->counts = stage->displs = NULL;
		stage->count = type_bytes(call->in_count, call->in_type);
	}
	stage->bytes = stage->count;
	return error ? error : make_in(task, 1, stage->count);
}

static int make_scatterv(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	struct blocks blocks = in_blocks(task);
	void *packed;
	int error;

	if (task->comm->rank == call->root) {
		error = stage_blocks(stage, &blocks, stage->counts, stage->displs, USE_IN, &packed);
		stage->in = packed;
		stage->count = stage->counts[task->comm->rank];
		if (error)
			return error;
	} else {
		stage->counts = stage->displs = NULL;
		stage->count = type_bytes(call->out_count, call->out_type);
	}
	stage->bytes = stage->count;
	return make_out_block(task);
}

static int make_allgatherv(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	struct blocks blocks = out_blocks(task);
	int error = stage_blocks(stage, &blocks, stage->counts, stage->displs,
				 call->in == MPI_IN_PLACE ? USE_IN | USE_OUT : USE_OUT, &stage->out);

	stage->count = stage->bytes = stage->counts[task->comm->rank];
	return error ? error : make_in(task, 1, stage->count);
}

static int make_alltoallv(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	struct blocks in = in_blocks(task), out = out_blocks(task);
	const int rank = task->comm->rank;
	void *packed;
	int error = 0, i;

	if (call->in == MPI_IN_PLACE) {
		stage->in = COLL_IN_PLACE;
		stage->counts = stage->displs = NULL;
	} else {
		error = stage_blocks(stage, &in, stage->counts, stage->displs, USE_IN, &packed);
		stage->in = packed;
	}
	if (!error)
		error = stage_blocks(stage, &out, stage->out_counts, stage->out_displs,
				     stage->counts ? USE_OUT : USE_IN | USE_OUT, &stage->out);
	if (!error && stage->counts && !own_block_fits(stage, stage->counts[rank], stage->out_counts[rank]))
		stage->counts[rank] = stage->out_counts[rank] = 0;
	for (i = 0; i < task->comm->ranks; i++)
		stage->bytes += stage->out_counts[i];
	return error;
}

/* ---- reductions ------------------------------------------------------------ */

static int stage_operands(struct task *task, MPI_Count in, MPI_Count out)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	bool in_place = call->in == MPI_IN_PLACE;
	void *packed = COLL_IN_PLACE;
	int error = 0;

	if (!in_place)
		error = piece_elements(stage, call->in, in, call->out_type, USE_IN, &packed);
	stage->in = packed;
	if (!error && call_has_result(call))
		error = piece_elements(stage, call->out, in_place ? in : out, call->out_type,
				       in_place ? USE_IN | USE_OUT : USE_OUT, &stage->out);
	return error;
}

static int make_reduction(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	const struct type *info = type_find(call->out_type);

	stage->count = call->out_count;
	stage->bytes = info->extent * stage->count;
	return stage_operands(task, call->out_count, call->out_count);
}

static int make_reduce_scatter(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	const struct type *info = type_find(call->out_type);
	bool block = call->which == WHICH_Reduce_scatter_block;
	MPI_Count all = 0, mine = block ? call->out_count : 0;
	int i;

	for (i = 0; i < task->comm->ranks; i++) {
		stage->counts[i] = block ? call->out_count : count_at(call, call->out_counts, i);
		all += stage->counts[i];
	}
	if (!block)
		mine = stage->counts[task->comm->rank];
	stage->count = mine;
	stage->bytes = info->extent * all;
	return stage_operands(task, all, mine);
}

/* ---- all ------------------------------------------------------------------- */

static bool has_arrays(enum which which)
{
	return which == WHICH_Gatherv || which == WHICH_Scatterv || which == WHICH_Allgatherv ||
	       which == WHICH_Alltoallv || which == WHICH_Alltoallw ||
	       which == WHICH_Reduce_scatter || which == WHICH_Reduce_scatter_block;
}

static int make_arrays(struct task *task)
{
	struct stage *stage = &task->stage;
	const size_t n = task->comm->ranks;

	stage->arrays = stage->few;
	if (4 * n > FEW)
		stage->arrays = malloc(4 * n * sizeof(*stage->arrays));
	if (!stage->arrays)
		return -ENOMEM;
	stage->counts = stage->arrays;
	stage->displs = stage->arrays + n;
	stage->out_counts = stage->arrays + 2 * n;
	stage->out_displs = stage->arrays + 3 * n;
	return 0;
}

static int stage_create(struct task *task)
{
	switch (task->call.which) {
	case WHICH_Bcast:
		return make_bcast(task);
	case WHICH_Gather:
		return make_gather(task);
	case WHICH_Scatter:
		return make_scatter(task);
	case WHICH_Allgather:
	case WHICH_Alltoall:
		return make_all(task);
	case WHICH_Gatherv:
		return make_gatherv(task);
	case WHICH_Scatterv:
		return make_scatterv(task);
	case WHICH_Allgatherv:
		return make_allgatherv(task);
	case WHICH_Alltoallv:
	case WHICH_Alltoallw:
		return make_alltoallv(task);
	case WHICH_Reduce_scatter:
	case WHICH_Reduce_scatter_block:
		return make_reduce_scatter(task);
	case WHICH_Reduce:
	case WHICH_Allreduce:
	case WHICH_Scan:
	case WHICH_Exscan:
		return make_reduction(task);
	default:
		return 0;	/* a barrier has no data */
	}
}

void stage_free(struct stage *stage)
{
	if (stage->pieces != stage->few_pieces)
		free(stage->pieces);
	if (stage->arrays != stage->few)
		free(stage->arrays);
	while (stage->memories)
		free(stage->memory[--stage->memories]);
}

int stage_make(struct task *task)
{
	struct stage *stage = &task->stage;
	int error = 0;

	stage->pieces = stage->few_pieces;
	stage->arrays = stage->few;
	if (has_arrays(task->call.which))
		error = make_arrays(task);
	if (!error)
		error = stage_create(task);
	if (error)
		stage_free(stage);
	return error;
}
