// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/port.h"
#include "health.h"
#include "libcoll/base/clock.h"
#include "libcoll/flight/report_file.h"
#include "libcoll/engine/engine.h"
#include "live.h"
#include "run.h"

enum {
	SHOW_NS = 10000000,		/* the lists are written at most so often ... */
	SHOW_AGAIN_NS = 1000000000,	/* ... and at least, while the rank polls */
	OPS_LOOKED_AT = 1 << 16,	/* of a run */
};

/* ---- entries ------------------------------------------------------------- */

static void live_group(struct coll_flight *flight, struct coll_group *group, uint64_t now)
{
	struct coll_flight_group *entry = coll_flight_group_take(flight, group, &group->flight);

	entry->id = group->id;
	entry->rank = group->rank;
	entry->ranks = group->ranks;
	entry->failed_rank = COLL_FLIGHT_NO_RANK;
	entry->ended = group->next_run;
	entry->since = now;
}

/* Of the library's own calls no option names the algorithm, nor of messages. */
static bool is_asked_for(const struct coll_planned *planned)
{
	return planned->algo && planned->user_op != COLL_OWN_CALL &&
	       !coll_call_is_message(&planned->call) &&
	       planned->group->options.algo[planned->call.collective] == planned->algo;
}

static void live_call(struct coll_flight *flight, struct coll_planned *planned, uint64_t now)
{
	struct coll_flight_call *entry = coll_flight_call_take(flight, planned, &planned->flight);
	const struct coll_call *call = &planned->call;

	entry->count = call->count;
	entry->element = call->element;
	entry->collective = call->collective;
	entry->root = call->root;
	entry->hash = planned->hash;
	entry->type = call->type;
	entry->reduction = call->reduction;
	entry->ops = planned->schedule->ops;
	entry->peers = planned->schedule->peers;
	snprintf(entry->algo, sizeof(entry->algo), "%s", planned->algo ? planned->algo->name : "");
	coll_planned_predict(planned);
	entry->predicted = planned->predicted_ns;
	entry->best = planned->best_ns;
	entry->segment = planned->tuning.segment == COLL_UNSET ? 0 : planned->tuning.segment;
	entry->asked = is_asked_for(planned);
	entry->ranks = call->ranks;
	entry->since = now;
}

/* ---- runs ------------------------------------------------------------------ */

uint8_t coll_live_begin(struct coll_group *group, struct coll_planned *planned, uint32_t number,
			uint64_t now, uint64_t deadline, enum coll_flight_where where)
{
	struct coll_context *context = group->context;
	struct coll_flight *flight = &context->flight;
	struct coll_flight_page *page = flight->page;
	uint32_t entry = coll_flight_run_take(flight);

	COLL_PROBE5(libcoll, run_begin, group->id, number, (int)planned->call.collective,
		    planned->call.count * planned->call.element, planned->algo ? planned->algo->name : "");
	coll_engine_back(&context->engine, now);
	if (!group->flight || flight->group_of[group->flight - 1] != group)
		live_group(flight, group, now);
	if (!planned->flight || flight->call_of[planned->flight - 1] != planned)
		live_call(flight, planned, now);
	coll_flight_event(flight, now, COLL_FLIGHT_BEGIN, group->flight - 1, number,
			  COLL_FLIGHT_PEER_NONE, planned->flight - 1);
	page->runs++;
	coll_flight_now(flight, now);
	if (!flight->entered)
		flight->entered = now;
	page->group[group->flight - 1].begun = number + 1;
	if (entry < COLL_FLIGHT_RUNS)
		page->run[entry] = (struct coll_flight_run){
			.since = now, .deadline = deadline, .number = number, .where = where,
			.group = group->flight - 1, .call = planned->flight - 1,
		};
	return entry;
}

