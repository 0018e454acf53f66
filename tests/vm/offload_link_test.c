// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A link is taken back with what came early, and lent again with it; deadlines are
 * moved; the device polls readable when a run has ended. With short messages, longer ones, and one
 * that is longer than what a group keeps of messages that come early; through the socket, and where
 * two lent links of a connection pair (offload_pair_test.c has what else they do).
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

enum {
	HASH = 7,
	RECEIVER = 0,
	ROOT = 1,
	PATIENCE_S = 30,
	SHORT = 1000,
	LONG = 40000,
	TOO_LONG = 600000,
};

static u32 count;
static double *in, *out;

static u64 payload(void)
{
	return count * sizeof(double);
}

static void buffers_make(void)
{
	in = calloc(count, sizeof(*in));
	out = calloc(count, sizeof(*out));
}

static long load_bcast(struct offload *o)
{
	const struct coll_algo *algo = coll_algo_find(COLL_BCAST, "binomial");
	struct usual_call usual;	/* whose root is the last rank */
	struct coll_schedule *s;
	long schedule;

	usual_call(&usual, algo, o->ranks, count, COLL_DOUBLE);
	usual.call.rank = o->rank;
	s = emit_schedule(algo, &usual.call, &usual.tuning);
	schedule = offload_load(o, s, HASH);
	free(s);
	return schedule;
}

static long take_back(struct offload *o, void *stream, u64 room)
{
	struct coll_device_link link = {
		.group = o->group, .rank = ROOT, .fd = -1,
		.address = (uintptr_t)stream, .bytes = room,
	};

	return offload_do(o->fd, COLL_DEVICE_DETACH, &link, sizeof(link));
}

static long lend(struct offload *o, const void *stream, u64 bytes)
{
	struct coll_device_link link = {
		.group = o->group, .rank = ROOT, .fd = o->links[ROOT],
		.flags = offload_pairs ? COLL_DEVICE_PAIRS : 0,
		.address = (uintptr_t)stream, .bytes = bytes,
	};

	return offload_do(o->fd, COLL_DEVICE_ATTACH, &link, sizeof(link));
}

static bool check(bool good, const char *what)
{
	if (!good)
		printf("# not so: %s\n", what);
	return good;
}

/* The message of run 0, partly by way of the kernel. */
static bool early_goes_along(struct offload *o)
{
	const u64 whole = sizeof(struct coll_header) + payload();
	u8 *stream = malloc(whole);
	const struct coll_header *header = (void *)stream;
	long some, got = 0, more = 1;
	bool good;

	usleep(300000);			/* the kernel has read it by now, very likely */
	some = take_back(o, stream, 4);
	got = some > 4 ? take_back(o, stream, whole) : some;
	good = check(got == some, "too little room does nothing");
	while (got >= 0 && got < (long)whole && more > 0) {
		more = recv(o->links[ROOT], stream + got, whole - got, 0);
		got += more;
	}
	good &= check(got == (long)whole && header->kind == COLL_MESSAGE_DATA && !header->run &&
		      header->hash == HASH && header->bytes == payload(), "nothing of it is lost");
	good &= check(take_back(o, stream, whole) == -ENOENT, "it is back already");
	good &= check(lend(o, (void *)16, 100) == -EFAULT || !good, "bytes that are not there");
	free(stream);
	return good;
}

static bool result_is_right(void)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (out[i] != i + ROOT)
			return false;
	return true;
}

static bool polls(struct offload *o, bool readable)
{
	struct pollfd fd = { .fd = o->fd, .events = POLLIN };

	return poll(&fd, 1, readable ? PATIENCE_S * 1000 : 0) == readable;
}

static long deadline(struct offload *o, uint32_t number, u64 when)
{
	struct coll_device_deadline asked = {
		.group = o->group, .number = number, .deadline = when,
	};

	return offload_do(o->fd, COLL_DEVICE_DEADLINE, &asked, sizeof(asked));
}

static void see_all(struct offload *o)
{
	struct coll_device_shared *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
						 o->fd, 0);

	shared->seen = shared->ended;
	munmap(shared, 4096);
}

static bool runs_and_deadlines(struct offload *o, long schedule)
{
	u8 stream[64];
	bool good = check(polls(o, false), "nothing has ended");

	good &= check(!offload_run(o, schedule, NULL, out, 0, 0), "it runs");
	good &= check(take_back(o, stream, sizeof(stream)) == -EBUSY, "a run needs the link");
	good &= check(deadline(o, 7, 1) == -ENOENT, "no such run");
	good &= check(!deadline(o, 0, offload_now() + PATIENCE_S * 1000000000ull), "a later one");
	good &= check(polls(o, true), "a run has ended");
	good &= check(!offload_poll(o, 0, 0) && result_is_right(), "with the right result");
	see_all(o);
	good &= check(polls(o, false), "which has been seen");
	/* Nobody sends for this one. */
	good &= check(!offload_run(o, schedule, NULL, out, 1, 0), "it runs again");
	good &= check(!deadline(o, 1, offload_now() + 100000000), "an earlier one");
	good &= check(offload_poll(o, 1, PATIENCE_S) == -ETIMEDOUT, "which ends it");
	return good;
}

