// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The injector: what it does is what the plan says, what it must not do it
 * refuses, and it ends when it has to. Counts and order are asserted; how late an
 * event is says more about the emulator, and is told only.
 *
 * Length: the plays share one injector, which is set up and checked here once.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <netlink/genl/genl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/noise/noise.h"
#include "node/netlink.h"
#include "vm.h"

#define US 1000ull
#define MS 1000000ull
#define S 1000000000ull
enum { CPU = 1, LOG = 4096, OVER = 0, INJECTING = 1, OFFLINE = 2 };

static struct netlink *netlink;

/* ---- asking ----------------------------------------------------------------------- */

struct order {
	const char *cpus;
	int context;			/* -1: not said */
	struct coll_noise_model model;
	const struct coll_noise_span *table;
	uint32_t spans, share, log, stream, cost;
	uint64_t lifetime, epoch;
};

static const struct order usual = {
	.cpus = "1", .context = COLL_NOISE_HARDIRQ, .log = LOG,
	.model = { .phase = COLL_NOISE_RANDOM, .period = 10 * MS, .duration = 200 * US, .seed = 7 },
};

static uint64_t wall_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * S + now.tv_nsec;
}

static int take_id(enum coll_command command, struct nlattr **attributes, void *data)
{
	if (command != COLL_CMD_NOISE_START || !attributes[COLL_NOISE_A_ID])
		return -EINVAL;
	*(uint32_t *)data = nla_get_u32(attributes[COLL_NOISE_A_ID]);
	return 0;
}

/* The injector's number, or a negative errno. A table goes in two halves. */
static int64_t start(const struct order *order)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_NOISE_START, 0);
	uint32_t half = order->spans / 2, id = 0;
	int error;

	if (order->cpus)
		nla_put_string(message, COLL_NOISE_A_CPUS, order->cpus);
	if (order->context >= 0)
		nla_put_u8(message, COLL_NOISE_A_CONTEXT, order->context);
	nla_put(message, COLL_NOISE_A_MODEL, sizeof(order->model), &order->model);
	if (order->spans) {
		nla_put(message, COLL_NOISE_A_TABLE, half * sizeof(*order->table), order->table);
		nla_put(message, COLL_NOISE_A_TABLE, (order->spans - half) * sizeof(*order->table),
			order->table + half);
	}
	if (order->share)
		nla_put_u32(message, COLL_NOISE_A_SHARE, order->share);
	if (order->log)
		nla_put_u32(message, COLL_NOISE_A_LOG, order->log);
	if (order->stream)
		nla_put_u32(message, COLL_NOISE_A_STREAM, order->stream);
	if (order->cost)
		nla_put_u32(message, COLL_NOISE_A_COST, order->cost);
	if (order->lifetime)
		nla_put_u64(message, COLL_NOISE_A_LIFETIME, order->lifetime);
	if (order->epoch)
		nla_put_u64(message, COLL_NOISE_A_EPOCH, order->epoch);
	error = netlink_ask(netlink, message, take_id, &id);
	return error ? error : (int64_t)id;
}

static int stop(uint32_t id)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_NOISE_STOP, 0);

	if (id)
		nla_put_u32(message, COLL_NOISE_A_ID, id);
	return netlink_ask(netlink, message, NULL, NULL);
}

static void stop_and_forget(uint32_t id)
{
	stop(id);
	stop(id);
}

struct seats {
	uint32_t id;		/* wanted; 0: all */
	int cpu;		/* wanted; -1: all */
	int count, state;
	char cpus[64];
	uint64_t injected, missed, refused, taken, lost, epoch;
};

static int take_seat(enum coll_command command, struct nlattr **a, void *data)
{
	struct seats *seats = data;

	if (command != COLL_CMD_NOISE_GET || !a[COLL_NOISE_A_ID] || !a[COLL_NOISE_A_CPU])
		return -EINVAL;
	if ((seats->id && nla_get_u32(a[COLL_NOISE_A_ID]) != seats->id) ||
	    (seats->cpu >= 0 && nla_get_u32(a[COLL_NOISE_A_CPU]) != (uint32_t)seats->cpu))
		return 0;
	seats->count++;
	seats->state = nla_get_u8(a[COLL_NOISE_A_STATE]);
	seats->injected += nla_get_u64(a[COLL_NOISE_A_INJECTED]);
	seats->missed += nla_get_u64(a[COLL_NOISE_A_MISSED]);
	seats->refused += nla_get_u64(a[COLL_NOISE_A_REFUSED]);
	seats->taken += nla_get_u64(a[COLL_NOISE_A_TIME]);
	seats->lost += nla_get_u64(a[COLL_NOISE_A_LOST]);
	seats->epoch = nla_get_u64(a[COLL_NOISE_A_EPOCH]);
	snprintf(seats->cpus, sizeof(seats->cpus), "%s", nla_get_string(a[COLL_NOISE_A_CPUS]));
	return 0;
}

