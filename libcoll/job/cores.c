// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cores.h"
#include "libcoll/base/core_wait.h"
#include "libcoll/engine/engine.h"
#include "libcoll/progress/progress.h"

/* 0: the launcher does not say. */
static int told_cores(void)
{
	const char *told = getenv("COLL_LOCAL_CORES");
	const int cores = told ? atoi(told) : 0;

	return cores > 0 ? cores : 0;
}

/* The cores that this node's ranks share, where no launcher says it. */
static int seen_cores(void)
{
	cpu_set_t cpus;
	int cores = 0;

	if (!sched_getaffinity(0, sizeof(cpus), &cpus))
		cores = CPU_COUNT(&cpus);
	/* A launcher that binds ranks gives each a core of its own. */
	return cores > 1 ? cores : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Ranks of this node per core. */
static double node_crowding(const struct coll_boot *boot, int cores)
{
	return (double)(boot->local_ranks > 0 ? boot->local_ranks : boot->ranks) / cores;
}

/* With a thread for each rank, twice as many threads share the cores. */
static double thread_crowding(const struct coll_context *context)
{
	const double crowding = node_crowding(context->boot, context->cores);

	const bool thread = context->progress == &coll_progress_thread ||
			    context->progress == &coll_progress_helper;

	return thread ? 2 * crowding : crowding;
}

static enum coll_wait wait_of(const struct coll_options *options)
{
	return !strcmp(options->wait, "sleep") ? COLL_WAIT_SLEEP :
	       !strcmp(options->wait, "yield") ? COLL_WAIT_YIELD : COLL_WAIT_AUTO;
}

void coll_job_know_cores(struct coll_context *context)
{
	context->cores_told = told_cores();
	context->cores = context->cores_told ? context->cores_told : seen_cores();
	context->options.machine.crowding = node_crowding(context->boot, context->cores);
	context->engine.exposes = !strcmp(context->options.memory, "auto");
	context->engine.crowded = thread_crowding(context) > 1;
	context->engine.any_thread = !strcmp(context->options.threads, "any");
	context->engine.moves = context->progress == &coll_progress_auto;
	context->engine.spin_ns = context->options.spin_ns;
	coll_neighbour_init(&context->engine.neighbour, wait_of(&context->options),
			    context->engine.crowded);
	context->engine.counters = &context->counters;
}

void coll_job_follow(struct coll_context *context)
{
	context->engine.sampled = coll_options_follow(&context->options);
	if (context->engine.sampled)	/* later there may be no descriptor */
		coll_core_wait_open(&context->core_wait);
}
