// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <linux/types.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "neighbour.h"

enum {
	LATE_ENOUGH = 4,		/* fewer may be a daemon's */
	AGE_PART = 4,			/* of the losses, is forgotten at each further one */
	/*
	 * Sleeping costs a wait 0.05 to 0.2 ms, beside a neighbour. Yields cost one 3 ms and more in
	 * the neighbour's group, 0.05 to 0.1 ms in another.
	 */
	COMES_NS = 1000000,
	STAYS_NS = 300000,
	TRIAL_NS = 20000000,		/* longer than a slice */
	TRIAL_WAITS = 16,
	TRIAL_PART = 128,		/* of the time may be lost in trials */
	SLICE_NS = 100000,		/* the shortest that the kernel takes */
};

static const uint64_t apart_ns = COLL_SECOND;
static const uint64_t trial_ns_most = 10 * COLL_SECOND;

/* ---- slices ----------------------------------------------------------------- */

/* As sched_setattr(2) has it; the C library may lack it. */
struct thread_schedule {
	__u32 size, policy;
	__u64 flags;
	__s32 nice;
	__u32 priority;
	__u64 slice_ns, deadline, period;
};

/* Of those without real time; kernels before 6.12 have no slices of a thread's own: 0. */
static bool schedule_read(pid_t thread, struct thread_schedule *schedule)
{
	memset(schedule, 0, sizeof(*schedule));
	return !syscall(SYS_sched_getattr, thread, schedule, sizeof(*schedule), 0) &&
	       (schedule->policy == SCHED_OTHER || schedule->policy == SCHED_BATCH) &&
	       schedule->slice_ns;
}

static bool schedule_write(pid_t thread, struct thread_schedule *schedule, uint64_t slice_ns)
{
	schedule->size = sizeof(*schedule);
	schedule->slice_ns = slice_ns;
	return !syscall(SYS_sched_setattr, thread, schedule, 0);
}

/* Also from another thread of the process, unless that one has ended. */
static void slices_restore(struct coll_neighbour *neighbour)
{
	const pid_t thread = neighbour->thread;
	struct thread_schedule schedule;

	if (thread && !syscall(SYS_tgkill, getpid(), thread, 0) &&
	    schedule_read(thread, &schedule) && schedule.slice_ns == SLICE_NS)
		schedule_write(thread, &schedule, neighbour->slice_ns);
	neighbour->thread = 0;
}

/* A hint: what cannot be set is left. Shorter ones are the application's choice. */
static void slices_shorten(struct coll_neighbour *neighbour)
{
	struct thread_schedule schedule;
	const pid_t thread = gettid();
	uint64_t before;

	if (neighbour->thread == thread)
		return;
	slices_restore(neighbour);	/* of a thread that waited here before */
	if (!schedule_read(thread, &schedule) || schedule.slice_ns <= SLICE_NS)
		return;
	before = schedule.slice_ns;
	if (!schedule_write(thread, &schedule, SLICE_NS))
		return;
	neighbour->thread = thread;
	neighbour->slice_ns = before;
}

/* ---- coming and going ------------------------------------------------------- */

static void near_set(struct coll_neighbour *neighbour, bool near)
{
	__atomic_store_n(&neighbour->near, near, __ATOMIC_RELAXED);
}

void coll_neighbour_init(struct coll_neighbour *neighbour, enum coll_wait wait)
{
	*neighbour = (struct coll_neighbour){ .wait = wait };
	near_set(neighbour, wait == COLL_WAIT_SLEEP);
}

void coll_neighbour_let_go(struct coll_neighbour *neighbour)
{
	slices_restore(neighbour);
}

void coll_neighbour_take(struct coll_neighbour *neighbour)
{
	if (neighbour->near)
		slices_shorten(neighbour);
}

static void losses_forget(struct coll_neighbour *neighbour)
{
	neighbour->late = 0;
	neighbour->lost_ns = neighbour->waits = 0;
}

static void neighbour_leaves(struct coll_neighbour *neighbour)
{
	near_set(neighbour, false);
	slices_restore(neighbour);
	losses_forget(neighbour);
}

static void neighbour_comes(struct coll_neighbour *neighbour)
{
	near_set(neighbour, true);
	slices_shorten(neighbour);
}

/* Noise, or a slice now and then, is met once in many waits, a neighbour of this group in most. */
static bool sleeping_pays(const struct coll_neighbour *neighbour)
{
	return neighbour->near ?
		       neighbour->lost_ns >= neighbour->waits * STAYS_NS :
		       neighbour->late >= LATE_ENOUGH &&
			       neighbour->lost_ns >= neighbour->waits * COMES_NS;
}

/* The next trial loses about as much. */
static void trial_later(struct coll_neighbour *neighbour, uint64_t ns, uint64_t now)
{
	const uint64_t pause = ns < trial_ns_most / TRIAL_PART ? ns * TRIAL_PART : trial_ns_most;

	neighbour->trial_at = now + pause;
	losses_forget(neighbour);
}

/* It is over, and a neighbour of this group would have shown. */
static bool trial_succeeds(const struct coll_neighbour *neighbour, uint64_t now)
{
	return now - neighbour->trial_at >= TRIAL_NS && neighbour->waits >= TRIAL_WAITS;
}

bool coll_neighbour_sleeps(struct coll_neighbour *neighbour, uint64_t now)
{
	if (now < neighbour->trial_at) {
		neighbour->waits = 0;
		return true;
	}
	if (neighbour->wait == COLL_WAIT_SLEEP) {	/* the first wait */
		slices_shorten(neighbour);
		neighbour->trial_at = COLL_FOREVER;
		return true;
	}
	if (neighbour->waits == 1)	/* the trial begins */
		neighbour->trial_at = now;
	if (trial_succeeds(neighbour, now))
		neighbour_leaves(neighbour);
	return false;
}

/* What was long ago counts less and less. */
static void losses_age(struct coll_neighbour *neighbour, uint64_t now)
{
	if (!neighbour->near && now - neighbour->late_at > apart_ns)	/* else a trial is short */
		losses_forget(neighbour);
	if (neighbour->late >= LATE_ENOUGH) {
		neighbour->lost_ns -= neighbour->lost_ns / AGE_PART;
		neighbour->waits -= neighbour->waits / AGE_PART;
	}
}

static void losses_add(struct coll_neighbour *neighbour, uint64_t ns, uint64_t now)
{
	losses_age(neighbour, now);
	neighbour->late++;
	neighbour->late_at = now;
	neighbour->lost_ns += ns;
}

void coll_neighbour_late(struct coll_neighbour *neighbour, uint64_t ns, uint64_t now)
{
	if (neighbour->wait != COLL_WAIT_AUTO)
		return;
	losses_add(neighbour, ns, now);
	if (!sleeping_pays(neighbour))
		return;
	trial_later(neighbour, ns, now);
	neighbour_comes(neighbour);
}
