// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcoll/base/clock.h"
#include "libcoll/exec/group.h"
#include "wan.h"

enum { BYTES_FIRST = 1 << 14, BYTES_MAX = 1 << 28, PINGS = 5 };

static const double long_enough = 0.3;	/* seconds: slow start has ended long before */

/* ---- streams -------------------------------------------------------------- */

/* Number `which` of a file below /proc/sys/net; 0: it does not exist. */
static uint64_t sysctl_number(const char *name, int which)
{
	unsigned long long number[3] = { 0 };
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/sys/net/%s", name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%llu %llu %llu", &number[0], &number[1], &number[2]) <= which)
		number[which] = 0;
	fclose(file);
	return number[which];
}

static uint64_t wan_less(uint64_t a, uint64_t b)
{
	return b && b < a ? b : a;
}

/*
 * Payload in flight that a connection between clusters can have. The kernel uses half of a
 * socket's limit for its own accounting, and doubles a value that is set.
 */
static uint64_t window_bytes(const struct coll_options *options)
{
	uint64_t set = options->wan_buffer_bytes ? options->wan_buffer_bytes :
						   options->buffer_bytes;

	if (set)
		return wan_less(wan_less(set, sysctl_number("core/wmem_max", 0)),
				sysctl_number("core/rmem_max", 0));
	return wan_less(sysctl_number("ipv4/tcp_wmem", 2), sysctl_number("ipv4/tcp_rmem", 2)) / 2;
}

/* Bytes in flight of a link that sends as fast as it can. */
static double bdp_bytes(const struct coll_machine *m)
{
	const double beta = m->beta > m->wan_beta ? m->beta : m->wan_beta;

	return m->beta > 0 ? 2 * m->wan_alpha / beta : 0;
}

void coll_wan_settle(struct coll_context *context)
{
	const struct coll_options *options = &context->options;
	double streams = options->wan_streams;

	context->window = window_bytes(options);
	context->bdp = bdp_bytes(&options->machine);
	if (!options->wan_streams && context->window)
		streams = context->bdp / context->window + 1;
	context->streams = streams > WAN_STREAMS_MAX ? WAN_STREAMS_MAX :
			   streams < 1 ? 1 : (uint32_t)streams;
}

/* ---- measuring ------------------------------------------------------------ */

struct wan_measure {
	struct coll_group *all;
	uint8_t *data;
	struct coll_wan *found;
};

static double seconds_now(void)
{
	return coll_now() * 1e-9;
}

/*
 * The time for so many bytes and an answer, on the clock of the pair's first rank, which
 * may leave the barrier first or last; no other rank waits for it. The largest of all
 * pairs.
 */
static int time_pair(const struct wan_measure *m, struct coll_group *pair, size_t bytes,
		     double *seconds)
{
	int error = coll_barrier(m->all);
	double start;

	*seconds = 0;
	if (!error && pair)	/* both have left the barrier now */
		error = coll_bcast(m->data, 1, COLL_UINT8, 1, pair);
	start = seconds_now();
	if (!error && pair) {
		error = coll_bcast(m->data, bytes, COLL_UINT8, 0, pair);
		if (!error)
			error = coll_bcast(m->data, 1, COLL_UINT8, 1, pair);
		if (!coll_rank(pair))
			*seconds = seconds_now() - start;
	}
	return error ? error : coll_allreduce(COLL_IN_PLACE, seconds, 1, COLL_DOUBLE, COLL_MAX,
					      m->all);
}

/* Seconds for a message of one byte. */
static int time_message(const struct wan_measure *m, struct coll_group *pair, double *alpha)
{
	double seconds, best = 1e9;
	int i, error = 0;

	for (i = 0; i < PINGS && !error; i++) {
		error = time_pair(m, pair, 1, &seconds);
		best = seconds < best ? seconds : best;
	}
	*alpha = best / 2;
	return error;
}

/* Bytes per second of one pair while all send. */
static int time_bytes(const struct wan_measure *m, struct coll_group *pair, double alpha,
		      double *rate)
{
	double seconds;
	size_t bytes;

	for (bytes = BYTES_FIRST; ; bytes *= 4) {
		int error = time_pair(m, pair, bytes, &seconds);

		if (error)
			return error;
		if (seconds > long_enough + 20 * alpha || bytes * 4 > BYTES_MAX)
			break;
	}
	seconds -= 2 * alpha;
	*rate = bytes / (seconds > 1e-9 ? seconds : 1e-9);
	return 0;
}

/* Rank number `index` of a cluster; -1: it has fewer. */
static int wan_member(const struct coll_group *group, uint32_t cluster, int index)
{
	uint32_t rank;

	for (rank = 0; rank < group->ranks; rank++)
		if (group->cluster[rank] == cluster && !index--)
			return rank;
	return -1;
}

static int size_of(const struct coll_group *group, uint32_t cluster)
{
	int size = 0;

	while (wan_member(group, cluster, size) >= 0)
		size++;
	return size;
}

