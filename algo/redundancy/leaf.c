// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <math.h>

#include "leaf.h"

/* ---- lists of few numbers, ascending ---------------------------------------- */

static bool few_have(const u32 *few, u32 count, u32 number)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (few[i] == number)
			return true;
	return false;
}

/* How many are below a number. */
static u32 few_below(const u32 *few, u32 count, u32 number)
{
	u32 i;

	for (i = 0; i < count && few[i] < number; i++)
		;
	return i;
}

/* The number-th of the numbers that are not among them. */
static u32 few_skip(const u32 *few, u32 count, u32 number)
{
	u32 i;

	for (i = 0; i < count && few[i] <= number; i++)
		number++;
	return number;
}

static void few_add(u32 *few, u32 *count, u32 number)
{
	u32 at;

	if (few_have(few, *count, number))
		return;
	for (at = (*count)++; at && few[at - 1] > number; at--)
		few[at] = few[at - 1];
	few[at] = number;
}

/* ---- who is what ------------------------------------------------------------ */

bool coll_leaf_is_late(const struct coll_leaves *l, u32 rank)
{
	return few_have(l->late, l->lates, rank);
}

bool coll_leaf_is_aside(const struct coll_leaves *l, u32 rank)
{
	return few_have(l->aside, l->asides, rank);
}

bool coll_leaf_is_mute(const struct coll_leaves *l, u32 vrank)
{
	return few_have(l->mute, l->mutes, vrank);
}

/* Numbers of the ranks that are not aside. */
static u32 number_of(const struct coll_leaves *l, u32 rank)
{
	return rank - few_below(l->aside, l->asides, rank);
}

static u32 rank_of(const struct coll_leaves *l, u32 number)
{
	return few_skip(l->aside, l->asides, number);
}

/* The upper of a pair is its proxy, unless it alone is late. */
static u32 proxy_number(const struct coll_leaves *l, u32 vrank)
{
	const bool turned = coll_leaf_is_late(l, rank_of(l, 2 * vrank + 1)) &&
			    !coll_leaf_is_late(l, rank_of(l, 2 * vrank));

	return 2 * vrank + !turned;
}

bool coll_leaf_is_excess(const struct coll_leaves *l, u32 rank)
{
	const u32 number = number_of(l, rank);

	return number < 2 * l->fold.excess && number != proxy_number(l, number / 2);
}

u32 coll_leaf_virtual_rank(const struct coll_leaves *l, u32 rank)
{
	return fold_virtual_rank(&l->fold, number_of(l, rank));
}

u32 coll_leaf_rank(const struct coll_leaves *l, u32 vrank)
{
	return rank_of(l, fold_is_proxy(&l->fold, vrank) ? proxy_number(l, vrank) :
							    vrank + l->fold.excess);
}

u32 coll_leaf_excess_rank(const struct coll_leaves *l, u32 vrank)
{
	return rank_of(l, proxy_number(l, vrank) ^ 1);
}

u32 coll_leaf_sender(const struct coll_leaves *l, u32 vrank, u32 i)
{
	u32 distance;

	if (!coll_leaf_is_mute(l, vrank))
		return vrank;
	for (distance = 1; distance < 1u << i; distance++)
		if (!coll_leaf_is_mute(l, vrank ^ distance))
			return vrank ^ distance;
	return l->last ? COLL_NONE : vrank;
}

u32 coll_leaf_host(const struct coll_leaves *l, u32 i)
{
	return few_skip(l->mute, l->mutes, i % (l->fold.vranks - l->mutes));
}

/* ---- making ----------------------------------------------------------------- */

static void add_late(struct coll_leaves *l, const struct coll_tuning *tuning)
{
	u32 i;

	for (i = 0; i < COLL_LATE_MAX && tuning->late[i] != COLL_NONE; i++)
		if (tuning->late[i] < l->ranks)
			few_add(l->late, &l->lates, tuning->late[i]);
	if (l->lates == l->ranks)
		l->lates = 0;
}

/* As many late ranks take virtual ranks as complete a power of two, if they can. */
static void put_aside(struct coll_leaves *l)
{
	const u32 others = l->ranks - l->lates, whole = 1u << log2_ceil(others);
	u32 i = whole <= l->ranks ? whole - others : 0;

	for (; l->last && i < l->lates; i++)
		few_add(l->aside, &l->asides, l->late[i]);
}

