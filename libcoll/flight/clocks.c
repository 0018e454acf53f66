// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The clocks of several hosts, aligned by messages between them. */
#include <stdlib.h>
#include <string.h>

#include "clocks.h"

#define NEVER INT64_MAX

/* Hosts are numbered in the order of their first ranks. */
struct hosts {
	uint32_t count;
	uint32_t *of;			/* per index of job->seen */
	int64_t *fastest;		/* ns, [from * count + to]; NEVER: no message */
};

struct host_name {
	const char *name;
	uint32_t index;
};

static int by_host(const void *left, const void *right)
{
	const struct host_name *a = left, *b = right;
	const int name = strcmp(a->name, b->name);

	return name ? name : a->index < b->index ? -1 : a->index > b->index;
}

bool coll_flight_first_of_host(const struct coll_flight_job *job, uint32_t *first)
{
	struct host_name *host = calloc(job->count + 1, sizeof(*host));
	size_t i;

	if (!host)
		return false;
	for (i = 0; i < job->count; i++)
		host[i] = (struct host_name){ job->seen[i]->page.host, i };
	qsort(host, job->count, sizeof(*host), by_host);
	for (i = 0; i < job->count; i++)
		first[host[i].index] = i && !strcmp(host[i].name, host[i - 1].name) ?
					       first[host[i - 1].index] : host[i].index;
	free(host);
	return true;
}

static bool hosts_find(struct hosts *hosts, const struct coll_flight_job *job)
{
	size_t i;

	hosts->of = calloc(job->count, sizeof(*hosts->of));
	if (!hosts->of || !coll_flight_first_of_host(job, hosts->of))
		return false;
	for (i = 0; i < job->count; i++)
		hosts->of[i] = hosts->of[i] < i ? hosts->of[hosts->of[i]] : hosts->count++;
	hosts->fastest = calloc(hosts->count, (size_t)hosts->count * sizeof(*hosts->fastest));
	for (i = 0; hosts->fastest && i < (size_t)hosts->count * hosts->count; i++)
		hosts->fastest[i] = NEVER;
	return hosts->fastest;
}

static void hosts_measure(struct hosts *hosts, const struct coll_flight_message *messages,
			  size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const uint32_t from = hosts->of[messages[i].from], to = hosts->of[messages[i].to];
		int64_t *fastest = &hosts->fastest[(size_t)from * hosts->count + to];
		const int64_t took = messages[i].got - messages[i].sent;

		if (took < *fastest)
			*fastest = took;
	}
}

/* Of CLOCK_REALTIME against CLOCK_MONOTONIC, on the host of this rank. */
static int64_t realtime_of(const struct coll_flight_job *job, size_t index)
{
	return job->seen[index]->page.realtime - job->seen[index]->page.opened;
}

/* In s. A clock that drifts makes a negative one: it is wrong by as much. */
static double half_round_trip(int64_t there, int64_t back)
{
	const double ns = (double)there + back;

	return ns > 0 ? ns / 2e9 : -ns / 2e9;
}

/* From a host whose offset is known to its neighbours. Returns whether any was new. */
static bool hosts_spread(const struct hosts *hosts, int64_t *offset, double *error)
{
	const uint32_t n = hosts->count;
	bool any = false;
	uint32_t from, to;

	for (from = 0; from < n; from++)
		for (to = 0; to < n; to++) {
			const int64_t there = hosts->fastest[from * n + to];
			const int64_t back = hosts->fastest[to * n + from];

			if (error[from] < 0 || error[to] >= 0 || there == NEVER || back == NEVER)
				continue;
			offset[to] = (uint64_t)offset[from] - (there / 2 - back / 2);
			error[to] = error[from] + half_round_trip(there, back);
			any = true;
		}
	return any;
}

static void clocks_take(struct coll_flight_clocks *clocks, const struct coll_flight_job *job,
			const struct hosts *hosts, const int64_t *offset, const double *error)
{
	size_t i;

	for (i = 0; i < job->count; i++) {
		const uint32_t host = hosts->of[i];
		const bool known = error[host] >= 0;

		clocks->offset[i] = known ? offset[host] :
					    realtime_of(job, i) - realtime_of(job, 0);
		if (!known || clocks->error < 0)
			clocks->error = -1;
		else if (error[host] > clocks->error)
			clocks->error = error[host];
	}
}

static void clocks_judge(struct coll_flight_clocks *clocks,
			 const struct coll_flight_message *messages, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const int64_t took = (int64_t)(messages[i].got - messages[i].sent) +
				     clocks->offset[messages[i].to] -
				     clocks->offset[messages[i].from];

		if (-took / 1e9 > clocks->late)
			clocks->late = -took / 1e9;
	}
}

bool coll_flight_align(const struct coll_flight_job *job,
		       const struct coll_flight_message *messages, size_t count,
		       struct coll_flight_clocks *clocks)
{
	struct hosts hosts = { .count = 0 };
	int64_t *offset = NULL;
	double *error = NULL;
	uint32_t i;

	*clocks = (struct coll_flight_clocks){ .offset = calloc(job->count, sizeof(*clocks->offset)) };
	if (hosts_find(&hosts, job)) {
		offset = calloc(hosts.count, sizeof(*offset));
		error = calloc(hosts.count, sizeof(*error));
	}
	if (clocks->offset && offset && error) {
		hosts_measure(&hosts, messages, count);
		for (i = 1; i < hosts.count; i++)
			error[i] = -1;
		while (hosts_spread(&hosts, offset, error))
			;
		clocks_take(clocks, job, &hosts, offset, error);
		clocks_judge(clocks, messages, count);
	}
	free(hosts.of);
	free(hosts.fastest);
	free(error);
	i = offset != NULL;
	free(offset);
	return clocks->offset && i;
}
