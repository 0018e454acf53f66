// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>

#include "report.h"
#include "tools/common/metrics.h"

enum { COLUMN = 29, WIDTH = 100, GOOD_COLUMN = 7 };

void doctor_report_make(struct doctor_report *report, const struct doctor_facts *facts,
			const bool *wanted)
{
	const struct doctor_check *check;
	int i;

	report->count = 0;
	for (i = 0; (check = doctor_check_at(i)) && i < DOCTOR_CHECKS_MAX; i++)
		if (!wanted || wanted[i])
			doctor_judge(check, facts, &report->finding[report->count++]);
}

enum doctor_level doctor_report_worst(const struct doctor_report *report)
{
	enum doctor_level worst = DOCTOR_OK;
	u32 i;

	for (i = 0; i < report->count; i++)
		if (report->finding[i].level > worst)
			worst = report->finding[i].level;
	return worst;
}

/* ---- the table ------------------------------------------------------------------ */

/* Words from `column` on, wrapped before WIDTH; lines after the first begin at `indent`. */
static void print_words(FILE *to, int column, int indent, const char *text)
{
	bool first = true;

	while (*text) {
		const int length = strcspn(text, " ");

		if (!first && column + 1 + length > WIDTH) {
			fprintf(to, "\n%*s", indent, "");
			column = indent;
		} else if (!first) {
			fputc(' ', to);
			column++;
		}
		fprintf(to, "%.*s", length, text);
		column += length;
		first = false;
		text += length + strspn(text + length, " ");
	}
	fputc('\n', to);
}

static void print_label(FILE *to, const char *label, const char *text)
{
	if (!*text)
		return;
	fprintf(to, "%*s", COLUMN, label);
	print_words(to, COLUMN, COLUMN, text);
}

void doctor_print_finding(FILE *to, const char *level, const char *name, const char *found,
			  const char *cost, const char *advice)
{
	fprintf(to, "%-7s %-14s       ", level, name);
	print_words(to, COLUMN, COLUMN, found);
	print_label(to, "costs: ", cost);
	print_label(to, "do: ", advice);
}

static void print_level(const struct doctor_report *report, enum doctor_level level, FILE *to)
{
	u32 i;

	for (i = 0; i < report->count; i++) {
		const struct doctor_finding *f = &report->finding[i];
		const bool good = level <= DOCTOR_UNKNOWN;

		if (f->level == level)
			doctor_print_finding(to, doctor_level_names[level], f->check->name,
					     f->found, good ? "" : f->cost, good ? "" : f->advice);
	}
}

/* "ok      a, b, c" */
static void print_names(const struct doctor_report *report, enum doctor_level level, FILE *to)
{
	int column = GOOD_COLUMN + 1;
	bool any = false;
	u32 i;

	for (i = 0; i < report->count; i++) {
		const char *name = report->finding[i].check->name;

		if (report->finding[i].level != level)
			continue;
		if (!any)
			fprintf(to, "%-*s ", GOOD_COLUMN, doctor_level_names[level]);
		else if (column + 2 + (int)strlen(name) > WIDTH)
			fprintf(to, ",\n%*s", column = GOOD_COLUMN + 1, "");
		else
			column += fprintf(to, ", ");
		column += fprintf(to, "%s", name);
		any = true;
	}
	if (any)
		fputc('\n', to);
}

void doctor_report_print(const struct doctor_report *report, bool all, FILE *to)
{
	int level;

	for (level = DOCTOR_LEVELS - 1; level >= DOCTOR_OK; level--) {
		if (all || level > DOCTOR_UNKNOWN)
			print_level(report, level, to);
		else
			print_names(report, level, to);
	}
}

/* ---- for programs ----------------------------------------------------------------- */

static json_t *finding_json(const struct doctor_finding *f)
{
	json_t *json = json_pack("{ss ss ss}", "check", f->check->name, "level",
				 doctor_level_names[f->level], "found", f->found);

	if (f->level > DOCTOR_UNKNOWN && *f->cost)
		json_object_set_new(json, "cost", json_string(f->cost));
	if (f->level > DOCTOR_UNKNOWN && *f->advice)
		json_object_set_new(json, "advice", json_string(f->advice));
	return json;
}

json_t *doctor_report_json(const struct doctor_report *report, const char *node)
{
	json_t *list = json_array();
	u32 i;

	for (i = 0; i < report->count; i++)
		json_array_append_new(list, finding_json(&report->finding[i]));
	return json_pack("{ss ss so}", "node", node, "worst",
			 doctor_level_names[doctor_report_worst(report)], "findings", list);
}

void doctor_report_metrics(const struct doctor_report *report, FILE *to)
{
	u32 i;

	metrics_family(to, "coll_doctor_level", "gauge",
		       "What a check found: 0 ok, 1 unknown, 2 note, 3 slow, 4 fail.");
	for (i = 0; i < report->count; i++) {
		const struct doctor_finding *f = &report->finding[i];

		fprintf(to, "coll_doctor_level{");
		metrics_label(to, "check", f->check->name);
		fprintf(to, ",");
		metrics_label(to, "found", f->found);
		fprintf(to, "} %d\n", f->level);
	}
	metrics_family(to, "coll_doctor_worst", "gauge", "The highest of them.");
	fprintf(to, "coll_doctor_worst %d\n", doctor_report_worst(report));
	metrics_end(to);
}
