// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tape.h"

void tape_free(struct sim_tape *t)
{
	free(t->op);
	free(t->wait);
	free(t->message);
}

/* Makes space for `more` after `count` pieces. */
static bool pieces_reserve(struct sim_tape *t, void **array, u32 *capacity, u32 count, u32 more,
			   size_t piece, u32 most)
{
	u32 wanted = *capacity ? *capacity : 16;
	void *grown;

	if (t->error)
		return false;
	if (more > most - count) {
		t->error = -E2BIG;
		return false;
	}
	while (wanted < count + more)
		wanted *= 2;
	if (wanted == *capacity)
		return true;
	grown = realloc(*array, wanted * piece);
	if (!grown) {
		t->error = -ENOMEM;
		return false;
	}
	*array = grown;
	*capacity = wanted;
	return true;
}

void tape_after(struct sim_tape *t, u32 op)
{
	if (op != COLL_NONE && pieces_reserve(t, (void **)&t->wait, &t->wait_capacity, t->waits, 1,
					      sizeof(*t->wait), COLL_WAITS_MAX))
		t->wait[t->waits++] = op;
}

static u32 add_op(struct sim_tape *t, struct coll_op op)
{
	if (!pieces_reserve(t, (void **)&t->op, &t->op_capacity, t->ops, 1, sizeof(*t->op),
			    COLL_OPS_MAX))
		return COLL_NONE;
	op.wait = t->next_wait;
	op.waits = t->waits - t->next_wait;
	t->next_wait = t->waits;
	t->op[t->ops] = op;
	return t->ops++;
}

static void add_message(struct sim_tape *t, struct sim_tape_message message)
{
	if (pieces_reserve(t, (void **)&t->message, &t->message_capacity, t->messages, 1,
			   sizeof(*t->message), 2 * COLL_OPS_MAX))
		t->message[t->messages++] = message;
}

u32 tape_send(struct sim_tape *t, u32 peer, u64 bytes, u64 key)
{
	const u32 op = add_op(t, (struct coll_op){ .kind = COLL_OP_SEND, .peer = peer,
						   .unless = COLL_NONE, .bytes = bytes });

	add_message(t, (struct sim_tape_message){ .from = t->rank, .to = peer, .key = key, .op = op,
					      .line = t->line });
	return op;
}

u32 tape_recv(struct sim_tape *t, u32 peer, u64 bytes, u64 key)
{
	const u32 op = add_op(t, (struct coll_op){ .kind = COLL_OP_RECV, .peer = peer,
						   .unless = COLL_NONE, .bytes = bytes });

	add_message(t, (struct sim_tape_message){ .from = peer, .to = t->rank, .key = key, .op = op,
					      .line = t->line, .at_most = true });
	return op;
}

u32 tape_compute(struct sim_tape *t, u64 units)
{
	if (!units)
		return tape_join(t);
	return add_op(t, (struct coll_op){ .kind = COLL_OP_REDUCE,
					   .type = COLL_OPAQUE_TYPE,
					   .reduction = COLL_USER_REDUCTION,
					   .peer = COLL_NONE,
					   .slot = COLL_NONE,
					   .unless = COLL_NONE,
					   .bytes = units });
}

static u32 add_plain(struct sim_tape *t, u8 kind, u32 peer)
{
	return add_op(t, (struct coll_op){ .kind = kind, .peer = peer, .slot = COLL_NONE,
					   .unless = COLL_NONE });
}

u32 tape_join(struct sim_tape *t)
{
	return add_plain(t, COLL_OP_COPY, COLL_NONE);
}

u32 tape_connect(struct sim_tape *t, u32 peer)
{
	return add_plain(t, COLL_OP_CONNECT, peer);
}

u32 tape_release(struct sim_tape *t, u32 peer)
{
	return add_plain(t, COLL_OP_RELEASE, peer);
}

/* ---- whole schedules ------------------------------------------------------------ */