static struct seats look(uint32_t id, int cpu)
{
	struct seats seats = { .id = id, .cpu = cpu, .state = -1 };

	if (netlink_ask(netlink, netlink_message(netlink, COLL_CMD_NOISE_GET, NLM_F_DUMP), take_seat,
			&seats))
		vm_note("look: %s", netlink_reason(netlink));
	return seats;
}

struct events {
	uint32_t cpu, count;
	struct coll_noise_injected event[LOG];
};

static int take_events(enum coll_command command, struct nlattr **a, void *data)
{
	struct nlattr *part = a[COLL_NOISE_A_EVENTS];
	struct events *events = data;
	uint32_t count = part ? nla_len(part) / sizeof(*events->event) : 0;

	if (command != COLL_CMD_NOISE_LOG || !a[COLL_NOISE_A_LOST])
		return -EINVAL;
	if (nla_get_u32(a[COLL_NOISE_A_CPU]) != events->cpu)
		return 0;
	if (events->count + count > LOG)
		return -E2BIG;
	if (count)
		memcpy(events->event + events->count, nla_data(part), nla_len(part));
	events->count += count;
	return 0;
}

static int read_log(uint32_t id, uint32_t cpu, struct events *events)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_NOISE_LOG, NLM_F_DUMP);

	*events = (struct events){ .cpu = cpu };
	nla_put_u32(message, COLL_NOISE_A_ID, id);
	return netlink_ask(netlink, message, take_events, events);
}

/* ---- the log against the plan --------------------------------------------------------- */

static int by_late(const void *a, const void *b)
{
	int64_t left = ((const struct coll_noise_injected *)a)->late;
	int64_t right = ((const struct coll_noise_injected *)b)->late;

	return (left > right) - (left < right);
}

static void tell_lateness(struct events *events, const char *what)
{
	uint32_t n = events->count;

	if (!n)
		return;
	qsort(events->event, n, sizeof(*events->event), by_late);
	vm_note("%s: late by %lld us (median), %lld us (p99), %lld us (most), emulated", what,
		(long long)events->event[n / 2].late / 1000,
		(long long)events->event[n * 99 / 100].late / 1000,
		(long long)events->event[n - 1].late / 1000);
}

/* Every logged event is one of the plan's, in order, as long as it or as those that it joined. */
static bool follows_plan(const struct order *order, const struct events *events, uint64_t epoch,
			 uint32_t stream_number, bool exact)
{
	struct coll_noise_plan plan = { &order->model, order->table, order->spans };
	struct coll_noise_stream stream = coll_noise_stream(&plan, stream_number);
	struct coll_noise_span next;
	uint32_t i;

	if (!events->count)
		return false;
	coll_noise_seek(&plan, &stream, events->event[0].asked_start - epoch);
	next = coll_noise_next(&plan, &stream);
	for (i = 0; i < events->count; i++) {
		const struct coll_noise_injected *e = &events->event[i];
		uint64_t begin = e->asked_start - epoch, end;

		while (next.start < begin)
			next = coll_noise_next(&plan, &stream);
		if (next.start != begin)
			return false;
		for (end = begin; next.start <= end && next.start - begin <= 10 * MS;
		     next = coll_noise_next(&plan, &stream))
			if (next.start + next.duration > end)
				end = next.start + next.duration;
		if (e->asked_duration > end - begin || (exact && e->asked_duration != end - begin))
			return false;
	}
	return true;
}

static bool long_enough(const struct events *events)
{
	uint32_t i;

	for (i = 0; i + 1 < events->count; i++)		/* stopping may cut the last */
		if (events->event[i].duration < events->event[i].asked_duration ||
		    events->event[i].late < 0)
			return false;
	return true;
}

