// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What colld leaves for root and for further users, however many users take what they get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "daemon/circuit/manager.h"

enum { MAX = 256, USERS = 1000 };

/* What the user gets, of MAX of which `taken` are gone. */
static u32 take_all(uid_t user, u32 taken)
{
	u32 has = 0;

	while (circuit_manager_share_left(user, has, taken + has, MAX))
		has++;
	return has;
}

static void one_user_gets_half_at_most(void **state)
{
	(void)state;
	assert_in_range(take_all(1, 0), MAX / 3, MAX / 2);
	assert_true(take_all(2, take_all(1, 0)) > MAX / 8);
}

static void no_number_of_users_takes_what_is_for_root(void **state)
{
	u32 taken = 0;
	uid_t user;

	(void)state;
	for (user = 1; user <= USERS; user++)
		taken += take_all(user, taken);
	assert_int_equal(take_all(USERS + 1, taken), 0);
	assert_int_equal(take_all(0, taken), MAX / CIRCUIT_ROOT_PART);
	assert_int_equal(take_all(0, 0), MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_user_gets_half_at_most),
		cmocka_unit_test(no_number_of_users_takes_what_is_for_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
