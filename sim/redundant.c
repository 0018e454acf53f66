// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * With e(i, r) the time when rank r has reduced i times, and f(r) the time when it is done:
 *
 *	exchange i + 1 of r is sent at e(i, r), if e(i, r) <= f(r)
 *	e(i + 1, r) = reduce(max(e(i, r), arrival from its partner))
 *	result(r) = min(e(K, r), arrivals of the results of its T partners, and of those
 *			partners that do not send their exchange with r)
 *
 * The first pass assumes that all ranks make all exchanges. In each later pass those ranks
 * stop that the pass before found done, until nothing changes. The first pass computes
 * all exchanges; later ones only what depends on ranks that changed. All e(i, r) are kept,
 * except those of the first exchanges, which take place within blocks of ranks: these are
 * computed again if needed, in the cache.
 *
 * Each rank remembers until when it is free of noise, so that most calls of noise_end() are
 * two comparisons.
 *
 * Length: one fixed point; its passes share all state.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <string.h>

#include "algo/redundancy/redundancy.h"
#include "redundant.h"

enum {
	PASSES_MAX = 100,
	BLOCK_BITS = 8,		/* exchanges that a block has by itself */
	ROUNDS_MAX = 33,
	WORD = 64,		/* ranks in a word of a set */
};

#define HUGE_PAGE (2ull << 20)

/* e(i, r) of a block's ranks in its exchanges. */
struct block_times {
	sim_time reduced[BLOCK_BITS][1 << BLOCK_BITS];
};

struct redundant {
	const struct sim_machine *machine;
	u32 ranks, exchanges, redundancy;
	sim_time work;		/* of a reduction */
	struct sim_wire wire;
	u32 block;		/* exchanges of blocks: below K */
	sim_time *reduced[ROUNDS_MAX];	/* e(i) from i = block on */
	sim_time *result;	/* when the result is there */
	sim_time *done, *old;	/* when the rank is done; before the last change */
	/* Sets of ranks: whose `done` has passed some e(i); whose e(i) has changed. */
	u64 *moved, *changed, *next;
	u64 *giving;		/* columns whose ranks may hand their results on to others */
	struct block_times times;	/* of the block that begins with `timed`, in this pass */
	u32 timed;		/* COLL_NONE: of no block */
	sim_time *phase;	/* of the ranks' noise, or NULL */
	/*
	 * With phases: a time at which noise strikes the rank again. What starts at most
	 * `calm` before and ends by then sees none.
	 */
	sim_time *strike, calm;
	u64 messages, reductions;
};

static u64 vector_bytes(const struct sim_job *job)
{
	return job->call.count * job->call.element;
}

/* Whether no time can pass the end: three ops an exchange, under noise of 95 %. */
static bool redundant_ends(const struct sim_job *job, const struct sim_machine *machine)
{
	return 3. * (log2_floor(job->call.ranks) + 1) * 20 * machine->longest < MACHINE_LAST / 2;
}

bool redundant_fits(const struct sim_job *job, const struct sim_machine *machine)
{
	const u64 bytes = vector_bytes(job);

	return redundant_ends(job, machine) && job->algo == coll_algo_find(COLL_ALLREDUCE, "butterfly-redundant") &&
	       job->call.ranks > 1 && !(job->call.ranks & (job->call.ranks - 1)) && bytes &&
	       bytes <= machine->eager && !machine->send && !machine->recv && !machine->redundant &&
	       machine->copy <= 0 && machine->gap <= 0 && machine->nic <= 0 && !machine->network &&
	       !machine->nodes &&
	       !(machine->semantics == SIM_GOAL && machine->os.sources);
}