/* How many events of the plan begin before `at` on its clock. */
static uint64_t planned(const struct order *order, uint64_t at)
{
	struct coll_noise_plan plan = { &order->model, order->table, order->spans };
	struct coll_noise_stream stream = coll_noise_stream(&plan, order->stream);
	uint64_t count = 0;

	while (coll_noise_next(&plan, &stream).start < at)
		count++;
	return count;
}

/* Runs for a second; what is injected, missed and refused is what the plan has. */
static void injects(const char *what, struct order order)
{
	static struct events events;
	uint64_t least, most, sum;
	struct seats seats;
	int64_t id;

	order.epoch = wall_clock() + 50 * MS;
	id = start(&order);
	if (!vm_ok(id > 0, "%s: starts", what)) {
		vm_note("%s", netlink_reason(netlink));
		return;
	}
	vm_is(look(id, CPU).state, INJECTING, "it injects");
	vm_sleep_ms(1050);
	least = planned(&order, wall_clock() - order.epoch);
	vm_is(stop(id), 0, "it stops");
	most = planned(&order, wall_clock() - order.epoch);
	seats = look(id, CPU);
	vm_is(seats.state, OVER, "then it is over");
	vm_is(read_log(id, CPU, &events), 0, "its log is read");
	vm_note("%llu injected, %llu missed, %llu refused, %llu us taken",
		(unsigned long long)seats.injected, (unsigned long long)seats.missed,
		(unsigned long long)seats.refused, (unsigned long long)seats.taken / 1000);
	vm_is(events.count + seats.lost, seats.injected, "all that was injected is in it");
	sum = seats.injected + seats.missed + seats.refused;
	if (!vm_ok(sum >= least && sum <= most, "the plan's events are accounted for"))
		vm_note("%llu of %llu to %llu", (unsigned long long)sum, (unsigned long long)least,
			(unsigned long long)most);
	vm_ok(seats.injected > 0, "some of them came");
	vm_ok(follows_plan(&order, &events, seats.epoch, order.stream, true),
	      "each as the plan has it");
	vm_ok(long_enough(&events), "none came early or was too short");
	tell_lateness(&events, what);
	vm_is(read_log(id, CPU, &events), 0, "read again, the log");
	vm_is(events.count, 0, "is empty");
	vm_is(stop(id), 0, "stopped twice");
	vm_is(stop(id), -ENOENT, "it is gone");
}

static void contexts(void)
{
	static const char *const names[] = { "hard interrupt", "tasklet", "FIFO thread",
					     "ordinary thread" };
	struct order order = usual;

	for (order.context = 0; order.context < COLL_NOISE_CONTEXTS; order.context++)
		injects(names[order.context], order);
}

static void models(void)
{
	static const struct coll_noise_span table[] = {
		{ 0, 100 * US }, { 5 * MS, 200 * US }, { 5100 * US, 300 * US }, { 30 * MS, 50 * US },
	};
	static const struct coll_noise_span lengths[] = { { 0, 50 * US }, { 0, 500 * US } };
	struct order order = usual;

	order.model.arrival = COLL_NOISE_POISSON;
	order.model.length = COLL_NOISE_EXPONENTIAL;
	order.model.longest = 2 * MS;
	injects("Poisson, exponential", order);
	order.model.length = COLL_NOISE_PARETO;
	order.model.shape = 1500;
	order.stream = 77;
	injects("Poisson, Pareto, stream 77", order);
	order = usual;
	order.model.arrival = COLL_NOISE_REPLAY;
	order.model.length = COLL_NOISE_TABLE;
	order.model.duration = 0;
	order.model.period = 40 * MS;
	order.table = table;
	order.spans = 4;
	injects("replay", order);
	order.model.arrival = COLL_NOISE_PERIODIC;
	order.model.period = 10 * MS;
	order.table = lengths;
	order.spans = 2;
	injects("lengths from a table", order);
}

/* ---- refusals ------------------------------------------------------------------------- */

static void refused(struct order order, int error, const char *reason)
{
	int64_t id = start(&order);
	char what[128];

	snprintf(what, sizeof(what), "refused: %s", reason);
	if (!vm_is(id, error, what) && id > 0)
		stop_and_forget(id);
	vm_says(netlink_reason(netlink), reason, "and it says so");
}

#define WITH(...) ({ struct order with = usual; __VA_ARGS__; with; })

static const char *all_cpus(void)
{
	static char list[32];

	snprintf(list, sizeof(list), "0-%d", vm_cpus() - 1);
	return list;
}

