// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The rule by which the shim's trials decide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mpi/verdict.h"

static void medians(void **state)
{
	(void)state;
	assert_true(verdict_median((double[]){ 1, 2, 3 }) == 2);
	assert_true(verdict_median((double[]){ 3, 1, 2 }) == 2);
	assert_true(verdict_median((double[]){ 2, 3, 1 }) == 2);
	assert_true(verdict_median((double[]){ 5, 5, 1 }) == 5);
}

static void faster(void **state)
{
	(void)state;
	assert_true(verdict_faster((double[]){ 1, 2, 3 }, (double[]){ 4, 5, 6 }));
	/* Less than what they scatter. */
	assert_false(verdict_faster((double[]){ 1, 2, 4.1 }, (double[]){ 4, 5, 6 }));
	/* By 10 % or not. */
	assert_true(verdict_faster((double[]){ 8.9, 8.9, 8.9 }, (double[]){ 10, 10, 10 }));
	assert_false(verdict_faster((double[]){ 9.1, 9.1, 9.1 }, (double[]){ 10, 10, 10 }));
	/* Never each more than the other. */
	assert_false(verdict_faster((double[]){ 4, 5, 6 }, (double[]){ 1, 2, 3 }));
	assert_false(verdict_faster((double[]){ 0, 0, 0 }, (double[]){ 0, 0, 0 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(medians),
		cmocka_unit_test(faster),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
