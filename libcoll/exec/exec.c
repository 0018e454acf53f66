// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/port.h"
#include "core/reduce.h"
#include "unexpected.h"
#include "libcoll/engine/engine.h"
#include "exec.h"
#include "health.h"
#include "inject_engine.h"
#include "libcoll/link/link.h"
#include "run.h"

enum { SCRATCH_ALIGN = 64 };

/* ---- state -------------------------------------------------------------- */

/* The one place where it changes: IDLE -> RUNNING -> COMPLETED -> IDLE. */
static void exec_set_state(struct coll_exec *exec, enum coll_exec_state state)
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
	free(exec->buffer[COLL_SCRATCH]);
	free(exec->messages);
	free(exec->posted_at);
	free(exec);
}

/* Rounds up to an alignment for any type. */
static size_t exec_aligned(size_t bytes)
{
	return (bytes + 15) & ~(size_t)15;
}

/* All memory of a run of this schedule, in three allocations. */
static struct coll_exec *exec_make(struct coll_planned *planned, bool injected)
{
	const struct coll_schedule *s = planned->schedule;
	const size_t scratch = s->buffer[COLL_SCRATCH];
	size_t step = exec_aligned(coll_step_bytes(&planned->plan));
	size_t longs = exec_aligned(s->ops * sizeof(uint64_t));
	size_t words = exec_aligned((s->ops + 4 * (size_t)s->peers) * sizeof(uint32_t));
	struct coll_exec *exec =
		calloc(1, exec_aligned(sizeof(*exec)) + step + longs + words + s->ops);
	uint8_t *memory = (uint8_t *)exec;
	uint32_t i, sends = 0;

	if (!exec)
		return NULL;
	memory += exec_aligned(sizeof(*exec));
	coll_step_init(&exec->step, &planned->plan, memory);
	memory += step;
	exec->got = (uint64_t *)memory;
	memory += longs;
	exec->message_of = (uint32_t *)memory;
	exec->cursor = exec->message_of + s->ops;
	exec->posted = exec->cursor + s->peers;
	exec->connects = exec->posted + s->peers;
	exec->arrived = memory + words;
	exec->planned = planned;
	exec->messages = calloc(planned->sends ? planned->sends : 1, sizeof(*exec->messages));
	if (scratch)
		exec->buffer[COLL_SCRATCH] =
			aligned_alloc(SCRATCH_ALIGN,
				      (scratch + SCRATCH_ALIGN - 1) & ~(size_t)(SCRATCH_ALIGN - 1));
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

uint8_t *coll_exec_address(const struct coll_exec *exec, uint64_t address)
{
	return exec->buffer[COLL_ADDRESS_BUFFER(address)] + COLL_ADDRESS_OFFSET(address);
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

/* The lowest slot whose receive has started and whose message has not arrived. */
static bool expected_slot(struct coll_exec *exec, uint32_t peer, uint32_t *op)
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
		if (peer != COLL_NONE && exec->posted[peer] && expected_slot(exec, peer, op))
			return exec;
	}
	return NULL;
}

/* ---- doing without a link ------------------------------------------------- */

/* Whether the peer sends and receives no more. Messages that arrived before still count. */
static bool link_gone(const struct coll_link *link)
{
	return link->state == LINK_LEFT || link->state == LINK_CLOSED;
}

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
	    (link && (link == lost || link_gone(link))))
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

/* ---- ends --------------------------------------------------------------- */

/* Gives the result to the run that waits for it. */
static void exec_tell_run(struct coll_exec *exec)
{
	if (!exec->run)
		return;
	exec->run->status = exec->status;
	exec->run->exec = NULL;
	exec->run = NULL;
}

