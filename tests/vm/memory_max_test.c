// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Ranks in a cgroup whose memory.max has little more than they need over TCP: none is killed for
 * the memory that it would share, and results are right. tests/vm/run -p brings `coll` along.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job.h"
#include "vm.h"

#define CGROUP "/sys/fs/cgroup/little"

static struct job job = {
	.ranks = "6", .cgroup = CGROUP,
	.program = { "coll", "bench", "alltoall", "--size", "64K", "--iterations", "10", "--json" },
};

static void runs(const char *memory, const char *links, const char *what)
{
	const long long killed = vm_number(CGROUP "/memory.events", "oom_kill ");
	bool good;

	job.memory = memory;
	good = vm_ok(!job_run(&job) && job_said("\"wrong\": 0"), "%s: results are right", what);
	good &= vm_is(vm_number(CGROUP "/memory.events", "oom_kill "), killed, "... nobody is killed");
	good &= vm_ok(job_said(links), "... %s", links);
	if (!good)
		job_show();
	vm_ok(VM_COMES(!vm_number(CGROUP "/cgroup.events", "populated ")), "... and nobody is left");
}

int main(void)
{
	char limit[32];
	long long peak;

	vm_write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	mkdir(CGROUP, 0755);
	if (access(CGROUP "/memory.peak", R_OK) || access("/bin/coll", X_OK)) {
		vm_skip("memory.max", access("/bin/coll", X_OK) ? "no coll here" :
								   "this kernel has no memory.peak");
		rmdir(CGROUP);
		return vm_end();
	}
	vm_loopback_up();
	runs("auto", "links: 5 through memory", "without a limit");
	rmdir(CGROUP);			/* another one, for its peak */
	mkdir(CGROUP, 0755);
	runs("off", "over TCP", "over TCP");
	peak = vm_number(CGROUP "/memory.peak", "");
	vm_note("%lld KiB at most", peak >> 10);
	snprintf(limit, sizeof(limit), "%lld", peak + peak / 8);
	vm_is(vm_write(CGROUP "/memory.max", limit), 0, "an eighth more is the limit");
	runs("auto", "(the cgroup's memory)", "with memory");
	vm_ok(VM_COMES(!rmdir(CGROUP)), "the cgroup goes");
	return vm_end();
}