/* Appends one op of `s`, whose first op is `base` here; `end` is the op after its last. */
static void splice_op(struct sim_tape *t, const struct coll_schedule *s, u32 index, const u32 *rank,
		      u32 base, u32 after, u64 key)
{
	struct coll_op op = coll_ops(s)[index];
	const u32 peer = coll_op_rank(s, &op), slot = op.slot;
	u32 i;

	for (i = 0; i < op.waits; i++)
		tape_after(t, base + coll_waits(s)[op.wait + i]);
	if (!op.waits)
		tape_after(t, after);
	if (op.unless != COLL_NONE)
		op.unless += base;
	else if (op.flags & COLL_OPTIONAL)
		op.unless = base + s->ops;
	op.peer = peer == COLL_NONE ? COLL_NONE : rank[peer];
	add_op(t, op);
	if (op.kind == COLL_OP_SEND)
		add_message(t, (struct sim_tape_message){ t->rank, op.peer, key, slot, base + index,
							  t->line, false });
	else if (op.kind == COLL_OP_RECV)
		add_message(t, (struct sim_tape_message){ op.peer, t->rank, key, slot, base + index,
							  t->line, false });
}

/* Marks ops from `base` on that another mandatory op waits for. */
static void mark_waited(const struct sim_tape *t, u32 base, u64 mark)
{
	u32 i, k;

	for (i = base; i < t->ops; i++)
		for (k = 0; k < t->op[i].waits; k++)
			if (!(t->op[i].flags & (COLL_OPTIONAL | COLL_WAIT_ANY)) &&
			    t->wait[t->op[i].wait + k] >= base)
				t->op[t->wait[t->op[i].wait + k]].zero = mark;
}

u32 tape_splice(struct sim_tape *t, const struct coll_schedule *s, const u32 *rank, u32 after,
		u64 key)
{
	const u32 base = t->ops;
	u32 i;

	for (i = 0; i < s->ops; i++)
		splice_op(t, s, i, rank, base, after, key);
	if (t->error)
		return COLL_NONE;
	mark_waited(t, base, 1);
	for (i = base; i < base + s->ops; i++)
		if (!t->op[i].zero && !(t->op[i].flags & COLL_OPTIONAL))
			tape_after(t, i);
	mark_waited(t, base, 0);
	if (!s->ops)
		tape_after(t, after);
	return tape_join(t);
}

/* ---- all ranks -------------------------------------------------------------------- */

static int compare_messages(const void *left, const void *right)
{
	const struct sim_tape_message *a = left, *b = right;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return (a->part > b->part) - (a->part < b->part);
}

/* The messages that all tapes send, or receive, sorted; free(). */
static struct sim_tape_message *tape_gather(const struct sim_tape *tape, u32 ranks, bool sent,
					    u64 *count)
{
	struct sim_tape_message *all;
	u64 at_most = 1;
	u32 r, i;

	for (r = 0; r < ranks; r++)
		at_most += tape[r].messages;
	all = malloc(at_most * sizeof(*all));
	*count = 0;
	for (r = 0; r < ranks && all; r++)
		for (i = 0; i < tape[r].messages; i++)
			if ((tape[r].message[i].from == r) == sent)
				all[(*count)++] = tape[r].message[i];
	if (all)
		qsort(all, *count, sizeof(*all), compare_messages);
	return all;
}

static int one_ended(const struct sim_tape *tape, const struct sim_tape_message *m, bool sent,
		     char *why, size_t bytes)
{
	const u32 here = sent ? m->from : m->to, there = sent ? m->to : m->from;

	snprintf(why, bytes, "%s:%u: rank %u %s rank %u a message that rank %u does not %s",
		 tape[here].name, m->line, here, sent ? "sends to" : "receives from", there, there,
		 sent ? "receive" : "send");
	return -EINVAL;
}

/* Both ends get the slot; the receive gets the bytes that are sent. */
static int join_ends(const struct sim_tape *tape, const struct sim_tape_message *send,
		     const struct sim_tape_message *recv, u32 slot, char *why, size_t bytes)
{
	struct coll_op *from = &tape[send->from].op[send->op], *to = &tape[recv->to].op[recv->op];

	from->slot = to->slot = slot;
	if (recv->at_most ? from->bytes <= to->bytes : from->bytes == to->bytes) {
		to->bytes = from->bytes;
		return 0;
	}
	snprintf(why, bytes, "%s:%u: rank %u receives up to %llu bytes from rank %u, "
		 "which sends %llu (%s:%u)",
		 tape[recv->to].name, recv->line, recv->to, (unsigned long long)to->bytes,
		 recv->from, (unsigned long long)from->bytes, tape[send->from].name, send->line);
	return -EINVAL;
}

