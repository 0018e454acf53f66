// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "algo/common/algo.h"
#include "report.h"

/* Who had the rank's core, and how much of what was taken from it. */
static json_t *json_takers(const struct coll_flight_observed *observed)
{
	const double taken = coll_flight_taken_ns(observed);
	json_t *takers = json_array();
	uint32_t i;

	for (i = 0; i < COLL_FLIGHT_TAKERS; i++) {
		const struct coll_flight_taker *taker = &observed->taker[i];
		char name[160];
		json_t *json;

		if (!taker->ns || taken <= 0)
			continue;
		json = json_pack("{s:s, s:s, s:s, s:f, s:f}", "kind",
				 coll_flight_taker_names[taker->kind < COLL_FLIGHT_TAKER_KINDS ?
							 taker->kind : COLL_FLIGHT_TAKER_OTHERS],
				 "name", *taker->name ? taker->name : coll_flight_taker_text(taker, name),
				 "cgroup", taker->cgroup, "seconds", taker->ns / 1e9, "share",
				 taker->ns / taken);
		if (taker->flags & (COLL_FLIGHT_TAKER_MOVED | COLL_FLIGHT_TAKER_HELD))
			json_object_set_new(json, "act", json_string(
				taker->flags & COLL_FLIGHT_TAKER_MOVED ? "moved" : "held"));
		json_array_append_new(takers, json);
	}
	return takers;
}

/* Of the time that it was looked at: coll.ko counted who had the core. */
static double counted_part(const struct coll_flight_observed *observed)
{
	const double seen = observed->until > observed->since ? observed->until - observed->since : 0;

	return !(seen > 0) ? 0 : observed->counted < seen ? observed->counted / seen : 1;
}

static json_t *json_loss(const struct coll_flight_report *report, const struct coll_flight_job *job,
			 const struct coll_flight_loss *loss)
{
	const struct coll_flight_seen *seen = coll_flight_of(job, loss->rank);
	char advice[COLL_FLIGHT_ADVICE], cause[COLL_FLIGHT_ADVICE];
	json_t *json = json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:s, s:s}", "kind",
				 coll_flight_loss_names[loss->kind], "rank", (json_int_t)loss->rank,
				 "cost_seconds", loss->cost, "saved_seconds", loss->saved,
				 "share_of_calls", loss->share, "by_seconds", loss->by,
				 "collective", coll_collective_names[loss->collective], "advice",
				 coll_flight_advice(report, loss, advice, sizeof(advice)));

	if (loss->saved_most >= 0)
		json_object_set_new(json, "saved_between", json_pack("[f, f]", loss->saved_least,
								     loss->saved_most));
	json_object_set_new(json, "cause", json_string(coll_flight_because_names[loss->because]));
	json_object_set_new(json, "every_other_call", json_boolean(loss->alternate));
	if (coll_flight_because_text(loss, cause, sizeof(cause)))
		json_object_set_new(json, "cause_text", json_string(cause));
	if (seen)
		json_object_set_new(json, "host", json_string(seen->page.host));
	if (seen && seen->observed.looks) {
		json_object_set_new(json, "taken_by", json_takers(&seen->observed));
		json_object_set_new(json, "seen_by", json_string(
			seen->observed.source == COLL_FLIGHT_BY_COLLD ? "colld" : "coll"));
		json_object_set_new(json, "counted_part", json_real(counted_part(&seen->observed)));
	}
	if (loss->from != COLL_FLIGHT_NO_RANK)
		json_object_set_new(json, "from", json_integer(loss->from));
	return json;
}

/* How the calls were made, and against what that is compared. */
static void json_add_choice(json_t *json, const struct coll_flight_site *site)
{
	const struct coll_flight_regret *regret = &site->regret;

	json_object_set_new(json, "chosen", json_string(site->asked ? "by name" : "auto"));
	json_object_set_new(json, "ranks", json_integer(site->ranks));
	json_object_set_new(json, "regret_by", json_string(coll_flight_regret_names[regret->by]));
	json_object_set_new(json, "regret_seconds", json_real(regret->seconds));
	if (site->segment)
		json_object_set_new(json, "segment_bytes", json_integer(site->segment));
	if (site->alones)
		json_object_set_new(json, "alone_seconds", json_real(site->alone / site->alones));
	if (regret->by != COLL_FLIGHT_REGRET_BY_TIMES)
		return;
	json_object_set_new(json, "regret_between", json_pack("[f, f]", regret->least, regret->most));
	json_object_set_new(json, "compared_with", json_pack("{s:s, s:I, s:I, s:f}", "algorithm",
		regret->algo, "segment_bytes", (json_int_t)regret->segment, "bytes",
		(json_int_t)regret->bytes, "alone_seconds", regret->time));
}

