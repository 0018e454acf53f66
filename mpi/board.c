// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The board: which ranks of this node have arrived at a call that is handed to the MPI. A rank
 * that blocks there progresses no task. So a rank with tasks under way waits here, where they do
 * progress, until all others are in the call. All others only write down that they are.
 *
 * It is memory of rank 0 that the other ranks open as a descriptor of its process. A row is written
 * by its rank alone: a word for each communicator with a slot, of the slot's epoch and the calls so
 * far. An epoch only grows, so who still waits in a slot's earlier epoch sees that all have arrived.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim.h"

enum { SLOTS = 64, EPOCH_SHIFT = 40 };

static const uint32_t SLOT_TAKEN = ~0u;

struct board {
	uint64_t token;			/* rank 0's: another file has another one */
	uint64_t unused[7];
	uint64_t word[][SLOTS];		/* row of each rank of the job */
};

static struct board *board;
static bool taken[SLOTS];
static uint32_t epochs[SLOTS];		/* the latest that this rank has taken part in */

/* ---- mapping ------------------------------------------------------------ */

struct offer {			/* of rank 0 */
	int32_t process, descriptor;
	uint64_t token;
};

static size_t board_bytes(void)
{
	return sizeof(*board) + shim.ranks * sizeof(board->word[0]);
}

static struct board *board_map(int descriptor)
{
	struct board *mapped = mmap(NULL, board_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED,
				    descriptor, 0);

	return mapped == MAP_FAILED ? NULL : mapped;
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

/* In another PID namespace the name may be that of another process. */
static void board_join(const struct offer *offer)
{
	struct stat file;
	char path[64];
	int descriptor;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", offer->process, offer->descriptor);
	descriptor = open(path, O_RDWR | O_CLOEXEC);
	if (descriptor < 0)
		return;
	if (!fstat(descriptor, &file) && S_ISREG(file.st_mode) &&
	    file.st_size == (off_t)board_bytes() &&
	    fcntl(descriptor, F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		board = board_map(descriptor);
	close(descriptor);
	if (board && board->token != offer->token)
		board_close();
}

bool board_open(void)
{
	struct offer offer = { 0 };
	int descriptor = -1;
	bool good;

	memset(taken, 0, sizeof(taken));
	memset(epochs, 0, sizeof(epochs));
	if (!shim.rank)
		descriptor = board_create(&offer);
	good = !real.Bcast(&offer, sizeof(offer), MPI_BYTE, 0, MPI_COMM_WORLD);
	if (good && shim.rank && offer.process)
		board_join(&offer);
	good = shim_all(board != NULL);
	if (descriptor >= 0)
		close(descriptor);
	if (!good)
		board_close();
	return good;
}

void board_close(void)
{
	if (board)
		munmap(board, board_bytes());
	board = NULL;
}

/* ---- slots -------------------------------------------------------------- */

/* The lowest that is free on all ranks, in an epoch that is new on all. */
bool board_take(struct comm *comm)
{
	uint32_t mine[SLOTS], all[SLOTS];
	int slot;

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

void board_arrive(struct comm *comm)
{
	__atomic_store_n(&board->word[shim.rank][comm->slot], ++comm->arrived, __ATOMIC_RELEASE);
}

bool board_complete(const struct comm *comm)
{
	int i;

	for (i = 0; i < comm->ranks; i++)
		if (__atomic_load_n(&board->word[comm->members[i]][comm->slot],
				    __ATOMIC_ACQUIRE) < comm->arrived)
			return false;
	return true;
}
