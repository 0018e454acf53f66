// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A colld with a switch that always obeys: the ranks of the round ask it for circuits. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "round.h"

enum { START_MS = 5000 };

/* A node for each rank, with two ports. */
static void write_rules(FILE *rules, const char *socket)
{
	int i;

	fprintf(rules, "socket %s\nswitch fake\nkeep 0s\n", socket);
	for (i = 0; i < BOARD_RANKS_MAX; i++)
		fprintf(rules, "node n%d %d,%d\n", i, 2 * i + 1, 2 * i + 2);
}

static void colld_path(char path[100], const struct round *round, const char *name)
{
	snprintf(path, 100, "%s/colld%s", round->folder, name);
}

static void become_colld(const struct round *round)
{
	char program[300], rules[100], state[100], log[100];
	int fd;

	snprintf(program, sizeof(program), "%s/../../colld", round->settings->folder);
	colld_path(rules, round, ".rules");
	colld_path(state, round, ".state");
	colld_path(log, round, ".log");
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(fd, 1);
	dup2(fd, 2);
	execl(program, program, "--circuits", rules, "--metrics", "0", "--state", state, NULL);
	_Exit(127);
}

void round_start_colld(struct round *round)
{
	char path[100];
	FILE *rules;
	int i;

	colld_path(path, round, ".rules");
	rules = fopen(path, "w");
	if (!rules)
		return;
	colld_path(path, round, ".socket");
	write_rules(rules, path);
	fclose(rules);
	round->colld = fork();
	if (!round->colld)
		become_colld(round);
	if (round->colld < 0)
		round->colld = 0;
	colld_path(path, round, ".socket");
	for (i = 0; i < START_MS && access(path, F_OK); i++)
		usleep(1000);
}

void round_kill_colld(struct round *round)
{
	if (!round->colld)
		return;
	kill(round->colld, SIGKILL);
	waitpid(round->colld, NULL, 0);
	round->colld = 0;
}
