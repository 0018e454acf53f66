// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdlib.h>
#include <string.h>

#include "core/match.h"
#include "exec.h"
#include "libcoll/engine/memory.h"
#include "libcoll/engine/published.h"
#include "libcoll/link/published.h"
#include "published.h"

enum {
	/* Readers read a piece while the next is copied: in so many, if they are not too short. */
	PIECES = 4,
	PIECE_MIN = 16 << 10,
};

/* ---- marks ------------------------------------------------------------------- */

static bool may_be_published(const struct coll_op *op)
{
	return op->kind == COLL_OP_SEND && !(op->flags & COLL_OPTIONAL) &&
	       (op->bytes >= COLL_PUBLISHED_MIN || op->bytes <= COLL_BOARD_BYTES);
}

/*
 * Whether both start at once and send the same, or, for boards, so many bytes each. No op between the two writes
 * those: it would have to wait for the first, and the other for it.
 */
static bool is_one_publication(const struct coll_schedule *s, const struct coll_op *a,
			       const struct coll_op *b)
{
	return (a->left == b->left || (a->bytes && a->bytes <= COLL_BOARD_BYTES)) && a->bytes == b->bytes &&
	       a->flags == b->flags && a->waits == b->waits &&
	       !memcmp(coll_waits(s) + a->wait, coll_waits(s) + b->wait,
		       a->waits * sizeof(*coll_waits(s)));
}

/* The latter follows the former in a publication. Without memory nothing is marked. */
static void mark_pair(struct coll_planned *planned, uint32_t former, uint32_t latter)
{
	const size_t bytes = planned->schedule->ops * sizeof(*planned->publications);
	struct coll_publication *marks = planned->publications;

	if (!marks)
		marks = malloc(bytes);
	if (!marks)
		return;
	if (!planned->publications)
		memset(marks, 0xff, bytes);	/* COLL_NONE; judged later */
	planned->publications = marks;
	if (marks[former].first == COLL_NONE)
		marks[former].first = former;
	marks[former].next = latter;
	marks[latter].first = marks[former].first;
}

static void publication_unmark(struct coll_publication *marks, uint32_t op)
{
	uint32_t next;

	for (; op != COLL_NONE; op = next) {
		next = marks[op].next;
		marks[op] = (struct coll_publication){ .first = COLL_NONE, .next = COLL_NONE };
	}
}

/* Short ones for boards: whose bytes are others for each, and fit in no entry, is none. */
static void publication_judge(struct coll_planned *planned, uint32_t first)
{
	const struct coll_op *ops = coll_ops(planned->schedule);
	struct coll_publication *marks = planned->publications;
	uint64_t sends = 0;
	bool each = false;
	uint32_t op;

	for (op = first; op != COLL_NONE; op = marks[op].next) {
		each |= ops[op].left != ops[first].left;
		sends++;
	}
	marks[first].each = each;
	if (each && sends * ops[first].bytes > COLL_BOARD_BYTES)
		publication_unmark(marks, first);
}

void coll_published_mark(struct coll_planned *planned)
{
	const struct coll_schedule *s = planned->schedule;
	uint32_t i, latest[2] = { COLL_NONE, COLL_NONE };	/* a long one; one for boards */

	for (i = 0; i < s->ops; i++) {
		const struct coll_op *op = &coll_ops(s)[i];
		uint32_t *before = &latest[op->bytes <= COLL_BOARD_BYTES];

		planned->short_receives |= op->kind == COLL_OP_RECV && op->bytes <= COLL_BOARD_BYTES;
		if (!may_be_published(op))
			continue;
		if (*before != COLL_NONE && is_one_publication(s, &coll_ops(s)[*before], op))
			mark_pair(planned, *before, i);
		*before = i;
	}
	for (i = 0; planned->publications && i < s->ops; i++)
		if (planned->publications[i].first == i)
			publication_judge(planned, i);
}

/* ---- sending ------------------------------------------------------------------- */

/* All of them send these bytes. */
static const uint8_t *published_data(const struct coll_exec *exec, uint32_t op)
{
	return coll_exec_address(exec, coll_ops(exec->planned->schedule)[op].left);
}

