// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* How a call's schedule is made: choose the algorithm, emit, check, plan. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/circuits/circuits.h"
#include "algo/tuning.h"
#include "board.h"
#include "call.h"
#include "core/check.h"
#include "exec.h"
#include "fabric.h"
#include "fused.h"
#include "group.h"
#include "libcoll/link/link.h"
#include "machine.h"
#include "offload.h"
#include "order.h"
#include "published.h"
#include "unexpected.h"

uint32_t coll_planned_fabric(const struct coll_group *group)
{
	return group->fabric ? group->fabric->version : 0;
}

/* Machine parameters that no option sets are measured ones, or those of a 10 Gbit/s network. */
struct coll_machine coll_planned_machine(const struct coll_planned *planned)
{
	struct coll_machine known = coll_group_machine(planned->group);

	if (known.alpha <= 0)
		known.alpha = planned->alpha > 0 ? planned->alpha : 20e-6;
	if (known.beta <= 0)
		known.beta = planned->beta > 0 ? planned->beta : 0.8e-9;
	known.delta = planned->delta;
	return known;
}

static void go_without_circuits(struct coll_planned *planned)
{
	planned->tuning.ports = planned->tuning.wavelengths = COLL_UNSET;
	planned->call.ports = NULL;
}

/* Address space for planning circuits; unused pages cost nothing. */
enum { PLANNING_BYTES = 1 << 26 };

/* Memory that grows until its content fits. */
static int in_memory(uint64_t bytes, void **memory, struct coll_planned *planned,
		     int (*make)(struct coll_planned *planned, void *memory, uint64_t bytes,
				 void *made),
		     void *made)
{
	int error;

	do {
		*memory = malloc(bytes);
		error = *memory ? make(planned, *memory, bytes, made) : -ENOMEM;
		if (error) {
			free(*memory);
			*memory = NULL;
		}
		bytes *= 2;
	} while (error == -ENOSPC);
	return error;
}

static int make_choice(struct coll_planned *planned, void *memory, uint64_t bytes, void *choice)
{
	const struct coll_machine known = coll_planned_machine(planned);

	return coll_circuits_choose(&planned->call, &planned->tuning, &known, memory, bytes,
				    choice);
}

/*
 * The cheapest algorithm by predicted time of its schedule. An algorithm whose circuits
 * cannot be planned goes without: its links are made when needed.
 */
static int choose_with_circuits(struct coll_planned *planned)
{
	struct coll_circuits_choice choice;
	void *memory;
	int error = in_memory(PLANNING_BYTES, &memory, planned, make_choice, &choice);

	free(memory);
	if (error == -EOPNOTSUPP) {
		go_without_circuits(planned);
		return 0;
	}
	if (error)
		return error;
	planned->algo = choice.algo;
	planned->tuning = choice.tuning;
	return 0;
}

/* Ports of each rank, from the manager, for a call that names none. */
static int take_terms(struct coll_group *group, struct coll_planned *planned)
{
	const struct coll_circuit_fabric *fabric = group->fabric;
	const struct coll_call *call = &planned->call;
	uint32_t rank;

	planned->fabric = coll_planned_fabric(group);
	if (fabric)
		planned->delta = fabric->delta;
	if (planned->fabric) {	/* all ranks know them */
		planned->alpha = fabric->alpha;
		planned->beta = fabric->beta;
	}
	if (!planned->fabric || planned->tuning.ports != COLL_UNSET ||
	    call->collective == COLL_BARRIER)
		return 0;
	planned->ports = malloc(call->ranks * sizeof(*planned->ports));
	if (!planned->ports)
		return -ENOMEM;
	memcpy(planned->ports, fabric->ports, call->ranks * sizeof(*planned->ports));
	planned->call.ports = planned->ports;
	planned->tuning.ports = 1;
	for (rank = 0; rank < call->ranks; rank++)
		if (planned->tuning.ports < fabric->ports[rank])
			planned->tuning.ports = fabric->ports[rank];
	if (fabric->limit && planned->tuning.wavelengths == COLL_UNSET)
		planned->tuning.wavelengths = fabric->limit;
	if (planned->algo && coll_algo_refuses(planned->algo, call, &planned->tuning))
		go_without_circuits(planned);
	return 0;
}

struct prediction {
	struct coll_machine machine;
	struct coll_circuits_cost cost;
};

static int make_cost(struct coll_planned *planned, void *memory, uint64_t bytes, void *made)
{
	struct prediction *prediction = made;

	return coll_circuits_cost(planned->algo, &planned->call, &planned->tuning,
				  &prediction->machine, memory, bytes, &prediction->cost);
}

