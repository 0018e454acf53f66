// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>

#include "timed.h"

/* ---- cores --------------------------------------------------------------- */

/*
 * Each look takes from what time has given: one for short runs, those of a whole block for long ones. `needs`: so
 * many are to be left, that of a run's end with that of its begin.
 */
static bool may_look(struct coll_flight *flight, uint64_t now, uint64_t needs)
{
	const uint64_t looks = flight->timed_ns < COLL_FLIGHT_DELAY_LONG_NS ? 1 : COLL_FLIGHT_DELAY_LOOKS;
	const uint64_t kept = looks * COLL_FLIGHT_DELAY_LOOK_NS;
	const uint64_t oldest = now > kept ? now - kept : 0;

	if (flight->delay_looked < oldest)
		flight->delay_looked = oldest;
	if (needs > looks)
		needs = looks;
	if (now < flight->delay_looked + needs * COLL_FLIGHT_DELAY_LOOK_NS)
		return false;
	flight->delay_looked += COLL_FLIGHT_DELAY_LOOK_NS;
	return true;
}

/* It never goes down: another thread makes progress, and its account is another. */
static void look_at_delay(struct coll_flight *flight, uint64_t now, uint64_t needs)
{
	int64_t delayed;

	if (!may_look(flight, now, needs))
		return;
	delayed = coll_core_wait_now(&flight->core_wait) - flight->page->delayed_before;
	if (delayed > (int64_t)flight->page->delayed)
		flight->page->delayed = delayed;
}

static uint64_t stolen_so_far(const struct coll_flight *flight)
{
	return flight->page->delayed + flight->page->injected;
}

static uint32_t stolen_ticks(const struct coll_flight *flight, uint64_t before)
{
	const uint64_t ticks = (stolen_so_far(flight) - before) / COLL_FLIGHT_TICK;

	return ticks < UINT32_MAX ? ticks : UINT32_MAX;
}

/* ---- runs ---------------------------------------------------------------- */

static uint32_t ticks_since(uint64_t began, uint64_t now)
{
	const uint64_t ticks = now > began ? (now - began) / COLL_FLIGHT_TICK : 0;

	return ticks >= UINT32_MAX ? UINT32_MAX : ticks + !ticks;
}

/* Half of the table is given up, about. */
static void raise_level(struct coll_flight_page *page)
{
	struct coll_flight_timed *run;

	page->timed_level++;
	for (run = page->timed; run < page->timed + COLL_FLIGHT_TIMED; run++)
		if (coll_flight_draw(run->group, run->number) < page->timed_level)
			run->began = 0;
}

/* Where the latest one was found, the next is near. */
static struct coll_flight_timed *free_entry(struct coll_flight *flight)
{
	uint32_t i;

	for (i = 0; i < COLL_FLIGHT_TIMED; i++) {
		const uint32_t entry = (flight->timed_next + i) % COLL_FLIGHT_TIMED;

		if (flight->page->timed[entry].began)
			continue;
		flight->timed_next = entry + 1;
		return &flight->page->timed[entry];
	}
	return NULL;
}

/* Consecutive runs draw the same: it is computed once. */
static uint32_t draw_level(struct coll_flight *flight, uint64_t group, uint32_t number)
{
	const uint32_t block = number / COLL_FLIGHT_BLOCK + 1;

	if (flight->drawn_group != group || flight->drawn_block != block) {
		flight->drawn_group = group;
		flight->drawn_block = block;
		flight->drawn = coll_flight_draw(group, number);
	}
	return flight->drawn;
}

uint32_t coll_flight_timed_begin(struct coll_flight *flight, uint64_t group, uint32_t number,
				 uint64_t now)
{
	struct coll_flight_page *page = flight->page;
	const uint32_t drawn = draw_level(flight, group, number);
	struct coll_flight_timed *run = NULL;
	uint64_t before;

	while (drawn >= page->timed_level && !(run = free_entry(flight)))
		raise_level(page);
	if (!run)
		return 0;
	before = stolen_so_far(flight);
	look_at_delay(flight, now, 2);
	memset(run, 0, sizeof(*run));
	run->stolen_before = stolen_ticks(flight, before);
	run->group = group;
	run->number = number;
	run->began = now;
	flight->stolen[run - page->timed] = stolen_so_far(flight);
	return run - page->timed + 1;
}

