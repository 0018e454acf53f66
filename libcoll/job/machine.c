// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <string.h>

#include "libcoll/base/open_error.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/published.h"
#include "libcoll/topology/levels.h"
#include "machine.h"

/* Where all links are inside of one node, its costs are those of all links. */
static void costs_of_node(struct coll_machine *machine)
{
	const struct coll_level_cost *node = &machine->inside[COLL_LEVEL_NODE];

	if (node->alpha > 0)
		machine->alpha = node->alpha;
	if (node->overhead > 0)
		machine->overhead = node->overhead;
	if (node->beta > 0)
		machine->beta = node->beta;
	if (node->byte_gap > 0)
		machine->byte_gap = node->byte_gap;
}

void coll_job_assume_loopback(struct coll_context *context)
{
	struct coll_machine *machine = &context->options.machine, found = { .alpha = 0 };
	struct coll_class_cost *assumed = &context->costs.of[COLL_CLASS_CLUSTER];

	memcpy(found.inside, machine->inside, sizeof(found.inside));
	costs_of_node(&found);
	coll_options_take(&context->options, &found);
	machine->copied = true;
	assumed->assumed = true;
	if (machine->alpha <= 0)
		machine->alpha = assumed->cost.alpha = 10e-6;
	if (machine->beta <= 0)
		machine->beta = assumed->cost.beta = COLL_USUAL_BETA;
	if (machine->byte_gap <= 0)
		machine->byte_gap = assumed->cost.byte_gap = machine->beta / 2;
	context->world->options.machine = *machine;
	context->world->costs = context->costs;
}

/* Takes what the file of option `costs` says. It need not be on other nodes than rank 0's. */
static int read_costs(struct coll_context *context, bool one_node, char *why, size_t why_bytes)
{
	struct coll_machine found;
	int error;

	if (context->boot->rank)
		return 0;
	error = coll_options_read_costs(&context->options, &found, why, why_bytes);
	if (error)
		return error;
	if (one_node && !coll_levels_are_sizes(context->options.levels))
		costs_of_node(&found);
	coll_options_take(&context->options, &found);
	return 0;
}

/*
 * All ranks must choose the same algorithms, so all use rank 0's machine parameters, even
 * if nodes and environments differ. Called after coll_listen(), so that one fence serves
 * the addresses too.
 */
struct job_shared {
	uint32_t cost_model;	/* COLL_COST_MODEL */
	struct coll_machine machine;
	char clusters[sizeof(((struct coll_options *)0)->clusters)];
	char levels[sizeof(((struct coll_options *)0)->levels)];
	char wan[sizeof(((struct coll_options *)0)->wan)];
	char protect[sizeof(((struct coll_options *)0)->protect)];
	char costs[sizeof(((struct coll_options *)0)->costs)];
	char measure[sizeof(((struct coll_options *)0)->measure)];
	uint64_t measure_ns;
	bool one_node;		/* all ranks are on it */
	int error;		/* why rank 0 has no numbers, ... */
	char why[400];		/* ... in words */
};

/* Nothing else of what rank 0 says can be read otherwise, nor would its numbers lead to the same choices. */
static int check_version(const struct coll_context *context, const struct job_shared *shared, size_t bytes)
{
	if (bytes != sizeof(*shared))
		return coll_open_fail(-EPROTO, "rank 0 has another version of the library");
	if (shared->cost_model == COLL_COST_MODEL)
		return 0;
	return coll_open_fail(-EPROTO, "rank 0 has another version of the library: it chooses algorithms by cost model %u, "
			      "rank %d by %u; valid: the same on all ranks", shared->cost_model, context->boot->rank,
			      COLL_COST_MODEL);
}

/* What protects connections is not lowered or raised by rank 0: all must want the same. */
static int check_protection(const struct coll_context *context, const struct job_shared *shared)
{
	const char *own = context->options.protect;

	if (!strncmp(own, shared->protect, sizeof(shared->protect)))
		return 0;
	return coll_open_fail(-EINVAL, "option protect: rank 0 has '%.7s', rank %d '%s'; valid: the "
			      "same on all ranks", shared->protect, context->boot->rank, own);
}

int coll_job_share_machine(struct coll_context *context, bool *one_node)
{
	struct coll_options *options = &context->options;
	uint64_t deadline = coll_now() + options->deadline_ns;
	struct job_shared shared = { .cost_model = COLL_COST_MODEL };
	size_t bytes = sizeof(shared);
	int error = 0;

	if (options->cluster[0] && !options->clusters[0])
		strcpy(options->clusters, "named");
	*one_node = context->boot->local_ranks == context->boot->ranks;
	shared.error = read_costs(context, *one_node, shared.why, sizeof(shared.why));
	options->machine.published = coll_memory_publishes_most(&context->engine);
	shared.machine = options->machine;
	if (context->boot->ranks == 1)
		return shared.error ? coll_open_fail(shared.error, "%s", shared.why) : 0;
	strcpy(shared.costs, options->costs);
	strcpy(shared.measure, options->measure);
	shared.measure_ns = options->measure_ns;
	shared.one_node = *one_node;
	strcpy(shared.clusters, options->clusters);
	strcpy(shared.levels, options->levels);
	strcpy(shared.wan, options->wan);
	strcpy(shared.protect, options->protect);
	error = coll_levels_announce(context);
	if (!error && !context->boot->rank)
		error = coll_boot_put(context->boot, "machine", &shared, bytes);
	if (!error)
		error = coll_boot_fence(context->boot, deadline);
	if (!error && context->boot->rank)
		error = coll_boot_get(context->boot, "machine", &shared, &bytes, deadline);
	if (error)
		return coll_open_fail(error, "rank 0 has not sent its machine parameters: %s",
				      strerror(-error));
	error = check_version(context, &shared, bytes);
	if (error)
		return error;
	if (shared.error)
		return coll_open_fail(shared.error, "%s", shared.why);
	if (!context->boot->rank)
		return 0;
	error = check_protection(context, &shared);
	if (error)
		return error;
	options->machine = shared.machine;
	strcpy(options->clusters, shared.clusters);
	strcpy(options->levels, shared.levels);
	strcpy(options->wan, shared.wan);
	strcpy(options->costs, shared.costs);
	strcpy(options->measure, shared.measure);
	options->measure_ns = shared.measure_ns;
	*one_node = shared.one_node;
	return 0;
}
