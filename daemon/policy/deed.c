// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "deed.h"
#include "family.h"
#include "node/priority.h"

enum { PATH_ROOM = 512, LOCK_MS = 10000 };

static void acts_folder(const char *state, char path[PATH_ROOM])
{
	snprintf(path, PATH_ROOM, "%s/acts", state);
}

static void deed_folder(const struct act_deed *deed, const char *state, char path[PATH_ROOM])
{
	snprintf(path, PATH_ROOM, "%s/acts/%u", state, deed->pid);
}

/* ---- what is to be done ------------------------------------------------------ */

/*
 * With before and after alike nothing is done. It says that the task was so before: what a child has
 * inherited later looks the same.
 */
static int plan_add(struct act_deed *deed, enum node_pin_kind kind, const struct node_task *task,
		    const char *before, const char *after)
{
	struct node_pin pin = {
		.kind = kind, .number = task->tid, .born = task->born,
		.state = strcmp(before, after) ? NODE_PIN_WANTED : NODE_PIN_MOVED,
	};

	snprintf(pin.name, sizeof(pin.name), "%s", deed->name);
	return node_pinning_add(&deed->pinning, &pin, before, after) ? 0 : -ENOMEM;
}

static int plan_thread_move(struct act_deed *deed, const struct node_task *task, const char *after,
			    const struct node_cpus *to)
{
	struct node_cpus elsewhere = task->may;
	char before[NODE_CPUS_TEXT];

	node_cpus_remove(&elsewhere, to);
	node_cpus_list(&task->may, before, sizeof(before));
	return plan_add(deed, NODE_PIN_TASK, task, before, node_cpus_count(&elsewhere) ? after : before);
}

static int plan_thread_hold(struct act_deed *deed, const struct node_task *task)
{
	char now[NODE_PRIORITY_TEXT];

	if (node_policy_read(task->tid, now))
		return 0;
	return plan_add(deed, NODE_PIN_POLICY, task, now, node_policy_yields(now) ? node_policy_idle : now);
}

/* One that the process has started before, and that is by its own what that is to become. */
static int plan_child(struct act_deed *deed, const struct node_task *task, const struct act_wish *wish,
		      const char *after)
{
	const enum node_pin_kind kind = wish->form == ACT_FORM_MOVE ? NODE_PIN_TASK : NODE_PIN_POLICY;
	const struct node_pin child = { .kind = kind, .number = task->tid };
	char now[NODE_CPUS_TEXT];

	if (!node_tasks_below(wish->tasks, task, deed->pid) || node_pin_read(&child, now) ||
	    strcmp(now, after))
		return 0;
	return plan_add(deed, kind, task, now, now);
}

static int plan_tasks(struct act_deed *deed, const struct act_wish *wish)
{
	char after[NODE_CPUS_TEXT];
	int status = 0;
	u32 i;

	if (wish->form == ACT_FORM_MOVE)
		node_cpus_list(wish->to, after, sizeof(after));
	else
		strcpy(after, node_policy_idle);
	for (i = 0; !status && i < wish->tasks->count; i++) {
		const struct node_task *task = &wish->tasks->task[i];

		if (task->pid != deed->pid)
			status = plan_child(deed, task, wish, after);
		else if (wish->form == ACT_FORM_MOVE)
			status = plan_thread_move(deed, task, after, wish->to);
		else
			status = plan_thread_hold(deed, task);
	}
	return status;
}

/* Its weight is that of all of the session: of no other processes than it and those that it has started. */
static bool has_session(u32 pid, const struct node_tasks *tasks)
{
	const pid_t session = getsid(pid);
	u32 i;

	for (i = 0; i < tasks->count; i++) {
		const struct node_task *task = &tasks->task[i];

		if (task->tid == task->pid && getsid(task->pid) == session &&
		    !node_tasks_below(tasks, task, pid))
			return false;
	}
	return session > 0;
}

static int plan_session(struct act_deed *deed, const struct act_wish *wish)
{
	char now[NODE_PRIORITY_TEXT];

	if (!node_session_may_write() || !node_pinning_count(&deed->pinning, NODE_PIN_WANTED) ||
	    !has_session(deed->pid, wish->tasks) || node_session_read(deed->pid, now))
		return 0;
	return plan_add(deed, NODE_PIN_SESSION, wish->process, now, node_session_least);
}

static int plan_freeze(struct act_deed *deed, const struct act_wish *wish)
{
	struct node_pin pin = { .kind = NODE_PIN_FREEZER, .state = NODE_PIN_WANTED, .number = deed->pid };
	char now[NODE_CPUS_TEXT];
	int error;

	snprintf(pin.name, sizeof(pin.name), "%s", wish->cgroup);
	error = node_pin_read(&pin, now);
	if (error)
		return error;
	if (strcmp(now, "0"))
		return -EALREADY;
	return node_pinning_add(&deed->pinning, &pin, now, "1") ? 0 : -ENOMEM;
}

