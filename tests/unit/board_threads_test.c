// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Boards (libcoll/engine/board.h) of threads in place of processes: each posts for the others in each run, with a ring
 * of one flag a run beside, and reads what they post; but for one that reads nothing, and is ahead until its entries run
 * out. Who looks in vain for a while leaves, as one that sleeps. Every message comes, whole and in its run;
 * ThreadSanitizer sees whether who writes an entry again has waited for all that read it.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/base/clock.h"
#include "libcoll/engine/board.h"

enum { THREADS = 3, RUNS = 20000, BYTES = 64, AHEAD = 12, LATE_S = 20 };

/* Of which runs there is a message by ring. */
static bool ring[THREADS][THREADS][RUNS];
static struct coll_board board[THREADS];

struct player {
	pthread_t thread;
	uint32_t rank, random;
	uint32_t posted, left, twice;	/* runs that it posted; that it left; messages that came both ways */
	const char *failed;
};

static bool over;			/* one has failed */

static void player_fails(struct player *player, const char *why)
{
	player->failed = why;
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
}

static uint8_t value_of(uint32_t rank, uint32_t run)
{
	return run * 31 + rank * 7;
}

static uint32_t others_of(uint32_t rank)
{
	return ((1u << THREADS) - 1) & ~(1u << rank);
}

/* As what is posted on it is free: all others have completed the run that it had. */
static bool may_post(const struct player *player, const struct coll_board_entry *entry)
{
	const uint32_t run = coll_board_entry_run(entry);
	uint32_t i;

	for (i = 0; entry->sequence && i < THREADS; i++)
		if (i != player->rank && (int32_t)(coll_board_completed_runs(&board[i]) - run) <= 0)
			return false;
	return true;
}

static void send(struct player *player, uint32_t run)
{
	struct coll_board_entry *entry = &board[player->rank].entry[run % COLL_BOARD_ENTRIES];
	const bool posts = may_post(player, entry);
	uint32_t i;

	if (posts) {
		coll_board_clear(entry);
		coll_board_entry_give(entry, 0, others_of(player->rank));
		entry->hash = run;
		entry->bytes = BYTES;
		memset(entry->data, value_of(player->rank, run), BYTES);
		coll_board_post(entry, run);
		player->posted++;
	}
	for (i = 0; i < THREADS; i++)
		if (i != player->rank && (!posts || (int32_t)(coll_board_from(&board[i]) - run) > 0))
			__atomic_store_n(&ring[player->rank][i][run], true, __ATOMIC_SEQ_CST);
}

/* Whether it is there; what is in it is looked at. */
static bool posted(struct player *player, uint32_t from, uint32_t run)
{
	const struct coll_board_entry *entry = &board[from].entry[run % COLL_BOARD_ENTRIES];
	const uint8_t *data;
	uint32_t i;

	if (!coll_board_entry_is_for(entry, run, player->rank))
		return false;
	data = coll_board_entry_data(entry, player->rank, BYTES);
	if (entry->hash != run || entry->bytes != BYTES || !data)
		player_fails(player, "an entry is of another run");
	for (i = 0; data && i < BYTES; i++)
		if (data[i] != value_of(from, run))
			player_fails(player, "an entry has other bytes");
	return true;
}

static bool came_by_ring(const struct player *player, uint32_t from, uint32_t run)
{
	return __atomic_load_n(&ring[from][player->rank][run], __ATOMIC_ACQUIRE);
}

/* Some look for long, some hardly. */
static uint32_t looks_of(struct player *player)
{
	player->random = player->random * 1103515245 + 12345;
	return (player->random >> 16) % 8 ? 2000 : (player->random >> 20) % 4;
}

/* Of all others. Each that has come is a bit. */
static void receive(struct player *player, uint32_t run)
{
	const uint64_t until = coll_now() + LATE_S * COLL_SECOND;
	uint32_t looks = looks_of(player), came = 0, i;
	bool left = false, last = false;

	while (came != others_of(player->rank) && !__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		for (i = 0; i < THREADS; i++)
			if (i != player->rank && !(came >> i & 1) &&
			    (came_by_ring(player, i, run) || ((!left || last) && posted(player, i, run))))
				came |= 1u << i;
		last = false;
		if (!left && !looks--) {
			coll_board_leave_run(&board[player->rank], run + 1);
			left = last = true;
			player->left++;
			continue;
		}
		sched_yield();
		if (left && coll_now() > until)
			player_fails(player, "a message has not come");
	}
	for (i = 0; left && i < THREADS; i++)
		player->twice += i != player->rank && came_by_ring(player, i, run) && posted(player, i, run);
}

/* More would be all by rings. */
static void wait_for_others(uint32_t run)
{
	uint32_t i;

	for (i = 1; i < THREADS; i++)
		while ((int32_t)(run - coll_board_completed_runs(&board[i])) > AHEAD &&
		       !__atomic_load_n(&over, __ATOMIC_RELAXED))
			sched_yield();
}

static void *play(void *argument)
{
	struct player *player = argument;
	uint32_t run;

	for (run = 0; run < RUNS && !__atomic_load_n(&over, __ATOMIC_RELAXED); run++) {
		send(player, run);
		if (player->rank)
			receive(player, run);
		else
			wait_for_others(run);
		if (run % 4 == 3)
			coll_board_completed(&board[player->rank], run + 1);
	}
	return NULL;
}

static void every_message_comes(void **state)
{
	static struct player players[THREADS];
	uint32_t i;

	(void)state;
	for (i = 0; i < THREADS; i++) {
		players[i] = (struct player){ .rank = i, .random = i + 1 };
		assert_int_equal(pthread_create(&players[i].thread, NULL, play, &players[i]), 0);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(players[i].thread, NULL);
	for (i = 0; i < THREADS; i++) {
		if (players[i].failed)
			fail_msg("thread %u: %s", i, players[i].failed);
		print_message("# thread %u: %u posted, %u left, %u came twice\n", i, players[i].posted, players[i].left,
			      players[i].twice);
		assert_in_range(players[i].posted, RUNS / 50, i ? RUNS : RUNS - 1);
		assert_in_range(players[i].left, i ? 1 : 0, i ? RUNS : 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
