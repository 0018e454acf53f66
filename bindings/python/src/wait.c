// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Waiting. First it polls the library for a while, as the library's own waits do, since an
 * idle core takes long to wake up; then it sleeps on the context's descriptor, in slices: a
 * signal may have gone to another thread, and only calls of the library notice a deadline.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <time.h>

#include "pycoll.h"

enum {
	SPIN_NS = 100000,
	SLICE_MS = 50,
	SHARED_SLICE_MS = 1,	/* several threads wait: one takes the other's wake-up */
};

static uint64_t wait_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

struct waiting {
	pycoll_context *context;
	pycoll_look *look;
	void *argument;
	uint64_t spin_until;
	int slice_ms;
};

/* Without the GIL. -ECANCELED: the context was closed. */
static int wait_look(struct waiting *waiting, int *fd)
{
	pycoll_context *context = waiting->context;
	int answer = -ECANCELED;

	pthread_mutex_lock(&context->mutex);
	if (context->context)
		answer = waiting->look(waiting->argument);
	if (answer == -EINPROGRESS && fd)
		*fd = coll_fd(context->context);
	pthread_mutex_unlock(&context->mutex);
	return answer;
}

static int wait_slice(struct waiting *waiting)
{
	struct pollfd poll_fd = { .fd = -1, .events = POLLIN };
	int answer = wait_look(waiting, NULL);

	while (answer == -EINPROGRESS && wait_now() < waiting->spin_until) {
		sched_yield();
		answer = wait_look(waiting, NULL);
	}
	if (answer == -EINPROGRESS)
		answer = wait_look(waiting, &poll_fd.fd);
	if (answer == -EINPROGRESS)	/* a descriptor that is missing only makes it slower */
		poll(&poll_fd, 1, poll_fd.fd < 0 ? SHARED_SLICE_MS : waiting->slice_ms);
	return answer;
}

static int wait_once(struct waiting *waiting)
{
	pycoll_context *context = waiting->context;
	PyThreadState *thread;
	int answer;

	waiting->slice_ms = context->waiting > 1 ? SHARED_SLICE_MS : SLICE_MS;
	thread = PyEval_SaveThread();
	answer = wait_slice(waiting);
	PyEval_RestoreThread(thread);
	return answer;
}

static int wait_loop(struct waiting *waiting, bool signals)
{
	int answer;

	do {
		answer = wait_once(waiting);
		if (answer == -ECANCELED)
			PyErr_SetString(PyExc_ValueError, "the context was closed");
		if (answer != -EINPROGRESS)
			return answer ? -1 : 0;
	} while (!signals || !PyErr_CheckSignals());
	return -1;
}

int pycoll_wait(pycoll_context *context, pycoll_look *look, void *argument, bool signals)
{
	struct waiting waiting = { context, look, argument, wait_now() + SPIN_NS, SLICE_MS };
	int answer;

	if (pycoll_may_enter(context))
		return -1;
	context->waiting++;
	answer = wait_loop(&waiting, signals);
	context->waiting--;
	return answer;
}
