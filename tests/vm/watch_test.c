// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The attributor: a known thread and a known interrupt get the time that they
 * say they took, everything adds up, and what is wrong is refused with the
 * attribute named.
 *
 * Length: the plays share the probes, the workloads that steal time and how their share is checked.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "node/netlink.h"
#include "uapi/coll_noise.h"
#include "ask.h"
#include "known.h"
#include "vm.h"
#include "watches.h"

enum { CPU = 1, SOURCES_MAX = 512 };

/* No host takes time from this machine: what is compared is alike the first time, always. */
static bool exact;

/* The interrupt of a CPU's timer: its name, and its row in /proc/interrupts. */
#ifdef __x86_64__
#define TIMER		"local_timer"
#define TIMER_ROW	"LOC:"
#else
#define TIMER		"arch_timer"
#define TIMER_ROW	"arch_timer"
#endif

/* ---- what was read ----------------------------------------------------------------- */

struct reading {
	uint64_t watched, ran, idle, cost, lost;
	int summaries, state;
	bool own, full;
	int count;
	struct watches_said source[SOURCES_MAX];
};

static void take(const struct watches_said *said, void *argument)
{
	struct reading *reading = argument;

	if (said->cpu != CPU)
		return;
	if (said->is_source) {
		reading->full |= reading->count == SOURCES_MAX;
		if (!reading->full)
			reading->source[reading->count++] = *said;
		return;
	}
	reading->summaries++;
	reading->watched = said->watched;
	reading->ran = said->ran;
	reading->idle = said->idle;
	reading->cost = said->cost;
	reading->lost = said->lost;
	reading->state = said->state;
	reading->own = said->own;
}

static struct reading *read_watch(struct netlink *netlink)
{
	static struct reading reading;

	memset(&reading, 0, sizeof(reading));
	watches_read(netlink, take, &reading);
	if (reading.full)
		vm_ok(false, "reading: more than %d sources", SOURCES_MAX);
	return &reading;
}

/* All sources of that cause and name together: how much, how often. */
static uint64_t total_of(const struct reading *reading, int cause, const char *name,
			 uint64_t *count)
{
	uint64_t total = 0;

	if (count)
		*count = 0;
	for (int i = 0; i < reading->count; i++) {
		if (reading->source[i].cause != cause || strcmp(reading->source[i].name, name))
			continue;
		total += reading->source[i].total;
		if (count)
			*count += reading->source[i].count;
	}
	return total;
}

/* The same with what interrupted them. */
static uint64_t inclusive_of(const struct reading *reading, int cause, const char *name)
{
	uint64_t total = 0;

	for (int i = 0; i < reading->count; i++)
		if (reading->source[i].cause == cause && !strcmp(reading->source[i].name, name))
			total += reading->source[i].inclusive;
	return total;
}

static void show(const struct reading *reading)
{
	vm_note("watched %llu ran %llu idle %llu cost %llu ns (%.2f %%)",
		(unsigned long long)reading->watched, (unsigned long long)reading->ran,
		(unsigned long long)reading->idle, (unsigned long long)reading->cost,
		100.0 * reading->cost / reading->watched);
	for (int i = 0; i < reading->count; i++)
		vm_note("cause %d number %u %s: %llu times, %llu ns, %llu with what came between, at most %llu",
			reading->source[i].cause, reading->source[i].number, reading->source[i].name,
			(unsigned long long)reading->source[i].count,
			(unsigned long long)reading->source[i].total,
			(unsigned long long)reading->source[i].inclusive,
			(unsigned long long)reading->source[i].longest);
}

/* ---- commands ----------------------------------------------------------------------- */

static int start(struct netlink *netlink, const char *cpus, uint32_t task, uint32_t log)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);

	if (cpus)
		nla_put_string(message, COLL_WATCH_A_CPUS, cpus);
	if (task)
		nla_put_u32(message, COLL_WATCH_A_TASK, task);
	if (log)
		nla_put_u32(message, COLL_WATCH_A_LOG, log);
	return netlink_ask(netlink, message, NULL, NULL);
}

