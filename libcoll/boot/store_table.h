/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Keys and their values, by stay (see coll_store_join). A value never changes. */
#ifndef COLL_STORE_TABLE_H
#define COLL_STORE_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum { STORE_BUCKETS = 1024, STORE_BYTES_MAX = 1 << 28 };

struct coll_store_entry {
	struct coll_store_entry *next;
	uint32_t stay, hash;
	uint32_t key_bytes, value_bytes;
	uint8_t data[];		/* key, value */
};

struct coll_store_table {
	struct coll_store_entry *bucket[STORE_BUCKETS];
	size_t bytes;
};

static inline const uint8_t *store_entry_value(const struct coll_store_entry *entry)
{
	return entry->data + entry->key_bytes;
}

/* 0: stored, or the same value was there; -EEXIST: another value; -ENOSPC, -ENOMEM. */
int coll_store_table_put(struct coll_store_table *table, uint32_t stay, const void *key,
			 uint32_t key_bytes, const void *value, uint32_t value_bytes);
const struct coll_store_entry *coll_store_table_find(const struct coll_store_table *table,
						     uint32_t stay, const void *key,
						     uint32_t key_bytes);
/*
 * Copies the value. *bytes: capacity in, size out. -ETIMEDOUT: no such key; -EMSGSIZE: it
 * was cut to the capacity.
 */
int coll_store_table_get(const struct coll_store_table *table, const char *key, void *value,
			 size_t *bytes);
/* No such key: nothing is done. */
void coll_store_table_forget(struct coll_store_table *table, uint32_t stay, const void *key, uint32_t key_bytes);
/* Forgets all of a stay. Costs a look at all keys. */
void coll_store_table_drop(struct coll_store_table *table, uint32_t stay);
void coll_store_table_free(struct coll_store_table *table);

#endif
