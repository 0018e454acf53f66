// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "events_state.h"
#include "loggops.h"
#include "memory.h"

/* ---- memory --------------------------------------------------------------- */

static u64 early_bytes(const struct sim_class *class)
{
	return (class->schedule->ops + 7) / 8;
}

static u64 rank_bytes(const struct sim_class *class)
{
	return (sizeof(struct sim_events_rank) + coll_step_bytes(&class->plan) +
		early_bytes(class) + 7) &
	       ~7ull;
}

u64 events_bytes(const struct sim_program *program)
{
	u64 bytes = 0;
	u32 c;

	for (c = 0; c < program->classes; c++)
		bytes += program->class[c].members * rank_bytes(&program->class[c]);
	return bytes;
}

static void lay_out(struct sim_events *e)
{
	u32 c, ops = 0;

	for (c = 0; c < e->program->classes; c++) {
		e->place[c] = rank_bytes(&e->program->class[c]);
		e->first[c] = e->bytes;
		e->bytes += e->program->class[c].members * e->place[c];
		e->first_op[c] = ops;
		ops += e->program->class[c].schedule->ops;
	}
	e->first_op[c] = ops;
}

int events_new(const struct sim_program *program, struct sim_events **events)
{
	struct sim_events *e = events_bytes(program) < memory_usable() ? calloc(1, sizeof(*e)) : NULL;

	if (!e)
		return -ENOMEM;
	e->program = program;
	e->place = calloc(program->classes, sizeof(*e->place));
	e->first = calloc(program->classes, sizeof(*e->first));
	e->first_op = calloc(program->classes + 1, sizeof(*e->first_op));
	if (e->place && e->first && e->first_op) {
		lay_out(e);
		e->memory = malloc(e->bytes);
		e->wire = calloc(e->first_op[program->classes] + 1, sizeof(*e->wire));
	}
	if (!e->memory || !e->wire) {
		events_free(e);
		return -ENOMEM;
	}
	*events = e;
	return 0;
}

void events_free(struct sim_events *e)
{
	if (!e)
		return;
	free(e->place);
	free(e->first);
	free(e->first_op);
	free(e->memory);
	free(e->wire);
	free(e->local);
	free(e->crossing);
	free(e);
}

/* ---- the current rank ----------------------------------------------------- */

static void step_view(struct sim_events *e)
{
	const u32 ops = e->class->schedule->ops;

	e->step.plan = &e->class->plan;
	e->step.pending = (u32 *)(e->state + 1);
	e->step.state = (u8 *)(e->step.pending + ops);
	e->early = e->step.state + ops;
}

void events_rank_open(struct sim_events *e, u32 rank)
{
	const u32 class = program_class_of(e->program, rank);

	e->rank = rank;
	e->class = &e->program->class[class];
	e->class_wire = e->wire + e->first_op[class];
	e->state =
		(struct sim_events_rank *)(e->memory + e->first[class] +
					   program_member_of(e->program, rank) * e->place[class]);
	step_view(e);
	e->step.head = e->state->head;
	e->step.tail = e->state->tail;
	e->step.left = e->state->left;
	e->step.skipped = e->state->skipped;
}

void events_rank_close(struct sim_events *e)
{
	e->state->head = e->step.head;
	e->state->tail = e->step.tail;
	e->state->left = e->step.left;
	e->state->skipped = e->step.skipped;
}

void events_rank_reset(struct sim_events *e, u32 rank)
{
	const sim_time start = machine_start(e->machine, rank);

	events_rank_open(e, rank);
	*e->state = (struct sim_events_rank){ .cpu = start, .sent = start, .out = INT64_MIN / 2,
				   .in = INT64_MIN / 2 };
	coll_step_init(&e->step, &e->class->plan, e->step.pending);
	memset(e->early, 0, early_bytes(e->class));
	events_rank_close(e);
}

/* ---- future events ---------------------------------------------------------- */

static bool events_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->time != b->time ? a->time < b->time : a->what < b->what;
}

