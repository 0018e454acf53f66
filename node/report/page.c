// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The verdict in one sentence, then what collectives cost, who causes it, what to do, and the
 * evidence. All names come from pages of ranks, so they go through node_html_text().
 */
#include <string.h>

#include "algo/common/algo.h"
#include "html.h"
#include "report.h"

enum { LOSSES = 16, NODES = 16, SITES = 16, RANKS = 64, PLACE = 96 };

/* Of the largest loss: less is no picture. */
static const double least_shown = 0.01;

static double share_of_job(const struct coll_flight_report *report, double seconds)
{
	return report->seconds > 0 ? seconds / report->seconds : 0;
}

/* ---- verdict --------------------------------------------------------------- */

static void put_verdict(const struct coll_flight_report *report, FILE *to)
{
	const double worst = report->losses ? share_of_job(report, report->loss[0].cost) : 0;
	char text[COLL_FLIGHT_ADVICE];

	fprintf(to, "<h1><span class=\"%s\">%s:</span> ",
		worst >= 0.1 ? "bad" : worst >= 0.01 ? "fair" : "good",
		worst >= 0.1 ? "Much is lost" : worst >= 0.01 ? "Some is lost" : "Little is lost");
	node_html_text(coll_flight_verdict(report, text, sizeof(text)), to);
	fprintf(to, "</h1>\n<p class=\"capture\">Job <span class=\"name\">");
	node_html_text(report->page->job, to);
	fprintf(to, "</span>: <span class=\"name\">");
	node_html_text(report->page->program, to);
	fprintf(to, "</span>, ");
	node_html_count(".ranks", report->ranks, to);
	fprintf(to, " rank%s on ", report->ranks == 1 ? "" : "s");
	node_html_count(".nodes", report->hosts, to);
	fprintf(to, " node%s, ", report->hosts == 1 ? "" : "s");
	node_html_time(".seconds * 1e9", 1e9 * report->seconds, to);
	fprintf(to, " long. ");
	node_html_count(".timed", report->timed, to);
	fprintf(to, " calls were timed on all ranks; what was lost is scaled from these. Times are means "
		"of the ranks.</p>\n");
	if (report->here == report->ranks)
		return;
	fprintf(to, "<p class=\"note\">A part: ");
	node_html_count(".here", report->here, to);
	fprintf(to, " of %u ranks are here. What is waited for the others is not known, and what they wait "
		"for is not counted.", report->ranks);
	if (coll_flight_cut_text(report, text))
		fprintf(to, " %s", text);
	fprintf(to, "</p>\n");
}

/* ---- costs -------------------------------------------------------------------- */

static void put_tile(const struct coll_flight_report *report, const char *name, const char *place,
		     double seconds, FILE *to)
{
	char number[PLACE], share[PLACE];

	snprintf(number, sizeof(number), "%s * 1e9", place);
	snprintf(share, sizeof(share), "%s / .seconds", place);
	fprintf(to, "<div><dt>%s</dt><dd>", name);
	node_html_time(number, 1e9 * seconds, to);
	fprintf(to, "<small style=\"display:block\">");
	node_html_share(share, share_of_job(report, seconds), to);
	fprintf(to, " of the job</small></dd></div>\n");
}

static void put_costs(const struct coll_flight_report *report, const struct coll_flight_job *job,
		      FILE *to)
{
	char text[COLL_FLIGHT_TEXT];
	uint32_t kind;

	fprintf(to, "<section><h2>What it costs</h2>\n<dl class=\"tiles\" "
		"style=\"grid-template-columns:repeat(auto-fit,minmax(165px,1fr))\">");
	put_tile(report, "in collectives", ".inside_seconds", report->inside, to);
	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++)
		put_tile(report, node_report_parts[kind].name, node_report_parts[kind].place, report->lost[kind], to);
	put_tile(report, "in a call that has not ended", ".waiting_seconds", report->waiting, to);
	put_tile(report, "waiting, not known for what", ".not_known_seconds", report->unknown, to);
	put_tile(report, "least possible (model, or seen)", ".least_seconds", report->least,
		 to);
	fprintf(to, "</dl>\n");
	node_report_picture(report, job, to);
	if (coll_flight_waits_for(report, job, text)) {
		fprintf(to, "<p>What the ranks wait for now: ");
		node_html_text(text, to);
		fprintf(to, "</p>");
	}
	if (report->skewed)
		fprintf(to, "<p>The calls that were timed are no sample of all: their means differ more "
			"than twofold. So no rank is named.</p>");
	fprintf(to, "</section>\n");
}