void coll_exec_maybe_idle(struct coll_exec *exec)
{
	struct coll_group *group = exec->group;
	struct coll_exec **slot = &group->active;

	if (exec->state != EXEC_COMPLETED || exec->in_flight || exec->stepping)
		return;
	if (exec->held)
		coll_health_run_completed(exec);
	coll_assert(group->draining);
	group->draining--;
	while (*slot != exec)
		slot = &(*slot)->next;
	*slot = exec->next;
	if (!exec->next)
		group->active_end = slot;
	/* After a failure the buffers are the application's from here on. */
	exec_tell_run(exec);
	exec_set_state(exec, EXEC_IDLE);
	exec->next = exec->planned->spare;
	exec->planned->spare = exec;
	coll_planned_put(exec->planned);
}

static void exec_complete(struct coll_exec *exec, int status)
{
	struct coll_planned *planned = exec->planned;
	uint32_t peer;

	exec_set_state(exec, EXEC_COMPLETED);
	exec->status = status;
	for (peer = 0; peer < planned->schedule->peers; peer++) {
		coll_assert(planned->links[peer]->expected >= exec->posted[peer]);
		planned->links[peer]->expected -= exec->posted[peer];
		exec->posted[peer] = 0;
		if (planned->links[peer]->kept)
			coll_unexpected_drop_completed(planned->links[peer]);
	}
	exec->group->context->counters.runs++;
	exec->group->context->counters.skipped += exec->step.skipped;
	exec->group->draining++;
	coll_health_run_completed(exec);
	exec->group->context->job->circuits_completed(exec);
	if (!status)
		exec_tell_run(exec);
}

void coll_exec_fail_all(struct coll_group *group, int error)
{
	struct coll_exec *exec, *next;

	for (exec = group->active; exec; exec = next) {
		next = exec->next;
		coll_step_fail(&exec->step, error);
		if (exec->state == EXEC_RUNNING)
			exec_complete(exec, error);
		coll_exec_maybe_idle(exec);
	}
}

/* ---- ops ---------------------------------------------------------------- */

static void exec_reduce(struct coll_exec *exec, const struct coll_op *op)
{
	const struct coll_planned *planned = exec->planned;
	uint8_t *result = coll_exec_address(exec, op->result);
	const uint8_t *left = coll_exec_address(exec, op->left),
		      *right = coll_exec_address(exec, op->right);

	if (op->reduction == COLL_USER_REDUCTION) {
		const struct coll_user_op *user = &exec->group->context->ops[planned->user_op];
		int type = op->type == COLL_OPAQUE_TYPE ?
				   COLL_OPAQUE((int)planned->schedule->element) :
				   op->type;

		user->function(result, left, right, op->bytes / planned->call.element, type,
			       user->argument);
	} else {
		coll_reduce_local(op->type, op->reduction, result, left, right, op->bytes);
	}
}

static void exec_needs_gone(struct coll_exec *exec, const struct coll_link *link)
{
	coll_group_fail(exec->group, -ECONNRESET, link->rank, COLL_NONE, link->state == LINK_LEFT ?
			"it has left the group" : "its connection has ended");
}

static void exec_send(struct coll_exec *exec, uint32_t index, const struct coll_op *op)
{
	struct coll_link *link = exec->planned->links[op->peer];
	struct coll_message *message = &exec->messages[exec->message_of[index]];
	struct coll_context *context = exec->group->context;

	if (link_gone(link)) {
		if (!(op->flags & COLL_OPTIONAL))
			exec_needs_gone(exec, link);
		return;
	}
	message->header = (struct coll_header){
		.kind = COLL_MESSAGE_DATA,
		.version = COLL_WIRE_VERSION,
		.run = exec->number,
		.slot = op->slot,
		.hash = exec->planned->hash,
		.bytes = op->bytes,
	};
	message->reported = op->bytes <= MESSAGE_INLINE_MAX;
	message->payload = NULL;
	if (!message->reported)
		message->payload = coll_exec_address(exec, op->left);
	else if (op->bytes)
		memcpy(message->small, coll_exec_address(exec, op->left), op->bytes);
	context->counters.sends++;
	context->counters.sent_bytes += op->bytes;
	if (coll_link_is_far(link)) {
		context->counters.far_sends++;
		context->counters.far_bytes += op->bytes;
	}
	message->run_age = exec->age;
	coll_exec_get(exec);
	coll_link_send(link, message);
	if (message->reported)
		coll_step_done(&exec->step, index);
}

