// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "rescue.h"

void coll_emit_rescue(struct coll_build *b, struct coll_rescue *rescue, u32 rank, u64 bytes)
{
	const u32 j = rescue->count++;

	rescue->final[j] = coll_emit_scratch(b, bytes);
	coll_emit_optional(b);
	rescue->received[j] = coll_emit_recv(b, rank, rescue->final[j], bytes);
	rescue->served[j] = rescue->received[j];
}

void coll_emit_rescue_any(struct coll_build *b, struct coll_rescue *rescue)
{
	u32 j;

	if (!rescue->count)
		return;
	for (j = 0; j < rescue->count; j++)
		coll_emit_any(b, rescue->received[j]);
	coll_emit_optional(b);
	rescue->any = coll_emit_join(b);
}

/*
 * By the time `any` is done, the reduction is done or will be skipped. Several
 * rescues may still write the result one after the other, also while it is sent:
 * all of them write the same bits.
 */
struct coll_ways coll_emit_ways(struct coll_build *b, const struct coll_rescue *rescue,
				struct coll_partial mine, u64 bytes)
{
	struct coll_ways ways = { .count = 1, .op = { mine.ready } };
	u32 j;

	for (j = 0; j < rescue->count; j++) {
		coll_emit_after(b, rescue->received[j]);
		coll_emit_after(b, rescue->any);
		coll_emit_optional(b);
		coll_emit_unless(b, mine.ready);
		ways.op[ways.count++] = coll_emit_copy(b, mine.place, rescue->final[j], bytes);
	}
	return ways;
}

void coll_emit_after_ways(struct coll_build *b, const struct coll_ways *ways)
{
	u32 i;

	for (i = 0; i < ways->count; i++)
		coll_emit_any(b, ways->op[i]);
}
