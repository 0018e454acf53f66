/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The histogram of latencies: 32 buckets for each power of two, so a bucket is at most
 * 1/32 wide of what is in it. Values below 64 have a bucket each.
 */
#ifndef COLL_CORE_BUCKETS_H
#define COLL_CORE_BUCKETS_H

#include "core/port.h"

enum {
	COLL_BUCKET_BITS = 5,		/* 2^5 buckets for each power of two */
	COLL_BUCKET_LOG_MAX = 38,	/* longer than 2^38 ns, 275 s: the last bucket */
	COLL_BUCKETS = (COLL_BUCKET_LOG_MAX - COLL_BUCKET_BITS + 1) << COLL_BUCKET_BITS,
};

static inline u32 coll_bucket(u64 value)
{
	u32 shift;

	if (value >> COLL_BUCKET_LOG_MAX)
		return COLL_BUCKETS - 1;
	if (!(value >> COLL_BUCKET_BITS))
		return value;
	shift = 63 - COLL_BUCKET_BITS - __builtin_clzll(value);
	return (shift << COLL_BUCKET_BITS) + (value >> shift);
}

/* The least value in the bucket. */
static inline u64 coll_bucket_least(u32 bucket)
{
	u32 shift = bucket >> COLL_BUCKET_BITS;

	if (shift)
		shift--;
	return (u64)(bucket - (shift << COLL_BUCKET_BITS)) << shift;
}

#endif
