// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <linux/types.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "neighbour.h"

enum {
	LATE_ENOUGH = 4,		/* waits; fewer may be a daemon's ... */
	LATE_CROWDED = 16,		/* ... or another rank's, where they share cores */
	LATE_TRIAL = 1,			/* ... in a trial: the same */
	LATE_TRIAL_CROWDED = 3,
	/*
	 * Sleeping costs a wait 0.05 to 0.2 ms, beside a neighbour. Yields cost one 3 ms and more in
	 * the neighbour's group, 0.05 to 0.1 ms in another.
	 */
	COMES_NS = 1000000,
	STAYS_NS = 300000,
	CROWDED_TIMES = 3,		/* these, where other ranks take turns meanwhile */
	TRIAL_NS = 20000000,		/* longer than a slice */
	TRIAL_WAITS = 16,
	TRIAL_FIRST = 8,		/* the first pause: so many times what a trial loses ... */
	TRIAL_DOUBLES = 4,		/* ... which grows so often: 1/128 of the time is lost */
	BLOCK_WAITS = 64,		/* the pace of waits is that of so many */
	BLOCK_FASTER = 8,		/* a block so many times as fast is another kind of work */
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

void coll_neighbour_init(struct coll_neighbour *neighbour, enum coll_wait wait, bool crowded)
{
	*neighbour = (struct coll_neighbour){ .wait = wait, .crowded = crowded };
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
	neighbour->failed /= 2;		/* it may come and go */
}

static void neighbour_comes(struct coll_neighbour *neighbour)
{
	near_set(neighbour, true);
	slices_shorten(neighbour);
	neighbour->block_ns = 0;
}

static uint32_t late_enough(const struct coll_neighbour *neighbour)
{
	if (neighbour->near)
		return neighbour->crowded ? LATE_TRIAL_CROWDED : LATE_TRIAL;
	return neighbour->crowded ? LATE_CROWDED : LATE_ENOUGH;
}

/* Of a wait, from which on sleeping pays. */
static uint64_t loss_least(const struct coll_neighbour *neighbour)
{
	return (neighbour->near ? STAYS_NS : COMES_NS) *
	       (uint64_t)(neighbour->crowded ? CROWDED_TIMES : 1);
}

/* Noise, or a slice now and then, is met once in many waits, a neighbour of this group in most. */
static bool sleeping_pays(const struct coll_neighbour *neighbour)
{
	const uint64_t least = loss_least(neighbour);

	return neighbour->late >= late_enough(neighbour) &&
	       neighbour->lost_ns >= neighbour->waits * least;
}

/* Now a pause, the longer the more trials have failed. The next one loses about as much. */
static void trial_later(struct coll_neighbour *neighbour, uint64_t now)
{
	uint64_t pause = neighbour->lost_ns * TRIAL_FIRST;

	if (!neighbour->near)		/* it has taken more waits than a trial does */
		pause /= neighbour->late;
	neighbour->early_at = now + pause;
	pause <<= neighbour->failed;
	neighbour->trial_at = now + (pause < trial_ns_most ? pause : trial_ns_most);
	if (neighbour->failed < TRIAL_DOUBLES)
		neighbour->failed++;
	neighbour->slept = 0;
	losses_forget(neighbour);
}

/* It is over, and a neighbour of this group would have shown. */
static bool trial_succeeds(const struct coll_neighbour *neighbour, uint64_t now)
{
	return now - neighbour->trial_at >= TRIAL_NS && neighbour->waits >= TRIAL_WAITS &&
	       neighbour->lost_ns < neighbour->waits * loss_least(neighbour);
}

/* A wait begins that is to sleep. Whether waits come far more often than they did. */
static bool waits_are_faster(struct coll_neighbour *neighbour, uint64_t now)
{
	uint64_t block;
	bool faster;

	if (!neighbour->slept)
		neighbour->slept_from = now;
	if (neighbour->slept++ < BLOCK_WAITS)
		return false;
	neighbour->slept = 0;
	block = now - neighbour->slept_from;
	faster = neighbour->block_ns > block * BLOCK_FASTER;
	if (faster && now < neighbour->early_at)
		return false;
	neighbour->block_ns = neighbour->block_ns && !faster ? (3 * neighbour->block_ns + block) / 4 : block;
	return faster;
}

bool coll_neighbour_sleeps(struct coll_neighbour *neighbour, uint64_t now)
{
	if (now < neighbour->trial_at) {
		neighbour->waits = 0;
		if (!waits_are_faster(neighbour, now) || neighbour->wait == COLL_WAIT_SLEEP)
			return true;
		neighbour->trial_at = now;
		neighbour->waits = 1;
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

/* What was long ago counts less and less: of more losses than are enough, a part is forgotten. */
static void losses_age(struct coll_neighbour *neighbour, uint64_t now)
{
	const uint32_t enough = late_enough(neighbour);

	if (!neighbour->near && now - neighbour->late_at > apart_ns)	/* else a trial is short */
		losses_forget(neighbour);
	if (neighbour->late >= enough && enough > 1) {
		neighbour->lost_ns -= neighbour->lost_ns / enough;
		neighbour->waits -= neighbour->waits / enough;
	}
}

static void losses_add(struct coll_neighbour *neighbour, uint64_t ns, uint64_t now)
{
	losses_age(neighbour, now);
	neighbour->late += !neighbour->wait_is_late;
	neighbour->wait_is_late = true;
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
	trial_later(neighbour, now);
	if (!neighbour->near)
		neighbour_comes(neighbour);
}
