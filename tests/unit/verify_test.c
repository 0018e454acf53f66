// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The verifier against algorithms that are wrong in ways a person would write.
 * Its files are part of the coll command, not of the library: included here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tools/common/arena.c"
#include "tools/verify/circuits.c"
#include "tools/verify/layout.c"
#include "tools/verify/links.c"
#include "tools/verify/list.c"
#include "tools/verify/match.c"
#include "tools/verify/nodes.c"
#include "tools/verify/order.c"
#include "tools/verify/plant.c"
#include "tools/verify/rescue.c"
#include "tools/verify/symbol.c"
#include "tools/verify/compute.c"
#include "tools/verify/judge.c"
#include "tools/verify/world.c"

/* Verifies the algorithm; its failure in words, "" if it holds. */
static const char *said(const struct coll_algo *algo, u32 ranks, u64 count, bool in_place)
{
	static char words[512];
	const struct verify_options options = { .seed = 3 };
	const struct verify_case c = {
		.algo = algo, .ranks = ranks, .count = count, .runs = 8,
		.tuning = COLL_TUNING_UNSET, .in_place = in_place, .commutative = true,
	};
	struct world world = { 0 };

	verify_case(&world, &c, &options);
	strcpy(words, world.failure.words);
	world_free(&world);
	return words;
}

static void assert_said(const struct coll_algo *algo, u32 ranks, bool in_place, const char *part)
{
	const char *words = said(algo, ranks, 3, in_place);

	if (!strstr(words, part) || (!*part && *words))
		fail_msg("expected '%s', got '%s'", part, words);
}

static const u64 out = COLL_ADDRESS(COLL_OUT, 0), in = COLL_ADDRESS(COLL_IN, 0);

/* Receives before it waits for its send: right. */
static void emit_polite(struct coll_build *b, const struct coll_call *call,
			const struct coll_tuning *tuning)
{
	const u32 peer = call->rank ^ 1;
	const u64 n = call->count * call->element, theirs = coll_emit_scratch(b, n);
	u32 sent = coll_emit_send(b, peer, in, n), received = coll_emit_recv(b, peer, theirs, n);

	(void)tuning;
	coll_emit_after(b, sent);
	coll_emit_after(b, received);
	coll_emit_reduce(b, out, call->rank ? theirs : in, call->rank ? in : theirs, n);
}

/* Rank order is not kept the same way on both sides: other bits. */
static void emit_selfish(struct coll_build *b, const struct coll_call *call,
			 const struct coll_tuning *tuning)
{
	const u64 n = call->count * call->element, theirs = coll_emit_scratch(b, n);

	(void)tuning;
	coll_emit_send(b, call->rank ^ 1, in, n);
	coll_emit_after(b, coll_emit_recv(b, call->rank ^ 1, theirs, n));
	coll_emit_reduce(b, out, in, theirs, n);
}

/* In place, the result overwrites what is still being sent. */
static void emit_hasty(struct coll_build *b, const struct coll_call *call,
		       const struct coll_tuning *tuning)
{
	const u64 n = call->count * call->element, theirs = coll_emit_scratch(b, n);

	(void)tuning;
	coll_emit_send(b, call->rank ^ 1, out, n);
	coll_emit_after(b, coll_emit_recv(b, call->rank ^ 1, theirs, n));
	coll_emit_reduce(b, out, call->rank ? theirs : out, call->rank ? out : theirs, n);
}

/* A rank that waits for its own send first waits forever if sends are late. */
static void emit_stiff(struct coll_build *b, const struct coll_call *call,
		       const struct coll_tuning *tuning)
{
	const u64 n = call->count * call->element, theirs = coll_emit_scratch(b, n);
	u32 received;

	(void)tuning;
	coll_emit_after(b, coll_emit_send(b, call->rank ^ 1, in, n));
	received = coll_emit_recv(b, call->rank ^ 1, theirs, n);
	coll_emit_after(b, received);
	coll_emit_reduce(b, out, call->rank ? theirs : in, call->rank ? in : theirs, n);
}

static void emit_idle(struct coll_build *b, const struct coll_call *call,
		      const struct coll_tuning *tuning)
{
	(void)b;
	(void)call;
	(void)tuning;
}

/* All ranks signal rank 0, which signals all ranks: a barrier. */
static void emit_counter(struct coll_build *b, const struct coll_call *call, bool wait)
{
	const u64 none = COLL_ADDRESS(COLL_SCRATCH, 0);
	u32 heard[16], all, i;

	if (call->rank) {
		coll_emit_send(b, 0, none, 0);
		coll_emit_recv(b, 0, none, 0);
		return;
	}
	for (i = 1; i < call->ranks; i++)
		heard[i] = coll_emit_recv(b, i, none, 0);
	for (i = 1; i < call->ranks; i++)
		coll_emit_after(b, heard[i]);
	all = coll_emit_join(b);
	for (i = 1; i < call->ranks; i++) {
		coll_emit_after(b, wait ? all : COLL_NONE);
		coll_emit_send(b, i, none, 0);
	}
}

