// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Message semantics goal: LogGOPSim's rules, one by one and with its own numbers. Those were
 * recorded by tests/bench/loggopsim.sh; none of its code is here.
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

/* LogGOPSim's own defaults: L, o, g, G. */
static struct sim_model loggops_model(void)
{
	struct sim_model model = {
		.messages = SIM_MESSAGE_GOAL,
		.costs = { .alpha = 2500e-9, .send = 1500e-9, .recv = 1500e-9, .redundant = 1500e-9,
			   .gap = 1000e-9, .nic = 6e-9, .gamma = 1e-9, .user = 1e-9,
			   .eager = SIM_ALWAYS_EAGER },
	};

	return model;
}

/* ---- the rules -------------------------------------------------------------------- */

/* Each rank's nanoseconds. */
static void assert_times(const char *text, const struct sim_model *model, const sim_time *ns)
{
	struct coll_schedule **s;
	sim_time time[RANKS_MAX];
	char why[300] = "";
	u32 ranks, i;

	if (goal_read("p.goal", text, strlen(text), &s, &ranks, why, sizeof(why)))
		fail_msg("%s", why);
	run_schedules(s, ranks, model, time);
	for (i = 0; i < ranks; i++)
		if (time[i] != ns[i] * NS)
			fail_msg("rank %u: %lld instead of %lld ps", i, time[i], ns[i] * NS);
	schedules_free(s, ranks);
}

#define TIMES(text, model, ...) assert_times(text, model, (const sim_time[]){ __VA_ARGS__ })

static void a_message_takes_latency_and_its_receivers_cpu(void **state)
{
	struct sim_model model = loggops_model();

	(void)state;
	TIMES("num_ranks 2 rank 0 { send 101b to 1 } rank 1 { recv 101b from 0 }", &model, 1500,
	      1500 + 2500 + 1500 + 600);
	TIMES("num_ranks 2 rank 0 { send 0b to 1 } rank 1 { recv 0b from 0 }", &model, 1500, 5500);
	model.costs.byte_overhead = 2e-9;	/* less than G: the receiver is not slower */
	TIMES("num_ranks 2 rank 0 { send 101b to 1 } rank 1 { recv 101b from 0 }", &model, 1700,
	      6100);
	model.costs.byte_overhead = 10e-9;
	TIMES("num_ranks 2 rank 0 { send 101b to 1 } rank 1 { recv 101b from 0 }", &model, 2500,
	      6500);
}

static void a_receivers_cpu_takes_one_message_after_the_other(void **state)
{
	const struct sim_model model = loggops_model();

	(void)state;
	TIMES("num_ranks 3 rank 0 { recv 101b from 1\nrecv 101b from 2 }\n"
	      "rank 1 { send 101b to 0 }\nrank 2 { send 101b to 0 }",
	      &model, 4000 + 2 * 2100, 1500, 1500);
	/* Also what it does not yet wait for. */
	TIMES("num_ranks 3 rank 0 { a: recv 101b from 1\nb: recv 101b from 2\nb requires a }\n"
	      "rank 1 { a: calc 20000\nb: send 101b to 0\nb requires a }\nrank 2 { send 101b to 0 }",
	      &model, 24000 + 2100, 21500, 1500);
}

static void senders_nic_separates_messages(void **state)
{
	const struct sim_model model = loggops_model();

	(void)state;
	/* The second send begins at g + 100 G = 1600, later than o. */
	TIMES("num_ranks 3 rank 0 { send 101b to 1\nsend 101b to 2 }\nrank 1 { recv 101b from 0 }\n"
	      "rank 2 { recv 101b from 0 }",
	      &model, 3100, 6100, 7700);
}