static json_t *json_regret(const struct coll_flight_report *report)
{
	json_t *json = json_object();
	uint32_t by;

	for (by = 0; by < COLL_FLIGHT_REGRETS; by++)
		json_object_set_new(json, coll_flight_regret_names[by],
				    json_pack("{s:f, s:f}", "seconds", report->regret[by], "calls",
					      report->by_auto[by]));
	return json;
}

static json_t *json_site(const struct coll_flight_report *report,
			 const struct coll_flight_site *site)
{
	json_t *json = json_pack("{s:s, s:s, s:I, s:I, s:f}", "collective",
				 coll_collective_names[site->collective], "algorithm", site->algo,
				 "bytes", (json_int_t)site->bytes, "calls",
				 (json_int_t)(site->sum.runs / report->here), "mean_seconds",
				 site->sum.ns / 1e9 / site->sum.runs);

	if (site->shortest > 0)
		json_object_set_new(json, "shortest_seconds", json_real(site->shortest));
	json_add_choice(json, site);
	if (site->predicted > 0) {
		json_object_set_new(json, "model_seconds", json_real(site->predicted));
		json_object_set_new(json, "model_best_seconds", json_real(site->best));
	}
	return json;
}

static void json_add_kinds(json_t *json, const double seconds[COLL_FLIGHT_LOSS_KINDS])
{
	static const char *const keys[COLL_FLIGHT_LOSS_KINDS] = {
		"late_rank_seconds", "no_core_seconds", "late_message_seconds",
	};
	uint32_t kind;

	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++)
		json_object_set_new(json, keys[kind], json_real(seconds[kind]));
}

static json_t *json_spent(const struct coll_flight_spent *spent)
{
	json_t *json = json_pack("{s:f, s:f, s:f}", "inside_seconds", spent->inside, "waiting_seconds",
				 spent->waiting, "not_known_seconds", spent->unknown);

	json_add_kinds(json, spent->waited);
	return json;
}

static json_t *json_node(const struct coll_flight_report *report,
			 const struct coll_flight_node *node)
{
	json_t *names = json_array(), *json;
	uint32_t i;

	for (i = 0; i < node->names; i++)
		json_array_append_new(names, json_pack("{s:s, s:f}", "name", node->name[i].text,
						       "seconds", node->name[i].seconds));
	json = json_pack("{s:s, s:I, s:f, s:f, s:o, s:o}", "node", node->host, "ranks",
			 (json_int_t)node->ranks, "cost_seconds", node->cost, "share_of_job",
			 report->seconds > 0 ? node->cost / report->seconds : 0., "by", names,
			 "its_ranks", json_spent(&node->spent));
	json_add_kinds(json, node->lost);
	return json;
}

static void json_add_saved(json_t *json, const struct coll_flight_report *report, double saved,
			   double least, double most)
{
	json_object_set_new(json, "saved_seconds", json_real(saved));
	json_object_set_new(json, "share_of_job",
			    json_real(report->seconds > 0 ? saved / report->seconds : 0));
	if (most >= 0)
		json_object_set_new(json, "saved_between", json_pack("[f, f]", least, most));
}

static json_t *json_without(const struct coll_flight_report *report)
{
	json_t *causes = json_array();
	char text[COLL_FLIGHT_WORDS];
	uint32_t i;

	for (i = 0; i < report->withouts; i++) {
		const struct coll_flight_without *without = &report->without[i];
		json_t *json = json_pack("{s:s, s:s, s:I, s:f}", "cause",
					 coll_flight_because_names[without->because], "what",
					 coll_flight_without_text(without, text), "ranks",
					 (json_int_t)without->ranks, "cost_seconds", without->cost);

		json_add_saved(json, report, without->saved, without->least, without->most);
		json_array_append_new(causes, json);
	}
	return causes;
}