static int start_yielding(struct netlink *netlink, const char *cpus)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);

	nla_put_string(message, COLL_WATCH_A_CPUS, cpus);
	nla_put_flag(message, COLL_WATCH_A_YIELDS);
	return netlink_ask(netlink, message, NULL, NULL);
}

static int stop_on(struct netlink *netlink, const char *cpus)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_WATCH_STOP, 0);

	nla_put_string(message, COLL_WATCH_A_CPUS, cpus);
	return netlink_ask(netlink, message, NULL, NULL);
}

static int stop(struct netlink *netlink)
{
	return netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_STOP, 0), NULL, NULL);
}

static void refused(struct netlink *netlink, const char *cpus, uint32_t task, uint32_t log,
		    int error, const char *reason)
{
	vm_is(start(netlink, cpus, task, log), error, reason);
	vm_says(netlink_reason(netlink), reason, "and says so");
}

static void refusals(struct netlink *netlink)
{
	struct nl_msg *message;
	struct netlink *second;

	refused(netlink, NULL, 0, 0, -EINVAL, "cpus: missing");
	refused(netlink, "one", 0, 0, -EINVAL, "cpus: a list such as 1-3,7");
	refused(netlink, "", 0, 0, -EINVAL, "cpus: a list such as 1-3,7");
	refused(netlink, "1-63", 0, 0, -ENXIO, "cpus: some are not there");
	refused(netlink, "1", 32767, 0, -ESRCH, "task: no such process");
	refused(netlink, "1", 5000000, 0, -ERANGE, "task: integer out of range (valid: 1 to ");
	refused(netlink, "1", 0, 2000000, -ERANGE, "log: integer out of range (valid: 0 to 1048576)");

	message = netlink_message(netlink, COLL_CMD_WATCH_STOP, 0);
	nla_put_u32(message, COLL_WATCH_A_CPUS, 1);
	vm_is(netlink_ask(netlink, message, NULL, NULL), -EINVAL, "stop takes a list of CPUs, and no number");
	vm_says(netlink_reason(netlink), "cpus: a list such as 1-3,7", "and says so");
	message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);
	nla_put_u32(message, COLL_WATCH_A_HISTOGRAM, 1);
	vm_is(netlink_ask(netlink, message, NULL, NULL), -EINVAL, "an answer's attribute is no argument");
	vm_says(netlink_reason(netlink), "histogram: ", "and is named");
	message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);
	nla_put_u8(message, COLL_WATCH_A_TASK, 1);
	vm_ok(netlink_ask(netlink, message, NULL, NULL) < 0, "a number of the wrong size is refused");
	vm_says(netlink_reason(netlink), "task: ", "and named");

	vm_is(start(netlink, "1", 0, 0), 0, "CPU 1 is watched");
	vm_is(netlink_open(&second), 0, "somebody else");
	refused(second, "0-1", 0, 0, -EBUSY, "cpus: one of them is watched already");
	vm_is(stop(second), 0, "who watches nothing may stop it");
	vm_is(read_watch(second)->summaries, 1, "and read what others watch");
	netlink_close(second);
	vm_is(read_watch(netlink)->state, 1, "which goes on");
	vm_is(stop(netlink), 0, "until it is stopped");
	vm_is(read_watch(netlink)->summaries, 0, "then nothing is read");
}

/* A CPU has one watch: who yields gives it up to who does not, and to nobody else. */
static void gives_way(struct netlink *netlink)
{
	struct netlink *second;

	vm_is(start_yielding(netlink, "0-1"), 0, "both CPUs are watched by who yields");
	vm_is(netlink_open(&second), 0, "somebody else");
	vm_is(start_yielding(second, "1"), -EBUSY, "does not get one that way");
	vm_ok(read_watch(netlink)->own && !read_watch(second)->own, "whose the watch is, is said");
	refused(second, "1", 32767, 0, -ESRCH, "task: no such process");
	vm_ok(read_watch(netlink)->own, "a refusal takes none away");
	vm_is(start(second, "1", 0, 0), 0, "who does not yield gets it");
	vm_ok(!read_watch(netlink)->own && read_watch(second)->own, "which is said, too");
	vm_is(start_yielding(netlink, "1"), -EBUSY, "and the first one waits");
	vm_is(stop(second), 0, "until it is over");
	vm_is(read_watch(netlink)->summaries, 0, "then nobody watches it");
	vm_is(start_yielding(netlink, "1"), 0, "and the first one does again");
	vm_is(stop_on(netlink, "63"), -ENXIO, "a watch of what is not there does not stop");
	vm_is(stop_on(second, "0-1"), 0, "nor does another's");
	vm_is(stop_on(netlink, "0"), 0, "that of one CPU is stopped");
	vm_is(read_watch(netlink)->state, 1, "that of the other goes on");
	vm_is(start(second, "0", 0, 0), 0, "the first one is free");
	netlink_close(second);
	vm_is(stop(netlink), 0, "stopped");
}

