// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pinning.h"

enum { TEXT = NOISE_CPUS_TEXT, ROUNDS = 5 };

static const char works[] = "/sys/devices/virtual/workqueue/cpumask";
static const char default_irq[] = "/proc/irq/default_smp_affinity";
static const char magic[] = "coll pin 1\n";

const char *noise_pin_state_name(enum noise_pin_state state)
{
	static const char *const names[NOISE_PIN_STATES] = {
		[NOISE_PIN_WANTED] = "to be moved", [NOISE_PIN_MOVED] = "moved",
		[NOISE_PIN_AWAY] = "away already",  [NOISE_PIN_KEPT] = "kept",
		[NOISE_PIN_PER_CPU] = "per CPU",    [NOISE_PIN_BOUND] = "bound on purpose",
		[NOISE_PIN_MANAGED] = "managed",    [NOISE_PIN_REFUSED] = "refused",
		[NOISE_PIN_GONE] = "gone",	    [NOISE_PIN_CHANGED] = "changed by others",
		[NOISE_PIN_RESTORED] = "restored",
	};

	return names[state];
}

/* ---- the list --------------------------------------------------------------------------- */

static struct noise_pin *pinning_add(struct noise_pinning *pinning, const struct noise_pin *pin,
				     const char *before, const char *after)
{
	struct noise_pin *to;

	if (pinning->count == pinning->room) {
		const u32 room = pinning->room ? 2 * pinning->room : 64;
		struct noise_pin *more = reallocarray(pinning->pin, room, sizeof(*more));

		if (!more)
			return NULL;
		pinning->pin = more;
		pinning->room = room;
	}
	to = &pinning->pin[pinning->count];
	*to = *pin;
	to->before = strdup(before);
	to->after = strdup(after);
	if (to->before && to->after) {
		pinning->count++;
		return to;
	}
	free(to->before);
	free(to->after);
	return NULL;
}

void noise_pinning_free(struct noise_pinning *pinning)
{
	u32 i;

	for (i = 0; i < pinning->count; i++) {
		free(pinning->pin[i].before);
		free(pinning->pin[i].after);
	}
	free(pinning->pin);
	*pinning = (struct noise_pinning){ .count = 0 };
}

u32 noise_pinning_count(const struct noise_pinning *pinning, enum noise_pin_state state)
{
	u32 i, count = 0;

	for (i = 0; i < pinning->count; i++)
		count += pinning->pin[i].state == state;
	return count;
}

/* ---- files of the kernel ------------------------------------------------------------------- */

/* Without its last line's end. */
static int read_file(const char *path, char text[TEXT])
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, TEXT - 1);
	const int error = errno;

	if (fd >= 0)
		close(fd);
	if (length < 0)
		return -error;
	if (length && text[length - 1] == '\n')
		length--;
	text[length] = 0;
	return 0;
}

static int write_file(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const ssize_t length = fd < 0 ? -1 : write(fd, text, strlen(text));
	const int error = errno;

	if (fd >= 0)
		close(fd);
	return length < 0 ? -error : 0;
}

static void file_of(const struct noise_pin *pin, char path[128])
{
	if (pin->kind == NOISE_PIN_IRQ)
		snprintf(path, 128, "/proc/irq/%u/smp_affinity", pin->number);
	else
		snprintf(path, 128, "%s", pin->name);
}

/* ---- what is, and is to be ------------------------------------------------------------------ */

/* Where it may be now, as the kernel says it. */
static int read_pin(const struct noise_pin *pin, char text[TEXT])
{
	struct noise_cpus cpus;
	char path[128];
	int status;

	if (pin->kind != NOISE_PIN_TASK) {
		file_of(pin, path);
		return read_file(path, text);
	}
	status = noise_cpus_affinity(pin->number, &cpus);
	if (!status)
		noise_cpus_list(&cpus, text, TEXT);
	return status;
}

static int write_pin(const struct noise_pin *pin, const char *text)
{
	struct noise_cpus cpus;
	char path[128];

	if (pin->kind != NOISE_PIN_TASK) {
		file_of(pin, path);
		return write_file(path, text);
	}
	return noise_cpus_read_list(&cpus, text) ? noise_cpus_set_affinity(pin->number, &cpus) :
						   -EINVAL;
}