static void the_oldest_that_waits_goes_next(void **state)
{
	const struct sim_model model = loggops_model();

	(void)state;
	/* At 4200 a send that was queued before the message, or after it. */
	TIMES("num_ranks 3 rank 0 { recv 101b from 1\na: calc 4200\nb: send 101b to 2\n"
	      "b requires a }\nrank 1 { send 101b to 0 }\nrank 2 { recv 101b from 0 }",
	      &model, 4200 + 1500 + 2100, 1500, 4200 + 4000 + 2100);
	TIMES("num_ranks 3 rank 0 { send 101b to 1 }\n"
	      "rank 1 { recv 101b from 0\na: calc 4200\nb: send 101b to 2\nb requires a }\n"
	      "rank 2 { recv 101b from 1 }",
	      &model, 1500, 4200 + 2100 + 1500, 4200 + 2100 + 4000 + 2100);
}

/* The sender goes on when message and receive have met, without a message back. */
static void a_long_send_is_done_when_its_receive_has_the_first_byte(void **state)
{
	static const char late[] =
		"num_ranks 2 rank 0 { a: send 101b to 1\nb: calc 10\nb requires a }\n"
		"rank 1 { a: calc 9000\nb: recv 101b from 0\nb requires a }";
	struct sim_model model = loggops_model();

	(void)state;
	model.costs.eager = 101;
	TIMES(late, &model, 1510, 9000 + 2100);
	model.costs.eager = 100;
	TIMES(late, &model, 9010, 9000 + 2100);
	/* The message's bytes were taken before the receive began. */
	TIMES("num_ranks 3 rank 0 { a: send 101b to 1\nb: calc 10\nb requires a }\n"
	      "rank 1 { a: recv 8b from 2\nb: recv 101b from 0\nb requires a }\n"
	      "rank 2 { a: calc 20000\nb: send 8b to 1\nb requires a }",
	      &model, 24000 + 1542 + 10, 24000 + 1542, 21500);
}

static void noise_delays_no_message_but_by_other_semantics(void **state)
{
	static const char text[] =
		"num_ranks 2 rank 0 { send 101b to 1 } rank 1 { recv 101b from 0 }";
	struct sim_model model = loggops_model();

	(void)state;
	model.semantics = SIM_GOAL;
	model.os[0] = sim_periodic(1e-6, 1e-7);	/* one or two events in 1500 ns */
	model.os[0].model.phase = COLL_NOISE_SAME;
	model.os[0].model.seed = 3;
	model.start = (const sim_time[]){ 0, 10000 * NS };
	{
		struct coll_schedule **s;
		char why[300] = "";
		sim_time goal[2], occupancy[2];
		u32 ranks;

		assert_int_equal(goal_read("p.goal", text, strlen(text), &s, &ranks, why, 300), 0);
		run_schedules(s, ranks, &model, goal);
		assert_in_range(goal[0], 1600 * NS, 1800 * NS);
		/* Only what is in the overhead of the receiver: not in its 600 ns of bytes. */
		assert_in_range(goal[1], 12200 * NS, 12400 * NS);
		model.start = NULL;
		run_schedules(s, ranks, &model, goal);
		assert_in_range(goal[1], 6200 * NS, 6400 * NS);
		model.semantics = SIM_OCCUPANCY;
		run_schedules(s, ranks, &model, occupancy);
		assert_true(occupancy[1] > goal[1]);
		schedules_free(s, ranks);
	}
}

