// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The calls of peer.c by no library: what short collectives take at least on this machine, with
 * these ranks on these cores. Processes share an area; who sends copies its vector there and
 * sets a sequence number, and who receives looks for that number, yields between looks where
 * ranks share cores, and copies or sums. Nothing is matched, checked, counted or given up: no
 * library can do without, and none can be faster but by waiting better than sched_yield().
 *
 * $PEER_RANKS processes are forked. Vectors and blocks of at most 64 KB.
 */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PEER_BYTES_MAX = 64 << 10, FLOOR_SLOTS = 4, FLOOR_RANKS_MAX = 64, FLOOR_SUM_ALL = 2048 };

static struct floor_rank {
	_Alignas(128) unsigned int published;	/* the latest call whose vector is in its slot */
	_Alignas(128) unsigned int completed;	/* calls of which it reads nothing any more */
} *floor_ranks;

static char *floor_slots;
static size_t floor_slot_bytes;
static unsigned int floor_call;
static int floor_shares_cores;

static void *floor_share(size_t bytes)
{
	void *area = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (area == MAP_FAILED) {
		perror("peer: mmap");
		exit(1);
	}
	return area;
}

static void peer_open(int *argc, char ***argv)
{
	const char *count = getenv("PEER_RANKS");
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);

	(void)argc;
	(void)argv;
	ranks = count ? atoi(count) : 0;
	if (ranks < 1 || ranks > FLOOR_RANKS_MAX) {
		fprintf(stderr, "peer: PEER_RANKS is from 1 to %d\n", FLOOR_RANKS_MAX);
		exit(2);
	}
	floor_shares_cores = ranks > cores;
	floor_slot_bytes = (size_t)PEER_BYTES_MAX * ranks;
	if (floor_slot_bytes < SAMPLES_MAX * sizeof(double))
		floor_slot_bytes = SAMPLES_MAX * sizeof(double);
	floor_ranks = floor_share(ranks * sizeof(*floor_ranks));
	floor_slots = floor_share(floor_slot_bytes * ranks * FLOOR_SLOTS);
	while (rank + 1 < ranks) {
		const pid_t child = fork();

		if (child < 0) {
			perror("peer: fork");
			exit(1);
		}
		if (child)
			break;
		rank++;
	}
	if (!floor_shares_cores) {
		cpu_set_t mine;

		CPU_ZERO(&mine);
		CPU_SET(rank, &mine);
		sched_setaffinity(0, sizeof(mine), &mine);
	}
}

/* Each rank waits for the one that it has forked. */
static void peer_close(void)
{
	int status = 0;

	if (rank + 1 < ranks && (wait(&status) < 0 || status))
		exit(1);
}

static void *peer_alloc(long bytes)
{
	return malloc(bytes);
}

static void floor_wait(const unsigned int *word, unsigned int call)
{
	while ((int)(__atomic_load_n(word, __ATOMIC_ACQUIRE) - call) < 0)
		if (floor_shares_cores)
			sched_yield();
}

static void *floor_slot(int of)
{
	return floor_slots + floor_slot_bytes * (of * FLOOR_SLOTS + floor_call % FLOOR_SLOTS);
}

/* Not before all have read what the slot held. */
static void floor_publish(const void *data, size_t bytes)
{
	int of;

	for (of = 0; bytes && of < ranks; of++)
		floor_wait(&floor_ranks[of].completed, floor_call - FLOOR_SLOTS);
	if (bytes)
		memcpy(floor_slot(rank), data, bytes);
	__atomic_store_n(&floor_ranks[rank].published, floor_call, __ATOMIC_RELEASE);
}

static const void *floor_read(int of)
{
	floor_wait(&floor_ranks[of].published, floor_call);
	return floor_slot(of);
}

static void floor_begin(void)
{
	floor_call++;
}

static void floor_end(void)
{
	__atomic_store_n(&floor_ranks[rank].completed, floor_call, __ATOMIC_RELEASE);
}

