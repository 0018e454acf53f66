// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Finding an algorithm by its name, choosing one, and its schedule. The list itself,
 * coll_algos[], is made from the algorithms' files: list.awk.
 */
#include "algo/circuits/circuits.h"
#include "algo/common/clusters.h"
#include "algo/redundancy/redundancy.h"
#include "tuning.h"

const char *const coll_collective_names[COLL_COLLECTIVES] = {
	[COLL_BARRIER] = "barrier",
	[COLL_BCAST] = "bcast",
	[COLL_GATHER] = "gather",
	[COLL_GATHERV] = "gatherv",
	[COLL_SCATTER] = "scatter",
	[COLL_SCATTERV] = "scatterv",
	[COLL_ALLGATHER] = "allgather",
	[COLL_ALLGATHERV] = "allgatherv",
	[COLL_ALLTOALL] = "alltoall",
	[COLL_ALLTOALLV] = "alltoallv",
	[COLL_REDUCE] = "reduce",
	[COLL_ALLREDUCE] = "allreduce",
	[COLL_REDUCE_SCATTER] = "reduce_scatter",
	[COLL_REDUCE_SCATTER_BLOCK] = "reduce_scatter_block",
	[COLL_SCAN] = "scan",
	[COLL_EXSCAN] = "exscan",
};

