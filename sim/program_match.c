// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Which send belongs to which receive: once, for all ranks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "program_make.h"

/* The receives of one rank, or its sends, by peer and slot. */
struct match_inbox {
	u32 rank, kind, count, emit_buffer;
	struct {
		u32 peer, slot, op;
	} *message;
};

/*
 * Consecutive ops of a schedule use its peers in turn, so both inboxes of each rank are kept, or as
 * many as this memory has space for: one that is not is filled and sorted again.
 */
enum { INBOXES_LEAST = 128, INBOXES_BYTES = 256 << 20 };

struct match_inboxes {
	struct match_inbox *inbox;
	u32 count;
};

static int inboxes_new(const struct sim_program_making *m, struct match_inboxes *all)
{
	u32 most = 0, c, i;
	u64 fit;

	for (c = 0; c < m->p->classes; c++)
		if (m->p->class[c].schedule->ops > most)
			most = m->p->class[c].schedule->ops;
	fit = INBOXES_BYTES / (sizeof(*all->inbox) + (u64)most * sizeof(*all->inbox->message));
	fit = fit < INBOXES_LEAST ? INBOXES_LEAST : fit;
	all->count = fit < 2ull * m->p->ranks ? fit : 2 * m->p->ranks;
	all->inbox = calloc(all->count, sizeof(*all->inbox));
	if (!all->inbox)
		return program_wrong(m, -ENOMEM, "out of memory");
	for (i = 0; i < all->count; i++)
		all->inbox[i].rank = COLL_NONE;
	return 0;
}

static void inboxes_free(struct match_inboxes *all)
{
	u32 i;

	for (i = 0; all->inbox && i < all->count; i++)
		free(all->inbox[i].message);
	free(all->inbox);
}

static int compare_messages(const void *left, const void *right)
{
	const u32 *a = left, *b = right;	/* peer, slot */

	if (a[0] != b[0])
		return a[0] < b[0] ? -1 : 1;
	return (a[1] > b[1]) - (a[1] < b[1]);
}

static int inbox_fill(const struct sim_program_making *m, struct match_inbox *inbox, u32 rank,
		      u32 kind)
{
	const struct sim_class *class = &m->p->class[program_class_of(m->p, rank)];
	const struct coll_op *op = coll_ops(class->schedule);
	u32 i;

	if (class->schedule->ops > inbox->emit_buffer) {
		void *more = realloc(inbox->message,
				     class->schedule->ops * sizeof(*inbox->message));

		if (!more)
			return program_wrong(m, -ENOMEM, "out of memory");
		inbox->message = more;
		inbox->emit_buffer = class->schedule->ops;
	}
	inbox->rank = rank;
	inbox->kind = kind;
	inbox->count = 0;
	for (i = 0; i < class->schedule->ops; i++)
		if (op[i].kind == kind) {
			inbox->message[inbox->count].peer =
				program_peer_rank(m->p, &class->peer[i], rank);
			inbox->message[inbox->count].slot = op[i].slot;
			inbox->message[inbox->count++].op = i;
		}
	if (inbox->count)
		qsort(inbox->message, inbox->count, sizeof(*inbox->message), compare_messages);
	return 0;
}

static u32 inbox_find(const struct match_inbox *inbox, u32 peer, u32 slot)
{
	const u32 key[2] = { peer, slot };
	const u32 *found = inbox->count ? bsearch(key, inbox->message, inbox->count,
						  sizeof(*inbox->message), compare_messages) :
					  NULL;

	return found ? found[2] : COLL_NONE;
}

static u32 other_kind(const struct coll_op *op)
{
	return op->kind == COLL_OP_SEND ? COLL_OP_RECV : COLL_OP_SEND;
}

/* Whether `op` of this rank and op `other` of its peer are one message. */
static bool program_matches(const struct sim_program *p, const struct sim_class *class, u32 op,
			    u32 rank, u32 other)
{
	const struct coll_op *mine = &coll_ops(class->schedule)[op], *theirs;
	const u32 peer = program_peer_rank(p, &class->peer[op], rank);
	const struct sim_class *its = &p->class[program_class_of(p, peer)];

	if (other >= its->schedule->ops)
		return false;
	theirs = &coll_ops(its->schedule)[other];
	return theirs->kind == other_kind(mine) && theirs->slot == mine->slot &&
	       theirs->bytes == mine->bytes &&
	       program_peer_rank(p, &its->peer[other], peer) == rank;
}

