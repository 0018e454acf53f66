// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "loggops_queue.h"
#include "machine.h"

struct loggops_waiting {
	u64 age;
	u32 op;
	u32 older, younger;	/* entries + 1 */
};

int loggops_queue_init(struct loggops_queue *queue, u32 ranks)
{
	*queue = (struct loggops_queue){ .line = calloc(ranks, sizeof(*queue->line)) };
	return queue->line ? 0 : -ENOMEM;
}

void loggops_queue_free(struct loggops_queue *queue)
{
	free(queue->heap);
	free(queue->line);
	free(queue->waiting);
}

/* Makes space for one more after `count`; NULL: none, and records -ENOMEM. */
static void *queue_reserve(struct loggops_queue *queue, void *array, u64 *capacity, u64 count,
			   size_t bytes)
{
	const u64 wanted = *capacity ? *capacity + *capacity / 2 : 256;
	void *more;

	if (count < *capacity)
		return array;
	more = realloc(array, wanted * bytes);
	if (more)
		*capacity = wanted;
	else
		queue->error = -ENOMEM;
	return more;
}

/* ---- the heap: of four children each, which are near each other in memory ------------ */

enum { CHILDREN = 4 };

static bool loggops_before(const struct loggops_event *a, const struct loggops_event *b)
{
	return a->time != b->time ? a->time < b->time : a->age < b->age;
}

static void queue_push(struct loggops_queue *queue, struct loggops_event event)
{
	struct loggops_event *heap = queue_reserve(queue, queue->heap, &queue->capacity,
						   queue->events, sizeof(*heap));
	u64 i;

	if (heap)
		queue->heap = heap;
	if (!machine_in_time(event.time))
		queue->error = -EOVERFLOW;
	if (queue->error)
		return;
	for (i = queue->events++; i; i = (i - 1) / CHILDREN) {
		if (!loggops_before(&event, &heap[(i - 1) / CHILDREN]))
			break;
		heap[i] = heap[(i - 1) / CHILDREN];
	}
	heap[i] = event;
}

/* The first of an entry's children; it has one. */
static u64 first_child(const struct loggops_queue *queue, u64 entry)
{
	const u64 from = CHILDREN * entry + 1;
	const u64 until = from + CHILDREN < queue->events ? from + CHILDREN : queue->events;
	u64 first = from, i;

	for (i = from + 1; i < until; i++)
		if (loggops_before(&queue->heap[i], &queue->heap[first]))
			first = i;
	return first;
}

void loggops_queue_add(struct loggops_queue *queue, struct loggops_event event)
{
	event.age = queue->born++;
	queue_push(queue, event);
}

bool loggops_queue_take(struct loggops_queue *queue, struct loggops_event *event)
{
	struct loggops_event *heap = queue->heap, moved;
	u64 i = 0, child;

	if (!queue->events || queue->error)
		return false;
	*event = heap[0];
	moved = heap[--queue->events];
	while (CHILDREN * i + 1 < queue->events) {
		child = first_child(queue, i);
		if (!loggops_before(&heap[child], &moved))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = moved;
	return true;
}

/* ---- those that wait ------------------------------------------------------------ */

/* A free entry + 1; 0: no memory. */
static u32 waiting_new(struct loggops_queue *queue)
{
	u64 capacity = queue->waiting_capacity;
	struct loggops_waiting *more;
	u32 entry = queue->free;

	if (entry) {
		queue->free = queue->waiting[entry - 1].younger;
		return entry;
	}
	more = queue_reserve(queue, queue->waiting, &capacity, queue->waitings, sizeof(*more));
	if (!more)
		return 0;
	queue->waiting = more;
	queue->waiting_capacity = capacity;
	return ++queue->waitings;
}

/* By age; mostly it is the youngest. */
static void line_insert(struct loggops_queue *queue, struct loggops_line *line, u32 entry)
{
	struct loggops_waiting *all = queue->waiting, *new = &all[entry - 1];

	new->older = line->youngest;
	while (new->older && all[new->older - 1].age > new->age)
		new->older = all[new->older - 1].older;
	new->younger = new->older ? all[new->older - 1].younger : line->oldest;
	*(new->older ? &all[new->older - 1].younger : &line->oldest) = entry;
	*(new->younger ? &all[new->younger - 1].older : &line->youngest) = entry;
}

void loggops_queue_wait(struct loggops_queue *queue, const struct loggops_event *event,
			sim_time time)
{
	struct loggops_event oldest = *event;
	struct loggops_line *line = &queue->line[event->rank][event->kind];
	u32 entry;

	oldest.time = time;
	oldest.waited = true;
	if (!event->waited) {
		entry = waiting_new(queue);
		if (!entry)
			return;
		queue->waiting[entry - 1] = (struct loggops_waiting){ .age = event->age,
								      .op = event->op };
		line_insert(queue, line, entry);
		if (line->oldest != entry)
			return;
	} else if (!line->oldest || queue->waiting[line->oldest - 1].age != event->age) {
		return;
	}
	queue_push(queue, oldest);
}

bool loggops_queue_leave(struct loggops_queue *queue, struct loggops_event *event)
{
	struct loggops_line *line = &queue->line[event->rank][event->kind];
	const u32 entry = line->oldest;
	struct loggops_waiting *oldest;

	if (!entry || queue->waiting[entry - 1].age != event->age)
		return false;
	oldest = &queue->waiting[entry - 1];
	event->op = oldest->op;
	line->oldest = oldest->younger;
	*(line->oldest ? &queue->waiting[line->oldest - 1].older : &line->youngest) = 0;
	oldest->younger = queue->free;
	queue->free = entry;
	return true;
}

void loggops_queue_next(struct loggops_queue *queue, const struct loggops_event *event,
			sim_time time)
{
	const u32 entry = queue->line[event->rank][event->kind].oldest;
	struct loggops_event next = *event;

	if (!entry)
		return;
	next.time = time;
	next.age = queue->waiting[entry - 1].age;
	queue_push(queue, next);
}
