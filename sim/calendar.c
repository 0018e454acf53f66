// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calendar.h"
#include "machine.h"

struct sim_calendar_node {
	struct sim_event happening;
	u32 next;		/* node + 1 */
};

enum {
	FEW = 24,		/* sorted by insertion */
	MANY = 192,		/* sorted by digits of the rank */
};

int calendar_init(struct sim_calendar *calendar, sim_time width)
{
	memset(calendar, 0, sizeof(*calendar));
	calendar->width = width;
	return 0;
}

void calendar_free(struct sim_calendar *calendar)
{
	free(calendar->node);
	free(calendar->heap);
	free(calendar->batch);
	free(calendar->sorted);
	memset(calendar, 0, sizeof(*calendar));
}

/* Doubles the capacity of an array; NULL: none, and records -ENOMEM. */
static void *calendar_grow(struct sim_calendar *calendar, void *array, u64 count, size_t bytes)
{
	void *more = realloc(array, count * bytes);

	if (!more)
		calendar->error = -ENOMEM;
	return more;
}

/* ---- far away: a heap ------------------------------------------------------ */

static void heap_push(struct sim_calendar *calendar, struct sim_event new)
{
	u64 i;

	if (calendar->waiting == calendar->heap_capacity) {
		u64 capacity = calendar->heap_capacity ? 2 * calendar->heap_capacity : 256;
		void *more = calendar_grow(calendar, calendar->heap, capacity, sizeof(new));

		if (!more)
			return;
		calendar->heap = more;
		calendar->heap_capacity = capacity;
	}
	for (i = calendar->waiting++; i; i = (i - 1) / 2) {
		if (calendar->heap[(i - 1) / 2].time <= new.time)
			break;
		calendar->heap[i] = calendar->heap[(i - 1) / 2];
	}
	calendar->heap[i] = new;
}

static struct sim_event heap_pop(struct sim_calendar *calendar)
{
	struct sim_event *heap = calendar->heap, first = heap[0];
	struct sim_event moved = heap[--calendar->waiting];
	u64 i = 0, child;

