// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A socket to coll.ko for each user: its watches end with it, so also when colld dies. They yield: who asks for
 * a CPU by itself, as collnoise does, gets it. A change is logged once for a user, not for each rank.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "counter.h"
#include "daemon/common/clock.h"
#include "daemon/common/log.h"
#include "daemon/common/metrics.h"
#include "node/rules.h"
#include "node/units.h"
#include "node/watch_module.h"

static const u64 OPEN_NS = 5 * NODE_S;	/* until the module is looked for again */

static const char without[] = "who takes ranks' cores is estimated from /proc";

struct colld_counter {
	struct observer_counter table;
	struct colld_counting *counting;
	struct netlink *netlink;	/* NULL: not open */
	u64 open_at;
	int state;			/* that was logged: 0 it counts, -errno it does not, 1 nothing yet */
};

/* No module is usual, and nothing is wrong with it: it is told only where there was one. */
static int counter_fail(struct colld_counter *counter, int error, const char *reason)
{
	if (counter->state != error && (error != -ENOENT || counter->state <= 0))
		colld_log(LOG_NOTICE, "watch: %s: %s", reason, without);
	counter->state = error;
	return error;
}

/* Also where it was there before. */
static const char *counter_reason(const struct colld_counter *counter, int error)
{
	return error == -ENOENT ? "coll.ko is not loaded" : netlink_reason(counter->netlink);
}

static void counter_disconnect(struct colld_counter *counter)
{
	netlink_close(counter->netlink);
	counter->netlink = NULL;
	counter->open_at = colld_now() + OPEN_NS;
}

/* Where coll.ko is gone, or does not answer, the socket is of no use: it may be another one that comes. */
static int counter_refused(struct colld_counter *counter, int error)
{
	counter_fail(counter, error, counter_reason(counter, error));
	if (error == -ENOENT || error == -EIO || error == -ETIMEDOUT)
		counter_disconnect(counter);
	return error;
}

static int counter_connect(struct colld_counter *counter)
{
	int error;

	if (counter->netlink)
		return 0;
	if (colld_now() < counter->open_at)
		return -EAGAIN;
	/* To ask for a family that is not there starts modprobe each time. */
	error = access("/sys/module/coll", F_OK) ? -ENOENT : netlink_open(&counter->netlink);
	if (!error)
		return 0;
	counter_fail(counter, error, counter_reason(counter, error));
	counter_disconnect(counter);
	return error;
}

static int counter_begin(void *argument, const struct node_cpus *cpus, uint32_t pid, uint32_t thread)
{
	const struct node_watch_order order = { .task = pid, .thread = thread, .yields = true };
	struct colld_counter *counter = argument;
	int error = counter_connect(counter);

	if (error)
		return error;
	error = node_watch_begin(counter->netlink, cpus, &order);
	if (error == -ESRCH)	/* it has just ended */
		return error;
	return error ? counter_refused(counter, error) : 0;
}

static void counter_end(void *argument, const struct node_cpus *cpus)
{
	struct colld_counter *counter = argument;

	if (counter->netlink && node_watch_end(counter->netlink, cpus))
		counter_disconnect(counter);
}

static int counter_read(void *argument, node_watch_each each, void *data)
{
	struct colld_counter *counter = argument;
	int error;

	if (!counter->netlink)
		return -ENOTCONN;
	error = node_watch_read(counter->netlink, NODE_WATCH_OWN, each, data);
	return error ? counter_refused(counter, error) : 0;
}

static void counter_lost(void *argument, const char *job, uint32_t rank, double cost)
{
	struct colld_counter *counter = argument;
	struct colld_counting *counting = counter->counting;
	char reason[160], name[64];

	node_rules_glob(job, name, sizeof(name));
	if (cost > 0) {
		counting->dear++;
		snprintf(reason, sizeof(reason), "job %s, rank %u: it costs %.1f %% of its CPUs, and may cost %.1f "
			 "(--watch-cost)", name, rank, 100 * cost, 100 * counter->table.most);
		counter_fail(counter, -EDQUOT, reason);
	} else if (counter->netlink) {	/* else it was told why */
		counting->yielded++;
		snprintf(reason, sizeof(reason), "job %s, rank %u: another watch has its CPU", name, rank);
		counter_fail(counter, -EBUSY, reason);
	}
}

struct colld_counter *colld_counter_open(struct colld_counting *counting)
{
	struct colld_counter *counter = counting->most > 0 ? calloc(1, sizeof(*counter)) : NULL;

	if (!counter)
		return NULL;
	counter->counting = counting;
	counter->state = 1;
	counter->table = (struct observer_counter){
		.begin = counter_begin, .end = counter_end, .read = counter_read, .lost = counter_lost,
		.argument = counter, .most = counting->most,
	};
	return counter;
}

const struct observer_counter *colld_counter_table(const struct colld_counter *counter)
{
	return counter ? &counter->table : NULL;
}

void colld_counter_look(struct colld_counter *counter, const struct observer *observer)
{
	const struct observer_counts counts = node_observer_counts(observer);

	if (!counter || !counter->state || !counts.ranks || counts.ranks < counts.fit)
		return;
	colld_log(LOG_NOTICE, "watch: coll.ko counts who takes ranks' cores, on %u CPUs", counts.cpus);
	counter->state = 0;
}

void colld_counter_stop(struct colld_counter *counter)
{
	if (counter)
		counter_disconnect(counter);
}

void colld_counter_close(struct colld_counter *counter)
{
	free(counter);
}

void colld_counting_metrics(const struct colld_counting *counting, u32 cpus, FILE *to)
{
	colld_metrics_gauge(to, "coll_watched_cpus", "CPUs on which coll.ko counts what takes them from ranks.");
	colld_metrics_count(to, "coll_watched_cpus", NULL, NULL, cpus);
	colld_metrics_counter(to, "coll_watches_lost_total", "Ranks for which coll.ko counts no more, by why.");
	colld_metrics_count(to, "coll_watches_lost_total", "reason", "yielded", counting->yielded);
	colld_metrics_count(to, "coll_watches_lost_total", "reason", "cost", counting->dear);
}
