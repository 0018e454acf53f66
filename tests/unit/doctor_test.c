// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll doctor: each fault that is planted in the facts of a healthy node is found, and nothing
 * else; the facts are read from planted files; reports of several nodes are merged by who differs.
 *
 * Length: a table of seventy planted faults.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

#include "tools/doctor/check.h"
#include "tools/doctor/merge.h"
#include "tools/doctor/probe.h"
#include "tools/doctor/report.h"

/* ---- verdicts ----------------------------------------------------------------- */

static void set_cpus(struct node_cpus *cpus, const char *list)
{
	assert_true(node_cpus_read_list(cpus, list));
}

/* A node that nothing is wrong with. */
static void make_healthy(struct doctor_facts *f)
{
	*f = (struct doctor_facts){
		.transport = { .ring_suits = true, .ring_defers = true, .ring_futex = true,
			       .memlock = DOCTOR_NO_LIMIT, .files_soft = 1024,
			       .files_hard = 1 << 19, .file_bytes = DOCTOR_NO_LIMIT,
			       .tasks_left = DOCTOR_NO_LIMIT },
		.network = { .loopback = true, .congestion = "cubic", .available = "reno cubic", .allowed = "reno cubic",
			     .receive_max = 6 << 20, .send_max = 4 << 20, .scaling = 1,
			     .moderate = 1, .port_first = 32768, .port_last = 60999,
			     .path_rate = 10e9 / 8, .path_rtt = 1e-4 },
		.cpus = { .quota = -1, .throttled = -1, .throttled_ns = -1, .interrupts = 30,
			  .governor = "performance", .sleep_us = 2, .rt_runtime_us = 950000,
			  .rt_period_us = 1000000, .rt_group_us = -1, .hz = 250 },
		.memory = { .huge = "madvise", .defrag = "madvise", .nodes = 2, .total = 1ll << 37,
			    .available = 1ll << 36 },
		.clock = { .source = "tsc", .available = "tsc hpet", .synchronized = true },
		.software = { .kernel = "6.12.1", .version = "0.1", .module_loaded = true,
			      .device_opens = true, .module_version = "0.1",
			      .mpi = { { "openmpi", true, true }, { "mpich", false, false } } },
	};
	set_cpus(&f->cpus.online, "0-7");
	set_cpus(&f->cpus.allowed, "0-7");
	set_cpus(&f->cpus.isolated, "2-7");
	set_cpus(&f->cpus.no_tick, "2-7");
	doctor_probes_clear(&f->probe);
	f->probe.noise_share = 1e-5;
}

static void healthy_node_is_ok(void **state)
{
	const struct doctor_check *check;
	struct doctor_finding finding;
	struct doctor_facts facts;
	int i;

	(void)state;
	make_healthy(&facts);
	for (i = 0; (check = doctor_check_at(i)); i++) {
		doctor_judge(check, &facts, &finding);
		if (finding.level != DOCTOR_OK)
			fail_msg("%s: %s", check->name, finding.found);
	}
	assert_true(i > 30 && i < DOCTOR_CHECKS_MAX);
}

#define T f->transport
#define N f->network
#define C f->cpus
#define M f->memory
#define S f->software
#define P f->probe
#define PLANT(name, ...) static void plant_##name(struct doctor_facts *f) { __VA_ARGS__; }

