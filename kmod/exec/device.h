/* SPDX-License-Identifier: GPL-2.0 */
/*
 * /dev/coll inside: what one open file owns, and how it hangs together.
 *
 *	device ── thread (runner.c)		carries everything on
 *	   ├─ buffer				pinned user pages, or scratch
 *	   └─ group ── link (one a peer)	bytes over a lent socket
 *	        └─ loaded			a checked schedule
 *	             └─ run			one execution of it
 *
 * Locks: device->lock (a mutex) guards all of it; commands take it, and the
 * thread for one turn, whose work is bounded. What comes from interrupts (a
 * socket woke up) goes over device->ready, a lock-free list, and a wake-up.
 *
 * Lifetimes: everything is freed under the lock, except that buffers are
 * counted, for a run may outlive their number. A run is *over* when its schedule
 * is finished or its group has failed, and *home* when besides no message of it
 * is queued any more. Its word is set once it is over; after a failure once it
 * is home, for what had begun to go out goes on from the application's memory.
 */
#ifndef COLL_KMOD_DEVICE_H
#define COLL_KMOD_DEVICE_H

#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "core/match.h"
#include "uapi/coll_device.h"
#include "kmod/common/subsystem.h"

struct io_uring_cmd;

enum {
	COLL_TURN_BYTES = 1 << 18,	/* a link's share of one turn */
	COLL_STAGE_BYTES = 4096,	/* shorter payloads come with their header */
	COLL_BVECS = 24,		/* pieces of one send or receive */
	COLL_CONTROL_MAX = 1024,	/* messages kept for CONTROL_GET, a group */
};

/* ---- memory (memory.c) ------------------------------------------------------- */

/* Pages that are addressed as one piece of `bytes`, from `first` in page 0 on. */
struct kcoll_memory {
	struct kref ref;
	struct kcoll_device *device;
	u64 bytes;
	u32 first, count;
	bool user, writable;
	struct page **pages;
	void *address;			/* of byte 0, once mapped */
	void *mapping;			/* what there is to unmap, or NULL */
};

/* ---- links ------------------------------------------------------------------- */

/* A message under way from us: a send op's, or a control message of its own. */
struct kcoll_sending {
	struct coll_header header __aligned(32);	/* in one page, wherever it lies */
	struct kcoll_sending *next;
	struct kcoll_running *run;	/* NULL: control, freed when it is out */
	u32 op;
};

/* A message that came before its receive, or its run. */
struct kcoll_early {
	struct list_head node;
	struct coll_header header;
	u32 rank;
	bool complete;
	u64 got;			/* bytes of it that are here */
	u64 accounted;			/* pages, if it went beyond the group's room */
	u8 data[];
};

enum kcoll_link_state {
	COLL_LINK_ABSENT,	/* no socket yet: messages to it wait */
	COLL_LINK_UP,
	COLL_LINK_LEFT,		/* the peer said goodbye */
	COLL_LINK_LOST,
};

struct kcoll_link {
	struct kcoll_group *group;
	u32 rank;			/* the peer's */
	enum kcoll_link_state state;
	struct socket *socket;

	/* From the socket's wake-up, in interrupt context. */
	wait_queue_entry_t wait;
	wait_queue_head_t *wait_head;
	struct llist_node ready;	/* in device->ready */
	unsigned long woken;		/* bit 0: it is in there */

	/* Sending: a queue, of whose first message `sent` bytes are gone. */
	struct kcoll_sending *queue, **queue_end;
	u64 sent;

	/* Receiving: the header, then payload_left bytes, of its chunk, for somebody or nobody. */
	struct coll_header header;
	u32 header_got;
	u64 payload_left;
	struct kcoll_running *run;	/* they go to a receive of this run, */
	u32 op;
	struct kcoll_early *early;	/* or are kept here, or thrown away */
	u64 answered;			/* when the latest pong came, ns; 0: none */
	u32 pong_suspect;		/* whom the peer waited for then */
	bool stalled;			/* no room for early messages: not read */
	bool handed;			/* what comes was read by the program: there is room */
	bool broken;			/* no more can be sent; what came is read yet */
	u8 *stage;			/* bytes taken from the socket in advance */
	u32 stage_at, stage_end;
};

/* ---- groups, schedules, runs --------------------------------------------------- */

struct kcoll_control {
	struct list_head node;
	u32 rank;
	struct coll_header header;
};