	while ((child = 2 * i + 1) < calendar->waiting) {
		if (child + 1 < calendar->waiting && heap[child + 1].time < heap[child].time)
			child++;
		if (moved.time <= heap[child].time)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = moved;
	return first;
}

/* ---- near: lists ----------------------------------------------------------- */

static u32 node_new(struct sim_calendar *calendar)
{
	u32 node = calendar->free;

	if (node) {
		calendar->free = calendar->node[node - 1].next;
		return node;
	}
	if (calendar->nodes == calendar->capacity) {
		u32 capacity =
			calendar->capacity ? calendar->capacity + calendar->capacity / 2 : 256;
		void *more =
			calendar_grow(calendar, calendar->node, capacity, sizeof(*calendar->node));

		if (!more)
			return 0;
		calendar->node = more;
		calendar->capacity = capacity;
	}
	return ++calendar->nodes;
}

static void list_add(struct sim_calendar *calendar, u32 window, struct sim_event happening)
{
	u32 node = node_new(calendar);

	if (!node)
		return;
	calendar->node[node - 1] = (struct sim_calendar_node){ happening, calendar->head[window] };
	calendar->head[window] = node;
	calendar->filled[window / 64] |= 1ULL << window % 64;
}

void calendar_add(struct sim_calendar *calendar, struct sim_event happening)
{
	const s64 window = happening.time / calendar->width;

	if (!machine_in_time(happening.time)) {
		calendar->error = -EOVERFLOW;
		return;
	}
	if (window / CALENDAR_WINDOWS == calendar->epoch)
		list_add(calendar, window % CALENDAR_WINDOWS, happening);
	else
		heap_push(calendar, happening);
}

/* The first window with events; CALENDAR_WINDOWS: none. */
static u32 first_window(const struct sim_calendar *calendar)
{
	u32 i;

	for (i = 0; i < CALENDAR_WINDOWS / 64; i++)
		if (calendar->filled[i])
			return 64 * i + __builtin_ctzll(calendar->filled[i]);
	return CALENDAR_WINDOWS;
}

/* The current epoch has no more events: starts the next one that has. */
static void next_epoch(struct sim_calendar *calendar)
{
	const sim_time ring = calendar->width * CALENDAR_WINDOWS;

	if (!calendar->waiting)
		return;
	calendar->epoch = calendar->heap[0].time / ring;
	while (calendar->waiting && calendar->heap[0].time / ring == calendar->epoch)
		calendar_add(calendar, heap_pop(calendar));
}

/* ---- a window, sorted ------------------------------------------------------ */

static bool calendar_earlier(const struct sim_event *a, const struct sim_event *b)
{
	if (a->rank != b->rank)
		return a->rank < b->rank;
	if (a->time != b->time)
		return a->time < b->time;
	return a->what < b->what;
}

static void sort_few(struct sim_event *array, u32 count)
{
	u32 i, k;

	for (i = 1; i < count; i++) {
		struct sim_event moved = array[i];

		for (k = i; k && calendar_earlier(&moved, &array[k - 1]); k--)
			array[k] = array[k - 1];
		array[k] = moved;
	}
}

static int calendar_compare(const void *left, const void *right)
{
	return calendar_earlier(left, right) ? -1 : 1;
}

/* Stable, by eight bits of the rank. */
static void sort_digit(struct sim_event *to, const struct sim_event *from, u32 count, u32 shift)
{
	u32 start[256] = { 0 }, sum = 0, i;

	for (i = 0; i < count; i++)
		start[from[i].rank >> shift & 255]++;
	for (i = 0; i < 256; i++) {
		u32 here = start[i];

		start[i] = sum;
		sum += here;
	}
	for (i = 0; i < count; i++)
		to[start[from[i].rank >> shift & 255]++] = from[i];
}

/* Sorts batch[]; the result may be in sorted[]. */
static void sort_many(struct sim_calendar *calendar, u32 count, u32 ranks)
{
	struct sim_event *swap;
	u32 shift, i, next;

	for (shift = 0; ranks >> shift; shift += 8) {
		sort_digit(calendar->sorted, calendar->batch, count, shift);
		swap = calendar->batch;
		calendar->batch = calendar->sorted;
		calendar->sorted = swap;
	}
	for (i = 0; i < count; i = next) {
		for (next = i + 1; next < count; next++)
			if (calendar->batch[next].rank != calendar->batch[i].rank)
				break;
		if (next - i > FEW)
			qsort(calendar->batch + i, next - i, sizeof(*swap), calendar_compare);
		else if (next - i > 1)
			sort_few(calendar->batch + i, next - i);
	}
}

static bool batch_reserve(struct sim_calendar *calendar, u32 count)
{
	u32 capacity = calendar->batch_capacity ? calendar->batch_capacity : 64;
	void *batch, *sorted;

	if (count <= calendar->batch_capacity)
		return true;
	while (capacity < count)
		capacity *= 2;
	batch = calendar_grow(calendar, calendar->batch, capacity, sizeof(*calendar->batch));
	if (batch)
		calendar->batch = batch;
	sorted = batch ? calendar_grow(calendar, calendar->sorted, capacity,
				       sizeof(*calendar->sorted))
		       : NULL;
	if (!sorted)
		return false;
	calendar->sorted = sorted;
	calendar->batch_capacity = capacity;
	return true;
}

/* Moves a window's list into batch[] and frees its nodes. */
static u32 calendar_collect(struct sim_calendar *calendar, u32 window, u32 *most)
{
	u32 count = 0, node, next;

	*most = 0;
	for (node = calendar->head[window]; node; node = next) {
		struct sim_calendar_node *n = &calendar->node[node - 1];

		if (!batch_reserve(calendar, count + 1))
			return 0;
		calendar->batch[count++] = n->happening;
		if (n->happening.rank > *most)
			*most = n->happening.rank;
		next = n->next;
		n->next = calendar->free;
		calendar->free = node;
	}
	calendar->head[window] = 0;
	calendar->filled[window / 64] &= ~(1ULL << window % 64);
	return count;
}

sim_time calendar_next(const struct sim_calendar *calendar)
{
	const u32 window = first_window(calendar);

	if (window < CALENDAR_WINDOWS)
		return (calendar->epoch * CALENDAR_WINDOWS + window) * calendar->width;
	return calendar->waiting ? calendar->heap[0].time / calendar->width * calendar->width :
				   SIM_NEVER;
}

u32 calendar_take(struct sim_calendar *calendar, const struct sim_event **batch, sim_time *end)
{
	u32 window = first_window(calendar), count, most;

	if (window == CALENDAR_WINDOWS) {
		next_epoch(calendar);
		window = first_window(calendar);
	}
	if (window == CALENDAR_WINDOWS || calendar->error)
		return 0;
	count = calendar_collect(calendar, window, &most);
	if (count <= FEW)
		sort_few(calendar->batch, count);
	else if (count < MANY)
		qsort(calendar->batch, count, sizeof(*calendar->batch), calendar_compare);
	else
		sort_many(calendar, count, most);
	*batch = calendar->batch;
	*end = (calendar->epoch * CALENDAR_WINDOWS + window + 1) * calendar->width;
	return count;
}
