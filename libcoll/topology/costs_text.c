// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Costs as the lines of a file: what the option `costs` reads, with the reason of each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "costs.h"
#include "lateness.h"
#include "libcoll/progress/progress.h"

/* A class in words. The names of its options begin with `prefix`. */
static const struct class_words {
	const char *prefix, *name;
} class_words[COLL_CLASSES] = {
	[COLL_CLASS_DOMAIN] = { "domain_", "same L3" },
	[COLL_CLASS_NODE] = { "node_", "same node" },
	[COLL_CLASS_SWITCH] = { "switch_", "below one switch" },
	[COLL_CLASS_CLUSTER] = { "", "between nodes" },
	[COLL_CLASS_WAN] = { "wan_", "between clusters" },
};

/* A time with four digits: "2.314us". */
static const char *time_text(double seconds, char *text, size_t bytes)
{
	if (seconds >= 1e-3)
		snprintf(text, bytes, "%.4gms", seconds * 1e3);
	else if (seconds >= 1e-6)
		snprintf(text, bytes, "%.4gus", seconds * 1e6);
	else
		snprintf(text, bytes, "%.4gns", seconds * 1e9);
	return text;
}

static void print_line(FILE *to, const char *prefix, const char *key, const char *value)
{
	char name[40];

	snprintf(name, sizeof(name), "%s%s", prefix, key);
	fprintf(to, "%-15s = %-10s # ", name, value);
}

/* `of` has told it; `whole` is the cost that it is a part of, or NULL. */
static void print_drift(FILE *to, const struct class_words *words, const struct coll_drift *drift, const char *of,
			const char *whole)
{
	const struct class_words *from = &class_words[drift->from];

	if (from != words)
		fprintf(to, "as %s, ", from->name);
	if (drift->cut)
		fprintf(to, "no more than %s%s before call %u\n", from->prefix, whole, drift->cut);
	else
		fprintf(to, "%u %s before call %u\n", drift->samples, of, drift->call);
}

/*
 * One cost and its reason: what it is, and what it was measured from, if it was; `of` has told its drift, and it is
 * a part of `whole`, or of nothing (NULL).
 */
static void print_cost(FILE *to, const struct class_words *words, const char *key, double value,
		       const char *meaning, const struct coll_class_cost *measured, double found,
		       const struct coll_drift *drift, const char *of, const char *whole, bool together)
{
	char text[32];

	if (value <= 0)
		return;
	print_line(to, words->prefix, key, time_text(value, text, sizeof(text)));
	fprintf(to, "%s, %s: ", words->name, meaning);
	if (!coll_cost_is_found(value, found))
		fprintf(to, "given or assumed\n");
	else if (drift->samples || drift->cut)
		print_drift(to, words, drift, of, whole);
	else if (together)
		fprintf(to, "%u ranks at once\n", measured->together);
	else
		fprintf(to, "%u samples of %u pair%s of ranks, %u and %u first\n", measured->samples,
			measured->pairs, measured->pairs > 1 ? "s" : "", measured->rank[0],
			measured->rank[1]);
}

static void print_class(FILE *to, const struct coll_group *world, enum coll_link_class class)
{
	const struct coll_level_cost value = coll_costs_of(&world->options.machine, class);
	const struct coll_class_cost *found = &world->costs.of[class];
	const struct class_words *words = &class_words[class];
	const struct coll_drift none = { .samples = 0 };

	print_cost(to, words, "alpha", value.alpha, "half a round trip", found, found->cost.alpha,
		   &found->alpha_drift, "exchanges", NULL, false);
	print_cost(to, words, "overhead", value.overhead, found->overhead_drift.samples ?
		   "a message sent" : "each more message of a burst", found, found->cost.overhead,
		   &found->overhead_drift, "ranks' own sends", "alpha", false);
	print_cost(to, words, "beta", value.beta, class == COLL_CLASS_WAN ?
		   "a byte of all links" : "a byte of a message", found, found->cost.beta,
		   &found->beta_drift, "exchanges", NULL, found->together && class < COLL_CLASS_SWITCH);
	print_cost(to, words, "byte_gap", value.byte_gap, found->gap_drift.samples ?
		   "a byte sent" : "a byte of a burst", found, found->cost.byte_gap, &found->gap_drift,
		   "ranks' own sends", "beta", false);
	if (class == COLL_CLASS_CLUSTER)
		print_cost(to, words, "byte_work", world->options.machine.byte_work, "cores for a byte", found,
			   found->byte_work, &none, "", NULL, true);
}

static void print_gamma(FILE *to, const struct coll_group *world)
{
	const struct coll_drift *drift = &world->costs.gamma_drift;
	char text[32];

	print_line(to, "", "gamma", time_text(world->options.machine.gamma, text, sizeof(text)));
	if (!coll_cost_is_found(world->options.machine.gamma, world->costs.gamma))
		fprintf(to, "a byte of a sum of doubles: given\n");
	else if (drift->samples)
		fprintf(to, "a byte reduced: %u ranks' own reductions or sums before call %u\n", drift->samples,
			drift->call);
	else
		fprintf(to, "a byte of a sum of doubles, the median of the ranks\n");
}

/* Where one node has all ranks, no link is between nodes: those costs are assumed (job/machine.c). */
static bool class_exists(const struct coll_group *world, enum coll_link_class class)
{
	const struct coll_boot *boot = world->context->boot;

	return class != COLL_CLASS_CLUSTER || world->costs.of[class].pairs ||
	       boot->local_ranks != boot->ranks;
}

