// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Verdicts on CPUs: who may use them, and what takes their time. */
#include <string.h>

#include "check.h"

enum { HZ_MANY = 1000, INTERRUPTS_MANY = 1000, SLEEP_US_LONG = 10, RT_LEAST_US = 10000 };

#define NOISE_NOTE 0.001
#define NOISE_SLOW 0.01
#define STEAL_NOTE 0.001
#define WAKE_SLOW 1.3		/* work after a sleep takes this many times as long */

/* ---- which CPUs ---------------------------------------------------------------- */

static void judge_quota(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_cpus_facts *c = &facts->cpus;
	const struct doctor_probes *p = &facts->probe;
	const double cpus = node_cpus_count(&c->allowed);
	const bool stops = c->throttled > 0 || p->throttled > 0;

	if (c->quota < 0) {
		doctor_find(finding, DOCTOR_OK, "no limit");
		return;
	}
	doctor_find(finding, c->quota < cpus ? DOCTOR_SLOW : stops ? DOCTOR_NOTE : DOCTOR_OK,
		    "%.3g CPUs' time for %.0f CPUs%s", c->quota, cpus,
		    stops ? "; tasks were stopped" : "");
	if (*c->quota_file)
		doctor_advise(finding, "echo %s >'%s' # or no --cpus for the container, no CPUQuota= in "
			      "the unit; whole CPUs by cpuset instead", c->quota_unified ? "max" : "-1",
			      c->quota_file);
	if (p->granted >= 0)
		doctor_cost(finding, "a thread on each CPU got %.0f %% of the time that it asked for, "
			    "and was stopped in %lld periods of a quarter second", 100 * p->granted,
			    p->throttled > 0 ? p->throttled : 0);
	else if (c->throttled > 0 && c->throttled_ns > 0)
		doctor_cost(finding, "stopped %lld times so far, for %.0f ms each", c->throttled,
			    c->throttled_ns / 1e6 / c->throttled);
}

static void judge_cpuset(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_cpus_facts *c = &facts->cpus;
	const u32 all = node_cpus_count(&c->online), may = node_cpus_count(&c->allowed);
	struct node_cpus rest = c->allowed;
	char list[100];

	if (!all || !may) {
		doctor_find(finding, DOCTOR_UNKNOWN, "the CPUs cannot be read");
		return;
	}
	node_cpus_remove(&rest, &c->isolated);
	doctor_find(finding, may == 1 && all > 1 ? DOCTOR_SLOW : DOCTOR_OK, "%u of %u CPUs: %s",
		    may, all, node_cpus_list(&c->allowed, list, sizeof(list)));
	if (may > 1 && !node_cpus_count(&rest)) {
		doctor_find(finding, DOCTOR_SLOW, "%s, all isolated: the kernel balances no load "
			    "there", node_cpus_list(&c->allowed, list, sizeof(list)));
		doctor_cost(finding, "ranks that are not bound all stay on the first of them");
		doctor_advise(finding, "coll run --bind core, or srun --cpu-bind=cores");
	}
}

static void judge_isolation(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_cpus_facts *c = &facts->cpus;
	const u32 isolated = node_cpus_count(&c->isolated), no_tick = node_cpus_count(&c->no_tick);
	char first[80] = "none", second[80] = "none";

	if (isolated)
		node_cpus_list(&c->isolated, first, sizeof(first));
	if (no_tick)
		node_cpus_list(&c->no_tick, second, sizeof(second));
	doctor_find(finding, isolated && no_tick ? DOCTOR_OK : DOCTOR_NOTE,
		    "isolated %s, without tick %s", first, second);
	if (facts->probe.noise_share >= 0)
		doctor_cost(finding, "part of the noise, which is %.2g %% of CPU %u now",
			    100 * facts->probe.noise_share, facts->probe.noise_cpu);
}

static void judge_siblings(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const long long shared = facts->cpus.siblings;

	doctor_find(finding, shared ? DOCTOR_NOTE : DOCTOR_OK, shared ?
		    "%lld CPUs share a core with another that jobs may use" :
		    "no two CPUs of a job share a core", shared);
}

/* ---- what takes their time ------------------------------------------------------ */

static void judge_noise(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_probes *p = &facts->probe;

	if (p->noise_share < 0)
		doctor_find(finding, DOCTOR_UNKNOWN, "not measured (--quick)");
	else
		doctor_find(finding, p->noise_share >= NOISE_SLOW ? DOCTOR_SLOW :
			    p->noise_share >= NOISE_NOTE ? DOCTOR_NOTE : DOCTOR_OK,
			    "%.2g %% of CPU %u in 0.3 s, the longest %.2g ms",
			    100 * p->noise_share, p->noise_cpu, p->noise_longest_ns / 1e6);
}

