// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Defects on purpose: `insmod plant.ko what=leak` makes one, and is not loaded.
 * They show that the debug kernel sees what it is there for.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timer.h>

static char *what = "";
module_param(what, charp, 0);

static void use_after_free(void)
{
	char *memory = kmalloc(40, GFP_KERNEL);

	kfree(memory);
	if (memory)
		WRITE_ONCE(memory[3], 1);
}

static void out_of_bounds(void)
{
	char *memory = kmalloc(40, GFP_KERNEL);
	int end = 40;

	OPTIMIZER_HIDE_VAR(end);
	if (memory)
		WRITE_ONCE(memory[end], 1);
	kfree(memory);
}

/* More than one: a word that was left on some stack may point to the last. */
static void leak(void)
{
	int i;

	for (i = 0; i < 20; i++) {
		void *memory = kmalloc(100, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(memory);
	}
}

static DEFINE_SPINLOCK(first);
static DEFINE_SPINLOCK(second);

static void sleep_with_a_lock(void)
{
	spin_lock(&first);
	might_sleep();
	spin_unlock(&first);
}

static void lock_in_any_order(void)
{
	spin_lock(&first);
	spin_lock(&second);
	spin_unlock(&second);
	spin_unlock(&first);
	spin_lock(&second);
	spin_lock(&first);
	spin_unlock(&first);
	spin_unlock(&second);
}

static void never(struct timer_list *timer)
{
}

static void free_a_timer(void)
{
	struct timer_list *timer = kmalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	timer_setup(timer, never, 0);
	mod_timer(timer, jiffies + 1000 * HZ);
	kfree(timer);		/* the debug kernel takes it from the list */
}

static void shift_too_far(void)
{
	int bits = 40, value = 1;

	OPTIMIZER_HIDE_VAR(bits);
	value <<= bits;
	OPTIMIZER_HIDE_VAR(value);
}

static const struct {
	const char *name;
	void (*make)(void);
} defects[] = {
	{ "use-after-free", use_after_free },
	{ "out-of-bounds", out_of_bounds },
	{ "leak", leak },
	{ "sleep", sleep_with_a_lock },
	{ "lock-order", lock_in_any_order },
	{ "timer", free_a_timer },
	{ "shift", shift_too_far },
};

static int __init plant_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(defects); i++)
		if (!strcmp(what, defects[i].name)) {
			defects[i].make();
			return -EAGAIN;
		}
	return -EINVAL;
}

module_init(plant_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("defects, to see whether they are seen");
