// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Ranks that share a node: against a small model of its own, which keeps one list of all that is to
 * come and takes the first of it; against the NIC of each rank; and the bytes that must pass a NIC.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "algo/common/levels.h"
#include "algo/common/runs.h"
#include "tests/lib/schedules.h"
#include "tests/unit/sim_job.h"

enum { RANKS = 256 };

/* ---- topologies ------------------------------------------------------------------- */

struct topology {
	u32 node[RANKS], domain[RANKS];
	struct coll_levels levels;
	struct sim_nodes nodes;
	void *memory;
};

static const struct coll_level_cost inside[COLL_LEVEL_CLUSTER] = {
	[COLL_LEVEL_DOMAIN] = { .alpha = 0.2e-6, .overhead = 0, .beta = 0.05e-9 },
	[COLL_LEVEL_NODE] = { .alpha = 0.3e-6, .overhead = 0, .beta = 0.1e-9 },
};

/* Runs as option levels has them, or with `dealt` nodes rank i on node i mod `dealt`. */
static void topology_make(struct topology *t, const char *runs, u32 dealt, u32 ranks)
{
	const u32 *of[COLL_LEVELS_MAX] = { [COLL_LEVEL_NODE] = t->node };
	u32 i, nodes = 0;

	if (runs) {
		assert_true(coll_runs_read_levels(runs, t->node, t->domain, ranks));
		of[COLL_LEVEL_DOMAIN] = strchr(runs, '/') ? t->domain : NULL;
	}
	for (i = 0; i < ranks; i++) {
		t->node[i] = runs ? t->node[i] : i % dealt;
		nodes = t->node[i] >= nodes ? t->node[i] + 1 : nodes;
	}
	t->nodes = (struct sim_nodes){
		.nodes = nodes, .node = t->node, .domain = of[COLL_LEVEL_DOMAIN],
	};
	memcpy(t->nodes.inside, inside, sizeof(inside));
	t->memory = malloc(coll_levels_bytes(ranks));
	coll_levels_make(of, ranks, t->memory, &t->levels);
}

static void job_place(struct sim_job *job, const struct topology *t)
{
	job->call.level = t->levels.count ? t->levels.level : NULL;
	job->call.levels = t->levels.count;
}

/* ---- the small model: messages and waits, no CPU time ------------------------------------- */

enum small_kind { SMALL_LAND, SMALL_DONE, SMALL_LEAVE };

struct small_event {
	sim_time time;
	enum small_kind kind;
	u32 rank, op;
};

struct small {
	struct coll_schedule *const *s;
	const struct sim_model *model;
	u32 ranks, *left[RANKS];	/* waits of each op; of a receive one more */
	sim_time out[RANKS], in[RANKS], finish[RANKS];
	struct small_event *event;
	u32 events, capacity;
};

static void small_add(struct small *m, sim_time time, enum small_kind kind, u32 rank, u32 op)
{
	if (m->events == m->capacity) {
		m->capacity = 2 * m->capacity + 64;
		m->event = realloc(m->event, m->capacity * sizeof(*m->event));
	}
	m->event[m->events++] = (struct small_event){ time, kind, rank, op };
}

static struct small_event small_first(struct small *m)
{
	struct small_event first;
	u32 best = 0, i;

	for (i = 1; i < m->events; i++) {
		const struct small_event *a = &m->event[i], *b = &m->event[best];

		if (a->time != b->time ? a->time < b->time :
		    a->kind != b->kind ? a->kind < b->kind :
		    a->rank != b->rank ? a->rank < b->rank : a->op < b->op)
			best = i;
	}
	first = m->event[best];
	m->event[best] = m->event[--m->events];
	return first;
}

static sim_time small_time(double seconds)
{
	return (sim_time)(seconds * SIM_SECOND + 0.5);
}

/* The k-th send from one rank to another is the receive of slot k there. */
static u32 small_receive(const struct small *m, u32 from, u32 to, u32 slot)
{
	const struct coll_schedule *s = m->s[to];
	u32 i;

	for (i = 0; i < s->ops; i++)
		if (coll_ops(s)[i].kind == COLL_OP_RECV && coll_op_rank(s, &coll_ops(s)[i]) == from &&
		    coll_ops(s)[i].slot == slot)
			return i;
	fail_msg("no receive");
	return 0;
}

