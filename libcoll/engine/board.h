/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A board: what a process posts there, in one write, several processes of its node read. It is for short messages
 * of the same bytes, or of as many, which would else be written to a ring for each peer. Each process has a few boards,
 * one for each group that has asked for it, in a region as that of publications is (published.h): a sealed memfd, which
 * its peers map to read. No process stores anything in another's.
 *
 * An entry has a message of one run of the group, or one for each reader, of as many bytes, in the order of their
 * ranks. Its place is the run's number modulo COLL_BOARD_ENTRIES, so it is found without a search, and a run has one at
 * most. It is written again when all that were to read it have said, on their own boards, that they read no entry of
 * that run any more (`completed`). Nobody waits for that: bytes go to the rings instead.
 *
 * A reader that is going to sleep, or does other work meanwhile, must be told by its ring. It says so by `from`: who
 * posts in an earlier run writes to its ring as well. The writer stores its entry, then looks at `from`; the reader
 * stores `from`, then looks for entries. In both a full barrier is between, so one of the two sees the other. If both
 * do, the message comes twice, and the second is discarded.
 *
 * A reader has the board of the writer before that counts on it: it says so, too (`found`), and takes that back
 * before it loses the board. Which entry is whose is stored between two stores of its sequence, and read between two
 * looks at it: whoever finds itself among the readers is waited for from then on.
 *
 * A peer's board is not trusted: what it says of an entry is checked when it is read, and the bytes are any bytes.
 * One that says too early that it has completed a run may find the bytes of another: the harm is its own.
 */
#ifndef COLL_BOARD_H
#define COLL_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "shared_arena.h"

enum {
	COLL_BOARDS = 7,		/* of a process */
	COLL_BOARD_ENTRIES = 8,
	COLL_BOARD_BYTES = 1024,	/* of a message */
	COLL_BOARD_READERS = 64,	/* of an entry: ranks `first` to `first` + 63 */
	COLL_BOARD_FINDERS = 512,	/* ranks of a group that may be readers */
};

struct coll_engine;
struct coll_socket;

/* All but the bytes, and few of these, are in one line. */
struct coll_board_entry {
	uint64_t sequence;		/* the run's number and one more, stored last; 0: there is none */
	uint64_t readers;		/* ranks of the group, from `first` on: bits */
	uint32_t first;
	uint32_t hash;			/* of the call */
	uint16_t slot, bytes;
	uint16_t each;			/* not 0: so many for each reader, in the order of ranks; else for all */
	uint8_t data[COLL_BOARD_BYTES] __attribute__((aligned(8)));
} __attribute__((aligned(128)));

struct coll_board {
	struct {
		uint32_t claimed;	/* by the group of this tag, stored last; 0: by none */
		uint64_t tag;
		uint32_t from;		/* its process is told of no earlier run by boards alone */
		uint32_t completed;	/* ... and reads no entry of an earlier run any more */
		uint64_t found[COLL_BOARD_FINDERS / 64];	/* ranks whose boards it looks at: bits */
	} head __attribute__((aligned(128)));
	struct coll_board_entry entry[COLL_BOARD_ENTRIES];
};

/* An engine's. */
struct coll_boards {
	struct coll_shared_region region;
	bool tried;			/* to make it: once */
	uint32_t ended;			/* connections so far */
	struct {
		bool left;		/* its group is no more, but a peer may not have read all of it */
		uint32_t run;		/* ... before this one */
		uint32_t ended;		/* connections, when it was claimed */
	} own[COLL_BOARDS];
};

/* ---- this process' ----------------------------------------------------------- */

/* Where a group's board is looked for first. */
uint32_t coll_boards_index(uint64_t tag);
/*
 * A board for the group of this tag, which is no other group's ever: any that is free. Its process reads entries of
 * runs from `run` on. NULL: there is none, for as long as the group lives. The first time makes the region.
 */
struct coll_board *coll_boards_claim(struct coll_engine *engine, uint64_t tag, uint32_t run);
/*
 * Its group is no more, and has posted nothing from this run on. Another group may have it when all readers
 * have completed the runs before. If a connection has ended since it was claimed that is not known, and the
 * board is lost.
 */