static void emit_barrier(struct coll_build *b, const struct coll_call *call,
			 const struct coll_tuning *tuning)
{
	(void)tuning;
	emit_counter(b, call, true);
}

static void emit_open_barrier(struct coll_build *b, const struct coll_call *call,
			      const struct coll_tuning *tuning)
{
	(void)tuning;
	emit_counter(b, call, false);
}

/*
 * A broadcast from rank 0 of four, two and two near each other: the ranks far away
 * are sent to one after the other. When is the first of them done with?
 */
static void emit_one_by_one(struct coll_build *b, const struct coll_call *call, bool answered)
{
	const u64 n = call->count * call->element, none = COLL_ADDRESS(COLL_SCRATCH, 0);
	u32 done;

	if (call->rank) {
		done = coll_emit_recv(b, 0, out, n);
		if (call->rank == 2 && answered) {
			coll_emit_after(b, done);
			coll_emit_send(b, 0, none, 0);
		}
		return;
	}
	coll_emit_send(b, 1, out, n);
	done = coll_emit_send(b, 2, out, n);
	if (answered)
		done = coll_emit_recv(b, 2, none, 0);
	coll_emit_after(b, done);
	coll_emit_send(b, 3, out, n);
}

static void emit_patient(struct coll_build *b, const struct coll_call *call,
			 const struct coll_tuning *tuning)
{
	(void)tuning;
	emit_one_by_one(b, call, true);
}

/* What is sent may still be on its way. */
static void emit_impatient(struct coll_build *b, const struct coll_call *call,
			   const struct coll_tuning *tuning)
{
	(void)tuning;
	emit_one_by_one(b, call, false);
}

static const char *said_of_clusters(const struct coll_algo *algo, u32 lanes)
{
	static char words[512];
	const struct verify_options options = { .seed = 3 };
	struct verify_case c = {
		.algo = algo, .ranks = 4, .count = 3, .runs = 8, .tuning = COLL_TUNING_UNSET,
		.cluster = { 2, 2 }, .commutative = true,
	};
	struct world world = { 0 };

	c.tuning.lanes = lanes;
	verify_case(&world, &c, &options);
	strcpy(words, world.failure.words);
	world_free(&world);
	return words;
}

static void too_many_links_between_clusters_are_seen(void **state)
{
	struct coll_algo algo = { .collective = COLL_BCAST, .name = "test", .clusters = true,
				  .options = "segment, n", .emit = emit_patient };

	(void)state;
	assert_string_equal(said_of_clusters(&algo, 1), "");
	algo.emit = emit_impatient;
	assert_non_null(
		strstr(said_of_clusters(&algo, 1),
		       "up to 2 links between clusters 0 and 1 can be in use at once; n is 1"));
	assert_string_equal(said_of_clusters(&algo, 2), "");
	algo.options = NULL;
	assert_non_null(strstr(said_of_clusters(&algo, 2), "n is 1"));
	algo.clusters = false;		/* promises nothing */
	assert_string_equal(said_of_clusters(&algo, 1), "");
}

static struct coll_algo allreduce(void (*emit)(struct coll_build *, const struct coll_call *,
					       const struct coll_tuning *))
{
	return (struct coll_algo){ .collective = COLL_ALLREDUCE, .name = "test", .emit = emit };
}

static void correct_algorithms_pass(void **state)
{
	struct coll_algo polite = allreduce(emit_polite), barrier = allreduce(emit_barrier);

	(void)state;
	barrier.collective = COLL_BARRIER;
	assert_said(&polite, 2, false, "");
	assert_said(&barrier, 5, false, "");
}

static void differing_bits_are_seen(void **state)
{
	struct coll_algo algo = allreduce(emit_selfish);

	(void)state;
	assert_said(&algo, 2, false, "not the same bits");
}

static void races_are_seen(void **state)
{
	struct coll_algo algo = allreduce(emit_hasty);

	(void)state;
	assert_said(&algo, 2, true, "the two are not ordered");
}

static void deadlocks_with_late_sends_are_seen(void **state)
{
	struct coll_algo algo = allreduce(emit_stiff);

	(void)state;
	assert_said(&algo, 2, false, "deadlock: this send with rank");
}

static void missing_results_are_seen(void **state)
{
	struct coll_algo algo = allreduce(emit_idle);

	(void)state;
	assert_said(&algo, 3, false, "got the contents before the call");
}

static void an_open_barrier_is_seen(void **state)
{
	struct coll_algo algo = allreduce(emit_open_barrier);

	(void)state;
	algo.collective = COLL_BARRIER;
	assert_said(&algo, 4, false, "it left the barrier before rank");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(correct_algorithms_pass),
		cmocka_unit_test(differing_bits_are_seen),
		cmocka_unit_test(races_are_seen),
		cmocka_unit_test(deadlocks_with_late_sends_are_seen),
		cmocka_unit_test(missing_results_are_seen),
		cmocka_unit_test(an_open_barrier_is_seen),
		cmocka_unit_test(too_many_links_between_clusters_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
