// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Events of the rings, and the messages that they tell of. */
#include <stdlib.h>

#include "trace.h"

size_t trace_events(const struct coll_flight_seen *seen, struct trace_event **events)
{
	const struct coll_flight_page *page = &seen->page;
	/* The oldest one may be written over while it was read. */
	const uint64_t kept = page->head < COLL_FLIGHT_EVENTS - 1 ? page->head :
								    COLL_FLIGHT_EVENTS - 1;
	size_t i, count = 0;

	*events = calloc(kept + 1, sizeof(**events));
	for (i = 0; *events && i < kept; i++) {
		const struct coll_flight_event *event =
			&page->event[(page->head - kept + i) % COLL_FLIGHT_EVENTS];
		const uint32_t kind = event->when >> 6 & 63;

		if (!kind || kind >= COLL_FLIGHT_KINDS)
			continue;
		(*events)[count++] = (struct trace_event){
			.time = page->opened + (event->when >> 12),
			.kind = kind,
			.entry = event->when & 63,
			.group = page->group[event->when & 63].id,
			.run = event->what >> 48,
			.peer = event->what >> 24 & 0xffffff,
			.which = event->what & 0xffffff,
		};
	}
	return count;
}

/* ---- messages -------------------------------------------------------------------------- */

/* One end of a message. Both ends have equal keys. */
struct trace_end {
	uint64_t group, time;
	uint32_t run, from, to, slot;	/* from, to: ranks of the job */
	uint32_t index;			/* of job->seen */
	bool sends;
};

struct ends {
	struct trace_end *end;
	size_t count, capacity;
};

static bool ends_add(struct ends *ends, const struct trace_end *end)
{
	if (ends->count == ends->capacity) {
		const size_t capacity = ends->capacity ? 2 * ends->capacity : 1024;
		struct trace_end *more = realloc(ends->end, capacity * sizeof(*more));

		if (!more)
			return false;
		ends->end = more;
		ends->capacity = capacity;
	}
	ends->end[ends->count++] = *end;
	return true;
}

static void ends_of(struct ends *ends, const struct coll_flight_seen *seen, uint32_t index)
{
	struct trace_event *events;
	const size_t count = trace_events(seen, &events);
	size_t i;

	for (i = 0; i < count; i++) {
		const bool sends = events[i].kind == COLL_FLIGHT_SEND;

		if (!sends && events[i].kind != COLL_FLIGHT_GOT)
			continue;
		ends_add(ends, &(struct trace_end){
			.group = events[i].group, .time = events[i].time, .run = events[i].run,
			.from = sends ? seen->page.rank : events[i].peer,
			.to = sends ? events[i].peer : seen->page.rank,
			.slot = events[i].which, .index = index, .sends = sends });
	}
	free(events);
}

static int by_key(const struct trace_end *a, const struct trace_end *b)
{
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->run != b->run)
		return a->run < b->run ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	return a->slot < b->slot ? -1 : a->slot > b->slot;
}

/* The send of a message comes before its receive. */
static int by_key_and_end(const void *left, const void *right)
{
	const struct trace_end *a = left, *b = right;
	const int key = by_key(a, b);

	return key ? key : b->sends - a->sends;
}

size_t trace_messages(const struct coll_flight_job *job, struct coll_flight_message **messages)
{
	struct ends ends = { .count = 0 };
	size_t i, count = 0;

	for (i = 0; i < job->count; i++)
		ends_of(&ends, job->seen[i], i);
	if (ends.count)
		qsort(ends.end, ends.count, sizeof(*ends.end), by_key_and_end);
	*messages = calloc(ends.count + 1, sizeof(**messages));
	for (i = 0; *messages && i + 1 < ends.count; i++) {
		const struct trace_end *send = &ends.end[i], *got = send + 1;

		if (send->sends && !got->sends && !by_key(send, got))
			(*messages)[count++] = (struct coll_flight_message){
				.from = send->index, .to = got->index,
				.sent = send->time, .got = got->time };
	}
	free(ends.end);
	return count;
}
