// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algo/common/runs.h"
#include "libcoll/exec/exec.h"
#include "libcoll/exec/group.h"
#include "libcoll/link/link.h"
#include "numbers.h"
#include "topology.h"

enum {
	NAME_MAX_BYTES = 64,
	ROUNDS = 3,			/* of small messages; the fastest counts */
};

#define NOWHERE	COLL_NONE		/* the cluster of a rank without a name */

static const double near_limit = 1e-3;	/* seconds, round trip: longer is far */

__attribute__((format(printf, 3, 4)))
static int topology_fail(char *why, size_t why_bytes, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, why_bytes, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static int topology_allocate(struct coll_context *context)
{
	context->cluster = calloc(context->boot->ranks, sizeof(*context->cluster));
	return context->cluster ? 0 : -ENOMEM;
}

/* ---- "8+8": runs of ranks ------------------------------------------------ */

static int learn_runs(struct coll_context *context, const char *how, char *why, size_t why_bytes)
{
	const char *rest = coll_runs_read(how, context->cluster, context->boot->ranks);

	if (rest && !*rest)
		return 0;
	return topology_fail(why, why_bytes,
			     "option clusters: '%s' is not the sizes of clusters, like 8+8, of %d "
			     "ranks together", how, context->boot->ranks);
}

/* ---- names ---------------------------------------------------------------- */

/* Whether "3", "0-7" or a host's name matches this rank. */
static bool is_me(const char *member, uint32_t rank, const char *host)
{
	unsigned int low, high;
	char rest;

	if (sscanf(member, "%u-%u%c", &low, &high, &rest) == 2)
		return rank >= low && rank <= high;
	if (sscanf(member, "%u%c", &low, &rest) == 1)
		return rank == low;
	return !strcmp(member, host);
}

/* Reads lines of "RANKS CLUSTER"; # begins a comment. Leaves `name` alone if none matches. */
static int name_from_file(const struct coll_context *context, const char *path, char *name)
{
	FILE *file = fopen(path, "re");
	char line[512], member[256], cluster[NAME_MAX_BYTES], host[256] = "";

	if (!file)
		return -errno;
	gethostname(host, sizeof(host) - 1);
	while (!*name && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "#\n")] = 0;
		if (sscanf(line, "%255s %63s", member, cluster) == 2 &&
		    is_me(member, context->boot->rank, host))
			strcpy(name, cluster);
	}
	fclose(file);
	return 0;
}

/* Numbers clusters by the first rank of each, so rank 0's is cluster 0. */
static int number_names(struct coll_context *context, uint64_t deadline)
{
	const uint32_t ranks = context->boot->ranks;
	char (*names)[NAME_MAX_BYTES] = calloc(ranks, sizeof(*names));
	uint32_t rank, i, known = 0;
	int error = names ? 0 : -ENOMEM;

	for (rank = 0; rank < ranks && !error; rank++) {
		char key[32], name[NAME_MAX_BYTES] = "";
		size_t bytes = sizeof(name) - 1;

		snprintf(key, sizeof(key), "cluster/%u", rank);
		error = coll_boot_get(context->boot, key, name, &bytes, deadline);
		for (i = 0; i < known && strcmp(names[i], name); i++)
			;
		if (i == known)
			strcpy(names[known++], name);
		context->cluster[rank] = *name ? i : NOWHERE;
	}
	free(names);
	return error;
}

static int learn_names(struct coll_context *context, const char *how, char *why, size_t why_bytes)
{
	const uint64_t deadline = coll_now() + context->options.deadline_ns;
	char name[NAME_MAX_BYTES] = "", key[32];
	uint32_t rank;
	int error = 0, fence;

	snprintf(name, sizeof(name), "%s", context->options.cluster);
	if (strchr(how, '/') && !*name)
		error = name_from_file(context, how, name);
	if (error)
		snprintf(why, why_bytes, "option clusters: %s: %s", how, strerror(-error));
	snprintf(key, sizeof(key), "cluster/%d", context->boot->rank);
	if (!error)
		error = coll_boot_put(context->boot, key, name, strlen(name));
	fence = coll_boot_fence(context->boot, deadline);
	if (!error)
		error = fence;
	if (!error && !context->boot->rank)
		error = number_names(context, deadline);
	error = coll_numbers_share(context, &(struct coll_numbers){ "clusters", context->cluster }, 1,
				   error, deadline);
	for (rank = 0; rank < (uint32_t)context->boot->ranks && !error; rank++)
		if (context->cluster[rank] == NOWHERE)
			error = topology_fail(why, why_bytes,
					      "rank %u is in no cluster: %s has none for "
					      "it, and it has no option cluster",
					      rank, strchr(how, '/') ? how : "no file");
		else if (context->cluster[rank] >= (uint32_t)context->boot->ranks)
			error = -EPROTO;	/* rank 0 has not written this */
	return error;
}

