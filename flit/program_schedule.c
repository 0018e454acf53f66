// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A collective: each rank's schedule, stepped and matched by core/, on its PE. A send is
 * done when its last flit has left the PE, a receive when its last flit has arrived. Copies
 * and reductions use the PE's processor one after another. Each rank starts its next run as
 * soon as it can.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/match.h"
#include "machine.h"

struct schedule_letter {			/* a message between two ranks */
	u32 from, to, slot, op, run;
	u64 bytes;
	u32 next;		/* of unexpected messages, or of free ones */
};

struct schedule_rank {
	struct coll_plan plan;
	struct coll_step step;
	void *plan_memory, *step_memory;
	bool *came;		/* per op: its message has arrived */
	u32 run;
	u32 early;		/* messages of later runs */
	u64 busy;		/* its processor is busy until then */
	u64 finished;
};

struct schedule_collective {
	struct schedule_rank *rank;
	struct schedule_letter *letter;
	u32 letters, letter_free;
	u32 left;
};

/* A timer's tag has the rank, the run and the op. */
enum { OP_BITS = 22, RUN_BITS = 18 };

static u64 alarm_tag(u32 rank, u32 run, u32 op)
{
	return (u64)rank << (OP_BITS + RUN_BITS) | (u64)(run & ((1u << RUN_BITS) - 1)) << OP_BITS |
	       op;
}

static u32 new_letter(struct flit_sim *sim, struct schedule_collective *c)
{
	u32 at = c->letter_free, size, i;
	struct schedule_letter *grown;

	if (at == FLIT_NONE) {
		size = c->letters ? c->letters * 2 : 1024;
		grown = reallocarray(c->letter, size, sizeof(*grown));
		if (!grown) {
			sim->error = -ENOMEM;
			return FLIT_NONE;
		}
		for (i = c->letters; i < size; i++)
			grown[i].next = i + 1 < size ? i + 1 : FLIT_NONE;
		at = c->letters;
		c->letter = grown;
		c->letters = size;
	}
	c->letter_free = c->letter[at].next;
	return at;
}

static void free_letter(struct schedule_collective *c, u32 at)
{
	c->letter[at].next = c->letter_free;
	c->letter_free = at;
}

static void program_schedule_send(struct flit_sim *sim, u32 r, u32 index, const struct coll_op *op)
{
	const struct flit_work *work = &sim->config->work;
	struct schedule_collective *c = sim->program;
	u32 to = coll_op_rank(work->schedule[r], op), at = new_letter(sim, c);
	u64 flits = (op->bytes + work->flit_bytes - 1) / work->flit_bytes;

	if (at == FLIT_NONE)
		return;
	c->letter[at] = (struct schedule_letter){ .from = r,
						  .to = to,
						  .slot = op->slot,
						  .op = index,
						  .run = c->rank[r].run,
						  .bytes = op->bytes };
	flit_send(sim, work->place[r], work->place[to], flits ? flits : 1, at);
}

/* A copy or a reduction: done when the processor has completed earlier ones and this one. */
static void program_schedule_compute(struct flit_sim *sim, u32 r, u32 index,
				     const struct coll_op *op)
{
	const struct flit_work *work = &sim->config->work;
	struct schedule_rank *rank = &((struct schedule_collective *)sim->program)->rank[r];
	double cost = op->kind == COLL_OP_REDUCE ? work->reduce :
		      op->kind == COLL_OP_COPY ? work->copy : 0;

	if (rank->busy < sim->now)
		rank->busy = sim->now;
	rank->busy += (u64)(op->bytes * cost + 0.999);
	flit_alarm(sim, rank->busy, alarm_tag(r, rank->run, index));
}

static void program_schedule_deliver(struct flit_sim *sim, u32 at);

/* The rank's run is completed: starts the next, or finishes. */
static void next_run(struct flit_sim *sim, u32 r)
{
	struct schedule_collective *c = sim->program;
	struct schedule_rank *rank = &c->rank[r];
	u32 early = rank->early, next, ops = sim->config->work.schedule[r]->ops, i;

	if (++rank->run == sim->config->work.rounds) {
		rank->finished = sim->now;
		sim->done = !--c->left;
		return;
	}
	coll_step_reset(&rank->step);
	for (i = 0; i < ops; i++)
		rank->came[i] = false;
	rank->early = FLIT_NONE;
	for (; early != FLIT_NONE; early = next) {
		next = c->letter[early].next;
		program_schedule_deliver(sim, early);
	}
}

