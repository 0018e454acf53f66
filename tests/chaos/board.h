/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What the ranks of a round tell the campaign, in a file that all of them map. Each rank writes
 * its own entry and nobody else's, so a rank that dies at any moment leaves it readable.
 */
#ifndef TESTS_CHAOS_BOARD_H
#define TESTS_CHAOS_BOARD_H

#include <stdatomic.h>
#include <stdint.h>

#include "uapi/coll_wire.h"

enum {
	BOARD_RANKS_MAX = 8,
	BOARD_ERRORS_MAX = 6,
};

/* How a connection ends. */
enum board_cut {
	CUT_ORDERLY,
	CUT_RESET,
	CUT_HALF_OPEN,		/* the other end hears nothing: as if the host had vanished */
};

enum board_state {
	STATE_NONE,		/* the process has not begun */
	STATE_JOINING,		/* in coll_open() */
	STATE_RUNNING,
	STATE_REFUSED,		/* coll_open() failed: ended */
	STATE_EXCLUDED,		/* the survivors went on without it: ended */
	STATE_LEAKED,		/* descriptors were left after coll_close(): ended */
	STATE_DONE,		/* all calls done, context closed, nothing left: ended */
};

/* Why a call failed, and which rank of the job its error names; -1: none. */
struct board_error {
	int32_t error, blamed;
	char text[240];
};

struct board_rank {
	_Atomic int32_t pid;
	_Atomic int32_t port;		/* where it listens; 0: not yet known */
	_Atomic uint32_t state;
	_Atomic uint32_t calls;		/* that gave the right result */
	_Atomic uint32_t errors;	/* of error[], at most BOARD_ERRORS_MAX */
	struct board_error error[BOARD_ERRORS_MAX];
	uint32_t generation;		/* groups that coll_shrink() made */
	uint32_t ranks;			/* of the last group */
	_Atomic uint32_t cut_from;	/* SIGUSR1: the ranks that it was cut from, as bits */
	_Atomic uint32_t cuts;		/* ... how often */
	_Atomic uint32_t injected;	/* calls that the interposer let fail */
	/* The latest handshake that it began with another rank's port: for who replays it. */
	_Atomic int32_t hello_port;
	struct coll_hello hello;
	struct coll_proof proof;
	char where[240];		/* the call that failed first */
};

struct board {
	uint32_t ranks;
	_Atomic uint32_t cut;		/* SIGUSR1: enum board_cut */
	_Atomic int64_t jump_ns;	/* SIGUSR2: of the monotonic clock; 0: that of the day jumps */
	_Atomic int32_t store_port;	/* 0: not yet known */
	struct board_rank rank[BOARD_RANKS_MAX];
};

/* Maps the file, which is made if need be. NULL: it cannot be, errno says why. */
struct board *board_open(const char *path);
void board_close(struct board *board);

#endif
