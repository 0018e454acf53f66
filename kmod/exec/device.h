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
 * Locks: device->lock (a mutex) guards all of it. Commands take it by kcoll_device_lock(),
 * the thread for one poll. A poll ends after two ticks, and soon when a command waits: see
 * kcoll_device_yields(). Wake-ups of sockets, in interrupt context, go through
 * device->ready, a list with a lock of its own.
 *
 * Lifetimes: everything is freed under the lock. Buffers are counted, because a run
 * may outlive its buffer's number.
 */
#ifndef COLL_KMOD_DEVICE_H
#define COLL_KMOD_DEVICE_H

#include <linux/idr.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>

#include "kmod/common/worker.h"
#include "kmod/link/link.h"
#include "uapi/coll_device.h"

struct kcoll_device;
struct kcoll_user;

/* News for the floor above. */
struct kcoll_device_ops {
	/* A run has completed: its word is to be set. Under the lock. */
	void (*completed)(struct kcoll_device *device, u32 word, int status, u32 failed_rank,
			  u32 reporter);
	/* A deadline has passed: the next one may be made earlier. Under the lock. */
	void (*due)(struct kcoll_device *device, u64 now);
	/* A signal has ended the thread: nothing is executed any more. Without the lock. */
	void (*killed)(struct kcoll_device *device);
};

struct kcoll_device {
	struct mutex lock;		/* of all of it */
	struct mutex stopping;		/* taken before it, by who ends the thread */
	atomic_t wanted;		/* commands that wait for it; the thread lets them in */
	wait_queue_head_t let_in;	/* the thread, until they have it */
	const struct kcoll_device_ops *ops;
	void *owner;			/* the opener's current->files: only compared */
	struct kcoll_account account;	/* of locked memory: the opener's */
	struct mmu_notifier notifier;	/* of the end of the opener's address space */
	struct kcoll_user *user;	/* the opener's, whose files are counted */
	struct mem_cgroup *memcg;	/* the opener's: what the thread allocates is its */
	const struct cred *cred;	/* of the user: for what the thread does with sockets */
	bool ended;			/* the opener has closed it */
	bool released;			/* nobody has it open any more */
	unsigned long hold_until;	/* jiffies: the thread gives the lock up after it */
	u32 spin;
	struct coll_device_shared *shared;
	u32 words;
	struct idr groups_by_number, loaded_by_number, buffers;
	struct list_head groups;
	struct list_head fresh;		/* runs with ops that may start at once */
	struct list_head waiters;	/* commands in progress: struct kcoll_waiter */
	wait_queue_head_t word_set;	/* for WAIT by ioctl */
	struct kcoll_ready ready;	/* links whose sockets woke up, and the thread */
	struct kcoll_worker worker;
	u64 deadline;			/* the earliest of all runs and waits; U64_MAX: none */
	struct coll_device_counters counters;
};

/*
 * Whether the work in progress stops here and is left to the thread's next poll: a command
 * or a close waits for the lock, deadlines are to be looked at, or the program is killed. Asked
 * between sections of an op, and after some ops; each caller does at least one of them, so that
 * the work ends.
 */
static inline bool kcoll_device_yields(const struct kcoll_device *device)
{
	return atomic_read(&device->wanted) || time_after(jiffies, device->hold_until) ||
	       fatal_signal_pending(current);
}

/*
 * For all but the thread, which takes and leaves the lock so often that nobody else might
 * get it for long.
 */
static inline void kcoll_device_lock(struct kcoll_device *device)
{
	atomic_inc(&device->wanted);
	mutex_lock(&device->lock);
	if (atomic_dec_and_test(&device->wanted) && wq_has_sleeper(&device->let_in))
		wake_up(&device->let_in);
}

static inline void kcoll_device_unlock(struct kcoll_device *device)
{
	mutex_unlock(&device->lock);
}

#endif
