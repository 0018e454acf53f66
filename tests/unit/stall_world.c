// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "core/match.h"
#include "tests/lib/interpret.h"
#include "stall_world.h"

enum { RANKS_MAX = 64, MESSAGES_MAX = 4096, KINDS = 8 };

struct stall_world {
	u32 ranks;
	struct interpret *schedules;
	struct coll_plan plan[RANKS_MAX];
	struct coll_step step[RANKS_MAX];
	void *memory[RANKS_MAX][2];
	u32 begun[RANKS_MAX][KINDS];
	u32 stop_after[RANKS_MAX][KINDS];
	struct stall_message {
		u32 from, to, slot;
		u64 bytes;
	} message[MESSAGES_MAX];
	u32 messages;
};

struct stall_world *stall_new(const char *name, u32 ranks, const struct coll_tuning *tuning)
{
	const struct coll_algo *algo = coll_algo_find(COLL_ALLREDUCE, name);
	struct stall_world *w = calloc(1, sizeof(*w));
	struct coll_call call[RANKS_MAX];
	u32 r;

	assert_non_null(algo);
	assert_true(w && ranks <= RANKS_MAX);
	for (r = 0; r < ranks; r++)
		call[r] = (struct coll_call){
			.collective = COLL_ALLREDUCE, .rank = r, .ranks = ranks,
			.type = COLL_INT32, .reduction = COLL_SUM, .element = 4,
			.commutative = true, .count = 1,
		};
	w->ranks = ranks;
	w->schedules = interpret_new(algo, call, ranks, tuning);
	assert_string_equal(w->schedules->error, "");
	memset(w->stop_after, 0xff, sizeof(w->stop_after));
	for (r = 0; r < ranks; r++) {
		const struct coll_schedule *s = interpret_schedule(w->schedules, r);

		w->memory[r][0] = malloc(coll_plan_bytes(s));
		coll_plan_init(&w->plan[r], s, w->memory[r][0]);
		w->memory[r][1] = malloc(coll_step_bytes(&w->plan[r]));
		coll_step_init(&w->step[r], &w->plan[r], w->memory[r][1]);
	}
	return w;
}

void stall_free(struct stall_world *w)
{
	u32 r;

	for (r = 0; r < w->ranks; r++) {
		free(w->memory[r][0]);
		free(w->memory[r][1]);
	}
	interpret_free(w->schedules);
	free(w);
}

const struct coll_schedule *stall_schedule(const struct stall_world *w, u32 rank)
{
	return interpret_schedule(w->schedules, rank);
}

u32 stall_ops(const struct stall_world *w, u32 rank, enum coll_op_kind kind)
{
	const struct coll_schedule *s = stall_schedule(w, rank);
	u32 count = 0, i;

	for (i = 0; i < s->ops; i++)
		count += coll_ops(s)[i].kind == kind;
	return count;
}

u32 stall_begun(const struct stall_world *w, u32 rank, enum coll_op_kind kind)
{
	return w->begun[rank][kind];
}

void stall_after(struct stall_world *w, u32 rank, enum coll_op_kind kind, u32 count)
{
	w->stop_after[rank][kind] = count;
}

static bool stopped(const struct stall_world *w, u32 rank)
{
	u32 kind;

	for (kind = 0; kind < KINDS; kind++)
		if (w->begun[rank][kind] >= w->stop_after[rank][kind])
			return true;
	return false;
}

/* Starts all that can start on this rank; everything but a receive is done at once. */
static bool move_rank(struct stall_world *w, u32 rank)
{
	const struct coll_schedule *s = stall_schedule(w, rank);
	bool moved = false;
	u32 index;

	while (!stopped(w, rank) && (index = coll_step_next(&w->step[rank])) != COLL_NONE) {
		const struct coll_op *op = &coll_ops(s)[index];

		moved = true;
		w->begun[rank][op->kind]++;
		if (op->kind == COLL_OP_RECV)
			continue;
		if (op->kind == COLL_OP_SEND) {
			assert_true(w->messages < MESSAGES_MAX);
			w->message[w->messages++] = (struct stall_message){
				rank, coll_op_rank(s, op), op->slot, op->bytes,
			};
		}
		coll_step_done(&w->step[rank], index);
	}
	return moved;
}

static bool move_message(struct stall_world *w, u32 i)
{
	const struct stall_message m = w->message[i];
	u32 op;
	int match;

	if (stopped(w, m.to))
		return false;
	match = coll_match(&w->step[m.to], m.from, m.slot, m.bytes, &op);
	assert_true(match >= 0);
	if (match == COLL_MATCH_UNEXPECTED)
		return false;
	w->message[i] = w->message[--w->messages];
	if (match == COLL_MATCH_POSTED)
		coll_step_done(&w->step[m.to], op);
	return true;
}

u32 stall_settle(struct stall_world *w)
{
	u32 held_up = 0, i;
	bool moved;

	do {
		moved = false;
		for (i = 0; i < w->ranks; i++)
			moved |= move_rank(w, i);
		for (i = 0; i < w->messages; i++)
			moved |= move_message(w, i);
	} while (moved);
	for (i = 0; i < w->ranks; i++)
		held_up += !stopped(w, i) && !coll_step_finished(&w->step[i]);
	return held_up;
}

void stall_go_on(struct stall_world *w)
{
	memset(w->stop_after, 0xff, sizeof(w->stop_after));
	assert_int_equal(stall_settle(w), 0);
}
