/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sums that one writer adds to while others read them, without a lock: whole at each moment on
 * 64-bit kernels, which alone DKMS builds for. On others a reader may see one half of an addition.
 */
#ifndef COLL_KMOD_SUM_H
#define COLL_KMOD_SUM_H

#include <linux/compiler.h>
#include <linux/types.h>

/* The reader takes READ_ONCE(). */
static inline void kcoll_sum_add(u64 *sum, u64 amount)
{
	WRITE_ONCE(*sum, *sum + amount);
}

#endif
