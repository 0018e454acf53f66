// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that probes use, allocated ahead: they run with preemption off, where a kernel with
 * PREEMPT_RT must not allocate or free. What a probe finds empty it does without; the thread
 * then looks at all tasks.
 */
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "pin_pool.h"

struct pin_pool_item {
	struct pin_pool_item *next;
};

/* As of a moment ago: it may hold a few more or less. */
static bool pool_full(const struct pin_pool *pool)
{
	return READ_ONCE(pool->count) >= PIN_POOL_ITEMS;
}

void *kcoll_pin_pool_take(struct pin_pool *pool)
{
	struct pin_pool_item *item;
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	item = pool->first;
	if (item) {
		pool->first = item->next;
		WRITE_ONCE(pool->count, pool->count - 1);
	}
	raw_spin_unlock_irqrestore(&pool->lock, flags);
	if (item)
		memset(item, 0, pool->bytes);
	return item;
}

void kcoll_pin_pool_give(struct pin_pool *pool, void *memory)
{
	struct pin_pool_item *item = memory;
	unsigned long flags;

	raw_spin_lock_irqsave(&pool->lock, flags);
	item->next = pool->first;
	pool->first = item;
	WRITE_ONCE(pool->count, pool->count + 1);
	raw_spin_unlock_irqrestore(&pool->lock, flags);
}

void kcoll_pin_pool_free(struct pin_pool *pool, void *memory)
{
	if (pool_full(pool))
		kfree(memory);
	else
		kcoll_pin_pool_give(pool, memory);
}

int kcoll_pin_pool_fill(struct pin_pool *pool)
{
	void *memory;

	while (!pool_full(pool)) {
		memory = kmalloc(pool->bytes, GFP_KERNEL);
		if (!memory)
			return -ENOMEM;
		kcoll_pin_pool_give(pool, memory);
	}
	return 0;
}

void kcoll_pin_pool_empty(struct pin_pool *pool)
{
	void *memory;

	while ((memory = kcoll_pin_pool_take(pool)))
		kfree(memory);
}
