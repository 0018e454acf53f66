// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Readers of values that all commands share, and the text of a range. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/noise/text.h"
#include "arguments.h"
#include "options.h"
#include "values.h"

void *option_field(const struct option_entry *option, void *settings)
{
	return (char *)settings + option->offset;
}

bool option_refuse(const struct option_table *table, const struct option_entry *option,
		   const char *text, const char *valid)
{
	return argument_refuse_option(table->command, option->name, text, valid);
}

/* How a value is written. */
static option_reader *option_form(const struct option_entry *option)
{
	return option->as ? option->as : option->read;
}

/* ---- ranges --------------------------------------------------------------------- */

static u64 unit_ns(const char *unit)
{
	return !strcmp(unit, "s") ? 1000000000 : 1000;
}

/* The longest unit that divides the time. */
static const char *time_text(u64 ns, char text[32])
{
	static const struct { const char *name; u64 ns; } units[] = {
		{ "h", 3600000000000 }, { "m", 60000000000 }, { "s", 1000000000 },
		{ "ms", 1000000 }, { "us", 1000 }, { "ns", 1 },
	};
	int i = 0;

	while (ns % units[i].ns || (!ns && units[i].ns > 1))
		i++;
	snprintf(text, 32, ns ? "%llu%s" : "0", (unsigned long long)(ns / units[i].ns),
		 units[i].name);
	return text;
}

static const char *bytes_text(u64 bytes, char text[32])
{
	static const char units[] = "\0KMGT";
	int i = 0;

	for (; bytes && !(bytes & 1023) && i < 4; bytes >>= 10)
		i++;
	snprintf(text, 32, "%llu%.1s", (unsigned long long)bytes, units + i);
	return text;
}

static const char *number_text(u64 number, char text[32])
{
	snprintf(text, 32, "%llu", (unsigned long long)number);
	return text;
}

/* "1 to 64", "at least 1", or "". A limit of 2^63 and above means none. */
static void limits_text(const struct option_entry *option, char *text, size_t bytes)
{
	const char *(*number)(u64 number, char text[32]) =
		option_form(option) == option_time ? time_text :
		option_form(option) == option_bytes ? bytes_text : number_text;
	char low[32], high[32];

	*text = 0;
	if (option_form(option) == option_real || option_form(option) == option_seconds) {
		if (option->high > 0)
			snprintf(text, bytes, !isinf(option->high) ? "%g to %g" :
					      option->low > 0	  ? "at least %g" : "",
				 option->low, option->high);
	} else if (option->most >> 63) {
		if (option->least)
			snprintf(text, bytes, "at least %s", number(option->least, low));
	} else if (option->most) {
		snprintf(text, bytes, "%s to %s", number(option->least, low),
			 number(option->most, high));
	}
}

static void names_text(const struct option_entry *option, char *text, size_t bytes)
{
	size_t used = 0;
	u32 i;

	*text = 0;
	for (i = 0; (!option->count || i < option->count) && option->names[i] && used < bytes; i++)
		used += snprintf(text + used, bytes - used, "%s%s", i ? ", " : "",
				 option->names[i]);
}

/* The valid values, in words. */
static void valid_text(const struct option_entry *option, char *text, size_t bytes)
{
	char limits[100];

	if (option->names) {
		names_text(option, text, bytes);
		return;
	}
	limits_text(option, limits, sizeof(limits));
	if (option_form(option) == option_time)
		snprintf(text, bytes, "a time from %s: 250ns, 5us, 2.5ms, 10s, 1m, 1h; %s without "
			 "a unit", limits, option->unit);
	else if (option_form(option) == option_seconds)
		snprintf(text, bytes, "a time of %s%s: 25ns, 1us, 10ms; seconds without a unit",
			 *limits ? limits : "0 or more", *limits ? " s" : "");
	else if (option_form(option) == option_bytes)
		snprintf(text, bytes, "bytes, with K, M, G or T: 8, 64K, 1M; %s", limits);
	else
		snprintf(text, bytes, "a %snumber%s%s",
			 option_form(option) == option_number ? "whole " : "",
			 !*limits ? "" : isdigit((unsigned char)*limits) ? " from " : ", ", limits);
}

static void range_add(char *text, size_t bytes, const char *word, const char *more)
{
	const size_t used = strlen(text);

	if (*more)
		snprintf(text + used, bytes - used, "%s%s%s", used > 1 ? "; " : "", word, more);
}

