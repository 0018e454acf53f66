// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * PID 1 of the test machine. Each line of /tests is a program with its
 * arguments: coll.ko is loaded, the program is run, coll.ko unloaded, and what
 * the kernel logged meanwhile is searched for its complaints.
 *
 * All results go through the kernel's log to the serial console, "vm: " before
 * them: so they never tear each other's lines, and stay in order with what the
 * kernel says. tests/vm/run takes them out again, numbers them, and counts on
 * the "vm: end" as the last.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __x86_64__
#include <sys/io.h>
#endif

#include "vm.h"

enum { ARGUMENTS_MAX = 64, LINE_BYTES = 900 };

static int kmsg;	/* for writing */
static int kernel_log;	/* for reading, at what was not looked at yet */

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	char line[LINE_BYTES];
	va_list arguments;
	int length = snprintf(line, sizeof(line), "<3>vm: ");

	va_start(arguments, format);
	vsnprintf(line + length, sizeof(line) - length, format, arguments);
	va_end(arguments);
	if (write(kmsg, line, strlen(line)) < 0)
		perror("/dev/kmsg");
}

static void result(bool good, const char *what, const char *more)
{
	say("%s - %s%s", good ? "ok" : "not ok", what, more);
}

/* ---- the kernel's log ----------------------------------------------------------- */

static const char *const complaints[] = {
	"BUG:", "WARNING:", "KASAN", "UBSAN", "Oops", "INFO: possible", "INFO: task", "INFO: rcu",
	"suspicious", "unreferenced object", "scheduling while atomic", "sleeping function",
	"general protection", "Call Trace", "soft lockup", "stall", "list_del corruption",
	"list_add corruption", "refcount_t", "Voluntary context switch", "ODEBUG", "not unloaded",
};

/* The kernel tells who had asked for memory that was not there, by a trace: no complaint. */
static bool starved(const char *text)
{
	return strstr(text, "vmalloc error: ") || strstr(text, "page allocation failure");
}

static bool complains(const char *text)
{
	static bool trace_follows;

	if (starved(text))
		trace_follows = true;
	if (trace_follows && strstr(text, "Call Trace")) {
		trace_follows = false;
		return false;
	}
	for (size_t i = 0; i < sizeof(complaints) / sizeof(*complaints); i++)
		if (strstr(text, complaints[i]))
			return true;
	return false;
}

/* One record: "6,339,5140900,-;text\n more". False: there is none any more. */
static bool read_record(char *text, size_t bytes)
{
	char record[8192];
	ssize_t length;
	char *start;

	do {
		length = read(kernel_log, record, sizeof(record) - 1);
	} while (length < 0 && errno == EPIPE);	/* some were overwritten: go on after them */
	if (length <= 0)
		return false;
	record[length] = '\0';
	record[strcspn(record, "\n")] = '\0';
	start = strchr(record, ';');
	snprintf(text, bytes, "%.*s", (int)bytes - 1, start ? start + 1 : record);
	return true;
}

/* Reads what is new. How many complaints there were; all of it is shown if `show`. */
static int scan_log(bool show)
{
	char text[LINE_BYTES - 100];
	int count = 0;

	while (read_record(text, sizeof(text))) {
		if (!strncmp(text, "vm: ", 4))
			continue;
		count += complains(text);
		if (show)
			say("#   kernel: %s", text);
	}
	return count;
}

static void check_log(const char *name, bool failed)
{
	int count = scan_log(failed);

	if (count)
		say("# the kernel complained %d times: see the console's log", count);
	result(!count, name, ": the kernel's log is clean");
}

/* ---- what is left ------------------------------------------------------------------ */

static long long tcp_sockets(void)
{
	return vm_number("/proc/net/sockstat", "TCP: inuse ");
}

/*
 * After programs that use /dev/coll, when the module is gone, nobody has pages pinned or
 * sockets; the latter take their time.
 */
static void check_left(const char *name)
{
	int i;

	if (strncmp(name, "offload_", 8) && strncmp(name, "progress_", 9))
		return;
	for (i = 0; i < 100 && (vm_pinned_pages() || tcp_sockets()); i++)
		vm_sleep_ms(100);
	if (vm_pinned_pages() || tcp_sockets())
		say("# %lld pages, %lld sockets", vm_pinned_pages(), tcp_sockets());
	result(!vm_pinned_pages() && !tcp_sockets(), name, ": no pinned page or socket is left");
}

/* ---- a test ---------------------------------------------------------------------- */

/* A test's own lines: results are passed on, its plan is not, all else is a comment. */
static void pass_on(const char *name, char *line, int *results, int *bad)
{
	bool good = !strncmp(line, "ok", 2), wrong = !strncmp(line, "not ok", 6);
	char *text = line + (wrong ? 6 : 2);

	if (!good && !wrong) {
		if (strncmp(line, "1..", 3))
			say("# %s: %s", name, line + strspn(line, "# "));
		return;
	}
	text += strspn(text, " 0123456789");
	if (!strncmp(text, "- ", 2))
		text += 2;
	++*results;
	*bad += wrong;
	say("%s - %s: %s", wrong ? "not ok" : "ok", name, text);
}

