/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Joining a job over a store that the application brings: coll_open_with(). */
#ifndef COLL_BOOT_CALLER_H
#define COLL_BOOT_CALLER_H

#include "boot.h"
#include "libcoll/coll.h"

/* As coll_boot_open(); -EINVAL names the entry of `job`. */
int coll_boot_caller_open(struct coll_boot **boot, const struct coll_job *job, uint64_t deadline,
			  char *why, size_t why_bytes);

#endif
