// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll wan: as a rank of a job, measures what the links inside a cluster and between
 * clusters carry, one and many at once, and prints it as options of the library:
 * from these it chooses algorithms and n.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../libcoll/coll.h"
#include "arena.h"
#include "arguments.h"
#include "command.h"

enum { POINTS = 32, BYTES_FIRST = 1 << 14, BYTES_MAX = 1 << 28, PINGS = 5 };

static const double long_enough = 0.3;	/* seconds: slow start is over long before */

struct measure {
	struct coll_context *context;
	struct coll_group *world;
	int rank, ranks, clusters;
	int *cluster;
	uint8_t *data;
	size_t room;
	bool json;
};

struct point {
	int links;
	double rate;		/* bytes a second, together */
};

struct found {
	double near_alpha, near_rate, far_alpha;
	int streams;		/* that carry the bulk of a link; 0: its own connection */
	struct point point[POINTS];
	int points;
};

static const char help[] =
"usage: coll run -n RANKS -- coll wan [--json]\n"
"\n"
"As the ranks of a job (coll run, coll lab, mpirun, srun): measures what a link inside\n"
"a cluster carries, and what 1, 2, 4, ... links between the first two clusters carry\n"
"together. Prints the library's options alpha, beta, wan_alpha, wan_beta and wan_loss:\n"
"lines for the file $COLL_CONFIG.\n"
"\n"
"Who is in which cluster: COLL_CLUSTERS, see coll(7); without it, that is measured.\n"
"\n"
"Exit status: 0 ok, 1 a call failed or there is one cluster only, 2 wrong usage.\n";

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static bool fine(const struct measure *m, const char *what, int error)
{
	if (error)
		fprintf(stderr, "coll wan: rank %d: %s: %s\n", m->rank, what,
			coll_last_error(m->world));
	return !error;
}

/* The most that any rank says, for all. */
static bool most(const struct measure *m, double *value)
{
	return fine(m, "allreduce", coll_allreduce(COLL_IN_PLACE, value, 1, COLL_DOUBLE, COLL_MAX,
						   m->world));
}

/* How long so many bytes and an answer take, by the clock of the pair's first, who may have
 * left the barrier first or last; nobody else waits for it. */
static bool time_pair(const struct measure *m, struct coll_group *pair, size_t bytes,
		      double *seconds)
{
	int error = coll_barrier(m->world);
	double start;

	*seconds = 0;
	if (!error && pair)	/* both have left it now */
		error = coll_bcast(m->data, 1, COLL_UINT8, 1, pair);
	start = now();
	if (!error && pair) {
		error = coll_bcast(m->data, bytes, COLL_UINT8, 0, pair);
		if (!error)
			error = coll_bcast(m->data, 1, COLL_UINT8, 1, pair);
		if (!coll_rank(pair))
			*seconds = now() - start;
	}
	return fine(m, "bcast", error) && most(m, seconds);
}

/* Seconds of a message of one byte, and bytes per second of one pair among all. */
static bool measure_pairs(const struct measure *m, struct coll_group *pair, double *alpha,
			  double *rate)
{
	double seconds, best = 1e9;
	size_t bytes;
	int i;

	for (i = 0; i < PINGS; i++) {
		if (!time_pair(m, pair, 1, &seconds))
			return false;
		best = seconds < best ? seconds : best;
	}
	*alpha = best / 2;
	for (bytes = BYTES_FIRST; ; bytes *= 4) {
		if (!time_pair(m, pair, bytes, &seconds))
			return false;
		if (seconds > long_enough + 10 * best || bytes * 4 > m->room)
			break;
	}
	*rate = bytes / (seconds - best > 1e-9 ? seconds - best : 1e-9);
	return true;
}

/* The index-th rank of a cluster; -1: it has not so many. */
static int member(const struct measure *m, int cluster, int index)
{
	int rank;

	for (rank = 0; rank < m->ranks; rank++)
		if (m->cluster[rank] == cluster && !index--)
			return rank;
	return -1;
}

static int size_of(const struct measure *m, int cluster)
{
	int size = 0, rank;

	for (rank = 0; rank < m->ranks; rank++)
		size += m->cluster[rank] == cluster;
	return size;
}

static bool measure_near(const struct measure *m, struct found *found)
{
	int cluster = size_of(m, 0) > 1 ? 0 : 1;
	bool mine = m->rank == member(m, cluster, 0) || m->rank == member(m, cluster, 1);
	struct coll_group *pair;
	bool ok;

	if (size_of(m, cluster) < 2)
		return true;
	if (!fine(m, "split", coll_group_split(m->world, mine ? 0 : -1, 0, &pair)))
		return false;
	ok = measure_pairs(m, pair, &found->near_alpha, &found->near_rate);
	coll_group_free(pair);
	return ok;
}

static int streams_made(const struct measure *m)
{
	struct coll_counters counters = { .size = sizeof(counters) };

	coll_counters(m->context, &counters);
	return counters.streams;
}

