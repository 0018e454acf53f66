// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/common/algo.h"
#include "libcoll/link/group.h"
#include "tests/lib/rank.h"
#include "tests/lib/rank_call.h"

static const char *const form_names[FORMS] = { "blocking", "nonblocking", "persistent" };

enum {
	GUARD = 64,		/* bytes before and after a buffer that must not change */
	GUARD_BYTE = 0xa5,
};

/* ---- sizes -------------------------------------------------------------- */

static bool is_uneven(enum coll_collective collective)
{
	return collective == COLL_GATHERV || collective == COLL_SCATTERV ||
	       collective == COLL_ALLGATHERV || collective == COLL_ALLTOALLV ||
	       collective == COLL_REDUCE_SCATTER;
}

/* Blocks of very different sizes, some empty; never more than twice the count. */
static size_t share(const struct test_case *test_case, int which)
{
	if (!is_uneven(test_case->collective))
		return test_case->count;
	return test_case->count * ((which * 3 + 1) % 4) / 2;
}

/* Elements from one rank to another in alltoallv. In place both directions are equal. */
static size_t amount(const struct test_case *test_case, int from, int to)
{
	return share(test_case, test_case->in_place ? from + to : from + 2 * to);
}

/* Blocks in order, with gaps of one element where the collective allows gaps. */
static size_t lay_out(const struct test_case *test_case, const size_t *counts, size_t *displs,
		      int ranks)
{
	const bool gaps = is_uneven(test_case->collective) &&
			  test_case->collective != COLL_REDUCE_SCATTER;
	size_t end = 0;
	int i;

	for (i = 0; i < ranks; i++) {
		displs[i] = end;
		end += counts[i] + gaps;
	}
	return end;
}

/* ---- buffers ------------------------------------------------------------ */

/* A single failure may be injected, and is not meant for the test's own memory. */
static void *zeros(size_t bytes)
{
	void *memory = calloc(1, bytes);

	if (!memory)
		memory = calloc(1, bytes);
	if (!memory)
		abort();
	return memory;
}

static struct buffer buffer_make(size_t bytes)
{
	struct buffer buffer = { .memory = zeros(bytes + 2 * GUARD), .bytes = bytes };

	memset(buffer.memory, GUARD_BYTE, bytes + 2 * GUARD);
	buffer.data = buffer.memory + GUARD;
	return buffer;
}

/* One that is given to a call. With COLL_TEST_ALLOC it is memory that ranks of this node map. */
static struct buffer buffer_of_call(const struct rank_call *call, size_t bytes)
{
	struct coll_context *context = call->group->context;
	struct buffer buffer = { .bytes = bytes };
	void *memory;

	if (!getenv("COLL_TEST_ALLOC"))
		return buffer_make(bytes);
	if (coll_alloc(context, bytes + 2 * GUARD, &memory) &&
	    coll_alloc(context, bytes + 2 * GUARD, &memory))
		abort();
	buffer.memory = memset(memory, GUARD_BYTE, bytes + 2 * GUARD);
	buffer.data = buffer.memory + GUARD;
	return buffer;
}

static void buffer_free(const struct rank_call *call, struct buffer *buffer)
{
	if (!getenv("COLL_TEST_ALLOC"))
		free(buffer->memory);
	else if (coll_free_memory(call->group->context, buffer->memory))
		abort();
}

static void buffer_copy(struct buffer *to, const struct buffer *from)
{
	memcpy(to->memory, from->memory, from->bytes + 2 * GUARD);
}

/* Index of the first byte that differs, guards included, or -1. */
static long buffer_compare(const struct buffer *a, const struct buffer *b)
{
	size_t i;

	if (!memcmp(a->memory, b->memory, a->bytes + 2 * GUARD))
		return -1;
	for (i = 0; a->memory[i] == b->memory[i]; i++)
		;
	return i;
}

/* What `rank` gives to `block`, at an element's place in a buffer. */
static void put_block(const struct rank_call *call, const struct buffer *buffer, size_t at,
		      int rank, int block, size_t count)
{
	const struct test_case *test_case = call->test_case;
	size_t i;

	for (i = 0; i < count; i++)
		reference_element(test_case->type, test_case->op, rank, block, i,
				  buffer->data + (at + i) * call->element);
}

/* Blocks of ranks from..to-1 reduced into a buffer's beginning. */
static void put_reduction(const struct rank_call *call, const struct buffer *buffer, int block,
			  size_t count, int to)
{
	struct buffer next = buffer_make(count * call->element);
	int rank;

	put_block(call, buffer, 0, 0, block, count);
	for (rank = 1; rank < to; rank++) {
		put_block(call, &next, 0, rank, block, count);
		reference_reduce(call->test_case->type, call->test_case->op, buffer->data,
				 next.data, count);
	}
	free(next.memory);
}

