// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Every algorithm on the kernel thread: the same bytes as the same schedules
 * stepped in one process (tests/lib/interpret.c), for integers and floats,
 * small, odd and large counts, 1 to 5 ranks; several runs in flight.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/reduce.h"
#include "tests/lib/interpret.h"
#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

enum { SEED = 20, DEADLINE_S = 60 };

static const u64 elements[] = { 0, 1, 3, 1000, 9001 };
static const u32 types[] = { COLL_INT32, COLL_DOUBLE, COLL_BF16, COLL_UINT8 };
enum { COUNTS = sizeof(elements) / sizeof(*elements), TYPES = sizeof(types) / sizeof(*types) };

static void reduce(const struct coll_op *op, void *result, const void *left, const void *right)
{
	if (op->bytes)
		coll_reduce_local(op->type, op->reduction, result, left, right, op->bytes);
}

/* Small whole numbers, so that floats are exact whatever the order. */
static void fill(void *memory, u64 bytes, u32 type, u64 *random)
{
	u64 i, each = coll_type_bytes(type);

	for (i = 0; i + each <= bytes; i += each) {
		u32 value = random_next(random) % 8;
		float f = value;
		double d = value;
		u16 half;

		switch (type) {
		case COLL_DOUBLE:
			memcpy((u8 *)memory + i, &d, 8);
			break;
		case COLL_BF16:
			memcpy(&half, (u8 *)&f + 2, 2);
			memcpy((u8 *)memory + i, &half, 2);
			break;
		default:
			memcpy((u8 *)memory + i, &value, each < 4 ? each : 4);
		}
	}
}

/* All ranks in this process: what rank `rank` should have in OUT afterwards. */
static struct interpret *expect(const struct coll_algo *algo, struct usual_call *usual, u32 ranks,
				u32 type)
{
	struct coll_call calls[OFFLOAD_RANKS_MAX];
	struct interpret *world;
	u64 random = SEED;
	u32 r;

	for (r = 0; r < ranks; r++) {
		calls[r] = usual->call;
		calls[r].rank = r;
	}
	world = interpret_new(algo, calls, ranks, &usual->tuning);
	world->reduce = reduce;
	for (r = 0; r < ranks && !*world->error; r++) {
		const struct coll_schedule *s = interpret_schedule(world, r);

		fill(interpret_buffer(world, r, COLL_IN), s->buffer[COLL_IN], type, &random);
		fill(interpret_buffer(world, r, COLL_OUT), s->buffer[COLL_OUT], type, &random);
	}
	return world;
}

static void *copy_of(const void *memory, u64 bytes)
{
	void *copy = malloc(bytes + 1);

	if (bytes)
		memcpy(copy, memory, bytes);
	return copy;
}

/* One algorithm, one size: runs it twice, polled and slept for. */
static int try_call(struct offload *o, const struct coll_algo *algo, u64 count, u32 type)
{
	struct usual_call usual;
	struct interpret *world;
	const struct coll_schedule *s;
	void *in, *out, *before;
	int error = 0, again;
	long schedule;

	if (!usual_call(&usual, algo, o->ranks, count, type))
		return 0;
	world = expect(algo, &usual, o->ranks, type);
	s = interpret_schedule(world, o->rank);
	in = copy_of(interpret_buffer(world, o->rank, COLL_IN), s->buffer[COLL_IN]);
	before = copy_of(interpret_buffer(world, o->rank, COLL_OUT), s->buffer[COLL_OUT]);
	out = malloc(s->buffer[COLL_OUT] + 1);
	if (*world->error || interpret_run(world, SEED)) {
		printf("# %s: %s\n", algo->name, world->error);
		return 1;
	}
	schedule = offload_load(o, s, count * 64 + type);
	error = schedule < 0 ? schedule : 0;
	for (again = 0; again < 2 && !error; again++) {
		memcpy(out, before, s->buffer[COLL_OUT]);
		error = offload_run(o, schedule, in, out, again, 0);
		if (!error)
			error = again ? offload_wait(o, again) : offload_poll(o, again, DEADLINE_S);
		if (!error && memcmp(out, interpret_buffer(world, o->rank, COLL_OUT),
				     s->buffer[COLL_OUT]))
			error = -EILSEQ;
	}
	if (error)
		printf("# rank %u of %u, collective %d %s, %llu of type %u: %s\n", o->rank,
		       o->ranks, algo->collective, algo->name, (unsigned long long)count, type,
		       strerror(-error));
	if (schedule >= 0) {
		struct coll_device_number number = { .number = schedule };

		offload_do(o->fd, COLL_DEVICE_UNLOAD, &number, sizeof(number));
	}
	free(in);
	free(out);
	free(before);
	interpret_free(world);
	return error != 0;
}

static int every_algorithm(u32 rank, u32 ranks, const int *links)
{
	const struct coll_algo *const *algo;
	struct offload o;
	int error = coll_offload_open(&o, rank, ranks, links), i = 0, size, failed = 0;

	if (error) {
		printf("# open: %s\n", strerror(-error));
		return 1;
	}
	/* Of the counts, each algorithm has two, others on other numbers of ranks. */
	for (algo = coll_algos; *algo && !failed; algo++)
		for (size = 0; size < 2 && !failed && !(*algo)->levels; size++, i++)
			failed = try_call(&o, *algo, elements[(i + ranks) % COUNTS],
					  types[i / 2 % TYPES]);
	coll_offload_close(&o);
	return failed;
}

/* Eight allreduces at once, the words looked at in the other order. */
static int many_in_flight(u32 rank, u32 ranks, const int *links)
{
	enum { RUNS = 8, COUNT = 5000 };
	static double in[RUNS][COUNT], out[RUNS][COUNT];
	const struct coll_algo *algo = coll_algo_find(COLL_ALLREDUCE, "ring");
	struct usual_call usual;
	struct coll_schedule *s;
	struct offload o;
	long schedule, error;
	int run, i;

	error = coll_offload_open(&o, rank, ranks, links);
	if (error || !usual_call(&usual, algo, ranks, COUNT, COLL_DOUBLE))
		return 1;
	usual.call.rank = rank;
	s = emit_schedule(algo, &usual.call, &usual.tuning);
	schedule = offload_load(&o, s, 1);
	for (run = 0; run < RUNS && !error; run++) {
		for (i = 0; i < COUNT; i++)
			in[run][i] = run * i + rank;
		error = offload_run(&o, schedule, in[run], out[run], run, 0);
	}
	for (run = RUNS - 1; run >= 0 && !error; run--) {
		error = offload_poll(&o, run, DEADLINE_S);
		for (i = 0; i < COUNT && !error; i++)
			if (out[run][i] != (double)ranks * run * i + ranks * (ranks - 1) / 2)
				error = -EILSEQ;
	}
	if (error)
		printf("# rank %u, run %d: %s\n", rank, run, strerror(-error));
	free(s);
	coll_offload_close(&o);
	return error != 0;
}

int main(void)
{
	static const u32 ranks[] = { 1, 2, 3, 5 };
	size_t i;

	vm_loopback_up();
	for (i = 0; i < sizeof(ranks) / sizeof(*ranks); i++)
		vm_ok(!offload_ranks(ranks[i], every_algorithm, 400),
		      "every algorithm on %u ranks", ranks[i]);
	vm_ok(!offload_ranks(4, many_in_flight, 60), "eight runs in flight");
	return vm_end();
}
