// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What a broken invariant does in user space. The kernel has WARN_ON_ONCE(). */
#include <stdio.h>
#include <stdlib.h>

#include "port.h"

void coll_assert_failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "coll: %s:%d: broken invariant: %s\n", file, line, what);
	abort();
}
