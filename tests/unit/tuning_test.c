// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "algo/common/levels.h"
#include "algo/tuning.h"

static const struct coll_algo takes_two = { .name = "two", .options = "T,segment" };
static const struct coll_algo takes_none = { .name = "none" };

static void reads_numbers_and_sizes(void **state)
{
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	char text[80], why[160];

	(void)state;
	assert_int_equal(coll_tuning_parse(&takes_two, "T=2,segment=64K", &tuning, why, 160), 0);
	assert_int_equal(tuning.redundancy, 2);
	assert_int_equal(tuning.segment, 64 << 10);
	assert_true(tuning.bound == COLL_UNSET && tuning.ports == COLL_UNSET);
	assert_string_equal(coll_tuning_print(&tuning, text, 80), "T=2,segment=65536");
	assert_int_equal(coll_tuning_parse(NULL, "bound=1m,ports=3", &tuning, why, 160), 0);
	assert_int_equal(tuning.bound, 1 << 20);
	assert_int_equal(tuning.ports, 3);
	assert_int_equal(tuning.redundancy, 2);
}

static void wrong_tunings_are_refused_in_words(void **state)
{
	static const struct {
		const struct coll_algo *algo;
		const char *text, *said;
	} wrong[] = {
		{ &takes_two, "bound=1", "two has no option 'bound'; valid: T,segment" },
		{ &takes_none, "T=1", "none has no option 'T': it takes none" },
		{ &takes_two, "T=1,,segment=1", "two has no option ''" },
		{ &takes_two, "T", "'T'" },
		{ &takes_two, "T=", "'T='" },
		{ &takes_two, "T=-1", "'T=-1'" },
		{ &takes_two, "T=1x", "'T=1x'" },
		{ &takes_two, "segment=0", "from 1" },
		{ &takes_two, "segment=18446744073709551615", "segment=N" },
		{ &takes_two, "segment=18446744073709551616", "segment=N" },
		{ &takes_two, "segment=17179869184G", "segment=N" },
		{ &takes_two, "segment=1KK", "segment=N" },
		{ &takes_two, "seg=1", "no option 'seg'" },
		{ NULL, "Q=1", "valid: T, segment, bound, n, relays, radix, replicas, ports" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct coll_tuning tuning = COLL_TUNING_UNSET;
		char why[160];

		assert_int_equal(coll_tuning_parse(wrong[i].algo, wrong[i].text, &tuning, why, 160),
				 -EINVAL);
		if (!strstr(why, wrong[i].said))
			fail_msg("'%s' gave: %s", wrong[i].text, why);
		assert_true(tuning.redundancy == COLL_UNSET && tuning.segment == COLL_UNSET);
	}
}

static void late_ranks_are_read(void **state)
{
	static const struct coll_algo takes_late = { .name = "late", .options = "late,radix" };
	static const char *const wrong[] = { "late", "late=", "late=x", "late=1+", "late=+1", "late=1+2+3+4+5",
					     "late=16777216", "late=1-2" };
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	char text[80], why[160];
	size_t i;

	(void)state;
	assert_int_equal(coll_tuning_parse(&takes_late, "late=3+17,radix=8", &tuning, why, 160), 0);
	assert_true(tuning.late[0] == 3 && tuning.late[1] == 17 && tuning.late[2] == COLL_NONE);
	assert_string_equal(coll_tuning_print(&tuning, text, 80), "radix=8,late=3+17");
	assert_int_equal(coll_tuning_parse(&takes_late, "late=0", &tuning, why, 160), 0);
	assert_true(!tuning.late[0] && tuning.late[1] == COLL_NONE);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(coll_tuning_parse(&takes_late, wrong[i], &tuning, why, 160), -EINVAL);
		assert_non_null(strstr(why, "late=RANK"));
		assert_true(!tuning.late[0] && tuning.late[1] == COLL_NONE);
	}
	assert_int_equal(coll_tuning_parse(&takes_two, "late=1", &tuning, why, 160), -EINVAL);
}

static void the_algorithm_across_is_a_name(void **state)
{
	const struct coll_algo *leader = coll_algo_find(COLL_BCAST, "leader");
	static const char *const wrong[] = { "across", "across=", "across=1", "across=ring", "across=linea",
					     "across=linearly" };
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	char text[80], why[160];
	size_t i;

	(void)state;
	assert_int_equal(coll_tuning_parse(leader, "across=linear,segment=64K", &tuning, why, 160), 0);
	assert_string_equal(coll_across_names[tuning.across], "linear");
	assert_string_equal(coll_tuning_print(&tuning, text, 80), "segment=65536,across=linear");
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		tuning = COLL_TUNING_UNSET;
		assert_int_equal(coll_tuning_parse(leader, wrong[i], &tuning, why, 160), -EINVAL);
		assert_non_null(strstr(why, "valid is across=ALGORITHM, one of binomial chain circulant linear "
					    "vandegeijn"));
		assert_true(tuning.across == COLL_UNSET);
	}
	assert_int_equal(coll_tuning_parse(&takes_two, "across=linear", &tuning, why, 160), -EINVAL);
	assert_int_equal(coll_tuning_parse(NULL, "across=ring", &tuning, why, 160), 0);
}

static void an_empty_tuning_is_valid(void **state)
{
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	char text[8] = "x", why[8];

	(void)state;
	assert_int_equal(coll_tuning_parse(&takes_none, "", &tuning, why, sizeof(why)), 0);
	assert_string_equal(coll_tuning_print(&tuning, text, sizeof(text)), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_numbers_and_sizes),
		cmocka_unit_test(wrong_tunings_are_refused_in_words),
		cmocka_unit_test(late_ranks_are_read),
		cmocka_unit_test(the_algorithm_across_is_a_name),
		cmocka_unit_test(an_empty_tuning_is_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
