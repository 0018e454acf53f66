// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "activity.h"
#include "small_file.h"
#include "units.h"

struct activity_source {
	struct coll_noise_source source;
	bool here;		/* a thread: it ran on these CPUs last */
	u64 born;		/* a thread: when; its name may change, and its number be given again */
	u32 pid, cpu;		/* a thread's */
};

/* In order of (cause, number, and name or birth). */
struct node_activity {
	struct activity_source *source;
	u32 count, room;
	struct node_cpus cpus;
};

static int activity_add(struct node_activity *activity, const struct activity_source *source)
{
	if (activity->count == activity->room) {
		const u32 room = activity->room ? 2 * activity->room : 256;
		struct activity_source *more =
			reallocarray(activity->source, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		activity->source = more;
		activity->room = room;
	}
	activity->source[activity->count++] = *source;
	return 0;
}

/* A line of /proc/stat; that of all CPUs together has no number. */
static bool read_taken_line(const char *line, u32 *cpu, struct node_cpu_taken *taken)
{
	const u64 tick = NODE_S / sysconf(_SC_CLK_TCK);
	unsigned long long hard, soft, steal;

	if (sscanf(line, "cpu%u %*u %*u %*u %*u %*u %llu %llu %llu", cpu, &hard, &soft, &steal) != 4)
		return false;
	*taken = (struct node_cpu_taken){ hard * tick, soft * tick, steal * tick };
	return true;
}

/* Of `count` CPUs from `first` on; what is not there is left as it is. */
static void read_taken(u32 first, u32 count, struct node_cpu_taken *taken)
{
	FILE *from = fopen("/proc/stat", "re");
	struct node_cpu_taken one;
	char line[512];
	u32 cpu;

	/* Those of CPUs are the first ones. */
	while (from && fgets(line, sizeof(line), from) && !strncmp(line, "cpu", 3))
		if (read_taken_line(line, &cpu, &one) && cpu >= first && cpu - first < count)
			taken[cpu - first] = one;
	if (from)
		fclose(from);
}

void node_cpus_taken(struct node_cpu_taken *taken, u32 count)
{
	read_taken(0, count, taken);
}

u64 node_steal(u32 cpu)
{
	struct node_cpu_taken taken = { .steal = 0 };

	read_taken(cpu, 1, &taken);
	return taken.steal;
}

/* ---- interrupts ----------------------------------------------------------- */

enum { COLUMNS_MAX = NODE_CPUS_MAX };

/* The head line names the CPUs of the columns: those that are online. */
static u32 read_columns(char *line, u32 *column)
{
	u32 columns = 0;
	char *save, *word;

	for (word = strtok_r(line, " \n", &save); word && columns < COLUMNS_MAX;
	     word = strtok_r(NULL, " \n", &save))
		if (!strncmp(word, "CPU", 3))
			column[columns++] = strtoul(word + 3, NULL, 10);
	return columns;
}

/* "IO-APIC 5-edge ACPI:Ged" or "Local timer interrupts": the last word, or all of it. */
static const char *interrupt_name(char *text, bool numbered)
{
	char *end = text + strlen(text), *word;

	while (end > text && isspace((unsigned char)end[-1]))
		*--end = 0;
	text += strspn(text, " ");
	word = strrchr(text, ' ');
	return numbered && word ? word + 1 : text;
}

static int read_interrupt(struct node_activity *activity, char *line, const u32 *column,
			  u32 columns, bool soft, u32 row)
{
	char *colon = strchr(line, ':'), *label = line + strspn(line, " "), *at;
	const bool numbered = isdigit((unsigned char)*label);
	struct activity_source of = { .here = true, .source = {
		.cause = soft ? COLL_NOISE_SOFTIRQ : COLL_NOISE_IRQ,
		.number = soft ? row : numbered ? strtoul(label, NULL, 10) : 0,
	} };
	struct coll_noise_source *source = &of.source;
	const char *name;
	u32 i;

	if (!colon)
		return 0;
	*colon = 0;
	at = colon + 1;
	for (i = 0; i < columns; i++) {
		char *rest;
		const u64 times = strtoull(at, &rest, 10);

		if (rest == at)
			break;
		at = rest;
		if (node_cpus_has(&activity->cpus, column[i]))
			source->times += times;
	}
	if (!strcmp(label, "NMI"))
		source->cause = COLL_NOISE_NMI;
	name = soft ? label : interrupt_name(at, numbered);
	strncpy(source->name, *name ? name : label, sizeof(source->name) - 1);
	return activity_add(activity, &of);
}

static int read_interrupts(struct node_activity *activity, const char *path, bool soft)
{
	u32 *column = calloc(COLUMNS_MAX, sizeof(*column)), columns = 0, row = 0;
	FILE *from = fopen(path, "re");
	size_t room = 0;
	char *line = NULL;
	int status = column ? 0 : -ENOMEM;

	if (from && column && getline(&line, &room, from) > 0)
		columns = read_columns(line, column);
	while (!status && from && getline(&line, &room, from) > 0)
		status = read_interrupt(activity, line, column, columns, soft, row++);
	if (from)
		fclose(from);
	free(line);
	free(column);
	return status;
}

/* ---- threads -------------------------------------------------------------- */

/* The fields of stat from the third on, behind the name; NULL: it has none. */
static const char *stat_name(const char *stat, char *name, size_t bytes)
{
	const char *open = strchr(stat, '('), *close = strrchr(stat, ')');

	if (!open || !close || close < open)
		return NULL;
	snprintf(name, bytes, "%.*s", (int)(close - open - 1), open + 1);
	return close;
}

/* 0: there are not so many. */
static u64 stat_field(const char *behind, int number)
{
	int field;

	for (field = 3; field <= number && behind; field++)
		behind = strchr(behind + 1, ' ');
	return behind ? strtoull(behind, NULL, 10) : 0;
}

static int read_thread(struct node_activity *activity, const char *process, const char *thread)
{
	struct activity_source of = { .source.cause = COLL_NOISE_THREAD };
	struct coll_noise_source *source = &of.source;
	enum { BORN = 22, CPU = 39 };	/* proc_pid_stat(5) */
	unsigned long long ran, times;
	char path[640], text[1024];
	const char *fields;

	snprintf(path, sizeof(path), "/proc/%s/task/%s/stat", process, thread);
	if (!node_read_small(path, text, sizeof(text)))
		return 0;
	fields = stat_name(text, source->name, sizeof(source->name));
	if (!fields)
		return 0;
	of.cpu = stat_field(fields, CPU);
	of.here = node_cpus_has(&activity->cpus, of.cpu);
	of.born = stat_field(fields, BORN);
	of.pid = strtoul(process, NULL, 10);
	snprintf(path, sizeof(path), "/proc/%s/task/%s/schedstat", process, thread);
	if (!node_read_small(path, text, sizeof(text)) ||
	    sscanf(text, "%llu %*u %llu", &ran, &times) != 2)
		return 0;
	source->number = strtoul(thread, NULL, 10);
	source->total = ran;
	source->times = times;
	return activity_add(activity, &of);
}

static int read_process(struct node_activity *activity, const char *process)
{
	char path[300];
	struct dirent *entry;
	DIR *tasks;
	int status = 0;

	snprintf(path, sizeof(path), "/proc/%s/task", process);
	tasks = opendir(path);
	while (!status && tasks && (entry = readdir(tasks)))
		if (isdigit((unsigned char)*entry->d_name))
			status = read_thread(activity, process, entry->d_name);
	if (tasks)
		closedir(tasks);
	return status;
}

/* Of all processes but this one. */
static int read_threads(struct node_activity *activity)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	int status = 0;

	while (!status && processes && (entry = readdir(processes)))
		if (isdigit((unsigned char)*entry->d_name) && atoi(entry->d_name) != getpid())
			status = read_process(activity, entry->d_name);
	if (processes)
		closedir(processes);
	return status;
}

