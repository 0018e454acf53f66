// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What the timed runs lost, by kind and rank: their paths, added up. */
#include <math.h>

#include "report_tally.h"

enum { NOTED_NS = 20000 };	/* a loss of less is no event */

/* ns */
static double clocks_blur(const struct report_tally *tally)
{
	if (tally->report->hosts < 2)
		return 0;
	return tally->report->clock_error < 0 ? INFINITY : 1e9 * tally->report->clock_error;
}

struct report_runs coll_report_tally_runs(const struct report_tally *tally)
{
	return (struct report_runs){ tally->record, tally->records, tally->base, &tally->flights,
				     clocks_blur(tally) };
}

/* ---- losses -------------------------------------------------------------- */

static void add_sender(struct loss_tally *loss, uint32_t from, double ns)
{
	uint32_t i;

	for (i = 0; i < REPORT_SENDERS; i++) {
		if (loss->from[i].ns > 0 && loss->from[i].rank != from)
			continue;
		loss->from[i].rank = from;
		loss->from[i].ns += ns;
		return;
	}
}

bool coll_report_index_of(const struct report_tally *tally, uint32_t rank, size_t *index)
{
	size_t low = 0, high = tally->job->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (tally->job->seen[middle]->page.rank < rank)
			low = middle + 1;
		else
			high = middle;
	}
	*index = low;
	return low < tally->job->count && tally->job->seen[low]->page.rank == rank;
}

/* A rank that had no core before its call is late for it, too: report_path.c says so by `from`. */
static bool is_before_call(enum coll_flight_loss_kind kind, uint32_t rank, uint32_t from)
{
	return kind == COLL_FLIGHT_LOSS_LATE || (kind == COLL_FLIGHT_LOSS_STOLEN && from == rank);
}

/* What is saved of ns that the others wait for the last: not what they would wait for the second. */
static double without_last(struct report_tally *tally, double ns)
{
	const double still = ns < tally->would_wait ? ns : tally->would_wait;

	tally->would_wait -= still;
	return (ns - still) * tally->others;
}

/* Of a message that came late the sender has a part as well, where its page is here. */
static void add_to_remedies(struct report_tally *tally, enum coll_flight_loss_kind kind,
			    size_t index, uint32_t from, bool before, double ns)
{
	size_t sender = index;

	if (kind == COLL_FLIGHT_LOSS_LINK && !coll_report_index_of(tally, from, &sender))
		sender = index;
	if (before)
		tally->remedies.before += ns;
	else
		coll_report_remedies_lost(&tally->remedies, kind, index, sender, ns);
}

static void note_most(struct report_tally *tally, struct loss_tally *loss, double ns)
{
	if (!(ns > loss->most))
		return;
	if (!loss->most) {
		loss->lost_before = tally->lost;
		tally->lost = loss;
	}
	loss->most = ns;
}

/* Of the run that is looked at, some ns of one rank's time: no more than it has taken. */
static void tally_loss(void *argument, enum coll_flight_loss_kind kind, uint32_t rank,
		       uint32_t from, double ns)
{
	struct report_tally *tally = argument;
	const bool before = is_before_call(kind, rank, from);
	struct loss_tally *loss;
	size_t index;
	double saved;

	ns = ns < tally->left ? ns : tally->left;
	tally->left -= ns;
	if (kind >= COLL_FLIGHT_LOSS_KINDS || !coll_report_index_of(tally, rank, &index)) {
		tally->waits[tally->follows].lost[COLL_FLIGHT_LOSS_UNKNOWN] += ns;
		tally->unknown += ns;
		return;
	}
	loss = &tally->of[kind][index];
	tally->waits[tally->follows].lost[kind] += ns;
	if (kind == COLL_FLIGHT_LOSS_LINK)
		add_sender(loss, from, ns);
	add_to_remedies(tally, kind, index, from, before, ns);
	saved = before ? without_last(tally, ns) : ns;
	loss->ns += ns;
	coll_report_saved_add(&tally->blocks, &loss->saved, saved);
	loss->in[tally->collective] += ns;
	note_most(tally, loss, ns);
}

/* The latest two to begin. */
static void find_last_two(struct report_tally *tally, size_t first, size_t end)
{
	double last = report_began(&tally->record[first], tally->base), second = last;
	size_t i;

	for (i = first + 1; i < end; i++) {
		const double began = report_began(&tally->record[i], tally->base);

		if (i == first + 1 || began > second)
			second = began < last ? began : last;
		if (began > last)
			last = began;
	}
	tally->second_began = second;
}

/* Of the run; there may be many more ranks than it has. */
static void note_events(struct report_tally *tally, uint32_t number)
{
	struct loss_tally *loss;

	for (loss = tally->lost; loss; loss = loss->lost_before) {
		if (loss->most >= NOTED_NS) {
			loss->runs++;
			loss->odd += number & 1;
			loss->noted += loss->most;
		}
		loss->most = 0;
	}
	tally->lost = NULL;
}

void coll_report_tally_run(struct report_tally *tally, size_t first, size_t end)
{
	const struct report_runs runs = coll_report_tally_runs(tally);
	size_t i;

	tally->collective = tally->record[first].run->collective;
	tally->others = (double)(end - first) / (end - first - 1);
	find_last_two(tally, first, end);
	coll_report_remedies_begin(&tally->remedies, &runs, first, end);
	coll_report_choice_run(tally->report, tally->job, &runs, first, end);
	for (i = first; i < end; i++) {
		const struct coll_flight_timed *one = tally->record[i].run;

		if (!one->ended || one->ended < one->began)
			continue;
		tally->left = one->ended - one->began;
		tally->follows = tally->record[i].index;
		tally->waits[tally->follows].ns += tally->left;
		tally->took.ns += tally->left;
		tally->took.block += tally->left;
		tally->followed++;
		tally->would_wait = fmax(0, tally->second_began -
					    report_began(&tally->record[i], tally->base));
		coll_report_follow(&runs, &tally->record[i], tally_loss, tally);
	}
	coll_report_remedies_end(&tally->remedies, &runs, first, end);
	note_events(tally, tally->record[first].run->number);
	tally->runs++;
}

void coll_report_tally_end_block(struct report_tally *tally)
{
	coll_report_blocks_end(&tally->blocks, &tally->took);
	coll_report_remedies_end_block(&tally->remedies, &tally->took);
	coll_report_took_end_block(&tally->took);
}
