// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A socket to coll.ko for each user: its watches end with it, so also when colld dies. They yield: who asks for
 * a CPU by itself, as collnoise does, gets it.
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
static const u64 TELL_NS = 3600 * NODE_S;	/* until the log says it again */

static const char without[] = ": who takes ranks' cores is estimated from /proc";

struct colld_counter {
	struct observer_counter table;
	struct colld_counting *counting;
	struct colld_counter *next;	/* another user's */
	struct node_cpus claimed;	/* on which this one's ranks run */
	struct netlink *netlink;	/* NULL: not open */
	u64 open_at;
	bool begun;			/* all were counted that could be */
};

static void counting_tell(struct colld_counting *counting, enum colld_counting_news news, const char *text,
			  const char *then)
{
	const u64 now = colld_now();
	u32 *untold = &counting->told[news].untold;
	char more[64] = "";

	if (counting->told[news].at && now - counting->told[news].at < TELL_NS) {
		++*untold;
		return;
	}
	if (*untold)
		snprintf(more, sizeof(more), "; so %u times more since that was said last", *untold);
	colld_log(LOG_NOTICE, "watch: %s%s%s", text, then, more);
	counting->told[news].at = now;
	*untold = 0;
}

static void counter_tell(struct colld_counter *counter, enum colld_counting_news reason, const char *text)
{
	counting_tell(counter->counting, reason, text, without);
}

/* No module is usual, and nothing is wrong with it: it is told only where there was one. */
static void counter_fail(struct colld_counter *counter, int error)
{
	const bool is_gone = error == -ENOENT;

	if (!is_gone || counter->begun)
		counter_tell(counter, error == -EBUSY ? COLLD_COUNTING_YIELDED : COLLD_COUNTING_FAILED,
			     is_gone ? "coll.ko is not loaded" : netlink_reason(counter->netlink));
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
	counter_fail(counter, error);
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
	counter_fail(counter, error);
	counter_disconnect(counter);
	return error;
}

static int counter_begin(void *argument, const struct node_cpus *cpus, uint32_t pid, uint32_t thread)
{
	struct colld_counter *counter = argument;
	const struct node_watch_order order = {
		.task = pid, .thread = thread, .share = counter->counting->most, .yields = true,
	};
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
	if (!error)
		return 0;
	counter_fail(counter, error);
	counter_disconnect(counter);	/* nothing of it is counted any more: the next socket begins anew */
	return error;
}

static void counter_lost(void *argument, const char *job, uint32_t rank, bool dear)
{
	struct colld_counter *counter = argument;
	struct colld_counting *counting = counter->counting;
	char text[160], name[64];

	node_rules_glob(job, name, sizeof(name));
	if (dear) {
		counting->dear++;
		snprintf(text, sizeof(text), "job %s, rank %u: it costs more than %g %% of a CPU (--watch-cost)", name,
			 rank, 100 * counting->most);
		counter_tell(counter, COLLD_COUNTING_DEAR, text);
	} else if (counter->netlink) {	/* else it was told why */
		counting->yielded++;
		snprintf(text, sizeof(text), "job %s, rank %u: another watch has its CPU", name, rank);
		counter_tell(counter, COLLD_COUNTING_YIELDED, text);
	}
}

static void counter_claim(void *argument, const struct node_cpus *cpus, struct node_cpus *others)
{
	struct colld_counter *counter = argument;
	const struct colld_counter *other;
	u32 cpu;

	counter->claimed = *cpus;
	for (other = counter->counting->users; other; other = other->next)
		for (cpu = other == counter ? NODE_CPUS_MAX : node_cpus_next(&other->claimed, 0); cpu < NODE_CPUS_MAX;
		     cpu = node_cpus_next(&other->claimed, cpu + 1))
			node_cpus_add(others, cpu);
}

struct colld_counter *colld_counter_open(struct colld_counting *counting)
{
	struct colld_counter *counter = counting->most > 0 ? calloc(1, sizeof(*counter)) : NULL;

	if (!counter)
		return NULL;
	counter->counting = counting;
	counter->table = (struct observer_counter){
		.begin = counter_begin, .end = counter_end, .read = counter_read, .lost = counter_lost,
		.claim = counter_claim, .argument = counter,
	};
	counter->next = counting->users;
	counting->users = counter;
	return counter;
}

const struct observer_counter *colld_counter_table(const struct colld_counter *counter)
{
	return counter ? &counter->table : NULL;
}

void colld_counter_look(struct colld_counter *counter, const struct observer *observer)
{
	const struct observer_counts counts = node_observer_counts(observer);
	char text[96];

	if (!counter || counter->begun || !counts.ranks || counts.ranks < counts.fit)
		return;
	snprintf(text, sizeof(text), "coll.ko counts who takes ranks' cores, on %u CPUs", counts.cpus);
	counting_tell(counter->counting, COLLD_COUNTING_BEGINS, text, "");
	counter->begun = true;
}

void colld_counter_stop(struct colld_counter *counter)
{
	if (counter)
		counter_disconnect(counter);
}

void colld_counter_close(struct colld_counter *counter)
{
	struct colld_counter **at = counter ? &counter->counting->users : NULL;

	while (at && *at != counter)
		at = &(*at)->next;
	if (at)
		*at = counter->next;
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