/* ---- both ----------------------------------------------------------------- */

static int in_order(const void *a, const void *b)
{
	const struct activity_source *one = a, *other = b;
	const struct coll_noise_source *x = &one->source, *y = &other->source;

	if (x->cause != y->cause)
		return x->cause < y->cause ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	if (x->cause == COLL_NOISE_THREAD)
		return (one->born > other->born) - (one->born < other->born);
	return strcmp(x->name, y->name);
}

/* The file has a line for each CPU: it is read once, and not once a CPU. */
static int add_steal(struct node_activity *activity)
{
	struct activity_source of = { .here = true, .source = {
		.cause = COLL_NOISE_STEAL, .name = "hypervisor" } };
	struct node_cpu_taken *taken = calloc(NODE_CPUS_MAX, sizeof(*taken));
	u32 cpu = node_cpus_next(&activity->cpus, 0);

	if (!taken)
		return -ENOMEM;
	node_cpus_taken(taken, NODE_CPUS_MAX);
	for (; cpu < NODE_CPUS_MAX; cpu = node_cpus_next(&activity->cpus, cpu + 1))
		of.source.total += taken[cpu].steal;
	free(taken);
	return activity_add(activity, &of);
}

/* Of a sample that failed nothing is left. */
static struct node_activity *activity_sorted(struct node_activity *activity, int failed)
{
	if (failed) {
		node_activity_free(activity);
		return NULL;
	}
	if (activity->count)
		qsort(activity->source, activity->count, sizeof(*activity->source), in_order);
	return activity;
}

