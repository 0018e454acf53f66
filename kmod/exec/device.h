/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What one open file of /dev/coll owns.
 *
 *	device ── thread (runner.c)		executes everything
 *	   ├─ buffer				pinned user pages, or scratch
 *	   └─ group ── link (one a peer)	messages over an attached socket
 *	        └─ loaded			a checked schedule
 *	             └─ run			one execution of it
 *
 * Locks: device->lock (a mutex) guards all of it. Commands take it, and the thread
 * takes it for one poll, whose work is bounded. Wake-ups of sockets, in interrupt
 * context, go through device->ready, a lock-free list.
 *
 * Lifetimes: everything is freed under the lock. Buffers are counted, because a run
 * may outlive its buffer's number.
 */
#ifndef COLL_KMOD_DEVICE_H
#define COLL_KMOD_DEVICE_H

#include <linux/idr.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/wait.h>

#include "kmod/link/link.h"
#include "uapi/coll_device.h"

struct kcoll_device;

/* News for the floor above. */
struct kcoll_device_ops {
	/* A run has completed: its word is to be set. Under the lock. */
	void (*completed)(struct kcoll_device *device, u32 word, int status, u32 failed_rank,
			  u32 reporter);
};

struct kcoll_device {
	struct mutex lock;		/* of all of it */
	const struct kcoll_device_ops *ops;
	void *owner;			/* the opener's current->files: only compared */
	struct mm_struct *mm;		/* for the account of locked memory */
	const struct cred *cred;	/* of the user: for what the thread does with sockets */
	bool ended;			/* the opener has closed it */
	u32 spin;
	struct coll_device_shared *shared;
	u32 words;
	struct idr groups_by_number, loaded_by_number, buffers;
	struct list_head groups;
	struct list_head fresh;		/* runs that a command started */
	struct list_head waiters;	/* commands in progress: struct kcoll_waiter */
	wait_queue_head_t word_set;	/* for WAIT by ioctl */
	struct kcoll_ready ready;	/* links whose sockets woke up, and the thread */
	u64 deadline;			/* the earliest of all runs; U64_MAX: none */
	struct coll_device_counters counters;
};

#endif
