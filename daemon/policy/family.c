// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The processes that a thread has started, with their threads. The kernel may not tell them. */
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
int colld_family_look(struct node_tasks *family, u32 pid)
{
	int status;
	u32 i;

	*family = (struct node_tasks){ .count = 0 };
	status = add_process(family, pid);
	for (i = 0; !status && i < family->count; i++)
		status = add_children(family, family->task[i].tid);
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
