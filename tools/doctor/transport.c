// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Verdicts on what the library needs to move bytes. */
#include <errno.h>
#include <string.h>

#include "check.h"

enum {
	FILES_OWN = 32,		/* of a rank without a peer: its input, ring, store, listeners */
	FILES_MANY = 4096,
	TASKS_FEW = 64,
	MEBIBYTE = 1 << 20,
};

#define MEMLOCK_ENOUGH (64ll * MEBIBYTE)
#define MEMORY_RING_BYTES (1ll * MEBIBYTE)	/* two rings of 256 KB and what is beside them */

/* ---- io_uring ---------------------------------------------------------------- */

static void advise_ring(const struct doctor_transport_facts *t, struct doctor_finding *finding)
{
	if (t->ring_error == ENOSYS && t->seccomp != 2)
		doctor_advise(finding, "a kernel with CONFIG_IO_URING, 6.1 or newer");
	else if (t->uring_disabled == 1)
		doctor_advise(finding, "sysctl -w kernel.io_uring_disabled=0 # or add the users to "
				       "the group of kernel.io_uring_group");
	else if (t->uring_disabled == 2)
		doctor_advise(finding, "sysctl -w kernel.io_uring_disabled=0");
	else if (t->ring_error == ENOMEM)
		doctor_advise(finding, "ulimit -l unlimited # the limit on locked memory");
	else if (t->seccomp == 2)
		doctor_advise(finding, "allow io_uring_setup, io_uring_enter, io_uring_register in "
				       "the container's seccomp profile");
}

static void judge_io_uring(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_transport_facts *t = &facts->transport;
	const struct doctor_probes *p = &facts->probe;

	if (t->ring_error) {
		doctor_find(finding, DOCTOR_SLOW, "not allowed: %s (io_uring_disabled %lld, "
			    "seccomp %lld)", strerror(t->ring_error), t->uring_disabled, t->seccomp);
		advise_ring(t, finding);
		if (p->poll_epoll_ns > 0)
			doctor_cost(finding, "the library uses epoll: a poll that finds nothing "
				    "takes %.0f ns here, with io_uring 25 to 50; over TCP an 8-byte "
				    "allreduce of 4 ranks on 2 cores 107 us instead of 82 "
				    "(docs/results/doctor.md)", p->poll_epoll_ns);
	} else if (!t->ring_suits) {
		doctor_find(finding, DOCTOR_SLOW, "too old: FAST_POLL, EXT_ARG or SYNC_CANCEL (Linux 6.0) "
			    "is missing");
	} else if (!t->ring_defers) {
		doctor_find(finding, DOCTOR_NOTE, "without DEFER_TASKRUN, before Linux 6.1");
		doctor_cost(finding, "completions interrupt the application; not measured");
	} else {
		doctor_find(finding, DOCTOR_OK, "DEFER_TASKRUN, multishot receive%s%s",
			    t->ring_send_zc ? ", SEND_ZC" : "", t->ring_futex ? ", futex" : "");
	}
}

/* ---- limits --------------------------------------------------------------------- */

static void judge_memlock(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const long long limit = facts->transport.memlock;

	if (limit < 0)
		doctor_find(finding, DOCTOR_UNKNOWN, "getrlimit() failed");
	else if (limit == DOCTOR_NO_LIMIT)
		doctor_find(finding, DOCTOR_OK, "unlimited");
	else
		doctor_find(finding, limit < MEMLOCK_ENOUGH && facts->software.module_loaded ?
			    DOCTOR_SLOW : limit < MEMLOCK_ENOUGH ? DOCTOR_NOTE : DOCTOR_OK,
			    "%lld KB", limit / 1024);
}

