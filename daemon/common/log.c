// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "log.h"

void colld_log(int level, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	if (getenv("JOURNAL_STREAM"))
		fprintf(stderr, "<%d>", level);
	fprintf(stderr, "colld: ");
	vfprintf(stderr, format, list);
	fprintf(stderr, "\n");
	va_end(list);
}