struct kcoll_group {
	struct list_head node;		/* in device->groups */
	struct kcoll_device *device;
	u32 number;
	u32 rank, ranks;
	u32 next_run;
	struct xarray links;		/* by rank */
	struct list_head loaded;
	struct list_head runs;		/* in order of start, until home */
	struct list_head early;
	s64 early_room;			/* bytes left for early messages */
	u64 early_bytes;		/* of it at the beginning, accounted */
	struct list_head control;
	u32 controls;
	int error;			/* why it failed, or 0 */
	u32 failed_rank, reporter;
	u64 failing_until;		/* then what still has not gone out is cut off */
};

struct kcoll_loaded {
	struct list_head node;		/* in group->loaded */
	struct kcoll_group *group;
	u32 number;			/* COLL_NONE: unloaded, goes with its last run */
	u32 hash;
	u32 running;			/* runs that are not home */
	u32 sends;
	u64 accounted;			/* pages */
	u32 touched;			/* bit b: buffer b is reduced, so mapped */
	struct coll_schedule *schedule;
	struct coll_plan plan;
	struct kcoll_link **links;	/* per peer */
	struct kcoll_running *spare;	/* one run that is at home */
};

struct kcoll_running {
	struct list_head node;		/* in group->runs */
	struct kcoll_loaded *loaded;
	u32 number, word;
	bool over, told;
	int status;			/* once over */
	bool stepping;			/* its ops are being begun right now */
	struct list_head fresh;		/* in device->fresh until it is first stepped */
	u32 in_flight;			/* messages of it in link queues, payloads coming in */
	u64 started, deadline, next_ping;
	struct coll_step step;
	struct kcoll_memory *buffer[COLL_BUFFERS];
	u64 offset[COLL_BUFFERS];	/* of the place's byte 0 in its buffer */
	struct kcoll_sending *sends;
	u32 *send_of;			/* per op */
	u8 *arrived;			/* per op */
	u64 *got;			/* per op: bytes of its message that are here */
	u64 accounted;
};

/* ---- the open file ------------------------------------------------------------- */

/* Somebody who wants to hear of a word: a command that is under way. */
struct kcoll_waiter {
	struct list_head node;		/* in device->waiters */
	struct io_uring_cmd *command;
	u32 word;
	int result;
};

struct kcoll_device {
	struct mutex lock;		/* of all of it */
	void *owner;			/* its current->files: compared, never looked into */
	struct mm_struct *mm;		/* for the account of locked memory */
	const struct cred *cred;	/* sockets see the user, not the thread */
	struct task_struct *thread;
	bool ended;			/* its opener is gone */
	u32 spin;
	struct coll_device_shared *shared;
	u32 words;
	struct idr groups_by_number, loaded_by_number, buffers;
	struct list_head groups;
	struct list_head fresh;		/* runs that were started by a command */
	struct list_head waiters;
	wait_queue_head_t word_set;	/* for WAIT by ioctl */
	struct llist_head ready;	/* links whose sockets woke up */
	u64 deadline;			/* the earliest of all runs; U64_MAX: none */
	struct coll_device_counters counters;
};

/* device.c */
/* Sets the word and tells all who wait for it. */
void kcoll_device_complete(struct kcoll_device *device, u32 word, int status, u32 failed_rank,
			   u32 reporter);

/* command_uring.c: commands that complete later */
int kcoll_waiter_add(struct kcoll_device *device, struct io_uring_cmd *command, u32 word,
		     unsigned int issue_flags);
/* The word is set, or (status) the wait is off. Exactly once; frees it. */
void kcoll_waiter_complete(struct kcoll_waiter *waiter, int status);
int kcoll_device_uring_cmd(struct io_uring_cmd *command, unsigned int issue_flags);

/* device.c: a command, already copied from where it came. `uring`: NULL by ioctl. */
long kcoll_device_do(struct kcoll_device *device, u32 op, const struct coll_device_command *command,
		     struct io_uring_cmd *uring, unsigned int issue_flags);

/* memory.c */
int kcoll_account(struct kcoll_device *device, u64 pages, bool more);
struct kcoll_memory *kcoll_memory_pin(struct kcoll_device *device, u64 address, u64 bytes,
				      bool writable);
struct kcoll_memory *kcoll_memory_make(struct kcoll_device *device, u64 bytes);
void kcoll_memory_put(struct kcoll_memory *buffer);
int kcoll_memory_map(struct kcoll_memory *buffer);
/* At most `max` pieces of [offset, offset + bytes); how many; *bytes: what they hold. */
int kcoll_memory_bvecs(const struct kcoll_memory *buffer, u64 offset, u64 *bytes,
		       struct bio_vec *bvec, int max);

