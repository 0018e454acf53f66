// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What an exec is: its state, its memory, how it is found, which links it needs. */
#include <stdlib.h>
#include <string.h>

#include "algo/common/levels.h"
#include "core/port.h"
#include "exec.h"
#include "libcoll/engine/memory.h"

enum {
	SCRATCH_ALIGN = 64,
	/* To share scratch pays for messages that no ring holds: docs/results/node.md. */
	SCRATCH_EXPOSED_MIN = 256 << 10,
};

struct coll_call coll_call_of(const struct coll_group *group, enum coll_collective collective)
{
	return (struct coll_call){
		.collective = collective,
		.rank = group->rank,
		.ranks = group->ranks,
		.cluster = group->clusters > 1 ? group->cluster : NULL,
		.clusters = group->clusters,
		.level = group->levels ? group->levels->level : NULL,
		.levels = group->levels ? group->levels->count : 0,
		.element = 1,
		.commutative = true,
	};
}

/* ---- state -------------------------------------------------------------- */

void coll_exec_set_state(struct coll_exec *exec, enum coll_exec_state state)
{
	coll_assert(state == (exec->state + 1) % (EXEC_COMPLETED + 1));
	exec->state = state;
}

void coll_exec_get(struct coll_exec *exec)
{
	coll_assert(exec->state == EXEC_RUNNING);
	exec->in_flight++;
}

void coll_exec_put(struct coll_exec *exec)
{
	coll_assert(exec->state != EXEC_IDLE && exec->in_flight);
	exec->in_flight--;
}

/* ---- memory ------------------------------------------------------------- */

void coll_exec_free(struct coll_exec *exec)
{
	coll_assert(exec->state == EXEC_IDLE);
	if (exec->scratch_of)
		coll_memory_block_free(exec->scratch_of, exec->buffer[COLL_SCRATCH]);
	else
		free(exec->buffer[COLL_SCRATCH]);
	free(exec->messages);
	free(exec->posted_at);
	free(exec);
}

/* Whether a peer on this node may read a message in it. */
static bool scratch_is_exposed(const struct coll_schedule *s)
{
	uint32_t i;

	for (i = 0; i < s->ops; i++) {
		const struct coll_op *op = &coll_ops(s)[i];

		if (op->kind == COLL_OP_SEND && op->bytes >= SCRATCH_EXPOSED_MIN &&
		    COLL_ADDRESS_BUFFER(op->left) == COLL_SCRATCH)
			return true;
	}
	return false;
}

static void scratch_make(struct coll_exec *exec, struct coll_engine *engine)
{
	const struct coll_schedule *s = exec->planned->schedule;
	const size_t bytes = (s->buffer[COLL_SCRATCH] + SCRATCH_ALIGN - 1) & ~(size_t)(SCRATCH_ALIGN - 1);

	if (engine->arena.shares && scratch_is_exposed(s)) {
		exec->scratch_of = engine;
		exec->buffer[COLL_SCRATCH] = coll_memory_block_one(engine, bytes);
	} else if (bytes) {
		exec->buffer[COLL_SCRATCH] = aligned_alloc(SCRATCH_ALIGN, bytes);
	}
}

/* Rounds up to an alignment for any type. */
static size_t exec_aligned(size_t bytes)
{
	return (bytes + 15) & ~(size_t)15;
}

/* What a run begins with as 0, from exec->got on: got, cursor, posted, connects, arrived, fused. */
static size_t progress_bytes(const struct coll_schedule *s)
{
	return s->ops * (sizeof(uint64_t) + 2) + 4 * (size_t)s->peers * sizeof(uint32_t);
}

/* All memory of a run of this schedule, in three allocations. */
static struct coll_exec *exec_make(struct coll_planned *planned, bool injected)
{
	const struct coll_schedule *s = planned->schedule;
	const size_t scratch = s->buffer[COLL_SCRATCH];
	size_t step = exec_aligned(coll_step_bytes(&planned->plan));
	size_t words = exec_aligned(s->ops * sizeof(uint32_t));
	struct coll_exec *exec =
		calloc(1, exec_aligned(sizeof(*exec)) + step + words + progress_bytes(s));
	uint8_t *memory = (uint8_t *)exec;
	uint32_t i, sends = 0;

	if (!exec)
		return NULL;
	memory += exec_aligned(sizeof(*exec));
	coll_step_init(&exec->step, &planned->plan, memory);
	memory += step;
	exec->message_of = (uint32_t *)memory;
	exec->got = (uint64_t *)(memory + words);
	exec->cursor = (uint32_t *)(exec->got + s->ops);
	exec->posted = exec->cursor + s->peers;
	exec->connects = exec->posted + s->peers;
	exec->arrived = (uint8_t *)(exec->connects + 2 * (size_t)s->peers);
	exec->fused = exec->arrived + s->ops;
	exec->planned = planned;
	exec->messages = calloc(planned->sends ? planned->sends : 1, sizeof(*exec->messages));
	scratch_make(exec, &planned->group->context->engine);
	if (injected)
		exec->posted_at = calloc(s->ops + 1, sizeof(*exec->posted_at));
	if (!exec->messages || (scratch && !exec->buffer[COLL_SCRATCH]) ||
	    (injected && !exec->posted_at)) {
		coll_exec_free(exec);
		return NULL;
	}
	for (i = 0; i < s->ops; i++) {
		if (coll_ops(s)[i].kind != COLL_OP_SEND)
			continue;
		exec->messages[sends].op = i;
		exec->messages[sends].exec = exec;
		exec->message_of[i] = sends++;
	}
	return exec;
}