/* ---- known noise -------------------------------------------------------------------- */

static bool near(uint64_t got, uint64_t wanted, double share)
{
	double error = (double)got - (double)wanted;

	return error <= share * wanted && -error <= share * wanted;
}

static uint64_t sum_of(const struct reading *reading)
{
	uint64_t sum = reading->ran + reading->idle;

	for (int i = 0; i < reading->count; i++)
		sum += reading->source[i].total;
	return sum;
}

/* What comes while a CPU is read is in one number and not in another: of the time, and events. */
static double apart(void)
{
	return vm_slowness() > 1 ? 0.01 : 0.0001;
}

static uint64_t events_apart(void)
{
	return vm_slowness() > 1 ? 3 : 0;
}

/* So it is read again. */
static void adds_up(struct netlink *netlink, const struct reading *reading)
{
	int tries;

	for (tries = 10; tries && !near(sum_of(reading), reading->watched, apart()); tries--)
		reading = read_watch(netlink);
	if (!vm_ok(tries, "all time has an owner, and one only"))
		vm_note("sum %llu of %llu", (unsigned long long)sum_of(reading),
			(unsigned long long)reading->watched);
	for (int i = 0; i < reading->count; i++) {
		const struct watches_said *source = &reading->source[i];
		const uint64_t events = source->events;

		if (events + events_apart() < source->count || events > source->count + events_apart() ||
		    source->longest > source->total)
			vm_ok(false, "%s: its histogram has its count, its total its longest",
			      source->name);
	}
}

/*
 * What the daemon says is what the attributor saw of it, with what interrupted it. The
 * emulator is stopped by its host, for longer than a burst at times, also between the
 * kernel's reading its clock and ours: one good round of some is asked for.
 */
static struct reading *work_and_read(struct netlink *netlink, struct known *daemon, int bursts,
				     const char *what)
{
	struct reading *reading = read_watch(netlink);
	uint64_t seen, turns, before;
	bool good = false;

	for (int round = exact ? 7 : 0; round < 8 && !good; round++) {
		total_of(reading, COLL_NOISE_THREAD, "known-daemon", &before);
		seen = inclusive_of(reading, COLL_NOISE_THREAD, "known-daemon");
		known_work(daemon, bursts);
		reading = read_watch(netlink);
		total_of(reading, COLL_NOISE_THREAD, "known-daemon", &turns);
		seen = inclusive_of(reading, COLL_NOISE_THREAD, "known-daemon") - seen;
		vm_note("the daemon says %llu ns, the attributor %llu",
			(unsigned long long)daemon->own, (unsigned long long)seen);
		good = near(seen, daemon->own, 0.05);
	}
	show(reading);
	vm_ok(good, "%s", what);
	vm_ok(turns - before >= (uint64_t)bursts, "every one of its turns is counted");
	return reading;
}

static void a_known_daemon(struct netlink *netlink)
{
	struct known daemon = known_begin(CPU, "known-daemon");
	struct reading *reading;
	uint64_t began, took;

	began = vm_now();
	vm_is(start(netlink, "1", 0, 0), 0, "watching CPU 1");
	reading = work_and_read(netlink, &daemon, 10, "a daemon gets what it says it took");
	took = vm_now() - began;
	vm_ok(reading->watched <= took && reading->watched > took / 2, "watched as long as it was");
	vm_ok(total_of(reading, COLL_NOISE_IRQ, TIMER, NULL) > 0, "the timer is there by name");
	vm_ok(reading->cost > 0 && reading->cost < reading->watched / 5, "watching has its cost");
	adds_up(netlink, reading);
	vm_is(stop(netlink), 0, "stopped");
	known_end(&daemon);
}

