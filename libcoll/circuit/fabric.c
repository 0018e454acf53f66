// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The fabric that a group's circuits are planned for. From the manager: each rank's ports, the
 * wavelengths, the reconfiguration delay. Measured: the latency by barriers, the byte time by
 * long messages. Rank 0 asks the manager and broadcasts the result, when the group is made and
 * in its blocking barriers: a plan may change only where all ranks agree.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <math.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "uapi/coll_circuit.h"
#include "circuit.h"
#include "libcoll/base/stream.h"
#include "libcoll/exec/exec.h"

enum {
	ANSWER_S = 2,			/* timeout of the manager's answer */
	AGAIN_NS = 50000000,		/* at least between two requests */
	BARRIERS = 5,			/* the fastest counts; the first one connects */
};

/* A measured time has changed if it is by this factor longer or shorter. */
static const double otherwise = 2;

static size_t fabric_bytes(const struct coll_group *group)
{
	return sizeof(struct coll_circuit_fabric) + group->ranks * sizeof(uint32_t);
}

/* ---- rank 0: the manager's answer ----------------------------------------- */

static void fabric_take_node(struct coll_group *group, const struct coll_circuit_message *m,
			     const uint64_t deadline, struct coll_circuit_fabric *fabric)
{
	uint32_t rank, here = 0;

	for (rank = 0; rank < group->ranks; rank++) {
		const char *node = coll_circuits_node(group->context, group->world[rank], deadline);

		here += node && !strncmp(node, m->node.name, sizeof(m->node.name));
	}
	for (rank = 0; rank < group->ranks && here; rank++) {
		const char *node = coll_circuits_node(group->context, group->world[rank], deadline);

		if (node && !strncmp(node, m->node.name, sizeof(m->node.name)))
			fabric->ports[rank] = m->node.ports > here ? m->node.ports / here : 1;
	}
}

/* Reads all that SHOW answers. What the manager does not know stays as it was. */
static int fabric_ask(struct coll_group *group, int fd, struct coll_circuit_fabric *fabric)
{
	const uint64_t deadline = coll_now() + group->options.deadline_ns;
	struct coll_circuit_message m = { .magic = COLL_CIRCUIT_MAGIC,
					  .version = COLL_CIRCUIT_VERSION,
					  .kind = COLL_CIRCUIT_MSG_SHOW };

	if (coll_stream_send(fd, &m, sizeof(m), coll_now() + ANSWER_S * COLL_SECOND))
		return -EIO;
	while (!coll_stream_receive(fd, &m, sizeof(m), coll_now() + ANSWER_S * COLL_SECOND)) {
		if (m.magic != COLL_CIRCUIT_MAGIC)
			return -EPROTO;
		if (m.kind == COLL_CIRCUIT_MSG_ANSWER)
			return m.answer.error;
		if (m.kind == COLL_CIRCUIT_MSG_NODE)
			fabric_take_node(group, &m, deadline, fabric);
		if (m.kind != COLL_CIRCUIT_MSG_SWITCH)
			continue;
		fabric->limit = m.status.limit;
		/* A rank that waits for several circuits waits for the slowest. */
		if (m.status.delay_p90_ns)
			fabric->delta = m.status.delay_p90_ns * 1e-9;
	}
	return -EIO;
}

static bool fabric_same_time(double a, double b)
{
	return a <= otherwise * b && b <= otherwise * a;
}

static bool fabric_same(const struct coll_group *group, const struct coll_circuit_fabric *a,
			const struct coll_circuit_fabric *b)
{
	return a->limit == b->limit && fabric_same_time(a->delta, b->delta) &&
	       !memcmp(a->ports, b->ports, group->ranks * sizeof(*a->ports));
}

/* The fabric stays as it is if the manager does not answer, or nothing has changed. */
static void fabric_look(struct coll_group *group, struct coll_circuit_fabric *fabric)
{
	const int fd = coll_circuits_dial(group->context);
	struct coll_circuit_fabric *seen = malloc(fabric_bytes(group));

	if (fd >= 0 && seen) {
		memcpy(seen, fabric, fabric_bytes(group));
		if (!fabric_ask(group, fd, seen) &&
		    (!seen->version || !fabric_same(group, seen, fabric))) {
			seen->version++;
			memcpy(fabric, seen, fabric_bytes(group));
		}
	}
	free(seen);
	if (fd >= 0)
		close(fd);
}

