// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 *	offload_fuzz_test [SCHEDULES [SEED [PER_MILLE]]]
 *
 * Schedules that are nearly right, or random. They are refused with a reason, or they run:
 * alone, or two that were not made for each other against each other, until a deadline. With
 * so many per mille of the kernel's allocations and copies failing meanwhile, those of its
 * threads among them, they may fail besides for want of memory, and memory comes back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/capability.h>

#include "tests/lib/mutate.h"
#include "tests/lib/schedules.h"
#include "faults.h"
#include "offload.h"
#include "vm.h"

enum {
	RANKS = 4,			/* groups of 1 to 4; those of 2 have links */
	SEEDS = 4096,
	ROOM = 64,			/* bytes that mutation may add */
	DATA = 1 << 16,
	UNEXPECTED = 1 << 16,
	LOCKED = 16 << 20,		/* what may be locked: three capacities for unexpected messages */
	MEETING = 8,			/* one in so many of what might run against another */
	PATIENCE_S = 60, UNLOADS = 100,
};
static const u64 us = 1000, second = 1000000000;

struct target {
	struct offload *o;
	u32 group, rank, ranks;
};

static struct seed seed[SEEDS];
static size_t seeds;
static struct offload alone, side[2];
static u32 group_of[RANKS + 1];		/* those of `alone` */
static u8 in[2][DATA], out[2][DATA];
static u64 random_state;
static bool faulty;			/* allocations and copies fail now and then */

static struct {
	u64 refused, without_reason, strange, loaded, ran, wrong, met, agreed, starved;
	u64 load_time, run_time, meet_time;
} count;

static u64 number(u64 below)
{
	return random_next(&random_state) % below;
}

/* ---- seeds ------------------------------------------------------------------------ */

static void keep(const struct coll_schedule *s)
{
	if (seeds == SEEDS)
		return;
	seed[seeds].data = malloc(s->bytes);
	memcpy(seed[seeds].data, s, s->bytes);
	seed[seeds++].bytes = s->bytes;
}

/* Of two ranks both: they are to meet. */
static void keep_some(const char *name, struct coll_schedule *const *s, u32 ranks, void *argument)
{
	(void)name;
	(void)argument;
	if (ranks == 2)
		keep(s[0]);
	keep(s[ranks - 1]);
}

/* ---- who takes them ------------------------------------------------------------------ */

static void must(bool right, const char *what)
{
	if (right)
		return;
	vm_ok(false, "%s: %s", what, strerror(errno));
	exit(vm_end());
}

static void open_alone(void)
{
	static const int none[OFFLOAD_RANKS_MAX] = { -1 };
	u32 ranks;

	must(!offload_open_on(&alone, 0, 1, none, 0), "a device");
	for (ranks = 2; ranks <= RANKS; ranks++) {
		struct coll_device_group asked = { .rank = ranks - 1, .ranks = ranks,
						     .unexpected_bytes = UNEXPECTED };
		long group = offload_do(alone.fd, COLL_DEVICE_GROUP, &asked, sizeof(asked));

		must(group >= 0, "a group without links");
		group_of[ranks] = group;
	}
	group_of[1] = alone.group;
}

static void open_sides(void)
{
	int links[OFFLOAD_RANKS_MAX][OFFLOAD_RANKS_MAX];
	u32 rank;

	offload_connect(links, 2);
	for (rank = 0; rank < 2; rank++) {
		must(!offload_open_on(&side[rank], rank, 2, links[rank], 0), "a rank of two");
		close(links[rank][!rank]);
	}
}

/* With what is under way. */
static void close_sides(void)
{
	u32 rank;

	for (rank = 0; rank < 2; rank++) {
		munmap(side[rank].shared, 4096);
		close(side[rank].fd);
	}
}

/* What is not tried out here gets its memory; its threads do not. */
static void make_again(void (*end)(void), void (*begin)(void))
{
	if (faulty)
		faults_mark_self(false);
	end();
	begin();
	if (faulty)
		must(faults_mark("coll/") && !faults_mark_self(true), "threads whose memory may fail");
}

/* Of this error memory may be the cause. */
static bool starves(long error)
{
	const bool does = error == -ENOMEM || (faulty && (error == -EFAULT || error == -ENOBUFS));

	count.starved += does;
	return does;
}

static void close_alone(void)
{
	munmap(alone.shared, 4096);
	close(alone.fd);
}

static struct target target_for(const struct seed *from)
{
	const struct coll_schedule *s = (const void *)from->data;

