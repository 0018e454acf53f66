// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The simulator: closed forms without noise, single delays, both paths equal to
 * the last bit with it, LogGOPSim's numbers, and paper 1's statistics.
 *
 * Length: each closed form is one small test.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "algo/common/ranks.h"
#include "sim/sim.h"
#include "sim/trunk.h"
#include "tests/lib/interpret.h"
#include "tests/lib/schedules.h"

enum { NS = 1000, US = 1000 * NS };	/* picoseconds */

struct setting {
	struct sim_job job;
	u64 counts[1024], displs[1024];
};

/* A call of `count` doubles (a block, where there is one a rank); v forms likewise. */
static struct sim_job job_of(struct setting *setting, const struct coll_algo *algo, u32 ranks,
			     u64 count)
{
	struct coll_call *call = &setting->job.call;
	u32 i;

	setting->job = (struct sim_job){ .algo = algo, .tuning = COLL_TUNING_UNSET };
	*call = (struct coll_call){
		.collective = algo->collective,
		.ranks = ranks,
		.root = ranks / 3,
		.type = COLL_DOUBLE,
		.reduction = COLL_SUM,
		.element = 8,
		.commutative = true,
		.count = count,
	};
	for (i = 0; i < ranks && i < 1024; i++) {
		setting->counts[i] = count;
		setting->displs[i] = i * count;
	}
	if (ranks <= 1024) {
		call->counts = call->send_counts = call->recv_counts = setting->counts;
		call->displs = call->send_displs = call->recv_displs = setting->displs;
		if (algo->collective == COLL_REDUCE_SCATTER ||
		    algo->collective == COLL_REDUCE_SCATTER_BLOCK)
			call->displs = NULL;
	}
	return setting->job;
}

static struct sim *open_job(const struct sim_job *job)
{
	struct sim *sim = NULL;
	char why[200] = "";

	if (sim_open(job, &sim, why, sizeof(why)))
		fail_msg("%s, %u ranks: %s", job->algo->name, job->call.ranks, why);
	return sim;
}

static struct sim_outcome run_job(const struct sim_job *job, const struct sim_model *model,
				  u64 seed, enum sim_path path, sim_time *finish)
{
	struct sim *sim = open_job(job);
	struct sim_outcome outcome;

	assert_int_equal(sim_run(sim, model, seed, path, &outcome, finish), 0);
	sim_close(sim);
	return outcome;
}

static struct sim_job named(struct setting *setting, enum coll_collective collective,
			    const char *name, u32 ranks, u64 count)
{
	const struct coll_algo *algo = coll_algo_find(collective, name);

	assert_non_null(algo);
	return job_of(setting, algo, ranks, count);
}

/* ---- closed forms ----------------------------------------------------------- */

static sim_time time_of(enum coll_collective collective, const char *name, u32 ranks, u64 count,
			const struct sim_model *model)
{
	static struct setting setting;
	struct sim_job job = named(&setting, collective, name, ranks, count);
	sim_time levels, events;

	job.call.root = 0;
	events = run_job(&job, model, 1, SIM_EVENTS, NULL).finish;
	levels = run_job(&job, model, 1, SIM_ANY_PATH, NULL).finish;
	assert_int_equal(levels, events);
	return events;
}

/* The longest way from the root: a child is as many messages away as it has bits. */
static u32 tree_depth(u32 ranks)
{
	u32 most = 0, i;

	for (i = 0; i < ranks; i++)
		if ((u32)__builtin_popcount(i) > most)
			most = __builtin_popcount(i);
	return most;
}

static void any_number_of_ranks(u32 p, const struct sim_model *model)
{
	const sim_time alpha = US, beta = NS, gamma = NS / 10;

	assert_int_equal(time_of(COLL_BARRIER, "dissemination", p, 0, model),
			 log2_ceil(p) * alpha);
	assert_int_equal(time_of(COLL_BARRIER, "linear", p, 0, model), p > 1 ? 2 * alpha : 0);
	assert_int_equal(time_of(COLL_BCAST, "binomial", p, 5, model),
			 tree_depth(p) * (alpha + 40 * beta));
	assert_int_equal(time_of(COLL_BCAST, "chain", p, 1, model), (p - 1) * (alpha + 8 * beta));
	assert_int_equal(time_of(COLL_ALLREDUCE, "ring", p, p, model),
			 2 * (p - 1) * (alpha + 8 * beta) + (p - 1) * 8 * gamma);
	assert_int_equal(time_of(COLL_ALLGATHER, "ring", p, 3, model),
			 (p - 1) * (alpha + 24 * beta));
	assert_int_equal(time_of(COLL_GATHER, "linear", p, 3, model), alpha + 24 * beta);
}