/* Once less to wait for: a send's message goes to the NIC, or through memory. */
static void small_ready(struct small *m, sim_time now, u32 rank, u32 op)
{
	const struct sim_nodes *n = m->model->nodes;
	const struct coll_op *o = &coll_ops(m->s[rank])[op];
	u32 to;

	if (--m->left[rank][op])
		return;
	small_add(m, now, SMALL_DONE, rank, op);
	if (o->kind != COLL_OP_SEND)
		return;
	to = coll_op_rank(m->s[rank], o);
	if (n->node[rank] != n->node[to]) {
		small_add(m, now, SMALL_LEAVE, rank, op);
	} else {
		const struct coll_level_cost *cost =
			&n->inside[n->domain && n->domain[rank] == n->domain[to] ?
				   COLL_LEVEL_DOMAIN : COLL_LEVEL_NODE];

		small_add(m, now + small_time(cost->alpha + o->bytes * cost->beta), SMALL_DONE,
			  to, small_receive(m, rank, to, o->slot) | 1u << 31);
	}
}

static void small_done(struct small *m, const struct small_event *e)
{
	const struct coll_schedule *s = m->s[e->rank];
	u32 i, k;

	if (e->op >> 31) {	/* its message is there */
		small_ready(m, e->time, e->rank, e->op & ~(1u << 31));
		return;
	}
	if (m->finish[e->rank] < e->time)
		m->finish[e->rank] = e->time;
	for (i = e->op + 1; i < s->ops; i++)
		for (k = 0; k < coll_ops(s)[i].waits; k++)
			if (coll_waits(s)[coll_ops(s)[i].wait + k] == e->op)
				small_ready(m, e->time, e->rank, i);
}

static void small_pass(struct small *m, const struct small_event *e)
{
	const struct sim_costs *c = &m->model->costs;
	const struct coll_op *o = &coll_ops(m->s[e->rank])[e->op];
	const sim_time busy = small_time(c->gap + o->bytes * c->nic);
	const u32 node = m->model->nodes->node[e->rank];
	sim_time time = e->time;
	u32 to;

	if (e->kind == SMALL_LAND) {
		time = time > m->in[node] + busy ? time : m->in[node] + busy;
		m->in[node] = time;
		small_add(m, time, SMALL_DONE, e->rank, e->op | 1u << 31);
		return;
	}
	time = time > m->out[node] ? time : m->out[node];
	m->out[node] = time + busy;
	to = coll_op_rank(m->s[e->rank], o);
	small_add(m, time + small_time(c->alpha + o->bytes * c->beta), SMALL_LAND, to,
		  small_receive(m, e->rank, to, o->slot));
}

static void small_run(struct small *m)
{
	u32 rank, i;

	for (rank = 0; rank < m->ranks; rank++) {
		const struct coll_schedule *s = m->s[rank];

		m->left[rank] = malloc((s->ops + 1) * sizeof(u32));
		m->out[rank] = m->in[rank] = -SIM_SECOND;
		for (i = 0; i < s->ops; i++) {
			const struct coll_op *o = &coll_ops(s)[i];

			assert_false(o->flags & (COLL_OPTIONAL | COLL_WAIT_ANY));
			m->left[rank][i] = o->waits + (o->kind == COLL_OP_RECV) + 1;
		}
	}
	for (rank = 0; rank < m->ranks; rank++)
		for (i = 0; i < m->s[rank]->ops; i++)
			small_ready(m, 0, rank, i);
	while (m->events) {
		const struct small_event first = small_first(m);

		if (first.kind == SMALL_DONE)
			small_done(m, &first);
		else
			small_pass(m, &first);
	}
	for (rank = 0; rank < m->ranks; rank++)
		free(m->left[rank]);
	free(m->event);
}

/* ---- against it ------------------------------------------------------------------------ */

static struct coll_schedule **emit_all(const struct sim_job *job)
{
	struct coll_schedule **s = malloc(job->call.ranks * sizeof(*s));
	struct coll_call call = job->call;

	for (call.rank = 0; call.rank < call.ranks; call.rank++)
		s[call.rank] = emit_schedule(job->algo, &call, &job->tuning);
	return s;
}

