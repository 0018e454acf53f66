// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A job opens its floors in order, and ends them in reverse.
 *
 * Length: opening is one order of steps, which agree on what the next ones need.
 */
#include <errno.h>
#include <nettle/sha2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job.h"
#include "libcoll/api/run.h"
#include "libcoll/base/fork.h"
#include "libcoll/base/log.h"
#include "libcoll/base/open_error.h"
#include "libcoll/boot/caller.h"
#include "libcoll/circuit/circuit.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/published.h"
#include "libcoll/exec/alarm.h"
#include "libcoll/exec/exec.h"
#include "libcoll/exec/group.h"
#include "libcoll/exec/health.h"
#include "libcoll/exec/inject_engine.h"
#include "libcoll/exec/offload.h"
#include "libcoll/exec/poll.h"
#include "libcoll/exec/receive.h"
#include "libcoll/flight/report_file.h"
#include "libcoll/flight/timed.h"
#include "libcoll/link/link.h"
#include "libcoll/progress/progress.h"
#include "libcoll/topology/costs.h"
#include "libcoll/topology/drift.h"
#include "libcoll/topology/levels.h"
#include "libcoll/topology/topology.h"
#include "libcoll/topology/wan.h"
#include "libcoll/transport/listen.h"
#include "libcoll/transport/mux.h"
#include "libcoll/transport/transport.h"

enum {
	WORLD_ID = 1,
	CLOSING_MAX_S = 2,	/* time for a link that is shut down to close */
};

/* ---- engines ------------------------------------------------------------ */

static const struct coll_engine_ops *const engines[] = {
	&coll_engine_uring,
	&coll_engine_epoll,
	NULL,
};

static int wrap_engine(struct coll_context *context)
{
	int error = coll_inject_open(context, coll_exec_received);

	if (!error)
		return 0;
	coll_engine_close(&context->engine);
	return coll_open_fail(error, "inject: %s", strerror(-error));
}

/* Opens the engine of the option, or the first that works here. */
static int open_engine(struct coll_context *context)
{
	const struct coll_engine_ops *const *engine;
	bool any = !strcmp(context->options.engine, "auto");
	int error = -EINVAL;

	for (engine = engines; *engine; engine++) {
		if (!any && strcmp(context->options.engine, (*engine)->name))
			continue;
		context->engine.ops = *engine;
		error = (*engine)->open(&context->engine);
		if (!error)
			return context->options.inject[0] ? wrap_engine(context) : 0;
		coll_open_fail(error, "engine %s: %s", (*engine)->name, strerror(-error));
	}
	context->engine.ops = NULL;
	return error;
}

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

/*
 * Costs for a machine with all ranks on one node, where no option sets them: measured ones, or
 * usual ones. TCP over loopback has less latency than a network, and no wire that a byte
 * occupies: sender and receiver each copy it.
 */
static void assume_loopback(struct coll_context *context)
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

static int share_machine(struct coll_context *context, bool *one_node)
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

/* ---- open and close ----------------------------------------------------- */

static int open_world(struct coll_context *context)
{
	uint32_t ranks = context->boot->ranks, *world = malloc(ranks * sizeof(*world)), i;

	if (!world)
		return -ENOMEM;
	for (i = 0; i < ranks; i++)
		world[i] = i;
	return coll_group_make(context, WORLD_ID, world, context->boot->rank, ranks,
			       &context->world);
}

/* With a thread for each rank, twice as many threads share the cores. */
static double thread_crowding(const struct coll_context *context)
{
	const double crowding = node_crowding(context->boot, context->cores);

	const bool thread = context->progress == &coll_progress_thread ||
			    context->progress == &coll_progress_helper;

	return thread ? 2 * crowding : crowding;
}

/* What seals the ranks' bytes must not have crossed their network itself. */
static int check_secret(const struct coll_context *context)
{
	const struct coll_boot *boot = context->boot;

	if (strcmp(context->options.protect, "seal") || !boot->secret_carried)
		return 0;
	return coll_open_fail(-EINVAL, "option protect: 'seal' is not possible with a secret that %s "
			      "has carried unencrypted; valid: proof, none, or seal with COLL_SECRET set on "
			      "all ranks (openssl rand -hex %d)", boot->from, COLL_SECRET_BYTES);
}

static int open_boot(struct coll_context *context)
{
	char why[200] = "";
	int error;

	if (context->boot)
		return check_secret(context);
	error = coll_boot_open(&context->boot, coll_now() + context->options.deadline_ns, why,
			       sizeof(why));
	return error ? coll_open_fail(error, "%s", why) : check_secret(context);
}

