// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * After exchange i the ranks of a block (equal bits from i + 1 up) form classes by their low
 * bits. A delay in exchange i reaches all ranks of its block with the same low i bits: a subtree
 * of the tree of the low bits. A block is late only if each of its 2^T classes is. The
 * probability that one class is not is a percolation problem on that tree, computed here from
 * the leaves to the root. docs/guide/choosing-T.md has the derivation.
 */
#include <math.h>

#include "redundancy.h"

enum {
	DELAYS = 5,		/* maximum of consecutive delays */
	CELLS = 6,		/* parts of an event's rest, where rests matter */
	POINTS = DELAYS * CELLS,
	T_MAX = 5,		/* more classes are as good as these */
	CLASSES_MAX = 1 << T_MAX,
	RELAYS_MAX = 3,
};

/* ---- options ------------------------------------------------------------- */

static u32 at_most(u64 value, u32 most)
{
	return value < most ? value : most;
}

struct coll_redundancy coll_redundancy_of(const struct coll_call *call,
					  const struct coll_tuning *tuning)
{
	const u64 t = tuning->redundancy == COLL_UNSET ? 1 : tuning->redundancy;

	return (struct coll_redundancy){ at_most(t, log2_floor(call->ranks)), 0 };
}

struct coll_redundancy coll_redundancy_relayed_of(const struct coll_call *call,
						  const struct coll_tuning *tuning)
{
	const u32 exchanges = log2_floor(call->ranks), usual = exchanges / REDUNDANCY_RELAY_EVERY;
	const u64 t = tuning->redundancy == COLL_UNSET ? REDUNDANCY_RELAYED_T : tuning->redundancy;
	const u64 relays = tuning->relays == COLL_UNSET ? usual + !usual : tuning->relays;

	return (struct coll_redundancy){ at_most(t, exchanges),
					 at_most(relays, exchanges ? exchanges - 1 : 0) };
}

/* ---- one kind of noise ------------------------------------------------------ */

struct redundancy_kind {
	u32 exchanges;		/* K */
	double duration, rate;
	double fresh;		/* chance that it holds up a rank (a message) in one exchange */
	double grain;		/* seconds before the first exchange in which it may come */
	u32 cells;		/* of a duration */
	bool own;		/* a rank is held up whenever it is on, and late by itself */
	bool link;
};

static struct redundancy_kind kind_of_ranks(const struct coll_noise_rate *noise,
					    const struct coll_machine *m, u32 exchanges, double way,
					    double work)
{
	const double window = m->noise_event ? work : way + work;

	return (struct redundancy_kind){
		.exchanges = exchanges, .duration = noise->duration, .rate = noise->rate,
		.fresh = -expm1(-noise->rate * window), .grain = m->grain,
		.cells = m->noise_event ? 1 : CELLS, .own = !m->noise_event,
	};
}

static struct redundancy_kind kind_of_messages(const struct coll_noise_rate *noise, bool event,
					       u32 exchanges, double way)
{
	const double window = way + (event ? 0 : noise->duration);

	return (struct redundancy_kind){
		.exchanges = exchanges, .duration = noise->duration, .rate = noise->rate,
		.fresh = -expm1(-noise->rate * window), .cells = 1, .link = true,
	};
}

static u32 points_of(const struct redundancy_kind *kind)
{
	return DELAYS * kind->cells;
}

/* Chance that a rank is late by more than point j when it begins: a rest, or the grain's. */
static double start_tail(const struct redundancy_kind *kind, u32 j)
{
	if (!kind->own || j >= kind->cells)
		return 0;
	return -expm1(-kind->rate * (kind->grain + kind->duration * (1 - (double)j / kind->cells)));
}

/*
 * value[m] is the chance of success with m classes still clean; the same before
 * each of them could be hit, with chance 1 - clean.
 */
static void redundancy_thin(double *value, u32 classes, double clean)
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
static void redundancy_split(double *value, u32 classes)
{
	u32 m;

	for (m = 0; m <= classes; m++)
		value[m] = value[2 * m];
}

static double power_of_two(u32 exponent)
{
	return ldexp(1, exponent);
}

/*
 * From tail[j], the chance that a rank is late by more than point j before an
 * exchange, to cross[j]: that neither it nor its partner is, but it is after it.
 */