/* ---- all ranks ------------------------------------------------------------ */

static struct coll_circuit_fabric *fabric_make(const struct coll_group *group)
{
	struct coll_circuit_fabric *fabric = calloc(1, fabric_bytes(group));
	const struct coll_group *world = group->context->world;
	const double delta = group->options.machine.delta;
	uint32_t rank;

	for (rank = 0; fabric && rank < group->ranks; rank++)
		fabric->ports[rank] = 1;
	if (!fabric)
		return NULL;
	fabric->delta = delta > 0 ? delta : CIRCUIT_DELTA;
	if (world && world->fabric)
		fabric->beta = world->fabric->beta;	/* rank 0's is broadcast */
	return fabric;
}

/*
 * A message's latency while all ranks send: the time of one step of a barrier, on the packet
 * network. With more ranks than CPUs it exceeds the latency of a single message.
 */
static int fabric_measure_latency(struct coll_group *group, double *alpha)
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

/* ---- the byte time -------------------------------------------------------- */

/*
 * Bytes per second, TCP's latest sample of a link that was not limited by the application;
 * 0: no long message has used a circuit.
 */
static uint64_t fabric_link_rate(const struct coll_link *link)
{
	struct tcp_info info = { 0 };
	socklen_t bytes = sizeof(info);

	if (!link || !link->circuit_up || coll_link_fd(link) < 0 ||
	    getsockopt(coll_link_fd(link), IPPROTO_TCP, TCP_INFO, &info, &bytes) ||
	    info.tcpi_delivery_rate_app_limited)
		return 0;
	return info.tcpi_delivery_rate;
}

/*
 * All circuits have one speed, and disturbances make a sample slower: the fastest link of all
 * ranks counts. *changed: the byte time has changed, on all ranks alike.
 */
static int fabric_measure_bytes(struct coll_group *group, struct coll_circuit_fabric *fabric,
				bool *changed)
{
	uint64_t mine = 0, fastest = 0, rate;
	uint32_t rank;
	int error;

	for (rank = 0; rank < group->ranks; rank++) {
		rate = fabric_link_rate(group->links[rank]);
		mine = rate > mine ? rate : mine;
	}
	error = coll_allreduce(&mine, &fastest, 1, COLL_UINT64, COLL_MAX, group);
	*changed = !error && fastest && !fabric_same_time(fabric->beta, 1. / fastest);
	if (*changed)
		fabric->beta = 1. / fastest;
	return error;
}

/* ---- agreeing ------------------------------------------------------------- */

/* What rank 0 broadcasts first. */
struct fabric_news {
	uint32_t version, measure;
};

/* By collectives without circuits: the input of a plan cannot depend on one. */
int coll_circuits_agree(struct coll_group *group)
{
	struct coll_circuit_fabric *fabric = group->fabric ? group->fabric : fabric_make(group);
	const uint64_t now = coll_now(), explain = group->options.explain;
	const struct coll_machine *known = &group->options.machine;
	const bool first = !group->fabric;
	struct fabric_news news = { 0 };
	bool changed = false;
	int error = 0;

	if (!fabric)
		return -ENOMEM;
	if (!group->rank && (!fabric->version || now - group->fabric_asked > AGAIN_NS)) {
		fabric_look(group, fabric);
		group->fabric_asked = now;
		news.measure = !first && fabric->version && known->beta <= 0;
	}
	news.version = fabric->version;
	group->fabric = NULL;
	group->options.explain = 0;
	if (first && known->alpha <= 0)
		error = fabric_measure_latency(group, &fabric->alpha);
	if (!error)
		error = coll_bcast(&news, sizeof(news), COLL_UINT8, 0, group);
	if (!error && news.measure)
		error = fabric_measure_bytes(group, fabric, &changed);
	if (changed)	/* the same at all ranks */
		fabric->version = ++news.version;
	if (!error && news.version != group->fabric_agreed)
		error = coll_bcast(fabric, fabric_bytes(group), COLL_UINT8, 0, group);
	group->options.explain = explain;
	group->fabric_agreed = news.version;
	group->fabric = fabric;
	return error;
}

void coll_circuits_agree_again(void *argument)
{
	struct coll_group *group = argument;

	if (group->fabric && group->state == GROUP_OK)
		coll_circuits_agree(group);
}

bool coll_circuits_are_planned(const struct coll_context *context)
{
	return context->circuits && !strcmp(context->options.circuit_ports, "auto");
}
