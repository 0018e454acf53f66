// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "check.h"
#include "reduce.h"

struct check_state {
	const struct coll_schedule *schedule;
	u32 *sends, *recvs;	/* per peer: messages seen so far */
	u32 next_wait;		/* where the next op's waits must begin */
};

/* Sizes that cannot overflow and do not exceed `bytes`. */
static const char *check_header(const struct coll_schedule *s, u64 bytes, int *error)
{
	u32 i;

	*error = -EINVAL;
	if (bytes < sizeof(*s))
		return "shorter than its header";
	if (s->magic != COLL_SCHEDULE_MAGIC)
		return "not a schedule: wrong magic number";
	if (s->version != COLL_SCHEDULE_VERSION)
		return "unknown version";
	if (s->zero)
		return "the header's reserved field is not zero";
	*error = -E2BIG;
	if (s->ranks > COLL_RANKS_MAX)
		return "more ranks than COLL_RANKS_MAX";
	if (s->ops > COLL_OPS_MAX)
		return "more ops than COLL_OPS_MAX";
	if (s->waits > COLL_WAITS_MAX)
		return "more waits than COLL_WAITS_MAX";
	for (i = 0; i < COLL_BUFFERS; i++)
		if (s->buffer[i] > COLL_BYTES_MAX)
			return "a buffer larger than COLL_BYTES_MAX";
	*error = -EINVAL;
	if (s->rank >= s->ranks)
		return "its rank is not below the number of ranks";
	if (s->peers >= s->ranks)
		return "more peers than other ranks";
	if (s->bytes != bytes || bytes != coll_schedule_bytes(s->ops, s->peers, s->waits))
		return "its size does not fit its counts";
	return NULL;
}

static const char *check_peers(const struct coll_schedule *s)
{
	const struct coll_peer *peer = coll_peers(s);
	u32 i;

	for (i = 0; i < s->peers; i++) {
		if (peer[i].rank >= s->ranks)
			return "a peer's rank is not below the number of ranks";
		if (peer[i].rank == s->rank)
			return "the rank itself is among the peers";
		if (i && peer[i].rank <= peer[i - 1].rank)
			return "the peers are not in ascending order";
		if (peer[i].sends > s->ops || peer[i].recvs > s->ops)
			return "a peer has more messages than there are ops";
		if (peer[i].zero)
			return "a peer's reserved field is not zero";
	}
	return NULL;
}

static bool range_is_inside(const struct coll_schedule *s, u64 address, u64 bytes)
{
	u32 buffer = COLL_ADDRESS_BUFFER(address);

	return buffer < COLL_BUFFERS && bytes <= s->buffer[buffer] &&
	       COLL_ADDRESS_OFFSET(address) <= s->buffer[buffer] - bytes;
}

static bool ranges_overlap(u64 a, u64 b, u64 bytes)
{
	/* Buffers differ in the top bits, so distance alone decides. */
	return (a > b ? a - b : b - a) < bytes;
}

static bool is_in_buffer(u64 address, enum coll_buffer buffer)
{
	return COLL_ADDRESS_BUFFER(address) == buffer;
}

static const char *check_waits(struct check_state *c, const struct coll_op *op, u32 index)
{
	const struct coll_schedule *s = c->schedule;
	const struct coll_op *ops = coll_ops(s);
	const u32 *wait = coll_waits(s);
	bool optional = op->flags & COLL_OPTIONAL;
	u32 i;

	if (op->wait != c->next_wait || op->waits > s->waits - c->next_wait)
		return "its waits do not follow those of the op before";
	c->next_wait += op->waits;
	for (i = 0; i < op->waits; i++) {
		u32 earlier = wait[op->wait + i];

		if (earlier >= index)
			return "it waits for an op that is not before it";
		if (!optional && !(op->flags & COLL_WAIT_ANY) &&
		    ops[earlier].flags & COLL_OPTIONAL)
			return "mandatory, it needs an optional op that may never happen";
	}
	if (op->flags & COLL_WAIT_ANY && !op->waits)
		return "it waits for any op of none";
	if (op->unless != COLL_NONE && op->unless >= index)
		return "its `unless` names an op that is not before it";
	if (op->unless != COLL_NONE && !optional)
		return "only an optional op can be skipped";
	return NULL;
}

/* Peer and slot: a message of its pair in order, or nothing at all. */
static const char *check_peer(struct check_state *c, const struct coll_op *op)
{
	bool message = op->kind == COLL_OP_SEND || op->kind == COLL_OP_RECV;
	u32 *seen;

	if (op->kind == COLL_OP_REDUCE || op->kind == COLL_OP_COPY) {
		if (op->peer != COLL_NONE)
			return "a local op names a peer";
	} else if (op->peer >= c->schedule->peers) {
		return "its peer is not in the peer table";
	}
	if (!message)
		return op->slot == COLL_NONE ? NULL : "only messages have a slot";
	seen = op->kind == COLL_OP_SEND ? c->sends : c->recvs;
	if (op->slot != seen[op->peer])
		return "its slot is not the next one of this pair";
	seen[op->peer]++;
	return NULL;
}

