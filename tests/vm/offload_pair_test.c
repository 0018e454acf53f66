// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Two lent links of one connection: long messages are copied from the sender's pages, once, and do
 * not go through the socket (kmod/link/pair.h). Whoever is late, leaves, fails or lies: the right
 * result or the named error.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

enum {
	HASH = 7,
	RECEIVER = 0,
	ROOT = 1,
	RUNS = 6,
	PATIENCE_S = 60,
	SHORT = 1000,			/* doubles: 8 KB, through the socket */
	LONG = 40000,			/* 320 KB */
	TOO_LONG = 600000,		/* 4.8 MB: more than a group keeps before its receive */
	FORGED = 2000,
};

static u32 count;
static bool split;

static u64 payload(void)
{
	return count * sizeof(double);
}

static bool check(bool good, const char *what)
{
	if (!good)
		printf("# not so: %s\n", what);
	return good;
}

/* ---- two ranks -------------------------------------------------------------------- */

struct side {
	struct offload o;
	long bcast, allreduce, fused;	/* schedules; of bcast the root is ROOT */
	double *in, *out;		/* neither at the beginning of a page, nor both alike */
};

static struct coll_schedule *emit(const struct offload *o, enum coll_collective collective,
				  const char *name)
{
	const struct coll_algo *algo = coll_algo_find(collective, name);
	struct usual_call usual;

	usual_call(&usual, algo, o->ranks, count, COLL_DOUBLE);
	usual.call.rank = o->rank;
	return emit_schedule(algo, &usual.call, &usual.tuning);
}

static long load(struct offload *o, enum coll_collective collective, const char *name)
{
	struct coll_schedule *s = emit(o, collective, name);
	const long schedule = offload_load(o, s, HASH);

	free(s);
	return schedule;
}

/* In a butterfly each message is received for the reduce behind it alone. */
static void mark(const struct coll_schedule *s, u32 *fused)
{
	const struct coll_op *ops = coll_ops(s);
	u32 recv, reduce;

	for (recv = 0; recv < s->ops; recv++)
		fused[recv] = COLL_NONE;
	for (recv = 0; recv < s->ops; recv++)
		for (reduce = 0; reduce < s->ops; reduce++) {
			if (ops[recv].kind != COLL_OP_RECV || ops[reduce].kind != COLL_OP_REDUCE ||
			    (ops[reduce].left != ops[recv].result &&
			     ops[reduce].right != ops[recv].result))
				continue;
			fused[recv] = reduce;
			fused[reduce] = recv;
		}
}

static long load_fused(struct offload *o)
{
	struct coll_schedule *s = emit(o, COLL_ALLREDUCE, "butterfly");
	u32 *fused = calloc(s->ops, sizeof(*fused));
	long schedule;

	mark(s, fused);
	schedule = offload_load_fused(o, s, HASH, fused);
	free(fused);
	free(s);
	return schedule;
}

static bool side_open(struct side *side, u32 rank, u32 ranks, const int *links)
{
	side->in = (double *)calloc(count + 5, sizeof(double)) + 3;
	side->out = (double *)calloc(count + 8, sizeof(double)) + 7;
	if (coll_offload_open(&side->o, rank, ranks, links))
		return check(false, "the device opens");
	side->bcast = load(&side->o, COLL_BCAST, "binomial");
	side->allreduce = load(&side->o, COLL_ALLREDUCE, "butterfly");
	side->fused = load_fused(&side->o);
	vm_sleep_ms(300 * vm_slowness());	/* both have lent their links */
	return check(side->bcast >= 0 && side->allreduce >= 0 && side->fused >= 0,
		     "schedules are loaded");
}

static struct coll_device_counters counters(const struct side *side)
{
	struct coll_device_counters counters = { 0 };

	offload_do(side->o.fd, COLL_DEVICE_COUNTERS, &counters, sizeof(counters));
	return counters;
}

static u64 taken(const struct side *side)
{
	return counters(side).taken_bytes;
}

