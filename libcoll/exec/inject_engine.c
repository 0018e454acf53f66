// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * An engine that wraps another and injects faults, as the option `inject` says: ranks stop
 * or die, messages are late, reads and writes are short, connections break.
 *
 * A message is late at its receiver: its bytes have arrived, and the run is told when it is
 * due. The sender is not slowed. Groups without the option are not affected.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/socket.h>

#include "core/port.h"
#include "exec.h"
#include "inject_engine.h"
#include "libcoll/engine/inject.h"

/* A message that has arrived and is not reported yet. It refers to its exec. */
struct delayed {
	struct delayed *next;
	struct coll_exec *exec;
	uint32_t op;
	uint64_t due;
};

struct coll_inject {
	struct coll_engine_ops ops;		/* what the context calls */
	const struct coll_engine_ops *real;
	void (*received)(struct coll_exec *exec, uint32_t op);
	struct coll_inject_config config;
	uint64_t origin;
	struct coll_inject_plan plan[INJECT_SPECS_MAX];	/* of OS noise */
	struct coll_short_io short_io;
	uint64_t started;			/* runs of groups that are injected */
	struct delayed *queue, *spare;		/* queue: in order of `due` */
};

struct coll_inject_link {
	uint64_t arrived;			/* when its last message arrived */
	uint64_t messages;
	struct coll_inject_plan plan[INJECT_SPECS_MAX];
};

/* The context that the engine is a member of. */
static struct coll_context *context_of(struct coll_engine *engine)
{
	return (struct coll_context *)((char *)engine - offsetof(struct coll_context, engine));
}

static bool group_injected(const struct coll_group *group)
{
	return group->options.inject[0];
}

static bool spec_hits(const struct coll_inject_spec *spec, const struct coll_context *context)
{
	return spec->rank == INJECT_EVERY_RANK || spec->rank == (uint64_t)context->boot->rank;
}

/* ---- OS noise: the rank stops ------------------------------------------------ */

static bool context_at_work(const struct coll_context *context)
{
	const struct coll_group *group;
	const struct coll_exec *exec;

	for (group = context->groups; group; group = group->next)
		for (exec = group_injected(group) ? group->active : NULL; exec; exec = exec->next)
			if (exec->state == EXEC_RUNNING)
				return true;
	return false;
}

static void engine_inject_pass(uint64_t until, enum coll_inject_how how)
{
	struct timespec time = { until / COLL_SECOND, until % COLL_SECOND };

	if (how == INJECT_SLEEP)
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
			;
	while (coll_now() < until)
		;
}

/* Stops until the end of every noise event that the rank is in. */
static void pause_for_noise(struct coll_context *context)
{
	struct coll_inject *inject = context->inject;
	uint32_t i;

	for (i = 0; i < inject->config.count; i++) {
		const struct coll_inject_spec *spec = &inject->config.spec[i];
		uint64_t now, until;

		if (spec->kind != INJECT_OS || !spec_hits(spec, context))
			continue;
		now = coll_now();
		until = coll_inject_plan_busy(&inject->plan[i], now);
		if (!until)
			continue;
		engine_inject_pass(until, spec->how);
		context->flight.page->injected += coll_now() - now;
	}
}

/* ---- link noise: messages are late ------------------------------------------- */

/* The random stream of a link: both ranks in the job, and the group. */
static uint64_t link_stream(const struct coll_link *link)
{
	const struct coll_group *group = link->group;
	uint64_t stream = group->id;

	stream = stream * 0x2545f4914f6cdd1dull + group->world[group->rank] + 1;
	return stream * 0x2545f4914f6cdd1dull + group->world[link->rank] + 1;
}

static bool link_hits(const struct coll_inject_spec *spec, const struct coll_link *link)
{
	return spec->kind == INJECT_LINK && spec_hits(spec, link->group->context) &&
	       (spec->from == INJECT_EVERY_RANK || spec->from == link->group->world[link->rank]);
}

