// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * IOSQE_ASYNC: a worker of the ring and an inline submission both want the device while
 * its thread is busy with a long copy. Neither waits for the other.
 */
#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/build.h"
#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

enum { BYTES = 32 << 20, COPIES = 16, TIMES = 5, PATIENCE_S = 20 };

static const int alone[OFFLOAD_RANKS_MAX] = { -1 };

static long load_copies(struct offload *o)
{
	static u64 memory[4096];
	struct coll_schedule *s;
	struct coll_build b;
	u32 last = COLL_NONE;
	int i;

	coll_build_init(&b, memory, sizeof(memory), 0, 1);
	coll_build_buffers(&b, BYTES, BYTES);
	for (i = 0; i < COPIES; i++) {
		coll_emit_after(&b, last);
		last = coll_emit_copy(&b, COLL_ADDRESS(COLL_OUT, 0), COLL_ADDRESS(COLL_IN, 0), BYTES);
	}
	return coll_build_finish(&b, &s) ? -EINVAL : offload_load(o, s, 7);
}

static void submit_wait(struct io_uring *ring, struct offload *o,
			struct coll_device_number *word, unsigned int flags)
{
	struct coll_device_command command = {
		.argument = (uintptr_t)word, .bytes = sizeof(*word),
	};
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, o->fd, NULL, 0, 0);
	sqe->cmd_op = COLL_DEVICE_WAIT;
	sqe->flags |= flags;
	memcpy(sqe->cmd, &command, sizeof(command));
	io_uring_submit(ring);
}

static int completion(struct io_uring *ring)
{
	struct __kernel_timespec limit = { .tv_sec = PATIENCE_S };
	struct io_uring_cqe *cqe;
	int result = io_uring_wait_cqe_timeout(ring, &cqe, &limit);

	if (result)
		return result;
	result = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return result;
}

int main(void)
{
	struct coll_device_number next = { .number = 0 }, wrong = { .number = OFFLOAD_WORDS };
	void *in = calloc(1, BYTES), *out = calloc(1, BYTES);
	struct io_uring ring;
	struct offload o;
	long schedule;
	int i, bad = 0;

	vm_is(coll_offload_open(&o, 0, 1, alone), 0, "a rank of its own");
	schedule = load_copies(&o);
	vm_ok(schedule >= 0 && !io_uring_queue_init(8, &ring, 0), "long copies, and a ring");
	for (i = 0; i < TIMES && !bad; i++) {
		next.number = i + 1;	/* no run has set this word yet */
		bad = offload_run(&o, schedule, in, out, 0, 0);
		vm_sleep_ms(10);		/* the thread copies, under the device's lock */
		submit_wait(&ring, &o, &next, IOSQE_ASYNC);
		vm_sleep_ms(20);		/* a worker waits for the lock */
		submit_wait(&ring, &o, &next, 0);
		bad = bad ?: offload_run(&o, schedule, in, out, next.number, 0);
		bad = bad ?: completion(&ring) ?: completion(&ring);
	}
	vm_is(bad, 0, "both waits complete, each time");
	submit_wait(&ring, &o, &wrong, IOSQE_ASYNC);
	vm_is(completion(&ring), -EINVAL, "a wait of a worker is refused");
	submit_wait(&ring, &o, &wrong, 0);
	vm_is(completion(&ring), -EINVAL, "and one inline");
	io_uring_queue_exit(&ring);
	close(o.fd);
	free(in);
	free(out);
	return vm_end();
}