static u64 through_socket(const struct side *side)
{
	struct tcp_info info = { 0 };
	socklen_t bytes = sizeof(info);

	getsockopt(side->o.links[!side->o.rank], IPPROTO_TCP, TCP_INFO, &info, &bytes);
	return info.tcpi_bytes_received;
}

/* Each run has numbers of its own. */
static double number(u32 i, u32 run)
{
	return (double)i + 1000.0 * run + 1;
}

static bool same(double a, double b)
{
	return !(a < b) && !(a > b);
}

static long bcast_start(struct side *side, u32 run)
{
	u32 i;

	for (i = 0; i < count; i++)
		side->in[i] = side->out[i] = side->o.rank == ROOT ? number(i, run) : -1;
	return offload_run(&side->o, side->bcast, side->in, side->out, 0, 0);
}

static bool bcast_end(struct side *side, u32 run)
{
	bool good = check(!offload_poll(&side->o, 0, PATIENCE_S), "it ends");
	u32 i;

	for (i = 0; i < count && good; i++)
		good = check(same(side->out[i], number(i, run)), "with the root's numbers");
	return good;
}

static bool bcast(struct side *side, u32 run)
{
	return check(!bcast_start(side, run), "a broadcast starts") && bcast_end(side, run);
}

static bool allreduce_by(struct side *side, long schedule, u32 run)
{
	bool good;
	u32 i;

	for (i = 0; i < count; i++)
		side->in[i] = number(i, run) * (1 + side->o.rank);
	good = check(!offload_run(&side->o, schedule, side->in, side->out, 0, 0) &&
		     !offload_poll(&side->o, 0, PATIENCE_S), "an allreduce ends");
	for (i = 0; i < count && good; i++)
		good = check(same(side->out[i], number(i, run) * 3), "with the sum");
	return good;
}

static bool allreduce(struct side *side, u32 run)
{
	return allreduce_by(side, side->allreduce, run);
}

/* ---- handed over ------------------------------------------------------------------ */

/* One is late, then the other. */
static int handed_over(u32 rank, u32 ranks, const int *links)
{
	struct side side;
	bool good = side_open(&side, rank, ranks, links);
	u32 run;

	for (run = 0; run < RUNS && good; run++) {
		vm_sleep_ms(run % 2 == rank ? 100 : 0);
		good = bcast(&side, run);
	}
	good &= rank == ROOT || check(taken(&side) == RUNS * payload(), "each byte is taken once");
	good &= check(through_socket(&side) < payload(), "and none through the socket");
	coll_offload_close(&side.o);
	return !good;
}

static int both_ways(u32 rank, u32 ranks, const int *links)
{
	struct side side;
	bool good = side_open(&side, rank, ranks, links);
	u32 run;

	for (run = 0; run < RUNS && good; run++)
		good = allreduce(&side, run);
	good &= check(taken(&side) == RUNS * payload(), "each byte is taken once");
	coll_offload_close(&side.o);
	return !good;
}

/*
 * Reduced from the sender's pages, unless the message is kept as it comes before its run: then the
 * other rank's is not. `split`: elements lie in two pages, and nothing is.
 */
static int reduced(u32 rank, u32 ranks, const int *links)
{
	struct side side;
	bool good = side_open(&side, rank, ranks, links);
	u32 run;

	side.in = (void *)((char *)side.in + (split ? 4 : 0));
	for (run = 0; run < 2 * RUNS && good; run++) {
		vm_sleep_ms(run % 2 == rank ? 100 : 0);
		good = allreduce_by(&side, side.fused, run);
	}
	good &= check(taken(&side) == 2 * RUNS * payload(), "each byte is taken once");
	good &= check(split ? !counters(&side).reduced_bytes :
			      counters(&side).reduced_bytes >= RUNS / 2 * payload(),
		      "and not written first, if elements are whole");
	coll_offload_close(&side.o);
	return !good;
}