static void links_of_several_kinds_and_circuits_are_refused(void **state)
{
	struct sim_model model = loggops_model();
	const struct sim_network network = { .areas = 1 };
	const struct sim_nodes nodes = { .nodes = 1 };
	const struct sim_circuits circuits = { .setup = 1, .ports = 1 };
	static struct job_setting setting;
	const struct sim_job job = job_named(&setting, COLL_BCAST, "binomial", 8, 1);
	struct sim *sim = job_open(&job);
	struct sim_outcome outcome;

	(void)state;
	assert_null(sim_model_refuses(&model));
	assert_int_equal(sim_run(sim, &model, 1, SIM_LEVELS, &outcome, NULL), -EOPNOTSUPP);
	assert_int_equal(sim_run(sim, &model, 1, SIM_ANY_PATH, &outcome, NULL), 0);
	assert_int_equal(outcome.path, SIM_EVENTS);
	sim_close(sim);
	model.network = &network;
	assert_non_null(strstr(sim_model_refuses(&model), "goal with clusters"));
	model.network = NULL;
	model.nodes = &nodes;
	assert_non_null(strstr(sim_model_refuses(&model), "goal with clusters"));
	model.nodes = NULL;
	model.circuits = &circuits;
	assert_non_null(strstr(sim_model_refuses(&model), "goal with clusters"));
	model.circuits = NULL;
	model.costs.byte_overhead = 1e-9;
	assert_null(sim_model_refuses(&model));
	model.messages = SIM_MESSAGE_NIC;
	assert_non_null(strstr(sim_model_refuses(&model), "byte overhead"));
	model.messages = SIM_MESSAGE_SEMANTICS;
	assert_non_null(strstr(sim_model_refuses(&model), "unknown semantics"));
}

/* ---- every algorithm ----------------------------------------------------------------- */

static void assert_log_is_of_this_run(const char *name, struct sim *sim,
				      const struct sim_model *model, sim_time finish)
{
	struct sim_outcome outcome;
	struct sim_stage *path;
	struct sim_log *log;
	u32 count, i;

	assert_int_equal(sim_run_logged(sim, model, 7, &outcome, &log), 0);
	if (outcome.finish != finish)
		fail_msg("%s: with a log %lld instead of %lld", name, outcome.finish, finish);
	assert_int_equal(sim_log_path(log, &path, &count), 0);
	for (i = 0; i < count; i++)
		if (path[i].end <= path[i].begin || path[i].begin < 0 ||
		    (i && path[i].begin != path[i - 1].end))
			fail_msg("%s: stage %u of %u of the path", name, i, count);
	if (finish)
		assert_true(count && path[count - 1].end == finish);
	free(path);
	sim_log_free(log);
}

struct tally {
	u32 visited, exported;
};

/* Whether the GOAL text of a collective takes the times of its schedules. */
static bool text_takes_the_same(struct coll_schedule *const *s, u32 ranks,
				const struct sim_model *model, const sim_time *wanted)
{
	struct coll_schedule **back;
	struct coll_text_error error;
	sim_time time[RANKS_MAX];
	char why[300] = "", *text;
	size_t bytes;
	bool same;
	FILE *to = open_memstream(&text, &bytes);

	assert_int_equal(coll_goal_print((const struct coll_schedule *const *)s, ranks, 1, to,
					 &error), 0);
	fclose(to);
	if (goal_read("p.goal", text, bytes, &back, &ranks, why, sizeof(why)))
		fail_msg("%s", why);
	run_schedules(back, ranks, model, time);
	same = !memcmp(time, wanted, ranks * sizeof(*time));
	schedules_free(back, ranks);
	free(text);
	return same;
}

static bool goal_can(struct coll_schedule *const *s, u32 ranks)
{
	u32 r, i;

	for (r = 0; r < ranks; r++)
		for (i = 0; i < s[r]->ops; i++)
			if (coll_ops(s[r])[i].flags)
				return false;
	return true;
}

static void visit(const char *name, struct coll_schedule *const *s, u32 ranks, void *argument)
{
	const bool goal = goal_can(s, ranks);
	struct tally *tally = argument;
	sim_time time[RANKS_MAX];
	u64 eager;

	for (eager = 1; eager <= 101; eager += 50) {
		struct sim_model model = loggops_model();
		struct sim *sim = NULL;
		char why[200] = "";

		model.costs.eager = eager;
		if (sim_open_schedules((const struct coll_schedule *const *)s, ranks, &sim, why,
				       sizeof(why)))
			fail_msg("%s", why);
		assert_log_is_of_this_run(name, sim, &model, run_schedules(s, ranks, &model, time));
		sim_close(sim);
		if (goal && !text_takes_the_same(s, ranks, &model, time))
			fail_msg("%s, %u ranks, eager %llu: its text takes another time", name,
				 ranks, (unsigned long long)eager);
		tally->exported += goal;
	}
	tally->visited++;
}

