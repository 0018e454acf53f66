// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A job opens its floors in order, and ends them in reverse. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "congestion.h"
#include "cores.h"
#include "engines.h"
#include "flight.h"
#include "job.h"
#include "libcoll/api/run.h"
#include "libcoll/base/fork.h"
#include "libcoll/base/log.h"
#include "libcoll/base/open_error.h"
#include "libcoll/boot/caller.h"
#include "libcoll/circuit/circuit.h"
#include "libcoll/engine/engine.h"
#include "libcoll/exec/alarm.h"
#include "libcoll/exec/exec.h"
#include "libcoll/exec/group.h"
#include "libcoll/exec/health.h"
#include "libcoll/exec/offload.h"
#include "libcoll/exec/poll.h"
#include "libcoll/exec/receive.h"
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
#include "machine.h"

enum {
	WORLD_ID = 1,
	CLOSING_MAX_S = 2,	/* time for a link that is shut down to close */
};

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

/* Without words there was no memory, or no descriptor. */
static int join_fail(int error, const char *why)
{
	return *why ? coll_open_fail(error, "%s", why) :
		      coll_open_fail(error, "cannot join the job: %s", strerror(-error));
}

static int open_boot(struct coll_context *context)
{
	char why[OPTIONS_WHY] = "";
	int error;

	if (context->boot)
		return check_secret(context);
	error = coll_boot_open(&context->boot, coll_now() + context->options.deadline_ns, why,
			       sizeof(why));
	return error ? join_fail(error, why) : check_secret(context);
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
	char why[OPTIONS_WHY] = "";
	int error = coll_topology_learn(context, context->options.clusters, why, sizeof(why));

	if (!error)
		return 0;
	return coll_open_fail(error, "%s", *why ? why : "the clusters of the ranks are not known");
}

static int learn_levels(struct coll_context *context, bool one_node)
{
	char why[OPTIONS_WHY] = "";
	int error = coll_levels_learn(context, context->options.levels, one_node, why, sizeof(why));

	if (!error)
		return 0;
	return coll_open_fail(error, "%s", *why ? why : "the nodes of the ranks are not known");
}

static int open_circuits(struct coll_context *context)
{
	char why[OPTIONS_WHY] = "";
	int error = coll_circuits_open(context, why, sizeof(why));

	return error ? coll_open_fail(error, "%s", *why ? why : strerror(-error)) : 0;
}

static void job_end(struct coll_context *context);

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
		coll_job_assume_loopback(context);
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
	int error = coll_job_share_machine(context, one_node);

	if (error)
		return error;
	coll_job_follow(context);
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
	error = coll_job_open_flight(context);
	if (error)
		goto err_close_boot;
	coll_job_know_cores(context);
	error = open_offload(context);
	if (error)
		goto err_close_boot;
	error = coll_job_open_engine(context);
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
	char why[OPTIONS_WHY] = "";
	int error = coll_options_init(read, why, sizeof(why));

	if (!error && options)
		error = coll_options_parse(read, options, why, sizeof(why));
	return error ? coll_open_fail(error, "%s", why) : coll_job_check_congestion(read);
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
	char why[OPTIONS_WHY] = "";
	int error;

	*opened = NULL;
	coll_open_fail(0, "%s", "");
	error = read_options(&read, options);
	if (error)
		return error;
	error = coll_boot_caller_open(&boot, job, coll_now() + read.deadline_ns, why, sizeof(why));
	return error ? join_fail(error, why) : coll_context_open(options, boot, NULL, opened);
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

/* That of the world, which a program may have shortened since the start. */
static uint64_t leaving_time(const struct coll_context *context)
{
	return context->world ? context->world->options.deadline_ns : context->options.deadline_ns;
}

static void job_end(struct coll_context *context)
{
	const bool failed = context->world && context->world->state != GROUP_OK;
	struct coll_group *group;
	uint64_t until;

	coll_flight_left(&context->flight, coll_now());
	for (group = context->groups; group; group = group->next)
		coll_group_leave(group);
	leave_groups(context, coll_now() + leaving_time(context));
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
	coll_job_leave_report(context, failed);
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