	if (s->ranks == 2)
		return (struct target){ &side[s->rank], side[s->rank].group, s->rank, 2 };
	return (struct target){ &alone, group_of[s->ranks], s->rank, s->ranks };
}

/* ---- one ------------------------------------------------------------------------------ */

/* Random behind a header that is right, random from the start on, or nearly right. */
static u64 make(u8 *data, const struct seed *from)
{
	u64 bytes = from->bytes, at, changes;

	memcpy(data, from->data, bytes);
	switch (number(16)) {
	case 0:
		for (at = number(2) * sizeof(struct coll_schedule); at < bytes; at++)
			data[at] = random_next(&random_state);
		return bytes;
	case 1:
		for (at = sizeof(struct coll_schedule); at < bytes; at++)
			data[at] = number(4);
		return bytes;
	default:
		for (changes = 1 + number(4); changes; changes--)
			bytes = mutate(data, bytes, from->bytes + ROOM, &seed[number(seeds)],
				       &random_state);
		return bytes;
	}
}

/* Of what is marked, each receive is with a reduce that waits for it, or with any op. */
static const u32 *make_marks(const struct coll_schedule *s, u64 bytes)
{
	static u32 marks[1 << 14];	/* more than any of these has ops */
	const u32 ops = bytes < sizeof(*s) ? 0 : s->ops < 64 ? s->ops : 64;
	u32 i, wait, other;

	memset(marks, 0xff, sizeof(marks));	/* COLL_NONE */
	for (i = 0; i < ops && sizeof(*s) + (i + 1) * sizeof(struct coll_op) <= bytes; i++) {
		wait = coll_ops(s)[i].wait;
		if (coll_ops(s)[i].kind != COLL_OP_REDUCE || !coll_ops(s)[i].waits)
			continue;
		other = (const u8 *)(coll_waits(s) + wait + 1) <= (const u8 *)s + bytes &&
					wait < COLL_WAITS_MAX ? coll_waits(s)[wait] : number(ops);
		if (other < ops && number(8)) {
			marks[i] = other;
			marks[other] = i;
		}
	}
	if (!number(8))
		marks[number(64)] = number(64);
	return marks;
}

static long load(const struct target *target, const u8 *data, u64 bytes)
{
	struct coll_device_refusal refusal = { 0 };
	struct coll_device_load load = {
		.group = target->group, .hash = 1, .schedule = (uintptr_t)data, .bytes = bytes,
		.refusal = (uintptr_t)&refusal,
		.fused = number(4) ? 0 : (uintptr_t)make_marks((const void *)data, bytes),
	};
	const u64 start = offload_now();
	long loaded = offload_do(target->o->fd, COLL_DEVICE_LOAD, &load, sizeof(load));

	count.load_time += offload_now() - start;
	if (loaded >= 0) {
		count.loaded++;
		return loaded;
	}
	if (starves(loaded))
		return loaded;
	count.refused++;
	count.without_reason += !refusal.reason[0];
	count.strange += loaded != -EINVAL && loaded != -E2BIG && loaded != -EOPNOTSUPP;
	return loaded;
}

static void unload(const struct offload *o, long loaded)
{
	struct coll_device_number it = { .number = loaded };

	for (int i = 0; i < UNLOADS; i++)
		if (!starves(offload_do(o->fd, COLL_DEVICE_UNLOAD, &it, sizeof(it))))
			return;
}

/* The command that waits may fail, and the run go on. */
static long await(struct offload *o)
{
	return faulty ? offload_poll(o, 1, PATIENCE_S) : offload_wait(o, 1);
}

static bool fits(const u8 *data)
{
	const struct coll_schedule *s = (const void *)data;

	return s->buffer[COLL_IN] <= DATA && s->buffer[COLL_OUT] <= DATA;
}

/* What has passed the check and has no peers comes to its end. */
static void run_alone(long loaded, const u8 *data)
{
	const u64 start = offload_now();
	long status;

	if (!fits(data))
		return;
	status = offload_run(&alone, loaded, in[0], out[0], 1, 0);
	if (!status) {
		count.ran++;
		status = await(&alone);
		if (status && faulty)	/* its group has failed with it */
			make_again(close_alone, open_alone);
		count.wrong += status && !(faulty && starves(status));
	} else {
		count.wrong += !starves(status) && status != -E2BIG;	/* its scratch */
	}
	count.run_time += offload_now() - start;
}