static void powers_of_two(u32 p, const struct sim_model *model)
{
	const sim_time rounds = log2_floor(p), n = 8 * p, alpha = US, beta = NS, gamma = NS / 10;
	const sim_time butterfly = rounds * (alpha + n * (beta + gamma));

	assert_int_equal(time_of(COLL_BARRIER, "butterfly", p, 0, model), rounds * alpha);
	assert_int_equal(time_of(COLL_ALLREDUCE, "butterfly", p, p, model), butterfly);
	assert_int_equal(time_of(COLL_ALLREDUCE, "butterfly-redundant", p, p, model), butterfly);
	assert_int_equal(time_of(COLL_ALLREDUCE, "rabenseifner", p, p, model),
			 2 * rounds * alpha + (p - 1) * 8 * (2 * beta + gamma));
	assert_int_equal(time_of(COLL_REDUCE, "binomial", p, p, model), butterfly);
	assert_int_equal(time_of(COLL_ALLGATHER, "doubling", p, 1, model),
			 rounds * alpha + (p - 1) * 8 * beta);
}

static void times_are_those_of_the_formulas(void **state)
{
	const struct sim_model model = { .costs = SIM_COSTS(1e-6, 1e-9, 1e-10) };
	u32 p;

	(void)state;
	for (p = 2; p <= 70; p++) {
		any_number_of_ranks(p, &model);
		if (!(p & (p - 1)))
			powers_of_two(p, &model);
	}
}

/* ---- both paths --------------------------------------------------------------- */

/* Noise so frequent that every run is full of it. */
static struct sim_model noisy_model(enum sim_semantics semantics, u32 kind)
{
	struct sim_model model = { .costs = SIM_COSTS(1e-6, 1e-9, 1e-10), .semantics = semantics };

	model.os[0] = sim_periodic(9e-6, 2e-6);
	model.link = sim_poisson(1e5, 2e-6);
	model.costs.gamma = 1e-8;
	if (kind == 1) {
		model.os[0] = sim_poisson(3e4, 3e-6);
		model.os[0].model.length = COLL_NOISE_EXPONENTIAL;
		model.os[1] = sim_periodic(2e-5, 1e-6);
		model.link.model.length = COLL_NOISE_PARETO;
		model.link.model.shape = 2500;
	}
	if (kind == 2) {
		model.costs.send = 3e-7;
		model.costs.copy = 1e-9;
	}
	return model;
}

struct tally {
	u32 both, events;
};

static void compare_paths(const struct sim_job *job, const struct sim_model *model, u64 seed,
			  struct tally *tally)
{
	const u32 ranks = job->call.ranks;
	sim_time levels[ranks], events[ranks];
	struct sim *sim = open_job(job);
	struct sim_outcome one, other;
	int error = sim_run(sim, model, seed, SIM_LEVELS, &one, levels);

	assert_int_equal(sim_run(sim, model, seed, SIM_EVENTS, &other, events), 0);
	if (error)
		assert_int_equal(error, -EOPNOTSUPP);
	else if (memcmp(levels, events, sizeof(levels)) || one.finish != other.finish ||
		 one.last != other.last || one.messages != other.messages)
		fail_msg("%s %s, %u ranks, seed %llu: levels end at %lld, events at %lld; %llu and "
			 "%llu messages, T %llu",
			 coll_collective_names[job->call.collective], job->algo->name, ranks,
			 (unsigned long long)seed, one.finish, other.finish,
			 (unsigned long long)one.messages, (unsigned long long)other.messages,
			 (unsigned long long)job->tuning.redundancy);
	if (error)
		tally->events++;
	else
		tally->both++;
	sim_close(sim);
}

static void both_paths_agree_to_the_last_bit(void **state)
{
	static const u32 some[] = { 1, 2, 3, 4, 5, 7, 8, 13, 16, 24, 32 };
	static struct setting setting;
	struct tally tally = { 0 };
	const struct coll_algo *const *algo;
	u32 i, kind;

	(void)state;
	for (algo = coll_algos; *algo; algo++)
		for (i = 0; i < sizeof(some) / sizeof(*some); i++)
			for (kind = 0; kind < 6; kind++) {
				struct sim_job job = job_of(&setting, *algo, some[i], 12);
				struct sim_model model = noisy_model(kind % 2, kind / 2);

				if (coll_algo_refuses(*algo, &job.call, &job.tuning))
					job.tuning.bound = 12;
				if (!coll_algo_refuses(*algo, &job.call, &job.tuning))
					compare_paths(&job, &model, i + kind, &tally);
			}
	assert_true(tally.both > 2000);
	assert_true(tally.both > 2 * tally.events);
}

