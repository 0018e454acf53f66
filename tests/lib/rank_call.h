/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* One collective call on one rank: its input, the call, and the check against a reference. */
#ifndef TESTS_LIB_RANK_CALL_H
#define TESTS_LIB_RANK_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "algo/common/algo.h"
#include "libcoll/coll.h"
#include "tests/lib/reference.h"

enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

/* One call, the same on all ranks. */
struct test_case {
	enum coll_collective collective;
	const char *algo;
	int type, op;		/* op: also REFERENCE_COMMUTING, REFERENCE_ORDERED */
	size_t count;
	int root;
	bool in_place;
	enum form form;
};

/* Memory with guards around it; the call gets `data`. */
struct buffer {
	uint8_t *memory, *data;
	size_t bytes;
};

/* One rank's part of the call. */
struct rank_call {
	const struct test_case *test_case;
	struct coll_group *group;
	int rank, ranks;
	enum coll_reduction op;
	size_t element;
	size_t *counts, *displs;		/* blocks of gatherv and similar ones */
	size_t *send_counts, *send_displs;	/* alltoallv */
	struct buffer in, out;
	struct buffer want_in, want_out;	/* expected after the call */
};

/* `op` is the library's number of the test case's operation. */
struct rank_call rank_call_make(struct coll_group *group, enum coll_reduction op,
				const struct test_case *test_case);
/* Calls, and waits for the result. A persistent call is started twice. */
int rank_call_execute(struct rank_call *call);
/* Fails with what differs. */
void rank_call_check(const struct rank_call *call);
void rank_call_fail(const struct rank_call *call, const char *what);
void rank_call_free(struct rank_call *call);

#endif
