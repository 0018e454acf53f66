// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What an operator sees of /dev/coll, and may limit: fdinfo, tracepoints, files of a user. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/netlink.h"
#include "uapi/coll_noise.h"
#include "ask.h"
#include "offload.h"
#include "vm.h"

#define TRACING "/sys/kernel/tracing/"
#define LIMIT "/sys/module/coll/parameters/files_per_user"

enum { RUNS = 3, NOBODY = 65534, SUBORDINATE = 100000 };

/* ---- fdinfo --------------------------------------------------------------------------- */

/* A number of the file's; -1: it is not there. */
static long long shown(int fd, const char *name)
{
	char path[60], text[2048] = "", line[80], *at;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	snprintf(line, sizeof(line), "\n%s:\t", name);
	vm_read(path, text, sizeof(text));
	at = strstr(text, line);
	return at ? atoll(at + strlen(line)) : -1;
}

static bool is_thread(long long pid)
{
	char path[60], name[32] = "", wanted[32];

	snprintf(path, sizeof(path), "/proc/%lld/comm", pid);
	snprintf(wanted, sizeof(wanted), "coll/%d\n", getpid());
	vm_read(path, name, sizeof(name));
	return !strcmp(name, wanted);
}

static void fdinfo(void)
{
	int links[OFFLOAD_RANKS_MAX][OFFLOAD_RANKS_MAX];
	static const int alone[OFFLOAD_RANKS_MAX] = { -1 };
	struct offload pair, o;
	int fd = open("/dev/coll", O_RDWR | O_CLOEXEC);

	vm_is(shown(fd, "coll-groups"), 0, "fdinfo of a file that is not set up");
	vm_is(shown(fd, "coll-thread"), 0, "which has no thread");
	close(fd);
	vm_is(coll_offload_open(&o, 0, 1, alone), 0, "one that is");
	vm_ok(VM_COMES(is_thread(shown(o.fd, "coll-thread"))), "has one, by its number");
	vm_is(offload_copies(&o, RUNS, 0), 0, "runs");
	vm_is(shown(o.fd, "coll-runs-completed"), RUNS, "they are counted");
	vm_is(shown(o.fd, "coll-schedules"), 1, "and their schedule");
	offload_connect(links, 2);
	vm_is(coll_offload_open(&pair, 0, 2, links[0]), 0, "a file with a link");
	vm_is(shown(pair.fd, "coll-links"), 1, "which is counted");
	vm_is(send(links[1][0], "", 1, 0), 1, "whose peer says something, and dies");
	close(links[1][0]);
	vm_ok(VM_COMES(shown(pair.fd, "coll-groups-failed") == 1), "a group that fails, too");
	munmap(pair.shared, 4096);
	munmap(o.shared, 4096);
	close(pair.fd);
	close(o.fd);
	close(links[0][1]);
}

/* ---- tracepoints ------------------------------------------------------------------------ */

static int count(const char *text, const char *part)
{
	int found = 0;

	while ((text = strstr(text, part))) {
		found++;
		text++;
	}
	return found;
}

static void tracepoints(void)
{
	static const int alone[OFFLOAD_RANKS_MAX] = { -1 };
	static char text[65536];
	struct netlink *netlink;
	struct offload o;

	vm_write(TRACING "events/coll/coll_noise_injected/enable", "0");
	if (vm_write(TRACING "events/coll/coll_run_started/enable", "1") ||
	    vm_write(TRACING "events/coll/coll_run_completed/enable", "1") ||
	    vm_write(TRACING "events/coll/coll_event/enable", "1")) {
		vm_ok(false, "the tracepoints are there");
		return;
	}
	vm_write(TRACING "trace", "");
	vm_is(coll_offload_open(&o, 0, 1, alone), 0, "a rank of its own");
	vm_is(offload_copies(&o, RUNS, 0), 0, "runs");
	vm_is(netlink_open(&netlink), 0, "a socket");
	vm_is(ask_noise(netlink, 1000), 0, "noise");
	netlink_close(netlink);		/* nobody listens to the event of its end */
	vm_read(TRACING "trace", text, sizeof(text));
	vm_is(count(text, "coll_run_started: group 0 run"), RUNS, "each start of a run is traced");
	vm_is(count(text, "hash abc"), RUNS, "with the call's hash");
	vm_is(count(text, "coll_run_completed: group 0 run"), RUNS, "and each end");
	vm_is(count(text, "status 0 duration"), RUNS, "with its status");
	vm_ok(count(text, "coll_event: kind"), "events of netlink are, without a listener");
	vm_write(TRACING "events/coll/enable", "0");
	munmap(o.shared, 4096);
	close(o.fd);
}