static void redundant_paths_agree(void **state)
{
	static struct setting setting;
	struct tally tally = { 0 };
	u32 ranks, t, seed;

	(void)state;
	for (ranks = 2; ranks <= 256; ranks *= 2)
		for (t = 0; t <= log2_floor(ranks); t++)
			for (seed = 0; seed < 8; seed++) {
				struct sim_model model = noisy_model(seed % 2, seed / 2 % 2);
				struct sim_job job = named(&setting, COLL_ALLREDUCE,
							   "butterfly-redundant", ranks, 2);

				job.tuning.redundancy = t;
				compare_paths(&job, &model, seed, &tally);
			}
	assert_int_equal(tally.events, 0);
}

/* ---- regular algorithms ----------------------------------------------------------- */

/* From all ranks' schedules, as from those few that regular algorithms are known by. */
static void regular_algorithms_are(void **state)
{
	static const struct {
		enum coll_collective collective;
		const char *name;
	} some[] = {
		{ COLL_BARRIER, "dissemination" },  { COLL_BARRIER, "butterfly" },
		{ COLL_ALLREDUCE, "butterfly" },    { COLL_ALLREDUCE, "butterfly-redundant" },
		{ COLL_ALLREDUCE, "ring" },	    { COLL_ALLREDUCE, "rabenseifner" },
		{ COLL_ALLGATHER, "ring" },
	};
	const struct sim_model model = noisy_model(SIM_OCCUPANCY, 0);
	static struct setting setting;
	struct coll_schedule *s[64];
	sim_time few[64], all[64];
	struct sim_outcome outcome;
	char why[100] = "";
	struct sim *sim;
	u32 i, p, r;

	(void)state;
	for (i = 0; i < sizeof(some) / sizeof(*some); i++)
		for (p = 2; p <= 64; p += p < 34 ? 1 : 30) {
			struct sim_job job = named(&setting, some[i].collective, some[i].name, p,
						   2 * p);

			run_job(&job, &model, p, SIM_EVENTS, few);
			for (r = 0; r < p; r++) {
				job.call.rank = r;
				s[r] = emit_schedule(job.algo, &job.call, &job.tuning);
			}
			if (sim_open_schedules((const struct coll_schedule *const *)s, p, &sim, why,
					       sizeof(why)))
				fail_msg("%s", why);
			assert_int_equal(sim_run(sim, &model, p, SIM_EVENTS, &outcome, all), 0);
			assert_memory_equal(few, all, p * sizeof(*few));
			sim_close(sim);
			while (r--)
				free(s[r]);
		}
}

/* ---- delays ------------------------------------------------------------------- */

/* Finish times when one rank begins late and nothing else disturbs. */
static void run_late(const struct sim_job *job, const struct sim_model *model, u32 late,
		     sim_time delay, sim_time *finish)
{
	struct sim_model delayed = *model;
	sim_time start[64] = { 0 };

	start[late] = delay;
	delayed.start = start;
	run_job(job, &delayed, 1, SIM_EVENTS, finish);
}

static void a_delay_goes_the_way_of_the_messages(void **state)
{
	const struct sim_model model = { .costs = SIM_COSTS(1e-6, 1e-9, 1e-10) };
	static struct setting setting;
	const u32 p = 64, late = 37;
	const sim_time delay = 100 * US, way = US + 8 * NS, work = 8 * NS / 10;
	sim_time finish[64];
	struct sim_job job;
	u32 r;

	(void)state;
	job = named(&setting, COLL_ALLREDUCE, "butterfly", p, 1);
	run_late(&job, &model, late, delay, finish);
	for (r = 0; r < p; r++)
		assert_int_equal(finish[r],
				 delay + __builtin_popcount(r ^ late) * way + 6 * work);
	job = named(&setting, COLL_BARRIER, "dissemination", p, 0);
	run_late(&job, &model, late, delay, finish);
	for (r = 0; r < p; r++)
		assert_int_equal(finish[r],
				 delay + __builtin_popcount((r + p - late) % p) * US);
	job = named(&setting, COLL_ALLGATHER, "ring", p, 1);
	run_late(&job, &model, late, delay, finish);
	for (r = 0; r < p; r++)
		assert_int_equal(finish[r], delay + (r == late ? 0 : (r + p - late) % p * way));
	job = named(&setting, COLL_BCAST, "binomial", p, 1);
	job.call.root = 0;
	run_late(&job, &model, late, delay, finish);
	for (r = 0; r < p; r++)	/* 37 = 100101b is a leaf */
		assert_int_equal(finish[r], r == late ? delay : __builtin_popcount(r) * way);
}

