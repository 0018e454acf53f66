// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Any bytes as a schedule's text or JSON: refused with a reason, or the same
 * again when printed and parsed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "tests/lib/schedules.h"
#include "fuzz.h"

typedef int print_function(const struct coll_schedule *s, FILE *to);
typedef int parse_function(const char *text, size_t bytes, struct coll_schedule **s,
			   struct coll_text_error *error);

static char *printed(print_function *print, const struct coll_schedule *s, size_t *bytes)
{
	char *text;
	FILE *to = open_memstream(&text, bytes);

	fuzz_must(to && !print(s, to), "a schedule is not printed");
	fclose(to);
	return text;
}

static void parse_print_parse(const char *data, size_t bytes, parse_function *parse,
			      print_function *print)
{
	struct coll_text_error error;
	struct coll_schedule *s, *back;
	char *text;

	if (parse(data, bytes, &s, &error)) {
		fuzz_must(error.reason[0], "refused without a reason");
		return;
	}
	text = printed(print, s, &bytes);
	fuzz_must(!parse(text, bytes, &back, &error), "what was printed is not parsed");
	fuzz_must(s->bytes == back->bytes && !memcmp(s, back, s->bytes),
		  "what was printed is parsed as something else");
	free(back);
	free(text);
	free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = malloc(bytes + !bytes);	/* of exactly this size: no byte beyond is read */

	memcpy(text, data, bytes);
	parse_print_parse(text, bytes, coll_text_parse, coll_text_print);
	parse_print_parse(text, bytes, coll_json_parse, coll_json_print);
	free(text);
	return 0;
}

struct taker {
	take_seed *take;
	void *argument;
};

static void take_last_rank(const char *name, struct coll_schedule *const *s, u32 ranks,
			   void *argument)
{
	const struct taker *taker = argument;
	print_function *const forms[] = { coll_text_print, coll_json_print };
	size_t bytes;
	u32 i;

	(void)name;
	for (i = 0; i < 2; i++) {
		char *text = printed(forms[i], s[ranks - 1], &bytes);

		taker->take(text, bytes, taker->argument);
		free(text);
	}
}

void fuzz_seeds(take_seed *take, void *argument)
{
	struct taker taker = { .take = take, .argument = argument };

	each_collective(5, take_last_rank, &taker);
}
