// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>

#include "mutate.h"
#include "schedules.h"

static size_t below(u64 *random, size_t limit)
{
	return limit ? random_next(random) % limit : 0;
}

size_t mutate(uint8_t *data, size_t bytes, size_t room, const struct seed *other, u64 *random)
{
	size_t at = below(random, bytes), from = below(random, other->bytes);
	size_t length = 1 + below(random, 16);

	switch (below(random, 6)) {
	case 0:
		if (bytes)
			data[at] = random_next(random);
		return bytes;
	case 1:
		if (bytes)
			data[at] ^= 1u << below(random, 8);
		return bytes;
	case 2:
		if (bytes)
			data[at] = below(random, 2) ? '0' + below(random, 10) : below(random, 4);
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
