// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <unistd.h>

#include "core/port.h"
#include "libcoll/base/clock.h"
#include "libcoll/base/log.h"
#include "libcoll/flight/cause.h"
#include "stall.h"

/*
 * To look at all processes of a node may take a second. A shorter deadline needs that time: the
 * failed rank is to be named before it has passed.
 */
static const uint64_t shortest_deadline = 10 * COLL_SECOND;

/* Whether another rank of this node has said it, or is to: a lower one that waits as long. */
struct others {
	struct coll_flight_search search;
	uint64_t now, whole;		/* of the deadline */
	uint32_t rank;			/* this one */
	bool report;
};

static bool waits_as_long(const struct others *others, const struct coll_flight_seen *seen)
{
	const struct coll_flight_page *page = &seen->page;
	const struct coll_flight_run *oldest = coll_flight_oldest(seen);

	return page->rank < others->rank && page->inside && oldest && page->waits &&
	       oldest->since < others->now &&
	       others->now - oldest->since > others->whole / 2 - others->whole / 16;
}

/* Not one that has ended, is stopped, or is held by a debugger. */
static bool can_speak(uint8_t state)
{
	return state && state != 'T' && state != 't';
}

/* Ends the search at the first that is found. */
static bool look_at_other(struct coll_flight_seen *seen, int page, void *argument)
{
	struct others *others = argument;
	const uint64_t said = seen->page.reported;
	const bool says = said && (said >= others->now || others->now - said < others->whole);

	(void)page;
	if (seen->page.rank == others->rank || seen->flags & COLL_FLIGHT_ENDED ||
	    (!says && !waits_as_long(others, seen)) || !can_speak(coll_flight_state(seen)))
		return false;
	others->report = true;
	others->search.until = 0;
	return false;
}

/*
 * Of the pages alone: when many ranks wait, each looks, and what the kernel knows of all of them
 * and their connections takes long.
 */
static bool other_reports(const struct coll_exec *exec, uint64_t now)
{
	const struct coll_context *context = exec->group->context;
	struct others others = {
		.now = now, .whole = exec->deadline - exec->started, .rank = context->boot->rank,
		.search = { .job = context->flight.page->job, .uid = geteuid(),
			    .until = COLL_FOREVER, .each = look_at_other },
	};

	others.search.argument = &others;
	coll_flight_search(&others.search);
	return others.report;
}

static void stall_say(const struct coll_exec *exec, const struct coll_flight_set *set, uint64_t now)
{
	const struct coll_context *context = exec->group->context;
	const struct coll_flight_job job = { set->seen, set->count };
	struct coll_flight_cause cause = { .why = COLL_FLIGHT_NO_CAUSE };
	const struct coll_algo *algo = exec->planned->algo;

	if (set->count)
		coll_flight_find_cause(&job, &cause);
	coll_log(&context->options, COLL_LOG_WARN,
		 "rank %d waits for %.1f s in %s%s%s%s no. %u, half of its deadline; first cause: "
		 "%s. More: coll show %s", context->boot->rank, (now - exec->started) / 1e9,
		 coll_collective_names[exec->planned->call.collective], algo ? " (" : "",
		 algo ? algo->name : "", algo ? ")" : "",
		 exec->number + 1, cause.why ? cause.text : "not known on this node",
		 context->flight.page->job);
}

void coll_stall_report(const struct coll_exec *exec, uint64_t now)
{
	struct coll_context *context = exec->group->context;
	struct coll_flight_page *page = context->flight.page;
	struct coll_flight_set set = { .count = 0 };

	if (context->options.log < COLL_LOG_WARN || context->boot->ranks == 1 ||
	    exec->deadline - exec->started < shortest_deadline ||
	    (page->reported && now - page->reported < exec->deadline - exec->started))
		return;
	if (context->flight.fd >= 0 && other_reports(exec, now))
		return;
	page->reported = now;
	if (context->flight.fd >= 0)
		coll_flight_find(&set, page->job);
	stall_say(exec, &set, now);
	coll_flight_free(&set);
}
