// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Everything at once, for as many seconds as the first argument says: injectors
 * started, stopped, read and orphaned, rules set and cleared, tasks that fork,
 * exec and rename themselves, a CPU that comes and goes; then coll.ko is unloaded
 * amid it all. Nothing is expected but that the kernel lives, says nothing, and
 * that no task keeps CPUs that are not its own.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/netlink.h"
#include "uapi/coll_noise.h"
#include "vm.h"

#define US 1000ull
#define MS 1000000ull

static uint64_t state;

/* xorshift64* */
static uint32_t number(uint32_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return ((state * 0x2545f4914f6cdd1dull) >> 32) % below;
}

/* ---- noise -------------------------------------------------------------------------- */

static int nothing(enum coll_command command, struct nlattr **attributes, void *data)
{
	(void)command;
	(void)attributes;
	(void)data;
	return 0;
}

static void start(struct netlink *netlink)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_NOISE_START, 0);
	struct coll_noise_span table[64];
	struct coll_noise_model model = {
		.arrival = number(COLL_NOISE_ARRIVALS), .phase = number(2),
		.length = number(COLL_NOISE_LENGTHS), .period = (20 + number(20000)) * US,
		.duration = (1 + number(2000)) * US, .longest = 3 * MS, .seed = number(1000),
	};
	uint32_t i;

	if (model.arrival == COLL_NOISE_REPLAY)
		model.length = COLL_NOISE_TABLE;
	if (model.length == COLL_NOISE_PARETO)
		model.shape = 1001 + number(3000);
	if (model.length == COLL_NOISE_TABLE) {
		model.duration = 0;
		for (i = 0; i < 64; i++)
			table[i] = (struct coll_noise_span){
				model.arrival == COLL_NOISE_REPLAY ? i * model.period / 64 : 0,
				number(100) * US };
		nla_put(message, COLL_NOISE_A_TABLE, sizeof(table), table);
	}
	nla_put(message, COLL_NOISE_A_MODEL, sizeof(model), &model);
	nla_put_string(message, COLL_NOISE_A_CPUS, number(4) ? "1" : "0");
	nla_put_u8(message, COLL_NOISE_A_CONTEXT, number(COLL_NOISE_CONTEXTS));
	nla_put_u32(message, COLL_NOISE_A_SHARE, 1 + number(2500));
	nla_put_u32(message, COLL_NOISE_A_LOG, number(300));
	nla_put_u64(message, COLL_NOISE_A_LIFETIME, (1 + number(500)) * MS);
	netlink_ask(netlink, message, nothing, NULL);
}

static void about(struct netlink *netlink, enum coll_command command, int flags)
{
	struct nl_msg *message = netlink_message(netlink, command, flags);

	if (number(3))
		nla_put_u32(message, COLL_NOISE_A_ID, number(200));
	netlink_ask(netlink, message, nothing, NULL);
}

static void injects(void)
{
	struct netlink *netlink;
	int i;

	while (!netlink_open(&netlink)) {
		for (i = number(30); i; i--) {
			switch (number(6)) {
			case 0:
				about(netlink, COLL_CMD_NOISE_STOP, 0);
				break;
			case 1:
				about(netlink, COLL_CMD_NOISE_GET, NLM_F_DUMP);
				break;
			case 2:
				about(netlink, COLL_CMD_NOISE_LOG, NLM_F_DUMP);
				break;
			case 3:
				vm_sleep_ms(number(20));
				break;
			default:
				start(netlink);
			}
		}
		netlink_close(netlink);
	}
}

/* ---- pin ------------------------------------------------------------------------------ */

static void set(struct netlink *netlink)
{
	static const char *const globs[] = { "victim*", "victim-[0-3]", "*", "torture*", "v*m-4" };
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_PIN_SET, 0);
	int i;

	nla_put_string(message, COLL_PIN_A_HOUSEKEEPING, number(3) ? "0" : "1");
	nla_put_u32(message, COLL_PIN_A_LINGER, number(2) * number(200));
	for (i = 1 + number(4); i; i--) {
		struct nlattr *nest = nla_nest_start(message, COLL_PIN_A_RULE);

		nla_put_string(message, COLL_PIN_A_COMM, globs[number(5)]);
		if (!number(4))
			nla_put_flag(message, COLL_PIN_A_KEEP);
		if (!number(4))
			nla_put_flag(message, COLL_PIN_A_KTHREAD);
		if (!number(4))
			nla_put_u32(message, COLL_PIN_A_PARENT, getppid());
		if (!number(6))
			nla_put_u32(message, COLL_PIN_A_UID, number(2));
		nla_nest_end(message, nest);
	}
	netlink_ask(netlink, message, NULL, NULL);
}