static void refusals(void)
{
	static const struct coll_noise_span backwards[] = { { 5, 1 }, { 4, 1 } };
	struct nl_msg *message;

	refused(WITH(with.cpus = NULL), -EINVAL, "cpus: missing");
	refused(WITH(with.cpus = ""), -EINVAL, "cpus: a list such as 1-3,7");
	refused(WITH(with.cpus = "one"), -EINVAL, "cpus: a list such as 1-3,7");
	refused(WITH(with.cpus = "1,1000"), -ENXIO, "cpus: some are not there");
	refused(WITH(with.cpus = all_cpus()), -EBUSY, "cpus: all would have noise; leave one without");
	refused(WITH(with.context = -1), -EINVAL, "context: missing; hard interrupt (0)");
	refused(WITH(with.context = 4), -EINVAL, "context: hard interrupt (0)");
	refused(WITH(with.share = 9001), -ERANGE, "share: 1 to 9000");
	refused(WITH(with.share = 100), -ERANGE, "share: the model asks for more on average");
	refused(WITH(with.lifetime = 1), -ERANGE, "lifetime: from 1 ms to a day");
	refused(WITH(with.lifetime = 86401 * S), -ERANGE, "lifetime: from 1 ms to a day");
	refused(WITH(with.epoch = ~0ull), -ERANGE, "epoch: before the lifetime ends");
	refused(WITH(with.log = 1 << 21), -ERANGE, "log: at most 1048576");
	refused(WITH(with.cost = 1000001), -ERANGE, "cost: at most 1 ms");
	refused(WITH(with.model.arrival = 9), -EINVAL, "arrival: periodic (0)");
	refused(WITH(with.model.phase = 9), -EINVAL, "phase: same (0)");
	refused(WITH(with.model.length = 9), -EINVAL, "length: fixed (0)");
	refused(WITH(with.model.zero = 9), -EINVAL, "padding: must be 0");
	refused(WITH(with.model.shape = 9), -EINVAL, "shape: 0 where");
	refused(WITH(with.model.streams = 9), -EINVAL, "streams: 0 where");
	refused(WITH(with.model.period = 9), -EINVAL, "period: from 1 us to a day");
	refused(WITH(with.model.period = 10 * US, with.model.duration = 1 * US), -ERANGE,
		"period: events are injected every 20 us");
	refused(WITH(with.model.duration = 0), -EINVAL, "duration: from 1 ns to 1000 s");
	refused(WITH(with.model.duration = 11 * MS, with.model.period = S), -ERANGE,
		"duration: in an interrupt at most 10 ms");
	refused(WITH(with.model.length = COLL_NOISE_EXPONENTIAL), -ERANGE,
		"duration: in an interrupt at most 10 ms");
	refused(WITH(with.context = COLL_NOISE_FIFO, with.model.duration = 2 * S, with.model.period = 100 * S),
		-ERANGE, "duration: in a FIFO thread at most 1 s");
	refused(WITH(with.context = COLL_NOISE_OTHER, with.model.duration = 5 * S, with.model.period = 100 * S),
		-ERANGE, "duration: in a thread at most 4 s");
	refused(WITH(with.model.length = COLL_NOISE_TABLE, with.model.duration = 0), -EINVAL,
		"table: from 1 to 1048576");
	refused(WITH(with.table = backwards, with.spans = 2), -EINVAL, "table: none where");
	refused(WITH(with.model.arrival = COLL_NOISE_REPLAY, with.model.length = COLL_NOISE_TABLE,
		     with.model.duration = 0, with.table = backwards, with.spans = 2),
		-EINVAL, "table: starts ascend");

	message = netlink_message(netlink, COLL_CMD_NOISE_START, 0);
	nla_put_string(message, COLL_NOISE_A_CPUS, "1");
	nla_put_u8(message, COLL_NOISE_A_CONTEXT, 0);
	vm_is(netlink_ask(netlink, message, NULL, NULL), -EINVAL, "refused: no model");
	vm_says(netlink_reason(netlink), "model: missing", "and it says so");
	message = netlink_message(netlink, COLL_CMD_NOISE_START, 0);
	nla_put(message, COLL_NOISE_A_MODEL, 7, "1234567");
	vm_ok(netlink_ask(netlink, message, NULL, NULL) < 0, "refused: a model of 7 bytes");
	vm_says(netlink_reason(netlink), "model", "and it says so");
	message = netlink_message(netlink, COLL_CMD_NOISE_START, 0);
	nla_put_u64(message, COLL_NOISE_A_INJECTED, 7);
	vm_ok(netlink_ask(netlink, message, NULL, NULL) < 0, "refused: an attribute of answers");
	vm_is(stop(12345), -ENOENT, "refused: stopping what is not there");
	vm_says(netlink_reason(netlink), "id: there is no such injector", "and it says so");
	{
		static struct events events;

		vm_is(read_log(12345, CPU, &events), -ENOENT, "refused: its log");
		vm_says(netlink_reason(netlink), "id: there is no such", "and it says so");
	}
	vm_is(look(0, -1).count, 0, "nothing of all that injects");
}

