// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Programs in LogGOPSim's language, GOAL: a schedule exported and read again takes the same
 * time to the last bit, ops keep their order, and a wrong program is refused with its line.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/text.h"
#include "sim/goal.h"
#include "tests/lib/schedules.h"
#include "tests/unit/sim_job.h"

enum { RANKS_MAX = 64 };

/* GOAL has nothing that takes no time but does not happen during noise, as a copy is. */
static bool copies(struct coll_schedule *const *s, u32 ranks)
{
	u32 r, i;

	for (r = 0; r < ranks; r++)
		for (i = 0; i < s[r]->ops; i++)
			if (coll_ops(s[r])[i].kind == COLL_OP_COPY && coll_ops(s[r])[i].bytes)
				return true;
	return false;
}

struct tally {
	u32 exported, noisy;
};

static void round_trip(const char *name, struct coll_schedule *const *s, u32 ranks,
		       void *argument)
{
	struct sim_model plain = replay_model(), noise = noisy_replay_model();
	sim_time first[RANKS_MAX], again[RANKS_MAX];
	struct coll_text_error error;
	struct coll_schedule **back;
	char why[300] = "", *text;
	struct tally *tally = argument;
	u32 count;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);
	int refused = coll_goal_print((const struct coll_schedule *const *)s, ranks, 1, to, &error);

	plain.costs.beta = noise.costs.beta = 0;	/* GOAL has no messages of no bytes */
	fclose(to);
	if (!refused) {
		if (goal_read("p.goal", text, bytes, &back, &count, why, sizeof(why)))
			fail_msg("%s, %u ranks: %s", name, ranks, why);
		assert_int_equal(count, ranks);
		run_schedules(s, ranks, &plain, first);
		run_schedules(back, ranks, &plain, again);
		if (memcmp(first, again, ranks * sizeof(*first)))
			fail_msg("%s, %u ranks: not the same time", name, ranks);
		if (!copies(s, ranks)) {
			run_schedules(s, ranks, &noise, first);
			run_schedules(back, ranks, &noise, again);
			if (memcmp(first, again, ranks * sizeof(*first)))
				fail_msg("%s, %u ranks: not the same time with noise", name, ranks);
			tally->noisy++;
		}
		schedules_free(back, count);
		tally->exported++;
	}
	free(text);
}

static void exported_and_read_again_takes_the_same_time(void **state)
{
	struct tally tally = { 0 };

	(void)state;
	each_collective(9, round_trip, &tally);
	assert_true(tally.exported > 200 && tally.noisy > 20);
}

static int read_goal(const char *text, struct coll_schedule ***s, u32 *ranks, char *why)
{
	return goal_read("p.goal", text, strlen(text), s, ranks, why, 300);
}

static sim_time goal_time(const char *text)
{
	const struct sim_model m = replay_model();
	struct coll_schedule **s;
	char why[300] = "";
	sim_time time;
	u32 ranks;

	if (read_goal(text, &s, &ranks, why))
		fail_msg("%s", why);
	time = run_schedules(s, ranks, &m, NULL);
	schedules_free(s, ranks);
	return time;
}

static void goal_dependences_and_tags_order_the_ops(void **state)
{
	(void)state;
	/* What an op requires may come behind it; comments; no labels. */
	assert_int_equal(goal_time("num_ranks 1 rank 0 { a: calc 5\nb: calc 7 // x\n"
				   "a requires b calc /* y */ 3 }"),
			 15 * NS);
	assert_int_equal(
		goal_time("num_ranks 2\nrank 0 { s: send 100b to 1 tag 3 nic 0\nc: calc 50\n"
			  "s requires c }\nrank 1 { recv 100b from 0 tag 3 cpu 0 }"),
		1150 * NS);
	/* Two messages of one tag in their order, another tag out of it. */
	assert_int_equal(
		goal_time("num_ranks 2 rank 0 { a: send 1b to 1 tag 1 b: send 2b to 1 tag 2 "
			  "c: send 3b to 1 tag 1 } rank 1 { a: recv 2b from 0 tag 2 "
			  "b: recv 1b from 0 tag 1 c: recv 3b from 0 tag 1 "
			  "b requires a c requires b }"),
		1003 * NS);
	/* After the start of the receive: not after its message. */
	assert_int_equal(
		goal_time("num_ranks 2 rank 0 { c: calc 500 s: send 1b to 1 s requires c } "
			  "rank 1 { k: calc 100 r: recv 1b from 0 c: calc 10 r requires k "
			  "c irequires r }"),
		1501 * NS);
}

