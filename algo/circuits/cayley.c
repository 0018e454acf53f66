// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "cayley.h"

/* So many products are made to look for a graph. */
enum { LOOKS = 1 << 15, LEVELS_BALANCED = 16, UNREACHED = 0xffff };

u32 coll_cayley_letters(u32 ranks, const struct coll_tuning *tuning)
{
	u64 letters = 4;

	if (tuning->radix != COLL_UNSET)
		letters = tuning->radix;
	else if (tuning->ports != COLL_UNSET)
		letters = tuning->ports;
	if (letters < 2)
		letters = 2;
	if (letters > CAYLEY_LETTERS_MAX)
		letters = CAYLEY_LETTERS_MAX;
	if (letters >= ranks)
		letters = ranks - 1;
	return letters;
}

/* ---- the group --------------------------------------------------------------- */

u32 coll_cayley_product(const struct coll_cayley *g, u32 a, u32 b)
{
	const u32 turn = a / g->m;
	const u32 low = (a % g->m + (u32)((u64)g->way[turn].power * (b % g->m) % g->m)) % g->m;

	return low + g->m * ((turn + b / g->m) % g->d);
}

u32 coll_cayley_inverse(const struct coll_cayley *g, u32 a)
{
	const u32 turn = (g->d - a / g->m) % g->d;
	const u32 low = (u32)((u64)g->way[turn].power * (a % g->m) % g->m);

	return (g->m - low) % g->m + g->m * turn;
}

static u32 random_below(u64 *seed, u32 limit)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)((*seed >> 33) % limit);
}

/* One of the divisors of n for d, and an r that fits; often r = 1. */
static void choose_group(struct coll_cayley *g, u64 *seed)
{
	u32 i;

	do
		g->d = 1 + random_below(seed, g->ranks / 2 ? g->ranks / 2 : 1);
	while (g->ranks % g->d);
	g->m = g->ranks / g->d;
	g->r = 1 + random_below(seed, g->m);
	for (i = 0; i < 2; i++) {
		u32 turn;
		u64 power = 1 % g->m;

		for (turn = 0; turn < g->d; turn++) {
			g->way[turn].power = (u32)power;
			power = power * g->r % g->m;
		}
		if (power == 1 % g->m)
			return;
		g->r = 1;
	}
}

static bool is_generator(const struct coll_cayley *g, u32 element)
{
	u32 i;

	for (i = 0; i < g->letters && g->generator[i] != element; i++)
		;
	return i < g->letters;
}

static void choose_generators(struct coll_cayley *g, u32 wanted, bool one_way, u64 *seed)
{
	u32 tries;

	g->letters = 0;
	while (wanted == g->ranks - 1 && g->letters < wanted) {	/* straight to all */
		g->generator[g->letters] = g->letters + 1;
		g->letters++;
	}
	for (tries = 0; g->letters < wanted && tries < 8 * wanted + 64; tries++) {
		const u32 element = 1 + random_below(seed, g->ranks - 1);
		const u32 inverse = coll_cayley_inverse(g, element);
		const bool two = !one_way && inverse != element;

		if (is_generator(g, element) || g->letters + two + 1 > wanted)
			continue;
		g->generator[g->letters++] = element;
		if (two)
			g->generator[g->letters++] = inverse;
	}
}

/* ---- ways ---------------------------------------------------------------------- */

u32 coll_cayley_letter(const struct coll_cayley *g, u32 element, u32 level)
{
	while (g->way[element].level > level)
		element = g->way[element].parent;
	return g->way[element].letter;
}

/*
 * Breadth first search: the letters on a shortest path to each element. False: some element
 * is not reached in `most` letters. Most of the time is spent here, so products are computed
 * inline.
 */
static bool find_levels(struct coll_cayley *g, u32 most, u64 *length)
{
	u32 low[CAYLEY_LETTERS_MAX], turn[CAYLEY_LETTERS_MAX], count = 1, at, s;

	for (at = 0; at < g->ranks; at++)
		g->way[at].level = UNREACHED;
	g->way[0].level = 0;
	g->way[0].order = 0;
	*length = 0;
	for (s = 0; s < g->letters; s++) {
		low[s] = g->generator[s] % g->m;
		turn[s] = g->generator[s] / g->m;
	}
	for (at = 0; at < count && count < g->ranks; at++) {
		const u32 element = g->way[at].order, level = g->way[element].level + 1u;
		const u32 b = element / g->m, a = element - b * g->m, power = g->way[b].power;

		if (level > most)
			return false;
		for (s = 0; s < g->letters; s++) {
			const u32 sum = b + turn[s];
			const u32 next = (a + power * low[s]) % g->m +
					 g->m * (sum < g->d ? sum : sum - g->d);

			if (g->way[next].level != UNREACHED)
				continue;
			g->way[next].level = level;
			g->way[count++].order = next;
			*length += level;
		}
	}
	g->depth = g->way[g->way[count - 1].order].level;
	return count == g->ranks;
}

/*
 * Where several shortest ways lead to an element, the one whose letters have been taken
 * least in their steps.
 */