static int predict_on(struct coll_planned *planned, struct prediction *prediction)
{
	void *memory;
	const int error = in_memory(PLANNING_BYTES, &memory, planned, make_cost, prediction);

	free(memory);
	return error;
}

static struct coll_circuits_cost *planned_predict(struct coll_planned *planned)
{
	struct prediction prediction = { .machine = coll_planned_machine(planned) };
	struct coll_circuits_cost *cost = malloc(sizeof(*cost));

	planned->bound = coll_circuits_bound(&planned->call, &planned->tuning, &prediction.machine);
	if (!cost)
		return NULL;
	if (predict_on(planned, &prediction)) {
		free(cost);
		return NULL;
	}
	*cost = prediction.cost;
	prediction.machine.delta = 0;
	if (cost->fits && !predict_on(planned, &prediction))
		planned->connected = prediction.cost.seconds;
	return cost;
}

const struct coll_circuits_cost *coll_planned_cost(struct coll_planned *planned)
{
	if (planned->tuning.ports == COLL_UNSET)
		return NULL;
	if (!planned->cost)
		planned->cost = planned_predict(planned);
	return planned->cost;
}

static int choose_algo(struct coll_group *group, struct coll_planned *planned)
{
	const struct coll_call *call = &planned->call;
	const struct coll_options *options = &group->options;
	const struct coll_machine machine = coll_group_machine(group);
	const bool own = planned->user_op == COLL_OWN_CALL;
	const char *refusal;

	planned->tuning = own ? COLL_TUNING_UNSET : options->tuning[call->collective];
	planned->algo = own ? NULL : options->algo[call->collective];
	if (call->cluster && planned->tuning.lanes == COLL_UNSET)
		planned->tuning.lanes = coll_lanes_choose(call, &machine);
	planned->delta = options->machine.delta > 0 ? options->machine.delta : CIRCUIT_DELTA;
	if (take_terms(group, planned))
		return -ENOMEM;
	if (!planned->algo && planned->tuning.ports != COLL_UNSET && choose_with_circuits(planned))
		return -ENOMEM;
	if (!planned->algo)
		planned->algo = coll_algo_choose(call, &planned->tuning, &machine);
	if (planned->algo && !coll_algo_has_option(planned->algo, "n"))
		planned->tuning.lanes = COLL_UNSET;
	if (planned->algo)
		coll_tuning_choose(planned->algo, call, &machine, &planned->tuning);
	if (!planned->algo) {
		coll_group_explain(group, "no algorithm fits this %s",
				   coll_collective_names[call->collective]);
		return -EOPNOTSUPP;
	}
	refusal = coll_algo_refuses(planned->algo, call, &planned->tuning);
	if (!refusal)
		return 0;
	coll_group_explain(group, "%s cannot serve this %s: %s",
			   planned->algo->name, coll_collective_names[call->collective], refusal);
	return -EOPNOTSUPP;
}

/*
 * Of a message the schedule says only who may be waited for, and has its buffers. This rank
 * itself is no peer of it.
 */
static int emit_message(const struct coll_planned *planned, void *memory, uint64_t bytes,
			void *schedule)
{
	const struct coll_call *call = &planned->call;
	const uint64_t length = call->count * call->element;
	const bool sends = call->collective == COLL_CALL_SEND;
	struct coll_build b;
	uint32_t rank;
	u64 in, out;

	coll_build_init(&b, memory, bytes, call->rank, call->ranks);
	coll_call_buffers(call, &in, &out);
	coll_build_buffers(&b, in, out);
	if (sends && length <= URGENT_MAX)
		coll_emit_scratch(&b, length);	/* of what is sent at once, a copy */
	for (rank = 0; rank < call->ranks; rank++) {
		if (rank == call->rank || (call->root != COLL_NONE && call->root != rank))
			continue;
		if (sends)
			coll_emit_send(&b, rank, COLL_ADDRESS(COLL_IN, 0), length);
		else
			coll_emit_recv(&b, rank, COLL_ADDRESS(COLL_OUT, 0), length);
	}
	coll_emit_join(&b);
	return coll_build_finish(&b, schedule);
}

static int emit_into(struct coll_planned *planned, void *memory, uint64_t bytes, void *schedule)
{
	if (coll_call_is_message(&planned->call))
		return emit_message(planned, memory, bytes, schedule);
	return coll_algo_emit(planned->algo, &planned->call, &planned->tuning, memory, bytes,
			      schedule);
}

/*
 * The builder's time grows with its memory. With circuits it has a quarter of the memory in
 * which all candidates plan.
 */
