// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Reductions that take seconds: their process is killed at once, deadlines hold, other
 * commands are answered, and the results are right although they are computed in parts.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/build.h"
#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

#define MS 1000000ull

enum {
	BYTES = 1 << 20, OPS = 4000, SHORT_OPS = 20,
	KILLS = 5, KILL_MS = 60,	/* the emulator takes ten times as long as a machine */
	DEADLINE_MS = 100, LATE_MS = 400, PATIENCE_S = 60,
};

static u64 memory[1 << 17];

static void close_alone(struct offload *o)
{
	munmap(o->shared, 4096);
	close(o->fd);
}

/* out = in, then `ops` times out += in. */
static long load_sums(struct offload *o, int ops, u32 type)
{
	const u64 in = COLL_ADDRESS(COLL_IN, 0), out = COLL_ADDRESS(COLL_OUT, 0);
	struct coll_schedule *s;
	struct coll_build b;
	u32 op;
	int i;

	coll_build_init(&b, memory, sizeof(memory), 0, 2);
	coll_build_reduction(&b, type, COLL_SUM, 0);
	coll_build_buffers(&b, BYTES, BYTES);
	op = coll_emit_copy(&b, out, in, BYTES);
	for (i = 0; i < ops; i++) {
		coll_emit_after(&b, op);
		op = coll_emit_reduce(&b, out, out, in, BYTES);
	}
	return coll_build_finish(&b, &s) ? -EINVAL : offload_load(o, s, 7);
}

static int start_sums(struct offload *o, int ops, u32 type, void **in, void **out, u64 deadline)
{
	long schedule;

	*in = aligned_alloc(4096, BYTES);
	*out = aligned_alloc(4096, BYTES);
	memset(*in, 1, BYTES);
	if (offload_open_alone(o, 2, 0))
		return -ENODEV;
	schedule = load_sums(o, ops, type);
	return schedule < 0 ? (int)schedule : offload_run(o, schedule, *in, *out, 0, deadline);
}

/* ---- right ----------------------------------------------------------------------------- */

static void in_parts(void)
{
	struct offload o;
	uint32_t *in, *out;
	size_t i, wrong = 0;

	vm_is(start_sums(&o, SHORT_OPS, COLL_UINT32, (void **)&in, (void **)&out, 0), 0,
	      "twenty sums, one after the other");
	vm_is(offload_poll(&o, 0, PATIENCE_S), 0, "end");
	for (i = 0; i < BYTES / sizeof(*out); i++)
		wrong += out[i] != in[i] * (1 + SHORT_OPS);
	vm_is(wrong, 0, "with the right result");
	close_alone(&o);
}

/* ---- killed ------------------------------------------------------------------------------ */

static void compute_for_long(int tell)
{
	void *in, *out;
	struct offload o;
	char error = start_sums(&o, OPS, COLL_FP16, &in, &out, 0);

	if (write(tell, &error, 1) == 1)
		pause();
	_exit(1);
}

/* How long the process lives after its kill, in ns; 0: it did not start. */
static u64 kill_one(void)
{
	int hear[2];
	pid_t child;
	char error = 1;
	u64 killed;

	if (pipe(hear))
		return 0;
	child = fork();
	if (!child)
		compute_for_long(hear[1]);
	if (read(hear[0], &error, 1) != 1 || error)
		return 0;
	vm_sleep_ms(50);
	killed = vm_now();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(hear[0]);
	close(hear[1]);
	return vm_now() - killed;
}

static void killed_at_once(void)
{
	u64 took, least = ~0ull, most = 0;
	int i;

	for (i = 0; i < KILLS; i++) {
		took = kill_one();
		least = took < least ? took : least;
		most = took > most ? took : most;
	}
	vm_note("a killed process is gone after %.1f to %.1f ms", least / 1e6, most / 1e6);
	vm_ok(least > 0 && most < 10 * KILL_MS * MS && least < KILL_MS * MS,
	      "a process that is killed in a long reduction is gone at once");
}

/* ---- deadlines, other commands ------------------------------------------------------------- */

static void deadline_holds(void)
{
	struct coll_device_counters counters;
	struct offload o;
	void *in, *out;
	u64 start = vm_now(), asked, took, most = 0;
	int i;

	vm_is(start_sums(&o, OPS, COLL_FP16, &in, &out, offload_now() + 20 * DEADLINE_MS * MS), 0,
	      "a long reduction with a deadline");
	for (i = 0; i < 10; i++) {
		asked = vm_now();
		offload_do(o.fd, COLL_DEVICE_COUNTERS, &counters, sizeof(counters));
		took = vm_now() - asked;
		most = took > most ? took : most;
		vm_sleep_ms(10);
	}
	vm_note("a command takes at most %.1f ms", most / 1e6);
	vm_ok(most < LATE_MS * MS, "other commands are answered meanwhile");
	vm_is(offload_poll(&o, 0, PATIENCE_S), -ETIMEDOUT, "it ends with its deadline");
	took = vm_now() - start;
	vm_note("after %.0f ms, of %d", took / 1e6, 20 * DEADLINE_MS);
	vm_ok(took < (20 * DEADLINE_MS + LATE_MS) * MS, "which is noticed in time");
	close_alone(&o);
}

int main(void)
{
	in_parts();
	killed_at_once();
	deadline_holds();
	return vm_end();
}