struct coll_leaves coll_leaves_of(const struct coll_call *call, const struct coll_tuning *tuning,
				  bool last)
{
	struct coll_leaves l = { .ranks = call->ranks, .last = last };
	u32 i;

	add_late(&l, tuning);
	put_aside(&l);
	l.fold = fold_of(l.ranks - l.asides);
	for (i = 0; i < l.lates; i++)
		if (!coll_leaf_is_aside(&l, l.late[i]) && !coll_leaf_is_excess(&l, l.late[i]))
			few_add(l.mute, &l.mutes, coll_leaf_virtual_rank(&l, l.late[i]));
	return l;
}

const char *coll_leaves_refuse(const struct coll_call *call, const struct coll_tuning *tuning)
{
	u32 i;

	for (i = 0; i < COLL_LATE_MAX && tuning->late[i] != COLL_NONE; i++)
		if (tuning->late[i] >= call->ranks)
			return "`late` names a rank that is not there; valid: 0 to the number of ranks - 1";
	return NULL;
}

/* ---- trees ------------------------------------------------------------------ */

u32 coll_leaf_radix(const struct coll_call *call, const struct coll_tuning *tuning)
{
	const u64 radix = tuning->radix == COLL_UNSET ? COLL_LEAF_RADIX : tuning->radix;

	return radix < 2 ? 2 : radix < call->ranks ? radix : call->ranks;
}

struct coll_leaf_tree coll_leaf_tree_of(const struct coll_leaves *l, u32 which, u32 radix)
{
	const u32 rank = l->late[which];
	const bool aside = coll_leaf_is_aside(l, rank);
	const u32 own = aside ? COLL_NONE : coll_leaf_virtual_rank(l, rank);
	const u32 next = aside ? coll_leaf_host(l, few_below(l->aside, l->asides, rank)) :
				 coll_leaf_sender(l, own, l->fold.exchanges);

	return (struct coll_leaf_tree){
		.nodes = l->fold.vranks + aside, .radix = radix < 2 ? 2 : radix, .own = own,
		.speaking = l->fold.vranks - l->mutes,
		.first = next - few_below(l->mute, l->mutes, next),
	};
}

/* The number-th mute virtual rank but for the tree's own. */
static u32 other_mute(const struct coll_leaves *l, const struct coll_leaf_tree *tree, u32 number)
{
	const u32 own = few_below(l->mute, l->mutes, tree->own);

	return l->mute[number + (tree->own != COLL_NONE && number >= own)];
}

u32 coll_leaf_node_rank(const struct coll_leaves *l, const struct coll_leaf_tree *tree, u32 which,
			u32 node)
{
	if (!node)
		return l->late[which];
	if (node > tree->speaking)
		return coll_leaf_rank(l, other_mute(l, tree, node - 1 - tree->speaking));
	return coll_leaf_rank(l, few_skip(l->mute, l->mutes,
					  rank_plus(node - 1, tree->first, tree->speaking)));
}

u32 coll_leaf_node(const struct coll_leaves *l, const struct coll_leaf_tree *tree, u32 vrank)
{
	const u32 below = few_below(l->mute, l->mutes, vrank);

	if (vrank == tree->own)
		return 0;
	if (!coll_leaf_is_mute(l, vrank))
		return 1 + rank_minus(vrank - below, tree->first, tree->speaking);
	return 1 + tree->speaking + below - (tree->own != COLL_NONE && tree->own < vrank);
}

/* ---- costs ------------------------------------------------------------------ */

/* A message more of a sender. */
static double leaf_extra(const struct coll_call *call, const struct coll_machine *m)
{
	return m->overhead + call_bytes(call) * m->byte_gap;
}

/* Seconds until a late rank's vector is everywhere. */
static double tree_seconds(const struct coll_call *call, const struct coll_tuning *tuning,
			   const struct coll_machine *m)
{
	const u32 radix = coll_leaf_radix(call, tuning);
	const double way = m->alpha + call_bytes(call) * m->beta;
	u64 reached = 1;
	double sum = 0;

	while (reached < call->ranks) {
		sum += way + (radix - 1) * leaf_extra(call, m);
		reached = reached * radix + 1;
	}
	return sum;
}

/* Seconds of the exchanges. */
static double exchanges_seconds(const struct coll_leaves *l, const struct coll_call *call,
				const struct coll_machine *m)
{
	const double n = call_bytes(call);
	const u32 messages = l->fold.exchanges + (l->fold.excess ? 2 : 0);

	return messages * (m->alpha + n * (m->beta + m->gamma)) +
	       (l->mutes && l->fold.exchanges > 1 ? leaf_extra(call, m) : 0);
}

