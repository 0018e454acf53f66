// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "libcoll/exec/poll.h"
#include "libcoll/engine/engine.h"
#include "libcoll/exec/exec.h"
#include "libcoll/exec/run.h"
#include "libcoll/exec/failure.h"
#include "libcoll/link/link.h"

/* ---- ops ------------------------------------------------------------------ */

/* An empty entry is not known yet. */
const char *coll_circuits_node(struct coll_context *context, uint32_t world_rank, uint64_t deadline)
{
	char *name = context->circuits->peer[world_rank], key[32];
	size_t bytes = COLL_CIRCUIT_NAME - 1;

	if (*name)
		return name;
	snprintf(key, sizeof(key), "circuit/%u", world_rank);
	if (coll_boot_get(context->boot, key, name, &bytes, deadline))
		return NULL;
	name[bytes] = 0;
	return name;
}

/* The node of a peer of the schedule. */
static const char *circuits_peer_node(const struct coll_planned *planned, uint32_t peer,
				      uint64_t deadline)
{
	const struct coll_group *group = planned->group;

	return coll_circuits_node(group->context, group->world[planned->links[peer]->rank],
				  deadline);
}

/* Empty messages take the packet network: their link cannot wait for a circuit. */
static bool circuits_needed(const struct coll_exec *exec, uint32_t peer)
{
	const struct coll_schedule *s = exec->planned->schedule;
	bool needs = false;
	uint32_t i;

	for (i = 0; i < s->ops; i++) {
		const struct coll_op *op = &coll_ops(s)[i];

		if (op->peer != peer)
			continue;
		if (op->kind == COLL_OP_CONNECT)
			needs = true;
		else if (op->kind != COLL_OP_RELEASE && !op->bytes)
			return false;
	}
	return needs;
}

bool coll_circuits_free(const struct coll_exec *exec, uint32_t peer)
{
	struct coll_circuit_client *circuits = exec->group->context->circuits;
	const char *node;

	if (!circuits || !circuits_needed(exec, peer))
		return true;
	node = circuits_peer_node(exec->planned, peer, exec->deadline);
	return node && !strcmp(node, circuits->node);
}

/*
 * Both ends use a circuit in the same order, so the number of the use identifies it. One-way
 * circuits have numbers for each direction.
 */
static uint64_t circuits_session(struct coll_exec *exec, uint32_t index)
{
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[index];
	const uint32_t way = op->flags & COLL_ONE_WAY;
	const uint32_t from = way == COLL_CIRCUIT_OUT ? exec->group->rank + 1 :
			      way == COLL_CIRCUIT_IN ? exec->planned->links[op->peer]->rank + 1 : 0;
	const uint32_t number = ++exec->connects[2 * op->peer + (way == COLL_CIRCUIT_OUT)];
	uint64_t session = exec->group->id ^ (uint64_t)exec->number << 32 ^ number;

	session = (session ^ session >> 31) * 0xff51afd7ed558ccdull ^ from;
	session = (session ^ session >> 29) * 0xc4ceb9fe1a85ec53ull;
	return session ? session : 1;
}

bool coll_circuits_connect(struct coll_exec *exec, uint32_t op)
{
	struct coll_circuit_client *circuits = exec->group->context->circuits;
	const uint32_t peer = coll_ops(exec->planned->schedule)[op].peer;
	struct coll_circuit_request *request;
	const char *node;

	if (!circuits)
		return true;
	node = circuits_peer_node(exec->planned, peer, exec->deadline);
	if (node && !strcmp(node, circuits->node))
		return true;
	request = node ? malloc(sizeof(*request)) : NULL;
	if (!request) {
		coll_group_fail(exec->group, node ? -ENOMEM : -ENOENT,
				exec->planned->links[peer]->rank, COLL_NONE,
				node ? "no memory for the circuit to it"
				     : "it has no circuit manager, and this rank has");
		return false;
	}
	*request = (struct coll_circuit_request){ .exec = exec, .planned = exec->planned, .op = op,
					     .peer = peer, .node = node,
					     .session = circuits_session(exec, op) };
	coll_circuits_add(circuits, request);
	return false;
}