static void peer_barrier(void)
{
	int of;

	floor_begin();
	floor_publish(NULL, 0);
	for (of = 0; of < ranks; of++)
		floor_read(of);
	floor_end();
}

static void floor_bcast(void *data, size_t bytes)
{
	floor_begin();
	if (!rank)
		floor_publish(data, bytes);
	else
		memcpy(data, floor_read(0), bytes);
	floor_end();
}

static void peer_bcast(void *data, int count)
{
	floor_bcast(data, count * sizeof(float));
}

/* The sum of all ranks' elements from `first`. `in`: this rank's vector, whose slot it need not read. */
static void floor_sum(const float *in, float *out, int first, int count)
{
	int of, i;

	memcpy(out, in + first, count * sizeof(*out));
	for (of = 0; of < ranks; of++) {
		const float *from;

		if (of == rank)
			continue;
		from = (const float *)floor_read(of) + first;
		for (i = 0; i < count; i++)
			out[i] += from[i];
	}
}

static void peer_reduce(void *in, void *out, int count)
{
	floor_begin();
	if (rank)
		floor_publish(in, count * sizeof(float));
	else
		floor_sum(in, out, 0, count);
	floor_end();
}

static void peer_reduce_scatter(void *in, void *out, int count)
{
	floor_begin();
	floor_publish(in, count * sizeof(float));
	floor_sum(in, out, count / ranks * rank, count / ranks);
	floor_end();
}

static void peer_allgather(void *in, void *out, int count)
{
	const size_t bytes = count * sizeof(float);
	int of;

	floor_begin();
	floor_publish(in, bytes);
	for (of = 0; of < ranks; of++)
		memcpy((char *)out + of * bytes, of == rank ? in : floor_read(of), bytes);
	floor_end();
}

/* A short vector is summed by all ranks; of a long one each sums a part. */
static void peer_allreduce(void *in, void *out, int count)
{
	static float part[PEER_BYTES_MAX / sizeof(float)];

	if (count * sizeof(float) <= FLOOR_SUM_ALL || count % ranks) {
		floor_begin();
		floor_publish(in, count * sizeof(float));
		floor_sum(in, out, 0, count);
		floor_end();
	} else {
		peer_reduce_scatter(in, part, count);
		peer_allgather(part, out, count / ranks);
	}
}

static void peer_gather(void *in, void *out, int count)
{
	const size_t bytes = count * sizeof(float);
	int of;

	floor_begin();
	if (rank)
		floor_publish(in, bytes);
	for (of = 0; !rank && of < ranks; of++)
		memcpy((char *)out + of * bytes, of ? floor_read(of) : in, bytes);
	floor_end();
}

static void peer_scatter(void *in, void *out, int count)
{
	const size_t bytes = count * sizeof(float);

	floor_begin();
	if (!rank)
		floor_publish(in, ranks * bytes);
	memcpy(out, rank ? (const char *)floor_read(0) + rank * bytes : in, bytes);
	floor_end();
}

static void peer_alltoall(void *in, void *out, int count)
{
	const size_t bytes = count * sizeof(float);
	int of;

	floor_begin();
	floor_publish(in, ranks * bytes);
	for (of = 0; of < ranks; of++)
		memcpy((char *)out + of * bytes,
		       (const char *)(of == rank ? in : floor_read(of)) + rank * bytes, bytes);
	floor_end();
}

static void peer_slowest(double *mine, double *slowest, int count)
{
	int of, i;

	floor_begin();
	if (rank)
		floor_publish(mine, count * sizeof(*mine));
	else
		memcpy(slowest, mine, count * sizeof(*mine));
	for (of = 1; !rank && of < ranks; of++) {
		const double *from = floor_read(of);

		for (i = 0; i < count; i++)
			if (from[i] > slowest[i])
				slowest[i] = from[i];
	}
	floor_end();
}

static void peer_tell(double *value)
{
	floor_bcast(value, sizeof(*value));
}
