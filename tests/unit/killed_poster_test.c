// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A process that posts on its board (libcoll/exec/board.h) is killed after each instruction that changes it, and one
 * before. Readers have the message of its run whole, or none, and that of the run before; and one that may be told by
 * no board any more is known from the first store on that says so.
 * COLL_TEST_LITTLE=1: at every seventh of these places.
 */
#include <stdlib.h>
#include <string.h>

#include "board_world.h"
#include "traced.h"

enum { STOPS_MAX = 400, RUN = 2 + COLL_BOARD_ENTRIES };	/* its entry has had a message before */

/* What peers see of it. */
static struct coll_board before;

static void posts(void)
{
	struct coll_exec *exec = coll_in_order_begin(one_shot, w.in, w.out);

	if (!exec || !coll_in_order_execute(exec))
		_exit(1);
}

/* It posts, waits in vain, and leaves. */
static void leaves(void)
{
	struct coll_run run = { .group = w.group, .local = true };
	struct coll_exec *exec = coll_in_order_begin(one_shot, w.in, w.out);

	if (!exec || coll_in_order_execute(exec))
		_exit(1);
	coll_exec_adopt(&run, exec);
}

static void assert_whole(uint32_t run, uint8_t value)
{
	const struct coll_board_entry *entry = entry_of(0, run);
	uint32_t rank, i;

	for (rank = 1; rank < RANKS; rank++)
		assert_true(coll_board_entry_is_for(entry, run, rank));
	assert_int_equal(entry->bytes, BYTES);
	assert_int_equal(entry->slot, 0);
	assert_int_equal(entry->hash, HASH);
	for (i = 0; i < BYTES; i++)
		assert_int_equal(entry->data[i], value);
}

/* Whatever the reader looks at, and whenever. */
static void reader_looks(bool leaves_run)
{
	const struct coll_board_entry *entry = entry_of(0, RUN);

	if (coll_board_entry_is_of(entry, RUN))
		assert_whole(RUN, 9);
	else if (coll_board_entry_is_of(entry, RUN - COLL_BOARD_ENTRIES))
		assert_whole(RUN - COLL_BOARD_ENTRIES, 7);
	else
		assert_int_equal(entry->sequence, 0);
	assert_whole(RUN - 1, 7);
	assert_true(coll_board_from(board_of(0)) == 2 || (leaves_run && coll_board_from(board_of(0)) == RUN + 1));
	/* It has completed nothing that it may read yet. */
	if (coll_board_from(board_of(0)) == 2)
		assert_true(coll_board_completed_runs(board_of(0)) <= RUN);
}

static pid_t start(void (*work)(void))
{
	const pid_t child = fork();

	if (!child)
		traced_do(work);
	traced_begins(child);
	return child;
}

/* After which instructions the board is another. */
static int stops_find(void (*work)(void), int *stops)
{
	const pid_t child = start(work);
	int count = 0, steps;

	for (steps = 1; traced_step(child); steps++) {
		if (memcmp(&before, board_of(0), sizeof(before)) && count < STOPS_MAX)
			stops[count++] = steps;
		before = *board_of(0);
		if (count && stops[count - 1] == steps)
			reader_looks(work == leaves);
	}
	assert_whole(RUN, 9);
	traced_kill(child);
	return count;
}

static void killed_on_its_way(void (*work)(void))
{
	static struct coll_board first;
	const int every = getenv("COLL_TEST_LITTLE") ? 7 : 1;	/* odd: before and after by turns */
	int stops[STOPS_MAX], count, steps, i;
	uint32_t run;

#ifndef __x86_64__
	skip();		/* an exclusive load and its store, a step each, never come to an end */
#endif
	meet();
	for (run = 2; run < RUN; run++)
		call_by_boards(run);
	both_have_completed(RUN);
	if (work == posts)
		both_post(RUN);
	memset(w.in, 9, sizeof(w.in));
	w.context.engine.now = w.context.polled_at = coll_now() + 60 * COLL_SECOND;	/* however long it takes */
	first = before = *board_of(0);
	count = stops_find(work, stops);
	assert_in_range(count, 3, STOPS_MAX - 1);
	for (i = 0; i < 2 * count; i += every) {
		pid_t child;

		*board_of(0) = first;
		child = start(work);
		for (steps = stops[i / 2] - i % 2; steps > 0 && traced_step(child); steps--)
			;
		traced_kill(child);
		reader_looks(work == leaves);
	}
	print_message("# killed at %d of %d places\n", (2 * count + every - 1) / every, 2 * count);
	*board_of(0) = first;
}

static void it_posts(void **state)
{
	(void)state;
	killed_on_its_way(posts);
}

static void it_posts_and_leaves(void **state)
{
	(void)state;
	killed_on_its_way(leaves);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_posts, boards_begin, boards_end),
		cmocka_unit_test_setup_teardown(it_posts_and_leaves, boards_begin, boards_end),
	};

	(void)argc;
	traced_copies_by_registers(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
