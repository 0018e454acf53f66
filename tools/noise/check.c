// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * collnoise check: reports how this machine keeps noise away from CPUs, and what could be better.
 * Changes nothing.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/common/command.h"
#include "commands.h"
#include "module.h"
#include "options.h"
#include "view.h"

enum { FINDINGS_MAX = 64, VALUE = 160 };

enum level {
	LEVEL_GOOD,
	LEVEL_BETTER,		/* could be better */
	LEVEL_FACT,		/* neither: information */
};

struct check_finding {
	enum level level;
	const char *what;
	char value[VALUE];
	const char *advice;	/* or NULL */
};

struct check {
	struct node_cpus cpus;		/* CPUs of the application */
	struct check_finding finding[FINDINGS_MAX];
	u32 findings;
	bool json, strict;
};

static const char *const usage[] = {
	"usage: collnoise check [OPTION ...]",
	"",
	"Reports how this machine keeps noise away from the CPUs of an application, and what could",
	"be better. Needs no privileges and changes nothing.",
	NULL,
};

static const struct option_entry check_entries[] = {
	{ "cpus", 'c', "LIST", "CPUs of the application", NOISE_OPTION_CPUS(struct check, cpus),
	  .otherwise = "isolated and nohz_full ones, else all but the first" },
	{ "strict", 0, NULL, "exit with code 2 if anything could be better",
	  OPTION_FLAG(struct check, strict) },
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct check, json) },
	{ NULL },
};

const struct option_table noise_check_options = {
	.command = "check",
	.usage = usage,
	.list = { check_entries },
};

/* ---- findings -------------------------------------------------------------------------- */

/* Without advice: information. Otherwise good, or with the advice how to improve it. */
__attribute__((format(printf, 5, 6)))
static void check_find(struct check *check, const char *what, bool good, const char *advice,
		       const char *format, ...)
{
	struct check_finding *finding = &check->finding[check->findings];
	va_list list;

	if (check->findings == FINDINGS_MAX)
		return;
	check->findings++;
	finding->level = !advice ? LEVEL_FACT : good ? LEVEL_GOOD : LEVEL_BETTER;
	finding->what = what;
	finding->advice = good ? NULL : advice;
	va_start(list, format);
	vsnprintf(finding->value, VALUE, format, list);
	va_end(list);
}

/* The first line of a file, or nothing. */
static bool read_line(const char *path, char value[VALUE])
{
	FILE *from = fopen(path, "re");
	const bool there = from && fgets(value, VALUE, from);

	if (!there)
		*value = 0;
	value[strcspn(value, "\n")] = 0;
	if (from)
		fclose(from);
	return there;
}

/* The selected one of a line of choices: the word in [brackets]. */
static void check_chosen(char value[VALUE])
{
	char *open = strchr(value, '['), *close = open ? strchr(open, ']') : NULL;

	if (!close)
		return;
	*close = 0;
	memmove(value, open + 1, close - open);
}

/* A setting whose best value is `best`. */
static void find_switch(struct check *check, const char *what, const char *path, const char *best,
			const char *advice)
{
	char value[VALUE];

	if (!read_line(path, value))
		return;
	check_chosen(value);
	check_find(check, what, !strcmp(value, best), advice, "%s", value);
}

/* ---- kernel command line ------------------------------------------------------------------ */

static void find_list(struct check *check, const char *what, const char *path, const char *advice)
{
	struct node_cpus cpus, rest = check->cpus;
	char text[100];

	if (!node_cpus_file(&cpus, path))
		cpus = (struct node_cpus){ { 0 } };
	node_cpus_remove(&rest, &cpus);
	check_find(check, what, !node_cpus_count(&rest), advice, "%s",
		   node_cpus_count(&cpus) ? node_cpus_list(&cpus, text, sizeof(text)) : "none");
}

