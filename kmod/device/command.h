/* SPDX-License-Identifier: GPL-2.0 */
#ifndef COLL_KMOD_COMMAND_H
#define COLL_KMOD_COMMAND_H

#include "kmod/exec/device.h"

struct io_uring_cmd;

/*
 * Executes a command whose struct coll_device_command is copied already. `uring`: NULL
 * by ioctl, which sleeps until a command that waits is complete.
 */
long kcoll_command(struct kcoll_device *device, u32 op, const struct coll_device_command *command,
		   struct io_uring_cmd *uring, unsigned int issue_flags);
/* Pages of the shared memory. */
u64 kcoll_command_shared_pages(const struct kcoll_device *device);

#endif
