// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdlib.h>
#include <string.h>

#include "board.h"
#include "chunk.h"
#include "exec.h"
#include "libcoll/engine/board.h"
#include "libcoll/engine/engine.h"
#include "published.h"
#include "unexpected.h"

enum {
	/* Peers look at the line of `completed` in each run: it is stored in one of so many. */
	COMPLETED_EVERY = 4,
	FIND_EVERY = 16,		/* peers that have no board yet ... */
	FIND_AT_FIRST = 32,		/* ... after so many runs */
};

_Static_assert((int)COLL_POSTED_MAX == (int)COLL_BOARD_BYTES, "costs know what is posted");

/* ---- a plan and its group ------------------------------------------------------- */

/* Of others a rank may read what they send to several; one that sends much itself has no such algorithm. */
bool coll_board_suits(const struct coll_planned *planned)
{
	const struct coll_schedule *s = planned->schedule;
	uint32_t i, sends = 0;

	if (!planned->order || planned->user_op == COLL_OWN_CALL || planned->call.ranks <= COLL_READERS_MIN ||
	    !planned->group->context->engine.arena.shares)
		return false;
	for (i = 0; i < s->ops; i++) {
		if (coll_board_first(planned, i) == i)
			return true;
		sends += coll_ops(s)[i].kind == COLL_OP_SEND;
	}
	return sends <= 1 && planned->short_receives;
}

static struct coll_socket *peer_memory(const struct coll_link *link)
{
	return link->transport->memory ? link->transport->memory(link) : NULL;
}

/*
 * Its board stays where it is until the link closes, and is this group's until then. `hears`: nothing is being
 * received.
 */
static void peer_find(const struct coll_group *group, const struct coll_link *link, bool hears)
{
	struct coll_board_peer *peer = &group->board->peer[link->rank];
	struct coll_socket *socket = peer->reads ? NULL : peer_memory(link);

	if (!socket)
		return;
	if (!peer->board && hears)
		coll_boards_hear(socket);
	if (!peer->board)
		peer->board = coll_boards_of_peer(socket, group->id);
	if (peer->board)
		coll_board_set_found(group->board->shared, link->rank, true);
	peer->reads = peer->board && coll_board_has_found(peer->board, group->rank);
}

void coll_board_find_peers(const struct coll_exec *exec, bool hears)
{
	const struct coll_planned *planned = exec->planned;
	struct coll_group_board *board = exec->group->board;
	uint32_t peer;

	if (!board->eager && exec->number % FIND_EVERY != FIND_EVERY - 1)
		return;
	board->eager -= board->eager > 0;
	for (peer = 0; peer < planned->schedule->peers; peer++)
		peer_find(planned->group, planned->links[peer], hears);
}

static struct coll_group_board *board_make(struct coll_group *group)
{
	struct coll_group_board *board = calloc(1, sizeof(*board) + group->ranks * sizeof(*board->peer));

	if (!board)
		return NULL;
	board->next = group->next_run;
	board->shared = coll_boards_claim(&group->context->engine, group->id, group->next_run);
	if (board->shared)
		return board;
	free(board);
	return NULL;
}

/* False: it may be told later. */
static bool peer_tell(const struct coll_link *link)
{
	struct coll_socket *socket = peer_memory(link);

	return socket ? coll_boards_tell(socket) : link->state != LINK_IDLE && link->state != LINK_CONNECTING;
}

/* Runs under way had no board when they began, so `next_run` is the first that may read entries. */
void coll_board_join(struct coll_planned *planned)
{
	struct coll_group *group = planned->group;
	bool all = true;
	uint32_t peer;

	if (!group->board)
		group->board = board_make(group);
	for (peer = 0; group->board && peer < planned->schedule->peers; peer++)
		all &= peer_tell(planned->links[peer]);
	planned->board_tries = all ? 0 : planned->board_tries - 1;
	if (group->board && all)
		group->board->eager = FIND_AT_FIRST;
}

void coll_board_tell(const struct coll_link *link)
{
	if (link->group->board)
		peer_tell(link);
}

/* ---- posting ------------------------------------------------------------------- */

/* NULL: that rank is told by its ring. */
static const struct coll_board *reader_board(const struct coll_group *group, const struct coll_link *link)
{
	const struct coll_board_peer *peer = &group->board->peer[link->rank];

	return peer->reads && link->state == LINK_UP ? peer->board : NULL;
}

/* Whether that rank reads no entry of the run. Of a connection that broke it is not known. */
static bool has_read(const struct coll_group *group, uint32_t rank, uint32_t run)
{
	const struct coll_link *link = group->links[rank];
	const struct coll_board *board = reader_board(group, link);

	if (link->goodbye || link->state == LINK_LEFT)
		return true;
	return board && (int32_t)(coll_board_completed_runs(board) - run) > 0;
}

