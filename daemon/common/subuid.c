// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "subuid.h"

struct range {
	uid_t first, last;
};

/* What the file says: by ascending numbers, no two with a number in common. */
static struct range *ranges;
static size_t count;
static struct stat seen;

static bool is_as_seen(const struct stat *now)
{
	return now->st_ino == seen.st_ino && now->st_dev == seen.st_dev && now->st_size == seen.st_size &&
	       now->st_mtim.tv_sec == seen.st_mtim.tv_sec && now->st_mtim.tv_nsec == seen.st_mtim.tv_nsec;
}

/* NAME:FIRST:COUNT. One that has root's number, or an invalid one, is none. */
static bool range_parse(const char *line, struct range *range)
{
	const char *at = strchr(line, ':');
	unsigned long long first, many;
	char end;

	if (!at || sscanf(at, ":%llu:%llu %c", &first, &many, &end) != 2)
		return false;
	if (!first || !many || first >= (uid_t)-1 || many > (uid_t)-1 - first)
		return false;
	*range = (struct range){ (uid_t)first, (uid_t)(first + many - 1) };
	return true;
}

static int range_compare(const void *a, const void *b)
{
	const struct range *left = a, *right = b;

	return left->first < right->first ? -1 : left->first > right->first;
}

/* Of ranges with a number in common one is made. */
static void ranges_merge(void)
{
	size_t i, kept = 0;

	if (count)		/* else there may be no array */
		qsort(ranges, count, sizeof(*ranges), range_compare);
	for (i = 0; i < count; i++) {
		if (!kept || ranges[i].first > ranges[kept - 1].last)
			ranges[kept++] = ranges[i];
		else if (ranges[i].last > ranges[kept - 1].last)
			ranges[kept - 1].last = ranges[i].last;
	}
	count = kept;
}

static bool ranges_add(struct range range)
{
	struct range *more = (count & (count - 1)) ? ranges :
			     realloc(ranges, (count ? 2 * count : 1) * sizeof(*ranges));

	if (!more)
		return false;
	ranges = more;
	ranges[count++] = range;
	return true;
}

static void ranges_read(FILE *file)
{
	struct range range;
	char *line = NULL;
	size_t bytes = 0;

	while (getline(&line, &bytes, file) >= 0)
		if (range_parse(line, &range) && !ranges_add(range))
			break;
	free(line);
}

void colld_subuid_read(const char *path)
{
	struct stat now = { 0 };
	FILE *file;

	if (stat(path, &now))
		now = (struct stat){ 0 };
	if (is_as_seen(&now))
		return;
	seen = now;
	count = 0;
	file = now.st_ino ? fopen(path, "re") : NULL;
	if (!file)
		return;
	ranges_read(file);
	fclose(file);
	ranges_merge();
}

uid_t colld_subuid_counts_as(uid_t user)
{
	size_t from = 0, end = count, at;

	while (from < end) {
		at = from + (end - from) / 2;
		if (user < ranges[at].first)
			end = at;
		else if (user > ranges[at].last)
			from = at + 1;
		else
			return ranges[at].first;
	}
	return user;
}
