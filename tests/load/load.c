// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * One rank of a job that is larger, or lives longer, than usual. Rank 0 prints a line of
 * name=value.
 *
 * load ranks [COUNT...]: every collective in every form with so many elements, compared with the
 *	reference; memory and descriptors a rank, and the time from the start of coll run's first
 *	rank to the end of each rank's first collective. LOAD_SINCE=S: that start, since 1970.
 * load together GROUPS: so many groups at once, with a collective in each; then none.
 * load turns GROUPS: so many groups, one after the other.
 * load calls CALLS: so many collectives of several kinds and sizes: blocking, several in flight,
 *	and persistent ones started again. LOAD_LEAK=BYTES, fd or shared: so many, a descriptor
 *	or shared memory are lost with each thousandth call (the check itself is checked).
 *
 * What grows is looked at when a tenth is done and at the end: memory of the process by RssAnon,
 * bytes in use by malloc(), mappings, descriptors, buffers and files that are registered with
 * io_uring, what may be written to (VmData), and memory that is shared by RssShmem: rings, which the
 * peer counts too, and the page for coll show. Growth is an error.
 */
#include <dirent.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/rank.h"
#include "tests/lib/rank_call.h"

enum { LARGE = 4096, FLIGHT = 8, KINDS = 6, SHARED_LOST = 40000, HEAP_STEP = 132 };

/* ---- what grows ---------------------------------------------------------------- */

struct size {
	int64_t resident, heap;		/* KiB */
	int64_t mappings, descriptors, registered;
	int64_t reserved;		/* KiB that it may write to, touched or not */
	int64_t shared;			/* KiB */
};

static int count_descriptors(void)
{
	DIR *list = opendir("/proc/self/fd");
	int count = -3;			/* ., .. and its own */

	while (list && readdir(list))
		count++;
	closedir(list);
	return count;
}

/* Sum of the numbers behind a word at the beginning of lines. */
static long sum_lines(const char *path, const char *word)
{
	FILE *from = fopen(path, "re");
	char line[400];
	long sum = 0;

	while (from && fgets(line, sizeof(line), from))
		if (!strncmp(line, word, strlen(word)))
			sum += *word ? atol(line + strlen(word)) : 1;
	if (from)
		fclose(from);
	return sum;
}

static long count_registered(void)
{
	DIR *list = opendir("/proc/self/fdinfo");
	const struct dirent *entry;
	char path[300];
	long count = 0;

	while (list && (entry = readdir(list))) {
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", entry->d_name);
		count += sum_lines(path, "UserFiles:") + sum_lines(path, "UserBufs:");
	}
	closedir(list);
	return count;
}

static struct size size_now(void)
{
	const struct mallinfo2 heap = mallinfo2();

	return (struct size){
		.resident = sum_lines("/proc/self/status", "RssAnon:"),
		.heap = (heap.uordblks + heap.hblkhd) / 1024,
		.mappings = sum_lines("/proc/self/maps", ""),
		.descriptors = count_descriptors(),
		.registered = count_registered(),
		.reserved = sum_lines("/proc/self/status", "VmData:"),
		.shared = sum_lines("/proc/self/status", "RssShmem:"),
	};
}

/* The largest of all ranks. */
static struct size size_most(struct coll_group *world, struct size mine)
{
	struct size most;

	rank_must(world, coll_allreduce(&mine, &most, sizeof(mine) / sizeof(int64_t), COLL_INT64,
					COLL_MAX, world));
	return most;
}

/*
 * `slack`: KiB that the heap, and four times that the process may have grown by. What is resident grows
 * as buffers that there are get used; what is reserved does not, but for one step of the heap, which is some bytes
 * more than 128 KiB and may be due at any time.
 */
static void check_growth(struct coll_group *world, struct size from, struct size to, int64_t slack)
{
	if (to.heap > from.heap + slack)
		rank_fail(world, "the heap in use grew from %ld to %ld KiB", (long)from.heap,
			  (long)to.heap);
	if (to.reserved > from.reserved + 4 * slack + HEAP_STEP)
		rank_fail(world, "VmData grew from %ld to %ld KiB", (long)from.reserved,
			  (long)to.reserved);
	if (to.shared > from.shared + slack)
		rank_fail(world, "RssShmem grew from %ld to %ld KiB", (long)from.shared,
			  (long)to.shared);
	if (to.mappings > from.mappings + 4)
		rank_fail(world, "mappings grew from %ld to %ld", (long)from.mappings,
			  (long)to.mappings);
	if (to.descriptors > from.descriptors)
		rank_fail(world, "descriptors grew from %ld to %ld", (long)from.descriptors,
			  (long)to.descriptors);
	if (to.registered > from.registered)
		rank_fail(world, "what io_uring has registered grew from %ld to %ld",
			  (long)from.registered, (long)to.registered);
}