/* What a program may mark is what fits; that it is right, only it knows. */
static int wrong_marks(u32 rank, u32 ranks, const int *links)
{
	struct side side;
	bool good = side_open(&side, rank, ranks, links);
	struct coll_schedule *s = emit(&side.o, COLL_ALLREDUCE, "butterfly");
	u32 *fused = calloc(s->ops, sizeof(*fused)), op;

	for (op = 0; op < s->ops && good; op++) {
		mark(s, fused);
		fused[op] = fused[op] == COLL_NONE ? 0 : COLL_NONE;
		good = check(offload_load_fused(&side.o, s, HASH, fused) == -EINVAL, "half a mark");
		fused[op] = s->ops;
		good &= check(offload_load_fused(&side.o, s, HASH, fused) == -EINVAL, "no such op");
		fused[op] = op;
		good &= check(offload_load_fused(&side.o, s, HASH, fused) == -EINVAL, "with itself");
	}
	good &= check(offload_load_fused(&side.o, s, HASH, (void *)8) == -EFAULT, "not there");
	coll_offload_close(&side.o);
	return !good;
}

static int not_taken(u32 rank, u32 ranks, const int *links)
{
	struct side side;
	bool good;

	offload_pairs = rank == ROOT;
	good = side_open(&side, rank, ranks, links) && bcast(&side, 0) && allreduce(&side, 1);
	good &= check(!taken(&side), "one end alone takes nothing");
	coll_offload_close(&side.o);
	return !good;
}

static int short_ones(u32 rank, u32 ranks, const int *links)
{
	struct side side;
	bool good = side_open(&side, rank, ranks, links) && bcast(&side, 0) && allreduce(&side, 1);

	good &= check(!taken(&side), "short messages go through the socket");
	coll_offload_close(&side.o);
	return !good;
}

/* ---- one leaves the pair, and comes again ------------------------------------------ */

static long take_back(struct side *side, void *stream, u64 room)
{
	struct coll_device_link link = {
		.group = side->o.group, .rank = !side->o.rank, .fd = -1,
		.address = (uintptr_t)stream, .bytes = room,
	};

	return offload_do(side->o.fd, COLL_DEVICE_DETACH, &link, sizeof(link));
}

static long lend(struct side *side, const void *stream, u64 bytes)
{
	const u32 peer = !side->o.rank;
	struct coll_device_link link = {
		.group = side->o.group, .rank = peer, .fd = side->o.links[peer],
		.flags = COLL_DEVICE_PAIRS, .address = (uintptr_t)stream, .bytes = bytes,
	};

	return offload_do(side->o.fd, COLL_DEVICE_ATTACH, &link, sizeof(link));
}

/* Whatever of two messages is offered, taken in part, or kept then: too little room first. */
static bool there_and_back(struct side *side)
{
	const u64 room = 2 * payload() + 4096;
	void *stream = malloc(room);
	long bytes;
	bool good;

	bytes = take_back(side, stream, 3);
	good = check(bytes >= 0, "it is taken back, or wants more room");
	if (bytes > 3)
		bytes = take_back(side, stream, room);
	good = good && check(bytes >= 0 && bytes <= (long)room, "it is taken back") &&
	       check(!lend(side, stream, bytes), "and lent again");
	free(stream);
	return good;
}

static int leaves(u32 rank, u32 ranks, const int *links)
{
	struct side side;
	bool good = side_open(&side, rank, ranks, links);
	u64 before;
	u32 run, i;

	for (run = 0; run < RUNS && good; run++) {
		if (rank == RECEIVER) {
			vm_sleep_ms(run ? 0 : 300 * vm_slowness());
			for (i = 0; i < 3 && good; i++)
				good = there_and_back(&side);
		}
		good = good && bcast(&side, 3 * run);
		before = taken(&side);
		good = good && allreduce(&side, 3 * run + 1) && bcast(&side, 3 * run + 2);
		/* The root sends that after it has heard of the receiver, which is back. */
		good = good && (rank == ROOT || check(taken(&side) - before >= payload(),
						      "they pair again"));
	}
	coll_offload_close(&side.o);
	return !good;
}