static void local_push(struct sim_events *e, struct sim_event new)
{
	u32 i;

	if (e->locals == e->local_capacity) {
		u32 capacity = e->local_capacity ? 2 * e->local_capacity : 64;
		void *more = realloc(e->local, capacity * sizeof(new));

		if (!more) {
			e->error = -ENOMEM;
			return;
		}
		e->local = more;
		e->local_capacity = capacity;
	}
	for (i = e->locals++; i && events_before(&new, &e->local[(i - 1) / 2]); i = (i - 1) / 2)
		e->local[i] = e->local[(i - 1) / 2];
	e->local[i] = new;
}

static struct sim_event local_pop(struct sim_events *e)
{
	struct sim_event first = e->local[0], moved = e->local[--e->locals];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < e->locals) {
		if (child + 1 < e->locals && events_before(&e->local[child + 1], &e->local[child]))
			child++;
		if (!events_before(&e->local[child], &moved))
			break;
		e->local[i] = e->local[child];
		i = child;
	}
	e->local[i] = moved;
	return first;
}

bool events_failed(const struct sim_events *e)
{
	return e->error || e->calendar.error || e->landing.error;
}

void events_later(struct sim_events *e, sim_time time, u32 op, u32 what)
{
	const struct sim_event happening = { time, e->rank, op << WHAT_BITS | what };

	if (machine_in_time(time) && time < e->end)
		local_push(e, happening);
	else
		calendar_add(&e->calendar, happening);
}

void events_at(struct sim_events *e, u32 rank, sim_time time, u32 op, u32 what)
{
	calendar_add(&e->calendar, (struct sim_event){ time, rank, op << WHAT_BITS | what });
}

/* The events of one rank in a window, and those that they cause in it. */
static void serve_rank(struct sim_events *e, const struct sim_event *batch, u32 count)
{
	u32 i = 0;

	events_rank_open(e, batch->rank);
	while ((i < count || e->locals) && !events_failed(e)) {
		if (e->locals && (i == count || events_before(&e->local[0], &batch[i]))) {
			struct sim_event own = local_pop(e);

			events_dispatch(e, &own);
		} else {
			events_dispatch(e, &batch[i++]);
		}
	}
	events_rank_close(e);
}

/* ---- a run ---------------------------------------------------------------- */

static sim_time earlier_of(sim_time a, sim_time b)
{
	return a < b ? a : b;
}

static void prepare_wire(struct sim_events *e, struct sim_wire *wire, u64 bytes, sim_time *least)
{
	const sim_time way = machine_way(e->machine, bytes);
	const sim_time first = bytes > e->machine->eager ? machine_way(e->machine, 0) : way;

	*wire = noise_wire(&e->machine->link, way);
	if (!e->machine->network)
		*least = earlier_of(*least, first);
}

/* The least latency of the links of a network and of nodes. */
static sim_time least_of_links(const struct sim_events *e)
{
	const struct sim_network *network = e->machine->network;
	sim_time least = SIM_NEVER;
	u32 i;

	for (i = 0; e->nic && i < COLL_LEVEL_CLUSTER; i++)
		least = earlier_of(least, machine_way_on(e->machine, &e->machine->inside[i], 0));
	for (i = 0; network && i < network->areas * network->areas; i++)
		least = earlier_of(least, machine_way_on(e->machine, &network->link[i], 0));
	return least;
}

/* Wires of all sends. Returns the least latency. */
static sim_time prepare_wires(struct sim_events *e)
{
	sim_time least = SIM_SECOND;
	u32 c, i;

	for (c = 0; c < e->program->classes; c++) {
		const struct coll_schedule *s = e->program->class[c].schedule;

		for (i = 0; i < s->ops; i++)
			if (coll_ops(s)[i].kind == COLL_OP_SEND)
				prepare_wire(e, &e->wire[e->first_op[c] + i], coll_ops(s)[i].bytes,
					     &least);
	}
	least = earlier_of(least, least_of_links(e));
	/* The other end of a circuit learns when it is up. */
	if (e->circuits && least > to_time(e->machine->circuits->setup * SIM_SECOND))
		least = to_time(e->machine->circuits->setup * SIM_SECOND);
	return least > 0 ? least : 1;
}

