// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Length: one table of layouts and types serves making, checking and writing. */
#include <complex.h>
#include <stddef.h>

#include "test_case.h"

const char *const what_names[WHATS] = {
	"barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv",
	"alltoall", "alltoallv", "alltoallw", "reduce", "allreduce", "reduce_scatter",
	"reduce_scatter_block", "scan", "exscan",
};

enum { GAP = 0xa5 };

/* ---- moved data ------------------------------------------------------------ */

/* A unit: two longs at `at` bytes from the element, `extent` to the next one. */
struct layout {
	MPI_Datatype type;
	int elements;		/* of the type to a unit */
	int at[2], extent;
	int low, high;		/* what a unit touches at most */
};

static struct layout layouts[LAYOUTS];

static MPI_Datatype commit(MPI_Datatype type)
{
	must(MPI_Type_commit(&type), "MPI_Type_commit");
	return type;
}

static MPI_Datatype resized(MPI_Datatype type, int lb, int extent)
{
	MPI_Datatype result;

	must(MPI_Type_create_resized(type, lb, extent, &result), "MPI_Type_create_resized");
	must(MPI_Type_free(&type), "MPI_Type_free");
	return commit(result);
}

static void make_layouts(void)
{
	int one[2] = { 1, 1 }, backwards[2] = { 1, 0 };
	MPI_Aint apart[2] = { -8, 16 }, close[2] = { 8, 16 };
	MPI_Datatype longs[2] = { MPI_LONG, MPI_LONG }, type;

	layouts[0] = (struct layout){ MPI_LONG, 2, { 0, 8 }, 16, 0, 16 };
	MPI_Type_contiguous(2, MPI_LONG, &type);
	layouts[1] = (struct layout){ commit(type), 1, { 0, 8 }, 16, 0, 16 };
	MPI_Type_vector(2, 1, 2, MPI_LONG, &type);
	layouts[2] = (struct layout){ resized(type, 0, 32), 1, { 0, 16 }, 32, 0, 32 };
	MPI_Type_indexed(2, one, backwards, MPI_LONG, &type);
	layouts[3] = (struct layout){ commit(type), 1, { 8, 0 }, 16, 0, 16 };
	MPI_Type_create_hindexed(2, one, apart, MPI_LONG, &type);
	layouts[4] = (struct layout){ resized(type, -8, 40), 1, { -8, 16 }, 40, -8, 32 };
	MPI_Type_create_struct(2, one, close, longs, &type);
	layouts[5] = (struct layout){ resized(type, 8, 16), 1, { 8, 16 }, 16, 8, 24 };
	MPI_Type_vector(2, 1, 1, MPI_LONG, &type);	/* in a row, though a vector */
	layouts[6] = (struct layout){ commit(type), 1, { 0, 8 }, 16, 0, 16 };
}

/* The j-th long of unit i that `from` gives to `to`. */
static long unit_value(uint32_t seed, int from, int to, int i, int j)
{
	uint64_t v = seed * 0x9e3779b97f4a7c15ull + (uint64_t)from * 1000003 + (uint64_t)to * 7919;

	v = (v ^ v >> 29) * 0xbf58476d1ce4e5b9ull + i * 2 + j;
	return (long)(v ^ v >> 31);
}

/* Buffers begin far enough inside their memory for layouts that reach below. */
enum { MARGIN = 64 };

static uint8_t *at(uint8_t *memory, const struct layout *layout, int unit, int j)
{
	return memory + MARGIN + (ptrdiff_t)unit * layout->extent + layout->at[j];
}

static uint8_t *memory_new(size_t bytes)
{
	uint8_t *memory = malloc(bytes + 2 * MARGIN);

	if (!memory)
		fail("out of memory");
	memset(memory, GAP, bytes + 2 * MARGIN);
	return memory;
}

static void put_units(uint8_t *memory, const struct layout *layout, int first, int count,
		      uint32_t seed, int from, int to)
{
	int i, j;

	for (i = 0; i < count; i++)
		for (j = 0; j < 2; j++) {
			long value = unit_value(seed, from, to, i, j);

			memcpy(at(memory, layout, first + i, j), &value, sizeof(value));
		}
}

static void wrong(const struct test_case *test_case, const char *what, int block, int i)
{
	fail("%s: %s, block %d, element %d", test_case_name(test_case), what, block, i);
}

