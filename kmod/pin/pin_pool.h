/* SPDX-License-Identifier: GPL-2.0 */
/* Memory that probes use, allocated ahead. */
#ifndef COLL_KMOD_PIN_POOL_H
#define COLL_KMOD_PIN_POOL_H

#include <linux/spinlock.h>

enum { PIN_POOL_ITEMS = 1024 };		/* sightings and births until the thread has run */

struct pin_pool_item;

struct pin_pool {
	raw_spinlock_t lock;
	struct pin_pool_item *first;
	u32 count;
	size_t bytes;			/* of an item; set before the first call */
};

#define PIN_POOL(name, size) \
	struct pin_pool name = { .lock = __RAW_SPIN_LOCK_UNLOCKED(name.lock), .bytes = (size) }

/* Any context. Zeroed memory; NULL: the pool is empty. */
void *kcoll_pin_pool_take(struct pin_pool *pool);
/* Any context. Takes the memory back. */
void kcoll_pin_pool_give(struct pin_pool *pool, void *memory);
/* Process context: memory that the pool does not need is freed. */
void kcoll_pin_pool_free(struct pin_pool *pool, void *memory);
/* May sleep. 0 or -ENOMEM. */
int kcoll_pin_pool_fill(struct pin_pool *pool);
/* When no probe is attached. */
void kcoll_pin_pool_empty(struct pin_pool *pool);

#endif