/* Releases the oldest request for the peer: the list has the latest first. */
void coll_circuits_release(struct coll_exec *exec, uint32_t op)
{
	struct coll_circuit_client *circuits = exec->group->context->circuits;
	const uint32_t peer = coll_ops(exec->planned->schedule)[op].peer;
	struct coll_circuit_request **slot, **oldest = NULL;

	if (!circuits)
		return;
	for (slot = &circuits->requests; *slot; slot = &(*slot)->next)
		if ((*slot)->exec == exec && (*slot)->peer == peer)
			oldest = slot;
	if (oldest)
		coll_circuits_give_back(circuits, oldest);
}

void coll_circuits_run_completed(struct coll_exec *exec)
{
	struct coll_circuit_client *circuits = exec->group->context->circuits;
	struct coll_circuit_request **slot;

	if (!circuits)
		return;
	slot = &circuits->requests;
	while (*slot)
		if ((*slot)->exec == exec)
			coll_circuits_give_back(circuits, slot);
		else
			slot = &(*slot)->next;
	if (exec->run && exec->run->persistent && !exec->status)
		coll_circuits_prefetch(exec->run);
}

/* ---- persistent runs ------------------------------------------------------ */

/* Releases requests of the run that are not by this plan; without a run, the group's. */
static void circuits_release_prefetched(const struct coll_group *group, const struct coll_run *run,
					const struct coll_planned *but)
{
	struct coll_circuit_client *circuits = group->context->circuits;
	struct coll_circuit_request **slot;

	if (!circuits)
		return;
	slot = &circuits->requests;
	while (*slot)
		if ((*slot)->run && (*slot)->planned != but &&
		    (run ? (*slot)->run == run : (*slot)->planned->group == group))
			coll_circuits_give_back(circuits, slot);
		else
			slot = &(*slot)->next;
}

static bool circuits_prefetched(const struct coll_circuit_client *circuits,
				const struct coll_run *run)
{
	const struct coll_circuit_request *request;

	for (request = circuits->requests; request; request = request->next)
		if (request->run == run && request->planned == run->planned)
			return true;
	return false;
}

/* Connect ops that wait for no other op: the run begins with them. */
void coll_circuits_prefetch(struct coll_run *run)
{
	struct coll_circuit_client *circuits = run->group->context->circuits;
	const struct coll_planned *planned = run->planned;
	const struct coll_schedule *s = planned->schedule;
	uint32_t i;

	if (!circuits || circuits_prefetched(circuits, run))
		return;
	for (i = 0; i < s->ops; i++) {
		const struct coll_op *op = &coll_ops(s)[i];
		struct coll_circuit_request *request;
		const char *node;

		if (op->kind != COLL_OP_CONNECT || op->waits)
			continue;
		node = circuits_peer_node(planned, op->peer,
					  coll_now() + run->group->options.deadline_ns);
		if (!node || !strcmp(node, circuits->node))
			continue;
		request = malloc(sizeof(*request));
		if (!request)
			return;		/* the connect op requests it again */
		*request = (struct coll_circuit_request){ .run = run, .planned = planned, .op = i,
						     .peer = op->peer, .node = node };
		coll_circuits_add(circuits, request);
	}
	circuits_release_prefetched(run->group, run, planned);
}

void coll_circuits_forget(const struct coll_run *run)
{
	circuits_release_prefetched(run->group, run, NULL);
}

void coll_circuits_forget_group(const struct coll_group *group)
{
	circuits_release_prefetched(group, NULL, NULL);
}

void coll_circuits_started(const struct coll_run *run)
{
	const struct coll_schedule *s = run->planned->schedule;
	uint32_t i;

	if (!run->group->context->circuits)
		return;
	for (i = 0; i < s->ops; i++)
		if (coll_ops(s)[i].kind == COLL_OP_CONNECT && coll_ops(s)[i].waits) {
			coll_circuits_forget(run);
			return;
		}
}