static int open_offload(struct coll_context *context)
{
	char why[200] = "";
	int error;

	if (context->progress != &coll_progress_kernel && context->progress != &coll_progress_auto)
		return 0;
	if (!strcmp(context->options.protect, "seal")) {
		if (context->progress == &coll_progress_auto)
			return 0;
		return coll_open_fail(-EINVAL, "option progress: 'kernel' is not possible with "
				      "protect=seal; valid: call, thread, helper, auto");
	}
	error = coll_offload_open(context, why, sizeof(why));
	if (context->progress == &coll_progress_auto)
		return 0;	/* auto works without it */
	if (!error)
		return 0;
	return coll_open_fail(error, "option progress: 'kernel' is not possible: %s; "
			      "valid here: call, thread, helper", why);
}

static int learn_clusters(struct coll_context *context)
{
	char why[200] = "";
	int error = coll_topology_learn(context, context->options.clusters, why, sizeof(why));

	if (!error)
		return 0;
	return coll_open_fail(error, "%s", *why ? why : "the clusters of the ranks are not known");
}

static int learn_levels(struct coll_context *context, bool one_node)
{
	char why[400] = "";
	int error = coll_levels_learn(context, context->options.levels, one_node, why, sizeof(why));

	if (!error)
		return 0;
	return coll_open_fail(error, "%s", *why ? why : "the nodes of the ranks are not known");
}

static int open_circuits(struct coll_context *context)
{
	char why[300] = "";
	int error = coll_circuits_open(context, why, sizeof(why));

	return error ? coll_open_fail(error, "%s", *why ? why : strerror(-error)) : 0;
}

static void job_end(struct coll_context *context);

static int open_dump_signal(struct coll_context *context)
{
	const struct coll_options *options = &context->options;
	int error;

	if (!options->dump_signal)
		return 0;
	error = coll_flight_dump_on(&context->flight, options->dump_signal,
				    options->dump[0] ? options->dump : ".");
	return error ? coll_open_fail(error, "option dump_signal: %s", error == -EBUSY ?
				      "the process has a handler for it; valid: another signal" :
				      strerror(-error)) : 0;
}

/* Jobs that their launchers do not name are told from each other: by the secret, or the pid. */
static const char *flight_name(const struct coll_boot *boot, char *name, size_t bytes)
{
	struct sha256_ctx hash;
	uint8_t digest[4];

	if (*boot->job && strcmp(boot->job, "unnamed") && strcmp(boot->job, "mpi"))
		return boot->job;
	sha256_init(&hash);
	sha256_update(&hash, sizeof(boot->secret), boot->secret);
	sha256_digest(&hash, sizeof(digest), digest);
	if (*boot->job)
		snprintf(name, bytes, "%.50s-%02x%02x%02x%02x", boot->job, digest[0], digest[1],
			 digest[2], digest[3]);
	else
		snprintf(name, bytes, "pid-%d", (int)getpid());
	return name;
}

/* What others see of this rank. Without it all else works. */
static int open_flight(struct coll_context *context)
{
	const struct coll_boot *boot = context->boot;
	char name[64];
	const struct coll_flight_rank rank = {
		.job = flight_name(boot, name, sizeof(name)), .rank = boot->rank, .ranks = boot->ranks,
		.local_rank = boot->local_rank, .local_ranks = boot->local_ranks,
		.progress = context->progress->name, .engine = context->options.engine,
	};
	const char *why;
	int error = coll_flight_open(&context->flight, &rank, context->options.flight, &why);

	if (error)
		return coll_open_fail(error, "out of memory");
	if (why)
		coll_log(&context->options, COLL_LOG_INFO,
			 "rank %d: coll show cannot see it: its page is not shared: %s", boot->rank,
			 why);
	return open_dump_signal(context);
}

static enum coll_wait wait_of(const struct coll_options *options)
{
	return !strcmp(options->wait, "sleep") ? COLL_WAIT_SLEEP :
	       !strcmp(options->wait, "yield") ? COLL_WAIT_YIELD : COLL_WAIT_AUTO;
}

/* How ranks of this node share its cores, for the choice of algorithms and for waiting. */
static void know_cores(struct coll_context *context)
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
	context->engine.sampled = coll_options_follow(&context->options);
	if (context->engine.sampled)	/* later there may be no descriptor */
		coll_core_wait_open(&context->core_wait);
}

static int open_listener(struct coll_context *context)
{
	int error = coll_listen(context);

	return error ? coll_open_fail(error, "cannot listen: %s",
				      context->error[0] ? context->error : strerror(-error)) : 0;
}

