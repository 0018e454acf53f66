// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A call's buffers as libcoll takes them. Data that is only moved goes as bytes:
 * as it lies where its type is dense, else packed into a place of ours before and
 * unpacked from it after. So ranks may describe the same data by different types.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

enum { PACK_MAX = 1 << 28 };

/* Bits of how data is used. */
enum use { IN = 1, OUT = 2 };

/* ---- packing ------------------------------------------------------------- */

static int pack_some(const uint8_t *from, MPI_Count count, MPI_Datatype type, uint8_t *to,
		     MPI_Count bytes)
{
	int position = 0;

	return real.Pack(from, count, type, to, bytes, &position, shim.self);
}

static int unpack_some(const uint8_t *from, MPI_Count bytes, uint8_t *to, MPI_Count count,
		       MPI_Datatype type)
{
	int position = 0;

	return real.Unpack(from, bytes, &position, to, count, type, shim.self);
}

/* Elements that fit into what MPI_Pack can count. */
static MPI_Count at_once(const struct type *info)
{
	return info->size >= PACK_MAX ? 1 : PACK_MAX / (info->size ? info->size : 1);
}

static void stage_copy_in(const uint8_t *user, MPI_Count count, MPI_Datatype type,
			  const struct type *info, uint8_t *row)
{
	MPI_Count step = at_once(info), now;

	for (; count > 0; count -= now) {
		now = count < step ? count : step;
		pack_some(user, now, type, row, now * info->size);
		user += now * info->extent;
		row += now * info->size;
	}
}

static void stage_copy_out(const uint8_t *row, uint8_t *user, MPI_Count count, MPI_Datatype type,
			   const struct type *info)
{
	MPI_Count step = at_once(info), now;

	for (; count > 0; count -= now) {
		now = count < step ? count : step;
		unpack_some(row, now * info->size, user, now, type);
		user += now * info->extent;
		row += now * info->size;
	}
}

/* From one layout with gaps to another, touching no gap. */
static void copy_spread(const uint8_t *from, uint8_t *to, const struct piece *piece)
{
	const struct type *info = piece->info;
	uint8_t *row = malloc(info->size * piece->count + 1);

	if (!row)
		abort();	/* half a vector would be worse */
	stage_copy_in(from, piece->count, piece->type, info, row);
	stage_copy_out(row, to, piece->count, piece->type, info);
	free(row);
}

void stage_pack(struct stage *stage)
{
	uint32_t i;

	for (i = 0; i < stage->pieces_count; i++) {
		const struct piece *piece = &stage->pieces[i];

		if (!piece->in)
			continue;
		if (piece->spread)
			copy_spread(piece->user, piece->place - piece->info->true_lb, piece);
		else
			stage_copy_in(piece->user, piece->count, piece->type, piece->info,
				      piece->place);
	}
}

