// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "metrics.h"

void metrics_family(FILE *to, const char *name, const char *type, const char *help)
{
	fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Backslash, quote and newline are escaped. */
void metrics_label(FILE *to, const char *name, const char *text)
{
	fprintf(to, "%s=\"", name);
	for (; *text; text++)
		if (*text == '\n')
			fputs("\\n", to);
		else
			fprintf(to, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	fputc('"', to);
}

void metrics_end(FILE *to)
{
	fputs("# EOF\n", to);
}
