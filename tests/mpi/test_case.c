// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "data.h"

const char *const what_names[WHATS] = {
	"barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv",
	"alltoall", "alltoallv", "alltoallw", "reduce", "allreduce", "reduce_scatter",
	"reduce_scatter_block", "scan", "exscan",
};

/* ---- making a call ------------------------------------------------------------ */

static bool is_root(const struct test_case *test_case)
{
	return test_case->rank == test_case->root;
}

static bool is_reduction(const struct test_case *test_case)
{
	return test_case->what >= REDUCE;
}

/* Elements of each rank's block of a reduce_scatter. */
static int share(const struct test_case *test_case, int rank)
{
	if (test_case->what == REDUCE_SCATTER_BLOCK)
		return test_case->count;
	return test_case->count ? (test_case->count + rank) % (test_case->count + 1) : 0;
}

static int shares_before(const struct test_case *test_case, int rank)
{
	int sum = 0, i;

	for (i = 0; i < rank; i++)
		sum += share(test_case, i);
	return sum;
}

/* One side's blocks, in an order that is not the ranks', with a unit between. */
static int lay_blocks(struct test_case *test_case, int side, const int *units)
{
	const struct layout *layout = &layouts[side ? test_case->out_layout : test_case->in_layout];
	int place = 1, i;

	for (i = test_case->ranks - 1; i >= 0; i--) {
		test_case->counts[side][i] = units[i];
		test_case->displs[side][i] = place;
		test_case->types[side][i] = layout->type;
		place += units[i] + 1;
	}
	return place;
}

/* From units to what MPI wants: elements of the type, or bytes for alltoallw. */
static void blocks_to_mpi(struct test_case *test_case, int side)
{
	const struct layout *layout = &layouts[side ? test_case->out_layout : test_case->in_layout];
	int i;

	for (i = 0; i < test_case->ranks; i++) {
		test_case->displs[side][i] *= test_case->what == ALLTOALLW ? layout->extent :
								      layout->elements;
		test_case->counts[side][i] *= layout->elements;
	}
}

static int unit_of_displ(const struct test_case *test_case, int side, int i)
{
	const struct layout *layout = &layouts[side ? test_case->out_layout : test_case->in_layout];

	return test_case->displs[side][i] / (test_case->what == ALLTOALLW ? layout->extent :
								     layout->elements);
}

/* How many units each side's buffer has, and where the blocks are. */
static void sizes(struct test_case *test_case, int *in_units, int *out_units)
{
	const int p = test_case->ranks, n = test_case->count, me = test_case->rank;
	int units[RANKS_MAX] = { 0 }, i;

	*in_units = *out_units = n;
	switch (test_case->what) {
	case GATHER:
	case ALLGATHER:
		*out_units = n * p;
		break;
	case SCATTER:
		*in_units = n * p;
		break;
	case ALLTOALL:
		*in_units = *out_units = n * p;
		break;
	case GATHERV:
	case ALLGATHERV:
		for (i = 0; i < p; i++)
			units[i] = block_units(test_case, i, 0);
		*in_units = units[me];
		*out_units = lay_blocks(test_case, 1, units);
		break;
	case SCATTERV:
		for (i = 0; i < p; i++)
			units[i] = block_units(test_case, 0, i);
		*out_units = units[me];
		*in_units = lay_blocks(test_case, 0, units);
		break;
	case ALLTOALLV:
	case ALLTOALLW:
		/* In place what goes is replaced by what comes: as much of it. */
		for (i = 0; i < p; i++)
			units[i] = test_case->in_place ?
				   block_units(test_case, i < me ? i : me, i < me ? me : i) :
				   block_units(test_case, me, i);
		*in_units = lay_blocks(test_case, 0, units);
		if (!test_case->in_place)
			for (i = 0; i < p; i++)
				units[i] = block_units(test_case, i, me);
		*out_units = lay_blocks(test_case, 1, units);
		break;
	default:
		break;
	}
}

