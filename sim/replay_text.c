// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay_text.h"

static const char *const key_names[KEYS] = {
	"version", "rank", "ranks", "number", "id", "group", "to", "from", "tag", "bytes",
	"request", "requests", "root", "send", "recv", "element", "commutative", "ns",
};

bool replay_grow(void **array, u32 *capacity, u32 count, size_t piece)
{
	u32 wanted = *capacity ? 2 * *capacity : 32;
	void *more;

	if (count < *capacity)
		return true;
	if (wanted < *capacity)
		return false;
	more = realloc(*array, wanted * piece);
	if (!more)
		return false;
	*array = more;
	*capacity = wanted;
	return true;
}

int replay_wrong(char *why, size_t bytes, const struct replay_rank *rank, u32 line,
		 const char *format, ...)
{
	char text[200];
	va_list values;

	va_start(values, format);
	vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	snprintf(why, bytes, "%s:%u: %s", rank->name, line, text);
	return -EINVAL;
}

int replay_no_memory(struct replay_reader *r)
{
	snprintf(r->why, r->why_bytes, "out of memory");
	return -ENOMEM;
}

char *replay_cut_line(struct replay_reader *r, char *line)
{
	char *save, *word = strtok_r(line, " \t\r", &save), *pair, *equals;
	int key;

	memset(r->value, 0, sizeof(r->value));
	while (word && (pair = strtok_r(NULL, " \t\r", &save))) {
		equals = strchr(pair, '=');
		if (!equals)
			continue;
		*equals = '\0';
		for (key = 0; key < KEYS; key++)
			if (!strcmp(pair, key_names[key]))
				r->value[key] = equals + 1;
	}
	return word;
}

/* A number from `least` to `most`, followed by `end`. */
static bool read_number(const char *text, s64 least, u64 most, char **rest, u64 *number)
{
	const bool minus = *text == '-';

	if (!isdigit((unsigned char)text[minus]))
		return false;
	errno = 0;
	*number = strtoull(text + minus, rest, 10);
	if (errno)
		return false;
	if (minus) {
		if (least >= 0 || *number > (u64)-least)
			return false;
		*number = -*number;
		return true;
	}
	return least < 0 || *number >= (u64)least ? *number <= most : false;
}

int replay_value(struct replay_reader *r, enum replay_key key, s64 least, u64 most, u64 *number)
{
	char *rest;

	if (!r->value[key])
		return replay_line_wrong(r, "%s= is missing", key_names[key]);
	if (read_number(r->value[key], least, most, &rest, number) && !*rest)
		return 0;
	return replay_line_wrong(r, "%s=%.40s; valid: a number from %lld to %llu",
				 key_names[key], r->value[key], (long long)least,
				 (unsigned long long)most);
}

int replay_value_or(struct replay_reader *r, enum replay_key key, u64 most, u64 otherwise,
		    u64 *number)
{
	*number = otherwise;
	return r->value[key] ? replay_value(r, key, 0, most, number) : 0;
}

int replay_value_list(struct replay_reader *r, enum replay_key key, u64 most, u32 *first,
		      u32 *count)
{
	char *at = r->value[key], *rest;
	u64 number;

	*first = r->rank->lists;
	for (*count = 0; ; (*count)++, at = rest + 1) {
		if (!read_number(at, 0, most, &rest, &number) || (*rest && *rest != ','))
			return replay_line_wrong(
				r, "%s=; valid: numbers up to %llu, separated by commas",
				key_names[key], (unsigned long long)most);
		if (!replay_grow((void **)&r->rank->list, &r->rank->list_capacity, r->rank->lists,
				 sizeof(u64)))
			return replay_no_memory(r);
		r->rank->list[r->rank->lists++] = number;
		if (!*rest) {
			(*count)++;
			return 0;
		}
	}
}
