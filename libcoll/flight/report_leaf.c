// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "algo/redundancy/leaf.h"
#include "algo/redundancy/redundancy.h"
#include "report_leaf.h"

int coll_report_leaf_open(struct report_leaf *leaf, size_t ranks)
{
	*leaf = (struct report_leaf){ .lost = calloc(ranks, sizeof(*leaf->lost)), .ranks = ranks };
	return leaf->lost ? 0 : -ENOMEM;
}

void coll_report_leaf_close(struct report_leaf *leaf)
{
	free(leaf->lost);
}

/* ---- what was lost ------------------------------------------------------------- */

static void add_lost(struct report_leaf *leaf, size_t index, double ns, bool message)
{
	struct leaf_lost *lost = &leaf->lost[index];

	coll_report_saved_add(&leaf->blocks, &lost->all, ns);
	lost->messages += message ? ns : 0;
}

void coll_report_leaf_message(struct report_leaf *leaf, size_t to, size_t from, double ns)
{
	add_lost(leaf, to, ns, true);
	if (from != to)
		add_lost(leaf, from, ns, true);
}

void coll_report_leaf_stop(struct report_leaf *leaf, size_t index, double ns)
{
	add_lost(leaf, index, ns, false);
}

void coll_report_leaf_end_block(struct report_leaf *leaf, const struct report_took *took)
{
	coll_report_blocks_end(&leaf->blocks, took);
}

size_t coll_report_leaf_rank(const struct report_leaf *leaf)
{
	size_t most = 0, i;

	for (i = 1; i < leaf->ranks; i++)
		if (leaf->lost[i].all.ns > leaf->lost[most].all.ns)
			most = i;
	return most;
}

/* ---- what is left --------------------------------------------------------------- */

/* Of the rank's messages with others, in the runs of one site. */
struct leaf_messages {
	uint64_t count, late;
	double longer;		/* ns, of those that were late */
};

/* By how much a message took longer than is usual, ns, if it is late; 0 also where that is not known. */
static double message_late(const struct report_runs *runs, const struct report_usual *usual,
			   const struct report_record *to, const struct coll_flight_exchange *with)
{
	const struct report_record *from = coll_report_find(runs, to, 0, with->peer);
	const struct coll_flight_exchange *other = from ? report_exchange(from->run, to->rank) : NULL;
	double usual_ns, longer;

	if (!report_waited(with) || !other || !other->sent)
		return 0;
	usual_ns = usual->ns[from->host != to->host];
	longer = report_began(to, runs->base) + (double)with->arrived * COLL_FLIGHT_TICK -
		 report_began(from, runs->base) - (double)other->sent * COLL_FLIGHT_TICK -
		 ((double)from->run->stolen + to->run->stolen) * COLL_FLIGHT_TICK - usual_ns;
	return usual_ns > 0 && longer > (REPORT_LATE_TIMES - 1) * usual_ns ? longer : 0;
}

static bool is_of_site(const struct report_record *record, const struct report_usual *usual)
{
	return record->run->collective == usual->collective && record->run->bytes == usual->bytes;
}

static void add_message(const struct report_runs *runs, const struct report_usual *usual,
			const struct report_record *to, const struct coll_flight_exchange *with,
			struct leaf_messages *messages)
{
	double longer;

	if (!with->arrived)
		return;
	messages->count++;
	longer = message_late(runs, usual, to, with);
	messages->late += longer > 0;
	messages->longer += longer;
}

static struct coll_noise_rate noise_of_links(const struct report_runs *runs, const struct report_usual *usual,
					     uint32_t rank)
{
	struct leaf_messages messages = { 0, 0, 0 };
	double late, longer;
	uint32_t k;
	size_t i;

	for (i = 0; i < runs->count; i++)
		for (k = 0; is_of_site(&runs->record[i], usual) && k < runs->record[i].run->exchanges; k++)
			if (runs->record[i].rank == rank || runs->record[i].run->with[k].peer == rank)
				add_message(runs, usual, &runs->record[i], &runs->record[i].run->with[k],
					    &messages);
	late = messages.count ? (double)messages.late / messages.count : 0;
	if (!messages.late || late >= 1)
		return (struct coll_noise_rate){ 0, 0 };
	longer = messages.longer / messages.late / 1e9;
	return (struct coll_noise_rate){
		.rate = -log1p(-late) / (fmax(usual->ns[0], usual->ns[1]) / 1e9 + longer), .duration = longer,
	};
}

