// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * boot_meet SECONDS [TIMES [STAYS]]: one rank joins its job, tells its own name through
 * the store and reads that of every other; as often as TIMES. It leaves after STAYS seconds. Prints
 * "rank R of N: met all" or why not; exit code 0, or 1, or 3 for a timeout.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcoll/boot/boot.h"
#include "libcoll/base/clock.h"

static int greet(struct coll_boot *boot, int round)
{
	char key[32], value[128];

	snprintf(key, sizeof(key), "name/%d", boot->rank);
	snprintf(value, sizeof(value), "rank %d, round %d, of %s", boot->rank, round, boot->job);
	return coll_boot_put(boot, key, value, strlen(value));
}

static int meet(struct coll_boot *boot, int round, uint64_t deadline)
{
	char key[32], want[128], value[128];
	size_t bytes;
	int rank, err;

	for (rank = 0; rank < boot->ranks; rank++) {
		snprintf(key, sizeof(key), "name/%d", rank);
		snprintf(want, sizeof(want), "rank %d, round %d, of %s", rank, round, boot->job);
		bytes = sizeof(value);
		err = coll_boot_get(boot, key, value, &bytes, deadline);
		if (err)
			return err;
		if (bytes != strlen(want) || memcmp(value, want, bytes))
			return -EILSEQ;
	}
	return 0;
}

static int stay(int round, uint64_t timeout, double seconds)
{
	uint64_t deadline = coll_now() + timeout;
	struct coll_boot *boot;
	char why[512] = "";
	int err;

	err = coll_boot_open(&boot, deadline, why, sizeof(why));
	if (err) {
		printf("failed: %s (%s)\n", why, strerror(-err));
		return err;
	}
	err = greet(boot, round);
	if (!err)
		err = meet(boot, round, deadline);
	printf("rank %d of %d: %s, told by %s\n", boot->rank, boot->ranks,
	       err ? strerror(-err) : "met all", boot->from);
	usleep(seconds * 1e6);
	coll_boot_close(boot);
	return err;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 10;
	double stays = argc > 3 ? atof(argv[3]) : 0;
	int times = argc > 2 ? atoi(argv[2]) : 1, round, err = 0;

	for (round = 0; round < times && !err; round++)
		err = stay(round, seconds * COLL_SECOND, stays);
	return err == -ETIMEDOUT ? 3 : err ? 1 : 0;
}
