// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A hostile or confused program: wrong arguments of each command, wrong sockets,
 * buffers that are not there. Clear errnos, and a clean log.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

static const int alone[OFFLOAD_RANKS_MAX] = { -1 };

static struct coll_schedule *sum_schedule(u32 rank, u32 ranks, u64 count)
{
	const struct coll_algo *algo = coll_algo_find(COLL_ALLREDUCE, "butterfly-redundant");
	struct usual_call usual;

	usual_call(&usual, algo, ranks, count, COLL_FLOAT);
	usual.call.rank = rank;
	return emit_schedule(algo, &usual.call, &usual.tuning);
}

static void before_setup(void)
{
	struct coll_device_setup setup = { .version = 99, .words = 1, .cpu = COLL_NONE };
	struct coll_device_group group = { .ranks = 1 };
	int fd = open("/dev/coll", O_RDWR);

	vm_is(offload_do(fd, COLL_DEVICE_GROUP, &group, sizeof(group)), -ENODEV,
	      "a command before SETUP");
	vm_ok(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == ENODEV,
	      "shared memory before SETUP");
	vm_is(offload_do(fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)), -EPROTONOSUPPORT,
	      "another version");
	setup.version = COLL_DEVICE_VERSION;
	setup.words = 0;
	vm_is(offload_do(fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)), -EINVAL, "no words");
	setup.words = COLL_DEVICE_WORDS_MAX + 1;
	vm_is(offload_do(fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)), -EINVAL, "too many words");
	setup.words = 1;
	setup.cpu = 4000;
	vm_is(offload_do(fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)), -ENXIO, "no such CPU");
	setup.cpu = COLL_NONE;
	setup.policy = 7;
	vm_is(offload_do(fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)), -EINVAL, "no such policy");
	setup.policy = COLL_DEVICE_FIFO;
	setup.priority = 100;
	vm_is(offload_do(fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)), -EINVAL,
	      "no such priority");
	setup.priority = 0;
	setup.policy = COLL_DEVICE_NORMAL;
	setup.spin = COLL_DEVICE_SPIN_MAX + 1;
	vm_is(offload_do(fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)), -EINVAL, "too long a spin");
	setup.spin = 0;
	vm_is(offload_do(fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)), 0,
	      "and at last a right one");
	vm_is(offload_do(fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)), -EBUSY, "only once");
	close(fd);
}

/* What a user without privileges may not. */
static void unprivileged(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct coll_device_setup setup = { .version = COLL_DEVICE_VERSION, .words = 1,
						   .cpu = COLL_NONE, .priority = 10,
						   .policy = COLL_DEVICE_FIFO };
		int fd = open("/dev/coll", O_RDWR), bad = 0;

		vm_run_on(0);
		if (setuid(1000))
			_exit(9);
		bad |= offload_do(fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)) != -EPERM;
		setup.policy = COLL_DEVICE_NORMAL;
		setup.priority = -5;
		bad |= (offload_do(fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)) != -EPERM) << 1;
		setup.priority = 0;
		setup.cpu = 1;
		bad |= (offload_do(fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)) != -EPERM) << 2;
		setup.cpu = 0;
		bad |= (offload_do(fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)) != 0) << 3;
		_exit(bad);
	}
	waitpid(child, &status, 0);
	vm_is(WEXITSTATUS(status), 0,
	      "a user gets no FIFO, no negative nice, no CPU but its own, and else a thread");
}

/* Of a user whose process comes after all others: how often it gets a thread that does not. */
static int leave_idle(void)
{
	static const int nices[] = { 0, 19 };
	const struct sched_param none = { 0 };
	struct coll_device_setup setup = { .version = COLL_DEVICE_VERSION, .words = 1,
					   .cpu = COLL_NONE };
	int fd = open("/dev/coll", O_RDWR), got = 0;

	if (sched_setscheduler(0, SCHED_IDLE, &none) || setuid(1000))
		return 9;
	for (int i = 0; i < 2; i++) {
		setup.priority = nices[i];
		got += offload_do(fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)) != -EPERM;
	}
	return got;
}

static void unprivileged_idle(void)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(leave_idle());
	waitpid(child, &status, 0);
	vm_is(WEXITSTATUS(status), 0, "nor, from SCHED_IDLE, any thread");
}

