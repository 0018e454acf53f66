// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node/units.h"
#include "view.h"

/* ---- causes ----------------------------------------------------------------------- */

static int most_time_first(const void *a, const void *b)
{
	const struct noise_blame *x = a, *y = b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return (x->count < y->count) - (x->count > y->count);
}

static int find_blames(struct noise_view *view)
{
	const struct node_capture *capture = view->capture;
	const u32 rows = COLL_NOISE_CAUSES + capture->head.sources;
	u32 row;
	u64 i;

	view->blame = calloc(rows, sizeof(*view->blame));
	if (!view->blame)
		return -ENOMEM;
	for (row = 0; row < rows; row++) {
		const bool named = row >= COLL_NOISE_CAUSES;

		view->blame[row].source = named ? &capture->source[row - COLL_NOISE_CAUSES] : NULL;
		view->blame[row].cause = named ? view->blame[row].source->cause : row;
	}
	for (i = 0; i < capture->head.events; i++) {
		const struct coll_noise_event *event = &capture->event[i];
		struct noise_blame *blame = &view->blame[event->source ?
			COLL_NOISE_CAUSES + event->source - 1 : event->cause];

		blame->count++;
		blame->total += event->duration;
		blame->max = event->duration > blame->max ? event->duration : blame->max;
	}
	qsort(view->blame, rows, sizeof(*view->blame), most_time_first);
	while (view->blames < rows && view->blame[view->blames].count)
		view->blames++;
	return 0;
}

char *noise_blame_text(const struct noise_blame *blame, char text[80])
{
	const char *cause = node_cause_name(blame->cause);

	if (!blame->source)
		snprintf(text, 80, "%s", cause);
	else if (blame->source->number)
		snprintf(text, 80, "%s %s (%u)", cause, blame->source->name, blame->source->number);
	else
		snprintf(text, 80, "%s %s", cause, blame->source->name);
	return text;
}

int noise_view_init(struct noise_view *view, const struct node_capture *capture)
{
	int status;
	u32 i;

	*view = (struct noise_view){ .capture = capture };
	view->cpu = calloc(capture->head.cpus + 1, sizeof(*view->cpu));
	status = view->cpu ? noise_summary(capture, NOISE_ALL, &view->all) : -ENOMEM;
	for (i = 0; !status && i < capture->head.cpus; i++)
		status = noise_summary(capture, i, &view->cpu[i]);
	if (!status)
		status = noise_spectrum(capture, &view->spectrum);
	if (!status)
		status = find_blames(view);
	if (status)
		noise_view_free(view);
	return status;
}

void noise_view_free(struct noise_view *view)
{
	free(view->cpu);
	free(view->blame);
	noise_spectrum_free(&view->spectrum);
	*view = (struct noise_view){ 0 };
}

/* ---- tables ------------------------------------------------------------------------------- */

static void print_summary(const struct noise_summary *s, const char *name, FILE *to)
{
	const struct noise_figures *f = &s->length;
	char text[24];
	const u64 values[] = { f->min, f->p50, f->p90, f->p99, f->p999, f->max, f->mad };
	size_t i;

	fprintf(to, "%-5s %8.4f%% +-%7.4f %9.1f %9llu", name, 100 * s->share,
		100 * s->window.error, s->rate, (unsigned long long)f->count);
	for (i = 0; i < sizeof(values) / sizeof(*values); i++)
		fprintf(to, " %9s", f->count ? node_time_text(values[i], text) : "-");
	fprintf(to, " %8.2f\n", s->loop);
}

static void print_histogram(const struct noise_summary *s, FILE *to)
{
	u64 most = 0;
	u32 i, first = 0, end = NOISE_BUCKETS;
	char low[24], high[24];

	while (end && !s->bucket[end - 1].count)
		end--;
	while (first < end && !s->bucket[first].count)
		first++;
	for (i = first; i < end; i++)
		most = s->bucket[i].total > most ? s->bucket[i].total : most;
	fprintf(to, "\n%-23s %10s %9s  time taken\n", "length", "events", "of time");
	for (i = first; i < end; i++) {
		const struct noise_bucket *b = &s->bucket[i];
		u32 bar = most ? 40 * b->total / most : 0;

		fprintf(to, "%9s ... %9s %10llu %8.4f%%  ",
			node_time_text(noise_bucket_edge(i), low),
			node_time_text(noise_bucket_edge(i + 1), high),
			(unsigned long long)b->count,
			s->watched ? 100. * b->total / s->watched : 0);
		while (bar--)
			putc('#', to);
		putc('\n', to);
	}
}

