// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/common/metrics.h"
#include "door.h"
#include "reports.h"
#include "works.h"

struct colld_reports {
	int epoll, timer;
	bool ticks;
	struct report_door door;
	struct report_works works;
	struct report_shares shares;	/* of those who ask */
};

static int reports_watch(const struct colld_reports *reports, int operation, int fd, u32 events)
{
	struct epoll_event event = { .events = events };

	return epoll_ctl(reports->epoll, operation, fd, &event) ? -errno : 0;
}

/* While there are children it ticks: they have deadlines. So it does until the listener is tried again. */
static void reports_tick(struct colld_reports *reports, bool ticks)
{
	const struct timespec second = { .tv_sec = ticks };
	const struct itimerspec each = { second, second };

	if (ticks != reports->ticks)
		timerfd_settime(reports->timer, 0, &each, NULL);
	reports->ticks = ticks;
}

int colld_reports_open(struct colld_reports **reports, const char *state)
{
	struct colld_reports *new = calloc(1, sizeof(*new));
	u32 i;
	int error;

	*reports = NULL;
	if (!new)
		return -ENOMEM;
	new->epoll = epoll_create1(EPOLL_CLOEXEC);
	new->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	new->works.state = state;
	new->works.epoll = new->epoll;
	new->works.shares = &new->shares;
	for (i = 0; i < REPORT_WORKS; i++)
		new->works.work[i].pipe = -1;
	error = report_door_open(&new->door, state, &new->shares);
	if (!error && (new->epoll < 0 || new->timer < 0))
		error = -EMFILE;
	if (!error)
		error = reports_watch(new, EPOLL_CTL_ADD, new->timer, EPOLLIN);
	if (!error)
		error = reports_watch(new, EPOLL_CTL_ADD, new->door.listener, EPOLLIN);
	if (error)
		colld_reports_close(new);
	else
		*reports = new;
	return error;
}

int colld_reports_fd(const struct colld_reports *reports)
{
	return reports->epoll;
}

/* True: it is to tick. Without descriptors the connection stays where it is, and would be reported again at once. */
static bool reports_accept(struct colld_reports *reports)
{
	int error;
	const u64 refused = reports->door.refused;
	const struct report_client *client = report_door_accept(&reports->door, &error);

	if (client)
		reports_watch(reports, EPOLL_CTL_ADD, client->child.ended, EPOLLIN);
	if (client || !error || error == -EAGAIN || error == -EINTR || error == -ECONNABORTED)
		return client || refused != reports->door.refused;
	reports_watch(reports, EPOLL_CTL_MOD, reports->door.listener, 0);
	return true;
}

void colld_reports_progress(struct colld_reports *reports)
{
	u64 expired;
	u32 children;

	if (read(reports->timer, &expired, sizeof(expired)) > 0)
		reports_watch(reports, EPOLL_CTL_MOD, reports->door.listener, EPOLLIN);
	children = report_door_reap(&reports->door) + report_works_progress(&reports->works);
	reports_tick(reports, reports_accept(reports) || children);
}

void colld_reports_ask(struct colld_reports *reports, struct colld_request *request)
{
	const struct report_asker anybody = { .all = true };
	struct report_question question;
	struct colld_answer refused;

	if (report_question_read(colld_request_target(request), anybody, &question, &refused)) {
		report_works_ask(&reports->works, request, &question);
		reports_tick(reports, true);
		return;
	}
	colld_request_answer(request, &refused);
}

void colld_reports_close(struct colld_reports *reports)
{
	if (!reports)
		return;
	report_works_close(&reports->works);
	report_door_close(&reports->door);
	if (reports->epoll >= 0)
		close(reports->epoll);
	if (reports->timer >= 0)
		close(reports->timer);
	free(reports);
}

void colld_reports_metrics(const struct colld_reports *reports, FILE *to)
{
	const struct {
		const char *by, *result;
		u64 count;
	} total[] = {
		{ "socket", "served", reports->door.served }, { "socket", "refused", reports->door.refused },
		{ "http", "made", reports->works.made }, { "http", "failed", reports->works.failed },
	};
	u32 i;

	colld_metrics_counter(to, "coll_reports_total", "Requests for reports of jobs: by the socket, and what "
			      "was made for the door for HTTP.");
	for (i = 0; i < sizeof(total) / sizeof(*total); i++)
		fprintf(to, "coll_reports_total{by=\"%s\",result=\"%s\"} %llu\n", total[i].by,
			total[i].result, (unsigned long long)total[i].count);
	colld_metrics_counter(to, "coll_reports_cpu_seconds_total", "CPU time of the processes that made them.");
	colld_metrics_seconds(to, "coll_reports_cpu_seconds_total", NULL, NULL,
			      reports->door.cost + reports->works.cost);
}
