// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/names.h"
#include "core/text.h"
#include "tests/lib/schedules.h"

typedef int print_function(const struct coll_schedule *s, FILE *to);
typedef int parse_function(const char *text, size_t bytes, struct coll_schedule **s,
			   struct coll_text_error *error);

static char *printed(print_function *print, const struct coll_schedule *s)
{
	size_t bytes;
	char *text;
	FILE *to = open_memstream(&text, &bytes);

	assert_non_null(to);
	assert_int_equal(print(s, to), 0);
	fclose(to);
	return text;
}

/* Printed, parsed and printed: the same bytes of schedule and of text. */
static void round_trip(const struct coll_schedule *s, print_function *print,
		       parse_function *parse)
{
	char *text = printed(print, s), *again;
	struct coll_text_error error;
	struct coll_schedule *back;

	if (parse(text, strlen(text), &back, &error))
		fail_msg("line %u: %s\n%s", error.line, error.reason, text);
	assert_int_equal(back->bytes, s->bytes);
	assert_memory_equal(back, s, s->bytes);
	again = printed(print, back);
	assert_string_equal(again, text);
	free(again);
	free(back);
	free(text);
}

static void round_trips(const char *name, struct coll_schedule *const *s, u32 ranks,
			void *argument)
{
	u32 i;

	(void)name;
	(void)argument;
	for (i = 0; i < ranks; i++) {
		round_trip(s[i], coll_text_print, coll_text_parse);
		round_trip(s[i], coll_json_print, coll_json_parse);
	}
}

static void algorithms_survive_text_and_json(void **state)
{
	(void)state;
	assert_true(each_collective(9, round_trips, NULL) >= 9);
}

/* One of everything; the form that people get to see. */
static const char everything[] =
	"schedule rank 1 of 4 in 64 out 64 scratch 136 element 12\n"
	"   0 recv    8 scratch+0 from 0 slot 0\n"
	"   1 recv    8 scratch+64 from 0 slot 1 optional\n"
	"   2 send    8 in+0 to 0 slot 0\n"
	"   3 reduce  8 scratch+128 = scratch+0 sum in+0 double after 0 2\n"
	"   4 send    8 scratch+128 to 3 slot 0 after any of 3 1 optional unless 1\n"
	"   5 copy    8 out+0 = scratch+128 after 3\n"
	"   6 connect to 2\n"
	"   7 release to 2 after 6\n"
	"   8 reduce  12 out+12 = out+24 user in+0 opaque\n"
	"   9 join after any of 8 7\n"
	"  10 copy    0 scratch+8 = scratch+8\n";

static struct coll_schedule *parsed(const char *text)
{
	struct coll_text_error error;
	struct coll_schedule *s;

	if (coll_text_parse(text, strlen(text), &s, &error))
		fail_msg("line %u: %s", error.line, error.reason);
	return s;
}

static void the_text_form_is_fixed(void **state)
{
	struct coll_schedule *s = parsed(everything);
	char *text = printed(coll_text_print, s);

	(void)state;
	assert_string_equal(text, everything);
	round_trip(s, coll_json_print, coll_json_parse);
	free(text);
	free(s);
}

static void names_and_numbers_agree(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 256; i++) {
		const char *type = coll_type_name(i), *reduction = coll_reduction_name(i);
		const char *kind = coll_op_kind_name(i), *buffer = coll_buffer_name(i);
		bool known = i < COLL_TYPES || i == COLL_OPAQUE_TYPE;

		assert_int_equal(coll_type_find(type, strlen(type)), known ? (int)i : -EINVAL);
		known = i < COLL_REDUCTIONS || i == COLL_USER_REDUCTION;
		assert_int_equal(coll_reduction_find(reduction, strlen(reduction)),
				 known ? (int)i : -EINVAL);
		assert_int_equal(coll_op_kind_find(kind, strlen(kind)),
				 i < COLL_OP_KINDS ? (int)i : -EINVAL);
		assert_int_equal(coll_buffer_find(buffer, strlen(buffer)),
				 i < COLL_BUFFERS ? (int)i : -EINVAL);
	}
	assert_int_equal(coll_type_find("int", 3), -EINVAL);
	assert_int_equal(coll_type_find("int80", 4), COLL_INT8);
	assert_int_equal(coll_type_find("", 0), -EINVAL);
}