void coll_boards_give_back(struct coll_engine *engine, struct coll_board *board, uint32_t run);
/* Tells the peer of the region, once. False: it could not be told now. */
bool coll_boards_tell(struct coll_socket *socket);
/*
 * If the peer has announced its boards, hears of it now, not in the next turn of the engine. Costs a look at the ring's
 * line until it has, then system calls, once. Not while bytes of this connection are being received.
 */
void coll_boards_hear(struct coll_socket *socket);

/* It has no message. */
void coll_board_clear(struct coll_board_entry *entry);
/* Whose it is to be: ranks as bits from the first one on. */
static inline void coll_board_entry_give(struct coll_board_entry *entry, uint32_t first, uint64_t readers)
{
	__atomic_store_n(&entry->first, first, __ATOMIC_RELEASE);
	__atomic_store_n(&entry->readers, readers, __ATOMIC_RELEASE);
}
/* Readers and bytes are stored: here is the message of this run. Costs a full barrier. */
void coll_board_post(struct coll_board_entry *entry, uint32_t run);
/* This process is told by boards of runs from here on. Costs a full barrier: then it is to look at entries. */
void coll_board_leave_run(struct coll_board *board, uint32_t from);
/* It has found the board of that rank, and looks at it in each run; or it does not any more. */
void coll_board_set_found(struct coll_board *board, uint32_t rank, bool found);
/* It reads no entries of runs before this one any more. */
void coll_board_completed(struct coll_board *board, uint32_t run);

/* ---- a peer's ------------------------------------------------------------------ */

/*
 * The board of this group, if that peer has one. It is there until the connection ends. NULL: none is known. Costs a
 * line of each of its boards, as far as the group's is not where it is looked for first.
 */
const struct coll_board *coll_boards_of_peer(const struct coll_socket *socket, uint64_t tag);
/* Whether it is that group's. */
bool coll_board_is_of(const struct coll_board *board, uint64_t tag);
/* Of which run it is; any number: it has none. */
static inline uint32_t coll_board_entry_run(const struct coll_board_entry *entry)
{
	return __atomic_load_n(&entry->sequence, __ATOMIC_ACQUIRE) - 1;
}
/* Whether it has a message of that run: what follows is asked after it. */
static inline bool coll_board_entry_is_of(const struct coll_board_entry *entry, uint32_t run)
{
	return __atomic_load_n(&entry->sequence, __ATOMIC_ACQUIRE) == run + 1ull;
}
/* Whether it has one for that rank. */
static inline bool coll_board_entry_is_for(const struct coll_board_entry *entry, uint32_t run, uint32_t rank)
{
	const uint32_t reader = rank - __atomic_load_n(&entry->first, __ATOMIC_ACQUIRE);

	return coll_board_entry_is_of(entry, run) && reader < COLL_BOARD_READERS &&
	       __atomic_load_n(&entry->readers, __ATOMIC_ACQUIRE) >> reader & 1 && coll_board_entry_is_of(entry, run);
}
/*
 * Of an entry that is for that rank: where its bytes are, whatever the writer stores meanwhile. NULL: they would not
 * be in the entry.
 */
static inline const uint8_t *coll_board_entry_data(const struct coll_board_entry *entry, uint32_t rank, uint64_t bytes)
{
	const uint32_t reader = (rank - __atomic_load_n(&entry->first, __ATOMIC_RELAXED)) % COLL_BOARD_READERS;
	const uint64_t before = __atomic_load_n(&entry->readers, __ATOMIC_RELAXED) & ((1ull << reader) - 1);
	const uint64_t offset = __atomic_load_n(&entry->each, __ATOMIC_RELAXED) ?
					__builtin_popcountll(before) * bytes : 0;

	return bytes <= COLL_BOARD_BYTES && offset <= COLL_BOARD_BYTES - bytes ? entry->data + offset : NULL;
}
/* Whether its process looks at the board of that rank. */
static inline bool coll_board_has_found(const struct coll_board *board, uint32_t rank)
{
	return rank < COLL_BOARD_FINDERS &&
	       __atomic_load_n(&board->head.found[rank / 64], __ATOMIC_ACQUIRE) >> rank % 64 & 1;
}
/* The words of another process' board. */
static inline uint32_t coll_board_from(const struct coll_board *board)
{
	return __atomic_load_n(&board->head.from, __ATOMIC_ACQUIRE);
}
static inline uint32_t coll_board_completed_runs(const struct coll_board *board)
{
	return __atomic_load_n(&board->head.completed, __ATOMIC_ACQUIRE);
}

#endif