static void redundancy_crossing(const struct redundancy_kind *kind, const double *tail,
				double *cross)
{
	const double part = kind->rate * kind->duration / kind->cells;
	const u32 points = points_of(kind);
	double chance[POINTS + 1], step[POINTS + CELLS + 2] = { 0 };
	u32 a, b, j;

	for (j = 0; j <= points; j++)
		chance[j] = (j ? tail[j - 1] : 1) - (j < points ? tail[j] : 0);
	for (a = 0; a < points; a++)
		for (b = 0; b < points; b++) {
			const double both = chance[a] * chance[b];
			const u32 top = a > b ? a : b, wait = b > a ? b - a : 0;
			const u32 hit = wait < kind->cells ? wait : kind->cells;

			/* Held up anew for all of an event; of a message, the partner's. */
			if (!kind->link || b == top) {
				step[top] += both * kind->fresh;
				step[top + kind->cells] -= both * kind->fresh;
			}
			/* An event that began while it waited: its rest. */
			for (j = 0; kind->own && j < hit; j++) {
				step[top] += both * part;
				step[top + kind->cells - j] -= both * part;
			}
		}
	for (j = 0, cross[0] = step[0]; j + 1 < points; j++)
		cross[j + 1] = cross[j] + step[j + 1];
}

/*
 * The chance that a block of 2^to ranks is not late in exchanges from + 1 .. to,
 * if it was not before. hits[i]: that of one rank of it becoming late in exchange i.
 */
static double block_clean(const double *hits, u32 from, u32 to, u32 redundancy)
{
	const u32 depth = redundancy < to ? redundancy : to;
	double value[CLASSES_MAX + 1];
	u32 classes = 1u << depth, m, i;

	for (m = 0; m <= classes; m++)
		value[m] = m > 0;
	for (i = to; i > from; i--) {
		redundancy_thin(value, classes, exp(-hits[i] * power_of_two(to - i)));
		if (i > depth) {	/* two halves of the block, both must be clean */
			for (m = 0; m <= classes; m++)
				value[m] *= value[m];
		} else {
			classes /= 2;
			redundancy_split(value, classes);
		}
	}
	return from > depth ? pow(value[classes], power_of_two(from - depth)) : value[classes];
}

/* Exchanges from + 1 .. to of all ranks; *all of them clean at point j is made less. */
static void redundancy_stage(const struct redundancy_kind *kind, u32 from, u32 to, u32 redundancy,
			     double *tail, double *all)
{
	const u32 points = points_of(kind);
	double hits[POINTS][LOG2_RANKS_MAX + 1], cross[POINTS], before[POINTS];
	u32 i, j;

	for (j = 0; j < points; j++)
		before[j] = tail[j];
	for (i = from + 1; i <= to; i++) {
		redundancy_crossing(kind, tail, cross);
		for (j = 0; j < points; j++) {
			const double both = (1 - tail[j]) * (1 - tail[j]);
			const double hit = cross[j] > 0 ? cross[j] : 0;	/* a sum that is rounded */

			hits[j][i] = both > hit ? hit / both : both > 1e-300;
			tail[j] = both > hit ? 1 - (both - hit) : 1;
		}
	}
	for (j = 0; j < points; j++) {
		const double clean = block_clean(hits[j], from, to, redundancy);

		all[j] *= pow(clean, power_of_two(kind->exchanges - to));
		tail[j] = 1 - clean * pow(1 - before[j], power_of_two(to - from));
	}
}

/* late[j]: the chance that the result is later than point j somewhere. */
static void redundancy_delays(const struct redundancy_kind *kind, struct coll_redundancy with,
			      double *late)
{
	const u32 points = points_of(kind);
	double tail[POINTS], all[POINTS];
	u32 from = 0, j, k;

	for (j = 0; j < points; j++) {
		tail[j] = start_tail(kind, j);
		all[j] = pow(1 - tail[j], power_of_two(kind->exchanges));
	}
	for (k = 1; k <= with.relays + 1; k++) {
		const u32 to = k > with.relays ? kind->exchanges :
				   redundancy_relay_after(kind->exchanges, with, k);

		if (to > from)
			redundancy_stage(kind, from, to, with.exchanges, tail, all);
		from = to;
	}
	for (j = 0; j < points; j++)
		late[j] = 1 - all[j];
}

