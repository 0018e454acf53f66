// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A job's name as part of a file's: the same on all machines. Compiled as where a char has no sign. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "libcoll/flight/dump.c"

static void bytes_that_are_not_plain_are_replaced(void **state)
{
	char name[] = "a/b c\td\x7f\x80\xc3\xa9.-_~!Z";

	(void)state;
	_Static_assert((char)-1 > 0, "compiled with -funsigned-char");
	coll_flight_make_plain(name);
	assert_string_equal(name, "a_b_c_d____.-_~!Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_that_are_not_plain_are_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
