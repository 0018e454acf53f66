// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A result from another thread, if it comes in time. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "job.h"
#include "libcoll/base/clock.h"

struct coll_answer {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool given, forsaken;
	int status;
};

struct coll_answer *coll_answer_new(void)
{
	struct coll_answer *answer = calloc(1, sizeof(*answer));
	pthread_condattr_t monotonic;

	if (!answer)
		return NULL;
	pthread_mutex_init(&answer->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&answer->cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return answer;
}

static void answer_free(struct coll_answer *answer)
{
	pthread_cond_destroy(&answer->cond);
	pthread_mutex_destroy(&answer->lock);
	free(answer);
}

void coll_answer_set(struct coll_answer *answer, int status)
{
	bool forsaken;

	pthread_mutex_lock(&answer->lock);
	answer->given = true;
	answer->status = status;
	forsaken = answer->forsaken;
	pthread_cond_signal(&answer->cond);
	pthread_mutex_unlock(&answer->lock);
	if (forsaken)
		answer_free(answer);
}

bool coll_answer_wait(struct coll_answer *answer, uint64_t deadline, int *status)
{
	struct timespec until = { deadline / COLL_SECOND, deadline % COLL_SECOND };
	bool given;

	pthread_mutex_lock(&answer->lock);
	while (!answer->given)
		if (pthread_cond_timedwait(&answer->cond, &answer->lock, &until))
			break;
	given = answer->given;
	answer->forsaken = !given;
	*status = answer->status;
	pthread_mutex_unlock(&answer->lock);
	if (given)
		answer_free(answer);
	return given;
}

/* It takes no signals: they are the application's. */
int coll_answer_ask(void *(*function)(void *), void *argument)
{
	sigset_t all, old;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, function, argument);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		pthread_detach(thread);
	return -err;
}