/* A site, with this rank as a leaf. */
struct leaf_site {
	struct coll_call call;
	struct coll_tuning tuning;
	struct coll_machine machine;
};

static struct leaf_site site_with_leaf(const struct coll_flight_job *job, const struct report_runs *runs,
				       const struct report_usual *usual, uint32_t rank)
{
	const uint32_t ranks = job->seen[0]->page.ranks;
	struct leaf_site site = {
		.call = { .collective = usual->collective, .ranks = ranks, .element = 1, .count = usual->bytes },
		.tuning = COLL_TUNING_UNSET,
		.machine = coll_report_machine(runs, usual),
	};

	site.tuning.late[0] = rank;
	site.machine.late = (struct coll_late){
		.ranks = ranks, .rank = { rank, COLL_NONE, COLL_NONE, COLL_NONE }, .peer = COLL_NONE,
		.alone = true, .links_alone = true,
		.stops = coll_report_noise_of_rank(runs, usual, rank),
		.links = noise_of_links(runs, usual, rank),
	};
	return site;
}

/* Of what late messages cost: without a leaf, each of all messages of and to the rank delays by what it is late. */
static double left_of_messages(const struct leaf_site *site)
{
	const struct coll_leaves leaves = coll_leaves_of(&site->call, &site->tuning, false);
	const struct coll_noise_rate *links = &site->machine.late.links;
	const double way = site->machine.alpha + site->call.count * site->machine.beta,
		     late = -expm1(-links->rate * (way + links->duration)) * links->duration,
		     plain = 2 * leaves.fold.exchanges * late;

	return plain > 0 ? fmin(1, coll_leaf_links_delay(&site->call, &site->tuning, false, &site->machine) / plain) : 1;
}

/* Of what the rank's stops cost: without a leaf each delays by as long as it is. */
static double left_of_stops(const struct leaf_site *site)
{
	const struct coll_noise_rate *stops = &site->machine.late.stops;
	const double plain = stops->rate * stops->duration *
			     coll_leaf_cost(&site->call, &site->tuning, false, &site->machine);

	return plain > 0 ? fmin(1, coll_leaf_stops_delay(&site->call, &site->tuning, false, &site->machine) / plain) : 1;
}

/* ns of all ranks in one run. */
static double price_of_run(const struct leaf_site *site)
{
	const struct coll_redundancy none = { 0, 0 };

	return 1e9 * site->call.ranks *
	       fmax(0, coll_leaf_cost(&site->call, &site->tuning, false, &site->machine) -
		       coll_redundancy_cost(&site->call, none, &site->machine));
}

struct report_saved coll_report_leaf_saved(const struct report_leaf *leaf, const struct coll_flight_job *job,
					   const struct report_redundancy *redundancy,
					   const struct report_runs *runs)
{
	const size_t index = coll_report_leaf_rank(leaf);
	const struct leaf_lost *lost = &leaf->lost[index];
	struct report_saved saved = lost->all;
	double ns = 0, all = 0, part;
	uint32_t i;

	for (i = 0; i < redundancy->fitting; i++)
		all += leaf->runs[i];
	for (i = 0; i < redundancy->fitting && all > 0; i++) {
		const struct leaf_site site =
			site_with_leaf(job, runs, redundancy->fit[i], job->seen[index]->page.rank);

		ns += leaf->runs[i] / all * ((1 - left_of_messages(&site)) * lost->messages +
					     (1 - left_of_stops(&site)) * (lost->all.ns - lost->messages));
		ns -= leaf->runs[i] * price_of_run(&site);
	}
	part = ns > 0 && saved.ns > 0 ? ns / saved.ns : 0;
	saved.ns *= part;
	saved.with_took *= part;
	saved.squares *= part * part;
	return saved;
}
