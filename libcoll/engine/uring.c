// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The io_uring engine. Each engine has one ring. One io_uring_enter hands all sends and
 * receives of a step to the kernel and waits. A socket has at most one send and one
 * receive in flight, so its bytes keep their order.
 *
 * How many completions to wait for: a send completes while it is submitted, unless the
 * socket's buffer is full; and no op waits for a message that is sent from its own copy
 * (MESSAGE_INLINE_MAX), a quiet send. The wait is for all quiet sends and one completion
 * more: one enter a round. If a buffer is full after all, a timeout of 10 ms ends the wait,
 * and quiet sends are not waited for again until all in flight have ended.
 *
 * Where only one socket has work and the engine polls before it sleeps, the bytes go by
 * sendmsg() and recvmsg() at once: the ring needs a poll that fires and an enter that
 * receives for each arrival. A receive that is polled in this way is handed to the ring
 * before the thread sleeps.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/port.h"
#include "memory.h"
#include "uring.h"

enum {
	ENTRIES = 256,
	COMPLETIONS = 4096,
	QUIET_WAIT_NS = 10000000,
};

/* ---- opening ----------------------------------------------------------- */

/* Before Linux 6.0 a request cannot be ended at once: no socket could be paused, no thread let go. */
static bool uring_can_cancel(struct coll_uring *uring)
{
	const int error = coll_uring_cancel_now(uring, uring, TAG_NONE);	/* nobody's */

	return !error || error == -ENOENT;
}

/* Whether the engine can do with what the kernel has. */
static bool uring_suits(struct coll_uring *uring)
{
	const unsigned int needed = IORING_FEAT_FAST_POLL | IORING_FEAT_EXT_ARG;

	return (uring->ring.features & needed) == needed && uring_can_cancel(uring);
}

/*
 * The best ring that this kernel offers. Completions wait for an enter (DEFER) or come with
 * any system call (COOP). Where ranks outnumber cores, the engine calls sched_yield()
 * between polls, so COOP brings completions without an enter; else DEFER is cheaper. Both
 * wait for the thread that began the request; where another may wait for it, none of them.
 */
static int ring_open(struct io_uring *ring, bool yields, bool moves, bool any_thread)
{
	static const unsigned int all[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN |
			IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
		0,
	};
	const unsigned int skip = any_thread ? 3 : moves ? 2 : yields;
	const unsigned int *flags = all + skip;
	const unsigned int count = sizeof(all) / sizeof(*all) - skip;
	unsigned int i;
	int error = -ENOSYS;

	for (i = 0; i < count; i++) {
		struct io_uring_params params = {
			.flags = flags[i] | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
			.cq_entries = COMPLETIONS,
		};

		error = io_uring_queue_init_params(ENTRIES, ring, &params);
		if (error != -EINVAL)
			break;
	}
	if (error)
		return error;
	io_uring_ring_dontfork(ring);
	if (!moves && !any_thread)
		io_uring_register_ring_fd(ring);	/* cheaper enters; fine without */
	return 0;
}

static void uring_complete(struct coll_engine *engine, const struct io_uring_cqe *cqe)
{
	void *owner = (void *)(uintptr_t)(cqe->user_data & ~(uint64_t)TAG_MASK);

	switch (cqe->user_data & TAG_MASK) {
	case TAG_SEND:
		coll_uring_send_complete(engine, owner, cqe->res);
		break;
	case TAG_RECV:
		coll_uring_recv_complete(engine, owner, cqe->res, cqe->flags);
		break;
	case TAG_WATCH:
		coll_uring_watch_complete(engine, owner, cqe->res);
		break;
	case TAG_BELL:
		coll_uring_bell_complete(engine, owner, cqe->res);
		break;
	}
}

static int uring_open(struct coll_engine *engine)
{
	struct coll_uring *uring = calloc(1, sizeof(*uring));
	int error;

	if (!uring)
		return -ENOMEM;
	uring->complete = uring_complete;
	error = ring_open(&uring->ring, engine->crowded && engine->spin_ns,
			  engine->moves, engine->any_thread);
	if (!error && !uring_suits(uring)) {
		io_uring_queue_exit(&uring->ring);
		error = -ENOSYS;
	}
	if (error) {
		free(uring);
		return error;
	}
	coll_uring_open_buffers(uring);
	coll_uring_open_bells(uring);
	uring->event_fd = uring->fd = -1;
	uring->thread = pthread_self();
	engine->state = uring;
	return 0;
}