static void wrong_goal_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "", "p.goal:1: 'num_ranks' expected" },
		{ "num_ranks 0", "p.goal:1: num_ranks 0" },
		{ "num_ranks 2\nrank 1 {}", "p.goal:2: rank 1; valid: rank 0, the next one" },
		{ "num_ranks 1\nrank 0 {\nfoo bar", "p.goal:3: after 'foo'" },
		{ "num_ranks 1\nrank 0 { calc x }", "p.goal:2: calc 'x' is not a number" },
		{ "num_ranks 1\nrank 0 {", "p.goal:2: the file ends inside rank 0" },
		{ "num_ranks 1 rank 0 { a: calc 1\na: calc 2 }",
		  "p.goal:2: label 'a' is defined twice" },
		{ "num_ranks 1 rank 0 { a: calc 1\n\na requires b }",
		  "p.goal:3: op 'b' is not defined above" },
		{ "num_ranks 1 rank 0 { a: calc 1\nb: calc 2 a requires b\nb requires a }",
		  "this op requires itself" },
		{ "num_ranks 1 rank 0 { a: calc 1 a requires a }", "this op requires itself" },
		{ "num_ranks 2 rank 0 { recv 1b from -1 }", "a receive from any rank" },
		{ "num_ranks 2 rank 0 { recv 1b from 1 tag -1 }", "or with any tag" },
		{ "num_ranks 2 rank 0 { recv 1b from 2 }", "rank '2': at most 1" },
		{ "num_ranks 2 rank 0 { send 1b to 0 }", "sends a message to itself" },
		{ "num_ranks 2 rank 0 { calc 1 cpu 1 }", "one CPU" },
		{ "num_ranks 2 rank 0 { send 1b to 1 }\nrank 1 {}",
		  "p.goal:1: rank 0 sends to rank 1 a message that rank 1 does not receive" },
		{ "num_ranks 2 rank 0 { }\nrank 1 { recv 1b from 0 }",
		  "p.goal:2: rank 1 receives from rank 0 a message that rank 0 does not send" },
		{ "num_ranks 2 rank 0 { send 9b to 1 }\nrank 1 { recv 1b from 0 }",
		  "p.goal:2: rank 1 receives up to 1 bytes from rank 0, which sends 9" },
		{ "num_ranks 1 rank 0 { } x", "text after the last rank" },
	};
	struct coll_schedule **s;
	char why[300];
	u32 ranks, i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		*why = '\0';
		assert_int_equal(read_goal(wrong[i].text, &s, &ranks, why), -EINVAL);
		if (!strstr(why, wrong[i].why))
			fail_msg("'%s' is not in '%s'", wrong[i].why, why);
	}
}

/* Ops one after the other on one rank, or messages to and fro: whether they end. */
static int run_chain(u32 ops, bool messages, const struct sim_model *model, enum sim_path path, sim_time *finish)
{
	struct coll_schedule **s;
	struct sim_outcome outcome;
	struct sim *sim;
	char why[300], *text;
	u32 ranks, r, i;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);
	int error;

	fprintf(to, "num_ranks %u\n", messages ? 2 : 1);
	for (r = 0; r < (messages ? 2 : 1); r++) {
		fprintf(to, "rank %u {\n", r);
		for (i = 0; i < ops; i++) {
			if (messages)
				fprintf(to, "o%u: %s 281474976710656b %s %u\n", i, i % 2 == r ? "send" : "recv",
					i % 2 == r ? "to" : "from", 1 - r);
			else
				fprintf(to, "o%u: calc 281474976710656\n", i);
			if (i)
				fprintf(to, "o%u requires o%u\n", i, i - 1);
		}
		fprintf(to, "}\n");
	}
	fclose(to);
	assert_int_equal(read_goal(text, &s, &ranks, why), 0);
	free(text);
	assert_int_equal(sim_open_schedules((const struct coll_schedule *const *)s, ranks, &sim, why, sizeof(why)), 0);
	error = sim_run(sim, model, 1, path, &outcome, NULL);
	*finish = outcome.finish;
	sim_close(sim);
	schedules_free(s, ranks);
	return error;
}

static void what_ends_after_26_days_is_refused(void **state)
{
	static const u64 each = 281474976710656;
	struct sim_model model = { .costs = SIM_COSTS(0, 1e-9, 0) };
	sim_time finish;
	u32 kind, path;

	(void)state;
	model.costs.user = model.costs.nic = 1e-9;
	for (kind = 0; kind < 4; kind++)
		for (path = SIM_LEVELS; path <= SIM_EVENTS; path++) {
			model.messages = kind / 2;
			if (path == SIM_LEVELS && kind)	/* they have none, with a NIC */
				continue;
			if (!kind)
				model.costs.nic = 0;
			assert_int_equal(run_chain(4, kind % 2, &model, path, &finish), 0);
			assert_in_range(finish, (4 * each - 8) * NS, 8 * each * NS);
			assert_int_equal(run_chain(9, kind % 2, &model, path, &finish), -EOVERFLOW);
			assert_int_equal(run_chain(40, kind % 2, &model, path, &finish), -EOVERFLOW);
			model.costs.nic = 1e-9;
		}
	model.messages = SIM_MESSAGE_NIC;
	model.costs.beta = 1;	/* one message is too long */
	assert_int_equal(run_chain(1, true, &model, SIM_ANY_PATH, &finish), -EOVERFLOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exported_and_read_again_takes_the_same_time),
		cmocka_unit_test(goal_dependences_and_tags_order_the_ops),
		cmocka_unit_test(what_ends_after_26_days_is_refused),
		cmocka_unit_test(wrong_goal_is_refused_with_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
