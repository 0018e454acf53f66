// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "launcher.h"
#include "node/units.h"
#include "tools/common/in_path.h"

enum {
	TEXT_MAX = 16 << 20,	/* of what one node may print */
	LINE_MAX_BYTES = 1 << 16,
	WORDS_MAX = 32,
	OWN_END_S = 10,		/* coll run has the deadline too, and ends its ranks itself */
	KILL_S = 3,		/* from SIGTERM to SIGKILL */
};

const char *const noise_launcher_names[] = { "auto", "ssh", "srun", NULL };

/* What it has printed, by its number for the node. */
struct launcher_output {
	const struct noise_launch *launch;
	char **text;
	size_t *bytes;
	char line[LINE_MAX_BYTES];
	size_t length;
};

/* A prolog or epilog of Slurm: a step that it asks for waits until it has ended itself. */
static bool in_slurm_script(void)
{
	return getenv("SLURM_SCRIPT_CONTEXT");
}

enum noise_launcher noise_launcher_of(enum noise_launcher asked, const char *ssh)
{
	if (asked != NOISE_LAUNCHER_AUTO)
		return asked;
	return !ssh && getenv("SLURM_JOB_ID") && !in_slurm_script() && in_path("srun") ?
		       NOISE_LAUNCHER_SRUN : NOISE_LAUNCHER_SSH;
}

/* ---- what is started ---------------------------------------------------------------------- */

/* A program of this name in the folder of this one. */
static bool beside_self(const char *name, char path[PATH_MAX])
{
	const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *slash;

	if (length <= 0)
		return false;
	path[length] = 0;
	slash = strrchr(path, '/');
	return slash && (size_t)snprintf(slash + 1, PATH_MAX - (slash + 1 - path), "%s", name) <
			(size_t)(PATH_MAX - (slash + 1 - path));
}

static u32 add_words(char **argv, u32 count, const char *const *words)
{
	for (; *words; words++)
		argv[count++] = (char *)*words;
	return count;
}

static u32 ssh_words(const struct noise_launch *launch, const char *hosts, char **argv)
{
	static char coll[PATH_MAX], timeout[32];
	const char *const run[] = { coll, "run", "--hosts", hosts, "--keep-going", "--prefix",
				    "--quiet", "--bind", "none", "--timeout", timeout, NULL };
	const char *const shell[] = { "--ssh", launch->ssh, NULL }, *const end[] = { "--", NULL };
	u32 count;

	if (!beside_self("coll", coll))
		return 0;
	snprintf(timeout, sizeof(timeout), "%lluns",
		 (unsigned long long)(launch->duration + launch->grace));
	count = add_words(argv, 0, run);
	if (launch->ssh)
		count = add_words(argv, count, shell);
	return add_words(argv, count, end);
}

/*
 * One task a node, beside what the job runs there, on all CPUs that it has. A task says where it is:
 * Slurm sorts the nodes. The list is as it was given, n[1-4000]: the names may be too long for a word.
 */
static u32 srun_words(const struct noise_launch *launch, char **argv)
{
	static char nodes[32], tasks[32];
	const char *const words[] = {
		"srun", nodes, tasks, "--ntasks-per-node=1", "--nodelist", launch->list, "--overlap", "--mem=0",
		"--cpu-bind=none", "--mpi=none", "--input=none", "--label",
		"--kill-on-bad-exit=0", "--wait=0", "--quiet", "--quit-on-interrupt", "sh", "-c",
		"echo \"" NOISE_NODE_LINE "${SLURMD_NODENAME:-$(hostname)}\"; exec \"$@\"", "sh", NULL,
	};

	snprintf(nodes, sizeof(nodes), "--nodes=%u", launch->nodes->count);
	snprintf(tasks, sizeof(tasks), "--ntasks=%u", launch->nodes->count);
	return add_words(argv, 0, words);
}

static const char *launcher_program(const struct noise_launch *launch)
{
	return launch->launcher == NOISE_LAUNCHER_SRUN ? "srun" : "coll run";
}

/* NULL: there is no memory, or no coll. */
static char **launch_command(const struct noise_launch *launch, const char *hosts)
{
	static char noise[PATH_MAX], duration[32];
	const char *const measure[] = { noise, "measure", "--quiet", "--json", "--duration", duration,
					NULL };
	char **argv = calloc(WORDS_MAX + launch->extras, sizeof(*argv));
	u32 count = 0, i;

	snprintf(duration, sizeof(duration), "%lluns", (unsigned long long)launch->duration);
	if (argv && beside_self("collnoise", noise))
		count = launch->launcher == NOISE_LAUNCHER_SRUN ? srun_words(launch, argv) :
								  ssh_words(launch, hosts, argv);
	if (!count) {
		free(argv);
		return NULL;
	}
	count = add_words(argv, count, measure);
	for (i = 0; i < launch->extras; i++)
		argv[count++] = launch->extra[i];
	return argv;
}

/* Its output can be read from *from. 0 or an errno. */
static int launch_start(char **argv, pid_t *child, int *from)
{
	posix_spawn_file_actions_t actions;
	int fd[2], error;

	if (pipe2(fd, O_CLOEXEC))
		return errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd[1], STDOUT_FILENO);
	error = posix_spawnp(child, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fd[1]);
	*from = fd[0];
	if (error)
		close(fd[0]);
	return error;
}

/* ---- what it prints ----------------------------------------------------------------------- */

