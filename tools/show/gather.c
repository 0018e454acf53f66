// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Pages: of this node, of other hosts by the remote shell, of dump files; and back into files. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "libcoll/base/stream.h"
#include "libcoll/flight/flight.h"
#include "libcoll/flight/observation.h"
#include "show.h"
#include "tools/common/arguments.h"
#include "tools/common/command.h"
#include "tools/launch/launch_hosts.h"

enum {
	LOOK_AGAIN_NS = 100000000,	/* between the two looks at a process */
	REMOTE_S = 20,			/* for an answer of the hosts */
	SHELL_NS = 500000000,		/* for one that is told to end */
	PAGES_MAX = 16384,		/* of one host: about a gigabyte */
};

/* ---- what is meant --------------------------------------------------------------- */

/* Else a job: a file that somebody else put into this folder does not hide it. */
static bool is_file(const char *argument)
{
	static const char ending[] = ".flight";
	const size_t length = strlen(argument), end = sizeof(ending) - 1;

	return strchr(argument, '/') || (length > end && !strcmp(argument + length - end, ending));
}

int show_take_arguments(struct show *show, int count, char **arguments)
{
	const bool files = count > 1 || (count && is_file(arguments[0]));

	if (files) {
		show->files = arguments;
		show->files_count = count;
	} else if (count) {
		show->job = arguments[0];
	}
	if (show->job && (strchr(show->job, '\'') || strlen(show->job) > 63)) {
		argument_refuse(show->command, "JOB", show->job, "a name of at most 63 bytes, without '");
		return COMMAND_USAGE;
	}
	if (show->files && show->remote.hosts) {
		fprintf(stderr, "coll %s: --hosts goes with living jobs, not with files\n",
			show->command);
		return COMMAND_USAGE;
	}
	return COMMAND_OK;
}

/* ---- this node ------------------------------------------------------------------ */

/* Two looks tell a rank that stands still from one that just sleeps. */
static int gather_here(const struct show *show, struct coll_flight_set *set)
{
	const struct timespec pause = { .tv_nsec = LOOK_AGAIN_NS };
	struct coll_flight_set before = { .count = 0 };
	int error = coll_flight_find(&before, show->job);

	if (!error && before.count)
		nanosleep(&pause, NULL);
	if (!error)
		error = coll_flight_find(set, show->job);
	coll_flight_compare(set, &before);
	coll_flight_observation_colld(set);
	coll_flight_free(&before);
	if (!error)
		return COMMAND_OK;
	fprintf(stderr, "coll %s: /proc cannot be read: %s\n", show->command, strerror(-error));
	return COMMAND_ERROR;
}

/* ---- streams and files ------------------------------------------------------------- */

/* `seen`: as far as it has been read, or NULL. A record of another version has another length. */
static void tell_stream(const struct show *show, const char *name,
			const struct coll_flight_seen *seen, int error)
{
	if (error == -EPROTO && seen->magic == COLL_FLIGHT_MAGIC &&
	    seen->version != COLL_FLIGHT_VERSION)
		fprintf(stderr, "coll %s: %s: a flight record of version %u; this coll reads %u; valid: "
			"the coll of the version that wrote it\n", show->command, name, seen->version,
			COLL_FLIGHT_VERSION);
	else
		fprintf(stderr, "coll %s: %s: %s\n", show->command, name, error == -EPROTO ?
			"not a flight record; valid: one that a rank or coll show --dump wrote" :
			strerror(-error));
}

/* As many pages as there are, one after another, `most` at most. */
static int gather_stream(const struct show *show, struct coll_flight_set *set, const char *name,
			 int fd, size_t most, uint64_t until)
{
	struct coll_flight_seen *seen = calloc(1, sizeof(*seen));
	size_t got = 0, pages = 0;
	ssize_t part = 0;
	int error = seen ? 0 : -ENOMEM;

	while (!error) {
		error = coll_stream_wait(fd, POLLIN, until);
		if (error)
			break;
		part = read(fd, (char *)seen + got, sizeof(*seen) - got);
		if (part < 0 && errno == EINTR)
			continue;
		if (part <= 0)
			break;
		got += part;
		if (got == sizeof(*seen)) {
			error = ++pages > most ? -EFBIG : coll_flight_add(set, seen, got);
			got = 0;
		}
	}
	if (!error && (part < 0 || got))
		error = part < 0 ? -errno : -EPROTO;
	if (error)
		tell_stream(show, name, seen, error);
	free(seen);
	return error ? COMMAND_ERROR : COMMAND_OK;
}