static int deed_plan(struct act_deed *deed, const struct act_wish *wish)
{
	int error = wish->form == ACT_FORM_FREEZE ? plan_freeze(deed, wish) : plan_tasks(deed, wish);

	if (!error && wish->form == ACT_FORM_HOLD)
		error = plan_session(deed, wish);
	if (error)
		return error;
	if (!deed->pinning.count)
		return -ESRCH;
	return node_pinning_count(&deed->pinning, NODE_PIN_WANTED) ? 0 : -EALREADY;
}

/* What was to be done, and may still be in force or come: nobody else has changed it. */
static bool pin_is_open(const struct node_pin *pin)
{
	return (pin->state == NODE_PIN_MOVED || pin->state == NODE_PIN_WANTED) &&
	       strcmp(pin->before, pin->after);
}

/* ---- done -------------------------------------------------------------------- */

/* Of what was to be done: what is only noted does not count. */
static u32 deed_count(const struct act_deed *deed, enum node_pin_state state)
{
	u32 i, count = 0;

	for (i = 0; i < deed->pinning.count; i++) {
		const struct node_pin *pin = &deed->pinning.pin[i];

		count += pin->state == state && strcmp(pin->before, pin->after);
	}
	return count;
}

static int first_error(const struct node_pinning *pinning)
{
	u32 i;

	for (i = 0; i < pinning->count; i++)
		if (pinning->pin[i].state == NODE_PIN_REFUSED)
			return -pinning->pin[i].error;
	return -ESRCH;
}

static void forget_folder(const char *path)
{
	node_pinning_forget(path);
	rmdir(path);
}

static int deed_prepare(struct act_deed *deed, const struct act_wish *wish, const char *state)
{
	char path[PATH_ROOM];
	int error;

	acts_folder(state, path);
	if (mkdir(path, 0755) && errno != EEXIST)
		return -errno;
	error = deed_plan(deed, wish);
	if (error)
		return error;
	deed_folder(deed, state, path);
	error = node_pinning_save(&deed->pinning, path, false);
	if (error && error != -EEXIST)	/* else what is there is of another act */
		forget_folder(path);
	return error;
}

static int deed_save(const struct act_deed *deed, const char *state)
{
	char path[PATH_ROOM];

	deed_folder(deed, state, path);
	return node_pinning_save(&deed->pinning, path, true);
}

int act_deed_do(struct act_deed *deed, const struct act_wish *wish, const char *state)
{
	struct act_deed *const all[] = { deed };
	int error;

	*deed = (struct act_deed){
		.pid = wish->process->pid, .born = wish->process->born, .form = wish->form };
	snprintf(deed->name, sizeof(deed->name), "%s", wish->name);
	error = deed_prepare(deed, wish, state);
	if (error) {
		act_deed_free(deed);
		return error;
	}
	node_pinning_apply(&deed->pinning);
	error = deed_count(deed, NODE_PIN_MOVED) ? deed_save(deed, state) : first_error(&deed->pinning);
	if (error) {	/* also where it was done, and that cannot be written down */
		act_deeds_undo(all, 1, state);
		act_deed_free(deed);
	}
	return error;
}

bool act_deed_weighs(const struct act_deed *deed)
{
	u32 i;

	for (i = 0; i < deed->pinning.count; i++)
		if (deed->pinning.pin[i].kind == NODE_PIN_SESSION)
			return true;
	return false;
}

/* ---- let go, and held back again ---------------------------------------------- */

static struct node_pin *deed_find_policy(const struct act_deed *deed, const struct node_task *task)
{
	const struct node_pin like = { .kind = NODE_PIN_POLICY, .number = task->tid, .born = task->born };

	return node_pinning_find(&deed->pinning, &like);
}

/*
 * Threads of the process that it did not have before, and of what it has started what has inherited its
 * policy. 0 or -ENOMEM.
 */
static int deed_add_threads(struct act_deed *deed, const struct node_tasks *family)
{
	int error = node_pinning_find_heirs(&deed->pinning, family) < 0 ? -ENOMEM : 0;
	u32 i;

	for (i = 0; !error && i < family->count; i++) {
		const struct node_task *task = &family->task[i];

		if (task->pid == deed->pid && !deed_find_policy(deed, task))
			error = plan_thread_hold(deed, task);
	}
	return error;
}

/* Let go for good: who was root's, and is a user's now, too. Returns how many. */
static u32 deed_spare(struct act_deed *deed, const struct node_tasks *family, const u32 *rank, u32 ranks)
{
	u32 i, spared = 0;

	for (i = 0; i < family->count; i++) {
		const struct node_task *task = &family->task[i];
		struct node_pin *pin = deed_find_policy(deed, task);

		if (!pin || !pin_is_open(pin) || !colld_family_spares(task, rank, ranks))
			continue;
		node_pin_undo(pin);
		if (pin->state == NODE_PIN_REFUSED)	/* it is tried again */
			pin->state = NODE_PIN_MOVED;
		spared++;
	}
	return spared;
}

