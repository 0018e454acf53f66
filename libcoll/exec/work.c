// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Reductions and copies: what an exec does by itself, and with what has come. */
#include <string.h>

#include "core/reduce.h"
#include "exec.h"
#include "fused.h"
#include "libcoll/base/clock.h"
#include "libcoll/engine/memory.h"
#include "live.h"
#include "own_costs.h"

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

		exec->group->context->flight.page->user_function = 1;
		user->function(result, left, right, op->bytes / planned->call.element, type,
			       user->argument);
		exec->group->context->flight.page->user_function = 0;
	} else {
		coll_reduce_local(op->type, op->reduction, result, left, right, op->bytes);
	}
}

static void exec_compute(struct coll_exec *exec, const struct coll_op *op)
{
	if (!op->bytes)			/* addresses may be NULL */
		return;
	if (op->kind == COLL_OP_REDUCE)
		exec_reduce(exec, op);
	else
		memcpy(coll_exec_address(exec, op->result), coll_exec_address(exec, op->left),
		       op->bytes);
}

static void exec_compute_timed(struct coll_exec *exec, const struct coll_op *op)
{
	const uint64_t before = exec->sampled ? coll_now() : 0;

	exec_compute(exec, op);
	if (exec->sampled && op->kind == COLL_OP_REDUCE && op->reduction != COLL_USER_REDUCTION)
		coll_own_reduced(exec->group->own, exec->number, op->bytes, coll_now() - before);
}

/* Peers need not wait for its end. */
static void exec_long_work(struct coll_exec *exec, uint32_t index, const struct coll_op *op)
{
	const bool reduces = op->kind == COLL_OP_REDUCE;

	coll_memory_wake_readers(&exec->group->context->engine);
	if (exec->group->own)
		coll_own_disturb(exec->group->own);	/* whichever run's */
	if (!reduces || !coll_fused_is_computed(exec, index))
		exec_compute_timed(exec, op);
	if (op->bytes >= LONG_WORK_BYTES)
		coll_live_op(exec, reduces ? COLL_FLIGHT_REDUCE : COLL_FLIGHT_COPY, NULL, index);
}

void coll_exec_compute(struct coll_exec *exec, uint32_t index)
{
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[index];
	const bool reduces = op->kind == COLL_OP_REDUCE;

	if (op->bytes >= LONG_WORK_BYTES || (reduces && op->reduction == COLL_USER_REDUCTION))
		exec_long_work(exec, index, op);
	else if (!reduces || !coll_fused_is_computed(exec, index))
		exec_compute(exec, op);
}

void coll_exec_store(struct coll_exec *exec, uint32_t recv, const uint8_t *data)
{
	const struct coll_op *op = coll_exec_op(exec, recv);

	if (!op->bytes)			/* the address may be NULL */
		return;
	if (op->bytes >= LONG_WORK_BYTES)
		coll_memory_wake_readers(&exec->group->context->engine);
	if (coll_fused_take_whole(exec, recv, data))
		return;
	memcpy(coll_exec_address(exec, op->result), data, op->bytes);
	exec->group->context->counters.copied_bytes += op->bytes;
}