/* In a child: does what it does there, and exits with 0 if it was refused. */
static int refused_to(int (*become)(void))
{
	int status;
	pid_t child = fork();

	if (!child) {
		struct netlink *mine;

		if (become() || netlink_open(&mine))
			_exit(9);
		netlink = mine;
		if (start(&usual) != -EPERM || stop(0) != -EPERM)
			_exit(1);
		_exit(0);
	}
	waitpid(child, &status, 0);
	return status;
}

static int become_nobody(void)
{
	return setuid(65534);
}

static int become_elsewhere(void)
{
	return unshare(CLONE_NEWNET);
}

static void privileges(void)
{
	vm_is(refused_to(become_nobody), 0, "nobody may not start or stop");
	vm_is(refused_to(become_elsewhere), 0, "nor may root of another network namespace");
}

/* ---- rails ------------------------------------------------------------------------------ */

static void rails(void)
{
	struct order order = usual;
	struct seats seats;
	int64_t first, second;
	uint64_t began;

	order.share = 6000;
	first = start(&order);
	order.share = 3000;
	second = start(&order);
	vm_ok(first > 0 && second > 0 && first != second, "two injectors on one CPU");
	order.share = 500;
	vm_is(start(&order), -EBUSY, "a third that would make it more than 9000 is refused");
	vm_says(netlink_reason(netlink), "share: with the CPU's other injectors", "and why");
	stop_and_forget(first);
	vm_is(look(0, -1).count, 1, "stopping one leaves the other");
	vm_is(stop(0), 0, "stopping all of the socket's");
	vm_is(look(second, CPU).state, OVER, "stops that one too");
	stop(second);

	/* 300 us in 1 ms, of which a share of 35 % leaves little more. */
	order = usual;
	order.share = 3500;
	order.log = 0;
	order.model.period = MS;
	order.model.duration = 300 * US;
	first = start(&order);
	began = vm_now();
	vm_sleep_ms(1000);
	stop(first);
	seats = look(first, CPU);
	vm_note("30 %% asked, 35 %% allowed: %llu us in 1 s, %llu refused, %llu missed",
		(unsigned long long)seats.taken / 1000, (unsigned long long)seats.refused,
		(unsigned long long)seats.missed);
	vm_ok(seats.taken < (vm_now() - began) / 2, "it stays within its share");
	stop(first);

	/* Emulated interrupts cost more than 20 us: the rail must hold what is asked back. */
	order.share = 4000;
	order.model.period = 25 * US;
	order.model.duration = 5 * US;
	first = start(&order);
	began = vm_now();
	vm_sleep_ms(500);
	stop(first);
	seats = look(first, CPU);
	vm_note("40 kHz: %llu injected, %llu refused, %llu missed",
		(unsigned long long)seats.injected, (unsigned long long)seats.refused,
		(unsigned long long)seats.missed);
	vm_ok(seats.taken < (vm_now() - began) * 8 / 10, "a storm of events leaves room");
	stop(first);
}

static void full_log(void)
{
	static struct events events;
	struct order order = usual;
	struct seats seats;
	int64_t id;

	order.log = 9;		/* 16 are kept: a power of two */
	order.model.period = 5 * MS;
	id = start(&order);
	vm_ok(VM_COMES(look(id, CPU).injected > 40), "more events come than it has room for");
	stop(id);
	seats = look(id, CPU);
	read_log(id, CPU, &events);
	vm_is(events.count, 16, "a full log keeps the first");
	vm_is(seats.lost, seats.injected - 16, "and counts the others");
	stop(id);
}

static int kinds[8], last_reason_is_lifetime;