/* That some rank is held up for longer than point j, whatever becomes of the others. */
static double redundancy_held(const struct redundancy_kind *kind, u32 j, double seconds)
{
	if (j >= kind->cells)
		return 0;
	return -expm1(-power_of_two(kind->exchanges) * kind->rate *
		      (seconds + kind->duration * (1 - (double)j / kind->cells)));
}

static double first_held(const struct redundancy_kind *kind, u32 j)
{
	return redundancy_held(kind, j, kind->grain + kind->exchanges * kind->fresh / kind->rate);
}

/* A rank that is delayed when the result arrives is late for that alone. */
static void add_own(const struct redundancy_kind *kind, double *late)
{
	const u32 points = points_of(kind);
	double sum[POINTS];
	u32 a, j;

	for (j = 0; j < points; j++) {
		sum[j] = (1 - late[0]) * first_held(kind, j) + late[j];
		for (a = 1; a <= j; a++)
			sum[j] += (late[a - 1] - late[a]) * redundancy_held(kind, j - a, 0);
	}
	for (j = 0; j < points; j++)
		late[j] = fmin(1, fmax(sum[j], first_held(kind, j)));
}

/* Mean seconds; rests are spread evenly over a cell, whole events are not. */
static double mean_of(const struct redundancy_kind *kind, const double *late)
{
	const u32 points = points_of(kind);
	double sum = kind->own ? -late[0] / 2 : 0;
	u32 j;

	for (j = 0; j < points; j++)
		sum += late[j];
	return sum * kind->duration / kind->cells;
}

/*
 * The chance that in this step all replicas of a node, or their links, are held up past point j, if all
 * were in time before. An event that began in an earlier step may still be on.
 */
static double replicas_hit(const struct redundancy_kind *kind, const struct coll_replicas *with,
			   u32 step, u32 j)
{
	const double rest = kind->duration * (1 - (double)j / kind->cells);
	const double since = step * kind->fresh;	/* about rate x time */
	double one = kind->fresh, sum = 1;
	u32 i;

	if (kind->own)
		one = -expm1(-fmin(since, kind->rate * rest));
	if (!kind->link && with->replicas > 2)	/* or its partner */
		one = 1 - (1 - one) * (1 - one);
	for (i = 0; i < with->replicas; i++)
		sum *= one;
	return with->replicas > 2 || kind->link ? sum : 1 - (1 - sum) * (1 - sum);
}

/* As redundancy_delays(). All vectors are waited for; then a node is late if all its replicas are. */
static void replicas_delays(const struct redundancy_kind *kind, const struct coll_replicas *with,
			    double *late)
{
	const u32 points = points_of(kind);
	double all;
	u32 step, j;

	for (j = 0; j < points; j++) {
		all = pow(1 - start_tail(kind, j), power_of_two(kind->exchanges));
		for (step = 1; j < kind->cells && step <= with->steps; step++)
			all *= pow(1 - replicas_hit(kind, with, step, j), with->nodes);
		late[j] = 1 - all;
	}
}

/*
 * Mean seconds that this kind adds. `hop`: the cost of a relayed result instead. `replicas`: of them, not of
 * redundant exchanges, or NULL.
 */
static double delay_of(const struct redundancy_kind *kind, struct coll_redundancy with,
		       const struct coll_replicas *replicas, double hop)
{
	const u32 points = points_of(kind);
	double plain[POINTS], late[POINTS], hops = 0;
	u32 j;

	redundancy_delays(kind, (struct coll_redundancy){ 0, 0 }, plain);
	if (!with.exchanges && !replicas)
		return mean_of(kind, plain);
	if (replicas)
		replicas_delays(kind, replicas, late);
	else
		redundancy_delays(kind, with, late);
	if (kind->own)
		add_own(kind, late);
	for (j = 0; j < points; j++) {
		late[j] = fmin(late[j], plain[j]);
		if (!(j % kind->cells))
			hops += (plain[j] - late[j]) * fmin(hop, kind->duration);
	}
	return mean_of(kind, late) + hops;
}

