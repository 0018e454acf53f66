// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Defects planted on purpose: one op of one rank is changed, and the schedule is built again.
 * Slots and peers are then those of a wrong algorithm that is written correctly, which the check
 * alone does not find.
 */
#include <string.h>

#include "verify.h"

enum defect {
	DROP_WAIT, ANY_WAIT, SWAP_OPERANDS, WRONG_PEER, SKIP_SEND, SKIP_RECV, SKIP_LOCAL,
	WRONG_OFFSET, SHORT_MESSAGE, DOUBLE_REDUCE, SKIP_CONNECT, SKIP_RELEASE, EARLY_CONNECT,
	EARLY_RELEASE,
};

const char *const plant_names[] = {
	[DROP_WAIT] = "drop-wait",		/* an op starts too early */
	[ANY_WAIT] = "any-wait",		/* an op waits for one instead of all */
	[SWAP_OPERANDS] = "swap-operands",	/* operands of a reduce swapped */
	[WRONG_PEER] = "wrong-peer",		/* a message to or from another rank */
	[SKIP_SEND] = "skip-send",
	[SKIP_RECV] = "skip-recv",
	[SKIP_LOCAL] = "skip-local",		/* a reduce or copy is missing */
	[WRONG_OFFSET] = "wrong-offset",	/* an op works one element off */
	[SHORT_MESSAGE] = "short-message",	/* one element less is sent */
	[DOUBLE_REDUCE] = "double-reduce",	/* an operand is reduced twice */
	[SKIP_CONNECT] = "skip-connect",	/* a circuit is not requested */
	[SKIP_RELEASE] = "skip-release",	/* ... or not released */
	[EARLY_CONNECT] = "early-connect",	/* ... requested before a port is free */
	[EARLY_RELEASE] = "early-release",	/* ... released before a message is done */
	NULL,
};

static bool place_moves(const struct coll_schedule *s, u64 place, u64 bytes, u64 *moved)
{
	const u64 size = s->buffer[COLL_ADDRESS_BUFFER(place)];

	if (COLL_ADDRESS_OFFSET(place) + bytes + ELEMENT <= size)
		*moved = place + ELEMENT;
	else if (COLL_ADDRESS_OFFSET(place) >= ELEMENT)
		*moved = place - ELEMENT;
	else
		return false;
	return true;
}

/* Changes `op` of `s`; false: this op cannot have the defect. */
static bool change_op(const struct coll_schedule *s, enum defect defect, struct coll_op *op)
{
	const bool send = op->kind == COLL_OP_SEND, recv = op->kind == COLL_OP_RECV;
	const bool local = op->kind == COLL_OP_REDUCE || op->kind == COLL_OP_COPY;
	const u64 left = op->left;

	switch (defect) {
	case DROP_WAIT:
		return op->waits && !(op->flags & COLL_WAIT_ANY);
	case ANY_WAIT:
		return op->waits > 1 && !(op->flags & COLL_WAIT_ANY);
	case SWAP_OPERANDS:
		op->left = op->right;
		op->right = left;
		return op->kind == COLL_OP_REDUCE && op->bytes;
	case WRONG_PEER:
		return (send || recv) && s->ranks > 2;
	case SKIP_SEND:
		return send;
	case SKIP_RECV:
		return recv;
	case SKIP_LOCAL:
		return local && op->bytes;
	case WRONG_OFFSET:
		if (!op->bytes)
			return false;
		return recv ? place_moves(s, op->result, op->bytes, &op->result) :
			      place_moves(s, op->left, op->bytes, &op->left);
	case SHORT_MESSAGE:
		op->bytes -= ELEMENT;
		return send && op->bytes + ELEMENT;
	case DOUBLE_REDUCE:
		return op->kind == COLL_OP_REDUCE && op->bytes;
	case SKIP_CONNECT:
		return op->kind == COLL_OP_CONNECT;
	case SKIP_RELEASE:
		return op->kind == COLL_OP_RELEASE;
	case EARLY_CONNECT:
		return op->kind == COLL_OP_CONNECT && op->waits;
	case EARLY_RELEASE:
		return op->kind == COLL_OP_RELEASE && op->waits > 1;
	}
	return false;
}

static u32 emit_kind(struct coll_build *b, const struct coll_op *op, u32 peer)
{
	switch (op->kind) {
	case COLL_OP_SEND:
		return coll_emit_send(b, peer, op->left, op->bytes);
	case COLL_OP_RECV:
		return coll_emit_recv(b, peer, op->result, op->bytes);
	case COLL_OP_REDUCE:
		return coll_emit_reduce(b, op->result, op->left, op->right, op->bytes);
	case COLL_OP_COPY:
		return coll_emit_copy(b, op->result, op->left, op->bytes);
	case COLL_OP_CONNECT:
		return coll_emit_connect(b, peer);
	default:
		return coll_emit_release(b, peer);
	}
}