static void each_command(struct offload *o)
{
	static const u32 ops[] = {
		COLL_DEVICE_BUFFER, COLL_DEVICE_BUFFER_FREE, COLL_DEVICE_GROUP,
		COLL_DEVICE_GROUP_FREE, COLL_DEVICE_ATTACH, COLL_DEVICE_LOAD, COLL_DEVICE_UNLOAD,
		COLL_DEVICE_RUN, COLL_DEVICE_WAIT, COLL_DEVICE_FAIL, COLL_DEVICE_CONTROL_SEND,
		COLL_DEVICE_CONTROL_GET, COLL_DEVICE_COUNTERS, COLL_DEVICE_DETACH,
		COLL_DEVICE_DEADLINE,
	};
	struct coll_device_command command = { .argument = 16, .bytes = 1 };
	u8 ones[256];
	size_t i;
	bool sizes = true, addresses = true, values = true;

	memset(ones, 0xff, sizeof(ones));
	for (i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		u32 bytes;

		sizes &= ioctl(o->fd, ops[i], &command) == -1 && errno == EINVAL;
		for (bytes = 4; bytes < sizeof(ones); bytes += 4) {
			struct coll_device_command far = { .argument = 1ull << 62, .bytes = bytes };
			bool its_size = ioctl(o->fd, ops[i], &far) == -1 && errno != EINVAL;

			if (!its_size)
				continue;
			addresses &= errno == EFAULT;
			values &= offload_do(o->fd, ops[i], ones, bytes) < 0 ||
				  ops[i] == COLL_DEVICE_COUNTERS;
		}
	}
	vm_ok(sizes, "each command refuses another size");
	vm_ok(addresses, "each command refuses an address that is none");
	vm_ok(values, "each command refuses numbers that are none");
	vm_is(offload_do(o->fd, COLL_DEVICE_OP(77), ones, 8), -EOPNOTSUPP, "command 77");
	vm_is(offload_do(o->fd, 0x1234, ones, 8), -EOPNOTSUPP, "another device's command");
	vm_is(ioctl(o->fd, COLL_DEVICE_COUNTERS, (void *)8) == -1 ? -errno : 0, -EFAULT,
	      "a command that is not there");
}

static long link_to(struct offload *o, u32 group, u32 rank, int fd)
{
	struct coll_device_link link = { .group = group, .rank = rank, .fd = fd };

	return offload_do(o->fd, COLL_DEVICE_ATTACH, &link, sizeof(link));
}

static void wrong_sockets(struct offload *o)
{
	struct coll_device_group asked = { .rank = 0, .ranks = 3 };
	int links[OFFLOAD_RANKS_MAX][OFFLOAD_RANKS_MAX], pair[2], file, udp, unconnected;
	long group;

	asked.rank = 3;
	vm_is(offload_do(o->fd, COLL_DEVICE_GROUP, &asked, sizeof(asked)), -EINVAL,
	      "rank 3 of 3");
	asked.rank = 0;
	group = offload_do(o->fd, COLL_DEVICE_GROUP, &asked, sizeof(asked));
	file = open("/dev/null", O_RDWR);
	udp = socket(AF_INET, SOCK_DGRAM, 0);
	unconnected = socket(AF_INET, SOCK_STREAM, 0);
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	vm_is(link_to(o, group, 1, 999), -EBADF, "a link without a file");
	vm_is(link_to(o, group, 1, file), -ENOTSOCK, "over a file");
	vm_is(link_to(o, group, 1, o->fd), -ENOTSOCK, "over the device itself");
	vm_is(link_to(o, group, 1, udp), -EPROTONOSUPPORT, "over UDP");
	vm_is(link_to(o, group, 1, pair[0]), -EPROTONOSUPPORT, "over a Unix socket");
	vm_is(link_to(o, group, 1, unconnected), -ENOTCONN, "over an unconnected socket");
	offload_connect(links, 2);
	vm_is(link_to(o, group, 0, links[0][1]), -EINVAL, "to the rank itself");
	vm_is(link_to(o, group, 3, links[0][1]), -EINVAL, "to rank 3 of 3");
	vm_is(link_to(o, 99, 1, links[0][1]), -ENOENT, "of a group that is none");
	vm_is(link_to(o, group, 1, links[0][1]), 0, "and at last a right one");
	vm_is(link_to(o, group, 1, links[1][0]), -EEXIST, "only once");
	close(file);
	close(udp);
	close(unconnected);
	close(pair[0]);
	close(pair[1]);
	close(links[0][1]);
	close(links[1][0]);
}