/* Checks a block and wipes it, so that what is left must be untouched. */
static void check_units(const struct test_case *test_case, const struct layout *layout, int first,
			int count, int from, int to)
{
	int i, j;

	for (i = 0; i < count; i++)
		for (j = 0; j < 2; j++) {
			long value = unit_value(test_case->seed, from, to, i, j);
			uint8_t *place = at(test_case->out, layout, first + i, j);

			if (memcmp(place, &value, sizeof(value)))
				wrong(test_case, "wrong data", from, i);
			memset(place, GAP, sizeof(value));
		}
}

static void check_gaps(const struct test_case *test_case)
{
	size_t i;

	for (i = 0; i < test_case->out_bytes + 2 * MARGIN; i++)
		if (test_case->out[i] != GAP)
			fail("%s: byte %zu beyond the data was written", test_case_name(test_case),
			     i);
}

/* Units that rank `to` gets from `from` in a v collective: some none. */
static int block_units(const struct test_case *test_case, int from, int to)
{
	return test_case->count ? (test_case->count + 3 * from + to) % (test_case->count + 2) : 0;
}

/* ---- reductions -------------------------------------------------------------- */

enum kind { SIGNED, UNSIGNED, REAL, COMPLEX, PAIR, BOOLEAN, MAPS };

/* As in memory of every size and kind. */
struct value {
	int64_t i;
	long double f, g;
	uint32_t a, b;
};

static struct element {
	const char *name;
	MPI_Datatype type;
	enum kind kind;
	int size;		/* of the value, of a pair's value, of a complex's part */
	int extent, second;	/* where a pair's index, a map's b is */
} elements[64];
static int elements_count;

static MPI_Op op_maps, op_sum;

static struct operation {
	const char *name;
	MPI_Op op;
} operations[] = {
	{ "sum", MPI_OP_NULL }, { "prod", MPI_OP_NULL }, { "min", MPI_OP_NULL },
	{ "max", MPI_OP_NULL }, { "land", MPI_OP_NULL }, { "lor", MPI_OP_NULL },
	{ "lxor", MPI_OP_NULL }, { "band", MPI_OP_NULL }, { "bor", MPI_OP_NULL },
	{ "bxor", MPI_OP_NULL }, { "minloc", MPI_OP_NULL }, { "maxloc", MPI_OP_NULL },
	{ "own sum", MPI_OP_NULL }, { "own maps", MPI_OP_NULL },
};
enum { SUM, PROD, MIN, MAX, LAND, LOR, LXOR, BAND, BOR, BXOR, MINLOC, MAXLOC, OWN_SUM, OWN_MAPS,
       OPERATIONS };

/* Every pair of these that MPI defines. */
static struct { int element, operation; } pairs[512];
static int pairs_count;

int reductions(void)
{
	return pairs_count;
}

void reduction_choose(struct test_case *test_case, int number)
{
	test_case->type = pairs[number].element;
	test_case->op = pairs[number].operation;
}

static void own_sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
	double *from = in, *to = inout;
	int i;

	if (*type != MPI_DOUBLE)
		fail("own sum was called for another type");
	for (i = 0; i < *count; i++)
		to[i] += from[i];
}

/* x -> ax + b, first the lower ranks' map: associative, does not commute. */
static void compose(uint32_t *a, uint32_t *b, uint32_t then_a, uint32_t then_b)
{
	*b = then_a * *b + then_b;
	*a = then_a * *a;
}

static void own_maps(void *in, void *inout, int *count, MPI_Datatype *type)
{
	MPI_Aint lb, extent;
	uint8_t *low = in, *high = inout;
	int i, second;

	MPI_Type_get_extent(*type, &lb, &extent);
	second = extent == 8 ? 4 : 8;
	for (i = 0; i < *count; i++, low += extent, high += extent) {
		uint32_t a, b, then_a, then_b;

		memcpy(&a, low, 4);
		memcpy(&b, low + second, 4);
		memcpy(&then_a, high, 4);
		memcpy(&then_b, high + second, 4);
		compose(&a, &b, then_a, then_b);
		memcpy(high, &a, 4);
		memcpy(high + second, &b, 4);
	}
}