struct coll_flight_timed *coll_flight_timed_of(const struct coll_flight *flight, uint32_t timed,
					       uint64_t group, uint32_t number)
{
	struct coll_flight_timed *run = &flight->page->timed[timed - 1];

	return run->began && run->group == group && run->number == number ? run : NULL;
}

/* NULL: it has exchanged with too many others. */
static struct coll_flight_exchange *exchange_with(struct coll_flight_timed *run, uint32_t peer)
{
	uint32_t i;

	for (i = 0; i < run->exchanges; i++)
		if (run->with[i].peer == peer)
			return &run->with[i];
	if (i == COLL_FLIGHT_EXCHANGES)
		return NULL;
	run->exchanges++;
	run->with[i].peer = peer;
	return &run->with[i];
}

/*
 * What came last decides, so a receive may have the entry of the message that came first. NULL:
 * none has come. *posted: no receive that found no entry has started before.
 */
static struct coll_flight_exchange *receive_from(struct coll_flight_timed *run, uint32_t peer,
						 uint32_t *posted)
{
	struct coll_flight_exchange *with = exchange_with(run, peer), *first = NULL;
	uint32_t i;

	*posted = UINT32_MAX;
	for (i = 0; !with && i < run->exchanges; i++) {
		if (run->with[i].posted && run->with[i].posted < *posted)
			*posted = run->with[i].posted;
		if (run->with[i].arrived && (!first || run->with[i].arrived < first->arrived))
			first = &run->with[i];
	}
	if (with || !first)
		return with;
	*first = (struct coll_flight_exchange){ .peer = peer };
	return first;
}

void coll_flight_timed_sent(struct coll_flight_timed *run, uint32_t peer, uint64_t now)
{
	struct coll_flight_exchange *with = exchange_with(run, peer);

	if (with && !with->sent)
		with->sent = ticks_since(run->began, now);
}

void coll_flight_timed_posted(struct coll_flight_timed *run, uint32_t peer, uint64_t now)
{
	uint32_t before;
	struct coll_flight_exchange *with = receive_from(run, peer, &before);

	if (with && !with->posted)
		with->posted = ticks_since(run->began, now);
}

void coll_flight_timed_found(struct coll_flight_timed *run, uint32_t peer, uint64_t now)
{
	uint32_t before;
	struct coll_flight_exchange *with = receive_from(run, peer, &before);

	if (with && !with->arrived)
		with->posted = with->arrived = ticks_since(run->began, now);
}

void coll_flight_timed_arrived(struct coll_flight_timed *run, uint32_t peer, uint64_t now)
{
	uint32_t before;
	struct coll_flight_exchange *with = receive_from(run, peer, &before);

	if (!with || with->arrived)
		return;
	with->arrived = ticks_since(run->began, now);
	if (!with->posted)	/* it had no entry then: all that had one still waited */
		with->posted = before < with->arrived ? before : with->arrived;
}

void coll_flight_timed_end(struct coll_flight *flight, struct coll_flight_timed *run, uint64_t now)
{
	const uint64_t before = flight->stolen[run - flight->page->timed];

	look_at_delay(flight, now, 1);
	run->stolen = stolen_ticks(flight, before);
	run->ended = now;
	flight->timed_ns = now - run->began;
}

void coll_flight_left(struct coll_flight *flight, uint64_t now)
{
	flight->delay_looked = 0;
	look_at_delay(flight, now, 1);
	flight->page->ended = now;
}

/* ---- sums ---------------------------------------------------------------- */

void coll_flight_sum_join(struct coll_flight_sum *sum, const struct coll_flight_sum *other)
{
	if (__builtin_add_overflow(sum->runs, other->runs, &sum->runs))
		sum->runs = UINT64_MAX;
	if (__builtin_add_overflow(sum->ns, other->ns, &sum->ns))
		sum->ns = UINT64_MAX;
	if (other->shortest && (other->shortest < sum->shortest || !sum->shortest))
		sum->shortest = other->shortest;
}
