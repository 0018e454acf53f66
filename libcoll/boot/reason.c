// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Why booting failed, in words. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "job.h"

int coll_boot_fail(const struct coll_boot_reason *why, int error, const char *format, ...)
{
	va_list arguments;

	if (why->text && why->bytes) {
		va_start(arguments, format);
		vsnprintf(why->text, why->bytes, format, arguments);
		va_end(arguments);
	}
	return error;
}

int coll_boot_secret_differs(const struct coll_boot_reason *why, int rank, bool set)
{
	return coll_boot_fail(why, -EINVAL, "COLL_SECRET is set on rank %d and not on rank %d: valid "
			      "on all ranks or on none", set ? rank : 0, set ? 0 : rank);
}
