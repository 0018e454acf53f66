// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/build.h"
#include "tests/lib/schedules.h"

static u64 memory[1 << 13];

static struct coll_build started(u32 rank, u32 ranks)
{
	struct coll_build b;

	coll_build_init(&b, memory, sizeof(memory), rank, ranks);
	coll_build_buffers(&b, 64, 64);
	return b;
}

static void slots_count_per_pair_and_direction(void **state)
{
	struct coll_build b = started(1, 8);
	const u32 peer[] = { 7, 0, 7, 7, 0 }, slot[] = { 0, 0, 1, 2, 1 };
	struct coll_schedule *s;
	u32 i;

	(void)state;
	for (i = 0; i < 5; i++)
		assert_int_equal(coll_emit_send(&b, peer[i], COLL_ADDRESS(COLL_IN, 0), 8), i);
	assert_int_equal(coll_emit_recv(&b, 7, COLL_ADDRESS(COLL_OUT, 0), 8), 5);
	assert_int_equal(coll_build_finish(&b, &s), 0);
	for (i = 0; i < 5; i++) {
		assert_int_equal(coll_ops(s)[i].slot, slot[i]);
		assert_int_equal(coll_op_rank(s, &coll_ops(s)[i]), peer[i]);
	}
	assert_int_equal(coll_ops(s)[5].slot, 0);
	assert_int_equal(s->peers, 2);
	assert_int_equal(coll_peers(s)[0].rank, 0);
	assert_int_equal(coll_peers(s)[0].sends, 2);
	assert_int_equal(coll_peers(s)[1].sends, 3);
	assert_int_equal(coll_peers(s)[1].recvs, 1);
}

static void many_peers_are_sorted(void **state)
{
	enum { PEERS = 60 };
	struct coll_build b = started(500, 1000);
	struct coll_schedule *s;
	struct coll_refusal refusal;
	u32 i;

	(void)state;
	for (i = 0; i < PEERS; i++) {
		u32 rank = i * 617 % 1000;

		coll_emit_send(&b, rank, COLL_ADDRESS(COLL_IN, 0), i);
		coll_emit_recv(&b, rank, COLL_ADDRESS(COLL_OUT, 0), i);
	}
	assert_int_equal(coll_build_finish(&b, &s), 0);
	assert_int_equal(check_schedule(s, s->bytes, &refusal), 0);
	for (i = 0; i < PEERS; i++) {
		assert_int_equal(coll_op_rank(s, &coll_ops(s)[2 * i]), i * 617 % 1000);
		assert_int_equal(coll_peer_find(s, i * 617 % 1000), coll_ops(s)[2 * i].peer);
	}
	assert_int_equal(coll_peer_find(s, 500), COLL_NONE);
}

static void scratch_is_aligned_and_does_not_overlap(void **state)
{
	struct coll_build b = started(0, 1);

	(void)state;
	assert_int_equal(coll_emit_scratch(&b, 1), COLL_ADDRESS(COLL_SCRATCH, 0));
	assert_int_equal(coll_emit_scratch(&b, 65), COLL_ADDRESS(COLL_SCRATCH, 64));
	assert_int_equal(coll_emit_scratch(&b, 0), COLL_ADDRESS(COLL_SCRATCH, 192));
	assert_int_equal(coll_emit_scratch(&b, 4), COLL_ADDRESS(COLL_SCRATCH, 192));
	assert_int_equal(b.schedule->buffer[COLL_SCRATCH], 196);
}

static void conditions_are_of_the_next_op_only(void **state)
{
	struct coll_build b = started(0, 2);
	struct coll_schedule *s;
	u32 first, second, third;

	(void)state;
	first = coll_emit_join(&b);
	coll_emit_after(&b, COLL_NONE);
	coll_emit_optional(&b);
	coll_emit_unless(&b, first);
	coll_emit_any(&b, first);
	second = coll_emit_join(&b);
	third = coll_emit_join(&b);
	assert_int_equal(coll_build_finish(&b, &s), 0);
	assert_int_equal(coll_ops(s)[first].waits, 0);
	assert_int_equal(coll_ops(s)[second].flags, COLL_OPTIONAL | COLL_WAIT_ANY);
	assert_int_equal(coll_ops(s)[second].unless, first);
	assert_int_equal(coll_ops(s)[second].waits, 1);
	assert_int_equal(coll_ops(s)[third].flags, 0);
	assert_int_equal(coll_ops(s)[third].unless, COLL_NONE);
	assert_int_equal(coll_ops(s)[third].waits, 0);
	assert_int_equal(s->waits, 1);
}