void stage_unpack(struct stage *stage)
{
	uint32_t i;

	for (i = 0; i < stage->pieces_count; i++) {
		const struct piece *piece = &stage->pieces[i];

		if (!piece->out)
			continue;
		if (piece->spread)
			copy_spread(piece->place - piece->info->true_lb, piece->user, piece);
		else
			stage_copy_out(piece->place, piece->user, piece->count, piece->type,
				       piece->info);
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

/* ---- places --------------------------------------------------------------- */

static uint8_t *place_new(struct stage *stage, size_t bytes)
{
	uint8_t *place = calloc(1, bytes + 16);	/* what is not received is not garbage */

	if (place)
		stage->memory[stage->memories++] = place;
	return place;
}

/* Room for `more` pieces besides those there are. */
static bool pieces_room(struct stage *stage, uint32_t more)
{
	const uint32_t need = stage->pieces_count + more;
	struct piece *pieces;

	if (!stage->pieces)
		stage->pieces = stage->few_pieces;
	if (need <= 2 && stage->pieces == stage->few_pieces)
		return true;
	pieces = calloc(need, sizeof(*pieces));
	if (!pieces)
		return false;
	memcpy(pieces, stage->pieces, stage->pieces_count * sizeof(*pieces));
	if (stage->pieces != stage->few_pieces)
		free(stage->pieces);
	stage->pieces = pieces;
	return true;
}

static void piece_add(struct stage *stage, const void *user, MPI_Count count, MPI_Datatype type,
		      const struct type *info, uint8_t *place, enum use use)
{
	stage->pieces[stage->pieces_count++] = (struct piece){
		.user = (uint8_t *)user,
		.count = count,
		.type = type,
		.info = info,
		.place = place,
		.in = use & IN,
		.out = use & OUT,
	};
}

/* `count` elements one after the other: where their bytes are. */
static int place_row(struct stage *stage, const void *user, MPI_Count count, MPI_Datatype type,
		     enum use use, void **place)
{
	const struct type *info = count ? type_find(type) : NULL;

	*place = stage->few;	/* somewhere, where there is nothing */
	if (!info || !info->size)
		return 0;
	if (info->dense) {
		*place = (uint8_t *)user + info->true_lb;
		return 0;
	}
	if (!pieces_room(stage, 1) || !(*place = place_new(stage, info->size * count)))
		return -ENOMEM;
	piece_add(stage, user, count, type, info, *place, use);
	return 0;
}

static size_t row_bytes(MPI_Count count, MPI_Datatype type)
{
	const struct type *info = count ? type_find(type) : NULL;

	return info ? info->size * count : 0;
}

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

/* As they lie; libcoll's displacements are not negative, so they count from the lowest. */
static void blocks_lie(const struct blocks *blocks, size_t *displs, void **place)
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
	*place = first ? (void *)displs : (uint8_t *)blocks->user + low;
}

static int blocks_pack(struct stage *stage, const struct blocks *blocks, const size_t *counts,
		       size_t *displs, enum use use, void **place)
{
	const struct type *info;
	size_t bytes = 0;
	int i;

	for (i = 0; i < blocks->ranks; i++) {
		displs[i] = bytes;
		bytes += counts[i];
	}
	if (!pieces_room(stage, blocks->ranks) || !(*place = place_new(stage, bytes)))
		return -ENOMEM;
	for (i = 0; i < blocks->ranks; i++) {
		info = block_info(blocks, i);
		if (info)
			piece_add(stage, (uint8_t *)blocks->user + block_at(blocks, i, info),
				  count_at(blocks->call, blocks->counts, i), block_type(blocks, i),
				  info, (uint8_t *)*place + displs[i], use);
	}
	return 0;
}

static int place_blocks(struct stage *stage, const struct blocks *blocks, size_t *counts,
			size_t *displs, enum use use, void **place)
{
	blocks_count(blocks, counts);
	if (!blocks_dense(blocks))
		return blocks_pack(stage, blocks, counts, displs, use, place);
	blocks_lie(blocks, displs, place);
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

	stage->count = stage->bytes = row_bytes(call->out_count, call->out_type);
	return place_row(stage, call->out, call->out_count, call->out_type, root ? IN : OUT,
			 &stage->out);
}

/* What this rank gives, unless it is in place already. */
static int make_in(struct task *task, MPI_Count blocks)
{
	const struct call *call = &task->call;
	void *place;
	int error;

	if (call->in == MPI_IN_PLACE) {
		task->stage.in = COLL_IN_PLACE;
		return 0;
	}
	error = place_row(&task->stage, call->in, call->in_count * blocks, call->in_type, IN,
			  &place);
	task->stage.in = place;
	return error;
}

/* What it gets; in place that has to be read, too. */
static int make_out(struct task *task, MPI_Count blocks)
{
	const struct call *call = &task->call;

	return place_row(&task->stage, call->out, call->out_count * blocks, call->out_type,
			 call->in == MPI_IN_PLACE ? IN | OUT : OUT, &task->stage.out);
}

static int make_gather(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	bool root = task->comm->rank == call->root;
	int error;

	stage->count = root ? row_bytes(call->out_count, call->out_type) :
			      row_bytes(call->in_count, call->in_type);
	stage->bytes = stage->count;
	error = make_in(task, 1);
	return !error && root ? make_out(task, task->comm->ranks) : error;
}

static int make_scatter(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	bool root = task->comm->rank == call->root;
	int error;

	stage->count = root ? row_bytes(call->in_count, call->in_type) :
			      row_bytes(call->out_count, call->out_type);
	stage->bytes = stage->count;
	error = root ? make_in(task, task->comm->ranks) : 0;
	if (error)
		return error;
	if (call->out != MPI_IN_PLACE)
		return make_out(task, 1);
	stage->out = COLL_IN_PLACE;
	return 0;
}

/* allgather, alltoall: the receive side says how much, also in place. */
static int make_all(struct task *task)
{
	const struct call *call = &task->call;
	MPI_Count in_blocks = call->which == WHICH_Alltoall ? task->comm->ranks : 1;
	int error;

	task->stage.count = task->stage.bytes = row_bytes(call->out_count, call->out_type);
	error = make_in(task, in_blocks);
	return error ? error : make_out(task, task->comm->ranks);
}

static int make_gatherv(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	struct blocks blocks = out_blocks(task);
	int error;

	stage->count = stage->bytes = row_bytes(call->in_count, call->in_type);
	error = make_in(task, 1);
	if (error || task->comm->rank != call->root) {
		stage->counts = stage->displs = NULL;
		return error;
	}
	error = place_blocks(stage, &blocks, stage->counts, stage->displs,
			     call->in == MPI_IN_PLACE ? IN | OUT : OUT, &stage->out);
	stage->count = stage->bytes = stage->counts[task->comm->rank];
	return error;
}

static int make_scatterv(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	struct blocks blocks = in_blocks(task);
	void *place;
	int error;

	if (task->comm->rank == call->root) {
		error = place_blocks(stage, &blocks, stage->counts, stage->displs, IN, &place);
		stage->in = place;
		stage->count = stage->counts[task->comm->rank];
		if (error)
			return error;
	} else {
		stage->counts = stage->displs = NULL;
		stage->count = row_bytes(call->out_count, call->out_type);
	}
	stage->bytes = stage->count;
	if (call->out != MPI_IN_PLACE)
		return make_out(task, 1);
	stage->out = COLL_IN_PLACE;
	return 0;
}

static int make_allgatherv(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	struct blocks blocks = out_blocks(task);
	int error = make_in(task, 1);

	if (!error)
		error = place_blocks(stage, &blocks, stage->counts, stage->displs,
				     call->in == MPI_IN_PLACE ? IN | OUT : OUT, &stage->out);
	stage->count = stage->bytes = stage->counts[task->comm->rank];
	return error;
}

static int make_alltoallv(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	struct blocks in = in_blocks(task), out = out_blocks(task);
	void *place;
	int error = 0, i;

	if (call->in == MPI_IN_PLACE) {
		stage->in = COLL_IN_PLACE;
		stage->counts = stage->displs = NULL;
	} else {
		error = place_blocks(stage, &in, stage->counts, stage->displs, IN, &place);
		stage->in = place;
	}
	if (!error)
		error = place_blocks(stage, &out, stage->out_counts, stage->out_displs,
				     stage->counts ? OUT : IN | OUT, &stage->out);
	for (i = 0; i < task->comm->ranks; i++)
		stage->bytes += stage->out_counts[i];
	return error;
}

/* ---- reductions ------------------------------------------------------------ */

/* Elements with their gaps: libcoll hands them to the program's own function. */
static int place_elements(struct stage *stage, const void *user, MPI_Count count,
			  MPI_Datatype type, enum use use, void **place)
{
	const struct type *info = count ? type_find(type) : NULL;

	*place = stage->few;
	if (!info)
		return 0;
	if (info->solid) {
		*place = (uint8_t *)user + info->true_lb;
		return 0;
	}
	if (!pieces_room(stage, 1) || !(*place = place_new(stage, info->extent * count)))
		return -ENOMEM;
	piece_add(stage, user, count, type, info, *place, use);
	stage->pieces[stage->pieces_count - 1].spread = true;
	return 0;
}

static int place_operands(struct task *task, MPI_Count in, MPI_Count out, bool result)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	bool in_place = call->in == MPI_IN_PLACE;
	void *place = COLL_IN_PLACE;
	int error = 0;

	if (!in_place)
		error = place_elements(stage, call->in, in, call->out_type, IN, &place);
	stage->in = place;
	/* What is not written, as on exscan's rank 0, must come back as it was. */
	if (!error && result)
		error = place_elements(stage, call->out, in_place ? in : out, call->out_type,
				       in_place || call->which == WHICH_Exscan ? IN | OUT : OUT,
				       &stage->out);
	return error;
}

static int make_reduction(struct task *task)
{
	const struct call *call = &task->call;
	struct stage *stage = &task->stage;
	const struct type *info = type_find(call->out_type);
	bool result = call->which != WHICH_Reduce || task->comm->rank == call->root;

	stage->count = call->out_count;
	stage->bytes = info->extent * stage->count;
	return place_operands(task, call->out_count, call->out_count, result);
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
	return place_operands(task, all, mine, true);
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
