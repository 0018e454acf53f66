// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The semi-public interface for mpi/: thin, so that mpi/ uses no struct of the library. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/reduce.h"
#include "libcoll/base/handshake.h"
#include "libcoll/base/open_error.h"
#include "libcoll/boot/exchange.h"
#include "libcoll/boot/job.h"
#include "libcoll/engine/engine.h"
#include "libcoll/shim.h"
#include "libcoll/exec/group.h"
#include "libcoll/exec/run.h"
#include "libcoll/exec/poll.h"
#include "libcoll/progress/progress.h"
#include "job.h"

_Static_assert((int)COLL_SHIM_SECRET_BYTES == (int)COLL_SECRET_BYTES, "the secret is copied");

int coll_shim_secret(uint8_t secret[COLL_SHIM_SECRET_BYTES], char *why, size_t why_bytes)
{
	return coll_boot_secret_read(secret, &(struct coll_boot_reason){ why, why_bytes });
}

bool coll_shim_make_secret(uint8_t secret[COLL_SHIM_SECRET_BYTES])
{
	return coll_nonce_make(secret, COLL_SHIM_SECRET_BYTES);
}

int coll_shim_open(const char *options, const struct coll_shim_job *job,
		   struct coll_context **context)
{
	struct coll_boot *boot = coll_boot_exchange_new(job->exchange, job->argument);

	*context = NULL;
	if (!boot)
		return coll_open_fail(-ENOMEM, "no memory to join the job");
	boot->rank = job->rank;
	boot->ranks = job->ranks;
	boot->local_rank = job->local_rank;
	boot->local_ranks = job->local_ranks;
	memcpy(boot->secret, job->secret, sizeof(boot->secret));
	boot->secret_carried = job->secret_carried;
	strcpy(boot->job, "mpi");
	strcpy(boot->from, "MPI_COMM_WORLD");
	return coll_context_open(options, boot, &coll_progress_call, context);
}

void *coll_shim_close(struct coll_context *context, uint64_t ns)
{
	struct coll_shared_arena *heir = context->engine.arena.heir;

	context->options.deadline_ns = ns;
	coll_close(context);
	if (!heir || heir->blocks)
		return heir;
	coll_shared_end(heir);
	free(heir);
	return NULL;
}

/* Where its memory goes in the end. */
static bool has_heir(struct coll_shared_arena *arena)
{
	if (!arena->heir)
		arena->heir = calloc(1, sizeof(*arena));
	return arena->heir;
}

void *coll_shim_alloc(struct coll_context *context, size_t bytes)
{
	void *memory;

	if (!context->engine.arena.shares || !has_heir(&context->engine.arena) ||
	    coll_alloc(context, bytes, &memory))
		return NULL;
	if (coll_shared_find(&context->engine.arena, memory, bytes))
		return memory;
	coll_free_memory(context, memory);
	return NULL;
}

bool coll_shim_free(struct coll_context *context, void *memory)
{
	return coll_shared_has(&context->engine.arena, memory) &&
	       !coll_free_memory(context, memory);
}

bool coll_shim_free_left(void *left, void *memory)
{
	return left && !coll_shared_give(left, memory);
}

bool coll_shim_deadline_set(void)
{
	struct coll_options options;
	char why[200];

	return getenv("COLL_DEADLINE") || coll_options_init(&options, why, sizeof(why)) ||
	       options.deadline_ns != 60 * COLL_SECOND;
}

bool coll_shim_may_hand(const struct coll_context *context, const char *collective)
{
	return !coll_shim_deadline_set() && coll_options_ask_nothing(&context->options, collective);
}

uint64_t coll_shim_deadline(const struct coll_context *context)
{
	return context->options.deadline_ns;
}

bool coll_shim_crowded(const struct coll_context *context)
{
	return context->engine.crowded;
}

void coll_shim_offer_core(struct coll_context *context)
{
	const struct timespec least = { .tv_nsec = 1 };	/* 60 us, by the kernel's slack */
	struct coll_neighbour *neighbour = &context->engine.neighbour;
	const uint64_t before = coll_now();

	neighbour->waits++;
	if (neighbour->near && coll_neighbour_sleeps(neighbour, before)) {
		nanosleep(&least, NULL);
		return;
	}
	coll_engine_yield(&context->engine, before);
}

const char *coll_shim_engine(const struct coll_context *context)
{
	return context->engine.ops->name;
}

uint64_t coll_shim_now(void)
{
	return coll_now();
}

int coll_shim_poll(struct coll_context *context, uint64_t ns)
{
	return coll_context_poll(context, ns ? coll_now() + ns : 0);
}

void coll_shim_waited(struct coll_context *context, uint64_t since)
{
	__atomic_add_fetch(&context->flight.page->spent, coll_now() - since, __ATOMIC_RELAXED);
}

bool coll_shim_busy(const struct coll_context *context)
{
	const struct coll_group *group = context->groups;

	while (group && !group->active)
		group = group->next;
	return group;
}

int coll_shim_group(struct coll_context *context, uint64_t id, const uint32_t *world,
		    uint32_t rank, uint32_t ranks, struct coll_group **group)
{
	uint32_t *copy = malloc(ranks * sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	memcpy(copy, world, ranks * sizeof(*copy));
	return coll_group_make(context, id, copy, rank, ranks, group);
}

bool coll_shim_completed(const struct coll_run *run)
{
	const struct coll_planned *planned = run->planned;

	if (__atomic_load_n(&run->exec, __ATOMIC_ACQUIRE))
		return false;
	return !__atomic_load_n(&run->group->draining, __ATOMIC_RELAXED) ||
	       planned->surplus ||
	       run->group->state != GROUP_OK;
}

const char *coll_shim_algorithm(const struct coll_run *run)
{
	return run->planned->algo->name;
}

bool coll_shim_reduces(enum coll_type type, enum coll_reduction op)
{
	return coll_reduction_fits(type, op);
}
