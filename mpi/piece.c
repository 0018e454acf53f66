// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Packing: data whose type has gaps travels through a buffer of ours. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "piece.h"

enum { PACK_MAX = 1 << 28 };

/* ---- copying -------------------------------------------------------------- */

#if HAVE_LARGE
static int pack_some(const uint8_t *from, MPI_Count count, MPI_Datatype type, uint8_t *to,
		     MPI_Count bytes)
{
	MPI_Count position = 0;

	return real.Pack_c(from, count, type, to, bytes, &position, shim.self);
}

static int unpack_some(const uint8_t *from, MPI_Count bytes, uint8_t *to, MPI_Count count,
		       MPI_Datatype type)
{
	MPI_Count position = 0;

	return real.Unpack_c(from, bytes, &position, to, count, type, shim.self);
}
#else
/* Of a single element the bytes may be more than an int counts. */
static int pack_some(const uint8_t *from, MPI_Count count, MPI_Datatype type, uint8_t *to,
		     MPI_Count bytes)
{
	int position = 0;

	return bytes > INT_MAX ? MPI_ERR_COUNT : real.Pack(from, count, type, to, bytes, &position, shim.self);
}

static int unpack_some(const uint8_t *from, MPI_Count bytes, uint8_t *to, MPI_Count count,
		       MPI_Datatype type)
{
	int position = 0;

	return bytes > INT_MAX ? MPI_ERR_COUNT : real.Unpack(from, bytes, &position, to, count, type, shim.self);
}
#endif

int pack_view_open(struct pack_view *view, uint8_t *user, MPI_Datatype type)
{
	const MPI_Aint back = -(MPI_Aint)(uintptr_t)view;
	const int one = 1;
	int code;

	*view = (struct pack_view){ user, type, user == MPI_BOTTOM };
	if (!view->made)
		return MPI_SUCCESS;
	view->at = (uint8_t *)view;
	code = real.Type_create_hindexed(1, &one, &back, type, &view->type);
	if (code)
		view->made = false;
	return code ? code : real.Type_commit(&view->type);
}

void pack_view_close(struct pack_view *view)
{
	if (view->made)
		real.Type_free(&view->type);
}

/* Elements of one call of MPI_Pack, which an int counts. */
static MPI_Count pack_step(const struct type *info)
{
	return info->size >= PACK_MAX ? 1 : PACK_MAX / (info->size ? info->size : 1);
}

/* Both return the MPI's code: where it is an error, some of the elements have not been copied. */
static int piece_copy_in(const uint8_t *user, MPI_Count count, MPI_Datatype type,
			  const struct type *info, uint8_t *row)
{
	MPI_Count step = pack_step(info), now;
	struct pack_view view;
	int code = pack_view_open(&view, (uint8_t *)user, type);

	for (; count > 0 && !code; count -= now) {
		now = count < step ? count : step;
		code = pack_some(view.at, now, view.type, row, now * info->size);
		view.at += now * info->extent;
		row += now * info->size;
	}
	pack_view_close(&view);
	return code;
}

static int piece_copy_out(const uint8_t *row, uint8_t *user, MPI_Count count, MPI_Datatype type,
			   const struct type *info)
{
	MPI_Count step = pack_step(info), now;
	struct pack_view view;
	int code = pack_view_open(&view, user, type);

	for (; count > 0 && !code; count -= now) {
		now = count < step ? count : step;
		code = unpack_some(row, now * info->size, view.at, now, view.type);
		view.at += now * info->extent;
		row += now * info->size;
	}
	pack_view_close(&view);
	return code;
}

/* From one layout with gaps to another, touching no gap. */
static int piece_copy_spread(const uint8_t *from, uint8_t *to, const struct piece *piece)
{
	const struct type *info = piece->info;
	uint8_t *row = malloc(info->size * piece->count + 1);
	int code = MPI_ERR_NO_MEM;

	if (row)
		code = piece_copy_in(from, piece->count, piece->type, info, row);
	if (!code)
		code = piece_copy_out(row, to, piece->count, piece->type, info);
	free(row);
	return code;
}

static int piece_pack(const struct piece *piece)
{
	if (piece->spread)
		return piece_copy_spread(piece->user, piece->packed - piece->info->true_lb, piece);
	return piece_copy_in(piece->user, piece->count, piece->type, piece->info, piece->packed);
}

static int piece_unpack(const struct piece *piece)
{
	if (piece->spread)
		return piece_copy_spread(piece->packed - piece->info->true_lb, piece->user, piece);
	return piece_copy_out(piece->packed, piece->user, piece->count, piece->type, piece->info);
}

void pieces_pack(struct stage *stage)
{
	uint32_t i;

	stage->code = stage->refused;
	for (i = 0; i < stage->pieces_count && !stage->code; i++)
		if (stage->pieces[i].in)
			stage->code = piece_pack(&stage->pieces[i]);
}

void pieces_unpack(struct stage *stage)
{
	uint32_t i;

	for (i = 0; i < stage->pieces_count && !stage->code; i++)
		if (stage->pieces[i].out)
			stage->code = piece_unpack(&stage->pieces[i]);
}

/* ---- buffers -------------------------------------------------------------- */

uint8_t *piece_buffer(struct stage *stage, size_t bytes)
{
	uint8_t *packed = calloc(1, bytes + 16);	/* zeros where nothing is received */

	assert(stage->memories < sizeof(stage->memory) / sizeof(*stage->memory));
	if (packed)
		stage->memory[stage->memories++] = packed;
	return packed;
}

/* Room for `more` pieces besides those there are. */
bool pieces_reserve(struct stage *stage, uint32_t more)
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

void piece_add(struct stage *stage, const void *user, MPI_Count count, MPI_Datatype type,
		      const struct type *info, uint8_t *packed, enum use use)
{
	stage->pieces[stage->pieces_count++] = (struct piece){
		.user = (uint8_t *)user,
		.count = count,
		.type = type,
		.info = info,
		.packed = packed,
		.in = use & USE_IN,
		.out = use & USE_OUT,
	};
}

/* `count` elements one after the other: where their bytes are. */
int piece_row(struct stage *stage, const void *user, MPI_Count count, MPI_Datatype type,
		     enum use use, void **packed)
{
	const struct type *info = count ? type_find(type) : NULL;

	*packed = stage->few;	/* any address: there are no elements */
	if (!info || !info->size)
		return 0;
	if (info->dense) {
		*packed = (uint8_t *)user + info->true_lb;
		return 0;
	}
	if (!pieces_reserve(stage, 1) || !(*packed = piece_buffer(stage, info->size * count)))
		return -ENOMEM;
	piece_add(stage, user, count, type, info, *packed, use);
	return 0;
}

/* Elements with their gaps: libcoll hands them to the program's own function. */
int piece_elements(struct stage *stage, const void *user, MPI_Count count,
			  MPI_Datatype type, enum use use, void **packed)
{
	const struct type *info = count ? type_find(type) : NULL;

	*packed = stage->few;
	if (!info)
		return 0;
	if (info->solid) {
		*packed = (uint8_t *)user + info->true_lb;
		return 0;
	}
	if (!pieces_reserve(stage, 1) || !(*packed = piece_buffer(stage, info->extent * count)))
		return -ENOMEM;
	piece_add(stage, user, count, type, info, *packed, use);
	stage->pieces[stage->pieces_count - 1].spread = true;
	return 0;
}
