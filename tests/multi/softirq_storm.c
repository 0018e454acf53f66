// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * softirq_storm CPU SECONDS: softirqs of the network take about 75 % of a CPU that this program is not on.
 * Needs root.
 *
 * In a namespace of its own, which goes with it, datagrams go over the loopback interface to a socket,
 * and the interface hands them to that CPU (rps_cpus). There a filter of the socket computes for each in the
 * softirq, and drops it. The pauses have no period that the kernel's tick could have too, by which it
 * counts. It takes a sixth of another CPU, and is not put behind who has that: a rank that waits there in a loop would
 * end the storm.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	PORT = 9, DIVISIONS = 2000,
	PART_PERCENT = 75, ADJUST_US = 100000,	/* of the CPU; looked at so often */
	BURST_LEAST = 10, BURST_FIRST = 40, BURST_MOST = 200,	/* packets; the kernel drops those that are more than 1000 */
	PAUSE_LEAST_US = 50, PAUSE_MOST_US = 450,
};

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "softirq_storm: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

/* Mounts are of this process alone. */
static void open_namespace(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd;

	must(!unshare(CLONE_NEWNET | CLONE_NEWNS), "a namespace of the network");
	must(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "mounts of its own");
	must(!mount("sysfs", "/sys", "sysfs", 0, NULL), "its /sys");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	must(fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &lo), "lo up");
	close(fd);
}

/* Packets of the interface are handled on that CPU. The mask has words of 32 bits, the highest first. */
static void lead_packets(int cpu)
{
	char mask[64];
	int fd, word;

	snprintf(mask, sizeof(mask), "%x", 1u << cpu % 32);
	for (word = 0; word < cpu / 32 && word < 6; word++)
		strcat(mask, ",00000000");
	fd = open("/sys/class/net/lo/queues/rx-0/rps_cpus", O_WRONLY | O_CLOEXEC);
	must(fd >= 0 && write(fd, mask, strlen(mask)) == (ssize_t)strlen(mask), "rps_cpus of lo");
	close(fd);
}

/* A socket with a filter that divides for long and takes nothing. */
static int open_receiver(void)
{
	static struct sock_filter code[DIVISIONS + 2];
	const struct sock_fprog program = { DIVISIONS + 2, code };
	const struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(PORT),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int i;

	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, 0x7fffffff);
	for (i = 1; i <= DIVISIONS; i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 3);
	code[DIVISIONS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	must(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) &&
	     !bind(fd, (const struct sockaddr *)&at, sizeof(at)), "a socket with a filter");
	return fd;
}

static void send_burst(int fd, int packets)
{
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int i;

	for (i = 0; i < packets; i++)
		sendto(fd, "", 1, MSG_DONTWAIT, (const struct sockaddr *)&to, sizeof(to));
}

/* Ticks of the CPU in softirqs, of 10 ms. */
static long softirq_ticks(int cpu)
{
	FILE *from = fopen("/proc/stat", "r");
	char line[512], key[16];
	long ticks = 0;

	snprintf(key, sizeof(key), "cpu%d ", cpu);
	while (from && fgets(line, sizeof(line), from))
		if (!strncmp(line, key, strlen(key)))
			sscanf(line + strlen(key), "%*d %*d %*d %*d %*d %*d %ld", &ticks);
	must(from != NULL, "/proc/stat");
	fclose(from);
	return ticks;
}

/* How many packets a burst has next, where so many took the CPU for this part of the time. */
static int next_burst(int packets, double part)
{
	const double wanted = PART_PERCENT / 100. / (part > 0.01 ? part : 0.01);
	const double most = packets * (wanted > 2 ? 2 : wanted < 0.7 ? 0.7 : wanted);

	return most < BURST_LEAST ? BURST_LEAST : most > BURST_MOST ? BURST_MOST : most;
}

/* The bursts are as long as they have to be, on whatever machine, and beside whatever else it does. */
static void storm_until(double end, int fd, int cpu)
{
	double from = now_us();
	long ticks = softirq_ticks(cpu);
	int packets = BURST_FIRST;

	while (now_us() < end) {
		send_burst(fd, packets);
		usleep(PAUSE_LEAST_US + rand() % (PAUSE_MOST_US - PAUSE_LEAST_US));
		if (now_us() < from + ADJUST_US)
			continue;
		packets = next_burst(packets, (softirq_ticks(cpu) - ticks) * 1e4 / (now_us() - from));
		ticks = softirq_ticks(cpu);
		from = now_us();
	}
}

int main(int argc, char **argv)
{
	const int cpu = argc == 3 ? atoi(argv[1]) : -1;
	const double end = now_us() + 1e6 * (argc == 3 ? atof(argv[2]) : 0);
	cpu_set_t others;
	int fd;

	if (cpu < 0 || cpu >= 192) {
		fprintf(stderr, "usage: softirq_storm CPU SECONDS\n");
		return 2;
	}
	open_namespace();
	fd = open_receiver();
	lead_packets(cpu);
	must(!sched_getaffinity(0, sizeof(others), &others), "its CPUs");
	CPU_CLR(cpu, &others);
	must(!sched_setaffinity(0, sizeof(others), &others), "another CPU than that");
	srand(cpu + 1);
	storm_until(end, fd, cpu);
	close(fd);
	return 0;
}
