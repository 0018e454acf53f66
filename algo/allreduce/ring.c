// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Ring (Patarasuk, Yuan 2009): p parts travel once around and are summed on the way, then once
 * more to be copied to all ranks. No algorithm sends fewer bytes, and only neighbours talk.
 *
 *	2 (p-1) alpha + (1 - 1/p) n (2 beta + gamma)
 *
 * In S segments that go around independently, a part's latencies and reductions overlap the transport of
 * another: alpha and gamma become a part of S, for 4 (p-1) (S - 1) overheads.
 *
 * With k ports for circuits, k rings without a common link carry a k-th each. No schedule
 * brings the bytes of an allreduce through k ports in less time.
 *
 *	2 (p-1) alpha + (1 - 1/p) n (2 beta + gamma) / k	and one reconfiguration delay
 *
 * A part is summed in scratch, where it arrives, and completed into OUT by one rank alone, so
 * all ranks have the same bits.
 */
#include "algo/common/partial.h"
#include "algo/circuits/rings.h"

struct ring {
	const struct coll_call *call;
	u32 stride;		/* ranks from one to the next */
	u32 left, right;
	u64 offset;		/* where the segment that goes around begins */
};

/* The part that is `steps` before mine on the ring. */
static u32 part_before(const struct ring *ring, u32 steps)
{
	return ring_down(ring->call->rank, ring->stride, steps, ring->call->ranks);
}

static u64 offset_of(const struct ring *ring, u32 part)
{
	return ring->offset + part_offset(ring->call, ring->call->ranks, part);
}

static u64 bytes_of(const struct ring *ring, u32 part)
{
	return part_bytes(ring->call, ring->call->ranks, part);
}

/*
 * The reductions follow each other, so after the last one, which is returned,
 * nothing reads the input any more but perhaps the first send, *sent.
 */
static u32 emit_reduce_scatter(struct coll_build *b, const struct ring *ring, u32 *sent)
{
	const u64 input = call_input(ring->call);
	const u32 ranks = ring->call->ranks, first = part_before(ring, 1);
	u32 reduced, k;

	reduced = COLL_NONE;
	*sent = coll_emit_send_nonempty(b, ring->right, input + offset_of(ring, first),
					bytes_of(ring, first));
	for (k = 2; k <= ranks; k++) {
		const u32 part = part_before(ring, k);
		const u64 own = input + offset_of(ring, part), n = bytes_of(ring, part);
		const u64 sum = coll_emit_scratch(b, n);
		u32 received = coll_emit_recv_nonempty(b, ring->left, sum, n);

		coll_emit_after(b, reduced);
		coll_emit_after(b, received);
		if (k == ranks)
			return coll_emit_reduce(b, COLL_ADDRESS(COLL_OUT, offset_of(ring, part)),
						sum, own, n);
		reduced = coll_emit_reduce(b, sum, sum, own, n);
		coll_emit_after(b, reduced);
		coll_emit_send_nonempty(b, ring->right, sum, n);
	}
	return reduced;
}

static void emit_allgather(struct coll_build *b, const struct ring *ring, u32 ready, u32 sent)
{
	const u32 reduced = ready;
	u32 k;

	for (k = 1; k < ring->call->ranks; k++) {
		const u32 have = part_before(ring, k - 1), next = part_before(ring, k);

		coll_emit_after(b, ready);
		coll_emit_send_nonempty(b, ring->right,
					COLL_ADDRESS(COLL_OUT, offset_of(ring, have)),
					bytes_of(ring, have));
		if (ring->call->in_place) {
			coll_emit_after(b, reduced);
			coll_emit_after(b, sent);
		}
		ready = coll_emit_recv_nonempty(b, ring->left,
						COLL_ADDRESS(COLL_OUT, offset_of(ring, next)),
						bytes_of(ring, next));
	}
}

/* A message carries a p-th of a segment. */
static u32 segments_of(const struct coll_call *call, const struct coll_tuning *tuning)
{
	struct coll_call message = *call;

	message.count = (call->count + call->ranks - 1) / call->ranks;
	return pipeline_parts(&message, tuning, 0);
}

/* Once around and once more, with part `i` of `parts` of the vector. */
static void emit_part_of(struct coll_build *b, const struct coll_call *call, u32 stride, u32 parts,
			 u32 i)
{
	struct coll_call part = *call;
	const struct ring ring = {
		.call = &part,
		.stride = stride,
		.left = ring_down(call->rank, stride, 1, call->ranks),
		.right = ring_up(call->rank, stride, 1, call->ranks),
		.offset = part_offset(call, parts, i),
	};
	u32 reduced, sent;

	part.count = part_bytes(call, parts, i) / call->element;
	reduced = emit_reduce_scatter(b, &ring, &sent);
	emit_allgather(b, &ring, reduced, sent);
}

static void allreduce_ring_emit(struct coll_build *b, const struct coll_call *call,
				const struct coll_tuning *tuning)
{
	const u32 segments = segments_of(call, tuning);
	u32 i;

	if (call->ranks == 1)
		coll_emit_single_rank(b, call, call_bytes(call));
	for (i = 0; call->ranks > 1 && i < segments; i++)
		emit_part_of(b, call, 1, segments, i);
}

static void emit_rings(struct coll_build *b, const struct coll_call *call,
		       const struct coll_tuning *tuning)
{
	const struct coll_rings rings = rings_of(call->ranks, tuning->ports);
	u32 i;

	if (call->ranks == 1)
		coll_emit_single_rank(b, call, call_bytes(call));
	for (i = 0; call->ranks > 1 && i < rings.count; i++)
		emit_part_of(b, call, rings.stride[i], rings.count, i);
}

static double allreduce_ring_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				  const struct coll_machine *m)
{
	const double p = call->ranks, n = call_bytes(call), s = segments_of(call, tuning);

	return symmetric_cost(call, m,
			      segmented_cost(m, s, 2 * (p - 1), (1 - 1 / p) * n * 2 * m->beta,
					     (1 - 1 / p) * n * m->gamma));
}

const struct coll_algo coll_allreduce_ring = {
	.collective = COLL_ALLREDUCE,
	.name = "ring",
	.about = "around the ring twice: 2 (p - 1) messages, fewest bytes, neighbours only",
	.neighbours = true,
	.regular = COLL_REGULAR | COLL_REGULAR_EVEN_PARTS,
	.options = "segment",
	.refuses = pipeline_refuses,
	.cost = allreduce_ring_cost,
	.emit = allreduce_ring_emit,
};

static double cost_rings(const struct coll_call *call, const struct coll_tuning *tuning,
			 const struct coll_machine *m)
{
	const double p = call->ranks, n = call_bytes(call);
	const double k = rings_of(call->ranks, tuning->ports).count;

	return symmetric_cost(
		call, m, k * 2 * (p - 1) * m->alpha + (1 - 1 / p) * n * (2 * m->beta + m->gamma));
}

const struct coll_algo coll_allreduce_rings = {
	.collective = COLL_ALLREDUCE,
	.name = "rings",
	.about = "as many rings as there are ports, a part on each: circuits, long vectors",
	.cost = cost_rings,
	.emit = emit_rings,
};
