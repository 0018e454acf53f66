// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "question.h"

#define JOB_FORM "/report?job=NAME or /report?job=NAME&user=NUMBER"

static const struct {
	const char *path;
	bool list;
	u32 type;
} places[] = {
	{ "/jobs", true, COLLD_ANSWER_HTML },
	{ "/jobs.json", true, COLLD_ANSWER_JSON },
	{ "/report", false, COLLD_ANSWER_HTML },
	{ "/report.json", false, COLLD_ANSWER_JSON },
	{ "/report.flight", false, COLLD_ANSWER_BYTES },
};

/* ---- the query --------------------------------------------------------------- */

static int hex_digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' :
	       isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* Up to & or the end; false: a % without two digits, a byte that is no text, or no room. */
static bool query_decode(const char *text, size_t length, char *value, size_t room)
{
	size_t i, used = 0;

	for (i = 0; i < length; i++) {
		char c = text[i] == '+' ? ' ' : text[i];

		if (c == '%') {
			const int high = length - i > 2 ? hex_digit(text[i + 1]) : -1;
			const int low = high < 0 ? -1 : hex_digit(text[i + 2]);

			if (low < 0)
				return false;
			c = high << 4 | low;
			i += 2;
		}
		if (!c || iscntrl((unsigned char)c) || used + 1 >= room)
			return false;
		value[used++] = c;
	}
	value[used] = 0;
	return true;
}

static bool query_take_job(struct report_question *question, const char *text, size_t length)
{
	return length && query_decode(text, length, question->job, sizeof(question->job));
}

static bool query_take_user(struct report_question *question, const char *text, size_t length)
{
	char number[16], *end;
	unsigned long user;

	if (!length || !query_decode(text, length, number, sizeof(number)) ||
	    !isdigit((unsigned char)*number))
		return false;
	errno = 0;
	user = strtoul(number, &end, 10);
	question->user = user;
	question->of_user = true;
	return !errno && !*end && user < (u32)-1;
}

/* One NAME=VALUE. */
static bool query_take(struct report_question *question, const char *text, size_t length,
		       struct colld_answer *why)
{
	const char *equals = memchr(text, '=', length);
	const size_t name = equals ? (size_t)(equals - text) : length;
	const char *value = equals ? equals + 1 : text + length;
	const size_t rest = text + length - value;

	if (name == 3 && !memcmp(text, "job", 3)) {
		if (query_take_job(question, value, rest))
			return true;
		colld_answer_say(why, 400, "the value of job is no name of a job; valid: 1 to 63 bytes, "
				 "encoded as in a URL");
	} else if (name == 4 && !memcmp(text, "user", 4)) {
		if (query_take_user(question, value, rest))
			return true;
		colld_answer_say(why, 400, "the value of user is no user; valid: its number");
	} else {
		colld_answer_say(why, 400, "there is a parameter that is not known; valid: job and user, "
				 "as in " JOB_FORM);
	}
	return false;
}

static bool query_read(const char *query, struct report_question *question,
		       struct colld_answer *why)
{
	while (*query) {
		const size_t length = strcspn(query, "&");

		if (length && !query_take(question, query, length, why))
			return false;
		query += length + (query[length] == '&');
	}
	return true;
}

/* ---- all of it ---------------------------------------------------------------- */

static bool find_place(const char *target, struct report_question *question)
{
	const size_t length = strcspn(target, "?");
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (strlen(places[i].path) == length && !memcmp(places[i].path, target, length)) {
			question->list = places[i].list;
			question->type = places[i].type;
			return true;
		}
	return false;
}

bool report_question_read(const char *target, struct report_asker asker,
			  struct report_question *question, struct colld_answer *why)
{
	const char *query = strchr(target, '?');

	*question = (struct report_question){ .list = false };
	if (!find_place(target, question)) {
		colld_answer_say(why, 404, "there is no such page; valid: /jobs, " JOB_FORM
				 ", and /jobs.json, /report.json and /report.flight as well");
		return false;
	}
	if (query && !query_read(query + 1, question, why))
		return false;
	if (!question->list && !*question->job) {
		colld_answer_say(why, 400, "the job is missing; valid: " JOB_FORM ", of a job that /jobs "
				 "lists");
		return false;
	}
	if (!asker.all && question->of_user && question->user != asker.user) {
		colld_answer_say(why, 403, "user %u is not shown the jobs of user %u; valid: root, or "
				 "their owner", asker.user, question->user);
		return false;
	}
	if (!asker.all) {
		question->of_user = true;
		question->user = asker.user;
	}
	return true;
}

bool report_question_same(const struct report_question *a, const struct report_question *b)
{
	return a->list == b->list && a->type == b->type && a->of_user == b->of_user &&
	       a->user == b->user && !strcmp(a->job, b->job);
}

const char *report_question_query(const char *job, u32 user, char text[REPORT_QUERY])
{
	int used = snprintf(text, REPORT_QUERY, "?job=");

	for (; *job && used < REPORT_QUERY - 24; job++)
		used += isalnum((unsigned char)*job) || strchr("-_.", *job) ?
			snprintf(text + used, REPORT_QUERY - used, "%c", *job) :
			snprintf(text + used, REPORT_QUERY - used, "%%%02X", (unsigned char)*job);
	snprintf(text + used, REPORT_QUERY - used, "&user=%u", user);
	return text;
}
