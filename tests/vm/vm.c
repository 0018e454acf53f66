// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "vm.h"

static int checks, failures;

/* ---- checks ------------------------------------------------------------------- */

bool vm_ok(bool good, const char *format, ...)
{
	va_list arguments;

	checks++;
	failures += !good;
	printf("%sok %d - ", good ? "" : "not ", checks);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	fflush(stdout);
	return good;
}

void vm_note(const char *format, ...)
{
	va_list arguments;

	printf("# ");
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	fflush(stdout);
}

bool vm_is(long long got, long long wanted, const char *what)
{
	if (got != wanted)
		vm_note("got %lld, wanted %lld", got, wanted);
	return vm_ok(got == wanted, "%s", what);
}

bool vm_says(const char *text, const char *part, const char *what)
{
	if (!strstr(text, part))
		vm_note("got '%s', wanted '%s' in it", text, part);
	return vm_ok(strstr(text, part), "%s", what);
}

void vm_skip(const char *what, const char *why)
{
	vm_ok(true, "%s # SKIP %s", what, why);
}

int vm_end(void)
{
	printf("1..%d\n", checks);
	fflush(stdout);
	return failures != 0;
}

/* ---- files, module --------------------------------------------------------------- */

int vm_read(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t got = 0;

	text[0] = '\0';
	if (fd < 0)
		return -errno;
	while (length < bytes - 1 && (got = read(fd, text + length, bytes - 1 - length)) > 0)
		length += got;
	text[length] = '\0';
	close(fd);
	return got < 0 ? -errno : 0;
}

int vm_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t put;

	if (fd < 0)
		return -errno;
	put = write(fd, text, strlen(text));
	if (put < 0)
		put = -errno;
	close(fd);
	return put < 0 ? put : 0;
}

long long vm_number(const char *path, const char *name)
{
	char text[16384], *at;

	vm_read(path, text, sizeof(text));
	at = strstr(text, name);
	return at ? atoll(at + strlen(name)) : 0;
}

static bool is_named(const char *process, const char *task, const char *begins)
{
	char path[64], name[64] = "";

	snprintf(path, sizeof(path), "/proc/%.20s/task/%.20s/comm", process, task);
	return task[0] != '.' && !vm_read(path, name, sizeof(name)) &&
	       !strncmp(name, begins, strlen(begins));
}

int vm_threads(const char *begins, pid_t *tids, int most)
{
	DIR *processes = opendir("/proc"), *tasks;
	struct dirent *process, *task;
	char path[64];
	int count = 0;

	while (processes && (process = readdir(processes))) {
		snprintf(path, sizeof(path), "/proc/%.20s/task", process->d_name);
		tasks = atoi(process->d_name) ? opendir(path) : NULL;
		while (tasks && (task = readdir(tasks)))
			if (is_named(process->d_name, task->d_name, begins) && count++ < most)
				tids[count - 1] = atoi(task->d_name);
		if (tasks)
			closedir(tasks);
	}
	if (processes)
		closedir(processes);
	return count;
}

int vm_insert(const char *path, const char *parameters)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int error = 0;

	if (fd < 0)
		return -errno;
	if (syscall(SYS_finit_module, fd, parameters, 0))
		error = -errno;
	close(fd);
	return error;
}

int vm_load(const char *parameters)
{
	const char *usual = getenv("COLL_MODULE");

	return vm_insert("/coll.ko", usual && !*parameters ? usual : parameters);
}

int vm_unload(void)
{
	for (int i = 0; i < 200; i++) {
		if (!syscall(SYS_delete_module, "coll", O_NONBLOCK))
			return 0;
		if (errno != EAGAIN && errno != EBUSY)
			return -errno;
		vm_sleep_ms(10);
	}
	return -EBUSY;
}

/* ---- memory ---------------------------------------------------------------------- */

long vm_available_kib(void)
{
	vm_sleep_ms(500);	/* what waits for a grace period */
	return vm_number("/proc/meminfo", "MemAvailable:");
}

/* A CPU adds its own to the sums now and then, an isolated one only when it is asked to. */
long long vm_pinned_pages(void)
{
	char nothing[16];

	vm_read("/proc/sys/vm/stat_refresh", nothing, sizeof(nothing));
	return vm_number("/proc/vmstat", "nr_foll_pin_acquired ") -
	       vm_number("/proc/vmstat", "nr_foll_pin_released ");
}

/*
 * KASAN keeps what was freed, up to a 32nd of the memory. kmemleak has an object for each
 * allocation, and looks itself: it refuses this where it is off.
 */
bool vm_comes_back(long available_kib)
{
	enum { SLACK_KIB = 16000, QUARANTINE = 32 };
	const long less = available_kib - vm_available_kib();

	vm_note("%ld KiB less are free than before", less);
	if (!vm_write("/sys/kernel/debug/kmemleak", "scan=off"))
		return true;
	return vm_ok(less < SLACK_KIB + (vm_slowness() > 1 ? available_kib / QUARANTINE : 0),
		     "memory comes back");
}

/* ---- time, CPUs ------------------------------------------------------------------- */

int vm_slowness(void)
{
	struct utsname kernel;

	if (uname(&kernel))
		return 1;
	return strstr(kernel.release, "-coll-debug") || strstr(kernel.release, "-coll-kcsan") ? 10 : 1;
}

uint64_t vm_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

void vm_sleep_ms(unsigned int ms)
{
	struct timespec rest = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&rest, &rest) && errno == EINTR)
		;
}

int vm_cpus(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN);
}

int vm_run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

int vm_cpu_online(int cpu, bool online)
{
	char path[80];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	return vm_write(path, online ? "1" : "0");
}

void vm_loopback_up(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ioctl(fd, SIOCSIFFLAGS, &lo);
	close(fd);
}
