// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge.h"
#include "report.h"

#define OFFSET_NOTE_US 10e3	/* between clocks of two nodes */

struct merge {
	const struct doctor_row *row;
	int count;
	json_t **pair;			/* [from * count + to]: NULL: not tried, or not known */
	json_t *findings;		/* those that differ, then the common ones */
	json_t *common;
	enum doctor_level worst;
	bool whole;			/* each host reported, and tried all others */
};

static enum doctor_level level_named(const char *name)
{
	int level = DOCTOR_LEVELS - 1;

	while (level > DOCTOR_OK && (!name || strcmp(doctor_level_names[level], name)))
		level--;
	return level;
}

static const char *merge_text(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* The nodes that a finding is about; `nodes` is taken over. */
static void merge_add(struct merge *merge, json_t *to, json_t *finding, json_t *nodes)
{
	const enum doctor_level level = level_named(merge_text(finding, "level"));

	if (level > merge->worst)
		merge->worst = level;
	json_object_set_new(finding, "nodes", nodes);
	if (to == merge->findings)
		json_object_set_new(finding, "differs", json_true());
	json_array_append_new(to, finding);
}

static json_t *merge_finding(const char *check, enum doctor_level level, const char *cost,
			     const char *advice)
{
	return json_pack("{ss ss ss ss ss}", "check", check, "level", doctor_level_names[level],
			 "found", "", "cost", cost, "advice", advice);
}

/* ---- checks ----------------------------------------------------------------------- */

static json_t *finding_of(json_t *report, const char *check)
{
	json_t *list = json_object_get(report, "findings"), *finding;
	size_t i;

	json_array_foreach(list, i, finding)
		if (!strcmp(merge_text(finding, "check"), check))
			return finding;
	return NULL;
}

/* What nodes must have in common to be alike; to be freed. NULL: there is no memory. */
static char *finding_key(const struct doctor_check *check, json_t *finding)
{
	char *key;

	return asprintf(&key, "%s %s", merge_text(finding, "level"),
			check->varies ? "" : merge_text(finding, "found")) < 0 ? NULL : key;
}

/* The group of such findings: {"finding", "nodes"}; a new one has no nodes. */
static json_t *group_of(json_t *groups, const struct doctor_check *check, json_t *finding)
{
	char *key = finding_key(check, finding);
	json_t *group = key ? json_object_get(groups, key) : NULL;

	if (key && !group) {
		group = json_pack("{sO s[]}", "finding", finding, "nodes");
		if (json_object_set_new(groups, key, group))
			group = NULL;		/* and it is freed */
	}
	free(key);
	return group;
}

static json_t *group_hosts(const struct merge *merge, const struct doctor_check *check)
{
	json_t *groups = json_object(), *finding;
	int host;

	for (host = 0; host < merge->count; host++) {
		finding = finding_of(merge->row[host].report, check->name);
		if (finding)
			json_array_append_new(json_object_get(group_of(groups, check, finding), "nodes"),
					      json_string(merge->row[host].host));
	}
	return groups;
}

static size_t group_size(json_t *group)
{
	return json_array_size(json_object_get(group, "nodes"));
}

/* Every group of like hosts is a finding; all but the largest one differ. They are in the hosts' order. */
static void merge_check(struct merge *merge, const struct doctor_check *check)
{
	json_t *groups = group_hosts(merge, check), *group, *usual = NULL;
	const char *key;

	json_object_foreach(groups, key, group)
		if (group_size(group) > group_size(usual))
			usual = group;
	json_object_foreach(groups, key, group)
		merge_add(merge, group == usual ? merge->common : merge->findings,
			  json_deep_copy(json_object_get(group, "finding")),
			  json_incref(json_object_get(group, "nodes")));
	json_decref(groups);
}

/* ---- the hosts ---------------------------------------------------------------------- */

static void merge_missing(struct merge *merge)
{
	json_t *names = json_array(), *finding;
	int i;

	for (i = 0; i < merge->count; i++)
		if (!merge->row[i].report)
			json_array_append_new(names, json_string(merge->row[i].host));
	if (!json_array_size(names)) {
		json_decref(names);
		return;
	}
	merge->whole = false;
	finding = merge_finding("host", DOCTOR_FAIL, "coll run --hosts fails for the same reason",
				"ssh HOST true; coll must be there, --coll names its path");
	json_object_set_new(finding, "found", json_string("no report came: see above"));
	merge_add(merge, merge->findings, finding, names);
}

static void merge_store(struct merge *merge)
{
	json_t *finding;
	int i;

	for (i = 0; i < merge->count; i++) {
		const char *error = merge_text(merge->row[i].pairs, "store");

		if (!*error)
			continue;
		finding = merge_finding("store", DOCTOR_FAIL, "coll run --hosts from here fails",
					"let TCP from that host through to this one, or start jobs "
					"elsewhere");
		json_object_set_new(finding, "found",
				    json_sprintf("does not reach the job's store here (%s): %s",
						 merge_text(merge->row[i].pairs, "address"),
						 error));
		merge_add(merge, merge->findings, finding,
			  json_pack("[s]", merge->row[i].host));
	}
}

/* Hosts whose connections are not known; `nodes` is taken over. */
static void merge_unknown(struct merge *merge, json_t *nodes, json_t *found)
{
	json_t *finding = merge_finding("reach", DOCTOR_UNKNOWN, "", "");

	merge->whole = false;
	json_object_set_new(finding, "found", found);
	merge_add(merge, merge->findings, finding, nodes);
}

/* Hosts that reported, and then said nothing of their connections, or that they can try none. */
static void merge_untold(struct merge *merge)
{
	json_t *silent = json_array();
	int i;

	for (i = 0; i < merge->count; i++) {
		const struct doctor_row *row = &merge->row[i];
		const char *error = merge_text(row->pairs, "error");

		if (row->report && !row->pairs)
			json_array_append_new(silent, json_string(row->host));
		if (*error)
			merge_unknown(merge, json_pack("[s]", row->host),
				      json_sprintf("cannot try connections: %s", error));
	}
	if (json_array_size(silent))
		merge_unknown(merge, silent, json_string("did not say what they reach before --timeout, "
							 "or ended early"));
	else
		json_decref(silent);
}

/* The connection from one host to another, as the first one saw it. */
static json_t *pair_of(const struct merge *merge, int from, int to)
{
	return merge->pair[(size_t)from * merge->count + to];
}

/* Of each host with each: looked up once, since a list is in no order. False: there is no memory. */
static bool merge_index_pairs(struct merge *merge)
{
	json_t *list, *pair;
	size_t i;
	int from;

	merge->pair = calloc((size_t)merge->count * merge->count + 1, sizeof(*merge->pair));
	for (from = 0; merge->pair && from < merge->count; from++) {
		list = json_object_get(merge->row[from].pairs, "to");
		json_array_foreach(list, i, pair) {
			const json_int_t to = json_integer_value(json_object_get(pair, "host"));

			if (to >= 0 && to < merge->count)
				merge->pair[(size_t)from * merge->count + to] = pair;
		}
	}
	return merge->pair;
}

/* The hosts that do not reach one, and what the last of them met. */
struct unreached {
	json_t *nodes;
	const char *first, *error;
	bool returns;		/* it reaches one of them */
	char place[128];
};

static void unreached_add(struct unreached *unreached, const char *from, json_t *pair, json_t *back)
{
	unreached->returns |= back && !*merge_text(back, "error");
	unreached->first = unreached->first ? unreached->first : from;
	unreached->error = merge_text(pair, "error");
	snprintf(unreached->place, sizeof(unreached->place), "%s port %s",
		 merge_text(pair, "address"), merge_text(pair, "port"));
	json_array_append_new(unreached->nodes, json_string(from));
}

/* One finding, if there are such hosts; uses them up. */
static void merge_unreached(struct merge *merge, int to, struct unreached *unreached, json_t *finding,
			    const char *why)
{
	const size_t hosts = json_array_size(unreached->nodes);

	if (!hosts) {
		json_decref(unreached->nodes);
		json_decref(finding);
		return;
	}
	json_object_set_new(finding, "found",
			    json_sprintf("%s is not reached from %s%s (%s): %s%s%s",
					 merge->row[to].host, unreached->first,
					 hosts > 1 ? " and others" : "", unreached->place,
					 unreached->error, unreached->returns ? "; the other way works" : "",
					 why));
	json_array_insert_new(unreached->nodes, 0, json_string(merge->row[to].host));
	merge_add(merge, merge->findings, finding, unreached->nodes);
}

/*
 * A host that some others do not reach. One that does not know another ended its part before that
 * one came, so that nobody answered: that says nothing about the network.
 */
static void merge_reach_of(struct merge *merge, int to)
{
	const bool tried = json_object_get(merge->row[to].pairs, "to");
	struct unreached closed = { .nodes = json_array() }, late = { .nodes = json_array() };
	json_t *pair, *back;
	int from;

	for (from = 0; from < merge->count; from++) {
		pair = pair_of(merge, from, to);
		back = pair_of(merge, to, from);
		if (*merge_text(pair, "error"))
			unreached_add(tried && !back ? &late : &closed, merge->row[from].host, pair, back);
	}
	merge_unreached(merge, to, &closed,
			merge_finding("reach", DOCTOR_FAIL, "a job with ranks on both fails at their first "
				      "message, after its deadline (60 s) where packets are dropped",
				      "let TCP through between the nodes, at the ports of "
				      "net.ipv4.ip_local_port_range; or COLL_ADDRESS names a network that "
				      "is open"), "");
	merge_unreached(merge, to, &late, merge_finding("reach", DOCTOR_UNKNOWN, "", ""),
			"; it waited no longer, since they came too late");
}

/* A host that came when others had ended their wait for it: they did not try it. */
static void merge_untried_of(struct merge *merge, int to)
{
	json_t *nodes = json_array();
	int from, count;

	for (from = 0; from < merge->count && json_object_get(merge->row[to].pairs, "to"); from++)
		if (from != to && json_object_get(merge->row[from].pairs, "to") && !pair_of(merge, from, to))
			json_array_append_new(nodes, json_string(merge->row[from].host));
	count = json_array_size(nodes);
	if (!count) {
		json_decref(nodes);
		return;
	}
	json_array_insert_new(nodes, 0, json_string(merge->row[to].host));
	merge_unknown(merge, nodes, json_sprintf("%s came too late to be tried from %d of the others",
						 merge->row[to].host, count));
}

static void merge_offset_of(struct merge *merge, int to)
{
	json_t *pair = pair_of(merge, 0, to), *finding;
	const double offset = json_number_value(json_object_get(pair, "offset_us"));
	const struct doctor_check *time = doctor_check_named("time");

	if (!pair || (offset < OFFSET_NOTE_US && offset > -OFFSET_NOTE_US))
		return;
	finding = merge_finding("time", DOCTOR_NOTE, time->cost, time->advice);
	json_object_set_new(finding, "found", json_sprintf("its clock is %.1f ms %s that of %s",
			    (offset < 0 ? -offset : offset) / 1e3, offset < 0 ? "behind" : "before",
			    merge->row[0].host));
	merge_add(merge, merge->findings, finding, json_pack("[s]", merge->row[to].host));
}

/* The shortest and the longest way there and back. */
static json_t *merge_paths(const struct merge *merge)
{
	double least = 0, most = 0, rtt;
	int from, to, count = 0;

	for (from = 0; from < merge->count; from++)
		for (to = 0; to < merge->count; to++) {
			rtt = json_number_value(json_object_get(pair_of(merge, from, to), "rtt_us"));
			if (rtt <= 0)
				continue;
			least = !count || rtt < least ? rtt : least;
			most = rtt > most ? rtt : most;
			count++;
		}
	return json_pack("{si sf sf}", "connections", count, "least_us", least, "most_us", most);
}

/* The worst first; equals stay in their order. `list` is used up. */
static void append_sorted(json_t *to, json_t *list)
{
	int level;
	size_t i;
	json_t *finding;

	for (level = DOCTOR_LEVELS - 1; level >= DOCTOR_OK; level--)
		json_array_foreach(list, i, finding)
			if ((int)level_named(merge_text(finding, "level")) == level)
				json_array_append(to, finding);
	json_decref(list);
}

json_t *doctor_merge(const struct doctor_row *rows, int count, enum doctor_level *worst)
{
	struct merge merge = { .row = rows, .count = count, .findings = json_array(),
			       .common = json_array(), .whole = true };
	json_t *all = json_array(), *nodes = json_array(), *paths;
	const struct doctor_check *check;
	int i;

	if (!merge_index_pairs(&merge))
		return NULL;
	paths = merge_paths(&merge);
	merge_missing(&merge);
	merge_store(&merge);
	merge_untold(&merge);
	for (i = 0; i < count; i++) {
		merge_reach_of(&merge, i);
		merge_untried_of(&merge, i);
	}
	for (i = 1; i < count; i++)
		merge_offset_of(&merge, i);
	for (i = 0; (check = doctor_check_at(i)); i++)
		merge_check(&merge, check);
	append_sorted(all, merge.findings);
	append_sorted(all, merge.common);
	for (i = 0; i < count; i++)
		if (rows[i].report)
			json_array_append(nodes, rows[i].report);
	free(merge.pair);
	*worst = merge.worst;
	return json_pack("{si ss sb so so so}", "hosts", count, "worst",
			 doctor_level_names[merge.worst], "whole", merge.whole, "paths", paths, "findings",
			 all, "nodes", nodes);
}

/* ---- the table ------------------------------------------------------------------------ */

/* "a, b, c and 4 more"; a name that does not fit is cut. */
static void print_nodes(json_t *finding, char *text, size_t bytes)
{
	json_t *nodes = json_object_get(finding, "nodes"), *node;
	size_t i, length = 0;

	*text = 0;
	json_array_foreach(nodes, i, node) {
		if (length > bytes / 2) {
			snprintf(text + length, bytes - length, " and %zu more",
				 json_array_size(nodes) - i);
			return;
		}
		snprintf(text + length, bytes - length - sizeof(" and 1000000 more"), "%s%s",
			 i ? ", " : "", json_string_value(node));
		length += strlen(text + length);
	}
}

static void print_merged(json_t *finding, FILE *to)
{
	const bool good = level_named(merge_text(finding, "level")) <= DOCTOR_UNKNOWN;
	char nodes[200], found[600];

	print_nodes(finding, nodes, sizeof(nodes));
	snprintf(found, sizeof(found), "%s: %s", nodes, merge_text(finding, "found"));
	doctor_print_finding(to, merge_text(finding, "level"), merge_text(finding, "check"), found,
			     good ? "" : merge_text(finding, "cost"),
			     good ? "" : merge_text(finding, "advice"));
}

static void print_part(json_t *merged, bool differing, bool all, const char *heading, FILE *to)
{
	json_t *list = json_object_get(merged, "findings"), *finding;
	bool any = false;
	size_t i;

	json_array_foreach(list, i, finding) {
		if (json_is_true(json_object_get(finding, "differs")) != differing)
			continue;
		if (!differing && !all &&
		    level_named(merge_text(finding, "level")) <= DOCTOR_UNKNOWN)
			continue;
		if (!any)
			fprintf(to, "%s\n", heading);
		any = true;
		print_merged(finding, to);
	}
	if (any)
		fputc('\n', to);
}

void doctor_merge_print(json_t *merged, bool all, FILE *to)
{
	json_t *paths = json_object_get(merged, "paths");

	print_part(merged, true, all, "what differs", to);
	print_part(merged, false, all, "on the others, or on all", to);
	fprintf(to, "%lld hosts; %lld connections, %.3g to %.3g ms there and back\n",
		json_integer_value(json_object_get(merged, "hosts")),
		json_integer_value(json_object_get(paths, "connections")),
		json_number_value(json_object_get(paths, "least_us")) / 1e3,
		json_number_value(json_object_get(paths, "most_us")) / 1e3);
}