/* ---- input and expected result ------------------------------------------ */

static bool is_reducing(enum coll_collective collective)
{
	return collective >= COLL_REDUCE;
}

static bool has_root(enum coll_collective collective)
{
	return (collective >= COLL_BCAST && collective <= COLL_SCATTERV) ||
	       collective == COLL_REDUCE;
}

/* Whether this rank calls in place: of a rooted collective only the root does. */
static bool in_place_here(const struct rank_call *call)
{
	const enum coll_collective collective = call->test_case->collective;

	return call->test_case->in_place &&
	       (!has_root(collective) || call->rank == call->test_case->root);
}

static size_t input_elements(const struct rank_call *call)
{
	const struct test_case *test_case = call->test_case;
	const bool root = call->rank == test_case->root;
	const int last = call->ranks - 1;

	switch (test_case->collective) {
	case COLL_BARRIER:
	case COLL_BCAST:
		return 0;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		return root ? call->displs[last] + call->counts[last] : 0;
	case COLL_ALLTOALL:
	case COLL_ALLTOALLV:
		return call->send_displs[last] + call->send_counts[last];
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE_SCATTER_BLOCK:
		return call->displs[last] + call->counts[last];
	case COLL_GATHER:
	case COLL_GATHERV:
	case COLL_ALLGATHER:
	case COLL_ALLGATHERV:
		return call->counts[call->rank];
	default:
		return test_case->count;
	}
}

static size_t output_elements(const struct rank_call *call)
{
	const struct test_case *test_case = call->test_case;
	const bool root = call->rank == test_case->root;
	const size_t all = call->displs[call->ranks - 1] + call->counts[call->ranks - 1];

	switch (test_case->collective) {
	case COLL_BARRIER:
		return 0;
	case COLL_GATHER:
	case COLL_GATHERV:
		return root ? all : 0;
	case COLL_ALLGATHER:
	case COLL_ALLGATHERV:
	case COLL_ALLTOALL:
	case COLL_ALLTOALLV:
		return all;
	case COLL_REDUCE:
		return root ? test_case->count : 0;
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE_SCATTER_BLOCK:
		return in_place_here(call) ? all : call->counts[call->rank];
	case COLL_SCATTER:
	case COLL_SCATTERV:
		return in_place_here(call) ? 0 : call->counts[call->rank];
	default:
		return test_case->count;
	}
}

/* Block i of a buffer gets what this rank gives to i. */
static void put_all_blocks(const struct rank_call *call, const struct buffer *buffer,
			   const size_t *counts, const size_t *displs)
{
	int i;

	for (i = 0; i < call->ranks; i++)
		put_block(call, buffer, displs[i], call->rank, i, counts[i]);
}

static void put_input(const struct rank_call *call)
{
	const struct test_case *test_case = call->test_case;
	const bool here = in_place_here(call);
	const struct buffer *buffer = here ? &call->out : &call->in;

	switch (test_case->collective) {
	case COLL_BARRIER:
		break;
	case COLL_BCAST:
		if (call->rank == test_case->root)
			put_block(call, &call->out, 0, call->rank, 0, test_case->count);
		break;
	case COLL_GATHER:
	case COLL_GATHERV:
	case COLL_ALLGATHER:
	case COLL_ALLGATHERV:
		put_block(call, buffer, here ? call->displs[call->rank] : 0, call->rank, 0,
			  call->counts[call->rank]);
		break;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		if (call->rank == test_case->root)
			put_all_blocks(call, &call->in, call->counts, call->displs);
		break;
	case COLL_ALLTOALL:
	case COLL_ALLTOALLV:
		put_all_blocks(call, buffer, call->send_counts, call->send_displs);
		break;
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE_SCATTER_BLOCK:
		put_all_blocks(call, buffer, call->counts, call->displs);
		break;
	default:
		put_block(call, buffer, 0, call->rank, 0, test_case->count);
	}
}