static bool defined(const struct element *element, int op)
{
	switch (element->kind) {
	case SIGNED:
	case UNSIGNED:
		return op <= BXOR;
	case REAL:
		return op <= MAX || (op == OWN_SUM && element->type == MPI_DOUBLE);
	case COMPLEX:
		return op <= PROD;
	case PAIR:
		return op == MINLOC || op == MAXLOC;
	case BOOLEAN:
		return op >= LAND && op <= LXOR;
	case MAPS:
		return op == OWN_MAPS;
	}
	return false;
}

static void add_element(const char *name, MPI_Datatype type, enum kind kind, int size, int extent,
			int second)
{
	elements[elements_count++] = (struct element){ name, type, kind, size, extent, second };
}

static void make_elements(void)
{
	int ones[2] = { 1, 1 };
	MPI_Aint places[2] = { 0, 8 };
	MPI_Datatype words[2] = { MPI_UINT32_T, MPI_UINT32_T }, type;

#define PLAIN(type, c, kind) add_element(#type, type, kind, sizeof(c), sizeof(c), 0)
	PLAIN(MPI_SIGNED_CHAR, signed char, SIGNED);
	PLAIN(MPI_SHORT, short, SIGNED);
	PLAIN(MPI_INT, int, SIGNED);
	PLAIN(MPI_LONG, long, SIGNED);
	PLAIN(MPI_LONG_LONG, long long, SIGNED);
	PLAIN(MPI_INT32_T, int32_t, SIGNED);
	PLAIN(MPI_AINT, MPI_Aint, SIGNED);
	PLAIN(MPI_UNSIGNED_CHAR, unsigned char, UNSIGNED);
	PLAIN(MPI_UINT16_T, uint16_t, UNSIGNED);
	PLAIN(MPI_UNSIGNED, unsigned int, UNSIGNED);
	PLAIN(MPI_UNSIGNED_LONG, unsigned long, UNSIGNED);
	PLAIN(MPI_FLOAT, float, REAL);
	PLAIN(MPI_DOUBLE, double, REAL);
	PLAIN(MPI_LONG_DOUBLE, long double, REAL);
	PLAIN(MPI_INTEGER, int, SIGNED);
	PLAIN(MPI_DOUBLE_PRECISION, double, REAL);
	PLAIN(MPI_C_BOOL, bool, BOOLEAN);
	add_element("MPI_C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX, COMPLEX, 4, 8, 4);
	add_element("MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX, COMPLEX, 8, 16, 8);
	add_element("MPI_2INT", MPI_2INT, PAIR, 4, 8, 4);
	add_element("MPI_SHORT_INT", MPI_SHORT_INT, PAIR, 2, 8, 4);
	add_element("MPI_LONG_INT", MPI_LONG_INT, PAIR, 8, 16, 8);
	add_element("MPI_FLOAT_INT", MPI_FLOAT_INT, PAIR, -4, 8, 4);
	add_element("MPI_DOUBLE_INT", MPI_DOUBLE_INT, PAIR, -8, 16, 8);
	MPI_Type_contiguous(2, MPI_UINT32_T, &type);
	add_element("maps", commit(type), MAPS, 4, 8, 4);
	MPI_Type_create_struct(2, ones, places, words, &type);
	add_element("maps with gaps", resized(type, 0, 16), MAPS, 4, 16, 8);
}

static void make_operations(void)
{
	MPI_Op own[] = { MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_LAND, MPI_LOR, MPI_LXOR,
			 MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC };
	int i, j;

	for (i = 0; i <= MAXLOC; i++)
		operations[i].op = own[i];
	must(MPI_Op_create(own_sum, 1, &op_sum), "MPI_Op_create");
	must(MPI_Op_create(own_maps, 0, &op_maps), "MPI_Op_create");
	operations[OWN_SUM].op = op_sum;
	operations[OWN_MAPS].op = op_maps;
	for (i = 0; i < elements_count; i++)
		for (j = 0; j < OPERATIONS; j++)
			if (defined(&elements[i], j)) {
				pairs[pairs_count].element = i;
				pairs[pairs_count++].operation = j;
			}
}

static struct value value_of(const struct test_case *test_case, int rank, int i)
{
	const struct element *element = &elements[test_case->type];
	uint64_t bits = unit_value(test_case->seed, rank, 0, i, 0);
	struct value value = { .i = bits, .f = (int)(bits % 5) - 2, .g = (int)(bits / 5 % 5) - 2,
			       .a = bits, .b = bits >> 32 };

	if (test_case->rounded) {
		value.f = (int64_t)bits / 0x1p63L;
		value.g = (int64_t)(bits * 0x9e3779b97f4a7c15ull) / 0x1p63L;
	}
	if (element->kind == PAIR) {
		value.i = (int)(bits % 7) - 3;	/* so that some are equal */
		value.f = value.i;
		value.a = (rank * 5 + i) % 11;
	} else if (element->kind == BOOLEAN) {
		value.i = bits & 1;
	}
	return value;
}

static uint64_t truncated(uint64_t bits, int size)
{
	return size == 8 ? bits : bits & ((1ull << 8 * size) - 1);
}

static int64_t widened(uint64_t bits, int size)
{
	return (int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size);
}

static void fold_integer(const struct element *element, int op, int64_t *to, int64_t from)
{
	uint64_t a = truncated(*to, element->size), b = truncated(from, element->size);
	bool less = element->kind == SIGNED ?
		    widened(b, element->size) < widened(a, element->size) : b < a;

	switch (op) {
	case SUM: *to = a + b; break;
	case PROD: *to = a * b; break;
	case MIN: *to = less ? b : a; break;
	case MAX: *to = less ? a : b; break;
	case LAND: *to = a && b; break;
	case LOR: *to = a || b; break;
	case LXOR: *to = !a != !b; break;
	case BAND: *to = a & b; break;
	case BOR: *to = a | b; break;
	case BXOR: *to = a ^ b; break;
	}
}

static void fold_real(int op, long double *to, long double from)
{
	switch (op) {
	case SUM:
	case OWN_SUM: *to += from; break;
	case PROD: *to *= from; break;
	case MIN: *to = from < *to ? from : *to; break;
	case MAX: *to = from > *to ? from : *to; break;
	}
}

static void fold_pair(int op, struct value *to, const struct value *from)
{
	bool wins = op == MINLOC ? from->i < to->i : from->i > to->i;

	if (wins || (from->i == to->i && from->a < to->a))
		*to = *from;
}

static void fold(const struct element *element, int op, struct value *to, const struct value *from)
{
	long double f = to->f;

	switch (element->kind) {
	case SIGNED:
	case UNSIGNED:
	case BOOLEAN:
		fold_integer(element, op, &to->i, from->i);
		break;
	case REAL:
		fold_real(op, &to->f, from->f);
		break;
	case COMPLEX:
		to->f = op == SUM ? f + from->f : f * from->f - to->g * from->g;
		to->g = op == SUM ? to->g + from->g : f * from->g + to->g * from->f;
		break;
	case PAIR:
		fold_pair(op, to, from);
		break;
	case MAPS:
		compose(&to->a, &to->b, from->a, from->b);
		break;
	}
}

static void write_real(uint8_t *place, long double value, int size)
{
	float f = value;
	double d = value;

	if (size == 4)
		memcpy(place, &f, 4);
	else if (size == 8)
		memcpy(place, &d, 8);
	else
		memcpy(place, &value, 10);	/* the rest is padding */
}

static void write_value(const struct element *element, const struct value *value, uint8_t *place)
{
	switch (element->kind) {
	case SIGNED:
	case UNSIGNED:
	case BOOLEAN:
		memcpy(place, &value->i, element->size);
		break;
	case REAL:
		write_real(place, value->f, element->size);
		break;
	case COMPLEX:
		write_real(place, value->f, element->size);
		write_real(place + element->second, value->g, element->size);
		break;
	case PAIR:
		if (element->size < 0)
			write_real(place, value->f, -element->size);
		else
			memcpy(place, &value->i, element->size);
		memcpy(place + element->second, &value->a, 4);
		break;
	case MAPS:
		memcpy(place, &value->a, 4);
		memcpy(place + element->second, &value->b, 4);
		break;
	}
}

/* Which bytes of an element are its value's, in turn compared and wiped. */
static bool value_equal(const struct element *element, const uint8_t *a, const uint8_t *b)
{
	int first = abs(element->size);

	if (element->kind == REAL && element->size == 16)
		first = 10;
	if (element->kind == COMPLEX) {		/* the sign of a zero is nobody's promise */
		double x[2], y[2];
		float f[2], g[2];

		memcpy(first == 4 ? (void *)f : x, a, 2 * first);
		memcpy(first == 4 ? (void *)g : y, b, 2 * first);
		return first == 4 ? f[0] == g[0] && f[1] == g[1] : x[0] == y[0] && x[1] == y[1];
	}
	if (element->kind == REAL && !memcmp(a + first - 1, "\0", 1) &&
	    !memcmp(b + first - 1, "\x80", 1))
		return true;		/* -0 */
	if (element->kind == REAL) {
		float f = 0, g = 0;
		double x = 0, y = 0;
		long double l = 0, m = 0;

		memcpy(first == 4 ? (void *)&f : first == 8 ? (void *)&x : (void *)&l, a, first);
		memcpy(first == 4 ? (void *)&g : first == 8 ? (void *)&y : (void *)&m, b, first);
		return f == g && x == y && l == m;
	}
	return !memcmp(a, b, first) &&
	       (!element->second || !memcmp(a + element->second, b + element->second, 4));
}

static void put_elements(const struct test_case *test_case, uint8_t *memory, int first, int count,
			 int rank)
{
	const struct element *element = &elements[test_case->type];
	int i;

	for (i = 0; i < count; i++) {
		struct value value = value_of(test_case, rank, first + i);

		write_value(element, &value, memory + MARGIN + (size_t)i * element->extent);
	}
}

/* The fold of ranks 0..last on elements first... of the vector. */
static void check_elements(const struct test_case *test_case, int first, int count, int last)
{
	const struct element *element = &elements[test_case->type];
	int i, rank;

	for (i = 0; i < count; i++) {
		struct value value = value_of(test_case, 0, first + i);
		uint8_t want[32] = { 0 },
			*got = test_case->out + MARGIN + (size_t)i * element->extent;

		for (rank = 1; rank <= last; rank++) {
			struct value next = value_of(test_case, rank, first + i);

			fold(element, test_case->op, &value, &next);
		}
		write_value(element, &value, want);
		if (!value_equal(element, want, got))
			wrong(test_case, "wrong result", last, i);
		if (element->kind == MAPS && element->extent == 16 && got[4] != GAP)
			wrong(test_case, "a gap was written", last, i);
	}
}

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

static long double read_real(const uint8_t *place, int size)
{
	long double value = 0;
	float f;
	double d;

	if (size == 4)
		value = memcpy(&f, place, 4) ? f : 0;
	else if (size == 8)
		value = memcpy(&d, place, 8) ? d : 0;
	else
		memcpy(&value, place, 10);
	return value;
}

/* Values are below 1: so many ranks' sum in another order is that near. */
static void write_rounded(const struct test_case *test_case, const uint8_t *place, int size,
			  FILE *to)
{
	const double epsilon = size == 4 ? 0x1p-23 : size == 8 ? 0x1p-52 : 0x1p-63;

	fprintf(to, "%g %.20Lg\n", test_case->ranks * test_case->ranks * epsilon,
		read_real(place, size));
}

static void write_element(const struct test_case *test_case, const uint8_t *place, FILE *exact,
			  FILE *rounded)
{
	const struct element *element = &elements[test_case->type];

	if (element->kind == REAL || element->kind == COMPLEX) {
		write_rounded(test_case, place, element->size, rounded);
		if (element->kind == COMPLEX)
			write_rounded(test_case, place + element->second, element->size, rounded);
		return;
	}
	fwrite(place, abs(element->size), 1, exact);
	if (element->second)
		fwrite(place + element->second, 4, 1, exact);
}

void test_case_write(const struct test_case *test_case, FILE *exact, FILE *rounded)
{
	const struct element *element = &elements[test_case->type];
	int count = test_case->count, i;

	fprintf(exact, "%s\n", test_case_name(test_case));
	if (!is_reduction(test_case)) {	/* gaps too: they are not to be touched */
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
	make_layouts();
	make_elements();
	make_operations();
}

void test_cases_end(void)
{
	int i;

	for (i = 1; i < LAYOUTS; i++)
		MPI_Type_free(&layouts[i].type);
	for (i = 0; i < elements_count; i++)
		if (elements[i].kind == MAPS)
			MPI_Type_free(&elements[i].type);
	MPI_Op_free(&op_maps);
	MPI_Op_free(&op_sum);
}
