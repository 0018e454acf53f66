// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * every_collective [EVERY [FIRST [MOST]]]: one rank calls every collective in every
 * way and compares with a reference computed on the spot. All ranks go through the
 * same list of test cases, or every EVERY-th of them beginning with FIRST, of at most MOST
 * elements. Rank 0 says how many there were.
 *
 * Length: every collective in every form is one list, and shares one check.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/common/algo.h"
#include "tests/lib/rank.h"
#include "tests/lib/reference.h"

enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };
static const char *const form_names[FORMS] = { "blocking", "nonblocking", "persistent" };

enum {
	GUARD = 64,		/* bytes around a buffer that nobody may touch */
	NOBODYS = 0xa5,
	ELEMENTS_MAX = 400000,	/* in all blocks of a call, for the sake of time */
};

/* One call to try; the same on all ranks. */
struct test_case {
	enum coll_collective collective;
	const char *algo;
	int type, op;		/* op: or REFERENCE_COMMUTING, REFERENCE_ORDERED */
	size_t count;
	int root;
	bool in_place;
	enum form form;
};

/* Memory with guards; `data` is what the call gets. */
struct buffer {
	uint8_t *memory, *data;
	size_t bytes;
};

/* A test case as one rank sees it. */
struct part {
	const struct test_case *test_case;
	struct coll_group *group;
	int rank, ranks;
	enum coll_reduction op;
	size_t element;
	size_t *counts, *displs;		/* blocks of gatherv and the like */
	size_t *send_counts, *send_displs;	/* alltoallv */
	struct buffer in, out;
	struct buffer want_in, want_out;	/* what they should be in the end */
};

struct runner {
	struct coll_context *context;
	struct coll_group *group;
	enum coll_reduction commuting,
		ordered;		/* the reference's functions, as the library knows them */
	size_t every, first, most;	/* which test cases to run */
	size_t passed, test_cases, refused;
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

/* What goes from one rank to another in alltoallv. In place both ways equal. */
static size_t amount(const struct test_case *test_case, int from, int to)
{
	return share(test_case, test_case->in_place ? from + to : from + 2 * to);
}

/* Blocks one after another with a gap of one element between, where gaps may be. */
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

static struct buffer buffer_make(size_t bytes)
{
	struct buffer buffer = { .memory = malloc(bytes + 2 * GUARD), .bytes = bytes };

