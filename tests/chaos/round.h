/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* One round of the campaign: a random job, the faults that it meets, and what is right then. */
#ifndef TESTS_CHAOS_ROUND_H
#define TESTS_CHAOS_ROUND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "board.h"

enum kind {
	KIND_NONE,		/* a job that nothing happens to */
	KIND_KILL,
	KIND_STOP_SHORT,
	KIND_STOP_LONG,
	KIND_CUT,		/* a connection ends in order */
	KIND_RESET,		/* a connection is reset */
	KIND_STRANGERS,
	KIND_MEMORY,		/* the n-th allocation of a rank fails */
	KIND_DESCRIPTOR,	/* the n-th call for a descriptor, mapping, thread, process fails */
	KIND_CLOCK,		/* the clock of the day jumps by years */
	KIND_DISK,		/* nothing can be written to stdout and stderr */
	KIND_SUSPEND,		/* the monotonic clock jumps ahead, as in a suspended machine */
	KIND_HALF_OPEN,		/* a connection ends, and its other end is not told */
	KIND_REPLAY,		/* handshakes of ranks are recorded, and said once more */
	KIND_STORE,		/* strangers at the job's store */
	KIND_FULL,		/* what is written goes to a file system that is full */
	KIND_COLLD,		/* colld dies and is started again */
	KIND_MODULE,		/* coll.ko is unloaded and loaded again */
	KINDS,
};

extern const char *const kind_names[KINDS];

enum { EVENTS_MAX = 4 };

/* A fault: once the victim has made so many calls, and then so many microseconds more. */
struct event {
	int victim;
	uint32_t calls, delay_us;
	uint32_t duration_us;		/* of a short stop */
	uint64_t due;			/* ns; 0: the calls are not yet made */
	uint64_t resume;		/* ns; 0: not stopped */
	bool injected, early;		/* early: a rank had not joined yet */
};

struct settings {
	uint32_t deadline_s;		/* of the job's calls */
	uint32_t limit_s;		/* longer is a hang */
	const char *plant;		/* NULL, or what a rank does wrong */
	int only;			/* a kind, or -1 */
	const char *folder;		/* of chaos_job; coll is two above */
	bool mounts;			/* full_begin() */
	const char *module;		/* coll.ko for this kernel, or NULL */
};

struct round {
	const struct settings *settings;
	uint64_t seed;
	enum kind kind;
	int ranks;
	uint32_t phases;
	bool launched;			/* by coll run */
	char options[256];		/* COLL_... of the ranks, with spaces between */
	uint32_t events;
	struct event event[EVENTS_MAX];
	uint64_t fail;			/* which call fails */
	char folder[64];		/* of this round's files */
	struct board *board;
	pid_t pid[BOARD_RANKS_MAX];	/* what was started: ranks, or coll run in pid[0] */
	int left;			/* of these, how many run */
	pid_t colld;			/* or 0 */
	uint32_t cut[BOARD_RANKS_MAX];	/* the ranks that this one was cut from, as bits */
	uint64_t reload;		/* ns: when coll.ko is loaded again; 0: it is there */
	bool hung, orphans, held;	/* held: coll.ko cannot go when all have ended */
	char finding[600];		/* "": all was right */
	uint32_t injected;
};

/* All of the round comes from its seed. */
void round_plan(struct round *round, const struct settings *settings, uint64_t seed);
/* A small job of this seed's options, in which the n-th call of one rank fails. */
void round_plan_walk(struct round *round, const struct settings *settings, uint64_t seed,
		     enum kind kind, uint64_t n);
/* Runs the job, and returns when none of its processes is left. -errno: it cannot run here. */
int round_run(struct round *round);
/* Writes the first finding. */
void round_judge(struct round *round);
void round_end(struct round *round);

/* Whether its fault ends a connection. */
static inline bool round_cuts(const struct round *round)
{
	return round->kind == KIND_CUT || round->kind == KIND_RESET ||
	       round->kind == KIND_HALF_OPEN;
}

/* NULL: it can be injected here. Otherwise what it needs. */
const char *round_lacks(const struct settings *settings, enum kind kind);

/* ---- colld.c: a manager of circuits for the round ------------------------------- */

/* Starts it, also once more after it was killed. */
void round_start_colld(struct round *round);
void round_kill_colld(struct round *round);

/* ---- full.c: a file system without free blocks ----------------------------------- */

/* The campaign's mounts are its own. False: this process may not mount. */
bool full_begin(void);
int full_mount(const char *folder);
void full_unmount(const char *folder);

/* ---- module.c: coll.ko goes and comes ---------------------------------------------- */

/* False, and errno: somebody uses it, or it is not there. */
bool module_unload(void);
/* -errno: it cannot be loaded. */
int module_load(const char *path);
/* Unloads it; false: it is still used some seconds after the job. */
bool module_is_free(void);

/* ---- strangers.c: connections that prove nothing ---------------------------------- */

struct strangers;
struct strangers *strangers_make(uint64_t seed, enum kind kind);
/*
 * A few more of them: to ranks, to the store, or with what ranks have said before. Returns how
 * many connections were made.
 */
uint32_t strangers_poll(struct strangers *strangers, const struct board *board);
void strangers_end(struct strangers *strangers);

#endif
