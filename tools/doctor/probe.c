// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Each probe is bounded in time. Medians of few samples: they tell 2 from 1, not 1.1 from 1; what
 * was measured with care is in docs/results/doctor.md.
 */
#include <ctype.h>
#include <liburing.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files.h"
#include "libcoll/base/clock.h"
#include "probe.h"
#include "probe_tcp.h"

enum {
	POLLS = 20000, CLOCK_CALLS = 20000,
	SPIN_NS = 300000000, GRANT_NS = 250000000, EVENT_NS = 1000,
	WAKES = 9, WAKE_SLEEP_NS = 20000000, WORK_LOOPS = 200000,
	COPY_BYTES = 1 << 20, COPIES = 9, THREADS_MAX = 256,
};

void doctor_probes_clear(struct doctor_probes *probes)
{
	*probes = (struct doctor_probes){
		.clock_ns = -1, .poll_ring_ns = -1, .poll_epoll_ns = -1, .noise_share = -1,
		.noise_longest_ns = -1, .granted = -1, .throttled = -1, .interrupts_rate = -1,
		.wake_ratio = -1, .tcp_usual_us = -1, .tcp_reno_us = -1, .copy_twice_us = -1,
		.copy_once_us = -1, .steal = -1,
	};
}

/* ---- calls -------------------------------------------------------------------- */

static double clock_call_ns(void)
{
	const u64 begin = coll_now();
	int i;

	for (i = 0; i < CLOCK_CALLS; i++)
		coll_now();
	return (double)(coll_now() - begin) / CLOCK_CALLS;
}

static double epoll_poll_ns(void)
{
	const int fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;
	const u64 begin = coll_now();
	int i;

	for (i = 0; i < POLLS; i++)
		epoll_wait(fd, &event, 1, 0);
	close(fd);
	return (double)(coll_now() - begin) / POLLS;
}

static double ring_poll_ns(void)
{
	struct io_uring ring;
	struct io_uring_cqe *cqe;
	volatile bool found = false;
	u64 begin;
	int i;

	if (io_uring_queue_init(8, &ring, 0))
		return -1;
	begin = coll_now();
	for (i = 0; i < POLLS; i++)
		found |= io_uring_cq_ready(&ring) && !io_uring_peek_cqe(&ring, &cqe);
	begin = coll_now() - begin;
	io_uring_queue_exit(&ring);
	return (double)begin / POLLS;
}

/* ---- noise, interrupts -------------------------------------------------------- */

static void spin_once(struct doctor_probes *probes)
{
	const u64 begin = coll_now();
	u64 last = begin, now = begin, taken = 0, longest = 0;

	probes->noise_cpu = sched_getcpu();
	while (now - begin < SPIN_NS) {
		now = coll_now();
		if (now - last > EVENT_NS)
			taken += now - last;
		if (now - last > longest)
			longest = now - last;
		last = now;
	}
	probes->noise_share = (double)taken / (now - begin);
	probes->noise_longest_ns = longest;
}

/* Interrupts of devices so far, on CPUs of the set. */
static long long interrupts_so_far(const struct node_cpus *cpus)
{
	FILE *from = fopen("/proc/interrupts", "re");
	char line[16384], *at, *end;
	long long count = 0;
	u32 cpu, column[1024], columns = 0;

	if (from && fgets(line, sizeof(line), from))
		for (at = line; (at = strstr(at, "CPU")) && columns < 1024; at = end)
			column[columns++] = strtoul(at + 3, &end, 10);
	while (from && fgets(line, sizeof(line), from)) {
		at = line + strspn(line, " ");
		if (!isdigit((unsigned char)*at) || !(at = strchr(at, ':')))
			continue;
		for (cpu = 0, at++; cpu < columns; cpu++, at = end) {
			const long long one = strtoll(at, &end, 10);

			if (node_cpus_has(cpus, column[cpu]))
				count += one;
		}
	}
	if (from)
		fclose(from);
	return count;
}

static void probe_noise(struct doctor_facts *facts)
{
	const struct node_cpus *cpus = node_cpus_count(&facts->cpus.isolated) ?
				       &facts->cpus.isolated : &facts->cpus.allowed;
	const long long before = interrupts_so_far(cpus);
	const u64 begin = coll_now();

	spin_once(&facts->probe);
	facts->probe.interrupts_rate = (interrupts_so_far(cpus) - before) * 1e9 /
				       (coll_now() - begin);
}