	if (!buffer.memory)
		abort();
	memset(buffer.memory, NOBODYS, bytes + 2 * GUARD);
	buffer.data = buffer.memory + GUARD;
	return buffer;
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
static void put_block(const struct part *part, const struct buffer *buffer, size_t at, int rank,
		      int block, size_t count)
{
	const struct test_case *test_case = part->test_case;
	size_t i;

	for (i = 0; i < count; i++)
		reference_element(test_case->type, test_case->op, rank, block, i,
				  buffer->data + (at + i) * part->element);
}

/* Blocks of ranks from..to-1 reduced into a buffer's beginning. */
static void put_reduction(const struct part *part, const struct buffer *buffer, int block,
			  size_t count, int to)
{
	struct buffer next = buffer_make(count * part->element);
	int rank;

	put_block(part, buffer, 0, 0, block, count);
	for (rank = 1; rank < to; rank++) {
		put_block(part, &next, 0, rank, block, count);
		reference_reduce(part->test_case->type, part->test_case->op, buffer->data,
				 next.data, count);
	}
	free(next.memory);
}

/* ---- what goes in, what should come out ------------------------------------- */

static bool is_reducing(enum coll_collective collective)
{
	return collective >= COLL_REDUCE;
}

static bool has_root(enum coll_collective collective)
{
	return (collective >= COLL_BCAST && collective <= COLL_SCATTERV) ||
	       collective == COLL_REDUCE;
}

/* In place means something on this rank. */
static bool in_place_here(const struct part *part)
{
	const enum coll_collective collective = part->test_case->collective;

	return part->test_case->in_place &&
	       (!has_root(collective) || part->rank == part->test_case->root);
}

static size_t input_elements(const struct part *part)
{
	const struct test_case *test_case = part->test_case;
	const bool root = part->rank == test_case->root;
	const int last = part->ranks - 1;

	switch (test_case->collective) {
	case COLL_BARRIER:
	case COLL_BCAST:
		return 0;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		return root ? part->displs[last] + part->counts[last] : 0;
	case COLL_ALLTOALL:
	case COLL_ALLTOALLV:
		return part->send_displs[last] + part->send_counts[last];
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE_SCATTER_BLOCK:
		return part->displs[last] + part->counts[last];
	case COLL_GATHER:
	case COLL_GATHERV:
	case COLL_ALLGATHER:
	case COLL_ALLGATHERV:
		return part->counts[part->rank];
	default:
		return test_case->count;
	}
}

static size_t output_elements(const struct part *part)
{
	const struct test_case *test_case = part->test_case;
	const bool root = part->rank == test_case->root;
	const size_t all = part->displs[part->ranks - 1] + part->counts[part->ranks - 1];

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
		return in_place_here(part) ? all : part->counts[part->rank];
	case COLL_SCATTER:
	case COLL_SCATTERV:
		return in_place_here(part) ? 0 : part->counts[part->rank];
	default:
		return test_case->count;
	}
}

/* Block i of a buffer gets what this rank gives to i. */
static void put_all_blocks(const struct part *part, const struct buffer *buffer,
			   const size_t *counts, const size_t *displs)
{
	int i;

	for (i = 0; i < part->ranks; i++)
		put_block(part, buffer, displs[i], part->rank, i, counts[i]);
}

static void put_input(const struct part *part)
{
	const struct test_case *test_case = part->test_case;
	const bool here = in_place_here(part);
	const struct buffer *buffer = here ? &part->out : &part->in;

	switch (test_case->collective) {
	case COLL_BARRIER:
		break;
	case COLL_BCAST:
		if (part->rank == test_case->root)
			put_block(part, &part->out, 0, part->rank, 0, test_case->count);
		break;
	case COLL_GATHER:
	case COLL_GATHERV:
	case COLL_ALLGATHER:
	case COLL_ALLGATHERV:
		put_block(part, buffer, here ? part->displs[part->rank] : 0, part->rank, 0,
			  part->counts[part->rank]);
		break;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		if (part->rank == test_case->root)
			put_all_blocks(part, &part->in, part->counts, part->displs);
		break;
	case COLL_ALLTOALL:
	case COLL_ALLTOALLV:
		put_all_blocks(part, buffer, part->send_counts, part->send_displs);
		break;
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE_SCATTER_BLOCK:
		put_all_blocks(part, buffer, part->counts, part->displs);
		break;
	default:
		put_block(part, buffer, 0, part->rank, 0, test_case->count);
	}
}

/* The outcome, over a copy of what OUT is before the call. */
static void put_outcome(const struct part *part)
{
	const struct test_case *test_case = part->test_case;
	const struct buffer *want = &part->want_out;
	const bool root = part->rank == test_case->root;
	int i;

	switch (test_case->collective) {
	case COLL_BARRIER:
		break;
	case COLL_BCAST:
		put_block(part, want, 0, test_case->root, 0, test_case->count);
		break;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		if (!in_place_here(part))
			put_block(part, want, 0, test_case->root, part->rank,
				  part->counts[part->rank]);
		break;
	case COLL_GATHER:
	case COLL_GATHERV:
	case COLL_ALLGATHER:
	case COLL_ALLGATHERV:
		for (i = 0; i < part->ranks && (root || !has_root(test_case->collective)); i++)
			put_block(part, want, part->displs[i], i, 0, part->counts[i]);
		break;
	case COLL_ALLTOALL:
	case COLL_ALLTOALLV:
		for (i = 0; i < part->ranks; i++)
			put_block(part, want, part->displs[i], i, part->rank, part->counts[i]);
		break;
	case COLL_REDUCE:
		if (root)
			put_reduction(part, want, 0, test_case->count, part->ranks);
		break;
	case COLL_ALLREDUCE:
		put_reduction(part, want, 0, test_case->count, part->ranks);
		break;
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE_SCATTER_BLOCK:
		put_reduction(part, want, part->rank, part->counts[part->rank], part->ranks);
		break;
	case COLL_SCAN:
		put_reduction(part, want, 0, test_case->count, part->rank + 1);
		break;
	case COLL_EXSCAN:
		if (part->rank)
			put_reduction(part, want, 0, test_case->count, part->rank);
		break;
	default:
		abort();
	}
}

/*
 * Where the result is undefined nothing can be wanted: behind the result of
 * reduce_scatter in place, and in OUT of the first rank of exscan.
 */
static void forgive_undefined(const struct part *part)
{
	const struct test_case *test_case = part->test_case;
	size_t from = part->out.bytes;

	if ((test_case->collective == COLL_REDUCE_SCATTER ||
	     test_case->collective == COLL_REDUCE_SCATTER_BLOCK) && in_place_here(part))
		from = part->counts[part->rank] * part->element;
	else if (test_case->collective == COLL_EXSCAN && !part->rank)
		from = 0;
	memcpy(part->want_out.data + from, part->out.data + from, part->out.bytes - from);
}

/* ---- a part ------------------------------------------------------------- */

static size_t *numbers(int ranks)
{
	size_t *array = calloc(ranks, sizeof(*array));

	if (!array)
		abort();
	return array;
}

static struct part part_make(const struct runner *runner, const struct test_case *test_case)
{
	const int ranks = coll_ranks(runner->group), rank = coll_rank(runner->group);
	const bool alltoall = test_case->collective == COLL_ALLTOALL ||
			      test_case->collective == COLL_ALLTOALLV;
	struct part part = {
		.test_case = test_case,
		.group = runner->group,
		.rank = rank,
		.ranks = ranks,
		.op = test_case->op == REFERENCE_COMMUTING ? runner->commuting :
		      test_case->op == REFERENCE_ORDERED   ? runner->ordered :
							 (enum coll_reduction)test_case->op,
		.element = reference_bytes(test_case->type),
		.counts = numbers(ranks),
		.displs = numbers(ranks),
		.send_counts = numbers(ranks),
		.send_displs = numbers(ranks),
	};
	int i;

