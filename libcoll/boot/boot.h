/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * How a process finds its job: its rank, the number of ranks, and a key-value store that
 * all ranks reach. One table of functions, one file for each way.
 */
#ifndef COLL_BOOT_H
#define COLL_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcoll/base/handshake.h"

enum {
	COLL_BOOT_VALUE_MAX = 4096,
	COLL_BOOT_KEY_MAX = 128,
};

struct coll_boot {
	const struct coll_boot_ops *ops;
	int rank, ranks;
	int local_rank, local_ranks;	/* on this node; -1: not known */
	char job[64];			/* names the job; the same on all ranks */
	uint8_t secret[COLL_SECRET_BYTES];	/* the same on all ranks */
	bool secret_carried;		/* ... to other nodes, readable, by what started the job */
	char from[64];			/* the environment that has the job, for explanations */
	uint64_t timeout;		/* ns: the longest time of a call */
	void *state;			/* of the implementation */
};

struct coll_boot_ops {
	const char *name;
	/* Stores a value under a new key. Every rank can get it after the next fence. */
	int (*put)(struct coll_boot *boot, const char *key, const void *value, size_t bytes);
	/*
	 * Waits until the key is there, at most until `deadline` (ns, CLOCK_MONOTONIC).
	 * *bytes: capacity in, size out. -ETIMEDOUT, -EMSGSIZE, -ECONNRESET (the store is
	 * gone).
	 */
	int (*get)(struct coll_boot *boot, const char *key, void *value, size_t *bytes,
		   uint64_t deadline);
	/* Nobody gets the value of this key any more: its memory may be used again. NULL: it is kept. */
	int (*forget)(struct coll_boot *boot, const char *key);
	/*
	 * Collective: values put before can be got after it. NULL where a value can be got
	 * at once.
	 */
	int (*fence)(struct coll_boot *boot, uint64_t deadline);
	void (*close)(struct coll_boot *boot);
};

/*
 * Finds the job in the environment and joins its store. Without a job: a job of one rank.
 * `why` (may be NULL) gets the reason of a failure in words.
 */
int coll_boot_open(struct coll_boot **boot, uint64_t deadline, char *why, size_t why_bytes);

static inline int coll_boot_put(struct coll_boot *boot, const char *key, const void *value,
				size_t bytes)
{
	return boot->ops->put(boot, key, value, bytes);
}

static inline int coll_boot_get(struct coll_boot *boot, const char *key, void *value,
				size_t *bytes, uint64_t deadline)
{
	return boot->ops->get(boot, key, value, bytes, deadline);
}

static inline int coll_boot_forget(struct coll_boot *boot, const char *key)
{
	return boot->ops->forget ? boot->ops->forget(boot, key) : 0;
}

static inline int coll_boot_fence(struct coll_boot *boot, uint64_t deadline)
{
	return boot->ops->fence ? boot->ops->fence(boot, deadline) : 0;
}

static inline void coll_boot_close(struct coll_boot *boot)
{
	if (boot)
		boot->ops->close(boot);
}

#endif
