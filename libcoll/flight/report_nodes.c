// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What each node made the job lose, and by what name: the losses of its ranks together. */
#include <stdlib.h>
#include <string.h>

#include "report_tally.h"

enum { NAMES_MOST = 64 };	/* of a node, that are told apart */

/* The names of one node, while they are added up. */
struct node_names {
	struct coll_flight_name name[NAMES_MOST];
	uint32_t count;
};

/* ---- what its ranks waited for ----------------------------------------------- */

/* Where the timed runs say nothing of the job's, it is not known what for. */
static void take_rank(const struct report_tally *tally, size_t index)
{
	const struct coll_flight_seen *seen = tally->job->seen[index];
	const struct loss_waits *waits = &tally->waits[index];
	struct coll_flight_spent *spent = &tally->report->rank[index];
	const double inside = coll_flight_inside_seconds(seen),
		     waiting = coll_flight_waiting_seconds(seen);
	const double ended = inside > waiting ? inside - waiting : 0,
		     scale = waits->ns > 0 ? ended / waits->ns : 0;
	uint32_t kind;

	spent->inside = inside;
	spent->waiting = inside - ended;
	spent->unknown = waits->lost[COLL_FLIGHT_LOSS_UNKNOWN] * scale;
	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++)
		*(tally->report->skewed ? &spent->unknown : &spent->waited[kind]) +=
			waits->lost[kind] * scale;
}

static void add_rank(struct report_tally *tally, size_t index)
{
	const struct coll_flight_spent *spent = &tally->report->rank[index];
	struct coll_flight_node *node = &tally->report->node[tally->host[index]];
	uint32_t kind;

	node->host = tally->job->seen[tally->host[index]]->page.host;
	node->ranks++;
	node->spent.inside += spent->inside;
	node->spent.waiting += spent->waiting;
	node->spent.unknown += spent->unknown;
	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++)
		node->spent.waited[kind] += spent->waited[kind];
}

static void take_means(struct coll_flight_node *node)
{
	uint32_t kind;

	node->spent.inside /= node->ranks;
	node->spent.waiting /= node->ranks;
	node->spent.unknown /= node->ranks;
	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++)
		node->spent.waited[kind] /= node->ranks;
}

/* ---- names ---------------------------------------------------------------------- */

static void add_name(struct node_names *names, const char *text, double seconds)
{
	uint32_t i;

	for (i = 0; i < names->count && strcmp(names->name[i].text, text); i++)
		;
	if (i == NAMES_MOST)
		return;
	if (i == names->count) {
		names->count++;
		snprintf(names->name[i].text, sizeof(names->name[i].text), "%s", text);
	}
	names->name[i].seconds += seconds;
}

static const char *because_name(const struct coll_flight_loss *loss)
{
	static const char *const without[COLL_FLIGHT_LOSS_KINDS] = {
		"lateness, not known why", "not known who had the core", "late messages",
	};

	if (!loss->seen)
		return "small losses, not looked into";
	switch (loss->because) {
	case COLL_FLIGHT_BECAUSE_INJECTED:
		return "injected noise";
	case COLL_FLIGHT_BECAUSE_STOPPED:
		return "signals that stop ranks";
	case COLL_FLIGHT_BECAUSE_DISK:
		return "waits for a disk";
	case COLL_FLIGHT_BECAUSE_ASLEEP:
		return "sleep of ranks before calls";
	case COLL_FLIGHT_BECAUSE_WORK:
		return "more work of ranks";
	default:
		return without[loss->kind];
	}
}

/* Of a loss by several takers each has its share. */
static void add_names(struct node_names *names, const struct coll_flight_loss *loss)
{
	const struct coll_flight_observed *observed = loss->seen ? &loss->seen->observed : NULL;
	char text[COLL_FLIGHT_WORDS];
	double taken;
	uint32_t i;

	if (!coll_flight_is_by_takers(loss)) {
		add_name(names, because_name(loss), loss->cost);
		return;
	}
	taken = coll_flight_taken_ns(observed);
	for (i = 0; i < COLL_FLIGHT_TAKERS; i++)
		if (observed->taker[i].ns && taken > 0)
			add_name(names, coll_flight_taker_name(&observed->taker[i], text),
				 loss->cost * observed->taker[i].ns / taken);
}

static int by_seconds(const void *left, const void *right)
{
	const struct coll_flight_name *a = left, *b = right;

	return a->seconds > b->seconds ? -1 : a->seconds < b->seconds;
}

static int by_cost(const void *left, const void *right)
{
	const struct coll_flight_node *a = left, *b = right;

	return a->cost > b->cost ? -1 : a->cost < b->cost;
}

/* ---- all of it ------------------------------------------------------------------- */

/* The ranks' own, but for late messages: of these who sends them, if that is known. */
static void lay_to_home(const struct report_tally *tally, struct coll_flight_loss *loss)
{
	size_t sender;

	loss->home = tally->host[loss->index];
	if (loss->kind == COLL_FLIGHT_LOSS_LINK && loss->from != COLL_FLIGHT_NO_RANK &&
	    coll_report_index_of(tally, loss->from, &sender))
		loss->home = tally->host[sender];
}

static int by_home(const void *left, const void *right)
{
	const struct coll_flight_loss *a = left, *b = right;

	if (a->home != b->home)
		return a->home < b->home ? -1 : 1;
	return a->cost > b->cost ? -1 : a->cost < b->cost;
}

/* Of one node. */
static void add_losses(struct coll_flight_node *node, const struct coll_flight_loss *loss,
		       const struct coll_flight_loss *end)
{
	struct node_names names = { .count = 0 };

	for (; loss < end; loss++) {
		node->cost += loss->cost;
		node->lost[loss->kind] += loss->cost;
		add_names(&names, loss);
	}
	qsort(names.name, names.count, sizeof(*names.name), by_seconds);
	node->names = names.count < COLL_FLIGHT_NODE_NAMES ? names.count : COLL_FLIGHT_NODE_NAMES;
	memcpy(node->name, names.name, node->names * sizeof(*node->name));
}

static void take_losses(struct report_tally *tally)
{
	struct coll_flight_report *report = tally->report;
	uint32_t first, end;

	for (first = 0; first < report->losses; first++)
		lay_to_home(tally, &report->loss[first]);
	qsort(report->loss, report->losses, sizeof(*report->loss), by_home);
	for (first = 0; first < report->losses; first = end) {
		for (end = first + 1; end < report->losses &&
		     report->loss[end].home == report->loss[first].home; end++)
			;
		add_losses(&report->node[report->loss[first].home], &report->loss[first],
			   &report->loss[end]);
	}
}

/* Until here they were by the numbers of hosts, which have gaps. */
static void close_gaps(struct coll_flight_report *report, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (report->node[i].ranks)
			report->node[report->nodes++] = report->node[i];
}

void coll_report_take_nodes(struct report_tally *tally)
{
	struct coll_flight_report *report = tally->report;
	uint32_t node;
	size_t i;

	for (i = 0; i < tally->job->count; i++) {
		take_rank(tally, i);
		add_rank(tally, i);
	}
	take_losses(tally);
	close_gaps(report, tally->job->count);
	for (node = 0; node < report->nodes; node++)
		take_means(&report->node[node]);
	qsort(report->node, report->nodes, sizeof(*report->node), by_cost);
}