/* Writes the expected result over a copy of OUT before the call. */
static void put_outcome(const struct rank_call *call)
{
	const struct test_case *test_case = call->test_case;
	const struct buffer *want = &call->want_out;
	const bool root = call->rank == test_case->root;
	int i;

	switch (test_case->collective) {
	case COLL_BARRIER:
		break;
	case COLL_BCAST:
		put_block(call, want, 0, test_case->root, 0, test_case->count);
		break;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		if (!in_place_here(call))
			put_block(call, want, 0, test_case->root, call->rank,
				  call->counts[call->rank]);
		break;
	case COLL_GATHER:
	case COLL_GATHERV:
	case COLL_ALLGATHER:
	case COLL_ALLGATHERV:
		for (i = 0; i < call->ranks && (root || !has_root(test_case->collective)); i++)
			put_block(call, want, call->displs[i], i, 0, call->counts[i]);
		break;
	case COLL_ALLTOALL:
	case COLL_ALLTOALLV:
		for (i = 0; i < call->ranks; i++)
			put_block(call, want, call->displs[i], i, call->rank, call->counts[i]);
		break;
	case COLL_REDUCE:
		if (root)
			put_reduction(call, want, 0, test_case->count, call->ranks);
		break;
	case COLL_ALLREDUCE:
		put_reduction(call, want, 0, test_case->count, call->ranks);
		break;
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE_SCATTER_BLOCK:
		put_reduction(call, want, call->rank, call->counts[call->rank], call->ranks);
		break;
	case COLL_SCAN:
		put_reduction(call, want, 0, test_case->count, call->rank + 1);
		break;
	case COLL_EXSCAN:
		if (call->rank)
			put_reduction(call, want, 0, test_case->count, call->rank);
		break;
	default:
		abort();
	}
}

/*
 * Undefined parts of the result are not checked: those after the block of reduce_scatter in
 * place, and OUT of the first rank of exscan.
 */
static void accept_undefined(const struct rank_call *call)
{
	const struct test_case *test_case = call->test_case;
	size_t from = call->out.bytes;

	if ((test_case->collective == COLL_REDUCE_SCATTER ||
	     test_case->collective == COLL_REDUCE_SCATTER_BLOCK) && in_place_here(call))
		from = call->counts[call->rank] * call->element;
	else if (test_case->collective == COLL_EXSCAN && !call->rank)
		from = 0;
	memcpy(call->want_out.data + from, call->out.data + from, call->out.bytes - from);
}

/* ---- one rank's call ----------------------------------------------------- */

static size_t *numbers(int ranks)
{
	return zeros(ranks * sizeof(size_t));
}

struct rank_call rank_call_make(struct coll_group *group, enum coll_reduction op,
				const struct test_case *test_case)
{
	const int ranks = coll_ranks(group), rank = coll_rank(group);
	const bool alltoall = test_case->collective == COLL_ALLTOALL ||
			      test_case->collective == COLL_ALLTOALLV;
	struct rank_call call = {
		.test_case = test_case,
		.group = group,
		.rank = rank,
		.ranks = ranks,
		.op = op,
		.element = reference_bytes(test_case->type),
		.counts = numbers(ranks),
		.displs = numbers(ranks),
		.send_counts = numbers(ranks),
		.send_displs = numbers(ranks),
	};
	int i;

	for (i = 0; i < ranks; i++) {
		call.counts[i] = alltoall ? amount(test_case, i, rank) : share(test_case, i);
		call.send_counts[i] = amount(test_case, rank, i);
	}
	lay_out(test_case, call.counts, call.displs, ranks);
	lay_out(test_case, call.send_counts, call.send_displs, ranks);
	call.in = buffer_of_call(&call, in_place_here(&call) &&
						 test_case->collective != COLL_SCATTER &&
						 test_case->collective != COLL_SCATTERV ?
				 0 : input_elements(&call) * call.element);
	call.out = buffer_of_call(&call, output_elements(&call) * call.element);
	put_input(&call);
	call.want_in = buffer_make(call.in.bytes);
	call.want_out = buffer_make(call.out.bytes);
	buffer_copy(&call.want_in, &call.in);
	buffer_copy(&call.want_out, &call.out);
	put_outcome(&call);
	return call;
}

void rank_call_free(struct rank_call *call)
{
	free(call->counts);
	free(call->displs);
	free(call->send_counts);
	free(call->send_displs);
	buffer_free(call, &call->in);
	buffer_free(call, &call->out);
	free(call->want_in.memory);
	free(call->want_out.memory);
}

void rank_call_fail(const struct rank_call *call, const char *what)
{
	const struct test_case *test_case = call->test_case;

	rank_fail(call->group, "%s %s, %s of %s, count %zu, root %d, %s%s: %s",
		  coll_collective_names[test_case->collective], test_case->algo,
		  is_reducing(test_case->collective) ? reference_op_name(test_case->op) : "a block",
		  reference_type_name(test_case->type), test_case->count, test_case->root,
		  form_names[test_case->form], test_case->in_place ? ", in place" : "", what);
}