/* ---- a known interrupt ----------------------------------------------------------------- */

/* What /proc/interrupts says of the timer on CPU 1. */
static uint64_t timer_interrupts(void)
{
	static char text[65536];
	char *at;

	vm_read("/proc/interrupts", text, sizeof(text));
	at = strstr(text, TIMER_ROW);
	while (at && at > text && at[-1] != '\n')	/* its name may stand at the end of the row */
		at--;
	at = at ? strchr(at, ':') : NULL;
	if (!at)
		return 0;
	strtoull(at + 1, &at, 10);
	return strtoull(at, NULL, 10);
}

static void a_known_interrupt(struct netlink *netlink)
{
	uint64_t before_start, started, before_reading, read, count;
	struct reading *reading;

	vm_run_on(CPU);
	before_start = timer_interrupts();
	vm_is(start(netlink, "1", 0, 0), 0, "watching CPU 1");
	started = timer_interrupts();
	for (int i = 0; i < 300; i++)
		vm_sleep_ms(1);		/* a timer of this CPU */
	before_reading = timer_interrupts();
	reading = read_watch(netlink);
	read = timer_interrupts();
	total_of(reading, COLL_NOISE_IRQ, TIMER, &count);
	vm_note("/proc/interrupts says %llu to %llu, the attributor %llu",
		(unsigned long long)(before_reading - started),
		(unsigned long long)(read - before_start), (unsigned long long)count);
	vm_ok(count >= 300 && count >= before_reading - started && count <= read - before_start,
	      "every interrupt of the timer is counted");
	adds_up(netlink, reading);
	vm_is(stop(netlink), 0, "stopped");
	vm_run_on(0);
}

/* ---- a task that others disturb ---------------------------------------------------------- */

/*
 * The application wants the CPU all the time; the daemon takes some of it, and
 * the timer some of both. What is in its gaps is theirs and adds up.
 */
static void a_disturbed_task(struct netlink *netlink)
{
	struct known daemon = known_begin(CPU, "known-daemon");
	uint64_t stolen = 0, app = 0;
	struct reading *reading;
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_NAME, "application");
		vm_run_on(CPU);
		for (;;)
			;
	}
	vm_sleep_ms(50);
	vm_is(start(netlink, "1", pid, 0), 0, "watching a task on CPU 1");
	reading = work_and_read(netlink, &daemon, 10,
				"a daemon takes from the task what it says it took");
	for (int i = 0; i < reading->count; i++) {
		stolen += reading->source[i].total;
		if (!strcmp(reading->source[i].name, "application"))
			app += reading->source[i].total;
	}
	vm_is(app, 0, "the task takes nothing from itself");
	vm_ok(reading->ran > 0 && reading->idle < reading->watched / 20,
	      "it ran or was kept from running all the time");
	vm_ok(near(reading->ran + reading->idle + stolen, reading->watched, apart()),
	      "what it ran and what was taken is all there is");
	adds_up(netlink, reading);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	known_end(&daemon);
	vm_is(stop(netlink), 0, "stopped");
}

/* ---- all at once -------------------------------------------------------------------------- */

static int take_injector(enum coll_command command, struct nlattr **attributes, void *data)
{
	(void)command;
	*(uint32_t *)data = nla_get_u32(attributes[COLL_NOISE_A_ID]);
	return 0;
}

/* Hard interrupts of 500 us, 50 times a second on CPU 1; its number. */
static uint32_t start_injector(struct netlink *netlink)
{
	const struct coll_noise_model model = { .period = 20000000, .duration = 500000 };
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_NOISE_START, 0);
	uint32_t id = 0;

	nla_put_string(message, COLL_NOISE_A_CPUS, "1");
	nla_put_u8(message, COLL_NOISE_A_CONTEXT, COLL_NOISE_HARDIRQ);
	nla_put(message, COLL_NOISE_A_MODEL, sizeof(model), &model);
	netlink_ask(netlink, message, take_injector, &id);
	return id;
}

