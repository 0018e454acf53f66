// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory while building: header, then room for `capacity` ops, as many peers,
 * four times as many waits, and a hash table. coll_build_finish() slides the
 * parts together; they only ever move towards the header.
 */
#include "build.h"

enum {
	WAITS_PER_OP = 4,
	HASH_PER_OP = 2,
	SCRATCH_ALIGN = 64,
};

static void build_fail(struct coll_build *b, int error)
{
	if (!b->error)
		b->error = error;
}

/* No room: more memory helps, unless the limit of ops is reached. */
static void build_full(struct coll_build *b)
{
	build_fail(b, b->capacity == COLL_OPS_MAX ? -E2BIG : -ENOSPC);
}

void coll_build_init(struct coll_build *b, void *memory, u64 bytes, u32 rank, u32 ranks)
{
	const u64 per_op = sizeof(struct coll_op) + sizeof(struct coll_peer) +
			   WAITS_PER_OP * sizeof(u32) + HASH_PER_OP * sizeof(u32);
	struct coll_schedule *s = memory;
	u32 buckets = 1;

	memset(b, 0, sizeof(*b));
	b->schedule = s;
	b->next_unless = COLL_NONE;
	if (bytes < sizeof(*s) + per_op) {
		build_fail(b, -ENOSPC);
		return;
	}
	if (!ranks || ranks > COLL_RANKS_MAX || rank >= ranks) {
		build_fail(b, -EINVAL);
		return;
	}
	bytes -= sizeof(*s);
	b->capacity = bytes / per_op < COLL_OPS_MAX ? bytes / per_op : COLL_OPS_MAX;
	b->wait_capacity = b->capacity * WAITS_PER_OP;
	while (buckets * 2 <= b->capacity * HASH_PER_OP)
		buckets *= 2;
	b->hash_mask = buckets - 1;

	memset(s, 0, sizeof(*s));
	s->magic = COLL_SCHEDULE_MAGIC;
	s->version = COLL_SCHEDULE_VERSION;
	s->rank = rank;
	s->ranks = ranks;
	b->op = (struct coll_op *)(s + 1);
	b->peer = (struct coll_peer *)(b->op + b->capacity);
	b->wait = (u32 *)(b->peer + b->capacity);
	b->hash = b->wait + b->wait_capacity;
	memset(b->hash, 0, buckets * sizeof(u32));
}

void coll_build_reduction(struct coll_build *b, u32 type, u32 reduction, u32 element)
{
	if (b->error)
		return;
	b->type = type;
	b->reduction = reduction;
	b->schedule->element = element;
}

void coll_build_buffers(struct coll_build *b, u64 in_bytes, u64 out_bytes)
{
	if (b->error)
		return;
	if (in_bytes > COLL_BYTES_MAX || out_bytes > COLL_BYTES_MAX) {
		build_fail(b, -E2BIG);
		return;
	}
	b->schedule->buffer[COLL_IN] = in_bytes;
	b->schedule->buffer[COLL_OUT] = out_bytes;
}

u64 coll_emit_scratch(struct coll_build *b, u64 bytes)
{
	u64 *end, start;

	if (b->error)
		return COLL_ADDRESS(COLL_SCRATCH, 0);
	end = &b->schedule->buffer[COLL_SCRATCH];
	start = (*end + SCRATCH_ALIGN - 1) & ~(u64)(SCRATCH_ALIGN - 1);
	if (bytes > COLL_BYTES_MAX || start + bytes > COLL_BYTES_MAX) {
		build_fail(b, -E2BIG);
		return COLL_ADDRESS(COLL_SCRATCH, 0);
	}
	*end = start + bytes;
	return COLL_ADDRESS(COLL_SCRATCH, start);
}

static void emit_wait(struct coll_build *b, u32 op, u8 flag)
{
	struct coll_schedule *s = b->schedule;

	if (b->error || op == COLL_NONE)
		return;
	/* One op's waits are either all or any. */
	if (op >= s->ops || (s->waits > b->next_wait && (b->next_flags & COLL_WAIT_ANY) != flag)) {
		build_fail(b, -EINVAL);
		return;
	}
	if (s->waits == b->wait_capacity) {
		build_full(b);
		return;
	}
	b->next_flags |= flag;
	b->wait[s->waits++] = op;
}

void coll_emit_after(struct coll_build *b, u32 op)
{
	emit_wait(b, op, 0);
}

void coll_emit_any(struct coll_build *b, u32 op)
{
	emit_wait(b, op, COLL_WAIT_ANY);
}

void coll_emit_optional(struct coll_build *b)
{
	b->next_flags |= COLL_OPTIONAL;
}

void coll_emit_one_way(struct coll_build *b, u8 way)
{
	b->next_flags |= way;
}

void coll_emit_unless(struct coll_build *b, u32 op)
{
	b->next_unless = op;
}

/* ---- phases ------------------------------------------------------------- */