/* ---- causes ---------------------------------------------------------------------- */

static void put_cell(uint32_t index, const char *field, double seconds, FILE *to)
{
	char place[PLACE];

	snprintf(place, sizeof(place), ".loss[%u].%s * 1e9", index, field);
	fprintf(to, "<td>");
	node_html_time(place, 1e9 * seconds, to);
	fprintf(to, "</td>");
}

static void put_loss(const struct coll_flight_report *report, const struct coll_flight_job *job,
		     uint32_t index, FILE *to)
{
	static const char *const words[COLL_FLIGHT_LOSS_KINDS] = {
		"comes late", "has no core", "gets messages late",
	};
	const struct coll_flight_loss *loss = &report->loss[index];
	const struct coll_flight_seen *seen = coll_flight_of(job, loss->rank);
	char place[PLACE];

	fprintf(to, "<tr><th style=\"white-space:nowrap\">rank %u %s", loss->rank, words[loss->kind]);
	if (loss->from != COLL_FLIGHT_NO_RANK)
		fprintf(to, "<br/>from rank %u", loss->from);
	fprintf(to, "</th><td class=\"name\">");
	node_html_text(seen ? seen->page.host : "not here", to);
	snprintf(place, sizeof(place), ".loss[%u].share_of_calls", index);
	fprintf(to, "</td><td>");
	node_html_share(place, loss->share, to);
	fprintf(to, "</td>");
	put_cell(index, "by_seconds", loss->by, to);
	put_cell(index, "cost_seconds", loss->cost, to);
	put_cell(index, "saved_seconds", loss->saved, to);
	fprintf(to, "<td>%s</td><td class=\"share wide\"><span style=\"width:%.2f%%;"
		"background:var(--%s)\"></span></td></tr>\n", coll_collective_names[loss->collective],
		100 * loss->cost / report->loss[0].cost, node_report_parts[loss->kind].colour);
}

/* `This` becomes code. */
static void put_marked(const char *text, FILE *to)
{
	char part[COLL_FLIGHT_ADVICE];
	bool code = false;

	for (; *text; code = !code) {
		const size_t length = strcspn(text, "`");

		snprintf(part, sizeof(part), "%.*s", (int)length, text);
		fprintf(to, "%s", code ? "<code>" : "");
		node_html_text(part, to);
		fprintf(to, "%s", code ? "</code>" : "");
		text += length + (text[length] == '`');
	}
}

/* What is behind the losses, where somebody looked at the ranks from outside. */
static void put_because(const struct coll_flight_report *report, FILE *to)
{
	char text[COLL_FLIGHT_ADVICE], rare[160];
	uint32_t i, causes = 0;

	if (!(report->observed > 0))
		return;
	fprintf(to, "<h3 style=\"margin-top:28px\">The causes, by looks from outside</h3>\n<ul>\n");
	for (i = 0; i < report->losses && i < LOSSES; i++) {
		if (!coll_flight_is_worth(report, &report->loss[i]) ||
		    !coll_flight_because_text(&report->loss[i], text, sizeof(text)))
			continue;
		causes++;
		fprintf(to, "<li>Rank %u on ", report->loss[i].rank);
		node_html_text(report->loss[i].seen->page.host, to);
		fprintf(to, ": ");
		put_marked(text, to);
		fprintf(to, "</li>\n");
	}
	if (!causes)
		fprintf(to, "<li>None: nothing was seen behind a loss that is worth a line.</li>\n");
	fprintf(to, "</ul>\n<p class=\"note\">The looks took ");
	node_html_count(".observed.cost_ppm", 1e6 * report->observed_cost, to);
	fprintf(to, " ppm of a core, in ");
	node_html_time(".observed.seconds * 1e9", 1e9 * report->observed, to);
	fprintf(to, ".");
	if (coll_flight_rare_looks(report, rare)) {
		fprintf(to, " Note: ");
		node_html_text(rare, to);
		fprintf(to, ".");
	}
	fprintf(to, "</p>\n");
}

