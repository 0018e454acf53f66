/* SPDX-License-Identifier: GPL-2.0 */
#ifndef COLL_KMOD_RUNNER_H
#define COLL_KMOD_RUNNER_H

#include "device.h"

/* With the lock, in the program itself. */
int kcoll_runner_start(struct kcoll_device *device, const struct coll_device_setup *asked);
/*
 * The opener's address space ends, with the threads of its program; a kernel thread will end. Waits
 * for no thread: who comes here may keep every thread of the machine from ending. Without the lock.
 */
void kcoll_runner_retire(struct kcoll_device *device);
/* The thread does nothing more when this returns. Without the lock. */
void kcoll_runner_stop(struct kcoll_device *device);

#endif
