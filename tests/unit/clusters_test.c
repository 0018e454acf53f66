// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Parts of a schedule, and what is chosen for clusters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "algo/common/clusters.h"

enum { RANKS = 16 };

static const u64 in = COLL_ADDRESS(COLL_IN, 0), out = COLL_ADDRESS(COLL_OUT, 0);

static struct coll_build begin(u64 *memory, u64 bytes)
{
	struct coll_build b;

	coll_build_init(&b, memory, bytes, 3, RANKS);
	coll_build_buffers(&b, 1000, 1000);
	return b;
}

/* Ranks and places are the part's, scratch is shared, and ops wait for `after`. */
static void ranks_of_a_phase_are_translated(void **state)
{
	static const u32 rank[] = { 9, 3, 7 };
	u64 memory[1000];
	struct coll_build b = begin(memory, sizeof(memory));
	const u32 first = coll_emit_copy(&b, out, in, 8);
	const struct coll_phase part = {
		.rank = rank, .ranks = 3, .in = out + 100, .out = in + 200,
		.after = first, .recv_after = COLL_NONE,
	};
	struct coll_schedule *s;
	struct coll_phase_end end;
	u32 received;

	(void)state;
	coll_emit_phase_begin(&b, &part);
	received = coll_emit_recv(&b, 0, COLL_ADDRESS(COLL_SCRATCH, 0), 0);
	coll_emit_after(&b, received);
	coll_emit_send(&b, 2, in + 5, 8);
	end = coll_emit_phase_end(&b);
	assert_int_equal(end.ready, 1);	/* the receive, of which only a send is the successor */
	assert_int_equal(end.sent, 2);
	assert_int_equal(coll_build_finish(&b, &s), 0);
	assert_int_equal(coll_op_rank(s, &coll_ops(s)[1]), 9);
	assert_int_equal(coll_ops(s)[1].waits, 0);
	assert_int_equal(coll_op_rank(s, &coll_ops(s)[2]), 7);
	assert_int_equal(coll_ops(s)[2].left, out + 105);
	assert_int_equal(coll_ops(s)[2].waits, 2);
	assert_int_equal(coll_ops(s)[1].zero | coll_ops(s)[2].zero, 0);
}

static void an_empty_phase_is_ready_when_it_may_begin(void **state)
{
	static const u32 rank[] = { 3 };
	u64 memory[1000];
	struct coll_build b = begin(memory, sizeof(memory));
	const struct coll_phase part = { .rank = rank,
					 .ranks = 1,
					 .after = coll_emit_copy(&b, out, in, 8),
					 .recv_after = COLL_NONE };
	struct coll_phase_end end;

	(void)state;
	coll_emit_phase_begin(&b, &part);
	end = coll_emit_phase_end(&b);
	assert_int_equal(end.ready, part.after);
	assert_int_equal(end.sent, COLL_NONE);
}

static void wrong_phases_are_refused(void **state)
{
	static const u32 rank[] = { 3, 4 };
	u64 memory[1000];
	struct coll_build nested = begin(memory, sizeof(memory)), beyond;
	const struct coll_phase part = { .rank = rank, .ranks = 2, .after = COLL_NONE,
					.recv_after = COLL_NONE };
	struct coll_schedule *s;
	u32 i;

	(void)state;
	for (i = 0; i <= COLL_PHASES_MAX; i++)
		coll_emit_phase_begin(&nested, &part);
	assert_int_equal(coll_build_finish(&nested, &s), -EINVAL);
	beyond = begin(memory, sizeof(memory));
	coll_emit_phase_begin(&beyond, &part);
	coll_emit_send(&beyond, 2, in, 8);
	coll_emit_phase_end(&beyond);
	assert_int_equal(coll_build_finish(&beyond, &s), -EINVAL);
}

static struct coll_call call_of(enum coll_collective collective, u64 count, const u32 *cluster)
{
	return (struct coll_call){
		.collective = collective, .ranks = RANKS, .element = 8, .count = count,
		.commutative = true, .cluster = cluster, .clusters = 2,
	};
}

/* As many links as fill the WAN; no more than the smaller cluster has; one if it is narrow. */
static void lanes_fill_the_wan(void **state)
{
	u32 even[RANKS], uneven[RANKS], i;
	struct coll_call call = call_of(COLL_BCAST, 1 << 20, even);
	struct coll_machine m = { .beta = 1e-6 };

	(void)state;
	for (i = 0; i < RANKS; i++) {
		even[i] = i >= 8;
		uneven[i] = i >= 13;
	}
	assert_int_equal(coll_lanes_choose(&call, &m), 8);
	m.wan_beta = 0.25e-6;
	assert_int_equal(coll_lanes_choose(&call, &m), 4);
	m.wan_beta = 0.3e-6;		/* 3.3 links' worth: the fourth fills it ... */
	assert_int_equal(coll_lanes_choose(&call, &m), 4);
	m.congestion = 1;		/* ... unless overload costs more than it brings */
	assert_int_equal(coll_lanes_choose(&call, &m), 3);
	m.wan_beta = 5e-6;
	assert_int_equal(coll_lanes_choose(&call, &m), 1);
	call.cluster = uneven;
	m.wan_beta = 0;
	assert_int_equal(coll_lanes_choose(&call, &m), 3);
}

static u64 segment_of(const char *name, enum coll_collective collective, u64 count,
		      const struct coll_machine *m)
{
	u32 cluster[RANKS], i;
	struct coll_call call = call_of(collective, count, cluster);
	struct coll_tuning tuning = COLL_TUNING_UNSET;

	for (i = 0; i < RANKS; i++)
		cluster[i] = i >= 8;
	tuning.lanes = 4;
	coll_segment_choose(coll_algo_find(collective, name), &call, m, &tuning);
	return tuning.segment;
}