static int join_messages(const struct sim_tape *tape, u32 ranks, char *why, size_t bytes)
{
	u64 sends, recvs, i;
	struct sim_tape_message *send = tape_gather(tape, ranks, true, &sends);
	struct sim_tape_message *recv = tape_gather(tape, ranks, false, &recvs);
	int error = send && recv ? 0 : -ENOMEM, order;
	u32 slot = 0;

	for (i = 0; !error && (i < sends || i < recvs); i++) {
		order = i == sends ? 1 : i == recvs ? -1 : compare_messages(&send[i], &recv[i]);
		if (order) {
			error = one_ended(tape, order < 0 ? &send[i] : &recv[i], order < 0, why,
					  bytes);
			break;
		}
		slot = i && send[i].from == send[i - 1].from && send[i].to == send[i - 1].to ?
			       slot + 1 : 0;
		error = join_ends(tape, &send[i], &recv[i], slot, why, bytes);
	}
	free(send);
	free(recv);
	return error;
}

static int compare_peers(const void *left, const void *right)
{
	const struct coll_peer *a = left, *b = right;

	return (a->rank > b->rank) - (a->rank < b->rank);
}

/* The peers of a tape's ops, each once, ascending. */
static u32 collect_peers(const struct sim_tape *t, struct coll_peer *peer)
{
	u32 count = 0, peers = 0, i;

	for (i = 0; i < t->ops; i++)
		if (t->op[i].peer != COLL_NONE)
			peer[count++] = (struct coll_peer){
				.rank = t->op[i].peer,
				.sends = t->op[i].kind == COLL_OP_SEND,
				.recvs = t->op[i].kind == COLL_OP_RECV,
			};
	if (count)
		qsort(peer, count, sizeof(*peer), compare_peers);
	for (i = 0; i < count; i++) {
		if (peers && peer[peers - 1].rank == peer[i].rank) {
			peer[peers - 1].sends += peer[i].sends;
			peer[peers - 1].recvs += peer[i].recvs;
		} else {
			peer[peers++] = peer[i];
		}
	}
	return peers;
}

static struct coll_schedule *tape_finish(const struct sim_tape *t, u32 ranks)
{
	struct coll_peer *peer = malloc((t->ops + 1) * sizeof(*peer));
	const u32 peers = peer ? collect_peers(t, peer) : 0;
	const u64 bytes = coll_schedule_bytes(t->ops, peers, t->waits);
	struct coll_schedule *s = peer ? calloc(1, bytes) : NULL;
	struct coll_op *op;
	u32 i;

	if (s) {
		*s = (struct coll_schedule){
			.magic = COLL_SCHEDULE_MAGIC, .version = COLL_SCHEDULE_VERSION,
			.bytes = bytes, .rank = t->rank, .ranks = ranks, .ops = t->ops,
			.peers = peers, .waits = t->waits, .element = 1,
		};
		op = (struct coll_op *)coll_ops(s);
		memcpy((void *)coll_peers(s), peer, peers * sizeof(*peer));
		if (t->ops)
			memcpy(op, t->op, t->ops * sizeof(*op));
		if (t->waits)
			memcpy((void *)coll_waits(s), t->wait, t->waits * sizeof(u32));
		for (i = 0; i < t->ops; i++)
			if (op[i].peer != COLL_NONE)
				op[i].peer = coll_peer_find(s, op[i].peer);
	}
	free(peer);
	return s;
}

int tapes_finish(struct sim_tape *tape, u32 ranks, struct coll_schedule **schedule, char *why,
		 size_t bytes)
{
	int error = 0;
	u32 r;

	for (r = 0; r < ranks && !error; r++) {
		error = tape[r].error;
		if (error)
			snprintf(why, bytes, "%s:%u: %s", tape[r].name, tape[r].line,
				 error == -E2BIG ? "more ops than a schedule can have" :
						   strerror(-error));
	}
	if (!error)
		error = join_messages(tape, ranks, why, bytes);
	for (r = 0; r < ranks; r++)
		schedule[r] = NULL;
	for (r = 0; r < ranks && !error; r++) {
		schedule[r] = tape_finish(&tape[r], ranks);
		if (!schedule[r])
			error = -ENOMEM;
	}
	for (r = 0; r < ranks && error; r++) {
		free(schedule[r]);
		schedule[r] = NULL;
	}
	if (error == -ENOMEM)
		snprintf(why, bytes, "out of memory");
	return error;
}