/* Whether the number still is that task's. */
static bool is_the_same(const struct noise_pin *pin, const struct noise_tasks *tasks)
{
	const struct noise_task *task = noise_tasks_find(tasks, pin->number);

	return pin->kind != NOISE_PIN_TASK || (task && task->born == pin->born);
}

/* ---- planning: tasks ---------------------------------------------------------------------------
 */

/* A task that may not run everywhere was told so. One that was never told may. */
static bool is_bound_there(const struct noise_task *task, const struct noise_rules *rules)
{
	struct noise_cpus elsewhere = task->may;

	noise_cpus_remove(&elsewhere, &rules->application);
	return !noise_cpus_count(&elsewhere);
}

static bool pinning_touches(const struct noise_cpus *may, const struct noise_cpus *cpus)
{
	struct noise_cpus both = *may;

	noise_cpus_keep(&both, cpus);
	return noise_cpus_count(&both) > 0;
}

static enum noise_pin_state judge_task(const struct noise_task *task,
				       const struct noise_rules *rules,
				       const struct noise_rule *rule, const struct noise_task *self,
				       const struct noise_tasks *tasks)
{
	if (!pinning_touches(&task->may, &rules->application))
		return NOISE_PIN_AWAY;
	if (rule->keep || (self && noise_tasks_below(tasks, self, task->pid)))
		return NOISE_PIN_KEPT;
	if (task->bound)
		return NOISE_PIN_PER_CPU;
	if (is_bound_there(task, rules))
		return NOISE_PIN_BOUND;
	return NOISE_PIN_WANTED;
}

static int plan_task(struct noise_pinning *pinning, const struct noise_rules *rules,
		     const struct noise_task *task, const struct noise_task *self,
		     const struct noise_tasks *tasks)
{
	const struct noise_rule *rule = noise_rules_task(rules, task, tasks);
	struct noise_pin pin = { .kind = NOISE_PIN_TASK, .number = task->tid, .born = task->born };
	char before[TEXT], after[TEXT];

	if (!rule)
		return 0;
	pin.state = judge_task(task, rules, rule, self, tasks);
	snprintf(pin.name, sizeof(pin.name), "%s", task->comm);
	noise_cpus_list(&task->may, before, sizeof(before));
	noise_cpus_list(rule->to ? rule->to : &rules->housekeeping, after, sizeof(after));
	return pinning_add(pinning, &pin, before, after) ? 0 : -ENOMEM;
}

static int plan_tasks(struct noise_pinning *pinning, const struct noise_rules *rules)
{
	struct noise_tasks tasks;
	const struct noise_task *self;
	int status = noise_tasks_look(&tasks);
	u32 i;

	self = noise_tasks_find(&tasks, getpid());
	for (i = 0; !status && i < tasks.count; i++)
		status = plan_task(pinning, rules, &tasks.task[i], self, &tasks);
	noise_tasks_free(&tasks);
	return status;
}

/* ---- planning: interrupts and work -------------------------------------------------------------
 */

/* What its handlers are called: folders beside its affinity. */
static void name_interrupt(u32 number, char *name, size_t room)
{
	struct dirent *entry;
	char path[64];
	DIR *list;

	*name = 0;
	snprintf(path, sizeof(path), "/proc/irq/%u", number);
	list = opendir(path);
	while (list && (entry = readdir(list)))
		if (entry->d_type == DT_DIR && *entry->d_name != '.')
			snprintf(name, room, "%.60s", entry->d_name);
	if (list)
		closedir(list);
}

/* A file with a mask that is not to touch the application's CPUs. */
static int plan_mask(struct noise_pinning *pinning, struct noise_pin *pin,
		     const struct noise_rules *rules, const struct noise_cpus *to)
{
	char before[TEXT], after[TEXT];
	struct noise_cpus may;

	if (read_pin(pin, before) || !noise_cpus_read_mask(&may, before))
		return 0;	/* gone, or nothing to be moved */
	noise_cpus_mask(to, after, sizeof(after));
	if (!pinning_touches(&may, &rules->application))
		pin->state = NOISE_PIN_AWAY;
	return pinning_add(pinning, pin, before, after) ? 0 : -ENOMEM;
}

