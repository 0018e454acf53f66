// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * One call of any collective: its data, the call, and the check of its result against one computed
 * here. Values are so small that every type holds all results exactly, so the order of a reduction
 * does not matter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/reduce.h"
#include "tools/common/arena.h"
#include "bench.h"

bool bench_reduces(enum coll_collective collective)
{
	switch (collective) {
	case COLL_REDUCE:
	case COLL_ALLREDUCE:
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE_SCATTER_BLOCK:
	case COLL_SCAN:
	case COLL_EXSCAN:
		return true;
	default:
		return false;
	}
}

/* ---- values -------------------------------------------------------------------- */

static unsigned int call_hash(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t h = (a * 0x9e3779b97f4a7c15ull ^ b) * 0xbf58476d1ce4e5b9ull ^ c;

	return (h ^ h >> 29) * 0x94d049bb133111ebull >> 40;
}

/* An operand: 0 to 3; for products 1, and few 2s. */
static int call_operand(int op, int rank, uint64_t index, int variant)
{
	unsigned int h = call_hash(rank + 1, index, variant);

	if (op == COLL_PROD)
		return 1 + (rank < 7 && h % 4 == 0);
	return rank < 80 ? h % 4 : 0;
}

static void put_operand(void *place, int type, int value, int rank)
{
	static const uint16_t half[] = { 0, 0x3c00, 0x4000, 0x4200 };
	static const uint16_t brain[] = { 0, 0x3f80, 0x4000, 0x4040 };
	const float real = value;
	const double precise = value;
	const int64_t whole = value;
	const int32_t index = rank;
	uint8_t *bytes = place;

	memset(place, 0, coll_type_bytes(type));
	switch (type) {
	case COLL_FP16:
		memcpy(place, &half[value], 2);
		break;
	case COLL_BF16:
		memcpy(place, &brain[value], 2);
		break;
	case COLL_FLOAT:
	case COLL_COMPLEX_FLOAT:
		memcpy(place, &real, 4);
		break;
	case COLL_DOUBLE:
	case COLL_COMPLEX_DOUBLE:
		memcpy(place, &precise, 8);
		break;
	case COLL_INT16_INT32:
		memcpy(bytes, &(int16_t){ value }, 2);
		memcpy(bytes + 4, &index, 4);
		break;
	case COLL_INT32_INT32:
		memcpy(bytes, &(int32_t){ value }, 4);
		memcpy(bytes + 4, &index, 4);
		break;
	case COLL_INT64_INT32:
		memcpy(bytes, &whole, 8);
		memcpy(bytes + 8, &index, 4);
		break;
	case COLL_FLOAT_INT32:
		memcpy(bytes, &real, 4);
		memcpy(bytes + 4, &index, 4);
		break;
	case COLL_DOUBLE_INT32:
		memcpy(bytes, &precise, 8);
		memcpy(bytes + 8, &index, 4);
		break;
	default:
		memset(place, value < 0 ? 0xff : 0, coll_type_bytes(type));
		bytes[0] = value;
	}
}

/* Elements [first, first + count) of a rank's input. */
static void call_fill(const struct bench_data *data, void *place, int rank, size_t first,
		      size_t count, int variant)
{
	const size_t element = coll_type_bytes(data->type);
	uint8_t *bytes = place;
	size_t i;

	if (bench_reduces(data->collective)) {
		for (i = 0; i < count; i++)
			put_operand(bytes + i * element, data->type,
				    call_operand(data->op, rank, first + i, variant), rank);
		return;
	}
	for (i = 0; i < count * element; i++)
		bytes[i] = call_hash(rank + 1, first * element + i, variant);
}

/* The reduction over ranks below `ranks`, of elements from `first` on. */
static void fill_reduced(const struct bench_data *data, void *place, int ranks, size_t first,
			 int variant)
{
	const size_t bytes = data->count * coll_type_bytes(data->type);
	void *next = memory_grow(NULL, bytes ? bytes : 1, 1);
	int rank;

	call_fill(data, place, 0, first, data->count, variant);
	for (rank = 1; rank < ranks; rank++) {
		call_fill(data, next, rank, first, data->count, variant);
		coll_reduce_local(data->type, data->op, place, place, next, bytes);
	}
	memory_free(next);
}

/* ---- buffers of each collective ---------------------------------------------------- */

