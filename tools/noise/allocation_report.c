// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What collnoise nodes prints and draws. */
#include <ctype.h>
#include <string.h>

#include "allocation.h"
#include "node/units.h"
#include "plot.h"

static bool is_outlier(const struct noise_node *node)
{
	return node->more_time || node->longer;
}

/* ---- text ------------------------------------------------------------------------- */

static u32 name_width(const struct noise_allocation *a)
{
	size_t width = 4;
	u32 i;

	for (i = 0; i < a->nodes; i++)
		width = strlen(a->node[i].name) > width ? strlen(a->node[i].name) : width;
	return width;
}

static void print_node(const struct noise_node *node, u32 width, FILE *to)
{
	char p99[24], longest[24];

	if (!node->came) {
		fprintf(to, "%-*s  nothing came\n", width, node->name);
		return;
	}
	fprintf(to, "%-*s %5u %8.4f%% %9.1f %9s %9s  %7.4f%% %5u", width, node->name, node->cpus,
		100 * node->share, node->rate, node_time_text(node->p99, p99),
		node_time_text(node->longest, longest), 100 * node->worst_share, node->worst_cpu);
	if (node->causes)
		fprintf(to, "  %s %.4f%%", node->cause[0].text, 100 * node->cause[0].share);
	fprintf(to, "\n");
}

/* "61 times the median", where there is one to compare with. */
static void print_times(double value, double of, FILE *to)
{
	if (of > 0)
		fprintf(to, ", %.3g times the median", value / of);
}

static void print_outlier(const struct noise_allocation *a, const struct noise_node *node, FILE *to)
{
	char longest[24], usual[24];

	fprintf(to, "%s:", node->name);
	if (node->more_time) {
		fprintf(to, " %.4f%% of the time is taken there", 100 * node->share);
		print_times(node->share, a->share, to);
		fprintf(to, " (%.4f%%)", 100 * a->share);
	}
	if (node->longer)
		fprintf(to, "%s its longest event is %s; of the median node %s",
			node->more_time ? ";" : "", node_time_text(node->longest, longest),
			node_time_text(a->longest, usual));
	fprintf(to, "\n");
	if (node->blamed)
		fprintf(to, "  %s takes %.4f%% there, %.4f%% on the others\n", node->blamed->text,
			100 * node->blamed->share, 100 * node->elsewhere);
	else
		fprintf(to, "  the cause is not known: coll.ko attributes events\n");
}

void noise_allocation_print(const struct noise_allocation *a, FILE *to)
{
	const u32 width = name_width(a);
	u32 i;

	fprintf(to, "%-*s %5s %9s %9s %9s %9s  %8s %5s  %s\n", width, "node", "CPUs", "taken",
		"events/s", "p99", "longest", "worst", "CPU", "most of it");
	for (i = 0; i < a->nodes; i++)
		print_node(&a->node[i], width, to);
	fprintf(to, "\n");
	for (i = 0; i < a->outliers; i++)
		print_outlier(a, &a->node[i], to);
	if (a->came < NODES_TO_COMPARE)
		fprintf(to, "%u node%s: no node can be told from the others by fewer than %d\n",
			a->came, a->came == 1 ? "" : "s", NODES_TO_COMPARE);
	else
		fprintf(to, "%u of %u nodes %s from the others\n", a->outliers, a->came,
			a->outliers == 1 ? "differs" : "differ");
}

/* ---- JSON ------------------------------------------------------------------------- */

static json_t *causes_json(const struct noise_node *node)
{
	json_t *list = json_array();
	u32 i;

	for (i = 0; i < node->causes; i++)
		json_array_append_new(list, json_pack("{ss sf}", "cause", node->cause[i].text,
						      "share", node->cause[i].share));
	return list;
}

static json_t *node_json(const struct noise_node *node)
{
	json_t *one;

	if (!node->came)
		return json_pack("{ss sb}", "node", node->name, "came", 0);
	one = json_pack("{ss sb si sf sf sf sf si sf sb sb so}", "node", node->name, "came", 1, "cpus",
			(int)node->cpus, "share", node->share, "events_per_s", node->rate, "p99_ns",
			node->p99, "longest_ns", node->longest, "worst_cpu", (int)node->worst_cpu,
			"worst_share", node->worst_share, "more_time", node->more_time, "longer",
			node->longer, "causes", causes_json(node));
	if (node->blamed)
		json_object_set_new(one, "blamed", json_pack("{ss sf sf}", "cause",
			node->blamed->text, "share", node->blamed->share, "elsewhere",
			node->elsewhere));
	return one;
}

json_t *noise_allocation_json(const struct noise_allocation *a)
{
	json_t *nodes = json_array(), *all;
	u32 i;

	for (i = 0; i < a->nodes; i++)
		json_array_append_new(nodes, node_json(&a->node[i]));
	all = json_pack("{si si sf sf so}", "came", (int)a->came, "outliers", (int)a->outliers,
			"median_share", a->share, "median_longest_ns", a->longest, "nodes", nodes);
	if (a->came >= NODES_TO_COMPARE) {
		json_object_set_new(all, "share_limit", json_real(a->share_limit));
		json_object_set_new(all, "longest_limit_ns", json_real(a->longest_limit));
	}
	return all;
}

/* ---- the picture ---------------------------------------------------------------------- */

enum { BARS_MAX = 60 };		/* of the nodes that take the most time */

/* For gnuplot, which runs what stands between backquotes. A capture may have come from anywhere. */
static void put_name(const char *name, FILE *to)
{
	for (; *name; name++)
		putc(isalnum((unsigned char)*name) || strchr("._-/:", *name) ? *name : '?', to);
}

static void put_names(const struct noise_allocation *a, u32 bars, FILE *to)
{
	u32 i;

	for (i = 0; i < bars; i++) {
		fprintf(to, "%s'", i ? ", " : "set ytics (");
		put_name(a->node[i].name, to);
		fprintf(to, "' %u", bars - i);
	}
	fprintf(to, ") noenhanced\n");
}

static int write_bars(const void *data, FILE *to)
{
	const struct noise_allocation *a = data;
	const u32 bars = a->came < BARS_MAX ? a->came : BARS_MAX;
	u32 i;

	put_names(a, bars, to);
	fprintf(to, "set title '%u of %u nodes differ from the others'\n"
		"set xlabel '%% of the time taken'\nset grid x lc rgb rule\nset border 3\n"
		"set tics nomirror\nset yrange [0.3:%u.7]\nset xrange [0:*]\n"
		"set style fill solid noborder\nset boxwidth 0.7\nset key bottom right\n$nodes << EOD\n",
		a->outliers, a->came, bars);
	for (i = 0; i < bars; i++)
		fprintf(to, "%.6g %u %d\n", 100 * a->node[i].share, bars - i,
			is_outlier(&a->node[i]));
	fprintf(to, "EOD\nset arrow 1 from %.6g, graph 0 to %.6g, graph 1 nohead lc 0 dt 2\n"
		"plot $nodes using (0.5*$1):($3 == 1 ? 1/0 : $2):(0.5*$1):(0.35) with boxxyerror lc 1 "
		"title 'like the others', '' using (0.5*$1):($3 == 1 ? $2 : 1/0):(0.5*$1):(0.35) with "
		"boxxyerror lc 2 title 'differs', 1/0 with lines lc 0 dt 2 title 'the median'\n",
		100 * a->share, 100 * a->share);
	return 0;
}

int noise_allocation_draw(const struct noise_allocation *a, const char *path)
{
	return noise_plot_draw("nodes", write_bars, a, path);
}
