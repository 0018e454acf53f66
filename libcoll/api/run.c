// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The user's handle on a run: start, test, wait, cancel, free, explain. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "algo/circuits/circuits.h"
#include "algo/tuning.h"
#include "libcoll/circuit/circuit.h"
#include "context.h"
#include "libcoll/engine/engine.h"
#include "libcoll/exec/exec.h"
#include "libcoll/link/health.h"
#include "libcoll/progress/offload.h"
#include "libcoll/progress/progress.h"
#include "run.h"
#include "libcoll/topology/topology.h"
#include "libcoll/topology/wan.h"

enum { LINGERING_MAX = 128, EXPLANATION_BYTES = 800 };

/* What progress was chosen, if it is chosen. */
static const char *choice_explain(const struct coll_run *run, char *text, size_t bytes)
{
	static const char *const chosen[] = { "call", "thread", "kernel" };

	*text = 0;
	if (run->choice[0])
		snprintf(text, bytes, "progress %s (auto: %s)", chosen[run->chosen], run->choice);
	return text;
}

/* Who carries it on: "engine uring", "the kernel", and why not. */
static const char *place_explain(const struct coll_run *run, char *text, size_t bytes)
{
	const struct coll_context *context = run->group->context;
	const char *aside = run->planned->aside;
	char choice[160];

	choice_explain(run, choice, sizeof(choice));
	if (context->offload && !aside)
		snprintf(text, bytes, "in the kernel%s%s", *choice ? ", " : "", choice);
	else if (*choice)
		snprintf(text, bytes, "engine %s, %s", context->engine->name, choice);
	else
		snprintf(text, bytes, "engine %s%s%s%s", context->engine->name,
			 aside ? " (not in the kernel: " : "", aside ? aside : "",
			 aside ? ")" : "");
	return text;
}

/* Why n is what it is: ", a link carries 2.5 MB/s, the WAN 25 MB/s". */
static const char *lanes_explain(const struct planned *planned,
				 const struct coll_machine *machine, char *text, size_t bytes)
{
	*text = 0;
	if (!planned->call.cluster || planned->tuning.lanes == COLL_UNSET)
		return text;
	if (machine->wan_beta > 0 && machine->beta > 0)
		snprintf(text, bytes,
			 " (a link carries %.3g MB/s, the WAN %.3g, overload costs %g)",
			 1e-6 / machine->beta, 1e-6 / machine->wan_beta, machine->congestion);
	else
		snprintf(text, bytes, " (what the WAN carries is not known: wan_beta)");
	return text;
}

/* Why T and relays are what they are: ", T for noise of 1000x1e-05s". */
static const char *noise_explain(const struct coll_run *run, char *text, size_t bytes)
{
	const struct planned *planned = run->planned;
	const struct coll_options *options = &run->group->options;
	const struct coll_noise_rate *noise = options->machine.noise;
	const bool asked = options->tuning[planned->call.collective].redundancy != COLL_UNSET ||
			   options->tuning[planned->call.collective].relays != COLL_UNSET;
	size_t used;
	u32 k;

	*text = 0;
	if (!coll_algo_has_option(planned->algo, "T") || asked)
		return text;
	if (noise->rate <= 0 && options->machine.link_noise.rate <= 0) {
		snprintf(text, bytes, " (noise is not known: option noise)");
		return text;
	}
	used = snprintf(text, bytes, " (least time with noise");
	for (k = 0; k < COLL_NOISES_MAX && noise[k].rate > 0 && used < bytes; k++)
		used += snprintf(text + used, bytes - used, "%s %.3gx%.3gus", k ? " +" : "",
				 noise[k].rate, noise[k].duration * 1e6);
	if (options->machine.link_noise.rate > 0 && used < bytes)
		used += snprintf(text + used, bytes - used, ", of links %.3gx%.3gus",
				 options->machine.link_noise.rate,
				 options->machine.link_noise.duration * 1e6);
	if (used < bytes)
		snprintf(text + used, bytes - used, ")");
	return text;
}

/* What the plan of its circuits should take, and what any would. */
static const char *circuits_explain(struct planned *planned, char *text, size_t bytes)
{
	const struct coll_circuits_cost *cost = coll_planned_cost(planned);
	const struct coll_machine machine = coll_planned_machine(planned);
	char lit[48] = "";

	*text = 0;
	if (!cost)
		return text;
	if (planned->lit > 0)
		snprintf(lit, sizeof(lit), ", lit already %.4g ms", planned->lit * 1e3);
	snprintf(text, bytes, ", predicted %.4g ms, at least %.4g ms: %u set-ups of %.3g ms, "
		 "%u of a node%s, alpha %.3g us, beta %.3g ns", cost->seconds * 1e3,
		 planned->bound * 1e3, cost->setups, machine.delta * 1e3, cost->most_setups,
		 lit, machine.alpha * 1e6, machine.beta * 1e9);
	return text;
}

