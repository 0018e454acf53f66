/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What somebody asks of the jobs of this node: the target of a GET. */
#ifndef COLL_DAEMON_QUESTION_H
#define COLL_DAEMON_QUESTION_H

#include <stdbool.h>

#include "daemon/common/answer.h"

struct report_question {
	bool list;			/* of jobs; else of one */
	u32 type;			/* enum colld_answer_type */
	bool of_user;			/* of this user's jobs alone; else of all users' */
	u32 user;
	char job[64];
};

/* Who asks: root and, where the policy is so, anybody may ask for all; others for their own. */
struct report_asker {
	bool all;
	u32 user;
};

/* False: it is refused, and `why` says what is valid. */
bool report_question_read(const char *target, struct report_asker asker,
			  struct report_question *question, struct colld_answer *why);
bool report_question_same(const struct report_question *a, const struct report_question *b);

enum { REPORT_QUERY = 256 };
/* "?job=NAME&user=N" of a job, for a link. */
const char *report_question_query(const char *job, u32 user, char text[REPORT_QUERY]);

#endif
