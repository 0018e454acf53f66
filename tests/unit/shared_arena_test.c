// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Memory that peers map: blocks of an arena (libcoll/engine/shared_arena.h) overlap nowhere and are given back
 * whole, regions are few, sealed, and gone when nothing is in them; without one a block is ordinary. What
 * a peer announces (libcoll/engine/regions.h) is mapped to be read, if it can do no harm.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/engine/shared_arena.h"
#include "libcoll/engine/regions.h"

enum { MB = 1 << 20, BLOCKS = 300, ROUNDS = 20000 };

static struct coll_shared_arena arena;
static struct coll_regions regions;

static int begin(void **state)
{
	(void)state;
	arena = (struct coll_shared_arena){ .shares = true };
	regions = (struct coll_regions){ .told = 0 };
	return 0;
}

static int end(void **state)
{
	(void)state;
	coll_shared_end(&arena);
	coll_regions_end(&regions);
	return 0;
}

static uint32_t regions_used(void)
{
	uint32_t i, used = 0;

	for (i = 0; i < COLL_ARENA_REGIONS; i++)
		used += !!arena.region[i].base;
	return used;
}

static void *take(uint64_t bytes)
{
	void *block = coll_shared_take(&arena, bytes);

	assert_non_null(block);
	assert_int_equal((uintptr_t)block % COLL_ARENA_ALIGN, 0);
	return block;
}

static void give(void *block)
{
	struct coll_shared_region *region;

	assert_int_equal(coll_shared_give(&arena, block), 0);
	while ((region = coll_shared_unused(&arena)))
		coll_shared_drop(region);
}

/* How many lines of this process' memory map name a file of the arena. */
static int files_mapped(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[500];
	int count = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		count += !!strstr(line, "/memfd:coll");
	fclose(file);
	return count;
}

/* ---- blocks ----------------------------------------------------------------------------- */

static void assert_filled(const uint8_t *block, uint64_t bytes, uint8_t with)
{
	assert_true(block[0] == with && !memcmp(block, block + 1, bytes - 1));
}

/* Each is filled with a byte of its own, which is still there when it is given back. */
static void blocks_overlap_nowhere(void **state)
{
	static struct {
		uint8_t *base;
		uint64_t bytes;
	} block[BLOCKS];
	int round;

	(void)state;
	srand(1);
	for (round = 0; round < ROUNDS; round++) {
		const int i = rand() % BLOCKS;

		if (block[i].base) {
			assert_filled(block[i].base, block[i].bytes, i);
			give(block[i].base);
			block[i].base = NULL;
			continue;
		}
		block[i].bytes = 1 + rand() % (1 << rand() % 18);
		block[i].base = take(block[i].bytes);
		memset(block[i].base, i, block[i].bytes);
		assert_non_null(coll_shared_find(&arena, block[i].base, block[i].bytes));
	}
	for (round = 0; round < BLOCKS; round++)
		if (block[round].base)
			give(block[round].base);
	assert_int_equal(arena.blocks, 0);
	assert_true(regions_used() <= 1);
}

/* A gap of the same size is used again: the same region serves for ever. */
static void what_is_given_back_is_used_again(void **state)
{
	void *block[8];
	int i;

	(void)state;
	for (i = 0; i < 8; i++)
		block[i] = take(MB / 2);
	assert_int_equal(regions_used(), 1);
	for (i = 0; i < 1000; i++) {
		give(block[i % 8]);
		assert_ptr_equal(take(MB / 2), block[i % 8]);
	}
	assert_int_equal(arena.made, 1);
}

static void what_is_no_block_is_refused(void **state)
{
	uint8_t *block = take(1000), other;

	(void)state;
	assert_int_equal(coll_shared_give(&arena, &other), -EINVAL);
	assert_int_equal(coll_shared_give(&arena, block + 128), -EINVAL);
	assert_int_equal(coll_shared_give(&arena, NULL), -EINVAL);
	give(block);
	assert_int_equal(coll_shared_give(&arena, block), -EINVAL);
	assert_null(coll_shared_take(&arena, 0));
	assert_null(coll_shared_take(&arena, UINT64_MAX));
	assert_null(coll_shared_take(&arena, COLL_ARENA_MAX + 1));
#ifndef __SANITIZE_ADDRESS__		/* which ends a program that asks for so much */
	assert_null(coll_shared_take(&arena, COLL_ARENA_MAX));
#endif
}

