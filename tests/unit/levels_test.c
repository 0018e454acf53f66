// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Levels from numbers of nodes, domains and clusters; what is chosen for them; phases that nest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "algo/common/levels.h"
#include "algo/common/runs.h"
#include "algo/redundancy/redundancy.h"

static void *memory;

/* They refer to themselves: until the next ones. */
static const struct coll_levels *make(u32 ranks, const u32 *domain, const u32 *node,
				      const u32 *cluster)
{
	const u32 *const of[COLL_LEVELS_MAX] = {
		[COLL_LEVEL_DOMAIN] = domain,
		[COLL_LEVEL_NODE] = node,
		[COLL_LEVEL_CLUSTER] = cluster,
	};
	static struct coll_levels levels;

	free(memory);
	memory = malloc(coll_levels_bytes(ranks));
	coll_levels_make(of, ranks, memory, &levels);
	return &levels;
}

static void nodes_are_numbered_by_their_lowest_ranks(void **state)
{
	static const u32 node[] = { 7, 3, 7, 9, 3, 7 }, part[] = { 0, 1, 0, 2, 1, 0 };
	static const u32 member[] = { 0, 2, 5, 1, 4, 3 };
	const struct coll_levels *l = make(6, NULL, node, NULL);

	(void)state;
	assert_int_equal(l->count, 1);
	assert_int_equal(l->level[0].kind, COLL_LEVEL_NODE);
	assert_int_equal(l->level[0].parts, 3);
	assert_int_equal(l->level[0].smallest, 1);
	assert_int_equal(l->level[0].largest, 3);
	assert_false(l->level[0].runs);
	assert_memory_equal(l->level[0].part, part, sizeof(part));
	assert_memory_equal(l->level[0].member, member, sizeof(member));
}

/* Domain 0 of one node is not domain 0 of another. */
static void domains_refine_nodes(void **state)
{
	static const u32 node[] = { 0, 0, 0, 0, 1, 1, 1, 1 }, domain[] = { 0, 0, 1, 1, 0, 0, 1, 1 };
	static const u32 above[] = { 0, 0, 1, 1 };
	const struct coll_levels *l = make(8, domain, node, NULL);

	(void)state;
	assert_int_equal(l->count, 2);
	assert_int_equal(l->level[0].kind, COLL_LEVEL_DOMAIN);
	assert_int_equal(l->level[0].parts, 4);
	assert_int_equal(l->level[1].members, 4);
	assert_int_equal(l->level[1].parts, 2);
	assert_memory_equal(l->level[1].part, above, sizeof(above));
	assert_memory_equal(l->level[1].of_ranks->part, node, sizeof(node));
	assert_true(l->level[0].runs && l->level[1].runs);
}

static void what_groups_nothing_is_no_level(void **state)
{
	static const u32 alone[] = { 0, 1, 2, 3 }, all[] = { 5, 5, 5, 5 }, two[] = { 0, 0, 1, 1 };

	(void)state;
	assert_int_equal(make(4, NULL, alone, NULL)->count, 0);
	assert_int_equal(make(4, all, all, NULL)->count, 0);
	assert_int_equal(make(4, NULL, alone, two)->count, 0);	/* clusters alone need none */
	assert_int_equal(make(4, two, two, NULL)->count, 1);	/* a domain that is a node */
	assert_int_equal(make(4, two, two, NULL)->level[0].kind, COLL_LEVEL_NODE);
	assert_int_equal(make(4, NULL, two, two)->count, 2);	/* each cluster is one node */
}

static struct coll_call call_on(const struct coll_levels *l, u32 ranks, u64 count)
{
	return (struct coll_call){
		.collective = COLL_ALLREDUCE, .ranks = ranks, .type = COLL_DOUBLE,
		.reduction = COLL_SUM, .element = 8, .commutative = true, .count = count,
		.level = l->count ? l->level : NULL, .levels = l->count,
	};
}

static const char *chosen(const struct coll_call *call)
{
	const struct coll_tuning tuning = COLL_TUNING_UNSET;
	const struct coll_machine unknown = { 0 };

	return coll_algo_choose(call, &tuning, &unknown)->name;
}

/* 16 nodes of 16 ranks over TCP. */
static void the_choice_follows_the_levels(void **state)
{
	u32 node[256], i;
	const struct coll_levels *l;
	struct coll_call call;

	(void)state;
	for (i = 0; i < 256; i++)
		node[i] = i / 16;
	l = make(256, NULL, node, NULL);
	call = call_on(l, 256, 1);
	assert_string_equal(chosen(&call), "leader");
	call.count = 1 << 21;
	assert_string_equal(chosen(&call), "lanes");
	call.levels = 0;
	call.level = NULL;
	assert_string_not_equal(chosen(&call), "lanes");
	assert_string_not_equal(chosen(&call), "leader");
}

