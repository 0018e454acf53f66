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

/* Its first rank's: so one name is one pointer. */
static const char *host_name(const struct report_tally *tally, size_t index)
{
	return tally->job->seen[tally->host[index]]->page.host;
}

static struct coll_flight_node *node_of(struct coll_flight_report *report, const char *host)
{
	uint32_t i;

	for (i = 0; i < report->nodes; i++)
		if (report->node[i].host == host)
			return &report->node[i];
	report->node[i].host = host;
	report->nodes++;
	return &report->node[i];
}

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
	struct coll_flight_node *node = node_of(tally->report, host_name(tally, index));
	uint32_t kind;

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

static void add_losses(const struct report_tally *tally, struct coll_flight_node *node)
{
	const struct coll_flight_report *report = tally->report;
	struct node_names names = { .count = 0 };
	uint32_t i;

	for (i = 0; i < report->losses; i++) {
		const struct coll_flight_loss *loss = &report->loss[i];

		if (host_name(tally, loss->index) != node->host)
			continue;
		node->cost += loss->cost;
		node->lost[loss->kind] += loss->cost;
		add_names(&names, loss);
	}
	qsort(names.name, names.count, sizeof(*names.name), by_seconds);
	node->names = names.count < COLL_FLIGHT_NODE_NAMES ? names.count : COLL_FLIGHT_NODE_NAMES;
	memcpy(node->name, names.name, node->names * sizeof(*node->name));
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
	for (node = 0; node < report->nodes; node++) {
		take_means(&report->node[node]);
		add_losses(tally, &report->node[node]);
	}
	qsort(report->node, report->nodes, sizeof(*report->node), by_cost);
}