static void print_spectrum(const struct noise_spectrum *s, FILE *to)
{
	char text[24];
	u32 i;

	if (!s->points)
		return;
	fprintf(to, "\nregular (periods to %s can be seen here):\n",
		node_time_text(s->longest * 1e9, text));
	if (!s->peaks)
		fprintf(to, "  nothing\n");
	for (i = 0; i < s->peaks; i++) {
		const struct noise_peak *p = &s->peak[i];

		fprintf(to, "  %10.3f Hz (every %9s)  power %9.1f  %s%s\n", p->hz,
			node_time_text(1e9 / p->hz, text), p->power,
			p->harmonics > 1 ? "with harmonics  " : "", p->name);
	}
}

static void print_blames(const struct noise_view *view, FILE *to)
{
	char text[80], total[24], max[24];
	u32 i;

	if (!view->blames || (view->blames == 1 && view->blame->cause == COLL_NOISE_UNKNOWN))
		return;
	fprintf(to, "\ncauses:\n");
	for (i = 0; i < view->blames && i < 30; i++)
		fprintf(to, "  %-48s %9llu times, %9s, at most %9s\n",
			noise_blame_text(&view->blame[i], text),
			(unsigned long long)view->blame[i].count,
			node_time_text(view->blame[i].total, total),
			node_time_text(view->blame[i].max, max));
}

static int most_seen_first(const void *a, const void *b)
{
	const struct coll_noise_source *x = *(const struct coll_noise_source *const *)a;
	const struct coll_noise_source *y = *(const struct coll_noise_source *const *)b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return (x->times < y->times) - (x->times > y->times);
}

const struct coll_noise_source **noise_view_suspects(const struct node_capture *capture)
{
	const struct coll_noise_source **list = calloc(capture->head.sources + 1, sizeof(*list));
	u32 i;

	for (i = 0; list && i < capture->head.sources; i++)
		list[i] = &capture->source[i];
	if (list)
		qsort(list, capture->head.sources, sizeof(*list), most_seen_first);
	return list;
}

static bool kernel_counted(const struct node_capture *capture)
{
	u32 i;

	for (i = 0; i < capture->head.sources; i++)
		if (capture->source[i].inclusive)
			return true;
	return false;
}

static void print_suspects(const struct noise_view *view, FILE *to)
{
	const struct coll_noise_source **list = noise_view_suspects(view->capture);
	char text[80], total[24], inclusive[24];
	u32 i, shown[COLL_NOISE_CAUSES] = { 0 };

	if (list && *list)
		fprintf(to, "\nactive meanwhile (%s; not joined to events):\n",
			kernel_counted(view->capture) ? "the module: own time, and with nested "
							"interruptions" : "/proc");
	for (i = 0; list && list[i]; i++) {
		const struct noise_blame blame = { .source = list[i], .cause = list[i]->cause };

		if ((!list[i]->times && !list[i]->total) || shown[list[i]->cause]++ >= 8)
			continue;
		fprintf(to, "  %-48s %9llu times", noise_blame_text(&blame, text),
			(unsigned long long)list[i]->times);
		if (list[i]->total)
			fprintf(to, ", %9s", node_time_text(list[i]->total, total));
		if (list[i]->inclusive)
			fprintf(to, ", %9s", node_time_text(list[i]->inclusive, inclusive));
		fprintf(to, "\n");
	}
	free(list);
}

void noise_view_print(const struct noise_view *view, FILE *to)
{
	const struct node_capture *capture = view->capture;
	char watched[24], threshold[24], name[16];
	u32 i;

	fprintf(to, "%s, Linux %s: %u CPU%s watched for %s, events longer than %s\n\n",
		*capture->head.host ? capture->head.host : "?",
		*capture->head.kernel ? capture->head.kernel : "?", capture->head.cpus,
		capture->head.cpus == 1 ? "" : "s",
		node_time_text(capture->head.cpus ? capture->cpu[0].watched : 0, watched),
		node_time_text(capture->head.threshold, threshold));
	fprintf(to, "%-5s %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s %9s %8s\n", "CPU", "taken",
		"95 %", "events/s", "events", "min", "p50", "p90", "p99", "p99.9", "max", "MAD",
		"loop ns");
	for (i = 0; i < capture->head.cpus; i++) {
		snprintf(name, sizeof(name), "%u", view->cpu[i].cpu);
		print_summary(&view->cpu[i], name, to);
		if (view->cpu[i].lost)
			fprintf(to, "      %llu more events did not fit (--capacity)\n",
				(unsigned long long)view->cpu[i].lost);
	}
	if (capture->head.cpus > 1)
		print_summary(&view->all, "all", to);
	if (view->all.length.count)
		print_histogram(&view->all, to);
	print_spectrum(&view->spectrum, to);
	print_blames(view, to);
	print_suspects(view, to);
}

