// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"

/* A page is read again so often while somebody looks at it; in s. */
#define REFRESH "5"

void colld_answer_say(struct colld_answer *answer, u32 status, const char *format, ...)
{
	size_t bytes = 0;
	va_list list;
	FILE *to;

	*answer = (struct colld_answer){ .head = { .status = status, .type = COLLD_ANSWER_TEXT } };
	to = open_memstream(&answer->text, &bytes);
	if (!to)
		return;
	va_start(list, format);
	vfprintf(to, format, list);
	va_end(list);
	putc('\n', to);
	if (fclose(to)) {
		colld_answer_free(answer);
		return;
	}
	answer->head.bytes = bytes;
}

void colld_answer_free(struct colld_answer *answer)
{
	free(answer->text);
	answer->text = NULL;
	answer->head.bytes = 0;
}

u32 colld_answer_headers(const struct colld_answer_head *head,
			 struct colld_answer_header header[COLLD_ANSWER_HEADERS])
{
	static const char *const types[COLLD_ANSWER_TYPES] = {
		"text/plain; charset=utf-8", "text/plain; version=0.0.4", "application/json",
		"text/html; charset=utf-8", "application/octet-stream",
	};
	u32 count = 0;

	header[count++] = (struct colld_answer_header){
		"Content-Type", types[head->type < COLLD_ANSWER_TYPES ? head->type : COLLD_ANSWER_TEXT] };
	header[count++] = (struct colld_answer_header){ "Cache-Control", "no-store" };
	header[count++] = (struct colld_answer_header){ "X-Content-Type-Options", "nosniff" };
	header[count++] = (struct colld_answer_header){ "Cross-Origin-Resource-Policy", "same-origin" };
	if (head->type != COLLD_ANSWER_HTML)
		return count;
	header[count++] = (struct colld_answer_header){
		"Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
		"frame-ancestors 'none'" };
	header[count++] = (struct colld_answer_header){ "Referrer-Policy", "no-referrer" };
	if (head->status == 200)
		header[count++] = (struct colld_answer_header){ "Refresh", REFRESH };
	return count;
}

const char *colld_answer_reason(u32 status)
{
	static const struct {
		u32 status;
		const char *reason;
	} reasons[] = {
		{ 200, "OK" }, { 400, "Bad Request" }, { 403, "Forbidden" }, { 404, "Not Found" },
		{ 405, "Method Not Allowed" }, { 409, "Conflict" }, { 421, "Misdirected Request" },
		{ 429, "Too Many Requests" }, { 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
	};
	size_t i;

	for (i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Internal Server Error";
}