static int gather_files(const struct show *show, struct coll_flight_set *set)
{
	int i, err = COMMAND_OK;

	for (i = 0; i < show->files_count && !err; i++) {
		const int fd = open(show->files[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		struct stat file;

		if (fd < 0 || fstat(fd, &file) || !S_ISREG(file.st_mode)) {
			fprintf(stderr, "coll %s: %s: %s\n", show->command, show->files[i],
				fd < 0 ? strerror(errno) : "not a file");
			if (fd >= 0)
				close(fd);
			return COMMAND_ERROR;
		}
		err = gather_stream(show, set, show->files[i], fd, file.st_size / sizeof(struct coll_flight_seen),
				    COLL_FOREVER);
		close(fd);
	}
	return err;
}

/* ---- hosts ---------------------------------------------------------------------------- */

struct asked_host {
	pid_t pid;
	int fd;
};

static int ask_host(const struct show *show, int host, struct asked_host *asked)
{
	int pipe_fd[2];
	char words[160];

	if (pipe2(pipe_fd, O_CLOEXEC))
		return -errno;
	/* cmd_show() refuses a name with a quote. */
	snprintf(words, sizeof(words), "show --raw -- %s%s%s", show->job ? "'" : "",
		 show->job ? show->job : "", show->job ? "'" : "");
	asked->pid = fork();
	if (!asked->pid) {
		const int null = open("/dev/null", O_RDONLY);

		dup2(null, STDIN_FILENO);
		dup2(pipe_fd[1], STDOUT_FILENO);
		hosts_exec(&show->remote, host, words);
		fprintf(stderr, "coll %s: cannot run %s: %s\n", show->command, show->remote.ssh,
			strerror(errno));
		_exit(127);
	}
	close(pipe_fd[1]);
	asked->fd = pipe_fd[0];
	if (asked->pid >= 0)
		return 0;
	close(pipe_fd[0]);
	return -errno;
}

/*
 * True: it has ended by itself, and how is in *status. One that stays longer than `until`, as with a session that
 * something keeps open, or since it ignores SIGTERM, is killed.
 */
static bool shell_ended(pid_t pid, int *status, uint64_t until)
{
	const struct timespec glance = { .tv_nsec = 10000000 };
	pid_t got;

	while ((got = waitpid(pid, status, WNOHANG)) <= 0) {
		if (got < 0 && errno != EINTR)
			return false;
		if (coll_now() >= until) {
			kill(pid, SIGKILL);
			while (waitpid(pid, status, 0) < 0 && errno == EINTR)
				;
			return false;
		}
		nanosleep(&glance, NULL);
	}
	return true;
}

static int answer_of(const struct show *show, struct coll_flight_set *set, const char *name,
		     struct asked_host *asked, uint64_t until)
{
	int err = gather_stream(show, set, name, asked->fd, PAGES_MAX, until), status = 0;
	bool ended;

	close(asked->fd);
	if (err)
		kill(asked->pid, SIGTERM);
	ended = shell_ended(asked->pid, &status, err ? coll_now() + SHELL_NS : until);
	if (err || (ended && WIFEXITED(status) && WEXITSTATUS(status) <= COMMAND_ERROR))
		return err;
	if (ended)
		fprintf(stderr, "coll %s: host %s gave no answer\n", show->command, name);
	else
		fprintf(stderr, "coll %s: host %s: %s did not end within %d s; what it said is shown\n",
			show->command, name, show->remote.ssh, REMOTE_S);
	return COMMAND_ERROR;
}

/* All at once: the pages are of nearly the same time. */
static int gather_hosts(const struct show *show, struct coll_flight_set *set)
{
	const int count = show->remote.hosts_count;
	const uint64_t until = coll_now() + REMOTE_S * COLL_SECOND;
	struct asked_host *asked = calloc(count, sizeof(*asked));
	int i, started, err = asked ? COMMAND_OK : COMMAND_ERROR;

	for (started = 0; !err && started < count; started++)
		if (ask_host(show, started, &asked[started]) < 0) {
			fprintf(stderr, "coll %s: cannot start the remote shell: %s\n",
				show->command, strerror(errno));
			err = COMMAND_ERROR;
			break;
		}
	for (i = 0; i < started; i++) {
		const int one = answer_of(show, set, show->remote.hosts[i].name, &asked[i],
					  until);

		err = err ? err : one;
	}
	free(asked);
	return err;
}

int show_gather(const struct show *show, struct coll_flight_set *set)
{
	int err;

	if (show->files)
		err = gather_files(show, set);
	else if (show->remote.hosts)
		err = gather_hosts(show, set);
	else
		err = gather_here(show, set);
	coll_flight_sort(set);
	return err;
}

/* ---- out ------------------------------------------------------------------------------------ */

int show_raw(const struct coll_flight_set *set)
{
	size_t i;

	for (i = 0; i < set->count; i++)
		if (fwrite(set->seen[i], sizeof(*set->seen[i]), 1, stdout) != 1)
			return COMMAND_ERROR;
	return COMMAND_OK;
}

static int dump_one(const char *folder, const struct coll_flight_seen *seen)
{
	char path[PATH_MAX], job[sizeof(seen->page.job)];
	FILE *to;
	int fd, err;

	snprintf(job, sizeof(job), "%s", seen->page.job);
	coll_flight_make_plain(job);
	snprintf(path, sizeof(path), "%s/coll-%s-%u.flight", folder, job, seen->page.rank);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	to = fd < 0 ? NULL : fdopen(fd, "w");
	err = !to || fwrite(seen, sizeof(*seen), 1, to) != 1;
	if (to && fclose(to))
		err = 1;
	if (err)
		fprintf(stderr, "coll show: --dump: cannot write %s: %s\n", path, strerror(errno));
	else
		printf("%s\n", path);
	return err ? COMMAND_ERROR : COMMAND_OK;
}

int show_dump(const struct show *show, const struct coll_flight_set *set)
{
	int err = COMMAND_OK;
	size_t i;

	for (i = 0; i < set->count && !err; i++)
		err = dump_one(show->dump, set->seen[i]);
	return err;
}
