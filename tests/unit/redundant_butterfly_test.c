// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What the redundant butterfly is for: ranks of one class that stop after
 * exchange j hold up nobody else, if j <= T, and without redundancy they do.
 * Only the order of ops is looked at here, not the data.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "algo/common/ranks.h"
#include "tests/lib/interpret.h"
#include "stall_world.h"

enum { RANKS_MAX = 33 };

/*
 * These vranks (a set of bits) stop after exchange j. Returns how many other
 * ranks that holds up; later, the stopped ones go on and all must end.
 */
static u32 delay(u32 ranks, u64 redundancy, u32 j, u64 vranks)
{
	const struct coll_fold fold = fold_of(ranks);
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct stall_world *w;
	u32 vrank, result;

	tuning.redundancy = redundancy;
	w = stall_new("butterfly-redundant", ranks, &tuning);
	for (vrank = 0; vrank < fold.vranks; vrank++)
		if (vranks >> vrank & 1)
			stall_after(w, fold_rank(&fold, vrank), COLL_OP_REDUCE,
				    j + fold_is_proxy(&fold, vrank));
	result = stall_settle(w);
	stall_go_on(w);
	stall_free(w);
	return result;
}

/* The vranks whose low j bits are `class`. */
static u64 class_vranks(u32 j, u32 class)
{
	u64 vranks = 0;
	u32 vrank;

	for (vrank = class; vrank < 64; vrank += 1u << j)
		vranks |= (u64)1 << vrank;
	return vranks;
}

static u64 random_vranks(u64 *random)
{
	return (u64)interpret_random(random, 1u << 31) << 32 | interpret_random(random, 1u << 31);
}

/* One rank of it, some at random, all: of every class after every exchange up to T. */
static void a_late_class_delays_no_other_rank(void **state)
{
	u32 ranks, t, j, class, i;
	u64 random = 1;

	(void)state;
	for (ranks = 2; ranks <= RANKS_MAX; ranks++)
		for (t = 1; t <= fold_of(ranks).exchanges; t++)
			for (j = 1; j <= t; j++)
				for (class = 0; class < 1u << j; class++) {
					const u64 all = class_vranks(j, class);

					for (i = 0; i < 3; i++)
						assert_int_equal(delay(ranks, t, j,
							all & random_vranks(&random)), 0);
					assert_int_equal(delay(ranks, t, j, 1u << class), 0);
					assert_int_equal(delay(ranks, t, j, all), 0);
				}
}

static void no_part_of_a_class_of_16_ranks_delays_others(void **state)
{
	u32 chosen, i;

	(void)state;
	for (chosen = 0; chosen < 1u << 8; chosen++) {
		u64 vranks = 0;

		for (i = 0; i < 8; i++)
			vranks |= (u64)(chosen >> i & 1) << 2 * i;
		assert_int_equal(delay(16, 1, 1, vranks), 0);
		assert_int_equal(delay(16, 1, 1, vranks << 1), 0);
		assert_int_equal(delay(19, 1, 1, vranks), 0);
		assert_int_equal(delay(31, 2, 1, vranks << 1), 0);
	}
}

/* Delays that are not absorbed: so the tests above could fail. */
static void delays_beyond_one_class_are_felt(void **state)
{
	u32 ranks;

	(void)state;
	for (ranks = 4; ranks <= RANKS_MAX; ranks++) {
		assert_true(delay(ranks, 0, 1, 1) > 0);	/* no redundancy */
		assert_true(delay(ranks, 1, 1, 3) > 0);	/* in both classes */
		assert_true(delay(ranks, 1, 0, 1) > 0);	/* before the first exchange */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_class_delays_no_other_rank),
		cmocka_unit_test(no_part_of_a_class_of_16_ranks_delays_others),
		cmocka_unit_test(delays_beyond_one_class_are_felt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