static void put_node_time(uint32_t index, const char *place, double seconds, FILE *to)
{
	char number[PLACE];

	snprintf(number, sizeof(number), ".node[%u].%s * 1e9", index, place);
	fprintf(to, "<td>");
	node_html_time(number, 1e9 * seconds, to);
	fprintf(to, "</td>");
}

static void put_node(const struct coll_flight_report *report, uint32_t index, FILE *to)
{
	const struct coll_flight_node *node = &report->node[index];
	char place[PLACE], names[COLL_FLIGHT_ADVICE];
	uint32_t kind;

	fprintf(to, "<tr><th class=\"name\">");
	node_html_text(node->host, to);
	fprintf(to, "</th>");
	put_node_time(index, "cost_seconds", node->cost, to);
	snprintf(place, sizeof(place), ".node[%u].share_of_job", index);
	fprintf(to, "<td>");
	node_html_share(place, share_of_job(report, node->cost), to);
	fprintf(to, "</td>");
	for (kind = 0; kind < COLL_FLIGHT_LOSS_KINDS; kind++)
		put_node_time(index, node_report_parts[kind].place + 1, node->lost[kind], to);
	fprintf(to, "<td class=\"wide\">");
	put_marked(coll_flight_names_text(node, COLL_FLIGHT_NODE_NAMES, names, sizeof(names)), to);
	fprintf(to, "</td></tr>\n");
}

static void put_nodes(const struct coll_flight_report *report, FILE *to)
{
	uint32_t i;

	fprintf(to, "<h3 style=\"margin-top:28px\">By node</h3><table><caption>What its ranks made all "
		"ranks lose, and by what; late messages where one rank sends them, else where they "
		"arrive</caption><thead><tr><th>node</th><th>cost</th><th>of the "
		"job</th><th>late</th><th>without a core</th><th>late messages</th><th class=\"wide "
		"name\">by</th></tr></thead><tbody>\n");
	for (i = 0; i < report->nodes && i < NODES; i++)
		put_node(report, i, to);
	fprintf(to, "</tbody></table>\n");
	if (report->nodes > NODES)
		fprintf(to, "<p class=\"note\">The first %d of %u nodes; the JSON has all.</p>\n", NODES,
			report->nodes);
}

static void put_losses(const struct coll_flight_report *report, const struct coll_flight_job *job,
		       FILE *to)
{
	uint32_t i;

	fprintf(to, "<section><h2>Who causes it</h2>\n");
	if (!report->losses) {
		fprintf(to, "<p>No rank, core or link that this report can name.</p></section>\n");
		return;
	}
	fprintf(to, "<table><thead><tr><th>cause</th><th style=\"text-align:left\">node</th><th>of calls</th><th>by</th>"
		"<th>cost</th><th>could save</th><th>most in</th><th class=\"wide\"></th></tr></thead>"
		"<tbody>\n");
	for (i = 0; i < report->losses && i < LOSSES &&
		    report->loss[i].cost >= least_shown * report->loss[0].cost; i++)
		put_loss(report, job, i, to);
	fprintf(to, "</tbody></table>");
	put_nodes(report, to);
	put_because(report, to);
	fprintf(to, "</section>\n");
}

/* ---- advice ------------------------------------------------------------------------- */

/* An entry of a list of the JSON: what it saves. */
static void put_saved_time(const char *list, uint32_t index, const char *field, double seconds, FILE *to)
{
	char place[PLACE];

	snprintf(place, sizeof(place), ".%s[%u].%s * 1e9", list, index, field);
	node_html_time(place, 1e9 * seconds, to);
}

static void put_saved(const struct coll_flight_report *report, const char *list, uint32_t index, double saved,
		      double least, double most, FILE *to)
{
	char place[PLACE];

	fprintf(to, "</th><td>");
	put_saved_time(list, index, "saved_seconds", saved, to);
	fprintf(to, "</td><td>");
	snprintf(place, sizeof(place), ".%s[%u].share_of_job", list, index);
	node_html_share(place, share_of_job(report, saved), to);
	fprintf(to, "</td><td>");
	if (most > 0) {
		put_saved_time(list, index, "saved_between[0]", least, to);
		fprintf(to, " to ");
		put_saved_time(list, index, "saved_between[1]", most, to);
	} else if (most < 0) {
		fprintf(to, "too few timed calls");
	}
	fprintf(to, "</td></tr>\n");
}