static struct coll_inject_link *link_state(struct coll_link *link)
{
	struct coll_inject *inject = link->group->context->inject;
	struct coll_inject_link *state = link->inject;
	uint32_t i;

	if (state)
		return state;
	state = link->inject = calloc(1, sizeof(*state));
	for (i = 0; state && i < inject->config.count; i++)
		if (inject->config.spec[i].kind == INJECT_LINK)
			coll_inject_plan_init(&state->plan[i], &inject->config.spec[i],
					      link_stream(link), inject->origin);
	return state;
}

/*
 * When a message is due that was awaited since `posted` and arrived at `now`. Time before
 * the link's previous message counts for that message.
 */
static uint64_t message_due(const struct coll_link *link, struct coll_inject_link *state,
			    uint64_t posted, uint64_t now)
{
	const struct coll_inject_config *config = &link->group->context->inject->config;
	uint64_t from = posted > state->arrived ? posted : state->arrived;
	uint64_t due = now, busy;
	uint32_t i;

	for (i = 0; i < config->count; i++) {
		const struct coll_inject_spec *spec = &config->spec[i];

		if (!link_hits(spec, link))
			continue;
		if (spec->model == INJECT_EVENT) {
			due += coll_inject_plan_strikes(&state->plan[i], from, now);
		} else {
			busy = coll_inject_plan_busy(&state->plan[i], now);
			due += busy ? busy - now : 0;
		}
	}
	state->arrived = now;
	return due;
}

uint64_t coll_inject_due(const struct coll_context *context)
{
	return context->inject->queue ? context->inject->queue->due : COLL_FOREVER;
}

static int engine_inject_delay(struct coll_inject *inject, struct coll_exec *exec, uint32_t op,
			       uint64_t due)
{
	struct delayed *delayed = inject->spare, **slot = &inject->queue;

	coll_assert(exec->arrived[op]);
	if (delayed)
		inject->spare = delayed->next;
	else
		delayed = malloc(sizeof(*delayed));
	if (!delayed)
		return -ENOMEM;
	while (*slot && (*slot)->due <= due)
		slot = &(*slot)->next;
	*delayed = (struct delayed){ *slot, exec, op, due };
	*slot = delayed;
	coll_exec_get(exec);
	return 0;
}

/* Reports messages that are due or whose run has completed. Returns how many. */
static int deliver_due(struct coll_inject *inject)
{
	struct delayed **slot = &inject->queue, *delayed;
	uint64_t now = inject->queue ? coll_now() : 0;
	int count = 0;

	while ((delayed = *slot)) {
		struct coll_exec *exec = delayed->exec;

		if (delayed->due > now && exec->state == EXEC_RUNNING) {
			slot = &delayed->next;
			continue;
		}
		*slot = delayed->next;
		delayed->next = inject->spare;
		inject->spare = delayed;
		coll_exec_put(exec);
		inject->received(exec, delayed->op);
		slot = &inject->queue;	/* that may have queued others */
		count++;
	}
	return count;
}

static void drop_after(const struct coll_context *context, const struct coll_link *link,
		       const struct coll_inject_link *state)
{
	const struct coll_inject_config *config = &context->inject->config;
	uint32_t i;

	for (i = 0; i < config->count; i++)
		if (config->spec[i].kind == INJECT_DROP && spec_hits(&config->spec[i], context) &&
		    config->spec[i].after == state->messages && coll_link_fd(link) >= 0)
			shutdown(coll_link_fd(link), SHUT_RDWR);
}

bool coll_inject_delays(struct coll_link *link, struct coll_exec *exec, uint32_t op, uint64_t *due)
{
	struct coll_context *context = link->group->context;
	struct coll_inject_link *state = group_injected(link->group) ? link_state(link) : NULL;
	uint64_t now;

	if (!state)
		return false;
	state->messages++;
	drop_after(context, link, state);
	now = coll_now();
	*due = message_due(link, state, exec->posted_at[op], now);
	return *due > now && exec->state == EXEC_RUNNING &&
	       !engine_inject_delay(context->inject, exec, op, *due);
}

