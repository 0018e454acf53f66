// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* GOAL programs: every schedule that has one, and the times that they mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/text.h"
#include "tests/lib/goal.h"
#include "tests/lib/schedules.h"

enum { RANKS_MAX = 1024 };

static const struct goal_costs costs = { .latency = 1000, .overhead = 500, .byte = 1 };
static const double reduce_ns = 62.5;	/* a double: 500 */

/* Runs the program, once it is made; free() the schedules. */
static u64 finish_of(const char *name, struct coll_schedule *const *s, u32 ranks)
{
	struct coll_text_error error;
	struct goal_outcome outcome;
	size_t bytes;
	char *text;
	FILE *to = open_memstream(&text, &bytes);

	assert_non_null(to);
	assert_int_equal(coll_goal_print((const struct coll_schedule *const *)s, ranks, reduce_ns,
					 to, &error), 0);
	fclose(to);
	if (!goal_runs(text, &costs, &outcome))
		fail_msg("%s, %u ranks, line %u: %s", name, ranks, outcome.line, outcome.why);
	free(text);
	return outcome.finish;
}

/* ---- every algorithm ----------------------------------------------------- */

struct tally {
	u32 exported, refused;
};

static bool goal_can(const struct coll_schedule *s)
{
	u32 i;

	for (i = 0; i < s->ops; i++)
		if (coll_ops(s)[i].flags)
			return false;
	return true;
}

static void assert_refused(const char *name, struct coll_schedule *const *s, u32 ranks)
{
	struct coll_text_error error;
	size_t bytes;
	char *text;
	FILE *to = open_memstream(&text, &bytes);
	int status = coll_goal_print((const struct coll_schedule *const *)s, ranks, reduce_ns, to,
				     &error);

	fclose(to);
	assert_int_equal(status, -EOPNOTSUPP);
	assert_int_equal(bytes, 0);
	free(text);
	assert_true(strstr(error.reason, "waits for any of") || strstr(error.reason, "optional"));
	assert_true(!strcmp(name, "butterfly-redundant") || !strcmp(name, "butterfly-relayed"));
}

static void export(const char *name, struct coll_schedule *const *s, u32 ranks, void *argument)
{
	struct tally *tally = argument;
	bool can = true;
	u32 i;

	for (i = 0; i < ranks; i++)
		can &= goal_can(s[i]);
	if (can) {
		finish_of(name, s, ranks);
		tally->exported++;
	} else {
		assert_refused(name, s, ranks);
		tally->refused++;
	}
}

static void every_algorithm_runs_or_is_refused(void **state)
{
	const struct coll_algo *const *algo;
	struct tally tally = { 0 };
	u32 algos = 0;

	(void)state;
	for (algo = coll_algos; *algo; algo++)
		algos += !(*algo)->levels;
	each_collective(17, export, &tally);
	/* Two butterflies have optional ops; allreduce by de Bruijn serves 5 of the 17 rank counts. */
	assert_int_equal(tally.exported, (algos - 2) * 17 - 12);
	assert_int_equal(tally.refused, 2 * 17);
}

/* ---- times --------------------------------------------------------------- */

/* When a collective of `count` doubles (a block, where there is one a rank) is done. */
static u64 finish(enum coll_collective collective, const char *name, u32 ranks, u64 count)
{
	const struct coll_algo *algo = coll_algo_find(collective, name);
	const struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct coll_schedule *s[RANKS_MAX];
	struct coll_call call = {
		.collective = collective,
		.ranks = ranks,
		.type = COLL_DOUBLE,
		.reduction = COLL_SUM,
		.element = 8,
		.commutative = true,
		.count = count,
	};
	u64 time;

	assert_non_null(algo);
	for (call.rank = 0; call.rank < ranks; call.rank++)
		s[call.rank] = emit_schedule(algo, &call, &tuning);
	time = finish_of(name, s, ranks);
	while (ranks--)
		free(s[ranks]);
	return time;
}

/* From one rank's hands into another's. */
static u64 message(u64 bytes)
{
	return 2 * costs.overhead + costs.latency + (bytes - 1) * costs.byte;
}

static void times_match_closed_forms(void **state)
{
	const u64 part = 16 * 8;	/* of a vector, in bytes */
	u32 rounds, i;

	(void)state;
	for (rounds = 1; rounds <= 6; rounds++) {
		const u32 ranks = 1 << rounds;
		u64 halving = 0;

		for (i = 0; i < rounds; i++)
			halving += 2 * message(part << i) + (part << i) * 125 / 2;
		assert_int_equal(finish(COLL_ALLREDUCE, "butterfly", ranks, 1),
				 rounds * (message(8) + 500));
		assert_int_equal(finish(COLL_ALLREDUCE, "ring", ranks, 16 * ranks),
				 (ranks - 1) * (2 * message(part) + part * 125 / 2));
		assert_int_equal(finish(COLL_ALLREDUCE, "rabenseifner", ranks, 16 * ranks),
				 halving);
		assert_int_equal(finish(COLL_BARRIER, "dissemination", ranks, 0),
				 rounds * message(1));
		assert_int_equal(finish(COLL_BCAST, "binomial", ranks, 1), rounds * message(8));
		assert_int_equal(finish(COLL_ALLTOALL, "pairwise", ranks, 1),
				 (ranks - 1) * message(8));
	}
}