/* ---- rtla's histogram -------------------------------------------------------------------- */

static u64 *count_buckets(const struct node_capture *capture, u64 size, u32 entries)
{
	u64 *count = calloc((u64)(entries + 1) * (capture->head.cpus + 1), sizeof(*count)), i;
	u32 c;

	for (c = 0; count && c < capture->head.cpus; c++) {
		const struct coll_noise_event *event = node_capture_events(capture, c);

		for (i = 0; i < capture->cpu[c].events; i++) {
			const u64 bucket = event[i].duration / size;

			count[c * (entries + 1) + (bucket < entries ? bucket : entries)]++;
		}
	}
	return count;
}

static void print_row(const struct noise_view *view, const char *name, const u64 *count,
		      u32 entries, u32 row, FILE *to)
{
	u32 c;

	fprintf(to, "%-6s", name);
	for (c = 0; c < view->capture->head.cpus; c++)
		fprintf(to, "%9llu ", (unsigned long long)count[c * (entries + 1) + row]);
	fprintf(to, "\n");
}

/* min, avg and max are of the events, not of their buckets. */
static void print_ends(const struct noise_view *view, FILE *to)
{
	static const char *const names[] = { "count:", "min:", "avg:", "max:" };
	u32 c, i;

	for (i = 0; i < 4; i++) {
		fprintf(to, "%-6s", names[i]);
		for (c = 0; c < view->capture->head.cpus; c++) {
			const struct noise_figures *f = &view->cpu[c].length;
			const double value[] = { f->count, f->min / 1e3, f->mean / 1e3,
						 f->max / 1e3 };

			fprintf(to, i ? "%9.3f " : "%9.0f ", value[i]);
		}
		fprintf(to, "\n");
	}
}

int noise_view_histogram(const struct noise_view *view, u64 size, u32 entries, FILE *to)
{
	const struct node_capture *capture = view->capture;
	u64 *count = count_buckets(capture, size, entries), seconds;
	char name[32];
	u32 c, row;

	if (!count)
		return -ENOMEM;
	seconds = capture->head.cpus ? (capture->cpu[0].watched + NODE_S / 2) / NODE_S : 0;
	fprintf(to,
		"# RTLA osnoise histogram\n# Time unit is microseconds (us)\n"
		"# Duration: %3llu %02llu:%02llu:%02llu\nIndex ",
		(unsigned long long)seconds / 86400, (unsigned long long)seconds / 3600 % 24,
		(unsigned long long)seconds / 60 % 60, (unsigned long long)seconds % 60);
	for (c = 0; c < capture->head.cpus; c++)
		fprintf(to, "  CPU-%03u ", capture->cpu[c].cpu);
	fprintf(to, "\n");
	for (row = 0; row <= entries; row++) {
		bool any = row == entries;

		for (c = 0; c < capture->head.cpus; c++)
			any |= count[c * (entries + 1) + row] > 0;
		if (row == entries)
			strcpy(name, "over:");
		else
			snprintf(name, sizeof(name), "%.6g", row * size / 1e3);
		if (any)
			print_row(view, name, count, entries, row, to);
	}
	print_ends(view, to);
	free(count);
	return 0;
}

/* ---- JSON --------------------------------------------------------------------------------- */

json_t *noise_figures_json(const struct noise_figures *f)
{
	return json_pack("{sI sI sI sI sf sf sI sI sI sI sI sI sI}", "count", (json_int_t)f->count,
			 "total_ns", (json_int_t)f->total, "min_ns", (json_int_t)f->min, "max_ns",
			 (json_int_t)f->max, "mean_ns", f->mean, "deviation_ns", f->deviation,
			 "p20_ns", (json_int_t)f->p20, "p50_ns", (json_int_t)f->p50, "p80_ns",
			 (json_int_t)f->p80, "p90_ns", (json_int_t)f->p90, "p99_ns",
			 (json_int_t)f->p99, "p999_ns", (json_int_t)f->p999, "mad_ns",
			 (json_int_t)f->mad);
}

