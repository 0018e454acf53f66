// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Reductions of the application: a table by number in the context. */
#include <errno.h>
#include <stdlib.h>

#include "libcoll/exec/group.h"
#include "libcoll/progress/progress.h"

/* What op_create() and op_free() do on the thread that owns the context. */
struct op_change {
	struct coll_context *context;
	struct coll_user_op user;
	enum coll_reduction op;
	int error;
};

static void op_create(void *argument)
{
	struct op_change *change = argument;
	struct coll_context *context = change->context;
	struct coll_user_op *ops;
	uint32_t i;

	if (!change->user.function) {
		change->error = -EINVAL;
		coll_context_explain(context, "op_create: function is NULL");
		return;
	}
	for (i = 0; i < context->ops_count && context->ops[i].used; i++)
		;
	if (i == context->ops_count) {
		ops = realloc(context->ops, (i + 1) * sizeof(*ops));
		if (!ops) {
			change->error = -ENOMEM;
			coll_context_explain(context, "op_create: memory ran out");
			return;
		}
		context->ops = ops;
		context->ops_count++;
	}
	context->ops[i] = change->user;
	change->op = COLL_USER_REDUCTION + 1 + i;
}

int coll_op_create(struct coll_context *context, coll_function *function, void *argument,
		   int commutative, enum coll_reduction *op)
{
	struct op_change change = { .context = context,
				    .user = { function, argument, commutative, true } };

	coll_progress_do(context, op_create, &change);
	if (!change.error)
		*op = change.op;
	return change.error;
}

static void op_free(void *argument)
{
	struct op_change *change = argument;
	struct coll_context *context = change->context;
	uint32_t i = change->op - COLL_USER_REDUCTION - 1;

	if (change->op > COLL_USER_REDUCTION && i < context->ops_count && context->ops[i].used) {
		context->ops[i].used = false;
		return;
	}
	change->error = -EINVAL;
	coll_context_explain(context, "op_free: op (%u) was freed or never made; valid: a number "
			     "from coll_op_create() of this context", change->op);
}

int coll_op_free(struct coll_context *context, enum coll_reduction op)
{
	struct op_change change = { .context = context, .op = op };

	coll_progress_do(context, op_free, &change);
	return change.error;
}
