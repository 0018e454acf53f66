// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "act_moved.h"
#include "daemon/common/log.h"

enum { PATH_ROOM = 512 };

static void acts_folder(const char *state, char path[PATH_ROOM])
{
	snprintf(path, PATH_ROOM, "%s/acts", state);
}

static void moved_folder(const struct act_moved *moved, const char *state, char path[PATH_ROOM])
{
	snprintf(path, PATH_ROOM, "%s/acts/%u", state, moved->pid);
}

static int moved_plan(struct act_moved *moved, const struct node_cpus *to,
		      const struct node_tasks *tasks)
{
	char before[NODE_CPUS_TEXT], after[NODE_CPUS_TEXT];
	u32 i;

	node_cpus_list(to, after, sizeof(after));
	for (i = 0; i < tasks->count; i++) {
		const struct node_task *task = &tasks->task[i];
		struct node_pin pin = { .kind = NODE_PIN_TASK, .state = NODE_PIN_WANTED,
					.number = task->tid, .born = task->born };
		struct node_cpus elsewhere = task->may;

		node_cpus_remove(&elsewhere, to);
		if (task->pid != moved->pid || !node_cpus_count(&elsewhere))
			continue;
		snprintf(pin.name, sizeof(pin.name), "%s", moved->name);
		node_cpus_list(&task->may, before, sizeof(before));
		if (!node_pinning_add(&moved->pinning, &pin, before, after))
			return -ENOMEM;
	}
	return moved->pinning.count ? 0 : -ESRCH;
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
	char part[PATH_ROOM + 320];

	snprintf(part, sizeof(part), "%s/pin.state.part", path);
	unlink(part);
	node_pinning_forget(path);
	rmdir(path);
}

int act_moved_apply(struct act_moved *moved, const char *name, u32 pid, const char *state,
		    const struct node_cpus *to, const struct node_tasks *tasks)
{
	char path[PATH_ROOM];
	int error;

	*moved = (struct act_moved){ .pid = pid };
	snprintf(moved->name, sizeof(moved->name), "%s", name);
	acts_folder(state, path);
	if (mkdir(path, 0755) && errno != EEXIST)
		return -errno;
	moved_folder(moved, state, path);
	error = moved_plan(moved, to, tasks);
	if (!error) {
		error = node_pinning_save(&moved->pinning, path, false);
		if (error && error != -EEXIST)	/* else what is there is of another act */
			forget_folder(path);
	}
	if (error) {
		act_moved_free(moved);
		return error;
	}
	node_pinning_apply(&moved->pinning);
	if (node_pinning_count(&moved->pinning, NODE_PIN_MOVED))
		error = node_pinning_save(&moved->pinning, path, true);
	else
		error = first_error(&moved->pinning);
	if (error) {	/* also where it was moved, and that cannot be written down */
		act_moved_undo(moved, state);
		act_moved_free(moved);
	}
	return error;
}

/* Of each it is known what became of it: not where the tasks could not be read. */
static bool is_undone(const struct node_pinning *pinning)
{
	return !node_pinning_count(pinning, NODE_PIN_MOVED) &&
	       !node_pinning_count(pinning, NODE_PIN_WANTED);
}

bool act_moved_undo(struct act_moved *moved, const char *state)
{
	char path[PATH_ROOM];

	moved_folder(moved, state, path);
	node_pinning_undo(&moved->pinning);
	if (!is_undone(&moved->pinning))
		return false;
	forget_folder(path);
	return true;
}

const char *act_moved_text(const struct act_moved *moved)
{
	if (!is_undone(&moved->pinning))
		return "is not put back yet: its tasks cannot be read";
	if (node_pinning_count(&moved->pinning, NODE_PIN_CHANGED))
		return "was moved by others meanwhile, and left there";
	if (node_pinning_count(&moved->pinning, NODE_PIN_REFUSED))
		return "cannot be put back";
	return node_pinning_count(&moved->pinning, NODE_PIN_RESTORED) ? "was put back" : "had ended";
}

void act_moved_free(struct act_moved *moved)
{
	node_pinning_free(&moved->pinning);
}

static void recover_folder(const char *path)
{
	struct act_moved moved = { .pid = 0 };
	const int error = node_pinning_load(&moved.pinning, path);

	if (error) {
		colld_log(LOG_ERR, "act: %s/pin.state: %s; what it names stays where it is", path,
			  strerror(-error));
	} else {
		node_pinning_undo(&moved.pinning);
		colld_log(LOG_NOTICE, "act: %s, which an earlier colld had moved, %s",
			  moved.pinning.count ? moved.pinning.pin[0].name : "nothing",
			  act_moved_text(&moved));
		if (is_undone(&moved.pinning))
			forget_folder(path);
	}
	act_moved_free(&moved);
}

/* Each process that has a folder. */
static void each_folder(const char *state, void (*each)(const char *path))
{
	char path[PATH_ROOM], one[PATH_ROOM + 300];
	struct dirent *entry;
	DIR *folders;

	acts_folder(state, path);
	folders = opendir(path);
	while (folders && (entry = readdir(folders)))
		if (*entry->d_name != '.') {
			snprintf(one, sizeof(one), "%s/%s", path, entry->d_name);
			each(one);
		}
	if (folders)
		closedir(folders);
}

void act_moved_recover(const char *state)
{
	each_folder(state, recover_folder);
}

static void print_folder(const char *path)
{
	struct node_pinning pinning;
	u32 i;

	if (!node_pinning_load(&pinning, path))
		for (i = 0; i < pinning.count; i++)
			printf("moved for a job: %s (thread %u) to CPUs %s, from %s\n", pinning.pin[i].name,
			       pinning.pin[i].number, pinning.pin[i].after, pinning.pin[i].before);
	node_pinning_free(&pinning);
}

void act_moved_print(const char *state)
{
	each_folder(state, print_folder);
}