/* ---- dead and stopped ranks ------------------------------------------------------ */

void coll_inject_started(struct coll_group *group)
{
	if (group_injected(group))
		group->context->inject->started++;
}

/* The run's first messages have gone out: it has begun on other ranks as well. */
static void strike_down(const struct coll_context *context)
{
	struct coll_inject *inject = context->inject;
	uint32_t i;

	for (i = 0; i < inject->config.count; i++) {
		struct coll_inject_spec *spec = &inject->config.spec[i];

		if ((spec->kind != INJECT_KILL && spec->kind != INJECT_STOP) ||
		    !spec_hits(spec, context) || inject->started < spec->after)
			continue;
		spec->after = UINT64_MAX;	/* once */
		raise(spec->kind == INJECT_KILL ? SIGKILL : SIGSTOP);
	}
}

/* ---- the engine ----------------------------------------------------------------- */

static int inject_advance(struct coll_engine *engine, uint64_t deadline)
{
	struct coll_context *context = context_of(engine);
	struct coll_inject *inject = context->inject;
	bool at_work = context_at_work(context), waits = deadline;
	int error;

	if (at_work)
		pause_for_noise(context);
	if (deliver_due(inject))
		deadline = 0;
	if (inject->queue && inject->queue->due < deadline)
		deadline = inject->queue->due;
	error = inject->real->advance(engine, deadline);
	if (at_work) {
		strike_down(context);
		pause_for_noise(context);
	}
	if (deliver_due(inject) && !waits && !error)	/* work that follows goes out now */
		error = inject->real->advance(engine, 0);
	return error;
}

static void free_delayed(struct delayed *list)
{
	while (list) {
		struct delayed *next = list->next;

		free(list);
		list = next;
	}
}

static void inject_close(struct coll_engine *engine)
{
	struct coll_context *context = context_of(engine);
	struct coll_inject *inject = context->inject;

	engine->ops = inject->real;
	engine->short_io = NULL;
	coll_engine_close(engine);
	context->inject = NULL;
	free_delayed(inject->queue);
	free_delayed(inject->spare);
	coll_inject_release(&inject->config);
	free(inject);
}

/* Starts the rank's own random streams. A link's begin with its first message. */
static void start_plans(struct coll_inject *inject, uint64_t rank)
{
	const struct coll_inject_config *config = &inject->config;
	uint32_t i;

	inject->origin = coll_now();
	for (i = 0; i < config->count; i++)
		if (config->spec[i].kind == INJECT_OS)
			coll_inject_plan_init(&inject->plan[i], &config->spec[i], rank,
					      inject->origin);
}

static void start_short_io(struct coll_inject *inject, const struct coll_context *context)
{
	const struct coll_inject_config *config = &inject->config;
	uint32_t i;

	inject->short_io.random = config->seed + ((uint64_t)context->boot->rank << 32);
	for (i = 0; i < config->count; i++)
		if (config->spec[i].kind == INJECT_SHORT && spec_hits(&config->spec[i], context))
			inject->short_io.probability = config->spec[i].probability;
}

int coll_inject_open(struct coll_context *context,
		     void (*received)(struct coll_exec *exec, uint32_t op))
{
	struct coll_inject *inject = calloc(1, sizeof(*inject));
	char why[200];
	int error;

	if (!inject)
		return -ENOMEM;
	error = coll_inject_parse(&inject->config, context->options.inject, why, sizeof(why));
	if (error) {
		free(inject);
		return error;
	}
	start_plans(inject, context->boot->rank);
	start_short_io(inject, context);
	inject->received = received;
	inject->real = context->engine.ops;
	inject->ops = *inject->real;
	inject->ops.close = inject_close;
	inject->ops.advance = inject_advance;
	context->inject = inject;
	context->engine.ops = &inject->ops;
	context->engine.short_io = &inject->short_io;
	return 0;
}
