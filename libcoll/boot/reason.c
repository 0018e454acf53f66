// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Why booting failed, in words. */
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
