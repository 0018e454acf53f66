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
#include <string.h>

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

/* An input that is read piece by piece: what it says comes first, zeros behind its end. */
struct fuzz_input {
	const uint8_t *data;
	size_t bytes;
};

static inline void fuzz_copy(struct fuzz_input *in, void *to, size_t bytes)
{
	const size_t part = in->bytes < bytes ? in->bytes : bytes;

	memset(to, 0, bytes);
	if (part)
		memcpy(to, in->data, part);
	in->data += part;
	in->bytes -= part;
}

static inline uint8_t fuzz_byte(struct fuzz_input *in)
{
	uint8_t byte;

	fuzz_copy(in, &byte, 1);
	return byte;
}

/* The next bytes themselves, at most so many: the number of them. */
static inline size_t fuzz_some(struct fuzz_input *in, const uint8_t **data, size_t most)
{
	const size_t part = in->bytes < most ? in->bytes : most;

	*data = in->data;
	in->data += part;
	in->bytes -= part;
	return part;
}

#endif
