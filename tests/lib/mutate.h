/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Inputs that are nearly right.
 */
#ifndef TESTS_MUTATE_H
#define TESTS_MUTATE_H

#include <stddef.h>
#include <stdint.h>

#include "core/port.h"

struct seed {
	uint8_t *data;
	size_t bytes;
};

/*
 * One change: a byte, a bit, a cut, a run moved, or a piece of another seed. The
 * data may grow up to `room`; how long it is now.
 */
size_t mutate(uint8_t *data, size_t bytes, size_t room, const struct seed *other, u64 *random);

#endif
