// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * colld tells a job what coll.ko counts: of a rank with a CPU of its own, a known daemon and injected interrupts take
 * as long, and as often, as they say themselves. Another watch gets the CPU from colld, coll.ko is
 * unloaded, and colld killed, while the job runs. tests/vm/run -p brings `coll` and `colld` along.
 *
 *	attribution_test		the test
 *	attribution_test dear		what costs more than it may is ended: alone, for it takes long
 *	attribution_test bound		by default, where no host takes time from this machine (run -i): a rank that computes
 *					is counted; one that is woken all the time is not any more
 *	attribution_test kernel		of ranks whose runs are coll.ko's, by a thread that is made before they are bound,
 *					or after; before Linux 6.10 it is no thread of theirs
 *	attribution_test rank		a rank of it: rank r has CPU r, and rank 1 wants all of it
 *	attribution_test late		one that is bound once it has joined
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/watch_module.h"
#include "tests/lib/rank.h"
#include "uapi/coll_flight.h"
#include "uapi/coll_noise.h"
#include "ask.h"
#include "job.h"
#include "known.h"
#include "vm.h"

enum { RANKS = 2, CPU = 1, ROUNDS = 5 };

#define STATE "/tmp/attribution"
/*
 * Looks at a node that is emulated are up to half a minute apart: they take a hundredth of the time, and in what one
 * takes is what the emulator's other CPU and the host's programs had meanwhile. One in which the emulator was stopped
 * for a second is followed by none for a hundred. Where time is counted (run -i) all of this takes twenty seconds.
 */
#define COMES(condition) \
	(VM_COMES(condition) || VM_COMES(condition) || VM_COMES(condition) || VM_COMES(condition) || \
	 VM_COMES(condition) || VM_COMES(condition) || VM_COMES(condition))

static const char up_file[] = "/tmp/attribution.up", stop_file[] = "/tmp/attribution.stop",
		  storm_file[] = "/tmp/attribution.storm", colld_log[] = "/tmp/attribution.log";

/* ---- a rank ---------------------------------------------------------------------- */

/* A process on the rank's CPU that answers: both wake each other as often as they can. */
static int echo = -1;