double coll_leaf_cost(const struct coll_call *call, const struct coll_tuning *tuning, bool last,
		      const struct coll_machine *m)
{
	const struct coll_leaves l = coll_leaves_of(call, tuning, last);
	const double n = call_bytes(call), way = m->alpha + n * m->beta;
	double path = exchanges_seconds(&l, call, m), share = path, tree;

	if (!last || !l.lates)
		return symmetric_cost(call, m, path);
	tree = tree_seconds(call, tuning, m);
	share += l.lates * (tree_share(call, way) + n * m->gamma);
	/* A rank that forwards the late vectors does so while it waits for its partner. */
	path = (path > tree ? path : tree) + l.lates * n * m->gamma + (l.asides ? way : 0);
	return crowded_cost(call, m, path, share);
}

/* Seconds that a late rank's vector may be late and delay nobody: the tree is beside the exchanges. */
static double vector_slack(const struct coll_leaves *l, const struct coll_call *call,
			   const struct coll_tuning *tuning, bool last, const struct coll_machine *m)
{
	const double slack = last ? exchanges_seconds(l, call, m) - tree_seconds(call, tuning, m) : 0;

	return slack > 0 ? slack : 0;
}

static double seconds_left(double seconds, double slack)
{
	return seconds > slack ? seconds - slack : 0;
}

double coll_leaf_begin_delay(const struct coll_call *call, const struct coll_tuning *tuning, bool last,
			     const struct coll_machine *m)
{
	const struct coll_leaves l = coll_leaves_of(call, tuning, last);

	return m->late.part * seconds_left(m->late.behind, vector_slack(&l, call, tuning, last, m));
}

/*
 * A stop that begins at any moment of the call's T seconds delays the late rank itself by what is left
 * of it at the end: the integral over the moments is T D - T^2 / 2, or D^2 / 2 where D is less than T.
 * In the call's first messages it delays all.
 */
double coll_leaf_stops_delay(const struct coll_call *call, const struct coll_tuning *tuning, bool last,
			     const struct coll_machine *m)
{
	const double seconds = coll_leaf_cost(call, tuning, last, m);
	const double rate = m->late.stops.rate, d = m->late.stops.duration;
	const double rest = d < seconds ? d : seconds;
	const u32 lates = coll_leaves_of(call, tuning, last).lates;

	return rate > 0 ? lates * rate * (rest * (d - rest / 2) + leaf_extra(call, m) * d) : 0;
}

/* What a rank is late by that receives a message in each exchange, for the next one does not wait for it. */
static double receives_delay(u32 exchanges, double chance, double seconds, double way)
{
	double sum = 0;
	u32 i;

	for (i = 0; i < exchanges; i++)
		sum += chance * seconds_left(seconds, i * way);
	return sum;
}

/* Messages with its vector on bad links: in the tree there is one to each child, else one. */
static u32 bad_vectors(const struct coll_leaves *l, const struct coll_call *call,
		       const struct coll_tuning *tuning, const struct coll_machine *m)
{
	const u32 rank = m->late.rank[0];
	const u32 vrank = coll_leaf_is_aside(l, rank) ? 0 : coll_leaf_virtual_rank(l, rank);

	if (m->late.peer == COLL_NONE)
		return l->last ? coll_leaf_radix(call, tuning) : 1;
	if (l->last)
		return 1;
	return m->late.peer == coll_leaf_rank(l, coll_leaf_is_excess(l, rank) ? vrank : vrank ^ 1);
}

/* What is sent to it delays it alone: it is late by what is left at the end. */
double coll_leaf_links_delay(const struct coll_call *call, const struct coll_tuning *tuning, bool last,
			     const struct coll_machine *m)
{
	const struct coll_leaves l = coll_leaves_of(call, tuning, last);
	const double way = m->alpha + call_bytes(call) * m->beta, d = m->late.links.duration;
	const double chance = -expm1(-m->late.links.rate * (m->noise_event ? way : way + d));
	const double left = seconds_left(d, vector_slack(&l, call, tuning, last, m));
	const bool one_message = m->late.peer != COLL_NONE || !l.mutes;

	if (m->late.links.rate <= 0)
		return 0;
	return -expm1(bad_vectors(&l, call, tuning, m) * log1p(-chance)) * left +
	       receives_delay(one_message ? 1 : l.fold.exchanges, chance, d, way);
}