/* Exchanges of all classes of links that tell what is said. */
static void print_noise(FILE *to, const char *name, const struct coll_noise_rate *noise,
			const char *events, double seen, double exchanges, uint32_t call)
{
	char length[32], text[48];

	if (noise->rate <= 0)
		return;
	snprintf(text, sizeof(text), "%.3gx%s", noise->rate,
		 time_text(noise->duration, length, sizeof(length)));
	fprintf(to, "# %-13s = %-10s # %s, lately %.0f in %.0f exchanges; since call %u\n", name, text,
		events, seen, exchanges, call);
}

/* Where messages do not tell it. */
static void print_colld(FILE *to, const struct coll_lateness *late)
{
	char length[32], text[48];

	if (late->rank.rate <= 0)
		return;
	snprintf(text, sizeof(text), "%.3gx%s", late->rank.rate,
		 time_text(late->rank.duration, length, sizeof(length)));
	fprintf(to, "# %-13s = %-10s # others took the cores of ranks, by colld of %.0f of these: %.2g %% lately; "
		"since call %u\n", "noise", text, late->colld.ranks,
		late->colld.seen > 0 ? 100 * late->colld.stolen / late->colld.seen : 0, late->rank_call);
}

static void print_late_rank(FILE *to, const struct coll_late_rank *one)
{
	char length[32];

	if (one->late >= LATE_LEAST)
		fprintf(to, "# rank %u came late %.0f times lately, by %s on average\n", one->rank,
			one->late, time_text(one->behind / one->late, length, sizeof(length)));
	if (one->stops >= LATE_LEAST)
		fprintf(to, "# rank %u had no core %.0f times lately, for %s on average\n", one->rank,
			one->stops, time_text(one->stopped / one->stops, length, sizeof(length)));
}

/* Those that are leaves where that gains. */
static void print_leaves(FILE *to, const struct coll_lateness *late)
{
	const struct coll_late *leaves = &late->leaves;
	char ranks[48], length[32], links[40];

	if (!leaves->ranks)
		return;
	fprintf(to, "# %-13s = %-10s # ", "late", coll_late_print(leaves->rank, ranks, sizeof(ranks)));
	if (leaves->part > 0 || leaves->links.rate <= 0)
		fprintf(to, "often late, in %.2g %% of the calls by %s; ", leaves->part * 100,
			time_text(leaves->behind, length, sizeof(length)));
	if (leaves->links.rate > 0)
		fprintf(to, "late messages by %s, %.3gx%s; ", coll_late_links_print(leaves, links, sizeof(links)),
			leaves->links.rate, time_text(leaves->links.duration, length, sizeof(length)));
	fprintf(to, "since call %u\n", late->leaves_call);
}

/* As comments: how a job was disturbed is no cost of the next one. */
static void print_lateness(FILE *to, const struct coll_lateness *late)
{
	double messages = 0, stops = 0, exchanges = 0;
	int class, i;

	for (class = 0; class < COLL_CLASSES; class++) {
		messages += late->of[class].late;
		stops += late->of[class].stops;
		exchanges += late->of[class].exchanges;
	}
	print_noise(to, "link_noise", &late->link, "late messages", late->by_calls ? late->calls.calls : messages,
		    late->by_calls ? late->calls.exchanges : exchanges, late->link_call);
	if (late->by_colld)
		print_colld(to, late);
	else
		print_noise(to, "noise", &late->rank, "a rank without a core", stops, exchanges, late->rank_call);
	for (i = 0; i < COLL_LATE_RANKS; i++)
		print_late_rank(to, &late->rank_of[i]);
	print_leaves(to, late);
}

/* What the world's calls are chosen by, options that were set on it among them. */
static void costs_print(FILE *to, const struct coll_group *world)
{
	const struct coll_machine *machine = &world->options.machine;
	char text[32];
	int class;

	for (class = 0; class < COLL_CLASSES; class++)
		if (class_exists(world, class))
			print_class(to, world, class);
	if (machine->gamma > 0)
		print_gamma(to, world);
	if (machine->congestion > 0) {
		snprintf(text, sizeof(text), "%.4g", machine->congestion);
		print_line(to, "", "wan_loss", text);
		fprintf(to, "between clusters, what overload costs\n");
	}
	if (machine->crowding > 1) {
		snprintf(text, sizeof(text), "%.4g", machine->crowding);
		print_line(to, "# ", "crowding", text);
		fprintf(to, "ranks per core of a machine\n");
	}
	print_lateness(to, &world->costs.late);
}

struct costs_text {
	struct coll_context *context;
	FILE *to;
};

static void costs_print_here(void *argument)
{
	const struct costs_text *text = argument;

	costs_print(text->to, text->context->world);
}

int coll_costs(struct coll_context *context, char *text, size_t bytes)
{
	char *all = NULL;
	size_t length;
	FILE *to = open_memstream(&all, &length);

	if (!to)
		return -ENOMEM;
	/* The owner may change them (drift.h). */
	coll_progress_do_now(context, costs_print_here, &(struct costs_text){ context, to });
	if (fclose(to)) {
		free(all);
		return -ENOMEM;
	}
	snprintf(text, bytes, "%s", all);
	free(all);
	return length;
}
