// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>

#include "core/reduce.h"
#include "schedules.h"

enum { ELEMENTS = 5 };

static void *schedules_must(void *memory)
{
	if (!memory) {
		fprintf(stderr, "out of memory\n");
		abort();
	}
	return memory;
}

int check_schedule(const void *schedule, u64 bytes, struct coll_refusal *refusal)
{
	void *work = schedules_must(malloc(coll_check_bytes(schedule, bytes) + 1));
	int status = coll_check(schedule, bytes, work, refusal);

	free(work);
	return status;
}

struct coll_schedule *emit_schedule(const struct coll_algo *algo, const struct coll_call *call,
				    const struct coll_tuning *tuning)
{
	struct coll_schedule *s = NULL;
	struct coll_refusal refusal;
	void *memory = NULL;
	int status = -ENOSPC;
	u64 bytes;

	for (bytes = 4096; status == -ENOSPC; bytes *= 2) {
		memory = schedules_must(realloc(memory, bytes));
		status = coll_algo_emit(algo, call, tuning, memory, bytes, &s);
	}
	if (!status)
		status = check_schedule(s, s->bytes, &refusal);
	if (status) {
		fprintf(stderr, "%s, rank %u of %u: error %d\n", algo->name, call->rank,
			call->ranks, status);
		abort();
	}
	return s;
}

bool usual_call(struct usual_call *usual, const struct coll_algo *algo, u32 ranks, u64 elements,
		u32 type)
{
	struct coll_call *call = &usual->call;
	u32 i;

	for (i = 0; i < ranks; i++) {
		usual->counts[i] = elements;
		usual->displs[i] = elements * i;
	}
	*call = (struct coll_call){
		.collective = algo->collective,
		.ranks = ranks,
		.root = ranks - 1,
		.type = type,
		.reduction = COLL_SUM,
		.element = coll_type_bytes(type),
		.commutative = true,
		.count = elements,
		.counts = usual->counts,
		.displs = usual->displs,
		.send_counts = usual->counts,
		.send_displs = usual->displs,
		.recv_counts = usual->counts,
		.recv_displs = usual->displs,
	};
	if (algo->collective == COLL_REDUCE_SCATTER ||
	    algo->collective == COLL_REDUCE_SCATTER_BLOCK)
		call->displs = NULL;	/* their blocks follow each other */
	usual->tuning = COLL_TUNING_UNSET;
	if (coll_algo_refuses(algo, call, &usual->tuning))
		usual->tuning.bound = elements;	/* an option that has no usual value */
	return !coll_algo_refuses(algo, call, &usual->tuning);
}

static u32 visit_algo(const struct coll_algo *algo, u32 ranks, visit_collective *visit,
		      void *argument)
{
	struct coll_schedule *s[USUAL_RANKS_MAX];
	struct usual_call usual;
	u32 i;

	if (!usual_call(&usual, algo, ranks, ELEMENTS, COLL_FLOAT))
		return 0;
	for (i = 0; i < ranks; i++) {
		usual.call.rank = i;
		s[i] = emit_schedule(algo, &usual.call, &usual.tuning);
	}
	visit(algo->name, s, ranks, argument);
	for (i = 0; i < ranks; i++)
		free(s[i]);
	return 1;
}

u32 each_collective(u32 most, visit_collective *visit, void *argument)
{
	const struct coll_algo *const *algo;
	u32 ranks, visited = 0;

	for (algo = coll_algos; *algo; algo++)	/* calls here have no levels */
		for (ranks = 1; !(*algo)->levels && ranks <= most && ranks <= USUAL_RANKS_MAX;
		     ranks++)
			visited += visit_algo(*algo, ranks, visit, argument);
	return visited;
}

u32 step_through(const struct coll_schedule *s, bool *finished)
{
	struct coll_plan plan;
	struct coll_step step;
	void *plan_memory = schedules_must(malloc(coll_plan_bytes(s)));
	void *step_memory;
	u32 op, started = 0;

	coll_plan_init(&plan, s, plan_memory);
	step_memory = schedules_must(malloc(coll_step_bytes(&plan) + 1));
	coll_step_init(&step, &plan, step_memory);
	while ((op = coll_step_next(&step)) != COLL_NONE) {
		coll_step_done(&step, op);
		started++;
	}
	*finished = coll_step_finished(&step);
	free(step_memory);
	free(plan_memory);
	return started;
}

u64 random_next(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}
