/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Starting the ranks of a job, on this node or on several, and ending every one of them. */
#ifndef COLL_LAUNCH_H
#define COLL_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

/* auto: to a core each, if the job wants most of them and there are enough. */
enum launch_bind { LAUNCH_BIND_AUTO, LAUNCH_BIND_NONE, LAUNCH_BIND_CORE };

/* Exit codes besides the failing rank's own. */
enum {
	LAUNCH_TIMEOUT = 124,
	LAUNCH_CANNOT_RUN = 126,
	LAUNCH_NOT_FOUND = 127,
};

/* A host of the job, and which ranks it has. */
struct launch_host {
	const char *name;
	int first, ranks;
};

struct launch {
	int ranks;
	uint64_t timeout;	/* ns; 0: none */
	uint64_t grace;		/* ns between SIGTERM and SIGKILL */
	bool keep_going;	/* a failed rank does not end the rest */
	bool prefix;		/* "[rank] " before each line */
	bool quiet;		/* say nothing about how ranks ended */
	enum launch_bind bind;
	char **environment;	/* "K=V", NULL-terminated, set in every rank */
	char **argv;		/* the program, NULL-terminated */

	struct launch_host *hosts;	/* NULL: all ranks on this node */
	int hosts_count;
	const char *ssh;	/* the remote shell, and options of it */
	const char *coll;	/* where this command is on the hosts */

	/* An agent, which starts a part of the job, has these from its order. */
	bool agent;
	int first, all;		/* the part's first rank, ranks of the job */
	const char *store, *secret, *job, *directory;
};

/* Runs the job to its end. Returns the exit code; see coll-run(1). */
int launch_job(const struct launch *launch);

#endif
