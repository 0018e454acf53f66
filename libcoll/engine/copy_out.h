/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Copies bytes to memory that is for other cores: past the caches, where the processor can. A line
 * that another core has read is in its caches still; to be written in this core's it would be
 * fetched from there first, and then back. So cores that share no cache have the bytes in a third of
 * the time, and those that share one in about the same (docs/results/performance.md).
 */
#ifndef COLL_COPY_OUT_H
#define COLL_COPY_OUT_H

#include <stdint.h>
#include <string.h>

#ifdef __x86_64__
#include <emmintrin.h>

/* Of whole lines, to the beginning of one. */
static inline void coll_copy_lines_out(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
	uint64_t at;
	int i;

	for (at = 0; at < bytes; at += 64) {
		__m128i part[4];

		for (i = 0; i < 4; i++)
			part[i] = _mm_loadu_si128((const __m128i *)(from + at) + i);
		for (i = 0; i < 4; i++)
			_mm_stream_si128((__m128i *)(to + at) + i, part[i]);
	}
	_mm_sfence();			/* stores that follow are seen after these */
}
#endif

static inline void coll_copy_out(void *to, const void *from, uint64_t bytes)
{
#ifdef __x86_64__
	const uint64_t before = -(uintptr_t)to & 63, first = before < bytes ? before : bytes;
	const uint64_t lines = (bytes - first) & ~63ull;

	memcpy(to, from, first);
	coll_copy_lines_out((uint8_t *)to + first, (const uint8_t *)from + first, lines);
	to = (uint8_t *)to + first + lines;
	from = (const uint8_t *)from + first + lines;
	bytes -= first + lines;
#endif
	memcpy(to, from, bytes);
}

#endif