static void judge_descriptors(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const long long hard = facts->transport.files_hard, peers = hard - FILES_OWN;

	if (hard == DOCTOR_NO_LIMIT)
		doctor_find(finding, DOCTOR_OK, "unlimited");
	else
		doctor_find(finding, hard < 4 * FILES_OWN ? DOCTOR_FAIL : hard < FILES_MANY ?
			    DOCTOR_NOTE : DOCTOR_OK, "soft %lld, hard %lld",
			    facts->transport.files_soft, hard);
	doctor_cost(finding, "a rank connects to about %lld others; a call that needs more fails "
		    "with EMFILE (the soft limit is raised by itself)", peers > 0 ? peers : 0);
}

static void judge_tasks(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const long long left = facts->transport.tasks_left;

	if (*facts->transport.tasks_file)
		doctor_advise(finding, "echo max >'%s' # TasksMax=infinity in the unit, --pids-limit -1 "
			      "of the container", facts->transport.tasks_file);
	if (left < 0)
		doctor_find(finding, DOCTOR_UNKNOWN, "no cgroup of pids can be read");
	else if (left == DOCTOR_NO_LIMIT)
		doctor_find(finding, DOCTOR_OK, "unlimited");
	else
		doctor_find(finding, left < TASKS_FEW ? DOCTOR_FAIL : DOCTOR_OK,
			    left < TASKS_FEW ? "%lld more in this cgroup" : "more than enough",
			    left);
}

/* ---- memory between ranks ---------------------------------------------------------- */

static void advise_copy(const struct doctor_transport_facts *t, struct doctor_finding *finding)
{
	if (t->yama == 1)
		doctor_advise(finding, "sysctl -w kernel.yama.ptrace_scope=0 # any process of a "
				       "user may then read that user's others");
	else if (t->yama > 1)
		doctor_advise(finding, "kernel.yama.ptrace_scope %lld is for good until a reboot; "
			      "set 0 at boot", t->yama);
	else if (t->seccomp == 2)
		doctor_advise(finding, "allow process_vm_readv in the container's seccomp profile");
}

static void judge_one_copy(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_transport_facts *t = &facts->transport;
	const struct doctor_probes *p = &facts->probe;

	if (!t->copy_error) {
		doctor_find(finding, DOCTOR_OK, "a rank may read another's memory");
		return;
	}
	doctor_find(finding, DOCTOR_NOTE, "not allowed: %s (ptrace_scope %lld, seccomp %lld)",
		    strerror(t->copy_error), t->yama, t->seccomp);
	if (p->copy_twice_us > 0 && p->copy_once_us > 0)
		doctor_cost(finding, "long messages take two copies: of 1 MB %.0f us "
			    "here, instead of one, %.0f", p->copy_twice_us, p->copy_once_us);
	advise_copy(t, finding);
}

static void judge_shared_memory(const struct doctor_facts *facts, struct doctor_finding *finding)
{
	const struct doctor_transport_facts *t = &facts->transport;
	const bool limited = t->file_bytes != DOCTOR_NO_LIMIT && t->file_bytes >= 0 &&
			     t->file_bytes < MEMORY_RING_BYTES;

	if (!t->memory_error) {
		doctor_find(finding, DOCTOR_OK, "ranks of this node share memory");
		return;
	}
	doctor_find(finding, DOCTOR_SLOW, "no sealed memory: %s", strerror(t->memory_error));
	if (limited)
		doctor_advise(finding, "ulimit -f unlimited # the limit on files, %lld KB, holds for "
			      "shared memory too", t->file_bytes / 1024);
	else if (t->memory_error == EPERM || t->memory_error == ENOSYS)
		doctor_advise(finding, "allow memfd_create in the container's seccomp profile");
}