static struct node_activity *activity_of(const struct node_cpus *cpus)
{
	struct node_activity *activity = calloc(1, sizeof(*activity));

	if (activity)
		activity->cpus = *cpus;
	return activity;
}

static int read_all_interrupts(struct node_activity *activity)
{
	return read_interrupts(activity, "/proc/interrupts", false) ||
	       read_interrupts(activity, "/proc/softirqs", true);
}

struct node_activity *node_activity_sample(const struct node_cpus *cpus)
{
	struct node_activity *activity = activity_of(cpus);

	return activity ? activity_sorted(activity, read_all_interrupts(activity) || read_threads(activity) ||
					  add_steal(activity)) : NULL;
}

struct node_activity *node_activity_interrupts(const struct node_cpus *cpus)
{
	struct node_activity *activity = activity_of(cpus);

	return activity ? activity_sorted(activity, read_all_interrupts(activity)) : NULL;
}

struct node_activity *node_activity_threads(void)
{
	struct node_activity *activity = calloc(1, sizeof(*activity));

	return activity ? activity_sorted(activity, read_threads(activity)) : NULL;
}

static const struct activity_source *find_source(const struct node_activity *in,
						 const struct activity_source *source)
{
	return in->count ? bsearch(source, in->source, in->count, sizeof(*source), in_order) : NULL;
}

void node_activity_ran(const struct node_activity *before, const struct node_activity *after,
		       void (*each)(const struct node_ran *ran, void *argument), void *argument)
{
	u32 i;

	for (i = 0; i < after->count; i++) {
		const struct activity_source *now = &after->source[i],
					     *was = find_source(before, now);
		const u64 ns = now->source.total - (was ? was->source.total : 0);
		const struct node_ran ran = { now->source.name, now->pid, now->source.number, now->cpu, ns,
					      now->source.times - (was ? was->source.times : 0) };

		if (now->source.cause == COLL_NOISE_THREAD && (int64_t)ns > 0)
			each(&ran, argument);
	}
}

void node_activity_came(const struct node_activity *before, const struct node_activity *after,
			void (*each)(const struct coll_noise_source *came, void *argument), void *argument)
{
	u32 i;

	for (i = 0; i < after->count; i++) {
		struct coll_noise_source came = after->source[i].source;
		const struct activity_source *was = find_source(before, &after->source[i]);

		came.times -= was ? was->source.times : 0;
		if (came.cause != COLL_NOISE_THREAD && (int64_t)came.times > 0)
			each(&came, argument);
	}
}

/*
 * The kernel counts interrupts in 32 bits, and tells only of CPUs that are online: of what has become less nothing
 * is known. So may a host's account of steal.
 */
static u64 count_grown(u64 now, u64 before)
{
	return now > before ? now - before : 0;
}

int node_activity_difference(const struct node_activity *before,
			     const struct node_activity *after, struct node_capture *capture)
{
	u32 i;

	for (i = 0; i < after->count; i++) {
		struct coll_noise_source source = after->source[i].source;
		const struct activity_source *was = find_source(before, &after->source[i]);

		if (was) {
			source.times = count_grown(source.times, was->source.times);
			source.total = count_grown(source.total, was->source.total);
		}
		if (after->source[i].here && (source.times || source.total) &&
		    node_capture_add_source(capture, &source))
			return -ENOMEM;
	}
	return 0;
}

void node_activity_free(struct node_activity *activity)
{
	if (activity)
		free(activity->source);
	free(activity);
}
