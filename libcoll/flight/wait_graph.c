// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdlib.h>
#include <string.h>

#include "algo/common/algo.h"
#include "libcoll/base/clock.h"
#include "wait_graph.h"

enum {
	POLLS_NS = 300000000,		/* a rank that looked in so lately is not away */
	KERNEL_NS = 100000000,		/* a run in the kernel that takes longer waits */
	STUCK_NS = 1000000000,		/* a function of the application that takes longer is stuck */
};

/* ---- a rank -------------------------------------------------------------------------- */

const struct coll_flight_seen *coll_flight_of(const struct coll_flight_job *job, uint32_t rank)
{
	size_t i;

	/* Ordered by rank, mostly whole: it is there or before. */
	for (i = rank < job->count ? rank + 1 : job->count; i-- > 0;)
		if (job->seen[i]->page.rank == rank)
			return job->seen[i];
	return NULL;
}

const struct coll_flight_run *coll_flight_oldest(const struct coll_flight_seen *seen)
{
	const struct coll_flight_run *oldest = NULL;
	uint32_t i;

	for (i = 0; i < COLL_FLIGHT_RUNS; i++) {
		const struct coll_flight_run *run = &seen->page.run[i];

		if (run->where != COLL_FLIGHT_FREE && (!oldest || run->since < oldest->since))
			oldest = run;
	}
	return oldest;
}

/* A rank that tests its runs again and again counts as one that waits. */
bool coll_flight_inside(const struct coll_flight_seen *seen, uint64_t *since)
{
	const struct coll_flight_page *page = &seen->page;
	const bool by_call = strcmp(page->progress, "thread") && strcmp(page->progress, "helper");
	const struct coll_flight_run *oldest = coll_flight_oldest(seen);

	*since = by_call && page->now > page->left ? page->now : page->left;
	if (!page->inside &&
	    (!oldest || !by_call || seen->time > page->now + POLLS_NS))
		return false;
	*since = oldest ? oldest->since : page->now;
	return true;
}

bool coll_flight_in_function(const struct coll_flight_seen *seen)
{
	return seen->page.user_function && coll_flight_oldest(seen);
}

/* Its list of waits is older: while a function of the application runs it waits for nothing. */
static bool is_stuck_in_function(const struct coll_flight_seen *seen)
{
	return coll_flight_in_function(seen) && seen->time > seen->page.now + STUCK_NS;
}

void coll_flight_waits(const struct coll_flight_seen *seen,
		       void (*each)(const struct coll_flight_edge *edge, void *argument),
		       void *argument)
{
	uint32_t i;

	for (i = 0; i < seen->page.waits && !is_stuck_in_function(seen); i++) {
		const struct coll_flight_wait *wait = &seen->page.wait[i];
		const struct coll_flight_run *run = &seen->page.run[wait->run];
		const struct coll_flight_edge edge = { seen, *wait, run };

		if (run->where != COLL_FLIGHT_FREE && run->number == wait->number)
			each(&edge, argument);
	}
}

static const struct coll_flight_group *group_find(const struct coll_flight_page *page, uint64_t id,
						  uint32_t *entry)
{
	for (*entry = 0; *entry < COLL_FLIGHT_GROUPS; ++*entry)
		if (page->group[*entry].since && page->group[*entry].id == id)
			return &page->group[*entry];
	return NULL;
}

/*
 * Each rank numbers its own messages: the peer has this one if it waits for the same rank with
 * the other half of a message.
 */
static const struct coll_flight_run *message_run(const struct coll_flight_seen *peer,
						 const struct coll_flight_edge *edge, uint32_t group)
{
	uint32_t i;

	for (i = 0; i < peer->page.waits; i++) {
		const struct coll_flight_wait *wait = &peer->page.wait[i];
		const struct coll_flight_run *run = &peer->page.run[wait->run];

		if (run->where != COLL_FLIGHT_FREE && run->number == wait->number &&
		    run->group == group && wait->peer == edge->seen->page.rank &&
		    wait->kind != edge->wait.kind)
			return run;
	}
	return NULL;
}

const struct coll_flight_run *coll_wait_graph_run(const struct coll_flight_seen *peer,
					     const struct coll_flight_edge *edge,
					     enum wait_graph_run *has)
{
	const struct coll_flight_page *page = &peer->page, *from = &edge->seen->page;
	uint32_t entry, i;
	const struct coll_flight_group *group =
		group_find(page, from->group[edge->run->group].id, &entry);
	enum wait_graph_run unused;