static void every_algorithm_ends_and_its_text_takes_the_same_time(void **state)
{
	struct tally tally = { 0 };

	(void)state;
	each_collective(17, visit, &tally);
	assert_true(tally.visited > 500 && tally.exported > 1500);
}

/* ---- LogGOPSim's numbers --------------------------------------------------------------- */

/* Recorded by tests/bench/loggopsim.sh, with the order of its ready ops made stable. */
static const struct {
	enum coll_collective collective;
	const char *algo;
	/* Doubles of the vector, or of a block; eager bytes, 0: no limit. */
	struct {
		u32 ranks, count, eager;
		sim_time ns;
	} cell[4];
} recorded[] = {
	{ COLL_ALLGATHER, "bruck",
	  { { 16, 128, 0, 114136 }, { 16, 1000, 1000, 741976 },
	    { 100, 128, 0, 646714 }, { 100, 1000, 1000, 4790458 } } },
	{ COLL_ALLGATHER, "circulant",
	  { { 16, 128, 0, 205478 }, { 16, 1000, 1000, 1377446 },
	    { 100, 128, 0, 1379014 }, { 100, 1000, 1000, 10419910 } } },
	{ COLL_ALLGATHER, "doubling",
	  { { 16, 128, 0, 114136 }, { 16, 1000, 1000, 741976 },
	    { 100, 128, 0, 1712808 }, { 100, 1000, 1000, 13013928 } } },
	{ COLL_ALLGATHER, "ring",
	  { { 16, 128, 0, 174570 }, { 16, 1000, 1000, 802410 },
	    { 100, 128, 0, 1152162 }, { 100, 1000, 1000, 5295906 } } },
	{ COLL_ALLREDUCE, "butterfly",
	  { { 16, 128, 0, 50648 }, { 16, 1000, 1000, 245976 },
	    { 100, 128, 0, 128210 }, { 100, 1000, 1000, 644434 } } },
	{ COLL_ALLREDUCE, "debruijn",
	  { { 16, 128, 0, 127752 }, { 16, 1000, 1000, 602434 } } },
	{ COLL_ALLREDUCE, "linear",
	  { { 16, 128, 0, 245500 }, { 16, 1000, 1000, 1605820 },
	    { 100, 128, 0, 1572700 }, { 100, 1000, 1000, 10550812 } } },
	{ COLL_ALLREDUCE, "rabenseifner",
	  { { 16, 128, 0, 56432 }, { 16, 1000, 1000, 142232 },
	    { 100, 128, 0, 111288 }, { 100, 1000, 1000, 343184 } } },
	{ COLL_ALLREDUCE, "reduce-bcast",
	  { { 16, 128, 0, 97200 }, { 16, 1000, 1000, 459952 },
	    { 100, 128, 0, 161600 }, { 100, 1000, 1000, 796416 } } },
	{ COLL_ALLREDUCE, "ring",
	  { { 16, 128, 0, 177300 }, { 16, 1000, 1000, 263100 },
	    { 100, 128, 0, 1108404 }, { 100, 1000, 1000, 1190772 } } },
	{ COLL_ALLTOALL, "bruck",
	  { { 16, 128, 0, 218584 }, { 16, 1000, 1000, 1557976 },
	    { 100, 128, 0, 1979962 }, { 100, 1000, 1000, 15206458 } } },
	{ COLL_ALLTOALL, "linear",
	  { { 16, 128, 0, 174570 }, { 16, 1000, 1000, 802410 },
	    { 100, 128, 0, 1152162 }, { 100, 1000, 1000, 5295906 } } },
	{ COLL_ALLTOALL, "pairwise",
	  { { 16, 128, 0, 174570 }, { 16, 1000, 1000, 802410 },
	    { 100, 128, 0, 1152162 }, { 100, 1000, 1000, 5295906 } } },
	{ COLL_BARRIER, "dissemination",
	  { { 16, 1, 0, 22000 }, { 100, 1, 0, 38500 } } },
	{ COLL_BARRIER, "linear",
	  { { 16, 1, 1000, 53000 }, { 100, 1, 1000, 305000 } } },
	{ COLL_BCAST, "binomial",
	  { { 16, 128, 0, 46552 }, { 16, 1000, 1000, 213976 },
	    { 100, 128, 0, 76966 }, { 100, 1000, 1000, 369958 } } },
	{ COLL_BCAST, "chain",
	  { { 16, 128, 0, 174570 }, { 16, 1000, 1000, 802410 },
	    { 100, 128, 0, 1152162 }, { 100, 1000, 1000, 1776888 } } },
	{ COLL_BCAST, "circulant",
	  { { 16, 128, 0, 46552 }, { 16, 1000, 1000, 213976 },
	    { 100, 128, 0, 72466 }, { 100, 1000, 1000, 365458 } } },
	{ COLL_BCAST, "linear",
	  { { 16, 128, 0, 111570 }, { 16, 1000, 1000, 739410 },
	    { 100, 128, 0, 711162 }, { 100, 1000, 1000, 4854906 } } },
	{ COLL_BCAST, "vandegeijn",
	  { { 16, 128, 0, 120442 }, { 16, 1000, 1000, 210234 },
	    { 100, 128, 0, 617986 }, { 100, 1000, 1000, 962302 } } },
	{ COLL_EXSCAN, "doubling",
	  { { 16, 128, 0, 55400 }, { 16, 1000, 1000, 327464 },
	    { 100, 128, 0, 98982 }, { 100, 1000, 1000, 535946 } } },
	{ COLL_EXSCAN, "linear",
	  { { 16, 128, 0, 188906 }, { 16, 1000, 1000, 914410 },
	    { 100, 128, 0, 1252514 }, { 100, 1000, 1000, 3297800 } } },
	{ COLL_GATHER, "binomial",
	  { { 16, 128, 0, 114136 }, { 16, 1000, 1000, 741976 },
	    { 100, 128, 0, 642714 }, { 100, 1000, 1000, 4786458 } } },
	{ COLL_GATHER, "linear",
	  { { 16, 128, 0, 118570 }, { 16, 1000, 1000, 746410 },
	    { 100, 128, 0, 760162 }, { 100, 1000, 1000, 4903906 } } },
	{ COLL_REDUCE, "binomial",
	  { { 16, 128, 0, 50648 }, { 16, 1000, 1000, 245976 },
	    { 100, 128, 0, 84634 }, { 100, 1000, 1000, 426458 } } },
	{ COLL_REDUCE, "chain",
	  { { 16, 128, 0, 189930 }, { 16, 1000, 1000, 922410 },
	    { 100, 128, 0, 1253538 }, { 100, 1000, 1000, 3301800 } } },
	{ COLL_REDUCE, "rabenseifner",
	  { { 16, 128, 0, 56432 }, { 16, 1000, 1000, 140672 },
	    { 100, 128, 0, 92086 }, { 100, 1000, 1000, 238124 } } },
	{ COLL_REDUCE_SCATTER_BLOCK, "halving",
	  { { 16, 128, 0, 129496 }, { 16, 1000, 1000, 861976 },
	    { 100, 128, 0, 1992510 }, { 100, 1000, 1000, 15239934 } } },
	{ COLL_REDUCE_SCATTER_BLOCK, "pairwise",
	  { { 16, 128, 0, 176618 }, { 16, 1000, 1000, 905410 },
	    { 100, 128, 0, 1154210 }, { 100, 1000, 1000, 5896406 } } },
	{ COLL_SCAN, "doubling",
	  { { 16, 128, 0, 54376 }, { 16, 1000, 1000, 319464 },
	    { 100, 128, 0, 92362 }, { 100, 1000, 1000, 503946 } } },
	{ COLL_SCATTER, "binomial",
	  { { 16, 128, 0, 114136 }, { 16, 1000, 1000, 741976 },
	    { 100, 128, 0, 642214 }, { 100, 1000, 1000, 4785958 } } },
	{ COLL_SCATTER, "linear",
	  { { 16, 128, 0, 111570 }, { 16, 1000, 1000, 739410 },
	    { 100, 128, 0, 711162 }, { 100, 1000, 1000, 4854906 } } },
};

