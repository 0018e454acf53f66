// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>

#include "metrics.h"

static void metrics_head(FILE *to, const char *name, const char *type, const char *help)
{
	fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void colld_metrics_counter(FILE *to, const char *name, const char *help)
{
	metrics_head(to, name, "counter", help);
}

void colld_metrics_gauge(FILE *to, const char *name, const char *help)
{
	metrics_head(to, name, "gauge", help);
}

/* As the format has it: one value that is not quoted so makes all of the text unreadable. */
static void metrics_value(FILE *to, const char *value)
{
	for (; *value; value++)
		if (*value == '\n')
			fputs("\\n", to);
		else
			fprintf(to, strchr("\\\"", *value) ? "\\%c" : "%c", *value);
}

static void metrics_name(FILE *to, const char *name, const char *label, const char *value)
{
	fputs(name, to);
	if (!label)
		return;
	fprintf(to, "{%s=\"", label);
	metrics_value(to, value);
	fputs("\"}", to);
}

void colld_metrics_count(FILE *to, const char *name, const char *label, const char *value, u64 count)
{
	metrics_name(to, name, label, value);
	fprintf(to, " %llu\n", (unsigned long long)count);
}

void colld_metrics_seconds(FILE *to, const char *name, const char *label, const char *value, u64 ns)
{
	metrics_name(to, name, label, value);
	fprintf(to, " %llu.%09u\n", (unsigned long long)(ns / 1000000000), (unsigned)(ns % 1000000000));
}