/* Until the other's failure is heard of. */
static bool hear_failure(struct offload *o)
{
	const u64 until = offload_now() + PATIENCE_S * 1000000000ull;
	struct coll_device_control got = { .group = o->group };

	while (offload_now() < until) {
		if (!offload_do(o->fd, COLL_DEVICE_CONTROL_GET, &got, sizeof(got)) &&
		    got.header.kind == COLL_MESSAGE_FAIL)
			return got.header.hash == ETIMEDOUT;
		usleep(1000);
	}
	return false;
}

static int receive(struct offload *o, long schedule)
{
	return !runs_and_deadlines(o, schedule);
}

static int send_late(struct offload *o, long schedule)
{
	u32 i;

	for (i = 0; i < count; i++)
		in[i] = out[i] = i + ROOT;
	usleep(500000);
	return offload_run(o, schedule, in, out, 0, 0) || offload_poll(o, 0, PATIENCE_S) ||
	       !hear_failure(o);
}

static int late(u32 rank, u32 ranks, const int *links)
{
	struct offload o;
	long schedule;
	int error;

	buffers_make();
	if (coll_offload_open(&o, rank, ranks, links))
		return 1;
	schedule = load_bcast(&o);
	error = schedule < 0 || (rank == RECEIVER ? receive(&o, schedule) :
						     send_late(&o, schedule));
	close(o.fd);
	return error;
}

static int early(u32 rank, u32 ranks, const int *links)
{
	struct offload o;
	long schedule;
	int error;

	buffers_make();
	if (coll_offload_open(&o, rank, ranks, links))
		return 1;
	schedule = load_bcast(&o);
	error = schedule < 0;
	if (rank == ROOT)
		error |=
			offload_run(&o, schedule, in, out, 0, 0) || offload_poll(&o, 0, PATIENCE_S);
	else
		error |= !early_goes_along(&o);
	usleep(rank == ROOT ? 2000000 : 0);	/* the socket stays open for the other */
	close(o.fd);
	return error;
}

/* Taken back and lent again with all that came, before its run. */
static int there_and_back(u32 rank, u32 ranks, const int *links)
{
	const u64 room = 2 * sizeof(struct coll_header) + payload();
	u8 *stream = malloc(room);
	struct offload o;
	long schedule, bytes;
	int error;
	u32 i;

	buffers_make();
	for (i = 0; i < count; i++)
		in[i] = out[i] = rank == ROOT ? (double)(i + ROOT) : -1;
	if (coll_offload_open(&o, rank, ranks, links))
		return 1;
	schedule = load_bcast(&o);
	error = schedule < 0;
	if (rank == RECEIVER) {
		usleep(300000);
		for (i = 0; i < 3 && !error; i++) {
			bytes = take_back(&o, stream, room);
			error = !check(bytes >= 0 && bytes <= (long)room && !lend(&o, stream, bytes), "there and back") ||
				!check(lend(&o, NULL, 0) == -EEXIST, "only once");
		}
	}
	error = error || offload_run(&o, schedule, in, out, 0, 0) ||
		offload_poll(&o, 0, PATIENCE_S) || !check(result_is_right(), "the right result");
	coll_offload_close(&o);
	return error;
}

int main(void)
{
	static const struct {
		u32 count;
		const char *what;
	} messages[] = { { SHORT, "8 KB" }, { LONG, "320 KB" }, { TOO_LONG, "4.8 MB" } };
	size_t i;

	vm_loopback_up();
	for (i = 0; i < sizeof(messages) / sizeof(*messages); i++) {
		count = messages[i].count;
		offload_pairs = false;	/* it reads all of the stream */
		vm_ok(!offload_ranks(2, early, 60), "%s: a link comes back with what came early",
		      messages[i].what);
		for (int pairs = 0; pairs < 2; pairs++) {
			offload_pairs = pairs;
			vm_ok(!offload_ranks(2, there_and_back, 60),
			      "%s: and goes again with it, three times%s", messages[i].what,
			      pairs ? ", of a pair" : "");
			vm_ok(!offload_ranks(2, late, 90),
			      "%s: deadlines are moved, and ends polled for%s", messages[i].what,
			      pairs ? ", of a pair" : "");
		}
	}
	return vm_end();
}