bool coll_topology_is_measured(const char *how)
{
	return !strncmp(how, "auto", 4) && (!how[4] || how[4] == ':');
}

int coll_topology_learn(struct coll_context *context, const char *how, char *why, size_t why_bytes)
{
	int error;

	if (!*how || !strcmp(how, "off") || context->boot->ranks == 1)
		return 0;
	error = topology_allocate(context);
	if (error || coll_topology_is_measured(how))
		return error;
	if (strchr(how, '/') || !strcmp(how, "named"))
		return learn_names(context, how, why, why_bytes);
	return learn_runs(context, how, why, why_bytes);
}

/* ---- measured -------------------------------------------------------------- */

/* The least round trip of the link's TCP, in seconds; 0: it has none. */
static double link_seconds(const struct coll_link *link)
{
	struct tcp_info info = { 0 };
	socklen_t bytes = sizeof(info);

	if (!link || coll_link_fd(link) < 0 ||
	    getsockopt(coll_link_fd(link), IPPROTO_TCP, TCP_INFO, &info, &bytes))
		return 0;
	return info.tcpi_min_rtt * 1e-6;
}

/* One rank's measurements. */
struct view {
	double far;			/* seconds, to the farthest rank */
	uint8_t near[];		/* per rank */
};

static void topology_look(const struct coll_group *world, double limit, struct view *view)
{
	uint32_t rank;

	view->far = 0;
	for (rank = 0; rank < world->ranks; rank++) {
		double seconds = rank == world->rank ? 0 : link_seconds(world->links[rank]);

		view->near[rank] = seconds <= limit;
		view->far = seconds > view->far ? seconds : view->far;
	}
}

/* One rank exchanges messages with all others and broadcasts which are near it. */
static int view_from(struct coll_group *world, uint32_t root, double limit, struct view *view)
{
	const size_t bytes = sizeof(*view) + world->ranks;
	uint8_t small = 0, *all = malloc(world->ranks);
	int error = all ? 0 : -ENOMEM, i;

	for (i = 0; i < ROUNDS && !error; i++) {
		error = coll_bcast(&small, 1, COLL_UINT8, root, world);
		if (!error)
			error = coll_gather(&small, all, 1, COLL_UINT8, root, world);
	}
	free(all);
	if (error)
		return error;
	if (world->rank == root)
		topology_look(world, limit, view);
	return coll_bcast(view, bytes, COLL_UINT8, root, world);
}

/* The lowest rank without a cluster measures its own. */
static int topology_measure(struct coll_group *world, double limit, struct view *view)
{
	struct coll_context *context = world->context;
	uint32_t root = 0, clusters = 0, rank;
	double far = 0;

	memset(context->cluster, 0xff, world->ranks * sizeof(*context->cluster));
	for (; root < world->ranks; root++) {
		int error;

		if (context->cluster[root] != COLL_NONE)
			continue;
		error = view_from(world, root, limit, view);
		if (error)
			return error;
		far = view->far > far ? view->far : far;
		for (rank = root; rank < world->ranks; rank++)
			if ((rank == root || view->near[rank]) && context->cluster[rank] == COLL_NONE)
				context->cluster[rank] = clusters;
		clusters++;
	}
	if (clusters > 1 && context->options.machine.wan_alpha <= 0)
		context->options.machine.wan_alpha = far / 2;
	return 0;
}

int coll_topology_measure(struct coll_context *context, const char *how)
{
	struct coll_group *world = context->world;
	struct view *view = calloc(1, sizeof(*view) + world->ranks);
	struct coll_group *group;
	double limit = near_limit;
	int error;

	if (!view)
		return -ENOMEM;
	if (how[4])
		coll_options_time(how + 5, &limit);
	error = coll_group_to_measure(world, ~world->id, &group);
	if (!error) {
		error = topology_measure(group, limit, view);
		memcpy(world->text, group->text, sizeof(world->text));
		coll_group_free(group);
	}
	free(view);
	world->options.machine = context->options.machine;
	if (!error)
		error = coll_group_find_clusters(world);
	return error ? error : coll_group_find_levels(world);
}