static int take_taken(enum coll_command command, struct nlattr **attributes, void *data)
{
	(void)command;
	if (attributes[COLL_NOISE_A_TIME])
		*(uint64_t *)data = nla_get_u64(attributes[COLL_NOISE_A_TIME]);
	return 0;
}

/* What the injector says that it took so far. */
static uint64_t injector_says(struct netlink *netlink)
{
	uint64_t taken_by_it = 0;

	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_NOISE_GET, NLM_F_DUMP), take_taken,
		    &taken_by_it);
	return taken_by_it;
}

static uint64_t total_of_cause(const struct reading *reading, int cause)
{
	uint64_t total = 0;

	for (int i = 0; i < reading->count; i++)
		if (reading->source[i].cause == cause)
			total += reading->source[i].total;
	return total;
}

/*
 * A daemon, the timer's interrupt and the injector on one CPU, each of which says
 * what it does: the injector its time; the kernel how many interrupts there were;
 * the daemon what its own clock says. On that, what the two others took from it is
 * its own; the attributor has both, with that and without it.
 */
static bool one_round_at_once(struct netlink *netlink, struct known *daemon, bool last)
{
	uint64_t timers[4], injected, seen, net, count, took;
	struct reading *reading;
	bool daemons;

	timers[0] = timer_interrupts();
	vm_is(start(netlink, "1", 0, 0), 0, "watching CPU 1");
	timers[1] = timer_interrupts();
	vm_ok(start_injector(netlink), "with noise");
	known_work(daemon, 20);
	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_NOISE_STOP, 0), NULL, NULL);
	took = injector_says(netlink);
	timers[2] = timer_interrupts();
	reading = read_watch(netlink);
	timers[3] = timer_interrupts();
	show(reading);

	injected = total_of_cause(reading, COLL_NOISE_INJECTED);
	vm_note("the injector says %llu ns, the attributor %llu", (unsigned long long)took,
		(unsigned long long)injected);
	vm_ok(took > 0 && near(injected, took, 0.05), "the injector gets what it says it took");
	total_of(reading, COLL_NOISE_IRQ, TIMER, &count);
	vm_note("/proc/interrupts says %llu to %llu, the attributor %llu",
		(unsigned long long)(timers[2] - timers[1]),
		(unsigned long long)(timers[3] - timers[0]), (unsigned long long)count);
	vm_ok(count >= timers[2] - timers[1] && count <= timers[3] - timers[0],
	      "every interrupt is counted");
	net = total_of(reading, COLL_NOISE_THREAD, "known-daemon", NULL);
	seen = inclusive_of(reading, COLL_NOISE_THREAD, "known-daemon");
	vm_note("the daemon says %llu ns, the attributor %llu, %llu without what interrupted it",
		(unsigned long long)daemon->own, (unsigned long long)seen,
		(unsigned long long)net);
	daemons = near(seen, daemon->own, 0.05);
	if (daemons || last)
		vm_ok(daemons, "the daemon gets what it says");
	vm_ok(net < seen && seen - net <= injected + total_of_cause(reading, COLL_NOISE_IRQ) +
	      total_of_cause(reading, COLL_NOISE_SOFTIRQ) + total_of_cause(reading, COLL_NOISE_NMI),
	      "and is told how much of it was no work of its own");
	adds_up(netlink, reading);
	vm_is(stop(netlink), 0, "stopped");
	return daemons;
}

/* The host may stop the emulator between the kernel's reading its clock and ours: again then. */
static void all_at_once(struct netlink *netlink)
{
	struct known daemon = known_begin(CPU, "known-daemon");
	int rounds = exact ? 1 : 5;

	known_work(&daemon, 1);
	while (rounds-- && !one_round_at_once(netlink, &daemon, !rounds))
		;
	known_end(&daemon);
}

/* ---- one gap, many causes ------------------------------------------------------------------ */

enum { GAPS = 64, PARTS = 1 << 15 };

/* What the application sees of itself, by the clock: times in which it did not run. */
struct gaps {
	uint32_t count;
	struct {
		uint64_t begin, end;
	} gap[GAPS];
};