static int measure_near(const struct wan_measure *m)
{
	const uint32_t cluster = size_of(m->all, 0) > 1 ? 0 : 1;
	const int me = coll_rank(m->all);
	const bool mine =
		me == wan_member(m->all, cluster, 0) || me == wan_member(m->all, cluster, 1);
	struct coll_group *pair;
	double rate;
	int error;

	if (size_of(m->all, cluster) < 2)
		return 0;
	error = coll_group_split(m->all, mine ? 0 : -1, 0, &pair);
	if (error)
		return error;
	error = time_message(m, pair, &m->found->alpha);
	if (!error)
		error = time_bytes(m, pair, m->found->alpha, &rate);
	if (!error)
		m->found->beta = 1 / rate;
	coll_group_free(pair);
	return error;
}

/* With `links` pairs between clusters at once: the latency (*alpha), or the rate. */
static int measure_far(const struct wan_measure *m, uint32_t links, double *alpha)
{
	struct coll_wan *found = m->found;
	const int me = coll_rank(m->all);
	struct coll_group *pair;
	int colour = -1, error;
	double rate;
	uint32_t i;

	for (i = 0; i < links; i++)
		if (me == wan_member(m->all, 0, i) || me == wan_member(m->all, 1, i))
			colour = i;
	error = coll_group_split(m->all, colour, m->all->cluster[me], &pair);
	if (error)
		return error;
	if (alpha) {
		error = time_message(m, pair, alpha);
	} else {
		error = time_message(m, pair, &rate);	/* connects it and its streams */
		if (!error)
			error = time_bytes(m, pair, found->wan_alpha, &rate);
		found->point[found->points++] =
			(struct coll_wan_point){ .links = links, .rate = links * rate };
	}
	coll_group_free(pair);
	return error;
}

/*
 * Whether any number of links reached that multiple of one link's rate: then the WAN was not full,
 * however little each link carries.
 */
static bool in_proportion(const struct coll_wan *found)
{
	uint32_t i;

	for (i = 1; i < found->points; i++) {
		const double each = found->point[i].rate / found->point[i].links;

		if (each < 0.9 * found->point[0].rate || each > 1.1 * found->point[0].rate)
			return false;
	}
	return found->points > 1;
}

/* The rate of the WAN, if some number of links filled it, and the loss by overload. */
static void wan_fit(struct coll_wan *found)
{
	const struct coll_wan_point *last = &found->point[found->points - 1];
	const double one = found->point[0].rate, link = found->beta > 0 ? 1 / found->beta : one;
	double wan = 0, times;
	uint32_t i;

	if (found->beta <= 0)
		found->beta = 1 / one;
	for (i = 0; i < found->points; i++)
		if (found->point[i].rate > wan)
			wan = found->point[i].rate;
	if (wan > 0.9 * last->links * link || in_proportion(found))
		return;
	times = last->links * link / wan;
	found->wan_beta = 1 / wan;
	if (times > 1.1 && last->rate < wan)
		found->wan_loss = (wan / last->rate - 1) / (times - 1);
}

/* Sets parameters that no option sets. A loss is that of the rate it was measured with. */
static void wan_take(struct coll_options *options, const struct coll_wan *found)
{
	coll_options_take(options, &(struct coll_machine){
		.alpha = found->alpha,
		.beta = found->beta,
		.wan_alpha = found->wan_alpha,
		.wan_beta = found->wan_beta,
		.congestion = options->machine.wan_beta > 0 ? 0 : found->wan_loss,
	});
}

static int wan_measure(struct coll_context *context, const struct wan_measure *m)
{
	const int here = size_of(m->all, 0), there = size_of(m->all, 1);
	const uint32_t least = here < there ? here : there;
	struct coll_wan *found = m->found;
	uint32_t links;
	int error = measure_near(m);

	if (!error)
		error = measure_far(m, 1, &found->wan_alpha);
	wan_take(&context->options, found);
	coll_wan_settle(context);	/* links made from now on are final */
	for (links = 1; links < least && !error; links *= 2)
		error = measure_far(m, links, NULL);
	if (!error)
		error = measure_far(m, least, NULL);
	if (error)
		return error;
	wan_fit(found);
	wan_take(&context->options, found);
	coll_wan_settle(context);
	found->streams = context->streams;
	return 0;
}

bool coll_wan_is_measured(const struct coll_context *context)
{
	return !strcmp(context->options.wan, "auto") && context->world->clusters > 1;
}

int coll_wan_measure(struct coll_context *context)
{
	struct coll_group *world = context->world;
	struct wan_measure m = { .data = malloc(BYTES_MAX), .found = &context->wan };
	int error = m.data ? coll_group_to_measure(world, ~world->id - 1, &m.all) : -ENOMEM;

	if (!error) {
		error = wan_measure(context, &m);
		memcpy(world->text, m.all->text, sizeof(world->text));
		coll_group_free(m.all);
	}
	free(m.data);
	world->options.machine = context->options.machine;
	return error;
}

int coll_wan(struct coll_context *context, struct coll_wan *wan)
{
	const uint64_t size = wan->size;

	if (size < sizeof(uint64_t) || size > sizeof(*wan))
		return -EINVAL;
	if (!context->wan.points)
		return -ENODATA;
	memcpy(wan, &context->wan, size);
	wan->size = size;
	return 0;
}
