// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The board: which ranks of this node have arrived at a call that is handed to the MPI. A rank
 * that blocks there progresses no task. So a rank with tasks under way waits here, where they do
 * progress, until all others are in the call. All others only write down that they are.
 *
 * Each node has one: memory of its first rank that the others open as a descriptor of its process. A row
 * is written by its rank alone: a word for each communicator with a slot, of the slot's epoch and the calls
 * so far. An epoch only grows, so who still waits in a slot's earlier epoch sees that all have arrived.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim.h"

enum { SLOTS = 64, EPOCH_SHIFT = 40 };

static const uint32_t SLOT_TAKEN = ~0u;

struct board {
	uint64_t token;			/* its maker's: another file has another one */
	uint64_t unused[7];
	uint64_t word[][SLOTS];		/* row of each rank of the node */
};

/* Where a rank of the job writes. */
struct place {
	int32_t maker;			/* of the board: a rank of the job; -1: the rank has none */
	int32_t row;			/* its rank on the node */
	int32_t process;
};

static struct board *board;
static int rows;			/* ranks of this node */
static struct place *places;		/* of each rank of the job */
static bool taken[SLOTS];
static uint32_t epochs[SLOTS];		/* the latest that this rank has taken part in */

/* ---- mapping ------------------------------------------------------------ */

struct offer {			/* of the maker */
	int32_t rank;		/* of the job */
	int32_t process, descriptor;
	uint64_t token;
};

static size_t board_bytes(void)
{
	return sizeof(*board) + rows * sizeof(board->word[0]);
}

static struct board *board_map(int descriptor)
{
	struct board *mapped = mmap(NULL, board_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED,
				    descriptor, 0);

	return mapped == MAP_FAILED ? NULL : mapped;
}

static void board_unmap(void)
{
	if (board)
		munmap(board, board_bytes());
	board = NULL;
}

/* Its size is sealed: no rank can shorten what others have mapped. */
static int board_create(struct offer *offer)
{
	const int descriptor = memfd_create("coll-mpi-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint8_t random[COLL_SHIM_SECRET_BYTES];

	if (descriptor < 0)
		return -1;
	if (!ftruncate(descriptor, board_bytes()) &&
	    !fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) &&
	    coll_shim_make_secret(random) && (board = board_map(descriptor))) {
		memcpy(&offer->token, random, sizeof(offer->token));
		board->token = offer->token;
		offer->process = getpid();
		offer->descriptor = descriptor;
	}
	return descriptor;
}

/* In another PID namespace the name may be that of another process, whose device is not opened. */
static int offer_open(const struct offer *offer)
{
	struct stat file;
	char path[64];
	int place, descriptor = -1;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", offer->process, offer->descriptor);
	place = open(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	if (!fstat(place, &file) && S_ISREG(file.st_mode) && file.st_size == (off_t)board_bytes())
		descriptor = open(path, O_RDWR | O_CLOEXEC);
	close(place);
	return descriptor;
}

static void board_join(const struct offer *offer)
{
	const int descriptor = offer_open(offer);

	if (descriptor < 0)
		return;
	if (fcntl(descriptor, F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		board = board_map(descriptor);
	close(descriptor);
	if (board && board->token != offer->token)
		board_unmap();
}

/* All ranks of the node map it, or none. */
static void board_share(struct place *mine)
{
	struct offer offer = { .rank = shim.rank };
	int descriptor = -1, good, all = 0;

	if (!mine->row)
		descriptor = board_create(&offer);
	if (!real.Bcast(&offer, sizeof(offer), MPI_BYTE, 0, shim.node) && mine->row && offer.process)
		board_join(&offer);
	good = board != NULL;
	if (real.Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, shim.node))
		all = 0;
	if (descriptor >= 0)
		close(descriptor);
	if (all)
		mine->maker = offer.rank;
	else
		board_unmap();
}

bool board_open(bool wanted)
{
	struct place mine = { .maker = -1, .process = getpid() };

	memset(taken, 0, sizeof(taken));
	memset(epochs, 0, sizeof(epochs));
	if (real.Comm_size(shim.node, &rows) || real.Comm_rank(shim.node, &mine.row))
		rows = 0;
	if (wanted && rows > 1)
		board_share(&mine);
	places = malloc(shim.ranks * sizeof(*places));
	if (!shim_all(places) || real.Allgather(&mine, sizeof(mine), MPI_BYTE, places, sizeof(mine),
						MPI_BYTE, MPI_COMM_WORLD))
		board_close();
	return board;
}

void board_close(void)
{
	board_unmap();
	free(places);
	places = NULL;
}

/* ---- slots -------------------------------------------------------------- */

/* The same on all ranks of the communicator. */
static bool board_covers(const struct comm *comm)
{
	int i;

	for (i = 0; i < comm->ranks; i++)
		if (places[comm->members[i]].maker < 0 ||
		    places[comm->members[i]].maker != places[comm->members[0]].maker)
			return false;
	return true;
}

/* The lowest that is free on all ranks, in an epoch that is new on all. */
bool board_take(struct comm *comm)
{
	uint32_t mine[SLOTS], all[SLOTS];
	int slot;

	if (!board_covers(comm))
		return false;
	for (slot = 0; slot < SLOTS; slot++)
		mine[slot] = taken[slot] ? SLOT_TAKEN : epochs[slot];
	if (task_agree(comm, mine, all, SLOTS, COLL_UINT32, COLL_MAX))
		return false;
	for (slot = 0; slot < SLOTS && all[slot] >= 1u << (63 - EPOCH_SHIFT); slot++)
		;
	if (slot == SLOTS)
		return false;
	taken[slot] = true;
	epochs[slot] = all[slot] + 1;
	comm->slot = slot;
	comm->arrived = (uint64_t)epochs[slot] << EPOCH_SHIFT;
	return true;
}

void board_give(struct comm *comm)
{
	if (comm->slot >= 0)
		taken[comm->slot] = false;
	comm->slot = -1;
}

uint64_t *board_word(const struct comm *comm)
{
	return &board->word[places[shim.rank].row][comm->slot];
}

void board_arrive(struct comm *comm)
{
	__atomic_store_n(board_word(comm), ++comm->arrived, __ATOMIC_RELEASE);
}

int board_absent(const struct comm *comm)
{
	int i;

	for (i = 0; i < comm->ranks; i++)
		if (__atomic_load_n(&board->word[places[comm->members[i]].row][comm->slot],
				    __ATOMIC_ACQUIRE) < comm->arrived)
			return comm->members[i];
	return -1;
}

bool board_alive(int rank)
{
	return !kill(places[rank].process, 0) || errno != ESRCH;
}