static int plan_interrupt(struct noise_pinning *pinning, const struct noise_rules *rules,
			  u32 number)
{
	struct noise_pin pin = { .kind = NOISE_PIN_IRQ, .number = number };
	const struct noise_rule *rule;

	name_interrupt(number, pin.name, sizeof(pin.name));
	rule = noise_rules_irq(rules, number, pin.name);
	if (!rule)
		return 0;
	pin.state = rule->keep ? NOISE_PIN_KEPT : NOISE_PIN_WANTED;
	return plan_mask(pinning, &pin, rules, rule->to ? rule->to : &rules->housekeeping);
}

static int plan_interrupts(struct noise_pinning *pinning, const struct noise_rules *rules)
{
	DIR *list = opendir("/proc/irq");
	struct dirent *entry;
	int status = 0;

	while (!status && list && (entry = readdir(list)))
		if (isdigit((unsigned char)*entry->d_name))
			status = plan_interrupt(pinning, rules, strtoul(entry->d_name, NULL, 10));
	if (list)
		closedir(list);
	return status;
}

static int plan_file(struct noise_pinning *pinning, const struct noise_rules *rules,
		     const char *path)
{
	struct noise_pin pin = { .kind = NOISE_PIN_FILE };

	snprintf(pin.name, sizeof(pin.name), "%s", path);
	return plan_mask(pinning, &pin, rules, &rules->housekeeping);
}

int noise_pinning_plan(struct noise_pinning *pinning, const struct noise_rules *rules)
{
	const struct noise_rule *all = noise_rules_irq(rules, UINT32_MAX, "");
	int status;

	*pinning = (struct noise_pinning){ .count = 0 };
	/* Whatever comes new, where a rule is for all interrupts. */
	status = all && !all->keep ? plan_file(pinning, rules, default_irq) : 0;
	if (!status)
		status = plan_interrupts(pinning, rules);
	if (!status && rules->workqueues)
		status = plan_file(pinning, rules, works);
	if (!status)
		status = plan_tasks(pinning, rules);
	return status;
}

/* ---- doing and undoing ------------------------------------------------------------------ */

/* Why the kernel does not want it there. */
static void pinning_refused(struct noise_pin *pin, int error)
{
	pin->error = -error;
	if (error == -ESRCH || error == -ENOENT)
		pin->state = NOISE_PIN_GONE;
	else if (pin->kind == NOISE_PIN_IRQ && error == -EIO)
		pin->state = NOISE_PIN_MANAGED;
	else
		pin->state = NOISE_PIN_REFUSED;
}

static void pinning_apply(struct noise_pin *pin)
{
	char now[TEXT];
	int status;

	if (pin->state != NOISE_PIN_WANTED)
		return;
	status = write_pin(pin, pin->after);
	if (status)
		pinning_refused(pin, status);
	else
		pin->state = NOISE_PIN_MOVED;
	/* A cpuset may have cut it: what is there now is what undoing will look for. */
	if (!status && !read_pin(pin, now) && strcmp(now, pin->after)) {
		char *cut = strdup(now);

		if (cut) {
			free(pin->after);
			pin->after = cut;
		}
	}
}

void noise_pinning_apply(struct noise_pinning *pinning)
{
	u32 i;

	for (i = 0; i < pinning->count; i++)
		pinning_apply(&pinning->pin[i]);
}

/* Masks differ in zeros and commas only. */
static bool says_the_same(const struct noise_pin *pin, const char *a, const char *b)
{
	struct noise_cpus x, y;

	if (!strcmp(a, b))
		return true;
	return pin->kind != NOISE_PIN_TASK && noise_cpus_read_mask(&x, a) &&
	       noise_cpus_read_mask(&y, b) && noise_cpus_same(&x, &y);
}

static void pinning_undo(struct noise_pin *pin, const struct noise_tasks *tasks)
{
	char now[TEXT];
	int status;

	if (!is_the_same(pin, tasks) || read_pin(pin, now)) {
		pin->state = NOISE_PIN_GONE;
		return;
	}
	if (!strcmp(now, pin->before)) {
		pin->state = NOISE_PIN_RESTORED;
		return;
	}
	if (!says_the_same(pin, now, pin->after)) {
		pin->state = NOISE_PIN_CHANGED;
		return;
	}
	status = write_pin(pin, pin->before);
	if (status)
		pinning_refused(pin, status);
	else
		pin->state = !read_pin(pin, now) && !strcmp(now, pin->before) ?
				     NOISE_PIN_RESTORED : NOISE_PIN_CHANGED;
}

