/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What the files offload*.c share: a context's open /dev/coll. */
#ifndef COLL_OFFLOAD_DEVICE_H
#define COLL_OFFLOAD_DEVICE_H

#include "uapi/coll_device.h"
#include "libcoll/link/link.h"

enum { OFFLOAD_WORDS = 1024 };		/* runs in the kernel at once */

struct coll_offload {
	int fd;
	struct coll_device_shared *shared;
	size_t shared_bytes;
	struct coll_run *runs;		/* runs in the kernel */
	uint16_t free_word[OFFLOAD_WORDS];
	uint32_t free_words;
	struct coll_watch watch;		/* wakes a sleeping thread */
};

static inline struct coll_offload *coll_offload_of(const struct coll_group *group)
{
	return group->context->offload;
}

/* One command: its result, or a negative errno. */
long coll_offload_command(const struct coll_offload *offload, unsigned int op, void *argument,
			  uint32_t bytes);

/* The kernel has the plan's schedule, under this number. */
void coll_offload_loaded(struct coll_planned *planned, uint32_t number);
/* The kernel has dropped the group, and all that was loaded with it. Plans may outlive the group. */
void coll_offload_forget_all(struct coll_group *group);

/* ---- offload_news.c ------------------------------------------------------- */

/* The kernel says that the group's runs there have failed. */
void coll_offload_failed(struct coll_group *group, int error, uint32_t failed_rank,
			 uint32_t reporter);
/* Takes over what the kernel has received beside the runs of a group: failures, goodbyes. */
void coll_offload_hear(struct coll_group *group);
void coll_offload_hear_all(struct coll_context *context);

/* ---- offload_links.c ------------------------------------------------------ */

/* Attaches all links that are up. NULL, or why that is not possible. */
const char *coll_offload_attach_all(struct coll_group *group);

#endif
