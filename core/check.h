/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Refusing a schedule that breaks a rule of uapi/coll_schedule.h. What passes
 * can be stepped, matched and executed without further checks. The input is
 * hostile: nothing in it is believed before it is compared with a limit, and
 * nothing outside `bytes` is read.
 */
#ifndef COLL_CHECK_H
#define COLL_CHECK_H

#include "schedule.h"

struct coll_refusal {
	u32 op;			/* which op, or COLL_NONE: the schedule as a whole */
	const char *reason;	/* a constant: no need to free it */
};

/* Bytes of work space coll_check() wants for this header; 0: none can be needed. */
u64 coll_check_bytes(const void *schedule, u64 bytes);

/*
 * `schedule` is 8-byte aligned and must not change during the call. `work` has
 * coll_check_bytes(). Returns 0; or -EINVAL or -E2BIG with *refusal filled in.
 * O(size of the schedule).
 */
int coll_check(const void *schedule, u64 bytes, void *work, struct coll_refusal *refusal);

#endif