static void wrong_runs(struct offload *o)
{
	struct coll_schedule *s = sum_schedule(0, 1, 4096);
	long schedule = offload_load(o, s, 1);
	static float in[4096], out[4096];
	struct coll_device_buffer small = { .address = (uintptr_t)out, .bytes = 100 };
	struct coll_device_run run;
	long buffer;

	vm_is(offload_run(o, schedule, NULL, out, 0, 0), -EFAULT, "IN is not there");
	vm_is(offload_run(o, schedule, in, (void *)(1ull << 62), 0, 0), -EFAULT,
	      "OUT is the kernel's");
	vm_is(offload_run(o, schedule, in, (void *)wrong_sockets, 0, 0), -EFAULT,
	      "OUT is read-only");
	vm_is(offload_run(o, schedule, in, out, OFFLOAD_WORDS, 0), -EINVAL, "no such word");
	vm_is(offload_run(o, schedule + 1, in, out, 0, 0), -ENOENT, "no such schedule");
	o->next_run -= 5;
	vm_is(offload_run(o, schedule, in, out, 0, 0), -ESTALE, "a run number out of turn");
	o->next_run += 5;
	buffer = offload_do(o->fd, COLL_DEVICE_BUFFER, &small, sizeof(small));
	vm_ok(buffer >= 0, "a buffer is pinned");
	run = (struct coll_device_run){
		.schedule = schedule, .number = o->next_run, .flags = COLL_DEVICE_QUIET,
		.in = { .address = 0, .buffer = buffer },
		.out = { .address = (uintptr_t)out, .buffer = COLL_NONE },
	};
	vm_is(offload_do(o->fd, COLL_DEVICE_RUN, &run, sizeof(run)), -ERANGE,
	      "a pinned buffer that is too small");
	run.in = run.out;
	run.out = (struct coll_device_place){ .address = 0, .buffer = buffer };
	vm_is(offload_do(o->fd, COLL_DEVICE_RUN, &run, sizeof(run)), -ERANGE, "for OUT as well");
	run.out = run.in;
	run.flags = 2;
	vm_is(offload_do(o->fd, COLL_DEVICE_RUN, &run, sizeof(run)), -EINVAL, "an unknown flag");
	vm_is(offload_run(o, schedule, in, out, 0, 0), 0, "and at last a right one");
	vm_is(offload_poll(o, 0, 10), 0, "which ends well");
	free(s);
}

/* RLIMIT_MEMLOCK holds for a user, and all of it is given back. */
static void locked_memory(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		const struct rlimit limit = { 1 << 20, 1 << 20 };
		struct coll_device_setup setup = { .version = COLL_DEVICE_VERSION, .words = 1,
						   .cpu = COLL_NONE };
		struct coll_device_buffer buffer = { .bytes = 900 << 10, .writable = 1 };
		int fd = open("/dev/coll", O_RDWR), i, bad;
		long first = 0, number;

		buffer.address = (uintptr_t)malloc(buffer.bytes);
		setrlimit(RLIMIT_MEMLOCK, &limit);
		bad = setuid(1000) || offload_do(fd, COLL_DEVICE_SETUP, &setup, sizeof(setup));
		for (i = 0; i < 50 && !bad; i++) {
			struct coll_device_number free_it;

			number = offload_do(fd, COLL_DEVICE_BUFFER, &buffer, sizeof(buffer));
			bad |= number < 0;
			bad |= (offload_do(fd, COLL_DEVICE_BUFFER, &buffer, sizeof(buffer)) !=
				-ENOMEM) << 1;
			free_it = (struct coll_device_number){ .number = number };
			bad |= (offload_do(fd, COLL_DEVICE_BUFFER_FREE, &free_it,
					   sizeof(free_it)) != 0) << 2;
			first += number;
		}
		_exit(bad);
	}
	waitpid(child, &status, 0);
	vm_is(WEXITSTATUS(status), 0, "RLIMIT_MEMLOCK holds, and what is freed counts no more");
}

/* A child that inherited the file: may not use it, and its end ends nothing. */
static void inherited(struct offload *o)
{
	struct coll_device_counters counters;
	pid_t child = fork();
	int status;

	if (!child)
		_exit(offload_do(o->fd, COLL_DEVICE_COUNTERS, &counters, sizeof(counters)) !=
		      -EPERM);
	waitpid(child, &status, 0);
	vm_is(WEXITSTATUS(status), 0, "a child may not use its parent's file");
	vm_is(offload_do(o->fd, COLL_DEVICE_COUNTERS, &counters, sizeof(counters)), 0,
	      "whose runs go on when the child ends");
}

int main(void)
{
	struct offload o;

	vm_loopback_up();
	before_setup();
	unprivileged();
	unprivileged_idle();
	if (!vm_is(coll_offload_open(&o, 0, 1, alone), 0, "a group of one"))
		return vm_end();
	each_command(&o);
	wrong_sockets(&o);
	wrong_runs(&o);
	inherited(&o);
	locked_memory();
	coll_offload_close(&o);
	return vm_end();
}
