// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * After exchange i the ranks of a block (equal bits from i + 1 up) fall into
 * classes by their low bits, and a delay that comes in exchange i is felt by all
 * ranks of its block with the same low i bits: by a subtree of the tree of the
 * low bits. A block is late only if every one of the 2^T classes is; whether one
 * stays clean is a matter of percolation on that tree, which is computed here
 * from the leaves to the root. docs/choosing-T.md has the derivation.
 */
#include <math.h>

#include "redundancy.h"

enum {
	DELAYS = 5,		/* so many one after the other are looked at */
	T_MAX = 6,		/* more classes are as good as these */
	CLASSES_MAX = 1 << T_MAX,
	RELAYS_MAX = 4,
};

/* ---- options ------------------------------------------------------------- */

static u32 at_most(u64 value, u32 most)
{
	return value < most ? value : most;
}

struct redundancy redundancy_of(const struct coll_call *call, const struct coll_tuning *tuning)
{
	const u64 t = tuning->redundancy == COLL_UNSET ? 1 : tuning->redundancy;

	return (struct redundancy){ at_most(t, log2_floor(call->ranks)), 0 };
}

struct redundancy redundancy_relayed_of(const struct coll_call *call,
					const struct coll_tuning *tuning)
{
	const u32 exchanges = log2_floor(call->ranks), usual = exchanges / REDUNDANCY_RELAY_EVERY;
	const u64 t = tuning->redundancy == COLL_UNSET ? REDUNDANCY_RELAYED_T : tuning->redundancy;
	const u64 relays = tuning->relays == COLL_UNSET ? usual + !usual : tuning->relays;

	return (struct redundancy){ at_most(t, exchanges),
				    at_most(relays, exchanges ? exchanges - 1 : 0) };
}

/* ---- one kind of noise ------------------------------------------------------ */

struct kind {
	u32 exchanges;		/* K */
	double duration;
	double fresh;		/* chance that it holds up a rank (a message) in one exchange */
	double resuming;	/* the same of a rank that has waited for a delay */
	double start;		/* the same before the first exchange */
	bool own;		/* who is held up is late whatever others do */
};

static struct kind kind_of_ranks(const struct coll_noise_rate *noise, bool event, u32 exchanges,
				 double way, double work)
{
	const double window = event ? work : way + work;
	struct kind kind = { .exchanges = exchanges, .duration = noise->duration };

	kind.fresh = -expm1(-noise->rate * window);
	kind.resuming = event ? kind.fresh : -expm1(-noise->rate * noise->duration);
	kind.start = event ? 0 : kind.resuming;
	kind.own = !event;
	return kind;
}

static struct kind kind_of_messages(const struct coll_noise_rate *noise, bool event, u32 exchanges,
				    double way)
{
	struct kind kind = { .exchanges = exchanges, .duration = noise->duration };

	kind.fresh = -expm1(-noise->rate * (way + (event ? 0 : noise->duration)));
	kind.resuming = kind.fresh;
	return kind;
}

/*
 * value[m] is the chance of success with m classes still clean; the same before
 * each of them could be hit, with chance 1 - clean.
 */
static void thin(double *value, u32 classes, double clean)
{
	double row[2 * CLASSES_MAX + 1];
	u32 m, j;

	/* row[j] after m steps: mean of value[j + Binomial(m, clean)]. */
	for (j = 0; j <= classes; j++)
		row[j] = value[j];
	for (m = 1; m <= classes; m++) {
		for (j = 0; j + m <= classes; j++)
			row[j] = (1 - clean) * row[j] + clean * row[j + 1];
		value[m] = row[0];
	}
}

/* Each clean class becomes two. */
static void split(double *value, u32 classes)
{
	u32 m;

	for (m = 0; m <= classes; m++)
		value[m] = value[2 * m];
}

static double power_of_two(u32 exponent)
{
	return ldexp(1, exponent);
}

/* Chance that a rank is held up in exchange i for the k-th time after others were k - 1 times. */
static double crossing(const struct kind *kind, double before)
{
	return before * (before * kind->fresh + (1 - before) * kind->resuming);
}

/*
 * The chance that a block of 2^to ranks is not late in exchanges from + 1 .. to,
 * if it was not before. before[i]: that of a rank being late once less after i.
 */
static double block_clean(const struct kind *kind, const double *before, u32 from, u32 to,
			  u32 redundancy)
{
	const u32 depth = redundancy < to ? redundancy : to;
	double value[2 * CLASSES_MAX + 1];
	u32 classes = 1u << depth, m, i;

	for (m = 0; m <= classes; m++)
		value[m] = m > 0;
	for (i = to; i > from; i--) {
		const double hits = crossing(kind, before[i - 1]) * power_of_two(to - i);

		thin(value, classes, exp(-hits));
		if (i > depth) {	/* two halves of the block, both must be clean */
			for (m = 0; m <= classes; m++)
				value[m] *= value[m];
		} else {
			classes /= 2;
			split(value, classes);
		}
	}
	return from > depth ? pow(value[classes], power_of_two(from - depth)) : value[classes];
}

/*
 * late[i]: that of a rank being late (k times) after exchange i, with k - 1 times
 * in before[]. Returns that of the last rank.
 */