static const struct malformed {
	const char *text;
	int error;
	u32 line;
	const char *reason;
} malformed_texts[] = {
#define HEAD "schedule rank 1 of 4 in 64 out 64 scratch 64\n"
	{ "", -EINVAL, 1, "'schedule' is wanted, but the line is over" },
	{ "\n", -EINVAL, 1, "'schedule' is wanted, but the line is over" },
	{ "scheme rank", -EINVAL, 1, "'schedule' is wanted, but 'scheme' is there" },
	{ "schedule rank x", -EINVAL, 1,
	  "a rank, a number up to 16777216, is wanted, but 'x' is there" },
	{ "schedule rank 4 of 4 in 0 out 0 scratch 0\n", -EINVAL, 2,
	  "the rank is not below the number of ranks" },
	{ "schedule rank 0 of 4 in 0 out 0 scratch 999999999999999999999\n", -EINVAL, 1,
	  "a buffer's size, a number up to 281474976710656, is wanted, but "
	  "'999999999999999999999' is there" },
	{ HEAD "0 recv 8 scratch+0 from 0 slot 0\n\n", -EINVAL, 3,
	  "an op's number, a number up to 4194304, is wanted, but the line is over" },
	{ HEAD "1 recv 8 scratch+0 from 0 slot 0\n", -EINVAL, 2,
	  "op 1 stands where op 0 is due" },
	{ HEAD "0 recieve 8", -EINVAL, 2, "a kind of op is wanted, but 'recieve' is there" },
	{ HEAD "0 recv -8", -EINVAL, 2,
	  "a number of bytes, a number up to 281474976710656, is wanted, but '-8' is there" },
	{ HEAD "0 recv 8 scratch", -EINVAL, 2,
	  "a place such as scratch+64 is wanted, but 'scratch' is there" },
	{ HEAD "0 recv 8 +4", -EINVAL, 2,
	  "a place such as scratch+64 is wanted, but '+4' is there" },
	{ HEAD "0 recv 8 out+", -EINVAL, 2,
	  "a place such as scratch+64 is wanted, but 'out+' is there" },
	{ HEAD "0 recv 8 out+0 to 0", -EINVAL, 2, "'from' is wanted, but 'to' is there" },
	{ HEAD "0 recv 8 out+0 from 4 slot 0", -EINVAL, 2,
	  "op 0: its peer is not below the number of ranks, 4" },
	{ HEAD "0 recv 8 out+0 from 1 slot 0", -EINVAL, 2, "op 0: the rank is its own peer" },
	{ HEAD "0 recv 8 out+0 from 0 slot 1", -EINVAL, 2,
	  "op 0: its slot is 1, the next of this pair is 0" },
	{ HEAD "0 connect to 0 after 0\n", -EINVAL, 2, "op 0 names op 0, which is not before it" },
	{ HEAD "0 connect to 0 unless 7\n", -EINVAL, 2,
	  "op 0 names op 7, which is not before it" },
	{ HEAD "0 connect to 0 after\n", -EINVAL, 2,
	  "an op's number, a number up to 4194304, is wanted, but the line is over" },
	{ HEAD "0 connect to 0 soon\n", -EINVAL, 2,
	  "the end of the line is wanted, but 'soon' is there" },
	{ HEAD "0 connect to 0 \x1b[31m\n", -EINVAL, 2,
	  "the end of the line is wanted, but '?[31m' is there" },
	{ HEAD "0 copy 8 out+0 in+0", -EINVAL, 2, "'=' is wanted, but 'in+0' is there" },
	{ HEAD "0 reduce 8 out+0 = in+0 plus in+8 double", -EINVAL, 2,
	  "a reduction is wanted, but 'plus' is there" },
	{ HEAD "0 reduce 8 out+0 = in+0 sum in+8 real", -EINVAL, 2,
	  "a type is wanted, but 'real' is there" },
	/* What the check refuses, on the op's line. */
	{ HEAD "0 connect to 0\n1 copy 8 in+0 = out+0\n", -EINVAL, 3,
	  "op 1: it writes into the input buffer" },
	{ HEAD "0 copy 8 out+60 = in+0\n", -EINVAL, 2,
	  "op 0: it touches bytes outside its buffers" },
};

