// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A run in words: what was chosen for it, and why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/circuits/circuits.h"
#include "algo/common/clusters.h"
#include "algo/common/levels.h"
#include "algo/common/ranks.h"
#include "algo/tuning.h"
#include "libcoll/base/descriptors.h"
#include "libcoll/engine/engine.h"
#include "libcoll/exec/board.h"
#include "libcoll/exec/exec.h"
#include "libcoll/exec/machine.h"
#include "libcoll/link/link.h"
#include "libcoll/progress/progress.h"
#include "run.h"

/* ", 4 streams to a link between clusters (...)", or "". */
static const char *streams_explain(const struct coll_context *context, char *text, size_t bytes)
{
	const double bdp = context->bdp;
	const uint32_t streams = context->streams;

	*text = 0;
	if (!context->options.wan_streams && bdp > 0)
		snprintf(text, bytes, ", %u stream%s to a link between clusters (%.0f KB in "
			 "flight, a window is %.0f KB)", streams, streams > 1 ? "s" : "",
			 bdp / 1e3, context->window / 1e3);
	else if (streams > 1)
		snprintf(text, bytes, ", %u streams to a link between clusters", streams);
	return text;
}

/* "8+8", or "" for one cluster. */
static const char *clusters_explain(const struct coll_group *group, char *text, size_t bytes)
{
	uint32_t cluster, rank, size;
	size_t used = 0;

	*text = 0;
	for (cluster = 0; cluster < group->clusters && group->clusters > 1 && used < bytes;
	     cluster++) {
		for (size = rank = 0; rank < group->ranks; rank++)
			size += group->cluster[rank] == cluster;
		used += snprintf(text + used, bytes - used, "%s%u", cluster ? "+" : "", size);
	}
	return text;
}

/* " on 4 nodes of 4, 8 domains of 2 (levels=auto)"; "" without levels. */
static const char *levels_explain(const struct coll_group *group, char *text, size_t bytes)
{
	size_t used = 0;
	uint32_t i;

	*text = 0;
	for (i = group->levels ? group->levels->count : 0; i-- && used < bytes;) {
		const struct coll_level *level = &group->levels->of_ranks[i];

		if (level->kind == COLL_LEVEL_CLUSTER)
			continue;
		used += snprintf(text + used, bytes - used, "%s%u %ss of %u", used ? ", " : " on ",
				 level->parts, coll_level_names[level->kind], level->smallest);
		if (level->largest > level->smallest && used < bytes)
			used += snprintf(text + used, bytes - used, " to %u", level->largest);
	}
	if (used && used < bytes)
		snprintf(text + used, bytes - used, " (levels=%.60s)",
			 *group->context->options.levels ? group->context->options.levels : "auto");
	return text;
}

/* The progress that was chosen for the run, if it is chosen run by run; else "". */
static const char *choice_explain(const struct coll_run *run, char *text, size_t bytes)
{
	static const char *const chosen[] = { "call", "thread", "kernel" };

	*text = 0;
	if (run->choice[0])
		snprintf(text, bytes, "progress %s (auto: %s)", chosen[run->chosen], run->choice);
	return text;
}

/* What executes the run: "engine uring", or "in the kernel"; why not in the kernel. */
static const char *executor_explain(const struct coll_run *run, char *text, size_t bytes)
{
	const struct coll_context *context = run->group->context;
	const char *aside = run->planned->aside;
	char choice[160];

	choice_explain(run, choice, sizeof(choice));
	if (context->offload && !aside)
		snprintf(text, bytes, "in the kernel%s%s", *choice ? ", " : "", choice);
	else if (*choice)
		snprintf(text, bytes, "engine %s, %s", context->engine.ops->name, choice);
	else
		snprintf(text, bytes, "engine %s%s%s%s", context->engine.ops->name,
			 aside ? " (not in the kernel: " : "", aside ? aside : "",
			 aside ? ")" : "");
	return text;
}

/* Why n has its value: " (a link carries 2.5 MB/s, the WAN 25, overload costs 0.1)". */
static const char *lanes_explain(const struct coll_planned *planned,
				 const struct coll_machine *machine, char *text, size_t bytes)
{
	*text = 0;
	if (!planned->call.cluster || planned->tuning.lanes == COLL_UNSET)
		return text;
	if (machine->wan_beta > 0 && machine->beta > 0)
		snprintf(text, bytes,
			 " (a link carries %.3g MB/s, the WAN %.3g, overload costs %g)",
			 1e-6 / machine->beta, 1e-6 / machine->wan_beta, machine->congestion);
	else
		snprintf(text, bytes, " (the rate of the WAN is not known: option wan_beta)");
	return text;
}

