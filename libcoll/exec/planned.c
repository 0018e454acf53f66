// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A call's schedule is made once: choose the algorithm, emit, check, plan. The group caches
 * the latest, so a loop of equal calls costs one lookup each.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/circuits/circuits.h"
#include "algo/tuning.h"
#include "core/check.h"
#include "fabric.h"
#include "exec.h"
#include "fused.h"
#include "libcoll/link/link.h"
#include "offload.h"
#include "group.h"
#include "run.h"
#include "unexpected.h"

/* ---- a call's arrays -------------------------------------------------------- */

enum { ARRAYS = 6 };

/* All counts and displacements of a call, in a fixed order. */
static const u64 **array_of(struct coll_call *call, uint32_t i)
{
	const u64 **const array[ARRAYS] = {
		&call->counts,	    &call->displs,	&call->send_counts,
		&call->send_displs, &call->recv_counts, &call->recv_displs,
	};

	return array[i];
}

static const u64 *array_in(const struct coll_call *call, uint32_t i)
{
	return *array_of((struct coll_call *)call, i);
}

static bool has_arrays(const struct coll_call *call)
{
	return call->counts || call->displs || call->send_counts || call->send_displs ||
	       call->recv_counts || call->recv_displs;
}

/* ---- hashes ------------------------------------------------------------- */

static uint64_t planned_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

static uint64_t mix_array(uint64_t hash, const u64 *values, uint32_t count)
{
	uint32_t i;

	for (i = 0; values && i < count; i++)
		hash = planned_mix(hash, values[i]);
	return hash;
}

static uint32_t fabric_version(const struct coll_group *group)
{
	return group->fabric ? group->fabric->version : 0;
}

uint64_t coll_call_key(const struct coll_call *call, uint32_t user_op)
{
	uint64_t hash = planned_mix(user_op, call->collective);
	uint32_t i;

	hash = planned_mix(hash, (uint64_t)call->root << 32 | call->type);
	hash = planned_mix(hash,
			   (uint64_t)call->element << 16 | call->reduction << 1 | call->in_place);
	hash = planned_mix(hash, call->count);
	for (i = 0; has_arrays(call) && i < ARRAYS; i++)
		hash = mix_array(hash, array_in(call, i), call->ranks);
	return hash;
}

static bool same_count_everywhere(enum coll_collective collective)
{
	return collective != COLL_GATHERV && collective != COLL_SCATTERV &&
	       collective != COLL_ALLGATHERV && collective != COLL_ALLTOALLV &&
	       collective != COLL_REDUCE_SCATTER;
}

/*
 * The hash of what all ranks of a call must agree on; each header has it. The number of a
 * user's operation is not part of it: each rank has its own.
 */
static uint32_t call_hash(const struct coll_planned *planned)
{
	const struct coll_call *call = &planned->call;
	const struct coll_tuning *tuning = &planned->tuning;
	const char *name;
	uint32_t i;
	uint64_t hash = planned_mix(call->ranks, call->collective);

	hash = planned_mix(hash, (uint64_t)call->root << 32 | call->type);
	hash = planned_mix(hash, (uint64_t)call->element << 8 | call->reduction);
	if (same_count_everywhere(call->collective))
		hash = planned_mix(hash, call->count);
	if (call->collective == COLL_ALLGATHERV || call->collective == COLL_REDUCE_SCATTER)
		hash = mix_array(hash, call->counts, call->ranks);
	for (name = planned->algo->name; *name; name++)
		hash = planned_mix(hash, *name);
	hash = planned_mix(hash, tuning->redundancy);
	hash = planned_mix(hash, tuning->segment);
	hash = planned_mix(hash, tuning->bound);
	hash = planned_mix(hash, tuning->lanes);
	hash = planned_mix(hash, tuning->relays);
	hash = planned_mix(hash, tuning->radix);
	hash = planned_mix(hash, tuning->ports);
	hash = planned_mix(hash, tuning->wavelengths);
	hash = planned_mix(hash, tuning->ahead << 1 ^ tuning->simplex);
	for (i = 0; i < COLL_LATE_MAX && tuning->late[i] != COLL_NONE; i++)
		hash = planned_mix(hash, tuning->late[i]);
	for (i = 0; planned->ports && i < call->ranks; i++)
		hash = planned_mix(hash, planned->ports[i]);
	return hash ^ hash >> 32;
}

/* ---- copies of counts --------------------------------------------------- */

static bool same_array(const u64 *a, const u64 *b, uint32_t count)
{
	return !a == !b && (!a || !memcmp(a, b, count * sizeof(*a)));
}

static bool same_arrays(const struct coll_call *a, const struct coll_call *b)
{
	bool same = has_arrays(a) == has_arrays(b);
	uint32_t i;

	for (i = 0; same && has_arrays(a) && i < ARRAYS; i++)
		same = same_array(array_in(a, i), array_in(b, i), a->ranks);
	return same;
}

