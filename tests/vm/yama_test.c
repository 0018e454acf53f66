// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Ranks that are not root's under Yama: with ptrace_scope 0 they read long messages in each other, with
 * 1 to 3 they may not, and take them from the ring. The last program of the machine that could tell:
 * nothing takes 3 back. tests/vm/run -p brings `coll` along.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job.h"
#include "vm.h"

#define SCOPE "/proc/sys/kernel/yama/ptrace_scope"

enum { USER = 1000 };

/* Longer than a ring, so that it is read where it may be. Who refuses does so while it warms up. */
static const struct job job = {
	.ranks = "3", .memory = "auto", .user = USER,
	.program = { "coll", "bench", "allreduce", "--algo", "rabenseifner", "--size", "1500K",
		     "--warmup", "3", "--iterations", "4", "--counters", "--json" },
};

/* Bytes that a rank exposed in a call; -1: it does not say. */
static double exposed(void)
{
	static const char name[] = "\"exposed_bytes\": ";
	const char *at = job_said(name);

	return at ? atof(at + strlen(name)) : -1;
}

static void with_scope(int scope, uid_t user, bool reads)
{
	struct job this = job;
	char text[8];
	bool good;

	snprintf(text, sizeof(text), "%d", scope);
	if (!vm_is(vm_write(SCOPE, text), 0, "ptrace_scope is set"))
		return;
	this.user = user;
	good = vm_ok(!job_run(&this) && job_said("\"wrong\": 0"),
		     "ptrace_scope %d, user %d: results are right", scope, (int)user);
	good &= vm_ok(job_said("links: 2 through memory"), "... links through memory");
	good &= vm_ok(reads ? exposed() > 0 : !exposed(), "... messages %s: %.0f bytes exposed",
		      reads ? "are read" : "go by the ring", exposed());
	if (!good)
		job_show();
}

int main(void)
{
	if (access(SCOPE, W_OK)) {
		vm_skip("ptrace_scope", "this kernel has no Yama");
		return vm_end();
	}
	if (access("/bin/coll", X_OK)) {
		vm_skip("ptrace_scope", "no coll here");
		return vm_end();
	}
	vm_loopback_up();
	chmod("/", 0755);		/* who is not root finds /bin there */
	with_scope(0, USER, true);
	with_scope(1, USER, false);
	with_scope(2, USER, false);
	with_scope(2, 0, true);		/* root may by its capability */
	with_scope(3, USER, false);
	with_scope(3, 0, false);
	return vm_end();
}
