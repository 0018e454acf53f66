// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The kernel thread of a process computes in the cgroups of this process: what it takes
 * counts there, and the limit of the cgroup is its limit.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/build.h"
#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

#define CGROUP "/sys/fs/cgroup/half"

enum { BYTES = 1 << 20, OPS = 4000, COMPUTE_MS = 2000, QUOTA_PERCENT = 20 };

static u64 memory[1 << 17];

/* Computes until it is killed or the run ends at its deadline: 0. */
static int compute(void)
{
	struct coll_device_setup setup = {
		.version = COLL_DEVICE_VERSION, .words = 1, .cpu = COLL_NONE,
	};
	struct coll_device_group group = { .rank = 0, .ranks = 2 };
	const u64 in = COLL_ADDRESS(COLL_IN, 0), out = COLL_ADDRESS(COLL_OUT, 0);
	struct offload o = { .ranks = 2, .fd = open("/dev/coll", O_RDWR | O_CLOEXEC) };
	struct coll_schedule *s;
	struct coll_build b;
	u32 op = COLL_NONE;
	long schedule;
	int i;

	if (vm_write(CGROUP "/cgroup.procs", "0") ||
	    offload_do(o.fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)))
		return 1;
	o.group = offload_do(o.fd, COLL_DEVICE_GROUP, &group, sizeof(group));
	coll_build_init(&b, memory, sizeof(memory), 0, 2);
	coll_build_reduction(&b, COLL_FP16, COLL_SUM, 0);
	coll_build_buffers(&b, BYTES, BYTES);
	for (i = 0; i < OPS; i++) {
		coll_emit_after(&b, op);
		op = coll_emit_reduce(&b, out, out, in, BYTES);
	}
	if (coll_build_finish(&b, &s))
		return 2;
	schedule = offload_load(&o, s, 7);
	if (schedule < 0 || offload_run(&o, schedule, calloc(1, BYTES), calloc(1, BYTES), 0,
					offload_now() + COMPUTE_MS * 1000000ull))
		return 3;
	return offload_wait(&o, 0) == -ETIMEDOUT ? 0 : 4;
}

/* From 6.18 on who has used up the quota waits where it returns to user space. */
static bool throttles_kernel_threads(void)
{
	struct utsname kernel;
	int version = 0, series = 0;

	uname(&kernel);
	sscanf(kernel.release, "%d.%d", &version, &series);
	return version < 6 || (version == 6 && series < 18);
}

int main(void)
{
	char quota[32];
	long long used, before = vm_now();
	double seconds;
	int status = -1;
	pid_t child;

	vm_write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
	mkdir(CGROUP, 0755);
	snprintf(quota, sizeof(quota), "%d 100000", QUOTA_PERCENT * 1000);
	if (vm_write(CGROUP "/cpu.max", quota)) {
		vm_skip("the cgroup's CPU time", "this kernel has no cpu.max");
		return vm_end();
	}
	fflush(stdout);
	child = fork();
	if (!child)
		_exit(compute());
	waitpid(child, &status, 0);
	seconds = (vm_now() - before) / 1e9;
	vm_is(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0, "a reduction for two seconds");
	used = vm_number(CGROUP "/cpu.stat", "usage_usec ");
	vm_note("%.2f of %.2f s of CPU time, throttled %lld times", used / 1e6, seconds,
		vm_number(CGROUP "/cpu.stat", "nr_throttled "));
	vm_ok(used > 0.5 * QUOTA_PERCENT / 100 * COMPUTE_MS * 1000, "counts in its cgroup");
	if (throttles_kernel_threads())
		vm_ok(vm_number(CGROUP "/cpu.stat", "nr_throttled ") > 0 &&
		      used < 2e6 * QUOTA_PERCENT / 100 * seconds, "and is throttled there");
	else
		vm_skip("and is throttled there", "from Linux 6.18 on no kernel thread is, those of vhost neither");
	vm_ok(VM_COMES(!rmdir(CGROUP)), "the thread is gone with its file, and the cgroup goes");
	return vm_end();
}