static const struct malformed malformed_jsons[] = {
#define START "{\"rank\":0,\"ranks\":4,\"element\":0,\"buffers\":{\"in\":8,\"out\":8,\"scratch\":8},"
	{ "", -EINVAL, 1, "'[' or '{' expected near end of file" },
	{ "[]", -EINVAL, 0, "the schedule is no object" },
	{ "{}", -EINVAL, 0, "the schedule lacks \"rank\"" },
	{ START "\"ops\":[],\"more\":1}", -EINVAL, 0,
	  "the schedule has a member that it cannot have" },
	{ START "\"ops\":{}}", -EINVAL, 0, "\"ops\" is no list" },
	{ START "\"ops\":[1]}", -EINVAL, 0, "op 0: it has no \"kind\"" },
	{ START "\"ops\":[{}]}", -EINVAL, 0, "op 0: it has no \"kind\"" },
	{ START "\"ops\":[{\"kind\":\"fly\"}]}", -EINVAL, 0,
	  "op 0: the \"kind\" is an unknown one" },
	{ START "\"ops\":[{\"kind\":\"connect\"}]}", -EINVAL, 0, "op 0: connect lacks \"peer\"" },
	{ START "\"ops\":[{\"kind\":\"connect\",\"peer\":1,\"slot\":0}]}", -EINVAL, 0,
	  "op 0: connect has a member that it cannot have" },
	{ START "\"ops\":[{\"kind\":\"connect\",\"peer\":-1}]}", -EINVAL, 0,
	  "op 0: \"peer\" is no integer from 0 to 16777216" },
	{ START "\"ops\":[{\"kind\":\"connect\",\"peer\":0}]}", -EINVAL, 0,
	  "op 0: the rank is its own peer" },
	{ START "\"ops\":[{\"kind\":\"connect\",\"peer\":1,\"after\":0}]}", -EINVAL, 0,
	  "op 0: \"after\" is no list of ops" },
	{ START "\"ops\":[{\"kind\":\"connect\",\"peer\":1,\"after\":[0]}]}", -EINVAL, 0,
	  "op 0 names op 0, which is not before it" },
	{ START "\"ops\":[{\"kind\":\"connect\",\"peer\":1,\"after\":[0],\"after_any\":[0]}]}",
	  -EINVAL, 0, "op 0: it has both \"after\" and \"after_any\"" },
	{ START "\"ops\":[{\"kind\":\"connect\",\"peer\":1,\"optional\":1}]}", -EINVAL, 0,
	  "op 0: \"optional\" is neither true nor false" },
	{ START "\"ops\":[{\"kind\":\"copy\",\"bytes\":9,\"result\":\"out+0\",\"left\":\"in+0\"}]}",
	  -EINVAL, 0, "op 0: it touches bytes outside its buffers" },
	{ START "\"ops\":[{\"kind\":\"copy\",\"bytes\":1,\"result\":\"out\",\"left\":\"in+0\"}]}",
	  -EINVAL, 0, "op 0: \"result\" is no place such as \"scratch+64\"" },
};

static void refused(parse_function *parse, const struct malformed *m, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		struct coll_schedule *s = NULL;
		struct coll_text_error error;

		assert_int_equal(parse(m[i].text, strlen(m[i].text), &s, &error), m[i].error);
		assert_string_equal(error.reason, m[i].reason);
		assert_int_equal(error.line, m[i].line);
		assert_null(s);
	}
}

static void malformed_input_is_refused_with_its_position(void **state)
{
	(void)state;
	refused(coll_text_parse, malformed_texts,
		sizeof(malformed_texts) / sizeof(*malformed_texts));
	refused(coll_json_parse, malformed_jsons,
		sizeof(malformed_jsons) / sizeof(*malformed_jsons));
}

static u32 occurrences(const char *text, const char *word)
{
	u32 count = 0;

	for (; (text = strstr(text, word)); text++)
		count++;
	return count;
}

/* Every message is an arrow of the drawing. */
static void draw(const char *name, struct coll_schedule *const *s, u32 ranks, void *argument)
{
	u32 i, k, messages = 0, waits = 0;
	size_t bytes;
	char *text;
	FILE *to = open_memstream(&text, &bytes);

	(void)name;
	(void)argument;
	assert_int_equal(coll_dot_print((const struct coll_schedule *const *)s, ranks, to), 0);
	fclose(to);
	for (i = 0; i < ranks; i++)
		for (k = 0; k < s[i]->ops; k++) {
			messages += coll_ops(s[i])[k].kind == COLL_OP_SEND;
			waits += coll_ops(s[i])[k].waits +
				 (coll_ops(s[i])[k].unless != COLL_NONE);
		}
	assert_int_equal(occurrences(text, "color=blue"), messages);
	assert_int_equal(occurrences(text, " -> "), messages + waits);
	assert_int_equal(occurrences(text, "{"), occurrences(text, "}"));
	free(text);
}

