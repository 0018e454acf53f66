// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <math.h>
#include <string.h>

#include "html.h"
#include "node/units.h"

void node_html_text(const char *text, FILE *to)
{
	for (; *text; text++) {
		if (strchr("<>&\"'", *text))
			fprintf(to, "&#%d;", *text);
		else
			putc(*text, to);
	}
}

char *node_html_time_text(double ns, char text[32])
{
	char plain[24];
	const char *unit = strchr(node_time_text(ns, plain), ' ');
	int digits = unit ? unit - plain : 0;

	if (!unit) {	/* so long a time that it has no room */
		snprintf(text, 32, "%s", plain);
		return text;
	}
	if (memchr(plain, '.', digits) && strspn(strchr(plain, '.') + 1, "0") ==
	    (size_t)(unit - strchr(plain, '.') - 1))
		digits = strchr(plain, '.') - plain;
	snprintf(text, 32, "%.*s%s", digits, plain, strcmp(unit, " us") ? unit : " \u00b5s");
	return text;
}

/* Two digits, of small shares too. */
char *node_html_share_text(double share, char text[32])
{
	const double percent = 100 * share;

	if (percent == 0 || fabs(percent) >= 9.95)
		snprintf(text, 32, "%.0f %%", percent);
	else if (fabs(percent) >= 0.001)
		snprintf(text, 32, "%.*f %%", 1 - (int)floor(log10(fabs(percent) * 1.005)),
			 percent);
	else
		snprintf(text, 32, "%.2g ppm", 1e6 * share);
	return text;
}

char *node_html_count_text(u64 count, char text[32])
{
	char digits[24];
	const int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);
	int i, used = 0;

	for (i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			text[used++] = ',';
		text[used++] = digits[i];
	}
	text[used] = 0;
	return text;
}

static void html_data(const char *place, double value, const char *text, FILE *to)
{
	fprintf(to, "<data value=\"%.15g\" data-json=\"%s\">%s</data>", value, place, text);
}

void node_html_number(const char *place, double value, FILE *to)
{
	char text[32];

	if (value >= 999.5)
		node_html_count_text(value + 0.5, text);
	else
		snprintf(text, sizeof(text), "%.4g", value);
	html_data(place, value, text, to);
}

void node_html_time(const char *place, double ns, FILE *to)
{
	char text[32];

	html_data(place, ns, node_html_time_text(ns, text), to);
}

void node_html_share(const char *place, double share, FILE *to)
{
	char text[32];

	html_data(place, share, node_html_share_text(share, text), to);
}

void node_html_count(const char *place, u64 count, FILE *to)
{
	char text[32];

	html_data(place, count, node_html_count_text(count, text), to);
}