PLANT(uring_off, T.ring_error = EPERM; T.uring_disabled = 2)
PLANT(uring_group, T.ring_error = EPERM; T.uring_disabled = 1)
PLANT(uring_seccomp, T.ring_error = EPERM; T.seccomp = 2)
PLANT(uring_kernel, T.ring_error = ENOSYS)
PLANT(uring_memlock, T.ring_error = ENOMEM)
PLANT(uring_old, T.ring_defers = false)
PLANT(uring_epoll_cost, T.ring_error = EPERM; T.seccomp = 2; P.poll_epoll_ns = 456)
PLANT(memlock, T.memlock = 64 << 10)
PLANT(memlock_unused, T.memlock = 64 << 10; S.module_loaded = false; strcpy(S.module_magic, "6.12.1"))
PLANT(files, T.files_hard = 40)
PLANT(files_few, T.files_hard = 1024)
PLANT(tasks, T.tasks_left = 3; strcpy(T.tasks_file, "/p/pids.max"))
PLANT(yama, T.copy_error = EPERM; T.yama = 1)
PLANT(yama_for_good, T.copy_error = EPERM; T.yama = 3)
PLANT(copy_seccomp, T.copy_error = EPERM; T.seccomp = 2)
PLANT(copy_cost, T.copy_error = EPERM; T.yama = 1; P.copy_twice_us = 90; P.copy_once_us = 50)
PLANT(memfd, T.memory_error = EPERM)
PLANT(file_limit, T.memory_error = EFBIG; T.file_bytes = 1024)
PLANT(loopback, N.loopback = false)
PLANT(ports, N.port_last = N.port_first + 10)
PLANT(ports_few, N.port_last = N.port_first + 999)
PLANT(bbr, strcpy(N.congestion, "bbr"))
PLANT(bbr_cost, strcpy(N.congestion, "bbr"); P.tcp_usual_us = 300; P.tcp_reno_us = 100)
PLANT(no_cubic, strcpy(N.congestion, "bbr"); strcpy(N.available, "reno bbr"))
PLANT(cubic_restricted, strcpy(N.congestion, "bbr"); strcpy(N.allowed, "reno bbr"))
PLANT(idle, N.idle_restart = 1)
PLANT(idle_bbr, N.idle_restart = 1; strcpy(N.congestion, "bbr"))
PLANT(scaling, N.scaling = 0)
PLANT(moderate, N.moderate = 0)
PLANT(buffers, N.path_rtt = 20e-3)
PLANT(buffers_unknown, N.receive_max = -1)
PLANT(quota, C.quota = 1.5; C.quota_unified = true; strcpy(C.quota_file, "/sys/fs/cgroup/j/cpu.max"))
PLANT(quota_stops, C.quota = 8; C.throttled = 10; C.throttled_ns = 500000000)
PLANT(quota_cost, C.quota = 4; P.granted = 0.5; P.throttled = 3)
PLANT(one_cpu, set_cpus(&C.allowed, "3"); set_cpus(&C.isolated, "4"))
PLANT(all_isolated, set_cpus(&C.allowed, "3-5"))
PLANT(nothing_isolated, set_cpus(&C.isolated, ""); set_cpus(&C.no_tick, ""))
PLANT(siblings, C.siblings = 8)
PLANT(noise, P.noise_share = 0.05; P.noise_longest_ns = 4e6)
PLANT(noise_little, P.noise_share = 0.002)
PLANT(noise_unknown, P.noise_share = -1)
PLANT(interrupts, C.interrupts_on = 4)
PLANT(balancer, C.balancer = true)
PLANT(tick, C.hz = 1000; set_cpus(&C.no_tick, ""))
PLANT(steal, S.guest = true; P.steal = 0.02)
PLANT(governor, strcpy(C.governor, "powersave"))
PLANT(governor_ramp, strcpy(C.governor, "schedutil"); P.wake_ratio = 2.5)
PLANT(sleep, C.sleep_us = 350)
PLANT(realtime, C.rt_runtime_us = 500000)
PLANT(realtime_group, C.rt_group_us = 0)
PLANT(huge, strcpy(M.huge, "always"))
PLANT(defrag, strcpy(M.huge, "always"); strcpy(M.defrag, "always"))
PLANT(numa, M.balancing = 1)
PLANT(reclaim, M.reclaim = 1)
PLANT(swap, M.swap_total = 1ll << 30; M.swap_used = 100 << 20)
PLANT(scarce, M.available = 1 << 30)
PLANT(killed, M.killed = 2)
PLANT(hpet, strcpy(f->clock.source, "hpet"))
PLANT(clock_cost, strcpy(f->clock.source, "xen"); P.clock_ns = 900)
PLANT(clock_alone, f->clock.synchronized = false)
PLANT(clock_forbidden, f->clock.synchronized = false; f->clock.error_us = -1)
PLANT(module_version, strcpy(S.module_version, "0.0"))
PLANT(module_device, S.device_opens = false)
PLANT(module_unloaded, S.module_loaded = false; strcpy(S.module_magic, "6.12.1"))
PLANT(module_kernel, S.module_loaded = false; strcpy(S.module_magic, "6.1.0"))
PLANT(module_elsewhere, S.module_loaded = false; strcpy(S.module_elsewhere, "6.1.0"))
PLANT(module_none, S.module_loaded = false)
PLANT(colld_dead, S.policy = true)
PLANT(colld_mute, S.colld_runs = true)
PLANT(shim, S.mpi[1].found = true)
PLANT(container, strcpy(S.container, "docker"); T.ring_error = EPERM)