static void find_command_line(struct check *check)
{
	char line[4096] = "";
	FILE *from = fopen("/proc/cmdline", "re");
	size_t length = from ? fread(line, 1, sizeof(line) - 1, from) : 0;

	line[length] = 0;
	if (from)
		fclose(from);
	find_list(check, "isolated CPUs", "/sys/devices/system/cpu/isolated",
		  "boot with isolcpus=, or make an isolated cpuset partition");
	find_list(check, "CPUs without tick", "/sys/devices/system/cpu/nohz_full",
		  "boot with nohz_full=: the tick stops where one task runs");
	check_find(check, "RCU callbacks elsewhere", strstr(line, "rcu_nocbs") != NULL,
		   "boot with rcu_nocbs= (nohz_full= does it too)", "%s",
		   strstr(line, "rcu_nocbs") ? "rcu_nocbs=" : "no");
	check_find(check, "command line", true, NULL, "%.150s", line);
}

/* ---- processors ------------------------------------------------------------------------------ */

/* The value that all CPUs have, or "mixed". */
static bool read_of_cpus(const struct node_cpus *cpus, const char *file, char value[VALUE])
{
	u32 cpu = node_cpus_next(cpus, 0);
	char path[128], other[VALUE];
	bool any = false;

	for (; cpu < NODE_CPUS_MAX; cpu = node_cpus_next(cpus, cpu + 1)) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/%s", cpu, file);
		if (!read_line(path, other))
			continue;
		if (any && strcmp(value, other))
			strcpy(value, "mixed");
		else
			strcpy(value, other);
		any = true;
	}
	return any;
}

/* The time to wake up from the deepest sleep state that is enabled, us. */
static long deepest_sleep(u32 cpu)
{
	char path[128], value[VALUE];
	long most = -1;
	int state;

	for (state = 0; state < 16; state++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%u/cpuidle/state%d/disable", cpu, state);
		if (!read_line(path, value))
			break;
		if (*value != '0')
			continue;
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%u/cpuidle/state%d/latency", cpu, state);
		if (read_line(path, value) && atol(value) > most)
			most = atol(value);
	}
	return most;
}

static void find_siblings(struct check *check)
{
	char value[VALUE], path[128], text[100];
	struct node_cpus siblings, all = { { 0 } };
	u32 cpu = node_cpus_next(&check->cpus, 0), i;

	if (!read_line("/sys/devices/system/cpu/smt/active", value))
		return;
	for (; cpu < NODE_CPUS_MAX; cpu = node_cpus_next(&check->cpus, cpu + 1)) {
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
		if (node_cpus_file(&siblings, path))
			for (i = 0; i < NODE_CPUS_MAX / 64; i++)
				all.bits[i] |= siblings.bits[i];
	}
	node_cpus_remove(&all, &check->cpus);
	if (*value == '0')
		check_find(check, "SMT", true, NULL, "off");
	else if (node_cpus_count(&all))
		check_find(check, "SMT", true, NULL, "on; siblings %s can be a home for daemons",
			   node_cpus_list(&all, text, sizeof(text)));
	else
		check_find(check, "SMT", false,
			   "use one thread of each core: the sibling slows it down, which "
			   "no tool sees as noise",
			   "on, both threads are the application's");
}