static int find_match(struct sim_program_making *m, const struct match_inboxes *all,
		      const struct sim_class *class, u32 op, u32 rank, u32 *other)
{
	const struct coll_op *mine = &coll_ops(class->schedule)[op];
	const u32 peer = program_peer_rank(m->p, &class->peer[op], rank);
	struct match_inbox *inbox = &all->inbox[(2 * peer + (mine->kind == COLL_OP_SEND)) % all->count];
	int error;

	if (inbox->rank != peer || inbox->kind != other_kind(mine)) {
		error = inbox_fill(m, inbox, peer, other_kind(mine));
		if (error)
			return error;
	}
	*other = inbox_find(inbox, rank, mine->slot);
	if (*other != COLL_NONE && program_matches(m->p, class, op, rank, *other))
		return 0;
	snprintf(m->why, m->why_bytes, "rank %u, op %u: rank %u has no matching op", rank, op,
		 peer);
	return -EINVAL;
}

/* Whether the message of `op` is that of `other` for all members. */
static bool all_match(const struct sim_program_making *m, const struct sim_class *class, u32 op,
		      u32 other)
{
	const u32 count = m->sampled ? SAMPLES : class->members;
	u32 i;

	for (i = 0; i < count; i++)
		if (!program_matches(m->p, class, op,
				     program_rank(class, m->sampled ?
						  program_sample_rank(i, class->members) : i),
				     other))
			return false;
	return true;
}

/* With peers of few classes, an op that matches for one member matches for many. */
struct match_guesses {
	u32 count, next;
	u32 op[8];
};

static int guess_match(struct sim_program_making *m, const struct match_inboxes *all,
		       const struct sim_class *class, u32 op, u32 rank,
		       struct match_guesses *guesses, u32 *other)
{
	const u32 most = sizeof(guesses->op) / sizeof(*guesses->op);
	u32 i;
	int error;

	for (i = 0; i < guesses->count; i++)
		if (program_matches(m->p, class, op, rank, guesses->op[i])) {
			*other = guesses->op[i];
			return 0;
		}
	error = find_match(m, all, class, op, rank, other);
	guesses->op[guesses->next] = *other;
	guesses->next = (guesses->next + 1) % most;
	guesses->count += guesses->count < most;
	return error;
}

/* The same op of the peer for all members, if they agree; else one for each. */
static int match_op(struct sim_program_making *m, const struct match_inboxes *all,
		    struct sim_class *class, u32 op)
{
	struct match_guesses guesses = { 0 };
	u32 other, i;
	int error = find_match(m, all, class, op, program_rank(class, 0), &other);

	if (error)
		return error;
	if (all_match(m, class, op, other)) {
		class->match[op] = other;
		return 0;
	}
	class->match_list[op] = malloc(class->members * sizeof(u32));
	if (!class->match_list[op])
		return program_wrong(m, -ENOMEM, "out of memory");
	for (i = 0; i < class->members && !error; i++)
		error = guess_match(m, all, class, op, program_rank(class, i), &guesses,
				    &class->match_list[op][i]);
	return error;
}

static void bytes_seen(struct sim_program *p, const struct coll_op *op)
{
	u64 *most = op->kind == COLL_OP_SEND || op->kind == COLL_OP_RECV ? &p->sent : &p->worked;

	if (*most < op->bytes)
		*most = op->bytes;
}

int program_match(struct sim_program_making *m)
{
	struct sim_program *p = m->p;
	struct match_inboxes all;
	u32 c, i;
	int error = inboxes_new(m, &all);

	for (c = 0; c < p->classes && !error; c++) {
		struct sim_class *class = &p->class[c];
		const struct coll_op *op = coll_ops(class->schedule);

		for (i = 0; i < class->schedule->ops && !error; i++) {
			if (op[i].kind == COLL_OP_SEND || op[i].kind == COLL_OP_RECV)
				error = match_op(m, &all, class, i);
			if (op[i].kind == COLL_OP_SEND)
				p->sends += class->members;
			bytes_seen(p, &op[i]);
		}
	}
	inboxes_free(&all);
	return error;
}