/* What a fault makes of its check, and words of the advice, or of the cost. */
static const struct planted {
	void (*plant)(struct doctor_facts *f);
	const char *check;
	enum doctor_level level;
	const char *advice, *cost;
} planted[] = {
	{ plant_uring_off, "io-uring", DOCTOR_SLOW, "sysctl -w kernel.io_uring_disabled=0", "epoll" },
	{ plant_uring_group, "io-uring", DOCTOR_SLOW, "io_uring_group", "epoll" },
	{ plant_uring_seccomp, "io-uring", DOCTOR_SLOW, "seccomp profile", "epoll" },
	{ plant_uring_kernel, "io-uring", DOCTOR_SLOW, "CONFIG_IO_URING", "epoll" },
	{ plant_uring_memlock, "io-uring", DOCTOR_SLOW, "ulimit -l", "epoll" },
	{ plant_uring_old, "io-uring", DOCTOR_NOTE, "6.1", "not measured" },
	{ plant_uring_epoll_cost, "io-uring", DOCTOR_SLOW, "seccomp", "456 ns here" },
	{ plant_memlock, "memlock", DOCTOR_SLOW, "LimitMEMLOCK", "progress=kernel" },
	{ plant_memlock_unused, "memlock", DOCTOR_NOTE, "LimitMEMLOCK", "progress=kernel" },
	{ plant_files, "descriptors", DOCTOR_FAIL, "nofile", "about 8 others" },
	{ plant_files_few, "descriptors", DOCTOR_NOTE, "nofile", "about 992 others" },
	{ plant_tasks, "tasks", DOCTOR_FAIL, "echo max >'/p/pids.max' #", "EAGAIN" },
	{ plant_yama, "one-copy", DOCTOR_NOTE, "ptrace_scope=0", "two copies" },
	{ plant_yama_for_good, "one-copy", DOCTOR_NOTE, "until a reboot", "two copies" },
	{ plant_copy_seccomp, "one-copy", DOCTOR_NOTE, "process_vm_readv", "two copies" },
	{ plant_copy_cost, "one-copy", DOCTOR_NOTE, "ptrace_scope", "of 1 MB 90 us here, instead of one, 50" },
	{ plant_memfd, "shared-memory", DOCTOR_SLOW, "memfd_create", "over sockets" },
	{ plant_file_limit, "shared-memory", DOCTOR_SLOW, "ulimit -f unlimited", "over sockets" },
	{ plant_loopback, "loopback", DOCTOR_FAIL, "ip link set lo up", "cannot start" },
	{ plant_ports, "ports", DOCTOR_FAIL, "ip_local_port_range", "EADDRINUSE" },
	{ plant_ports_few, "ports", DOCTOR_NOTE, "ip_local_port_range", "EADDRINUSE" },
	{ plant_bbr, "congestion", DOCTOR_NOTE, "tcp_congestion_control=cubic", "2.3 times" },
	{ plant_bbr_cost, "congestion", DOCTOR_NOTE, "=cubic", "300 us here, with reno 100" },
	{ plant_no_cubic, "congestion", DOCTOR_NOTE, "modprobe tcp_cubic", "2.3 times" },
	{ plant_cubic_restricted, "congestion", DOCTOR_NOTE, "|| sysctl -w net.ipv4.tcp_congestion_control=reno", "2.3" },
	{ plant_idle, "idle-restart", DOCTOR_SLOW, "tcp_slow_start_after_idle=0", "10 packets" },
	{ plant_idle_bbr, "idle-restart", DOCTOR_SLOW, "tcp_slow_start_after_idle=0", "10 packets" },
	{ plant_scaling, "windows", DOCTOR_SLOW, "tcp_window_scaling=1", "655 MB/s" },
	{ plant_moderate, "windows", DOCTOR_SLOW, "tcp_moderate_rcvbuf=1", "first size" },
	{ plant_buffers, "buffers", DOCTOR_SLOW, "50000000", "105 MB/s" },
	{ plant_buffers_unknown, "buffers", DOCTOR_UNKNOWN, "", "" },
	{ plant_quota, "quota", DOCTOR_SLOW, "echo max >'/sys/fs/cgroup/j/cpu.max' #", "rest of each period" },
	{ plant_quota_stops, "quota", DOCTOR_NOTE, "CPUQuota", "10 times so far, for 50 ms each" },
	{ plant_quota_cost, "quota", DOCTOR_SLOW, "CPUQuota", "got 50 %" },
	{ plant_one_cpu, "cpuset", DOCTOR_SLOW, "cpuset", "share one CPU" },
	{ plant_all_isolated, "cpuset", DOCTOR_SLOW, "--bind core", "stay on the first" },
	{ plant_nothing_isolated, "isolation", DOCTOR_NOTE, "isolcpus", "noise" },
	{ plant_siblings, "smt", DOCTOR_NOTE, "nomultithread", "not measured" },
	{ plant_noise, "noise", DOCTOR_SLOW, "collnoise measure", "25 times" },
	{ plant_noise_little, "noise", DOCTOR_NOTE, "collnoise measure", "25 times" },
	{ plant_noise_unknown, "noise", DOCTOR_UNKNOWN, "", "" },
	{ plant_interrupts, "interrupts", DOCTOR_SLOW, "collnoise pin init", "microseconds" },
	{ plant_balancer, "interrupts", DOCTOR_SLOW, "stop irqbalance", "microseconds" },
	{ plant_tick, "tick", DOCTOR_NOTE, "nohz_full", "microseconds" },
	{ plant_steal, "steal", DOCTOR_NOTE, "on the host", "stood still" },
	{ plant_governor, "governor", DOCTOR_SLOW, "performance", "not measured" },
	{ plant_governor_ramp, "governor", DOCTOR_SLOW, "performance", "2.5 times as long" },
	{ plant_sleep, "sleep", DOCTOR_NOTE, "COLL_SPIN", "up to 350 us" },
	{ plant_realtime, "realtime", DOCTOR_NOTE, "sched_rt_runtime_us", "fifo" },
	{ plant_realtime_group, "realtime", DOCTOR_NOTE, "cpu.rt_runtime_us", "EPERM" },
	{ plant_huge, "huge-pages", DOCTOR_NOTE, "madvise", "not measured" },
	{ plant_defrag, "huge-pages", DOCTOR_SLOW, "madvise", "page fault" },
	{ plant_numa, "numa", DOCTOR_NOTE, "numa_balancing=0", "page faults" },
	{ plant_reclaim, "numa", DOCTOR_NOTE, "zone_reclaim_mode=0", "page faults" },
	{ plant_swap, "swap", DOCTOR_NOTE, "swapoff", "milliseconds" },
	{ plant_scarce, "memory", DOCTOR_FAIL, "memory.max", "kills" },
	{ plant_killed, "memory", DOCTOR_NOTE, "memory.max", "kills" },
	{ plant_hpet, "clock", DOCTOR_SLOW, "echo tsc", "device" },
	{ plant_clock_cost, "clock", DOCTOR_SLOW, "echo tsc", "900 ns here" },
	{ plant_clock_alone, "time", DOCTOR_NOTE, "chronyd", "do not line up" },
	{ plant_clock_forbidden, "time", DOCTOR_UNKNOWN, "", "" },
	{ plant_module_version, "module", DOCTOR_SLOW, "rmmod", "refuse" },
	{ plant_module_device, "module", DOCTOR_NOTE, "udev", "progress=kernel fails" },
	{ plant_module_unloaded, "module", DOCTOR_NOTE, "modprobe coll", "progress=kernel" },
	{ plant_module_kernel, "module", DOCTOR_NOTE, "dkms install coll/0.1 -k 6.12.1", "kernel" },
	{ plant_module_elsewhere, "module", DOCTOR_NOTE, "dkms install", "kernel" },
	{ plant_module_none, "module", DOCTOR_NOTE, "coll-dkms", "progress=kernel" },
	{ plant_colld_dead, "colld", DOCTOR_SLOW, "systemctl enable", "not in force" },
	{ plant_colld_mute, "colld", DOCTOR_NOTE, "journalctl", "five seconds" },
	{ plant_shim, "mpi", DOCTOR_NOTE, "libcollmpi", "9,200 us" },
	{ plant_container, "container", DOCTOR_NOTE, "seccomp=", "other lines" },
};