void coll_emit_phase_begin(struct coll_build *b, const struct coll_phase *phase)
{
	if (b->error)
		return;
	if (b->phases == COLL_PHASES_MAX) {
		build_fail(b, -EINVAL);
		return;
	}
	b->phase[b->phases] = phase;
	b->phase_op[b->phases++] = b->schedule->ops;
}

/*
 * The phase's ops that no other op of it waits for; the waits of sends do not
 * count. `zero` is the mark: it is 0 again in the end.
 */
static u32 join_leaves(struct coll_build *b, u32 first, u32 end, bool sends)
{
	u32 leaves = 0, last = COLL_NONE, i, k;

	for (i = first; i < end; i++)
		for (k = 0; k < b->op[i].waits && (sends || b->op[i].kind != COLL_OP_SEND); k++)
			if (b->wait[b->op[i].wait + k] >= first)
				b->op[b->wait[b->op[i].wait + k]].zero = 1;
	for (i = first; i < end; i++) {
		if (!b->op[i].zero && (b->op[i].kind == COLL_OP_SEND) == sends) {
			coll_emit_after(b, i);
			leaves++;
			last = i;
		}
		b->op[i].zero = 0;
	}
	if (leaves > 1)
		return coll_emit_join(b);
	b->schedule->waits -= b->error ? 0 : leaves;	/* a single one needs no join */
	return last;
}

struct coll_phase_end coll_emit_phase_end(struct coll_build *b)
{
	struct coll_phase_end end = { COLL_NONE, COLL_NONE };
	u32 first, ops;

	if (b->error)
		return end;
	first = b->phase_op[--b->phases];
	ops = b->schedule->ops;
	end.ready = join_leaves(b, first, ops, false);
	end.sent = join_leaves(b, first, ops, true);
	if (end.ready == COLL_NONE)
		end.ready = b->phase[b->phases]->after;
	return end;
}

/*
 * The waits that the phases add to an op before it is appended. After an error no phase ends any
 * more, so they may be gone.
 */
static void phase_waits(struct coll_build *b, u8 kind)
{
	u32 i;

	for (i = 0; i < b->phases && !b->error; i++)
		coll_emit_after(b, kind == COLL_OP_RECV ? b->phase[i]->recv_after :
							  b->phase[i]->after);
}

/* The innermost phase's rank in the schedule. */
static u32 phase_rank(struct coll_build *b, u32 rank)
{
	u32 i;

	for (i = b->phases; i--;) {
		if (rank >= b->phase[i]->ranks)
			return COLL_NONE;
		rank = b->phase[i]->rank[rank];
	}
	return rank;
}

static u64 phase_address(const struct coll_build *b, u64 address)
{
	u32 i;

	for (i = b->phases; i-- && COLL_ADDRESS_BUFFER(address) != COLL_SCRATCH;)
		address = COLL_ADDRESS_OFFSET(address) +
			  (COLL_ADDRESS_BUFFER(address) == COLL_IN ? b->phase[i]->in :
								     b->phase[i]->out);
	return address;
}

/* ---- ops ---------------------------------------------------------------- */

/* The peer's entry, new or old; NULL after an error. */
static struct coll_peer *build_peer(struct coll_build *b, u32 number)
{
	struct coll_schedule *s = b->schedule;
	const u32 rank = phase_rank(b, number);
	u32 bucket = rank * 2654435761u & b->hash_mask;

	if (rank >= s->ranks || rank == s->rank) {
		build_fail(b, -EINVAL);
		return NULL;
	}
	for (; b->hash[bucket]; bucket = (bucket + 1) & b->hash_mask)
		if (b->peer[b->hash[bucket] - 1].rank == rank)
			return &b->peer[b->hash[bucket] - 1];
	if (s->peers >= b->capacity || s->peers >= b->hash_mask) {
		build_full(b);
		return NULL;
	}
	b->hash[bucket] = s->peers + 1;
	b->peer[s->peers] = (struct coll_peer){ .rank = rank };
	return &b->peer[s->peers++];
}

/* Appends an op of this kind with the waits and flags named before. */
static struct coll_op *build_op(struct coll_build *b, u8 kind)
{
	struct coll_schedule *s = b->schedule;
	struct coll_op *op;

	phase_waits(b, kind);
	if (b->error)
		return NULL;
	if (s->ops == b->capacity) {
		build_full(b);
		return NULL;
	}
	op = &b->op[s->ops++];
	*op = (struct coll_op){
		.kind = kind,
		.flags = b->next_flags,
		.peer = COLL_NONE,
		.slot = COLL_NONE,
		.wait = b->next_wait,
		.waits = s->waits - b->next_wait,
		.unless = b->next_unless,
	};
	b->next_wait = s->waits;
	b->next_flags = 0;
	b->next_unless = COLL_NONE;
	return op;
}

static u32 build_index(const struct coll_build *b, const struct coll_op *op)
{
	return op ? (u32)(op - b->op) : COLL_NONE;
}