static void fill_moved(struct test_case *test_case)
{
	const struct layout *in = &layouts[test_case->in_layout],
			    *out = &layouts[test_case->out_layout];
	const int me = test_case->rank, n = test_case->count, p = test_case->ranks;
	const bool in_place = test_case->in_place;
	uint8_t *to = in_place ? test_case->out : test_case->in;
	const struct layout *layout = in_place ? out : in;
	int i;

	switch (test_case->what) {
	case BCAST:
		if (is_root(test_case))
			put_units(test_case->out, out, 0, n, test_case->seed, me, 0);
		break;
	case GATHER:
	case ALLGATHER:
		put_units(to, layout, in_place ? me * n : 0, n, test_case->seed, me, 0);
		break;
	case GATHERV:
	case ALLGATHERV:
		put_units(to, layout, in_place ? unit_of_displ(test_case, 1, me) : 0,
			  block_units(test_case, me, 0), test_case->seed, me, 0);
		break;
	case SCATTER:
		for (i = 0; is_root(test_case) && i < p; i++)
			put_units(test_case->in, in, i * n, n, test_case->seed, me, i);
		break;
	case SCATTERV:
		for (i = 0; is_root(test_case) && i < p; i++)
			put_units(test_case->in, in, unit_of_displ(test_case, 0, i),
				  block_units(test_case, 0, i), test_case->seed, me, i);
		break;
	case ALLTOALL:
		for (i = 0; i < p; i++)
			put_units(to, layout, i * n, n, test_case->seed, me, i);
		break;
	case ALLTOALLV:
	case ALLTOALLW:
		for (i = 0; i < p; i++)
			put_units(to, layout, unit_of_displ(test_case, in_place, i),
				  in_place
					  ? block_units(test_case, i < me ? i : me, i < me ? me : i)
					  : block_units(test_case, me, i),
				  test_case->seed, me, i);
		break;
	default:
		break;
	}
}

static void fill_reduction(struct test_case *test_case)
{
	uint8_t *to = test_case->in_place ? test_case->out : test_case->in;
	int count = test_case->count;

	if (test_case->what == REDUCE_SCATTER || test_case->what == REDUCE_SCATTER_BLOCK)
		count = shares_before(test_case, test_case->ranks);
	put_elements(test_case, to, 0, count, test_case->rank);
}

static void fill(struct test_case *test_case)
{
	memset(test_case->in, GAP, test_case->in_bytes + 2 * MARGIN);
	memset(test_case->out, GAP, test_case->out_bytes + 2 * MARGIN);
	if (is_reduction(test_case))
		fill_reduction(test_case);
	else
		fill_moved(test_case);
}

static void make(struct test_case *test_case)
{
	int in_units = 0, out_units = 0, side, i, all;

	MPI_Comm_rank(test_case->comm, &test_case->rank);
	MPI_Comm_size(test_case->comm, &test_case->ranks);
	test_case->root %= test_case->ranks;
	if (is_reduction(test_case)) {
		all = shares_before(test_case, test_case->ranks);
		for (i = 0; i < test_case->ranks; i++)
			test_case->counts[1][i] = share(test_case, i);
		test_case->in_bytes = elements[test_case->type].extent *
				  (size_t)(all > test_case->count ? all : test_case->count);
		test_case->out_bytes = test_case->in_bytes;
		/* Only the root reduces in place. */
		if (test_case->what == REDUCE)
			test_case->in_place &= is_root(test_case);
	} else {
		if (test_case->what == GATHER || test_case->what == GATHERV ||
		    test_case->what == SCATTER || test_case->what == SCATTERV)
			test_case->in_place &= is_root(test_case);
		sizes(test_case, &in_units, &out_units);
		test_case->in_bytes = (size_t)layouts[test_case->in_layout].extent * in_units;
		test_case->out_bytes = (size_t)layouts[test_case->out_layout].extent * out_units;
		for (side = 0; side < 2; side++)
			blocks_to_mpi(test_case, side);
	}
	test_case->in = memory_new(test_case->in_bytes);
	test_case->out = memory_new(test_case->out_bytes);
	fill(test_case);
}

/* ---- calling ------------------------------------------------------------------- */

/* The three forms of a call, whose arguments are the same but for the last. */
#define CALL(Name, name, ...)                                                              \
	(test_case->form == BLOCKING ? MPI_##Name(__VA_ARGS__) :                               \
	 test_case->form == NONBLOCKING ? MPI_I##name(__VA_ARGS__, &test_case->request) :          \
				      INIT(Name)(__VA_ARGS__, MPI_INFO_NULL, &test_case->request))