static bool names_equal(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

const struct coll_algo *coll_algo_find(enum coll_collective collective, const char *name)
{
	const struct coll_algo *const *algo;

	for (algo = coll_algos; *algo; algo++)
		if ((*algo)->collective == collective && names_equal((*algo)->name, name))
			return *algo;
	return NULL;
}

const char *coll_algo_refuses(const struct coll_algo *algo, const struct coll_call *call,
			      const struct coll_tuning *tuning)
{
	if (!algo->ordered && !call->commutative)
		return "it does not keep rank order, and the operation does not commute";
	if (algo->power_of_two && call->ranks & (call->ranks - 1))
		return "it needs a power of two of ranks";
	if (algo->needs_counts && !call->counts)
		return "it needs the counts of all ranks on every rank";
	if (algo->refuses && algo->refuses(call, tuning))
		return algo->refuses(call, tuning);
	return coll_circuits_refuse(algo, call, tuning);
}

/* TCP as it usually is, where nothing has been measured. */
static struct coll_machine machine_or_usual(const struct coll_machine *machine)
{
	struct coll_machine m = *machine;

	if (m.alpha <= 0)
		m.alpha = 20e-6;
	if (m.overhead <= 0)
		m.overhead = 2e-6;
	if (m.beta <= 0)
		m.beta = 0.25e-9;
	if (m.byte_gap <= 0)
		m.byte_gap = m.beta;
	if (m.gamma <= 0)
		m.gamma = 0.1e-9;
	return m;
}

u32 coll_lanes_choose(const struct coll_call *call, const struct coll_machine *machine)
{
	const struct coll_machine m = machine_or_usual(machine);
	const u32 most = coll_clusters_smallest(call);
	u32 best = 1, n;

	/* Equally fast: the fewer. */
	for (n = 2; n <= most; n++)
		if (coll_across_beta(&m, n) < coll_across_beta(&m, best) * 0.999)
			best = n;
	return best;
}

enum { SEGMENT_MIN = 1 << 13 };	/* shorter ones are not tried: headers, and urgent messages */

void coll_segment_choose(const struct coll_algo *algo, const struct coll_call *call,
			 const struct coll_machine *machine, struct coll_tuning *tuning)
{
	const bool blocks = call->collective == COLL_REDUCE_SCATTER ||
			    call->collective == COLL_REDUCE_SCATTER_BLOCK;
	const u64 n = blocks ? blocks_bytes(call, 0, call->ranks) : call_bytes(call);
	const struct coll_machine m = machine_or_usual(machine);
	struct coll_tuning tried = *tuning;
	double least = 0, cost;
	u64 parts;

	if (!algo->clusters || !coll_algo_has_option(algo, "segment") || n < 2 * SEGMENT_MIN ||
	    tuning->segment != COLL_UNSET)
		return;
	for (parts = 1; n / parts >= SEGMENT_MIN; parts *= 2) {
		tried.segment = (n + parts - 1) / parts;
		cost = algo->cost(call, &tried, &m);
		if (parts > 1 && cost >= least)
			continue;
		tuning->segment = tried.segment;
		least = cost;
	}
}

void coll_redundancy_choose(const struct coll_algo *algo, const struct coll_call *call,
			    const struct coll_machine *machine, struct coll_tuning *tuning)
{
	const bool relayed = coll_algo_has_option(algo, "relays");
	const struct coll_machine m = machine_or_usual(machine);
	struct redundancy best;

	if (!coll_algo_has_option(algo, "T") || tuning->redundancy != COLL_UNSET ||
	    tuning->relays != COLL_UNSET ||
	    (m.noise[0].rate <= 0 && m.link_noise.rate <= 0))
		return;
	best = coll_redundancy_best(call, relayed ? ~0u : 0, &m);
	tuning->redundancy = best.exchanges;
	if (relayed)
		tuning->relays = best.relays;
}

/* What an algorithm has of them; most have nothing. */
static struct redundancy redundancy_in(const struct coll_algo *algo, const struct coll_call *call,
				       const struct coll_tuning *tuning)
{
	if (!coll_algo_has_option(algo, "T"))
		return (struct redundancy){ 0, 0 };
	return coll_algo_has_option(algo, "relays") ? coll_redundancy_relayed_of(call, tuning) :
					    coll_redundancy_of(call, tuning);
}

/* The cheapest of those that are made for clusters, or of those that are not. */
static const struct coll_algo *algo_cheapest(const struct coll_call *call,
					     const struct coll_tuning *tuning,
					     const struct coll_machine *m, bool clusters)
{
	const struct coll_algo *const *algo, *best = NULL;
	double least = 0;

	for (algo = coll_algos; *algo; algo++) {
		double cost;

		struct coll_tuning chosen = *tuning;

		/* Whether others know the counts is not known here: by name only. */
		if ((*algo)->collective != call->collective || (*algo)->needs_counts ||
		    (*algo)->baseline || (*algo)->clusters != clusters ||
		    coll_algo_refuses(*algo, call, tuning))
			continue;
		coll_segment_choose(*algo, call, m, &chosen);
		coll_redundancy_choose(*algo, call, m, &chosen);
		cost = (*algo)->cost(call, &chosen, m) +
		       coll_redundancy_delay(call, redundancy_in(*algo, call, &chosen), m);
		if (!best || cost < least) {
			best = *algo;
			least = cost;
		}
	}
	return best;
}

/*
 * Between clusters nobody but those made for them keeps to n links, so they are
 * taken if one of them fits; else all ways are taken for far ones.
 */
const struct coll_algo *coll_algo_choose(const struct coll_call *call,
					 const struct coll_tuning *tuning,
					 const struct coll_machine *machine)
{
	struct coll_machine m = machine_or_usual(machine);
	const struct coll_algo *best = NULL;

	if (coll_clusters_count(call) > 1) {
		best = algo_cheapest(call, tuning, &m, true);
		m.alpha = coll_across_alpha(call, &m);
	}
	return best ? best : algo_cheapest(call, tuning, &m, false);
}

/* Bytes of the buffer that holds every rank's block: up to the furthest end. */
static u64 algo_extent(const struct coll_call *call, const u64 *counts, const u64 *displs)
{
	u64 end = 0, sum = 0;
	u32 i;

	if (!counts)
		return call->count * call->ranks * call->element;
	for (i = 0; i < call->ranks; i++) {
		u64 start = displs ? displs[i] : sum;

		sum += counts[i];
		if (counts[i] && start + counts[i] > end)
			end = start + counts[i];
	}
	return end * call->element;
}

/* How large the application's buffers are: the table in algo.h. */
static void call_buffers(const struct coll_call *call, u64 *in, u64 *out)
{
	const u64 one = call_bytes(call);
	const bool root = call->rank == call->root;

	*in = 0;
	*out = 0;
	switch (call->collective) {
	case COLL_BARRIER:
		return;
	case COLL_BCAST:
		*out = one;
		return;
	case COLL_GATHER:
	case COLL_GATHERV:
		*in = one;
		*out = root ? algo_extent(call, call->counts, call->displs) : 0;
		break;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		*in = root ? algo_extent(call, call->counts, call->displs) : 0;
		*out = call->in_place ? 0 : one;
		return;
	case COLL_ALLGATHER:
	case COLL_ALLGATHERV:
		*in = one;
		*out = algo_extent(call, call->counts, call->displs);
		break;
	case COLL_ALLTOALL:
		*in = *out = one * call->ranks;
		break;
	case COLL_ALLTOALLV:
		*in = algo_extent(call, call->send_counts, call->send_displs);
		*out = algo_extent(call, call->recv_counts, call->recv_displs);
		break;
	case COLL_REDUCE:
		*in = one;
		*out = root ? one : 0;
		break;
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE_SCATTER_BLOCK:
		*in = algo_extent(call, call->counts, NULL);
		*out = call->in_place ? *in : block_bytes(call, call->rank);
		break;
	default:
		*in = *out = one;
		break;
	}
	if (call->in_place)
		*in = 0;
}

int coll_algo_emit_plain(const struct coll_algo *algo, const struct coll_call *call,
			 const struct coll_tuning *tuning, void *memory, u64 bytes,
			 struct coll_schedule **schedule)
{
	const u64 room = algo->clusters ? coll_clusters_room(call->ranks) :
					  (u64)algo->room * call->ranks;
	struct coll_build b;
	u64 in, out;

	if (bytes < room)
		return -ENOSPC;
	bytes = (bytes - room) & ~(u64)7;	/* the tables lie behind the schedule */
	coll_build_init(&b, memory, bytes, call->rank, call->ranks);
	b.room = (u8 *)memory + bytes;
	call_buffers(call, &in, &out);
	coll_build_buffers(&b, in, out);
	coll_build_reduction(&b, call->type, call->reduction,
			     call->type == COLL_OPAQUE_TYPE ? call->element : 0);
	algo->emit(&b, call, tuning);
	return coll_build_finish(&b, schedule);
}

int coll_algo_emit(const struct coll_algo *algo, const struct coll_call *call,
		   const struct coll_tuning *tuning, void *memory, u64 bytes,
		   struct coll_schedule **schedule)
{
	if (coll_algo_refuses(algo, call, tuning))
		return -EOPNOTSUPP;
	if (tuning->ports != COLL_UNSET || call->ports)
		return coll_circuits_emit(algo, call, tuning, memory, bytes, schedule);
	return coll_algo_emit_plain(algo, call, tuning, memory, bytes, schedule);
}
