// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leftover.h"

int leftover_kill_children(pid_t spare)
{
	FILE *children = fopen("/proc/thread-self/children", "re");
	int pid, killed = 0;

	if (!children)
		return 0;
	while (fscanf(children, "%d", &pid) == 1)
		if (pid != spare) {
			kill(pid, SIGKILL);
			killed++;
		}
	fclose(children);
	return killed;
}

static bool leftover_marked(pid_t pid, const char *variable)
{
	char path[64], *entry = NULL;
	bool found = false;
	size_t capacity = 0;
	FILE *environment;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	environment = fopen(path, "re");
	if (!environment)
		return false;
	while (!found && getdelim(&entry, &capacity, '\0', environment) > 0)
		found = !strcmp(entry, variable);
	free(entry);
	fclose(environment);
	return found;
}

int leftover_kill_marked(const char *variable)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	int killed = 0;
	pid_t pid;

	if (!processes)
		return 0;
	while ((entry = readdir(processes))) {
		pid = atoi(entry->d_name);
		if (pid > 0 && pid != getpid() && leftover_marked(pid, variable)) {
			kill(pid, SIGKILL);
			killed++;
		}
	}
	closedir(processes);
	return killed;
}