	has = has ? has : &unused;
	*has = RUN_NOT_BEGUN;
	if (from->call[edge->run->call].collective >= COLL_COLLECTIVES) {
		const struct coll_flight_run *other = group ? message_run(peer, edge, entry) : NULL;

		*has = other ? RUN_SAME : RUN_NOT_BEGUN;
		return other;
	}
	if (!group || (int32_t)(group->begun - edge->run->number) <= 0)
		return NULL;
	for (i = 0; i < COLL_FLIGHT_RUNS; i++) {
		const struct coll_flight_run *run = &page->run[i];

		if (run->where == COLL_FLIGHT_FREE || run->group != entry ||
		    run->number != edge->run->number)
			continue;
		*has = page->call[run->call].hash == from->call[edge->run->call].hash ?
			       RUN_SAME : RUN_DIFFERS;
		return run;
	}
	*has = RUN_ENDED;
	return NULL;
}

uint32_t coll_wait_graph_hash_count(const struct coll_flight_job *job,
			       const struct coll_flight_edge *edge, uint32_t hash)
{
	uint32_t count = 0;
	size_t i;

	for (i = 0; i < job->count; i++) {
		const struct coll_flight_run *run = coll_wait_graph_run(job->seen[i], edge, NULL);

		count += run && job->seen[i]->page.call[run->call].hash == hash;
	}
	return count;
}

bool coll_wait_graph_is_local(const struct coll_flight_job *job, uint32_t rank)
{
	size_t i;
	uint32_t j;

	for (i = 0; i < job->count; i++)
		for (j = 0; j < job->seen[i]->page.links; j++)
			if (job->seen[i]->page.link[j].peer == rank &&
			    job->seen[i]->page.link[j].flags & COLL_FLIGHT_LOCAL)
				return true;
	return false;
}

/* ---- runs in the kernel ------------------------------------------------------------------ */

/* A group of the whole job has a rank that is not here, too: the first of those. */
static uint32_t missing_rank(const struct coll_flight_job *job)
{
	uint32_t rank = 0;

	while (rank < job->count && job->seen[rank]->page.rank == rank)
		rank++;
	return rank;
}

static bool is_member(const struct coll_flight_seen *peer, const struct coll_flight_group *group,
		      bool whole)
{
	uint32_t entry;

	return whole || group_find(&peer->page, group->id, &entry);
}

static void kernel_edges(const struct coll_flight_job *job, const struct coll_flight_seen *seen,
			 uint32_t entry,
			 void (*each)(const struct coll_flight_edge *edge, void *argument),
			 void *argument)
{
	const struct coll_flight_run *run = &seen->page.run[entry];
	const struct coll_flight_group *group = &seen->page.group[run->group];
	const bool whole = group->ranks == seen->page.ranks;
	struct coll_flight_edge edge = {
		.seen = seen,
		.wait = { .number = run->number, .run = entry, .kind = COLL_OP_RECV },
		.run = run,
	};
	enum wait_graph_run has;
	size_t i;

	for (i = 0; i < job->count; i++) {
		const struct coll_flight_seen *peer = job->seen[i];

		if (peer == seen || !is_member(peer, group, whole))
			continue;
		coll_wait_graph_run(peer, &edge, &has);
		edge.wait.peer = peer->page.rank;
		if (has != RUN_ENDED)
			each(&edge, argument);
	}
	edge.wait.peer = missing_rank(job);
	if (whole && edge.wait.peer < seen->page.ranks)
		each(&edge, argument);
}

void coll_wait_graph_edges(const struct coll_flight_job *job, const struct coll_flight_seen *seen,
			   void (*each)(const struct coll_flight_edge *edge, void *argument),
			   void *argument)
{
	uint32_t i;

	coll_flight_waits(seen, each, argument);
	for (i = 0; i < COLL_FLIGHT_RUNS; i++)
		if (seen->page.run[i].where == COLL_FLIGHT_KERNEL &&
		    seen->time > seen->page.run[i].since + KERNEL_NS &&
		    seen->page.call[seen->page.run[i].call].collective < COLL_COLLECTIVES)
			kernel_edges(job, seen, i, each, argument);
}

/* ---- paths ------------------------------------------------------------------------------ */