/* Many segments where bytes are slow, one where messages are; never so short as to be
 * headers for the most part; and what is asked for stays. */
static void segments_fit_the_machine(void **state)
{
	static const struct {
		enum coll_collective collective;
		const char *name;
	} algo[] = {
		{ COLL_BCAST, "farfirst" }, { COLL_BCAST, "vandegeijn-extended" },
		{ COLL_ALLREDUCE, "twotier" }, { COLL_ALLREDUCE, "rabenseifner-extended" },
		{ COLL_REDUCE, "rabenseifner-extended" },
	};
	const struct coll_machine slow = { .alpha = 30e-6, .beta = 800e-9, .wan_alpha = 10e-3,
					   .wan_beta = 200e-9 };
	const struct coll_machine late = { .alpha = 10e-3, .beta = 0.1e-9, .wan_alpha = 20e-3,
					   .wan_beta = 0.1e-9 };
	const u64 mega = 1 << 20;
	struct coll_tuning asked = COLL_TUNING_UNSET;
	struct coll_call call = call_of(COLL_BCAST, mega / 8, NULL);
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(algo) / sizeof(*algo); i++) {
		const u64 segment = segment_of(algo[i].name, algo[i].collective, mega / 8, &slow);

		assert_in_range(segment, 8 << 10, 64 << 10);
		assert_int_equal(segment_of(algo[i].name, algo[i].collective, mega / 8, &late),
				 mega);
		assert_int_equal(segment_of(algo[i].name, algo[i].collective, 1, &slow),
				 COLL_UNSET);
	}
	for (i = 0; i < sizeof(algo) / sizeof(*algo); i++) { /* alone at home: nothing overlaps */
		const u32 each[] = { 0, 1 };
		struct coll_tuning tuning = COLL_TUNING_UNSET;

		call = call_of(algo[i].collective, mega / 8, each);
		call.ranks = 2;
		tuning.lanes = 1;
		coll_segment_choose(coll_algo_find(call.collective, algo[i].name), &call, &slow,
				    &tuning);
		assert_int_equal(tuning.segment, mega);
	}
	call = call_of(COLL_BCAST, mega / 8, NULL);
	assert_int_equal(segment_of("twotier", COLL_REDUCE, mega, &slow), COLL_UNSET);
	assert_int_equal(segment_of("binomial", COLL_BCAST, mega, &slow), COLL_UNSET);
	asked.segment = 77;
	coll_segment_choose(coll_algo_find(COLL_BCAST, "farfirst"), &call, &slow, &asked);
	assert_int_equal(asked.segment, 77);
}

/* Flat algorithms too. Inside a node, where cores carry the bytes, nothing overlaps in a ring. */
static void segments_of_flat_algorithms_fit_the_machine(void **state)
{
	static const struct {
		enum coll_collective collective;
		const char *name;
	} algo[] = {
		{ COLL_BCAST, "chain" }, { COLL_BCAST, "circulant" }, { COLL_REDUCE, "chain" },
		{ COLL_SCAN, "linear" }, { COLL_ALLREDUCE, "ring" }, { COLL_ALLREDUCE, "rabenseifner" },
	};
	const struct coll_machine wire = { .alpha = 20e-6, .overhead = 2e-6, .beta = 0.3e-9 };
	const struct coll_machine node = { .alpha = 20e-6, .overhead = 2e-6, .beta = 0.3e-9,
					   .copied = true };
	const u64 bytes = 4 << 20;
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(algo) / sizeof(*algo); i++) {
		const u64 segment = segment_of(algo[i].name, algo[i].collective, bytes / 8, &wire);

		assert_in_range(segment, 8 << 10, bytes / 2);
		assert_in_range(segment_of(algo[i].name, algo[i].collective, bytes / 8, &node), segment,
				bytes);
	}
	for (i = 4; i < sizeof(algo) / sizeof(*algo); i++)
		assert_int_equal(segment_of(algo[i].name, algo[i].collective, bytes / 8, &node), bytes);
}

static void clusters_get_algorithms_made_for_them(void **state)
{
	u32 cluster[RANKS], i, c;
	struct coll_machine m = { .beta = 8e-9, .wan_alpha = 10e-3, .wan_beta = 0.8e-9 };
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	const struct coll_algo *algo;

	(void)state;
	for (i = 0; i < RANKS; i++)
		cluster[i] = i >= 8;
	for (c = 0; c < COLL_COLLECTIVES; c++)
		for (i = 0; i < 20; i += 4) {
			struct coll_call call = call_of(c, 1 << i, cluster);

			algo = coll_algo_choose(&call, &tuning, &m);
			assert_non_null(algo);
			assert_false(algo->baseline);
			if (!algo->clusters)
				fail_msg("%s of %u: %s", coll_collective_names[c], 1 << i,
					 algo->name);
			call.cluster = NULL;
			algo = coll_algo_choose(&call, &tuning, &m);
			assert_false(algo->clusters || algo->baseline);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_of_a_phase_are_translated),
		cmocka_unit_test(an_empty_phase_is_ready_when_it_may_begin),
		cmocka_unit_test(wrong_phases_are_refused),
		cmocka_unit_test(lanes_fill_the_wan),
		cmocka_unit_test(segments_fit_the_machine),
		cmocka_unit_test(segments_of_flat_algorithms_fit_the_machine),
		cmocka_unit_test(clusters_get_algorithms_made_for_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
