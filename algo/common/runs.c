// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "core/schedule.h"
#include "runs.h"

/* A number from 1 to COLL_RANKS_MAX; 0: there is none. */
static u32 read_size(const char **text)
{
	u32 size = 0;

	for (; **text >= '0' && **text <= '9'; (*text)++) {
		size = size * 10 + (**text - '0');
		if (size > COLL_RANKS_MAX)
			return 0;
	}
	return size;
}

/* Whether the text ends here with a +. */
static bool is_repeated(const char *text)
{
	return *text == '+' && (!text[1] || text[1] == '/');
}

static u32 number_run(u32 *number, u32 next, u32 end, u32 run)
{
	while (next < end)
		number[next++] = run;
	return next;
}

const char *coll_runs_read(const char *text, u32 *number, u32 ranks)
{
	u32 next = 0, run = 0;

	for (;; text++) {
		const u32 size = read_size(&text), left = ranks - next;

		if (!size || !left || (size > left && !is_repeated(text)))
			return NULL;
		do
			next = number_run(number, next, size < ranks - next ? next + size : ranks,
					  run++);
		while (is_repeated(text) && next < ranks);
		if (is_repeated(text))
			return text + 1;
		if (*text != '+')
			return next == ranks ? text : NULL;
	}
}

bool coll_runs_read_levels(const char *text, u32 *node, u32 *domain, u32 ranks)
{
	const char *rest = coll_runs_read(text, node, ranks);

	if (rest && *rest == '/')
		rest = coll_runs_read(rest + 1, domain, ranks);
	return rest && !*rest;
}