/* group.c */
int kcoll_group_make(struct kcoll_device *device, const struct coll_device_group *asked);
void kcoll_group_free(struct kcoll_group *group);
/* The group's runs end with this error and its peers hear why. The first one holds. */
void kcoll_group_fail(struct kcoll_group *group, int error, u32 failed_rank, u32 reporter);
/*
 * Who keeps the oldest run waiting, as far as pongs tell: the rank that it waits
 * for, or whom that one waits for. COLL_NONE: nobody.
 */
u32 kcoll_group_suspect(struct kcoll_group *group);
/* It failed long enough ago: what is still queued is cut off. */
void kcoll_group_give_up(struct kcoll_group *group);
/* An early message has found its receive, or is not wanted. */
void kcoll_group_early_free(struct kcoll_group *group, struct kcoll_early *early);
/* A message without payload came. */
void kcoll_group_control(struct kcoll_group *group, u32 rank, const struct coll_header *header);

/* load.c */
int kcoll_load(struct kcoll_group *group, const struct coll_device_load *asked);
void kcoll_loaded_unload(struct kcoll_loaded *loaded);
/* Frees it if it is unloaded and nobody runs it. */
void kcoll_loaded_maybe_free(struct kcoll_loaded *loaded);

/* run.c */
int kcoll_run_start(struct kcoll_loaded *loaded, const struct coll_device_run *asked);
int kcoll_run_deadline(struct kcoll_group *group, const struct coll_device_deadline *asked);
/* Ready ops are begun, until there are none or the run is over. */
void kcoll_run_step(struct kcoll_running *run);
void kcoll_run_over(struct kcoll_running *run, int status);
void kcoll_run_maybe_home(struct kcoll_running *run);
void kcoll_run_free(struct kcoll_running *run);
struct kcoll_running *kcoll_run_find(struct kcoll_group *group, u32 number);
/* A message of it has gone out, or is given up. */
void kcoll_run_sent(struct kcoll_running *run, struct kcoll_sending *sending);
/* The message of this started receive is whole and kept as an early one: takes it. */
void kcoll_run_take_early(struct kcoll_running *run, u32 op);
/* The rank that a run waits for first, or COLL_NONE. */
u32 kcoll_run_awaits(const struct kcoll_running *run);
/* Whether a receive that has started, or is to come, must hear from this link. */
bool kcoll_run_needs(const struct kcoll_running *run, const struct kcoll_link *link);
/* Payload of a receive from byte `done` on: copied there, or where it goes. */
void kcoll_run_write(struct kcoll_running *run, u32 op, u64 done, const u8 *from, u64 bytes);
int kcoll_run_bvecs(struct kcoll_running *run, u32 op, u64 done, u64 *bytes, struct bio_vec *bvec,
		    int max);
/* The bytes of a started receive are there. */
void kcoll_run_received(struct kcoll_running *run, u32 op);

/* link.c */
struct kcoll_link *kcoll_link_get(struct kcoll_group *group, u32 rank);
int kcoll_link_lend(struct kcoll_link *link, const struct coll_device_link *asked);
/* As COLL_DEVICE_DETACH. */
long kcoll_link_unlend(struct kcoll_link *link, const struct coll_device_link *asked);
void kcoll_link_free(struct kcoll_link *link);
void kcoll_link_send(struct kcoll_link *link, struct kcoll_sending *sending);
int kcoll_link_send_control(struct kcoll_link *link, const struct coll_header *header);
/*
 * Lets go of all runs: nothing is received for them, what is queued for them is
 * dropped, but for a message that is partly out already (unless `all`). Control
 * messages stay.
 */
void kcoll_link_drop(struct kcoll_link *link, bool all);
/* The connection is of no use any more: nothing is read or written. */
void kcoll_link_cut(struct kcoll_link *link);
/* Its socket may have something to do: the thread will look. Any context. */
void kcoll_link_wake(struct kcoll_link *link);
/* Receives and sends a bounded amount. Whether it wants another turn at once. */
bool kcoll_link_turn(struct kcoll_link *link);

/* runner.c */
int kcoll_runner_start(struct kcoll_device *device, const struct coll_device_setup *asked);
void kcoll_runner_stop(struct kcoll_device *device);
/* There is work for the thread. Any context. */
void kcoll_runner_kick(struct kcoll_device *device);
/* The link goes away: off the list of those that woke up. Its socket is quiet. */
void kcoll_runner_forget(struct kcoll_link *link);

#endif
