// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdint.h>
#include <string.h>

#include "coverage.h"

enum { BLOCKS_BITS = 16, BLOCKS = 1 << BLOCKS_BITS };

static uint8_t count[BLOCKS];		/* of this input */
static uint32_t touched[BLOCKS];	/* blocks with a count */
static uint8_t seen[BLOCKS];		/* a bit for each power of two of counts, of all inputs */
static unsigned int touches, blocks;

void __sanitizer_cov_trace_pc(void);
#ifndef __clang__
__attribute__((no_sanitize_coverage))
#endif
void __sanitizer_cov_trace_pc(void)
{
	const uintptr_t pc = (uintptr_t)__builtin_return_address(0);
	const uint32_t block = pc * 0x9e3779b97f4a7c15ull >> (64 - BLOCKS_BITS);

	if (!count[block])
		touched[touches++] = block;
	count[block] += count[block] < 255;
}

void coverage_begin(void)
{
	while (touches)
		count[touched[--touches]] = 0;
}

bool coverage_is_new(void)
{
	bool is_new = false;
	unsigned int i;

	for (i = 0; i < touches; i++) {
		const uint32_t block = touched[i];
		const uint8_t bit = 1u << (31 - __builtin_clz(count[block]));

		if (seen[block] & bit)
			continue;
		blocks += !seen[block];
		seen[block] |= bit;
		is_new = true;
	}
	return is_new;
}

void coverage_forget(void)
{
	memset(seen, 0, sizeof(seen));
	blocks = 0;
}

unsigned int coverage_blocks(void)
{
	return blocks;
}