/* ---- regions ----------------------------------------------------------------------------- */

/* A small one is kept for the next block. */
static void an_empty_region_is_dropped(void **state)
{
	const int before = files_mapped();
	void *small = take(1000), *large = take(64 * MB), *huge = take(40 * MB);

	(void)state;
	assert_int_equal(regions_used(), 3);
	assert_int_equal(files_mapped(), before + 3);
	give(huge);
	give(large);
	assert_int_equal(regions_used(), 1);
	assert_int_equal(files_mapped(), before + 1);
	give(small);
	assert_int_equal(regions_used(), 1);
	assert_null(coll_shared_find(&arena, large, 1));
	coll_shared_end(&arena);
	assert_int_equal(files_mapped(), before);
}

/* Blocks of any number fit into few: each region is as large as all before it. */
static void regions_are_few(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 400; i++)
		take(MB / 8);
	assert_true(regions_used() < 6);
}

/* The last ones are in no region. A marker stands for each region that there could be. */
static void without_a_region_left_it_is_ordinary(void **state)
{
	uint8_t *block;
	int i;

	(void)state;
	for (i = 0; i < COLL_ARENA_REGIONS; i++)
		arena.region[i] = (struct coll_shared_region){ .base = (uint8_t *)16, .bytes = 16,
							      .blocks = 1, .fd = -1 };
	block = take(MB);
	memset(block, 1, MB);
	assert_int_equal(arena.made, 0);
	assert_null(coll_shared_find(&arena, block, MB));
	give(block);
	memset(arena.region, 0, sizeof(arena.region));
}

/* One of which no others are expected takes as much as it must. */
static void one_block_needs_a_small_region(void **state)
{
	uint8_t *one = coll_shared_take_one(&arena, 300000), *other;

	(void)state;
	assert_non_null(one);
	assert_in_range(coll_shared_find(&arena, one, 300000)->bytes, 300000, 400000);
	other = coll_shared_take_one(&arena, 20000);
	assert_ptr_equal(coll_shared_find(&arena, other, 20000), coll_shared_find(&arena, one, 1));
	assert_true(coll_shared_has(&arena, one) && coll_shared_has(&arena, other));
	assert_false(coll_shared_has(&arena, one + 1) || coll_shared_has(&arena, NULL));
}

/* What is in use stays for the heir. */
static void an_heir_gets_it_all(void **state)
{
	struct coll_shared_arena heir = { .blocks = 0 };
	uint8_t *block = take(MB), *last;

	(void)state;
	memset(block, 3, MB);
	arena.heir = &heir;
	coll_shared_end(&arena);
	assert_false(arena.blocks || arena.heir || regions_used());
	assert_filled(block, MB, 3);
	last = take(1000);		/* which is its own */
	assert_int_equal(coll_shared_give(&heir, last), -EINVAL);
	assert_int_equal(coll_shared_give(&heir, block), 0);
	coll_shared_end(&heir);
}

static void where_nobody_maps_it_is_ordinary(void **state)
{
	void *block;

	(void)state;
	arena.shares = false;
	block = take(MB);
	memset(block, 1, MB);
	assert_int_equal(regions_used(), 0);
	assert_null(coll_shared_find(&arena, block, 1));
	give(block);
	take(100);		/* the end frees what is left */
}