static void first_unfinished(struct sim_events *e)
{
	u32 rank;

	for (rank = 0; rank < e->program->ranks; rank++) {
		events_rank_open(e, rank);
		if (!coll_step_finished(&e->step))
			break;
	}
	e->outcome->last = rank;
}

/* When the next window begins. */
static sim_time next_window(const struct sim_events *e)
{
	const sim_time time = calendar_next(&e->calendar), landing = events_landing_next(e);

	return time < landing ? time : landing;
}

/* The ranks' events of the window that begins at `start`. */
static void serve_ranks(struct sim_events *e, sim_time start)
{
	const struct sim_event *batch;
	u32 count, i, next;

	e->end = start + e->calendar.width;
	if (calendar_next(&e->calendar) != start)
		return;
	count = calendar_take(&e->calendar, &batch, &e->end);
	for (i = 0; i < count && !events_failed(e); i = next) {
		for (next = i + 1; next < count && batch[next].rank == batch[i].rank;)
			next++;
		serve_rank(e, batch + i, next - i);
	}
}

/* One window of time, rank by rank; false: no event is left. */
static bool serve_window(struct sim_events *e)
{
	sim_time start;

	while (events_trunks_step(e, next_window(e)))
		;
	start = next_window(e);
	if (start == SIM_NEVER)
		return false;
	events_nodes_land(e, start);
	serve_ranks(e, start);
	events_nodes_leave(e);
	return !events_failed(e);
}

static void ranks_start(struct sim_events *e)
{
	u32 i;

	for (i = 0; i < e->program->ranks; i++) {
		events_rank_reset(e, i);
		events_at(e, i, e->state->cpu, 0, WHAT_START);
	}
}

static int windows_error(const struct sim_events *e)
{
	if (sim_circuits_failed(e->circuits))
		return -ENOMEM;
	return e->error ? e->error : e->calendar.error ? e->calendar.error : e->landing.error;
}

/* By the rules of SIM_MESSAGE_NIC. */
static int windows_run(struct sim_events *e)
{
	const struct sim_circuits *circuits = e->machine->circuits;
	int error;

	e->circuits = circuits ? sim_circuits_new(e->machine, e->program->ranks) : NULL;
	error = circuits && !e->circuits ? -ENOMEM : events_trunks_init(e);
	if (!error)
		error = events_nodes_init(e);
	if (!error)
		error = calendar_init(&e->calendar, prepare_wires(e));
	if (!error)
		error = calendar_init(&e->landing, e->calendar.width);
	if (!error)
		ranks_start(e);
	while (!error && serve_window(e))
		;
	if (!error)
		error = windows_error(e);
	if (!error && e->circuits) {
		sim_circuits_count(e->circuits, e->outcome);
		if (circuits->wavelengths && e->outcome->circuits > circuits->wavelengths)
			error = -EBUSY;
	}
	sim_circuits_free(e->circuits);
	calendar_free(&e->calendar);
	events_trunks_free(e);
	events_nodes_free(e);
	return error;
}

int events_run(struct sim_events *e, const struct sim_machine *machine, struct sim_outcome *outcome,
	       const struct sim_extras *extras)
{
	int error;

	*outcome = (struct sim_outcome){ .path = SIM_EVENTS };
	e->machine = machine;
	e->outcome = outcome;
	e->finish = extras->finish;
	e->carried = extras->bytes;
	e->log = extras->log;
	e->running = e->program->ranks;
	e->error = 0;
	e->locals = 0;	/* of a run that failed */
	e->phase = noise_phases(&machine->os, e->program->ranks);
	error = machine->messages == SIM_MESSAGE_GOAL ? loggops_run(e) : windows_run(e);
	free(e->phase);
	if (!error && e->running) {
		first_unfinished(e);
		error = -EDEADLK;
	}
	if (!error && !machine_in_time(outcome->finish))
		error = -EOVERFLOW;
	return error;
}
