/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Jobs of `coll run` in the test machine, which tests/vm/run -p brings along. */
#ifndef COLL_TESTS_VM_JOB_H
#define COLL_TESTS_VM_JOB_H

#include <stdbool.h>
#include <sys/types.h>

struct job {
	const char *ranks;
	const char *memory;		/* COLL_MEMORY */
	const char *cgroup;		/* that it runs in; NULL: in that of the test */
	uid_t user;
	const char *seconds;		/* at most so long; NULL: 100 */
	const char *program[16];
};

/* Its status, when it has ended. */
int job_run(const struct job *job);
/* Whether the latest said that, and where. NULL: it did not. */
const char *job_said(const char *text);
/* All that it said, as notes. */
void job_show(void);

#endif