static void expect_words(const struct planted *p, const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("%s: '%s' is not in '%s'", p->check, words, text);
}

static void planted_faults_are_found(void **state)
{
	struct doctor_finding finding;
	struct doctor_facts facts;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(planted) / sizeof(*planted); i++) {
		const struct planted *p = &planted[i];
		const struct doctor_check *check = doctor_check_named(p->check);

		assert_non_null(check);
		make_healthy(&facts);
		p->plant(&facts);
		doctor_judge(check, &facts, &finding);
		if (finding.level != p->level)
			fail_msg("fault %zu: %s is %s, not %s: %s", i, p->check,
				 doctor_level_names[finding.level], doctor_level_names[p->level],
				 finding.found);
		expect_words(p, finding.advice, p->advice);
		expect_words(p, finding.cost, p->cost);
	}
}

/* A fault is told by its own check alone, but for those that one cause makes two of. */
static void one_fault_is_one_finding(void **state)
{
	static const char *const pairs[] = { "container", "memlock", "io-uring", "module",
					     "interrupts", "tick", "isolation", "congestion", NULL };
	struct doctor_report report;
	struct doctor_facts facts;
	size_t i;
	u32 k;
	int n;

	(void)state;
	for (i = 0; i < sizeof(planted) / sizeof(*planted); i++) {
		make_healthy(&facts);
		planted[i].plant(&facts);
		doctor_report_make(&report, &facts, NULL);
		for (k = 0; k < report.count; k++) {
			const char *name = report.finding[k].check->name;

			if (report.finding[k].level == DOCTOR_OK || !strcmp(name, planted[i].check))
				continue;
			for (n = 0; pairs[n] && strcmp(pairs[n], name); n++)
				;
			if (!pairs[n])
				fail_msg("%s is told for %s", name, planted[i].check);
		}
	}
}

static void every_check_has_cost_advice_and_more(void **state)
{
	const struct doctor_check *check;
	int i;

	(void)state;
	for (i = 0; (check = doctor_check_at(i)); i++) {
		assert_true(strlen(check->looks) > 5 && strlen(check->explain) > 40);
		assert_ptr_equal(doctor_check_named(check->name), check);
		assert_true(strlen(check->cost) < DOCTOR_TEXT && strlen(check->advice) < DOCTOR_TEXT);
	}
	assert_null(doctor_check_named("no such check"));
}

/* ---- reading --------------------------------------------------------------------- */

