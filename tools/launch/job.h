/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A job of coll run: what the launcher, its guard and the ranks before exec know of it. */
#ifndef COLL_LAUNCH_JOB_H
#define COLL_LAUNCH_JOB_H

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "launch.h"
#include "libcoll/boot/store.h"
#include "output.h"

/* What the launcher, the guard and the ranks before exec have in common. */
struct launch_shared {
	int exec_error;
	pid_t group[];		/* by child; 0: none */
};

struct job {
	const struct launch *launch;
	struct launch_shared *shared;
	size_t shared_bytes;
	struct coll_store *store;
	int children;			/* ranks, or hosts */
	int *order_fd;			/* inputs of the hosts' agents */
	int kills;			/* SIGKILLs sent so far */
	char address[1024];
	char secret[2 * COLL_SECRET_BYTES + 1];
	char name[64];
	int signal_fd;
	sigset_t old_mask;
	struct rlimit old_files;
	pid_t self, guard;
	int guard_fd;			/* closed without a word, it wakes the guard */
	int running;			/* ranks */
	int exit_code;			/* of the first that failed */
	bool failed;
	int interrupts;			/* SIGINTs of ours */
	bool told_to_end;		/* any signal that ends a program reached us */
	bool orders_ended;		/* an agent's input */
	uint64_t timeout_at, kill_at;	/* COLL_FOREVER: never */
	struct output_sink sink[2];
	struct output_source *source;	/* two a rank: stdout, stderr */
	int sources;
	struct pollfd *poll_fd;
};

/* ---- end.c ------------------------------------------------------------------ */

/* One line on stderr, unless the user wants quiet. */
void launch_tell(const struct job *job, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Through the agents, where there are any. */
void launch_signal_ranks(struct job *job, int signal);
/* SIGTERM now, SIGKILL after the grace. */
void launch_end_ranks(struct job *job);
/* The exit code of the first failure is the job's. */
void launch_fail(struct job *job, int exit_code);
/* Takes all children that have ended by now. */
void launch_reap(struct job *job);

/* ---- guard.c -------------------------------------------------------------- */

/* To the process group of each child that lives. */
void launch_signal_children(const struct job *job, int signal);
/* A process that ends all of the job when the launcher has died. 0 or -errno. */
int launch_start_guard(struct job *job);
void launch_end_guard(struct job *job);

/* ---- rank.c ----------------------------------------------------------------- */

/* In the child: becomes the rank's program, or the shell of a host's agent. Never returns. */
void launch_child_main(struct job *job, int child, const int output[2], int orders);

#endif
