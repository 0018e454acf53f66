/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Answers for those who ask through the door for HTTP: each is made by a child, at most two at once. One that
 * was made is given to all who ask for the same, until it is a second old, or has cost a twentieth of
 * the time since. They share its text, and all texts together have at most 64 MB.
 */
#ifndef COLL_DAEMON_WORKS_H
#define COLL_DAEMON_WORKS_H

#include "child.h"
#include "daemon/common/http.h"
#include "question.h"
#include "share.h"

enum { REPORT_WORKS = COLLD_CONNECTIONS, REPORT_WORKS_AT_ONCE = 2 };

enum report_work_state {
	REPORT_WORK_FREE,
	REPORT_WORK_WAITS,		/* for one that ends */
	REPORT_WORK_RUNS,		/* a child has it, or has not been reaped */
	REPORT_WORK_DONE,		/* the answer is kept */
};

struct report_work {
	enum report_work_state state;
	struct report_question question;
	u64 who;			/* asked first: it is that one's share */
	struct report_child child;
	int pipe;			/* from the child; -1: all has come, or it has ended */
	u64 begun;			/* colld_now() when it came, or was made */
	u64 until;			/* done: as long as it is given */
	struct colld_answer answer;	/* as far as it has come */
	u64 got;			/* bytes of the head and the text */
	bool full;			/* there was no room for it */
	struct colld_reply *reply;	/* all has come */
	struct colld_request *request[COLLD_CONNECTIONS];
	u32 requests;			/* that wait for it */
};

struct report_works {
	const char *state;		/* colld's folder; the caller's */
	int epoll;			/* the caller's: what children do is watched by it */
	struct report_work work[REPORT_WORKS];
	struct report_shares *shares;	/* the caller's */
	u64 made, failed, cost;		/* ns of CPU time of its children */
};

/* All that is asked is answered, now or by report_works_progress(). */
void report_works_ask(struct report_works *works, struct colld_request *request,
		      const struct report_question *question);
/* Reads what has come; returns how many children there are. */
u32 report_works_progress(struct report_works *works);
void report_works_close(struct report_works *works);

#endif