static const struct noise_pin *find_task(const struct noise_pinning *pinning, u32 tid)
{
	u32 i;

	for (i = 0; i < pinning->count; i++)
		if (pinning->pin[i].kind == NOISE_PIN_TASK && pinning->pin[i].number == tid)
			return &pinning->pin[i];
	return NULL;
}

/* Who was moved, and started this one, or its parents. */
static const struct noise_pin *moved_ancestor(const struct noise_pinning *pinning,
					      const struct noise_task *task,
					      const struct noise_tasks *tasks)
{
	u32 steps;

	for (steps = 0; task && steps < 1000; steps++) {
		const struct noise_pin *pin = find_task(pinning, task->pid);

		if (pin)
			return pin;
		task = task->parent ? noise_tasks_find(tasks, task->parent) : NULL;
	}
	return NULL;
}

/* Threads and processes that began while it was in force have their parents' CPUs. */
static int find_heirs(struct noise_pinning *pinning, const struct noise_tasks *tasks)
{
	const u32 known = pinning->count;
	struct noise_pinning old = { .pin = pinning->pin, .count = known };
	u32 i;

	for (i = 0; i < tasks->count; i++) {
		const struct noise_task *task = &tasks->task[i];
		struct noise_pin heir = { .kind = NOISE_PIN_TASK, .number = task->tid,
					  .born = task->born };
		const struct noise_pin *from;
		char now[TEXT];

		old.pin = pinning->pin;
		if (find_task(&old, task->tid))
			continue;
		from = moved_ancestor(&old, task, tasks);
		noise_cpus_list(&task->may, now, sizeof(now));
		if (!from || strcmp(now, from->after))
			continue;
		snprintf(heir.name, sizeof(heir.name), "%s", task->comm);
		if (!pinning_add(pinning, &heir, from->before, from->after))
			return -ENOMEM;
	}
	return 0;
}

void noise_pinning_undo(struct noise_pinning *pinning)
{
	struct noise_tasks tasks;
	u32 i, round, last;

	/* Again while tasks are born of those that were not yet moved back. */
	for (round = 0, last = 0; round < ROUNDS; round++) {
		if (noise_tasks_look(&tasks))
			break;
		find_heirs(pinning, &tasks);
		for (i = last; i < pinning->count; i++)
			pinning_undo(&pinning->pin[i], &tasks);
		noise_tasks_free(&tasks);
		if (last == pinning->count)
			break;
		last = pinning->count;
	}
}

/* What is no longer as it was left. */
static void notice_changes(struct noise_pinning *pinning)
{
	char now[TEXT];
	u32 i;

	for (i = 0; i < pinning->count; i++) {
		struct noise_pin *pin = &pinning->pin[i];

		if (pin->state == NOISE_PIN_MOVED && !read_pin(pin, now) &&
		    !says_the_same(pin, now, pin->after))
			pin->state = NOISE_PIN_CHANGED;
	}
}

static struct noise_pin *find_same(struct noise_pinning *pinning, const struct noise_pin *like)
{
	u32 i;

	for (i = 0; i < pinning->count; i++) {
		struct noise_pin *pin = &pinning->pin[i];

		if (pin->kind == like->kind && pin->number == like->number &&
		    pin->born == like->born &&
		    (pin->kind != NOISE_PIN_FILE || !strcmp(pin->name, like->name)))
			return pin;
	}
	return NULL;
}

static void forget_gone(struct noise_pinning *pinning, const struct noise_tasks *tasks)
{
	u32 i, kept = 0;

	for (i = 0; i < pinning->count; i++) {
		if (is_the_same(&pinning->pin[i], tasks)) {
			pinning->pin[kept++] = pinning->pin[i];
			continue;
		}
		free(pinning->pin[i].before);
		free(pinning->pin[i].after);
	}
	pinning->count = kept;
}

