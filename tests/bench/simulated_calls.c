// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/log.h"
#include "sim/machine.h"
#include "simulated_calls.h"

enum { BASE_NS = 1000000000 }; /* of virtual time 0: a rank's clock has no time 0 */

void bench_fail(const char *what, const char *why)
{
	fprintf(stderr, "online_choice: %s: %s\n", what, why);
	exit(1);
}

static void *bench_allocate(size_t count, size_t bytes)
{
	void *memory = calloc(count, bytes);

	if (!memory)
		bench_fail("memory", strerror(ENOMEM));
	return memory;
}

/* ---- a simulated call --------------------------------------------------------- */

struct coll_call bench_call(const struct bench *b)
{
	return (struct coll_call){
		.collective = COLL_ALLREDUCE,
		.ranks = b->ranks,
		.type = COLL_DOUBLE,
		.reduction = COLL_SUM,
		.element = BYTES,
		.commutative = true,
		.count = 1,
	};
}

/* Those that a butterfly has: each as likely. */
static void exchanges_draw(const struct bench *b, u64 seed, struct exchange *exchange)
{
	u64 state = seed;
	u32 i, rank;

	for (i = 0; i < b->kept; i++) {
		rank = bench_random(&state) % b->ranks;
		exchange[i].rank[0] = rank;
		exchange[i].rank[1] = rank ^ 1u << bench_random(&state) % b->exchanges;
	}
}

static sim_time rank_awake(const struct sim_machine *machine, u32 rank, sim_time time)
{
	return noise_end(&machine->os, rank, time, 0);
}

/* How much of the time between noise took. */
static sim_time noise_between(const struct sim_machine *machine, u32 rank, sim_time from,
			      sim_time until)
{
	sim_time sum = 0;

	while (machine->os.sources && from < until) {
		const struct sim_noise_event event = noise_next(&machine->os, rank, from);
		const sim_time begin = event.start > from ? event.start : from;

		from = event.start + event.duration;
		if (begin < until)
			sum += (from < until ? from : until) - begin;
	}
	return sum;
}

/* When what the op waits for was there. */
static sim_time op_ready(const struct sim_log *log, u32 rank, const struct coll_schedule *s,
			 const struct coll_op *op)
{
	const bool any = op->flags & COLL_WAIT_ANY;
	sim_time ready = any && op->waits ? SIM_NEVER : 0;
	u32 i;

	for (i = 0; i < op->waits; i++) {
		const sim_time end = log_span(log, rank, coll_waits(s)[op->wait + i])->end;

		if (any ? end < ready : end > ready)
			ready = end;
	}
	return ready;
}

static uint64_t in_ns(sim_time time)
{
	return BASE_NS + time / 1000;
}

static void half_receives(const struct sim_log *log, const struct sim_machine *machine, u32 rank,
			  const struct coll_schedule *s, u32 op, struct half *half)
{
	const struct sim_span *span = log_span(log, rank, op);
	sim_time posted = op_ready(log, rank, s, &coll_ops(s)[op]), arrived;

	if (span->there == SIM_NEVER || posted == SIM_NEVER)
		return;
	posted = rank_awake(machine, rank, posted);
	arrived = span->end != SIM_NEVER ? span->end : rank_awake(machine, rank, span->there);
	if (arrived < posted)
		arrived = posted;
	half->posted = in_ns(posted);
	half->arrived = in_ns(arrived);
	half->waited = span->there > posted;
	half->held = noise_between(machine, rank, posted, arrived) / 1000;
}

/* The first message to the peer, and the first from it. */
static void half_read(const struct sim_log *log, const struct sim_machine *machine, u32 rank,
		      u32 peer, struct half *half)
{
	const struct sim_class *class = &log->program->class[program_class_of(log->program, rank)];
	const struct coll_schedule *s = class->schedule;
	u32 i;

	for (i = 0; i < s->ops; i++) {
		const struct coll_op *op = &coll_ops(s)[i];

		if ((op->kind != COLL_OP_SEND && op->kind != COLL_OP_RECV) || op->slot ||
		    program_peer_rank(log->program, &class->peer[i], rank) != peer)
			continue;
		if (op->kind == COLL_OP_RECV)
			half_receives(log, machine, rank, s, i, half);
		else if (log_span(log, rank, i)->begin != SIM_NEVER)
			half->sent =
				in_ns(rank_awake(machine, rank, log_span(log, rank, i)->begin));
	}
}

static void measured_read(const struct bench *b, const struct sim_log *log, enum kind kind,
			  u64 seed, struct measured *measured)
{
	struct sim_machine machine;
	u32 i;
	int k;

	machine_init(&machine, &b->model[kind], seed);
	for (i = 0; i < b->kept; i++)
		for (k = 0; k < 2; k++)
			half_read(log, &machine, measured->exchange[i].rank[k],
				  measured->exchange[i].rank[!k], &measured->exchange[i].half[k]);
}

static void measured_watch(const struct bench *b, const struct measured *measured, bool watch)
{
	u32 i;

	for (i = 0; i < b->kept; i++)
		b->watched[measured->exchange[i].rank[0]] =
			b->watched[measured->exchange[i].rank[1]] = watch;
}

static void simulate_call(const struct bench *b, struct sim *sim, enum kind kind, u64 seed,
			  struct measured *measured)
{
	struct sim_outcome outcome;
	struct sim_log *log;
	int error;

	measured->exchange = bench_allocate(b->kept, sizeof(*measured->exchange));
	exchanges_draw(b, seed, measured->exchange);
	measured_watch(b, measured, true);
	error = sim_run_watched(sim, &b->model[kind], seed, b->watched, &outcome, &log);
	if (error)
		bench_fail("a simulated call", strerror(-error));
	measured_read(b, log, kind, seed, measured);
	measured_watch(b, measured, false);
	measured->seconds = sim_seconds(outcome.finish);
	sim_log_free(log);
}

/* ---- choices ------------------------------------------------------------------- */

const struct measured *choice_runs(const struct bench *b, struct choice *c, enum kind kind)
{
	const struct sim_job job = { c->algo, bench_call(b), c->tuning };
	char why[200] = "";
	struct sim *sim;
	u32 i;

	if (c->run[kind])
		return c->run[kind];
	if (sim_open(&job, &sim, why, sizeof(why)))
		bench_fail(c->algo->name, why);
	c->run[kind] = bench_allocate(b->runs[kind], sizeof(*c->run[kind]));
	for (i = 0; i < b->runs[kind]; i++) {
		simulate_call(b, sim, kind, sim_seed(7, i), &c->run[kind][i]);
		c->mean[kind] += c->run[kind][i].seconds / b->runs[kind];
	}
	sim_close(sim);
	return c->run[kind];
}

u32 choice_of(struct bench *b, const struct coll_algo *algo, const struct coll_tuning *tuning)
{
	u32 i;

	for (i = 0; i < b->choices; i++)
		if (b->choice[i].algo == algo &&
		    !memcmp(&b->choice[i].tuning, tuning, sizeof(*tuning)))
			return i;
	if (b->choices == CHOICES_MAX)
		bench_fail("choices", "there are more than 64");
	b->choice[b->choices] = (struct choice){ .algo = algo, .tuning = *tuning };
	return b->choices++;
}
