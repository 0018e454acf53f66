// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
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
static bool other_reports(const struct coll_flight_set *set, const struct coll_exec *exec,
			  uint64_t now)
{
	const uint64_t whole = exec->deadline - exec->started;
	const uint32_t rank = exec->group->context->boot->rank;
	size_t i;

	for (i = 0; i < set->count; i++) {
		const struct coll_flight_page *page = &set->seen[i]->page;
		const struct coll_flight_run *oldest = coll_flight_oldest(set->seen[i]);

		if (page->rank == rank || set->seen[i]->state == 'T' ||
		    set->seen[i]->flags & COLL_FLIGHT_ENDED)
			continue;
		if (page->reported && now - page->reported < whole)
			return true;
		if (page->rank < rank && page->inside && oldest && page->waits &&
		    now - oldest->since > whole / 2 - whole / 16)
			return true;
	}
	return false;
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
	if (context->flight.fd >= 0)
		coll_flight_find(&set, context->flight.page->job);
	if (!other_reports(&set, exec, now)) {
		page->reported = now;
		stall_say(exec, &set, now);
	}
	coll_flight_free(&set);
}
