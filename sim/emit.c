// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "emit.h"

enum { EMIT_BYTES = 1 << 14 };	/* to begin with */

int emit_into(struct sim_emit_memory *buffer, const struct coll_algo *algo,
	      const struct coll_call *call, const struct coll_tuning *tuning,
	      struct coll_schedule **schedule)
{
	for (;;) {
		void *more;
		int error = buffer->memory ? coll_algo_emit(algo, call, tuning, buffer->memory,
							    buffer->bytes, schedule) : -ENOSPC;

		if (error != -ENOSPC)
			return error;
		buffer->bytes = buffer->bytes ? 2 * buffer->bytes : EMIT_BYTES;
		more = realloc(buffer->memory, buffer->bytes);
		if (!more)
			return -ENOMEM;
		buffer->memory = more;
	}
}
