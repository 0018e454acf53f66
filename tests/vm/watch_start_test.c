// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The first watch changes the kernel's code at many places, for each of which all CPUs are waited for. A worker does,
 * and who asks sleeps: colld paces itself by its CPU time. Here a process computes on the other CPU, so the emulator is
 * slow to have that interrupted; what the host takes from this machine meanwhile is in both times, so some tries.
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ask.h"
#include "vm.h"

enum { TRIES = 3 };

static uint64_t cpu_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static pid_t computes_on(int cpu)
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	vm_run_on(cpu);
	for (;;)
		;
}

/* coll.ko has just been loaded. Whether most of the time that START took was no CPU time of this process. */
static bool sleeps(struct netlink *netlink)
{
	const uint64_t began = vm_now(), ran = cpu_time();
	const int error = ask_watch(netlink);
	const uint64_t took = vm_now() - began, own = cpu_time() - ran;

	vm_is(error, 0, "a first watch begins");
	vm_note("it took %.1f ms, of which who asked ran for %.1f", took * 1e-6, own * 1e-6);
	return own < took / 3;
}

int main(void)
{
	const pid_t computes = computes_on(1);
	bool slept = false;

	vm_run_on(0);
	vm_sleep_ms(100);	/* by then it does */
	for (int i = 0; i < TRIES && !slept; i++) {
		struct netlink *netlink;

		vm_is(netlink_open(&netlink), 0, "coll.ko is there");
		slept = sleeps(netlink);
		netlink_close(netlink);
		vm_is(vm_unload(), 0, "unloaded, which ends it");
		vm_is(vm_load(""), 0, "... and loaded");
	}
	vm_ok(slept, "who asks for the first watch sleeps while the kernel's code changes");
	kill(computes, SIGKILL);
	waitpid(computes, NULL, 0);
	return vm_end();
}