static void judge_interrupts(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_cpus_facts *c = &facts->cpus;
	const double rate = facts->probe.interrupts_rate;

	if (c->interrupts < 0)
		doctor_find(finding, DOCTOR_UNKNOWN, "/proc/irq cannot be read");
	else if (node_cpus_count(&c->isolated))
		doctor_find(finding, c->interrupts_on || c->balancer ? DOCTOR_SLOW : DOCTOR_OK,
			    "%lld of %lld on isolated CPUs%s", c->interrupts_on, c->interrupts,
			    c->balancer ? "; irqbalance runs" : "");
	else
		doctor_find(finding, rate >= INTERRUPTS_MANY ? DOCTOR_NOTE : DOCTOR_OK,
			    "%lld devices' on all CPUs: none is kept for jobs%s", c->interrupts,
			    c->balancer ? "; irqbalance runs" : "");
	if (rate >= 0)
		doctor_cost(finding, "%.0f interrupts of devices a second on these CPUs now; each "
			    "takes microseconds (collnoise measure tells)", rate);
	if (c->balancer)
		doctor_advise(finding, "stop irqbalance, or ban these CPUs in its configuration; "
			      "then collnoise pin init");
}

static void judge_tick(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_cpus_facts *c = &facts->cpus;

	if (c->hz < 0)
		doctor_find(finding, DOCTOR_UNKNOWN, "the tick's rate is not known");
	else
		doctor_find(finding, c->hz >= HZ_MANY && !node_cpus_count(&c->no_tick) ?
			    DOCTOR_NOTE : DOCTOR_OK, "%lld a second%s", c->hz,
			    node_cpus_count(&c->no_tick) ? ", stopped on some CPUs" : "");
}

static void judge_steal(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const double share = facts->probe.steal;

	if (!facts->software.guest)
		doctor_find(finding, DOCTOR_OK, "no hypervisor");
	else if (share < 0)
		doctor_find(finding, DOCTOR_UNKNOWN, "a virtual machine; not measured");
	else
		doctor_find(finding, share >= STEAL_NOTE ? DOCTOR_NOTE : DOCTOR_OK,
			    "a virtual machine: the host took %.2g %% of its CPUs since boot",
			    100 * share);
}

static void judge_governor(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const char *governor = facts->cpus.governor;
	const double ratio = facts->probe.wake_ratio;

	if (!*governor)
		doctor_find(finding, DOCTOR_OK, "the kernel does not set frequencies here");
	else if (!strcmp(governor, "performance"))
		doctor_find(finding, DOCTOR_OK, "performance");
	else
		doctor_find(finding, !strcmp(governor, "powersave") || ratio > WAKE_SLOW ?
			    DOCTOR_SLOW : DOCTOR_NOTE, "%s", governor);
	if (ratio > 0)
		doctor_cost(finding, "work after 20 ms of sleep takes %.2g times as long as after "
			    "work, here and now", ratio);
}

static void judge_sleep(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const long long us = facts->cpus.sleep_us;

	if (us < 0)
		doctor_find(finding, DOCTOR_OK, "the kernel chooses no sleep states here");
	else
		doctor_find(finding, us > SLEEP_US_LONG ? DOCTOR_NOTE : DOCTOR_OK,
			    "%lld us to wake from the deepest", us);
	doctor_cost(finding, "a rank that slept, after 100 us of polling, continues up to %lld us "
		    "later, by the kernel's own table", us);
}

static void judge_realtime(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_cpus_facts *c = &facts->cpus;
	const long long left = c->rt_period_us - c->rt_runtime_us;

	if (!c->rt_group_us)
		doctor_find(finding, DOCTOR_NOTE, "this cgroup has no real-time share");
	else if (c->rt_runtime_us >= 0 && c->rt_period_us > 0 && left > 0)
		doctor_find(finding, left > c->rt_period_us / 10 ? DOCTOR_NOTE : DOCTOR_OK,
			    "others keep %lld of each %lld us", left, c->rt_period_us);
	else
		doctor_find(finding, DOCTOR_OK, "not limited");
	if (!c->rt_group_us) {
		doctor_cost(finding, "progress_priority=fifo:N fails with EPERM");
		doctor_advise(finding, "write cpu.rt_runtime_us of the cgroup, at least %d",
			      RT_LEAST_US);
	}
}

