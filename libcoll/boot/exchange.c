// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "store_table.h"

/* Precedes each key and value in an exchange. */
struct entry {
	uint32_t key_bytes, value_bytes;
};

struct exchange {
	struct coll_store_table table;
	coll_boot_exchange *exchange;
	void *argument;
	uint8_t *news;			/* values put since the last fence */
	size_t news_bytes;
};

static int exchange_put(struct coll_boot *boot, const char *key, const void *value, size_t bytes)
{
	struct exchange *state = boot->state;
	struct entry entry = { strlen(key), bytes };
	uint8_t *news, *at;

	if (!entry.key_bytes || entry.key_bytes > COLL_BOOT_KEY_MAX || bytes > COLL_BOOT_VALUE_MAX)
		return -EINVAL;
	news = realloc(state->news, state->news_bytes + sizeof(entry) + entry.key_bytes + bytes);
	if (!news)
		return -ENOMEM;
	at = news + state->news_bytes;
	memcpy(at, &entry, sizeof(entry));
	memcpy(at + sizeof(entry), key, entry.key_bytes);
	if (bytes)
		memcpy(at + sizeof(entry) + entry.key_bytes, value, bytes);
	state->news = news;
	state->news_bytes += sizeof(entry) + entry.key_bytes + bytes;
	return 0;
}

/* Does not wait: only a fence brings missing values, and this rank is not in one. */
static int exchange_get(struct coll_boot *boot, const char *key, void *value, size_t *bytes,
			uint64_t deadline)
{
	struct exchange *state = boot->state;

	(void)deadline;
	return coll_store_table_get(&state->table, key, value, bytes);
}

static int exchange_learn(struct coll_store_table *table, const uint8_t *at, size_t bytes)
{
	struct entry entry;
	int error = 0;

	while (!error && bytes) {
		if (bytes < sizeof(entry))
			return -EPROTO;
		memcpy(&entry, at, sizeof(entry));
		at += sizeof(entry);
		bytes -= sizeof(entry);
		if ((uint64_t)entry.key_bytes + entry.value_bytes > bytes)
			return -EPROTO;
		error = coll_store_table_put(table, 0, at, entry.key_bytes, at + entry.key_bytes,
					     entry.value_bytes);
		at += entry.key_bytes + entry.value_bytes;
		bytes -= entry.key_bytes + entry.value_bytes;
	}
	return error;
}

static int exchange_fence(struct coll_boot *boot, uint64_t deadline)
{
	struct exchange *state = boot->state;
	void *all = NULL;
	size_t bytes = 0;
	int error;

	(void)deadline;
	error = state->exchange(state->argument, state->news, state->news_bytes, &all, &bytes);
	if (!error)
		error = exchange_learn(&state->table, all, bytes);
	free(all);
	free(state->news);
	state->news = NULL;
	state->news_bytes = 0;
	return error;
}

static void exchange_close(struct coll_boot *boot)
{
	struct exchange *state = boot->state;

	coll_store_table_free(&state->table);
	free(state->news);
	free(state);
	free(boot);
}

static const struct coll_boot_ops exchange_ops = {
	.name = "exchange",
	.put = exchange_put,
	.get = exchange_get,
	.fence = exchange_fence,
	.close = exchange_close,
};

struct coll_boot *coll_boot_exchange_new(coll_boot_exchange *exchange, void *argument)
{
	struct coll_boot *boot = calloc(1, sizeof(*boot));
	struct exchange *state = calloc(1, sizeof(*state));

	if (!boot || !state) {
		free(boot);
		free(state);
		return NULL;
	}
	state->exchange = exchange;
	state->argument = argument;
	boot->state = state;
	boot->ops = &exchange_ops;
	return boot;
}
