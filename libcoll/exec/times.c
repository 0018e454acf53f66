// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "exec.h"
#include "libcoll/base/core_wait.h"
#include "libcoll/engine/engine.h"
#include "live.h"
#include "survey.h"
#include "times.h"

/* ---- samples ------------------------------------------------------------ */

bool coll_times_is_drawn(const struct coll_exec *exec, const struct coll_op *op)
{
	return exec->sampled && !op->slot &&
	       coll_samples_draw(exec->group->samples, exec->number,
				 exec->planned->links[op->peer]->rank);
}

void coll_times_sample_sent(const struct coll_exec *exec, const struct coll_op *op)
{
	const struct coll_link *link = exec->planned->links[op->peer];

	if (coll_times_is_drawn(exec, op))
		coll_samples_sent(exec->group->samples, exec->number, link->rank,
				  coll_link_class(link), op->bytes, coll_now());
}

static struct coll_sample_time sample_time(const struct coll_group *group)
{
	struct coll_context *context = group->context;
	const struct coll_engine *engine = &context->engine;
	const uint64_t held = group->survey->looks ? coll_core_wait_now(&context->core_wait) : 0;
	const uint64_t now = coll_now();

	return (struct coll_sample_time){
		.now = now,
		.held = held,
		.away = engine->away + (now - engine->now),
		.looks = engine->looks,
		.thread = context->core_wait.accounts,
	};
}

/* For one that was injected to be late: it is not there until it is due, 0: it is there. */
static struct coll_sample_time sample_due(const struct coll_group *group, uint64_t due)
{
	struct coll_sample_time time = sample_time(group);

	if (due > time.now) {
		time.now = due;
		time.looks += 2;
	}
	return time;
}

void coll_times_sample_posted(const struct coll_exec *exec, const struct coll_op *op)
{
	if (coll_times_is_drawn(exec, op))
		coll_samples_posted(exec->group->samples, exec->number,
				    exec->planned->links[op->peer]->rank,
				    sample_time(exec->group));
}

void coll_times_sample_kept(const struct coll_exec *exec, const struct coll_op *op)
{
	if (coll_times_is_drawn(exec, op))
		coll_samples_kept(exec->group->samples, exec->number, exec->planned->links[op->peer]->rank,
				  sample_time(exec->group));
}

static void sample_arrived(const struct coll_exec *exec, const struct coll_op *op, uint64_t due)
{
	const struct coll_link *link;

	if (op->kind != COLL_OP_RECV || !coll_times_is_drawn(exec, op))
		return;
	link = exec->planned->links[op->peer];
	coll_samples_arrived(exec->group->samples, exec->number, link->rank, coll_link_class(link),
			     op->bytes, sample_due(exec->group, due));
}

void coll_times_sample_arrived(const struct coll_exec *exec, const struct coll_op *op)
{
	sample_arrived(exec, op, 0);
}

void coll_times_due(const struct coll_exec *exec, const struct coll_op *op, uint64_t due)
{
	struct coll_survey *survey = exec->group->survey;

	if (survey)
		coll_delays_due(&survey->delays, due - exec->group->context->engine.now);
	sample_arrived(exec, op, due);
}

void coll_exec_stale(const struct coll_link *link, const struct coll_header *header)
{
	struct coll_group *group = link->group;

	if (group->survey && group->state == GROUP_OK && !header->offset)
		coll_delays_stale(&group->survey->delays, group->next_run - header->run);
	if (group->samples && group->state == GROUP_OK && !header->slot && !header->offset &&
	    coll_samples_want(group->samples, header->run, link->rank))
		coll_samples_arrived(group->samples, header->run, link->rank, coll_link_class(link),
				     header->bytes, sample_time(group));
}

/* ---- times of timed runs -------------------------------------------------- */

static uint32_t peer_in_job(const struct coll_exec *exec, const struct coll_op *op)
{
	return exec->group->world[exec->planned->links[op->peer]->rank];
}

void coll_times_sent(const struct coll_exec *exec, const struct coll_op *op)
{
	struct coll_flight_timed *run = coll_live_times(exec, op);

	if (run)
		coll_flight_timed_sent(run, peer_in_job(exec, op), coll_now());
}

void coll_times_posted(const struct coll_exec *exec, const struct coll_op *op)
{
	struct coll_flight_timed *run = coll_live_times(exec, op);

	if (run)
		coll_flight_timed_posted(run, peer_in_job(exec, op), coll_now());
}

void coll_times_posted_first(const struct coll_exec *exec)
{
	const struct coll_schedule *s = exec->planned->schedule;
	struct coll_flight_timed *run;
	uint32_t i;

	for (i = 0; i < s->ops; i++) {
		const struct coll_op *op = &coll_ops(s)[i];

		run = op->kind == COLL_OP_RECV && !exec->step.plan->pending[i] ? coll_live_times(exec, op) : NULL;
		if (run)
			coll_flight_timed_posted(run, peer_in_job(exec, op), exec->started);
	}
}

void coll_times_found(const struct coll_exec *exec, const struct coll_op *op)
{
	struct coll_flight_timed *run = coll_live_times(exec, op);

	if (run)
		coll_flight_timed_found(run, peer_in_job(exec, op), coll_now());
}

void coll_times_arrived(const struct coll_exec *exec, const struct coll_op *op)
{
	struct coll_flight_timed *run = op->kind == COLL_OP_RECV ? coll_live_times(exec, op) : NULL;

	if (run)
		coll_flight_timed_arrived(run, peer_in_job(exec, op), coll_now());
}