/* LogGOPSim's own results for butterflies with these costs. */
static void butterflies_equal_loggopsim(void **state)
{
	(void)state;
	assert_int_equal(finish(COLL_ALLREDUCE, "butterfly", 1024, 1), 25070);
}

/* ---- the reader ---------------------------------------------------------- */

static void wrong_goal_is_refused_with_its_line(void **state)
{
#define PAIR(send, recv) "num_ranks 2\nrank 0 {\n" send "}\nrank 1 {\n" recv "}\n"
	static const struct {
		const char *text, *why;
	} programs[] = {
		{ "", "it is not all" },
		{ "rank 0 {\no0: calc 1\n}\n", "not the number of ranks" },
		{ "num_ranks 2\nrank 0 {\no0: calc 1\n}\n", "it is not all" },
		{ "num_ranks 1\nrank 0 {\no0: calc 1\n", "it is not all" },
		{ "num_ranks 1\nrank 0 {\no0: calc 1\n}", "not a whole line" },
		{ "num_ranks 1\nrank 0 {\no0: calc 1\n}\nrank 1 {\n", "not the next rank" },
		{ "num_ranks 2\nrank 1 {\n", "not the next rank" },
		{ "num_ranks 1\nrank 0 {\n}\n", "without an op" },
		{ "num_ranks 1\nrank 0 {\n\to0: calc 1\n}\n", "no op" },
		{ "num_ranks 1\nrank 0 {\no0: calc -1\n}\n", "no op" },
		{ "num_ranks 1\nrank 0 {\no0: calc 0.5\n}\n", "no op" },
		{ "num_ranks 1\nrank 0 {\no1: calc 1\n}\n", "not the next one" },
		{ "num_ranks 1\nrank 0 {\no0: calc 1\no0 requires o1\n}\n", "cannot depend" },
		{ "num_ranks 1\nrank 0 {\no0: calc 1\no0 irequires o0\n}\n", "cannot depend" },
		{ "num_ranks 1\nrank 0 {\no0: calc 1\no0 waits o0\n}\n", "no dependence" },
		{ PAIR("o0: send 8b to 2 tag 0\n", "o0: calc 1\n"), "no rank 2" },
		{ PAIR("o0: send 0b to 1 tag 0\n", "o0: calc 1\n"), "no bytes" },
		{ PAIR("o0: send 8b to 1 tag 4294967295\n", "o0: calc 1\n"), "any tag" },
		{ PAIR("o0: send 8b to 1 tag 0\n", "o0: calc 1\n"), "no pair" },
		{ PAIR("o0: calc 1\n", "o0: recv 8b from 0 tag 0\n"), "no pair" },
		{ PAIR("o0: send 8b to 1 tag 0\n", "o0: recv 8b from 0 tag 1\n"), "no pair" },
		{ PAIR("o0: send 8b to 1 tag 0\n", "o0: recv 9b from 0 tag 0\n"), "sizes differ" },
		{ PAIR("o0: send 8b to 1 tag 0\no1: send 8b to 1 tag 0\n",
		       "o0: recv 8b from 0 tag 0\no1: recv 8b from 0 tag 0\n"), "no pair" },
		{ PAIR("o0: recv 8b from 1 tag 0\no1: send 8b to 1 tag 0\no1 requires o0\n",
		       "o0: recv 8b from 0 tag 0\no1: send 8b to 0 tag 0\no1 requires o0\n"),
		  "4 ops wait for each other" },
	};
	static const char fine[] = PAIR("o0: send 8b to 1 tag 0\n", "o0: recv 8b from 0 tag 0\n");
#undef PAIR
	struct goal_outcome outcome;
	size_t i;

	(void)state;
	assert_true(goal_runs(fine, &costs, &outcome));
	assert_int_equal(outcome.finish, message(8));
	for (i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		assert_false(goal_runs(programs[i].text, &costs, &outcome));
		if (!strstr(outcome.why, programs[i].why))
			fail_msg("'%s' instead of '%s'", outcome.why, programs[i].why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_algorithm_runs_or_is_refused),
		cmocka_unit_test(times_match_closed_forms),
		cmocka_unit_test(butterflies_equal_loggopsim),
		cmocka_unit_test(wrong_goal_is_refused_with_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
