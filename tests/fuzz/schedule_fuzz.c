// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Any bytes as a schedule: refused, or good for planning, stepping, matching
 * and printing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/match.h"
#include "core/text.h"
#include "tests/lib/schedules.h"
#include "fuzz.h"

static void match_everything(const struct coll_schedule *s)
{
	void *plan_memory = malloc(coll_plan_bytes(s)), *step_memory;
	const struct coll_op *ops = coll_ops(s);
	struct coll_plan plan;
	struct coll_step step;
	u32 i, found;

	coll_plan_init(&plan, s, plan_memory);
	step_memory = malloc(coll_step_bytes(&plan) + 1);
	coll_step_init(&step, &plan, step_memory);
	for (i = 0; i < s->ops; i++) {
		u32 rank = coll_op_rank(s, &ops[i]);

		if (ops[i].kind != COLL_OP_RECV)
			continue;
		fuzz_must(coll_match(&step, rank, ops[i].slot, ops[i].bytes, &found) >= 0,
			  "a receive is not matched");
		fuzz_must(found == i, "a message is matched with another receive");
	}
	fuzz_must(coll_match(&step, s->rank, 0, 0, &found) < 0, "a rank sends to itself");
	free(step_memory);
	free(plan_memory);
}

static char *text_of(const struct coll_schedule *s, size_t *bytes)
{
	char *text;
	FILE *to = open_memstream(&text, bytes);

	fuzz_must(to && !coll_text_print(s, to), "a schedule is not printed");
	fclose(to);
	return text;
}

static void print_and_parse(const struct coll_schedule *s)
{
	struct coll_text_error error;
	struct coll_schedule *back;
	size_t bytes, bytes_again;
	char *text = text_of(s, &bytes), *again;

	if (coll_text_parse(text, bytes, &back, &error)) {
		fprintf(stderr, "line %u: %s\n%s", error.line, error.reason, text);
		fuzz_must(0, "what was printed is not parsed");
	}
	again = text_of(back, &bytes_again);
	fuzz_must(bytes == bytes_again && !memcmp(text, again, bytes),
		  "what was printed is parsed as something else");
	free(again);
	free(back);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct coll_refusal refusal;
	void *schedule = malloc(bytes + !bytes);
	bool finished;

	memcpy(schedule, data, bytes);
	if (!check_schedule(schedule, bytes, &refusal)) {
		const struct coll_schedule *s = schedule;

		fuzz_must(step_through(s, &finished) <= s->ops, "an op starts twice");
		match_everything(s);
		print_and_parse(s);
	}
	free(schedule);
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

	(void)name;
	taker->take(s[ranks - 1], s[ranks - 1]->bytes, taker->argument);
}

void fuzz_seeds(take_seed *take, void *argument)
{
	struct taker taker = { .take = take, .argument = argument };

	each_collective(7, take_last_rank, &taker);
}