/* A class that is late is rescued one message after the others are done. */
static void redundancy_absorbs_what_comes_after_the_first_exchange(void **state)
{
	struct sim_model model = { .costs = SIM_COSTS(1e-6, 0, 1e-9) };
	static struct setting setting;
	double slowness[64];
	struct sim_job job;
	struct sim_outcome plain, rescued;
	u32 r;

	(void)state;
	for (r = 0; r < 64; r++)
		slowness[r] = r % 2 ? 1000 : 1;	/* the odd ranks crawl */
	model.slowness = slowness;
	job = named(&setting, COLL_ALLREDUCE, "butterfly", 64, 1);
	plain = run_job(&job, &model, 1, SIM_ANY_PATH, NULL);
	assert_int_equal(plain.finish, 6 * (US + 8 * US));
	job = named(&setting, COLL_ALLREDUCE, "butterfly-redundant", 64, 1);
	rescued = run_job(&job, &model, 1, SIM_ANY_PATH, NULL);
	assert_int_equal(rescued.finish, 6 * (US + 8 * NS) + US);
}

/* ---- bytes -------------------------------------------------------------------- */

static bool root_only(const struct coll_call *call)
{
	return call->collective == COLL_REDUCE || call->collective == COLL_GATHER ||
	       call->collective == COLL_GATHERV;
}

static void add_doubles(const struct coll_op *op, void *result, const void *left, const void *right)
{
	const double *a = left, *b = right;
	double *sum = result;
	u64 i;

	for (i = 0; i < op->bytes / sizeof(double); i++)
		sum[i] = a[i] + b[i];
}

/* The same schedules and inputs, in memory and in time, give the same bytes. */
static void compare_bytes(const struct sim_job *job, const struct sim_model *model, u64 seed)
{
	const u32 ranks = job->call.ranks;
	const void *in[ranks];
	void *out[ranks], *kept[ranks];
	struct coll_call call[ranks];
	struct interpret *world;
	struct sim *sim = open_job(job);
	struct sim_outcome outcome;
	u32 r, i;

	for (r = 0; r < ranks; r++) {
		call[r] = job->call;
		call[r].rank = r;
	}
	world = interpret_new(job->algo, call, ranks, &job->tuning);
	world->reduce = add_doubles;
	for (r = 0; r < ranks; r++) {
		const u64 *bytes = interpret_schedule(world, r)->buffer;
		double *values = interpret_buffer(world, r, COLL_IN);

		for (i = 0; i < bytes[COLL_IN] / 8; i++)
			values[i] = random_next(&seed) % 1000;
		if (job->call.collective == COLL_BCAST && r == job->call.root)
			for (i = 0; i < bytes[COLL_OUT] / 8; i++)
				((double *)interpret_buffer(world, r, COLL_OUT))[i] = i;
		in[r] = values;
		out[r] = malloc(bytes[COLL_OUT] + 1);
		memcpy(out[r], interpret_buffer(world, r, COLL_OUT), bytes[COLL_OUT]);
		kept[r] = interpret_buffer(world, r, COLL_OUT);
	}
	assert_int_equal(sim_run_bytes(sim, model, seed, in, out, &outcome), 0);
	if (job->algo->collective != COLL_BARRIER && interpret_run(world, seed))
		fail_msg("%s", world->error);
	for (r = 0; r < ranks; r++) {
		if ((!root_only(&job->call) || r == job->call.root) &&
		    !(job->call.collective == COLL_EXSCAN && !r) &&
		    memcmp(out[r], kept[r], interpret_schedule(world, r)->buffer[COLL_OUT]))
			fail_msg("%s %s: rank %u of %u has another result",
				 coll_collective_names[job->call.collective], job->algo->name, r,
				 ranks);
		free(out[r]);
	}
	interpret_free(world);
	sim_close(sim);
}

