// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Memory for buffers, which ranks of this node can read (engine/shared_arena.h). */
#include <errno.h>

#include "libcoll/engine/memory.h"
#include "libcoll/exec/group.h"
#include "libcoll/progress/progress.h"

/* What a call does on the thread that owns the context. */
struct memory_change {
	struct coll_context *context;
	size_t bytes;
	void *memory;
	int error;
};

static void memory_take(void *argument)
{
	struct memory_change *change = argument;
	struct coll_context *context = change->context;

	if (change->bytes > COLL_ARENA_MAX) {
		change->error = -EINVAL;
		coll_context_explain(context, "alloc: bytes (%zu) is too large; valid: 0 to 2^48",
				     change->bytes);
		return;
	}
	change->memory = coll_memory_block(&context->engine, change->bytes);
	if (change->memory)
		return;
	change->error = -ENOMEM;
	coll_context_explain(context, "alloc: memory ran out (%zu bytes)", change->bytes);
}

int coll_alloc(struct coll_context *context, size_t bytes, void **memory)
{
	struct memory_change change = { .context = context, .bytes = bytes };
	const char *why;
	int error = coll_progress_check(context, &why);

	*memory = NULL;
	if (error || !bytes)
		return error;
	coll_progress_do_now(context, memory_take, &change);
	*memory = change.memory;
	return change.error;
}

static void memory_give(void *argument)
{
	struct memory_change *change = argument;

	change->error = coll_memory_block_free(&change->context->engine, change->memory);
	if (change->error)
		coll_context_explain(change->context, "free_memory: memory (%p) was freed or never "
				     "allocated; valid: what coll_alloc() of this context gave",
				     change->memory);
}

int coll_free_memory(struct coll_context *context, void *memory)
{
	struct memory_change change = { .context = context, .memory = memory };
	const char *why;
	int error = coll_progress_check(context, &why);

	if (error || !memory)
		return error;
	coll_progress_do_now(context, memory_give, &change);
	return change.error;
}
