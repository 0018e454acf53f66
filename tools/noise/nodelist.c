// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nodelist.h"

/* A name so far, and what of the text follows it. */
struct item {
	char name[NODELIST_NAME];
	size_t length;
	const char *rest, *end;
};

static bool add_name(struct noise_nodelist *list, const char *name)
{
	char **more = list->count < NODELIST_MAX ?
			      realloc(list->name, (list->count + 1) * sizeof(*more)) : NULL;

	if (!more)
		return false;
	list->name = more;
	list->name[list->count] = strdup(name);
	return list->name[list->count] && ++list->count;
}

/* Others mean something to a shell, or to coll run. */
static bool is_name_character(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("-_.@", c));
}

static bool expand_item(struct noise_nodelist *list, struct item item);

/* Between brackets, one part: 7, or 07-12, whose numbers have as many digits. */
static bool expand_range(struct noise_nodelist *list, const struct item *before, const char *text,
			 const char *end, const char *rest)
{
	struct item item = *before;
	unsigned long number, last;
	char *after;
	int digits;

	if (!isdigit((unsigned char)*text))
		return false;
	number = last = strtoul(text, &after, 10);
	digits = after - text;
	if (*after == '-' && isdigit((unsigned char)after[1]))
		last = strtoul(after + 1, &after, 10);
	if (after != end || last < number || last - number >= NODELIST_MAX)
		return false;
	for (;; number++) {
		item.length = before->length + snprintf(item.name + before->length,
							sizeof(item.name) - before->length, "%0*lu",
							digits, number);
		item.rest = rest;
		if (item.length >= sizeof(item.name) || !expand_item(list, item))
			return false;
		if (number == last)
			return true;
	}
}

static bool expand_brackets(struct noise_nodelist *list, const struct item *item)
{
	const char *text = item->rest + 1, *end,
		   *close = memchr(item->rest, ']', item->end - item->rest);

	if (!close)
		return false;
	for (; text <= close; text = end + 1) {
		for (end = text; end < close && *end != ','; end++)
			;
		if (!expand_range(list, item, text, end, close + 1))
			return false;
	}
	return true;
}

static bool expand_item(struct noise_nodelist *list, struct item item)
{
	for (; item.rest < item.end && *item.rest != '['; item.rest++) {
		if (!is_name_character(*item.rest) || item.length + 1 >= sizeof(item.name))
			return false;
		item.name[item.length++] = *item.rest;
	}
	if (item.rest < item.end)
		return expand_brackets(list, &item);
	item.name[item.length] = 0;
	/* An option of the launcher begins so. */
	return item.length && *item.name != '-' && add_name(list, item.name);
}

/* Where the item ends: at a comma outside of brackets. */
static const char *item_end(const char *text)
{
	bool inside = false;

	for (; *text && (inside || *text != ','); text++)
		inside = *text == '[' || (inside && *text != ']');
	return text;
}

bool noise_nodelist_read(struct noise_nodelist *list, const char *text)
{
	bool good = true, more = true;

	*list = (struct noise_nodelist){ .count = 0 };
	for (; good && more; text++) {
		const char *end = item_end(text);

		good = expand_item(list, (struct item){ .rest = text, .end = end });
		more = *end;
		text = end;
	}
	if (!good)
		noise_nodelist_free(list);
	return good;
}

char *noise_nodelist_join(const struct noise_nodelist *list)
{
	size_t bytes = 1;
	char *text;
	u32 i;

	for (i = 0; i < list->count; i++)
		bytes += strlen(list->name[i]) + 1;
	text = calloc(bytes, 1);
	for (i = 0; text && i < list->count; i++)
		sprintf(text + strlen(text), "%s%s", i ? "," : "", list->name[i]);
	return text;
}

void noise_nodelist_free(struct noise_nodelist *list)
{
	while (list->count)
		free(list->name[--list->count]);
	free(list->name);
	list->name = NULL;
}
