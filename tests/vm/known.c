// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <sched.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "known.h"
#include "vm.h"

struct said {
	uint64_t wall, own;
};

static uint64_t own_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static uint64_t spin(uint64_t ns)
{
	uint64_t began = vm_now(), now;

	do {
		now = vm_now();
	} while (now - began < ns);
	return now - began;
}

static void serve(int orders, int answers)
{
	uint64_t before = own_clock(), now;
	struct said said;
	int bursts;

	while (read(orders, &bursts, sizeof(bursts)) == sizeof(bursts)) {
		for (said.wall = 0; bursts--; vm_sleep_ms(2))
			said.wall += spin(20000000);
		now = own_clock();
		said.own = now - before;
		before = now;
		if (write(answers, &said, sizeof(said)) != sizeof(said))
			break;
	}
	_exit(0);
}

uint64_t known_work(struct known *daemon, int bursts)
{
	struct said said = { 0 };

	if (write(daemon->orders, &bursts, sizeof(bursts)) != sizeof(bursts) ||
	    read(daemon->answers, &said, sizeof(said)) != sizeof(said))
		vm_ok(false, "the daemon works");
	daemon->own = said.own;
	vm_sleep_ms(10);
	return said.wall;
}

struct known known_begin(int cpu, const char *name)
{
	struct known daemon = { 0 };
	int orders[2], answers[2];

	if (pipe(orders) || pipe(answers))
		return daemon;
	daemon.pid = fork();
	if (!daemon.pid) {
		close(orders[1]);
		prctl(PR_SET_NAME, name);
		vm_run_on(cpu);
		sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
		serve(orders[0], answers[1]);
	}
	close(orders[0]);
	close(answers[1]);
	daemon.orders = orders[1];
	daemon.answers = answers[0];
	known_work(&daemon, 1);
	return daemon;
}

void known_end(struct known *daemon)
{
	close(daemon->orders);
	close(daemon->answers);
	waitpid(daemon->pid, NULL, 0);
}