/* Nothing of a node's text moves the cursor here. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if (!isprint((unsigned char)*text) && *text != '\n')
			*text = '?';
}

/* "[2] text" of coll run, " 2: text" of srun. NULL: it is of no node. */
static char *line_of_node(const struct noise_launch *launch, char *line, u32 *number)
{
	const bool srun = launch->launcher == NOISE_LAUNCHER_SRUN;
	char *end;
	unsigned long at;

	line += strspn(line, " ");
	if (!srun && *line++ != '[')
		return NULL;
	if (!isdigit((unsigned char)*line))
		return NULL;
	at = strtoul(line, &end, 10);
	*number = at;
	/* srun cuts the blank off where the line is empty. */
	if (at >= launch->nodes->count || *end != (srun ? ':' : ']'))
		return NULL;
	return end + 1 + (end[1] == ' ');
}

static void take_line(struct launcher_output *output)
{
	u32 number;
	char *text, *more;
	size_t bytes;

	output->line[output->length] = 0;
	output->length = 0;
	make_printable(output->line);
	text = line_of_node(output->launch, output->line, &number);
	if (!text) {
		fprintf(stderr, "collnoise nodes: a host printed: %s", output->line);
		return;
	}
	bytes = strlen(text);
	more = output->bytes[number] + bytes < TEXT_MAX ?
		       realloc(output->text[number], output->bytes[number] + bytes + 1) : NULL;
	if (!more)
		return;
	memcpy(more + output->bytes[number], text, bytes + 1);
	output->text[number] = more;
	output->bytes[number] += bytes;
}

static void take_bytes(struct launcher_output *output, const char *bytes, ssize_t count)
{
	ssize_t i;

	for (i = 0; i < count; i++) {
		output->line[output->length++] = bytes[i];
		if (bytes[i] == '\n' || output->length + 1 == sizeof(output->line))
			take_line(output);
	}
}

/* To its end or the deadline. */
static void take_output(struct launcher_output *output, int from, u64 until)
{
	struct pollfd ready = { .fd = from, .events = POLLIN };
	static char bytes[1 << 16];
	ssize_t count = 1;
	u64 now;

	while (count) {
		now = noise_clock_read(CLOCK_MONOTONIC);
		if (now >= until)
			return;
		if (poll(&ready, 1, 1 + (until - now) / NODE_MS % INT_MAX) <= 0)
			continue;
		count = read(from, bytes, sizeof(bytes));
		if (count < 0 && errno != EINTR)
			break;
		take_bytes(output, bytes, count);
	}
}

/* ---- its end ------------------------------------------------------------------------------ */

static bool ends_until(pid_t child, u64 until, int *status)
{
	while (waitpid(child, status, WNOHANG) != child) {
		if (noise_clock_read(CLOCK_MONOTONIC) >= until)
			return false;
		nanosleep(&(struct timespec){ .tv_nsec = 10 * NODE_MS }, NULL);
	}
	return true;
}

static void launch_end(const struct noise_launch *launch, pid_t child, u64 until)
{
	const char *name = launcher_program(launch);
	int status = 0;

	if (!ends_until(child, until, &status)) {
		fprintf(stderr, "collnoise nodes: %s did not end within %g s (the duration and --timeout): "
			"ended; what has come is used\n", name,
			(launch->duration + launch->grace) / 1e9);
		kill(child, SIGTERM);
		if (!ends_until(child, noise_clock_read(CLOCK_MONOTONIC) + KILL_S * NODE_S, &status)) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
		}
	} else if (WIFEXITED(status) && WEXITSTATUS(status) &&
		   launch->launcher == NOISE_LAUNCHER_SRUN) {
		fprintf(stderr, "collnoise nodes: srun ended with exit code %d; valid: nodes of "
			"the allocation, or --launcher ssh\n", WEXITSTATUS(status));
	}
}

static bool launch_follow(const struct noise_launch *launch, char **argv,
			  struct launcher_output *output)
{
	const bool srun = launch->launcher == NOISE_LAUNCHER_SRUN;
	const u64 until = noise_clock_read(CLOCK_MONOTONIC) + launch->duration + launch->grace +
			  (srun ? 0 : OWN_END_S * NODE_S);
	int from = -1, error;
	pid_t child;

	fflush(NULL);
	error = launch_start(argv, &child, &from);
	if (error) {
		fprintf(stderr, "collnoise nodes: cannot start %s: %s%s\n", argv[0], strerror(error),
			srun && error == ENOENT ?
			"; valid: srun of Slurm in PATH, or --launcher ssh" : "");
		return false;
	}
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "%u hosts measure for %g s\n", launch->nodes->count,
			launch->duration / 1e9);
	take_output(output, from, until);
	close(from);
	launch_end(launch, child, until);
	return true;
}

bool noise_launch(const struct noise_launch *launch, char **text)
{
	struct launcher_output *output = calloc(1, sizeof(*output));
	size_t *bytes = calloc(launch->nodes->count, sizeof(*bytes));
	char *hosts = noise_nodelist_join(launch->nodes);
	char **argv = hosts ? launch_command(launch, hosts) : NULL;
	bool started = false;

	if (output && bytes && argv) {
		output->launch = launch;
		output->text = text;
		output->bytes = bytes;
		started = launch_follow(launch, argv, output);
	} else {
		fprintf(stderr, "collnoise nodes: cannot start %s: there is no memory, or no /proc\n",
			launcher_program(launch));
	}
	free(argv);
	free(hosts);
	free(bytes);
	free(output);
	return started;
}
