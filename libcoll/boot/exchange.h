/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Joining a job over an allgather of the caller, such as the MPI's. */
#ifndef COLL_BOOT_EXCHANGE_H
#define COLL_BOOT_EXCHANGE_H

#include "boot.h"

/*
 * Collective: gives every rank the bytes of all ranks, one after the other in *all (from
 * malloc). 0 or a negative errno.
 */
typedef int coll_boot_exchange(void *argument, const void *mine, size_t bytes, void **all,
			       size_t *all_bytes);

/*
 * A store whose fences exchange values, which are then in this rank's memory. The caller
 * fills in rank, ranks, secret and the names. NULL: no memory.
 */
struct coll_boot *coll_boot_exchange_new(coll_boot_exchange *exchange, void *argument);

#endif