static char root[64];

static void plant_file(const char *path, const char *text)
{
	char whole[512], *slash;
	FILE *to;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		mkdir(whole, 0755);
		*slash = '/';
	}
	to = fopen(whole, "w");
	assert_non_null(to);
	fputs(text, to);
	assert_int_equal(fclose(to), 0);
}

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/doctor_test-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static void empty_root_is_unknown(void **state)
{
	struct doctor_facts f;

	(void)state;
	doctor_read_network(&f.network, root, &(struct doctor_path){ 0 });
	doctor_read_cpus(&f.cpus, root);
	doctor_read_memory(&f.memory, root);
	assert_int_equal(f.network.receive_max, -1);
	assert_int_equal(f.network.port_first, -1);
	assert_true(f.network.rate_assumed);
	assert_int_equal(f.cpus.interrupts, -1);
	assert_true(f.cpus.quota < 0);
	assert_int_equal(node_cpus_count(&f.cpus.online), 0);
	assert_int_equal(f.memory.total, -1);
	assert_int_equal(f.memory.swap_used, -1);
}

static void quota_of_a_parent_counts(void **state)
{
	struct doctor_cpus_facts c;

	(void)state;
	plant_file("/proc/self/cgroup", "0::/a/b\n");
	plant_file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
	plant_file("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
	plant_file("/sys/fs/cgroup/a/cpu.stat", "nr_periods 9\nnr_throttled 7\nthrottled_usec 350000\n");
	doctor_read_cpus(&c, root);
	assert_true(c.quota == 1.5);
	assert_int_equal(c.throttled, 7);
	assert_int_equal(c.throttled_ns, 350000000);
	assert_string_equal(c.quota_file, "/sys/fs/cgroup/a/cpu.max");
}

static void quota_of_version_1(void **state)
{
	struct doctor_cpus_facts c;

	(void)state;
	plant_file("/proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/job\n0::/a/b\n");
	plant_file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
	plant_file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
	plant_file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.rt_runtime_us", "0\n");
	plant_file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.stat",
		   "nr_periods 9\nnr_throttled 3\nthrottled_time 60000000\n");
	doctor_read_cpus(&c, root);
	assert_true(c.quota == 0.5);
	assert_int_equal(c.throttled, 3);
	assert_int_equal(c.throttled_ns, 60000000);
	assert_int_equal(c.rt_group_us, 0);
	assert_string_equal(c.quota_file, "/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us");
}

/* The advice names the file of a container of Kubernetes whole, and none that does not fit. */
static void long_paths_are_not_cut(void **state)
{
	const char *group = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-"
		"pod0f3c7a5e_5a51_4d3c_9d3b_1c2d3e4f5a6b.slice/cri\\x2dcontainerd-"
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope";
	char path[512], text[sizeof(path) + 32];
	struct doctor_finding finding;
	struct doctor_facts f;

	(void)state;
	make_healthy(&f);
	snprintf(text, sizeof(text), "0::%s\n", group);
	plant_file("/proc/self/cgroup", text);
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", group);
	plant_file(path, "150000 100000\n");
	doctor_read_cpus(&f.cpus, root);
	assert_string_equal(f.cpus.quota_file, path);
	snprintf(text, sizeof(text), "echo max >'%s' #", path);
	doctor_judge(doctor_check_named("quota"), &f, &finding);
	assert_non_null(strstr(finding.advice, text));
	snprintf(text, sizeof(text), "0::/%0200d/%0200d\n", 1, 2);
	plant_file("/proc/self/cgroup", text);
	snprintf(path, sizeof(path), "/sys/fs/cgroup/%0200d/%0200d/cpu.max", 1, 2);
	plant_file(path, "150000 100000\n");
	doctor_read_cpus(&f.cpus, root);
	assert_true(f.cpus.quota == 1.5);
	set_cpus(&f.cpus.allowed, "0-7");
	doctor_judge(doctor_check_named("quota"), &f, &finding);
	assert_null(strstr(finding.advice, "echo"));
	assert_non_null(strstr(finding.advice, "CPUQuota"));
}