static void times_equal_loggopsim(void **state)
{
	static struct job_setting setting;
	struct sim_model model = loggops_model();
	u32 i, k, cells = 0;

	(void)state;
	for (i = 0; i < sizeof(recorded) / sizeof(*recorded); i++)
		for (k = 0; k < 4 && recorded[i].cell[k].ranks; k++, cells++) {
			const u32 ranks = recorded[i].cell[k].ranks, eager = recorded[i].cell[k].eager;
			struct sim_job job = job_named(&setting, recorded[i].collective,
						       recorded[i].algo, ranks,
						       recorded[i].cell[k].count);
			sim_time finish;

			job.call.root = 0;
			model.costs.eager = eager ? eager : SIM_ALWAYS_EAGER;
			finish = job_run(&job, &model, 1, SIM_ANY_PATH, NULL).finish;
			if (finish != recorded[i].cell[k].ns * NS)
				fail_msg("%s %s, %u ranks, eager %u: %lld ps instead of %lld ns",
					 coll_collective_names[recorded[i].collective],
					 recorded[i].algo, ranks, eager, finish,
					 recorded[i].cell[k].ns);
		}
	assert_true(cells > 100);
}

/* More than LogGOPSim knows: any-waits, optional ops, noise of links, slow ranks, late ones. */
static void other_parts_of_the_model_hold(void **state)
{
	static struct job_setting setting;
	struct sim_job job = job_named(&setting, COLL_ALLREDUCE, "butterfly-redundant", 32, 1);
	struct sim_model model = loggops_model();
	sim_time start[32] = { [5] = 50000 * NS }, plain;
	double slowness[32];
	u32 i;

	(void)state;
	job.tuning.redundancy = 2;
	plain = job_run(&job, &model, 1, SIM_ANY_PATH, NULL).finish;
	assert_int_equal(job_run(&job, &model, 2, SIM_ANY_PATH, NULL).finish, plain);
	model.start = start;
	assert_true(job_run(&job, &model, 1, SIM_ANY_PATH, NULL).finish > 50000 * NS);
	model.start = NULL;
	for (i = 0; i < 32; i++)
		slowness[i] = 1 + i % 2;
	model.slowness = slowness;
	assert_true(job_run(&job, &model, 1, SIM_ANY_PATH, NULL).finish > plain);
	model.slowness = NULL;
	model.link = sim_poisson(1e5, 2e-6);
	assert_true(job_run(&job, &model, 1, SIM_ANY_PATH, NULL).finish > plain);
	assert_int_equal(job_run(&job, &model, 9, SIM_ANY_PATH, NULL).finish,
			 job_run(&job, &model, 9, SIM_EVENTS, NULL).finish);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_takes_latency_and_its_receivers_cpu),
		cmocka_unit_test(a_receivers_cpu_takes_one_message_after_the_other),
		cmocka_unit_test(senders_nic_separates_messages),
		cmocka_unit_test(the_oldest_that_waits_goes_next),
		cmocka_unit_test(a_long_send_is_done_when_its_receive_has_the_first_byte),
		cmocka_unit_test(noise_delays_no_message_but_by_other_semantics),
		cmocka_unit_test(links_of_several_kinds_and_circuits_are_refused),
		cmocka_unit_test(every_algorithm_ends_and_its_text_takes_the_same_time),
		cmocka_unit_test(times_equal_loggopsim),
		cmocka_unit_test(other_parts_of_the_model_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
