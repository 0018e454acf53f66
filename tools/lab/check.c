// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Measures the emulated WAN. A node of one cluster sends datagrams with their send time to a node
 * of another; both use the machine's clock, so the one-way delay is measured directly. First
 * single datagrams: the delay. Then twice the WAN's rate: the rate, and the queue, from the
 * increase of the delay.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lab.h"

enum {
	PORT = 4700,
	DATA = 1400,
	FRAME = DATA + 8 + 20 + 14,	/* with UDP's, IP's and Ethernet's headers */
	SINGLE = 200,
	MANY_MAX = 200000,
	QUIET_MS = 500,
};

struct probe {
	uint64_t sent;
	uint32_t phase, number;
	uint8_t rest[DATA - 16];
};

/* The receiver's results, in memory shared with the lab. */
struct lab_found {
	double delay[SINGLE];
	uint32_t singles, many, offered;
	uint64_t first, last;
	double latest;
	bool done;
};

static struct lab_found *found;

static double check_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static uint64_t check_nanoseconds(void)
{
	return check_seconds() * 1e9;
}

static int udp_socket(const struct lab *lab, uint32_t node)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), bytes = 8 << 20;
	char text[64];

	lab_address(lab, node, 0, text, sizeof(text));
	inet_pton(AF_INET, text, &address.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
	return fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ? -1 : fd;
}

static void pause_until(double when)
{
	const double left = when - check_seconds();
	const struct timespec wait = { .tv_sec = left, .tv_nsec = (left - floor(left)) * 1e9 };

	if (left > 0)
		nanosleep(&wait, NULL);
}

static void send_probes(const struct lab *lab, uint32_t target)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	const double second = lab->wan > 0 ? 2 * lab->wan / 8 / FRAME : 0;
	struct probe probe = { .phase = 1 };
	int fd = udp_socket(lab, 0);
	char text[64];
	double start;

	lab_address(lab, target, 0, text, sizeof(text));
	inet_pton(AF_INET, text, &address.sin_addr);
	connect(fd, (struct sockaddr *)&address, sizeof(address));
	send(fd, &probe, 16, 0);		/* The interface with this address. */
	pause_until(check_seconds() + 4 * lab->delay + 0.3);
	for (probe.number = 0; probe.number < SINGLE; probe.number++) {
		probe.phase = 2;
		probe.sent = check_nanoseconds();
		send(fd, &probe, 16, 0);
		pause_until(check_seconds() + 2e-3);
	}
	pause_until(check_seconds() + 2 * lab->delay + 0.1);
	start = check_seconds();
	for (probe.number = 0; probe.number < second && probe.number < MANY_MAX; probe.number++) {
		pause_until(start + probe.number / second);
		probe.phase = 3;
		probe.sent = check_nanoseconds();
		found->offered += send(fd, &probe, sizeof(probe), 0) == sizeof(probe);
	}
}

static void take_probe(const struct probe *probe, ssize_t bytes)
{
	const uint64_t now = check_nanoseconds();
	const double delay = (now - probe->sent) * 1e-9;

	if (probe->phase == 2 && found->singles < SINGLE)
		found->delay[found->singles++] = delay;
	if (probe->phase != 3 || bytes != sizeof(*probe))
		return;
	found->many++;
	found->first = found->first ? found->first : now;
	found->last = now;
	found->latest = delay > found->latest ? delay : found->latest;
}

static void receive_probes(const struct lab *lab, uint32_t node)
{
	struct pollfd poll_fd = { .fd = udp_socket(lab, node), .events = POLLIN };
	struct probe probe;
	ssize_t bytes;
	int patience = 5000 + lab->delay * 5e3;

	while (poll(&poll_fd, 1, patience) > 0) {
		bytes = recv(poll_fd.fd, &probe, sizeof(probe), 0);
		take_probe(&probe, bytes);
		patience = probe.phase == 3 ? QUIET_MS : patience;
	}
	found->done = true;
}

static void check_live(const struct lab *lab, uint32_t node, void *argument)
{
	uint32_t target = lab->size[0];

	const struct sched_param first = { .sched_priority = 1 };

	(void)argument;
	sched_setscheduler(0, SCHED_FIFO, &first);	/* the WAN is measured, not the nodes */
	if (node == 0) {
		pause_until(check_seconds() + 0.2);	/* time for the receiver to start */
		send_probes(lab, target);
	} else if (node == target) {
		receive_probes(lab, node);
	}
	_exit(0);
}

static int check_ascending(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1
						       : *(const double *)a > *(const double *)b;
}

bool lab_check(struct lab *lab, struct lab_measured *measured)
{
	uint32_t i;

	found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (found == MAP_FAILED || !lab_build(lab, check_live, NULL))
		return false;
	lab_begin(lab);
	for (i = 0; i < lab->nodes; i++) {
		waitpid(lab->node[i].pid, NULL, 0);
		lab->node[i].pid = 0;
	}
	lab_end(lab);
	if (!found->done || found->singles < SINGLE / 2 || (lab->wan > 0 && found->many < 100)) {
		fprintf(stderr, "coll lab: the WAN lost too much to be measured: %u of %d, then %u "
			"of %u packets arrived\n", found->singles, SINGLE, found->many,
			found->offered);
		return false;
	}
	qsort(found->delay, found->singles, sizeof(double), check_ascending);
	measured->delay = found->delay[found->singles / 2];
	measured->delay_worst = found->delay[found->singles * 99 / 100];
	measured->rate = found->many > 1 ? (found->many - 1) * 8. * FRAME /
					   ((found->last - found->first) * 1e-9) : 0;
	measured->queue = (found->latest - measured->delay) * measured->rate / 8;
	measured->lost = found->offered ? 1 - (double)found->many / found->offered : 0;
	return true;
}
