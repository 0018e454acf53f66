// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What a run costs: its start, and polls, sleeps, context switches and CPU time per op of
 * the kernel thread; and that it does nothing when nothing is in flight.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

enum { RUNS = 200, COUNT = 1, STARTS = 20 };

static struct coll_device_counters counters_of(struct offload *o)
{
	struct coll_device_counters counters = { 0 };

	offload_do(o->fd, COLL_DEVICE_COUNTERS, &counters, sizeof(counters));
	return counters;
}

static unsigned long long switches_in(const char *path)
{
	char text[4096], *line;
	unsigned long long sum = 0;

	if (vm_read(path, text, sizeof(text)))
		return 0;
	for (line = strstr(text, "voluntary_ctxt_switches:"); line;
	     line = strstr(line + 1, "voluntary_ctxt_switches:"))
		sum += strtoull(strchr(line, ':') + 1, NULL, 10);
	return sum;
}

/* Of the device's thread, which is named after us, so far; the involuntary ones too. */
static unsigned long long context_switches(void)
{
	char name[32], path[64];
	pid_t thread;

	snprintf(name, sizeof(name), "coll/%d\n", getpid());
	if (!vm_threads(name, &thread, 1))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/status", thread);
	return switches_in(path);
}

/* The other ranks may be at their last messages yet: one idle second of ten will do. */
static int idle(struct offload *o)
{
	struct coll_device_counters before, after;
	int tries;

	for (tries = 0; tries < 10; tries++) {
		before = counters_of(o);
		usleep(1000000);
		after = counters_of(o);
		if (after.polls == before.polls && after.sleeps == before.sleeps)
			return 0;
	}
	printf("# %llu polls, %llu sleeps in an idle second\n",
	       (unsigned long long)(after.polls - before.polls),
	       (unsigned long long)(after.sleeps - before.sleeps));
	return 1;
}

static int small_runs(u32 rank, u32 ranks, const int *links)
{
	const struct coll_algo *algo = coll_algo_find(COLL_ALLREDUCE, "butterfly");
	struct coll_device_counters before, after;
	double in = rank, out = 0;
	struct usual_call usual;
	unsigned long long switches;
	struct coll_schedule *s;
	struct offload o;
	long schedule;
	u64 start;
	int i, error = 0;

	if (coll_offload_open(&o, rank, ranks, links))
		return 1;
	usual_call(&usual, algo, ranks, COUNT, COLL_DOUBLE);
	usual.call.rank = rank;
	s = emit_schedule(algo, &usual.call, &usual.tuning);
	schedule = offload_load(&o, s, 1);
	free(s);
	switches = context_switches();
	before = counters_of(&o);
	start = offload_now();
	for (i = 0; i < RUNS && !error; i++)
		error = offload_run(&o, schedule, &in, &out, 0, 0) ?: offload_poll(&o, 0, 30);
	after = counters_of(&o);
	switches = context_switches() - switches;
	error |= !switches || out != ranks * (ranks - 1) / 2;
	if (!rank)
		printf("# %d runs of %u ranks: per run %.1f us, %.1f ops, %.1f polls, %.1f sleeps, "
		       "%.1f context switches; %.2f us of the thread's CPU an op (emulated)\n",
		       RUNS, ranks, (offload_now() - start) / 1e3 / RUNS,
		       (double)(after.ops - before.ops) / RUNS,
		       (double)(after.polls - before.polls) / RUNS,
		       (double)(after.sleeps - before.sleeps) / RUNS, (double)switches / RUNS,
		       (after.busy - before.busy) / 1e3 / (after.ops - before.ops));
	error |= idle(&o);
	coll_offload_close(&o);
	return error;
}

/* What starting costs the application, whose pages are pinned for each run. */
static void start_costs(void)
{
	static const int nobody[OFFLOAD_RANKS_MAX] = { -1 };
	static const u64 sizes[] = { 8, 64 << 10, 512 << 10, 4 << 20 };
	const struct coll_algo *algo = coll_algo_find(COLL_ALLREDUCE, "ring");
	u8 *in = calloc(2, sizes[3]), *out = in + sizes[3];
	struct offload o;
	size_t i;

	if (!vm_is(coll_offload_open(&o, 0, 1, nobody), 0, "a group of one"))
		return;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct usual_call usual;
		struct coll_schedule *s;
		u64 start, took = 0;
		long schedule;
		int run, error = 0;

		usual_call(&usual, algo, 1, sizes[i], COLL_UINT8);
		s = emit_schedule(algo, &usual.call, &usual.tuning);
		schedule = offload_load(&o, s, 1);
		free(s);
		for (run = -STARTS; run < STARTS && !error; run++) {
			start = offload_now();
			error = offload_run(&o, schedule, in, out, 0, 0);
			took += run < 0 ? 0 : offload_now() - start;
			error = error ?: offload_poll(&o, 0, 30);
		}
		vm_ok(!error, "%llu bytes: %.1f us to start (emulated)",
		      (unsigned long long)sizes[i], took / 1e3 / STARTS);
	}
	coll_offload_close(&o);
	free(in);
}

int main(void)
{
	vm_loopback_up();
	start_costs();
	vm_ok(!offload_ranks(2, small_runs, 60), "two ranks, and no turn when idle");
	vm_ok(!offload_ranks(4, small_runs, 60), "four ranks, and no turn when idle");
	return vm_end();
}