static void look_for_gaps(struct gaps *gaps)
{
	uint64_t last = vm_now(), now;

	for (;; last = now) {
		now = vm_now();
		if (now - last < 15000000 || gaps->count == GAPS)
			continue;
		gaps->gap[gaps->count].begin = last;
		gaps->gap[gaps->count].end = now;
		__atomic_store_n(&gaps->count, gaps->count + 1, __ATOMIC_RELEASE);
	}
}

struct parts {
	uint32_t count;
	struct coll_noise_event event[PARTS];
};

static int take_parts(enum coll_command command, struct nlattr **attributes, void *data)
{
	const struct coll_noise_event *event = nla_data(attributes[COLL_WATCH_A_EVENTS]);
	uint32_t count = nla_len(attributes[COLL_WATCH_A_EVENTS]) / sizeof(*event);
	struct parts *parts = data;

	(void)command;
	for (uint32_t i = 0; i < count && parts->count < PARTS; i++)
		parts->event[parts->count++] = event[i];
	return 0;
}

static uint8_t cause_of(const struct reading *reading, uint32_t index)
{
	for (int i = 0; i < reading->count; i++)
		if (reading->source[i].index == index)
			return reading->source[i].cause;
	return COLL_NOISE_CAUSES;
}

/*
 * A daemon's turn of 20 ms in a gap of the application has interrupts of the timer
 * within it: their times, each without what interrupted it, are those of the gap.
 */
static void a_gap_adds_up(struct netlink *netlink)
{
	struct gaps *gaps = mmap(NULL, sizeof(*gaps), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct known daemon = known_begin(CPU, "known-daemon");
	static struct parts parts;
	struct reading *reading;
	uint32_t both = 0, good = 0, over = 0, most = 0;
	pid_t pid = fork();

	if (!pid) {
		vm_run_on(CPU);
		look_for_gaps(gaps);
	}
	vm_sleep_ms(50);
	vm_is(start(netlink, "1", pid, PARTS), 0, "watching a task with a log");
	gaps->count = 0;
	known_work(&daemon, 20);
	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_LOG, NLM_F_DUMP), take_parts,
		    &parts);
	reading = read_watch(netlink);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (uint32_t g = 0; g < gaps->count; g++) {
		const uint64_t begin = gaps->gap[g].begin, end = gaps->gap[g].end;
		uint64_t sum = 0;
		uint32_t threads = 0, irqs = 0;

		for (uint32_t i = 0; i < parts.count; i++) {
			if (parts.event[i].start < begin || parts.event[i].start >= end)
				continue;
			sum += parts.event[i].duration;
			threads += cause_of(reading, parts.event[i].source) == COLL_NOISE_THREAD;
			irqs += cause_of(reading, parts.event[i].source) == COLL_NOISE_IRQ;
		}
		if (!threads || !irqs)
			continue;
		both++;
		good += near(sum, end - begin, exact ? 0.01 : 0.05);
		over += sum > 1.05 * (end - begin);
		if (both == 1)
			vm_note("a gap of %llu ns: %u threads and %u interrupts took %llu",
				(unsigned long long)(end - begin), threads, irqs,
				(unsigned long long)sum);
		most = irqs > most ? irqs : most;
	}
	vm_ok(both > 0, "%u of %u gaps have a thread and interrupts in them, %u at most", both,
	      gaps->count, most);
	vm_is(over, 0, "whose parts are never more than the gap");
	vm_ok(good > 0 && (!exact || good == both),
	      "and add up to it in %u of them, where the host took nothing", good);
	vm_is(stop(netlink), 0, "stopped");
	known_end(&daemon);
	munmap(gaps, sizeof(*gaps));
}

/* ---- a task that wakes -------------------------------------------------------------------- */

/* Sleeps for 3 ms again and again, and adds up how late it was awake. */
static void be_late(volatile uint64_t *late)
{
	for (;;) {
		const uint64_t due = vm_now() + 3000000;
		const struct timespec then = { due / 1000000000, due % 1000000000 };

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL);
		*late += vm_now() - due;
	}
}