/* Passes lines on until the other side is closed: false, the deadline came first. */
static bool pass_lines(const char *name, int from, time_t seconds, int *results, int *bad)
{
	struct pollfd wait = { .fd = from, .events = POLLIN };
	time_t end = time(NULL) + seconds;
	char line[LINE_BYTES - 100];
	size_t length = 0;
	ssize_t got;
	char byte;

	for (;;) {
		if (time(NULL) >= end || !poll(&wait, 1, (end - time(NULL)) * 1000))
			return false;
		got = read(from, &byte, 1);
		if (got <= 0)
			return true;
		if (byte != '\n' && length < sizeof(line) - 1) {
			line[length++] = byte;
			continue;
		}
		line[length] = '\0';
		if (length)
			pass_on(name, line, results, bad);
		length = 0;
	}
}

static pid_t start(char **arguments, int output)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	setsid();
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	execvp(arguments[0], arguments);
	printf("%s: %s\n", arguments[0], strerror(errno));
	_exit(127);
}

/* The kernel hands on to us what it does not know of its command line. */
static time_t test_seconds(void)
{
	const char *seconds = getenv("TEST_SECONDS");

	return seconds ? atoi(seconds) : 120;
}

/* Where the program is in the kernel, and what waits there. */
static void say_where(pid_t pid)
{
	static const char *const files[] = { "status", "wchan", "syscall", "stack" };
	char path[64], text[4096], *rest, *line;

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i]);
		if (vm_read(path, text, sizeof(text)))
			continue;
		rest = text;
		while ((line = strsep(&rest, "\n")))
			if (*line && (i || !strncmp(line, "State", 5)))
				say("#   %s: %s", files[i], line);
	}
	vm_write("/proc/sysrq-trigger", "w");
}

static void run_program(char **arguments)
{
	const char *name = arguments[0];
	int pipes[2], status, results = 0, bad = 0;
	bool in_time;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0) {
		result(false, name, ": no pipe");
		return;
	}
	pid = start(arguments, pipes[1]);
	close(pipes[1]);
	in_time = pass_lines(name, pipes[0], test_seconds(), &results, &bad);
	close(pipes[0]);
	if (!in_time)
		say_where(pid);
	kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (!in_time)
		result(false, name, ": was over in time");
	else if (!WIFEXITED(status))
		result(false, name, ": died of a signal");
	else if (WEXITSTATUS(status) && !bad)
		result(false, name, ": exit status 0");
	else if (!results)
		result(false, name, ": gave a result");
	check_log(name, !in_time || bad || status);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void run_test(char *line)
{
	char *arguments[ARGUMENTS_MAX + 1] = { 0 };
	char *rest = line, *word;
	int count = 0, error;

	while (count < ARGUMENTS_MAX && (word = strtok_r(rest, " \t\n", &rest)))
		arguments[count++] = word;
	if (!count)
		return;
	if (strtok_r(rest, " \t\n", &rest)) {
		result(false, arguments[0], ": has more arguments than init takes");
		return;
	}
	error = vm_load("");
	if (error) {
		say("# loading: %s", strerror(-error));
		result(false, arguments[0], ": coll.ko loads");
		check_log(arguments[0], true);
		return;
	}
	run_program(arguments);
	error = vm_unload();
	if (error)
		say("# unloading: %s", strerror(-error));
	result(!error, arguments[0], ": coll.ko unloads");
	check_left(arguments[0]);
}

/* Those of the kernel's own that the tests need. */
static void load_modules(void)
{
	FILE *modules = fopen("/modules", "r");
	char path[100];
	int error;

	while (modules && fscanf(modules, "%99s", path) == 1) {
		error = vm_insert(path, "");
		if (error)
			say("# loading %s: %s", path, strerror(-error));
	}
	if (modules)
		fclose(modules);
}

static void run_tests(void)
{
	FILE *tests = fopen("/tests", "r");
	char *line = NULL;
	size_t bytes = 0;

	while (tests && getline(&line, &bytes, tests) > 0)
		run_test(line);
	free(line);
	if (tests)
		fclose(tests);
}

/* ---- the machine ------------------------------------------------------------------- */

#define KMEMLEAK "/sys/kernel/debug/kmemleak"

/* It believes in a leak when the object is over 5 seconds old, seen twice. */
static bool find_leaks(char *report, size_t bytes)
{
	if (vm_write(KMEMLEAK, "scan"))
		return false;
	say("# kmemleak scans, which takes a while");
	sleep(6);
	vm_write(KMEMLEAK, "scan");
	sleep(1);
	vm_write(KMEMLEAK, "scan");
	vm_read(KMEMLEAK, report, bytes);
	return true;
}

