// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>

#include "libcoll/boot/boot.h"
#include "numbers.h"

enum { CHUNK = COLL_BOOT_VALUE_MAX / sizeof(uint32_t) };	/* ranks in one value of the store */

/* One value of the store: rank 0 writes the numbers, the others read them. */
static int share_piece(struct coll_context *context, const struct coll_numbers *numbers,
		       uint32_t first, uint32_t count, uint64_t deadline)
{
	const size_t bytes = count * sizeof(*numbers->of);
	size_t got = bytes;
	char key[32];
	int error;

	snprintf(key, sizeof(key), "%s/%u", numbers->key, first);
	if (!context->boot->rank)
		return coll_boot_put(context->boot, key, numbers->of + first, bytes);
	error = coll_boot_get(context->boot, key, numbers->of + first, &got, deadline);
	return !error && got != bytes ? -EPROTO : error;
}

static int share_pieces(struct coll_context *context, const struct coll_numbers *numbers, int count,
			uint64_t deadline)
{
	const uint32_t ranks = context->boot->ranks;
	uint32_t first;
	int error = 0, i;

	for (i = 0; i < count; i++)
		for (first = 0; first < ranks && !error; first += CHUNK)
			error = share_piece(context, &numbers[i], first,
					    ranks - first < CHUNK ? ranks - first : CHUNK,
					    deadline);
	return error;
}

int coll_numbers_share(struct coll_context *context, const struct coll_numbers *numbers, int count,
		       int error, uint64_t deadline)
{
	const bool first = !context->boot->rank;
	int fence;

	if (!error && first)
		error = share_pieces(context, numbers, count, deadline);
	fence = coll_boot_fence(context->boot, deadline);
	if (!error)
		error = fence;
	return error || first ? error : share_pieces(context, numbers, count, deadline);
}