/* ---- failures --------------------------------------------------------------------- */

/* The sender has its memory back at once; the receiver hears of it, and has nothing in part. */
static int sender_fails(u32 rank, u32 ranks, const int *links)
{
	struct coll_device_fail fail = { .error = ECANCELED, .failed_rank = ROOT,
					 .reporter = ROOT };
	struct side side;
	bool good = side_open(&side, rank, ranks, links);
	int status;

	fail.group = side.o.group;
	if (rank == ROOT) {
		good = good && check(!bcast_start(&side, 0), "a broadcast starts");
		vm_sleep_ms(200);
		good &= check(!offload_do(side.o.fd, COLL_DEVICE_FAIL, &fail, sizeof(fail)),
			      "the group fails");
		status = offload_poll(&side.o, 0, PATIENCE_S);
		good &= check(status == -ECANCELED || (!status && count == LONG),
			      "its run ends, unless the message was kept");
		vm_sleep_ms(1500 * vm_slowness());
	} else {
		vm_sleep_ms(700 * vm_slowness());
		good &= check(offload_run(&side.o, side.bcast, side.in, side.out, 0, 0) ==
			      -ECANCELED, "the receiver has heard of it");
	}
	close(side.o.fd);
	return !good;
}

/* It closes the device in the middle, wherever that is. */
static int sender_ends(u32 rank, u32 ranks, const int *links)
{
	struct side side;
	bool good = side_open(&side, rank, ranks, links);
	u64 state = offload_now();
	long status = bcast_start(&side, 0);

	if (rank == ROOT) {
		good &= check(!status, "a broadcast starts");
		usleep(random_next(&state) % 3000);
		close(side.o.fd);
		shutdown(side.o.links[RECEIVER], SHUT_RDWR);
		return !good;
	}
	status = status ?: offload_poll(&side.o, 0, PATIENCE_S);
	good &= check(status == -ECONNRESET || (!status && bcast_end(&side, 0)),
		      "all of it or none");
	close(side.o.fd);
	return !good;
}

/* ---- lies ------------------------------------------------------------------------- */

static struct coll_header offer(u32 run, u64 bytes)
{
	return (struct coll_header){ .kind = COLL_MESSAGE_OFFER, .version = COLL_WIRE_VERSION,
				     .run = run, .hash = HASH, .bytes = bytes };
}

/* A program that writes to its socket what only the module does. */
static int forged(u32 rank, u32 ranks, const int *links)
{
	struct side side;
	bool good = side_open(&side, rank, ranks, links);
	struct coll_header lie;
	u32 run, i;

	for (run = 0; run < RUNS && good; run++) {
		good = check(!bcast_start(&side, run), "a broadcast starts");
		for (i = 0; i < FORGED / (u32)vm_slowness() && good && rank == ROOT; i++) {
			lie = offer(run + i % 3, payload() + i % 2);
			good = check(offload_send_all(links[RECEIVER], &lie, sizeof(lie)),
				     "a lie is told");
		}
		good = good && bcast_end(&side, run);
	}
	coll_offload_close(&side.o);
	return !good;
}

static int group_again(struct side *side)
{
	struct coll_device_number number = { .number = side->o.group };
	struct coll_device_group group = { .rank = side->o.rank, .ranks = side->o.ranks };
	long made;

	offload_do(side->o.fd, COLL_DEVICE_GROUP_FREE, &number, sizeof(number));
	made = offload_do(side->o.fd, COLL_DEVICE_GROUP, &group, sizeof(group));
	side->o.group = made;
	side->o.next_run = 0;
	return made < 0 || lend(side, NULL, 0);
}

/*
 * The root frees its group while its message is reduced, makes another, and does the same again. The
 * receiver gets the numbers of one or both, and nothing behind its own.
 */
