/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Starting the ranks of a job, on this node or on several, and ending all of them. */
#ifndef COLL_LAUNCH_H
#define COLL_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

/* auto: one core per rank, if the job needs most cores and there are enough. */
enum launch_bind { LAUNCH_BIND_AUTO, LAUNCH_BIND_NONE, LAUNCH_BIND_CORE };

/* Exit codes other than that of the first failed rank. */
enum {
	LAUNCH_TIMEOUT = 124,
	LAUNCH_CANNOT_RUN = 126,
	LAUNCH_NOT_FOUND = 127,
};

/* A host of the job, and its ranks. */
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
	char **argv;		/* the program and its arguments, NULL-terminated */

	struct launch_host *hosts;	/* NULL: all ranks on this node */
	int hosts_count;
	const char *ssh;	/* the remote shell and its options */
	const char *coll;	/* path of this command on the hosts */

	/*
	 * Told the job's name before the launcher ends its ranks, and (`over`) when all have ended.
	 * NULL: nobody is.
	 */
	void (*ends)(void *argument, const char *job, bool over);
	void *ends_argument;

	/*
	 * Called from time to time while ranks of this host run: returns when again (coll_now()).
	 * What it takes delays all else that the launcher does. NULL: not.
	 */
	uint64_t (*looks)(void *argument, const char *job);
	void *looks_argument;

	/* Set in an agent, from its order. An agent starts the ranks of one host. */
	bool agent;
	int first, all;		/* first rank of this host, ranks of the job */
	const char *store, *secret, *job, *directory;
};

/* Whether this process is a rank of a job, which some launcher has started. */
bool launch_is_rank(void);

/* The ranks of a job that fills this node: its cores, at least 2. */
int launch_usual_ranks(void);

/*
 * For a command that is no rank yet: runs this program again, with the same command name and
 * arguments (argv[1] and on), as each of the ranks. Returns the exit code.
 */
int launch_again(const char *command, int ranks, int argc, char **argv);

/* Runs the job until it ends. Returns the exit code; see coll-run(1). */
int launch_job(const struct launch *launch);

#endif
