/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The world of exec_world.h with boards (libcoll/engine/board.h): this process, rank 0, and two peers, whose boards
 * it has mapped; a test writes there as they would.
 */
#ifndef TESTS_UNIT_BOARD_WORLD_H
#define TESTS_UNIT_BOARD_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "exec_world.h"
#include "libcoll/base/clock.h"
#include "libcoll/engine/board.h"
#include "libcoll/engine/memory_parts.h"
#include "libcoll/exec/board.h"
#include "libcoll/exec/in_order.h"
#include "libcoll/exec/poll.h"
#include "libcoll/exec/receive.h"
#include "libcoll/exec/unexpected.h"

enum { GROUP = 0, BYTES = 24, AREA = 64 << 10 };

/* Of this process, and of the two peers as it has them mapped. */
extern struct coll_board (*area)[COLL_BOARDS];
extern struct coll_ring_shared ring[RANKS];
extern struct coll_memory memory[RANKS];
extern struct coll_socket sockets[RANKS];
/* Rank 0 sends the same to both, and receives from both. */
extern struct coll_planned *one_shot;
/* A run of it that has not begun. */
struct coll_run run_of_one_shot(void);

/* Set-up and tear-down of a test. The plan has run once, by rings, as run 0; it is the group's latest. */
int boards_begin(void **state);
int boards_end(void **state);
/* The group has its board, and knows those of the others; run 1 is over. */
void meet(void);

struct coll_board *board_of(uint32_t rank);
struct coll_board_entry *entry_of(uint32_t rank, uint32_t run);
/* The peer has posted its message of the run, for rank 0 and the other peer. */
void peer_posts(uint32_t rank, uint32_t run, uint8_t value);
void both_post(uint32_t run);
void both_have_completed(uint32_t run);

/* A call that begins in order. */
struct coll_exec *call(void);
void assert_got(uint8_t first, uint8_t second);
/* A call that needs no ring, as run number `run`. */
void call_by_boards(uint32_t run);
/* The engine goes on with a call, from its ops that are done on; its messages by rings come as said. */
void engine_goes_on(struct coll_exec *exec, bool again, uint32_t kept);

#endif
