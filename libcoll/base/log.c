// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "options.h"

enum { LINE_BYTES = 2048 };

static const char *const log_names[COLL_LOG_LEVELS + 1] = { "off", "error", "warn", "info", "debug",
							   NULL };

/* One write, so that lines of several ranks do not mix. */
static void log_line(const char *format, va_list arguments)
{
	char line[LINE_BYTES] = "coll: ";
	const size_t prefix = strlen(line);
	const int length = vsnprintf(line + prefix, sizeof(line) - prefix - 1, format, arguments);
	size_t end = prefix + (length < 0 ? 0 : length);

	if (end > sizeof(line) - 2)
		end = sizeof(line) - 2;
	line[end++] = '\n';
	if (write(STDERR_FILENO, line, end) < 0)
		return;		/* nobody listens */
}

void coll_log(const struct coll_options *options, enum coll_log_level level, const char *format, ...)
{
	va_list arguments;

	if (options->log < level)
		return;
	va_start(arguments, format);
	log_line(format, arguments);
	va_end(arguments);
}

int coll_log_level(const char *name)
{
	int i;

	for (i = 0; log_names[i]; i++)
		if (!strcmp(log_names[i], name))
			return i;
	return -EINVAL;
}

/* An unknown word counts as the default: coll_open() has said what is valid. */
static int log_of_environment(void)
{
	const char *value = getenv("COLL_LOG");
	const int level = value ? coll_log_level(value) : -EINVAL;

	return level < 0 ? COLL_LOG_WARN : level;
}

void coll_log_by_environment(enum coll_log_level level, const char *format, ...)
{
	va_list arguments;

	if (log_of_environment() < (int)level)
		return;
	va_start(arguments, format);
	log_line(format, arguments);
	va_end(arguments);
}
