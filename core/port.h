/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The differences between kernel and user space: the only #ifdef __KERNEL__ of core/.
 * Freestanding: core/ calls memcpy, memmove and memset, and nothing else.
 */
#ifndef COLL_PORT_H
#define COLL_PORT_H

#ifdef __KERNEL__
#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/types.h>
#include <asm/errno.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

/* a * b >> shift, with a product of 128 bits. */
static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return (unsigned __int128)a * b >> shift;
}

/* Prints the condition and its place in the source, then aborts: assert.c. */
void coll_assert_failed(const char *what, const char *file, int line)
	__attribute__((noreturn, cold));
#endif

/*
 * coll_assert(): an invariant that costs nothing to check beside what it guards; always
 * checked. coll_debug_assert(): one that costs something; checked with COLL_DEBUG (make
 * DEBUG=1, which the tests use). A broken one aborts the process; the kernel
 * warns once and goes on, so the code after it must not rely on the condition.
 */
#ifdef __KERNEL__
#define coll_assert(condition)	WARN_ON_ONCE(!(condition))
#else
#define coll_assert(condition)                                                             \
	(__builtin_expect(!(condition), 0) ?                                               \
		 coll_assert_failed(#condition, __FILE__, __LINE__) : (void)0)
#endif

#ifdef COLL_DEBUG
#define coll_debug_assert(condition)	coll_assert(condition)
#else
#define coll_debug_assert(condition)	((void)sizeof(!(condition)))
#endif

#endif
