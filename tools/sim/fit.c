// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Whether the options of coll sim fit each other, and the ranks. */
#include <stdio.h>

#include "algo/common/ranks.h"
#include "sim.h"

/* LogGOPSim's rules have one kind of link. */
static bool messages_valid(const struct sim_options *options)
{
	const char *other = options->clusters > 1     ? "--clusters" :
			    sim_nodes_wanted(options) ? "--levels" :
			    options->delta > 0	      ? "--delta" :
							NULL;

	if (!other || options->model.messages != SIM_MESSAGE_GOAL)
		return true;
	fprintf(stderr, "coll sim: --message-semantics goal and %s; valid: one of them\n", other);
	return false;
}

/* Whether all of them are there: else `option` would do nothing. */
static bool ranks_are(const char *option, const struct sim_some_ranks *some, u32 ranks)
{
	u32 i;

	for (i = 0; i < some->count; i++)
		if (some->rank[i] >= ranks) {
			fprintf(stderr, "coll sim: --%s %u, but there are %u ranks\n", option, some->rank[i], ranks);
			return false;
		}
	return true;
}

bool sim_options_fit(const struct sim_options *options, u32 ranks)
{
	struct sim_some_ranks slow = { .count = options->slow_count };
	const struct sim_some_ranks root = { 1, { options->root } };
	u32 i;

	for (i = 0; i < slow.count; i++)
		slow.rank[i] = options->slow[i].rank;
	if (options->clusters > ranks) {
		fprintf(stderr, "coll sim: --clusters %u, but there are %u ranks\n", options->clusters, ranks);
		return false;
	}
	return ranks_are("root", &root, ranks) && ranks_are("slow", &slow, ranks) &&
	       ranks_are("noisy", &options->noisy, ranks) && ranks_are("bad-links", &options->bad_links, ranks);
}

/* Whether all algorithms have so many exchanges and links: more would run as all, under another name. */
static bool tunings_fit(const struct sim_options *options, u32 ranks)
{
	const u32 exchanges = log2_floor(ranks), smallest = ranks / options->clusters;
	u32 i;

	for (i = 0; i < options->choices; i++) {
		const struct sim_choice *choice = &options->choice[i];
		const u64 t = choice->tuning.redundancy, n = choice->tuning.lanes;
		const bool t_fits = t == COLL_UNSET || t <= exchanges;

		if (t_fits && (n == COLL_UNSET || n <= smallest))
			continue;
		fprintf(stderr, "coll sim: %s:%s=%llu of %u ranks; valid: up to %u, %s\n", choice->algo->name,
			t_fits ? "n" : "T", (unsigned long long)(t_fits ? n : t), ranks,
			t_fits ? smallest : exchanges,
			t_fits ? "the ranks of the smallest cluster" : "the number of exchanges");
		return false;
	}
	return true;
}

/* Options that do something only with others. */
static bool options_needed(const struct sim_options *options)
{
	const char *wrong = options->noisy.count && !options->os_noises ? "--noisy needs --os-noise" :
			    options->bad_links.count && !options->link_noise ? "--bad-links needs --link-noise" :
			    options->bins && options->format != SIM_JSON     ? "--histogram needs --json" : NULL;

	if (wrong)
		fprintf(stderr, "coll sim: %s\n", wrong);
	return !wrong;
}

bool sim_options_valid(const struct sim_options *options)
{
	u32 i;

	if (!messages_valid(options) || !options_needed(options))
		return false;
	for (i = 0; i < options->rank_counts; i++)
		if (!sim_nodes_valid(options, options->ranks[i]) || !sim_options_fit(options, options->ranks[i]) ||
		    !tunings_fit(options, options->ranks[i]))
			return false;
	return true;
}
