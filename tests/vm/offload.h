/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Using /dev/coll from a test: commands by ioctl or io_uring, ranks as
 * processes that are connected with each other.
 */
#ifndef TESTS_VM_OFFLOAD_H
#define TESTS_VM_OFFLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "uapi/coll_device.h"
#include "uapi/coll_schedule.h"

enum { OFFLOAD_RANKS_MAX = 8, OFFLOAD_WORDS = 64 };

struct offload {
	int fd;
	int group;
	uint32_t rank, ranks;
	uint32_t next_run;
	int links[OFFLOAD_RANKS_MAX];	/* sockets to the others; -1 at our own place */
	struct coll_device_shared *shared;
};

/* Whether links are lent so that the two of a connection pair: at first they are. */
extern bool offload_pairs;

/* One command by ioctl: its result, or a negative errno. */
long offload_do(int fd, unsigned int op, void *argument, uint32_t bytes);

/* Connected TCP sockets of each rank to each other one, made before the ranks are. */
void offload_connect(int links[OFFLOAD_RANKS_MAX][OFFLOAD_RANKS_MAX], uint32_t ranks);

/* Opens and sets up the device, makes a group of it and lends it the links. 0 or -errno. */
int coll_offload_open(struct offload *o, uint32_t rank, uint32_t ranks, const int *links);
/* The same with the thread on this CPU. */
int offload_open_on(struct offload *o, uint32_t rank, uint32_t ranks, const int *links,
		    uint32_t cpu);
/*
 * Opens the device as rank 0 of 2, with so many words and no link, the thread on this CPU or, by
 * COLL_NONE, on any. 0 or -ENODEV.
 */
int offload_open_alone(struct offload *o, uint32_t words, uint64_t spin, uint32_t cpu);
/* Says goodbye first, so that the others' runs do not fail. */
void coll_offload_close(struct offload *o);

/* A schedule's number, or -errno. */
long offload_load(struct offload *o, const struct coll_schedule *s, uint32_t hash);
/* The same with marks, as coll_device_load has them. */
long offload_load_fused(struct offload *o, const struct coll_schedule *s, uint32_t hash,
			const uint32_t *fused);

/* Starts a run quietly; 0 or -errno. */
long offload_run(struct offload *o, long schedule, const void *in, void *out, uint32_t word,
		 uint64_t deadline);

/* Polls the word, at most so many seconds: its status, or -ETIME. */
int offload_poll(struct offload *o, uint32_t word, int seconds);
/*
 * So many runs of a copy of 1 KB with the hash 0xabc, one after the other with so long between: 0,
 * or not all ended.
 */
int offload_copies(struct offload *o, int runs, unsigned int pause_ms);
/* Sleeps until the word is set: its status. */
long offload_wait(struct offload *o, uint32_t word);
/*
 * The thread of a file of our own reduces for so long without a pause, until the run's deadline:
 * 0, or which step failed.
 */
int offload_compute(unsigned int ms);

/* False: the peer takes no more. */
bool offload_send_all(int fd, const void *from, size_t bytes);

/* Starts `body` as each rank, in processes of their own that live so many seconds at most. */
void coll_offload_start(uint32_t ranks,
			int (*body)(uint32_t rank, uint32_t ranks, const int *links), int seconds,
			pid_t *children);
/* Runs `body` as each rank, in processes of their own; how many failed. */
int offload_ranks(uint32_t ranks, int (*body)(uint32_t rank, uint32_t ranks, const int *links),
		  int seconds);

uint64_t offload_now(void);

#endif
