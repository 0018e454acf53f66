/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What is known about a node. A number of -1 is not known. Readers fill a family each; a folder
 * instead of / stands for the node's /proc, /sys, /etc and /lib in tests (COLL_DOCTOR_ROOT).
 */
#ifndef COLL_DOCTOR_FACTS_H
#define COLL_DOCTOR_FACTS_H

#include <limits.h>

#include "core/port.h"
#include "node/cpus.h"

enum { DOCTOR_WORD = 80, DOCTOR_FILE = 400 };

#define DOCTOR_NO_LIMIT LLONG_MAX

struct doctor_transport_facts {
	long long uring_disabled;	/* kernel.io_uring_disabled */
	long long seccomp;		/* mode of this process; 2: a filter */
	int ring_error;			/* errno of the best ring; 0: there is one */
	bool ring_suits;		/* it has what the engine needs */
	bool ring_defers;		/* DEFER_TASKRUN, Linux 6.1; with it multishot receives */
	bool ring_futex, ring_send_zc;	/* ops that the kernel has */
	long long memlock, files_soft, files_hard, file_bytes;	/* limits */
	long long tasks_left;		/* of the cgroup; DOCTOR_NO_LIMIT */
	char tasks_file[DOCTOR_FILE];	/* that limits them; "": none that a shell could name */
	long long yama;			/* kernel.yama.ptrace_scope */
	int copy_error;			/* errno of process_vm_readv() from another process */
	int memory_error;		/* errno of sealed shared memory */
};

struct doctor_network_facts {
	bool loopback;			/* lo is up */
	char congestion[DOCTOR_WORD];
	char available[DOCTOR_WORD];	/* congestion controls, with blanks between */
	char allowed[DOCTOR_WORD];	/* those that any network namespace may set */
	long long idle_restart;		/* tcp_slow_start_after_idle */
	long long receive_max, send_max;	/* tcp_rmem, tcp_wmem: the last number */
	long long scaling, moderate;	/* tcp_window_scaling, tcp_moderate_rcvbuf */
	long long receive_set_max, send_set_max;	/* rmem_max, wmem_max */
	long long port_first, port_last;
	double path_rate, path_rtt;	/* bytes/s; s; of the path to judge buffers for */
	bool rate_assumed;		/* no interface told it */
};

struct doctor_cpus_facts {
	struct node_cpus online, allowed, isolated, no_tick;
	double quota;			/* CPUs that the cgroup may use; -1: no limit */
	char quota_file[DOCTOR_FILE];	/* "": none that a shell could name */
	bool quota_unified;		/* of cgroups v2 */
	long long throttled, throttled_ns;	/* since the cgroup began */
	long long interrupts, interrupts_on;	/* all; those that land on isolated CPUs */
	bool balancer;			/* irqbalance runs */
	char governor[DOCTOR_WORD];
	long long sleep_us;		/* to wake from the deepest sleep state */
	long long siblings;		/* allowed CPUs whose core another allowed one shares */
	long long rt_runtime_us, rt_period_us, rt_group_us;
	long long hz;
};

struct doctor_memory_facts {
	char huge[DOCTOR_WORD], defrag[DOCTOR_WORD];
	long long nodes, balancing, reclaim;
	long long swap_used, swap_total;
	long long total, available;	/* bytes; of the node or the cgroup, which has less */
	long long killed;		/* by lack of memory, in this cgroup or node */
	long long overcommit;
};

struct doctor_clock_facts {
	char source[DOCTOR_WORD], available[DOCTOR_WORD];
	bool synchronized;
	long long error_us;		/* the clock's own estimate */
};

struct doctor_mpi {
	const char *name;
	bool found, shim;
};

struct doctor_software_facts {
	char kernel[DOCTOR_WORD], version[DOCTOR_WORD];		/* Linux; coll */
	bool module_loaded, device_opens;
	char module_version[DOCTOR_WORD];	/* of the loaded one; "": none */
	char module_magic[DOCTOR_WORD];		/* the kernel that the file is for; "": no file */
	char module_elsewhere[DOCTOR_WORD];	/* another kernel that has one */
	bool policy, circuits_file;		/* /etc/coll/policy, /etc/coll/circuits */
	bool colld_runs, colld_answers;
	bool circuits_socket;			/* something listens at /run/coll/circuits */
	struct doctor_mpi mpi[2];
	char container[DOCTOR_WORD];		/* "": none found */
	bool guest;				/* a virtual machine */
};

/* Measured, not read. Negative: not measured. */
struct doctor_probes {
	double clock_ns;		/* a call of clock_gettime() */
	double poll_ring_ns, poll_epoll_ns;	/* a poll that finds nothing */
	double noise_share, noise_longest_ns;	/* taken from a spinning CPU */
	u32 noise_cpu;
	double granted;			/* CPU time of spinning threads, of what they asked for */
	long long throttled;		/* times, meanwhile */
	double interrupts_rate;		/* per second, on CPUs that this process may use */
	double wake_ratio;		/* work after a sleep, of its time after work */
	double tcp_usual_us, tcp_reno_us;	/* 1 MB over loopback and its answer */
	double copy_twice_us, copy_once_us;	/* 1 MB */
	double steal;			/* share of all CPUs taken by the hypervisor, since boot */
};

struct doctor_facts {
	struct doctor_transport_facts transport;
	struct doctor_network_facts network;
	struct doctor_cpus_facts cpus;
	struct doctor_memory_facts memory;
	struct doctor_clock_facts clock;
	struct doctor_software_facts software;
	struct doctor_probes probe;
};

/* What a run was asked to assume. */
struct doctor_path {
	u64 rate, rtt;			/* bytes/s, ns; 0: not given */
};

void doctor_read_transport(struct doctor_transport_facts *facts, const char *root);
void doctor_read_network(struct doctor_network_facts *facts, const char *root,
			 const struct doctor_path *path);
void doctor_read_cpus(struct doctor_cpus_facts *facts, const char *root);
void doctor_read_memory(struct doctor_memory_facts *facts, const char *root);
void doctor_read_clock(struct doctor_clock_facts *facts, const char *root);
void doctor_read_software(struct doctor_software_facts *facts, const char *root);

#endif
