// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What coll.ko tells of the gap that passed a threshold, with names as tasks choose them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tools/noise/cases.c"

static void put_part(struct nl_msg *message, const char *name)
{
	struct nlattr *part = nla_nest_start(message, COLL_WATCH_A_PART);

	nla_put_u8(message, COLL_WATCH_A_CAUSE, COLL_NOISE_THREAD);
	nla_put_string(message, COLL_WATCH_A_NAME, name);
	nla_put_u32(message, COLL_WATCH_A_NUMBER, 7);
	nla_nest_end(message, part);
}

static void a_name_moves_no_cursor_and_is_json(void **state)
{
	struct nl_msg *message = nlmsg_alloc();
	struct nlattr *nest = nla_nest_start(message, COLL_WATCH_A_CASE), *all[__COLL_WATCH_A_MAX] = { 0 };
	struct noise_passed passed = { .any = false };
	char text[400];
	json_t *json;

	(void)state;
	put_part(message, "a\nb\033\377");
	nla_nest_end(message, nest);
	nla_put_string(message, COLL_WATCH_A_COMM, "c\033[2J\377");
	all[COLL_WATCH_A_CASE] = nest;
	all[COLL_WATCH_A_COMM] = nla_next(nest, &(int){ 4096 });
	assert_int_equal(take_passed(COLL_CMD_WATCH_PASSED, all, &passed), 0);
	assert_string_equal(passed.comm, "c?[2J?");
	assert_int_equal(passed.one.parts, 1);
	assert_string_equal(noise_part_text(passed.one.part, text, sizeof(text)), "thread a?b?? (7)");
	json = noise_passed_json(&passed);
	assert_non_null(json);
	json_decref(json);
	nlmsg_free(message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_moves_no_cursor_and_is_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