static int take_event(enum coll_command command, struct nlattr **a, void *data)
{
	(void)data;
	if (command != COLL_CMD_EVENT || !a[COLL_EVENT_A_KIND] ||
	    nla_get_u8(a[COLL_EVENT_A_KIND]) >= 8)
		return -EINVAL;
	kinds[nla_get_u8(a[COLL_EVENT_A_KIND])]++;
	if (a[COLL_EVENT_A_REASON])
		last_reason_is_lifetime = !!strstr(nla_get_string(a[COLL_EVENT_A_REASON]),
						   "lifetime");
	return 0;
}

static void lifetime(void)
{
	struct netlink *ears;
	struct order order = usual;
	int64_t id;

	netlink_open(&ears);
	netlink_listen(ears);
	order.lifetime = 2 * S;
	id = start(&order);
	vm_is(look(id, CPU).state, INJECTING, "within its lifetime it injects");
	vm_ok(VM_COMES(look(id, CPU).state == OVER), "then it is over");
	for (struct pollfd ready = { netlink_fd(ears), POLLIN, 0 }; poll(&ready, 1, 1000) == 1;)
		netlink_events(ears, take_event, NULL);
	vm_ok(kinds[COLL_EVENT_NOISE_STARTED] == 1 && kinds[COLL_EVENT_NOISE_ENDED] == 1 &&
	      last_reason_is_lifetime, "listeners were told, and why");
	netlink_close(ears);
	stop(id);
}

/* ---- ends ------------------------------------------------------------------------------ */

