// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/build.h"
#include "core/step.h"
#include "tests/lib/schedules.h"

/* A schedule under construction, then a run of it. */
struct run {
	struct coll_build b;
	struct coll_plan plan;
	struct coll_step step;
	u64 memory[512], plan_memory[128], step_memory[128];
};

static struct run run;

static struct coll_build *build(void)
{
	coll_build_init(&run.b, run.memory, sizeof(run.memory), 0, 2);
	return &run.b;
}

static struct coll_step *begin(void)
{
	struct coll_schedule *s;
	struct coll_refusal refusal;

	assert_int_equal(coll_build_finish(&run.b, &s), 0);
	assert_int_equal(check_schedule(s, s->bytes, &refusal), 0);
	assert_true(coll_plan_bytes(s) <= sizeof(run.plan_memory));
	coll_plan_init(&run.plan, s, run.plan_memory);
	assert_true(coll_step_bytes(&run.plan) <= sizeof(run.step_memory));
	coll_step_init(&run.step, &run.plan, run.step_memory);
	return &run.step;
}

static void an_all_wait_needs_all_ops(void **state)
{
	struct coll_build *b = build();
	u32 one = coll_emit_join(b), two = coll_emit_join(b), both;
	struct coll_step *step;

	(void)state;
	coll_emit_after(b, one);
	coll_emit_after(b, two);
	both = coll_emit_join(b);
	step = begin();
	assert_int_equal(coll_step_next(step), one);
	assert_int_equal(coll_step_next(step), two);
	assert_int_equal(coll_step_next(step), COLL_NONE);
	coll_step_done(step, two);
	assert_int_equal(coll_step_next(step), COLL_NONE);
	coll_step_done(step, one);
	assert_int_equal(coll_step_next(step), both);
	assert_false(coll_step_finished(step));
	coll_step_done(step, both);
	assert_true(coll_step_finished(step));
	assert_int_equal(coll_step_next(step), COLL_NONE);
}

static void an_any_wait_starts_its_op_once(void **state)
{
	struct coll_build *b = build();
	u32 one = coll_emit_join(b), two = coll_emit_join(b), any;
	struct coll_step *step;

	(void)state;
	coll_emit_any(b, one);
	coll_emit_any(b, two);
	any = coll_emit_join(b);
	step = begin();
	coll_step_next(step);
	coll_step_next(step);
	coll_step_done(step, two);
	assert_int_equal(coll_step_next(step), any);
	coll_step_done(step, one);
	assert_int_equal(coll_step_next(step), COLL_NONE);
	assert_false(coll_step_finished(step));
	coll_step_done(step, any);
	assert_true(coll_step_finished(step));
}

/* The same op named twice is one wait of either kind. */
static void a_repeated_wait_is_harmless(void **state)
{
	struct coll_build *b = build();
	u32 one = coll_emit_join(b), all, any;
	struct coll_step *step;

	(void)state;
	coll_emit_after(b, one);
	coll_emit_after(b, one);
	all = coll_emit_join(b);
	coll_emit_any(b, one);
	coll_emit_any(b, one);
	any = coll_emit_join(b);
	step = begin();
	assert_int_equal(coll_step_next(step), one);
	coll_step_done(step, one);
	assert_int_equal(coll_step_next(step), all);
	assert_int_equal(coll_step_next(step), any);
	assert_int_equal(coll_step_next(step), COLL_NONE);
}

static void a_run_ends_without_its_optional_ops(void **state)
{
	struct coll_build *b = build();
	u32 must = coll_emit_join(b), started, never;
	struct coll_step *step;

	(void)state;
	coll_emit_optional(b);
	started = coll_emit_join(b);
	coll_emit_after(b, must);
	coll_emit_optional(b);
	never = coll_emit_join(b);
	step = begin();
	assert_int_equal(coll_step_next(step), must);
	assert_int_equal(coll_step_next(step), started);
	coll_step_done(step, must);
	assert_true(coll_step_finished(step));
	assert_int_equal(coll_step_next(step), COLL_NONE);
	assert_int_equal(step->state[never], COLL_OP_READY);
	/* It comes home late. */
	coll_step_done(step, started);
	assert_true(coll_step_finished(step));
	assert_int_equal(step->state[started], COLL_OP_DONE);
	assert_int_equal(coll_step_next(step), COLL_NONE);
}

static void unless_skips_a_pointless_op(void **state)
{
	struct coll_build *b = build();
	u32 reason, trigger, skipped, dependent, last;
	struct coll_step *step;

	(void)state;
	coll_emit_optional(b);
	reason = coll_emit_join(b);
	trigger = coll_emit_join(b);
	coll_emit_after(b, trigger);
	coll_emit_optional(b);
	coll_emit_unless(b, reason);
	skipped = coll_emit_join(b);
	coll_emit_after(b, skipped);
	coll_emit_optional(b);
	dependent = coll_emit_join(b);
	coll_emit_after(b, trigger);
	last = coll_emit_join(b);

	step = begin();
	assert_int_equal(coll_step_next(step), reason);
	assert_int_equal(coll_step_next(step), trigger);
	coll_step_done(step, reason);
	coll_step_done(step, trigger);
	assert_int_equal(coll_step_next(step), last);
	assert_int_equal(step->state[skipped], COLL_OP_SKIPPED);
	assert_int_equal(step->state[dependent], COLL_OP_WAITING);
	coll_step_done(step, last);
	assert_true(coll_step_finished(step));

	/* The next run: the reason comes too late to skip. */
	coll_step_reset(step);
	assert_int_equal(coll_step_next(step), reason);
	assert_int_equal(coll_step_next(step), trigger);
	coll_step_done(step, trigger);
	assert_int_equal(coll_step_next(step), skipped);
	coll_step_done(step, reason);
	coll_step_done(step, skipped);
	assert_int_equal(coll_step_next(step), last);
	assert_int_equal(coll_step_next(step), dependent);
}