static int call_moved(struct test_case *test_case, void *in, void *out)
{
	const struct layout *il = &layouts[test_case->in_layout],
			    *ol = &layouts[test_case->out_layout];
	const MPI_Datatype it = il->type, ot = ol->type;
	const int in_n = test_case->count * il->elements, out_n = test_case->count * ol->elements;
	const int *ic = test_case->counts[0], *id = test_case->displs[0];
	const int *oc = test_case->counts[1], *od = test_case->displs[1];
	const int root = test_case->root, me = test_case->rank;
	const MPI_Comm comm = test_case->comm;

	switch (test_case->what) {
	case BARRIER:
		return CALL(Barrier, barrier, comm);
	case BCAST:
		return CALL(Bcast, bcast, test_case->out + MARGIN, out_n, ot, root, comm);
	case GATHER:
		return CALL(Gather, gather, in, in_n, it, out, out_n, ot, root, comm);
	case GATHERV:
		return CALL(Gatherv, gatherv, in, block_units(test_case, me, 0) * il->elements, it,
			    out, oc, od, ot, root, comm);
	case SCATTER:
		return CALL(Scatter, scatter, in, in_n, it, out, out_n, ot, root, comm);
	case SCATTERV:
		return CALL(Scatterv, scatterv, in, ic, id, it, out,
			    block_units(test_case, 0, me) * ol->elements, ot, root, comm);
	case ALLGATHER:
		return CALL(Allgather, allgather, in, in_n, it, out, out_n, ot, comm);
	case ALLGATHERV:
		return CALL(Allgatherv, allgatherv, in,
			    block_units(test_case, me, 0) * il->elements, it, out, oc, od, ot,
			    comm);
	case ALLTOALL:
		return CALL(Alltoall, alltoall, in, in_n, it, out, out_n, ot, comm);
	case ALLTOALLV:
		return CALL(Alltoallv, alltoallv, in, ic, id, it, out, oc, od, ot, comm);
	case ALLTOALLW:
		return CALL(Alltoallw, alltoallw, in, ic, id, test_case->types[0], out, oc, od,
			    test_case->types[1], comm);
	default:
		return MPI_ERR_OTHER;
	}
}

static int call_reduction(struct test_case *test_case, void *in, void *out)
{
	const MPI_Datatype type = elements[test_case->type].type;
	const MPI_Op op = operations[test_case->op].op;
	const int n = test_case->count;
	const MPI_Comm comm = test_case->comm;

	switch (test_case->what) {
	case REDUCE:
		return CALL(Reduce, reduce, in, out, n, type, op, test_case->root, comm);
	case ALLREDUCE:
		return CALL(Allreduce, allreduce, in, out, n, type, op, comm);
	case REDUCE_SCATTER:
		return CALL(Reduce_scatter, reduce_scatter, in, out, test_case->counts[1], type, op,
			    comm);
	case REDUCE_SCATTER_BLOCK:
		return CALL(Reduce_scatter_block, reduce_scatter_block, in, out, n, type, op, comm);
	case SCAN:
		return CALL(Scan, scan, in, out, n, type, op, comm);
	case EXSCAN:
		return CALL(Exscan, exscan, in, out, n, type, op, comm);
	default:
		return MPI_ERR_OTHER;
	}
}

void test_case_begin(struct test_case *test_case)
{
	bool scatters = test_case->what == SCATTER || test_case->what == SCATTERV;
	void *in, *out;

	make(test_case);
	in = test_case->in_place && !scatters ? MPI_IN_PLACE : test_case->in + MARGIN;
	out = test_case->in_place && scatters ? MPI_IN_PLACE : test_case->out + MARGIN;
	test_case->request = MPI_REQUEST_NULL;
	must(is_reduction(test_case) ? call_reduction(test_case, in, out)
				     : call_moved(test_case, in, out),
	     test_case_name(test_case));
	if (test_case->form == PERSISTENT)
		must(MPI_Start(&test_case->request), "MPI_Start");
}

void test_case_again(struct test_case *test_case)
{
	test_case->seed += 77;
	fill(test_case);
	must(MPI_Start(&test_case->request), "MPI_Start");
}

void test_case_free(struct test_case *test_case)
{
	if (test_case->request != MPI_REQUEST_NULL)
		must(MPI_Request_free(&test_case->request), "MPI_Request_free");
	free(test_case->in);
	free(test_case->out);
}

/* ---- checking ------------------------------------------------------------------ */