static void owner_killed(void)
{
	int ready[2];
	char byte;
	pid_t child;

	if (pipe(ready))
		return;
	child = fork();
	if (!child) {
		struct netlink *mine;
		struct order order = usual;

		netlink_open(&mine);
		netlink = mine;
		for (order.context = 0; order.context < COLL_NOISE_CONTEXTS; order.context++) {
			order.share = 2200;
			start(&order);
		}
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	if (read(ready[0], &byte, 1) != 1)
		vm_note("the child died");
	vm_is(look(0, -1).count, 4, "a child injects in all contexts");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	vm_is(look(0, -1).count, 0, "killed, its injectors are gone with it");
}

static void cpu_offline(void)
{
	struct order order = usual;
	struct seats before, after;
	int64_t id[COLL_NOISE_CONTEXTS];
	int i;

	order.share = 2200;
	for (i = 0; i < COLL_NOISE_CONTEXTS; i++) {
		order.context = i;
		id[i] = start(&order);
	}
	vm_sleep_ms(100);
	vm_is(vm_cpu_online(CPU, false), 0, "the CPU goes offline while it is injected");
	for (i = 0; i < COLL_NOISE_CONTEXTS; i++)
		vm_is(look(id[i], CPU).state, OFFLINE, "its seat rests");
	before = look(0, -1);
	vm_is(start(&usual), -ENXIO, "nothing new starts there");
	vm_says(netlink_reason(netlink), "cpus: some are offline", "and why");
	vm_sleep_ms(200);
	after = look(0, -1);
	vm_is(after.injected, before.injected, "nothing is injected elsewhere instead");
	vm_is(vm_cpu_online(CPU, true), 0, "it comes back");
	vm_ok(VM_COMES(look(0, -1).injected > before.injected), "and is injected again");
	for (i = 0; i < COLL_NOISE_CONTEXTS; i++)
		vm_is(look(id[i], CPU).state, INJECTING, "by all of them");
	for (i = 0; i < COLL_NOISE_CONTEXTS; i++)
		stop_and_forget(id[i]);
}

static void last_quiet_cpu(void)
{
	struct order order = usual;
	int64_t id;

	if (vm_cpus() > 2) {
		vm_skip("the last CPU without noise", "there are more than two");
		return;
	}
	order.cpus = "0";
	id = start(&order);
	vm_ok(id > 0, "CPU 0 may have noise too");
	vm_is(vm_cpu_online(CPU, false), 0, "the only CPU without noise goes offline");
	vm_is(look(id, 0).state, OVER, "so the noise ends");
	vm_cpu_online(CPU, true);
	stop(id);
}

static void unload_while_injecting(void)
{
	struct order order = usual;

	order.share = 2200;
	for (order.context = 0; order.context < COLL_NOISE_CONTEXTS; order.context++)
		vm_ok(start(&order) > 0, "context %d injects", order.context);
	vm_is(vm_unload(), 0, "coll.ko is unloaded while it injects");
	netlink_close(netlink);
	vm_is(vm_load(""), 0, "and loaded again");
	vm_is(netlink_open(&netlink), 0, "it answers");
	vm_is(look(0, -1).count, 0, "and injects nothing");
}

static void many_cycles(void)
{
	struct order order = usual;
	uint64_t end = vm_now() + 4 * S;
	int i, good = 0;

	order.model.period = MS;
	order.log = 0;
	for (i = 0; i < 400 && vm_now() < end; i++) {
		int64_t id;

		order.context = i % COLL_NOISE_CONTEXTS;
		id = start(&order);
		if (i % 8 == 0)
			vm_sleep_ms(3);
		good += id > 0 && !stop(id) && !stop(id);
	}
	vm_note("started and stopped %d times", i);
	vm_is(good, i, "started and stopped, as often as fits into 4 s");
	vm_is(look(0, -1).count, 0, "nothing is left");
}

/* ---- a million events at once ---- */

enum { CROWD = 1 << 20, CROWD_EACH = 4000, GAP_MS = 120 };

static int64_t start_crowd(void)
{
	const struct coll_noise_model model = {
		.arrival = COLL_NOISE_REPLAY, .length = COLL_NOISE_TABLE, .period = 22 * S,
	};
	static struct coll_noise_span none[CROWD_EACH];
	const size_t bytes = 24 << 20;
	struct nl_msg *message = nlmsg_alloc_size(bytes);
	const int room = 2 * bytes, fd = netlink_fd(netlink);
	uint32_t id = 0, i;
	int error;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	genlmsg_put(message, 0, 0, netlink_family(netlink), 0, 0, COLL_CMD_NOISE_START,
		    COLL_GENL_VERSION);
	nla_put_string(message, COLL_NOISE_A_CPUS, "1");
	nla_put_u8(message, COLL_NOISE_A_CONTEXT, COLL_NOISE_HARDIRQ);
	nla_put(message, COLL_NOISE_A_MODEL, sizeof(model), &model);
	nla_put_u64(message, COLL_NOISE_A_EPOCH, wall_clock() + 2 * S);	/* it is long to read */
	for (i = 0; i < CROWD; i += CROWD_EACH)
		nla_put(message, COLL_NOISE_A_TABLE,
			(CROWD - i < CROWD_EACH ? CROWD - i : CROWD_EACH) * sizeof(*none), none);
	error = netlink_ask(netlink, message, take_id, &id);
	return error ? error : (int64_t)id;
}

/* The longest time that this CPU is away within 2.5 s, in ns. */
static uint64_t longest_gap(void)
{
	uint64_t last = vm_now(), now, most = 0;
	const uint64_t end = last + 2500 * MS;

	for (; last < end; last = now) {
		now = vm_now();
		most = now - last > most ? now - last : most;
	}
	return most;
}

/*
 * A replay of 2^20 spans of no length, all at the same time: one interrupt, and a short one. On a
 * busy host it is read too late for its epoch, and is due a period later.
 */
static void crowd(void)
{
	uint64_t most = 0, one, injected = 0;
	struct seats seats;
	int64_t id;
	int looks;

	vm_run_on(1);
	id = start_crowd();
	if (!vm_ok(id > 0, "a replay of 2^20 spans at the same time, without length")) {
		vm_note("%s", netlink_reason(netlink));
		return;
	}
	for (looks = 12; looks && injected != CROWD; looks--) {
		one = longest_gap();
		most = one > most ? one : most;
		seats = look(id, CPU);
		injected = seats.injected + seats.missed + seats.refused;
	}
	vm_note("the CPU was away for at most %.1f ms", most / 1e6);
	vm_ok(most < GAP_MS * MS, "no interrupt handles them one by one");
	vm_is(injected, CROWD, "each of them is counted");
	stop_and_forget(id);
	vm_run_on(0);
}

int main(void)
{
	if (!vm_is(netlink_open(&netlink), 0, "a socket"))
		return vm_end();
	vm_run_on(0);
	refusals();
	privileges();
	contexts();
	models();
	rails();
	full_log();
	lifetime();
	owner_killed();
	cpu_offline();
	last_quiet_cpu();
	many_cycles();
	crowd();
	unload_while_injecting();
	netlink_close(netlink);
	return vm_end();
}
