/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A fuzz target in libFuzzer's form, and what it starts from. tests/fuzz/main.c
 * is a driver for compilers without libFuzzer.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Aborts on what must not be; any input may be refused. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

typedef void take_seed(const void *data, size_t bytes, void *argument);
/* Hands over valid inputs, the same ones each time. */
void fuzz_seeds(take_seed *take, void *argument);

/* Else says what failed, and ends the program. */
static inline void fuzz_must(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "fuzz: %s\n", what);
	abort();
}

#endif