const struct doctor_check doctor_cpus_checks[] = {
	{ "quota", "cpu.max or cpu.cfs_quota_us of the cgroup and its parents; a probe",
	  judge_quota,
	  "ranks are stopped for the rest of each period (100 ms by default), and all others wait",
	  "no --cpus for the container, no CPUQuota= in the unit; give whole CPUs by cpuset instead",
	  "A quota lets all tasks of a cgroup compute for so long in each period and then stops "
	  "them together. One rank that is stopped stops a collective. cpu.stat counts it: "
	  "nr_throttled, throttled_usec.", true },
	{ "cpuset", "the CPUs that this process may use, of those online", judge_cpuset,
	  "all ranks of this node share one CPU",
	  "give the job more CPUs: taskset, cpuset.cpus, srun -c, --cpuset-cpus",
	  "Started by ssh or by Slurm, a job has the CPUs of that session. CPUs of isolcpus= are "
	  "left out of load balancing: bind each rank.", false },
	{ "isolation", "isolcpus=, isolated cpuset partitions, nohz_full=", judge_isolation,
	  "ticks, daemons and the kernel's work run on the CPUs of jobs; not measured (--quick)",
	  "boot with isolcpus=managed_irq,domain,LIST nohz_full=LIST; without a reboot: collnoise pin "
	  "init, or colld",
	  "What remains and what to do first: collnoise check, collnoise measure "
	  "(docs/guide/noise.md).", false },
	{ "smt", "thread_siblings_list of the CPUs that jobs may use", judge_siblings,
	  "two ranks on one core share its units and caches; not measured",
	  "bind ranks to one thread of each core (srun --hint=nomultithread), and leave the other to "
	  "daemons",
	  "The second thread is a good home for daemons and interrupts.", false },
	{ "noise", "a thread that reads the clock for 0.3 s", judge_noise,
	  "1 % makes an allreduce of 2^20 ranks 25 times slower, by simulation (README.md); coll "
	  "sim tells for yours",
	  "name the causes: collnoise measure; move them away: collnoise pin init, colld",
	  "Of one CPU, and short: rare events are missed. collnoise measures all CPUs, and names "
	  "causes. On a busy machine this is the other work.", true },
	{ "interrupts", "/proc/irq/*/effective_affinity_list; irqbalance; a count for 0.3 s",
	  judge_interrupts, "each takes microseconds from a rank; not measured (--quick)",
	  "collnoise pin init moves those that can be moved",
	  "The queues of a NIC usually follow the CPUs: one for each. Those of isolated CPUs are "
	  "managed with isolcpus=managed_irq.", true },
	{ "tick", "the timer's rate", judge_tick,
	  "a tick takes microseconds from each CPU; not measured alone, it is part of the noise",
	  "boot with nohz_full=LIST, or build with CONFIG_HZ_250",
	  "With nohz_full a CPU with one task has a tick a second.", false },
	{ "steal", "steal time of /proc/stat; the hypervisor flag", judge_steal,
	  "the virtual CPU stood still: noise that nothing inside can remove",
	  "pin the virtual CPUs on the host, a core each",
	  "Steal is what the hypervisor tells; what it hides, collnoise measure shows as hardware.",
	  true },
	{ "governor", "cpufreq/scaling_governor of the CPUs that jobs may use; a probe",
	  judge_governor, "a rank that waited computes slowly at first; not measured (--quick)",
	  "cpupower frequency-set -g performance",
	  "A waiting rank sleeps after 100 us, and the governor takes that for idleness. With "
	  "intel_pstate in active mode powersave is its own, milder algorithm.", false },
	{ "sleep", "cpuidle: latency of the deepest state that is enabled", judge_sleep, "",
	  "cpupower idle-set -D 10; for a job: COLL_SPIN=1ms polls for longer before it sleeps",
	  "The deeper a CPU sleeps, the longer it takes to wake: that is noise on each wait that is "
	  "longer than the option spin.", false },
	{ "realtime", "sched_rt_runtime_us and the cgroup's share", judge_realtime,
	  "a thread with progress_priority=fifo is stopped for that time in each period",
	  "sysctl -w kernel.sched_rt_runtime_us=950000",
	  "The kernel keeps a share of time from real-time threads so that a machine is not lost to "
	  "one that spins. Only progress_priority=fifo is concerned.", false },
	{ NULL },
};
