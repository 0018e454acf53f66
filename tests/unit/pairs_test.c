// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Pairs that stand for the classes of links: each class that there is, and no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "libcoll/topology/crowded_costs.h"

static struct coll_pair pair[PAIRS_MAX * COLL_CLASSES];
static uint32_t of[COLL_CLASSES];	/* pairs of each class */

static int choose(const struct coll_places *places, uint32_t ranks)
{
	const int pairs = coll_pairs_choose(places, ranks, pair);
	int i;

	for (i = 0; i < COLL_CLASSES; i++)
		of[i] = 0;
	for (i = 0; i < pairs; i++) {
		assert_true(pair[i].rank[0] < ranks && pair[i].rank[1] < ranks);
		assert_true(pair[i].rank[0] != pair[i].rank[1]);
		assert_true(!i || pair[i].class >= pair[i - 1].class);
		of[pair[i].class]++;
	}
	return pairs;
}

static void ranks_without_places_have_one_class(void **state)
{
	const struct coll_places places = { .below = COLL_CLASS_NODE };

	(void)state;
	assert_int_equal(choose(&places, 2), 1);
	assert_int_equal(of[COLL_CLASS_NODE], 1);
	assert_int_equal(choose(&places, 100), PAIRS_MAX);
	assert_int_equal(pair[0].rank[0], 0);
	assert_true(pair[PAIRS_MAX - 1].rank[0] >= 70);
}

static void one_rank_has_no_pair(void **state)
{
	const struct coll_places places = { .below = COLL_CLASS_NODE };

	(void)state;
	assert_int_equal(choose(&places, 1), 0);
}

/* Eight ranks on two nodes, and nobody knows it: each pair has a rank of both. */
static void unknown_nodes_are_met_by_halves(void **state)
{
	const struct coll_places places = { .below = COLL_CLASS_CLUSTER };
	int i;

	(void)state;
	assert_int_equal(choose(&places, 8), PAIRS_MAX);
	assert_int_equal(of[COLL_CLASS_CLUSTER], PAIRS_MAX);
	for (i = 0; i < PAIRS_MAX; i++)
		assert_true(pair[i].rank[0] < 4 && pair[i].rank[1] >= 4);
	assert_int_equal(choose(&places, 3), 1);
}

/* Ranks are dealt to the nodes in turn: no two ranks of a node are neighbours by number. */
static void every_class_is_found_in_any_order(void **state)
{
	uint32_t cluster[16], leaf[16], node[16], domain[16];
	struct coll_places places = {
		.cluster = cluster, .node = node, .domain = domain, .below = COLL_CLASS_DOMAIN,
	};
	int pairs, i;

	(void)state;
	for (i = 0; i < 16; i++) {
		node[i] = i % 4;
		cluster[i] = leaf[i] = node[i] / 2;
		domain[i] = i / 8;
	}
	pairs = choose(&places, 16);
	assert_int_equal(of[COLL_CLASS_DOMAIN], PAIRS_MAX);
	assert_int_equal(of[COLL_CLASS_NODE], 4);
	assert_int_equal(of[COLL_CLASS_CLUSTER], 2);
	assert_int_equal(of[COLL_CLASS_WAN], 1);
	for (i = 0; i < pairs; i++) {
		const uint32_t a = pair[i].rank[0], b = pair[i].rank[1];
		const enum coll_link_class class = cluster[a] != cluster[b] ? COLL_CLASS_WAN :
						   node[a] != node[b] ? COLL_CLASS_CLUSTER :
						   domain[a] != domain[b] ? COLL_CLASS_NODE :
									    COLL_CLASS_DOMAIN;

		assert_int_equal(pair[i].class, class);
	}
	/* Now clusters are switches. */
	places.cluster = NULL;
	places.leaf = leaf;
	choose(&places, 16);
	assert_int_equal(of[COLL_CLASS_WAN], 0);
	assert_int_equal(of[COLL_CLASS_CLUSTER], 1);
	assert_int_equal(of[COLL_CLASS_SWITCH], 2);
	assert_int_equal(of[COLL_CLASS_NODE], 4);
}