static const char *run_explain(struct coll_run *run, char *text, size_t bytes)
{
	struct planned *planned = run->planned;
	const struct coll_call *call = &planned->call;
	const struct coll_schedule *s = planned->schedule;
	const bool asked = run->group->options.algo[call->collective] == planned->algo;
	char tuning[128], clusters[256], lanes[128], noise[300], place[320], circuits[208];
	char streams[128] = "";

	if (call->cluster)
		coll_wan_streams_explain(run->group->context, streams, sizeof(streams));
	snprintf(text, bytes,
		 "%s of %llu x %u bytes, %u ranks%s%s%s: %s%s%s%s (%s)%s, %u ops, %u peers, "
		 "%s%s%s%s",
		 coll_collective_names[call->collective], (unsigned long long)call->count,
		 call->element, call->ranks, call->cluster ? " in clusters of " : "",
		 coll_topology_print(run->group, clusters, sizeof(clusters)),
		 lanes_explain(planned, &run->group->options.machine, lanes, sizeof(lanes)),
		 planned->algo->name,
		 *coll_tuning_print(&planned->tuning, tuning, sizeof(tuning)) ? ":" : "", tuning,
		 noise_explain(run, noise, sizeof(noise)),
		 asked ? "asked for" : "least predicted time of those that fit",
		 circuits_explain(planned, circuits, sizeof(circuits)), s->ops, s->peers,
		 place_explain(run, place, sizeof(place)),
		 run->group->context->congestion[0] ? ", TCP " : "",
		 run->group->context->congestion, streams);
	return text;
}

static struct coll_exec *oldest_lingering(const struct coll_group *group)
{
	struct coll_exec *exec = group->active;

	while (exec && !exec->over)
		exec = exec->next;
	return exec;
}

/*
 * A rank that only sends may run far ahead of those that receive; what has not
 * left yet is bounded by waiting here for some of it, and for who takes it.
 */
static int run_throttle(struct coll_group *group, uint64_t ns)
{
	while (group->lingering >= LINGERING_MAX && group->state == GROUP_OK) {
		int error;

		coll_health_hold(oldest_lingering(group), ns);
		error = coll_context_turn(group->context, COLL_FOREVER);
		if (error)
			return error;
	}
	return 0;
}

static void explain_once(struct coll_run *run)
{
	char text[EXPLANATION_BYTES];

	if (!run->group->options.explain || run->planned->explained)
		return;
	run->planned->explained = true;
	if (!run->group->rank)
		fprintf(stderr, "coll: %s\n", run_explain(run, text, sizeof(text)));
}

int coll_run_begin(struct coll_run *run)
{
	const uint64_t ns = run->deadline_ns ? run->deadline_ns : run->group->options.deadline_ns;
	int error = run_throttle(run->group, ns);

	if (!error)
		error = coll_planned_renew(run);
	if (error)
		return error;
	run->status = 0;
	if (run->chosen != run->planned->chosen)
		run->planned->explained = false;
	run->planned->chosen = run->chosen;
	if (run->group->context->offload) {
		run->allowed = ns;
		error = coll_offload_start(run, coll_now() + ns);
		if (!run->waiting)
			explain_once(run);
		return error;
	}
	explain_once(run);
	return coll_exec_start(run, coll_now() + ns);
}

bool coll_run_moving(struct coll_run *run)
{
	return run->exec || ((run->word || run->waiting) && coll_offload_moving(run));
}

/* Looks at the completion word before anybody sleeps; the thread may need this core. */
static void look_at_word(struct coll_run *run)
{
	const uint64_t until = coll_now() + run->group->context->options.spin_ns;

	while (run->word && coll_offload_moving(run) && coll_now() < until)
		sched_yield();
}

void coll_run_flush(struct coll_run *run)
{
	struct coll_context *context = run->group->context;

	if (context->touched)
		context->engine->advance(context, 0);
}

/*
 * The engine works no more, so nothing that it holds comes back: the group fails,
 * and when the news had time to leave, the run ends as it is.
 */
void coll_run_engine_failed(struct coll_run *run, int error)
{
	struct coll_group *group = run->group;

	coll_group_fail(group, error, group->rank, COLL_NONE, error == -EPERM ?
			"engine uring works in the thread that called coll_open() only" :
			"its engine failed");
	if (group->state != GROUP_FAILED || !run->exec)
		return;
	run->status = group->error;
	run->exec->run = NULL;
	run->exec = NULL;
}

