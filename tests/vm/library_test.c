// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 *	library_test PROGRAM...
 *
 * The library's own tests of parts on this kernel and this processor: each program ends well.
 * tests/vm/run -p brings them along.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vm.h"

enum { SHOWN_MAX = 30 };

static const char output[] = "/tmp/library.out";

static int run(char *program)
{
	const int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		execlp(program, program, NULL);
		_exit(127);
	}
	close(fd);
	waitpid(child, &status, 0);
	return status;
}

static void show_what_failed(void)
{
	FILE *said = fopen(output, "re");
	char line[300];
	int shown = 0;

	while (said && fgets(line, sizeof(line), said)) {
		if (strncmp(line, "ok", 2) && shown++ < SHOWN_MAX)
			vm_note("%.*s", (int)strcspn(line, "\n"), line);
	}
	if (said)
		fclose(said);
}

int main(int argc, char **argv)
{
	int i;

	vm_loopback_up();
	setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", 1);
	for (i = 1; i < argc; i++) {
		if (!vm_is(run(argv[i]), 0, argv[i]))
			show_what_failed();
	}
	return vm_end();
}