/* Each rank's schedule as it comes: they agree, or the group fails and is made again. */
static void meet(const long *loaded)
{
	const u64 start = offload_now(), deadline = start + 20000 * us;
	long status = 0;
	u32 rank;

	for (rank = 0; rank < 2 && !status; rank++)
		status = offload_run(&side[rank], loaded[rank], in[rank], out[rank], 1, deadline);
	for (rank = 0; rank < 2 && !status; rank++)
		status = await(&side[rank]);
	count.met++;
	count.agreed += !status;
	if (status)
		make_again(close_sides, open_sides);
	count.meet_time += offload_now() - start;
}

/* Kept until the other rank has one as well; the one before goes. The first two meet in any case. */
static void maybe_meet(const struct target *target, long loaded, const u8 *data)
{
	static long waits[2] = { -1, -1 };
	long *own = &waits[target->rank];

	if (!fits(data) || (count.met && number(MEETING))) {
		unload(target->o, loaded);
		return;
	}
	if (*own >= 0)
		unload(target->o, *own);
	*own = loaded;
	if (waits[0] < 0 || waits[1] < 0)
		return;
	meet(waits);
	unload(&side[0], waits[0]);
	unload(&side[1], waits[1]);
	waits[0] = waits[1] = -1;
}

static void one(void)
{
	static u8 data[1 << 20];
	const struct seed *from = &seed[number(seeds)];
	const struct target target = target_for(from);
	long loaded;
	u64 bytes;

	if (from->bytes + ROOM > sizeof(data))
		return;
	bytes = make(data, from);
	loaded = load(&target, data, bytes);
	if (loaded < 0)
		return;
	if (target.ranks == 2) {
		maybe_meet(&target, loaded, data);
		return;
	}
	if (target.ranks == 1)
		run_alone(loaded, data);
	unload(&alone, loaded);
}

/* RLIMIT_MEMLOCK holds from here on. One stays: to mark threads whose memory may fail. */
static long drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct one[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	one[0].effective = one[0].permitted = 1u << CAP_SYS_RESOURCE;
	return syscall(SYS_capset, &header, one);
}

static double each(u64 ns, u64 times)
{
	return times ? ns / 1e3 / times : 0;
}

static void nothing(void)
{
}

static void try_all(u64 tries)
{
	const u64 start = offload_now();

	for (u64 i = 0; i < tries; i++)
		one();
	vm_note("%.1f s; us: %.0f a load, %.0f a run alone, %.0f a meeting (emulated)",
		(double)(offload_now() - start) / second, each(count.load_time, tries),
		each(count.run_time, count.ran), each(count.meet_time, count.met));
}

static void try_all_amid_faults(u64 tries, unsigned int per_mille)
{
	long before = vm_available_kib();

	faulty = true;
	make_again(nothing, nothing);
	faults_of_marked(per_mille, true);
	try_all(tries);
	vm_ok(faults_count() > 0, "%ld allocations and copies failed meanwhile, %llu commands with them",
	      faults_count(), (unsigned long long)count.starved);
	faults_of_marked(0, true);
	faulty = false;
	faults_mark_self(false);
	close_sides();
	open_sides();
	vm_comes_back(before);
}

int main(int argc, char **argv)
{
	const struct rlimit limit = { LOCKED, LOCKED };
	const u64 tries = argc > 1 ? strtoull(argv[1], NULL, 0) : 100000;
	const u64 first = argc > 2 ? strtoull(argv[2], NULL, 0) : vm_now();
	unsigned int per_mille = argc > 3 ? atoi(argv[3]) : 0;

	if (per_mille && !faults_possible()) {
		vm_skip("memory that is not there", "this kernel cannot let allocations fail");
		per_mille = 0;
	}
	random_state = first;
	vm_loopback_up();
	each_collective(RANKS, keep_some, NULL);
	setrlimit(RLIMIT_MEMLOCK, &limit);
	must(!vm_run_on(0) && !drop_capabilities(), "no capability that matters, on CPU 0");
	open_alone();
	open_sides();
	if (per_mille)
		try_all_amid_faults(tries, per_mille);
	else
		try_all(tries);
	vm_ok(true, "%llu hostile schedules of %zu seeds, first number %#llx",
	      (unsigned long long)tries, seeds, (unsigned long long)first);
	vm_ok(count.refused && !count.without_reason, "%llu are refused, each with a reason",
	      (unsigned long long)count.refused);
	vm_is(count.strange, 0, "and with an errno of those that are documented");
	vm_ok(count.ran && !count.wrong, "%llu are schedules still; %llu run alone and end",
	      (unsigned long long)count.loaded, (unsigned long long)count.ran);
	vm_ok(count.met, "%llu pairs meet, %llu of which agree", (unsigned long long)count.met,
	      (unsigned long long)count.agreed);
	close_sides();
	coll_offload_close(&alone);
	return vm_end();
}