int coll_run_await(struct coll_run *run)
{
	struct coll_context *context = run->group->context;

	look_at_word(run);
	while (coll_run_moving(run)) {
		int error = coll_context_turn(context, COLL_FOREVER);

		if (error)
			coll_run_engine_failed(run, error);
	}
	coll_run_flush(run);
	return run->status;
}

void coll_run_ended(struct coll_run *run)
{
	if (run->persistent)
		return;
	if (run->planned)
		coll_planned_put(run->planned);
	run->planned = NULL;
	free(run->counts);
	run->counts = NULL;
}

/* Frees the handle. */
static void run_free(struct coll_run *run)
{
	free(run->explanation);
	free(run);
}

static bool run_in_flight(struct coll_run *run)
{
	return coll_progress_of(run->group->context)->in_flight(run);
}

int coll_run_start(struct coll_run *run)
{
	if (!run->persistent)
		return -EINVAL;
	if (run_in_flight(run))
		return -EBUSY;
	return coll_progress_of(run->group->context)->start(run);
}

/* A nonblocking run that has ended is gone; a persistent one may start again. */
static int run_gone(struct coll_run **run)
{
	struct coll_run *ended = *run;
	int status = ended->status;

	if (!ended->persistent) {
		run_free(ended);
		*run = NULL;
	}
	return status;
}

int coll_run_test(struct coll_run **run, int *done)
{
	int error;

	*done = 1;
	if (!*run)
		return 0;
	error = run_in_flight(*run) ? coll_progress((*run)->group->context) : 0;
	if (error)
		return error;
	*done = !run_in_flight(*run);
	if (!*done)
		return 0;
	coll_progress_of((*run)->group->context)->wait(*run);
	return run_gone(run);
}

int coll_run_wait(struct coll_run **run)
{
	if (!*run)
		return 0;
	coll_progress_of((*run)->group->context)->wait(*run);
	return run_gone(run);
}

int coll_run_waitall(struct coll_run **runs, size_t count)
{
	int first = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		int error = coll_run_wait(&runs[i]);

		if (error && !first)
			first = error;
	}
	return first;
}

int coll_run_cancel(struct coll_run *run)
{
	if (!run_in_flight(run))
		return 0;
	return coll_revoke(run->group);
}

static void run_unplan(void *argument)
{
	struct coll_run *run = argument;

	run->persistent = false;
	coll_circuits_forget(run);
	coll_run_ended(run);
}

int coll_run_free(struct coll_run **run)
{
	if (!*run)
		return 0;
	if (run_in_flight(*run))
		return -EBUSY;
	coll_progress_do((*run)->group->context, run_unplan, *run);
	run_free(*run);
	*run = NULL;
	return 0;
}

struct deadline_change {
	struct coll_run *run;
	uint64_t ns;
};

static void change_deadline(void *argument)
{
	const struct deadline_change *change = argument;
	struct coll_run *run = change->run;
	struct coll_exec *exec = run->exec;

	run->deadline_ns = change->ns;
	if (run->word || run->waiting) {
		const uint64_t ns = change->ns ? change->ns : run->group->options.deadline_ns;

		run->until += ns - run->allowed;
		run->allowed = ns;
		coll_offload_deadline(run, run->until);
	}
	if (!exec)
		return;
	exec->deadline = exec->started +
			 (change->ns ? change->ns : run->group->options.deadline_ns);
	coll_health_check_at(run->group->context, 0);
}

int coll_run_deadline(struct coll_run *run, uint64_t ns)
{
	coll_progress_do_now(run->group->context, change_deadline,
			     &(struct deadline_change){ run, ns });
	return 0;
}

static void run_explain_choice(void *argument)
{
	struct coll_run *run = argument;
	char choice[160];

	if (run->planned)
		run_explain(run, run->explanation, EXPLANATION_BYTES);
	else
		snprintf(run->explanation, EXPLANATION_BYTES, "%s%s%s",
			 run->posted || run_in_flight(run) ? "it waits for its turn"
							   : "it has ended",
			 run->choice[0] ? ", " : "", choice_explain(run, choice, sizeof(choice)));
}

const char *coll_run_explain(struct coll_run *run)
{
	struct coll_context *context = run->group->context;

	if (!run->explanation)
		run->explanation = malloc(EXPLANATION_BYTES);
	if (!run->explanation)
		return "";
	/* Behind the run's own start, when it is planned; but a helper would first end it. */
	if (context->progress == &coll_progress_helper)
		coll_progress_do_now(context, run_explain_choice, run);
	else
		coll_progress_do(context, run_explain_choice, run);
	return run->explanation;
}