static json_t *json_remedies(const struct coll_flight_report *report)
{
	json_t *remedies = json_array();
	uint32_t i;

	for (i = 0; i < COLL_FLIGHT_REMEDIES; i++) {
		const struct coll_flight_remedy *remedy = &report->remedy[i];
		json_t *json = json_pack("{s:s, s:s, s:b}", "remedy",
					 coll_flight_remedy_names[remedy->kind], "what", remedy->what,
					 "known", !remedy->unknown);

		json_array_append_new(remedies, json);
		if (remedy->unknown) {
			json_object_set_new(json, "why", json_string(remedy->unknown));
			continue;
		}
		json_add_saved(json, report, remedy->saved, remedy->least, remedy->most);
	}
	return remedies;
}

static json_t *json_ranks(const struct coll_flight_report *report,
			  const struct coll_flight_job *job)
{
	json_t *ranks = json_array();
	size_t i;

	for (i = 0; i < job->count; i++) {
		const struct coll_flight_page *page = &job->seen[i]->page;

		json_array_append_new(ranks, json_pack("{s:I, s:s, s:I, s:f, s:f, s:f, s:o}", "rank",
						       (json_int_t)page->rank, "host", page->host,
						       "calls", (json_int_t)page->runs,
						       "inside_seconds", coll_flight_inside_seconds(job->seen[i]),
						       "no_core_seconds", coll_flight_delayed(page),
						       "injected_seconds", page->injected / 1e9,
						       "in_calls", json_spent(&report->rank[i])));
	}
	return ranks;
}

json_t *node_report_json(const struct coll_flight_report *report, const struct coll_flight_job *job)
{
	json_t *losses = json_array(), *sites = json_array(), *nodes = json_array(), *json;
	char verdict[COLL_FLIGHT_ADVICE], waits[COLL_FLIGHT_TEXT], rare[160];
	uint32_t i;

	for (i = 0; i < report->losses; i++)
		json_array_append_new(losses, json_loss(report, job, &report->loss[i]));
	for (i = 0; i < report->nodes; i++)
		json_array_append_new(nodes, json_node(report, &report->node[i]));
	for (i = 0; i < report->sites; i++)
		json_array_append_new(sites, json_site(report, &report->site[i]));
	json = json_pack(
		"{s:s, s:s, s:I, s:I, s:I, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:b}",
		"job", report->page->job, "program", report->page->program, "ranks",
		(json_int_t)report->ranks, "here", (json_int_t)report->here, "nodes",
		(json_int_t)report->hosts, "verdict",
		coll_flight_verdict(report, verdict, sizeof(verdict)), "seconds", report->seconds,
		"inside_seconds", report->inside, "least_seconds", report->least, "chosen_seconds",
		report->chosen, "late_rank_seconds", report->lost[COLL_FLIGHT_LOSS_LATE],
		"no_core_seconds", report->lost[COLL_FLIGHT_LOSS_STOLEN], "late_message_seconds",
		report->lost[COLL_FLIGHT_LOSS_LINK], "not_known_seconds", report->unknown, "waiting_seconds",
		report->waiting, "calls", report->calls, "timed",
		(json_int_t)report->timed, "skewed", (int)report->skewed);
	if (json)
		json_object_set_new(json, "part", json_boolean(report->here < report->ranks));
	if (json)
		json_object_set_new(json, "cut", json_boolean(report->cut));
	if (json && coll_flight_waits_for(report, job, waits))
		json_object_set_new(json, "waits_for", json_string(waits));
	if (json && report->observed > 0)
		json_object_set_new(json, "observed", json_pack("{s:f, s:I}", "seconds",
			report->observed, "cost_ppm",
			(json_int_t)(1e6 * report->observed_cost)));
	if (json && coll_flight_rare_looks(report, rare))
		json_object_set_new(json, "rare_looks", json_string(rare));
	if (json && report->hosts > 1 && report->clock_error >= 0)
		json_object_set_new(json, "clock_error_seconds", json_real(report->clock_error));
	if (!json) {
		json_decref(losses);
		json_decref(sites);
		json_decref(nodes);
		return NULL;
	}
	json_object_set_new(json, "earlier", json_pack("{s:I, s:f}", "calls",
		(json_int_t)(report->past.runs / report->here), "seconds", report->past.ns / 1e9 /
		report->here));
	json_object_set_new(json, "loss", losses);
	json_object_set_new(json, "node", nodes);
	json_object_set_new(json, "without", json_without(report));
	json_object_set_new(json, "remedy", json_remedies(report));
	json_object_set_new(json, "auto_regret", json_regret(report));
	json_object_set_new(json, "call", sites);
	json_object_set_new(json, "rank", json_ranks(report, job));
	return json;
}
