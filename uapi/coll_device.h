/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * /dev/coll: collectives that the kernel executes by itself.
 *
 * A process opens the device, sets it up once, makes groups, attaches its
 * connected sockets to them, loads schedules and runs them. Everything belongs
 * to the open file: when the opener closes it or exits, its runs end with
 * -ECANCELED and all resources are released. A child that inherited the file
 * may not use it.
 *
 * A command is an IORING_OP_URING_CMD: cmd_op is one of enum coll_device_op, and
 * its 16 bytes are a struct coll_device_command. Where io_uring is forbidden,
 * ioctl(2) takes the same number and a pointer to the same struct. The result is
 * a negative errno, or what the command's comment says. Structs grow only at
 * their ends; padding and unknown flags must be 0.
 *
 * A run's end is reported in three ways, because a completion must not be noise
 * itself:
 *  - its completion word is set in memory that the device shares (mmap offset 0).
 *    A program that polls needs no interrupt and no system call;
 *  - COLL_DEVICE_WAIT completes when the word is set: for a program that sleeps;
 *  - the file polls readable while `ended` in that memory differs from `seen`:
 *    for a program that sleeps and waits for other events as well.
 * A RUN without COLL_DEVICE_QUIET completes when the run ends.
 */
#ifndef COLL_DEVICE_H
#define COLL_DEVICE_H

#include <linux/ioctl.h>
#include <linux/types.h>
#include "coll_wire.h"

enum { COLL_DEVICE_VERSION = 4 };

struct coll_device_command {
	__u64 argument;		/* address of the command's struct */
	__u32 bytes;		/* its size */
	__u32 zero;
};

#define COLL_DEVICE_OP(number)	_IOW('C', number, struct coll_device_command)

enum coll_device_op {
	/*
	 * coll_device_setup: once, before every other command. Result: 0. -EAGAIN: RLIMIT_NPROC or
	 * pids.max, which the thread counts in; -EPERM: not by a thread of the opener's own, as a
	 * worker of an io_uring is none; -EINTR, by io_uring: a signal came.
	 */
	COLL_DEVICE_SETUP = COLL_DEVICE_OP(1),
	/* coll_device_buffer: pins memory for many runs. Result: its number. */
	COLL_DEVICE_BUFFER = COLL_DEVICE_OP(2),
	/* coll_device_number: frees a buffer; runs that use it keep its pages. Result: 0. */
	COLL_DEVICE_BUFFER_FREE = COLL_DEVICE_OP(3),
	/* coll_device_group. Result: its number. */
	COLL_DEVICE_GROUP = COLL_DEVICE_OP(4),
	/* coll_device_number: frees a group; its runs end with -ECANCELED. Result: 0. */
	COLL_DEVICE_GROUP_FREE = COLL_DEVICE_OP(5),
	/*
	 * coll_device_link: attaches a socket to the group. Until it is detached, only
	 * the kernel reads and writes the socket. Result: 0.
	 */
	COLL_DEVICE_ATTACH = COLL_DEVICE_OP(6),
	/*
	 * coll_device_link: detaches the socket and copies out the bytes that were
	 * received and that no run has used. Result: their number. A result above
	 * `bytes` means that the buffer is too small and the socket is still attached. -EBUSY: a
	 * run is in progress, or a message to the peer is queued. The bytes may have headers of
	 * kind OFFER, which mean nothing to the program; from the first attempt on, what the
	 * peer has not copied from here comes through the socket.
	 */
	COLL_DEVICE_DETACH = COLL_DEVICE_OP(7),
	/* coll_device_load: checks a schedule and keeps it. Result: its number. */
	COLL_DEVICE_LOAD = COLL_DEVICE_OP(8),
	/* coll_device_number: unloads a schedule; runs that use it keep it. Result: 0. */
	COLL_DEVICE_UNLOAD = COLL_DEVICE_OP(9),
	/* coll_device_run. Result: the run's status; with COLL_DEVICE_QUIET 0 once it started. */
	COLL_DEVICE_RUN = COLL_DEVICE_OP(10),
	/* coll_device_deadline: of a run in progress. Result: 0; -ENOENT: no such run. */
	COLL_DEVICE_DEADLINE = COLL_DEVICE_OP(11),
	/* coll_device_number: waits until a completion word is set. Result: its status. */
	COLL_DEVICE_WAIT = COLL_DEVICE_OP(12),
	/* coll_device_fail: ends a group's runs and tells its peers why. Result: 0. */
	COLL_DEVICE_FAIL = COLL_DEVICE_OP(13),
	/*
	 * coll_device_control: sends a message without payload to a peer. Result: 0.
	 * -ENOBUFS: 64 of them are queued, the peer does not read.
	 */
	COLL_DEVICE_CONTROL_SEND = COLL_DEVICE_OP(14),
	/* coll_device_control: reads the oldest received message without payload. 0 or -EAGAIN. */
	COLL_DEVICE_CONTROL_GET = COLL_DEVICE_OP(15),
	/* coll_device_counters. Result: 0. */
	COLL_DEVICE_COUNTERS = COLL_DEVICE_OP(16),
};