static void pins(void)
{
	struct netlink *netlink;
	int i;

	while (!netlink_open(&netlink)) {
		for (i = number(12); i; i--) {
			switch (number(6)) {
			case 0:
				netlink_ask(netlink, netlink_message(netlink, COLL_CMD_PIN_CLEAR, 0),
					    NULL, NULL);
				break;
			case 1:
				netlink_ask(netlink, netlink_message(netlink, COLL_CMD_PIN_GET,
								     NLM_F_DUMP), nothing, NULL);
				break;
			case 2:
				vm_sleep_ms(number(50));
				break;
			default:
				set(netlink);
			}
		}
		netlink_close(netlink);
	}
}

/* ---- victims, CPUs ---------------------------------------------------------------------- */

static void victims(void)
{
	char name[16];
	pid_t child;

	for (;;) {
		snprintf(name, sizeof(name), "victim-%u", number(8));
		child = fork();
		if (!child) {
			prctl(PR_SET_NAME, name);
			if (number(2))
				vm_sleep_ms(number(10));
			if (number(3) == 0)
				execl("/bin/torture_test", name, "exit", NULL);
			_exit(0);
		}
		if (number(3))
			waitpid(child, NULL, 0);
		else
			waitpid(-1, NULL, WNOHANG);
		if (!number(20))
			prctl(PR_SET_NAME, name);
	}
}

static void hotplugs(void)
{
	for (;;) {
		vm_sleep_ms(number(400));
		vm_cpu_online(1, false);
		vm_sleep_ms(number(100));
		vm_cpu_online(1, true);
	}
}

/* ---- all ---------------------------------------------------------------------------------- */

/* Two; with an isolated CPU perhaps three. */
static int both_cpus(void)
{
	cpu_set_t cpus;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	vm_note("CPUs:%s%s", CPU_ISSET(0, &cpus) ? " 0" : "", CPU_ISSET(1, &cpus) ? " 1" : "");
	return CPU_COUNT(&cpus);
}

int main(int argc, char **argv)
{
	static void (*const jobs[])(void) = { injects, injects, pins, pins, victims, hotplugs };
	enum { JOBS = sizeof(jobs) / sizeof(*jobs) };
	const int cpus = both_cpus();
	int seconds = argc > 1 ? atoi(argv[1]) : 8, i;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : vm_now() | 1;
	pid_t job[JOBS];

	if (argc > 1 && !strcmp(argv[1], "exit"))
		return 0;
	vm_note("seed %#llx", (unsigned long long)seed);
	for (i = 0; i < JOBS; i++) {
		job[i] = fork();
		if (!job[i]) {
			state = seed + i;
			jobs[i]();
			_exit(0);
		}
	}
	vm_sleep_ms(seconds * 500);
	vm_is(vm_unload(), 0, "coll.ko is unloaded amid it all");
	vm_is(vm_load(""), 0, "and loaded");
	for (i = 0; i < 4; i++) {	/* those that noticed have ended */
		kill(job[i], SIGKILL);
		waitpid(job[i], NULL, 0);
		job[i] = fork();
		if (!job[i]) {
			state = seed + JOBS + i;
			jobs[i]();
			_exit(0);
		}
	}
	vm_sleep_ms(seconds * 500);
	for (i = 0; i < JOBS; i++) {
		kill(job[i], SIGKILL);
		waitpid(job[i], NULL, 0);
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	vm_is(vm_cpu_online(1, true), 0, "the other CPU is online");
	vm_sleep_ms(500);		/* rules may linger */
	vm_ok(true, "it was survived");
	vm_is(vm_unload(), 0, "coll.ko is unloaded");
	vm_is(both_cpus(), cpus, "this task has its CPUs back");
	vm_is(vm_load(""), 0, "coll.ko is loaded");
	return vm_end();
}
