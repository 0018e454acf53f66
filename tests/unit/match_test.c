// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/build.h"
#include "core/match.h"

static struct coll_plan plan;
static struct coll_step step;
static u64 memory[512], plan_memory[128], step_memory[128];

enum { FROM_5, FROM_2, LATER_FROM_5, OPTIONAL, SKIPPED, LAST };

/* Receives: two from 5 (the second after the first), one of each other kind from 2. */
static int begin(void **state)
{
	struct coll_schedule *s;
	struct coll_build b;
	u64 place;

	(void)state;
	coll_build_init(&b, memory, sizeof(memory), 0, 8);
	place = coll_emit_scratch(&b, 64);
	coll_emit_recv(&b, 5, place, 10);
	coll_emit_recv(&b, 2, place, 20);
	coll_emit_after(&b, FROM_5);
	coll_emit_recv(&b, 5, place, 30);
	coll_emit_optional(&b);
	coll_emit_recv(&b, 2, place, 40);
	coll_emit_after(&b, FROM_5);
	coll_emit_optional(&b);
	coll_emit_unless(&b, FROM_5);
	coll_emit_recv(&b, 2, place, 50);
	coll_emit_after(&b, LATER_FROM_5);
	coll_emit_join(&b);
	coll_emit_send(&b, 3, place, 60);
	if (coll_build_finish(&b, &s))
		return -1;
	coll_plan_init(&plan, s, plan_memory);
	coll_step_init(&step, &plan, step_memory);
	while (coll_step_next(&step) != COLL_NONE)
		;
	return 0;
}

static void expect(u32 rank, u32 slot, u64 bytes, int match, u32 op)
{
	u32 found = COLL_NONE;

	assert_int_equal(coll_match(&step, rank, slot, bytes, &found), match);
	if (match >= 0)
		assert_int_equal(found, op);
}

static void a_started_receive_takes_its_message(void **state)
{
	(void)state;
	expect(5, 0, 10, COLL_MATCH_POSTED, FROM_5);
	expect(2, 0, 20, COLL_MATCH_POSTED, FROM_2);
	expect(2, 1, 40, COLL_MATCH_POSTED, OPTIONAL);
}

static void an_unexpected_message_is_kept(void **state)
{
	(void)state;
	expect(5, 1, 30, COLL_MATCH_UNEXPECTED, LATER_FROM_5);
	coll_step_done(&step, FROM_5);
	expect(5, 1, 30, COLL_MATCH_UNEXPECTED, LATER_FROM_5);	/* ready, not started */
	assert_int_equal(coll_step_next(&step), LATER_FROM_5);
	expect(5, 1, 30, COLL_MATCH_POSTED, LATER_FROM_5);
}

static void a_message_no_run_needs_is_stale(void **state)
{
	(void)state;
	coll_step_done(&step, FROM_5);
	assert_int_equal(coll_step_next(&step), LATER_FROM_5);
	assert_int_equal(coll_step_next(&step), COLL_NONE);
	expect(2, 2, 50, COLL_MATCH_STALE, SKIPPED);
	coll_step_fail(&step, -ECANCELED);
	expect(2, 0, 20, COLL_MATCH_STALE, FROM_2);
	expect(5, 1, 30, COLL_MATCH_STALE, LATER_FROM_5);
}

static void a_message_in_no_schedule_is_refused(void **state)
{
	(void)state;
	expect(4, 0, 10, -EPROTO, COLL_NONE);		/* no such peer */
	expect(COLL_NONE, 0, 10, -EPROTO, COLL_NONE);
	expect(3, 0, 60, -EPROTO, COLL_NONE);		/* only sent to */
	expect(5, 2, 10, -EPROTO, COLL_NONE);		/* no such slot */
	expect(5, COLL_NONE, 10, -EPROTO, COLL_NONE);
	expect(5, 0, 11, -EPROTO, COLL_NONE);		/* another size */
	expect(5, 0, 9, -EPROTO, COLL_NONE);
	coll_step_done(&step, FROM_5);
	expect(5, 0, 10, -EPROTO, COLL_NONE);		/* came before */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_started_receive_takes_its_message, begin),
		cmocka_unit_test_setup(an_unexpected_message_is_kept, begin),
		cmocka_unit_test_setup(a_message_no_run_needs_is_stale, begin),
		cmocka_unit_test_setup(a_message_in_no_schedule_is_refused, begin),
	};

	return cmocka_run_group_tests_name("match", tests, NULL, NULL);
}