static void simulated_runs_prove_their_results(void **state)
{
	static const u32 some[] = { 1, 2, 5, 8, 13 };
	static struct setting setting;
	const struct coll_algo *const *algo;
	u32 i;

	(void)state;
	for (algo = coll_algos; *algo; algo++)
		for (i = 0; i < sizeof(some) / sizeof(*some); i++) {
			struct sim_job job = job_of(&setting, *algo, some[i], 26);
			struct sim_model model = noisy_model(i % 2, i % 3);

			if (coll_algo_refuses(*algo, &job.call, &job.tuning))
				job.tuning.bound = 26;
			if (!coll_algo_refuses(*algo, &job.call, &job.tuning))
				compare_bytes(&job, &model, i);
		}
}

/* ---- what every op did ------------------------------------------------------------ */

/* From the start to the last rank's end, without a gap or a jump. */
static void check_path(const struct sim_stage *path, u32 count, const struct sim_outcome *outcome)
{
	u32 i;

	assert_true(count > 0);
	assert_int_equal(path[0].begin, 0);
	assert_int_equal(path[count - 1].end, outcome->finish);
	assert_int_equal(path[count - 1].rank, outcome->last);
	for (i = 0; i < count; i++) {
		assert_true(path[i].late >= 0);
		if (i) {
			assert_int_equal(path[i].begin, path[i - 1].end);
			assert_int_equal(path[i].from, path[i - 1].rank);
		}
	}
}

static void critical_paths_have_no_gaps(void **state)
{
	static const struct {
		enum coll_collective collective;
		const char *name;
	} some[] = {
		{ COLL_ALLREDUCE, "butterfly" },    { COLL_ALLREDUCE, "butterfly-redundant" },
		{ COLL_ALLREDUCE, "ring" },	    { COLL_BCAST, "binomial" },
		{ COLL_BARRIER, "dissemination" },  { COLL_GATHER, "linear" },
		{ COLL_ALLTOALL, "pairwise" },
	};
	static struct setting setting;
	struct sim_outcome outcome;
	struct sim_stage *path;
	struct sim_log *log;
	u32 i, seed, count;

	(void)state;
	for (i = 0; i < sizeof(some) / sizeof(*some); i++)
		for (seed = 0; seed < 10; seed++) {
			struct sim_model model = noisy_model(seed % 2, seed % 3);
			struct sim_job job =
				named(&setting, some[i].collective, some[i].name, 16, 8);
			struct sim *sim = open_job(&job);

			if (seed > 5)
				model.costs.recv = 2e-7;
			if (seed > 7)
				model.costs.nic = 1e-8;
			if (seed > 8)
				model.costs.eager = 8;
			assert_int_equal(sim_run_logged(sim, &model, seed, &outcome, &log), 0);
			assert_int_equal(sim_log_path(log, &path, &count), 0);
			check_path(path, count, &outcome);
			free(path);
			sim_log_free(log);
			sim_close(sim);
		}
}

/* ---- links -------------------------------------------------------------------- */

/* Rank i of `pairs` sends `bytes * (i + 1 or 1)` to rank i + 32. */
static struct sim *open_pairs(struct coll_schedule **s, u32 pairs, u64 bytes, bool growing)
{
	char why[100] = "";
	struct sim *sim = NULL;
	u32 r;

	for (r = 0; r < 64; r++) {
		struct coll_build b;
		void *memory = malloc(4096);
		const u64 n = bytes * (growing ? r % 32 + 1 : 1);

		coll_build_init(&b, memory, 4096, r, 64);
		coll_build_buffers(&b, 64 * bytes, 64 * bytes);
		if (r % 32 < pairs && r < 32)
			coll_emit_send(&b, r + 32, COLL_ADDRESS(COLL_IN, 0), n);
		else if (r % 32 < pairs)
			coll_emit_recv(&b, r - 32, COLL_ADDRESS(COLL_OUT, 0), n);
		assert_int_equal(coll_build_finish(&b, &s[r]), 0);
	}
	if (sim_open_schedules((const struct coll_schedule *const *)s, 64, &sim, why, sizeof(why)))
		fail_msg("%s", why);
	return sim;
}