enum { SKIP_ALL = COLL_NONE - 1 };

/* Adds the waits of the next op; `skip`: all except the wait of this number, or all. */
static void emit_waits(struct coll_build *b, const struct coll_schedule *s,
		       const struct coll_op *op, bool any, u32 skip, const u32 *new_index)
{
	u32 k;

	for (k = 0; k < op->waits; k++) {
		u32 earlier = new_index[coll_waits(s)[op->wait + k]];

		if (k == skip || skip == SKIP_ALL)
			continue;
		if (any)
			coll_emit_any(b, earlier);
		else
			coll_emit_after(b, earlier);
	}
	if (op->flags & COLL_OPTIONAL)
		coll_emit_optional(b);
	if (op->unless != COLL_NONE)
		coll_emit_unless(b, new_index[op->unless]);
}

static u32 other_rank(struct world *w, u32 rank, u32 peer)
{
	u32 other;

	do
		other = dice_below(&w->random, w->ranks);
	while (other == rank || other == peer);
	return other;
}

/* Adds one op, with the defect if it is the target. Returns its new index. */
static u32 emit_again(struct world *w, struct coll_build *b, const struct coll_schedule *s,
		      u32 index, enum defect defect, bool target, const u32 *new_index)
{
	struct coll_op op = coll_ops(s)[index];
	u32 peer = coll_op_rank(s, &op), skip = COLL_NONE, again;
	bool any = op.flags & COLL_WAIT_ANY;

	if (target) {
		change_op(s, defect, &op);
		if (defect == DROP_WAIT)
			skip = dice_below(&w->random, op.waits);
		if (defect == EARLY_CONNECT)
			skip = SKIP_ALL;
		if (defect == EARLY_RELEASE)	/* the first wait is its connect */
			skip = 1 + dice_below(&w->random, op.waits - 1);
		any |= defect == ANY_WAIT;
		if (defect == WRONG_PEER)
			peer = other_rank(w, s->rank, peer);
	}
	coll_build_reduction(b, op.type, op.reduction, s->element);
	emit_waits(b, s, &op, any, skip, new_index);
	if (target && (defect == SKIP_SEND || defect == SKIP_RECV || defect == SKIP_LOCAL ||
		       defect == SKIP_CONNECT || defect == SKIP_RELEASE))
		return coll_emit_join(b);
	coll_emit_one_way(b, op.flags & COLL_ONE_WAY);
	again = emit_kind(b, &op, peer);
	if (!target || defect != DOUBLE_REDUCE)
		return again;
	coll_emit_after(b, again);
	if (op.flags & COLL_OPTIONAL)
		coll_emit_optional(b);
	return coll_emit_reduce(b, op.result, op.result, op.right == op.result ? op.left : op.right,
				op.bytes);
}

/* Builds the rank's schedule again, with the defect in this op. */
static bool plant_rebuild(struct world *w, u32 rank, u32 target, enum defect defect)
{
	const struct coll_schedule *s = w->rank[rank].schedule;
	u32 *new_index = arena_get(&w->arena, s->ops, sizeof(u32));
	const u64 bytes = 4096 + 256 * ((u64)s->ops + s->peers + s->waits);
	void *memory = arena_get(&w->arena, 1, bytes);
	struct coll_build b;
	u32 i;

	coll_build_init(&b, memory, bytes, rank, s->ranks);
	coll_build_buffers(&b, s->buffer[COLL_IN], s->buffer[COLL_OUT]);
	coll_emit_scratch(&b, s->buffer[COLL_SCRATCH]);
	for (i = 0; i < s->ops; i++)
		new_index[i] = emit_again(w, &b, s, i, defect, i == target, new_index);
	return !coll_build_finish(&b, &w->rank[rank].schedule);
}

static bool plant_in_rank(struct world *w, u32 rank, enum defect defect)
{
	const struct coll_schedule *s = w->rank[rank].schedule;
	u32 *possible = arena_get(&w->arena, s->ops, sizeof(u32)), count = 0, i;

	for (i = 0; i < s->ops; i++) {
		struct coll_op op = coll_ops(s)[i];

		if (change_op(s, defect, &op))
			possible[count++] = i;
	}
	return count && plant_rebuild(w, rank, possible[dice_below(&w->random, count)], defect);
}

bool plant_defect(struct world *w, const char *name)
{
	u32 start = dice_below(&w->random, w->ranks), defect, i;

	for (defect = 0; strcmp(plant_names[defect], name); defect++)
		;
	for (i = 0; i < w->ranks; i++)
		if (plant_in_rank(w, (start + i) % w->ranks, defect))
			return true;
	return false;
}
