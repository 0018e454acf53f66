/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Starting the ranks of a job on this node, and ending every one of them. */
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
};

/* Runs the job to its end. Returns the exit code; see coll-run(1). */
int launch(const struct launch *launch);

#endif