/* Blocks of `count` elements in a rank's input and output. */
static void data_blocks(const struct bench_data *data, size_t *in, size_t *out)
{
	const bool root = data->rank == data->root;
	const size_t all = data->ranks;

	*in = *out = 1;
	switch (data->collective) {
	case COLL_BARRIER:
		*in = *out = 0;
		break;
	case COLL_GATHER:
	case COLL_GATHERV:
		*out = root ? all : 0;
		break;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		*in = root ? all : 0;
		break;
	case COLL_ALLGATHER:
	case COLL_ALLGATHERV:
		*out = all;
		break;
	case COLL_ALLTOALL:
	case COLL_ALLTOALLV:
		*in = *out = all;
		break;
	case COLL_REDUCE:
		*out = root;
		break;
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE_SCATTER_BLOCK:
		*in = all;
		break;
	case COLL_EXSCAN:
		*out = data->rank > 0;	/* rank 0's result is undefined */
		break;
	default:
		break;
	}
}

static void call_expect(const struct bench_data *data, uint8_t *place, int variant)
{
	const size_t n = data->count, bytes = n * coll_type_bytes(data->type);
	int rank;

	switch (data->collective) {
	case COLL_BARRIER:
		break;
	case COLL_BCAST:
		call_fill(data, place, data->root, 0, n, variant);
		break;
	case COLL_GATHER:
	case COLL_GATHERV:
	case COLL_ALLGATHER:
	case COLL_ALLGATHERV:
		for (rank = 0; data->out_bytes && rank < data->ranks; rank++)
			call_fill(data, place + rank * bytes, rank, 0, n, variant);
		break;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		call_fill(data, place, data->root, data->rank * n, n, variant);
		break;
	case COLL_ALLTOALL:
	case COLL_ALLTOALLV:
		for (rank = 0; rank < data->ranks; rank++)
			call_fill(data, place + rank * bytes, rank, data->rank * n, n, variant);
		break;
	case COLL_REDUCE:
	case COLL_ALLREDUCE:
		if (data->out_bytes)
			fill_reduced(data, place, data->ranks, 0, variant);
		break;
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE_SCATTER_BLOCK:
		fill_reduced(data, place, data->ranks, data->rank * n, variant);
		break;
	case COLL_SCAN:
		fill_reduced(data, place, data->rank + 1, 0, variant);
		break;
	case COLL_EXSCAN:
		if (data->out_bytes)
			fill_reduced(data, place, data->rank, 0, variant);
		break;
	default:
		break;
	}
}

/* For a call's buffers. */
static void *buffer_make(const struct bench_data *data, size_t bytes)
{
	void *memory;

	if (!data->context)
		return memory_grow(NULL, bytes, 1);
	if (!coll_alloc(data->context, bytes, &memory))
		return memory;
	fprintf(stderr, "coll bench: rank %d: %s\n", data->rank, coll_context_error(data->context));
	exit(1);
}

static void buffer_free(const struct bench_data *data, void *memory)
{
	if (data->context)
		coll_free_memory(data->context, memory);
	else
		memory_free(memory);
}

void bench_data_make(struct bench_data *data)
{
	const size_t element = coll_type_bytes(data->type);
	size_t in, out, block = data->count * element;
	int variant, rank;

	data_blocks(data, &in, &out);
	data->out_bytes = out * block;
	/* A rank without a result has room as well: a call may refuse buffers by their addresses. */
	data->out = buffer_make(data, (out ? out : 1) * block + 64);
	for (variant = 0; variant < BENCH_VARIANTS; variant++) {
		data->in[variant] = buffer_make(data, in * block + 64);
		data->expected[variant] = memory_grow(NULL, out * block + 64, 1);
		call_fill(data, data->in[variant], data->rank, 0, in * data->count, variant);
		call_expect(data, data->expected[variant], variant);
	}
	data->counts = memory_grow(NULL, data->ranks, sizeof(*data->counts));
	data->displs = memory_grow(NULL, data->ranks, sizeof(*data->displs));
	for (rank = 0; rank < data->ranks; rank++) {
		data->counts[rank] = data->count;
		data->displs[rank] = rank * data->count;
	}
}

void bench_data_free(struct bench_data *data)
{
	int variant;

	for (variant = 0; variant < BENCH_VARIANTS; variant++) {
		buffer_free(data, data->in[variant]);
		memory_free(data->expected[variant]);
	}
	buffer_free(data, data->out);
	memory_free(data->counts);
	memory_free(data->displs);
}