static void check_moved(struct test_case *test_case)
{
	const struct layout *out = &layouts[test_case->out_layout];
	const int me = test_case->rank, n = test_case->count, p = test_case->ranks;
	int i;

	switch (test_case->what) {
	case BCAST:
		check_units(test_case, out, 0, n, test_case->root, 0);
		break;
	case GATHER:
	case ALLGATHER:
		for (i = 0; (test_case->what == ALLGATHER || is_root(test_case)) && i < p; i++)
			check_units(test_case, out, i * n, n, i, 0);
		break;
	case GATHERV:
	case ALLGATHERV:
		for (i = 0; (test_case->what == ALLGATHERV || is_root(test_case)) && i < p; i++)
			check_units(test_case, out, unit_of_displ(test_case, 1, i),
				    block_units(test_case, i, 0), i, 0);
		break;
	case SCATTER:
		if (!test_case->in_place)
			check_units(test_case, out, 0, n, test_case->root, me);
		break;
	case SCATTERV:
		if (!test_case->in_place)
			check_units(test_case, out, 0, block_units(test_case, 0, me),
				    test_case->root, me);
		break;
	case ALLTOALL:
		for (i = 0; i < p; i++)
			check_units(test_case, out, i * n, n, i, me);
		break;
	case ALLTOALLV:
	case ALLTOALLW:
		for (i = 0; i < p; i++)
			check_units(test_case, out, unit_of_displ(test_case, 1, i),
				    test_case->in_place ?
				    block_units(test_case, i < me ? i : me, i < me ? me : i) :
				    block_units(test_case, i, me), i, me);
		break;
	default:
		break;
	}
	check_gaps(test_case);
}

static void check_reduction(struct test_case *test_case)
{
	const int last = test_case->ranks - 1, me = test_case->rank;

	switch (test_case->what) {
	case REDUCE:
		if (is_root(test_case))
			check_elements(test_case, 0, test_case->count, last);
		break;
	case ALLREDUCE:
		check_elements(test_case, 0, test_case->count, last);
		break;
	case REDUCE_SCATTER:
	case REDUCE_SCATTER_BLOCK:
		check_elements(test_case, shares_before(test_case, me), share(test_case, me), last);
		break;
	case SCAN:
		check_elements(test_case, 0, test_case->count, me);
		break;
	case EXSCAN:
		if (me)
			check_elements(test_case, 0, test_case->count, me - 1);
		break;
	default:
		break;
	}
}

void test_case_check(struct test_case *test_case)
{
	if (is_reduction(test_case))
		check_reduction(test_case);
	else
		check_moved(test_case);
}

/* ---- writing ------------------------------------------------------------------- */

void test_case_write(const struct test_case *test_case, FILE *exact, FILE *rounded)
{
	const struct element *element = &elements[test_case->type];
	int count = test_case->count, i;

	fprintf(exact, "%s\n", test_case_name(test_case));
	if (!is_reduction(test_case)) {	/* gaps too: they must not be changed */
		fwrite(test_case->out + MARGIN, test_case->out_bytes, 1, exact);
		return;
	}
	if (test_case->what == REDUCE_SCATTER || test_case->what == REDUCE_SCATTER_BLOCK)
		count = share(test_case, test_case->rank);
	if ((test_case->what == REDUCE && !is_root(test_case)) ||
	    (test_case->what == EXSCAN && !test_case->rank))
		count = 0;
	for (i = 0; i < count; i++)
		write_element(test_case, test_case->out + MARGIN + (size_t)i * element->extent,
			      exact, rounded);
}

const char *test_case_name(const struct test_case *test_case)
{
	static const char *const forms[] = { "blocking", "nonblocking", "persistent" };
	static char text[256];

	if (is_reduction(test_case))
		snprintf(text, sizeof(text), "%s %s of %d %s, %s%s, rank %d of %d, root %d",
			 forms[test_case->form], what_names[test_case->what], test_case->count,
			 elements[test_case->type].name, operations[test_case->op].name,
			 test_case->in_place ? ", in place" : "", test_case->rank, test_case->ranks,
			 test_case->root);
	else
		snprintf(text, sizeof(text),
			 "%s %s of %d units%s, layouts %d and %d, rank %d of "
			 "%d, root %d",
			 forms[test_case->form], what_names[test_case->what], test_case->count,
			 test_case->in_place ? ", in place" : "", test_case->in_layout,
			 test_case->out_layout, test_case->rank, test_case->ranks, test_case->root);
	return text;
}

/* ---- start and end -------------------------------------------------------------- */

void test_cases_start(void)
{
	if (getenv("SCALE_TRIALS"))
		scale_trials(atof(getenv("SCALE_TRIALS")));
	layouts_make();
	reductions_make();
}

void test_cases_end(void)
{
	layouts_free();
	reductions_free();
}
