// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Publications (libcoll/engine/publication.h): each has its bytes until it ends, whatever others begin and
 * end meanwhile; their block is used from its beginning on when nothing is in it, grows then, and is
 * given back; where there is none, or no room, there is no publication.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "libcoll/engine/copy_out.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/memory.h"

enum { KB = 1 << 10, MB = 1 << 20, MOST = MB, ROUNDS = 20000 };

static struct coll_engine engine;
static uint8_t bytes[2 * MOST];

static int begin(void **state)
{
	(void)state;
	engine = (struct coll_engine){ .arena = { .shares = true, .least = MOST } };
	return 0;
}

static int end(void **state)
{
	(void)state;
	coll_publications_end(&engine);
	assert_int_equal(engine.arena.blocks, 0);
	coll_shared_end(&engine.arena);
	return 0;
}

static const uint8_t *publish(uint64_t count, uint8_t with)
{
	const uint8_t *published;

	memset(bytes, with, count);
	published = coll_publish(&engine, bytes, count);
	if (published) {
		assert_memory_equal(published, bytes, count);
		assert_non_null(coll_shared_find(&engine.arena, published, count));
		assert_true(coll_is_published(&engine, published));
		assert_true(coll_is_published(&engine, published + count - 1));
	}
	return published;
}

static void an_empty_block_is_used_from_its_beginning(void **state)
{
	const uint8_t *first = publish(20000, 1), *second = publish(20000, 2);

	(void)state;
	assert_non_null(first);
	assert_non_null(second);
	assert_true(second >= first + 20000);
	coll_publication_end(&engine, first);
	assert_true(publish(20000, 3) > second);
	coll_publication_end(&engine, second);
	coll_publication_end(&engine, second + (second - first));
	assert_ptr_equal(publish(30000, 4), first);
	assert_false(coll_is_published(&engine, bytes));
}

static void without_room_there_is_none_and_then_the_block_grows(void **state)
{
	const uint8_t *first = publish(60 * KB, 1), *second;

	(void)state;
	assert_non_null(first);
	assert_null(publish(60 * KB, 2));
	assert_int_equal(engine.publications.bytes, 64 * KB);
	coll_publication_end(&engine, first);
	first = publish(60 * KB, 3);
	second = publish(60 * KB, 4);
	assert_non_null(first);
	assert_non_null(second);
	assert_int_equal(engine.publications.bytes, 128 * KB);
	assert_int_equal(first[60 * KB - 1], 3);
	coll_publication_end(&engine, second);
	coll_publication_end(&engine, first);
	assert_int_equal(engine.arena.blocks, 1);	/* the smaller one was given back */
}

static void no_block_is_larger_than_a_region_for_the_application(void **state)
{
	const uint8_t *all;

	(void)state;
	assert_null(publish(MOST + 1, 1));
	assert_null(engine.publications.base);
	all = publish(MOST, 2);
	assert_non_null(all);
	assert_null(publish(16 * KB, 3));
	coll_publication_end(&engine, all);
	assert_non_null(publish(16 * KB, 4));
	assert_int_equal(engine.publications.bytes, MOST);
}

/* A process that may have no file so large: then the block is ordinary memory, which no peer maps. */
static void where_there_is_no_region_there_is_no_publication(void **state)
{
	struct rlimit before, little = { 128 * KB, 128 * KB };
	const uint8_t *published;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	little.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	assert_null(publish(200 * KB, 1));
	assert_null(publish(200 * KB, 2));
	assert_int_equal(engine.arena.blocks, 0);
	published = publish(100 * KB, 3);	/* less is to be had */
	assert_non_null(published);
	assert_null(publish(100 * KB, 4));	/* ... but no more than that */
	coll_publication_end(&engine, published);
	assert_non_null(publish(100 * KB, 5));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	engine.publications.count = 0;
	engine.arena.shares = false;
	assert_null(publish(16 * KB, 6));
}

enum { HELD = 16, EMPTY_EACH = 100 };

static const uint8_t *held[HELD];
static uint64_t count[HELD];
static uint8_t with[HELD];

static void held_end(uint32_t at)
{
	if (!held[at])
		return;
	assert_int_equal(held[at][0], with[at]);
	assert_int_equal(held[at][count[at] - 1], with[at]);
	coll_publication_end(&engine, held[at]);
	held[at] = NULL;
}

/* In any order: what is held is not overwritten. */
static void publications_end_in_any_order(void **state)
{
	uint32_t round, published = 0, refused = 0, i;

	(void)state;
	srand(7);
	for (round = 0; round < ROUNDS; round++) {
		const uint32_t at = rand() % HELD;

		for (i = 0; i < HELD && !(round % EMPTY_EACH); i++)
			held_end(i);
		if (held[at]) {
			held_end(at);
			continue;
		}
		count[at] = 1 + rand() % (rand() % 4 ? 3000 : 60000);
		with[at] = round;
		held[at] = publish(count[at], with[at]);
		published += !!held[at];
		refused += !held[at];
	}
	assert_true(published > ROUNDS / 8);
	assert_true(refused > 0);
	for (i = 0; i < HELD; i++)
		held_end(i);
	assert_int_equal(engine.publications.count, 0);
}

/* From any byte to any byte, and not one more. */
static void what_is_copied_past_the_caches_is_right(void **state)
{
	static uint8_t from[1024] __attribute__((aligned(64))), to[1024] __attribute__((aligned(64)));
	uint32_t in, out, length, i;

	(void)state;
	for (i = 0; i < sizeof(from); i++)
		from[i] = i * 7 + i / 256;
	for (in = 0; in < 70; in += 3)
		for (out = 0; out < 70; out++)
			for (length = 0; length < 400; length += 1 + length / 9) {
				memset(to, 255, sizeof(to));
				coll_copy_out(to + out, from + in, length);
				assert_memory_equal(to + out, from + in, length);
				assert_true(!out || to[out - 1] == 255);
				assert_int_equal(to[out + length], 255);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_copied_past_the_caches_is_right),
		cmocka_unit_test_setup_teardown(an_empty_block_is_used_from_its_beginning, begin, end),
		cmocka_unit_test_setup_teardown(without_room_there_is_none_and_then_the_block_grows,
						begin, end),
		cmocka_unit_test_setup_teardown(no_block_is_larger_than_a_region_for_the_application,
						begin, end),
		cmocka_unit_test_setup_teardown(where_there_is_no_region_there_is_no_publication, begin,
						end),
		cmocka_unit_test_setup_teardown(publications_end_in_any_order, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