static void put_without(const struct coll_flight_report *report, uint32_t index, FILE *to)
{
	const struct coll_flight_without *without = &report->without[index];
	char text[COLL_FLIGHT_WORDS];

	fprintf(to, "<tr><th>");
	put_marked(coll_flight_without_text(without, text), to);
	put_saved(report, "without", index, without->saved, without->least, without->most, to);
}

static void put_remedy(const struct coll_flight_report *report, uint32_t index, FILE *to)
{
	const struct coll_flight_remedy *remedy = &report->remedy[index];

	fprintf(to, "<tr><th>");
	put_marked(remedy->what, to);
	if (remedy->unknown) {
		fprintf(to, "</th><td colspan=\"3\" class=\"name\">not known: ");
		node_html_text(remedy->unknown, to);
		fprintf(to, "</td></tr>\n");
		return;
	}
	put_saved(report, "remedy", index, remedy->saved, remedy->least, remedy->most, to);
}

static void put_remedies(const struct coll_flight_report *report, FILE *to)
{
	uint32_t i;

	fprintf(to, "<h3 style=\"margin-top:28px\">What would be saved</h3><table><caption>Each by itself. "
		"Between: 9 of 10 jobs, by the spread of the timed calls; of T by the library&#8217;s "
		"model</caption><thead><tr><th>what</th><th>saved</th><th>of the job</th><th>between</th>"
		"</tr></thead><tbody>\n");
	for (i = 0; i < report->withouts; i++)
		put_without(report, i, to);
	for (i = 0; i < COLL_FLIGHT_REMEDIES; i++)
		put_remedy(report, i, to);
	fprintf(to, "</tbody></table>\n");
}

static void put_advice(const struct coll_flight_report *report, FILE *to)
{
	char text[COLL_FLIGHT_ADVICE];
	uint32_t i, given = 0;

	fprintf(to, "<section><h2>What to do</h2>\n<ol>\n");
	for (i = 0; i < report->losses && i < LOSSES; i++) {
		if (!coll_flight_is_worth(report, &report->loss[i]))
			continue;
		fprintf(to, "<li>");
		put_marked(coll_flight_advice(report, &report->loss[i], text, sizeof(text)), to);
		fprintf(to, "</li>\n");
		given++;
	}
	for (i = 0; i < report->sites && i < SITES; i++)
		if (*coll_flight_regret_text(report, &report->site[i], text, sizeof(text))) {
			fprintf(to, "<li>");
			node_html_text(text, to);
			fprintf(to, "</li>\n");
			given++;
		}
	if (!given)
		fprintf(to, "<li>Nothing that this report can name.</li>\n");
	fprintf(to, "</ol>\n");
	if (report->losses)
		put_remedies(report, to);
	fprintf(to, "</section>\n");
}

/* ---- evidence --------------------------------------------------------------------------- */

static void put_site_time(uint32_t index, const char *field, double seconds, FILE *to)
{
	char place[PLACE];

	snprintf(place, sizeof(place), ".call[%u].%s * 1e9", index, field);
	fprintf(to, "<td>");
	if (seconds > 0)
		node_html_time(place, 1e9 * seconds, to);
	fprintf(to, "</td>");
}

static void put_site(const struct coll_flight_report *report, uint32_t index, FILE *to)
{
	const struct coll_flight_site *site = &report->site[index];
	char place[PLACE];

	fprintf(to, "<tr><th>%s", coll_collective_names[site->collective]);
	if (site->ranks && site->ranks < report->ranks)
		fprintf(to, ", groups of %u", site->ranks);
	fprintf(to, "</th><td class=\"name\">");
	node_html_text(site->algo, to);
	fprintf(to, "</td><td>");
	snprintf(place, sizeof(place), ".call[%u].bytes", index);
	node_html_count(place, site->bytes, to);
	fprintf(to, "</td><td>");
	snprintf(place, sizeof(place), ".call[%u].calls", index);
	node_html_count(place, site->sum.runs / report->here, to);
	fprintf(to, "</td>");
	put_site_time(index, "mean_seconds", site->sum.ns / 1e9 / site->sum.runs, to);
	put_site_time(index, "shortest_seconds", site->shortest, to);
	put_site_time(index, "model_seconds", site->predicted, to);
	put_site_time(index, "model_best_seconds", site->best, to);
	put_site_time(index, "regret_seconds", site->regret.seconds, to);
	fprintf(to, "</tr>\n");
}

