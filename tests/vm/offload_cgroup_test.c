// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The thread of a process computes in the cgroups of this process: what it takes
 * counts there, and the limit of the cgroup is its limit.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "offload.h"
#include "vm.h"

#define CGROUP "/sys/fs/cgroup/half"

enum { COMPUTE_MS = 2000, QUOTA_PERCENT = 20 };

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
		_exit(vm_write(CGROUP "/cgroup.procs", "0") ? 1 : offload_compute(COMPUTE_MS));
	waitpid(child, &status, 0);
	seconds = (vm_now() - before) / 1e9;
	vm_is(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0, "a reduction for two seconds");
	used = vm_number(CGROUP "/cpu.stat", "usage_usec ");
	vm_note("%.2f of %.2f s of CPU time, throttled %lld times", used / 1e6, seconds,
		vm_number(CGROUP "/cpu.stat", "nr_throttled "));
	vm_ok(used > 0.5 * QUOTA_PERCENT / 100 * COMPUTE_MS * 1000, "counts in its cgroup");
	vm_ok(vm_number(CGROUP "/cpu.stat", "nr_throttled ") > 0 &&
	      used < 2e6 * QUOTA_PERCENT / 100 * seconds, "and is throttled there");
	vm_ok(VM_COMES(!rmdir(CGROUP)), "the thread is gone with its file, and the cgroup goes");
	return vm_end();
}
