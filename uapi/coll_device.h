/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * /dev/coll: collectives that the kernel carries on by itself.
 *
 * A process opens the device, sets it up once, makes groups, lends them its
 * connected sockets, loads schedules and runs them. All of it hangs on the open
 * file: when its opener closes it, or ends, its runs end with -ECANCELED and
 * everything is given back. A child that inherited the file may not use it.
 *
 * Each command is an IORING_OP_URING_CMD whose cmd_op is one of enum
 * coll_device_op and whose 16 bytes of command are a struct coll_device_command;
 * or, where io_uring is forbidden, ioctl(2) with the same number and a pointer
 * to the same struct. The result is a negative errno or what stands at the
 * command. Structs only grow at their ends; padding and unknown flags must be 0.
 *
 * Three ways to hear of a run's end, for a completion must not be noise itself:
 *  - it sets a word in memory that the device shares (mmap offset 0): a program
 *    that looks in from time to time needs no interrupt and no system call;
 *  - COLL_DEVICE_WAIT's completion comes when the word is set: for who sleeps;
 *  - the file polls readable while `ended` in that memory differs from `seen`:
 *    for who sleeps and waits for other things as well.
 * A RUN without COLL_DEVICE_QUIET completes at the run's end itself.
 */
#ifndef COLL_DEVICE_H
#define COLL_DEVICE_H

#include <linux/ioctl.h>
#include <linux/types.h>
#include "coll_wire.h"

enum { COLL_DEVICE_VERSION = 1 };

struct coll_device_command {
	__u64 argument;		/* address of the command's struct */
	__u32 bytes;		/* its size */
	__u32 zero;
};

#define COLL_DEVICE_OP(number)	_IOW('C', number, struct coll_device_command)

enum coll_device_op {
	/* coll_device_setup: once, before all else. 0. */
	COLL_DEVICE_SETUP = COLL_DEVICE_OP(1),
	/* coll_device_buffer: pins memory for many runs. Its number. */
	COLL_DEVICE_BUFFER = COLL_DEVICE_OP(2),
	/* coll_device_number: of a buffer; runs that use it keep it. 0. */
	COLL_DEVICE_BUFFER_FREE = COLL_DEVICE_OP(3),
	/* coll_device_group. Its number. */
	COLL_DEVICE_GROUP = COLL_DEVICE_OP(4),
	/* coll_device_number: of a group. Its runs end with -ECANCELED. 0. */
	COLL_DEVICE_GROUP_FREE = COLL_DEVICE_OP(5),
	/* coll_device_link: lends the group a socket; nobody else reads or writes it. 0. */
	COLL_DEVICE_LINK = COLL_DEVICE_OP(6),
	/*
	 * coll_device_link: takes it back, with the bytes that came and that no run
	 * has used. How many; if that is more than there is room for, nothing was
	 * done. -EBUSY: a run is under way, or a message to the peer.
	 */
	COLL_DEVICE_UNLINK = COLL_DEVICE_OP(15),
	/* coll_device_load: checks a schedule and keeps it. Its number. */
	COLL_DEVICE_LOAD = COLL_DEVICE_OP(7),
	/* coll_device_number: of a schedule; runs that use it keep it. 0. */
	COLL_DEVICE_UNLOAD = COLL_DEVICE_OP(8),
	/* coll_device_run. 0, or with COLL_DEVICE_QUIET 0 once it has begun. */
	COLL_DEVICE_RUN = COLL_DEVICE_OP(9),
	/* coll_device_deadline: of a run that is under way. 0; -ENOENT: it is not. */
	COLL_DEVICE_DEADLINE = COLL_DEVICE_OP(16),
	/* coll_device_number: of a completion word, when it is set. 0. */
	COLL_DEVICE_WAIT = COLL_DEVICE_OP(10),
	/* coll_device_fail: ends a group's runs and tells its peers why. 0. */
	COLL_DEVICE_FAIL = COLL_DEVICE_OP(11),
	/* coll_device_control: sends a message without payload to a peer. 0. */
	COLL_DEVICE_CONTROL_SEND = COLL_DEVICE_OP(12),
	/* coll_device_control: the oldest such message that came. 0 or -EAGAIN. */
	COLL_DEVICE_CONTROL_GET = COLL_DEVICE_OP(13),
	/* coll_device_counters. 0. */
	COLL_DEVICE_COUNTERS = COLL_DEVICE_OP(14),
};