static bool all_have_read(const struct coll_group *group, const struct coll_board_entry *entry)
{
	const struct coll_group_board *board = group->board;
	const uint32_t run = entry->sequence - 1;
	uint64_t left;

	if (!entry->sequence || (entry->readers == board->readers && entry->first == board->first &&
				 (int32_t)(board->completed - run) > 0))
		return true;
	for (left = entry->readers; left; left &= left - 1)
		if (!has_read(group, entry->first + __builtin_ctzll(left), run))
			return false;
	return true;
}

/* Of the publication: ranks as bits from the first one on, ops as those of exec->ahead. */
struct board_readers {
	uint32_t first;
	uint64_t ranks, ops;
	const struct coll_board *board[IN_ORDER_MAX];	/* of those ops */
};

/* Who can read an entry of this process. How many. */
static int find_readers(const struct coll_exec *exec, uint32_t first, struct board_readers *readers)
{
	uint64_t left;
	uint32_t op;

	readers->first = COLL_NONE;
	readers->ranks = readers->ops = 0;
	for (op = first; op != COLL_NONE; op = exec->planned->publications[op].next) {
		const struct coll_link *link = coll_exec_link(exec, op);

		readers->board[op] = coll_exec_op(exec, op)->slot == coll_exec_op(exec, first)->slot ?
					     reader_board(exec->group, link) : NULL;
		if (!readers->board[op])
			continue;
		readers->ops |= 1ull << op;
		readers->first = link->rank < readers->first ? link->rank : readers->first;
	}
	for (left = readers->ops; left; left &= left - 1) {
		const uint32_t reader = coll_exec_link(exec, __builtin_ctzll(left))->rank - readers->first;

		if (reader < COLL_BOARD_READERS)
			readers->ranks |= 1ull << reader;
		else
			readers->ops &= ~(left & -left);
	}
	return __builtin_popcountll(readers->ranks);
}

/* Each reader's own bytes. */
static void entry_fill_each(struct coll_board_entry *entry, const struct coll_exec *exec,
			    const struct board_readers *readers)
{
	uint64_t left;

	for (left = readers->ops; left; left &= left - 1) {
		const uint32_t op = __builtin_ctzll(left), rank = coll_exec_link(exec, op)->rank - readers->first;
		const uint64_t before = readers->ranks & ((1ull << rank) - 1), bytes = coll_exec_op(exec, op)->bytes;

		memcpy(entry->data + __builtin_popcountll(before) * bytes,
		       coll_exec_address(exec, coll_exec_op(exec, op)->left), bytes);
	}
}

static void entry_fill(struct coll_board_entry *entry, const struct coll_exec *exec, uint32_t first,
		       const struct board_readers *readers)
{
	const struct coll_op *op = coll_exec_op(exec, first);

	coll_board_entry_give(entry, readers->first, readers->ranks);
	entry->hash = exec->planned->hash;
	entry->slot = op->slot;
	entry->bytes = op->bytes;
	entry->each = exec->planned->publications[first].each;
	if (entry->each)
		entry_fill_each(entry, exec, readers);
	else if (op->bytes)
		memcpy(entry->data, coll_exec_address(exec, op->left), op->bytes);
}

/* Whether that reader has not left the run yet. */
static bool reader_stays(const struct coll_board *board, uint32_t run)
{
	return (int32_t)(coll_board_from(board) - run) <= 0;
}

/* Those that will find it there: the others have their rings. Notes what all have completed. */
static uint64_t readers_told(struct coll_exec *exec, const struct board_readers *readers)
{
	struct coll_group_board *own = exec->group->board;
	uint64_t left, told = 0;

	own->first = readers->first;
	own->readers = readers->ranks;
	own->completed = exec->number;
	for (left = readers->ops; left; left &= left - 1) {
		const struct coll_board *board = readers->board[__builtin_ctzll(left)];
		const uint32_t completed = coll_board_completed_runs(board);

		if ((int32_t)(completed - own->completed) < 0)
			own->completed = completed;
		if (reader_stays(board, exec->number))
			told |= left & -left;
	}
	return told;
}

/* Else it is not worth a write. Those that leave meanwhile are found after that. */
static bool any_stays(const struct coll_exec *exec, const struct board_readers *readers)
{
	uint64_t left;

	for (left = readers->ops; left; left &= left - 1)
		if (reader_stays(readers->board[__builtin_ctzll(left)], exec->number))
			return true;
	return false;
}