static int finish(struct coll_build *b)
{
	struct coll_schedule *s;

	return coll_build_finish(b, &s);
}

static void an_op_that_breaks_a_rule_is_an_error(void **state)
{
	struct coll_build b;

	(void)state;
	b = started(4, 4);
	assert_int_equal(finish(&b), -EINVAL);
	b = started(0, 0);
	assert_int_equal(finish(&b), -EINVAL);
	b = started(0, COLL_RANKS_MAX + 1);
	assert_int_equal(finish(&b), -EINVAL);

	b = started(0, 4);
	coll_emit_send(&b, 4, 0, 0);
	assert_int_equal(finish(&b), -EINVAL);
	b = started(0, 4);
	coll_emit_connect(&b, 0);
	assert_int_equal(finish(&b), -EINVAL);

	b = started(0, 4);
	coll_emit_after(&b, 0);	/* no such op yet */
	coll_emit_join(&b);
	assert_int_equal(finish(&b), -EINVAL);

	b = started(0, 4);
	coll_emit_join(&b);
	coll_emit_after(&b, 0);	/* of no op */
	assert_int_equal(finish(&b), -EINVAL);
	b = started(0, 4);
	coll_emit_optional(&b);
	assert_int_equal(finish(&b), -EINVAL);

	b = started(0, 4);
	coll_emit_join(&b);
	coll_emit_join(&b);
	coll_emit_after(&b, 0);
	coll_emit_any(&b, 1);
	coll_emit_join(&b);
	assert_int_equal(finish(&b), -EINVAL);

	b = started(0, 4);
	coll_emit_scratch(&b, COLL_BYTES_MAX + 1);
	assert_int_equal(finish(&b), -E2BIG);
	b = started(0, 4);
	coll_build_buffers(&b, 0, COLL_BYTES_MAX + 1);
	assert_int_equal(finish(&b), -E2BIG);
}

/* With any number of bytes: the whole schedule or -ENOSPC, and not one byte beyond. */
static void little_memory_is_an_error(void **state)
{
	const u64 guard = 0x1122334455667788;
	struct coll_schedule *s, *whole = NULL;
	u64 words, *room = malloc(600 * sizeof(u64));
	struct coll_build b;
	u32 i;

	(void)state;
	for (words = 599; words; words--) {
		int status;

		room[words] = guard;
		coll_build_init(&b, room, words * sizeof(u64), 9, 10);
		for (i = 0; i < 9; i++) {
			coll_emit_after(&b, i ? i - 1 : COLL_NONE);
			coll_emit_after(&b, i > 1 ? i - 2 : COLL_NONE);
			coll_emit_recv(&b, 8 - i, COLL_ADDRESS(COLL_SCRATCH, 0), 0);
		}
		status = coll_build_finish(&b, &s);
		assert_int_equal(room[words], guard);
		if (!whole) {
			assert_int_equal(status, 0);
			whole = malloc(s->bytes);
			memcpy(whole, s, s->bytes);
		} else if (status) {
			assert_int_equal(status, -ENOSPC);
		} else {
			assert_memory_equal(s, whole, whole->bytes);
		}
	}
	free(whole);
	free(room);
}

static void check_all(const char *name, struct coll_schedule *const *s, u32 ranks, void *argument)
{
	u32 i;

	(void)name;
	for (i = 0; i < ranks; i++) {
		bool finished;

		step_through(s[i], &finished);
		*(u32 *)argument += finished;
	}
}

static void algorithms_build_what_passes_the_check(void **state)
{
	u32 finished = 0, visited;

	(void)state;
	visited = each_collective(16, check_all, &finished);
	assert_true(visited >= 16);
	assert_true(finished >= visited * 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_count_per_pair_and_direction),
		cmocka_unit_test(many_peers_are_sorted),
		cmocka_unit_test(scratch_is_aligned_and_does_not_overlap),
		cmocka_unit_test(conditions_are_of_the_next_op_only),
		cmocka_unit_test(an_op_that_breaks_a_rule_is_an_error),
		cmocka_unit_test(little_memory_is_an_error),
		cmocka_unit_test(algorithms_build_what_passes_the_check),
	};

	return cmocka_run_group_tests_name("build", tests, NULL, NULL);
}