static void compare_with_small(const struct sim_job *job, const struct sim_model *model)
{
	const u32 ranks = job->call.ranks;
	struct small m = { .s = emit_all(job), .model = model, .ranks = ranks };
	sim_time finish[RANKS];
	u32 rank;

	small_run(&m);
	job_run(job, model, 1, SIM_EVENTS, finish);
	for (rank = 0; rank < ranks; rank++)
		if (finish[rank] != m.finish[rank])
			fail_msg("%s %s, %u ranks of %llu elements: rank %u at %lld, expected %lld",
				 coll_collective_names[job->call.collective], job->algo->name, ranks,
				 (unsigned long long)job->call.count, rank,
				 (long long)finish[rank], (long long)m.finish[rank]);
	schedules_free((struct coll_schedule **)m.s, ranks);
}

static const struct named {
	enum coll_collective collective;
	const char *name;
} named[] = {
	{ COLL_BARRIER, "leader" },	{ COLL_BARRIER, "lanes" },	{ COLL_BCAST, "leader" },	{ COLL_BCAST, "lanes" },
	{ COLL_ALLREDUCE, "leader" },	{ COLL_ALLREDUCE, "lanes" },	{ COLL_ALLREDUCE, "ring" },
	{ COLL_ALLREDUCE, "butterfly" }, { COLL_ALLGATHER, "leader" },	{ COLL_ALLTOALL, "lanes" },
	{ COLL_ALLTOALL, "pairwise" },	{ COLL_GATHER, "linear" },	{ COLL_SCAN, "lanes" },
};

static void nodes_agree_with_a_small_model(void **state)
{
	static const struct {
		const char *runs;
		u32 dealt, ranks;
	} shapes[] = {
		{ "4+4+4", 0, 12 }, { "1+6+3", 0, 10 }, { NULL, 3, 11 },
		{ "8+8/4+4+4+4", 0, 16 }, { "1+", 0, 7 }, { "5", 0, 5 },
	};
	static struct job_setting setting;
	struct sim_model model = { .costs = SIM_COSTS(1e-6, 1e-9, 0) };
	u32 i, k, count;

	(void)state;
	model.costs.gap = 0.1e-6;
	model.costs.nic = 1e-9;
	for (i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		struct topology t;

		topology_make(&t, shapes[i].runs, shapes[i].dealt, shapes[i].ranks);
		model.nodes = &t.nodes;
		for (k = 0; k < sizeof(named) / sizeof(*named); k++)
			for (count = 1; count <= 8192; count += 8191) {
				struct sim_job job = job_named(&setting, named[k].collective,
							       named[k].name, shapes[i].ranks, count);

				job_place(&job, &t);
				if (!coll_algo_refuses(job.algo, &job.call, &job.tuning))
					compare_with_small(&job, &model);
			}
		free(t.memory);
	}
}

/* With a rank a node its NIC is that of the rank, also under noise. */
static void a_node_of_one_rank_is_a_rank(void **state)
{
	static struct job_setting setting;
	struct sim_model model = noisy_model(SIM_OCCUPANCY, 2);
	sim_time with[32], without[32];
	struct topology t;
	u32 k;

	(void)state;
	model.costs.gap = 0.2e-6;
	model.costs.nic = 1e-9;
	topology_make(&t, "1+", 0, 32);
	for (k = 0; k < sizeof(named) / sizeof(*named); k++) {
		const struct sim_job job = job_named(&setting, named[k].collective, named[k].name, 32,
						     100);

		if (coll_algo_refuses(job.algo, &job.call, &job.tuning))
			continue;
		model.nodes = NULL;
		job_run(&job, &model, k, SIM_ANY_PATH, without);
		model.nodes = &t.nodes;
		job_run(&job, &model, k, SIM_ANY_PATH, with);
		assert_memory_equal(with, without, sizeof(with));
	}
	free(t.memory);
}

/* Long vectors: 2 n (N - 1) / N both ways, and no run is shorter than these bytes. */
static void a_nic_carries_the_least(void **state)
{
	static struct job_setting setting;
	struct sim_model model = { .costs = SIM_COSTS(1e-6, 1e-9, 0) };
	const u64 count = 1 << 20, bytes = 2 * count * 8 * 7 / 8;
	struct sim_outcome lanes, flat;
	struct topology t;
	struct sim_job job;

	(void)state;
	model.costs.nic = 1e-9;
	topology_make(&t, "8+", 0, 64);
	model.nodes = &t.nodes;
	job = job_named(&setting, COLL_ALLREDUCE, "lanes", 64, count);
	job_place(&job, &t);
	job.tuning.segment = count * 8;
	lanes = job_run(&job, &model, 1, SIM_ANY_PATH, NULL);
	assert_int_equal(lanes.nic_sent, bytes);
	assert_int_equal(lanes.nic_received, bytes);
	assert_true(sim_seconds(lanes.finish) >= bytes * 1e-9);
	assert_true(sim_seconds(lanes.finish) < 1.5 * bytes * 1e-9);
	job = job_named(&setting, COLL_ALLREDUCE, "butterfly", 64, count);
	flat = job_run(&job, &model, 1, SIM_ANY_PATH, NULL);
	assert_true(flat.nic_sent > 2 * bytes);
	assert_true(flat.finish > 2 * lanes.finish);
	free(t.memory);
}

