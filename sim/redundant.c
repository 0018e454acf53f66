// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * With e(i, r) the time when rank r has reduced i times, and f(r) the time when
 * it is done:
 *
 *	exchange i + 1 of r leaves at e(i, r), if e(i, r) <= f(r)
 *	e(i + 1, r) = reduce(max(e(i, r), arrival from its partner))
 *	result(r) = min(e(K, r), arrivals of the results of its T partners)
 *
 * First nobody abandons anything; then those do who had no need to go on, until
 * nothing changes any more.
 *
 * Ranks are gone through in blocks, so that what a block's exchanges need is in the
 * cache, and each remembers until when it is free of noise, so that most questions for
 * the end of something are two comparisons.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../algo/redundancy.h"
#include "redundant.h"

enum {
	PASSES_MAX = 100,
	BLOCK_BITS = 8,		/* ranks that take their first exchanges together */
};

struct redundant {
	const struct machine *machine;
	u32 ranks, exchanges, redundancy;
	sim_time work;		/* of a reduction */
	struct wire wire;
	sim_time *reduced, *before;	/* e(i); e(K - 1) */
	sim_time *result;	/* when it is there */
	sim_time *done;		/* when the rank is; of the pass before at first */
	sim_time *phase;	/* of the ranks' noise, or NULL */
	/*
	 * With phases: a time at which noise strikes the rank again. What starts at most
	 * `calm` before and ends by then sees none.
	 */
	sim_time *strike, calm;
	u64 messages, reductions;
	bool abandoned;		/* somebody had no need to go on */
};

static u64 vector_bytes(const struct sim_job *job)
{
	return job->call.count * job->call.element;
}

bool redundant_fits(const struct sim_job *job, const struct machine *machine)
{
	const u64 bytes = vector_bytes(job);

	return job->algo == coll_algo_find(COLL_ALLREDUCE, "butterfly-redundant") &&
	       job->call.ranks > 1 && !(job->call.ranks & (job->call.ranks - 1)) && bytes &&
	       bytes <= machine->eager && !machine->send && !machine->recv &&
	       !machine->redundant && machine->copy <= 0 && machine->gap <= 0 &&
	       machine->nic <= 0 && !machine->network && !(machine->semantics == SIM_GOAL && machine->os.sources);
}

/* Asks the noise, and remembers when it strikes next. */
static __attribute__((noinline)) sim_time ask_noise(const struct redundant *r, u32 rank,
						    sim_time start, sim_time length)
{
	const struct noise *os = &r->machine->os;
	const sim_time end = noise_end_at(os, r->phase, rank, start, length);

	if (r->strike)
		r->strike[rank] = end + os->source->period -
				  noise_modulo(end + r->phase[rank], os->source->period,
					       os->source->per_period);
	return end;
}

static inline sim_time end_of(const struct redundant *r, u32 rank, sim_time start, sim_time length)
{
	if (!r->machine->os.sources)
		return start + length;
	if (r->strike) {
		const sim_time strike = r->strike[rank];

		if (start >= strike - r->calm && start < strike && start + length <= strike)
			return start + length;
	}
	return ask_noise(r, rank, start, length);
}

/* When the rank can do something that takes no time. */
static inline sim_time awake(const struct redundant *r, u32 rank, sim_time time)
{
	return end_of(r, rank, time, 0);
}

static inline sim_time arrives(const struct redundant *r, u32 from, u32 to, u32 slot, sim_time left)
{
	const u64 stream = noise_message(r->machine->message_key, from, to, slot);

	return left + noise_travel(&r->machine->link, stream, r->wire);
}

static inline sim_time work_of(const struct redundant *r, u32 rank)
{
	return r->machine->slowness ? to_time(r->work * r->machine->slowness[rank]) : r->work;
}

/* Whether the rank sends what it has reduced so far. */
static inline bool goes_on(const struct redundant *r, u32 rank)
{
	return r->reduced[rank] != SIM_NEVER && r->reduced[rank] <= r->done[rank];
}

/* e(i + 1) of a rank that has `ready` and gets what its partner had at `left`. */
static inline sim_time reduce(const struct redundant *r, u32 rank, sim_time ready, u32 partner,
			      sim_time left)
{
	sim_time there = arrives(r, partner, rank, 0, left);

	there = awake(r, rank, there);
	return end_of(r, rank, ready > there ? ready : there, work_of(r, rank));
}

static inline void exchange(struct redundant *r, u32 a, u32 b)
{
	const sim_time from_a = r->reduced[a], from_b = r->reduced[b];
	const bool a_goes = goes_on(r, a), b_goes = goes_on(r, b);
	const sim_time a_leaves = a_goes ? awake(r, a, from_a) : SIM_NEVER;
	const sim_time b_leaves = b_goes ? awake(r, b, from_b) : SIM_NEVER;
	const bool a_reduces = b_goes && from_a != SIM_NEVER;
	const bool b_reduces = a_goes && from_b != SIM_NEVER;

	r->messages += a_goes + b_goes;
	r->reductions += a_reduces + b_reduces;
	r->reduced[a] = a_reduces ? reduce(r, a, from_a, b, b_leaves) : SIM_NEVER;
	r->reduced[b] = b_reduces ? reduce(r, b, from_b, a, a_leaves) : SIM_NEVER;
}

/* Exchange number `i` of the 2^(i + 1) ranks from `first` on. */
static void exchange_block(struct redundant *r, u32 first, u32 i)
{
	const u32 half = 1u << i;
	u32 rank;

	if (i + 1 == r->exchanges)
		memcpy(r->before + first, r->reduced + first, 2 * (size_t)half * sizeof(sim_time));
	for (rank = first; rank < first + half; rank++)
		exchange(r, rank, rank + half);
}