static int make_schedule(struct coll_planned *planned)
{
	const uint64_t bytes = planned->tuning.ports == COLL_UNSET ? 16384 : PLANNING_BYTES / 8;
	void *memory;
	int error = in_memory(bytes, &memory, planned, emit_into, &planned->schedule);

	if (error) {
		planned->schedule = NULL;
		return error;
	}
	memory = realloc(memory, planned->schedule->bytes);
	planned->schedule = memory;
	return memory ? 0 : -ENOMEM;
}

static int check_schedule(struct coll_group *group, struct coll_planned *planned)
{
	const struct coll_schedule *s = planned->schedule;
	struct coll_refusal refusal;
	void *work = malloc(coll_check_bytes(s, s->bytes) + 1);
	int error;

	if (!work)
		return -ENOMEM;
	error = coll_check(s, s->bytes, work, &refusal);
	free(work);
	if (error)
		coll_group_explain(group, "schedule of %s refused: op %d: %s",
				   planned->algo->name, (int)refusal.op, refusal.reason);
	return error;
}

/* Whoever ends a run of it knows that all ranks have begun it. */
static bool needs_all(const struct coll_planned *planned)
{
	const uint32_t all = 1u << COLL_BARRIER | 1u << COLL_ALLREDUCE | 1u << COLL_ALLGATHER |
			     1u << COLL_ALLTOALL | 1u << COLL_REDUCE_SCATTER_BLOCK;

	return all >> planned->call.collective & 1 && planned->schedule->ops;
}

static int make_plan(struct coll_group *group, struct coll_planned *planned)
{
	const struct coll_schedule *s = planned->schedule;
	void *memory = malloc(coll_plan_bytes(s));
	uint32_t i;

	if (!memory)
		return -ENOMEM;
	coll_plan_init(&planned->plan, s, memory);	/* plan.pending is `memory` */
	planned->links = calloc(s->peers ? s->peers : 1, sizeof(*planned->links));
	if (!planned->links)
		return -ENOMEM;
	for (i = 0; i < s->peers; i++) {
		planned->links[i] = coll_link_get(group, coll_peers(s)[i].rank);
		if (!planned->links[i])
			return -ENOMEM;
	}
	for (i = 0; i < s->ops; i++) {
		const struct coll_op *op = &coll_ops(s)[i];

		planned->sends += op->kind == COLL_OP_SEND;
		planned->surplus |= op->kind == COLL_OP_RECV && op->flags & COLL_OPTIONAL;
	}
	coll_fused_mark(planned);
	coll_published_mark(planned);
	coll_order_make(planned);
	planned->needs_all = needs_all(planned);
	planned->board_tries = coll_board_suits(planned) ? COLL_BOARD_TRIES : 0;
	if (!group->peers)
		coll_unexpected_reserve(group, s);
	return 0;
}

/* Whom it is for has a link even if that is this rank. */
static int plan_message(struct coll_group *group, struct coll_planned *planned)
{
	planned->tuning = COLL_TUNING_UNSET;
	return coll_link_get(group, group->rank) ? make_schedule(planned) : -ENOMEM;
}

static int plan_collective(struct coll_group *group, struct coll_planned *planned)
{
	int error = choose_algo(group, planned);

	if (!error)
		error = make_schedule(planned);
	if (!error)
		error = check_schedule(group, planned);
	if (!error)
		planned->hash = coll_call_hash(planned);
	return error;
}

int coll_planned_make(struct coll_group *group, const struct coll_call *call, uint32_t user_op,
		      struct coll_planned **made)
{
	struct coll_planned *planned = calloc(1, sizeof(*planned));
	int error;

	if (!planned)
		return -ENOMEM;
	planned->references = 1;
	planned->group = group;
	planned->user_op = user_op;
	planned->costs = group->costs_agreed;
	planned->call = *call;
	error = coll_call_keep_arrays(&planned->call, &planned->counts);
	if (!error)
		error = coll_call_is_message(call) ? plan_message(group, planned) :
						     plan_collective(group, planned);
	if (!error)
		error = make_plan(group, planned);
	if (error) {
		coll_planned_put(planned);
		return error;
	}
	*made = planned;
	return 0;
}

void coll_planned_put(struct coll_planned *planned)
{
	coll_assert(planned->references);
	if (--planned->references)
		return;
	while (planned->spare) {
		struct coll_exec *exec = planned->spare;

		planned->spare = exec->next;
		coll_exec_free(exec);
	}
	coll_offload_forget(planned);
	free((void *)planned->plan.pending);
	free(planned->schedule);
	free(planned->links);
	free(planned->fused);
	free(planned->publications);
	free(planned->order);
	free(planned->counts);
	free(planned->ports);
	free(planned->cost);
	free(planned);
}
