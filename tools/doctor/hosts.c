// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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

int doctor_hosts_rank(json_t *report)
{
	/* What was read goes out before anything on the network can delay it. */
	const bool told = hosts_print(json_pack("{so}", "report", report));

	return doctor_pairs_try(hosts_print_pairs) && told ? COMMAND_OK : COMMAND_ERROR;
}

/* ---- where it was started ----------------------------------------------------------- */

static void hosts_progress(int reports, int pairs, int count)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r%d of %d hosts read, %d have tried the others", reports, count, pairs);
	if (pairs == count)
		fprintf(stderr, "\r%70s\r", "");
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

static void take_lines(FILE *from, struct doctor_row *rows, int count)
{
	int i, reports, pairs;
	size_t capacity = 0;
	char *line = NULL;

	while (getline(&line, &capacity, from) > 0) {
		take_line(line, rows, count);
		for (i = reports = pairs = 0; i < count; i++) {
			reports += rows[i].report != NULL;
			pairs += rows[i].pairs != NULL;
		}
		hosts_progress(reports, pairs, count);
	}
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
	take_lines(lines, rows, launch->hosts_count);
	fclose(lines);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return true;
}
