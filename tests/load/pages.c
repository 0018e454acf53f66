// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * pages RANKS RECORD: as many processes that sleep as a job of one node would have ranks, each with the page
 * of RECORD, a flight record of a rank, as its own. It says "ready", and ends them at the end of stdin.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "uapi/coll_flight.h"

static struct coll_flight_seen seen;

static void be_rank(uint32_t rank, uint32_t ranks, int ready)
{
	char name[32];
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	seen.page.rank = seen.page.local_rank = rank;
	seen.page.ranks = seen.page.local_ranks = ranks;
	seen.page.pid = getpid();
	seen.page.ended = 0;
	snprintf(seen.page.job, sizeof(seen.page.job), "pages");
	snprintf(name, sizeof(name), COLL_FLIGHT_NAME ":%u", rank);
	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0 || write(fd, &seen.page, sizeof(seen.page)) != sizeof(seen.page) ||
	    write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const uint32_t ranks = argc == 3 ? atoi(argv[1]) : 0;
	FILE *from = argc == 3 ? fopen(argv[2], "re") : NULL;
	int ready[2];
	uint32_t i;
	char byte;

	if (!ranks || !from || fread(&seen, sizeof(seen), 1, from) != 1 || pipe(ready)) {
		fprintf(stderr, "usage: pages RANKS RECORD\n");
		return 2;
	}
	for (i = 0; i < ranks; i++) {
		const pid_t pid = fork();

		if (!pid)
			be_rank(i, ranks, ready[1]);
		if (pid < 0 || read(ready[0], &byte, 1) != 1) {
			perror("pages: a rank");
			return 1;
		}
	}
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