static void fds_close(struct coll_uring *uring)
{
	if (uring->event_fd >= 0)
		close(uring->event_fd);
	if (uring->fd >= 0)
		close(uring->fd);
	uring->event_fd = uring->fd = -1;
}

static void uring_close(struct coll_engine *engine)
{
	struct coll_uring *uring = coll_uring_of(engine);

	io_uring_queue_exit(&uring->ring);
	coll_uring_watches_free(uring);
	coll_uring_bells_free(uring);
	fds_close(uring);
	coll_uring_close_buffers(uring);
	free(uring);
	engine->state = NULL;
}

/* ---- waiting ----------------------------------------------------------- */

/* Whether the kernel has completions that need an enter. */
static bool work_pending(const struct io_uring *ring)
{
	return IO_URING_READ_ONCE(*ring->sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

/* Whether only an enter brings them; else any system call does. */
static bool enters_bring(const struct io_uring *ring)
{
	return ring->flags & IORING_SETUP_DEFER_TASKRUN;
}

/* For frequent callers: no system call if the kernel's flag says that none is due. */
static bool nothing_due(const struct coll_engine *engine)
{
	const struct coll_uring *uring = coll_uring_of(engine);
	const struct io_uring *ring = &uring->ring;

	return ring->flags & IORING_SETUP_TASKRUN_FLAG && !engine->touched && !uring->polled &&
	       !io_uring_sq_ready(ring) && !io_uring_cq_ready(ring) && !work_pending(ring);
}

/*
 * Submits, then polls before the thread sleeps: memory that the kernel writes, or the one
 * polled socket. The awaited rank may need this core, so the thread yields each time, after
 * a while also where each rank has a core. An idle core takes long to wake up, most in a
 * virtual machine.
 */
static bool uring_spin(struct coll_engine *engine, unsigned int wanted, uint64_t deadline)
{
	struct coll_uring *uring = coll_uring_of(engine);
	struct io_uring *ring = &uring->ring;
	const uint64_t start = coll_engine_look(engine);
	const uint64_t until = coll_engine_polls_until(engine, start);
	const uint64_t offer = coll_engine_yields_from(engine, start);
	uint64_t now, before = start;
	bool served;

	if (io_uring_sq_ready(ring))
		coll_uring_submit(engine);
	/* Memory that is always busy must not keep a socket from its turn. */
	while (!((served = coll_memory_serve(engine)) | coll_uring_poll_socket(engine)) &&
	       io_uring_cq_ready(ring) < wanted) {
		now = coll_engine_empty(engine);
		if (now >= until || now >= deadline)
			return false;
		if (enters_bring(ring) && work_pending(ring)) {
			engine->counters->enters++;
			io_uring_get_events(ring);
			now = coll_now();
			coll_engine_unseen(engine, engine->now, now);
			before = engine->now = now;	/* it receives, too */
		} else if (now >= offer) {
			before = coll_engine_yield(engine, before);
		}
	}
	if (served && enters_bring(ring) && work_pending(ring)) {
		engine->counters->enters++;
		io_uring_get_events(ring);
	}
	return true;
}

static int uring_sleep(struct coll_engine *engine, unsigned int wanted, uint64_t ns)
{
	struct __kernel_timespec timeout;
	struct io_uring_cqe *cqe;

	timeout.tv_sec = ns / COLL_SECOND;
	timeout.tv_nsec = ns % COLL_SECOND;
	engine->counters->enters++;
	return io_uring_submit_and_wait_timeout(&coll_uring_of(engine)->ring, &cqe, wanted, &timeout, NULL);
}

/* How many quiet sends a wait can count on. */
static uint32_t quiet_expected(const struct coll_uring *uring)
{
	return uring->quiet_stuck ? 0 : uring->quiet_sends;
}

/* A long wait sleeps in naps: what it knows of its time is what it looked at. */
static int wait_until(struct coll_engine *engine, uint64_t deadline)
{
	struct coll_uring *uring = coll_uring_of(engine);
	const uint32_t quiet = quiet_expected(uring);
	unsigned int wanted = quiet + (uring->others || uring->polled);
	uint64_t start, now, ns;
	bool nothing;
	int result;

	wanted = wanted ? wanted : 1;
	if (engine->spin_ns ? uring_spin(engine, wanted, deadline) : coll_memory_serve(engine))
		return 0;
	coll_uring_submit_polled(engine);
	if (!coll_memory_sleep(engine))
		return 0;
	start = now = coll_now();
	do {
		ns = deadline > now ? deadline - now : 0;
		if (quiet)			/* it wakes up for these, too */
			ns = ns < QUIET_WAIT_NS ? ns : QUIET_WAIT_NS;
		else
			ns = coll_engine_nap(engine, start, now, ns);
		result = uring_sleep(engine, wanted, ns);
		nothing = coll_engine_woke(engine, now, ns,
					   (result == -ETIME || result >= 0) && !io_uring_cq_ready(&uring->ring));
		now = engine->now;
	} while (nothing && now < deadline && !quiet);
	if (quiet && now - start >= QUIET_WAIT_NS)
		uring->quiet_stuck = true;	/* unless the last of them is about to be reaped */
	coll_memory_wake(engine);
	return result == -ETIME || result == -EINTR || result >= 0 ? 0 : result;
}

/* Before completions are read, so that none is missed. */
static void event_clear(const struct coll_uring *uring)
{
	uint64_t events;

	if (uring->event_fd >= 0 && read(uring->event_fd, &events, sizeof(events)) < 0)
		return;		/* there were none */
}

/* -EAGAIN: the kernel has no memory for requests now. */
static int submit_and_reap(struct coll_engine *engine)
{
	int result;

	engine->counters->enters++;
	result = io_uring_submit_and_get_events(&coll_uring_of(engine)->ring);
	coll_uring_reap(engine);
	return result > 0 || result == -EINTR ? 0 : result;
}

/* The caller may sleep elsewhere afterwards: all work is submitted that the kernel takes. */
static int advance_at_once(struct coll_engine *engine)
{
	struct coll_uring *uring = coll_uring_of(engine);
	int error;

	coll_memory_serve(engine);
	if (nothing_due(engine))
		return 0;
	do {
		coll_uring_submit_polled(engine);
		coll_uring_submit_touched(engine, false);
		error = submit_and_reap(engine);
	} while (!error && (engine->touched || io_uring_sq_ready(&uring->ring)));
	return error;
}

/* These sends may have led to what the caller waits for. */
static int advance_and_wait(struct coll_engine *engine, uint64_t deadline)
{
	struct coll_uring *uring = coll_uring_of(engine);
	const uint64_t runs = engine->counters->runs, check = engine->next_check;
	int error = 0;

	engine->received = false;
	coll_uring_submit_touched(engine, engine->spin_ns);
	if (io_uring_cq_ready(&uring->ring)) {
		engine->looks++;
		error = submit_and_reap(engine);
	} else if (engine->counters->runs == runs && engine->next_check >= check &&
		   !engine->received) {
		error = wait_until(engine, deadline);
		coll_uring_reap(engine);
	} else if (io_uring_sq_ready(&uring->ring)) {
		coll_uring_submit(engine);
	}
	/* The caller may sleep elsewhere. */
	if (uring->event_fd >= 0 && uring->polled && !error)
		error = advance_at_once(engine);
	return error;
}

static bool uring_usable(const struct coll_engine *engine)
{
	return engine->any_thread || pthread_equal(coll_uring_of(engine)->thread, pthread_self());
}

static int uring_advance(struct coll_engine *engine, uint64_t deadline)
{
	struct coll_uring *uring = coll_uring_of(engine);
	const uint64_t enters = engine->counters->enters;
	int error;

	if (!uring_usable(engine))
		return -EPERM;
	if (engine->sampled && !engine->spin_ns)	/* else uring_spin() does, before a sleep */
		coll_engine_look(engine);
	event_clear(uring);
	error = deadline ? advance_and_wait(engine, deadline) : advance_at_once(engine);
	coll_memory_sleep_elsewhere(engine);
	if (error == -EAGAIN) {		/* the deadline counts meanwhile */
		engine->kept_awake = true;
		error = 0;
	}
	engine->counters->syscalls += engine->counters->enters - enters;
	return error;
}

static int fd_collect(int collector, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(collector, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int fds_open(struct coll_uring *uring)
{
	int error;

	uring->event_fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);	/* there may be work already */
	uring->fd = epoll_create1(EPOLL_CLOEXEC);
	if (uring->event_fd < 0 || uring->fd < 0)
		return -errno;
	error = fd_collect(uring->fd, uring->event_fd);
	if (!error)
		error = fd_collect(uring->fd, uring->ring.ring_fd);
	return error ? error : io_uring_register_eventfd(&uring->ring, uring->event_fd);
}

/*
 * With DEFER_TASKRUN a completion appears only when the ring is entered. Up to Linux 6.12.95 the
 * ring's own descriptor does not wake a poller for that, an eventfd does. A kernel that defers the
 * eventfd's signal in wake-ups may do so once only, and never again (Debian's 6.12.117): there the
 * ring's descriptor wakes. So both are collected.
 */
static int uring_fd(struct coll_engine *engine)
{
	struct coll_uring *uring = coll_uring_of(engine);
	int error = 0;

	if (uring->fd < 0)
		error = fds_open(uring);
	if (error)
		fds_close(uring);
	return error ? error : uring->fd;
}

/* ---- changing threads -------------------------------------------------- */

static bool all_ended(const struct coll_uring *uring)
{
	const struct coll_uring_watched *poll;

	for (poll = uring->polls; poll; poll = poll->next)
		if (!poll->stopped)
			return false;
	return !uring->others && !uring->quiet_sends && !uring->bells_armed;
}

/*
 * Requests complete on the thread that submitted them, which may now compute for long. So
 * all requests are cancelled here, with the bytes that have moved, and submitted again on
 * the other thread.
 */
static void uring_let_go(struct coll_engine *engine)
{
	const uint64_t until = coll_now() + URING_PAUSE_MAX_NS;
	struct coll_uring *uring = coll_uring_of(engine);
	struct io_uring_sync_cancel_reg all = {
		.flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL,
		.fd = -1,
		.timeout = { -1, -1 },
	};
	bool late = false;

	uring->letting_go = true;
	coll_uring_submit_polled(engine);
	coll_uring_submit(engine);
	io_uring_register_sync_cancel(&uring->ring, &all);
	coll_uring_reap(engine);
	while (!all_ended(uring) && !late) {
		late = coll_now() >= until;	/* if it stood still, there is one more look */
		if (io_uring_sq_ready(&uring->ring))	/* work that followed */
			coll_uring_submit(engine);
		io_uring_register_sync_cancel(&uring->ring, &all);
		io_uring_get_events(&uring->ring);
		coll_uring_reap(engine);
	}
	uring->letting_go = false;
}

static void uring_take(struct coll_engine *engine)
{
	struct coll_uring *uring = coll_uring_of(engine);
	struct coll_uring_watched *poll;

	uring->thread = pthread_self();
	for (poll = uring->polls; poll; poll = poll->next)
		if (poll->stopped)
			coll_uring_watch_again(engine, poll);
	coll_uring_submit(engine);
}

const struct coll_engine_ops coll_engine_uring = {
	.name = "uring",
	.open = uring_open,
	.close = uring_close,
	.attach = coll_uring_attach,
	.pause = coll_uring_pause,
	.resume = coll_uring_resume,
	.let_go = uring_let_go,
	.take = uring_take,
	.detach = coll_uring_detach,
	.advance = uring_advance,
	.usable = uring_usable,
	.watch = coll_uring_watch,
	.unwatch = coll_uring_unwatch,
	.hear = coll_uring_hear,
	.unhear = coll_uring_unhear,
	.fd = uring_fd,
};