/* Measures what the options ask for and agrees on the fabric. Needs the world group. */
static int learn_network(struct coll_context *context, bool one_node)
{
	struct coll_group *world = context->world;
	int error = 0;

	if (context->cluster && coll_topology_is_measured(context->options.clusters))
		error = coll_topology_measure(context, context->options.clusters);
	if (error)
		coll_open_fail(error, "clusters cannot be measured: %s", coll_last_error(world));
	coll_wan_settle(context);
	if (!error && coll_wan_is_measured(context)) {
		error = coll_wan_measure(context);
		if (error)
			coll_open_fail(error, "links between clusters cannot be measured: %s",
				       coll_last_error(world));
	}
	coll_costs_know_nearest(context, one_node);
	if (!error && coll_costs_are_measured(context, !one_node && !coll_circuits_are_planned(context))) {
		error = coll_costs_measure(context);
		if (error)
			coll_open_fail(error, "costs of messages cannot be measured: %s",
				       coll_last_error(world));
		coll_wan_settle(context);
	}
	if (one_node)
		assume_loopback(context);
	if (!error && coll_circuits_are_planned(context) && context->boot->ranks > 1) {
		error = coll_circuits_agree(world);
		if (error)
			coll_open_fail(error, "rank 0 has not sent the fabric: %s",
				       coll_last_error(world));
	}
	return error;
}

/* The world group, when rank 0's parameters are known. */
static int join_world(struct coll_context *context, bool *one_node)
{
	int error = share_machine(context, one_node);

	if (error)
		return error;
	error = learn_clusters(context);
	if (!error)
		error = learn_levels(context, *one_node);
	return error ? error : open_world(context);
}

static void close_connections(struct coll_context *context, uint64_t until)
{
	coll_muxes_close(context);
	while (context->muxes && coll_now() < until)
		if (coll_context_poll(context, until))
			break;
}

/* The boot goes with it. */
static void job_free(struct coll_context *context)
{
	int rank;

	for (rank = 0; context->published && rank < context->boot->ranks; rank++)
		free(context->published[rank]);
	coll_boot_close(context->boot);
	free(context->ops);
	free(context->cluster);
	free(context->node_of);
	free(context->domain_of);
	free(context->switch_of);
	free(context->published);
	free(context->discard_buffer);
	free(context->bounce_buffer);
	free(context->mux_buffer);
	coll_core_wait_close(&context->core_wait);
	coll_flight_close(&context->flight);
}

static int job_begin(struct coll_context *context)
{
	bool one_node = false;
	int error;

	context->owner = pthread_self();
	context->discard_buffer = malloc(SPECULATIVE_MAX);
	context->bounce_buffer = malloc(SPECULATIVE_MAX);
	context->mux_buffer = malloc(MUX_BUFFER_BYTES);
	error = context->discard_buffer && context->bounce_buffer && context->mux_buffer ?
			open_boot(context) : coll_open_fail(-ENOMEM, "out of memory");
	if (error)
		goto err_close_boot;
	error = open_flight(context);
	if (error)
		goto err_close_boot;
	know_cores(context);
	error = open_offload(context);
	if (error)
		goto err_close_boot;
	error = open_engine(context);
	if (error)
		goto err_close_offload;
	error = open_listener(context);
	if (error)
		goto err_close_engine;
	error = open_circuits(context);
	if (error)
		goto err_close_engine;
	error = join_world(context, &one_node);
	if (error)
		goto err_close_engine;
	snprintf(context->flight.page->engine, sizeof(context->flight.page->engine), "%s",
		 context->engine.ops->name);
	error = learn_network(context, one_node);
	if (error)
		job_end(context);
	else
		context->flight.page->joined = 1;
	return error;

err_close_engine:
	close_connections(context, coll_now() + CLOSING_MAX_S * COLL_SECOND);
	coll_circuits_close(context);
	coll_listen_stop(context);
	coll_engine_close(&context->engine);
err_close_offload:
	coll_offload_close(context);
err_close_boot:
	job_free(context);
	return error;
}

/* Events of the floors below. */
static const struct coll_job_ops job_ops = {
	.begin = job_begin,
	.end = job_end,
	.agree = coll_circuits_agree,
	.agree_again = coll_circuits_agree_again,
	.surveyed = coll_costs_surveyed,
	.run_begins = coll_run_explain_once,
	.circuit_free = coll_circuits_free,
	.circuit_connect = coll_circuits_connect,
	.circuit_release = coll_circuits_release,
	.circuits_prefetch = coll_circuits_prefetch,
	.circuits_started = coll_circuits_started,
	.circuits_completed = coll_circuits_run_completed,
	.circuits_forget = coll_circuits_forget,
	.circuits_forget_group = coll_circuits_forget_group,
};

