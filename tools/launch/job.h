/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A job of coll run: state shared by the launcher, its guard and the ranks before exec. */
#ifndef COLL_LAUNCH_JOB_H
#define COLL_LAUNCH_JOB_H

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "launch.h"
#include "libcoll/boot/store.h"
#include "output.h"

/* Shared memory of the launcher, the guard and the ranks before exec. */
struct launch_shared {
	int exec_error;
	pid_t group[];		/* process group of each child; 0: none */
};

struct job {
	const struct launch *launch;
	struct launch_shared *shared;
	size_t shared_bytes;
	struct coll_store *store;
	int children;			/* ranks, or agents of hosts */
	int *order_fd;			/* inputs of the hosts' agents */
	int kills;			/* SIGKILLs sent so far */
	char address[1024];
	char secret[2 * COLL_SECRET_BYTES + 1];
	char name[64];
	int signal_fd;
	sigset_t old_mask;
	struct rlimit old_files;
	pid_t self, guard;
	int guard_fd;			/* closing it without a byte starts the guard's work */
	int running;			/* ranks */
	int exit_code;			/* exit code of the first rank that failed */
	bool failed;
	int interrupts;			/* SIGINTs that the launcher received */
	bool told_end;			/* launch->ends knows that ranks are about to be ended */
	bool end_requested;		/* the launcher received SIGINT, SIGTERM or SIGHUP */
	bool orders_ended;		/* the agent's input has ended */
	uint64_t look_at;		/* when launch->looks is to be called; COLL_FOREVER: never */
	uint64_t timeout_at, kill_at;	/* COLL_FOREVER: never */
	struct output_sink sink[2];
	struct output_source *source;	/* two per rank: stdout, stderr */
	int sources;
	struct pollfd *poll_fd;
};

/* ---- end.c ------------------------------------------------------------------ */

/* One line on stderr, unless --quiet. */
void launch_report(const struct job *job, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Through the agents of the hosts, if there are any. */
void launch_signal_ranks(struct job *job, int signal);
/* SIGTERM now, SIGKILL after the grace time. */
void launch_end_ranks(struct job *job);
/* The exit code of the first failure becomes the job's. */
void launch_fail(struct job *job, int exit_code);
/* Reaps all children that have ended. */
void launch_reap(struct job *job);

/* ---- guard.c -------------------------------------------------------------- */

/* Signals the process group of each living child. */
void launch_signal_children(const struct job *job, int signal);
/* Starts a process that ends the whole job if the launcher dies. 0 or -errno. */
int launch_start_guard(struct job *job);
void launch_end_guard(struct job *job);

/* ---- rank.c ----------------------------------------------------------------- */

/* In the child: execs the rank's program, or the shell of a host's agent. Never returns. */
void launch_child_main(struct job *job, int child, const int output[2], int orders);

#endif