/* Whether this is the schedule of this rank for the call. */
static bool same_call(const struct coll_planned *planned, const struct coll_group *group,
		      const struct coll_call *b, uint32_t user_op)
{
	const struct coll_call *a = &planned->call;

	return planned->fabric == fabric_version(group) &&
	       planned->costs == group->costs_agreed && a->collective == b->collective &&
	       a->root == b->root && a->type == b->type && a->element == b->element &&
	       a->reduction == b->reduction && a->in_place == b->in_place &&
	       a->commutative == b->commutative && a->count == b->count &&
	       planned->user_op == user_op && same_arrays(a, b);
}

/* Copies the caller's arrays. */
static int keep_arrays(struct coll_call *call, u64 **memory)
{
	u64 *copy = malloc(ARRAYS * (size_t)call->ranks * sizeof(*copy));
	uint32_t i;

	if (!copy)
		return -ENOMEM;
	*memory = copy;
	for (i = 0; i < ARRAYS; i++, copy += call->ranks) {
		const u64 **array = array_of(call, i);

		if (*array)
			*array = memcpy(copy, *array, call->ranks * sizeof(*copy));
	}
	return 0;
}

int coll_run_keep_counts(struct coll_run *run)
{
	return has_arrays(&run->call) ? keep_arrays(&run->call, &run->counts) : 0;
}

/* ---- making ------------------------------------------------------------- */

/* Machine parameters that no option sets are measured ones, or those of a 10 Gbit/s network. */
struct coll_machine coll_planned_machine(const struct coll_planned *planned)
{
	struct coll_machine known = planned->group->options.machine;

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

	planned->fabric = fabric_version(group);
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
	const bool own = planned->user_op == COLL_OWN_CALL;
	const char *refusal;

	planned->tuning = own ? COLL_TUNING_UNSET : options->tuning[call->collective];
	planned->algo = own ? NULL : options->algo[call->collective];
	if (call->cluster && planned->tuning.lanes == COLL_UNSET)
		planned->tuning.lanes = coll_lanes_choose(call, &options->machine);
	planned->delta = options->machine.delta > 0 ? options->machine.delta : CIRCUIT_DELTA;
	if (take_terms(group, planned))
		return -ENOMEM;
	if (!planned->algo && planned->tuning.ports != COLL_UNSET && choose_with_circuits(planned))
		return -ENOMEM;
	if (!planned->algo)
		planned->algo = coll_algo_choose(call, &planned->tuning, &options->machine);
	if (planned->algo && !coll_algo_has_option(planned->algo, "n"))
		planned->tuning.lanes = COLL_UNSET;
	if (planned->algo)
		coll_tuning_choose(planned->algo, call, &options->machine, &planned->tuning);
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

	coll_build_init(&b, memory, bytes, call->rank, call->ranks);
	coll_build_buffers(&b, sends ? length : 0, sends ? 0 : length);
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
		planned->hash = call_hash(planned);
	return error;
}

static int planned_make(struct coll_group *group, const struct coll_call *call,
			uint32_t user_op, struct coll_planned **made)
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
	error = keep_arrays(&planned->call, &planned->counts);
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
	free(planned->counts);
	free(planned->ports);
	free(planned->cost);
	free(planned);
}

int coll_planned_get(struct coll_group *group, const struct coll_call *call, uint32_t user_op,
		     struct coll_planned **result)
{
	const uint64_t key = planned_mix(coll_call_key(call, user_op), fabric_version(group));
	struct coll_planned **slot = &group->planned[key % PLANNED_MAX];
	int error;

	coll_debug_assert(coll_context_is_owned(group->context));
	if (!*slot || !same_call(*slot, group, call, user_op)) {
		struct coll_planned *planned = NULL;

		error = planned_make(group, call, user_op, &planned);
		if (error)
			return error;
		if (*slot)
			coll_planned_put(*slot);
		*slot = planned;
	}
	(*slot)->references++;
	*result = *slot;
	return 0;
}

int coll_planned_renew(struct coll_run *run)
{
	struct coll_planned *old = run->planned, *renewed;
	struct coll_call call = old->call;
	int error;

	if (old->fabric == fabric_version(run->group) && old->costs == run->group->costs_agreed)
		return 0;
	call.ports = NULL;
	error = coll_planned_get(run->group, &call, old->user_op, &renewed);
	if (error)
		return error;
	run->planned = renewed;
	run->group->context->job->circuits_prefetch(run);
	coll_planned_put(old);
	return 0;
}

void coll_planned_forget(struct coll_group *group)
{
	uint32_t i;

	for (i = 0; i < PLANNED_MAX; i++) {
		if (group->planned[i])
			coll_planned_put(group->planned[i]);
		group->planned[i] = NULL;
	}
}
