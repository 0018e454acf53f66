// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll.ko moves tasks: one that does not leave its CPU holds nobody up, and one whose rule has no CPU for a while is moved
 * again after that. The module's own code, on what tests/unit/kernel has of a kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Which need more of a kernel. */
#define COLL_KMOD_COMPAT_H
#define COLL_KMOD_SUBSYSTEM_H
#define coll_unbound_wq NULL
#include "kernel.h"
#include "uapi/coll_netlink.h"
#include "kmod/pin/pin_pool.c"
#include "kmod/pin/pin_entry.c"
#include "kmod/pin/pin_move.c"

enum { HOUSE = 1, APP = 2, OTHER = 4, ALL = 7 };	/* sets of CPUs, as bits */

struct cpumask kernel_active = { ALL }, kernel_possible = { ALL };
struct delayed_work *kernel_queued;
static u32 waited;
static bool released;

/* As the kernel's: who cannot leave its CPU is waited for until it has that one again, by a worker. */
int set_cpus_allowed_ptr(struct task_struct *of, const struct cpumask *cpus)
{
	struct delayed_work *worker = kernel_queued;
	u64 set_to = cpus->bits;

	if (!(set_to & kernel_active.bits))
		return -EINVAL;
	if (of->user_cpus_ptr && of->user_cpus_ptr->bits & set_to)
		set_to &= of->user_cpus_ptr->bits;
	if (set_to == of->cpus_mask.bits)
		return 0;
	of->cpus_mask.bits = set_to;
	if (cpumask_test_cpu(of->cpu, &of->cpus_mask)) {
		released = true;
	} else if (of->migration_disabled) {
		assert_non_null(worker);	/* else it is waited for without an end */
		kernel_queued = NULL;
		released = false;
		waited++;
		worker->function(NULL);
		assert_true(released);
	} else {
		of->cpu = (unsigned int)__builtin_ctzll(set_to & kernel_active.bits);
	}
	return 0;
}

/* ---- a task and a rule ------------------------------------------------------------ */

static struct task_struct task;
static struct cpumask saved, set;
static struct pin_task entry;
static struct pin_rule rule;

static int begin(void **state)
{
	(void)state;
	task = (struct task_struct){ .cpus_mask = { ALL }, .cpu = 1 };
	saved = set = task.cpus_mask;
	entry = (struct pin_task){ .task = &task, .saved = &saved, .set = &set, .rule = -1, .state = COLL_PIN_KEPT };
	memset(&rule, 0, sizeof(rule));
	rule.cpus->bits = HOUSE;
	kernel_active.bits = ALL;
	waited = 0;
	return 0;
}

/* What the thread does with a task that matches the rule: whether it is moved. */
static bool look(int index)
{
	bool known;

	return kcoll_pin_assign(&entry, index, rule.cpus, &known) == COLL_PIN_ASSIGN_MOVE && kcoll_pin_move(&entry, &rule);
}

static void moves(void **state)
{
	(void)state;
	assert_true(look(0));
	assert_int_equal(entry.state, COLL_PIN_MOVED);
	assert_int_equal(task.cpus_mask.bits, HOUSE);
	assert_int_equal(rule.moved.value, 1);
	assert_false(look(0));
	kcoll_pin_restore(&entry);
	assert_int_equal(task.cpus_mask.bits, ALL);
	assert_null(kernel_queued);
}

static void is_put_off_and_moved_later(void **state)
{
	(void)state;
	task.migration_disabled = 1;
	assert_false(look(0));
	assert_int_equal(waited, 1);
	assert_int_equal(task.cpus_mask.bits, ALL);
	assert_int_equal(entry.state, COLL_PIN_REFUSED);
	assert_int_equal(entry.error, EAGAIN);
	assert_true(entry.put_off);
	assert_false(look(0));
	assert_int_equal(waited, 1);	/* no time for it until it can */
	assert_int_equal(rule.moved.value + rule.refused.value, 0);
	task.migration_disabled = 0;
	assert_true(look(0));
	assert_false(entry.put_off);
	assert_int_equal(entry.state, COLL_PIN_MOVED);
	assert_int_equal(entry.error, 0);
	assert_int_equal(task.cpus_mask.bits, HOUSE);
	assert_int_equal(saved.bits, ALL);
	assert_int_equal(rule.moved.value, 1);
}