/* " 1000x10us + 0.5x4ms, of links 20x1482us", or "" for no noise. */
static const char *noise_list(const struct coll_machine *m, char *text, size_t bytes)
{
	size_t used = 0;
	u32 k;

	*text = 0;
	for (k = 0; k < COLL_NOISES_MAX && m->noise[k].rate > 0 && used < bytes; k++)
		used += snprintf(text + used, bytes - used, "%s %.3gx%.4gus", k ? " +" : "",
				 m->noise[k].rate, m->noise[k].duration * 1e6);
	if (m->link_noise.rate > 0 && used < bytes)
		snprintf(text + used, bytes - used, "%s of links %.3gx%.4gus", k ? "," : "",
			 m->link_noise.rate, m->link_noise.duration * 1e6);
	return text;
}

/* " rank 1: 25 % of its calls by 480us, stops 20x300us, its links 20x3000us", or "" where no rank is often late. */
static const char *late_list(const struct coll_machine *m, char *text, size_t bytes)
{
	const struct coll_late *late = &m->late;
	size_t used = 0;
	char ranks[48], links[40];

	*text = 0;
	if (late->ranks && *coll_late_print(late->rank, ranks, sizeof(ranks)))
		used = snprintf(text, bytes, " rank %s", ranks);
	if (used && used < bytes && late->part > 0)
		used += snprintf(text + used, bytes - used, ": %.2g %% of its calls by %.4gus",
				 late->part * 100, late->behind * 1e6);
	if (used && used < bytes && late->stops.rate > 0)
		used += snprintf(text + used, bytes - used, ", stops %.3gx%.4gus", late->stops.rate,
				 late->stops.duration * 1e6);
	if (used && used < bytes && late->links.rate > 0)
		snprintf(text + used, bytes - used, "%s %s %.3gx%.4gus",
			 late->part > 0 || late->stops.rate > 0 ? "," : ":",
			 coll_late_links_print(late, links, sizeof(links)),
			 late->links.rate, late->links.duration * 1e6);
	return text;
}

/* Why late ranks are the leaves: " (late: rank 1: ..., measured before call 2176)". */
static const char *late_explain(const struct coll_run *run, char *text, size_t bytes)
{
	const struct coll_options *options = &run->group->options;
	const struct coll_planned *planned = run->planned;
	char list[180];

	*text = 0;
	if (!coll_algo_has_option(planned->algo, "late") ||
	    options->tuning[planned->call.collective].late[0] != COLL_NONE)
		return text;
	if (*late_list(&options->machine, list, sizeof(list)))
		snprintf(text, bytes, " (late:%s, measured before call %u)", list,
			 run->group->costs.late.leaves_call);
	else
		snprintf(text, bytes, " (no rank is known to be late: option late)");
	return text;
}

/* Why T and relays have their values: " (least time with noise 1000x10us, measured ...)". */
static const char *noise_explain(const struct coll_run *run, char *text, size_t bytes)
{
	const struct coll_planned *planned = run->planned;
	const struct coll_options *options = &run->group->options;
	const struct coll_machine *machine = &options->machine;
	const struct coll_lateness *late = &run->group->costs.late;
	const bool asked = options->tuning[planned->call.collective].redundancy != COLL_UNSET ||
			   options->tuning[planned->call.collective].relays != COLL_UNSET;
	char list[240], since[64] = "";

	*text = 0;
	if (!coll_algo_has_option(planned->algo, "T") || asked)
		return text;
	if (coll_noise_is_found(machine, late))
		snprintf(since, sizeof(since), ", measured%s before call %u",
			 coll_noise_is_by_colld(machine, late) ? " by colld" : "", coll_noise_call(machine, late));
	if (*noise_list(machine, list, sizeof(list)))
		snprintf(text, bytes, " (least time with noise%s%s)", list, since);
	else
		snprintf(text, bytes, " (noise is not known: option noise)");
	return text;
}

