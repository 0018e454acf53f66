// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The verdict in one sentence, then the cost, the causes, what to do, and the evidence. All names
 * come from a capture, so they go through node_html_text().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chart.h"
#include "node/report/html.h"
#include "page.h"
#include "tools/common/arguments.h"

/* page.js, as a string. */
extern const char page_js[];

enum { CAUSES = 12, SUSPECTS = 16, CPUS_OPEN = 8, PLACE = 96 };

/* ---- verdict ------------------------------------------------------------------------------- */

static const struct grade {
	const char *profile, *class, *word;
} grades[] = {
	{ "isolated", "good", "Very quiet" },
	{ "k-computer", "good", "Quiet" },
	{ "quiet", "fair", "Fairly quiet" },
	{ NULL, "bad", "Noisy" },
};

static const struct grade *find_grade(const char *profile)
{
	const struct grade *grade = grades;

	while (grade->profile && (!profile || strcmp(grade->profile, profile)))
		grade++;
	return grade;
}

static void put_host(const struct node_capture *capture, FILE *to)
{
	fprintf(to, "<span class=\"name\">");
	node_html_text(*capture->head.host ? capture->head.host : "this node", to);
	fprintf(to, "</span>&#8217;s ");
	if (capture->head.cpus != 1)
		node_html_count(".cpus | length", capture->head.cpus, to);
	fprintf(to, capture->head.cpus == 1 ? "CPU" : " CPUs");
}

static void put_verdict(const struct noise_assessment *a, FILE *to)
{
	const struct noise_view *view = a->view;
	const struct noise_summary *all = &view->all;
	const struct grade *grade = find_grade(a->profile);
	char who[80];

	fprintf(to, "<h1><span class=\"%s\">%s:</span> ", grade->class, grade->word);
	if (!all->length.count) {
		fprintf(to, "nothing interrupted ");
		put_host(view->capture, to);
		fprintf(to, " for longer than ");
		node_html_time(".threshold_ns", view->capture->head.threshold, to);
		fprintf(to, ".</h1>\n");
		return;
	}
	fprintf(to, "noise takes ");
	node_html_share(".all.share", all->share, to);
	fprintf(to, " of the time of ");
	put_host(view->capture, to);
	fprintf(to, ", up to ");
	node_html_time(".all.duration.max_ns", all->length.max, to);
	fprintf(to, " at once");
	if (a->attributed) {
		fprintf(to, "; ");
		node_html_share(".who[0].total_ns / .all.duration.total_ns",
			   (double)view->blame->total / all->length.total, to);
		fprintf(to, " of it goes to <span class=\"name\">");
		node_html_text(noise_blame_text(view->blame, who), to);
		fprintf(to, "</span>");
	}
	fprintf(to, ".</h1>\n");
}