int noise_pinning_renew(struct noise_pinning *pinning, const struct noise_rules *rules)
{
	struct noise_pinning now;
	struct noise_tasks tasks;
	int status = noise_tasks_look(&tasks), wanted = 0;
	u32 i;

	if (status)
		return status;
	forget_gone(pinning, &tasks);
	noise_tasks_free(&tasks);
	notice_changes(pinning);
	status = noise_pinning_plan(&now, rules);
	for (i = 0; !status && i < now.count; i++) {
		if (now.pin[i].state != NOISE_PIN_WANTED || find_same(pinning, &now.pin[i]))
			continue;
		wanted++;
		if (!pinning_add(pinning, &now.pin[i], now.pin[i].before, now.pin[i].after))
			status = -ENOMEM;
	}
	noise_pinning_free(&now);
	return status ? status : wanted;
}

/* ---- the file --------------------------------------------------------------------------- */

static void path_of(const char *directory, const char *name, char path[4096])
{
	snprintf(path, 4096, "%s/%s", directory, name);
}

static void print_pin(const struct noise_pin *pin, FILE *to)
{
	static const char *const kinds[] = { "task", "irq", "file" };

	if (pin->state != NOISE_PIN_WANTED && pin->state != NOISE_PIN_MOVED)
		return;
	fprintf(to, "%s %u %llu %s %s %s\n", kinds[pin->kind], pin->number,
		(unsigned long long)pin->born, pin->before, pin->after, pin->name);
}

int noise_pinning_save(const struct noise_pinning *pinning, const char *directory, bool anew)
{
	char path[4096], part[4096];
	FILE *to;
	bool good;
	u32 i;

	path_of(directory, "pin.state", path);
	path_of(directory, "pin.state.part", part);
	if (!mkdir(directory, 0755))
		chmod(directory, 0755);
	if (!anew && !access(path, F_OK))
		return -EEXIST;
	to = fopen(part, "we");
	if (!to)
		return -errno;
	fputs(magic, to);
	for (i = 0; i < pinning->count; i++)
		print_pin(&pinning->pin[i], to);
	good = !fflush(to) && !fsync(fileno(to));
	if (fclose(to) || !good || rename(part, path))
		return errno ? -errno : -EIO;
	return 0;
}

static int parse_pin(struct noise_pinning *pinning, const char *line)
{
	struct noise_pin pin = { .state = NOISE_PIN_MOVED };
	char kind[8], *before = malloc(TEXT), *after = malloc(TEXT);
	unsigned long long born;
	int name = 0, status = -EINVAL;

	if (before && after && strlen(line) < TEXT &&
	    sscanf(line, "%7s %u %llu %s %s %n", kind, &pin.number, &born, before, after, &name) ==
		    5 && name) {
		pin.kind = !strcmp(kind, "task") ? NOISE_PIN_TASK :
			   !strcmp(kind, "irq") ? NOISE_PIN_IRQ : NOISE_PIN_FILE;
		pin.born = born;
		snprintf(pin.name, sizeof(pin.name), "%.*s", (int)strcspn(line + name, "\n"),
			 line + name);
		/* The only files that this ever writes to. */
		if (pin.kind != NOISE_PIN_FILE || !strcmp(pin.name, works) ||
		    !strcmp(pin.name, default_irq))
			status = pinning_add(pinning, &pin, before, after) ? 0 : -ENOMEM;
	}
	free(before);
	free(after);
	return status;
}

int noise_pinning_load(struct noise_pinning *pinning, const char *directory)
{
	char path[4096], *line = NULL;
	size_t room = 0;
	FILE *from;
	int status = 0;

	*pinning = (struct noise_pinning){ .count = 0 };
	path_of(directory, "pin.state", path);
	from = fopen(path, "re");
	if (!from)
		return -errno;
	if (getline(&line, &room, from) < 0 || strcmp(line, magic))
		status = -EINVAL;
	while (!status && getline(&line, &room, from) > 0)
		status = parse_pin(pinning, line);
	free(line);
	fclose(from);
	return status;
}

int noise_pinning_forget(const char *directory)
{
	char path[4096];

	path_of(directory, "pin.state", path);
	return unlink(path) ? -errno : 0;
}