static void make_echo(void)
{
	int ends[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return;
	echo = ends[0];
	if (fork())
		return;
	close(ends[0]);
	while (read(ends[1], &byte, 1) == 1 && write(ends[1], &byte, 1) == 1)
		;
	_exit(0);
}

static void rank_computes(bool storm)
{
	const uint64_t until = vm_now() + 20000000;
	char byte = 0;

	while (vm_now() < until)
		if (storm && (write(echo, &byte, 1) != 1 || read(echo, &byte, 1) != 1))
			_exit(1);
}

static void run_anywhere(void)
{
	cpu_set_t all;

	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
}

/* Where coll.ko executes runs it does while the rank computes: its thread takes the rank's CPU. */
static void compute_in_a_run(struct coll_group *world)
{
	enum { COUNT = 65536 };
	static float in[COUNT], out[COUNT];
	struct coll_run *run;

	rank_must(world, coll_iallreduce(in, out, COUNT, COLL_FLOAT, COLL_SUM, world, &run));
	rank_computes(false);
	rank_must(world, coll_run_wait(&run));
}

static int play_rank(bool late)
{
	const int rank = atoi(getenv("COLL_RANK") ?: "0");
	struct coll_context *context;
	struct coll_group *world;
	int over = 0;

	if (late)
		run_anywhere();
	else
		vm_run_on(rank);
	make_echo();
	context = rank_open(NULL);
	world = coll_world(context);
	rank_must(world, coll_barrier(world));
	vm_run_on(rank);
	close(open(up_file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	while (!over) {
		const int mine = !access(stop_file, F_OK);

		if (getenv("COLL_PROGRESS"))
			compute_in_a_run(world);
		else if (rank)
			rank_computes(!access(storm_file, F_OK));
		else
			vm_sleep_ms(10);
		rank_must(world, coll_allreduce(&mine, &over, 1, COLL_INT32, COLL_MAX, world));
	}
	coll_close(context);
	return 0;
}

/* ---- what colld says of rank 1 ------------------------------------------------------ */

struct told {
	uint64_t until, counted, stolen, stops;
	uint64_t daemon, interrupts;	/* takers: that task; all interrupts; */
	uint64_t module, own;		/* threads of coll.ko that have no rank; and the rank's own */
};

static bool read_told(struct told *of)
{
	static struct coll_flight_observation all[RANKS];
	const int fd = open(STATE "/observed/0", O_RDONLY | O_CLOEXEC);
	const ssize_t bytes = fd < 0 ? -1 : read(fd, all, sizeof(all));

	if (fd >= 0)
		close(fd);
	for (ssize_t i = 0; (i + 1) * (ssize_t)sizeof(*all) <= bytes; i++) {
		const struct coll_flight_observed *observed = &all[i].observed;

		if (all[i].magic != COLL_FLIGHT_OBSERVED_MAGIC || all[i].rank != 1 || !observed->until)
			continue;
		*of = (struct told){ .until = observed->until, .counted = observed->counted,
				       .stolen = observed->stolen, .stops = observed->stops };
		for (int k = 0; k < COLL_FLIGHT_TAKERS; k++) {
			const struct coll_flight_taker *taker = &observed->taker[k];

			if (taker->kind == COLL_FLIGHT_TAKER_TASK && !strcmp(taker->name, "known-daemon"))
				of->daemon += taker->ns;
			if (taker->kind == COLL_FLIGHT_TAKER_TASK && !strncmp(taker->name, "coll/", 5))
				of->module += taker->ns;
			if (taker->kind == COLL_FLIGHT_TAKER_OWN)
				of->own += taker->ns;
			if (taker->kind == COLL_FLIGHT_TAKER_INTERRUPTS)
				of->interrupts += taker->ns;
		}
		return true;
	}
	return false;
}

static struct told told;	/* by the latest look that was waited for */

/* Waits for a look that began after now; returns what was told by the one before, after which something happened. */
static struct told look_again(void)
{
	const struct told before = told;
	const uint64_t now = vm_now();

	if (!COMES(read_told(&told) && told.until > now))
		vm_ok(false, "colld looks again");
	return before;
}

/* Since `before`, all of the time was counted; or none of it. */
static bool is_counted(const struct told *before, bool wanted)
{
	const uint64_t counted = told.counted - before->counted;

	return wanted ? counted && counted >= (told.until - before->until) / 100 * 99 : !counted;
}

static bool comes_counted(bool wanted)
{
	for (int tries = 10; tries; tries--) {
		const struct told before = look_again();

		if (is_counted(&before, wanted))
			return true;
	}
	return false;
}

/* What interrupted a daemon is in what it says, and not in what it took. */
static bool is_near(uint64_t got, uint64_t wanted, double less)
{
	return got >= (1 - less) * wanted && got <= 1.03 * wanted;
}

/* ---- what takes the core -------------------------------------------------------------- */

/* The emulator is stopped by its host at times: one good round of some. */
static void a_known_daemon(struct known *daemon)
{
	enum { BURSTS = 20 };
	struct told before;
	bool took = false, stole = false, stops = false;

	for (int round = 0; round < ROUNDS && !(took && stole && stops); round++) {
		known_work(daemon, BURSTS);
		before = look_again();
		vm_note("the daemon says %.1f ms in %d pieces; colld tells %.1f ms of it, %.1f ms in %llu in all",
			daemon->own * 1e-6, BURSTS, (told.daemon - before.daemon) * 1e-6,
			(told.stolen - before.stolen) * 1e-6, (unsigned long long)(told.stops - before.stops));
		took = is_counted(&before, true) && is_near(told.daemon - before.daemon, daemon->own, 0.05);
		stole = is_near(told.stolen - before.stolen, daemon->own, 0.05);
		stops = told.stops - before.stops >= BURSTS && told.stops - before.stops < 3 * BURSTS;
	}
	vm_ok(took, "a daemon took as long as it says: colld names it");
	vm_ok(stole, "... and tells the job so much");
	vm_ok(stops, "... in as many pieces, or a few more");
}

struct injected {
	uint64_t count, ns;
};

static int take_injected(enum coll_command command, struct nlattr **attributes, void *data)
{
	struct injected *injected = data;

	(void)command;
	if (attributes[COLL_NOISE_A_INJECTED])
		injected->count += nla_get_u64(attributes[COLL_NOISE_A_INJECTED]);
	if (attributes[COLL_NOISE_A_TIME])
		injected->ns += nla_get_u64(attributes[COLL_NOISE_A_TIME]);
	return 0;
}

static struct injected injected_by(struct netlink *netlink)
{
	struct injected injected = { 0, 0 };

	netlink_ask(netlink, netlink_message(netlink, COLL_CMD_NOISE_GET, NLM_F_DUMP), take_injected, &injected);
	return injected;
}

static void known_interrupts(void)
{
	struct told before;
	bool took = false, stole = false, stops = false;

	for (int round = 0; round < ROUNDS && !(took && stole && stops); round++) {
		struct netlink *netlink;
		struct injected injected;

		if (netlink_open(&netlink) || ask_noise(netlink, 1000000)) {
			vm_ok(false, "interrupts are injected: %s", netlink_reason(netlink));
			return;
		}
		vm_sleep_ms(2000);
		netlink_ask(netlink, netlink_message(netlink, COLL_CMD_NOISE_STOP, 0), NULL, NULL);
		injected = injected_by(netlink);
		netlink_close(netlink);
		before = look_again();
		vm_note("%llu interrupts of %.1f ms were injected; colld tells %.1f ms, %.1f ms in %llu of all but the others'",
			(unsigned long long)injected.count, injected.ns * 1e-6,
			(told.interrupts - before.interrupts) * 1e-6, (told.stolen - before.stolen) * 1e-6,
			(unsigned long long)(told.stops - before.stops));
		took = is_counted(&before, true) && injected.count &&
		       told.interrupts - before.interrupts >= 0.95 * injected.ns;
		stole = is_near(told.stolen - before.stolen, injected.ns, 0.05);
		stops = is_near(told.stops - before.stops, injected.count, 0.05) ||
			told.stops - before.stops < injected.count + 20;
	}
	vm_ok(took, "injected interrupts took as long as they say: colld says interrupts did");
	vm_ok(stole, "... and tells the job so much, and not other interrupts");
	vm_ok(stops, "... in as many pieces, or a few more");
}

/* Without coll.ko it is known how long the rank waited, and who ran meanwhile. */
static void estimated(struct known *daemon, const char *when)
{
	struct told before;

	known_work(daemon, 20);
	before = look_again();
	vm_note("the daemon says %.1f ms; colld estimates %.1f ms", daemon->own * 1e-6,
		(told.daemon - before.daemon) * 1e-6);
	vm_ok(is_counted(&before, false) && told.daemon - before.daemon > daemon->own / 2,
	      "%s: the daemon is named, by an estimate", when);
}

/* ---- what comes in between --------------------------------------------------------------- */

static char said[16384];

static void log_says(const char *text, const char *what)
{
	if (!COMES(!vm_read(colld_log, said, sizeof(said)) && strstr(said, text)))
		vm_note("it does not come");
	vm_says(said, text, what);
}

static void another_watch(void)
{
	struct netlink *netlink;

	if (!vm_ok(!netlink_open(&netlink) && !ask_watch(netlink), "who asks for a watch of the CPU has it"))
		vm_note("%s", netlink_reason(netlink));
	vm_ok(comes_counted(false), "colld has given it up");
	log_says("rank 1: another watch has its CPU: who takes", "... and its log says so");
	netlink_close(netlink);
	vm_ok(comes_counted(true), "when it is over coll.ko counts for colld again");
}

static void unloaded(struct known *daemon)
{
	vm_is(vm_unload(), 0, "coll.ko is unloaded");
	vm_ok(comes_counted(false), "nothing is counted");
	log_says("coll.ko is not loaded: who takes", "... and colld's log says so");
	estimated(daemon, "without the module");
	vm_is(vm_load(""), 0, "coll.ko is loaded");
	vm_ok(comes_counted(true), "and counts for colld again");
}

static int count_summary(const struct node_watched *watched, void *argument)
{
	*(int *)argument += !watched->is_source;
	return 0;
}

static int watches(void)
{
	struct netlink *netlink;
	int count = 0;

	if (netlink_open(&netlink) || node_watch_read(netlink, NODE_WATCH_ALL, count_summary, &count))
		vm_ok(false, "watches are read: %s", netlink_reason(netlink));
	netlink_close(netlink);
	return count;
}

/* NULL: as much as it takes by default. */
static pid_t start_colld(const char *cost)
{
	const pid_t child = fork();
	int fd;

	if (child)
		return child;
	fd = open(colld_log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	execlp("colld", "colld", "--policy", STATE ".policy", "--state", STATE, "--metrics", "0",
	       cost ? "--watch-cost" : NULL, cost, NULL);
	_exit(127);
}

static void end_colld(pid_t colld, int by)
{
	kill(colld, by);
	waitpid(colld, NULL, 0);
}

/* It may not cost anything worth the name: so it does not count, and says why. */
static void too_dear(void)
{
	const pid_t colld = start_colld("0.0001%");

	log_says("(--watch-cost): who takes", "what costs more than it may is ended, and the log says so");
	vm_ok(VM_COMES(watches() == 0), "then nothing is watched");
	end_colld(colld, SIGTERM);
}

static void bounded(void)
{
	const pid_t colld = start_colld(NULL);

	vm_ok(comes_counted(true), "by default coll.ko counts who takes a rank's core that computes");
	vm_ok(comes_counted(true) && comes_counted(true), "... and goes on");
	close(open(storm_file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	log_says("rank 1: it costs", "when the rank is woken all the time that costs more than it may, and is ended");
	vm_note("%s", strstr(said, "rank 1: it costs") ?: "");
	vm_is(watches(), 1, "... for it, and not for another");
	end_colld(colld, SIGTERM);
}

/* coll.ko has runs over sockets. */
static pid_t start_job(const char *rank)
{
	const struct job job = {
		.ranks = "2", .memory = getenv("COLL_PROGRESS") ? "off" : "auto", .seconds = "3000",
		.program = { "attribution_test", rank },
	};
	const pid_t child = fork();

	if (child)
		return child;
	if (job_run(&job)) {
		job_show();
		_exit(1);
	}
	_exit(0);
}

/* While it runs. */
static void with_job(const char *rank, void (*part)(void))
{
	int status = -1;
	pid_t ranks;

	unlink(stop_file);
	unlink(up_file);
	ranks = start_job(rank);
	vm_ok(COMES(!access(up_file, F_OK)), "a job runs");
	part();
	close(open(stop_file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	waitpid(ranks, &status, 0);
	vm_is(status, 0, "the job ends as it should");
}

static void its_thread_steals_nothing(void)
{
	const pid_t colld = start_colld("100%");
	pid_t thread[RANKS];

	vm_is(vm_threads("coll/", thread, RANKS), RANKS, "coll.ko has a thread for each rank");
	vm_ok(comes_counted(true) && comes_counted(true), "a rank is counted whose runs are coll.ko's");
	vm_note("of %.1f ms all others had %.1f, coll.ko's thread %.1f, the rank's own %.1f ms", told.counted * 1e-6,
		told.stolen * 1e-6, told.module * 1e-6, told.own * 1e-6);
	vm_is(told.module, 0, "... and nothing is stolen by the thread that makes its progress");
	end_colld(colld, SIGTERM);
}

static void its_thread_has_its_cpu(void)
{
	its_thread_steals_nothing();
	vm_ok(told.own > 0, "... which is the rank's own");
}

/* The first one has a thread that may run on all CPUs, the second one on the rank's. */
static void by_the_kernel(void)
{
	setenv("COLL_PROGRESS", "kernel", 1);
	with_job("late", its_thread_steals_nothing);
	setenv("COLL_PROGRESS_CPUS", "0-1", 1);
	with_job("rank", its_thread_has_its_cpu);
}

static void all_parts(void)
{
	struct known daemon = known_begin(CPU, "known-daemon");
	pid_t colld = start_colld("100%");

	vm_ok(COMES(read_told(&told)), "colld looks at its ranks");
	vm_ok(comes_counted(true), "coll.ko counts who takes their cores");
	log_says("coll.ko counts who takes ranks' cores", "... as the log says");
	a_known_daemon(&daemon);
	known_interrupts();
	another_watch();
	unloaded(&daemon);
	end_colld(colld, SIGKILL);
	vm_is(watches(), 0, "colld is killed, and nothing is watched");
	known_end(&daemon);
}

static void make_files(void)
{
	mkdir(STATE, 0755);
	mkdir(STATE "/jobs", 0755);
	unlink(storm_file);
	close(open(STATE ".policy", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	close(open(STATE "/jobs/one", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	vm_write(STATE ".policy", "housekeeping 0\nkeep comm=*\nact advise\n");
	vm_write(STATE "/jobs/one", "uid 0\n");
	setenv("COLL_DEADLINE", "280s", 1);
}

int main(int argc, char **argv)
{
	const char *part = argc > 1 ? argv[1] : "";

	if (!strcmp(part, "rank") || !strcmp(part, "late"))
		return play_rank(!strcmp(part, "late"));
	if (access("/bin/coll", X_OK) || access("/bin/colld", X_OK)) {
		vm_skip("colld tells what coll.ko counts", "no coll and no colld here");
		return vm_end();
	}
	vm_run_on(0);
	vm_loopback_up();
	make_files();
	if (!strcmp(part, "kernel"))
		by_the_kernel();
	else
		with_job("rank", !strcmp(part, "dear") ? too_dear : !strcmp(part, "bound") ? bounded : all_parts);
	return vm_end();
}