/* Interleaved nodes keep no order: what is chosen for an operation that needs it is flat. */
static void order_wants_runs(void **state)
{
	static const u32 node[] = { 0, 1, 0, 1, 0, 1, 0, 1 };
	const struct coll_levels *l = make(8, NULL, node, NULL);
	struct coll_call call = call_on(l, 8, 1 << 20);
	const struct coll_tuning tuning = COLL_TUNING_UNSET;
	const struct coll_algo *lanes = coll_algo_find(COLL_ALLREDUCE, "lanes");

	(void)state;
	assert_null(coll_algo_refuses(lanes, &call, &tuning));
	call.commutative = false;
	assert_non_null(coll_algo_refuses(lanes, &call, &tuning));
	assert_string_not_equal(chosen(&call), "lanes");
}

/* Ranks, addresses and waits of an inner phase pass through the outer one. */
static void phases_nest(void **state)
{
	static const u32 outer_rank[] = { 9, 3, 7 }, inner_rank[] = { 1, 2 };
	const u64 in = COLL_ADDRESS(COLL_IN, 0), out = COLL_ADDRESS(COLL_OUT, 0);
	u64 words[1000];
	struct coll_build b;
	struct coll_phase outer = { .rank = outer_rank, .ranks = 3, .in = out + 100,
				    .out = in + 200, .recv_after = COLL_NONE };
	struct coll_phase inner = { .rank = inner_rank, .ranks = 2, .in = in + 10,
				    .out = out + 20, .recv_after = COLL_NONE };
	struct coll_schedule *s;
	struct coll_phase_end end;

	(void)state;
	coll_build_init(&b, words, sizeof(words), 3, 16);
	coll_build_buffers(&b, 1000, 1000);
	outer.after = coll_emit_copy(&b, out, in, 8);
	coll_emit_phase_begin(&b, &outer);
	inner.after = coll_emit_copy(&b, out, out + 8, 8);
	coll_emit_phase_begin(&b, &inner);
	coll_emit_send(&b, 1, in + 1, 8);
	end = coll_emit_phase_end(&b);
	assert_int_equal(end.sent, 2);
	assert_int_equal(end.ready, 1);
	end = coll_emit_phase_end(&b);
	assert_int_equal(end.sent, 2);
	assert_int_equal(coll_build_finish(&b, &s), 0);
	assert_int_equal(coll_op_rank(s, &coll_ops(s)[2]), 7);
	assert_int_equal(coll_ops(s)[2].left, out + 111);
	assert_int_equal(coll_ops(s)[2].waits, 2);
	assert_int_equal(coll_ops(s)[1].result, in + 200);
}

/* The runs of `ranks` ranks as sizes, like the text without a + at its end; "" if it is none. */
static const char *read_runs(const char *text, u32 ranks)
{
	static char sizes[100];
	u32 number[32], i, size = 0;
	const char *rest = coll_runs_read(text, number, ranks);
	char *end = sizes;

	*sizes = 0;
	if (!rest || *rest)
		return "";
	for (i = 0; i < ranks; i++) {
		size++;
		if (i + 1 < ranks && number[i + 1] == number[i])
			continue;
		end += sprintf(end, "%s%u", i + 1 > size ? "+" : "", size);
		size = 0;
	}
	return sizes;
}

static void runs_are_read(void **state)
{
	static const struct {
		const char *text;
		u32 ranks;
		const char *runs;
	} cases[] = {
		{ "8", 8, "8" }, { "8+8", 16, "8+8" }, { "1+2+3", 6, "1+2+3" },
		{ "4+", 12, "4+4+4" }, { "4+", 10, "4+4+2" }, { "4+", 3, "3" },
		{ "5+2+", 10, "5+2+2+1" }, { "8+8+", 16, "8+8" }, { "8+16777216+", 9, "8+1" },
		{ "8+8", 15, "" }, { "8+8", 17, "" }, { "8", 7, "" }, { "4+4+4+", 8, "" },
		{ "", 1, "" }, { "+", 4, "" }, { "0+", 4, "" }, { "4++4", 8, "" }, { "4,4", 8, "" },
		{ "-4", 4, "" }, { " 4", 4, "" }, { "4+4 ", 8, "" }, { "4294967300", 4, "" },
		{ "99999999999999999999+", 4, "" },
	};
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(read_runs(cases[i].text, cases[i].ranks), cases[i].runs);
}

static void nodes_and_domains_are_read(void **state)
{
	static const u32 nodes[] = { 0, 0, 0, 0, 1, 1, 1, 1 };
	static const u32 domains[] = { 0, 0, 1, 1, 2, 2, 3, 3 };
	u32 node[8], domain[8] = { 0 };

	(void)state;
	assert_true(coll_runs_read_levels("4+4", node, domain, 8));
	assert_memory_equal(node, nodes, sizeof(nodes));
	assert_true(coll_runs_read_levels("4+/2+", node, domain, 8));
	assert_memory_equal(node, nodes, sizeof(nodes));
	assert_memory_equal(domain, domains, sizeof(domains));
	assert_false(coll_runs_read_levels("4+4/", node, domain, 8));
	assert_false(coll_runs_read_levels("4+4/2+2", node, domain, 8));
	assert_false(coll_runs_read_levels("4+4/2+/1+", node, domain, 8));
	assert_false(coll_runs_read_levels("4+4x", node, domain, 8));
}