/* Another group may have got its entry meanwhile. */
void coll_live_end(struct coll_group *group, uint8_t entry, uint32_t number, int status)
{
	struct coll_flight *flight = &group->context->flight;
	struct coll_engine *engine = &group->context->engine;
	uint64_t now = engine->now;

	/* It ended where it began: nobody has looked at the clock since. */
	if (entry < COLL_FLIGHT_RUNS && flight->page->run[entry].since == now)
		now = coll_engine_look(engine);
	COLL_PROBE3(libcoll, run_end, group->id, number, status);
	coll_flight_now(flight, now);
	if (entry < COLL_FLIGHT_RUNS && !status)
		coll_flight_sum_add(coll_flight_run_sum(flight, entry), now - flight->page->run[entry].since);
	coll_flight_run_free(flight, entry);
	if (flight->group_of[group->flight - 1] != group)
		return;
	flight->page->group[group->flight - 1].ended++;
	coll_flight_event(flight, now, COLL_FLIGHT_END, group->flight - 1, number,
			  COLL_FLIGHT_PEER_NONE, -status);
}

uint16_t coll_live_timed(struct coll_group *group, const struct coll_planned *planned,
			 uint32_t number, uint64_t now)
{
	struct coll_flight *flight = &group->context->flight;
	struct coll_flight_timed *run;
	uint16_t timed;

	if (!flight->page->joined || planned->user_op == COLL_OWN_CALL ||
	    coll_call_is_message(&planned->call))
		return 0;
	timed = coll_flight_timed_begin(flight, group->id, number, now);
	if (!timed)
		return 0;
	run = coll_flight_timed_of(flight, timed, group->id, number);
	run->collective = planned->call.collective;
	run->bytes = planned->call.count * planned->call.element;
	run->call = planned->flight - 1;
	return timed;
}

void coll_live_timed_end(struct coll_group *group, uint16_t timed, uint32_t number)
{
	struct coll_flight *flight = &group->context->flight;
	struct coll_flight_timed *run =
		timed ? coll_flight_timed_of(flight, timed, group->id, number) : NULL;

	if (run)
		coll_flight_timed_end(flight, run, coll_now());
}

void coll_live_fail(struct coll_group *group)
{
	struct coll_context *context = group->context;
	struct coll_flight *flight = &context->flight;
	struct coll_flight_group *entry;

	if (!group->flight || flight->group_of[group->flight - 1] != group)
		live_group(flight, group, coll_now());
	entry = &flight->page->group[group->flight - 1];
	snprintf(entry->text, sizeof(entry->text), "%.95s", group->text);
	entry->failed_rank = group->failed_rank;
	entry->error = group->error;
	coll_flight_event(flight, coll_now(), COLL_FLIGHT_FAIL, group->flight - 1, group->next_run,
			  group->failed_rank < group->ranks ? group->world[group->failed_rank] :
							      COLL_FLIGHT_PEER_NONE, -group->error);
	if (group->error == -ECANCELED)
		return;
	if (context->options.dump[0])
		coll_flight_dump(flight, context->options.dump);
	if (context->options.report[0])	/* the program may end without coll_close() */
		coll_flight_report_record(flight, context->options.report);
}

/* ---- lists -------------------------------------------------------------------- */

static bool live_waits(const struct coll_exec *exec, uint32_t op)
{
	const struct coll_op *it = &coll_ops(exec->planned->schedule)[op];

	if (exec->step.state[op] != COLL_OP_STARTED || (it->flags & COLL_OPTIONAL))
		return false;
	return it->kind == COLL_OP_SEND || it->kind == COLL_OP_CONNECT ||
	       (it->kind == COLL_OP_RECV && !exec->arrived[op]);
}

static void show_wait(struct coll_flight_page *page, const struct coll_exec *exec, uint32_t op)
{
	const struct coll_op *it = &coll_ops(exec->planned->schedule)[op];
	const struct coll_group *group = exec->group;

	if (page->waits == COLL_FLIGHT_WAITS) {
		page->waits_more++;
		return;
	}
	page->wait[page->waits++] = (struct coll_flight_wait){
		.bytes = it->bytes, .number = exec->number, .op = op, .slot = it->slot,
		.peer = group->world[exec->planned->links[it->peer]->rank], .run = exec->flight,
		.kind = it->kind,
	};
}

