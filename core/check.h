/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Validation of a schedule against the rules of uapi/coll_schedule.h. A valid schedule
 * can be stepped, matched and executed without further checks. The input is hostile:
 * every number is compared with its limit before it is used, and nothing outside
 * `bytes` is read.
 */
#ifndef COLL_CHECK_H
#define COLL_CHECK_H

#include "schedule.h"

struct coll_refusal {
	u32 op;			/* which op, or COLL_NONE: the schedule as a whole */
	const char *reason;	/* a constant: no need to free it */
};

/* Bytes of work space that coll_check() needs for this header; may be 0. */
u64 coll_check_bytes(const void *schedule, u64 bytes);

/*
 * `schedule` is 8-byte aligned and must not change during the call. `work` has
 * coll_check_bytes(). Returns 0; or -EINVAL or -E2BIG with *refusal filled in.
 * O(size of the schedule).
 */
int coll_check(const void *schedule, u64 bytes, void *work, struct coll_refusal *refusal);

#endif
