/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Any collective by its name, with buffers that fit: for tests that only need traffic. */
#ifndef TESTS_LOOPS_H
#define TESTS_LOOPS_H

#include "libcoll/coll.h"

struct loop {
	struct coll_group *group;
	const char *collective;
	size_t count;			/* elements a block, int32 */
	int root;
	int *in, *out;
	size_t *counts, *displs;
};

/* Names that loop_call() knows, NULL at the end. */
extern const char *const loop_collectives[];

struct loop loop_make(struct coll_group *group, const char *collective, size_t count);
/* One blocking call. -ENOENT: no such collective. */
int loop_call(struct loop *loop);
/* Starts a nonblocking one. */
int loop_start(struct loop *loop, struct coll_run **run);
void loop_free(struct loop *loop);

#endif
