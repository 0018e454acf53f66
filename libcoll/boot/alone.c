// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A job of one rank: the store is its own memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "job.h"
#include "libcoll/base/clock.h"
#include "store_table.h"

static int alone_put(struct coll_boot *boot, const char *key, const void *value, size_t bytes)
{
	size_t key_bytes = strlen(key);

	if (!key_bytes || key_bytes > COLL_BOOT_KEY_MAX || bytes > COLL_BOOT_VALUE_MAX)
		return -EINVAL;
	return coll_store_table_put(boot->state, 0, key, key_bytes, value, bytes);
}

/* A missing key stays missing: its only writer is waiting for it. */
static int alone_get(struct coll_boot *boot, const char *key, void *value, size_t *bytes,
		     uint64_t deadline)
{
	(void)deadline;
	return coll_store_table_get(boot->state, key, value, bytes);
}

static int alone_forget(struct coll_boot *boot, const char *key)
{
	coll_store_table_forget(boot->state, 0, key, strlen(key));
	return 0;
}

static void alone_close(struct coll_boot *boot)
{
	coll_store_table_free(boot->state);
	free(boot->state);
	free(boot);
}

static const struct coll_boot_ops alone_ops = {
	.name = "alone",
	.put = alone_put,
	.get = alone_get,
	.forget = alone_forget,
	.close = alone_close,
};

int coll_boot_alone_open(struct coll_boot *boot)
{
	boot->state = calloc(1, sizeof(struct coll_store_table));
	if (!boot->state)
		return -ENOMEM;
	if (getrandom(boot->secret, sizeof(boot->secret), 0) != sizeof(boot->secret)) {
		free(boot->state);
		return -EIO;
	}
	boot->ops = &alone_ops;
	return 0;
}