void coll_exec_arrived(struct coll_exec *exec, uint32_t op)
{
	const struct coll_op *recv = &coll_ops(exec->planned->schedule)[op];
	struct coll_context *context = exec->group->context;

	exec->arrived[op] = 1;
	if (recv->slot == exec->cursor[recv->peer])
		exec->cursor[recv->peer]++;
	if (exec->state == EXEC_RUNNING) {
		coll_assert(exec->posted[recv->peer] && exec->planned->links[recv->peer]->expected);
		exec->posted[recv->peer]--;
		exec->planned->links[recv->peer]->expected--;
	}
	context->counters.recvs++;
	context->counters.recv_bytes += recv->bytes;
}

void coll_exec_deliver(struct coll_link *link, struct coll_exec *exec, uint32_t op)
{
	if (exec->group->context->inject)
		coll_inject_deliver(link, exec, op);
	else
		coll_exec_received(exec, op);
}

bool coll_exec_take_unexpected(struct coll_exec *exec, uint32_t op)
{
	const struct coll_op *recv = &coll_ops(exec->planned->schedule)[op];
	struct coll_link *link = exec->planned->links[recv->peer];
	struct coll_unexpected *unexpected = coll_unexpected_find(link, exec->number, recv->slot);
	struct coll_group *group = exec->group;

	if (!unexpected)
		return false;
	if (unexpected->header.hash != exec->planned->hash) {
		coll_group_mismatch(link);
		return false;
	}
	if (unexpected->header.bytes != recv->bytes) {
		coll_group_fail(group, -EPROTO, link->rank, group->rank,
				"sent a message of another size");
		return false;
	}
	if (recv->bytes)	/* with no bytes the address may be NULL */
		memcpy(coll_exec_address(exec, recv->result), unexpected->data, recv->bytes);
	group->context->counters.copied_bytes += recv->bytes;
	coll_unexpected_release(link, unexpected);
	coll_exec_arrived(exec, op);
	coll_exec_deliver(link, exec, op);
	return true;
}

static void exec_recv(struct coll_exec *exec, uint32_t index, const struct coll_op *op)
{
	struct coll_link *link = exec->planned->links[op->peer];

	exec->posted[op->peer]++;
	link->expected++;
	if (exec->posted_at)
		exec->posted_at[index] = coll_now();
	if (link->kept && coll_exec_take_unexpected(exec, index))
		return;
	if (link_gone(link) && !(op->flags & COLL_OPTIONAL))
		exec_needs_gone(exec, link);
	else
		coll_link_await(link);
}

static void exec_op(struct coll_exec *exec, uint32_t index)
{
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[index];

	switch (op->kind) {
	case COLL_OP_SEND:
		exec_send(exec, index, op);
		return;
	case COLL_OP_RECV:
		exec_recv(exec, index, op);
		return;
	case COLL_OP_REDUCE:
		if (op->bytes)
			exec_reduce(exec, op);
		break;
	case COLL_OP_COPY:
		if (op->bytes)
			memcpy(coll_exec_address(exec, op->result),
			       coll_exec_address(exec, op->left), op->bytes);
		break;
	case COLL_OP_CONNECT:
		if (!exec->group->context->job->circuit_connect(exec, index))
			return;
		break;
	case COLL_OP_RELEASE:
		exec->group->context->job->circuit_release(exec, index);
		break;
	}
	coll_step_done(&exec->step, index);
}

/* Starts the ops that are ready, until none is or the exec has completed. */
static void exec_step(struct coll_exec *exec)
{
	uint32_t op;

	if (exec->state != EXEC_RUNNING || exec->stepping)
		return;
	exec->stepping = true;
	while ((op = coll_step_next(&exec->step)) != COLL_NONE)
		exec_op(exec, op);
	exec->stepping = false;
	if (coll_step_finished(&exec->step) && !exec->step.error && exec->state == EXEC_RUNNING)
		exec_complete(exec, 0);
	coll_exec_maybe_idle(exec);
}

