/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What may be moved away from a job's cores, whoever asks. */
#ifndef COLL_DAEMON_JUDGE_H
#define COLL_DAEMON_JUDGE_H

#include "node/rules.h"

enum { COLLD_SYSTEM_USERS = 1000 };	/* those below are root's and the system's */

struct colld_case {
	const struct node_rules *rules;
	const struct node_tasks *tasks;
	u32 user;		/* of the job */
	const u32 *rank;	/* processes of its ranks */
	u32 ranks;
};

/*
 * NULL: it may be. Else why not: it is init, colld, bound by the kernel, of the job or of another
 * user who is no system user, or a `keep` line of the policy names it.
 */
const char *colld_judge(const struct colld_case *of, const struct node_task *process);

#endif