static uint64_t queued_bytes(const struct coll_link *link)
{
	const struct coll_message *message;
	uint64_t bytes = 0;

	for (message = link->queue; message; message = message->next)
		bytes += message->header.bytes;
	return bytes;
}

static void show_link(struct coll_flight_page *page, const struct coll_link *link)
{
	const struct coll_group *group = link->group;
	const int fd = coll_link_fd(link);
	struct stat socket;

	if (page->links == COLL_FLIGHT_LINKS)
		return;
	page->link[page->links++] = (struct coll_flight_link){
		.inode = fd >= 0 && !fstat(fd, &socket) ? socket.st_ino : 0,
		.heard = link->heard_at,
		.queued = queued_bytes(link),
		.peer = group->world[link->rank],
		.state = link->state,
		.flags = (link->local ? COLL_FLIGHT_LOCAL : 0) |
			 (coll_link_through_memory(link) ? COLL_FLIGHT_MEMORY : 0) |
			 (coll_group_is_full(group) ? COLL_FLIGHT_FULL : 0) |
			 (link->pinged ? COLL_FLIGHT_PINGED : 0),
		.group = group->flight - 1,
	};
}

static void show_exec(struct coll_flight_page *page, const struct coll_exec *exec)
{
	const struct coll_schedule *s = exec->planned->schedule;
	const uint32_t ops = s->ops < OPS_LOOKED_AT ? s->ops : OPS_LOOKED_AT;
	uint32_t i;

	for (i = 0; i < ops; i++)
		if (live_waits(exec, i))
			show_wait(page, exec, i);
	for (i = 0; i < s->peers; i++)
		if (exec->posted[i] || exec->planned->links[i]->queue)
			show_link(page, exec->planned->links[i]);
}

/* When coll_health_check() finds that it takes long. */
static uint64_t slow_ns(const struct coll_exec *exec)
{
	const uint64_t quarter = (exec->deadline - exec->started) / 4;

	return quarter < HEALTH_FIRST_NS ? quarter : HEALTH_FIRST_NS;
}

/* Whether there is one. */
static bool show_all(struct coll_context *context, uint64_t now)
{
	struct coll_flight_page *page = context->flight.page;
	const struct coll_group *group;
	const struct coll_exec *exec;
	bool any = false;

	for (group = context->groups; group; group = group->next)
		for (exec = group->active; exec; exec = exec->next) {
			if (exec->state != EXEC_RUNNING || now - exec->started < slow_ns(exec))
				continue;
			any = true;
			if (exec->flight < COLL_FLIGHT_RUNS &&
			    context->flight.group_of[group->flight - 1] == group)
				show_exec(page, exec);
			if (page->kept < group->unexpected_bytes)
				page->kept = group->unexpected_bytes;
		}
	return any;
}

void coll_live_show(struct coll_context *context, uint64_t now)
{
	struct coll_flight *flight = &context->flight;
	struct coll_flight_page *page = flight->page;
	const bool news = flight->head != flight->shown_head;

	if (now - page->shown < (news ? SHOW_NS : SHOW_AGAIN_NS)) {
		coll_engine_check_at(&context->engine,
				     page->shown + (news ? SHOW_NS : SHOW_AGAIN_NS));
		return;
	}
	__atomic_store_n(&page->sequence, page->sequence + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	page->waits = page->links = page->waits_more = 0;
	page->kept = 0;
	flight->slow = show_all(context, now);
	flight->shown_head = flight->head;
	page->shown = now;
	__atomic_store_n(&page->sequence, page->sequence + 1, __ATOMIC_RELEASE);
	if (flight->slow)
		coll_engine_check_at(&context->engine, now + SHOW_AGAIN_NS);
}