const struct doctor_check doctor_transport_checks[] = {
	{ "io-uring", "io_uring_setup(2), its features and ops; kernel.io_uring_disabled; seccomp",
	  judge_io_uring,
	  "the library uses epoll: over TCP an 8-byte allreduce of 4 ranks on 2 cores takes 107 us "
	  "instead of 82 (docs/results/doctor.md)",
	  "a kernel that allows io_uring, 6.1 or newer",
	  "The library moves TCP's bytes by io_uring where that is allowed and at least that of Linux "
	  "6.0, and by epoll otherwise; "
	  "results are the same. kernel.io_uring_disabled is 0 (all may), 1 (a group may) or 2 "
	  "(nobody); many container runtimes forbid the three system calls by seccomp. "
	  "DEFER_TASKRUN (Linux 6.1) keeps completions from interrupting the application. "
	  "COLL_ENGINE=uring makes a job fail where it is not allowed, so that nobody measures "
	  "epoll by mistake. For good: a file in /etc/sysctl.d with kernel.io_uring_disabled = 0.",
	  false },
	{ "memlock", "the limit on locked memory, ulimit -l", judge_memlock,
	  "progress=kernel pins buffers against it: runs that need more are progressed by the "
	  "application's calls, which hide 4 to 55 % of a collective where it makes none in between "
	  "(docs/results/progress.md)",
	  "ulimit -l unlimited # for good: \"* - memlock unlimited\" in /etc/security/limits.d, and "
	  "LimitMEMLOCK=infinity for slurmd or sshd",
	  "coll.ko pins the buffers, schedules and plans of the runs that it is given, and counts "
	  "them against RLIMIT_MEMLOCK of the process. What does not fit is refused, and the "
	  "library progresses it itself: COLL_EXPLAIN=1 says so. Slurm passes the submitting "
	  "shell's limit on unless PropagateResourceLimitsExcept=MEMLOCK is set. A daemon's "
	  "limit is that of its unit, not that of limits.d.", false },
	{ "descriptors", "the limit on open files, ulimit -n and ulimit -Hn", judge_descriptors, "",
	  "ulimit -n 65536 # as root; for good: \"* - nofile 65536\" in /etc/security/limits.d, "
	  "LimitNOFILE=65536 for slurmd or sshd",
	  "A rank has a connection to each rank that its algorithms talk to: log2 p of them for a "
	  "butterfly, p - 1 for alltoall or linear. Each takes a descriptor, two where memory is "
	  "shared. The library raises the soft limit to the hard one when it must. coll run "
	  "itself takes three for each rank of the node.", false },
	{ "tasks", "pids.max and pids.current of the cgroup and its parents", judge_tasks,
	  "fork() and threads fail with EAGAIN",
	  "raise pids.max: TasksMax=infinity in the unit, --pids-limit of the container",
	  "Each rank is a process, progress=thread adds a thread, and coll run two processes.", false },
	{ "shared-memory", "memfd_create(2), sealed and mapped; the limit on files, ulimit -f",
	  judge_shared_memory,
	  "ranks of this node talk over sockets: an 8-byte allreduce of 2 ranks takes 9.7 us instead "
	  "of 1.4 "
	  "(docs/results/doctor.md)",
	  "allow memfd_create, and room in the memory cgroup",
	  "Ranks of a node exchange bytes through memory that two processes share, made by "
	  "memfd_create(2). It counts against the memory cgroup, not against /dev/shm. Where it "
	  "cannot be had, links go over Unix sockets; COLL_EXPLAIN=1 says how many.", false },
	{ "one-copy", "process_vm_readv(2) from another process; kernel.yama.ptrace_scope; seccomp",
	  judge_one_copy,
	  "long messages within a node take two copies: 2 ranks' allreduce of 1 MB is "
	  "2.1 times as long, of 2 MB the same (docs/results/node.md)",
	  "a kernel with CROSS_MEMORY_ATTACH",
	  "A peer of the same node reads a long message in the process that sends it. That needs the "
	  "right to trace it: Yama's scope 1, the default of many distributions, gives it to "
	  "parents only, scope 2 to CAP_SYS_PTRACE, 3 to nobody. "
	  "Otherwise messages go through the ring, copied twice.", false },
	{ NULL },
};