/* It has ended, and nothing is to be done or undone any more. */
static bool is_over(const struct node_pin *pin, const void *data)
{
	(void)data;
	if (!node_pin_is_of_task(pin->kind) || pin_is_open(pin))
		return false;
	return pin->state == NODE_PIN_GONE || !node_task_is(pin->number, pin->born);
}

/* What it has begun since, and what has ended. 0 or -errno: not all of that is known. */
static int deed_renew(struct act_deed *deed, const u32 *rank, u32 ranks)
{
	const struct node_task *process;
	struct node_tasks family;
	u32 count;
	int error;

	if (deed->form != ACT_FORM_HOLD)
		return 0;
	node_pinning_drop(&deed->pinning, is_over, NULL);
	count = deed->pinning.count;
	error = colld_family_look(&family, deed->pid);
	deed->large = error == -E2BIG;
	process = node_tasks_find(&family, deed->pid);
	if (!error && process && process->born == deed->born) {
		error = deed_add_threads(deed, &family);
		deed->unsaved |= deed_spare(deed, &family, rank, ranks) || deed->pinning.count != count;
	}
	node_tasks_free(&family);
	return error;
}

/*
 * One that is idle later by its own choice is not to be undone by the next colld. false: the file does not
 * say all; that is tried again with the next call.
 */
static bool deed_note(struct act_deed *deed, const char *state, u32 *changed)
{
	const u32 now = node_pinning_count(&deed->pinning, NODE_PIN_CHANGED);

	deed->unsaved |= now != *changed;
	*changed = now;
	if (deed->unsaved)
		deed->unsaved = deed_save(deed, state) != 0;
	return !deed->unsaved;
}

bool act_deed_set(struct act_deed *deed, const char *state, bool held, const u32 *rank, u32 ranks)
{
	bool done = !deed_renew(deed, rank, ranks);
	u32 changed = node_pinning_count(&deed->pinning, NODE_PIN_CHANGED);

	if (!held)	/* first: also what cannot be written down is let go */
		done &= node_pinning_lift(&deed->pinning);
	done &= deed_note(deed, state, &changed);
	if (!held || !done)	/* what is not written down is not held back */
		return done;
	node_pinning_apply(&deed->pinning);
	done = deed_note(deed, state, &changed);
	return done && !deed_count(deed, NODE_PIN_WANTED);
}

/* The weight of its session alone is nothing: it was written for the sake of its threads. */
bool act_deed_is_empty(const struct act_deed *deed)
{
	u32 i;

	for (i = 0; i < deed->pinning.count; i++) {
		const struct node_pin *pin = &deed->pinning.pin[i];

		if (pin->kind != NODE_PIN_SESSION && pin_is_open(pin))
			return false;
	}
	return true;
}

/* ---- undone ------------------------------------------------------------------ */

bool act_deed_is_undone(const struct act_deed *deed)
{
	return node_pinning_is_undone(&deed->pinning);
}

static void deeds_undo(struct act_deed *const *deed, u32 count)
{
	struct node_pinning **pinning = calloc(count + 1, sizeof(*pinning));
	u32 i;

	/* Without memory by a look for each. */
	for (i = 0; i < count; i++)
		if (pinning)
			pinning[i] = &deed[i]->pinning;
		else
			node_pinning_undo(&deed[i]->pinning);
	if (pinning)
		node_pinnings_undo(pinning, count);
	free(pinning);
}

void act_deeds_undo(struct act_deed *const *deed, u32 count, const char *state)
{
	char path[PATH_ROOM];
	u32 i;

	deeds_undo(deed, count);
	for (i = 0; i < count; i++) {
		deed_folder(deed[i], state, path);
		if (act_deed_is_undone(deed[i]))
			forget_folder(path);
	}
}

static bool deed_is_cut(const struct act_deed *deed)
{
	u32 i;

	for (i = 0; i < deed->pinning.count; i++)
		if (deed->pinning.pin[i].state == NODE_PIN_RESTORED && deed->pinning.pin[i].cut)
			return true;
	return false;
}

const char *act_deed_text(const struct act_deed *deed)
{
	if (deed_count(deed, NODE_PIN_REFUSED))
		return "is not put back yet: the kernel refuses that";
	if (!act_deed_is_undone(deed))
		return "is not put back yet: its tasks cannot be read";
	if (deed_count(deed, NODE_PIN_CHANGED))
		return deed->form == ACT_FORM_MOVE ? "was moved by others meanwhile, and left there" :
						     "was changed by others meanwhile, and left so";
	if (deed_is_cut(deed))
		return "was put back to those of its CPUs that it may use now, or to all of these";
	return deed_count(deed, NODE_PIN_RESTORED) ? "was put back" : "had ended";
}