void coll_exec_received(struct coll_exec *exec, uint32_t op)
{
	coll_assert(exec->state != EXEC_IDLE);
	if (exec->state == EXEC_COMPLETED) {
		coll_exec_maybe_idle(exec);
		return;
	}
	coll_step_done(&exec->step, op);
	exec_step(exec);
}

void coll_exec_sent(struct coll_message *message)
{
	struct coll_exec *exec = message->exec;

	coll_exec_put(exec);
	if (exec->state == EXEC_COMPLETED) {
		coll_exec_maybe_idle(exec);
		return;
	}
	if (!message->reported) {
		coll_step_done(&exec->step, message->op);
		exec_step(exec);
	}
}

/* ---- start -------------------------------------------------------------- */

void coll_exec_open_links(const struct coll_planned *planned, const struct coll_exec *exec)
{
	uint32_t peer;

	for (peer = 0; peer < planned->schedule->peers; peer++)
		if (planned->links[peer]->state == LINK_IDLE &&
		    (!exec || exec->group->context->job->circuit_free(exec, peer)))
			coll_link_open(planned->links[peer]);
}

/* A reusable exec of this plan, or a new one. NULL: no memory. */
static struct coll_exec *exec_take(struct coll_planned *planned, bool injected)
{
	struct coll_exec *exec = planned->spare;

	if (!exec)
		return exec_make(planned, injected);
	planned->spare = exec->next;
	coll_step_reset(&exec->step);
	memset(exec->cursor, 0, planned->schedule->peers * sizeof(*exec->cursor));
	memset(exec->connects, 0, 2 * planned->schedule->peers * sizeof(*exec->connects));
	memset(exec->arrived, 0, planned->schedule->ops);
	memset(exec->got, 0, planned->schedule->ops * sizeof(*exec->got));
	return exec;
}

/* The exec is the run's from here on, as the group's next one. */
static void exec_bind(struct coll_exec *exec, struct coll_run *run, uint64_t deadline)
{
	exec_set_state(exec, EXEC_RUNNING);
	coll_assert(!exec->in_flight && !exec->stepping && !exec->run && !run->exec);
	exec->planned->references++;
	exec->next = NULL;
	exec->group = run->group;
	exec->run = run;
	exec->number = run->group->next_run++;
	exec->age = run->group->context->arbiter.runs++;
	exec->started = coll_now();
	exec->deadline = deadline;
	exec->pinged = 0;
	exec->checked = exec->started;
	exec->held = false;
	/* IN is read only: core/check.c refuses a schedule that writes it. */
	exec->buffer[COLL_IN] = run->in;
	exec->buffer[COLL_OUT] = run->out;
	run->exec = exec;
}

int coll_exec_start(struct coll_run *run, uint64_t deadline)
{
	struct coll_group *group = run->group;
	struct coll_planned *planned = run->planned;
	struct coll_exec *exec;

	coll_debug_assert(coll_context_is_owned(group->context));
	if (group->state != GROUP_OK)
		return group->error;
	exec = exec_take(planned, group->context->inject);
	if (!exec)
		return -ENOMEM;
	exec_bind(exec, run, deadline);
	group->recent[exec->number % RECENT_RUNS] = planned->hash;
	group->watchful = false;
	*group->active_end = exec;
	group->active_end = &exec->next;
	coll_engine_check_at(&group->context->engine, exec->started + HEALTH_FIRST_NS);
	coll_engine_check_at(&group->context->engine,
			     exec->started + (deadline - exec->started) / 4);
	if (group->context->inject)
		coll_inject_started(group);
	coll_exec_open_links(planned, exec);
	exec_step(exec);
	if (run->persistent && run->exec)
		run->group->context->job->circuits_started(run);
	return 0;
}