uint64_t coll_board_send(struct coll_exec *exec, uint32_t first)
{
	struct coll_group *group = exec->group;
	struct coll_board_entry *entry;
	struct board_readers readers;
	uint64_t told;

	if (coll_exec_op(exec, first)->slot > UINT16_MAX)
		return 0;
	entry = &group->board->shared->entry[exec->number % COLL_BOARD_ENTRIES];
	if (entry->sequence == exec->number + 1ull || !all_have_read(group, entry))
		return 0;
	if (find_readers(exec, first, &readers) < COLL_READERS_MIN || !any_stays(exec, &readers))
		return 0;
	coll_board_clear(entry);
	entry_fill(entry, exec, first, &readers);
	coll_board_post(entry, exec->number);
	if ((int32_t)(exec->number + 1 - group->board->next) > 0)
		group->board->next = exec->number + 1;
	told = readers_told(exec, &readers);
	group->context->counters.published_bytes += told ? coll_exec_op(exec, first)->bytes : 0;
	return told;
}

/* ---- reading ------------------------------------------------------------------- */

/* What that peer has posted for this rank in the run, or NULL. */
static const struct coll_board_entry *posted_by(const struct coll_group *group, const struct coll_link *link,
					       uint32_t number)
{
	const struct coll_board *board = group->board->peer[link->rank].board;
	const struct coll_board_entry *entry = board ? &board->entry[number % COLL_BOARD_ENTRIES] : NULL;

	/* A peer that has left the group gives its board to another one. */
	if (!entry || (link->goodbye && !coll_board_is_of(board, group->id)))
		return NULL;
	return coll_board_entry_is_for(entry, number, group->rank) ? entry : NULL;
}

/* It stays as it is, in an honest peer's board, until this process has completed the run. */
bool coll_board_take(struct coll_exec *exec, uint32_t index)
{
	const struct coll_op *recv = coll_exec_op(exec, index);
	const struct coll_group *group = exec->group;
	const struct coll_board_entry *entry =
		recv->bytes > COLL_BOARD_BYTES ? NULL : posted_by(group, coll_exec_link(exec, index), exec->number);
	const uint8_t *data;

	if (!entry || __atomic_load_n(&entry->slot, __ATOMIC_RELAXED) != recv->slot ||
	    __atomic_load_n(&entry->bytes, __ATOMIC_RELAXED) != recv->bytes ||
	    __atomic_load_n(&entry->hash, __ATOMIC_RELAXED) != exec->planned->hash)
		return false;
	data = coll_board_entry_data(entry, group->rank, recv->bytes);
	if (!data)
		return false;
	coll_exec_store(exec, index, data);
	coll_link_hear(coll_exec_link(exec, index));
	return true;
}

/* As a message that came before its receive. The peer may change all of it meanwhile. */
static void entry_keep(struct coll_link *link, const struct coll_board_entry *entry, uint32_t run)
{
	const uint16_t bytes = __atomic_load_n(&entry->bytes, __ATOMIC_RELAXED);
	const struct coll_header header = {
		.kind = COLL_MESSAGE_DATA,
		.version = COLL_WIRE_VERSION,
		.run = run,
		.slot = __atomic_load_n(&entry->slot, __ATOMIC_RELAXED),
		.hash = __atomic_load_n(&entry->hash, __ATOMIC_RELAXED),
		.bytes = bytes,
	};
	const uint8_t *data = coll_board_entry_data(entry, link->group->rank, bytes);
	struct coll_unexpected *kept;

	if (!data || coll_unexpected_find(link, run, header.slot))
		return;
	kept = coll_chunk_keep(link, &header);
	if (!kept)
		return;
	memcpy(kept->data, data, bytes);
	kept->got = bytes;
	kept->complete = true;
}

/* The op, if the schedule has such a receive; else COLL_NONE. */
static uint32_t receive_of(const struct coll_exec *exec, uint32_t peer, uint32_t slot)
{
	const struct coll_plan *plan = &exec->planned->plan;
	const uint32_t receives = plan->first_recv[peer + 1] - plan->first_recv[peer];

	return slot < receives ? plan->recv[plan->first_recv[peer] + slot] : COLL_NONE;
}

/* Nothing has come for it, nor begun to come. */
static bool is_awaited(const struct coll_exec *exec, const struct coll_link *link, uint32_t op)
{
	return !coll_exec_is_ahead(exec, op) && !exec->arrived[op] && !exec->got[op] &&
	       !(link->exec == exec && link->op == op);
}

uint32_t coll_board_keep_posted(const struct coll_exec *exec, uint32_t peer)
{
	struct coll_link *link = exec->planned->links[peer];
	const struct coll_board_entry *entry = posted_by(exec->group, link, exec->number);
	const uint32_t slot = entry ? __atomic_load_n(&entry->slot, __ATOMIC_RELAXED) : 0;
	const uint32_t op = entry ? receive_of(exec, peer, slot) : COLL_NONE;

	if (!entry || (op != COLL_NONE && !is_awaited(exec, link, op)))
		return COLL_NONE;
	entry_keep(link, entry, exec->number);
	return coll_unexpected_find(link, exec->number, slot) ? op : COLL_NONE;
}