static void put_rank(const struct coll_flight_report *report, const struct coll_flight_seen *seen,
		     uint32_t index, FILE *to)
{
	const struct coll_flight_page *page = &seen->page;
	static const char *const fields[] = { "inside_seconds", "no_core_seconds", "injected_seconds" };
	const double seconds[] = { coll_flight_inside_seconds(seen), coll_flight_delayed(page),
				   page->injected / 1e9 };
	const double inside = share_of_job(report, seconds[0]);
	char place[PLACE];
	uint32_t i;

	fprintf(to, "<tr><th>%u</th><td class=\"name\">", page->rank);
	node_html_text(page->host, to);
	fprintf(to, "</td>");
	for (i = 0; i < 3; i++) {
		snprintf(place, sizeof(place), ".rank[%u].%s * 1e9", index, fields[i]);
		fprintf(to, "<td>");
		node_html_time(place, 1e9 * seconds[i], to);
		fprintf(to, "</td>");
	}
	fprintf(to, "<td class=\"share wide\"><span style=\"width:%.2f%%;background:var(--series1)\">"
		"</span></td></tr>\n", 100 * (inside < 1 ? inside : 1));
}

static void put_evidence(const struct coll_flight_report *report, const struct coll_flight_job *job,
			 FILE *to)
{
	uint32_t i;

	fprintf(to, "<section><h2>The evidence</h2>\n<h3>Calls</h3><table><caption>Those that took "
		"most time</caption><thead><tr><th>call</th><th style=\"text-align:left\">algorithm</th><th>bytes</th>"
		"<th>calls</th><th>mean</th><th>shortest</th><th>model</th><th>model&#8217;s best</th>"
		"<th>regret</th></tr></thead><tbody>\n");
	for (i = 0; i < report->sites && i < SITES; i++)
		put_site(report, i, to);
	fprintf(to, "</tbody></table>\n<h3 style=\"margin-top:28px\">Ranks</h3><table><caption>A rank "
		"that spends little time in collectives is one that the others wait for. Without a "
		"core: ready to run, by the kernel, in calls and outside</caption><thead><tr>"
		"<th>rank</th><th style=\"text-align:left\">node</th><th>in collectives</th><th>without a core</th>"
		"<th>stopped by injected noise</th><th class=\"wide name\">in collectives, of the job</th>"
		"</tr></thead><tbody>\n");
	for (i = 0; i < job->count && i < RANKS; i++)
		put_rank(report, job->seen[i], i, to);
	fprintf(to, "</tbody></table>\n");
	if (job->count > RANKS)
		fprintf(to, "<p class=\"note\">The first %d of %zu ranks; the JSON has all.</p>\n", RANKS,
			job->count);
	if (!(report->observed > 0))
		fprintf(to, "<p class=\"note\">No program is named that takes a core: "
			"<code>coll run --report</code> and <code>coll report --watch</code> do, and colld with <code>act</code>.</p>");
	fprintf(to, "</section>\n");
}

/* ---- the page ------------------------------------------------------------------------------ */

void node_report_page(const struct coll_flight_report *report, const struct coll_flight_job *job,
		      FILE *to)
{
	fprintf(to, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
		"<meta name=\"color-scheme\" content=\"light dark\"/><title>Collectives of ");
	node_html_text(report->page->job, to);
	fprintf(to, "</title>\n<style>\n%s%s</style></head>\n<body><main>\n", palette_css, page_css);
	put_verdict(report, to);
	put_costs(report, job, to);
	put_losses(report, job, to);
	put_advice(report, to);
	put_evidence(report, job, to);
	fprintf(to, "</main></body></html>\n");
}