/* False: nobody looks for leaks here. */
static bool check_leaks(void)
{
	char report[4096], *rest = report, *line;

	if (!find_leaks(report, sizeof(report)))
		return false;
	result(!report[0], "kmemleak", " found nothing");
	while ((line = strsep(&rest, "\n")))
		if (*line)
			say("# %s", line);
	return true;
}

/*
 * What all the above is worth: on the debug kernel, defects are made and must be
 * seen. At the end, for lockdep looks no more after the first of most of them.
 */
static void check_checks(bool leaks)
{
	static const char *const defects[] = { "lock-order", "sleep", "use-after-free",
					       "out-of-bounds", "timer", "shift" };
	char parameters[40], report[4096] = "";

	if (access("/plant.ko", R_OK))
		return;
	scan_log(false);
	for (size_t i = 0; i < sizeof(defects) / sizeof(*defects); i++) {
		snprintf(parameters, sizeof(parameters), "what=%s", defects[i]);
		result(vm_insert("/plant.ko", parameters) == -EAGAIN && scan_log(false) > 0,
		       "a planted defect is seen: ", defects[i]);
	}
	if (!leaks)
		return;
	vm_write(KMEMLEAK, "clear");
	result(vm_insert("/plant.ko", "what=leak") == -EAGAIN &&
	       find_leaks(report, sizeof(report)) && report[0],
	       "a planted defect is seen: ", "leak");
}

/*
 * CPUs that take turns do so when a timer of the machine's is due, and the first one goes
 * first: one that computes would have it all between two ticks. So its clock ticks 8192
 * times a second, and nobody need hear of it.
 */
static void take_short_turns(void)
{
#ifdef __x86_64__
	enum { ADDRESS = 0x70, DATA = 0x71, A = 10, B = 11, RATE_8192 = 3, PERIODIC = 0x40 };

	if (ioperm(ADDRESS, 2, 1))
		return;
	outb(A, ADDRESS);
	outb((inb(DATA) & 0xf0) | RATE_8192, DATA);
	outb(B, ADDRESS);
	outb(inb(DATA) | PERIODIC, DATA);
	ioperm(ADDRESS, 2, 0);
#endif
}

/* Ticks that the CPUs were not idle, of all that they had. */
static uint64_t busy_ticks(uint64_t *all)
{
	enum { IDLE = 3, IOWAIT = 4, KINDS = 8 };	/* user, nice, system, idle, iowait, ... */
	uint64_t tick, busy = 0;
	char text[256] = "", *rest = text + strlen("cpu");

	vm_read("/proc/stat", text, sizeof(text));
	*all = 0;
	for (int kind = 0; kind < KINDS; kind++) {
		tick = strtoull(rest, &rest, 10);
		*all += tick;
		busy += kind == IDLE || kind == IOWAIT ? 0 : tick;
	}
	return busy;
}

/*
 * A kernel goes on booting when its first process runs: it fills tracefs, for half a second
 * of a CPU. Its time is not a test's.
 */
static void await_rest(void)
{
	enum { LOOK_MS = 200, LOOKS = 50, SHARE = 20 };
	uint64_t busy, all, busy_before, all_before;

	busy = busy_ticks(&all);
	for (int look = 0; look < LOOKS; look++) {
		busy_before = busy;
		all_before = all;
		usleep(LOOK_MS * 1000);
		busy = busy_ticks(&all);
		if ((busy - busy_before) * SHARE <= all - all_before)
			return;
	}
	say("# the machine is not at rest after %d s", LOOKS * LOOK_MS / 1000);
}

static void mount_all(void)
{
	static const struct {
		const char *type, *where;
	} mounts[] = {
		{ "proc", "/proc" },
		{ "sysfs", "/sys" },
		{ "devtmpfs", "/dev" },
		{ "tmpfs", "/tmp" },
		{ "debugfs", "/sys/kernel/debug" },
		{ "tracefs", "/sys/kernel/tracing" },
		{ "cgroup2", "/sys/fs/cgroup" },
	};

	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		mkdir(mounts[i].where, 0755);
		mount(mounts[i].type, mounts[i].where, mounts[i].type, 0, NULL);
	}
}

int main(void)
{
	mount_all();
	setenv("PATH", "/bin:/usr/bin:/sbin:/usr/sbin", 1);
	setenv("HOME", "/tmp", 1);
	kmsg = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	kernel_log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	vm_loopback_up();
	scan_log(false);
	load_modules();
	if (getenv("COUNTED_TIME")) {
		take_short_turns();
		await_rest();
	}
	run_tests();
	check_checks(check_leaks());
	say("end");
	sync();
	reboot(RB_AUTOBOOT);
	return 0;
}
