// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The programs of tests/multi with progress in the kernel, by the other ways, in groups
 * where only some ranks have it, and with failing ranks. tests/vm/run -p brings `coll` and
 * the programs along.
 *
 *	progress_kernel_test			the test
 *	progress_kernel_test mixed PROGRAM ...	a rank of it: even ranks without the kernel
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vm.h"

enum { ARGUMENTS_MAX = 24, SHOWN_MAX = 30 };

static const char output[] = "/tmp/progress_kernel.out";

struct play {
	const char *what, *engine, *ranks;
	const char *mode;		/* NULL: kernel */
	const char *program[6];
	const char *says;		/* a line that `count` ranks say, or NULL: exit code 0 */
	int count;
};

#define EVERY(ranks, engine, every) \
	{ "every collective", engine, ranks, NULL, { "every_collective", every, "3" }, NULL, 0 }
#define BY(mode, ranks, every) \
	{ "every collective by " mode, "uring", ranks, mode, { "every_collective", every, "5" }, NULL, 0 }
#define MIXED(ranks, engine, ...) \
	{ "even ranks without", engine, ranks, NULL, { "progress_kernel_test", "mixed", __VA_ARGS__ }, \
	  NULL, 0 }
#define FAILURE(engine, way, collective) \
	{ "a failure", engine, "5", NULL, { "rank_failures", collective, way, "3" }, "survived", 4 }

static const struct play plays[] = {
	EVERY("2", "uring", "40"),
	EVERY("3", "epoll", "40"),
	EVERY("5", "uring", "80"),
	EVERY("8", "uring", "160"),
	BY("call", "2", "120"),
	BY("call", "8", "400"),
	BY("thread", "2", "120"),
	BY("thread", "8", "400"),
	BY("helper", "2", "120"),
	BY("helper", "8", "400"),
	BY("auto", "4", "300"),
	{ "groups and many runs", "uring", "3", NULL, { "groups" }, NULL, 0 },
	{ "groups and many runs", "epoll", "2", NULL, { "groups" }, NULL, 0 },
	{ "poll() wakes", "uring", "2", NULL, { "poll_on_fd", "slow" }, NULL, 0 },
	{ "poll() wakes", "uring", "3", "call", { "poll_on_fd", "slow" }, NULL, 0 },
	{ "poll() wakes", "epoll", "2", NULL, { "poll_on_fd", "slow" }, NULL, 0 },
	{ "leaves with a run in flight", "uring", "2", NULL, { "poll_on_fd", "closed" }, NULL, 0 },
	{ "leaves with a run in flight", "epoll", "2", NULL, { "poll_on_fd", "closed" }, NULL, 0 },
	{ "a run completes without calls", "uring", "3", NULL, { "progress_without_calls" },
	  NULL, 0 },
	{ "a link connects during offload", "uring", "8", NULL, { "connect_during_offload" },
	  NULL, 0 },
	{ "a link connects during offload", "epoll", "8", NULL, { "connect_during_offload" },
	  NULL, 0 },
	{ "a rank leaves before an offload", "uring", "2", NULL, { "leave_before_offload" }, NULL, 0 },
	{ "a rank leaves before an offload", "epoll", "4", NULL, { "leave_before_offload" }, NULL, 0 },
	{ "auto finds the kernel", "uring", "2", NULL, { "progress_auto_follows", "kernel", "1" },
	  NULL, 0 },
	MIXED("4", "uring", "every_collective", "60", "7"),
	MIXED("3", "epoll", "every_collective", "60", "7"),
	MIXED("3", "uring", "groups"),
	FAILURE("uring", "kill", "allreduce"),
	FAILURE("epoll", "kill", "alltoall"),
	FAILURE("uring", "stop", "alltoall"),
	FAILURE("uring", "absent", "reduce"),
	FAILURE("uring", "stop", "bcast"),
};

/* ---- a rank of a mixed group ------------------------------------------------------ */

static int rank_of_mixed(char **program)
{
	const char *rank = getenv("COLL_RANK");

	if (rank && atoi(rank) % 2 == 0)
		unsetenv("COLL_PROGRESS");
	execvp(program[0], program);
	perror(program[0]);
	return 1;
}

/* ---- the test ------------------------------------------------------------------- */

static void start(const struct play *play)
{
	const char *arguments[ARGUMENTS_MAX] = { "coll", "run", "-q", "-k", "-t", "100",
						 "--no-prefix", "-n", play->ranks, "--" };
	int count = 0, i, fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	while (arguments[count])
		count++;
	for (i = 0; i < 6 && play->program[i]; i++)
		arguments[count++] = play->program[i];
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	setenv("COLL_PROGRESS", play->mode ? play->mode : "kernel", 1);
	setenv("COLL_ENGINE", play->engine, 1);
	setenv("MALLOC_PERTURB_", "165", 1);	/* who reads what was freed fails */
	if (!play->says)
		setenv("COLL_DEADLINE", "60s", 1);
	execvp(arguments[0], (char **)arguments);
	_exit(127);
}

/* How many lines say this; all are shown if `show`. */
static int lines(const char *says, bool show)
{
	FILE *file = fopen(output, "re");
	char line[400];
	int count = 0, shown = 0;

	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		count += says && !strcmp(line, says);
		if (show && shown++ < SHOWN_MAX)
			vm_note("%s", line);
	}
	if (file)
		fclose(file);
	return count;
}

static void play_one(const struct play *play)
{
	const uint64_t began = vm_now();
	char what[200] = "";
	int status = 0, i;
	pid_t child = fork();
	bool good;

	if (!child)
		start(play);
	waitpid(child, &status, 0);
	for (i = 0; i < 6 && play->program[i]; i++) {
		strcat(what, " ");
		strcat(what, play->program[i]);
	}
	good = play->says ? lines(play->says, false) == play->count : !status;
	vm_ok(good, "%s ranks, %s: %s,%s", play->ranks, play->engine, play->what, what);
	vm_note("%.1f s", (vm_now() - began) / 1e9);
	if (!good)
		lines(NULL, true);
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc > 2 && !strcmp(argv[1], "mixed"))
		return rank_of_mixed(argv + 2);
	for (i = 0; i < sizeof(plays) / sizeof(*plays); i++)
		play_one(&plays[i]);
	return vm_end();
}