static struct coll_message *reader_message(struct coll_exec *exec, uint32_t op)
{
	return &exec->messages[exec->message_of[op]];
}

/* Links that go through memory: what follows makes the area, and announces it. */
static uint32_t count_near(const struct coll_exec *exec, uint32_t first)
{
	uint32_t op, near = 0;

	for (op = first; op != COLL_NONE; op = exec->planned->publications[op].next)
		near += coll_link_through_memory(coll_exec_link(exec, op));
	return near;
}

/*
 * Which links could be told just now. How many. One that has nothing to send may yet lack the credit, or the space in
 * its ring, for the place: it refuses the first piece, which may have been copied for nobody. That happens once: the
 * message waits in its queue then, and it is no reader until that is empty.
 */
static uint32_t find_readers(struct coll_exec *exec, uint32_t first)
{
	const bool may = !exec->group->context->inject && count_near(exec, first) >= COLL_READERS_MIN &&
			 coll_memory_asks_for_slot(&exec->group->context->engine);
	uint32_t op, readers = 0;

	for (op = first; op != COLL_NONE; op = exec->planned->publications[op].next) {
		struct coll_message *message = reader_message(exec, op);

		message->published = 0;
		message->publishes = may && coll_link_publishes(coll_exec_link(exec, op), published_data(exec, op),
								coll_ops(exec->planned->schedule)[op].bytes);
		readers += message->publishes;
	}
	return readers;
}

bool coll_published_begin(struct coll_exec *exec, uint32_t first)
{
	uint32_t op;

	if (find_readers(exec, first) >= COLL_READERS_MIN)
		return true;
	for (op = first; op != COLL_NONE; op = exec->planned->publications[op].next)
		reader_message(exec, op)->publishes = false;
	return false;
}

/* Tells all that were told of what is before `offset` of the next `bytes`. How many were. */
static uint32_t tell_readers(struct coll_exec *exec, uint32_t first, uint64_t offset, uint64_t bytes,
			 struct coll_published_place place)
{
	const struct coll_op *ops = coll_ops(exec->planned->schedule);
	uint32_t op, told = 0;

	for (op = first; op != COLL_NONE; op = exec->planned->publications[op].next) {
		struct coll_message *message = reader_message(exec, op);
		struct coll_header header = coll_exec_header(exec, &ops[op]);

		header.offset = offset;
		coll_chunk_cut(&header, bytes);
		if (!message->publishes || message->published != offset ||
		    !coll_link_publish(coll_exec_link(exec, op), &header, published_data(exec, op), place))
			continue;
		message->published += bytes;
		told++;
	}
	coll_memory_wake_readers(&exec->group->context->engine);
	return told;
}

/* A power of two: pieces end where slots do. */
static uint64_t piece_of(uint64_t bytes)
{
	uint64_t piece = PIECE_MIN;

	while (piece < COLL_SLOT_BYTES && piece * PIECES < bytes)
		piece *= 2;
	return piece;
}

void coll_published_send(struct coll_exec *exec, uint32_t first)
{
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[first];
	const uint8_t *data = published_data(exec, first);
	const uint64_t piece = piece_of(op->bytes);
	uint32_t told = COLL_READERS_MIN;
	struct coll_published_place place = { 0 };
	uint64_t offset, bytes;
	uint8_t *slot = NULL;

	for (offset = 0; told >= COLL_READERS_MIN && offset < op->bytes; offset += bytes) {
		place.offset = offset % COLL_SLOT_BYTES;
		if (!place.offset)
			slot = coll_memory_slot(&exec->group->context->engine, &place.slot);
		if (!slot)
			return;
		place.generation = coll_memory_slot_generation(&exec->group->context->engine, place.slot);
		bytes = op->bytes - offset < piece ? op->bytes - offset : piece;
		memcpy(slot + place.offset, data + offset, bytes);
		told = tell_readers(exec, first, offset, bytes, place);
		exec->group->context->counters.published_bytes += told ? bytes : 0;
	}
}
