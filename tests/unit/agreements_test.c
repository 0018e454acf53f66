// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Agreements without end (libcoll/api/survive.c): the store keeps their decisions, and one opinion of each rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "libcoll/boot/store_table.h"
#include "libcoll/link/context.h"

enum { AGREEMENTS = 200 };

/* A job of one rank: its store is in its own memory. */
static size_t stored(const struct coll_context *context)
{
	return ((const struct coll_store_table *)context->boot->state)->bytes;
}

static size_t stored_by_agreement(struct coll_context *context)
{
	const size_t before = stored(context);
	uint64_t flag = 5;

	assert_int_equal(coll_agree(coll_world(context), &flag), 0);
	assert_int_equal(flag, 5);
	return stored(context) - before;
}

static void opinions_are_forgotten(void **state)
{
	struct coll_context *context;
	size_t first;
	int i;

	(void)state;
	assert_int_equal(coll_open(NULL, &context), 0);
	first = stored_by_agreement(context);
	for (i = 1; i < AGREEMENTS; i++)
		assert_in_range(stored_by_agreement(context), 1, first / 2 + 8);
	coll_close(context);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(opinions_are_forgotten),
	};

	unsetenv("COLL_RANK");
	unsetenv("COLL_CONFIG");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
