// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Which message each receive matches. For a receive from any source the trace has no sender,
 * so the program is executed once as MPI would: ranks advance in the order of the recorded
 * times, a receive takes the first message that matches, and a rank that waits for a message
 * stops until it is sent. The result is one possible order of the program.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay_program.h"

/* A message or a receive that waits for its counterpart; those of one rank form a chain. */
struct replay_waiting {
	u32 rank, event;	/* the rank that waits */
	u32 next;		/* + 1 */
	bool recv;
};

struct replay_walker {
	u64 clock;
	u32 event;		/* the next */
	u32 open;		/* receives that it represents */
	u32 first, last;	/* per rank: its waiting entries, + 1 */
};

struct replay_walk {
	struct sim_replay *replay;
	struct replay_walker *walker;
	struct replay_waiting *waiting;
	u32 count, capacity, free;	/* free: + 1, chained */
	u32 *heap, heaped;	/* ranks that can continue, the earliest first */
	u64 messages;
	char *why;
	size_t why_bytes;
};

/* ---- the next rank ----------------------------------------------------------------- */

static bool replay_match_earlier(const struct replay_walk *w, u32 a, u32 b)
{
	return w->walker[a].clock != w->walker[b].clock ?
		       w->walker[a].clock < w->walker[b].clock : a < b;
}