static void the_first_failure_holds(void **state)
{
	struct coll_build *b = build();
	u32 one = coll_emit_join(b), two;
	struct coll_step *step;

	(void)state;
	coll_emit_after(b, one);
	two = coll_emit_join(b);
	step = begin();
	assert_int_equal(coll_step_next(step), one);
	coll_step_fail(step, -ECONNRESET);
	coll_step_fail(step, -ETIMEDOUT);
	assert_true(coll_step_finished(step));
	assert_int_equal(step->error, -ECONNRESET);
	coll_step_done(step, one);
	assert_int_equal(step->state[two], COLL_OP_WAITING);
	assert_int_equal(coll_step_next(step), COLL_NONE);
	coll_step_reset(step);
	assert_false(coll_step_finished(step));
	assert_int_equal(coll_step_next(step), one);
}

static void a_run_without_mandatory_ops_completes_at_once(void **state)
{
	struct coll_build *b = build();
	struct coll_step *step;

	(void)state;
	coll_emit_optional(b);
	coll_emit_join(b);
	step = begin();
	assert_true(coll_step_finished(step));
	assert_int_equal(coll_step_next(step), COLL_NONE);
	build();
	step = begin();
	assert_true(coll_step_finished(step));
}

/* It comes before those that are ready, and goes on as if it was started once. */
static void an_op_done_in_part_starts_again(void **state)
{
	struct coll_build *b = build();
	u32 one = coll_emit_join(b), two = coll_emit_join(b), last;
	struct coll_step *step;

	(void)state;
	coll_emit_after(b, one);
	last = coll_emit_join(b);
	step = begin();
	assert_int_equal(coll_step_next(step), one);
	coll_step_again(step, one);
	assert_false(coll_step_idle(step));
	assert_int_equal(coll_step_next(step), one);
	assert_int_equal(coll_step_next(step), two);
	coll_step_again(step, two);
	coll_step_done(step, one);
	assert_int_equal(coll_step_next(step), two);
	assert_int_equal(coll_step_next(step), last);
	coll_step_again(step, last);
	assert_int_equal(coll_step_next(step), last);
	assert_true(coll_step_idle(step));
	coll_step_done(step, two);
	coll_step_done(step, last);
	assert_true(coll_step_finished(step));
}

/* Ops done in random order, some in parts: each starts, after its waits, and all do. */
static void step_randomly(const char *name, struct coll_schedule *const *s, u32 ranks,
			  void *argument)
{
	const struct coll_op *ops = coll_ops(s[ranks - 1]);
	u32 count = s[ranks - 1]->ops, open = 0, op, *started = malloc((count + 1) * sizeof(u32));
	void *memory = malloc(coll_plan_bytes(s[ranks - 1]));
	struct coll_plan plan;
	struct coll_step step;
	void *state;

	(void)name;
	coll_plan_init(&plan, s[ranks - 1], memory);
	state = malloc(coll_step_bytes(&plan) + 1);
	coll_step_init(&step, &plan, state);
	while (!coll_step_finished(&step)) {
		while ((op = coll_step_next(&step)) != COLL_NONE) {
			u32 i, done = 0;

			if (random_next(argument) % 4 == 0) {
				coll_step_again(&step, op);
				continue;
			}
			for (i = 0; i < ops[op].waits; i++)
				done += step.state[coll_waits(s[ranks - 1])[ops[op].wait + i]] ==
					COLL_OP_DONE;
			assert_true(ops[op].flags & COLL_WAIT_ANY ? done > 0 :
								    done == ops[op].waits);
			started[open++] = op;
		}
		assert_int_not_equal(open, 0);
		op = random_next(argument) % open;
		coll_step_done(&step, started[op]);
		started[op] = started[--open];
	}
	for (op = 0; op < count; op++)
		assert_true(ops[op].flags & COLL_OPTIONAL || step.state[op] == COLL_OP_DONE);
	free(state);
	free(memory);
	free(started);
}

static void algorithms_finish_in_any_order(void **state)
{
	u64 seed = 3;
	u32 round;

	(void)state;
	for (round = 0; round < 5; round++)
		assert_true(each_collective(17, step_randomly, &seed) >= 17);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_all_wait_needs_all_ops),
		cmocka_unit_test(an_any_wait_starts_its_op_once),
		cmocka_unit_test(a_repeated_wait_is_harmless),
		cmocka_unit_test(a_run_ends_without_its_optional_ops),
		cmocka_unit_test(unless_skips_a_pointless_op),
		cmocka_unit_test(the_first_failure_holds),
		cmocka_unit_test(a_run_without_mandatory_ops_completes_at_once),
		cmocka_unit_test(an_op_done_in_part_starts_again),
		cmocka_unit_test(algorithms_finish_in_any_order),
	};

	return cmocka_run_group_tests_name("step", tests, NULL, NULL);
}
