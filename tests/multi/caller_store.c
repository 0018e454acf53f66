// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * caller_store CASE RANKS [OPTIONS]: a job that no launcher started. This process forks its ranks, whose
 * store is memory that they share; in each case but `good` and `shrink` the store is at fault, or a rank is: in
 * case `late` only for a while.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/rank.h"

enum { ENTRIES = 2000, KEY_BYTES = 128, VALUE_BYTES = 4124 };

struct entry {
	atomic_bool there;
	size_t bytes;
	char key[KEY_BYTES];
	char value[VALUE_BYTES];
};

static struct {
	atomic_int count;
	struct entry entry[ENTRIES];
} *store;

static const char *test_case;
static int rank;

static bool is_case(const char *name)
{
	return !strcmp(test_case, name);
}

static int store_put(void *argument, const char *key, const void *value, size_t bytes)
{
	const int at = atomic_fetch_add(&store->count, 1);
	struct entry *entry = &store->entry[at];

	if (argument != &store || at >= ENTRIES || strlen(key) >= KEY_BYTES || bytes > VALUE_BYTES)
		return -EINVAL;
	if (is_case("put_fails"))
		return -ENOSPC;
	strcpy(entry->key, key);
	memcpy(entry->value, value, bytes);
	if (is_case("forged") && !strcmp(key, "machine"))
		entry->value[bytes - 1] ^= 1;
	entry->bytes = bytes;
	atomic_store(&entry->there, true);
	return 0;
}

static const struct entry *store_find(const char *key)
{
	const int count = atomic_load(&store->count);
	int i;

	for (i = 0; i < count && i < ENTRIES; i++)
		if (atomic_load(&store->entry[i].there) && !strcmp(store->entry[i].key, key))
			return &store->entry[i];
	return NULL;
}

static int store_get(void *argument, const char *key, void *value, size_t *bytes, uint64_t ns)
{
	static bool was_late;
	const struct entry *entry;
	uint64_t waited = 0;

	(void)argument;
	if (is_case("late") && !strncmp(key, "addr/", 5) && !was_late) {
		was_late = true;
		usleep(1500000);	/* more than the second of grace */
	}
	if (is_case("ends") && !strncmp(key, "addr/", 5))
		return -EIO;
	if (rank && is_case("get_fails"))
		return -EIO;
	if (rank && is_case("get_lies"))
		return 17;
	while (rank && is_case("stuck"))
		pause();
	while (!(entry = store_find(key)) || (rank && is_case("silent"))) {
		if (waited >= ns)
			return -ETIMEDOUT;
		usleep(1000);
		waited += 1000000;
	}
	if (entry->bytes > *bytes)
		return -EMSGSIZE;
	memcpy(value, entry->value, entry->bytes);
	*bytes = entry->bytes;
	return 0;
}

static void work(struct coll_context *context, int ranks)
{
	struct coll_group *world = coll_world(context), *living = NULL;
	int one = 1, sum = 0;

	rank_assert(world, coll_ranks(world) == ranks && coll_rank(world) == rank);
	rank_must(world, coll_allreduce(&one, &sum, 1, COLL_INT32, COLL_SUM, world));
	rank_assert(world, sum == ranks);
	if (!is_case("shrink"))
		return;
	if (rank == 1)
		_exit(0);
	while (!coll_barrier(world))
		;
	rank_must(world, coll_shrink(world, &living));
	rank_must(living, coll_allreduce(&one, &sum, 1, COLL_INT32, COLL_SUM, living));
	rank_assert(living, sum == ranks - 1);
	coll_group_free(living);
}

static int rank_main(int ranks, const char *options)
{
	const struct coll_job job = {
		.size = sizeof(job), .rank = rank, .ranks = ranks, .name = "caller-store",
		.argument = &store, .put = store_put, .get = store_get,
	};
	struct coll_context *context;

	if (rank == 1 && is_case("secret"))
		setenv("COLL_SECRET", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", 1);
	if (rank == 1 && is_case("absent"))
		return 0;
	if (coll_open_with(options, &job, &context)) {
		fprintf(stderr, "%s\n", coll_context_error(NULL));
		return 1;
	}
	work(context, ranks);
	coll_close(context);
	return 0;
}

/* ---- what is refused -------------------------------------------------------- */

static void refused(struct coll_job job, const char *text)
{
	struct coll_context *context = (void *)1;
	const int error = coll_open_with("deadline=1s", &job, &context);

	if (error == -EINVAL && !context && strstr(coll_context_error(NULL), text))
		return;
	fprintf(stderr, "wanted '%s', got %d: '%s'\n", text, error, coll_context_error(NULL));
	exit(1);
}

static int arguments(void)
{
	const struct coll_job good = { .size = sizeof(good), .rank = 1, .ranks = 2, .put = store_put,
				       .get = store_get };
	struct coll_job job;

#define REFUSED(entry, value, text) job = good; job.entry = value; refused(job, text)
	REFUSED(size, 8, "size (8)");
	REFUSED(ranks, 0, "ranks (0)");
	REFUSED(ranks, -5, "ranks (-5)");
	REFUSED(ranks, 1 << 30, "ranks (1073741824)");
	REFUSED(rank, 2, "rank (2) is not valid; valid: 0 to 1");
	REFUSED(rank, -1, "rank (-1)");
	REFUSED(local_ranks, 3, "local_ranks (3)");
	REFUSED(local_ranks, -1, "local_ranks (-1)");
	REFUSED(local_ranks = 2; job.local_rank, 2, "local_rank (2)");
	REFUSED(name, "0123456789012345678901234567890123456789012345678901234567890123", "64 bytes");
	REFUSED(put, NULL, "put is NULL");
	REFUSED(get, NULL, "get is NULL");
	return 0;
}

/* One rank needs no store. */
static int alone(const char *options)
{
	rank = 0;
	return rank_main(1, options) || atomic_load(&store->count);
}

int main(int argc, char **argv)
{
	const int ranks = argc > 2 ? atoi(argv[2]) : 1;
	const char *options = argc > 3 ? argv[3] : NULL;
	int failed = 0, status;

	test_case = argc > 1 ? argv[1] : "good";
	store = mmap(NULL, sizeof(*store), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (store == MAP_FAILED)
		return 1;
	if (is_case("arguments"))
		return arguments();
	if (ranks == 1)
		return alone(options);
	for (rank = 0; rank < ranks; rank++)
		if (!fork())
			exit(rank_main(ranks, options));
	while (wait(&status) > 0)
		failed += status != 0;
	return failed;
}