/* A message comes where this process reads, of a group that lives. */
bool coll_board_take_awaited(struct coll_exec *exec, uint32_t op)
{
	const struct coll_group *group = exec->group;

	return group->state == GROUP_OK && !group->freed && is_awaited(exec, coll_exec_link(exec, op), op) &&
	       coll_board_take(exec, op);
}

/* The oldest run that may read entries yet; NULL: no active one does. */
static const struct coll_exec *oldest_reader(const struct coll_group *group)
{
	const struct coll_exec *exec = group->active;

	while (exec && !exec->reads_boards)
		exec = exec->next;
	return exec;
}

void coll_board_tell_completed(const struct coll_group *group)
{
	const struct coll_exec *oldest = oldest_reader(group);

	if (group->freed)		/* it has said that it reads none any more */
		return;
	coll_board_completed(group->board->shared, oldest ? oldest->number : group->next_run);
}

void coll_board_read(struct coll_exec *exec)
{
	exec->reads_boards = true;
	exec->group->context->board_readers++;
}

void coll_board_read_no_more(struct coll_exec *exec)
{
	exec->group->context->board_readers -= exec->reads_boards;
	exec->reads_boards = false;
	if (exec->number % COMPLETED_EVERY == COMPLETED_EVERY - 1)
		coll_board_tell_completed(exec->group);
}

void coll_board_end(struct coll_exec *exec)
{
	coll_board_read_no_more(exec);
	coll_board_find_peers(exec, true);
}

bool coll_board_has_brought(const struct coll_exec *exec, const struct coll_link *link,
			    const struct coll_header *header)
{
	uint32_t peer, op;

	if (!exec->group->board || header->offset || header->bytes > COLL_BOARD_BYTES)
		return false;
	peer = coll_peer_find(exec->planned->schedule, link->rank);
	op = peer == COLL_NONE ? COLL_NONE : receive_of(exec, peer, header->slot);
	if (op == COLL_NONE || header->bytes != coll_exec_op(exec, op)->bytes)
		return false;
	return exec->arrived[op] || coll_unexpected_find(link, header->run, header->slot);
}

/* What is there for runs under way, whose receives start later: those that have started found it. */
static void keep_for_readers(struct coll_link *link)
{
	const struct coll_exec *exec;

	for (exec = link->group->active; exec; exec = exec->next) {
		const uint32_t peer = exec->reads_boards ? coll_peer_find(exec->planned->schedule, link->rank) :
							   COLL_NONE;

		if (peer != COLL_NONE)
			coll_board_keep_posted(exec, peer);
	}
}

void coll_board_keep(struct coll_link *link)
{
	struct coll_group *group = link->group;
	const struct coll_board *board;
	uint32_t place;

	if (!group->board || link->number)
		return;
	peer_find(group, link, false);
	coll_board_set_found(group->board->shared, link->rank, false);
	board = group->board->peer[link->rank].board;
	if (board && group->state == GROUP_OK && !group->freed)
		keep_for_readers(link);
	for (place = 0; board && place < COLL_BOARD_ENTRIES && group->state == GROUP_OK && !group->freed; place++) {
		const uint32_t run = coll_board_entry_run(&board->entry[place]);
		const struct coll_board_entry *entry = posted_by(group, link, run);

		if (entry && (int32_t)(run - group->next_run) >= 0)
			entry_keep(link, entry, run);
	}
	group->board->peer[link->rank] = (struct coll_board_peer){ .board = NULL };
}

/* ---- a group's end ------------------------------------------------------------------ */

void coll_board_forget(struct coll_group *group)
{
	uint32_t place;

	if (!group->board)
		return;
	/* Nor what was left 2^31 runs ago for what comes. */
	coll_board_leave_run(group->board->shared, group->next_run - 1);
	for (place = 0; place < COLL_BOARD_ENTRIES; place++)
		if (all_have_read(group, &group->board->shared->entry[place]))
			coll_board_clear(&group->board->shared->entry[place]);
}

void coll_board_rest(struct coll_group *group)
{
	if (group->board && (!group->active || group->freed))
		coll_board_completed(group->board->shared, group->next_run + (group->freed ? INT32_MAX / 2 : 0));
}

void coll_board_free(struct coll_group *group)
{
	if (group->board)
		coll_boards_give_back(&group->context->engine, group->board->shared, group->board->next);
	free(group->board);
	group->board = NULL;
}
