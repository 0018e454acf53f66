// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdarg.h>
#include <stdio.h>

#include "open_error.h"
#include "options.h"

static _Thread_local char open_error[OPTIONS_WHY];

int coll_open_fail(int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(open_error, sizeof(open_error), format, arguments);
	va_end(arguments);
	return error;
}

const char *coll_open_error(void)
{
	return open_error;
}