/* The part of it that the first event of any rank causes alone. */
static double first_of(const struct redundancy_kind *kind)
{
	double late[POINTS] = { 0 };
	u32 j;

	for (j = 0; j < kind->cells; j++)
		late[j] = first_held(kind, j);
	return kind->own ? mean_of(kind, late) : 0;
}

/* ---- all of it -------------------------------------------------------------- */

static double way_of(const struct coll_call *call, const struct coll_machine *m)
{
	return m->alpha + call_bytes(call) * m->beta;
}

/* Seconds of a redundant message at its sender. */
static double extra_of(const struct coll_call *call, const struct coll_machine *m)
{
	return m->overhead + call_bytes(call) * m->beta;
}

static double delay_with(const struct coll_call *call, struct coll_redundancy with,
			 const struct coll_replicas *replicas, const struct coll_machine *m,
			 bool again)
{
	const u32 exchanges = log2_ceil(call->ranks);
	const double way = way_of(call, m), work = call_bytes(call) * m->gamma;
	const double hop = way + with.exchanges * extra_of(call, m) / 2;
	double sum = 0;
	struct redundancy_kind kind;
	u32 i;

	if (with.exchanges > T_MAX)
		with.exchanges = T_MAX;
	for (i = 0; i < COLL_NOISES_MAX && m->noise[i].rate > 0; i++) {
		kind = kind_of_ranks(&m->noise[i], m, exchanges, way, work);
		sum += delay_of(&kind, with, replicas, hop);
		if (again)
			sum -= first_of(&kind);
	}
	if (m->link_noise.rate > 0) {
		kind = kind_of_messages(&m->link_noise, m->noise_event, exchanges, way);
		sum += delay_of(&kind, with, replicas, hop);
	}
	return sum > 0 ? sum : 0;
}

double coll_redundancy_delay(const struct coll_call *call, struct coll_redundancy with,
			     const struct coll_machine *m)
{
	return delay_with(call, with, NULL, m, false);
}

double coll_redundancy_delay_again(const struct coll_call *call, struct coll_redundancy with,
				   const struct coll_machine *m)
{
	return delay_with(call, with, NULL, m, true);
}

double coll_replicas_delay(const struct coll_call *call, const struct coll_replicas *with,
			   const struct coll_machine *m)
{
	return delay_with(call, (struct coll_redundancy){ 0, 0 }, with, m, false);
}

double coll_redundancy_cost(const struct coll_call *call, struct coll_redundancy with,
			    const struct coll_machine *m)
{
	const struct coll_fold fold = fold_of(call->ranks);
	const double n = call_bytes(call);
	const u32 messages = fold.exchanges + (fold.excess ? 2 : 0);
	const u32 redundant = with.exchanges * (with.relays + (fold.excess ? 2 : 1));

	return symmetric_cost(call, m,
			      messages * (way_of(call, m) + n * m->gamma) +
				      redundant * extra_of(call, m) +
				      (with.exchanges ? 2 * n * m->gamma : 0));
}

static double redundancy_total(const struct coll_call *call, struct coll_redundancy with,
			       const struct coll_machine *m)
{
	return coll_redundancy_cost(call, with, m) + coll_redundancy_delay(call, with, m);
}

struct coll_redundancy coll_redundancy_best(const struct coll_call *call, u32 most_relays,
					    const struct coll_machine *m)
{
	const u32 exchanges = log2_floor(call->ranks);
	struct coll_redundancy best = { 0, 0 }, with;
	double least;

	if (m->noise[0].rate <= 0 && m->link_noise.rate <= 0)
		return best;
	/* Of one exchange the result would come over the link that is disturbed. */
	if (exchanges < 2 && !m->noise_event)
		return best;
	least = redundancy_total(call, best, m);
	for (with.relays = 0; with.relays <= at_most(most_relays, RELAYS_MAX) &&
			      with.relays < exchanges; with.relays++)
		for (with.exchanges = 1; with.exchanges <= at_most(exchanges, T_MAX);
		     with.exchanges++) {
			const double time = redundancy_total(call, with, m);

			if (time < 0.99 * least) {
				least = time;
				best = with;
			}
		}
	return best;
}
