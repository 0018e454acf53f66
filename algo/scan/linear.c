// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Linear: a rank receives the sum of the ranks below from its lower neighbour, adds its own part,
 * and sends the sum to the neighbour above. In S segments it is a pipeline.
 *
 *	(p-1) (alpha + n beta + n gamma), or (p + S - 2) (alpha + (n beta + n gamma) / S)
 */
#include "algo/common/partial.h"

static u32 segments_of(const struct coll_call *call, const struct coll_tuning *tuning)
{
	return pipeline_parts(call, tuning, call->ranks > 2 ? call->ranks - 2 : 0);
}

/* The prefix of the ranks below, or COLL_NONE: there are none. */
static u32 emit_below(struct coll_build *b, const struct coll_call *call, u64 to, u64 bytes)
{
	return call->rank ? coll_emit_recv(b, call->rank - 1, to, bytes) : COLL_NONE;
}

static bool has_above(const struct coll_call *call)
{
	return call->rank + 1 < call->ranks;
}

static void emit_scan_segment(struct coll_build *b, const struct coll_call *call, u64 offset,
			      u64 bytes)
{
	const u64 own = call_input(call) + offset, out = COLL_ADDRESS(COLL_OUT, offset);
	const u64 below = call->rank ? coll_emit_scratch(b, bytes) : own;
	const u32 received = emit_below(b, call, below, bytes);
	struct coll_partial sum = { own, COLL_NONE };

	if (call->rank) {
		coll_emit_after(b, received);
		sum.ready = coll_emit_reduce(b, out, below, own, bytes);
		sum.place = out;
	}
	if (has_above(call)) {
		coll_emit_after(b, sum.ready);
		coll_emit_send(b, call->rank + 1, sum.place, bytes);
	}
	if (!call->rank && !call->in_place)
		coll_emit_copy(b, out, own, bytes);
}

/* In place the prefix may not go to OUT before my part there has been used. */
static void emit_exscan_segment(struct coll_build *b, const struct coll_call *call, u64 offset,
				u64 bytes)
{
	const u64 own = call_input(call) + offset, out = COLL_ADDRESS(COLL_OUT, offset);
	const bool detour = call->rank && call->in_place && has_above(call);
	const u64 below = detour ? coll_emit_scratch(b, bytes) : out;
	const u32 received = emit_below(b, call, below, bytes);
	struct coll_partial sum = { own, COLL_NONE };

	if (!has_above(call))
		return;
	if (call->rank) {
		sum.place = coll_emit_scratch(b, bytes);
		coll_emit_after(b, received);
		sum.ready = coll_emit_reduce(b, sum.place, below, own, bytes);
	}
	coll_emit_after(b, sum.ready);
	coll_emit_send(b, call->rank + 1, sum.place, bytes);
	if (detour) {
		coll_emit_after(b, sum.ready);
		coll_emit_copy(b, out, below, bytes);
	}
}

static void scan_linear_emit(struct coll_build *b, const struct coll_call *call,
			     const struct coll_tuning *tuning)
{
	const u32 segments = segments_of(call, tuning);
	u32 i;

	for (i = 0; i < segments; i++) {
		const u64 offset = part_offset(call, segments, i);
		const u64 bytes = part_bytes(call, segments, i);

		if (call->collective == COLL_SCAN)
			emit_scan_segment(b, call, offset, bytes);
		else
			emit_exscan_segment(b, call, offset, bytes);
	}
}

static double scan_linear_cost(const struct coll_call *call, const struct coll_tuning *tuning,
			       const struct coll_machine *m)
{
	const u32 segments = segments_of(call, tuning);

	if (call->ranks == 1)
		return 0;
	return pipeline_cost(call, m, call->ranks - 1, segments, call_bytes(call), m->gamma);
}

const struct coll_algo coll_scan_linear = {
	.collective = COLL_SCAN,
	.name = "linear",
	.about = "from neighbour to neighbour: p - 1 messages in a row; in segments a pipeline",
	.neighbours = true,
	.ordered = true,
	.options = "segment",
	.refuses = pipeline_refuses,
	.cost = scan_linear_cost,
	.emit = scan_linear_emit,
};

const struct coll_algo coll_exscan_linear = {
	.collective = COLL_EXSCAN,
	.name = "linear",
	.about = "from neighbour to neighbour: p - 1 messages in a row; in segments a pipeline",
	.neighbours = true,
	.ordered = true,
	.options = "segment",
	.refuses = pipeline_refuses,
	.cost = scan_linear_cost,
	.emit = scan_linear_emit,
};