/* Returns 0 in a child where `limit` is so low. */
static void in_a_limit(int resource, uint64_t limit, int (*does)(void))
{
	const pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		const struct rlimit low = { limit, limit };

		_exit(setrlimit(resource, &low) ? 100 : does());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int takes_ordinary(void)
{
	uint8_t *block = coll_shared_take(&arena, MB);

	if (!block)
		return 1;
	memset(block, 1, MB);
	return regions_used() ? 2 : coll_shared_give(&arena, block) ? 3 : 0;
}

static int takes_none(void)
{
	return coll_shared_take(&arena, 512 * MB) || regions_used() || arena.blocks;
}

/* Neither a signal nor an error: other memory, as long as there is some. */
static void limits_are_heeded(void **state)
{
	(void)state;
	in_a_limit(RLIMIT_FSIZE, 4096, takes_ordinary);
	in_a_limit(RLIMIT_NOFILE, 3, takes_ordinary);
#ifndef __SANITIZE_ADDRESS__		/* which takes terabytes of addresses */
	in_a_limit(RLIMIT_AS, 256 * MB, takes_none);
#else
	(void)takes_none;
#endif
}

/* ---- a peer's ------------------------------------------------------------------------------ */

static void announce(int fd)
{
	const uint8_t byte = COLL_REGION_IS_ANNOUNCED;

	coll_regions_hear(&regions, &byte, 1, fd);
}

static void what_is_announced_is_read_there(void **state)
{
	uint8_t *block = take(100000);
	const uint8_t *there;
	struct coll_shared_region *region = coll_shared_find(&arena, block, 100000);
	const uint64_t at = block - region->base;
	uint8_t dropped = COLL_REGION_IS_DROPPED + 1;

	(void)state;
	memset(block, 7, 100000);
	assert_null(coll_regions_find(&regions, 1, at, 1));
	announce(dup(region->fd));
	there = coll_regions_find(&regions, 1, at, 100000);
	assert_non_null(there);
	assert_filled(there, 100000, 7);
	block[99999] = 9;
	assert_int_equal(there[99999], 9);
	assert_true(mprotect((void *)((uintptr_t)there & ~4095ul), 4096, PROT_READ | PROT_WRITE) < 0);
	assert_non_null(coll_regions_find(&regions, 1, region->bytes, 0));
	assert_null(coll_regions_find(&regions, 1, region->bytes, 1));
	assert_null(coll_regions_find(&regions, 1, at, region->bytes - at + 1));
	assert_null(coll_regions_find(&regions, 1, UINT64_MAX, 2));
	assert_null(coll_regions_find(&regions, 1, 0, UINT64_MAX));
	assert_null(coll_regions_find(&regions, 0, 0, 1));
	assert_null(coll_regions_find(&regions, 2, 0, 1));
	assert_null(coll_regions_find(&regions, UINT64_MAX, 0, 1));
	/* Its pages stay as long as they are mapped, whatever the owner does. */
	give(block);
	coll_shared_end(&arena);
	assert_int_equal(there[5], 7);
	coll_regions_hear(&regions, &dropped, 1, -1);
	assert_null(coll_regions_find(&regions, 1, at, 1));
	coll_regions_hear(&regions, &dropped, 1, -1);
}

/* Only the latest are known; what went before is unmapped. */
static void many_are_announced(void **state)
{
	const int before = files_mapped();
	uint8_t *block = take(1000);
	const int fd = coll_shared_find(&arena, block, 1)->fd;
	int i;

	(void)state;
	for (i = 1; i <= 3 * COLL_REGIONS_KNOWN; i++) {
		announce(dup(fd));
		assert_non_null(coll_regions_find(&regions, i, 0, 1));
		if (i > COLL_REGIONS_KNOWN)
			assert_null(coll_regions_find(&regions, i - COLL_REGIONS_KNOWN, 0, 1));
	}
	assert_int_equal(files_mapped(), before + 1 + COLL_REGIONS_KNOWN);
}

/* The descriptor is of the last byte, or of none: one that has no business there is closed. */
static void bytes_that_come_together(void **state)
{
	uint8_t *block = take(1000);
	const int fd = coll_shared_find(&arena, block, 1)->fd;
	uint8_t bytes[256];
	int i, stray;

	(void)state;
	memcpy(bytes, (uint8_t[]){ 0, 1, 0, 1 }, 4);
	coll_regions_hear(&regions, bytes, 4, dup(fd));
	assert_int_equal(regions.told, 2);
	assert_null(coll_regions_find(&regions, 1, 0, 1));
	assert_non_null(coll_regions_find(&regions, 2, 0, 1));
	stray = dup(fd);
	coll_regions_hear(&regions, bytes, 3, stray);
	assert_int_equal(fcntl(stray, F_GETFD), -1);
	assert_null(coll_regions_find(&regions, 3, 0, 1));
	stray = dup(fd);
	coll_regions_hear(&regions, bytes, 0, stray);
	assert_int_equal(fcntl(stray, F_GETFD), -1);
	for (i = 0; i < 256; i++)
		bytes[i] = i;
	coll_regions_hear(&regions, bytes, 256, -1);
	for (i = 0; i < 4; i++)
		assert_null(coll_regions_find(&regions, i, 0, 1));
}

/* A file like those of the arena, but for what is said. */
static int file_of(uint64_t bytes, uint64_t filled, int seals)
{
	const int fd = memfd_create("coll", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0 && !ftruncate(fd, bytes));
	assert_true(!filled || !fallocate(fd, 0, 0, filled));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void assert_not_mapped(int fd)
{
	const int before = files_mapped();

	assert_true(fd >= 0);
	announce(fd);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_null(coll_regions_find(&regions, regions.told, 0, 1));
	assert_int_equal(files_mapped(), before);
}

static void hostile_files_are_not_mapped(void **state)
{
	static const int seals[] = { F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_FUTURE_WRITE };
	int ends[2], i;

	(void)state;
	announce(file_of(MB, MB, COLL_FILE_SEALS));
	assert_non_null(coll_regions_find(&regions, regions.told, 0, MB));
	for (i = 0; i < 4; i++)
		assert_not_mapped(file_of(MB, MB, COLL_FILE_SEALS & ~seals[i]));
	assert_not_mapped(file_of(MB, MB - 4096, COLL_FILE_SEALS));	/* a hole */
	assert_not_mapped(file_of(1ull << 50, 4096, COLL_FILE_SEALS));
	assert_not_mapped(file_of(0, 0, COLL_FILE_SEALS));
	assert_int_equal(pipe(ends), 0);
	close(ends[1]);
	assert_not_mapped(ends[0]);
	assert_not_mapped(open("/dev/zero", O_RDONLY));
	assert_not_mapped(open("/proc/self/exe", O_RDONLY));
	announce(-1);			/* the kernel had no descriptor for this process */
	assert_null(coll_regions_find(&regions, regions.told, 0, 1));
}

/* Who has the descriptor can neither write there, nor take pages out. */
static void a_region_is_sealed(void **state)
{
	uint8_t *block = take(1000);
	struct coll_shared_region *region = coll_shared_find(&arena, block, 1);

	(void)state;
	assert_true(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, region->fd, 0) == MAP_FAILED);
	assert_int_equal(pwrite(region->fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(region->fd, 4096), -1);
	assert_int_equal(fallocate(region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
	assert_int_equal(madvise(region->base, 4096, MADV_REMOVE), -1);
	memset(block, 1, 1000);
}

#define arena_test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		arena_test(blocks_overlap_nowhere),
		arena_test(what_is_given_back_is_used_again),
		arena_test(what_is_no_block_is_refused),
		arena_test(an_empty_region_is_dropped),
		arena_test(regions_are_few),
		arena_test(without_a_region_left_it_is_ordinary),
		arena_test(one_block_needs_a_small_region),
		arena_test(an_heir_gets_it_all),
		arena_test(where_nobody_maps_it_is_ordinary),
		arena_test(limits_are_heeded),
		arena_test(what_is_announced_is_read_there),
		arena_test(many_are_announced),
		arena_test(bytes_that_come_together),
		arena_test(hostile_files_are_not_mapped),
		arena_test(a_region_is_sealed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