/* What was measured, and which profiles it keeps to. */
static void put_capture(const struct noise_assessment *a, FILE *to)
{
	const struct node_capture *capture = a->view->capture;
	const time_t second = capture->head.epoch / 1000000000;
	struct tm tm;
	char when[32] = "";

	if (capture->head.epoch && gmtime_r(&second, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", &tm);
	fprintf(to, "<p class=\"capture\">");
	if (*capture->head.kernel) {
		fprintf(to, "Linux <span class=\"name\">");
		node_html_text(capture->head.kernel, to);
		fprintf(to, "</span>, ");
	}
	if (capture->head.cpus) {
		fprintf(to, "each CPU watched for ");
		node_html_time(".cpus[0].watched_ns", capture->cpu[0].watched, to);
	} else {
		fprintf(to, "no CPU was watched");
	}
	if (*when)
		fprintf(to, " on <time class=\"name\">%s</time>", when);
	fprintf(to, ", events longer than ");
	node_html_time(".threshold_ns", capture->head.threshold, to);
	if (a->profile)
		fprintf(to, ". All CPUs keep to the profile <b>%s</b>.", a->profile);
	else
		fprintf(to, ". It keeps to none of the profiles <b>quiet</b>, <b>k-computer</b> and "
			"<b>isolated</b>.");
	fprintf(to, "</p>\n");
	if (a->view->all.lost) {
		fprintf(to, "<p class=\"bad\">");
		node_html_count(".all.lost", a->view->all.lost, to);
		fprintf(to, " more events did not fit into the memory (--capacity): the figures below "
			"are too small.</p>\n");
	}
}

/* ---- cost ----------------------------------------------------------------------------------- */

static void put_tile(const char *name, FILE *to)
{
	fprintf(to, "</dd></div><div><dt>%s</dt><dd>", name);
}

static void put_tiles(const struct noise_summary *all, FILE *to)
{
	fprintf(to, "<dl class=\"tiles\"><div><dt>of the time taken</dt><dd>");
	node_html_share(".all.share", all->share, to);
	fprintf(to, " <small>&#177; ");
	node_html_share(".all.share_windows.error95", all->window.error, to);
	fprintf(to, "</small>");
	put_tile("events a second, each CPU", to);
	node_html_number(".all.events_per_s", all->rate, to);
	if (all->length.count) {
		put_tile("median event", to);
		node_html_time(".all.duration.p50_ns", all->length.p50, to);
		put_tile("longest event", to);
		node_html_time(".all.duration.max_ns", all->length.max, to);
	}
	fprintf(to, "</dd></div></dl>\n");
}

static void put_cost(const struct noise_assessment *a, u32 index, FILE *to)
{
	const struct noise_cost *cost = &a->cost[index];
	char place[PLACE];

	snprintf(place, sizeof(place), ".cost[%u].slowdown", index);
	fprintf(to, "%s<span class=\"times\">&#215;</span>", cost->beyond ? "&#8805; " : "");
	node_html_number(place, cost->slowdown, to);
}

static void put_costs(const struct noise_assessment *a, FILE *to)
{
	const struct noise_cost *cost = a->cost;
	char place[PLACE];
	u32 i, k;

	fprintf(to, "<table class=\"costs\"><caption>A program computes for a grain and then meets in a "
		"collective, over and over: its time to that without noise, on nodes like this one"
		"</caption><thead><tr><th>grain</th>");
	for (k = 0; k < 3; k++) {
		snprintf(place, sizeof(place), ".cost[%u].ranks", k);
		fprintf(to, "<th>");
		node_html_count(place, cost[k].ranks, to);
		fprintf(to, k ? " ranks</th>" : " rank</th>");
	}
	fprintf(to, "</tr></thead><tbody>\n");
	for (i = 0; i < NOISE_COSTS; i += 3) {
		snprintf(place, sizeof(place), ".cost[%u].grain_ns", i);
		fprintf(to, "<tr><th>");
		node_html_time(place, cost[i].grain, to);
		fprintf(to, "</th>");
		for (k = i; k < i + 3; k++) {
			fprintf(to, "<td>");
			put_cost(a, k, to);
			fprintf(to, "</td>");
		}
		fprintf(to, "</tr>\n");
	}
	fprintf(to, "</tbody></table>\n<p class=\"note\">&#8805;: more ranks than the capture has grains. "
		"Noise too rare for it would come on top; record for longer. With the collective itself: "
		"<code>collnoise predict</code>.</p>\n");
}

static void put_what_it_costs(const struct noise_assessment *a, FILE *to)
{
	fprintf(to, "<section><h2>What it costs</h2>\n");
	put_tiles(&a->view->all, to);
	if (a->unbearable)
		fprintf(to, "<p>The noise leaves no time to compute.</p>\n");
	else
		put_costs(a, to);
	fprintf(to, "</section>\n");
}

/* ---- causes --------------------------------------------------------------------------------- */

static void put_bar(double share, const char *class, FILE *to)
{
	fprintf(to, "<td class=\"share\"><span class=\"%s\" style=\"width:%.2f%%\"></span></td>", class,
		100 * share);
}

static void put_blame(const struct noise_view *view, u32 index, FILE *to)
{
	const struct noise_blame *blame = &view->blame[index];
	const double all = view->all.length.total ? view->all.length.total : 1;
	char who[80], place[PLACE];

	fprintf(to, "<tr><th class=\"name\">");
	node_html_text(noise_blame_text(blame, who), to);
	fprintf(to, "</th>");
	put_bar(blame->total / all, chart_class(blame->cause), to);
	fprintf(to, "<td>");
	snprintf(place, sizeof(place), ".who[%u].total_ns / .all.duration.total_ns", index);
	node_html_share(place, blame->total / all, to);
	fprintf(to, "</td><td>");
	snprintf(place, sizeof(place), ".who[%u].total_ns", index);
	node_html_time(place, blame->total, to);
	fprintf(to, "</td><td>");
	snprintf(place, sizeof(place), ".who[%u].events", index);
	node_html_count(place, blame->count, to);
	fprintf(to, "</td><td>");
	snprintf(place, sizeof(place), ".who[%u].max_ns", index);
	node_html_time(place, blame->max, to);
	fprintf(to, "</td></tr>\n");
}

static void put_blames(const struct noise_view *view, u32 from, u32 end, FILE *to)
{
	fprintf(to, "<table class=\"who\"><thead><tr><th>cause</th><th class=\"wide\"></th><th>of it</th>"
		"<th>time</th><th>events</th><th>longest</th></tr></thead><tbody>\n");
	for (; from < end; from++)
		put_blame(view, from, to);
	fprintf(to, "</tbody></table>\n");
}

static void put_suspects(const struct noise_view *view, FILE *to)
{
	const struct coll_noise_source **list = noise_view_suspects(view->capture);
	char who[80], place[PLACE];
	u32 i, shown = 0;

	fprintf(to, "<table class=\"who\"><caption>Active on these CPUs meanwhile, by the kernel&#8217;s own counts; "
		"not joined to events</caption><thead><tr><th>source</th><th>times</th><th>time</th></tr>"
		"</thead><tbody>\n");
	for (i = 0; list && list[i] && shown < SUSPECTS; i++) {
		const struct noise_blame blame = { .source = list[i], .cause = list[i]->cause };
		const u32 index = list[i] - view->capture->source;

		if (!list[i]->times && !list[i]->total)
			continue;
		fprintf(to, "<tr><th class=\"name\">");
		node_html_text(noise_blame_text(&blame, who), to);
		fprintf(to, "</th><td>");
		snprintf(place, sizeof(place), ".sources[%u].times", index);
		node_html_count(place, list[i]->times, to);
		fprintf(to, "</td><td>");
		snprintf(place, sizeof(place), ".sources[%u].total_ns", index);
		if (list[i]->total)
			node_html_time(place, list[i]->total, to);
		fprintf(to, "</td></tr>\n");
		shown++;
	}
	fprintf(to, "</tbody></table>\n");
	free(list);
}

static bool any_suspect(const struct node_capture *capture)
{
	u32 i;

	for (i = 0; i < capture->head.sources; i++)
		if (capture->source[i].times || capture->source[i].total)
			return true;
	return false;
}

static void put_who(const struct noise_assessment *a, FILE *to)
{
	const struct noise_view *view = a->view;

	fprintf(to, "<section><h2>Who causes it</h2>\n");
	if (!view->blames)
		fprintf(to, "<p>There is no event.</p>\n");
	else if (a->attributed)
		put_blames(view, 0, view->blames < CAUSES ? view->blames : CAUSES, to);
	else
		fprintf(to, "<p>This capture does not say: it was recorded without coll.ko.</p>\n");
	if (view->blames > CAUSES) {
		fprintf(to, "<details><summary>");
		node_html_number("(.who | length) - 12", view->blames - CAUSES, to);
		fprintf(to, " more, of less time</summary>\n");
		put_blames(view, CAUSES, view->blames, to);
		fprintf(to, "</details>\n");
	}
	if (any_suspect(view->capture)) {
		fprintf(to, a->attributed ? "<details><summary>The kernel&#8217;s own counts</summary>\n" : "");
		put_suspects(view, to);
		fprintf(to, a->attributed ? "</details>\n" : "");
	}
	fprintf(to, "</section>\n");
}

/* ---- advice --------------------------------------------------------------------------------- */

static void put_advice(const struct noise_assessment *a, u32 index, FILE *to)
{
	const struct noise_advice *advice = &a->advice[index];
	const double all = a->view->all.length.total ? a->view->all.length.total : 1;
	char place[PLACE];

	fprintf(to, "<li><b><span class=\"name\">");
	node_html_text(advice->who, to);
	fprintf(to, "</span>");
	if (advice->others) {
		snprintf(place, sizeof(place), ".advice[%u].others", index);
		fprintf(to, " and ");
		node_html_count(place, advice->others, to);
		fprintf(to, advice->others == 1 ? " other" : " others");
	}
	fprintf(to, "</b>, ");
	snprintf(place, sizeof(place), ".advice[%u].total_ns / .all.duration.total_ns", index);
	node_html_share(place, advice->total / all, to);
	fprintf(to, " of the noise. %s", advice->text);
	if (*advice->command) {
		fprintf(to, "<code class=\"command name\">");
		node_html_text(advice->command, to);
		fprintf(to, "</code>");
	}
	fprintf(to, "</li>\n");
}

static void put_advices(const struct noise_assessment *a, FILE *to)
{
	u32 i;

	fprintf(to, "<section><h2>What to do</h2>\n%s", a->advices ? "<ol>" : "<p>Nothing.</p>");
	for (i = 0; i < a->advices; i++)
		put_advice(a, i, to);
	fprintf(to, "%s<p class=\"note\">As root, on the node. <code>collnoise pin fini</code> takes back what "
		"<code>pin init</code> did; colld keeps such rules for good. What the node&#8217;s settings "
		"cost: <code>collnoise check</code>, <code>coll doctor</code>.</p></section>\n",
		a->advices ? "</ol>\n" : "\n");
}

/* ---- evidence ------------------------------------------------------------------------------- */

static void put_legend(const struct noise_assessment *a, const struct noise_points *points, FILE *to)
{
	bool any[COLL_NOISE_CAUSES] = { false };
	u32 i;

	for (i = 0; i < points->points; i++)
		any[points->point[i].cause] = true;
	fprintf(to, "<div class=\"keys\">");
	for (i = 0; i < COLL_NOISE_CAUSES; i++)
		if (any[i])
			fprintf(to, "<button type=\"button\" aria-pressed=\"true\" data-series=\"%u\">"
				"<i class=\"%s\"></i>%s</button>", i,
				a->attributed ? chart_class(i) : "s1",
				a->attributed ? node_cause_name(i) : "events");
	fprintf(to, "<button type=\"button\" class=\"reset\" hidden=\"\">Show all of the time</button></div>\n");
}

static void put_timeline(const struct noise_assessment *a, const struct noise_points *points,
			 const struct noise_heat *heat, FILE *to)
{
	fprintf(to, "<figure><h3>Events over time</h3>\n");
	put_legend(a, points, to);
	chart_timeline(points, a->attributed, to);
	fprintf(to, "<p class=\"range\" aria-live=\"polite\"></p><figcaption>%s<span class=\"hint\"> Drag to "
		"zoom in, turn the wheel, or use the arrow keys, + and &#8722;; Escape shows all. Click a "
		"name to hide its events.</span></figcaption></figure>\n", points->merged ?
		"A point is all events of one cause that are near each other and about as long; the "
		"longest is drawn." : "A point is an event.");
	if (heat->rows) {
		fprintf(to, "<figure><h3>Time taken from each CPU</h3>\n");
		chart_heat(a->view, points, heat, to);
		fprintf(to, "<figcaption>The stronger the colour, the more of that moment was taken.%s</figcaption></figure>\n",
			heat->cpus_a_row > 1 ? " A row is the mean of neighbouring CPUs." : "");
	}
}

static void put_peaks(const struct noise_spectrum *s, FILE *to)
{
	char place[PLACE];
	u32 i;

	fprintf(to, "<table class=\"who\"><thead><tr><th>peak</th><th>Hz</th><th>every</th><th>power</th>"
		"<th class=\"wide name\">perhaps</th></tr></thead><tbody>\n");
	for (i = 0; i < s->peaks; i++) {
		fprintf(to, "<tr><th class=\"name\">%u</th><td>", i + 1);
		snprintf(place, sizeof(place), ".spectrum.peaks[%u].hz", i);
		node_html_number(place, s->peak[i].hz, to);
		fprintf(to, "</td><td>");
		snprintf(place, sizeof(place), ".spectrum.peaks[%u].period_s * 1e9", i);
		node_html_time(place, 1e9 / s->peak[i].hz, to);
		fprintf(to, "</td><td>");
		snprintf(place, sizeof(place), ".spectrum.peaks[%u].power", i);
		node_html_number(place, s->peak[i].power, to);
		fprintf(to, "</td><td class=\"name\">");
		node_html_text(s->peak[i].name, to);
		fprintf(to, "</td></tr>\n");
	}
	fprintf(to, "</tbody></table>\n");
}

static void put_spectrum(const struct noise_view *view, FILE *to)
{
	const struct noise_spectrum *s = &view->spectrum;

	if (s->points < 3)
		return;
	fprintf(to, "<figure><h3>What comes regularly</h3>\n");
	chart_spectrum(view, to);
	if (s->peaks)
		put_peaks(s, to);
	fprintf(to, "<figcaption>%s Periods to ", s->peaks ? "Events that come with a period are a peak." :
		"No peak: nothing comes regularly.");
	node_html_time(".spectrum.longest_period_s * 1e9", s->longest * 1e9, to);
	fprintf(to, " can be seen in this capture.</figcaption></figure>\n");
}

static void put_cpu(const struct noise_summary *s, const char *name, const char *at, FILE *to)
{
	char place[PLACE];

	fprintf(to, "<tr><th class=\"name\">%s</th><td>", name);
	snprintf(place, sizeof(place), "%s.share", at);
	node_html_share(place, s->share, to);
	fprintf(to, "</td><td>&#177; ");
	snprintf(place, sizeof(place), "%s.share_windows.error95", at);
	node_html_share(place, s->window.error, to);
	fprintf(to, "</td><td>");
	snprintf(place, sizeof(place), "%s.events_per_s", at);
	node_html_number(place, s->rate, to);
	fprintf(to, "</td><td>");
	snprintf(place, sizeof(place), "%s.duration.count", at);
	node_html_count(place, s->length.count, to);
	fprintf(to, "</td>");
	if (s->length.count) {
		const struct { const char *name; u64 ns; } of[] = {
			{ "min", s->length.min }, { "p50", s->length.p50 }, { "p90", s->length.p90 },
			{ "p99", s->length.p99 }, { "p999", s->length.p999 }, { "max", s->length.max },
		};
		size_t i;

		for (i = 0; i < sizeof(of) / sizeof(*of); i++) {
			snprintf(place, sizeof(place), "%s.duration.%s_ns", at, of[i].name);
			fprintf(to, "<td>");
			node_html_time(place, of[i].ns, to);
			fprintf(to, "</td>");
		}
	} else {
		fprintf(to, "<td></td><td></td><td></td><td></td><td></td><td></td>");
	}
	fprintf(to, "</tr>\n");
}

static void put_cpus(const struct noise_view *view, FILE *to)
{
	const u32 cpus = view->capture->head.cpus;
	char name[16], at[24];
	u32 i;

	fprintf(to, "<details%s><summary>Each CPU in numbers</summary><table class=\"cpus\"><thead><tr>"
		"<th>CPU</th><th>taken</th><th class=\"name\">95 %%</th><th class=\"name\">events/s</th>"
		"<th>events</th><th>shortest</th><th class=\"name\">p50</th><th class=\"name\">p90</th>"
		"<th class=\"name\">p99</th><th class=\"name\">p99.9</th><th>longest</th></tr></thead><tbody>\n",
		cpus <= CPUS_OPEN ? " open=\"\"" : "");
	for (i = 0; i < cpus; i++) {
		snprintf(name, sizeof(name), "%u", view->cpu[i].cpu);
		snprintf(at, sizeof(at), ".cpus[%u]", i);
		put_cpu(&view->cpu[i], name, at, to);
	}
	if (cpus > 1)
		put_cpu(&view->all, "all", ".all", to);
	fprintf(to, "</tbody></table></details>\n");
}

static void put_lengths(const struct noise_view *view, FILE *to)
{
	fprintf(to, "<figure><h3>Lengths</h3>\n<div class=\"keys\"><span><i class=\"s1\"></i>events</span><span>"
		"<i class=\"s2\"></i>share of the time</span></div>\n");
	chart_lengths(view, to);
	fprintf(to, "<figcaption>Many short events or few long ones: the upper bars count them, the lower "
		"ones say what they cost.</figcaption></figure>\n");
}

static void put_evidence(const struct noise_assessment *a, const struct noise_points *points,
			 const struct noise_heat *heat, FILE *to)
{
	fprintf(to, "<section><h2>The evidence</h2>\n");
	put_timeline(a, points, heat, to);
	if (a->view->all.length.count)
		put_lengths(a->view, to);
	put_spectrum(a->view, to);
	put_cpus(a->view, to);
	fprintf(to, "</section>\n");
}

/* ---- the page -------------------------------------------------------------------------------- */

static void put_page(const struct noise_assessment *a, const struct noise_points *points,
		     const struct noise_heat *heat, FILE *to)
{
	fprintf(to, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
		"<meta name=\"color-scheme\" content=\"light dark\"/><title>Noise of ");
	node_html_text(*a->view->capture->head.host ? a->view->capture->head.host : "a node", to);
	fprintf(to, "</title>\n<style>\n%s%s</style></head>\n<body><main>\n", palette_css, page_css);
	put_verdict(a, to);
	put_capture(a, to);
	put_what_it_costs(a, to);
	put_who(a, to);
	put_advices(a, to);
	put_evidence(a, points, heat, to);
	fprintf(to, "</main>\n<div id=\"tip\" role=\"status\" hidden=\"\"></div>\n"
		"<script type=\"application/json\" id=\"figures\">");
	chart_data(points, heat, a->view, to);
	fprintf(to, "</script>\n<script>//<![CDATA[\n%s//]]>\n</script>\n</body></html>\n", page_js);
}

int noise_page(const char *command, const struct noise_assessment *a, const char *path)
{
	struct noise_points points = { 0 };
	struct noise_heat heat = { 0 };
	int status = noise_points(a->view->capture, &points);
	FILE *to = NULL;

	if (!status)
		status = noise_heat(a->view->capture, points.begin, points.end, &heat);
	if (!status) {
		to = fopen(path, "we");
		status = to ? 0 : -errno;
	}
	if (to) {
		put_page(a, &points, &heat, to);
		status = ferror(to) ? -EIO : 0;
		if (fclose(to) && !status)
			status = -errno;
	}
	if (status)
		fprintf(stderr, "%s %s: cannot write %s: %s\n", argument_program, command, path,
			strerror(-status));
	noise_points_free(&points);
	noise_heat_free(&heat);
	return status;
}