void rank_call_check(const struct rank_call *call)
{
	const struct test_case *test_case = call->test_case;
	char text[160];
	long at;

	accept_undefined(call);
	if (is_reducing(test_case->collective)) {
		const size_t count = call->out.bytes / call->element;

		reference_normalize(test_case->type, call->out.data, count);
		reference_normalize(test_case->type, call->want_out.data, count);
	}
	at = buffer_compare(&call->out, &call->want_out);
	if (at >= 0) {
		snprintf(text, sizeof(text), "byte %ld of %zu of the result is %02x, not %02x",
			 at - GUARD, call->out.bytes, call->out.memory[at],
			 call->want_out.memory[at]);
		rank_call_fail(call, text);
	}
	if (buffer_compare(&call->in, &call->want_in) >= 0)
		rank_call_fail(call, "the input was changed");
}

/* ---- calling ------------------------------------------------------------ */

#define CALL(name, ...)                                                   \
	(form == BLOCKING    ? coll_##name(__VA_ARGS__) :                 \
	 form == NONBLOCKING ? coll_i##name(__VA_ARGS__, run) :           \
			       coll_##name##_init(__VA_ARGS__, run))

static int rank_call_start(const struct rank_call *call, struct coll_run **run)
{
	const struct test_case *test_case = call->test_case;
	const enum form form = test_case->form;
	const bool here = in_place_here(call);
	const bool scatters = test_case->collective == COLL_SCATTER ||
			      test_case->collective == COLL_SCATTERV;
	const void *in = here && !scatters ? COLL_IN_PLACE : call->in.data;
	void *out = here && scatters ? COLL_IN_PLACE : call->out.data;
	const size_t count = test_case->count, mine = call->counts[call->rank];
	const enum coll_type type = test_case->type;
	const enum coll_reduction op = call->op;
	const int root = test_case->root;
	struct coll_group *group = call->group;

	switch (test_case->collective) {
	case COLL_BARRIER:
		return CALL(barrier, group);
	case COLL_BCAST:
		return CALL(bcast, out, count, type, root, group);
	case COLL_GATHER:
		return CALL(gather, in, out, count, type, root, group);
	case COLL_GATHERV:
		return CALL(gatherv, in, mine, out, call->counts, call->displs, type, root, group);
	case COLL_SCATTER:
		return CALL(scatter, in, out, count, type, root, group);
	case COLL_SCATTERV:
		return CALL(scatterv, in, call->counts, call->displs, out, mine, type, root, group);
	case COLL_ALLGATHER:
		return CALL(allgather, in, out, count, type, group);
	case COLL_ALLGATHERV:
		return CALL(allgatherv, in, mine, out, call->counts, call->displs, type, group);
	case COLL_ALLTOALL:
		return CALL(alltoall, in, out, count, type, group);
	case COLL_ALLTOALLV:
		return CALL(alltoallv, in, call->send_counts, call->send_displs, out, call->counts,
			    call->displs, type, group);
	case COLL_REDUCE:
		return CALL(reduce, in, out, count, type, op, root, group);
	case COLL_ALLREDUCE:
		return CALL(allreduce, in, out, count, type, op, group);
	case COLL_REDUCE_SCATTER:
		return CALL(reduce_scatter, in, out, call->counts, type, op, group);
	case COLL_REDUCE_SCATTER_BLOCK:
		return CALL(reduce_scatter_block, in, out, count, type, op, group);
	case COLL_SCAN:
		return CALL(scan, in, out, count, type, op, group);
	case COLL_EXSCAN:
		return CALL(exscan, in, out, count, type, op, group);
	default:
		abort();
	}
}

/* Runs a persistent call twice, with the same buffers. */
static int rank_call_repeat(const struct rank_call *call, struct coll_run *run)
{
	struct buffer out = buffer_make(call->out.bytes), in = buffer_make(call->in.bytes);
	int error;

	buffer_copy(&out, &call->out);
	buffer_copy(&in, &call->in);
	error = coll_run_start(run);
	if (!error)
		error = coll_run_wait(&run);
	if (!error) {
		memcpy(call->out.memory, out.memory, out.bytes + 2 * GUARD);
		memcpy(call->in.memory, in.memory, in.bytes + 2 * GUARD);
		error = coll_run_start(run);
	}
	if (!error)
		error = coll_run_wait(&run);
	free(out.memory);
	free(in.memory);
	return error ? error : coll_run_free(&run);
}

int rank_call_execute(struct rank_call *call)
{
	struct coll_run *run = NULL;
	int error = rank_call_start(call, &run);

	if (!error && call->test_case->form == NONBLOCKING)
		error = coll_run_wait(&run);
	else if (!error && call->test_case->form == PERSISTENT)
		error = rank_call_repeat(call, run);
	return error;
}