static const char *check_reduce(const struct coll_schedule *s, const struct coll_op *op)
{
	u32 element = op->type == COLL_OPAQUE_TYPE ? s->element : coll_type_bytes(op->type);

	if (!element)
		return "a type of no known size";
	if (!coll_reduction_fits(op->type, op->reduction))
		return "this reduction is not defined for this type";
	if (op->bytes % element)
		return "its bytes are no whole number of elements";
	if (!range_is_inside(s, op->left, op->bytes) || !range_is_inside(s, op->right, op->bytes) ||
	    !range_is_inside(s, op->result, op->bytes))
		return "it touches bytes outside its buffers";
	if (is_in_buffer(op->result, COLL_IN))
		return "it writes into the input buffer";
	if (op->result != op->left && ranges_overlap(op->result, op->left, op->bytes))
		return "its result overlaps its left operand";
	if (op->result != op->right && ranges_overlap(op->result, op->right, op->bytes))
		return "its result overlaps its right operand";
	return NULL;
}

/* Addresses that the kind uses lie inside their buffer; the others are 0. */
static const char *check_addresses(const struct coll_schedule *s, const struct coll_op *op)
{
	bool reads = op->kind == COLL_OP_SEND || op->kind == COLL_OP_COPY;
	bool writes = op->kind == COLL_OP_RECV || op->kind == COLL_OP_COPY;

	if (op->kind == COLL_OP_REDUCE)
		return check_reduce(s, op);
	if (op->type || op->reduction || op->right)
		return "only a reduce has a type, a reduction and a right operand";
	if (!reads && op->left)
		return "this kind has no source";
	if (!writes && op->result)
		return "this kind has no destination";
	if (!reads && !writes)
		return op->bytes ? "this kind has no bytes" : NULL;
	if ((reads && !range_is_inside(s, op->left, op->bytes)) ||
	    (writes && !range_is_inside(s, op->result, op->bytes)))
		return "it touches bytes outside its buffers";
	if (writes && op->bytes && is_in_buffer(op->result, COLL_IN))
		return "it writes into the input buffer";
	if (reads && writes && ranges_overlap(op->result, op->left, op->bytes))
		return "its two sides overlap";
	return NULL;
}

/*
 * An optional op can outlive the run, when the application's buffers are the
 * application's again: what takes time (messages) stays in scratch.
 */
static const char *check_optional(const struct coll_op *op)
{
	if (op->kind == COLL_OP_SEND && !is_in_buffer(op->left, COLL_SCRATCH))
		return "optional, it sends from the application's memory";
	if (op->kind == COLL_OP_RECV && !is_in_buffer(op->result, COLL_SCRATCH))
		return "optional, it receives into the application's memory";
	return NULL;
}

static const char *check_op(struct check_state *c, u32 index)
{
	const struct coll_op *op = &coll_ops(c->schedule)[index];
	const char *reason;

	if (op->kind >= COLL_OP_KINDS)
		return "unknown kind of op";
	if (op->flags & ~COLL_OP_FLAGS)
		return "unknown flags";
	if (op->zero)
		return "its reserved field is not zero";
	if (op->flags & COLL_ONE_WAY && op->kind != COLL_OP_CONNECT && op->kind != COLL_OP_RELEASE)
		return "only a circuit can be one-way";
	if ((op->flags & COLL_ONE_WAY) == COLL_ONE_WAY)
		return "a circuit of two ways at once has no such flag";
	if ((reason = check_waits(c, op, index)) || (reason = check_peer(c, op)) ||
	    (reason = check_addresses(c->schedule, op)))
		return reason;
	return op->flags & COLL_OPTIONAL ? check_optional(op) : NULL;
}

u64 coll_check_bytes(const void *schedule, u64 bytes)
{
	const struct coll_schedule *s = schedule;
	int error;

	if (check_header(s, bytes, &error))
		return 0;
	return 2 * (u64)s->peers * sizeof(u32);
}

int coll_check(const void *schedule, u64 bytes, void *work, struct coll_refusal *refusal)
{
	const struct coll_schedule *s = schedule;
	const struct coll_peer *peer;
	struct check_state c = { .schedule = s };
	int error = -EINVAL;
	u32 i;

	refusal->op = COLL_NONE;
	refusal->reason = check_header(s, bytes, &error);
	if (refusal->reason)
		return error;
	refusal->reason = check_peers(s);
	if (refusal->reason)
		return -EINVAL;

	c.sends = work;
	c.recvs = c.sends + s->peers;
	if (s->peers)	/* else there may be no work space at all */
		memset(work, 0, 2 * (u64)s->peers * sizeof(u32));
	for (i = 0; i < s->ops; i++) {
		refusal->reason = check_op(&c, i);
		if (refusal->reason) {
			refusal->op = i;
			return -EINVAL;
		}
	}
	peer = coll_peers(s);
	for (i = 0; i < s->peers; i++)
		if (peer[i].sends != c.sends[i] || peer[i].recvs != c.recvs[i])
			refusal->reason = "a peer's message counts do not fit the ops";
	if (c.next_wait != s->waits)
		refusal->reason = "waits that belong to no op";
	if (s->waits & 1 && coll_waits(s)[s->waits])
		refusal->reason = "the final padding is not zero";
	return refusal->reason ? -EINVAL : 0;
}