/* From its wake-up on it is kept from running: by who was there before. */
static void a_task_that_wakes(struct netlink *netlink)
{
	struct known daemon = known_begin(CPU, "known-daemon");
	volatile uint64_t *late = mmap(NULL, sizeof(*late), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				       -1, 0);
	const pid_t pid = fork();
	bool good = false;

	if (!pid) {
		vm_run_on(CPU);
		be_late(late);
	}
	vm_sleep_ms(50);
	vm_is(start(netlink, "1", pid, 0), 0, "watching a task that sleeps and wakes");
	for (int round = exact ? 7 : 0; round < 8 && !good; round++) {
		const uint64_t before = *late,
			       seen = inclusive_of(read_watch(netlink), COLL_NOISE_THREAD, "known-daemon");
		uint64_t was_late, taken;

		known_work(&daemon, 20);
		was_late = *late - before;
		taken = inclusive_of(read_watch(netlink), COLL_NOISE_THREAD, "known-daemon") - seen;
		vm_note("it was late by %llu ns, of which the daemon, which had %llu, took %llu",
			(unsigned long long)was_late, (unsigned long long)daemon.own, (unsigned long long)taken);
		/* Of each 20 ms of the daemon it sleeps through 3 at most. */
		good = taken <= 1.02 * was_late && taken <= 1.02 * daemon.own && taken >= 0.83 * daemon.own;
	}
	vm_ok(good, "from its wake-up on the daemon had its time");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	vm_is(stop(netlink), 0, "stopped");
	known_end(&daemon);
	munmap((void *)late, sizeof(*late));
}

/* ---- the log --------------------------------------------------------------------------------- */

struct logged {
	uint64_t count, time, began;
	uint64_t of_source[SOURCES_MAX * 4];
	bool timely, known;
};

static int take_events(enum coll_command command, struct nlattr **attributes, void *data)
{
	const struct coll_noise_event *event = nla_data(attributes[COLL_WATCH_A_EVENTS]);
	int count = nla_len(attributes[COLL_WATCH_A_EVENTS]) / sizeof(*event);
	struct logged *logged = data;

	(void)command;
	for (int i = 0; i < count; i++) {
		logged->count++;
		logged->time += event[i].duration;
		if (event[i].source < SOURCES_MAX * 4)
			logged->of_source[event[i].source] += event[i].duration;
		logged->known &= event[i].source > 0 && event[i].cpu == CPU && !event[i].zero;
		logged->timely &= event[i].start >= logged->began && event[i].duration > 0 &&
				  event[i].start + event[i].duration <= vm_now();
	}
	return 0;
}

static void the_log(struct netlink *netlink)
{
	struct known daemon = known_begin(CPU, "known-daemon");
	static struct logged logged, again;
	struct reading *reading;
	uint64_t before = 0, count = 0;
	bool same = true;

	logged.timely = logged.known = true;
	logged.began = vm_now();
	vm_is(start(netlink, "1", 0, 100000), 0, "watching with a log");
	known_work(&daemon, 20);
	reading = read_watch(netlink);
	for (int i = 0; i < reading->count; i++)
		before += reading->source[i].count;
	vm_is(netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_LOG, NLM_F_DUMP),
			  take_events, &logged), 0, "the log is read in bulk");
	reading = read_watch(netlink);
	for (int i = 0; i < reading->count; i++) {
		const struct watches_said *source = &reading->source[i];

		count += source->count;
		if (logged.of_source[source->index] > source->total)
			same = false;
	}
	vm_ok(logged.count >= 40 && logged.count >= before && logged.count <= count,
	      "every interruption is in it: %llu of %llu to %llu",
	      (unsigned long long)logged.count, (unsigned long long)before,
	      (unsigned long long)count);
	vm_ok(same && logged.time <= reading->watched, "with the durations that are in the sums");
	vm_ok(logged.known, "each has its source and CPU");
	vm_ok(logged.timely, "and its time, of the monotonic clock");
	vm_is(reading->lost, 0, "none is lost");
	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_LOG, NLM_F_DUMP), take_events,
		    &again);
	vm_ok(again.count < logged.count, "they are read once");
	vm_is(stop(netlink), 0, "stopped");

	vm_is(start(netlink, "1", 0, 16), 0, "watching with a log of 16");
	known_work(&daemon, 20);
	vm_ok(read_watch(netlink)->lost > 0, "what finds no room is counted");
	vm_is(stop(netlink), 0, "stopped");
	known_end(&daemon);
}

