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
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../algo/redundancy.h"
#include "redundant.h"

enum { PASSES_MAX = 100 };

struct redundant {
	const struct machine *machine;
	u32 ranks, exchanges, redundancy;
	sim_time work;		/* of a reduction */
	struct wire wire;
	sim_time *reduced, *next;	/* e(i), e(i + 1) */
	sim_time *result;	/* when it is there */
	sim_time *done;		/* when the rank is; of the pass before at first */
	sim_time *phase;	/* of the ranks' noise, or NULL */
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

/* When the rank can do something that takes no time. */
static inline sim_time awake(const struct redundant *r, u32 rank, sim_time time)
{
	return noise_end_at(&r->machine->os, r->phase, rank, time, 0);
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

static sim_time exchange(const struct redundant *r, u32 rank, u32 partner)
{
	sim_time ready = r->reduced[rank], there;

	if (ready == SIM_NEVER || r->reduced[partner] == SIM_NEVER ||
	    r->reduced[partner] > r->done[partner])
		return SIM_NEVER;
	there = arrives(r, partner, rank, 0, awake(r, partner, r->reduced[partner]));
	there = awake(r, rank, there);
	return noise_end_at(&r->machine->os, r->phase, rank, ready > there ? ready : there, work_of(r, rank));
}

static void swap(sim_time **a, sim_time **b)
{
	sim_time *c = *a;

	*a = *b;
	*b = c;
}

/* All exchanges; reduced[] is e(K) then, and next[] is e(K - 1). */
static void exchange_all(struct redundant *r)
{
	u32 rank, i;

	r->messages = r->reductions = 0;
	for (rank = 0; rank < r->ranks; rank++)
		r->reduced[rank] = awake(r, rank, machine_start(r->machine, rank));
	for (i = 0; i < r->exchanges; i++) {
		for (rank = 0; rank < r->ranks; rank++) {
			r->messages += r->reduced[rank] <= r->done[rank] &&
				       r->reduced[rank] != SIM_NEVER;
			r->next[rank] = exchange(r, rank, rank ^ 1u << i);
			r->reductions += r->next[rank] != SIM_NEVER;
		}
		swap(&r->reduced, &r->next);
	}
}

/* When the result of `from` is there, if that could be before `limit`; else never. */
static sim_time rescue(const struct redundant *r, u32 from, u32 to, sim_time limit)
{
	if (r->result[from] == SIM_NEVER || r->result[from] + r->wire.length > limit)
		return SIM_NEVER;
	return awake(r, to, arrives(r, from, to, 1, awake(r, from, r->result[from])));
}

/* Results go to partners until that helps nobody any more. */
static void hand_on(struct redundant *r)
{
	bool helped = true;
	u32 rank, j;

	memcpy(r->result, r->reduced, r->ranks * sizeof(*r->result));
	while (helped) {
		helped = false;
		for (j = 0; j < r->redundancy; j++)
			for (rank = 0; rank < r->ranks; rank++) {
				sim_time there = rescue(r, rank ^ 1u << j, rank,
							r->result[rank]);

				if (there < r->result[rank]) {
					r->result[rank] = there;
					helped = true;
				}
			}
	}
}

/* Returns whether any rank is done at another time than in the pass before. */
static bool conclude(struct redundant *r)
{
	bool changed = false;
	u32 rank;

	r->abandoned = false;
	for (rank = 0; rank < r->ranks; rank++) {
		sim_time done = r->result[rank] == SIM_NEVER ?
					SIM_NEVER :
					awake(r, rank, r->result[rank]);

		changed |= done != r->done[rank];
		r->done[rank] = done;
		r->abandoned |= r->next[rank] > done;
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

static int find_times(struct redundant *r)
{
	u32 pass, rank;

	for (rank = 0; rank < r->ranks; rank++)
		r->done[rank] = SIM_NEVER;
	for (pass = 0; pass < PASSES_MAX; pass++) {
		exchange_all(r);
		hand_on(r);
		if (!conclude(r) || (!pass && !r->abandoned))
			return 0;
	}
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
		.next = malloc(ranks * sizeof(sim_time)),
		.result = malloc(ranks * sizeof(sim_time)),
		.done = malloc(ranks * sizeof(sim_time)),
		.phase = noise_phases(&machine->os, ranks),
	};
	int error = -ENOMEM;

	*outcome = (struct sim_outcome){ .path = SIM_LEVELS };
	if (r.reduced && r.next && r.result && r.done)
		error = find_times(&r);
	if (!error) {
		count_redundant(&r);
		report(&r, outcome, finish);
	}
	free(r.reduced);
	free(r.next);
	free(r.result);
	free(r.done);
	free(r.phase);
	return error;
}