static double spread(const struct kind *kind, struct redundancy with, const double *before,
		     double start, double *late)
{
	double clean = exp(-start * power_of_two(kind->exchanges)), all = clean;
	u32 from = 0, i, k;

	late[0] = start;
	for (k = 1; k <= with.relays + 1; k++) {
		const u32 to = k > with.relays ? kind->exchanges :
				   redundancy_relay_after(kind->exchanges, with, k);

		if (to == from)
			continue;
		for (i = from + 1; i <= to; i++)
			late[i] = 1 - (1 - late[i - 1]) * (1 - late[i - 1]) *
					      (1 - crossing(kind, before[i - 1]));
		clean = block_clean(kind, before, from, to, with.exchanges);
		all *= pow(clean, power_of_two(kind->exchanges - to));
		late[to] = 1 - clean * pow(1 - late[from], power_of_two(to - from));
		from = to;
	}
	return 1 - all;
}

/* chance[k - 1]: that the last rank is late k times or more. */
static void delays(const struct kind *kind, struct redundancy with, double *chance)
{
	double memory[2][LOG2_RANKS_MAX + 1], *before = memory[0], *late = memory[1], *swap;
	u32 i, k;

	for (i = 0; i <= kind->exchanges; i++)
		before[i] = 1;
	for (k = 0; k < DELAYS; k++) {
		chance[k] = spread(kind, with, before, k ? 0 : kind->start, late);
		swap = before;
		before = late;
		late = swap;
	}
}

/* Who is still held up when the result comes is late for that alone. */
static void add_own(const struct kind *kind, double first, double *chance)
{
	const double held = -expm1(-kind->resuming * power_of_two(kind->exchanges));
	double before = chance[0];
	u32 k;

	chance[0] = first;
	for (k = 1; k < DELAYS; k++) {
		const double here = chance[k];

		chance[k] = here + (before - here) * held;
		before = here;
	}
}

/*
 * The longest rest of an event, of those that hold somebody up: their number is
 * Poisson distributed, and the rests are uniform.
 */
static double longest_rest(double chance)
{
	if (chance >= 1)
		return 1;
	return chance < 1e-9 ? chance / 2 : 1 + chance / log1p(-chance);
}

/* Mean seconds that this kind adds. `hop`: what a result handed on costs instead. */
static double delay_of(const struct kind *kind, struct redundancy with, double hop)
{
	double plain[DELAYS], chance[DELAYS], sum = 0;
	u32 k;

	delays(kind, (struct redundancy){ 0, 0 }, plain);
	delays(kind, with, chance);
	if (kind->own && with.exchanges)
		add_own(kind, plain[0], chance);
	for (k = 0; k < DELAYS; k++) {
		const bool rests = kind->own && (k || kind->start > kind->fresh);
		const double most = chance[k] < plain[k] ? chance[k] : plain[k];
		const double length = rests ? longest_rest(most) : most;

		sum += length * kind->duration +
		       (plain[k] - most) * (hop < kind->duration ? hop : kind->duration);
	}
	return sum;
}

/* ---- all of it -------------------------------------------------------------- */

static double way_of(const struct coll_call *call, const struct coll_machine *m)
{
	return m->alpha + call_bytes(call) * m->beta;
}

/* What a redundant message keeps its sender busy for. */
static double extra_of(const struct coll_call *call, const struct coll_machine *m)
{
	return m->overhead + call_bytes(call) * m->beta;
}

double redundancy_delay(const struct coll_call *call, struct redundancy with,
			const struct coll_machine *m)
{
	const u32 exchanges = log2_ceil(call->ranks);
	const double way = way_of(call, m), work = call_bytes(call) * m->gamma;
	const double hop = way + with.exchanges * extra_of(call, m) / 2;
	double sum = 0;
	struct kind kind;
	u32 i;

	if (with.exchanges > T_MAX)
		with.exchanges = T_MAX;
	for (i = 0; i < COLL_NOISES_MAX && m->noise[i].rate > 0; i++) {
		kind = kind_of_ranks(&m->noise[i], m->noise_event, exchanges, way, work);
		sum += delay_of(&kind, with, hop);
	}
	if (m->link_noise.rate > 0) {
		kind = kind_of_messages(&m->link_noise, m->noise_event, exchanges, way);
		sum += delay_of(&kind, with, hop);
	}
	return sum;
}

double redundancy_cost(const struct coll_call *call, struct redundancy with,
		       const struct coll_machine *m)
{
	const struct fold fold = fold_of(call->ranks);
	const double n = call_bytes(call);
	const u32 messages = fold.exchanges + (fold.surplus ? 2 : 0);
	const u32 redundant = with.exchanges * (with.relays + (fold.surplus ? 2 : 1));

	return symmetric_cost(m, messages * (way_of(call, m) + n * m->gamma) +
					 redundant * extra_of(call, m) +
					 (with.exchanges ? 2 * n * m->gamma : 0));
}

static double total(const struct coll_call *call, struct redundancy with,
		    const struct coll_machine *m)
{
	return redundancy_cost(call, with, m) + redundancy_delay(call, with, m);
}

struct redundancy redundancy_choose(const struct coll_call *call, u32 most_relays,
				    const struct coll_machine *m)
{
	const u32 exchanges = log2_floor(call->ranks);
	struct redundancy best = { 0, 0 }, with;
	double least;

	if (m->noise[0].rate <= 0 && m->link_noise.rate <= 0)
		return best;
	least = total(call, best, m);
	for (with.relays = 0; with.relays <= at_most(most_relays, RELAYS_MAX) &&
			      with.relays < exchanges; with.relays++)
		for (with.exchanges = 1; with.exchanges <= at_most(exchanges, T_MAX);
		     with.exchanges++) {
			const double time = total(call, with, m);

			if (time < 0.99 * least) {
				least = time;
				best = with;
			}
		}
	return best;
}