enum coll_device_limits {
	COLL_DEVICE_WORDS_MAX = 1 << 16,
	COLL_DEVICE_NUMBERS_MAX = 1 << 16,	/* groups, schedules, buffers: each */
	COLL_DEVICE_SPIN_MAX = 1000000,		/* ns */
};

enum coll_device_policy {
	/*
	 * `priority` is a nice value, -20 … 19. Below the caller's, and at all if that is
	 * SCHED_IDLE, it needs CAP_SYS_NICE.
	 */
	COLL_DEVICE_NORMAL,
	COLL_DEVICE_FIFO,	/* `priority` is 1 … 99; needs CAP_SYS_NICE */
};

struct coll_device_setup {
	__u32 version;
	__u32 words;		/* completion words in the shared memory */
	/*
	 * CPU of the thread: one that the caller may use or, with CAP_SYS_NICE, any.
	 * COLL_NONE: all CPUs that the caller may use.
	 */
	__u32 cpu;
	__u32 policy;
	__s32 priority;
	__u32 spin;		/* ns that the thread polls before it sleeps */
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
	__u64 unexpected_bytes;	/* capacity for messages that arrive before their receive */
};

enum coll_device_link_flags {
	COLL_DEVICE_HEARD = 1 << 0,	/* the peer has sent something: it says goodbye before it ends */
	/*
	 * If the socket's other end is lent on this machine as well, and so marked, messages of
	 * 64 KiB and more are copied once, from the sender's memory, and not through the socket.
	 * Such a send ends when the receiver's thread has copied it.
	 */
	COLL_DEVICE_PAIRS = 1 << 1,
	COLL_DEVICE_LINK_FLAGS = COLL_DEVICE_HEARD | COLL_DEVICE_PAIRS,
};

struct coll_device_link {
	__u32 group, rank;	/* the peer's rank */
	__s32 fd;		/* a connected TCP socket, past its hello; DETACH: -1 */
	__u32 next_run;		/* ATTACH: messages of runs before this one are late; DETACH: 0 */
	__u32 flags;		/* ATTACH: enum coll_device_link_flags; DETACH: 0 */
	__u32 zero;
	/*
	 * Bytes of the stream that were read from the socket and not used: ATTACH
	 * takes them as the first of the stream, DETACH copies them out.
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
	__u32 hash;		/* in each message's header; equal on all ranks */
	__u64 schedule;		/* address */
	__u64 bytes;
	__u64 refusal;		/* address of a coll_device_refusal to fill, or 0 */
	/*
	 * Address of a __u32 for each op, or 0. For a receive and the only reduce that reads what it
	 * writes: the other of the two; COLL_NONE for all others. Such a message is reduced from the
	 * memory of a rank on this machine, and not written. If another op reads it, too, it may
	 * find what was there before.
	 */
	__u64 fused;
};

enum coll_device_run_flags {
	COLL_DEVICE_QUIET = 1 << 0,	/* complete at start; the word reports the end */
};

/* Memory of a run: part of a pinned buffer, or an address to pin for this run only. */
struct coll_device_place {
	__u64 address;		/* or offset in the buffer */
	__u32 buffer;		/* COLL_NONE: it is an address */
	__u32 zero;
};

struct coll_device_run {
	__u32 schedule;
	__u32 number;		/* of the run: above that of the group's last run */
	__u32 word;		/* index of the completion word; reusable once it is set */
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
	__u32 error;		/* positive errno, at most COLL_ERROR_MAX */
	__u32 failed_rank;	/* or COLL_NONE */
	__u32 reporter;		/* or COLL_NONE */
};

struct coll_device_control {
	__u32 group, rank;
	struct coll_header header;
};

struct coll_device_counters {
	__u64 runs, ops, sends, recvs;
	__u64 unexpected;	/* messages that arrived before their receive */
	__u64 stale;		/* messages that no run wanted any more */
	__u64 sent_bytes, recv_bytes;
	__u64 polls;		/* passes of the thread over its work */
	__u64 sleeps;
	__u64 busy;		/* ns of CPU time that the thread has used */
	__u64 taken_bytes;	/* of those received: from the memory of a rank on this machine */
	__u64 reduced_bytes;	/* of these: not written first */
};

/* ---- shared memory ----------------------------------------------------------- */

enum { COLL_DEVICE_RUNNING = 1, COLL_DEVICE_DONE = 2 };

/* `state` is stored last, with release: after reading DONE the rest is valid. */
struct coll_device_word {
	__u32 state;		/* 0: never used */
	__s32 status;		/* 0 or a negative errno */
	__u32 failed_rank, reporter;	/* ranks, or COLL_NONE */
};

struct coll_device_shared {
	__u32 control;		/* messages queued for CONTROL_GET */
	__u32 ended;		/* completed runs, counted after their words are set */
	__u32 seen;		/* written by the program: the last `ended` it has handled */
	__u32 zero;
	struct coll_device_word word[];
};

#endif