/* A walk along waits, depth first; each rank is entered once. */
struct walk {
	const struct coll_flight_job *job;
	uint8_t *entered;		/* per page of the job */
	struct coll_flight_edge *path;
	uint32_t length, most;
	bool done;
	uint32_t target;		/* of a chain */
	bool cycle;			/* else: a circle, back to a rank of the path */
	uint32_t from;			/* where the circle begins in the path */
};

static size_t walk_index(const struct walk *walk, const struct coll_flight_seen *seen)
{
	size_t i;

	for (i = 0; walk->job->seen[i] != seen; i++)
		;
	return i;
}

/*
 * The path from `from` on is a circle: a rank of it does not have the run that is awaited, and
 * none has been through it: what that one sent may still come, and the circle ends.
 */
static bool circle_is_fatal(const struct walk *walk, uint32_t from)
{
	bool fatal = false;
	uint32_t i;

	for (i = from; i < walk->length; i++) {
		const struct coll_flight_seen *peer =
			coll_flight_of(walk->job, walk->path[i].wait.peer);
		enum wait_graph_run has;

		if (!peer)
			return false;
		coll_wait_graph_run(peer, &walk->path[i], &has);
		if (has == RUN_ENDED)
			return false;
		fatal |= has == RUN_NOT_BEGUN;
	}
	return fatal;
}

/*
 * Both are in the same run in the kernel, so both wait for the same ranks: no circle needs this edge,
 * and of such edges there are as many as pairs of ranks.
 */
static bool is_kernel_twin(const struct coll_flight_edge *edge, const struct coll_flight_seen *peer)
{
	enum wait_graph_run has;

	if (edge->run->where != COLL_FLIGHT_KERNEL)
		return false;
	coll_wait_graph_run(peer, edge, &has);
	return has == RUN_SAME;
}

static void walk_from(struct walk *walk, const struct coll_flight_seen *seen);

static void walk_circle(struct walk *walk, uint32_t rank)
{
	uint32_t i;

	for (i = 0; i < walk->length && walk->path[i].seen->page.rank != rank; i++)
		;
	if (i == walk->length || !circle_is_fatal(walk, i))
		return;
	walk->from = i;
	walk->done = true;
}

static void walk_edge(const struct coll_flight_edge *edge, void *argument)
{
	struct walk *walk = argument;
	const struct coll_flight_seen *peer = coll_flight_of(walk->job, edge->wait.peer);

	if (walk->done || walk->length == walk->most)
		return;
	if (walk->cycle && peer && is_kernel_twin(edge, peer))
		return;
	walk->path[walk->length++] = *edge;
	if (walk->cycle)
		walk_circle(walk, edge->wait.peer);
	else
		walk->done = edge->wait.peer == walk->target;
	if (!walk->done && peer)
		walk_from(walk, peer);
	if (!walk->done)
		walk->length--;
}

static void walk_from(struct walk *walk, const struct coll_flight_seen *seen)
{
	uint8_t *entered = &walk->entered[walk_index(walk, seen)];

	if (*entered)
		return;
	*entered = 1;
	coll_wait_graph_edges(walk->job, seen, walk_edge, walk);
}

static void walk_all(struct walk *walk, const struct coll_flight_job *job)
{
	size_t i;

	walk->job = job;
	walk->entered = calloc(job->count + 1, 1);
	walk->path = calloc(walk->most + 1, sizeof(*walk->path));
	for (i = 0; walk->entered && walk->path && i < job->count && !walk->done; i++) {
		walk->length = 0;
		walk_from(walk, job->seen[i]);
	}
	free(walk->entered);
}

uint32_t coll_wait_graph_cycle(const struct coll_flight_job *job, struct coll_flight_edge *cycle,
			  uint32_t most)
{
	struct walk walk = { .cycle = true, .most = 4096 };
	uint32_t length = 0;

	walk_all(&walk, job);
	if (walk.done && walk.length - walk.from <= most) {
		length = walk.length - walk.from;
		memcpy(cycle, walk.path + walk.from, length * sizeof(*cycle));
	}
	free(walk.path);
	return length;
}

uint32_t coll_wait_graph_chain(const struct coll_flight_job *job, uint32_t rank, uint32_t *chain,
			  uint32_t most)
{
	struct walk walk = { .target = rank, .most = most - 1 };
	uint32_t i;

	walk_all(&walk, job);
	for (i = 0; walk.done && i < walk.length; i++)
		chain[i] = walk.path[i].seen->page.rank;
	if (walk.done)
		chain[i++] = rank;
	free(walk.path);
	return i;
}