const char *option_range(const struct option_entry *option, char *text, size_t bytes)
{
	char limits[160] = "";

	strcpy(text, "(");
	if (option->names)
		names_text(option, limits, sizeof(limits));
	else if (option_form(option) != option_set)
		limits_text(option, limits, sizeof(limits));
	range_add(text, bytes - 1, "", limits);
	if (option_form(option) == option_time)
		range_add(text, bytes - 1, "a bare number: ", option->unit);
	else if (*limits && option->unit)
		snprintf(text + strlen(text), bytes - 1 - strlen(text), " %s", option->unit);
	else if (*limits && option_form(option) == option_seconds)
		strcat(text, " s");
	if (option->preset || option->otherwise)
		range_add(text, bytes - 1, "default ",
			  option->preset ? option->preset : option->otherwise);
	return text[1] ? strcat(text, ")") : "";
}

/* ---- readers --------------------------------------------------------------------- */

static bool refuse_value(const struct option_table *table, const struct option_entry *option,
			 const char *text)
{
	char valid[400];

	valid_text(option, valid, sizeof(valid));
	return option_refuse(table, option, text, valid);
}

static bool store_number(const struct option_entry *option, void *settings, u64 value)
{
	void *field = option_field(option, settings);

	if (option->size == sizeof(u64))
		*(u64 *)field = value;
	else if (option->size == sizeof(u32))
		*(u32 *)field = value;
	else
		*(bool *)field = value;
	return true;
}

bool option_set(const struct option_table *table, const struct option_entry *option,
		void *settings, const char *text)
{
	(void)table;
	(void)text;
	return store_number(option, settings, option->value);
}

bool option_text(const struct option_table *table, const struct option_entry *option,
		 void *settings, const char *text)
{
	(void)table;
	*(const char **)option_field(option, settings) = text;
	return true;
}

bool option_svg(const struct option_table *table, const struct option_entry *option,
		void *settings, const char *text)
{
	const size_t length = strlen(text);

	*(const char **)option_field(option, settings) = text;
	return (length > 4 && !strcmp(text + length - 4, ".svg")) ||
	       option_refuse(table, option, text, "a file name ending in .svg");
}

bool option_number(const struct option_table *table, const struct option_entry *option,
		   void *settings, const char *text)
{
	char *rest;
	u64 value;

	errno = 0;
	value = strtoull(text, &rest, 10);
	if (*text < '0' || *text > '9' || *rest || errno || value < option->least ||
	    value > option->most)
		return refuse_value(table, option, text);
	return store_number(option, settings, value);
}

bool option_bytes(const struct option_table *table, const struct option_entry *option,
		  void *settings, const char *text)
{
	static const char units[] = "KMGT";
	const char *unit;
	char *rest;
	u64 value;

	errno = 0;
	value = strtoull(text, &rest, 10);
	unit = *rest ? strchr(units, toupper((unsigned char)*rest)) : NULL;
	if (*text < '0' || *text > '9' || errno || (*rest && (!unit || rest[1])) ||
	    value > option->most)
		return refuse_value(table, option, text);
	if (unit && value > option->most >> 10 * (unit - units + 1))
		return refuse_value(table, option, text);
	if (unit)
		value <<= 10 * (unit - units + 1);
	return value >= option->least ? store_number(option, settings, value) :
					refuse_value(table, option, text);
}

bool option_time(const struct option_table *table, const struct option_entry *option,
		 void *settings, const char *text)
{
	u64 ns;

	if (!coll_text_time(text, unit_ns(option->unit), &ns) || ns < option->least ||
	    ns > option->most)
		return refuse_value(table, option, text);
	return store_number(option, settings, ns);
}

bool option_seconds(const struct option_table *table, const struct option_entry *option,
		    void *settings, const char *text)
{
	double *seconds = option_field(option, settings);

	return (coll_text_seconds(text, seconds) && *seconds >= option->low &&
		*seconds <= option->high) || refuse_value(table, option, text);
}

bool option_real(const struct option_table *table, const struct option_entry *option,
		 void *settings, const char *text)
{
	double *value = option_field(option, settings);
	char *rest;

	*value = strtod(text, &rest);
	return (rest != text && !*rest && *value >= option->low && *value <= option->high) ||
	       refuse_value(table, option, text);
}

bool option_word(const struct option_table *table, const struct option_entry *option,
		 void *settings, const char *text)
{
	u32 i;

	for (i = 0; (!option->count || i < option->count) && option->names[i]; i++)
		if (!strcmp(text, option->names[i]))
			return store_number(option, settings, i);
	return refuse_value(table, option, text);
}

bool option_name(const struct option_table *table, const struct option_entry *option,
		 void *settings, const char *text)
{
	u32 i;

	for (i = 0; (!option->count || i < option->count) && option->names[i]; i++)
		if (!strcmp(text, option->names[i])) {
			*(const char **)option_field(option, settings) = option->names[i];
			return true;
		}
	return refuse_value(table, option, text);
}

bool option_collective(const struct option_table *table, const struct option_entry *option,
		       void *settings, const char *text)
{
	int collective;

	if (!argument_collective(table->command, text, &collective))
		return false;
	return store_number(option, settings, collective);
}
