// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The NICs of nodes. Ranks of a node share one, so their messages are put in the order of their
 * times, which serving rank by rank does not do. In each window first the messages that land are
 * passed through the NICs, then the ranks are served, then the messages that leave pass: those land
 * in a later window. At the same picosecond the order is that of the ranks, then of their ops.
 */
#include <errno.h>
#include <stdlib.h>

#include "events_state.h"

/* Ranks by their nodes, ascending in each. */
static void nodes_places(struct sim_events *e, const struct sim_nodes *n, u32 *first)
{
	const u32 ranks = e->program->ranks;
	u32 i;

	for (i = 0; i < ranks; i++)
		first[n->node[i] + 1]++;
	for (i = 0; i < n->nodes; i++)
		first[i + 1] += first[i];
	for (i = 0; i < ranks; i++) {
		e->node_place[i] = first[n->node[i]]++;
		e->rank_at[e->node_place[i]] = i;
		e->runs = e->runs && e->node_place[i] == i;
	}
}

int events_nodes_init(struct sim_events *e)
{
	const struct sim_nodes *n = e->machine->nodes;
	const u32 ranks = e->program->ranks;
	u32 *first;

	e->nic = NULL;
	e->runs = true;
	if (!n)
		return 0;
	first = calloc(n->nodes + 1, sizeof(*first));
	e->nic = malloc(n->nodes * sizeof(*e->nic));
	e->node_place = malloc(ranks * sizeof(*e->node_place));
	e->rank_at = malloc(ranks * sizeof(*e->rank_at));
	if (first && e->nic && e->node_place && e->rank_at) {
		u32 i;

		for (i = 0; i < n->nodes; i++)
			e->nic[i] = (struct sim_nic){ .out = INT64_MIN / 2, .in = INT64_MIN / 2 };
		nodes_places(e, n, first);
	} else {
		e->error = -ENOMEM;
	}
	free(first);
	return e->error;
}

static void nodes_count(struct sim_events *e)
{
	u32 i;

	for (i = 0; e->nic && i < e->machine->nodes->nodes; i++) {
		const struct sim_nic *nic = &e->nic[i];

		if (e->outcome->nic_sent < nic->sent)
			e->outcome->nic_sent = nic->sent;
		if (e->outcome->nic_received < nic->received)
			e->outcome->nic_received = nic->received;
	}
}

void events_nodes_free(struct sim_events *e)
{
	if (!e->error)
		nodes_count(e);
	calendar_free(&e->landing);
	free(e->nic);
	free(e->node_place);
	free(e->rank_at);
	free(e->leaving);
	e->nic = NULL;
	e->node_place = e->rank_at = NULL;
	e->leaving = NULL;
	e->leavings = e->leaving_capacity = 0;
}

static struct sim_nic *nodes_nic(const struct sim_events *e, u32 place)
{
	return &e->nic[e->machine->nodes->node[e->rank_at[place]]];
}

/* By node, time, rank and op. The batch of a calendar is so within a rank. */
static int nodes_compare(const void *left, const void *right, void *events)
{
	const struct sim_events *e = events;
	const struct sim_event *a = left, *b = right;
	const struct sim_nic *one = nodes_nic(e, a->rank), *other = nodes_nic(e, b->rank);

	if (one != other)
		return one < other ? -1 : 1;
	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->what < b->what ? -1 : 1;
}

/* The events of the node that begin at `event`, by time; returns their number. */
static u32 nodes_sort(struct sim_events *e, struct sim_event *event, u32 count)
{
	const struct sim_nic *nic = nodes_nic(e, event->rank);
	bool sorted = true;
	u32 here;

	for (here = 1; here < count && nodes_nic(e, event[here].rank) == nic; here++)
		sorted = sorted && nodes_compare(&event[here - 1], &event[here], e) < 0;
	if (!sorted)
		qsort_r(event, here, sizeof(*event), nodes_compare, e);
	return here;
}

/* ---- out of a node ----------------------------------------------------------- */

void events_leave(struct sim_events *e, u32 op, sim_time time)
{
	if (time >= e->end) {
		events_later(e, time, op, WHAT_LEAVE);
		return;
	}
	if (e->leavings == e->leaving_capacity) {
		u32 capacity = e->leaving_capacity ? 2 * e->leaving_capacity : 256;
		void *more = realloc(e->leaving, capacity * sizeof(*e->leaving));

		if (!more) {
			e->error = -ENOMEM;
			return;
		}
		e->leaving = more;
		e->leaving_capacity = capacity;
	}
	e->leaving[e->leavings++] = (struct sim_event){ time, e->node_place[e->rank], op };
}

static void nodes_send(struct sim_events *e, const struct sim_event *event)
{
	const u32 rank = e->rank_at[event->rank], op = event->what;
	const struct sim_class *class = &e->program->class[program_class_of(e->program, rank)];
	const u64 bytes = coll_ops(class->schedule)[op].bytes;
	struct sim_nic *nic = nodes_nic(e, event->rank);
	const sim_time time = event->time < nic->out ? nic->out : event->time;
	const sim_time takes = events_carry(e, rank, op, time);

	nic->out = time + events_nic_time(e->machine, bytes);
	nic->sent += bytes;
	if (bytes > e->machine->eager && takes != SIM_NEVER)
		events_at(e, rank, time + takes, op, WHAT_DONE);
}

void events_nodes_leave(struct sim_events *e)
{
	u32 i, next;

	/* They are in the order of ranks, which is that of nodes if these are runs. */
	if (!e->runs && e->leavings)
		qsort_r(e->leaving, e->leavings, sizeof(*e->leaving), nodes_compare, e);
	for (i = 0; i < e->leavings && !events_failed(e); i = next)
		for (next = i + nodes_sort(e, &e->leaving[i], e->leavings - i); i < next && !events_failed(e); i++)
			nodes_send(e, &e->leaving[i]);
	e->leavings = 0;
}

/* ---- into a node ------------------------------------------------------------- */

void events_land(struct sim_events *e, u32 to, sim_time time, u32 recv)
{
	if (e->nic)
		calendar_add(&e->landing, (struct sim_event){ time, e->node_place[to], recv });
	else
		events_at(e, to, time, recv, WHAT_ARRIVE);
}

sim_time events_landing_next(const struct sim_events *e)
{
	return e->nic ? calendar_next(&e->landing) : SIM_NEVER;
}

static void nodes_receive(struct sim_events *e, const struct sim_event *event)
{
	const u32 rank = e->rank_at[event->rank], op = event->what;
	const struct sim_class *class = &e->program->class[program_class_of(e->program, rank)];
	const u64 bytes = coll_ops(class->schedule)[op].bytes;
	const sim_time busy = events_nic_time(e->machine, bytes);
	struct sim_nic *nic = nodes_nic(e, event->rank);
	const sim_time time = busy && nic->in + busy > event->time ? nic->in + busy : event->time;

	e->outcome->events++;
	if (e->log)
		log_span(e->log, rank, op)->there = event->time;
	nic->in = time;
	nic->received += bytes;
	events_at(e, rank, time, op, WHAT_DELIVER);
}

void events_nodes_land(struct sim_events *e, sim_time start)
{
	const struct sim_event *batch;
	struct sim_event *event;
	u32 count, i, next;
	sim_time end;

	if (events_landing_next(e) != start)
		return;
	count = calendar_take(&e->landing, &batch, &end);
	event = e->landing.batch;
	for (i = 0; i < count && !events_failed(e); i = next)
		for (next = i + nodes_sort(e, &event[i], count - i); i < next && !events_failed(e); i++)
			nodes_receive(e, &event[i]);
}