static int again(u32 rank, u32 ranks, const int *links)
{
	struct side side;
	bool good = side_open(&side, rank, ranks, links);
	u64 state = offload_now();
	double *const behind = side.out + count;
	long status;

	*behind = 42;
	good = good && check(!offload_run(&side.o, side.fused, side.in, side.out, 0, 0),
			     "an allreduce starts");
	if (rank == ROOT) {
		usleep(random_next(&state) % (3000 * vm_slowness()));
		good = good && check(!group_again(&side), "its group is made again");
		side.fused = load_fused(&side.o);
		good = good && check(!offload_run(&side.o, side.fused, side.in, side.out, 1, 0),
				     "and does the same");
		offload_poll(&side.o, 1, 2 * vm_slowness());
		shutdown(side.o.links[RECEIVER], SHUT_RDWR);
	} else {
		status = offload_poll(&side.o, 0, PATIENCE_S);
		/* The same message twice is against the protocol, if the first was whole. */
		good &= check(!status || status == -ECONNRESET || status == -EPROTO, "it ends");
		good &= check(same(*behind, 42), "and writes nothing behind the result");
	}
	close(side.o.fd);
	return !good;
}

/* Nothing was offered, as its link was never lent; then the message itself. */
static int forged_by_a_stranger(u32 rank, u32 ranks, const int *links)
{
	struct coll_header header = offer(0, payload());
	struct side side;
	bool good = true;

	if (rank == RECEIVER) {
		good = side_open(&side, rank, ranks, links) && bcast(&side, 0);
		good &= check(!taken(&side), "nothing is taken");
		close(side.o.fd);
		return !good;
	}
	side.out = calloc(count, sizeof(double));
	for (u32 i = 0; i < count; i++)
		side.out[i] = number(i, 0);
	good &= offload_send_all(links[RECEIVER], &header, sizeof(header));
	header.kind = COLL_MESSAGE_DATA;
	good &= offload_send_all(links[RECEIVER], &header, sizeof(header)) &&
		offload_send_all(links[RECEIVER], side.out, payload());
	vm_sleep_ms(2000 * vm_slowness());	/* the socket stays open for the other */
	return !check(good, "it sends");
}

int main(void)
{
	const long long pinned = vm_pinned_pages();
	int i, failed = 0;

	vm_loopback_up();
	count = SHORT;
	vm_ok(!offload_ranks(2, short_ones, 60), "8 KB: through the socket");
	for (i = 0; i < 2; i++) {
		count = i ? TOO_LONG : LONG;
		vm_ok(!offload_ranks(2, handed_over, 60), "%llu KB: handed over", payload() >> 10);
		vm_ok(!offload_ranks(2, both_ways, 60), "in both directions at once");
		for (int way = 0; way < 2; way++) {
			split = way;
			vm_ok(!offload_ranks(2, reduced, 60), "received and reduced in one%s",
			      split ? ", but for elements in two pages" : "");
		}
		vm_ok(!offload_ranks(2, wrong_marks, 60), "marks that do not fit are refused");
		vm_ok(!offload_ranks(2, not_taken, 60), "not unless both links say so");
		vm_ok(!offload_ranks(2, leaves, 120), "one leaves the pair, and comes again");
		vm_ok(!offload_ranks(2, sender_fails, 60), "the sender's group fails");
		vm_ok(!offload_ranks(2, forged, 120), "offers that the program wrote itself");
		vm_ok(!offload_ranks(2, forged_by_a_stranger, 60), "also without a pair");
	}
	for (i = 0; i < 20; i++)
		failed += offload_ranks(2, sender_ends, 60);
	vm_ok(!failed, "the sender ends while its message is copied, twenty times");
	for (i = failed = 0; i < 20; i++)
		failed += offload_ranks(2, again, 60);
	vm_ok(!failed, "or does the same again from another group, twenty times");
	vm_ok(VM_COMES(vm_pinned_pages() == pinned), "no page stays pinned");
	return vm_end();
}