/* An allreduce of 8 bytes on nodes of four ranks. */
static struct coll_call on_nodes_of_four(u32 ranks)
{
	static u32 node[1024];
	const struct coll_levels *l;
	struct coll_call call = {
		.collective = COLL_ALLREDUCE, .ranks = ranks, .type = COLL_DOUBLE, .reduction = COLL_SUM,
		.element = 8, .count = 1, .commutative = true,
	};
	u32 i;

	assert_true(ranks <= sizeof(node) / sizeof(*node));
	for (i = 0; i < ranks; i++)
		node[i] = i / 4;
	l = make(ranks, NULL, node, NULL);
	call.level = l->level;
	call.levels = l->count;
	return call;
}

/* Under stops that are longer than a message; not without noise, nor under interrupts. */
static void replicas_are_chosen_for_noise(void **state)
{
	const struct coll_call call = on_nodes_of_four(1024);
	const struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct coll_machine m = { .alpha = 20e-6, .overhead = 2e-6 };

	(void)state;
	assert_string_not_equal(coll_algo_choose(&call, &tuning, &m)->name, "replicas");
	m.noise[0] = (struct coll_noise_rate){ 100, 200e-6 };
	assert_string_equal(coll_algo_choose(&call, &tuning, &m)->name, "replicas");
	m.noise[0] = (struct coll_noise_rate){ 1000, 1e-6 };
	assert_string_not_equal(coll_algo_choose(&call, &tuning, &m)->name, "replicas");
}

/* Each rank of a reduce_scatter has a count of its own, and all take the same algorithm and segment. */
static void ranks_with_other_counts_choose_the_same(void **state)
{
	static u64 counts[64];
	struct coll_call call = on_nodes_of_four(64);
	const struct coll_machine m = { .alpha = 20e-6, .overhead = 2e-6 };
	const struct coll_algo *const *algo, *chosen[64];
	struct coll_tuning first, tuning;
	u64 sum;
	u32 i;

	(void)state;
	for (sum = 1000; sum < 10000000; sum *= 3) {
		for (i = 0; i < 64; i++)
			counts[i] = i % 4 ? sum / 640 : 16 * sum / 64 / (1 + i);
		call.collective = COLL_REDUCE_SCATTER;
		call.counts = counts;
		for (algo = coll_algos; *algo; algo++) {
			if ((*algo)->collective != COLL_REDUCE_SCATTER)
				continue;
			for (i = 0; i < 64; i++) {
				call.rank = i;
				call.count = counts[i];
				tuning = COLL_TUNING_UNSET;
				coll_tuning_choose(*algo, &call, &m, &tuning);
				first = i ? first : tuning;
				assert_memory_equal(&first, &tuning, sizeof(tuning));
			}
		}
		for (i = 0; i < 64; i++) {
			call.rank = i;
			call.count = counts[i];
			tuning = COLL_TUNING_UNSET;
			chosen[i] = coll_algo_choose(&call, &tuning, &m);
			assert_ptr_equal(chosen[i], chosen[0]);
		}
	}
}

/* The noise's part of the time: less with each replica, never more than of an algorithm without any. */
static void more_replicas_tolerate_more(void **state)
{
	const struct coll_call call = on_nodes_of_four(256);
	const struct coll_algo *algo = coll_algo_find(COLL_ALLREDUCE, "replicas");
	const struct coll_machine quiet = { .alpha = 20e-6, .overhead = 2e-6, .beta = 1e-9, .gamma = 1e-10 };
	const struct coll_redundancy none = { 0, 0 };
	struct coll_machine m = quiet;
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	double before, delay;

	(void)state;
	m.noise[0] = (struct coll_noise_rate){ 100, 200e-6 };
	before = coll_redundancy_delay(&call, none, &m);
	for (tuning.replicas = 2; tuning.replicas <= 4; tuning.replicas++) {
		delay = coll_algo_predict(algo, &call, &tuning, &m) -
			coll_algo_predict(algo, &call, &tuning, &quiet);
		assert_true(delay > 0 && delay < before * (tuning.replicas == 2 ? 1 : 1.001));
		before = delay;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replicas_are_chosen_for_noise),
		cmocka_unit_test(more_replicas_tolerate_more),
		cmocka_unit_test(ranks_with_other_counts_choose_the_same),
		cmocka_unit_test(nodes_are_numbered_by_their_lowest_ranks),
		cmocka_unit_test(domains_refine_nodes),
		cmocka_unit_test(what_groups_nothing_is_no_level),
		cmocka_unit_test(the_choice_follows_the_levels),
		cmocka_unit_test(order_wants_runs),
		cmocka_unit_test(phases_nest),
		cmocka_unit_test(runs_are_read),
		cmocka_unit_test(nodes_and_domains_are_read),
	};
	const int failures = cmocka_run_group_tests(tests, NULL, NULL);

	free(memory);
	return failures;
}