static void processors_are_read(void **state)
{
	struct doctor_cpus_facts c;

	(void)state;
	plant_file("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-3\nSeccomp:\t2\n");
	plant_file("/sys/devices/system/cpu/online", "0-7\n");
	plant_file("/sys/devices/system/cpu/isolated", "2-3\n");
	plant_file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
	plant_file("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
	plant_file("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,2\n");
	plant_file("/sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "0,2\n");
	plant_file("/sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,5\n");
	plant_file("/sys/devices/system/cpu/cpu0/cpuidle/state0/disable", "0\n");
	plant_file("/sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "2\n");
	plant_file("/sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "0\n");
	plant_file("/sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "120\n");
	plant_file("/sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "1\n");
	plant_file("/sys/devices/system/cpu/cpu0/cpuidle/state2/latency", "900\n");
	plant_file("/proc/irq/30/eth0/x", "");
	plant_file("/proc/irq/30/effective_affinity_list", "3\n");
	plant_file("/proc/irq/31/eth1/x", "");
	plant_file("/proc/irq/31/smp_affinity_list", "0-1\n");
	plant_file("/proc/irq/32/effective_affinity_list", "3\n");	/* nobody handles it */
	plant_file("/proc/77/comm", "irqbalance\n");
	doctor_read_cpus(&c, root);
	assert_int_equal(node_cpus_count(&c.online), 8);
	assert_int_equal(node_cpus_count(&c.allowed), 4);
	assert_int_equal(node_cpus_count(&c.isolated), 2);
	assert_string_equal(c.governor, "mixed");
	assert_int_equal(c.siblings, 2);
	assert_int_equal(c.sleep_us, 120);
	assert_int_equal(c.interrupts, 2);
	assert_int_equal(c.interrupts_on, 1);
	assert_true(c.balancer);
}

static void memory_is_read(void **state)
{
	struct doctor_memory_facts m;

	(void)state;
	plant_file("/proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n"
		   "SwapTotal: 2048 kB\nSwapFree: 1024 kB\n");
	plant_file("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
	plant_file("/sys/kernel/mm/transparent_hugepage/defrag", "always defer [madvise] never\n");
	plant_file("/sys/devices/system/node/online", "0-3\n");
	plant_file("/proc/sys/kernel/numa_balancing", "1\n");
	plant_file("/proc/self/cgroup", "0::/job\n");
	plant_file("/sys/fs/cgroup/job/memory.max", "104857600\n");
	plant_file("/sys/fs/cgroup/job/memory.current", "103809024\n");
	plant_file("/sys/fs/cgroup/job/memory.events", "low 0\noom_kill 4\n");
	doctor_read_memory(&m, root);
	assert_string_equal(m.huge, "always");
	assert_string_equal(m.defrag, "madvise");
	assert_int_equal(m.nodes, 4);
	assert_int_equal(m.balancing, 1);
	assert_int_equal(m.swap_used, 1 << 20);
	assert_int_equal(m.total, 100 << 20);
	assert_int_equal(m.available, 1 << 20);
	assert_int_equal(m.killed, 4);
}

/* A job that has read a file of 96 MB: the kernel drops it for a rank that wants memory. */
static void cache_is_no_scarcity(void **state)
{
	struct doctor_memory_facts m;

	(void)state;
	plant_file("/proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n");
	plant_file("/proc/self/cgroup", "0::/job\n");
	plant_file("/sys/fs/cgroup/job/memory.max", "104857600\n");
	plant_file("/sys/fs/cgroup/job/memory.current", "103809024\n");
	plant_file("/sys/fs/cgroup/job/memory.stat",
		   "anon 2097152\nfile 100663296\ninactive_file 94371840\nactive_file 6291456\n");
	doctor_read_memory(&m, root);
	assert_int_equal(m.available, 97 << 20);
	plant_file("/proc/self/cgroup", "4:memory:/job\n");
	plant_file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "104857600\n");
	plant_file("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "103809024\n");
	plant_file("/sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 94371840\n");
	doctor_read_memory(&m, root);
	assert_int_equal(m.available, 91 << 20);
}

static void network_is_read(void **state)
{
	struct doctor_network_facts n;

	(void)state;
	plant_file("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n");
	plant_file("/proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304\n");
	plant_file("/proc/sys/net/ipv4/tcp_congestion_control", "bbr\n");
	plant_file("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "1\n");
	plant_file("/proc/sys/net/ipv4/ip_local_port_range", "40000\t40003\n");
	plant_file("/sys/class/net/ib0/speed", "100000\n");
	plant_file("/sys/class/net/eth0/speed", "-1\n");
	doctor_read_network(&n, root, &(struct doctor_path){ 0 });
	assert_int_equal(n.receive_max, 6291456);
	assert_int_equal(n.send_max, 4194304);
	assert_string_equal(n.congestion, "bbr");
	assert_int_equal(n.idle_restart, 1);
	assert_int_equal(n.port_last - n.port_first, 3);
	assert_true(n.path_rate == 100e9 / 8 && !n.rate_assumed);
	doctor_read_network(&n, root, &(struct doctor_path){ .rate = 1000, .rtt = 5000000 });
	assert_true(n.path_rate == 1000 && n.path_rtt == 5e-3);
}

static void module_is_read(void **state)
{
	struct doctor_software_facts s;

	(void)state;
	plant_file("/proc/sys/kernel/osrelease", "6.12.1\n");
	plant_file("/lib/modules/6.1.0/updates/coll.ko", "x");
	doctor_read_software(&s, root);
	assert_string_equal(s.module_elsewhere, "6.1.0");
	assert_string_equal(s.module_magic, "");
	plant_file("/lib/modules/6.12.1/extra/coll.ko", "....vermagic=6.11.0 SMP mod_unload ");
	doctor_read_software(&s, root);
	assert_string_equal(s.module_magic, "6.11.0");
	assert_false(s.module_loaded);
	plant_file("/sys/module/coll/version", "0.7\n");
	plant_file("/.dockerenv", "");
	plant_file("/etc/coll/policy", "");
	doctor_read_software(&s, root);
	assert_true(s.module_loaded && s.policy && !s.colld_runs);
	assert_string_equal(s.module_version, "0.7");
	assert_string_equal(s.container, "docker");
}

/* ---- merging ------------------------------------------------------------------------ */

static json_t *report_of(void (*plant)(struct doctor_facts *f), const char *node)
{
	struct doctor_report report;
	struct doctor_facts facts;

	make_healthy(&facts);
	if (plant)
		plant(&facts);
	doctor_report_make(&report, &facts, NULL);
	return doctor_report_json(&report, node);
}

static json_t *finding_at(json_t *merged, size_t index, const char *check)
{
	json_t *finding = json_array_get(json_object_get(merged, "findings"), index);

	assert_string_equal(json_string_value(json_object_get(finding, "check")), check);
	return finding;
}

/* What a host says that has reached all others. */
static json_t *all_reached(int host, int hosts)
{
	json_t *list = json_array();
	int to;

	for (to = 0; to < hosts; to++)
		if (to != host)
			json_array_append_new(list, json_pack("{si sf sf}", "host", to, "rtt_us", 50.0,
							      "offset_us", 3.0));
	return json_pack("{so}", "to", list);
}

static void rows_free(struct doctor_row *row, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		json_decref(row[i].report);
		json_decref(row[i].pairs);
	}
}

static void outliers_come_first(void **state)
{
	struct doctor_row row[4] = {
		{ "a", report_of(plant_idle, "a"), all_reached(0, 4) },
		{ "b", report_of(plant_governor, "b"), all_reached(1, 4) },
		{ "c", report_of(plant_idle, "c"), all_reached(2, 4) },
		{ "d", report_of(plant_idle, "d"), all_reached(3, 4) },
	};
	enum doctor_level worst;
	json_t *merged = doctor_merge(row, 4, &worst), *finding;

	(void)state;
	assert_int_equal(worst, DOCTOR_SLOW);
	assert_true(json_is_true(json_object_get(merged, "whole")));
	finding = finding_at(merged, 0, "governor");
	assert_true(json_is_true(json_object_get(finding, "differs")));
	assert_string_equal(json_string_value(json_array_get(json_object_get(finding, "nodes"), 0)),
			    "b");
	finding = finding_at(merged, 1, "idle-restart");	/* b is good: it differs, too */
	assert_string_equal(json_string_value(json_object_get(finding, "level")), "ok");
	finding = finding_at(merged, 2, "idle-restart");
	assert_false(json_is_true(json_object_get(finding, "differs")));
	assert_int_equal(json_array_size(json_object_get(finding, "nodes")), 3);
	json_decref(merged);
	rows_free(row, 4);
}

static void lost_hosts_and_one_way_paths(void **state)
{
	struct doctor_row row[3] = {
		{ "a", report_of(NULL, "a"), json_pack("{s[{si ss ss ss}]}", "to", "host", 1, "error",
			"Connection timed out", "address", "10.0.0.2", "port", "4711") },
		{ "b", report_of(NULL, "b"), json_pack("{s[{si sf sf}]}", "to", "host", 0, "rtt_us",
			50.0, "offset_us", 3.0) },
		{ "c", NULL, NULL },
	};
	enum doctor_level worst;
	json_t *merged = doctor_merge(row, 3, &worst), *finding;
	const char *found;

	(void)state;
	assert_int_equal(worst, DOCTOR_FAIL);
	finding_at(merged, 0, "host");
	finding = finding_at(merged, 1, "reach");
	found = json_string_value(json_object_get(finding, "found"));
	assert_non_null(strstr(found, "b is not reached from a (10.0.0.2 port 4711): Connection timed "
			       "out; the other way works"));
	json_decref(merged);
	rows_free(row, 3);
}

/* 500 hosts with 499 connections each: a fraction of a second. One differs. */
static void many_hosts_are_merged_soon(void **state)
{
	enum { HOSTS = 500 };
	static struct doctor_row row[HOSTS];
	enum doctor_level worst;
	struct timespec begin, end;
	json_t *merged, *finding;
	int i;

	(void)state;
	for (i = 0; i < HOSTS; i++)
		row[i] = (struct doctor_row){ i == 400 ? "odd" : "even",
					      report_of(i == 400 ? plant_idle : NULL, "x"), all_reached(i, HOSTS) };
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	merged = doctor_merge(row, HOSTS, &worst);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_true(end.tv_sec - begin.tv_sec < 4);
	assert_true(json_is_true(json_object_get(merged, "whole")));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(merged, "paths"), "connections")),
			 HOSTS * (HOSTS - 1));
	finding = finding_at(merged, 0, "idle-restart");
	assert_string_equal(json_string_value(json_array_get(json_object_get(finding, "nodes"), 0)), "odd");
	json_decref(merged);
	rows_free(row, HOSTS);
}

/* More than fit into a line of the table, one by one and together. */
static void long_names_are_cut(void **state)
{
	char name[3][251], *text;
	struct doctor_row row[3];
	enum doctor_level worst;
	json_t *merged;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);
	int length, i;

	(void)state;
	for (length = 90; length <= 250; length += 10) {
		for (i = 0; i < 3; i++) {
			memset(name[i], 'a' + i, length);
			name[i][length] = 0;
			row[i] = (struct doctor_row){ name[i], NULL, NULL };
		}
		merged = doctor_merge(row, 3, &worst);
		doctor_merge_print(merged, true, to);
		json_decref(merged);
	}
	assert_int_equal(fclose(to), 0);
	assert_non_null(strstr(text, " more"));
	free(text);
}

/* a ended its part before b came, and nobody answers there any more. */
static void late_hosts_are_no_fault(void **state)
{
	struct doctor_row row[2] = {
		{ "a", report_of(NULL, "a"), json_pack("{s[]}", "to") },
		{ "b", report_of(NULL, "b"), json_pack("{s[{si ss ss ss}]}", "to", "host", 0, "error",
			"Connection refused", "address", "10.0.0.1", "port", "4711") },
	};
	enum doctor_level worst;
	json_t *merged = doctor_merge(row, 2, &worst), *finding;

	(void)state;
	assert_int_equal(worst, DOCTOR_UNKNOWN);
	assert_true(json_is_false(json_object_get(merged, "whole")));
	finding = finding_at(merged, 0, "reach");
	assert_string_equal(json_string_value(json_object_get(finding, "found")),
			    "a is not reached from b (10.0.0.1 port 4711): Connection refused; it waited "
			    "no longer, since they came too late");
	finding = finding_at(merged, 1, "reach");
	assert_string_equal(json_string_value(json_object_get(finding, "found")),
			    "b came too late to be tried from 1 of the others");
	json_decref(merged);
	rows_free(row, 2);
}

static void connections_that_nobody_tried_are_told(void **state)
{
	struct doctor_row row[3] = {
		{ "a", report_of(NULL, "a"), json_pack("{s[]}", "to") },
		{ "b", report_of(NULL, "b"), json_pack("{ss}", "error", "no memory") },
		{ "c", report_of(NULL, "c"), NULL },
	};
	enum doctor_level worst;
	json_t *merged = doctor_merge(row, 3, &worst), *finding;

	(void)state;
	assert_int_equal(worst, DOCTOR_UNKNOWN);
	assert_true(json_is_false(json_object_get(merged, "whole")));
	finding = finding_at(merged, 0, "reach");
	assert_string_equal(json_string_value(json_object_get(finding, "found")),
			    "cannot try connections: no memory");
	finding = finding_at(merged, 1, "reach");
	assert_string_equal(json_string_value(json_array_get(json_object_get(finding, "nodes"), 0)), "c");
	json_decref(merged);
	rows_free(row, 3);
}

static void clocks_that_differ_are_named(void **state)
{
	struct doctor_row row[2] = {
		{ "a", report_of(NULL, "a"), json_pack("{s[{si sf sf}]}", "to", "host", 1, "rtt_us",
			50.0, "offset_us", -70e3) },
		{ "b", report_of(NULL, "b"), json_pack("{s:s, s:s}", "store", "refused", "address",
			"x:1") },
	};
	enum doctor_level worst;
	json_t *merged = doctor_merge(row, 2, &worst), *finding;

	(void)state;
	finding_at(merged, 0, "store");
	finding = finding_at(merged, 1, "time");
	assert_string_equal(json_string_value(json_object_get(finding, "found")),
			    "its clock is 70.0 ms behind that of a");
	json_decref(merged);
	rows_free(row, 2);
}

#define READING(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(healthy_node_is_ok),
		cmocka_unit_test(planted_faults_are_found),
		cmocka_unit_test(one_fault_is_one_finding),
		cmocka_unit_test(every_check_has_cost_advice_and_more),
		READING(empty_root_is_unknown),
		READING(quota_of_a_parent_counts),
		READING(quota_of_version_1),
		READING(long_paths_are_not_cut),
		READING(processors_are_read),
		READING(memory_is_read),
		READING(cache_is_no_scarcity),
		READING(network_is_read),
		READING(module_is_read),
		cmocka_unit_test(outliers_come_first),
		cmocka_unit_test(lost_hosts_and_one_way_paths),
		cmocka_unit_test(many_hosts_are_merged_soon),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(late_hosts_are_no_fault),
		cmocka_unit_test(connections_that_nobody_tried_are_told),
		cmocka_unit_test(clocks_that_differ_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