static void pairs_across(u32 pairs, u64 bytes, bool growing, const struct sim_network *network,
			 sim_time *finish)
{
	const struct sim_model model = { .costs = SIM_COSTS(0, 0, 0), .network = network };
	struct coll_schedule *s[64];
	struct sim *sim = open_pairs(s, pairs, bytes, growing);
	struct sim_outcome outcome;
	u32 r;

	assert_int_equal(sim_run(sim, &model, 1, SIM_LEVELS, &outcome, finish), -EOPNOTSUPP);
	assert_int_equal(sim_run(sim, &model, 1, SIM_ANY_PATH, &outcome, finish), 0);
	sim_close(sim);
	for (r = 0; r < 64; r++)
		free(s[r]);
}

static struct sim_network two_clusters(u32 *area, struct sim_link *link, struct sim_link wan)
{
	u32 r;

	for (r = 0; r < 64; r++)
		area[r] = r / 32;
	link[0] = link[3] = (struct sim_link){ .alpha = 1e-6, .beta = wan.beta };
	link[1] = link[2] = wan;
	return (struct sim_network){ .areas = 2, .area = area, .link = link };
}

/* Ends of 10 Gbit/s, a trunk of 10 Gbit/s, 10.002 ms: SimGrid's max-min sharing. */
static void flows_share_a_trunk_as_in_simgrid(void **state)
{
	static const struct {
		u32 pairs;
		sim_time us;
	} equal[] = { { 1, 11002 }, { 4, 14002 }, { 16, 26002 }, { 32, 42002 } };
	static const sim_time growing[] = { 14002, 17002, 19002, 20002 };
	struct sim_network network;
	struct sim_link link[4];
	u32 area[64], i, r;
	sim_time finish[64];

	(void)state;
	network = two_clusters(area, link, (struct sim_link){ .alpha = 10.002e-3, .beta = 0.8e-9,
							      .trunk = 0.8e-9 });
	for (i = 0; i < 4; i++) {
		pairs_across(equal[i].pairs, 1250000, false, &network, finish);
		for (r = 0; r < equal[i].pairs; r++)
			assert_true(llabs(finish[32 + r] - equal[i].us * US) <= NS);
	}
	pairs_across(4, 1250000, true, &network, finish);
	for (r = 0; r < 4; r++)
		assert_true(llabs(finish[32 + r] - growing[r] * US) <= NS);
}

/* Seconds to bring 32 pieces across, so many at a time, each at the speed of its NIC. */
static double seconds_across(u32 at_once, double loss)
{
	struct sim_trunk trunk;
	u64 name;
	u32 left = 32 - at_once, i;

	trunk_init(&trunk, 8e-9, 0.8e-9, loss);
	for (i = 0; i < at_once; i++)
		assert_int_equal(trunk_add(&trunk, (struct sim_flow){ 1e6, 0, i }), 0);
	while (trunk_next(&trunk) != SIM_NEVER)
		if (trunk_step(&trunk, &name) && left) {
			left--;
			assert_int_equal(
				trunk_add(&trunk, (struct sim_flow){ 1e6, trunk.now, name }), 0);
		}
	trunk_free(&trunk);
	return sim_seconds(trunk.now);
}

/* Paper 2: 8 of 1, 2, 4, 8, 16, 32 links are best for 10 Gbit/s and NICs of 1 Gbit/s. */
static void congestion_has_its_optimum_at_8(void **state)
{
	u32 n;

	(void)state;
	for (n = 1; n <= 32; n *= 2)
		if (n != 8)
			assert_true(seconds_across(8, SIM_TCP_LOSS) <
				    seconds_across(n, SIM_TCP_LOSS));
	assert_true(seconds_across(16, 0.41) < seconds_across(8, 0.41));
	assert_true(seconds_across(16, 0.43) > seconds_across(8, 0.43));
	/* Without congestion n is what counts: 32 / n pieces one after the other. */
	for (n = 1; n <= 8; n *= 2)
		assert_true(fabs(seconds_across(n, 1) - 32.0 / n * 8e-3) < 1e-9);
}

/* ---- LogGOPSim ------------------------------------------------------------------ */

