// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "board.h"
#include "memory.h"
#include "memory_parts.h"

/* A page's multiple, whatever the page, and the boards fill it. */
enum { AREA_BYTES = 64 << 10 };

_Static_assert(COLL_BOARDS * sizeof(struct coll_board) <= AREA_BYTES, "boards fit");

/* ---- this process' ----------------------------------------------------------- */

/* Tags are as good as random, but for a few. */
uint32_t coll_boards_index(uint64_t tag)
{
	return (uint32_t)(tag * 0x9e3779b97f4a7c15ull >> 32) % COLL_BOARDS;
}

static bool area_make(struct coll_engine *engine)
{
	struct coll_boards *boards = &engine->boards;

	if (!boards->tried && engine->exposes && !engine->short_io)
		coll_shared_region_take(&engine->arena, &boards->region, AREA_BYTES);
	boards->tried = true;
	return boards->region.base;
}

/* Its group is no more, and the peers that had a board for it read no entry of this one. */
static bool board_is_read(const struct coll_engine *engine, uint32_t index)
{
	const uint64_t tag = ((const struct coll_board *)engine->boards.region.base)[index].head.tag;
	const struct coll_memory *memory;
	const struct coll_board *reader;

	if (!engine->boards.own[index].left || engine->boards.own[index].ended != engine->boards.ended)
		return false;
	for (memory = engine->memories; memory; memory = memory->next) {
		reader = coll_boards_of_peer(memory->socket, tag);
		if (reader && (int32_t)(coll_board_completed_runs(reader) - engine->boards.own[index].run) < 0)
			return false;
	}
	return true;
}

/* COLL_BOARDS: none. */
static uint32_t board_free(const struct coll_engine *engine, uint64_t tag)
{
	const struct coll_board *boards = (const struct coll_board *)engine->boards.region.base;
	uint32_t i;

	for (i = 0; i < COLL_BOARDS; i++) {
		const uint32_t index = (coll_boards_index(tag) + i) % COLL_BOARDS;

		if (!boards[index].head.claimed || board_is_read(engine, index))
			return index;
	}
	return COLL_BOARDS;
}

struct coll_board *coll_boards_claim(struct coll_engine *engine, uint64_t tag, uint32_t run)
{
	const uint32_t index = area_make(engine) ? board_free(engine, tag) : COLL_BOARDS;
	struct coll_board *board;
	uint32_t i;

	if (index == COLL_BOARDS)
		return NULL;
	board = (struct coll_board *)engine->boards.region.base + index;
	engine->boards.own[index].left = false;
	engine->boards.own[index].ended = engine->boards.ended;
	__atomic_store_n(&board->head.claimed, 0, __ATOMIC_RELEASE);
	for (i = 0; i < COLL_BOARD_ENTRIES; i++)
		coll_board_clear(&board->entry[i]);
	__atomic_store_n(&board->head.from, run, __ATOMIC_RELAXED);
	__atomic_store_n(&board->head.completed, run, __ATOMIC_RELAXED);
	for (i = 0; i < COLL_BOARD_FINDERS / 64; i++)
		__atomic_store_n(&board->head.found[i], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&board->head.tag, tag, __ATOMIC_RELEASE);
	__atomic_store_n(&board->head.claimed, 1, __ATOMIC_RELEASE);
	return board;
}

void coll_boards_give_back(struct coll_engine *engine, struct coll_board *board, uint32_t run)
{
	const uint32_t index = board - (struct coll_board *)engine->boards.region.base;

	engine->boards.own[index].left = true;
	engine->boards.own[index].run = run;
}

bool coll_boards_tell(struct coll_socket *socket)
{
	struct coll_memory *memory = socket->memory;

	if (memory->boards_told || memory->ended)
		return true;
	if (!coll_exposed_maps(&memory->exposed_out))
		return false;
	memory->boards_told = coll_memory_announce(memory, COLL_REGION_HAS_BOARDS, &socket->engine->boards.region);
	if (memory->boards_told)
		__atomic_store_n(&memory->out.shared->writer.posts, 1, __ATOMIC_RELEASE);
	return memory->boards_told;
}

static bool awaits_boards(const struct coll_memory *memory)
{
	return !memory->regions.boards_told;
}

/* What was announced before the flag is in the socket: one time is enough, whatever the peer says. */
void coll_boards_hear(struct coll_socket *socket)
{
	struct coll_memory *memory = socket->memory;

	if (memory->boards_awaited || memory->held || !socket->engine->exposes ||
	    !__atomic_load_n(&memory->in.shared->writer.posts, __ATOMIC_ACQUIRE))
		return;
	memory->boards_awaited = true;
	coll_memory_listen_while(memory, awaits_boards);
}

void coll_board_clear(struct coll_board_entry *entry)
{
	__atomic_store_n(&entry->sequence, 0, __ATOMIC_RELAXED);
}

void coll_board_post(struct coll_board_entry *entry, uint32_t run)
{
	__atomic_store_n(&entry->sequence, run + 1ull, __ATOMIC_RELEASE);
	coll_processor_barrier();
}

void coll_board_leave_run(struct coll_board *board, uint32_t from)
{
	__atomic_store_n(&board->head.from, from, __ATOMIC_RELEASE);
	coll_processor_barrier();
}

void coll_board_set_found(struct coll_board *board, uint32_t rank, bool found)
{
	uint64_t *word = &board->head.found[rank / 64];
	const uint64_t bit = 1ull << rank % 64;

	if (rank < COLL_BOARD_FINDERS && coll_board_has_found(board, rank) != found)
		__atomic_store_n(word, *word ^ bit, __ATOMIC_RELEASE);
}

void coll_board_completed(struct coll_board *board, uint32_t run)
{
	__atomic_store_n(&board->head.completed, run, __ATOMIC_RELEASE);
}

/* ---- a peer's ------------------------------------------------------------------ */

bool coll_board_is_of(const struct coll_board *board, uint64_t tag)
{
	return __atomic_load_n(&board->head.claimed, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&board->head.tag, __ATOMIC_ACQUIRE) == tag;
}

const struct coll_board *coll_boards_of_peer(const struct coll_socket *socket, uint64_t tag)
{
	const struct coll_region *region = &socket->memory->regions.boards;
	uint32_t i;

	if (!region->base || region->bytes < AREA_BYTES)
		return NULL;
	for (i = 0; i < COLL_BOARDS; i++) {
		const uint32_t index = (coll_boards_index(tag) + i) % COLL_BOARDS;
		const struct coll_board *board = (const struct coll_board *)region->base + index;

		if (coll_board_is_of(board, tag))
			return board;
	}
	return NULL;
}
