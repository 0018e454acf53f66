// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "actions.h"

/* "signal,num=2,pid=parent" */
static bool read_signal(const char *text, int *number, pid_t *pid)
{
	int end = 0;

	if (sscanf(text, "signal,num=%d,pid=%d%n", number, pid, &end) == 2 && !text[end])
		return *number > 0 && *number <= SIGRTMAX && *pid > 0;
	end = 0;
	*pid = getppid();
	return sscanf(text, "signal,num=%d,pid=parent%n", number, &end) == 1 && end &&
	       !text[end] && *number > 0 && *number <= SIGRTMAX;
}

bool noise_actions_read(const struct option_table *table, const struct option_entry *option,
			struct noise_actions *actions, const char *text)
{
	static const char shell[] = "shell,command=";
	int number;
	pid_t pid;

	if (actions->count < NOISE_ACTIONS &&
	    ((!strncmp(text, shell, strlen(shell)) && text[strlen(shell)]) ||
	     read_signal(text, &number, &pid))) {
		actions->action[actions->count++] = text;
		return true;
	}
	return option_refuse(table, option, text, "shell,command=COMMAND, and signal,num=N,pid=PID "
			     "or pid=parent; 8 of them at most");
}

void noise_actions_do(const struct noise_actions *actions, const char *command)
{
	int i, number;
	pid_t pid;

	fflush(stdout);
	for (i = 0; i < actions->count; i++) {
		const bool is_signal = read_signal(actions->action[i], &number, &pid);

		if (is_signal ? kill(pid, number) : system(strchr(actions->action[i], '=') + 1))
			fprintf(stderr, "collnoise %s: --on-threshold %s: %s\n", command,
				actions->action[i], is_signal ? strerror(errno) : "it failed");
	}
}
