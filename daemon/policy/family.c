// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "family.h"
#include "judge.h"
#include "node/small_file.h"

enum { CHILDREN_TEXT = 9 * COLLD_FAMILY_MOST };	/* more than that has more children: numbers have 7 digits */

const char colld_family_large[] = "it has more than 1000 threads, with what it has started";

static int add_process(struct node_tasks *family, u32 pid)
{
	const int error = node_tasks_add_process(family, pid);

	return !error && family->count > COLLD_FAMILY_MOST ? -E2BIG : error;
}

/* The processes that a thread has started, with their threads. It may have ended. */
static int add_children(struct node_tasks *family, u32 tid)
{
	char path[64], text[CHILDREN_TEXT], *save, *word;
	int status = 0;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/children", tid, tid);
	if (!node_read_small(path, text, sizeof(text)))
		return 0;
	if (strlen(text) == sizeof(text) - 1)
		return -E2BIG;
	for (word = strtok_r(text, " ", &save); !status && word; word = strtok_r(NULL, " ", &save))
		status = add_process(family, strtoul(word, NULL, 10));
	return status;
}

/* Generation by generation, as they are added. */
static int add_generations(struct node_tasks *family, u32 pid)
{
	int status = add_process(family, pid);
	u32 i;

	for (i = 0; !status && i < family->count; i++)
		status = add_children(family, family->task[i].tid);
	return status;
}

/* By a look at all tasks, which costs more. */
static int add_of_all(struct node_tasks *family, u32 pid)
{
	struct node_tasks all;
	int status = node_tasks_look(&all);
	u32 i;

	for (i = 0; !status && i < all.count; i++) {
		if (!node_tasks_below(&all, &all.task[i], pid))
			continue;
		status = node_tasks_add(family, &all.task[i]);
		if (!status && family->count > COLLD_FAMILY_MOST)
			status = -E2BIG;
	}
	node_tasks_free(&all);
	return status;
}

/* It is an option of the kernel (CONFIG_PROC_CHILDREN). */
static bool kernel_tells_children(void)
{
	return !access("/proc/thread-self/children", R_OK);
}

int colld_family_look(struct node_tasks *family, u32 pid)
{
	int status;

	*family = (struct node_tasks){ .count = 0 };
	status = kernel_tells_children() ? add_generations(family, pid) : add_of_all(family, pid);
	node_tasks_sort(family);
	return status;
}

bool colld_family_spares(const struct node_task *task, const u32 *rank, u32 ranks)
{
	u32 i;

	for (i = 0; i < ranks; i++)
		if (rank[i] == task->pid)
			return true;
	return task->uid >= COLLD_SYSTEM_USERS || !node_task_shares_pids(task->pid);
}
