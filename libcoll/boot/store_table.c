// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store_table.h"

static uint32_t hash_of(uint32_t stay, const uint8_t *key, uint32_t bytes)
{
	uint32_t hash = 2166136261u ^ stay;

	while (bytes--)
		hash = (hash ^ *key++) * 16777619u;
	return hash;
}

const struct coll_store_entry *coll_store_table_find(const struct coll_store_table *table,
						     uint32_t stay, const void *key,
						     uint32_t key_bytes)
{
	uint32_t hash = hash_of(stay, key, key_bytes);
	const struct coll_store_entry *entry;

	for (entry = table->bucket[hash % STORE_BUCKETS]; entry; entry = entry->next)
		if (entry->hash == hash && entry->stay == stay && entry->key_bytes == key_bytes &&
		    !memcmp(entry->data, key, key_bytes))
			return entry;
	return NULL;
}

int coll_store_table_put(struct coll_store_table *table, uint32_t stay, const void *key,
			 uint32_t key_bytes, const void *value, uint32_t value_bytes)
{
	const struct coll_store_entry *old = coll_store_table_find(table, stay, key, key_bytes);
	size_t bytes = sizeof(*old) + key_bytes + value_bytes;
	struct coll_store_entry *entry, **bucket;

	if (old)
		return old->value_bytes == value_bytes &&
		       !memcmp(store_entry_value(old), value, value_bytes) ? 0 : -EEXIST;
	if (bytes > STORE_BYTES_MAX - table->bytes)
		return -ENOSPC;
	entry = malloc(bytes);
	if (!entry)
		return -ENOMEM;
	entry->stay = stay;
	entry->hash = hash_of(stay, key, key_bytes);
	entry->key_bytes = key_bytes;
	entry->value_bytes = value_bytes;
	memcpy(entry->data, key, key_bytes);
	memcpy(entry->data + key_bytes, value, value_bytes);
	bucket = &table->bucket[entry->hash % STORE_BUCKETS];
	entry->next = *bucket;
	*bucket = entry;
	table->bytes += bytes;
	return 0;
}

int coll_store_table_get(const struct coll_store_table *table, const char *key, void *value,
			 size_t *bytes)
{
	const struct coll_store_entry *entry = coll_store_table_find(table, 0, key, strlen(key));
	const size_t capacity = *bytes;

	if (!entry)
		return -ETIMEDOUT;
	*bytes = entry->value_bytes;
	if (*bytes)
		memcpy(value, store_entry_value(entry), *bytes < capacity ? *bytes : capacity);
	return *bytes > capacity ? -EMSGSIZE : 0;
}

static void entry_remove(struct coll_store_table *table, struct coll_store_entry **slot)
{
	struct coll_store_entry *entry = *slot;

	*slot = entry->next;
	table->bytes -= sizeof(*entry) + entry->key_bytes + entry->value_bytes;
	free(entry);
}

void coll_store_table_forget(struct coll_store_table *table, uint32_t stay, const void *key, uint32_t key_bytes)
{
	const struct coll_store_entry *entry = coll_store_table_find(table, stay, key, key_bytes);
	struct coll_store_entry **slot;

	if (!entry)
		return;
	slot = &table->bucket[entry->hash % STORE_BUCKETS];
	while (*slot != entry)
		slot = &(*slot)->next;
	entry_remove(table, slot);
}

void coll_store_table_drop(struct coll_store_table *table, uint32_t stay)
{
	struct coll_store_entry **slot;
	int i;

	for (i = 0; i < STORE_BUCKETS; i++)
		for (slot = &table->bucket[i]; *slot;) {
			if ((*slot)->stay == stay)
				entry_remove(table, slot);
			else
				slot = &(*slot)->next;
		}
}

void coll_store_table_free(struct coll_store_table *table)
{
	struct coll_store_entry *entry, *next;
	int i;

	for (i = 0; i < STORE_BUCKETS; i++)
		for (entry = table->bucket[i]; entry; entry = next) {
			next = entry->next;
			free(entry);
		}
}