/* Its parameters are whole: a message of s bytes costs (s - 1) G there. */
static void noiseless_times_are_loggopsims(void **state)
{
	static const struct {
		u32 ranks;
		sim_time ns;
	} dissemination[] = { { 1024, 55420 }, { 4096, 66504 }, { 16384, 77588 }, { 65536, 88672 },
			      { 262144, 99756 } },
	  butterfly[] = { { 1024, 25070 }, { 4096, 30084 }, { 16384, 35098 }, { 65536, 40112 } },
	  ring[] = { { 8, 11086964 }, { 16, 11961300 }, { 64, 13078548 } };
	struct sim_model model = { .costs = { .alpha = 2542e-9, .send = 1500e-9, .recv = 1500e-9,
					      .gap = 1000e-9, .eager = SIM_ALWAYS_EAGER } };
	static struct setting setting;
	struct sim_job job;
	u32 i;

	(void)state;
	for (i = 0; i < 5; i++) {
		job = named(&setting, COLL_BARRIER, "dissemination", dissemination[i].ranks, 0);
		if (i < 3)
			assert_int_equal(run_job(&job, &model, 1, SIM_EVENTS, NULL).finish,
					 dissemination[i].ns * NS);
		model.costs.gap = 0;	/* it never matters here, and has no levels */
		assert_int_equal(run_job(&job, &model, 1, SIM_LEVELS, NULL).finish,
				 dissemination[i].ns * NS);
		model.costs.gap = 1000e-9;
	}
	for (i = 0; i < 3; i++) {
		const u64 part = (1 << 20) / ring[i].ranks;

		model.costs.alpha = 2500e-9 - 6e-9;
		model.costs.beta = 6e-9;
		job = named(&setting, COLL_ALLREDUCE, "ring", ring[i].ranks, (1 << 20) / 8);
		job.tuning.segment = part;
		assert_int_equal(run_job(&job, &model, 1, SIM_EVENTS, NULL).finish,
				 ring[i].ns * NS);
	}
	model.costs = (struct sim_costs){ .alpha = 1e-6, .beta = 0.875e-9, .gamma = 62.5e-9,
					  .send = 500e-9, .recv = 500e-9,
					  .eager = SIM_ALWAYS_EAGER };
	for (i = 0; i < 4; i++) {
		job = named(&setting, COLL_ALLREDUCE, "butterfly", butterfly[i].ranks, 1);
		assert_int_equal(run_job(&job, &model, 1, SIM_ANY_PATH, NULL).finish,
				 butterfly[i].ns * NS);
	}
}

struct spread {
	double mean, deviation;	/* of the mean */
};

static struct spread spread_of(const struct sim_job *job, const struct sim_model *model, u64 seed,
			       u32 runs)
{
	struct sim *sim = open_job(job);
	struct sim_outcome outcome[runs];
	struct spread spread = { 0 };
	double squares = 0;
	u32 i;

	assert_int_equal(sim_repeat(sim, model, seed, runs, 2, SIM_ANY_PATH, outcome, NULL, NULL),
			 0);
	for (i = 0; i < runs; i++)
		spread.mean += sim_seconds(outcome[i].finish) / runs;
	for (i = 0; i < runs; i++)
		squares += pow(sim_seconds(outcome[i].finish) - spread.mean, 2);
	spread.deviation = sqrt(squares / (runs - 1) / runs);
	sim_close(sim);
	return spread;
}

/* Butterfly, 60 seeds there and here. */
static void noisy_times_are_loggopsims(void **state)
{
	static const struct {
		double period, duration;
		u32 ranks;
		double mean, same;	/* ns; same: of 20 seeds */
	} table[] = {
		{ 1e-3, 25e-6, 16, 20719, 10794 },     { 1e-3, 25e-6, 64, 41064, 15808 },
		{ 1e-3, 25e-6, 256, 67857, 20822 },    { 1e-3, 25e-6, 1024, 93422, 25836 },
		{ 1e-2, 250e-6, 64, 190520, 23153 },   { 1e-2, 250e-6, 256, 450952, 28167 },
		{ 1e-2, 250e-6, 1024, 624904, 33181 }, { 1e-1, 2.5e-3, 64, 1702970, 96598 },
		{ 1e-1, 2.5e-3, 256, 4208883, 101612 },
	};
	struct sim_model model = {
		.costs = { .alpha = 1e-6, .beta = 0.875e-9, .gamma = 62.5e-9, .send = 500e-9,
			   .recv = 500e-9, .eager = SIM_ALWAYS_EAGER },
		.semantics = SIM_GOAL,
	};
	static struct setting setting;
	struct spread here;
	struct sim_job job;
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(table) / sizeof(*table); i++) {
		job = named(&setting, COLL_ALLREDUCE, "butterfly", table[i].ranks, 1);
		model.os[0] = sim_periodic(table[i].period, table[i].duration);
		here = spread_of(&job, &model, 5, 60);
		if (fabs(here.mean - table[i].mean * 1e-9) > 4 * M_SQRT2 * here.deviation)
			fail_msg("%u ranks, %g us every %g ms: %g instead of %g us", table[i].ranks,
				 table[i].duration * 1e6, table[i].period * 1e3, here.mean * 1e6,
				 table[i].mean / 1e3);
		model.os[0].model.phase = COLL_NOISE_SAME;
		here = spread_of(&job, &model, 5, 80);
		if (fabs(here.mean - table[i].same * 1e-9) > 4 * sqrt(1 + 80 / 20) * here.deviation)
			fail_msg("%u ranks, the same noise: %g instead of %g us", table[i].ranks,
				 here.mean * 1e6, table[i].same / 1e3);
	}
}

