// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The histogram of latencies: each value is in one bucket, narrow enough, in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/noise/buckets.h"

static void each_value_has_its_bucket(void **state)
{
	u64 value;
	u32 last = 0;

	(void)state;
	for (value = 0; value < 1ull << COLL_BUCKET_LOG_MAX; value += 1 + value / 1000) {
		const u32 bucket = coll_bucket(value);
		const u64 least = coll_bucket_least(bucket), next = coll_bucket_least(bucket + 1);

		assert_true(bucket >= last && bucket <= last + 1 && bucket < COLL_BUCKETS);
		assert_true(least <= value && value < next);
		assert_true(next - least == 1 || (next - least) * 32 <= least);
		last = bucket;
	}
	assert_int_equal(last, COLL_BUCKETS - 1);
}

static void the_longest_are_in_the_last(void **state)
{
	(void)state;
	assert_int_equal(coll_bucket(UINT64_MAX), COLL_BUCKETS - 1);
	assert_int_equal(coll_bucket(1ull << COLL_BUCKET_LOG_MAX), COLL_BUCKETS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_value_has_its_bucket),
		cmocka_unit_test(the_longest_are_in_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
