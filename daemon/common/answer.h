/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What colld answers to a request by HTTP, through whichever door that came. */
#ifndef COLL_DAEMON_ANSWER_H
#define COLL_DAEMON_ANSWER_H

#include "core/port.h"

enum colld_answer_type {
	COLLD_ANSWER_TEXT,
	COLLD_ANSWER_METRICS,
	COLLD_ANSWER_JSON,
	COLLD_ANSWER_HTML,
	COLLD_ANSWER_BYTES,		/* flight records */
	COLLD_ANSWER_TYPES,
};

struct colld_answer_head {
	u32 status;			/* of HTTP */
	u32 type;			/* enum colld_answer_type */
	u64 bytes;			/* of the text */
};

struct colld_answer {
	struct colld_answer_head head;
	char *text;			/* malloc(); NULL: no memory */
};

/* Sets a text of one line, without its end. */
void colld_answer_say(struct colld_answer *answer, u32 status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void colld_answer_free(struct colld_answer *answer);

struct colld_answer_header {
	const char *name, *value;
};

enum { COLLD_ANSWER_HEADERS = 8 };
/* All but the length. Returns how many. No browser runs a script of a page, or gets more for it. */
u32 colld_answer_headers(const struct colld_answer_head *head,
			 struct colld_answer_header header[COLLD_ANSWER_HEADERS]);
/* "Not Found" */
const char *colld_answer_reason(u32 status);

#endif