static void drawings_have_every_message(void **state)
{
	(void)state;
	each_collective(9, draw, NULL);
}

/* How often a line stands in a GOAL program, within that rank. */
static bool goal_has(const char *text, u32 rank, const char *line)
{
	char head[32];
	const char *start, *end, *found;

	snprintf(head, sizeof(head), "rank %u {\n", rank);
	start = strstr(text, head);
	assert_non_null(start);
	end = strstr(start, "}\n");
	assert_non_null(end);
	found = strstr(start, line);
	return found && found < end;
}

/* Each send has its receive: the same size and tag, with the other rank's name. */
static void goal_matches(const char *text, struct coll_schedule *const *s, u32 ranks)
{
	u32 i, k;

	for (i = 0; i < ranks; i++)
		for (k = 0; k < s[i]->ops; k++) {
			const struct coll_op *op = &coll_ops(s[i])[k];
			char line[96];

			if (op->kind != COLL_OP_SEND)
				continue;
			snprintf(line, sizeof(line), "o%u: send %llub to %u tag %u\n", k,
				 (unsigned long long)(op->bytes ? op->bytes : 1),
				 coll_op_rank(s[i], op), op->slot);
			assert_true(goal_has(text, i, line));
			snprintf(line, sizeof(line), ": recv %llub from %u tag %u\n",
				 (unsigned long long)(op->bytes ? op->bytes : 1), i, op->slot);
			assert_true(goal_has(text, coll_op_rank(s[i], op), line));
		}
}

static bool goal_can(struct coll_schedule *const *s, u32 ranks)
{
	u32 i, k;

	for (i = 0; i < ranks; i++)
		for (k = 0; k < s[i]->ops; k++)
			if (coll_ops(s[i])[k].flags)
				return false;
	return true;
}

static void export_goal(const char *name, struct coll_schedule *const *s, u32 ranks,
			void *argument)
{
	const struct coll_schedule *const *all = (const struct coll_schedule *const *)s;
	struct coll_text_error error;
	size_t bytes;
	char *text, head[32];
	FILE *to = open_memstream(&text, &bytes);
	int status = coll_goal_print(all, ranks, 0.5, to, &error);

	(void)name;
	fclose(to);
	if (goal_can(s, ranks)) {
		assert_int_equal(status, 0);
		snprintf(head, sizeof(head), "num_ranks %u\nrank 0 {\n", ranks);
		assert_memory_equal(text, head, strlen(head));
		assert_int_equal(occurrences(text, "}\n"), ranks);
		goal_matches(text, s, ranks);
		++*(u32 *)argument;
	} else {
		assert_int_equal(status, -EOPNOTSUPP);
		assert_non_null(strstr(error.reason, "GOAL"));
		assert_int_equal(bytes, 0);
	}
	free(text);
}

static void goal_is_complete_or_refused(void **state)
{
	u32 exported = 0;

	(void)state;
	each_collective(9, export_goal, &exported);
	assert_true(exported >= 9);
}

static char *goal_text(const struct coll_schedule *s, double reduce_ns, int expected,
		       struct coll_text_error *error)
{
	size_t bytes;
	char *text;
	FILE *to = open_memstream(&text, &bytes);

	assert_int_equal(coll_goal_print(&s, 1, reduce_ns, to, error), expected);
	fclose(to);
	return text;
}

