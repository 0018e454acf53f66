// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/build.h"
#include "offload.h"
#include "vm.h"

bool offload_pairs = true;

static void must(bool right, const char *what)
{
	if (right)
		return;
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

uint64_t offload_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

long offload_do(int fd, unsigned int op, void *argument, uint32_t bytes)
{
	struct coll_device_command command = {
		.argument = (uintptr_t)argument,
		.bytes = bytes,
	};
	int result = ioctl(fd, op, &command);

	return result < 0 ? -errno : result;
}

void offload_connect(int links[OFFLOAD_RANKS_MAX][OFFLOAD_RANKS_MAX], uint32_t ranks)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	uint32_t a, b;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(!bind(listener, (struct sockaddr *)&address, sizeof(address)), "bind");
	must(!listen(listener, 64), "listen");
	must(!getsockname(listener, (struct sockaddr *)&address, &length), "getsockname");
	for (a = 0; a < ranks; a++)
		links[a][a] = -1;
	for (a = 0; a < ranks; a++)
		for (b = a + 1; b < ranks; b++) {
			links[a][b] = socket(AF_INET, SOCK_STREAM, 0);
			must(!connect(links[a][b], (struct sockaddr *)&address, sizeof(address)),
			     "connect");
			links[b][a] = accept(listener, NULL, NULL);
			must(links[b][a] >= 0, "accept");
			setsockopt(links[a][b], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
			setsockopt(links[b][a], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		}
	close(listener);
}

bool offload_send_all(int fd, const void *from, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t sent = send(fd, (const char *)from + done, bytes - done, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		done += sent;
	}
	return true;
}

static int lend_links(struct offload *o, const int *links)
{
	uint32_t peer;

	for (peer = 0; peer < o->ranks; peer++) {
		struct coll_device_link link = {
			.group = o->group,
			.rank = peer,
			.fd = links[peer],
			.flags = offload_pairs ? COLL_DEVICE_PAIRS : 0,
		};
		long result;

		o->links[peer] = links[peer];
		if (peer == o->rank)
			continue;
		result = offload_do(o->fd, COLL_DEVICE_ATTACH, &link, sizeof(link));
		if (result)
			return result;
	}
	return 0;
}

int coll_offload_open(struct offload *o, uint32_t rank, uint32_t ranks, const int *links)
{
	return offload_open_on(o, rank, ranks, links, COLL_NONE);
}

/* Again if a signal came, or work that a closed ring had left. */
static int device_open(void)
{
	int fd;

	do {
		fd = open("/dev/coll", O_RDWR | O_CLOEXEC);
	} while (fd < 0 && errno == EINTR);
	return fd;
}

int offload_open_on(struct offload *o, uint32_t rank, uint32_t ranks, const int *links,
		    uint32_t cpu)
{
	struct coll_device_setup setup = {
		.version = COLL_DEVICE_VERSION,
		.words = OFFLOAD_WORDS,
		.cpu = cpu,
	};
	struct coll_device_group group = { .rank = rank, .ranks = ranks };
	long result;

	*o = (struct offload){ .rank = rank, .ranks = ranks };
	o->fd = device_open();
	if (o->fd < 0)
		return -errno;
	result = offload_do(o->fd, COLL_DEVICE_SETUP, &setup, sizeof(setup));
	if (result)
		return result;
	o->shared = mmap(NULL, 4096, PROT_READ, MAP_SHARED, o->fd, 0);
	if (o->shared == MAP_FAILED)
		return -errno;
	result = offload_do(o->fd, COLL_DEVICE_GROUP, &group, sizeof(group));
	if (result < 0)
		return result;
	o->group = result;
	return lend_links(o, links);
}

/* The others may still be busy: nobody closes before all have said goodbye. */
static void leave(struct offload *o)
{
	struct coll_device_control bye = {
		.group = o->group,
		.header = { .kind = COLL_MESSAGE_BYE, .version = COLL_WIRE_VERSION },
	};
	const uint64_t until = offload_now() + UINT64_C(20000000000);
	uint32_t left = 0;

	for (bye.rank = 0; bye.rank < o->ranks; bye.rank++)
		if (bye.rank != o->rank)
			left += !offload_do(o->fd, COLL_DEVICE_CONTROL_SEND, &bye, sizeof(bye));
	while (left && offload_now() < until) {
		struct coll_device_control got = { .group = o->group };

		if (offload_do(o->fd, COLL_DEVICE_CONTROL_GET, &got, sizeof(got)))
			usleep(1000);
		else
			left -= got.header.kind == COLL_MESSAGE_BYE;
	}
}

int offload_open_alone(struct offload *o, uint32_t words, uint64_t spin, uint32_t cpu)
{
	struct coll_device_setup setup = {
		.version = COLL_DEVICE_VERSION, .words = words, .cpu = cpu, .spin = spin,
	};
	struct coll_device_group group = { .rank = 0, .ranks = 2 };

	*o = (struct offload){ .ranks = 2, .fd = device_open() };
	if (o->fd < 0 || offload_do(o->fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)))
		return -ENODEV;
	o->shared = mmap(NULL, 4096, PROT_READ, MAP_SHARED, o->fd, 0);
	o->group = offload_do(o->fd, COLL_DEVICE_GROUP, &group, sizeof(group));
	return o->shared == MAP_FAILED || o->group < 0 ? -ENODEV : 0;
}

void coll_offload_close(struct offload *o)
{
	leave(o);
	munmap(o->shared, 4096);
	close(o->fd);
}

long offload_load(struct offload *o, const struct coll_schedule *s, uint32_t hash)
{
	return offload_load_fused(o, s, hash, NULL);
}

long offload_load_fused(struct offload *o, const struct coll_schedule *s, uint32_t hash,
			const uint32_t *fused)
{
	struct coll_device_refusal refusal = { 0 };
	struct coll_device_load load = {
		.group = o->group,
		.hash = hash,
		.schedule = (uintptr_t)s,
		.bytes = s->bytes,
		.refusal = (uintptr_t)&refusal,
		.fused = (uintptr_t)fused,
	};
	long result = offload_do(o->fd, COLL_DEVICE_LOAD, &load, sizeof(load));

	if (result < 0)
		printf("# not loaded: %s, op %d: %s\n", strerror(-result), (int)refusal.op,
		       refusal.reason);
	return result;
}

long offload_run(struct offload *o, long schedule, const void *in, void *out, uint32_t word,
		 uint64_t deadline)
{
	struct coll_device_run run = {
		.schedule = schedule,
		.number = o->next_run,
		.word = word,
		.flags = COLL_DEVICE_QUIET,
		.in = { .address = (uintptr_t)in, .buffer = COLL_NONE },
		.out = { .address = (uintptr_t)out, .buffer = COLL_NONE },
		.deadline = deadline,
	};
	long result = offload_do(o->fd, COLL_DEVICE_RUN, &run, sizeof(run));

	o->next_run += !result;
	return result;
}

int offload_poll(struct offload *o, uint32_t word, int seconds)
{
	const uint64_t until = offload_now() + seconds * UINT64_C(1000000000);

	while (__atomic_load_n(&o->shared->word[word].state, __ATOMIC_ACQUIRE) !=
	       COLL_DEVICE_DONE) {
		if (offload_now() > until)
			return -ETIME;
		usleep(20);	/* the thread may need this CPU */
	}
	return o->shared->word[word].status;
}

long offload_wait(struct offload *o, uint32_t word)
{
	struct coll_device_number number = { .number = word };

	return offload_do(o->fd, COLL_DEVICE_WAIT, &number, sizeof(number));
}

static void close_others(int links[OFFLOAD_RANKS_MAX][OFFLOAD_RANKS_MAX], uint32_t ranks,
			 uint32_t keep)
{
	uint32_t a, b;

	for (a = 0; a < ranks; a++)
		for (b = 0; b < ranks; b++)
			if (a != keep && a != b)
				close(links[a][b]);
}

void coll_offload_start(uint32_t ranks,
			int (*body)(uint32_t rank, uint32_t ranks, const int *links), int seconds,
			pid_t *children)
{
	/* A kernel that looks after every access of its own. */
	const bool slow = !access("/sys/kernel/debug/kmemleak", F_OK);
	int links[OFFLOAD_RANKS_MAX][OFFLOAD_RANKS_MAX], status;
	uint32_t rank;

	offload_connect(links, ranks);
	fflush(stdout);
	for (rank = 0; rank < ranks; rank++) {
		children[rank] = fork();
		must(children[rank] >= 0, "fork");
		if (children[rank])
			continue;
		close_others(links, ranks, rank);
		alarm(slow ? 5 * seconds : seconds);
		status = body(rank, ranks, links[rank]);
		fflush(stdout);
		_exit(status ? 1 : 0);
	}
	close_others(links, ranks, OFFLOAD_RANKS_MAX);
}

int offload_ranks(uint32_t ranks, int (*body)(uint32_t rank, uint32_t ranks, const int *links),
		  int seconds)
{
	pid_t children[OFFLOAD_RANKS_MAX];
	int status, failed = 0;
	uint32_t rank;

	coll_offload_start(ranks, body, seconds, children);
	for (rank = 0; rank < ranks; rank++) {
		wait(&status);
		if (status)
			printf("# a rank ended with %s %d\n",
			       WIFSIGNALED(status) ? "signal" : "status",
			       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		failed += status != 0;
	}
	return failed;
}

int offload_copies(struct offload *o, int runs, unsigned int pause_ms)
{
	enum { BYTES = 1024 };
	static char in[BYTES], out[BYTES];
	static u64 memory[4096];
	struct coll_schedule *s;
	struct coll_build b;
	long schedule;
	int i, bad;

	coll_build_init(&b, memory, sizeof(memory), 0, 1);
	coll_build_buffers(&b, BYTES, BYTES);
	coll_emit_copy(&b, COLL_ADDRESS(COLL_OUT, 0), COLL_ADDRESS(COLL_IN, 0), BYTES);
	schedule = coll_build_finish(&b, &s) ? -EINVAL : offload_load(o, s, 0xabc);
	bad = schedule < 0;
	for (i = 0; i < runs && !bad; i++) {
		bad = offload_run(o, schedule, in, out, 0, 0) || offload_poll(o, 0, 20);
		vm_sleep_ms(pause_ms);
	}
	return bad;
}

int offload_compute(unsigned int ms)
{
	enum { BYTES = 1 << 20, OPS = 4000 };
	static u64 memory[1 << 17];
	struct coll_device_setup setup = {
		.version = COLL_DEVICE_VERSION, .words = 1, .cpu = COLL_NONE,
	};
	struct coll_device_group group = { .rank = 0, .ranks = 2 };
	const u64 in = COLL_ADDRESS(COLL_IN, 0), out = COLL_ADDRESS(COLL_OUT, 0);
	struct offload o = { .ranks = 2, .fd = device_open() };
	struct coll_schedule *s;
	struct coll_build b;
	u32 op = COLL_NONE;
	long schedule, result;
	int i;

	if (offload_do(o.fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)))
		return 11;
	o.group = offload_do(o.fd, COLL_DEVICE_GROUP, &group, sizeof(group));
	coll_build_init(&b, memory, sizeof(memory), 0, 2);
	coll_build_reduction(&b, COLL_FP16, COLL_SUM, 0);
	coll_build_buffers(&b, BYTES, BYTES);
	for (i = 0; i < OPS; i++) {
		coll_emit_after(&b, op);
		op = coll_emit_reduce(&b, out, out, in, BYTES);
	}
	if (coll_build_finish(&b, &s))
		return 12;
	schedule = offload_load(&o, s, 7);
	if (schedule < 0 || offload_run(&o, schedule, calloc(1, BYTES), calloc(1, BYTES), 0,
					offload_now() + ms * 1000000ull))
		return 13;
	do {
		result = offload_wait(&o, 0);
	} while (result == -EINTR);
	return result == -ETIMEDOUT ? 0 : 14;
}
