// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Programs replayed: GOAL out and in again takes the same time to the last bit, a trace
 * of a collective takes the time of the collective, messages find their receives, and
 * what is no program is refused with its line.
 *
 * Length: each rule of traces and GOAL programs is one small test.
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
#include "sim/replay.h"
#include "sim/sim.h"
#include "sim/tape.h"
#include "tests/lib/schedules.h"

enum { NS = 1000, US = 1000 * NS, RANKS_MAX = 64 };	/* picoseconds */

static struct sim_model model(void)
{
	struct sim_model m = { .costs = SIM_COSTS(1e-6, 1e-9, 1e-9), .semantics = SIM_OCCUPANCY };

	m.costs.user = 1e-9;
	return m;
}

static struct sim_model noisy(void)
{
	struct sim_model m = model();

	m.costs.send = 200e-9;
	m.costs.recv = 300e-9;
	m.os[0] = sim_periodic(20e-6, 3e-6);
	m.link = sim_poisson(50000, 2e-6);
	return m;
}

static void schedules_free(struct coll_schedule **s, u32 ranks)
{
	u32 i;

	for (i = 0; i < ranks; i++)
		free(s[i]);
	free(s);
}

static sim_time run_schedules(struct coll_schedule *const *s, u32 ranks,
			      const struct sim_model *m, sim_time *finish)
{
	struct sim_outcome outcome;
	struct sim *sim = NULL;
	char why[200] = "";

	if (sim_open_schedules((const struct coll_schedule *const *)s, ranks, &sim, why,
			       sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(sim_run(sim, m, 7, SIM_ANY_PATH, &outcome, finish), 0);
	sim_close(sim);
	return outcome.finish;
}

/* ---- GOAL --------------------------------------------------------------------- */

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
	struct sim_model plain = model(), noise = noisy();
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

static void test_goal_round_trip(void **state)
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
	const struct sim_model m = model();
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

static void test_goal_order(void **state)
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

static void test_goal_refusals(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "", "p.goal:1: 'num_ranks' expected" },
		{ "num_ranks 0", "p.goal:1: num_ranks 0" },
		{ "num_ranks 2\nrank 1 {}", "p.goal:2: rank 1, but rank 0 is the next" },
		{ "num_ranks 1\nrank 0 {\nfoo bar", "p.goal:3: after 'foo'" },
		{ "num_ranks 1\nrank 0 { calc x }", "p.goal:2: calc 'x' is no number" },
		{ "num_ranks 1\nrank 0 {", "p.goal:2: the file ends inside of rank 0" },
		{ "num_ranks 1 rank 0 { a: calc 1\na: calc 2 }",
		  "p.goal:2: label 'a' is there twice" },
		{ "num_ranks 1 rank 0 { a: calc 1\n\na requires b }",
		  "p.goal:3: there is no op 'b'" },
		{ "num_ranks 1 rank 0 { a: calc 1\nb: calc 2 a requires b\nb requires a }",
		  "this op requires itself" },
		{ "num_ranks 1 rank 0 { a: calc 1 a requires a }", "this op requires itself" },
		{ "num_ranks 2 rank 0 { recv 1b from -1 }", "messages from anybody" },
		{ "num_ranks 2 rank 0 { recv 1b from 1 tag -1 }", "or of any tag" },
		{ "num_ranks 2 rank 0 { recv 1b from 2 }", "rank '2': at most 1" },
		{ "num_ranks 2 rank 0 { send 1b to 0 }", "a message with itself" },
		{ "num_ranks 2 rank 0 { calc 1 cpu 1 }", "one CPU" },
		{ "num_ranks 2 rank 0 { send 1b to 1 }\nrank 1 {}",
		  "p.goal:1: rank 0 sends rank 1 a message that rank 1 does not receive" },
		{ "num_ranks 2 rank 0 { }\nrank 1 { recv 1b from 0 }",
		  "p.goal:2: rank 1 waits for rank 0 a message that rank 0 does not send" },
		{ "num_ranks 2 rank 0 { send 9b to 1 }\nrank 1 { recv 1b from 0 }",
		  "p.goal:2: rank 1 takes 1 bytes of rank 0, which sends 9" },
		{ "num_ranks 1 rank 0 { } x", "behind the last rank" },
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

/* ---- traces ---------------------------------------------------------------------- */

/* The algorithm by name; for the tests one a call. */
static const struct coll_algo *choose_named(void *argument, const struct coll_call *call,
					    struct coll_tuning *tuning)
{
	const struct coll_algo *algo = argument;

	(void)tuning;
	return !algo ? coll_algo_choose(call, tuning, &(struct coll_machine){ 0 }) :
	       algo->collective == call->collective ? algo : NULL;
}

/* The program of these traces, one a rank; NULL and `why` where it is none. */
static struct coll_schedule **read_traces(const char *const *text, u32 ranks,
					  const struct coll_algo *algo, char *why)
{
	const struct replay_how how = { .choose = choose_named, .argument = (void *)algo };
	struct coll_schedule **s = NULL;
	struct sim_replay *replay;
	char name[8];
	int error = 0;
	u32 i;

	assert_int_equal(replay_new(&replay), 0);
	for (i = 0; i < ranks && !error; i++) {
		snprintf(name, sizeof(name), "t.%u", i);
		error = replay_add(replay, name, text[i], strlen(text[i]), why, 400);
	}
	if (!error)
		error = replay_schedules(replay, &how, &s, why, 400);
	assert_true(error ? !s && *why : s && !*why);
	replay_free(replay);
	return s;
}

static sim_time trace_time(const char *const *text, u32 ranks, const struct sim_model *m,
			   sim_time *finish)
{
	struct coll_schedule **s;
	char why[400] = "";
	sim_time time;

	s = read_traces(text, ranks, NULL, why);
	if (!s)
		fail_msg("%s", why);
	time = run_schedules(s, ranks, m, finish);
	schedules_free(s, ranks);
	return time;
}

#define HEAD(r, p) "coll-trace version=1 rank=" #r " ranks=" #p "\n"
#define WORLD2 "group number=0 ranks=0,1\n"

static void test_computing(void **state)
{
	static const char *const one[] = { HEAD(
		0, 1) "cpu ns=1000\n# x\nfoo bar=1\ncpu ns=500\nend\n" };
	struct sim_model m = model();

	(void)state;
	assert_int_equal(trace_time(one, 1, &m, NULL), 1500 * NS);
	m.costs.user = 2e-9;	/* a slower CPU */
	assert_int_equal(trace_time(one, 1, &m, NULL), 3000 * NS);
	m.os[0] = sim_periodic(1e-6, 0.5e-6);	/* half of the time is gone */
	m.os[0].model.phase = COLL_NOISE_SAME;
	assert_in_range(trace_time(one, 1, &m, NULL), 5500 * NS, 6500 * NS);
}

static void test_messages(void **state)
{
	static const char *const blocking[] = {
		HEAD(0, 2) WORLD2 "cpu ns=300\nsend group=0 to=1 tag=1 bytes=10\n"
		"send group=0 to=1 tag=2 bytes=20\nrecv group=0 from=1 tag=-1 bytes=99\nend\n",
		/* Taken in the other order, from anybody, and with more room. */
		HEAD(1, 2) WORLD2 "recv group=0 from=-1 tag=2 bytes=64\n"
		"recv group=0 from=0 tag=1 bytes=10\nsend group=0 to=0 tag=7 bytes=30\nend\n",
	};
	static const char *const overlap[] = {
		HEAD(0, 2) WORLD2 "irecv group=0 from=1 tag=0 bytes=8 request=1\n"
		"isend group=0 to=1 tag=0 bytes=8 request=2\ncpu ns=700\nwait requests=1,2\nend\n",
		HEAD(1, 2) WORLD2 "irecv group=0 from=0 tag=0 bytes=8 request=1\n"
		"isend group=0 to=0 tag=0 bytes=8 request=4\ncpu ns=1700\nwait requests=4,1\n"
		"cpu ns=100\nend\n",
	};
	static const char *const nobody[] = {
		HEAD(0, 1) "group number=0 ranks=0\nsend group=0 to=-2 tag=1 bytes=10\n"
		"recv group=0 from=-2 tag=1 bytes=10\nisend group=0 to=0 tag=1 bytes=1 request=1\n"
		"recv group=0 from=0 tag=1 bytes=1\nwait requests=1\ncpu ns=5\nend\n",
	};
	const struct sim_model m = model();
	sim_time finish[2];

	(void)state;
	assert_int_equal(trace_time(blocking, 2, &m, finish), (300 + 1020 + 1030) * NS);
	assert_int_equal(finish[1], (300 + 1020) * NS);
	trace_time(overlap, 2, &m, finish);
	assert_int_equal(finish[0], 1008 * NS);
	assert_int_equal(finish[1], 1800 * NS);
	assert_int_equal(trace_time(nobody, 1, &m, NULL), 5 * NS);
}

/* Taking the explicit receive's message first would leave two ranks waiting for ever. */
static void test_anybody(void **state)
{
	static const char *const text[] = {
		HEAD(0, 2) WORLD2 "recv group=0 from=-1 tag=0 bytes=8 ns=10\n"
		"send group=0 to=1 tag=0 bytes=8 ns=10\nrecv group=0 from=1 tag=0 bytes=8\nend\n",
		HEAD(1, 2) WORLD2 "send group=0 to=0 tag=0 bytes=1 ns=5\n"
		"recv group=0 from=0 tag=0 bytes=8 ns=30\nsend group=0 to=0 tag=0 bytes=2\nend\n",
	};
	const struct sim_model m = model();

	(void)state;
	assert_int_equal(trace_time(text, 2, &m, NULL), (1001 + 1008 + 1002) * NS);
}

static void test_groups(void **state)
{
	/* Rank 0 names the groups in another order; their ids tell. */
	static const char *const text[] = {
		HEAD(0, 3) "group number=0 id=7 ranks=0,1,2\ngroup number=1 id=9 ranks=0,1,2\n"
		"group number=2 ranks=2,0\nbarrier group=0\nbcast group=1 root=2 bytes=8\n"
		"bcast group=2 root=0 bytes=100\nend\n",
		HEAD(1, 3) "group number=0 id=9 ranks=0,1,2\ngroup number=1 id=7 ranks=0,1,2\n"
			   "barrier group=1\nbcast group=0 root=2 bytes=8\nend\n",
		HEAD(2, 3) "group number=0 ranks=2,0\ngroup number=1 id=9 ranks=0,1,2\n"
		"group number=2 id=7 ranks=0,1,2\nbarrier group=2\nbcast group=1 root=2 bytes=8\n"
		"bcast group=0 root=0 bytes=100\nend\n",
	};
	const struct sim_model m = model();

	(void)state;
	assert_true(trace_time(text, 3, &m, NULL) >= (2000 + 1100) * NS);
}

/* ---- collectives -------------------------------------------------------------------- */

static void write_list(FILE *to, const char *name, const u64 *counts, u64 element, u32 ranks)
{
	u32 i;

	fprintf(to, " %s=", name);
	for (i = 0; i < ranks; i++)
		fprintf(to, "%s%llu", i ? "," : "", (unsigned long long)(counts[i] * element));
}

static bool takes_counts(enum coll_collective collective)
{
	return collective == COLL_GATHERV || collective == COLL_SCATTERV ||
	       collective == COLL_ALLGATHERV || collective == COLL_ALLTOALLV ||
	       collective == COLL_REDUCE_SCATTER;
}

/* As the recorder of libcollmpi writes it. */
static char *write_trace(const struct coll_call *call, u32 rank, u32 times)
{
	size_t bytes;
	char *text;
	FILE *to = open_memstream(&text, &bytes);
	u32 i;

	fprintf(to, "coll-trace version=1 rank=%u ranks=%u\ngroup number=0 ranks=", rank,
		call->ranks);
	for (i = 0; i < call->ranks; i++)
		fprintf(to, "%s%u", i ? "," : "", i);
	for (i = 0; i < times; i++) {
		fprintf(to, "\n%s group=0 root=%u commutative=1",
			coll_collective_names[call->collective], call->root);
		if (call->collective == COLL_ALLTOALLV) {
			write_list(to, "send", call->send_counts, call->element, call->ranks);
			write_list(to, "recv", call->recv_counts, call->element, call->ranks);
		} else if (takes_counts(call->collective) &&
			   (rank == call->root || call->collective == COLL_ALLGATHERV ||
			    call->collective == COLL_REDUCE_SCATTER)) {
			write_list(to, call->collective == COLL_SCATTERV ? "send" : "recv",
				   call->counts, call->element, call->ranks);
		} else {
			fprintf(to, " bytes=%llu",
				(unsigned long long)(call->count * call->element));
		}
		if (call->collective >= COLL_REDUCE)
			fprintf(to, " element=%u", call->element);
	}
	fprintf(to, "\nend\n");
	fclose(to);
	return text;
}

/* The same call by way of a trace. */
static struct coll_schedule **traced(const struct coll_algo *algo, const struct coll_call *call,
				     u32 times)
{
	char *text[RANKS_MAX], why[400] = "";
	struct coll_schedule **s;
	u32 i;

	for (i = 0; i < call->ranks; i++)
		text[i] = write_trace(call, i, times);
	s = read_traces((const char *const *)text, call->ranks, algo, why);
	if (!s)
		fail_msg("%s %s, %u ranks: %s", coll_collective_names[call->collective], algo->name,
			 call->ranks, why);
	for (i = 0; i < call->ranks; i++)
		free(text[i]);
	return s;
}

static bool a_call(struct usual_call *usual, const struct coll_algo *algo, u32 ranks)
{
	if (!usual_call(usual, algo, ranks, 6, takes_counts(algo->collective) ? COLL_UINT8 :
									       COLL_DOUBLE))
		return false;
	usual->call.cluster = NULL;
	usual->tuning = COLL_TUNING_UNSET;
	return !coll_algo_refuses(algo, &usual->call, &usual->tuning);
}

/* One collective is itself, with noise and without it, with every algorithm. */
static void test_each_collective(void **state)
{
	const struct coll_algo *const *algo;
	sim_time alone[RANKS_MAX], replayed[RANKS_MAX];
	struct sim_outcome outcome;
	u32 ranks, tried = 0, i;

	(void)state;
	for (algo = coll_algos; *algo; algo++)
		for (ranks = 2; ranks <= 17; ranks += ranks < 9 ? 1 : 4) {
			struct usual_call usual;
			struct coll_schedule **s;
			struct sim_job job;
			struct sim *sim;
			char why[200];

			if (!a_call(&usual, *algo, ranks))
				continue;
			job = (struct sim_job){ *algo, usual.call, usual.tuning };
			s = traced(*algo, &usual.call, 1);
			assert_int_equal(sim_open(&job, &sim, why, sizeof(why)), 0);
			for (i = 0; i < 2; i++) {
				const struct sim_model m = i ? noisy() : model();

				assert_int_equal(sim_run(sim, &m, 7, SIM_EVENTS, &outcome, alone),
						 0);
				run_schedules(s, ranks, &m, replayed);
				if (memcmp(alone, replayed, ranks * sizeof(*alone)))
					fail_msg("%s %s, %u ranks, %s noise: replayed it is not "
						 "itself",
						 coll_collective_names[(*algo)->collective],
						 (*algo)->name, ranks, i ? "with" : "without");
			}
			sim_close(sim);
			schedules_free(s, ranks);
			tried++;
		}
	assert_true(tried > 300);
}

/* Where nothing overlaps, twice is twice as long. */
static void test_twice(void **state)
{
	static const struct {
		enum coll_collective collective;
		const char *name;
	} which[] = { { COLL_BARRIER, "dissemination" }, { COLL_ALLREDUCE, "butterfly" },
		      { COLL_ALLREDUCE, "ring" }, { COLL_ALLTOALL, "pairwise" } };
	const struct sim_model m = model();
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(which) / sizeof(*which); i++) {
		const struct coll_algo *algo = coll_algo_find(which[i].collective, which[i].name);
		struct coll_schedule **once, **thrice;
		struct usual_call usual;

		assert_true(a_call(&usual, algo, 16));
		once = traced(algo, &usual.call, 1);
		thrice = traced(algo, &usual.call, 3);
		assert_int_equal(3 * run_schedules(once, 16, &m, NULL),
				 run_schedules(thrice, 16, &m, NULL));
		schedules_free(once, 16);
		schedules_free(thrice, 16);
	}
}

/* What a rank did, and what the last one waited for. */
static void test_shares(void **state)
{
	static const char *const text[] = {
		HEAD(0, 2) WORLD2 "cpu ns=5000\nsend group=0 to=1 tag=0 bytes=1000\nend\n",
		HEAD(1, 2) WORLD2
		"cpu ns=1000\nrecv group=0 from=0 tag=0 bytes=1000\ncpu ns=200\nend\n",
	};
	struct sim_model m = model();
	struct coll_schedule **s;
	struct sim_outcome outcome;
	struct sim_stage *stage;
	struct sim_share share;
	struct sim_log *log;
	struct sim *sim;
	char why[400] = "";
	u32 count;

	(void)state;
	m.costs.recv = 100e-9;
	s = read_traces(text, 2, NULL, why);
	assert_non_null(s);
	assert_int_equal(sim_open_schedules((const struct coll_schedule *const *)s, 2, &sim, why,
					    sizeof(why)), 0);
	assert_int_equal(sim_run_logged(sim, &m, 1, &outcome, &log), 0);
	assert_int_equal(outcome.finish, (5000 + 2000 + 100 + 200) * NS);
	share = sim_log_share(log, 1);
	assert_int_equal(share.done, outcome.finish);
	assert_int_equal(share.computing, 1200 * NS);
	assert_int_equal(share.working, 100 * NS);
	assert_int_equal(share.late, 0);
	assert_int_equal(sim_log_share(log, 0).done, 5000 * NS);
	assert_int_equal(sim_log_path(log, &stage, &count), 0);
	assert_int_equal(count, 4);	/* computing, message, its receive, computing */
	assert_true(tape_computes(&coll_ops(s[0])[stage[0].op]));
	assert_int_equal(stage[1].from, 0);
	free(stage);
	sim_log_free(log);
	sim_close(sim);
	schedules_free(s, 2);
}

/* ---- what is no program ----------------------------------------------------------------- */

static void test_trace_refusals(void **state)
{
	static const char good[] = HEAD(1, 2) WORLD2 "barrier group=0\nend\n";
	static const struct {
		const char *first, *second, *why;
	} wrong[] = {
		{ "", good, "t.0:1: this is no coll-trace" },
		{ "hello\n", good, "t.0:1: this is no coll-trace" },
		{ "coll-trace version=2 rank=0 ranks=2\n", good, "t.0:1: version=2" },
		{ HEAD(0, 0), good, "t.0:1: ranks=0" },
		{ HEAD(0, 2) "cpu ns=1\n", good, "t.0:2: the trace has no end" },
		{ HEAD(0, 2) "cpu\nend\n", good, "t.0:2: ns= is missing" },
		{ HEAD(0, 2) "cpu ns=-1\nend\n", good, "t.0:2: ns=-1: a number" },
		{ HEAD(0, 2) "barrier group=0\nend\n", good,
		  "t.0:2: group=0 has not been defined" },
		{ HEAD(0, 2) "group number=0 ranks=0,2\nend\n", good,
		  "t.0:2: ranks=: numbers up to 1" },
		{ HEAD(0, 2) "group number=0 ranks=0,-1\nend\n", good, "ranks of another job" },
		{ HEAD(0, 2) "group number=0 ranks=0,0\nend\n", good, "in the group twice" },
		{ HEAD(0, 2) "group number=0 ranks=1\nend\n", good, "rank 0 is not in this group" },
		{ HEAD(0, 2) WORLD2 "end\n", good, "makes 1 collective calls" },
		{ HEAD(0, 2) WORLD2 "bcast group=0 root=0 bytes=8\nend\n", good,
		  "t.1:3: barrier, root 0, 0 bytes; t.0:3, of the same group's call, has bcast" },
		{ HEAD(0, 2) WORLD2 "bcast group=0 root=2 bytes=8\nend\n", good, "t.0:3: root=2" },
		{ HEAD(0, 2) WORLD2 "alltoallv group=0 send=1 recv=1,2\nend\n", good,
		  "t.0:3: a list of 1 sizes" },
		{ HEAD(0, 2) WORLD2 "ibarrier group=0\nend\n", good, "t.0:3: request= is missing" },
		{ HEAD(0, 2) WORLD2 "barrier group=0\nwait requests=3\nend\n", good,
		  "t.0:4: request 3 has not been begun" },
		{ HEAD(0, 2) WORLD2 "barrier group=0\nrecv group=0 from=1 tag=0 bytes=8\nend\n",
		  good, "t.0:4: rank 0 waits for a message that no trace sends" },
		{ HEAD(0, 2) WORLD2 "barrier group=0\nsend group=0 to=1 tag=0 bytes=8\nend\n", good,
		  "t.0:4: rank 1 receives no such message" },
		{ good, good, "t.1:1: rank 1 has a trace already: t.0" },
	};
	static const char *const small[] = {
		HEAD(0, 2) WORLD2 "send group=0 to=1 tag=0 bytes=9\nend\n",
		HEAD(1, 2) WORLD2 "recv group=0 from=0 tag=0 bytes=8\nend\n",
	};
	char why[400];
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const char *const text[] = { wrong[i].first, wrong[i].second };

		*why = '\0';
		assert_null(read_traces(text, 2, NULL, why));
		if (!strstr(why, wrong[i].why))
			fail_msg("'%s' is not in '%s'", wrong[i].why, why);
	}
	*why = '\0';
	assert_null(read_traces(small, 2, NULL, why));
	assert_non_null(
		strstr(why, "t.1:3: rank 1 takes 8 bytes of rank 0, which sends 9 (t.0:3)"));
	*why = '\0';
	assert_null(read_traces(small, 1, NULL, why));
	assert_non_null(strstr(why, "1 of 2 traces: that of rank 1 is missing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goal_round_trip),
		cmocka_unit_test(test_goal_order),
		cmocka_unit_test(test_goal_refusals),
		cmocka_unit_test(test_computing),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_anybody),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_each_collective),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_trace_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
