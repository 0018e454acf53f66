// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What a group plans its circuits for: the ports of each rank, the wavelengths, the
 * set-up time, as the manager says; the latency, as barriers take; the byte time, as
 * long messages took. Rank 0 asks the manager and tells the others, when the group is made
 * and in its blocking barriers: only where all agree may a plan change.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <math.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "uapi/coll_circuit.h"
#include "circuit.h"
#include "libcoll/exec/exec.h"

enum {
	ANSWER_S = 2,			/* the manager has so long to tell all */
	AGAIN_NS = 50000000,		/* it is not asked more often */
	BARRIERS = 5,			/* the fastest tells the latency; the first connects */
};

/* A measured time counts as another one if it is so many times as long. */
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
		const char *node = coll_circuits_node(group->context, group->world[rank], deadline);

		here += node && !strncmp(node, m->node.name, sizeof(m->node.name));
	}
	for (rank = 0; rank < group->ranks && here; rank++) {
		const char *node = coll_circuits_node(group->context, group->world[rank], deadline);

		if (node && !strncmp(node, m->node.name, sizeof(m->node.name)))
			terms->ports[rank] = m->node.ports > here ? m->node.ports / here : 1;
	}
}

/* All that it shows, up to its answer. What it does not know of stays as it was. */
static int terms_ask(struct coll_group *group, int fd, struct circuit_terms *terms)
{
	const uint64_t deadline = coll_now() + group->options.deadline_ns;
	const struct timeval patience = { .tv_sec = ANSWER_S };
	struct coll_circuit_message m = { .magic = COLL_CIRCUIT_MAGIC,
					  .version = COLL_CIRCUIT_VERSION,
					  .kind = COLL_CIRCUIT_MSG_SHOW };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (send(fd, &m, sizeof(m), MSG_NOSIGNAL) != sizeof(m))
		return -EIO;
	while (recv(fd, &m, sizeof(m), MSG_WAITALL) == sizeof(m)) {
		if (m.magic != COLL_CIRCUIT_MAGIC)
			return -EPROTO;
		if (m.kind == COLL_CIRCUIT_MSG_ANSWER)
			return m.answer.error;
		if (m.kind == COLL_CIRCUIT_MSG_NODE)
			take_node(group, &m, deadline, terms);
		if (m.kind != COLL_CIRCUIT_MSG_SWITCH)
			continue;
		terms->limit = m.status.limit;
		/* Who waits for several waits for the slowest. */
		if (m.status.delay_p90_ns)
			terms->delta = m.status.delay_p90_ns * 1e-9;
	}
	return -EIO;
}

static bool same_time(double a, double b)
{
	return a <= otherwise * b && b <= otherwise * a;
}

static bool same_terms(const struct coll_group *group, const struct circuit_terms *a,
		       const struct circuit_terms *b)
{
	return a->limit == b->limit && same_time(a->delta, b->delta) &&
	       !memcmp(a->ports, b->ports, group->ranks * sizeof(*a->ports));
}

/* Leaves the terms as they are where the manager does not answer, or says nothing new. */
static void terms_look(struct coll_group *group, struct circuit_terms *terms)
{
	const int fd = coll_circuits_dial(group->context);
	struct circuit_terms *seen = malloc(terms_bytes(group));

	if (fd >= 0 && seen) {
		memcpy(seen, terms, terms_bytes(group));
		if (!terms_ask(group, fd, seen) &&
		    (!seen->version || !same_terms(group, seen, terms))) {
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
	const struct coll_group *world = group->context->world;
	const double delta = group->options.machine.delta;
	uint32_t rank;

	for (rank = 0; terms && rank < group->ranks; rank++)
		terms->ports[rank] = 1;
	if (!terms)
		return NULL;
	terms->delta = delta > 0 ? delta : CIRCUIT_DELTA;
	if (world && world->terms)
		terms->beta = world->terms->beta;	/* rank 0's is told to all */
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

/* ---- the byte time ---------------------------------------------------------- */

/*
 * Bytes a second in TCP's latest sample of a link that had more to send; 0: no long
 * message went over a circuit.
 */
static uint64_t link_rate(const struct coll_link *link)
{
	struct tcp_info info = { 0 };
	socklen_t bytes = sizeof(info);

	if (!link || !link->lit || link->socket.fd < 0 ||
	    getsockopt(link->socket.fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) ||
	    info.tcpi_delivery_rate_app_limited)
		return 0;
	return info.tcpi_delivery_rate;
}

/*
 * Circuits are alike, and what disturbs a sample makes it slower: the fastest of all ranks'
 * links counts. *other: all plan for another one now.
 */
static int measure_bytes(struct coll_group *group, struct circuit_terms *terms, bool *other)
{
	uint64_t mine = 0, fastest = 0, rate;
	uint32_t rank;
	int error;

	for (rank = 0; rank < group->ranks; rank++) {
		rate = link_rate(group->links[rank]);
		mine = rate > mine ? rate : mine;
	}
	error = coll_allreduce(&mine, &fastest, 1, COLL_UINT64, COLL_MAX, group);
	*other = !error && fastest && !same_time(terms->beta, 1. / fastest);
	if (*other)
		terms->beta = 1. / fastest;
	return error;
}

/* ---- agreeing ----------------------------------------------------------------- */

/* What rank 0 says first. */
struct told {
	uint32_t version, measure;
};

/* Told without circuits: what these are planned from cannot need them. */
int coll_circuits_agree(struct coll_group *group)
{
	struct circuit_terms *terms = group->terms ? group->terms : terms_make(group);
	const uint64_t now = coll_now(), explain = group->options.explain;
	const struct coll_machine *known = &group->options.machine;
	const bool first = !group->terms;
	struct told told = { 0 };
	bool other = false;
	int error = 0;

	if (!terms)
		return -ENOMEM;
	if (!group->rank && (!terms->version || now - group->terms_looked > AGAIN_NS)) {
		terms_look(group, terms);
		group->terms_looked = now;
		told.measure = !first && terms->version && known->beta <= 0;
	}
	told.version = terms->version;
	group->terms = NULL;
	group->options.explain = 0;
	if (first && known->alpha <= 0)
		error = measure_latency(group, &terms->alpha);
	if (!error)
		error = coll_bcast(&told, sizeof(told), COLL_UINT8, 0, group);
	if (!error && told.measure)
		error = measure_bytes(group, terms, &other);
	if (other)	/* the same at all ranks */
		terms->version = ++told.version;
	if (!error && told.version != group->terms_told)
		error = coll_bcast(terms, terms_bytes(group), COLL_UINT8, 0, group);
	group->options.explain = explain;
	group->terms_told = told.version;
	group->terms = terms;
	return error;
}

void coll_circuits_agree_again(void *argument)
{
	struct coll_group *group = argument;

	if (group->terms && group->state == GROUP_OK)
		coll_circuits_agree(group);
}

bool coll_circuits_are_planned(const struct coll_context *context)
{
	return context->circuits && !strcmp(context->options.circuit_ports, "auto");
}
