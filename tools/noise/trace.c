// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/arguments.h"
#include "formats.h"
#include "trace.h"
#include "node/units.h"

static int trace_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int status = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return status;
}

static int write_control(const struct noise_trace *trace, const char *name, const char *text)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", trace->folder, name);
	return trace_put(path, text);
}

/* ---- the instance ------------------------------------------------------------------------ */

/* One that was killed leaves its instance, which traces on. The kernel removes none of which a file is open. */
static void remove_left(const char *root)
{
	char path[80];
	struct dirent *entry;
	DIR *list;
	int pid;

	snprintf(path, sizeof(path), "%s/instances", root);
	list = opendir(path);
	while (list && (entry = readdir(list)))
		if (sscanf(entry->d_name, "collnoise-%d", &pid) == 1 &&
		    (pid == getpid() || (kill(pid, 0) && errno == ESRCH)))
			unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR);
	if (list)
		closedir(list);
}

/* Where another one has removed it before it was held, what follows says that it is not there. */
static void hold_instance(struct noise_trace *trace)
{
	char path[100];

	snprintf(path, sizeof(path), "%s/tracing_on", trace->folder);
	trace->held = open(path, O_RDONLY | O_CLOEXEC);
}

static int make_instance(struct noise_trace *trace)
{
	static const char *const roots[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	size_t i;
	int status = -ENOENT;

	for (i = 0; i < 2; i++) {
		remove_left(roots[i]);
		snprintf(trace->folder, sizeof(trace->folder), "%s/instances/collnoise-%d",
			 roots[i], (int)getpid());
		if (!mkdir(trace->folder, 0700)) {
			hold_instance(trace);
			return 0;
		}
		status = errno == ENOENT ? status : -errno;
	}
	*trace->folder = 0;
	return status;
}

/* "sched:sched_switch" is events/sched/sched_switch/FILE, "irq" events/irq/FILE. */
static int put_event(const struct noise_trace *trace, const char *name, const char *file,
		     const char *text)
{
	char path[200], *colon;

	if (!text)
		return 0;
	if (strstr(name, "..") || *name == '/' || strlen(name) > 150)
		return -ENOENT;
	snprintf(path, sizeof(path), "events/%s/%s", name, file);
	colon = strchr(path, ':');
	if (colon)
		*colon = '/';
	return write_control(trace, path, text);
}

static int trace_enable(const struct noise_trace *trace, const struct noise_trace_event *event,
			const char *command)
{
	const char *what = "--filter ", *text = event->filter;
	int status = put_event(trace, event->name, "filter", event->filter);

	if (!status) {
		what = "--trigger ";
		text = event->trigger;
		status = put_event(trace, event->name, "trigger", event->trigger);
	}
	if (!status) {
		what = text = "";
		status = put_event(trace, event->name, "enable", "1");
	}
	if (status)
		fprintf(stderr, "%s %s: -e '%s'%s%s%s: %s; valid: a line of available_events in "
			"/sys/kernel/tracing, or what is before its colon\n", argument_program,
			command, event->name, *what ? ", " : "", what, text, strerror(-status));
	return status;
}

int noise_trace_begin(struct noise_trace *trace, const char *command)
{
	int i, status;

	if (!trace->events)
		return 0;
	status = make_instance(trace);
	if (status) {
		fprintf(stderr, "%s %s: -e needs root and tracefs at /sys/kernel/tracing: %s\n",
			argument_program, command, strerror(-status));
		return status;
	}
	write_control(trace, "trace_clock", "mono");
	for (i = 0; !status && i < trace->events; i++)
		status = trace_enable(trace, &trace->event[i], command);
	if (status)
		noise_trace_end(trace);
	return status;
}

void noise_trace_stop(const struct noise_trace *trace)
{
	if (*trace->folder)
		write_control(trace, "tracing_on", "0");
}

void noise_trace_end(struct noise_trace *trace)
{
	if (!*trace->folder)
		return;
	if (trace->held >= 0)
		close(trace->held);
	rmdir(trace->folder);
	*trace->folder = 0;
}

/* ---- the file ------------------------------------------------------------------------------ */

static u64 clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NODE_S + now.tv_nsec;
}

/* Times of the capture count from its epoch; in the trace they count from boot. */
static void to_monotonic(struct node_capture *capture)
{
	const u64 shift = capture->head.epoch + clock_ns(CLOCK_MONOTONIC) -
			  clock_ns(CLOCK_REALTIME);
	u64 i;

	for (i = 0; i < capture->head.events; i++)
		capture->event[i].start += shift;
}

static void copy_kernels(const struct noise_trace *trace, FILE *to)
{
	char path[120], block[4096];
	size_t bytes;
	FILE *from;

	snprintf(path, sizeof(path), "%s/trace", trace->folder);
	from = *trace->folder ? fopen(path, "re") : NULL;
	while (from && (bytes = fread(block, 1, sizeof(block), from)))
		fwrite(block, 1, bytes, to);
	if (from)
		fclose(from);
}

int noise_trace_write(const struct noise_trace *trace, struct node_capture *capture,
		      const char *command)
{
	FILE *to = fopen(trace->file, "we");
	int status = to ? 0 : -errno;

	if (to) {
		to_monotonic(capture);
		status = noise_format_print(capture, NOISE_OSNOISE, 0, 0, to);
		copy_kernels(trace, to);
		if (fclose(to) && !status)
			status = -errno;
	}
	if (status)
		fprintf(stderr, "%s %s: cannot write %s: %s\n", argument_program, command,
			trace->file, strerror(-status));
	return status;
}

/* ---- cgroup -------------------------------------------------------------------------------- */

int noise_cgroup_enter(const char *cgroup, const char *command)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	char path[4096];
	size_t i;
	int status = -ENOENT;

	for (i = 0; i < 2 && status == -ENOENT; i++) {
		snprintf(path, sizeof(path), "%s/%s/cgroup.procs", roots[i], cgroup);
		status = trace_put(path, "0");
	}
	if (status)
		fprintf(stderr,
			"%s %s: -C '%s': %s; valid: a folder below /sys/fs/cgroup that this "
			"user may enter\n",
			argument_program, command, cgroup, strerror(-status));
	return status;
}