/* Starts ops that are ready; a rank whose run is completed begins the next one. */
static void program_schedule_advance(struct flit_sim *sim, u32 r)
{
	struct schedule_collective *c = sim->program;
	struct schedule_rank *rank = &c->rank[r];
	u32 index;

	while (rank->run < sim->config->work.rounds) {
		while ((index = coll_step_next(&rank->step)) != COLL_NONE) {
			const struct coll_op *op = &coll_ops(sim->config->work.schedule[r])[index];

			if (op->kind == COLL_OP_SEND)
				program_schedule_send(sim, r, index, op);
			else if (op->kind != COLL_OP_RECV)
				program_schedule_compute(sim, r, index, op);
			else if (rank->came[index])
				coll_step_done(&rank->step, index);
		}
		if (!coll_step_finished(&rank->step))
			return;
		next_run(sim, r);
	}
}

/* A message has arrived: for this run, for a later one, or stale. */
static void program_schedule_deliver(struct flit_sim *sim, u32 at)
{
	struct schedule_collective *c = sim->program;
	struct schedule_letter *letter = &c->letter[at];
	struct schedule_rank *rank = &c->rank[letter->to];
	u32 op;
	int match;

	if (letter->run > rank->run) {
		letter->next = rank->early;
		rank->early = at;
		return;
	}
	if (letter->run == rank->run) {
		match = coll_match(&rank->step, letter->from, letter->slot, letter->bytes, &op);
		if (match == COLL_MATCH_POSTED)
			coll_step_done(&rank->step, op);
		else if (match == COLL_MATCH_UNEXPECTED)
			rank->came[op] = true;
		else if (match < 0)
			sim->error = match;
	}
	free_letter(c, at);
}

static void program_schedule_arrived(struct flit_sim *sim, const struct flit_packet *packet)
{
	u32 to = ((struct schedule_collective *)sim->program)->letter[packet->tag].to;

	program_schedule_deliver(sim, packet->tag);
	program_schedule_advance(sim, to);
}

static void program_schedule_sent(struct flit_sim *sim, const struct flit_packet *packet)
{
	struct schedule_collective *c = sim->program;
	const struct schedule_letter *letter = &c->letter[packet->tag];
	u32 from = letter->from;

	if (letter->run != c->rank[from].run)
		return;
	coll_step_done(&c->rank[from].step, letter->op);
	program_schedule_advance(sim, from);
}

static void program_schedule_computed(struct flit_sim *sim, u64 tag)
{
	struct schedule_collective *c = sim->program;
	u32 r = tag >> (OP_BITS + RUN_BITS), op = tag & ((1u << OP_BITS) - 1);

	if (c->rank[r].run == sim->config->work.rounds ||
	    tag != alarm_tag(r, c->rank[r].run, op))
		return;
	coll_step_done(&c->rank[r].step, op);
	program_schedule_advance(sim, r);
}

static int make_rank(struct schedule_rank *rank, const struct coll_schedule *s)
{
	rank->early = FLIT_NONE;
	rank->came = calloc(s->ops + 1, sizeof(bool));
	rank->plan_memory = malloc(coll_plan_bytes(s));
	if (!rank->came || !rank->plan_memory)
		return -ENOMEM;
	coll_plan_init(&rank->plan, s, rank->plan_memory);
	rank->step_memory = malloc(coll_step_bytes(&rank->plan) + 1);
	if (!rank->step_memory)
		return -ENOMEM;
	coll_step_init(&rank->step, &rank->plan, rank->step_memory);
	return 0;
}

static void program_schedule_release(struct schedule_collective *c, u32 ranks)
{
	u32 r;

	for (r = 0; r < ranks; r++) {
		free(c->rank[r].plan_memory);
		free(c->rank[r].step_memory);
		free(c->rank[r].came);
	}
	free(c->rank);
	free(c->letter);
	free(c);
}

static int program_schedule_start(struct flit_sim *sim)
{
	const struct flit_work *work = &sim->config->work;
	struct schedule_collective *c = calloc(1, sizeof(*c));
	int status = 0;
	u32 r;

	if (c)
		c->rank = calloc(work->ranks, sizeof(*c->rank));
	if (!c || !c->rank) {
		free(c);
		return -ENOMEM;
	}
	c->letter_free = FLIT_NONE;
	c->left = work->ranks;
	for (r = 0; r < work->ranks && !status; r++)
		status = make_rank(&c->rank[r], work->schedule[r]);
	if (status) {
		program_schedule_release(c, work->ranks);
		return status;
	}
	sim->program = c;
	sim->on_timer = program_schedule_computed;
	sim->on_sent = program_schedule_sent;
	sim->on_arrived = program_schedule_arrived;
	for (r = 0; r < work->ranks; r++)
		program_schedule_advance(sim, r);
	return 0;
}

static void program_schedule_finish(struct flit_sim *sim, struct flit_result *result)
{
	struct schedule_collective *c = sim->program;
	u32 ranks = sim->config->work.ranks, r;

	for (r = 0; r < ranks; r++)
		flit_finished(result, c->rank[r].finished, ranks);
	program_schedule_release(c, ranks);
}

const struct flit_program flit_program_schedule = { program_schedule_start,
						    program_schedule_finish };
