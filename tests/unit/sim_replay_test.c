// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Replayed traces of MPI programs: a collective takes its own time, messages find their
 * receives, and a wrong trace is refused with its line.
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
#include "sim/replay.h"
#include "sim/tape.h"
#include "tests/lib/schedules.h"
#include "tests/unit/sim_job.h"

enum { RANKS_MAX = 64 };

/* ---- traces ---------------------------------------------------------------------- */

/* One algorithm for all calls of its collective; NULL: the usual choice. */
static const struct coll_algo *choose_named(void *argument, const struct coll_call *call,
					    struct coll_tuning *tuning)
{
	const struct coll_algo *algo = argument;

	(void)tuning;
	return !algo ? coll_algo_choose(call, tuning, &(struct coll_machine){ 0 }) :
	       algo->collective == call->collective ? algo : NULL;
}

/* The program of these traces, one for each rank. On error NULL, and `why` says why. */
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

static void compute_time_is_replayed(void **state)
{
	static const char *const one[] = { HEAD(
		0, 1) "cpu ns=1000\n# x\nfoo bar=1\ncpu ns=500\nend\n" };
	struct sim_model m = replay_model();

	(void)state;
	assert_int_equal(trace_time(one, 1, &m, NULL), 1500 * NS);
	m.costs.user = 2e-9;	/* a slower CPU */
	assert_int_equal(trace_time(one, 1, &m, NULL), 3000 * NS);
	m.os[0] = sim_periodic(1e-6, 0.5e-6);	/* half of the time is gone */
	m.os[0].model.phase = COLL_NOISE_SAME;
	assert_in_range(trace_time(one, 1, &m, NULL), 5500 * NS, 6500 * NS);
}

static void messages_match_by_tag_and_order(void **state)
{
	static const char *const blocking[] = {
		HEAD(0, 2) WORLD2 "cpu ns=300\nsend group=0 to=1 tag=1 bytes=10\n"
		"send group=0 to=1 tag=2 bytes=20\nrecv group=0 from=1 tag=-1 bytes=99\nend\n",
		/* Taken in the other order, from any rank, and with more room. */
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
	const struct sim_model m = replay_model();
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
static void receives_from_any_source_match(void **state)
{
	static const char *const text[] = {
		HEAD(0, 2) WORLD2 "recv group=0 from=-1 tag=0 bytes=8 ns=10\n"
		"send group=0 to=1 tag=0 bytes=8 ns=10\nrecv group=0 from=1 tag=0 bytes=8\nend\n",
		HEAD(1, 2) WORLD2 "send group=0 to=0 tag=0 bytes=1 ns=5\n"
		"recv group=0 from=0 tag=0 bytes=8 ns=30\nsend group=0 to=0 tag=0 bytes=2\nend\n",
	};
	const struct sim_model m = replay_model();

	(void)state;
	assert_int_equal(trace_time(text, 2, &m, NULL), (1001 + 1008 + 1002) * NS);
}

static void groups_have_their_own_ranks(void **state)
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
	const struct sim_model m = replay_model();

	(void)state;
	assert_true(trace_time(text, 3, &m, NULL) >= (1000 + 1100) * NS);
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
static void a_traced_collective_takes_its_own_time(void **state)
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
				const struct sim_model m = i ? noisy_replay_model() : replay_model();

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
static void repeated_collectives_take_multiples(void **state)
{
	static const struct {
		enum coll_collective collective;
		const char *name;
	} which[] = { { COLL_BARRIER, "dissemination" }, { COLL_ALLREDUCE, "butterfly" },
		      { COLL_ALLREDUCE, "ring" }, { COLL_ALLTOALL, "pairwise" } };
	const struct sim_model m = replay_model();
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

/* The time of a rank by what it did, and the critical path. */
static void time_of_a_rank_is_split_by_cause(void **state)
{
	static const char *const text[] = {
		HEAD(0, 2) WORLD2 "cpu ns=5000\nsend group=0 to=1 tag=0 bytes=1000\nend\n",
		HEAD(1, 2) WORLD2
		"cpu ns=1000\nrecv group=0 from=0 tag=0 bytes=1000\ncpu ns=200\nend\n",
	};
	struct sim_model m = replay_model();
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

/* ---- wrong traces ----------------------------------------------------------------------- */

static void wrong_traces_are_refused_with_their_line(void **state)
{
	static const char good[] = HEAD(1, 2) WORLD2 "barrier group=0\nend\n";
	static const struct {
		const char *first, *second, *why;
	} wrong[] = {
		{ "", good, "t.0:1: not a coll-trace: the file is empty" },
		{ "hello\n", good, "t.0:1: not a coll-trace: wrong first line" },
		{ "coll-trace version=2 rank=0 ranks=2\n", good, "t.0:1: version=2" },
		{ HEAD(0, 0), good, "t.0:1: ranks=0" },
		{ HEAD(0, -1), good, "t.0:1: ranks=-1; valid: a number from 1" },
		{ HEAD(0, 2) "cpu ns=1\n", good, "t.0:2: the trace has no end" },
		{ HEAD(0, 2) "cpu\nend\n", good, "t.0:2: ns= is missing" },
		{ HEAD(0, 2) "cpu ns=-1\nend\n", good, "t.0:2: ns=-1; valid: a number" },
		{ HEAD(0, 2) "barrier group=0\nend\n", good,
		  "t.0:2: group=0 has not been defined" },
		{ HEAD(0, 2) "group number=0 ranks=0,2\nend\n", good,
		  "t.0:2: ranks=; valid: numbers up to 1" },
		{ HEAD(0, 2) "group number=0 ranks=0,-1\nend\n", good, "ranks of another job" },
		{ HEAD(0, 2) "group number=0 ranks=0,0\nend\n", good, "in the group twice" },
		{ HEAD(0, 2) "group number=0 ranks=1\nend\n", good, "rank 0 uses this group but is not in it" },
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
		  "t.0:4: rank 1 has no receive for it" },
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
		strstr(why, "t.1:3: rank 1 receives up to 8 bytes from rank 0, "
			    "which sends 9 (t.0:3)"));
	*why = '\0';
	assert_null(read_traces(small, 1, NULL, why));
	assert_non_null(strstr(why, "1 of 2 traces; that of rank 1 is missing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compute_time_is_replayed),
		cmocka_unit_test(messages_match_by_tag_and_order),
		cmocka_unit_test(receives_from_any_source_match),
		cmocka_unit_test(groups_have_their_own_ranks),
		cmocka_unit_test(a_traced_collective_takes_its_own_time),
		cmocka_unit_test(repeated_collectives_take_multiples),
		cmocka_unit_test(time_of_a_rank_is_split_by_cause),
		cmocka_unit_test(wrong_traces_are_refused_with_their_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
