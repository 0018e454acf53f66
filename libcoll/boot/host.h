/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What rank 0 hands to coll-store, the program that serves the store of its job. */
#ifndef COLL_BOOT_HOST_H
#define COLL_BOOT_HOST_H

#include "job.h"
#include "store_wire.h"

/* The program's descriptors: the job comes on standard input. */
enum {
	HOST_JOB = 0,
	HOST_LISTEN = 3,
	HOST_RANK0 = 4,			/* a pidfd; not open where the kernel has none */
};

/* Library and program are of one build: the size tells apart most that are not. */
struct coll_host_job {
	char magic[STORE_MAGIC_BYTES];
	uint32_t bytes;			/* sizeof(struct coll_host_job) */
	int32_t ranks;
	int32_t pid;			/* rank 0 */
	uint32_t zero;
	uint64_t timeout;		/* ns: that one rank may be alone */
	char job[64];
	uint8_t secret[COLL_SECRET_BYTES];
	struct coll_rendezvous file;	/* path "": there is none */
};

#endif