enum coll_device_limits {
	COLL_DEVICE_WORDS_MAX = 1 << 16,
	COLL_DEVICE_NUMBERS_MAX = 1 << 16,	/* groups, schedules, buffers: each */
	COLL_DEVICE_SPIN_MAX = 1000000,		/* ns */
};

enum coll_device_policy {
	COLL_DEVICE_NORMAL,	/* `priority` is a nice value, -20 … 19 */
	COLL_DEVICE_FIFO,	/* `priority` is 1 … 99; needs CAP_SYS_NICE, as nice < 0 does */
};

struct coll_device_setup {
	__u32 version;
	__u32 words;		/* completion words in the shared memory */
	/*
	 * Where the kernel thread runs: a CPU that the caller may use itself or,
	 * with CAP_SYS_NICE, any; COLL_NONE: wherever the caller may.
	 */
	__u32 cpu;
	__u32 policy;
	__s32 priority;
	__u32 spin;		/* ns it goes on looking before it sleeps */
};

struct coll_device_number {
	__u32 number;
	__u32 zero;
};

struct coll_device_buffer {
	__u64 address;
	__u64 bytes;
	__u32 writable;		/* 0 or 1 */
	__u32 zero;
};

struct coll_device_group {
	__u32 rank, ranks;
	__u32 next_run;		/* number of the first run to come */
	__u32 zero;
	__u64 early_bytes;	/* room for messages that come before their run */
};

struct coll_device_link {
	__u32 group, rank;	/* the peer's rank */
	__s32 fd;		/* a connected TCP socket, past its hello; UNLINK: -1 */
	__u32 zero;
	/*
	 * Bytes of the stream that have left the socket and that nobody has used:
	 * LINK takes them as the first that come, UNLINK gives them back.
	 */
	__u64 address;
	__u64 bytes;
};

struct coll_device_refusal {
	__u32 op;
	char reason[124];
};

struct coll_device_load {
	__u32 group;
	__u32 hash;		/* travels in each header: equal on all ranks */
	__u64 schedule;		/* address */
	__u64 bytes;
	__u64 refusal;		/* address of a coll_device_refusal to fill, or 0 */
};

enum coll_device_run_flags {
	COLL_DEVICE_QUIET = 1 << 0,	/* complete at start; the word tells the end */
};

/* Memory of a run: a pinned buffer, or an address to pin for this run alone. */
struct coll_device_place {
	__u64 address;		/* or offset in the buffer */
	__u32 buffer;		/* COLL_NONE: it is an address */
	__u32 zero;
};

struct coll_device_run {
	__u32 schedule;
	__u32 number;		/* of the run: more than the last of its group */
	__u32 word;		/* which completion word; free again once it is set */
	__u32 flags;
	struct coll_device_place in, out;
	__u64 deadline;		/* CLOCK_MONOTONIC, ns; 0: 60 s from now */
};

struct coll_device_deadline {
	__u32 group;
	__u32 number;		/* of the run */
	__u64 deadline;		/* as in coll_device_run */
};

struct coll_device_fail {
	__u32 group;
	__u32 error;		/* positive errno */
	__u32 failed_rank;		/* rank, or COLL_NONE */
	__u32 reporter;
};

struct coll_device_control {
	__u32 group, rank;
	struct coll_header header;
};

struct coll_device_counters {
	__u64 runs, ops, sends, recvs, early, late;
	__u64 sent_bytes, recv_bytes;
	__u64 turns;		/* of the thread, from waking to sleeping */
	__u64 sleeps;
	__u64 busy;		/* ns of CPU that it has used */
};

/* ---- shared memory ----------------------------------------------------------- */

enum { COLL_DEVICE_RUNNING = 1, COLL_DEVICE_DONE = 2 };

/* `state` is stored last, with release: who reads DONE may read the rest. */
struct coll_device_word {
	__u32 state;		/* 0: never used */
	__s32 status;		/* 0 or a negative errno */
	__u32 failed_rank, reporter;	/* ranks, or COLL_NONE */
};

struct coll_device_shared {
	__u32 control;		/* messages that wait for CONTROL_GET */
	__u32 ended;		/* runs so far, counted after their words are set */
	__u32 seen;		/* the program's: up to where it has looked */
	__u32 zero;
	struct coll_device_word word[];
};

#endif