/* ---- what comes in between ------------------------------------------------------------------- */

static void cpu_goes_and_comes(struct netlink *netlink)
{
	uint64_t watched;

	vm_is(start(netlink, "1", 0, 0), 0, "watching CPU 1");
	vm_sleep_ms(20);
	vm_is(vm_cpu_online(CPU, false), 0, "CPU 1 is taken offline");
	vm_is(read_watch(netlink)->state, 2, "which the watch says");
	watched = read_watch(netlink)->watched;
	vm_sleep_ms(50);
	vm_ok(watched && read_watch(netlink)->watched == watched, "and keeps what it had");
	vm_is(vm_cpu_online(CPU, true), 0, "it comes back");
	vm_sleep_ms(50);
	vm_is(read_watch(netlink)->state, 1, "and is watched again");
	vm_ok(read_watch(netlink)->watched > watched, "from where it was");
	vm_is(vm_cpu_online(CPU, false), 0, "offline once more");
	adds_up(netlink, read_watch(netlink));
	vm_is(stop(netlink), 0, "to be stopped like this");
	vm_is(start(netlink, "1", 0, 0), 0, "and started like this");
	vm_is(read_watch(netlink)->state, 2, "which waits for the CPU");
	vm_is(vm_cpu_online(CPU, true), 0, "until it comes");
	vm_is(read_watch(netlink)->state, 1, "then it is watched");
	vm_is(stop(netlink), 0, "stopped");
}

static void owner_is_killed(struct netlink *netlink)
{
	struct netlink *own;
	int pipes[2];
	char byte;
	pid_t pid;

	if (pipe(pipes))
		return;
	pid = fork();
	if (!pid) {
		byte = !netlink_open(&own) && !start(own, "0-1", 0, 1000);
		_exit(write(pipes[1], &byte, 1) + pause());
	}
	vm_ok(read(pipes[0], &byte, 1) == 1 && byte, "another process watches");
	vm_is(read_watch(netlink)->state, 1, "which we see");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	vm_is(read_watch(netlink)->summaries, 0, "it is killed, and nothing is watched");
	close(pipes[0]);
	close(pipes[1]);
}

static void without_rights(struct netlink *netlink)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		netlink_close(netlink);
		if (setuid(1000) || netlink_open(&netlink))
			_exit(1);
		if (start(netlink, "1", 0, 0) != -EPERM || !strstr(netlink_reason(netlink), "root"))
			_exit(2);
		if (netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_GET, NLM_F_DUMP),
				NULL, NULL) != -EPERM)
			_exit(3);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	vm_is(status, 0, "a user may neither watch nor read");

	pid = fork();
	if (!pid) {
		netlink_close(netlink);
		if (unshare(CLONE_NEWNET) || netlink_open(&netlink))
			_exit(1);
		if (start(netlink, "1", 0, 0) != -EPERM ||
		    !strstr(netlink_reason(netlink), "initial network namespace"))
			_exit(2);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	vm_is(status, 0, "nor may root of another network namespace");
}

static void unloaded_while_watching(struct netlink *netlink)
{
	vm_is(start(netlink, "0-1", 0, 1000), 0, "both CPUs are watched");
	vm_is(vm_unload(), 0, "while coll.ko is unloaded");
	vm_ok(stop(netlink) < 0, "then the family is gone");
	vm_is(vm_load(""), 0, "and comes back");
}

static const struct ask_part parts[] = {
	{ "refusals", refusals },
	{ "yields", gives_way },
	{ "daemon", a_known_daemon },
	{ "interrupt", a_known_interrupt },
	{ "task", a_disturbed_task },
	{ "together", all_at_once },
	{ "gap", a_gap_adds_up },
	{ "wakes", a_task_that_wakes },
	{ "log", the_log },
	{ "hotplug", cpu_goes_and_comes },
	{ "owner", owner_is_killed },
	{ "rights", without_rights },
	{ "unload", unloaded_while_watching },
};

int main(int argc, char **argv)
{
	return ask_parts(argc, argv, parts, sizeof(parts) / sizeof(*parts), &exact);
}
