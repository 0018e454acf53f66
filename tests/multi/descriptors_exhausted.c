// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * descriptors_exhausted SHORT: rank SHORT has no file descriptor left when connections are
 * made. The error on every rank, SHORT included, names SHORT. "told" says that it did on this
 * rank. (A rank that finds SHORT gone already reports only that.)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/descriptors.h"
#include "tests/lib/rank.h"

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open("deadline=3s");
	struct coll_group *world = coll_world(context);
	char name[32];
	int error;

	if (argc < 2)
		return 2;
	snprintf(name, sizeof(name), "rank %d", atoi(argv[1]));
	/* Ranks that connect by then can notify each other. */
	rank_must(world, coll_group_set(world, "barrier", "dissemination"));
	if (coll_rank(world) == atoi(argv[1]))
		files_leave(64, 0);
	error = coll_barrier(world);
	if (error != -EMFILE && error != -ETIMEDOUT && error != -ECONNRESET)
		rank_fail(world, "the error is %d: %s", error, coll_last_error(world));
	if (coll_rank(world) == atoi(argv[1]) && error != -EMFILE)
		rank_fail(world, "it does not see why: %s", coll_last_error(world));
	if (!strstr(coll_last_error(world), name))
		rank_fail(world, "%s is not named: %s", name, coll_last_error(world));
	printf("told\n");
	coll_close(context);
	return 0;
}