static void balance_ways(struct coll_cayley *g)
{
	u32 load[LEVELS_BALANCED + 1][CAYLEY_LETTERS_MAX] = { { 0 } }, at, s, j;

	for (at = 1; at < g->ranks; at++) {
		const u32 element = g->way[at].order, level = g->way[element].level;
		u32 least = ~0u;

		for (s = 0; s < g->letters; s++) {
			const u32 parent = coll_cayley_product(
				g, element, coll_cayley_inverse(g, g->generator[s]));
			u32 taken = 0;

			if (g->way[parent].level + 1u != level)
				continue;
			if (level <= LEVELS_BALANCED)
				taken = load[level][s];
			for (j = 1; j < level && j <= LEVELS_BALANCED; j++)
				taken += load[j][coll_cayley_letter(g, parent, j)];
			if (taken >= least)
				continue;
			least = taken;
			g->way[element].parent = parent;
			g->way[element].letter = s;
		}
		for (j = 1; j <= level && j <= LEVELS_BALANCED; j++)
			load[j][coll_cayley_letter(g, element, j)]++;
	}
}

struct coll_cayley coll_cayley_of(u32 ranks, const struct coll_tuning *tuning, void *arena)
{
	const bool one_way = tuning->simplex == 1;
	const u32 wanted = coll_cayley_letters(ranks, tuning);
	struct coll_cayley best = { .ranks = ranks, .depth = ~0u };
	u64 seed = ranks, best_length = ~(u64)0, length;
	struct coll_cayley_way *spare = (struct coll_cayley_way *)arena + ranks, *other = arena;
	u64 looks = 0;
	u32 i;

	for (i = 0; looks < LOOKS && best.depth > 1; i++) {
		struct coll_cayley g = { .ranks = ranks, .way = spare };

		if (i) {
			choose_group(&g, &seed);
		} else {	/* the ring, which always will do */
			g.m = ranks;
			g.d = g.r = 1;
			spare[0].power = 1;
		}
		choose_generators(&g, wanted, one_way, &seed);
		looks += (u64)ranks * g.letters + 1;
		if (!i && wanted < ranks - 1) {
			g.generator[0] = 1;
			if (wanted > 1 && ranks > 2 && !one_way) {
				g.generator[1] = ranks - 1;
				g.letters = 2;
			} else {
				g.letters = 1;
			}
		}
		if (!find_levels(&g, best.depth, &length) ||
		    (g.depth == best.depth && length >= best_length))
			continue;
		best = g;
		best_length = length;
		spare = other;
		other = best.way;
	}
	balance_ways(&best);
	return best;
}

void coll_cayley_share(const struct coll_call *call, const struct coll_tuning *tuning, void *memory)
{
	struct coll_cayley *g = memory;

	*g = coll_cayley_of(call->ranks, tuning, g + 1);
}

struct coll_cayley coll_cayley_for(const struct coll_call *call, const struct coll_tuning *tuning,
				   void *arena)
{
	return call->shared ? *(const struct coll_cayley *)call->shared :
			      coll_cayley_of(call->ranks, tuning, arena);
}

void coll_cayley_steps(const struct coll_cayley *g, const struct coll_cayley_walk *walk, void *user)
{
	u32 elements[CAYLEY_LETTERS_MAX], step, letter, element;

	for (step = 1; step <= g->depth; step++) {
		for (letter = 0; letter < g->letters; letter++) {
			elements[letter] = 0;
			for (element = 1; element < g->ranks; element++)
				elements[letter] += walk->goes(user, element, step, letter);
			if (elements[letter])
				walk->send(user, step, letter, elements[letter]);
		}
		for (letter = 0; letter < g->letters; letter++)
			if (elements[letter])
				walk->recv(user, step, letter, elements[letter]);
	}
}

const char *coll_cayley_refuses(const struct coll_call *call, const struct coll_tuning *tuning)
{
	if (tuning->radix != COLL_UNSET && tuning->radix < 2)
		return "`radix` must be at least 2";
	return call->ranks > CAYLEY_RANKS_MAX ? "more than 512 ranks" : NULL;
}

/*
 * How many elements `generators` reach in `steps` steps where products do not depend on the order:
 * in each of i generators at least one step; with `inverses` either way.
 */
static u64 ball_size(u32 generators, u32 steps, bool inverses)
{
	u64 reached = 1, term = 1;
	u32 i;

	for (i = 1; i <= generators && i <= steps; i++) {
		term = term * (inverses ? 2 : 1) * (generators - i + 1) * (steps - i + 1) /
		       ((u64)i * i);
		reached += term;
	}
	return reached;
}

/* Two letters are a generator and its inverse; one that is left over is its own inverse. */
static u64 letters_reach(u32 letters, u32 steps, bool one_way)
{
	if (one_way)
		return ball_size(letters, steps, false);
	return ball_size(letters / 2, steps, true) +
	       (letters % 2 && steps ? ball_size(letters / 2, steps - 1, true) : 0);
}

u32 coll_cayley_depth(u32 ranks, const struct coll_tuning *tuning)
{
	u32 letters = ranks > 1 ? coll_cayley_letters(ranks, tuning) : 1, depth = 0;

	if (ranks > 1 && letters >= ranks - 1)
		return 1;
	/* No element is its own inverse among an odd number of ranks. */
	if (tuning->simplex != 1 && ranks % 2)
		letters -= letters % 2;
	while (letters_reach(letters, depth, tuning->simplex == 1) < ranks)
		depth++;
	return depth;
}

double coll_cayley_cost(const struct coll_call *call, const struct coll_tuning *tuning,
			const struct coll_machine *m, double bytes)
{
	/* With a step more than there are: noise and late ranks, of which butterflies know, cost it, too. */
	const double depth = coll_cayley_depth(call->ranks, tuning) + (call->ranks > 1);
	const double letters = coll_cayley_letters(call->ranks, tuning);

	return crowded_cost(call, m, depth * (m->alpha + (letters - 1) * m->overhead) + bytes,
			    depth * letters * m->alpha + bytes);
}
