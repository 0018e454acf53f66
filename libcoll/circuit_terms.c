// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What a group plans its circuits for: the ports of each rank, the wavelengths, the
 * set-up time, as the manager says; and the latency, as barriers take. Rank 0 asks it and tells the others, when the group
 * is made and in its blocking barriers: only where all agree may a plan change.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "../uapi/coll_circuit.h"
#include "circuit.h"
#include "exec.h"

enum {
	ANSWER_S = 2,			/* the manager has so long to tell all */
	AGAIN_NS = 50000000,		/* it is not asked more often */
	BARRIERS = 5,			/* the fastest tells the latency; the first connects */
};

/* A measured set-up time counts as another one if it is so many times as long. */
static const double otherwise = 2;

static size_t terms_bytes(const struct coll_group *group)
{
	return sizeof(struct circuit_terms) + group->ranks * sizeof(uint32_t);
}

/* ---- rank 0: what the manager says ----------------------------------------- */

static void take_node(struct coll_group *group, const struct coll_circuit_message *m,
		      const uint64_t deadline, struct circuit_terms *terms)
{
	uint32_t rank, here = 0;

	for (rank = 0; rank < group->ranks; rank++) {
		const char *node = circuits_node(group->context, group->world[rank], deadline);

		here += node && !strncmp(node, m->node, sizeof(m->node));
	}
	for (rank = 0; rank < group->ranks && here; rank++) {
		const char *node = circuits_node(group->context, group->world[rank], deadline);

		if (node && !strncmp(node, m->node, sizeof(m->node)))
			terms->ports[rank] = m->value > here ? m->value / here : 1;
	}
}

/* All that it shows, up to its answer. What it does not know of stays as it was. */
static int ask(struct coll_group *group, int fd, struct circuit_terms *terms)
{
	const uint64_t deadline = coll_now() + group->options.deadline_ns;
	const struct timeval patience = { .tv_sec = ANSWER_S };
	struct coll_circuit_message m = { .magic = COLL_CIRCUIT_MAGIC,
					  .version = COLL_CIRCUIT_VERSION,
					  .kind = COLL_CIRCUIT_SHOW };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (send(fd, &m, sizeof(m), MSG_NOSIGNAL) != sizeof(m))
		return -EIO;
	while (recv(fd, &m, sizeof(m), MSG_WAITALL) == sizeof(m)) {
		if (m.magic != COLL_CIRCUIT_MAGIC)
			return -EPROTO;
		if (m.kind == COLL_CIRCUIT_ANSWER)
			return m.error;
		if (m.kind == COLL_CIRCUIT_NODE)
			take_node(group, &m, deadline, terms);
		if (m.kind != COLL_CIRCUIT_SWITCH)
			continue;
		terms->limit = m.value;
		if (m.count[COLL_CIRCUIT_DELTA_NS])
			terms->delta = m.count[COLL_CIRCUIT_DELTA_NS] * 1e-9;
	}
	return -EIO;
}

static bool same_terms(const struct coll_group *group, const struct circuit_terms *a,
		       const struct circuit_terms *b)
{
	return a->limit == b->limit && a->delta <= otherwise * b->delta &&
	       b->delta <= otherwise * a->delta &&
	       !memcmp(a->ports, b->ports, group->ranks * sizeof(*a->ports));
}

/* Leaves the terms as they are where the manager does not answer, or says nothing new. */
static void look(struct coll_group *group, struct circuit_terms *terms)
{
	const int fd = circuits_dial(group->context);
	struct circuit_terms *seen = malloc(terms_bytes(group));

	if (fd >= 0 && seen) {
		memcpy(seen, terms, terms_bytes(group));
		if (!ask(group, fd, seen) && (!seen->version || !same_terms(group, seen, terms))) {
			seen->version++;
			memcpy(terms, seen, terms_bytes(group));
		}
	}
	free(seen);
	if (fd >= 0)
		close(fd);
}

/* ---- all ranks -------------------------------------------------------------- */

static struct circuit_terms *terms_make(const struct coll_group *group)
{
	struct circuit_terms *terms = calloc(1, terms_bytes(group));
	const double delta = group->options.machine.delta;
	uint32_t rank;

	for (rank = 0; terms && rank < group->ranks; rank++)
		terms->ports[rank] = 1;
	if (terms)
		terms->delta = delta > 0 ? delta : CIRCUIT_DELTA;
	return terms;
}

/*
 * A message's latency while all ranks send, which with more ranks than CPUs is not that
 * of a message alone: the step of a barrier, on the network beside the circuits.
 */
static int measure_latency(struct coll_group *group, double *alpha)
{
	uint64_t fastest = UINT64_MAX;
	uint32_t steps = 0, i;
	int error = 0;

	while ((group->ranks - 1) >> steps)
		steps++;
	for (i = 0; i < BARRIERS && steps && !error; i++) {
		const uint64_t begun = coll_now();

		error = coll_barrier(group);
		if (coll_now() - begun < fastest)
			fastest = coll_now() - begun;
	}
	if (steps)
		*alpha = fastest * 1e-9 / steps;
	return error;
}

/* Told without circuits: what these are planned from cannot need them. */
int circuits_agree(struct coll_group *group)
{
	struct circuit_terms *terms = group->terms ? group->terms : terms_make(group);
	const uint64_t now = coll_now(), explain = group->options.explain;
	const bool first = !group->terms;
	uint32_t version;
	int error = 0;

	if (!terms)
		return -ENOMEM;
	if (!group->rank && (!terms->version || now - group->terms_looked > AGAIN_NS)) {
		look(group, terms);
		group->terms_looked = now;
	}
	group->terms = NULL;
	group->options.explain = 0;
	version = terms->version;
	if (first)
		error = measure_latency(group, &terms->alpha);
	if (!error)
		error = coll_bcast(&version, 1, COLL_UINT32, 0, group);
	if (!error && version != group->terms_told)
		error = coll_bcast(terms, terms_bytes(group), COLL_UINT8, 0, group);
	group->options.explain = explain;
	group->terms_told = version;
	group->terms = terms;
	return error;
}

void circuits_agree_again(void *argument)
{
	struct coll_group *group = argument;

	if (group->terms && group->state == GROUP_OK)
		circuits_agree(group);
}

bool circuits_are_planned(const struct coll_context *context)
{
	return context->circuits && !strcmp(context->options.circuit_ports, "auto");
}