static double steal_share(void)
{
	unsigned long long n[8] = { 0 }, all = 0;
	char line[256];
	int i;

	if (!doctor_file_line("", line, sizeof(line), "/proc/stat") ||
	    sscanf(line, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &n[0], &n[1], &n[2], &n[3],
		   &n[4], &n[5], &n[6], &n[7]) != 8)
		return -1;
	for (i = 0; i < 8; i++)
		all += n[i];
	return all ? (double)n[7] / all : -1;
}

/* ---- the quota ------------------------------------------------------------------ */

static u64 own_time(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * COLL_SECOND + used.tv_nsec;
}

static void *spin_thread(void *until)
{
	while (coll_now() < *(const u64 *)until)
		;
	return NULL;
}

/* A thread for each CPU asks for all its time: what the quota gives, of what they asked for. */
static void probe_grant(struct doctor_facts *facts)
{
	const u64 begin = coll_now(), until = begin + GRANT_NS, used = own_time();
	u32 count = node_cpus_count(&facts->cpus.allowed), started = 0, i;
	pthread_t thread[THREADS_MAX];
	struct doctor_cpus_facts after;

	if (count > THREADS_MAX)
		count = THREADS_MAX;
	while (started < count &&
	       !pthread_create(&thread[started], NULL, spin_thread, (void *)&until))
		started++;
	for (i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	if (started)
		facts->probe.granted = (double)(own_time() - used) / (coll_now() - begin) / started;
	doctor_read_cpus(&after, "");
	if (facts->cpus.throttled >= 0 && after.throttled >= 0)
		facts->probe.throttled = after.throttled - facts->cpus.throttled;
}

/* ---- waking up ------------------------------------------------------------------- */

static double work_ns(void)
{
	const u64 begin = coll_now();
	volatile u32 sum = 0;
	u32 i;

	for (i = 0; i < WORK_LOOPS; i++)
		sum += i;
	return coll_now() - begin;
}

/* The same work right after work, and after a sleep: the frequency and the caches of a CPU. */
static double wake_ratio(void)
{
	const struct timespec nap = { .tv_nsec = WAKE_SLEEP_NS };
	double warm[WAKES], cold[WAKES];
	int i;

	for (i = 0; i < WAKES; i++) {
		work_ns();
		warm[i] = work_ns();
		nanosleep(&nap, NULL);
		cold[i] = work_ns();
	}
	return doctor_median(cold, WAKES) / doctor_median(warm, WAKES);
}

/* ---- copies ------------------------------------------------------------------------ */

static double copy_twice_us(char *from, char *between, char *to)
{
	double sample[COPIES];
	u64 begin;
	int i;

	for (i = 0; i < COPIES; i++) {
		begin = coll_now();
		memcpy(between, from, COPY_BYTES);
		memcpy(to, between, COPY_BYTES);
		sample[i] = (coll_now() - begin) / 1e3;
	}
	return doctor_median(sample, COPIES);
}

/* From a child, which has the same memory at the same place. */
static double copy_once_us(char *from, char *to)
{
	struct iovec local = { to, COPY_BYTES }, remote = { from, COPY_BYTES };
	double sample[COPIES];
	const pid_t parent = getpid(), child = fork();
	bool good = child > 0;
	u64 begin;
	int i;

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			pause();
		_exit(0);
	}
	for (i = 0; good && i < COPIES; i++) {
		begin = coll_now();
		good = process_vm_readv(child, &local, 1, &remote, 1, 0) == COPY_BYTES;
		sample[i] = (coll_now() - begin) / 1e3;
	}
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	return good ? doctor_median(sample, COPIES) : -1;
}

static void probe_copies(struct doctor_probes *probes)
{
	char *memory = aligned_alloc(4096, 3 * COPY_BYTES);

	if (!memory)
		return;
	memset(memory, 1, 3 * COPY_BYTES);
	probes->copy_twice_us = copy_twice_us(memory, memory + COPY_BYTES, memory + 2 * COPY_BYTES);
	probes->copy_once_us = copy_once_us(memory, memory + 2 * COPY_BYTES);
	free(memory);
}

/* ---- all ------------------------------------------------------------------------- */

void doctor_probe(struct doctor_facts *facts, void (*step)(const char *what))
{
	struct doctor_probes *probes = &facts->probe;

	step("clock and polls");
	probes->clock_ns = clock_call_ns();
	probes->poll_epoll_ns = epoll_poll_ns();
	probes->poll_ring_ns = ring_poll_ns();
	probes->steal = steal_share();
	step("noise");
	probe_noise(facts);
	step("CPUs");
	probes->wake_ratio = wake_ratio();
	if (facts->cpus.quota >= 0)
		probe_grant(facts);
	step("copies and TCP");
	probe_copies(probes);
	if (facts->network.loopback && strcmp(facts->network.congestion, "reno"))
		doctor_probe_tcp(probes);
	step("");
}