static void find_processors(struct check *check)
{
	char value[VALUE];
	const long sleep = deepest_sleep(node_cpus_next(&check->cpus, 0));

	if (read_of_cpus(&check->cpus, "cpufreq/scaling_governor", value))
		check_find(check, "frequency governor", !strcmp(value, "performance"),
			   "cpupower frequency-set -g performance", "%s", value);
	if (sleep >= 0)
		check_find(check, "deepest sleep", sleep <= 10,
			   "disable deep states for time-critical jobs: cpupower idle-set -D 10",
			   "%ld us to wake", sleep);
	find_siblings(check);
	if (read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", value))
		check_find(check, "clock source", !strstr("hpet acpi_pm jiffies", value),
			   "a slow clock: find out why the kernel rejects the TSC", "%s", value);
}

/* ---- tasks and interrupts ------------------------------------------------------------------ */

static u32 count_interrupts(const struct node_cpus *cpus, u32 *all)
{
	DIR *list = opendir("/proc/irq");
	struct dirent *entry;
	u32 count = 0;

	*all = 0;
	while (list && (entry = readdir(list))) {
		char path[300];
		struct node_cpus may;

		snprintf(path, sizeof(path), "/proc/irq/%s/smp_affinity_list", entry->d_name);
		if (!isdigit((unsigned char)*entry->d_name) || !node_cpus_file(&may, path))
			continue;
		++*all;
		node_cpus_keep(&may, cpus);
		count += node_cpus_count(&may) > 0;
	}
	if (list)
		closedir(list);
	return count;
}

/* Counts processes that may run there. Those that may run nowhere else are bound on purpose. */
static u32 count_daemons(const struct node_cpus *cpus, bool *balancer)
{
	DIR *list = opendir("/proc");
	struct dirent *entry;
	u32 count = 0;

	*balancer = false;
	while (list && (entry = readdir(list))) {
		struct node_cpus may, elsewhere;
		char path[300], name[VALUE];

		if (!isdigit((unsigned char)*entry->d_name) ||
		    node_cpus_affinity(atoi(entry->d_name), &may))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		if (read_line(path, name) && !strcmp(name, "irqbalance"))
			*balancer = true;
		elsewhere = may;
		node_cpus_remove(&elsewhere, cpus);
		node_cpus_keep(&may, cpus);
		count += node_cpus_count(&may) && node_cpus_count(&elsewhere);
	}
	if (list)
		closedir(list);
	return count;
}

static void find_rights(struct check *check)
{
	u32 all, interrupts = count_interrupts(&check->cpus, &all), daemons;
	struct node_cpus works;
	char value[VALUE];
	bool balancer;

	check_find(check, "interrupts", !interrupts,
		   "collnoise pin init moves those that can be moved",
		   "%u of %u may come to the application's CPUs", interrupts, all);
	daemons = count_daemons(&check->cpus, &balancer);
	check_find(check, "tasks", !daemons, "collnoise pin init moves those that can be moved",
		   "%u may run there, and elsewhere too", daemons);
	check_find(check, "irqbalance", !balancer,
		   "it moves interrupts back: stop it, or ban these CPUs in its configuration",
		   "%s", balancer ? "runs" : "does not run");
	if (read_line("/sys/devices/virtual/workqueue/cpumask", value) &&
	    node_cpus_read_mask(&works, value)) {
		node_cpus_keep(&works, &check->cpus);
		check_find(check, "unbound kernel work", !node_cpus_count(&works),
			   "collnoise pin init --workqueues", "cpumask %s", value);
	}
	find_switch(check, "timers move to other CPUs", "/proc/sys/kernel/timer_migration", "1",
		    "sysctl kernel.timer_migration=1");
}

/*
 * ---- kernel settings
 * -----------------------------------------------------------------------------
 */

static void find_services(struct check *check)
{
	struct timespec tick;

	if (!clock_getres(CLOCK_MONOTONIC_COARSE, &tick) && tick.tv_nsec)
		check_find(check, "tick", true, NULL, "HZ=%ld", (long)(1e9 / tick.tv_nsec + 0.5));
	find_switch(check, "soft-lockup watchdog", "/proc/sys/kernel/watchdog", "0",
		    "sysctl kernel.watchdog=0, or watchdog_cpumask without these CPUs");
	find_switch(check, "NMI watchdog", "/proc/sys/kernel/nmi_watchdog", "0",
		    "sysctl kernel.nmi_watchdog=0");
	find_switch(check, "transparent huge pages",
		    "/sys/kernel/mm/transparent_hugepage/enabled", "madvise",
		    "madvise leaves khugepaged little to do (always is fast too, with rare long "
		    "events)");
	find_switch(check, "compaction in a page fault",
		    "/sys/kernel/mm/transparent_hugepage/defrag", "madvise",
		    "echo madvise to transparent_hugepage/defrag");
	find_switch(check, "page merging (KSM)", "/sys/kernel/mm/ksm/run", "0",
		    "echo 0 >/sys/kernel/mm/ksm/run");
	find_switch(check, "NUMA balancing", "/proc/sys/kernel/numa_balancing", "0",
		    "sysctl kernel.numa_balancing=0: its page faults are noise");
	find_switch(check, "vm statistics, every s", "/proc/sys/vm/stat_interval", "10",
		    "sysctl vm.stat_interval=10");
	find_switch(check, "autogroups", "/proc/sys/kernel/sched_autogroup_enabled", "0",
		    "sysctl kernel.sched_autogroup_enabled=0");
}

static void find_host(struct check *check)
{
	char line[4096];
	FILE *from = fopen("/proc/cpuinfo", "re");
	bool guest = false;

	while (from && fgets(line, sizeof(line), from))
		guest |= !strncmp(line, "flags", 5) && strstr(line, " hypervisor");
	if (from)
		fclose(from);
	check_find(check, "hypervisor", !guest,
		   "noise of the host shows as steal or hardware; pin the virtual CPUs there",
		   "%s", guest ? "this is a virtual machine" : "none");
	check_find(check, "module", true, NULL, "%s", noise_module_state());
}

/*
 * ---- the command
 * --------------------------------------------------------------------------------
 */

static void default_cpus(struct node_cpus *cpus)
{
	struct node_cpus more;
	u32 i;

	if (!node_cpus_file(cpus, "/sys/devices/system/cpu/isolated"))
		*cpus = (struct node_cpus){ { 0 } };
	if (node_cpus_file(&more, "/sys/devices/system/cpu/nohz_full"))
		for (i = 0; i < NODE_CPUS_MAX / 64; i++)
			cpus->bits[i] |= more.bits[i];
	if (node_cpus_count(cpus))
		return;
	node_cpus_affinity(0, cpus);
	if (node_cpus_count(cpus) > 1) {
		more = (struct node_cpus){ { 0 } };
		node_cpus_add(&more, node_cpus_next(cpus, 0));
		node_cpus_remove(cpus, &more);
	}
}

static void check_print(const struct check *check)
{
	static const char *const signs[] = { "ok", "better", "" };
	char text[256];
	u32 i;

	printf("the application's CPUs: %s\n\n", node_cpus_list(&check->cpus, text, sizeof(text)));
	for (i = 0; i < check->findings; i++) {
		const struct check_finding *f = &check->finding[i];

		printf("%-7s %-34s %s\n", signs[f->level], f->what, f->value);
		if (f->advice)
			printf("%42s -> %s\n", "", f->advice);
	}
}

static void print_json(const struct check *check)
{
	static const char *const names[] = { "good", "better", "fact" };
	json_t *list = json_array();
	char text[256];
	u32 i;

	for (i = 0; i < check->findings; i++) {
		const struct check_finding *f = &check->finding[i];

		json_array_append_new(list, json_pack("{ss ss ss ss*}", "what", f->what, "state",
			names[f->level], "value", f->value, "advice", f->advice));
	}
	noise_json_print(json_pack("{ss so}", "cpus",
				   node_cpus_list(&check->cpus, text, sizeof(text)), "findings",
				   list), stdout);
}

int noise_check(int argc, char **argv)
{
	struct check check = { .json = false };
	u32 i, better = 0;

	if (!options_read(&noise_check_options, argc, argv, &check))
		return COMMAND_USAGE;
	if (!node_cpus_count(&check.cpus))
		default_cpus(&check.cpus);
	find_command_line(&check);
	find_processors(&check);
	find_rights(&check);
	find_services(&check);
	find_host(&check);
	(check.json ? print_json : check_print)(&check);
	for (i = 0; i < check.findings; i++)
		better += check.finding[i].level == LEVEL_BETTER;
	return check.strict && better ? COMMAND_USAGE : COMMAND_OK;
}