json_t *noise_quantiles_json(const struct noise_quantiles *q)
{
	return json_pack("{sI sf sf sf sf sf sf}", "count", (json_int_t)q->count, "min_ns", q->min,
			 "p05_ns", q->p05, "p50_ns", q->p50, "p95_ns", q->p95, "p99_ns", q->p99,
			 "max_ns", q->max);
}

json_t *noise_mean_json(const struct noise_mean *mean)
{
	return json_pack("{sf sf si}", "mean", mean->mean, "error95", mean->error, "windows",
			 (int)mean->windows);
}

static json_t *histogram_json(const struct noise_summary *s)
{
	json_t *list = json_array();
	u32 i;

	for (i = 0; i < NOISE_BUCKETS; i++)
		if (s->bucket[i].count)
			json_array_append_new(list, json_pack("{sI sI sI sI}",
				"from_ns", (json_int_t)noise_bucket_edge(i),
				"below_ns", (json_int_t)noise_bucket_edge(i + 1),
				"count", (json_int_t)s->bucket[i].count,
				"total_ns", (json_int_t)s->bucket[i].total));
	return list;
}

static json_t *summary_json(const struct noise_summary *s)
{
	return json_pack("{sI sI sf sf sf so so so so}", "watched_ns", (json_int_t)s->watched,
			 "lost", (json_int_t)s->lost, "loop_ns", s->loop, "share", s->share,
			 "events_per_s", s->rate, "share_windows", noise_mean_json(&s->window),
			 "duration", noise_figures_json(&s->length), "interval",
			 noise_figures_json(&s->gap), "histogram", histogram_json(s));
}

static json_t *spectrum_json(const struct noise_spectrum *s)
{
	json_t *peaks = json_array();
	u32 i;

	for (i = 0; i < s->peaks; i++)
		json_array_append_new(
			peaks, json_pack("{sf sf sf si ss}", "hz", s->peak[i].hz, "period_s",
					 1 / s->peak[i].hz, "power", s->peak[i].power, "harmonics",
					 (int)s->peak[i].harmonics, "candidates", s->peak[i].name));
	return json_pack("{sf sf sf so}", "step_hz", s->step, "longest_period_s", s->longest,
			 "least_power", s->least, "peaks", peaks);
}

static json_t *sources_json(const struct node_capture *capture)
{
	json_t *list = json_array();
	u32 i;

	for (i = 0; i < capture->head.sources; i++) {
		const struct coll_noise_source *s = &capture->source[i];

		json_array_append_new(list, json_pack("{ss sI ss* sI sI sI}", "cause",
			node_cause_name(s->cause), "number", (json_int_t)s->number, "name",
			s->name, "times", (json_int_t)s->times, "total_ns",
			(json_int_t)s->total, "inclusive_ns", (json_int_t)s->inclusive));
	}
	return list;
}

static json_t *blames_json(const struct noise_view *view)
{
	json_t *list = json_array();
	u32 i;

	for (i = 0; i < view->blames; i++) {
		const struct noise_blame *b = &view->blame[i];

		json_array_append_new(list, json_pack("{ss ss* sI sI sI sI}", "cause",
			node_cause_name(b->cause), "name", b->source ? b->source->name : NULL,
			"number", (json_int_t)(b->source ? b->source->number : 0), "events",
			(json_int_t)b->count, "total_ns", (json_int_t)b->total, "max_ns",
			(json_int_t)b->max));
	}
	return list;
}

json_t *noise_view_json(const struct noise_view *view)
{
	const struct node_capture *capture = view->capture;
	json_t *cpus = json_array();
	u32 i;

	for (i = 0; i < capture->head.cpus; i++) {
		json_t *cpu = summary_json(&view->cpu[i]);

		json_object_set_new(cpu, "cpu", json_integer(view->cpu[i].cpu));
		json_array_append_new(cpus, cpu);
	}
	return json_pack("{ss* ss* sI sI so so so so so}", "host", capture->head.host, "kernel",
			 capture->head.kernel, "epoch_ns", (json_int_t)capture->head.epoch,
			 "threshold_ns", (json_int_t)capture->head.threshold, "all",
			 summary_json(&view->all), "cpus", cpus, "spectrum",
			 spectrum_json(&view->spectrum), "who", blames_json(view), "sources",
			 sources_json(capture));
}

void noise_json_print(json_t *object, FILE *to)
{
	json_dumpf(object, to, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
	putc('\n', to);
	json_decref(object);
}