/* By which costs it was chosen, if they are no usual ones: ", by alpha 12 us, ... (measured)". */
static const char *costs_explain(const struct coll_group *group, const struct coll_algo *algo,
				 char *text, size_t bytes)
{
	const struct coll_context *context = group->context;
	const struct coll_machine machine = coll_group_machine(group), *const m = &machine;
	uint32_t measured = group->costs_agreed, class;
	char list[240] = "", late[180] = "", overhead[40] = "", gap[40] = "", gamma[40] = "", work[40] = "";

	for (class = 0; class < COLL_CLASSES; class++)
		measured += group->costs.of[class].pairs;
	if (coll_noise_is_found(m, &group->costs.late))
		noise_list(m, list, sizeof(list));
	if (!coll_algo_has_option(algo, "late"))
		late_list(m, late, sizeof(late));
	if (m->overhead > 0)
		snprintf(overhead, sizeof(overhead), ", overhead %.3g us", m->overhead * 1e6);
	if (m->byte_gap > 0)
		snprintf(gap, sizeof(gap), ", gap %.3g ns", m->byte_gap * 1e9);
	if (m->gamma > 0)
		snprintf(gamma, sizeof(gamma), ", gamma %.3g ns", m->gamma * 1e9);
	if (m->byte_work > 0 && m->crowding > 1)
		snprintf(work, sizeof(work), ", byte work %.3g ns", m->byte_work * 1e9);
	*text = 0;
	if (measured || context->options.costs[0])
		snprintf(text, bytes, " by alpha %.3g us, beta %.3g ns%s%s%s%s%s%s%s%s (%s%s%.120s)",
			 m->alpha * 1e6, m->beta * 1e9, overhead, gap, work, gamma, *list ? ", noise" : "", list,
			 *late ? ", late" : "", late,
			 !measured ? "" : group->costs_agreed ? "measured meanwhile" :
								"measured at the start",
			 measured && context->options.costs[0] ? " and " : "", context->options.costs);
	return text;
}

/* The predicted time with circuits, and the least time of any schedule. */
static const char *circuits_explain(struct coll_planned *planned, char *text, size_t bytes)
{
	const struct coll_circuits_cost *cost = coll_planned_cost(planned);
	const struct coll_machine machine = coll_planned_machine(planned);
	char up[64] = "";

	*text = 0;
	if (!cost)
		return text;
	if (planned->connected > 0)
		snprintf(up, sizeof(up), ", %.4g ms if its circuits are up",
			 planned->connected * 1e3);
	snprintf(text, bytes, ", predicted %.4g ms, at least %.4g ms: %u reconfigurations of "
		 "%.3g ms, %u of a node%s, alpha %.3g us, beta %.3g ns", cost->seconds * 1e3,
		 planned->bound * 1e3, cost->setups, machine.delta * 1e3, cost->most_setups,
		 up, machine.alpha * 1e6, machine.beta * 1e9);
	return text;
}

/* Adds " N WHAT" to a list. */
static void list_add(char *text, size_t bytes, uint32_t count, const char *what)
{
	const size_t used = strlen(text);

	if (count)
		snprintf(text + used, bytes - used, "%s %u %s", used ? "," : ", links:", count, what);
}

/* ", links: 2 through memory, 1 over TCP cubic (memory=off)": those to the partners. */
static const char *links_explain(const struct coll_planned *planned,
				 const struct coll_context *context, char *text, size_t bytes)
{
	uint32_t peer, memory = 0, local = 0, tcp = 0, down = 0;
	char over[96];

	for (peer = 0; peer < planned->schedule->peers; peer++) {
		const struct coll_link *link = planned->links[peer];

		if (link->state != LINK_UP)
			down++;
		else if (coll_link_through_memory(link))
			memory++;
		else if (coll_connection_is_unix(coll_link_fd(link)))	/* memory could not be shared */
			local++;
		else
			tcp++;
	}
	snprintf(over, sizeof(over), "over TCP %s%s%s%s", context->congestion,
		 context->without_memory ? " (" : "",
		 context->without_memory ? context->without_memory : "",
		 context->without_memory ? ")" : "");
	*text = 0;
	list_add(text, bytes, memory, "through memory");
	list_add(text, bytes, local, "over a Unix socket");
	list_add(text, bytes, tcp, over);
	list_add(text, bytes, down, "not connected yet");
	return text;
}

static const char *message_describe(const struct coll_run *run, char *text, size_t bytes)
{
	const struct coll_call *call = &run->planned->call;
	const bool sends = call->collective == COLL_CALL_SEND;
	char rank[32] = "any rank", tag[32] = "any tag";

	if (call->root != COLL_NONE)
		snprintf(rank, sizeof(rank), "rank %u", call->root);
	if (run->tag != COLL_ANY_TAG)
		snprintf(tag, sizeof(tag), "tag %d", run->tag);
	snprintf(text, bytes, "%s of %llu x %u bytes %s %s, %s", coll_collective_names[call->collective],
		 (unsigned long long)call->count, call->element, sends ? "to" : "from", rank, tag);
	return text;
}

