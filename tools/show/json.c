// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>

#include "algo/common/algo.h"
#include "core/names.h"
#include "show.h"

static void json_wait(const struct coll_flight_edge *edge, void *argument)
{
	const struct coll_flight_wait *wait = &edge->wait;

	json_array_append_new(argument, json_pack("{s:i, s:s, s:i, s:i, s:I, s:I}",
		"for", (int)wait->peer, "kind", coll_op_kind_name(wait->kind), "op", (int)wait->op,
		"slot", (int)wait->slot, "bytes", (json_int_t)wait->bytes,
		"number", (json_int_t)edge->run->number + 1));
}

static json_t *json_run(const struct coll_flight_seen *seen, const struct coll_flight_run *run)
{
	const struct coll_flight_call *call = &seen->page.call[run->call];
	char group[24];

	snprintf(group, sizeof(group), "%llx",
		 (unsigned long long)seen->page.group[run->group].id);
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:f, s:s}", "collective",
			 call->collective < COLL_CALLS ?
				 coll_collective_names[call->collective] : "?",
			 "algorithm", call->algo, "group", group,
			 "number", (json_int_t)run->number + 1, "bytes",
			 (json_int_t)(call->count * call->element), "seconds",
			 show_seconds(seen, run->since), "where",
			 run->where == COLL_FLIGHT_KERNEL ? "kernel" : "library");
}

static json_t *json_links(const struct coll_flight_seen *seen)
{
	static const char *const states[COLL_FLIGHT_LINK_STATES] = {
		"idle", "connecting", "up", "left", "lost", "closed",
	};
	json_t *links = json_array();
	uint32_t i;

	for (i = 0; i < seen->page.links; i++) {
		const struct coll_flight_link *link = &seen->page.link[i];
		const struct coll_flight_queue *queue = &seen->queue[i];
		json_t *one = json_pack("{s:i, s:s, s:s, s:I}", "peer", (int)link->peer, "kind",
					link->flags & COLL_FLIGHT_MEMORY ? "memory" : "socket",
					"state", link->state < COLL_FLIGHT_LINK_STATES ?
						states[link->state] : "?",
					"queued", (json_int_t)link->queued);

		if (link->heard)
			json_object_set_new(one, "heard_seconds",
					    json_real(show_seconds(seen, link->heard)));
		if (queue->known) {
			json_object_set_new(one, "unsent", json_integer(queue->unsent));
			json_object_set_new(one, "unread", json_integer(queue->unread));
			json_object_set_new(one, "retransmits", json_integer(queue->retransmits));
		}
		json_array_append_new(links, one);
	}
	return links;
}

static json_t *json_rank(const struct coll_flight_seen *seen)
{
	json_t *runs = json_array(), *waits = json_array(), *rank;
	uint64_t since;
	const char *state = show_state(seen, &since);
	uint32_t i;

	for (i = 0; i < COLL_FLIGHT_RUNS; i++)
		if (seen->page.run[i].where != COLL_FLIGHT_FREE)
			json_array_append_new(runs, json_run(seen, &seen->page.run[i]));
	coll_flight_waits(seen, json_wait, waits);
	rank = json_pack("{s:i, s:i, s:s, s:s, s:f, s:s, s:s, s:I, s:o, s:o, s:o}", "rank",
			 (int)seen->page.rank, "pid", (int)seen->pid, "host", seen->page.host,
			 "state", state, "seconds", show_seconds(seen, since), "progress",
			 seen->page.progress, "engine", seen->page.engine, "calls",
			 (json_int_t)seen->page.runs, "runs", runs, "waits", waits, "links",
			 json_links(seen));
	if (*seen->wchan)
		json_object_set_new(rank, "wchan", json_string(seen->wchan));
	return rank;
}

static json_t *json_cause(const struct coll_flight_job *job)
{
	struct coll_flight_cause cause;
	json_t *json, *chain = json_array();
	uint32_t i;

	coll_flight_find_cause(job, &cause);
	for (i = 0; i < cause.length; i++)
		json_array_append_new(chain, json_integer(cause.chain[i]));
	json = json_pack("{s:s, s:s, s:o, s:b}", "why", coll_flight_why_names[cause.why], "text",
			 cause.text, "chain", chain, "awaited", cause.why && cause.awaited);
	if (cause.alone)
		json_object_set_new(json, "seconds", json_real(cause.seconds));
	if (cause.rank != COLL_FLIGHT_NO_RANK)
		json_object_set_new(json, "rank", json_integer(cause.rank));
	return json;
}

json_t *show_json(const struct coll_flight_job *job)
{
	const struct coll_flight_page *page = &job->seen[0]->page;
	json_t *ranks = json_array();
	size_t i;

	for (i = 0; i < job->count; i++)
		json_array_append_new(ranks, json_rank(job->seen[i]));
	return json_pack("{s:s, s:s, s:i, s:i, s:o, s:o}", "job", page->job, "program",
			 page->program, "ranks", (int)page->ranks, "here", (int)job->count,
			 "cause", json_cause(job), "rank", ranks);
}
