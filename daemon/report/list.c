// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Names come from pages of ranks: they go through node_html_text(), or are JSON's strings. */
#include <limits.h>

#include "libcoll/base/clock.h"
#include "list.h"
#include "node/report/html.h"

static double list_seconds(const struct report_job *job)
{
	const u64 now = coll_now();

	return job->opened && now > job->opened ? (now - job->opened) / 1e9 : 0;
}

static json_int_t list_calls(const struct report_job *job)
{
	return job->calls < LLONG_MAX ? (json_int_t)job->calls : LLONG_MAX;
}

/* ---- JSON ----------------------------------------------------------------------- */

static json_t *list_job_json(const struct report_job *job)
{
	char query[REPORT_QUERY];
	json_t *json = json_pack("{s:s, s:I, s:s, s:I, s:I, s:b, s:I, s:f}", "job", job->job, "user",
				 (json_int_t)job->user, "program", job->program, "ranks",
				 (json_int_t)job->ranks, "here", (json_int_t)job->here, "part",
				 job->here < job->ranks, "calls", list_calls(job), "seconds",
				 list_seconds(job));

	report_question_query(job->job, job->user, query);
	json_object_set_new(json, "report", json_sprintf("/report.json%s", query));
	return json;
}

json_t *report_list_json(const struct report_gathered *gathered, const char *node)
{
	json_t *jobs = json_array();
	u32 i;

	for (i = 0; i < gathered->jobs; i++)
		json_array_append_new(jobs, list_job_json(&gathered->job[i]));
	return json_pack("{s:s, s:b, s:o}", "node", node, "more", gathered->more, "jobs", jobs);
}

/* ---- the page --------------------------------------------------------------------- */

static void put_number(u32 index, const char *field, u64 value, FILE *to)
{
	char place[64];

	snprintf(place, sizeof(place), ".jobs[%u].%s", index, field);
	fprintf(to, "<td>");
	node_html_count(place, value, to);
	fprintf(to, "</td>");
}

static void put_job(const struct report_job *job, u32 index, FILE *to)
{
	char query[REPORT_QUERY], place[64];

	fprintf(to, "<tr><th class=\"name\"><a href=\"/report");
	node_html_text(report_question_query(job->job, job->user, query), to);
	fprintf(to, "\">");
	node_html_text(job->job, to);
	fprintf(to, "</a></th><td>%u</td><td class=\"name\" style=\"text-align:left\">", job->user);
	node_html_text(job->program, to);
	fprintf(to, "</td>");
	put_number(index, "here", job->here, to);
	put_number(index, "ranks", job->ranks, to);
	put_number(index, "calls", list_calls(job), to);
	snprintf(place, sizeof(place), ".jobs[%u].seconds * 1e9", index);
	fprintf(to, "<td>");
	node_html_time(place, 1e9 * list_seconds(job), to);
	fprintf(to, "</td></tr>\n");
}

static void put_jobs(const struct report_gathered *gathered, FILE *to)
{
	u32 i;

	fprintf(to, "<section><table><caption>The ranks of other nodes are shown by their colld</caption>"
		"<thead><tr><th>job</th><th>user</th><th style=\"text-align:left\">program</th>"
		"<th>ranks here</th><th>in all</th><th>calls</th><th>runs for</th></tr></thead><tbody>\n");
	for (i = 0; i < gathered->jobs; i++)
		put_job(&gathered->job[i], i, to);
	fprintf(to, "</tbody></table>\n");
	if (gathered->more)
		fprintf(to, "<p class=\"note\">There are more jobs: of a user at most %u are shown, of all %u, "
			"and those that were found in time.</p>\n", REPORT_JOBS_USER, REPORT_JOBS);
	fprintf(to, "</section>\n");
}

void report_list_page(const struct report_gathered *gathered, const char *node, FILE *to)
{
	fprintf(to, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
		"<meta name=\"color-scheme\" content=\"light dark\"/><title>Jobs on ");
	node_html_text(node, to);
	fprintf(to, "</title>\n<style>\n%s%s</style></head>\n<body><main>\n<h1>", palette_css, page_css);
	if (gathered->jobs)
		fprintf(to, "%u job%s", gathered->jobs, gathered->jobs == 1 ? "" : "s");
	else
		fprintf(to, "No job");
	fprintf(to, " with ranks on ");
	node_html_text(node, to);
	fprintf(to, "</h1>\n");
	if (gathered->jobs || gathered->more)
		put_jobs(gathered, to);
	fprintf(to, "</main></body></html>\n");
}