static void is_kept_where_it_went_by_itself(void **state)
{
	(void)state;
	task.migration_disabled = 1;
	assert_false(look(0));
	task.migration_disabled = 0;
	task.cpus_mask.bits = HOUSE;		/* by its own wish */
	assert_false(look(0));
	assert_int_equal(entry.state, COLL_PIN_KEPT);
	assert_int_equal(entry.error, 0);
	assert_false(entry.put_off);
}

static void stays_where_an_earlier_rule_moved_it(void **state)
{
	(void)state;
	assert_true(look(0));
	task.migration_disabled = 1;
	rule.cpus->bits = OTHER;
	assert_false(look(1));
	assert_int_equal(entry.state, COLL_PIN_MOVED);
	assert_int_equal(task.cpus_mask.bits, HOUSE);
	assert_true(kcoll_pin_in_place(&entry));
	task.migration_disabled = 0;
	assert_true(look(1));
	assert_int_equal(task.cpus_mask.bits, OTHER);
	assert_int_equal(saved.bits, ALL);
}

static void is_given_back_without_a_wait(void **state)
{
	(void)state;
	task.cpus_mask.bits = saved.bits = set.bits = APP;
	assert_true(look(0));
	task.migration_disabled = 1;
	kcoll_pin_restore(&entry);
	assert_int_equal(waited, 1);
	assert_int_equal(task.cpus_mask.bits, APP | HOUSE);	/* and the one that it does not leave */
}

/* A program has set them: with those no other can be had. */
static void with_cpus_of_its_own_choice_is_given_back(void **state)
{
	struct cpumask chosen = { APP };

	(void)state;
	task.cpus_mask.bits = saved.bits = set.bits = APP;
	task.user_cpus_ptr = &chosen;
	assert_true(look(0));
	task.migration_disabled = 1;
	kcoll_pin_restore(&entry);
	assert_int_equal(waited, 1);
	assert_int_equal(task.cpus_mask.bits, HOUSE);
}

static enum kcoll_pin_assign assigned(void)
{
	bool known;

	return kcoll_pin_assign(&entry, 0, rule.cpus, &known);
}

static void sleeps_while_its_rule_has_no_cpu(void **state)
{
	(void)state;
	assert_true(look(0));
	kernel_active.bits = APP;
	assert_int_equal(assigned(), COLL_PIN_ASSIGN_STAY);
	assert_true(entry.stranded);
	task.cpus_mask.bits = ALL;		/* it wakes up, and the scheduler places it */
	task.cpu = 1;
	kernel_active.bits = ALL;
	assert_true(look(0));
	assert_int_equal(task.cpus_mask.bits, HOUSE);
	assert_false(entry.stranded);
}

static void sleeps_until_its_rule_has_cpus_again(void **state)
{
	(void)state;
	assert_true(look(0));
	kernel_active.bits = APP;
	assert_int_equal(assigned(), COLL_PIN_ASSIGN_STAY);
	kernel_active.bits = ALL;
	assert_int_equal(assigned(), COLL_PIN_ASSIGN_IN_PLACE);
	assert_false(entry.stranded);
	task.cpus_mask.bits = APP;		/* now it is somebody else who does that */
	assert_int_equal(assigned(), COLL_PIN_ASSIGN_CHANGED);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(moves, begin),
		cmocka_unit_test_setup(is_put_off_and_moved_later, begin),
		cmocka_unit_test_setup(is_kept_where_it_went_by_itself, begin),
		cmocka_unit_test_setup(stays_where_an_earlier_rule_moved_it, begin),
		cmocka_unit_test_setup(is_given_back_without_a_wait, begin),
		cmocka_unit_test_setup(with_cpus_of_its_own_choice_is_given_back, begin),
		cmocka_unit_test_setup(sleeps_while_its_rule_has_no_cpu, begin),
		cmocka_unit_test_setup(sleeps_until_its_rule_has_cpus_again, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