/* What this process knows before it meets the others. */
static int read_options(struct coll_options *read, const char *options)
{
	char why[200] = "";
	int error = coll_options_init(read, why, sizeof(why));

	if (!error && options)
		error = coll_options_parse(read, options, why, sizeof(why));
	return error ? coll_open_fail(error, "%s", why) : 0;
}

static void context_free(struct coll_context *context)
{
	coll_runs_free(context);
	coll_fork_unmark(context->here);
	pthread_mutex_destroy(&context->handles_lock);
	free(context);
}

int coll_context_open(const char *options, struct coll_boot *boot,
		      const struct coll_progress_ops *progress, struct coll_context **opened)
{
	struct coll_context *context = calloc(1, sizeof(*context));
	int error;

	*opened = NULL;
	coll_open_fail(0, "%s", "");
	if (!context) {
		coll_boot_close(boot);
		return coll_open_fail(-ENOMEM, "out of memory");
	}
	pthread_mutex_init(&context->handles_lock, NULL);
	context->events = &coll_exec_link_events;
	coll_transport_begin(context);
	context->job = &job_ops;
	context->engine.next_check = COLL_FOREVER;
	context->boot = boot;
	context->here = coll_fork_mark();
	error = context->here ? read_options(&context->options, options) :
				coll_open_fail(-ENOMEM, "out of memory");
	if (error) {
		coll_boot_close(boot);
	} else {
		context->progress = progress ? progress :
					       coll_progress_find(context->options.progress);
		error = context->progress->open(context);
	}
	if (error)
		context_free(context);
	else
		*opened = context;
	return error;
}

int coll_open(const char *options, struct coll_context **opened)
{
	return coll_context_open(options, NULL, NULL, opened);
}

/* Options are read twice: joining has their deadline. */
int coll_open_with(const char *options, const struct coll_job *job, struct coll_context **opened)
{
	struct coll_options read;
	struct coll_boot *boot;
	char why[200] = "";
	int error;

	*opened = NULL;
	coll_open_fail(0, "%s", "");
	error = read_options(&read, options);
	if (error)
		return error;
	error = coll_boot_caller_open(&boot, job, coll_now() + read.deadline_ns, why, sizeof(why));
	return error ? coll_open_fail(error, "%s", why) :
		       coll_context_open(options, boot, NULL, opened);
}

/*
 * A connection that is closed too soon loses data in flight; data that has arrived at the
 * peer's host is safe. No event reports the arrival, so it is polled.
 */
static void leave_groups(struct coll_context *context, uint64_t until)
{
	const uint64_t look = COLL_SECOND / 1000;
	int error = 0;

	while (!error && (context->groups || !coll_muxes_delivered(context)) &&
	       coll_now() < until) {
		error = coll_context_poll(context, 0);
		if (!error && !coll_groups_close_delivered(context))
			error = coll_context_poll(context, coll_now() + look);
	}
}

/* Files only: it waits for no other rank. */
static void leave_report(struct coll_context *context, bool failed)
{
	const char *file = context->options.report;
	int error = *file && context->flight.page->joined ?
			    coll_flight_report_leave(&context->flight, file, failed) : 0;

	if (error)
		coll_log(&context->options, COLL_LOG_WARN,
			 "rank %d: report '%s': %s; valid: the path of a file in a folder that all "
			 "ranks may write to", context->boot->rank, file, strerror(-error));
}

static void job_end(struct coll_context *context)
{
	const bool failed = context->world && context->world->state != GROUP_OK;
	struct coll_group *group;
	uint64_t until;

	coll_flight_left(&context->flight, coll_now());
	for (group = context->groups; group; group = group->next)
		coll_group_leave(group);
	leave_groups(context, coll_now() + context->options.deadline_ns);
	coll_circuits_leave(context);
	for (group = context->groups; group; group = group->next)
		coll_group_abandon(group);
	until = coll_now() + CLOSING_MAX_S * COLL_SECOND;
	coll_groups_reap(context);
	while (context->groups && coll_now() < until)
		if (coll_context_poll(context, until))
			break;
	close_connections(context, until);
	coll_runs_forget_plans(context);
	coll_circuits_close(context);
	coll_alarm_close(context);
	coll_listen_stop(context);
	coll_offload_close(context);
	coll_engine_close(&context->engine);
	leave_report(context, failed);
	job_free(context);
}

void coll_close(struct coll_context *context)
{
	if (!context)
		return;
	if (*context->here)
		context->progress->close(context);
	context_free(context);
}