/* A message that waits for its receive: its sender is done when it has arrived. */
static void rendezvous_passes_the_nic(void **state)
{
	static struct job_setting setting;
	struct sim_model model = { .costs = SIM_COSTS(1e-6, 1e-9, 0) };
	sim_time finish[4];
	struct topology t;
	struct sim_job job;

	(void)state;
	topology_make(&t, "2+2", 0, 4);
	model.nodes = &t.nodes;
	model.costs.eager = 100;
	job = job_named(&setting, COLL_BCAST, "linear", 4, 1000);
	job.call.root = 0;
	model.costs.nic = 1e-9;
	job_run(&job, &model, 1, SIM_ANY_PATH, finish);
	/* To rank 1: 0.3 us there and back and there, and 8000 * 0.1 ns. To 2, and then 3: 1 us each. */
	assert_int_equal(finish[1], 1700 * NS);
	assert_int_equal(finish[2], 11000 * NS);
	assert_int_equal(finish[3], 19000 * NS);
	assert_int_equal(finish[0], 19000 * NS);
	free(t.memory);
	topology_make(&t, "2+", 0, 2);
	job = job_named(&setting, COLL_BCAST, "linear", 2, 1000);
	job.call.root = 0;
	job_run(&job, &model, 1, SIM_ANY_PATH, finish);
	assert_int_equal(finish[1], 1700 * NS);
	assert_int_equal(finish[0], 1700 * NS);
	free(t.memory);
}

/* ---- few schedules for all -------------------------------------------------------------- */

static void compare_few_with_all(const struct sim_job *job, const struct sim_model *model)
{
	const u32 ranks = job->call.ranks;
	struct coll_schedule **s = emit_all(job);
	struct sim *few = job_open(job), *all = NULL;
	sim_time by_few[RANKS], by_all[RANKS];
	struct sim_outcome outcome;
	struct sim_size size;
	char why[100] = "";

	assert_int_equal(sim_open_schedules((const struct coll_schedule *const *)s, ranks, &all, why,
					    sizeof(why)), 0);
	assert_int_equal(sim_run(few, model, 3, SIM_EVENTS, &outcome, by_few), 0);
	assert_int_equal(sim_run(all, model, 3, SIM_EVENTS, &outcome, by_all), 0);
	assert_memory_equal(by_few, by_all, ranks * sizeof(*by_few));
	sim_size(few, &size);
	assert_true(size.shapes <= 16);
	sim_close(few);
	sim_close(all);
	schedules_free(s, ranks);
}

static void even_nodes_are_predicted_from_few_schedules(void **state)
{
	static const char *const shapes[] = { "4+", "8+", "16+/4+", "3+3+3+3", "12+/4+", "8+/2+" };
	static const u32 ranks[] = { 256, 64, 128, 12, 96, 256 };
	static struct job_setting setting;
	struct sim_model model = noisy_model(SIM_OCCUPANCY, 2);
	u32 i, k, times;

	(void)state;
	model.costs.nic = 1e-9;
	for (i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		struct topology t;

		topology_make(&t, shapes[i], 0, ranks[i]);
		model.nodes = &t.nodes;
		for (k = 0; k < sizeof(named) / sizeof(*named); k++)
			for (times = 0; times < 3; times++) {
				struct sim_job job = job_named(&setting, named[k].collective,
							       named[k].name, ranks[i],
							       times ? times * 40 * ranks[i] : 1);

				job_place(&job, &t);
				if (job.algo->regular & COLL_REGULAR_NODES)
					compare_few_with_all(&job, &model);
			}
		free(t.memory);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_agree_with_a_small_model),
		cmocka_unit_test(a_node_of_one_rank_is_a_rank),
		cmocka_unit_test(a_nic_carries_the_least),
		cmocka_unit_test(rendezvous_passes_the_nic),
		cmocka_unit_test(even_nodes_are_predicted_from_few_schedules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