/* Before its first run it is not known whether there is memory for them. */
static const char *boards_explain(const struct coll_planned *planned)
{
	const struct coll_group *group = planned->group;

	return coll_board_suits(planned) && coll_context_is_plain(group->context) &&
	       (planned->board_tries || group->board) ?
		       ", short messages by boards" : "";
}

/* As the algorithm uses it: one value of an option serves groups of all sizes, small ones as far as they go. */
static struct coll_tuning tuning_used(const struct coll_planned *planned)
{
	struct coll_tuning used = planned->tuning;
	const u32 exchanges = log2_floor(planned->call.ranks);

	if (used.redundancy != COLL_UNSET && used.redundancy > exchanges)
		used.redundancy = exchanges;
	if (used.lanes != COLL_UNSET && used.lanes > coll_clusters_smallest(&planned->call))
		used.lanes = coll_clusters_smallest(&planned->call);
	return used;
}

const char *coll_run_describe(struct coll_run *run, char *text, size_t bytes)
{
	struct coll_planned *planned = run->planned;
	const struct coll_call *call = &planned->call;
	const struct coll_schedule *s = planned->schedule;
	const struct coll_tuning used = tuning_used(planned);
	bool requested;
	char tuning[128], clusters[256], lanes[128], noise[300], executor[320], circuits[224];
	char streams[128] = "", links[224], levels[160], costs[460] = "", late[260];

	if (coll_call_is_message(call))
		return message_describe(run, text, bytes);
	requested = run->group->options.algo[call->collective] == planned->algo;
	if (call->cluster)
		streams_explain(run->group->context, streams, sizeof(streams));
	if (!requested)
		costs_explain(run->group, planned->algo, costs, sizeof(costs));
	snprintf(text, bytes,
		 "%s of %llu x %u bytes, %u ranks%s%s%s%s: %s%s%s%s%s (%s%s)%s, %u ops, %u peers, "
		 "%s%s%s%s",
		 coll_collective_names[call->collective], (unsigned long long)call->count,
		 call->element, call->ranks, call->cluster ? " in clusters of " : "",
		 clusters_explain(run->group, clusters, sizeof(clusters)),
		 levels_explain(run->group, levels, sizeof(levels)),
		 lanes_explain(planned, &run->group->options.machine, lanes, sizeof(lanes)),
		 planned->algo->name,
		 *coll_tuning_print(&used, tuning, sizeof(tuning)) ? ":" : "", tuning,
		 noise_explain(run, noise, sizeof(noise)),
		 late_explain(run, late, sizeof(late)),
		 requested ? "requested" : "least predicted time of those that fit",
		 costs,
		 circuits_explain(planned, circuits, sizeof(circuits)), s->ops, s->peers,
		 executor_explain(run, executor, sizeof(executor)),
		 links_explain(planned, run->group->context, links, sizeof(links)), streams, boards_explain(planned));
	return text;
}

static void run_explain_choice(void *argument)
{
	struct coll_run *run = argument;
	char choice[160];

	if (run->planned)
		coll_run_describe(run, run->explanation, COLL_EXPLANATION_BYTES);
	else
		snprintf(run->explanation, COLL_EXPLANATION_BYTES, "%s%s%s",
			 run->posted || coll_run_in_flight(run) ? "it is queued"
							   : "it has ended",
			 run->choice[0] ? ", " : "", choice_explain(run, choice, sizeof(choice)));
}

const char *coll_run_explain(struct coll_run *run)
{
	struct coll_context *context = run->group->context;

	if (!run->explanation)
		run->explanation = malloc(COLL_EXPLANATION_BYTES);
	if (!run->explanation)
		return "";
	/* After the run was planned at its start; a helper would complete it first. */
	if (context->progress == &coll_progress_helper)
		coll_progress_do_now(context, run_explain_choice, run);
	else
		coll_progress_do(context, run_explain_choice, run);
	return run->explanation;
}

void coll_run_explain_once(struct coll_run *run)
{
	char text[COLL_EXPLANATION_BYTES];

	if (!run->group->options.explain || run->planned->explained)
		return;
	run->planned->explained = true;
	if (!run->group->rank)
		fprintf(stderr, "coll: %s\n", coll_run_describe(run, text, sizeof(text)));
}
