// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>

#include "mutate.h"
#include "schedules.h"

static size_t mutate_below(u64 *random, size_t limit)
{
	return limit ? random_next(random) % limit : 0;
}

size_t mutate(uint8_t *data, size_t bytes, size_t room, const struct seed *other, u64 *random)
{
	size_t at = mutate_below(random, bytes), from = mutate_below(random, other->bytes);
	size_t length = 1 + mutate_below(random, 16);

	switch (mutate_below(random, 6)) {
	case 0:
		if (bytes)
			data[at] = random_next(random);
		return bytes;
	case 1:
		if (bytes)
			data[at] ^= 1u << mutate_below(random, 8);
		return bytes;
	case 2:
		if (bytes)
			data[at] = mutate_below(random, 2) ? '0' + mutate_below(random, 10)
							   : mutate_below(random, 4);
		return bytes;
	case 3:
		if (at + length < bytes) {
			memmove(data + at, data + at + length, bytes - at - length);
			return bytes - length;
		}
		return at;
	case 4:
		if (bytes + length <= room) {
			memmove(data + at + length, data + at, bytes - at);
			return bytes + length;
		}
		return bytes;
	default:
		if (at + length <= bytes && from + length <= other->bytes)
			memcpy(data + at, other->data + from, length);
		return bytes;
	}
}
