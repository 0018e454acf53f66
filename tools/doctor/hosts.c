// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "hosts.h"
#include "pairs.h"
#include "tools/common/command.h"

/* ---- on a host ------------------------------------------------------------------ */

static bool hosts_print(json_t *line)
{
	const bool good = line && !json_dumpf(line, stdout, JSON_COMPACT);

	putchar('\n');
	json_decref(line);
	return good && !fflush(stdout);
}

static bool hosts_print_pairs(json_t *pairs)
{
	return hosts_print(json_pack("{so}", "pairs", pairs));
}

int doctor_hosts_rank(json_t *report, uint64_t timeout)
{
	/* What was read goes out before anything on the network can delay it. */
	const bool told = hosts_print(json_pack("{so}", "report", report));

	return doctor_pairs_try(timeout, hosts_print_pairs) && told ? COMMAND_OK : COMMAND_ERROR;
}

/* ---- where it was started ----------------------------------------------------------- */

enum { LOOK_MS = 1000, COLUMNS = 79 };

/* Hosts of which nothing came or, when there are none, no trial of the others. */
static void list_awaited(const struct doctor_row *rows, int count, bool reports, char *text, size_t bytes)
{
	size_t used = 0;
	int i;

	*text = 0;
	for (i = 0; i < count && used < bytes; i++)
		if (reports ? !rows[i].report : !rows[i].pairs)
			used += snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", rows[i].host);
	if (used >= bytes)
		strcpy(text + bytes - 4, "...");
}

/* On a terminal: how far it is, and what it waits for until when. */
static void hosts_progress(const struct doctor_row *rows, int count, uint64_t began, uint64_t timeout)
{
	int i, reports = 0, pairs = 0;
	char awaited[24], line[COLUMNS + 1];

	if (!isatty(STDERR_FILENO))
		return;
	for (i = 0; i < count; i++) {
		reports += rows[i].report != NULL;
		pairs += rows[i].pairs != NULL;
	}
	list_awaited(rows, count, reports < count, awaited, sizeof(awaited));
	snprintf(line, sizeof(line), "%d of %d hosts read, %d have tried the others; %.0f of %.0f s%s%s", reports,
		 count, pairs, (coll_now() - began) * 1e-9, timeout * 1e-9, *awaited ? ", for " : "", awaited);
	fprintf(stderr, "\r%-*s", COLUMNS, line);
}

static void progress_end(void)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%*s\r", COLUMNS, "");
}

/* A line "[RANK] JSON"; others are passed on. */
static void take_line(const char *line, struct doctor_row *rows, int count)
{
	char *end = NULL;
	const long rank = *line == '[' ? strtol(line + 1, &end, 10) : -1;
	json_t *json = end && !strncmp(end, "] ", 2) ? json_loads(end + 2, 0, NULL) : NULL;
	json_t *report = json_object_get(json, "report"), *pairs = json_object_get(json, "pairs");

	if (rank < 0 || rank >= count || (!report && !pairs))
		fprintf(stderr, "coll doctor: a host printed: %s", line);
	else if (report && !rows[rank].report)
		rows[rank].report = json_incref(report);
	else if (pairs && !rows[rank].pairs)
		rows[rank].pairs = json_incref(pairs);
	json_decref(json);
}

/* Unbuffered, so that a line is in the pipe or nowhere. */
static void take_lines(FILE *from, struct doctor_row *rows, const struct launch *launch)
{
	const uint64_t began = coll_now();
	struct pollfd ready = { fileno(from), POLLIN, 0 };
	size_t capacity = 0;
	char *line = NULL;

	setvbuf(from, NULL, _IONBF, 0);
	for (;;) {
		hosts_progress(rows, launch->hosts_count, began, launch->timeout);
		if (!poll(&ready, 1, LOOK_MS))
			continue;
		if (getline(&line, &capacity, from) <= 0)
			break;
		take_line(line, rows, launch->hosts_count);
	}
	progress_end();
	free(line);
}

/* In a child, since a launcher prints what ranks print. */
static pid_t hosts_start(const struct launch *launch, int *from)
{
	const pid_t parent = getpid();
	int fd[2];
	pid_t child;

	if (pipe2(fd, O_CLOEXEC))
		return -1;
	fflush(NULL);
	child = fork();
	if (!child) {
		/* The launcher then ends what it started. */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(1);
		dup2(fd[1], STDOUT_FILENO);
		_exit(launch_job(launch));
	}
	close(fd[1]);
	if (child < 0)
		close(fd[0]);
	*from = fd[0];
	return child;
}

bool doctor_hosts_run(const struct launch *launch, struct doctor_row *rows)
{
	int from, i;
	const pid_t child = hosts_start(launch, &from);
	FILE *lines = child > 0 ? fdopen(from, "r") : NULL;

	for (i = 0; i < launch->hosts_count; i++)
		rows[i] = (struct doctor_row){ .host = launch->hosts[i].name };
	if (!lines) {
		fprintf(stderr, "coll doctor: cannot start: %s\n", strerror(errno));
		return false;
	}
	take_lines(lines, rows, launch);
	fclose(lines);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return true;
}