static void goal_refuses_with_the_reason(void **state)
{
	struct coll_schedule *s = parsed("schedule rank 0 of 1 in 8 out 8 scratch 0\n"
					 "0 reduce 8 out+0 = in+0 sum in+0 double\n");
	struct coll_text_error error;
	char *text = goal_text(s, 2.5, 0, &error);

	(void)state;
	assert_string_equal(text, "num_ranks 1\nrank 0 {\no0: calc 20\n}\n");
	free(text);
	free(goal_text(s, -1, -EINVAL, &error));
	free(goal_text(s, 0.0 / 0.0, -EINVAL, &error));
	free(goal_text(s, 1e18, -EINVAL, &error));
	assert_string_equal(error.reason, "rank 0, op 0 takes too long to be a number");
	free(s);

	s = parsed("schedule rank 1 of 2 in 8 out 8 scratch 0\n");
	free(goal_text(s, 1, -EINVAL, &error));
	assert_string_equal(error.reason, "GOAL needs every rank's schedule, in order");
	free(s);

	s = parsed("schedule rank 0 of 1 in 8 out 8 scratch 0\n"
		   "0 copy 8 out+0 = in+0\n1 copy 0 out+0 = in+0 after any of 0\n");
	free(goal_text(s, 1, -EOPNOTSUPP, &error));
	assert_string_equal(error.reason,
			    "rank 0, op 1 waits for any of several ops, GOAL only knows all");
	free(s);

	s = parsed("schedule rank 0 of 1 in 8 out 8 scratch 0\n"
		   "0 copy 8 out+0 = in+0 optional\n");
	free(goal_text(s, 1, -EOPNOTSUPP, &error));
	assert_string_equal(error.reason, "rank 0, op 0 is optional, GOAL has no such op");
	free(s);
}

/* Chained where the later receive starts after the earlier one anyway, only there. */
static void goal_chains_receives_that_cannot_deadlock(void **state)
{
	struct coll_schedule *s[2];
	struct coll_text_error error;
	size_t bytes;
	char *text;
	FILE *to = open_memstream(&text, &bytes);

	(void)state;
	s[0] = parsed("schedule rank 0 of 2 in 8 out 8 scratch 0\n"
		      "0 recv 0 out+0 from 1 slot 0\n"
		      "1 recv 0 out+0 from 1 slot 1\n"
		      "2 recv 0 out+0 from 1 slot 2 after 0\n"
		      "3 recv 0 out+0 from 1 slot 3 after 1\n");
	s[1] = parsed("schedule rank 1 of 2 in 8 out 8 scratch 0\n"
		      "0 send 0 in+0 to 0 slot 0\n1 send 0 in+0 to 0 slot 1\n"
		      "2 send 0 in+0 to 0 slot 2\n3 send 0 in+0 to 0 slot 3\n");
	assert_int_equal(coll_goal_print((const struct coll_schedule *const *)s, 2, 1, to, &error),
			 0);
	fclose(to);
	assert_true(goal_has(text, 0, "o1 irequires o0\n"));
	assert_true(goal_has(text, 0, "o2 irequires o1\n"));
	assert_true(goal_has(text, 0, "o2 requires o0\n"));
	assert_false(goal_has(text, 0, "o3 irequires"));
	free(text);
	free(s[0]);
	free(s[1]);
}

/* Waits by the hundred: more than the first guess of memory has room for. */
static void an_op_may_wait_for_very_many(void **state)
{
	enum { OPS = 300 };
	size_t bytes;
	char *text;
	FILE *to = open_memstream(&text, &bytes);
	struct coll_schedule *s;
	u32 i, k;

	(void)state;
	fprintf(to, "schedule rank 0 of 1 in 0 out 0 scratch 0\n");
	for (i = 0; i < OPS; i++) {
		fprintf(to, "%u copy 0 out+0 = in+0%s", i, i ? " after" : "");
		for (k = 0; k < i; k++)
			fprintf(to, " %u", k);
		fprintf(to, "\n");
	}
	fclose(to);
	s = parsed(text);
	assert_int_equal(s->waits, OPS * (OPS - 1) / 2);
	round_trip(s, coll_text_print, coll_text_parse);
	round_trip(s, coll_json_print, coll_json_parse);
	free(s);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(algorithms_survive_text_and_json),
		cmocka_unit_test(the_text_form_is_fixed),
		cmocka_unit_test(names_and_numbers_agree),
		cmocka_unit_test(malformed_input_is_refused_with_its_position),
		cmocka_unit_test(drawings_have_every_message),
		cmocka_unit_test(goal_is_complete_or_refused),
		cmocka_unit_test(goal_refuses_with_the_reason),
		cmocka_unit_test(goal_chains_receives_that_cannot_deadlock),
		cmocka_unit_test(an_op_may_wait_for_very_many),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