void act_deed_free(struct act_deed *deed)
{
	node_pinning_free(&deed->pinning);
}

/* ---- what is there of another colld ---------------------------------------------- */

void act_deed_each(const char *state, void (*each)(struct act_deed *deed, void *argument), void *argument)
{
	char path[PATH_ROOM];
	struct dirent *entry;
	DIR *folders;

	acts_folder(state, path);
	folders = opendir(path);
	while (folders && (entry = readdir(folders))) {
		struct act_deed deed = { .pid = strtoul(entry->d_name, NULL, 10) };

		if (deed.pid)
			each(&deed, argument);
	}
	if (folders)
		closedir(folders);
}

static enum act_form form_of(enum node_pin_kind kind)
{
	return kind == NODE_PIN_TASK	? ACT_FORM_MOVE :
	       kind == NODE_PIN_FREEZER ? ACT_FORM_FREEZE :
					  ACT_FORM_HOLD;
}

int act_deed_load(struct act_deed *deed, const char *state)
{
	char path[PATH_ROOM];
	int error;

	deed_folder(deed, state, path);
	error = node_pinning_load(&deed->pinning, path);
	if (!error && deed->pinning.count) {
		deed->form = form_of(deed->pinning.pin[0].kind);
		snprintf(deed->name, sizeof(deed->name), "%s", deed->pinning.pin[0].name);
	}
	return error;
}

/* Those of a folder, to be undone at once. */
struct deed_list {
	const char *state;
	bool (*in_force)(const void *data, u32 pid);
	const void *data;
	struct act_deed **deed;
	u32 count;
	bool left;		/* what cannot be read */
};

/* One that has no file was not begun: it is written first. */
static void list_pass(struct deed_list *list, const struct act_deed *found, int error)
{
	char path[PATH_ROOM];

	deed_folder(found, list->state, path);
	if (error == -ENOENT) {
		forget_folder(path);
		return;
	}
	list->left = true;
	if (!list->in_force)
		colld_log(LOG_ERR, "act: %s/pin.state: %s; what it names stays as it is", path,
			  strerror(-error));
}

static void list_add(struct act_deed *found, void *argument)
{
	struct deed_list *list = argument;
	struct act_deed *deed, **more;
	int error = -ENOMEM;

	if (list->in_force && list->in_force(list->data, found->pid))
		return;
	deed = malloc(sizeof(*deed));
	more = reallocarray(list->deed, list->count + 1, sizeof(*more));
	if (more)
		list->deed = more;
	if (more && deed) {
		*deed = *found;
		error = act_deed_load(deed, list->state);
	}
	if (!error) {
		list->deed[list->count++] = deed;
		return;
	}
	list_pass(list, found, error);
	if (deed && more)
		act_deed_free(deed);
	free(deed);
}

static void recover_log(const struct deed_list *list, const struct act_deed *deed)
{
	if (!list->in_force || act_deed_is_undone(deed))
		colld_log(LOG_NOTICE, "act: %s, which %s had %s, %s",
			  deed->pinning.count ? deed->name : "nothing",
			  list->in_force ? "colld" : "an earlier colld",
			  deed->form == ACT_FORM_MOVE ? "moved" : "held back", act_deed_text(deed));
}

bool act_deed_recover(const char *state, bool (*in_force)(const void *data, u32 pid), const void *data)
{
	struct deed_list list = { .state = state, .in_force = in_force, .data = data };
	u32 i;

	act_deed_each(state, list_add, &list);
	if (list.count)
		act_deeds_undo(list.deed, list.count, state);
	for (i = 0; i < list.count; i++) {
		recover_log(&list, list.deed[i]);
		list.left |= !act_deed_is_undone(list.deed[i]);
		act_deed_free(list.deed[i]);
		free(list.deed[i]);
	}
	free(list.deed);
	return !list.left;
}

bool act_deeds_exist(const char *state)
{
	char path[PATH_ROOM];

	acts_folder(state, path);
	return !access(path, F_OK);
}

int act_deed_lock(const char *state)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	const struct timespec glance = { 0, 20000000 };
	char path[PATH_ROOM];
	int fd, ms;

	if (mkdir(state, 0755) && errno != EEXIST)
		return -1;
	snprintf(path, sizeof(path), "%s/acts.lock", state);
	/* Nobody else may open it: who can, can hold it. Children do not have it, and need it. */
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	for (ms = 0; fd >= 0 && fcntl(fd, F_SETLK, &lock); ms += 20) {
		if (ms >= LOCK_MS) {
			close(fd);
			return -1;
		}
		nanosleep(&glance, NULL);
	}
	return fd;
}