/* The first `count` exchanges of 2^count ranks. */
static void exchange_first(struct redundant *r, u32 first, u32 count)
{
	u32 rank, i, k;

	if (count > BLOCK_BITS) {
		exchange_first(r, first, count - 1);
		exchange_first(r, first + (1u << (count - 1)), count - 1);
		exchange_block(r, first, count - 1);
		return;
	}
	for (rank = first; rank < first + (1u << count); rank++)
		r->reduced[rank] = awake(r, rank, machine_start(r->machine, rank));
	for (i = 0; i < count; i++)
		for (k = 0; k < 1u << count; k += 2u << i)
			exchange_block(r, first + k, i);
}

/* When the result of `from` is there, if that could be before `limit`; else never. */
static sim_time rescue(const struct redundant *r, u32 from, u32 to, sim_time limit)
{
	if (r->result[from] == SIM_NEVER || r->result[from] + r->wire.length > limit)
		return SIM_NEVER;
	return awake(r, to, arrives(r, from, to, 1, awake(r, from, r->result[from])));
}

/* Results go to partners, all among `count` ranks, until that helps nobody any more. */
static void hand_on(struct redundant *r, u32 first, u32 count)
{
	bool helped = true;
	u32 rank, j;

	memcpy(r->result + first, r->reduced + first, count * sizeof(*r->result));
	while (helped) {
		helped = false;
		for (j = 0; j < r->redundancy; j++)
			for (rank = first; rank < first + count; rank++) {
				sim_time there = rescue(r, rank ^ 1u << j, rank,
							r->result[rank]);

				if (there < r->result[rank]) {
					r->result[rank] = there;
					helped = true;
				}
			}
	}
}

/* Returns whether any of the ranks is done at another time than in the pass before. */
static bool conclude(struct redundant *r, u32 first, u32 count)
{
	bool changed = false;
	u32 rank;

	for (rank = first; rank < first + count; rank++) {
		sim_time done = r->result[rank] == SIM_NEVER ?
					SIM_NEVER :
					awake(r, rank, r->result[rank]);

		changed |= done != r->done[rank];
		r->done[rank] = done;
		r->abandoned |= r->before[rank] > done;
	}
	return changed;
}

/* Whether the result came from a partner, who is spared then. */
static bool was_rescued(const struct redundant *r, u32 rank)
{
	u32 j;

	for (j = 0; j < r->redundancy; j++)
		if (rescue(r, rank ^ 1u << j, rank, r->result[rank]) <= r->result[rank])
			return true;
	return false;
}

static void count_redundant(struct redundant *r)
{
	u32 rank;

	for (rank = 0; rank < r->ranks; rank++)
		r->messages += r->redundancy - was_rescued(r, rank);
}

/* Returns whether it came out otherwise than the pass before. */
static bool run_pass(struct redundant *r)
{
	const u32 count = 1u << r->redundancy;
	bool changed = false;
	u32 first;

	r->messages = r->reductions = 0;
	r->abandoned = false;
	exchange_first(r, 0, r->exchanges);
	for (first = 0; first < r->ranks; first += count) {
		hand_on(r, first, count);
		changed |= conclude(r, first, count);
	}
	return changed;
}

static int find_times(struct redundant *r)
{
	u32 pass, rank;

	for (rank = 0; rank < r->ranks; rank++) {
		r->done[rank] = SIM_NEVER;
		if (r->strike)
			r->strike[rank] = INT64_MIN / 2;	/* never asked */
	}
	for (pass = 0; pass < PASSES_MAX; pass++)
		if (!run_pass(r) || (!pass && !r->abandoned))
			return 0;
	return -EOPNOTSUPP;
}

static void report(const struct redundant *r, struct sim_outcome *outcome, sim_time *finish)
{
	u32 rank;

	outcome->messages = r->messages;
	outcome->events = 3 * r->messages + r->reductions;
	for (rank = 0; rank < r->ranks; rank++)
		if (r->done[rank] > outcome->finish) {
			outcome->finish = r->done[rank];
			outcome->last = rank;
		}
	if (finish)
		memcpy(finish, r->done, r->ranks * sizeof(*finish));
}

int redundant_run(const struct sim_job *job, const struct machine *machine,
		  struct sim_outcome *outcome, sim_time *finish)
{
	const u32 ranks = job->call.ranks;
	struct redundant r = {
		.machine = machine,
		.ranks = ranks,
		.exchanges = log2_floor(ranks),
		.redundancy = redundancy_of(&job->call, &job->tuning).exchanges,
		.work = to_time(vector_bytes(job) * machine->gamma),
		.wire = noise_wire(&machine->link, machine_way(machine, vector_bytes(job))),
		.reduced = malloc(ranks * sizeof(sim_time)),
		.before = malloc(ranks * sizeof(sim_time)),
		.result = malloc(ranks * sizeof(sim_time)),
		.done = malloc(ranks * sizeof(sim_time)),
		.phase = noise_phases(&machine->os, ranks),
	};
	const struct noise_source *noise = machine->os.source;
	int error = -ENOMEM;

	if (r.phase) {
		r.strike = malloc(ranks * sizeof(sim_time));
		r.calm = machine->semantics == SIM_EVENT ? noise->period - 1 :
							   noise->period - noise->duration;
	}
	*outcome = (struct sim_outcome){ .path = SIM_LEVELS };
	if (r.reduced && r.before && r.result && r.done && (r.strike || !r.phase))
		error = find_times(&r);
	if (!error) {
		count_redundant(&r);
		report(&r, outcome, finish);
	}
	free(r.reduced);
	free(r.before);
	free(r.strike);
	free(r.result);
	free(r.done);
	free(r.phase);
	return error;
}