struct coll_exec *coll_exec_take(struct coll_planned *planned, bool injected)
{
	struct coll_exec *exec = planned->spare;

	if (!exec)
		return exec_make(planned, injected);
	planned->spare = exec->next;
	return exec;
}

void coll_exec_reset(struct coll_exec *exec)
{
	coll_step_reset(&exec->step);
	memset(exec->got, 0, progress_bytes(exec->planned->schedule));
}

uint8_t *coll_exec_address(const struct coll_exec *exec, uint64_t address)
{
	return exec->buffer[COLL_ADDRESS_BUFFER(address)] + COLL_ADDRESS_OFFSET(address);
}

struct coll_header coll_exec_header(const struct coll_exec *exec, const struct coll_op *send)
{
	return (struct coll_header){
		.kind = COLL_MESSAGE_DATA,
		.version = COLL_WIRE_VERSION,
		.run = exec->number,
		.slot = send->slot,
		.hash = exec->planned->hash,
		.bytes = send->bytes,
	};
}

/* ---- looking up --------------------------------------------------------- */

struct coll_exec *coll_exec_find(const struct coll_group *group, uint32_t number)
{
	struct coll_exec *exec;

	for (exec = group->active; exec; exec = exec->next)
		if (exec->number == number)
			return exec;
	return NULL;
}

bool coll_run_has_completed(const struct coll_group *group, uint32_t number)
{
	const struct coll_exec *exec = coll_exec_find(group, number);

	return exec ? exec->state == EXEC_COMPLETED : (int32_t)(number - group->next_run) < 0;
}

bool coll_exec_awaits(const struct coll_exec *exec, uint32_t peer, uint32_t *op)
{
	const struct coll_plan *plan = &exec->planned->plan;
	uint32_t slot, slots = plan->first_recv[peer + 1] - plan->first_recv[peer];

	for (slot = exec->cursor[peer]; slot < slots; slot++) {
		*op = plan->recv[plan->first_recv[peer] + slot];
		if (exec->step.state[*op] == COLL_OP_STARTED && !exec->arrived[*op])
			return true;
	}
	return false;
}

struct coll_exec *coll_exec_expecting(struct coll_link *link, uint32_t *op)
{
	struct coll_exec *exec;

	for (exec = link->group->active; exec; exec = exec->next) {
		uint32_t peer;

		if (exec->state != EXEC_RUNNING)
			continue;
		peer = coll_peer_find(exec->planned->schedule, link->rank);
		if (peer != COLL_NONE && exec->posted[peer] && coll_exec_awaits(exec, peer, op))
			return exec;
	}
	return NULL;
}

/* ---- doing without a link ------------------------------------------------- */

/* Whether the op can still be done; `possible` has the answer for each earlier op. */
static bool op_possible(const struct coll_exec *exec, uint32_t index, const uint8_t *possible,
			const struct coll_link *lost)
{
	const struct coll_schedule *s = exec->planned->schedule;
	const struct coll_op *op = &coll_ops(s)[index];
	const struct coll_link *link = op->peer == COLL_NONE ? NULL :
							       exec->planned->links[op->peer];
	uint32_t i, open = 0;

	if (exec->step.state[index] == COLL_OP_DONE || exec->arrived[index])
		return true;
	if (exec->step.state[index] == COLL_OP_SKIPPED ||
	    (link && (link == lost || coll_exec_link_is_gone(link))))
		return false;
	for (i = 0; i < op->waits; i++)
		open += !possible[coll_waits(s)[op->wait + i]];
	return op->flags & COLL_WAIT_ANY ? open < op->waits || !op->waits : !open;
}

static bool exec_needs(const struct coll_exec *exec, const struct coll_link *lost)
{
	const struct coll_schedule *s = exec->planned->schedule;
	uint8_t *possible = malloc(s->ops + 1);
	bool needs = !possible;
	uint32_t i;

	for (i = 0; i < s->ops && !needs; i++) {	/* waits are for earlier ops */
		possible[i] = op_possible(exec, i, possible, lost);
		needs = !possible[i] && !(coll_ops(s)[i].flags & COLL_OPTIONAL);
	}
	free(possible);
	return needs;
}

static bool message_needed(const struct coll_message *message)
{
	return message->exec && !(coll_ops(message->exec->planned->schedule)[message->op].flags &
				  COLL_OPTIONAL);
}

bool coll_exec_needs_link(const struct coll_link *link)
{
	const struct coll_message *message;
	const struct coll_exec *exec;
	uint32_t i;

	for (message = link->queue; message; message = message->next)
		if (message_needed(message))
			return true;
	for (i = 0; i < link->streams; i++)
		if (link->stream[i].message && message_needed(link->stream[i].message))
			return true;
	for (exec = link->group->active; exec; exec = exec->next)
		if (exec->state == EXEC_RUNNING &&
		    coll_peer_find(exec->planned->schedule, link->rank) != COLL_NONE &&
		    exec_needs(exec, link))
			return true;
	return false;
}