/* ---- paper 1 ----------------------------------------------------------------------- */

static struct sim_model paper_model(double alpha, double period)
{
	struct sim_model model = { .costs = SIM_COSTS(alpha, 1e-9, 1e-10) };

	model.os[0] = sim_periodic(period, period / 100);
	model.link = sim_poisson(1 / period, period / 100);
	return model;
}

static double mean_of(const char *name, u32 ranks, u64 redundancy, const struct sim_model *model,
		      u32 runs)
{
	static struct setting setting;
	struct sim_job job = named(&setting, COLL_ALLREDUCE, name, ranks, 1);

	job.tuning.redundancy = redundancy;
	return spread_of(&job, model, redundancy, runs).mean;
}

/* Mean by the least over T, as in the paper. */
static double proposed(u32 ranks, const struct sim_model *model, u32 runs)
{
	double least = INFINITY, mean;
	u32 t;

	for (t = 1; t <= log2_floor(ranks); t++) {
		mean = mean_of("butterfly-redundant", ranks, t, model, runs);
		if (mean < least)
			least = mean;
	}
	return least;
}

/* What an independent program found for paper 1, within the statistics of 30 runs. */
static void paper_1_comes_out(void **state)
{
	const bool little = getenv("COLL_TEST_LITTLE");
	const u32 runs = little ? 10 : 30, large = little ? 1 << 13 : 1 << 15;
	struct sim_model model = paper_model(1e-7, 1e-3), none = { .costs = model.costs };
	double mean;

	(void)state;
	mean = mean_of("butterfly", 1 << 12, COLL_UNSET, &model, runs);
	assert_true(mean / mean_of("butterfly", 1 << 12, COLL_UNSET, &none, 2) > 7);
	assert_true(mean / mean_of("butterfly", 1 << 12, COLL_UNSET, &none, 2) < 16);
	assert_true(mean / proposed(1 << 12, &model, runs) > 6);
	if (!little) {
		mean = mean_of("butterfly", large, COLL_UNSET, &model, runs);
		assert_true(mean / mean_of("butterfly-redundant", large, 8, &model, runs) < 3);
		assert_true(mean / mean_of("butterfly-redundant", large, 8, &model, runs) > 1.5);
	}
	model = paper_model(1e-6, 1e-3);
	none.costs = model.costs;
	mean = mean_of("butterfly", 1 << 12, COLL_UNSET, &model, runs) /
	       mean_of("butterfly", 1 << 12, COLL_UNSET, &none, 2);
	assert_true(mean > 2 && mean < 4);
	model = paper_model(1e-7, 1e-2);
	none.costs = model.costs;
	mean = mean_of("butterfly", 1 << (little ? 13 : 17), COLL_UNSET, &model, little ? 10 : 5) /
	       mean_of("butterfly", 1 << (little ? 13 : 17), COLL_UNSET, &none, 2);
	assert_true(mean > (little ? 20 : 85) && mean < 140);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_those_of_the_formulas),
		cmocka_unit_test(both_paths_agree_to_the_last_bit),
		cmocka_unit_test(redundant_paths_agree),
		cmocka_unit_test(regular_algorithms_are),
		cmocka_unit_test(a_delay_goes_the_way_of_the_messages),
		cmocka_unit_test(redundancy_absorbs_what_comes_after_the_first_exchange),
		cmocka_unit_test(simulated_runs_prove_their_results),
		cmocka_unit_test(critical_paths_have_no_gaps),
		cmocka_unit_test(flows_share_a_trunk_as_in_simgrid),
		cmocka_unit_test(congestion_has_its_optimum_at_8),
		cmocka_unit_test(noiseless_times_are_loggopsims),
		cmocka_unit_test(noisy_times_are_loggopsims),
		cmocka_unit_test(paper_1_comes_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