/* ---- files of a user -------------------------------------------------------------------- */

/* How many files a process of that user opens, and the errno of the next. */
static int files_of(uid_t user, int *error)
{
	const int dev = open("/dev", O_PATH | O_CLOEXEC);	/* other users may not search / here */
	int pipes[2], answer[2] = { -1, 0 }, fd, files = 0;
	pid_t child;

	if (pipe(pipes))
		return -1;
	child = fork();
	if (!child) {
		if (setuid(user))
			_exit(1);
		while (files < 10 && (fd = openat(dev, "coll", O_RDWR | O_CLOEXEC)) >= 0)
			files++;
		answer[0] = files;
		answer[1] = files < 10 ? errno : 0;
		_exit(write(pipes[1], answer, sizeof(answer)) != sizeof(answer));
	}
	close(pipes[1]);
	if (read(pipes[0], answer, sizeof(answer)) != sizeof(answer))
		answer[0] = -1;
	close(pipes[0]);
	close(dev);
	waitpid(child, NULL, 0);
	*error = answer[1];
	return answer[0];
}

/* How many a user opens that has two already when it becomes another one in a user namespace of its own. */
static int files_of_two_numbers(void)
{
	const int dev = open("/dev", O_PATH | O_CLOEXEC);
	int ready[2], go[2], files = 0;
	char path[40], map[40], byte;
	pid_t child;

	if (pipe(ready) || pipe(go))
		return -1;
	child = fork();
	if (!child) {
		close(go[1]);
		if (setuid(NOBODY) || unshare(CLONE_NEWUSER) || write(ready[1], "", 1) != 1 || read(go[0], &byte, 1) != 1)
			_exit(100);
		while (files < 2 && openat(dev, "coll", O_RDWR | O_CLOEXEC) >= 0)
			files++;
		if (files < 2 || setuid(1))
			_exit(101);
		while (files < 10 && openat(dev, "coll", O_RDWR | O_CLOEXEC) >= 0)
			files++;
		_exit(files);
	}
	close(ready[1]);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", child);
	snprintf(map, sizeof(map), "0 %d 10", SUBORDINATE);
	if (read(ready[0], &byte, 1) != 1 || vm_write(path, map) || write(go[1], "", 1) != 1)
		vm_note("no user namespace: %s", strerror(errno));
	close(go[1]);
	close(go[0]);
	close(ready[0]);
	close(dev);
	waitpid(child, &files, 0);
	return WIFEXITED(files) ? WEXITSTATUS(files) : -1;
}

static void files_per_user(void)
{
	char before[20] = "";
	int error = 0, i, bad = 0;

	chmod("/dev/coll", 0666);
	vm_read(LIMIT, before, sizeof(before));
	vm_is(vm_write(LIMIT, "3"), 0, "three files for each user");
	for (i = 0; i < 5; i++)
		bad += files_of(NOBODY, &error) != 3 || error != EMFILE;
	vm_is(bad, 0, "a user opens three, each time");
	vm_is(files_of_two_numbers(), 3, "also one that has many numbers");
	vm_is(files_of(0, &error), 10, "CAP_SYS_RESOURCE more");
	vm_is(vm_write(LIMIT, before), 0, "the limit as it was");
	vm_is(files_of(NOBODY, &error), 10, "which is large");
	chmod("/dev/coll", 0660);
}

int main(void)
{
	fdinfo();
	tracepoints();
	files_per_user();
	return vm_end();
}