/* Three nodes of 4, 3 and 1 ranks, dealt in turn as long as they have some. */
static void partners_are_of_the_same_node_and_of_another(void **state)
{
	const uint32_t node[8] = { 0, 1, 2, 0, 1, 0, 1, 0 }, domain[8] = { 0, 0, 0, 0, 1, 1, 1, 1 };
	struct coll_places places = { .node = node, .domain = domain, .below = COLL_CLASS_NODE };
	struct coll_partner partner[8][PARTNERS], one[PARTNERS];
	uint32_t beside = 0, across = 0, i, k;

	(void)state;
	for (i = 0; i < 8; i++) {
		assert_int_equal(coll_partners_choose(&places, 8, i, partner[i]), 0);
		assert_int_equal(partner[i][PARTNER_NEXT].node, 4);
	}
	for (i = 0; i < 8; i++)
		for (k = 0; k < PARTNERS; k++) {
			const struct coll_partner *mine = &partner[i][k];
			const uint32_t other = mine->pair.rank[mine->pair.rank[0] == i];

			if (mine->index == COLL_NONE) {
				assert_int_not_equal(k, PARTNER_AWAY);
				assert_int_equal(other, i);
				continue;
			}
			beside += k == PARTNER_NEXT;
			across += k == PARTNER_ACROSS;
			assert_int_equal(partner[other][k].index, mine->index);
			assert_memory_equal(partner[other][k].pair.rank, mine->pair.rank, sizeof(mine->pair.rank));
			assert_int_not_equal(other, i);
			assert_int_equal(node[other] == node[i], k != PARTNER_AWAY);
		}
	assert_int_equal(beside, 6);	/* but the third of a node, and the only one */
	assert_int_equal(across, 6);	/* likewise */
	assert_int_equal(partner[0][PARTNER_NEXT].ranks, 6);
	assert_float_equal(partner[0][PARTNER_NEXT].share, 1, 1e-9);
	assert_int_not_equal(partner[0][PARTNER_NEXT].pair.rank[1], partner[0][PARTNER_ACROSS].pair.rank[1]);
	for (k = 1; k < PARTNERS; k++)
		assert_int_not_equal(partner[0][k - 1].index, partner[0][k].index);
	assert_int_equal(partner[0][PARTNER_AWAY].node, 4);

	/* A cluster apart; a node of more than half. */
	places.cluster = (const uint32_t[8]){ 0, 0, 1, 0, 0, 0, 0, 0 };
	assert_int_equal(coll_partners_choose(&places, 8, 0, one), 0);
	assert_int_equal(one[PARTNER_AWAY].node, 0);
	places = (struct coll_places){ .node = (const uint32_t[5]){ 0, 0, 0, 1, 1 }, .below = COLL_CLASS_NODE };
	assert_int_equal(coll_partners_choose(&places, 5, 0, one), 0);
	assert_int_equal(one[PARTNER_NEXT].node, 3);
	assert_int_equal(one[PARTNER_AWAY].node, 0);
}

/* One node with two domains: a pair of one kind tells nothing of the other. */
static void partners_are_of_one_domain_or_of_two(void **state)
{
	const uint32_t domains[2][6] = { { 0, 0, 0, 1, 1, 1 }, { 0, 1, 1, 1 } }, ranks[2] = { 6, 4 };
	const uint32_t together[2][2] = { { 4, 6 }, { 2, 2 } };	/* by kind */
	struct coll_partner partner[PARTNERS];
	uint32_t met[2], i, n;
	enum coll_partner_kind kind;

	(void)state;
	for (n = 0; n < 2; n++) {
		const struct coll_places places = { .node = (const uint32_t[6]){ 0 }, .domain = domains[n],
						    .below = COLL_CLASS_DOMAIN };

		met[PARTNER_NEXT] = met[PARTNER_ACROSS] = 0;
		for (i = 0; i < ranks[n]; i++) {
			assert_int_equal(coll_partners_choose(&places, ranks[n], i, partner), 0);
			for (kind = PARTNER_NEXT; kind <= PARTNER_ACROSS; kind++) {
				const uint32_t *two = partner[kind].pair.rank;

				assert_int_equal(partner[kind].ranks, together[n][kind]);
				assert_float_equal(partner[kind].share, (double)together[n][kind] / ranks[n], 1e-9);
				if (partner[kind].index == COLL_NONE)
					continue;
				met[kind]++;
				assert_true(two[0] == i || two[1] == i);
				assert_int_equal(domains[n][two[0]] == domains[n][two[1]], kind == PARTNER_NEXT);
			}
		}
		assert_int_equal(met[PARTNER_NEXT], together[n][PARTNER_NEXT]);
		assert_int_equal(met[PARTNER_ACROSS], together[n][PARTNER_ACROSS]);
	}
}

/* Sixteen ranks on two cores, four of a node, as the costs of algorithms count them. */
static void all_at_once_tell_the_work_of_a_byte(void **state)
{
	const double beta = 8e-9, work = 5e-9;
	struct coll_crowd crowd = { .ranks = 16, .crowding = 8 };

	(void)state;
	crowd.seconds = 8 * 1e-9 + (1 - 8.0 / 16) * 1e-9;
	assert_float_equal(coll_crowded_beta(&crowd) * 1e9, 1, 1e-6);
	/* Of four ranks of a node one waits for the wire, or for its core, while the others use both. */
	crowd.seconds = (8 + 1 - 8.0 / 16) * work + 4 * beta / 4;
	assert_float_equal(coll_crowded_work(&crowd, beta, 4) * 1e9, 5, 1e-6);
	crowd.seconds = (8 + 1 - 8.0 / 16) * work / 5 / 4 + 4 * beta;
	assert_float_equal(coll_crowded_work(&crowd, beta, 4) * 1e9, 1, 1e-6);
	crowd.seconds = 3.9 * beta;
	assert_true(coll_crowded_work(&crowd, beta, 4) <= 0);
	crowd.seconds = -1e-9;		/* noise took the short ones longer */
	assert_true(coll_crowded_work(&crowd, beta, 4) <= 0 && coll_crowded_beta(&crowd) <= 0);
	/* Two ranks and one core of many that are told. */
	crowd = (struct coll_crowd){ .ranks = 2, .crowding = 64, .seconds = 2e-9 };
	assert_float_equal(coll_crowded_beta(&crowd) * 1e9, 1, 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_without_places_have_one_class),
		cmocka_unit_test(one_rank_has_no_pair),
		cmocka_unit_test(unknown_nodes_are_met_by_halves),
		cmocka_unit_test(every_class_is_found_in_any_order),
		cmocka_unit_test(partners_are_of_the_same_node_and_of_another),
		cmocka_unit_test(partners_are_of_one_domain_or_of_two),
		cmocka_unit_test(all_at_once_tell_the_work_of_a_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
