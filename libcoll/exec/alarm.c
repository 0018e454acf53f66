// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "alarm.h"
#include "core/port.h"

struct coll_alarm {
	struct coll_watch watch;
	uint64_t when;			/* it expires then; COLL_FOREVER: it is not set */
};

/* Only a poll hears of it, and that poll does what is due. */
static void alarm_expired(struct coll_watch *watch, int events)
{
	struct coll_alarm *alarm = watch->owner;
	uint64_t times;

	(void)events;
	/* EAGAIN: it was set again meanwhile. To arm a watch here takes no memory. */
	if (read(watch->fd, &times, sizeof(times)) >= 0 || errno != EAGAIN)
		alarm->when = COLL_FOREVER;
	coll_engine_watch(watch->engine, watch, POLLIN);
}

int coll_alarm_open(struct coll_context *context)
{
	struct coll_alarm *alarm;
	int error;

	if (context->alarm)
		return 0;
	alarm = malloc(sizeof(*alarm));
	if (!alarm)
		return -ENOMEM;
	*alarm = (struct coll_alarm){ { .ready = alarm_expired, .owner = alarm }, COLL_FOREVER };
	alarm->watch.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	error = alarm->watch.fd < 0 ? -errno :
				      coll_engine_watch(&context->engine, &alarm->watch, POLLIN);
	if (error) {
		if (alarm->watch.fd >= 0)
			close(alarm->watch.fd);
		free(alarm);
		return error;
	}
	context->alarm = alarm;
	return 0;
}

void coll_alarm_close(struct coll_context *context)
{
	struct coll_alarm *alarm = context->alarm;

	if (!alarm)
		return;
	if (alarm->watch.armed)
		coll_engine_unwatch(&context->engine, &alarm->watch);
	close(alarm->watch.fd);
	free(alarm);
	context->alarm = NULL;
}

void coll_alarm_set(struct coll_context *context, uint64_t when)
{
	struct coll_alarm *alarm = context->alarm;
	const struct itimerspec at = { .it_value = { when / COLL_SECOND, when % COLL_SECOND } };

	if (alarm && when < alarm->when &&
	    !timerfd_settime(alarm->watch.fd, TFD_TIMER_ABSTIME, &at, NULL))
		alarm->when = when;
}