static void heap_push(struct replay_walk *w, u32 rank)
{
	u32 i = w->heaped++;

	for (; i && replay_match_earlier(w, rank, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = rank;
}

static u32 heap_pop(struct replay_walk *w)
{
	const u32 first = w->heap[0], moved = w->heap[--w->heaped];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < w->heaped) {
		if (child + 1 < w->heaped &&
		    replay_match_earlier(w, w->heap[child + 1], w->heap[child]))
			child++;
		if (!replay_match_earlier(w, w->heap[child], moved))
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	w->heap[i] = moved;
	return first;
}

/* ---- messages ------------------------------------------------------------------------ */

static struct replay_event *event_of(const struct replay_walk *w, const struct replay_waiting *one)
{
	return &w->replay->rank[one->rank].event[one->event];
}

static bool replay_match_fits(const struct replay_event *recv, const struct replay_event *send,
			      u32 from)
{
	return recv->group == send->group &&
	       (recv->peer == REPLAY_ANY || recv->peer == (s32)from) &&
	       (recv->tag == REPLAY_ANY || recv->tag == send->tag);
}

/* What waits at `at` for this send or receive of `rank`; removed from the chain. */
static struct replay_waiting *replay_match_take(struct replay_walk *w, u32 at, u32 rank,
						const struct replay_event *mine)
{
	const bool recv = mine->kind == EVENT_RECV;
	struct replay_walker *walker = &w->walker[at];
	u32 i, before = 0;

	for (i = walker->first; i; before = i, i = w->waiting[i - 1].next) {
		struct replay_waiting *one = &w->waiting[i - 1];

		if (one->recv == recv ||
		    !(recv ? replay_match_fits(mine, event_of(w, one), one->rank)
			   : replay_match_fits(event_of(w, one), mine, rank)))
			continue;
		*(before ? &w->waiting[before - 1].next : &walker->first) = one->next;
		if (walker->last == i)
			walker->last = before;
		one->next = w->free;
		w->free = i;
		return one;
	}
	return NULL;
}

static int replay_match_put(struct replay_walk *w, u32 at, struct replay_waiting one)
{
	struct replay_walker *walker = &w->walker[at];
	u32 i = w->free;

	if (i) {
		w->free = w->waiting[i - 1].next;
	} else {
		if (!replay_grow((void **)&w->waiting, &w->capacity, w->count, sizeof(one)))
			return -ENOMEM;
		i = ++w->count;
	}
	one.next = 0;
	w->waiting[i - 1] = one;
	*(walker->last ? &w->waiting[walker->last - 1].next : &walker->first) = i;
	walker->last = i;
	return 0;
}

/* `rank` has got one of its receives; now it continues. */
static void resume_rank(struct replay_walk *w, u32 rank, u64 clock)
{
	struct replay_walker *walker = &w->walker[rank];

	if (!walker->open || --walker->open)
		return;
	if (walker->clock < clock)
		walker->clock = clock;
	walker->event++;
	heap_push(w, rank);
}

/* Sets a receive's peer, if that was any rank. */
static void replay_match_join(struct replay_walk *w, struct replay_event *send, u32 from,
			      struct replay_event *recv)
{
	send->message = recv->message = ++w->messages;
	recv->peer = from;
}

/* Whether the rank is blocked in this receive, or in a wait for it. */
static bool blocks_on(const struct replay_walk *w, u32 rank, u32 event)
{
	const struct replay_rank *r = &w->replay->rank[rank];
	const struct replay_walker *walker = &w->walker[rank];
	const struct replay_event *at = &r->event[walker->event];
	u32 i;

	if (!walker->open)
		return false;
	if (at->kind == EVENT_RECV)
		return walker->event == event;
	for (i = 0; i < at->sents; i++)
		if (r->list[at->sent + i] == event)
			return true;
	return false;
}

static int walk_send(struct replay_walk *w, u32 rank, u32 index)
{
	struct replay_event *e = &w->replay->rank[rank].event[index];
	struct replay_waiting *recv;

	if (e->peer == REPLAY_NONE)
		return 0;
	recv = replay_match_take(w, e->peer, rank, e);
	if (!recv)
		return replay_match_put(w, e->peer,
					(struct replay_waiting){ .rank = rank, .event = index });
	replay_match_join(w, e, rank, event_of(w, recv));
	if (blocks_on(w, recv->rank, recv->event))
		resume_rank(w, recv->rank, w->walker[rank].clock);
	return 0;
}

static int walk_recv(struct replay_walk *w, u32 rank, u32 index)
{
	struct replay_event *e = &w->replay->rank[rank].event[index];
	struct replay_waiting *send;

	if (e->peer == REPLAY_NONE)
		return 0;
	send = replay_match_take(w, rank, rank, e);
	if (!send)
		return replay_match_put(
			w, rank,
			(struct replay_waiting){ .rank = rank, .event = index, .recv = true });
	replay_match_join(w, event_of(w, send), send->rank, e);
	return 0;
}

static bool is_open(const struct replay_event *e)
{
	return e->kind == EVENT_RECV && e->peer != REPLAY_NONE && !e->message;
}

/* The receives of an event: its own, or those of its requests. */
static u32 count_open(const struct replay_rank *r, const struct replay_event *e)
{
	u32 open = 0, i;

	if (e->kind == EVENT_RECV)
		return !e->nonblocking && is_open(e);
	for (i = 0; e->kind == EVENT_WAIT && i < e->sents; i++)
		open += is_open(&r->event[r->list[e->sent + i]]);
	return open;
}

/* One event of this rank. */
static int walk_event(struct replay_walk *w, u32 rank)
{
	const struct replay_rank *r = &w->replay->rank[rank];
	struct replay_walker *walker = &w->walker[rank];
	struct replay_event *e;
	int error = 0;

	if (walker->event == r->events)
		return 0;
	e = &r->event[walker->event];
	if (e->kind == EVENT_SEND)
		error = walk_send(w, rank, walker->event);
	else if (e->kind == EVENT_RECV)
		error = walk_recv(w, rank, walker->event);
	if (error)
		return error;
	walker->clock += e->took;
	walker->open = count_open(r, e);
	if (walker->open)
		return 0;
	walker->event++;
	heap_push(w, rank);
	return 0;
}

/* ---- the program ------------------------------------------------------------------------- */

static int check_end(struct replay_walk *w)
{
	u32 r, i;

	for (r = 0; r < w->replay->ranks; r++) {
		const struct replay_rank *rank = &w->replay->rank[r];
		const struct replay_walker *walker = &w->walker[r];

		if (walker->event < rank->events)
			return replay_wrong(w->why, w->why_bytes, rank,
					    rank->event[walker->event].line,
					    "rank %u waits for a message that no trace sends", r);
		for (i = walker->first; i; i = w->waiting[i - 1].next)
			if (!w->waiting[i - 1].recv)
				return replay_wrong(w->why, w->why_bytes,
						    &w->replay->rank[w->waiting[i - 1].rank],
						    event_of(w, &w->waiting[i - 1])->line,
						    "rank %u has no receive for it in its trace",
						    r);
	}
	return 0;
}

int replay_match(struct sim_replay *replay, char *why, size_t why_bytes)
{
	struct replay_walk w = { .replay = replay, .why = why, .why_bytes = why_bytes };
	int error = -ENOMEM;
	u32 i;

	w.walker = calloc(replay->ranks, sizeof(*w.walker));
	w.heap = malloc(replay->ranks * sizeof(*w.heap));
	if (w.walker && w.heap) {
		for (i = 0; i < replay->ranks; i++)
			heap_push(&w, i);
		for (error = 0; !error && w.heaped;)
			error = walk_event(&w, heap_pop(&w));
		if (!error)
			error = check_end(&w);
	}
	if (error == -ENOMEM)
		snprintf(why, why_bytes, "out of memory");
	free(w.walker);
	free(w.heap);
	free(w.waiting);
	return error;
}