	for (i = 0; i < ranks; i++) {
		part.counts[i] = alltoall ? amount(test_case, i, rank) : share(test_case, i);
		part.send_counts[i] = amount(test_case, rank, i);
	}
	lay_out(test_case, part.counts, part.displs, ranks);
	lay_out(test_case, part.send_counts, part.send_displs, ranks);
	part.in = buffer_make(in_place_here(&part) && test_case->collective != COLL_SCATTER &&
					      test_case->collective != COLL_SCATTERV ?
				      0 : input_elements(&part) * part.element);
	part.out = buffer_make(output_elements(&part) * part.element);
	put_input(&part);
	part.want_in = buffer_make(part.in.bytes);
	part.want_out = buffer_make(part.out.bytes);
	buffer_copy(&part.want_in, &part.in);
	buffer_copy(&part.want_out, &part.out);
	put_outcome(&part);
	return part;
}

static void part_free(struct part *part)
{
	free(part->counts);
	free(part->displs);
	free(part->send_counts);
	free(part->send_displs);
	free(part->in.memory);
	free(part->out.memory);
	free(part->want_in.memory);
	free(part->want_out.memory);
}

static void test_case_fail(const struct part *part, const char *what)
{
	const struct test_case *test_case = part->test_case;

	rank_fail(part->group, "%s %s, %s of %s, count %zu, root %d, %s%s: %s",
		  coll_collective_names[test_case->collective], test_case->algo,
		  is_reducing(test_case->collective) ? reference_op_name(test_case->op) : "a block",
		  reference_type_name(test_case->type), test_case->count, test_case->root,
		  form_names[test_case->form], test_case->in_place ? ", in place" : "", what);
}

static void compare(const struct part *part)
{
	const struct test_case *test_case = part->test_case;
	char text[160];
	long at;

	forgive_undefined(part);
	if (is_reducing(test_case->collective)) {
		const size_t count = part->out.bytes / part->element;

		reference_normalize(test_case->type, part->out.data, count);
		reference_normalize(test_case->type, part->want_out.data, count);
	}
	at = buffer_compare(&part->out, &part->want_out);
	if (at >= 0) {
		snprintf(text, sizeof(text), "byte %ld of %zu of the result is %02x, not %02x",
			 at - GUARD, part->out.bytes, part->out.memory[at],
			 part->want_out.memory[at]);
		test_case_fail(part, text);
	}
	if (buffer_compare(&part->in, &part->want_in) >= 0)
		test_case_fail(part, "the input was changed");
}

/* ---- calling ------------------------------------------------------------ */

#define CALL(name, ...)                                                   \
	(form == BLOCKING    ? coll_##name(__VA_ARGS__) :                 \
	 form == NONBLOCKING ? coll_i##name(__VA_ARGS__, run) :           \
			       coll_##name##_init(__VA_ARGS__, run))

static int call(const struct part *part, struct coll_run **run)
{
	const struct test_case *test_case = part->test_case;
	const enum form form = test_case->form;
	const bool here = in_place_here(part);
	const bool scatters = test_case->collective == COLL_SCATTER ||
			      test_case->collective == COLL_SCATTERV;
	const void *in = here && !scatters ? COLL_IN_PLACE : part->in.data;
	void *out = here && scatters ? COLL_IN_PLACE : part->out.data;
	const size_t count = test_case->count, mine = part->counts[part->rank];
	const enum coll_type type = test_case->type;
	const enum coll_reduction op = part->op;
	const int root = test_case->root;
	struct coll_group *group = part->group;

	switch (test_case->collective) {
	case COLL_BARRIER:
		return CALL(barrier, group);
	case COLL_BCAST:
		return CALL(bcast, out, count, type, root, group);
	case COLL_GATHER:
		return CALL(gather, in, out, count, type, root, group);
	case COLL_GATHERV:
		return CALL(gatherv, in, mine, out, part->counts, part->displs, type, root, group);
	case COLL_SCATTER:
		return CALL(scatter, in, out, count, type, root, group);
	case COLL_SCATTERV:
		return CALL(scatterv, in, part->counts, part->displs, out, mine, type, root, group);
	case COLL_ALLGATHER:
		return CALL(allgather, in, out, count, type, group);
	case COLL_ALLGATHERV:
		return CALL(allgatherv, in, mine, out, part->counts, part->displs, type, group);
	case COLL_ALLTOALL:
		return CALL(alltoall, in, out, count, type, group);
	case COLL_ALLTOALLV:
		return CALL(alltoallv, in, part->send_counts, part->send_displs, out, part->counts,
			    part->displs, type, group);
	case COLL_REDUCE:
		return CALL(reduce, in, out, count, type, op, root, group);
	case COLL_ALLREDUCE:
		return CALL(allreduce, in, out, count, type, op, group);
	case COLL_REDUCE_SCATTER:
		return CALL(reduce_scatter, in, out, part->counts, type, op, group);
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

/* A prepared run runs twice, with the buffers as they were at first. */
static int run_twice(const struct part *part, struct coll_run *run)
{
	struct buffer out = buffer_make(part->out.bytes), in = buffer_make(part->in.bytes);
	int error;

	buffer_copy(&out, &part->out);
	buffer_copy(&in, &part->in);
	error = coll_run_start(run);
	if (!error)
		error = coll_run_wait(&run);
	if (!error) {
		memcpy(part->out.memory, out.memory, out.bytes + 2 * GUARD);
		memcpy(part->in.memory, in.memory, in.bytes + 2 * GUARD);
		error = coll_run_start(run);
	}
	if (!error)
		error = coll_run_wait(&run);
	free(out.memory);
	free(in.memory);
	return error ? error : coll_run_free(&run);
}

static bool is_next(struct runner *runner)
{
	return runner->passed++ % runner->every == runner->first;
}

/* Whether it was served, or passed over; a refusal must be the same on all ranks. */
static bool run_test_case(struct runner *runner, const struct test_case *test_case)
{
	struct coll_run *run = NULL;
	struct part part;
	int error;

	if (!is_next(runner))
		return true;
	part = part_make(runner, test_case);
	error = call(&part, &run);
	if (!error && test_case->form == NONBLOCKING)
		error = coll_run_wait(&run);
	else if (!error && test_case->form == PERSISTENT)
		error = run_twice(&part, run);
	if (error && error != -EOPNOTSUPP)
		test_case_fail(&part, coll_last_error(part.group));
	if (!error)
		compare(&part);
	part_free(&part);
	runner->test_cases++;
	runner->refused += error == -EOPNOTSUPP;
	return !error;
}

/* ---- which test cases ------------------------------------------------------- */

/* The algorithm's name and the tunings it is to be tried with, one at a time. */
static const char *const *tunings_of(const struct coll_algo *algo)
{
	static const char *const plain[] = { "", NULL };
	static const char *const redundant[] = { "", ":T=0", ":T=1", ":T=2", ":T=16", NULL };
	static const char *const segments[] = { "", ":segment=64", ":segment=4K", NULL };
	static const char *const bound[] = { ":bound=10000", ":bound=0", ":bound=7", NULL };

	if (!algo->options)
		return plain;
	return strstr(algo->options, "T") ? redundant :
	       strstr(algo->options, "segment") ? segments :
	       strstr(algo->options, "bound") ? bound : plain;
}

static void choose_algo(struct runner *runner, enum coll_collective collective, const char *name)
{
	rank_must(runner->group,
		  coll_group_set(runner->group, coll_collective_names[collective], name));
}

/* Large counts take too long, with many ranks and many blocks. */
static bool too_large(const struct runner *runner, const struct test_case *test_case)
{
	const size_t blocks = test_case->collective == COLL_BCAST ||
					      test_case->collective == COLL_REDUCE ||
					      test_case->collective >= COLL_SCAN ||
					      test_case->collective == COLL_ALLREDUCE
				      ? 1
				      : coll_ranks(runner->group);

	return test_case->count * blocks * coll_ranks(runner->group) > ELEMENTS_MAX;
}

/* It serves powers of two, or of a radix that is two unless another is named. */
static bool powers_only(const struct coll_algo *algo)
{
	return algo->power_of_two || (algo->collective == COLL_ALLREDUCE && algo->options &&
				      strstr(algo->options, "radix"));
}

/* Counts, roots, in place and form for one algorithm, in turn. */
static void play_algo(struct runner *runner, const struct coll_algo *algo, const char *name)
{
	const int ranks = coll_ranks(runner->group);
	const size_t counts[] = { 0, 1, ranks - 1, 17, 1000, 5000, 70000 };
	const int roots[] = { 0, ranks - 1, ranks / 2 };
	struct test_case test_case = { .collective = algo->collective,
				       .algo = name,
				       .type = COLL_INT32,
				       .op = algo->ordered ? REFERENCE_ORDERED : COLL_SUM };
	size_t i, variant, served = 0;

	for (i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		test_case.count = counts[i];
		if (test_case.count > runner->most || too_large(runner, &test_case) ||
		    (counts[i] && algo->collective == COLL_BARRIER))
			continue;
		for (variant = 0; variant < 6; variant++) {
			test_case.form = (i + variant) % FORMS;
			test_case.in_place = variant % 2 && algo->collective != COLL_BCAST;
			test_case.root = roots[variant % 3];
			served += run_test_case(runner, &test_case);
			if (test_case.count > 1000 && variant)
				break;
		}
	}
	if (!served && (!powers_only(algo) || !(ranks & (ranks - 1))))
		rank_fail(runner->group, "%s %s served nothing",
			  coll_collective_names[algo->collective], name);
}

static void play_algorithms(struct runner *runner)
{
	const struct coll_algo *const *algo;
	const char *const *tuning;
	char name[64];

	for (algo = coll_algos; *algo; algo++) {
		for (tuning = tunings_of(*algo); *tuning; tuning++) {
			snprintf(name, sizeof(name), "%s%s", (*algo)->name, *tuning);
			choose_algo(runner, (*algo)->collective, name);
			play_algo(runner, *algo, name);
		}
		choose_algo(runner, (*algo)->collective, "auto");
	}
}

/* Every type with every reduction that fits it, by the automatic choice. */
static void play_reductions(struct runner *runner, enum coll_collective collective)
{
	static const int user[] = { REFERENCE_COMMUTING, REFERENCE_ORDERED };
	static const int opaque[] = { COLL_OPAQUE(2), COLL_OPAQUE(3), COLL_OPAQUE(24) };
	struct test_case test_case = { .collective = collective, .algo = "auto", .count = 13 };
	size_t i, j;

	for (test_case.type = 0; test_case.type < COLL_TYPES; test_case.type++)
		for (test_case.op = 0; test_case.op < COLL_REDUCTIONS; test_case.op++)
			if (reference_fits(test_case.type, test_case.op))
				run_test_case(runner, &test_case);
	for (j = 0; j < 2; j++) {
		test_case.op = user[j];
		for (test_case.type = 0; test_case.type < COLL_TYPES; test_case.type++)
			run_test_case(runner, &test_case);
		for (i = 0; i < sizeof(opaque) / sizeof(*opaque); i++) {
			test_case.type = opaque[i];
			run_test_case(runner, &test_case);
		}
	}
}

/* Every type with one reduction that fits it, by every algorithm. */
static void play_algo_types(struct runner *runner, const struct coll_algo *algo)
{
	static const int opaque[] = { COLL_OPAQUE(1), COLL_OPAQUE(3), COLL_OPAQUE(100) };
	struct test_case test_case = { .collective = algo->collective,
				       .algo = algo->name,
				       .count = 33 };
	size_t i;

	for (test_case.type = 0; test_case.type < COLL_TYPES; test_case.type++) {
		test_case.op = reference_fits(test_case.type, COLL_SUM) ? COLL_SUM : COLL_MAXLOC;
		run_test_case(runner, &test_case);
	}
	test_case.op = algo->ordered ? REFERENCE_ORDERED : REFERENCE_COMMUTING;
	for (i = 0; i < sizeof(opaque) / sizeof(*opaque); i++) {
		test_case.type = opaque[i];
		run_test_case(runner, &test_case);
	}
}

static void play_types(struct runner *runner)
{
	const struct coll_algo *const *algo;
	enum coll_collective collective;
	char name[64];

	for (collective = COLL_REDUCE; collective < COLL_COLLECTIVES; collective++)
		play_reductions(runner, collective);
	for (algo = coll_algos; *algo; algo++) {
		if ((*algo)->collective == COLL_BARRIER)
			continue;
		snprintf(name, sizeof(name), "%s%s", (*algo)->name, *tunings_of(*algo));
		choose_algo(runner, (*algo)->collective, name);
		play_algo_types(runner, *algo);
		choose_algo(runner, (*algo)->collective, "auto");
	}
}

/* ---- the same bits on all ranks ------------------------------------------- */

static uint32_t noise_next(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* Numbers whose sum depends on the order of adding: of any size, either sign. */
static void put_noise(int type, void *data, size_t count, int rank)
{
	uint32_t state = rank * 7919 + type;
	size_t i;

	for (i = 0; i < count; i++) {
		const double fraction = noise_next(&state) / 8388608.0 - 1;
		const int shift = noise_next(&state) % (type == COLL_FP16 ? 10 : 40);
		const double value = fraction * (1ull << shift);

		if (type == COLL_DOUBLE)
			((double *)data)[i] = value;
		else if (type == COLL_FLOAT)
			((float *)data)[i] = value;
		else
			((_Float16 *)data)[i] = value;
	}
}

static void compare_bits(struct runner *runner, const char *name, int type, size_t count)
{
	const size_t bytes = count * reference_bytes(type);
	const int ranks = coll_ranks(runner->group);
	uint8_t *in = malloc(bytes + 1), *out = malloc(bytes + 1), *all = malloc(bytes * ranks + 1);
	int i, error;

	put_noise(type, in, count, coll_rank(runner->group));
	error = coll_allreduce(in, out, count, type, COLL_SUM, runner->group);
	runner->refused += error == -EOPNOTSUPP;
	if (error != -EOPNOTSUPP)
		rank_must(runner->group, error);
	rank_must(runner->group, coll_allgather(out, all, bytes, COLL_UINT8, runner->group));
	for (i = 0; i < ranks && !error; i++)
		if (memcmp(out, all + i * bytes, bytes))
			rank_fail(runner->group,
				  "allreduce %s, sum of %zu %s: rank %d has other bits", name,
				  count, reference_type_name(type), i);
	free(in);
	free(out);
	free(all);
	runner->test_cases++;
}

static void play_bits(struct runner *runner)
{
	static const size_t counts[] = { 1, 7, 64, 1001, 4999 };
	static const int types[] = { COLL_DOUBLE, COLL_FLOAT, COLL_FP16 };
	const struct coll_algo *const *algo;
	const char *const *tuning;
	char name[64];
	size_t i;

	for (algo = coll_algos; *algo; algo++) {
		if ((*algo)->collective != COLL_ALLREDUCE)
			continue;
		for (tuning = tunings_of(*algo); *tuning; tuning++) {
			snprintf(name, sizeof(name), "%s%s", (*algo)->name, *tuning);
			choose_algo(runner, COLL_ALLREDUCE, name);
			for (i = 0; i < 15; i++)
				if (is_next(runner))
					compare_bits(runner, name, types[i % 3], counts[i / 3]);
		}
	}
	choose_algo(runner, COLL_ALLREDUCE, "auto");
}

/* ---- main --------------------------------------------------------------- */

static void tell(const struct runner *runner, const char *section)
{
	if (!coll_rank(runner->group))
		printf("%s: %zu test_cases, %zu refused\n", section, runner->test_cases,
		       runner->refused);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run_test_case)(struct runner *runner);
	} sections[] = {
		{ "algorithms", play_algorithms },
		{ "types", play_types },
		{ "bits", play_bits },
	};
	struct runner runner = { .context = rank_open(NULL) };
	size_t i;

	runner.every = argc > 1 ? atoi(argv[1]) : 1;
	runner.first = argc > 2 ? atoi(argv[2]) % runner.every : 0;
	runner.most = argc > 3 ? strtoul(argv[3], NULL, 10) : SIZE_MAX;
	runner.group = coll_world(runner.context);
	rank_must(runner.group, coll_op_create(runner.context, reference_commuting, NULL, 1,
					       &runner.commuting));
	rank_must(runner.group, coll_op_create(runner.context, reference_ordered, NULL, 0,
					       &runner.ordered));
	for (i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		runner.test_cases = 0;
		runner.refused = 0;
		sections[i].run_test_case(&runner);
		tell(&runner, sections[i].name);
	}
	coll_close(runner.context);
	return 0;
}