static void print_size(const char *when, struct size size)
{
	printf(" %s=%ld/%ld/%ld/%ld/%ld/%ld/%ld", when, (long)size.resident, (long)size.heap,
	       (long)size.mappings, (long)size.descriptors, (long)size.registered,
	       (long)size.reserved, (long)size.shared);
}

static double clock_s(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* ---- many ranks ------------------------------------------------------------------- */

static void run_case(struct coll_group *world, const struct test_case *test_case)
{
	struct rank_call call = rank_call_make(world, test_case->op, test_case);

	rank_must(world, rank_call_execute(&call));
	rank_call_check(&call);
	rank_call_free(&call);
}

/* All forms of each; says how long each collective took, if LOAD_TELL is set. */
static int run_every(struct coll_group *world, size_t count)
{
	const bool tells = getenv("LOAD_TELL") && !coll_rank(world);
	double began;
	struct test_case test_case = { .algo = "auto", .type = COLL_INT32, .op = COLL_SUM,
				       .count = count };
	int done = 0;

	for (test_case.collective = 0; test_case.collective < COLL_COLLECTIVES;
	     test_case.collective++) {
		began = clock_s(CLOCK_MONOTONIC);
		for (test_case.form = 0; test_case.form < FORMS; test_case.form++, done++) {
			test_case.root = done % coll_ranks(world);
			run_case(world, &test_case);
		}
		if (tells)
			fprintf(stderr, "%s of %zu: %.2f s\n",
				coll_collective_names[test_case.collective], count,
				clock_s(CLOCK_MONOTONIC) - began);
	}
	return done;
}

static void load_ranks(struct coll_group *world, int counts, char **count)
{
	const char *since = getenv("LOAD_SINCE");
	double began = since ? atof(since) : 0, mine, last;
	struct size first, all;
	int done = 0, i;

	rank_must(world, coll_barrier(world));
	mine = began ? clock_s(CLOCK_REALTIME) - began : 0;
	rank_must(world, coll_allreduce(&mine, &last, 1, COLL_DOUBLE, COLL_MAX, world));
	first = size_most(world, size_now());
	began = clock_s(CLOCK_MONOTONIC);
	for (i = 0; i < counts; i++)
		done += run_every(world, strtoul(count[i], NULL, 10));
	all = size_most(world, size_now());
	if (coll_rank(world))
		return;
	printf("ranks=%d first_s=%.2f calls=%d calls_s=%.2f", coll_ranks(world), last, done,
	       clock_s(CLOCK_MONOTONIC) - began);
	print_size("first", first);
	print_size("all", all);
	printf("\n");
}

/* ---- many groups -------------------------------------------------------------------- */

static void compute(struct coll_group *group)
{
	const int64_t ranks = coll_ranks(group), in = coll_rank(group) + 1;
	int64_t out = 0;

	rank_must(group, coll_allreduce(&in, &out, 1, COLL_INT64, COLL_SUM, group));
	rank_assert(group, out == ranks * (ranks + 1) / 2);
}

static struct coll_group *group_of(struct coll_group *world)
{
	struct coll_group *group;

	rank_must(world, coll_group_dup(world, &group));
	compute(group);
	return group;
}

/* A freed group goes when its links have closed: some calls later. */
static struct size size_settled(struct coll_group *world)
{
	int i;

	for (i = 0; i < 100; i++) {
		compute(world);
		usleep(1000);
	}
	malloc_trim(0);
	return size_most(world, size_now());
}

/* Makes, uses and frees them. `before`: without any. Returns what is left afterwards. */
static struct size crowd_of_groups(struct coll_group *world, struct coll_group **group, long count,
				   struct size before)
{
	const double began = clock_s(CLOCK_MONOTONIC);
	double made, used, freed;
	struct size most, after;
	long i;

	for (i = 0; i < count; i++)
		group[i] = group_of(world);
	made = clock_s(CLOCK_MONOTONIC);
	for (i = 0; i < count; i++)
		compute(group[i]);
	used = clock_s(CLOCK_MONOTONIC);
	most = size_most(world, size_now());
	for (i = 0; i < count; i++)
		coll_group_free(group[i]);
	freed = clock_s(CLOCK_MONOTONIC);
	after = size_settled(world);
	if (coll_rank(world))
		return after;
	printf("groups=%ld ranks=%d make_us=%.1f use_us=%.1f free_us=%.1f group_kib=%.1f", count,
	       coll_ranks(world), (made - began) * 1e6 / count, (used - made) * 1e6 / count,
	       (freed - used) * 1e6 / count, (double)(most.heap - before.heap) / count);
	print_size("before", before);
	print_size("most", most);
	print_size("after", after);
	printf("\n");
	return after;
}

/* Twice first: buffers and tables grow to what so many need at once, and must not grow again. */
static void load_together(struct coll_group *world, long count)
{
	struct coll_group **group = calloc(count, sizeof(*group));
	struct size first, second;

	rank_assert(world, group);
	memset(group, 0, count * sizeof(*group));
	coll_group_free(group_of(world));
	first = crowd_of_groups(world, group, count, size_settled(world));
	first = crowd_of_groups(world, group, count, first);
	second = crowd_of_groups(world, group, count, first);
	free(group);
	/* A few bytes a group and round would be seen. */
	check_growth(world, first, second, count / 20 > 64 ? count / 20 : 64);
}

static void load_turns(struct coll_group *world, long count)
{
	struct size before = { 0 }, after;
	double began = clock_s(CLOCK_MONOTONIC);
	long i;

	for (i = 0; i < count; i++) {
		if (i == count / 10)
			before = size_settled(world);
		coll_group_free(group_of(world));
	}
	began = clock_s(CLOCK_MONOTONIC) - began;
	after = size_settled(world);
	if (!coll_rank(world)) {
		printf("groups=%ld ranks=%d turn_us=%.1f", count, coll_ranks(world),
		       began * 1e6 / count);
		print_size("tenth", before);
		print_size("after", after);
		printf("\n");
	}
	check_growth(world, before, after, 256);
}

/* ---- many calls --------------------------------------------------------------------- */

struct caller {
	struct coll_group *world;
	int64_t in[FLIGHT][LARGE], out[FLIGHT][LARGE];
	int64_t *blocks;		/* of all ranks */
	struct coll_run *persistent;
	int64_t kept_in, kept_out;
};

static int64_t sum_of(const struct coll_group *world, int64_t base)
{
	const int64_t ranks = coll_ranks(world);

	return ranks * base + ranks * (ranks - 1) / 2;
}

static void call_allreduce(struct caller *caller, long turn)
{
	const size_t count = turn % 64 ? 1 + turn % 16 : LARGE;
	const int rank = coll_rank(caller->world);

	caller->in[0][0] = caller->in[0][count - 1] = turn + rank;
	rank_must(caller->world, coll_allreduce(caller->in[0], caller->out[0], count, COLL_INT64,
						COLL_SUM, caller->world));
	rank_assert(caller->world, caller->out[0][0] == sum_of(caller->world, turn) &&
				   caller->out[0][count - 1] == sum_of(caller->world, turn));
}

static void call_bcast(struct caller *caller, long turn)
{
	const size_t count = turn % 64 ? 1 + turn % 32 : LARGE;
	const int root = turn % coll_ranks(caller->world);

	caller->out[0][count - 1] = coll_rank(caller->world) == root ? turn : -1;
	rank_must(caller->world, coll_bcast(caller->out[0], count, COLL_INT64, root,
					    caller->world));
	rank_assert(caller->world, caller->out[0][count - 1] == turn);
}

static void call_alltoall(struct caller *caller, long turn)
{
	const int ranks = coll_ranks(caller->world), rank = coll_rank(caller->world);
	int i;

	for (i = 0; i < ranks; i++)
		caller->in[0][i] = turn + 1000 * rank + i;
	rank_must(caller->world, coll_alltoall(caller->in[0], caller->blocks, 1, COLL_INT64,
					       caller->world));
	for (i = 0; i < ranks; i++)
		rank_assert(caller->world, caller->blocks[i] == turn + 1000 * i + rank);
}

/* FLIGHT calls. */
static void call_flight(struct caller *caller, long turn)
{
	struct coll_run *run[FLIGHT];
	int i;

	for (i = 0; i < FLIGHT; i++) {
		caller->in[i][0] = turn + i + coll_rank(caller->world);
		rank_must(caller->world, coll_iallreduce(caller->in[i], caller->out[i], 1 + i,
							 COLL_INT64, COLL_SUM, caller->world,
							 &run[i]));
	}
	rank_must(caller->world, coll_run_waitall(run, FLIGHT));
	for (i = 0; i < FLIGHT; i++)
		rank_assert(caller->world, caller->out[i][0] == sum_of(caller->world, turn + i));
}

static void call_persistent(struct caller *caller, long turn)
{
	caller->kept_in = turn + coll_rank(caller->world);
	rank_must(caller->world, coll_run_start(caller->persistent));
	rank_must(caller->world, coll_run_wait(&caller->persistent));
	rank_assert(caller->world, caller->kept_out == sum_of(caller->world, turn));
}

static void call_barrier(struct caller *caller, long turn)
{
	(void)turn;
	rank_must(caller->world, coll_barrier(caller->world));
}

/* By intent. */
static void load_lose(const char *leak)
{
	static void *volatile lost;	/* for the compiler: somebody may want it */

	if (!strcmp(leak, "fd")) {
		if (dup(0) < 0)
			abort();
		return;
	}
	if (!strcmp(leak, "shared")) {
		lost = mmap(NULL, SHARED_LOST, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (lost == MAP_FAILED)
			abort();
		return;
	}
	lost = malloc(atol(leak));
	if (!lost)
		abort();
	memset(lost, 1, atol(leak));
}

static void call_until(struct caller *caller, long *turn, long until)
{
	static void (*const kind[KINDS])(struct caller *caller, long turn) = {
		call_allreduce, call_bcast, call_alltoall, call_flight, call_persistent, call_barrier,
	};
	const char *leak = getenv("LOAD_LEAK");
	long which;

	for (which = 0; *turn < until; which++) {
		kind[which % KINDS](caller, *turn);
		*turn += kind[which % KINDS] == call_flight ? FLIGHT : 1;
		if (leak && !(which % 1000))
			load_lose(leak);
	}
}

static void load_calls(struct coll_group *world, long count)
{
	struct caller *caller = calloc(1, sizeof(*caller));
	struct size tenth, end;
	double began;
	long turn = 0;

	rank_assert(world, caller);
	caller->world = world;
	caller->blocks = calloc(coll_ranks(world), sizeof(*caller->blocks));
	rank_must(world, coll_allreduce_init(&caller->kept_in, &caller->kept_out, 1, COLL_INT64,
					     COLL_SUM, world, &caller->persistent));
	call_until(caller, &turn, count / 10);
	tenth = size_most(world, size_now());
	began = clock_s(CLOCK_MONOTONIC);
	call_until(caller, &turn, count);
	began = clock_s(CLOCK_MONOTONIC) - began;
	end = size_most(world, size_now());
	if (!coll_rank(world)) {
		printf("calls=%ld ranks=%d call_us=%.2f", turn, coll_ranks(world),
		       began * 1e6 / (count - count / 10));
		print_size("tenth", tenth);
		print_size("end", end);
		printf("\n");
	}
	check_growth(world, tenth, end, 32);
	rank_must(world, coll_run_free(&caller->persistent));
	free(caller->blocks);
	free(caller);
}

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open("deadline=300s");
	struct coll_group *world = coll_world(context);
	const long count = argc > 2 ? atol(argv[2]) : 0;

	if (argc > 1 && !strcmp(argv[1], "ranks"))
		load_ranks(world, argc - 2, argv + 2);
	else if (count > 0 && !strcmp(argv[1], "together"))
		load_together(world, count);
	else if (count > 0 && !strcmp(argv[1], "turns"))
		load_turns(world, count);
	else if (count > 0 && !strcmp(argv[1], "calls"))
		load_calls(world, count);
	else
		rank_fail(world, "usage: load ranks COUNT...|together N|turns N|calls N");
	coll_close(context);
	return 0;
}