/* `links` pairs across at once. */
static bool measure_far(const struct measure *m, int links, struct found *found)
{
	struct point *point = &found->point[found->points++];
	struct coll_group *pair;
	int colour = -1, i;
	const int before = streams_made(m);
	double alpha, rate;
	bool ok;

	for (i = 0; i < links; i++)
		if (m->rank == member(m, 0, i) || m->rank == member(m, 1, i))
			colour = i;
	if (!fine(m, "split", coll_group_split(m->world, colour, m->cluster[m->rank], &pair)))
		return false;
	ok = measure_pairs(m, pair, &alpha, &rate);
	if (links == 1) {
		found->far_alpha = alpha;
		found->streams = streams_made(m) - before;
	}
	*point = (struct point){ links, links * rate };
	coll_group_free(pair);
	return ok;
}

/* What the WAN carries, if some number of links filled it; else 0. And what overload costs. */
static double fit(const struct found *found, double link, double *loss)
{
	const struct point *last = &found->point[found->points - 1];
	double wan = 0, times;
	int i;

	*loss = 0;
	for (i = 0; i < found->points; i++)
		if (found->point[i].rate > wan)
			wan = found->point[i].rate;
	if (wan > 0.9 * last->links * link)
		return 0;
	times = last->links * link / wan;
	if (times > 1.1 && last->rate < wan)
		*loss = (wan / last->rate - 1) / (times - 1);
	return wan;
}

static void print_found(const struct measure *m, const struct found *found)
{
	const double link = found->near_rate > 0 ? found->near_rate : found->point[0].rate;
	double loss, wan = fit(found, link, &loss);
	int i;

	if (m->json)
		printf("{\"alpha\": %g, \"beta\": %g, \"wan_alpha\": %g, \"wan_beta\": %g, "
		       "\"wan_loss\": %g, \"wan_streams\": %d, \"links\": [", found->near_alpha,
		       1 / link, found->far_alpha, wan > 0 ? 1 / wan : 0, loss,
		       found->streams ? found->streams : 1);
	for (i = 0; i < found->points; i++)
		printf(m->json ? "%s{\"links\": %d, \"rate\": %g}" :
				 "%s# %3d links across: %10.3f MB/s\n", m->json && i ? ", " : "",
		       found->point[i].links, found->point[i].rate / (m->json ? 1 : 1e6));
	if (m->json) {
		printf("]}\n");
		return;
	}
	if (found->streams)
		printf("wan_streams = %d\n", found->streams);
	if (found->near_alpha > 0)
		printf("alpha = %.1fus\n", found->near_alpha * 1e6);
	printf("beta = %.4fns\nwan_alpha = %.3fms\n", 1e9 / link, found->far_alpha * 1e3);
	if (wan > 0)
		printf("wan_beta = %.4fns\nwan_loss = %.3f\n", 1e9 / wan, loss);
	else
		printf("# wan_beta: all links together did not fill the WAN\n");
}

static bool measure(struct measure *m)
{
	int least = size_of(m, 0) < size_of(m, 1) ? size_of(m, 0) : size_of(m, 1), links;
	struct found found = { 0 };

	if (!measure_near(m, &found))
		return false;
	for (links = 1; links < least && found.points < POINTS - 1; links *= 2)
		if (!measure_far(m, links, &found))
			return false;
	if (!measure_far(m, least, &found))
		return false;
	if (!m->rank)
		print_found(m, &found);
	return true;
}

static bool join(struct measure *m)
{
	if (coll_open(getenv("COLL_CLUSTERS") ? NULL : "clusters=auto", &m->context)) {
		fprintf(stderr, "coll wan: %s\n", coll_context_error(NULL));
		return false;
	}
	m->world = coll_world(m->context);
	m->rank = coll_rank(m->world);
	m->ranks = coll_ranks(m->world);
	m->cluster = memory_grow(NULL, m->ranks, sizeof(int));
	m->clusters = coll_clusters(m->world, m->cluster);
	m->room = BYTES_MAX;
	m->data = memory_grow(NULL, 1, m->room);
	/* The way is measured, not the choice of the way. */
	return fine(m, "bcast", coll_group_set(m->world, "bcast", "linear"));
}

int cmd_wan(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct measure m = { 0 };
	int key, status = COMMAND_ERROR;

	optind = 1;
	opterr = 0;
	while ((key = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (key == 'h') {
			fputs(help, stdout);
			return COMMAND_OK;
		}
		if (key != 'j')
			return argument_unknown("wan", key, argv, long_options), COMMAND_USAGE;
		m.json = true;
	}
	if (!join(&m))
		goto out;
	if (m.clusters < 2) {
		if (!m.rank)
			fprintf(stderr, "coll wan: all ranks are near each other: one cluster\n");
		goto out;
	}
	status = measure(&m) ? COMMAND_OK : COMMAND_ERROR;
out:
	coll_close(m.context);
	free(m.cluster);
	free(m.data);
	return status;
}
