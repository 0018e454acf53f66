// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocation.h"
#include "node/capture.h"

int noise_allocation_init(struct noise_allocation *a, u32 nodes)
{
	*a = (struct noise_allocation){ .nodes = nodes };
	a->node = calloc(nodes, sizeof(*a->node));
	return a->node ? 0 : -ENOMEM;
}

void noise_allocation_free(struct noise_allocation *a)
{
	u32 i;

	for (i = 0; a->node && i < a->nodes; i++)
		free(a->node[i].name);
	free(a->node);
	*a = (struct noise_allocation){ 0 };
}

/* ---- reading --------------------------------------------------------------------- */

static double number_of(json_t *object, const char *key)
{
	const double value = json_number_value(json_object_get(object, key));

	return isfinite(value) && value > 0 ? value : 0;
}

static int most_first(const void *a, const void *b)
{
	const struct noise_node_cause *x = a, *y = b;

	return (x->share < y->share) - (x->share > y->share);
}

/* "kworker/u8:1" and "kworker/0:2-events" are kworker on every node. */
static void cause_name(char text[80], const char *cause, const char *name)
{
	snprintf(text, 80, *name ? "%.30s %.*s" : "%.30s", cause, (int)strcspn(name, "/"), name);
}

static void node_add_cause(struct noise_node *node, const char *text, double share)
{
	struct noise_node_cause *cause = node->cause;
	u32 i;

	for (i = 0; i < node->causes && strcmp(cause[i].text, text); i++)
		;
	if (i == NODE_CAUSES_MAX || share <= 0)
		return;
	if (i == node->causes) {
		node->causes++;
		snprintf(cause[i].text, sizeof(cause[i].text), "%s", text);
	}
	cause[i].share += share;
}

/* A list of JSON objects with cause, name and total_ns. */
static void node_read_causes(struct noise_node *node, json_t *list, double watched)
{
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one) {
		const char *cause = json_string_value(json_object_get(one, "cause"));
		const char *name = json_string_value(json_object_get(one, "name"));
		char text[80];

		if (!cause || !strcmp(cause, node_cause_name(COLL_NOISE_UNKNOWN)))
			continue;
		cause_name(text, cause, name ? name : "");
		node_add_cause(node, text, number_of(one, "total_ns") / watched);
	}
	qsort(node->cause, node->causes, sizeof(*node->cause), most_first);
}

static void node_read_cpus(struct noise_node *node, json_t *cpus)
{
	json_t *cpu;
	size_t i;

	json_array_foreach(cpus, i, cpu) {
		const double share = number_of(cpu, "share");

		if (i && share <= node->worst_share)
			continue;
		node->worst_share = share;
		node->worst_cpu = fmin(number_of(cpu, "cpu"), UINT32_MAX);
	}
	node->cpus = json_array_size(cpus);
}

bool noise_node_read(struct noise_node *node, json_t *measured)
{
	json_t *all = json_object_get(measured, "all"), *length = json_object_get(all, "duration");
	const double watched = number_of(all, "watched_ns");

	if (!json_is_array(json_object_get(measured, "cpus")) || watched <= 0)
		return false;
	node->share = number_of(all, "share");
	node->rate = number_of(all, "events_per_s");
	node->p99 = number_of(length, "p99_ns");
	node->longest = number_of(length, "max_ns");
	node_read_cpus(node, json_object_get(measured, "cpus"));
	node_read_causes(node, json_object_get(measured, "who"), watched);
	if (!node->causes)
		node_read_causes(node, json_object_get(measured, "sources"), watched);
	node->came = true;
	return true;
}

/* ---- judging ---------------------------------------------------------------------- */

static int ascending_values(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double allocation_median(double *values, u32 count)
{
	qsort(values, count, sizeof(*values), ascending_values);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double figure_of(const struct noise_node *node, bool share)
{
	return share ? node->share : node->longest;
}

/* `values` has room for one figure a node. The median, and what is far above it. */
static double judge_figure(const struct noise_allocation *a, bool share, double *values,
			   double *limit)
{
	const double scale = 1.4826, least = share ? 0.0005 : 200e3;	/* of a normal distribution */
	double middle, usual, far;
	u32 i, count;

	for (i = count = 0; i < a->nodes; i++)
		if (a->node[i].came)
			values[count++] = figure_of(&a->node[i], share);
	middle = allocation_median(values, count);
	for (i = 0; i < count; i++)
		values[i] = fabs(values[i] - middle);
	usual = scale * allocation_median(values, count);
	far = fmax(fmax(4 * usual, middle / 2), least);
	*limit = count < NODES_TO_COMPARE ? INFINITY : middle + far;
	return middle;
}

static double share_of(const struct noise_node *node, const char *cause)
{
	u32 i;

	for (i = 0; i < node->causes; i++)
		if (!strcmp(node->cause[i].text, cause))
			return node->cause[i].share;
	return 0;
}

static double share_elsewhere(const struct noise_allocation *a, const struct noise_node *node,
			      const char *cause, double *values)
{
	u32 i, count;

	for (i = count = 0; i < a->nodes; i++)
		if (a->node[i].came && &a->node[i] != node)
			values[count++] = share_of(&a->node[i], cause);
	return count ? allocation_median(values, count) : 0;
}

static void node_blame(const struct noise_allocation *a, struct noise_node *node, double *values)
{
	double most = 0;
	u32 i;

	for (i = 0; i < node->causes; i++) {
		const double elsewhere = share_elsewhere(a, node, node->cause[i].text, values);

		if (node->cause[i].share - elsewhere <= most)
			continue;
		most = node->cause[i].share - elsewhere;
		node->blamed = &node->cause[i];
		node->elsewhere = elsewhere;
	}
}

static int worst_first(const void *a, const void *b)
{
	const struct noise_node *x = a, *y = b;
	const int out_x = x->more_time || x->longer, out_y = y->more_time || y->longer;

	if (x->came != y->came)
		return y->came - x->came;
	if (out_x != out_y)
		return out_y - out_x;
	return (x->share < y->share) - (x->share > y->share);
}

void noise_allocation_judge(struct noise_allocation *a)
{
	double *values = calloc(a->nodes + 1, sizeof(*values));
	u32 i;

	for (i = a->came = a->outliers = 0; i < a->nodes; i++)
		a->came += a->node[i].came;
	if (values && a->came) {
		a->share = judge_figure(a, true, values, &a->share_limit);
		a->longest = judge_figure(a, false, values, &a->longest_limit);
	}
	for (i = 0; values && i < a->nodes; i++) {
		struct noise_node *node = &a->node[i];

		node->more_time = node->came && node->share > a->share_limit;
		node->longer = node->came && node->longest > a->longest_limit;
		a->outliers += node->more_time || node->longer;
	}
	qsort(a->node, a->nodes, sizeof(*a->node), worst_first);
	for (i = 0; values && i < a->outliers; i++)
		node_blame(a, &a->node[i], values);
	free(values);
}