void bench_data_prepare(struct bench_data *data, int variant)
{
	if (data->collective == COLL_BCAST && data->rank == data->root)
		memcpy(data->out, data->in[variant], data->out_bytes);
	else
		memset(data->out, 0xa5, data->out_bytes);
}

int bench_data_call(struct bench_data *data, int variant, struct coll_group *group)
{
	const size_t n = data->count, *counts = data->counts, *displs = data->displs;
	const int type = data->type, op = data->op, root = data->root;
	const void *in = data->in[variant];
	void *out = data->out;

	switch (data->collective) {
	case COLL_BARRIER:
		return coll_barrier(group);
	case COLL_BCAST:
		return coll_bcast(out, n, type, root, group);
	case COLL_GATHER:
		return coll_gather(in, out, n, type, root, group);
	case COLL_GATHERV:
		return coll_gatherv(in, n, out, counts, displs, type, root, group);
	case COLL_SCATTER:
		return coll_scatter(in, out, n, type, root, group);
	case COLL_SCATTERV:
		return coll_scatterv(in, counts, displs, out, n, type, root, group);
	case COLL_ALLGATHER:
		return coll_allgather(in, out, n, type, group);
	case COLL_ALLGATHERV:
		return coll_allgatherv(in, n, out, counts, displs, type, group);
	case COLL_ALLTOALL:
		return coll_alltoall(in, out, n, type, group);
	case COLL_ALLTOALLV:
		return coll_alltoallv(in, counts, displs, out, counts, displs, type, group);
	case COLL_REDUCE:
		return coll_reduce(in, out, n, type, op, root, group);
	case COLL_ALLREDUCE:
		return coll_allreduce(in, out, n, type, op, group);
	case COLL_REDUCE_SCATTER:
		return coll_reduce_scatter(in, out, counts, type, op, group);
	case COLL_REDUCE_SCATTER_BLOCK:
		return coll_reduce_scatter_block(in, out, n, type, op, group);
	case COLL_SCAN:
		return coll_scan(in, out, n, type, op, group);
	default:
		return coll_exscan(in, out, n, type, op, group);
	}
}

int bench_data_start(struct bench_data *data, int variant, struct coll_group *group,
		     struct coll_run **run)
{
	const size_t n = data->count, *counts = data->counts, *displs = data->displs;
	const int type = data->type, op = data->op, root = data->root;
	const void *in = data->in[variant];
	void *out = data->out;

	switch (data->collective) {
	case COLL_BARRIER:
		return coll_ibarrier(group, run);
	case COLL_BCAST:
		return coll_ibcast(out, n, type, root, group, run);
	case COLL_GATHER:
		return coll_igather(in, out, n, type, root, group, run);
	case COLL_GATHERV:
		return coll_igatherv(in, n, out, counts, displs, type, root, group, run);
	case COLL_SCATTER:
		return coll_iscatter(in, out, n, type, root, group, run);
	case COLL_SCATTERV:
		return coll_iscatterv(in, counts, displs, out, n, type, root, group, run);
	case COLL_ALLGATHER:
		return coll_iallgather(in, out, n, type, group, run);
	case COLL_ALLGATHERV:
		return coll_iallgatherv(in, n, out, counts, displs, type, group, run);
	case COLL_ALLTOALL:
		return coll_ialltoall(in, out, n, type, group, run);
	case COLL_ALLTOALLV:
		return coll_ialltoallv(in, counts, displs, out, counts, displs, type, group, run);
	case COLL_REDUCE:
		return coll_ireduce(in, out, n, type, op, root, group, run);
	case COLL_ALLREDUCE:
		return coll_iallreduce(in, out, n, type, op, group, run);
	case COLL_REDUCE_SCATTER:
		return coll_ireduce_scatter(in, out, counts, type, op, group, run);
	case COLL_REDUCE_SCATTER_BLOCK:
		return coll_ireduce_scatter_block(in, out, n, type, op, group, run);
	case COLL_SCAN:
		return coll_iscan(in, out, n, type, op, group, run);
	default:
		return coll_iexscan(in, out, n, type, op, group, run);
	}
}

ptrdiff_t bench_data_check(const struct bench_data *data, int variant)
{
	const uint8_t *out = data->out, *expected = data->expected[variant];
	size_t i;

	if (!memcmp(out, expected, data->out_bytes))
		return -1;
	for (i = 0; out[i] == expected[i]; i++)
		;
	return i;
}
