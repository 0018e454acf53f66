// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A deadline that is shortened while the kernel thread goes to sleep: the thread still
 * polls, for 1 ms, and has looked at the former deadline.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/build.h"
#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

enum { TIMES = 20, PATIENCE_S = 5 };

static long load_receive(struct offload *o)
{
	static u64 memory[4096];
	struct coll_schedule *s;
	struct coll_build b;

	coll_build_init(&b, memory, sizeof(memory), 0, 2);
	coll_emit_recv(&b, 1, COLL_ADDRESS(COLL_OUT, 0), 0);
	return coll_build_finish(&b, &s) ? -EINVAL : offload_load(o, s, 7);
}

/* Rank 1 has no link and sends nothing: the deadline ends the run, -ETIMEDOUT. */
static int shortened(unsigned int after_us)
{
	struct coll_device_deadline asked = { 0 };
	struct offload o;
	long schedule;
	int status;

	if (offload_open_alone(&o, 1, COLL_DEVICE_SPIN_MAX, COLL_NONE))
		return -ENODEV;
	schedule = load_receive(&o);
	if (schedule < 0 || offload_run(&o, schedule, NULL, NULL, 0, 0))
		return -EINVAL;
	for (u64 until = offload_now() + after_us * 1000ull; offload_now() < until;)
		;
	asked.group = o.group;
	asked.deadline = offload_now() + 10000000;
	offload_do(o.fd, COLL_DEVICE_DEADLINE, &asked, sizeof(asked));
	status = offload_poll(&o, 0, PATIENCE_S);
	munmap(o.shared, 4096);
	close(o.fd);
	return status;
}

int main(void)
{
	int i, late = 0, status = -ETIMEDOUT;

	for (i = 0; i < TIMES && status == -ETIMEDOUT; i++) {
		status = shortened(i * 60);
		late += status == -ETIME;
	}
	vm_is(late, 0, "deadlines that were noticed too late");
	vm_is(status, -ETIMEDOUT, "each run ends at its new deadline");
	return vm_end();
}