/* Queries the noise, and remembers the next event. */
static __attribute__((noinline)) sim_time ask_noise(const struct redundant *r, u32 rank,
						    sim_time start, sim_time length)
{
	const struct sim_noise_sources *os = &r->machine->os;
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

/* When the rank can execute an op that takes no time. */
static inline sim_time redundant_awake(const struct redundant *r, u32 rank, sim_time time)
{
	return end_of(r, rank, time, 0);
}

static inline sim_time redundant_arrives(const struct redundant *r, u32 from, u32 to, u32 slot,
					 sim_time left)
{
	const u64 stream = noise_message(r->machine->message_key, from, to, slot);

	return left + machine_travel(r->machine, from, to, stream, r->wire);
}

static inline sim_time work_of(const struct redundant *r, u32 rank)
{
	return r->machine->slowness ? to_time(r->work * r->machine->slowness[rank]) : r->work;
}

static inline u32 set_words(u32 ranks)
{
	return (ranks + WORD - 1) / WORD;
}

static inline void add_to_set(u64 *set, u32 rank, bool added)
{
	set[rank / WORD] |= (u64)added << rank % WORD;
}

static inline bool in_set(const u64 *set, u32 rank)
{
	return set[rank / WORD] >> rank % WORD & 1;
}

static inline sim_time redundant_least(sim_time a, sim_time b)
{
	return a < b ? a : b;
}

/* Whether a rank sends what it has reduced so far. */
static inline bool goes_on_until(sim_time reduced, sim_time done)
{
	return reduced != SIM_NEVER && reduced <= done;
}

/* e(i + 1) of a rank with `ready` that receives what its partner sent at `left`. */
static inline sim_time redundant_reduce(const struct redundant *r, u32 rank, sim_time ready,
					u32 partner, sim_time left)
{
	sim_time there = redundant_arrives(r, partner, rank, 0, left);

	there = redundant_awake(r, rank, there);
	return end_of(r, rank, ready > there ? ready : there, work_of(r, rank));
}

/* Ranks first + x and first + y exchange from[]; the results are in to[]. */
static inline void redundant_exchange(struct redundant *r, const sim_time *from, sim_time *to,
				      u32 first, u32 x, u32 y)
{
	const u32 a = first + x, b = first + y;
	const sim_time from_a = from[x], from_b = from[y];
	const bool a_goes = goes_on_until(from_a, r->done[a]);
	const bool b_goes = goes_on_until(from_b, r->done[b]);
	const sim_time a_leaves = a_goes ? redundant_awake(r, a, from_a) : SIM_NEVER;
	const sim_time b_leaves = b_goes ? redundant_awake(r, b, from_b) : SIM_NEVER;
	const bool a_reduces = b_goes && from_a != SIM_NEVER;
	const bool b_reduces = a_goes && from_b != SIM_NEVER;

	r->messages += a_goes + b_goes;
	r->reductions += a_reduces + b_reduces;
	to[x] = a_reduces ? redundant_reduce(r, a, from_a, b, b_leaves) : SIM_NEVER;
	to[y] = b_reduces ? redundant_reduce(r, b, from_b, a, a_leaves) : SIM_NEVER;
}

/* The exchanges of the block that begins with this rank; the last one writes `to`. */
static void exchange_block(struct redundant *r, u32 first, sim_time *to)
{
	const u32 ranks = 1u << r->block;
	sim_time *from = r->block ? r->times.reduced[0] : to;
	u32 i, k, x;

	r->timed = first;

	for (x = 0; x < ranks; x++)
		from[x] = redundant_awake(r, first + x, machine_start(r->machine, first + x));
	for (i = 0; i < r->block; i++) {
		sim_time *next = i + 1 == r->block ? to : r->times.reduced[i + 1];

		for (k = 0; k < ranks; k += 2u << i)
			for (x = k; x < k + (1u << i); x++)
				redundant_exchange(r, from, next, first, x, x + (1u << i));
		from = next;
	}
}

/* The first `count` exchanges of 2^count ranks. */
static void exchange_first(struct redundant *r, u32 first, u32 count)
{
	const u32 half = 1u << count >> 1;
	u32 rank;

	if (count == r->block) {
		exchange_block(r, first, r->reduced[count] + first);
		return;
	}
	exchange_first(r, first, count - 1);
	exchange_first(r, first + half, count - 1);
	for (rank = first; rank < first + half; rank++)
		redundant_exchange(r, r->reduced[count - 1], r->reduced[count], 0, rank,
				   rank + half);
}

/* When the result from `from` arrives, if possibly by `limit`; else never. */
static sim_time redundant_rescue(const struct redundant *r, u32 from, u32 to, sim_time limit)
{
	if (r->result[from] == SIM_NEVER || r->result[from] + r->wire.length > limit)
		return SIM_NEVER;
	return redundant_awake(
		r, to,
		redundant_arrives(r, from, to, 1, redundant_awake(r, from, r->result[from])));
}

/* The later of two partners may get the result from the other. */
static inline bool redundant_help(struct redundant *r, u32 a, u32 b)
{
	const sim_time of_a = r->result[a], of_b = r->result[b];
	const u32 from = of_a < of_b ? a : b, to = from ^ a ^ b;
	sim_time there;

	if (of_b - r->wire.length <= of_a && of_a - r->wire.length <= of_b)
		return false;
	there = redundant_rescue(r, from, to, r->result[to]);
	if (there >= r->result[to])
		return false;
	r->result[to] = there;
	return true;
}

/* Sends results to partners among `count` ranks until no rank finishes earlier. */
static void spread_results(struct redundant *r, u32 first, u32 count)
{
	const u32 end = first + count;
	bool helped = true;
	u32 half, k, rank;

	while (helped) {
		helped = false;
		for (half = 1; half < count; half *= 2)
			for (k = first; k < end; k += 2 * half)
				for (rank = k; rank < k + half; rank++)
					helped |= redundant_help(r, rank, rank + half);
	}
}

/*
 * The same after `rank` alone has its result earlier: only ranks that are served earlier in turn can
 * help others. They are listed; r->old is free until redundant_conclude(), r->next until the
 * exchanges are revised. Which order they are served in makes no difference: results only
 * become earlier, so there is one fixed point.
 */
static void spread_result(struct redundant *r, u32 rank, u32 count)
{
	u32 *list = (u32 *)r->old, listed = 1, half, i;
	bool helped = true;

	list[0] = rank;
	add_to_set(r->next, rank, true);
	while (helped) {
		helped = false;
		for (half = 1; half < count; half *= 2)
			for (i = 0; i < listed; i++) {
				const u32 to = list[i] ^ half;

				if (!redundant_help(r, list[i], to))
					continue;
				helped = true;
				if (!in_set(r->next, to))
					list[listed++] = to;
				add_to_set(r->next, to, true);
			}
	}
	for (i = 0; i < listed; i++)
		r->next[list[i] / WORD] = 0;
}

/* ---- results instead of exchanges -------------------------------------------------------- */

/* e(i) of a rank; of a block's exchanges they are computed again. */
static sim_time reduced_at(struct redundant *r, u32 i, u32 rank)
{
	const u32 size = 1u << r->block, first = rank & ~(size - 1);

	if (i >= r->block)
		return r->reduced[i][rank];
	if (r->timed != first) {
		const u64 messages = r->messages, reductions = r->reductions;
		sim_time unused[1 << BLOCK_BITS];

		exchange_block(r, first, unused);
		r->messages = messages;
		r->reductions = reductions;
	}
	return r->times.reduced[i][rank - first];
}

/* Whether it has the result before it begins its last exchange. */
static inline bool served_early(const struct redundant *r, u32 rank)
{
	return r->reduced[r->exchanges - 1][rank] > r->result[rank];
}

/* How many exchanges, but those with its T partners, it has not begun by then. */
static u32 exchanges_left(struct redundant *r, u32 rank)
{
	u32 i = r->exchanges;

	while (i > r->redundancy && reduced_at(r, i - 1, rank) > r->result[rank])
		i--;
	return r->exchanges - i;
}

static inline u32 column_of(const struct redundant *r, u32 rank)
{
	return rank >> r->redundancy;
}

/* To the partners of the last `left` exchanges. Returns whether one of them is served earlier. */
static bool hand_on(struct redundant *r, u32 rank, u32 left)
{
	const u32 count = 1u << r->redundancy;
	bool helped = false;
	u32 i;

	for (i = r->exchanges - left; i < r->exchanges; i++) {
		const u32 to = rank ^ 1u << i;
		const sim_time there = redundant_rescue(r, rank, to, r->result[to]);

		if (there >= r->result[to])
			continue;
		r->result[to] = there;
		spread_result(r, to, count);
		add_to_set(r->giving, column_of(r, to), true);
		helped = true;
	}
	return helped;
}

static bool hand_on_column(struct redundant *r, u32 column)
{
	const u32 first = column << r->redundancy;
	bool helped = false;
	u32 rank;

	for (rank = first; rank < first + (1u << r->redundancy); rank++)
		if (served_early(r, rank))
			helped |= hand_on(r, rank, exchanges_left(r, rank));
	return helped;
}

/* Until no rank is served earlier. */
static void hand_on_results(struct redundant *r)
{
	const u32 words = set_words(column_of(r, r->ranks - 1) + 1);
	bool helped = true;
	u32 word;

	while (helped) {
		helped = false;
		for (word = 0; word < words; word++)
			while (r->giving[word]) {
				const u32 k = __builtin_ctzll(r->giving[word]);

				r->giving[word] &= r->giving[word] - 1;
				helped |= hand_on_column(r, word * WORD + k);
			}
	}
}

/* Returns whether the sends of any rank may change. e(i) grows with i. */
static bool redundant_conclude(struct redundant *r)
{
	const sim_time *most = r->reduced[r->exchanges - 1];
	bool moved = false;
	u32 rank;

	for (rank = 0; rank < r->ranks; rank++) {
		const sim_time old = r->done[rank], done = r->result[rank] == SIM_NEVER ?
					SIM_NEVER : redundant_awake(r, rank, r->result[rank]);

		if (done == old)
			continue;
		r->old[rank] = old;
		r->done[rank] = done;
		if (most[rank] > redundant_least(done, old)) {
			add_to_set(r->moved, rank, true);
			moved = true;
		}
	}
	return moved;
}

/* ---- what has changed ----------------------------------------------------------------- */

/* Of these ranks those that continue after `i` reductions now and did not before, or vice versa. */
static u64 redundant_turned(const struct redundant *r, u32 i, u32 word)
{
	const sim_time *reduced = r->reduced[i] + (size_t)word * WORD;
	const sim_time *done = r->done + (size_t)word * WORD, *old = r->old + (size_t)word * WORD;
	u64 rest = r->moved[word], set = 0;

	for (; rest; rest &= rest - 1) {
		const u32 k = __builtin_ctzll(rest);

		set |= (u64)(goes_on_until(reduced[k], done[k]) !=
			     goes_on_until(reduced[k], old[k])) << k;
	}
	return set;
}

/* Exchange `i` again of the pairs whose lower rank is in the set. */
static void exchange_again(struct redundant *r, u32 i, u32 word, u64 set)
{
	const u32 half = 1u << i;
	sim_time *reduced = r->reduced[i + 1];

	for (; set; set &= set - 1) {
		const u32 a = word * WORD + __builtin_ctzll(set), b = a + half;
		const sim_time of_a = reduced[a], of_b = reduced[b];

		redundant_exchange(r, r->reduced[i], reduced, 0, a, b);
		add_to_set(r->next, a, reduced[a] != of_a);
		add_to_set(r->next, b, reduced[b] != of_b);
	}
}

/* In each word the bits of ranks that have the lower half of 2^(i + 1). */
static u64 lower_half(u32 i)
{
	return ~0ull / ((1ull << (1u << i)) + 1);
}

static void revise_exchange(struct redundant *r, u32 i)
{
	const u32 words = set_words(r->ranks), apart = (1u << i) / WORD;
	u32 word;

	memset(r->next, 0, words * sizeof(*r->next));
	for (word = 0; word < words; word++) {
		u64 set;

		if (word & apart)
			continue;
		set = r->changed[word] | redundant_turned(r, i, word);
		if (apart)
			set |= r->changed[word + apart] | redundant_turned(r, i, word + apart);
		else
			set = (set | set >> (1u << i)) & lower_half(i);
		exchange_again(r, i, word, set);
	}
}

/* Whether one of the block's ranks may make more or fewer exchanges. */
static bool block_turned(const struct redundant *r, u32 first)
{
	const sim_time *most = r->reduced[r->block];
	u32 rank;

	for (rank = first; rank < first + (1u << r->block); rank++)
		if (in_set(r->moved, rank) &&
		    most[rank] > redundant_least(r->old[rank], r->done[rank]))
			return true;
	return false;
}

static void revise_block(struct redundant *r, u32 first)
{
	sim_time now[1 << BLOCK_BITS], *reduced = r->reduced[r->block] + first;
	u32 x;

	exchange_block(r, first, now);
	for (x = 0; x < 1u << r->block; x++)
		add_to_set(r->changed, first + x, now[x] != reduced[x]);
	memcpy(reduced, now, sizeof(*now) << r->block);
}

static void redundant_revise(struct redundant *r)
{
	const u32 words = set_words(r->ranks);
	u32 first, i;

	memset(r->changed, 0, words * sizeof(*r->changed));
	for (first = 0; first < r->ranks; first += 1u << r->block)
		if (block_turned(r, first))
			revise_block(r, first);
	for (i = r->block; i < r->exchanges; i++) {
		u64 *changed = r->changed;

		revise_exchange(r, i);
		r->changed = r->next;
		r->next = changed;
	}
}

/* What the ranks of a block send in its exchanges, in the last pass. */
static void count_block(struct redundant *r, u32 first)
{
	const u32 ranks = 1u << r->block;
	sim_time unused[1 << BLOCK_BITS];
	u32 x;

	for (x = first; x < first + ranks; x++)
		if (r->reduced[r->block][x] > r->done[x]) {
			exchange_block(r, first, unused);
			return;
		}
	r->messages += ranks * r->block;
	r->reductions += ranks * r->block;
}

/* What all ranks send, in the last pass. Every rank is done at some time. */
static void count_exchanges(struct redundant *r)
{
	u32 rank, i;

	r->messages = r->reductions = 0;
	for (rank = 0; rank < r->ranks; rank += 1u << r->block)
		count_block(r, rank);
	for (i = r->block; i < r->exchanges; i++) {
		const sim_time *now = r->reduced[i], *then = r->reduced[i + 1];
		u64 messages = 0, reductions = 0;

		for (rank = 0; rank < r->ranks; rank++) {
			messages += now[rank] <= r->done[rank];
			reductions += then[rank] != SIM_NEVER;
		}
		r->messages += messages;
		r->reductions += reductions;
	}
}

/* ---- passes ---------------------------------------------------------------------------- */

/* Whether the result came from this partner. */
static bool result_is_from(const struct redundant *r, u32 rank, u32 partner)
{
	return redundant_rescue(r, partner, rank, r->result[rank]) <= r->result[rank];
}

/* Whether it came from one of the T partners, to which it is then not sent. */
static bool got_result(const struct redundant *r, u32 rank)
{
	u32 j;

	for (j = 0; j < r->redundancy; j++)
		if (result_is_from(r, rank, rank ^ 1u << j))
			return true;
	return false;
}

/* Whether it came instead of one of the exchanges that this rank has not begun. */
static bool got_result_for(struct redundant *r, u32 rank, u32 left)
{
	u32 i, partner;

	for (i = r->redundancy; i < r->exchanges; i++) {
		partner = rank ^ 1u << i;
		if (served_early(r, partner) && reduced_at(r, i, partner) > r->result[partner] &&
		    result_is_from(r, rank, partner))
			return i >= r->exchanges - left;
	}
	return false;
}

static void count_redundant(struct redundant *r)
{
	u32 rank;

	for (rank = 0; rank < r->ranks; rank++) {
		const bool got = got_result(r, rank);

		r->messages += r->redundancy - got;
		if (r->redundancy && served_early(r, rank)) {
			const u32 left = exchanges_left(r, rank);

			r->messages += left - (!got && got_result_for(r, rank, left));
		}
	}
}

/* All results, from e(K) and what the ranks send to each other. */
static void find_results(struct redundant *r)
{
	const u32 count = 1u << r->redundancy, words = set_words(column_of(r, r->ranks - 1) + 1);
	u32 first;

	memcpy(r->result, r->reduced[r->exchanges], r->ranks * sizeof(*r->result));
	if (!r->redundancy)
		return;
	for (first = 0; first < r->ranks; first += count)
		spread_results(r, first, count);
	memset(r->giving, 0xff, words * sizeof(*r->giving));
	memset(r->next, 0, set_words(r->ranks) * sizeof(*r->next));
	if (r->ranks / count % WORD)
		r->giving[words - 1] = (1ull << r->ranks / count % WORD) - 1;
	hand_on_results(r);
}

/* One pass; returns whether another is needed. */
static bool run_pass(struct redundant *r, bool again)
{
	r->timed = COLL_NONE;
	if (again) {
		redundant_revise(r);
	} else {
		r->messages = r->reductions = 0;
		exchange_first(r, 0, r->exchanges);
	}
	find_results(r);
	memset(r->moved, 0, set_words(r->ranks) * sizeof(*r->moved));
	return redundant_conclude(r);
}

static int find_times(struct redundant *r)
{
	u32 pass, rank;

	for (rank = 0; rank < r->ranks; rank++) {
		r->done[rank] = SIM_NEVER;
		if (r->strike)
			r->strike[rank] = INT64_MIN / 2;	/* not queried */
	}
	for (pass = 0; pass < PASSES_MAX; pass++)
		if (!run_pass(r, pass)) {
			if (pass)
				count_exchanges(r);
			return 0;
		}
	return -EOPNOTSUPP;
}

static void redundant_report(const struct redundant *r, struct sim_outcome *outcome,
			     sim_time *finish)
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

/* Allocates times for these ranks, in huge pages if possible. */
static sim_time *times_new(u64 count)
{
	const u64 bytes = (count * sizeof(sim_time) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	void *memory = aligned_alloc(HUGE_PAGE, bytes);

	if (memory && bytes > HUGE_PAGE)
		madvise(memory, bytes, MADV_HUGEPAGE);
	return memory;
}

void redundant_free(struct redundant_memory *memory)
{
	free(memory->times);
	free(memory->sets);
	*memory = (struct redundant_memory){ 0 };
}

/* Memory that all runs of a job share. */
static bool memory_new(const struct redundant *r, struct redundant_memory *memory)
{
	if (!memory->times)
		memory->times = times_new((r->exchanges - r->block + 5ull) * r->ranks);
	if (!memory->sets)
		memory->sets = calloc(4 * set_words(r->ranks), sizeof(u64));
	return memory->times && memory->sets;
}

static bool redundant_new(struct redundant *r, struct redundant_memory *memory)
{
	const u64 ranks = r->ranks, words = set_words(r->ranks);
	u32 i;

	r->block = r->exchanges - 1 < BLOCK_BITS ? r->exchanges - 1 : BLOCK_BITS;
	if (!memory_new(r, memory))
		return false;
	r->moved = memory->sets;
	r->changed = r->moved + words;
	r->next = r->changed + words;
	r->giving = r->next + words;
	r->result = memory->times;
	r->done = r->result + ranks;
	r->old = r->done + ranks;
	for (i = r->block; i <= r->exchanges; i++)
		r->reduced[i] = r->old + (i - r->block + 1) * ranks;
	r->strike = r->phase ? r->reduced[r->exchanges] + ranks : NULL;
	return true;
}

int redundant_run(const struct sim_job *job, const struct sim_machine *machine,
		  struct redundant_memory *memory, struct sim_outcome *outcome, sim_time *finish)
{
	const u32 ranks = job->call.ranks;
	struct redundant r = {
		.machine = machine,
		.ranks = ranks,
		.exchanges = log2_floor(ranks),
		.redundancy = coll_redundancy_of(&job->call, &job->tuning).exchanges,
		.work = to_time(vector_bytes(job) * machine->gamma),
		.wire = noise_wire(&machine->link, machine_way(machine, vector_bytes(job))),
		.phase = noise_phases(&machine->os, ranks),
	};
	const struct sim_noise_source *noise = machine->os.source;
	int error = redundant_new(&r, memory) ? 0 : -ENOMEM;

	if (r.phase)
		r.calm = machine->semantics == SIM_EVENT ? noise->period - 1 :
							   noise->period - noise->duration;
	*outcome = (struct sim_outcome){ .path = SIM_LEVELS };
	if (!error)
		error = find_times(&r);
	if (!error) {
		r.timed = COLL_NONE;
		count_redundant(&r);
		redundant_report(&r, outcome, finish);
	}
	free(r.phase);
	return error;
}