u32 coll_emit_send(struct coll_build *b, u32 rank, u64 from, u64 bytes)
{
	struct coll_op *op = build_op(b, COLL_OP_SEND);
	struct coll_peer *peer = op ? build_peer(b, rank) : NULL;

	if (!peer)
		return COLL_NONE;
	op->peer = peer - b->peer;
	op->slot = peer->sends++;
	op->left = phase_address(b, from);
	op->bytes = bytes;
	return build_index(b, op);
}

u32 coll_emit_recv(struct coll_build *b, u32 rank, u64 to, u64 bytes)
{
	struct coll_op *op = build_op(b, COLL_OP_RECV);
	struct coll_peer *peer = op ? build_peer(b, rank) : NULL;

	if (!peer)
		return COLL_NONE;
	op->peer = peer - b->peer;
	op->slot = peer->recvs++;
	op->result = phase_address(b, to);
	op->bytes = bytes;
	return build_index(b, op);
}

u32 coll_emit_reduce(struct coll_build *b, u64 result, u64 left, u64 right, u64 bytes)
{
	struct coll_op *op = build_op(b, COLL_OP_REDUCE);

	if (!op)
		return COLL_NONE;
	op->type = b->type;
	op->reduction = b->reduction;
	op->result = phase_address(b, result);
	op->left = phase_address(b, left);
	op->right = phase_address(b, right);
	op->bytes = bytes;
	return build_index(b, op);
}

u32 coll_emit_copy(struct coll_build *b, u64 to, u64 from, u64 bytes)
{
	struct coll_op *op = build_op(b, COLL_OP_COPY);

	if (!op)
		return COLL_NONE;
	op->result = phase_address(b, to);
	op->left = phase_address(b, from);
	op->bytes = bytes;
	return build_index(b, op);
}

u32 coll_emit_join(struct coll_build *b)
{
	return coll_emit_copy(b, COLL_ADDRESS(COLL_SCRATCH, 0), COLL_ADDRESS(COLL_SCRATCH, 0), 0);
}

static u32 build_circuit(struct coll_build *b, u8 kind, u32 rank)
{
	struct coll_op *op = build_op(b, kind);
	struct coll_peer *peer = op ? build_peer(b, rank) : NULL;

	if (!peer)
		return COLL_NONE;
	op->peer = peer - b->peer;
	return build_index(b, op);
}

u32 coll_emit_connect(struct coll_build *b, u32 rank)
{
	return build_circuit(b, COLL_OP_CONNECT, rank);
}

u32 coll_emit_release(struct coll_build *b, u32 rank)
{
	return build_circuit(b, COLL_OP_RELEASE, rank);
}

/* Heap sort of order[] by the ranks it stands for: O(n log n), no recursion. */
static void sort_by_rank(u32 *order, u32 count, const struct coll_peer *peer)
{
	u32 start = count / 2, end = count;

	while (end > 1) {
		u32 value, parent, child;

		if (start) {
			value = order[--start];
		} else {
			value = order[--end];
			order[end] = order[0];
		}
		for (parent = start; (child = 2 * parent + 1) < end; parent = child) {
			if (child + 1 < end &&
			    peer[order[child + 1]].rank > peer[order[child]].rank)
				child++;
			if (peer[order[child]].rank <= peer[value].rank)
				break;
			order[parent] = order[child];
		}
		order[parent] = value;
	}
}

int coll_build_finish(struct coll_build *b, struct coll_schedule **schedule)
{
	struct coll_schedule *s = b->schedule;
	struct coll_peer *sorted;
	u32 *order, *place, i;

	if (!b->error && (s->waits != b->next_wait || b->next_flags || b->next_unless != COLL_NONE))
		build_fail(b, -EINVAL);	/* a wait or flag was named, but no op followed */
	if (!b->error && s->waits > COLL_WAITS_MAX)
		build_fail(b, -E2BIG);
	/* The hash has served; its room (2 words a peer) holds the permutation. */
	if (!b->error && 2 * (u64)s->peers > (u64)b->hash_mask + 1)
		build_full(b);
	/* Sorting writes the peers out of place, behind the last of them. */
	if (!b->error && 2 * (u64)s->peers > b->capacity)
		build_full(b);
	if (b->error)
		return b->error;

	order = b->hash;
	place = order + s->peers;
	sorted = b->peer + s->peers;
	for (i = 0; i < s->peers; i++)
		order[i] = i;
	sort_by_rank(order, s->peers, b->peer);
	for (i = 0; i < s->peers; i++) {
		sorted[i] = b->peer[order[i]];
		place[order[i]] = i;
	}
	for (i = 0; i < s->ops; i++)
		if (b->op[i].peer != COLL_NONE)
			b->op[i].peer = place[b->op[i].peer];

	memmove((void *)coll_peers(s), sorted, s->peers * sizeof(*sorted));
	memmove((void *)coll_waits(s), b->wait, s->waits * sizeof(u32));
	s->bytes = coll_schedule_bytes(s->ops, s->peers, s->waits);
	if (s->waits & 1)
		((u32 *)coll_waits(s))[s->waits] = 0;
	*schedule = s;
	return 0;
}
