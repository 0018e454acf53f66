// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Every rule of core/check.c refuses what breaks it, with its own reason; and
 * no bytes whatever do harm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/build.h"
#include "tests/lib/schedules.h"

enum { OPS = 9, PEERS = 3, WAITS = 7, FLIPS = 200000 };

static u64 memory[1024];

/* One of everything. Peers 0, 2 and 3 have the indices 0, 1, 2. */
static struct coll_schedule *valid_schedule(void)
{
	struct coll_schedule *s;
	struct coll_build b;
	u64 first, extra, sum, in = COLL_ADDRESS(COLL_IN, 0), out = COLL_ADDRESS(COLL_OUT, 0);
	u32 received, optional, sent, reduced;

	coll_build_init(&b, memory, sizeof(memory), 1, 4);
	coll_build_buffers(&b, 64, 64);
	coll_build_reduction(&b, COLL_DOUBLE, COLL_SUM, 0);
	first = coll_emit_scratch(&b, 8);
	extra = coll_emit_scratch(&b, 8);
	sum = coll_emit_scratch(&b, 8);
	received = coll_emit_recv(&b, 0, first, 8);
	coll_emit_optional(&b);
	optional = coll_emit_recv(&b, 0, extra, 8);
	sent = coll_emit_send(&b, 0, in, 8);
	coll_emit_after(&b, received);
	coll_emit_after(&b, sent);
	reduced = coll_emit_reduce(&b, sum, first, in, 8);
	coll_emit_any(&b, reduced);
	coll_emit_any(&b, optional);
	coll_emit_optional(&b);
	coll_emit_unless(&b, optional);
	coll_emit_send(&b, 3, sum, 8);
	coll_emit_after(&b, reduced);
	coll_emit_copy(&b, out, sum, 8);
	coll_emit_after(&b, coll_emit_connect(&b, 2));
	coll_emit_release(&b, 2);
	coll_emit_any(&b, optional);
	coll_emit_copy(&b, out + 8, extra, 8);
	assert_int_equal(coll_build_finish(&b, &s), 0);
	return s;
}

/* `bytes` bytes at `at` become those of `value`. */
struct change {
	u32 at, bytes;
	u64 value;
};

#define SIZE_OF(type, field) sizeof(((struct type *)0)->field)
#define HEADER(field) offsetof(struct coll_schedule, field), SIZE_OF(coll_schedule, field)
#define OP(i, field)                                                  \
	sizeof(struct coll_schedule) + (i) * sizeof(struct coll_op) + \
		offsetof(struct coll_op, field),                      \
		SIZE_OF(coll_op, field)
#define AFTER_OPS (sizeof(struct coll_schedule) + OPS * sizeof(struct coll_op))
#define PEER(i, field)                                                                 \
	AFTER_OPS + (i) * sizeof(struct coll_peer) + offsetof(struct coll_peer, field), \
		SIZE_OF(coll_peer, field)
#define WAIT(i) AFTER_OPS + PEERS * sizeof(struct coll_peer) + (i) * sizeof(u32), sizeof(u32)

#define IN(offset) COLL_ADDRESS(COLL_IN, offset)
#define OUT(offset) COLL_ADDRESS(COLL_OUT, offset)
#define SCRATCH(offset) COLL_ADDRESS(COLL_SCRATCH, offset)

static const struct rule {
	const char *reason;
	int error;
	u32 op;
	struct change change[2];
} rules[] = {
	{ "not a schedule: wrong magic number", -EINVAL, COLL_NONE, { { HEADER(magic), 1 } } },
	{ "unknown version", -EINVAL, COLL_NONE, { { HEADER(version), 2 } } },
	{ "the header's reserved field is not zero", -EINVAL, COLL_NONE, { { HEADER(zero), 1 } } },
	{ "more ranks than COLL_RANKS_MAX",
	  -E2BIG,
	  COLL_NONE,
	  { { HEADER(ranks), COLL_RANKS_MAX + 1 } } },
	{ "more ops than COLL_OPS_MAX", -E2BIG, COLL_NONE, { { HEADER(ops), COLL_OPS_MAX + 1 } } },
	{ "more waits than COLL_WAITS_MAX",
	  -E2BIG,
	  COLL_NONE,
	  { { HEADER(waits), COLL_WAITS_MAX + 1 } } },
	{ "a buffer larger than COLL_BYTES_MAX",
	  -E2BIG,
	  COLL_NONE,
	  { { HEADER(buffer[2]), COLL_BYTES_MAX + 1 } } },
	{ "its rank is not below the number of ranks",
	  -EINVAL,
	  COLL_NONE,
	  { { HEADER(rank), 4 } } },
	{ "more peers than other ranks", -EINVAL, COLL_NONE, { { HEADER(peers), 4 } } },
	{ "its size does not fit its counts", -EINVAL, COLL_NONE, { { HEADER(bytes), 712 } } },
	{ "its size does not fit its counts", -EINVAL, COLL_NONE, { { HEADER(ops), OPS + 1 } } },

	{ "a peer's rank is not below the number of ranks",
	  -EINVAL,
	  COLL_NONE,
	  { { PEER(2, rank), 4 } } },
	{ "the rank itself is among the peers", -EINVAL, COLL_NONE, { { PEER(1, rank), 1 } } },
	{ "the peers are not in ascending order", -EINVAL, COLL_NONE, { { PEER(1, rank), 0 } } },
	{ "a peer has more messages than there are ops",
	  -EINVAL,
	  COLL_NONE,
	  { { PEER(0, recvs), OPS + 1 } } },
	{ "a peer's reserved field is not zero", -EINVAL, COLL_NONE, { { PEER(0, zero), 1 } } },

	{ "unknown kind of op", -EINVAL, 2, { { OP(2, kind), COLL_OP_KINDS } } },
	{ "unknown flags", -EINVAL, 2, { { OP(2, flags), 16 } } },
	{ "only a circuit can be one-way", -EINVAL, 2, { { OP(2, flags), COLL_CIRCUIT_IN } } },
	{ "its reserved field is not zero", -EINVAL, 2, { { OP(2, zero), 1 } } },

	{ "its waits do not follow those of the op before", -EINVAL, 3, { { OP(3, wait), 1 } } },
	{ "its waits do not follow those of the op before", -EINVAL, 8, { { OP(8, waits), 2 } } },
	{ "it waits for an op that is not before it", -EINVAL, 3, { { WAIT(0), 3 } } },
	{ "it waits for an op that is not before it", -EINVAL, 3, { { WAIT(0), COLL_NONE } } },
	{ "mandatory, it needs an optional op that may never happen",
	  -EINVAL,
	  5,
	  { { WAIT(4), 1 } } },
	{ "it waits for any op of none", -EINVAL, 2, { { OP(2, flags), COLL_WAIT_ANY } } },
	{ "its `unless` names an op that is not before it", -EINVAL, 4, { { OP(4, unless), 4 } } },
	{ "only an optional op can be skipped", -EINVAL, 5, { { OP(5, unless), 1 } } },

	{ "a local op names a peer", -EINVAL, 5, { { OP(5, peer), 0 } } },
	{ "its peer is not in the peer table", -EINVAL, 2, { { OP(2, peer), PEERS } } },
	{ "only messages have a slot", -EINVAL, 6, { { OP(6, slot), 0 } } },
	{ "its slot is not the next one of this pair", -EINVAL, 2, { { OP(2, slot), 1 } } },
	{ "its slot is not the next one of this pair", -EINVAL, 1, { { OP(1, slot), 0 } } },

	{ "a type of no known size", -EINVAL, 3, { { OP(3, type), COLL_OPAQUE_TYPE } } },
	{ "a type of no known size", -EINVAL, 3, { { OP(3, type), COLL_TYPES } } },
	{ "this reduction is not defined for this type",
	  -EINVAL,
	  3,
	  { { OP(3, reduction), COLL_BAND } } },
	{ "this reduction is not defined for this type",
	  -EINVAL,
	  3,
	  { { OP(3, type), COLL_OPAQUE_TYPE }, { HEADER(element), 8 } } },
	{ "its bytes are no whole number of elements", -EINVAL, 3, { { OP(3, bytes), 7 } } },
	{ "it touches bytes outside its buffers", -EINVAL, 3, { { OP(3, left), SCRATCH(132) } } },
	{ "it touches bytes outside its buffers", -EINVAL, 3, { { OP(3, right), IN(57) } } },
	{ "it touches bytes outside its buffers",
	  -EINVAL,
	  3,
	  { { OP(3, result), COLL_ADDRESS(COLL_BUFFERS, 0) } } },
	{ "it writes into the input buffer", -EINVAL, 3, { { OP(3, result), IN(8) } } },
	{ "its result overlaps its left operand", -EINVAL, 3, { { OP(3, left), SCRATCH(121) } } },
	{ "its result overlaps its right operand", -EINVAL, 3, { { OP(3, right), SCRATCH(121) } } },

	{ "only a reduce has a type, a reduction and a right operand",
	  -EINVAL,
	  5,
	  { { OP(5, type), 1 } } },
	{ "only a reduce has a type, a reduction and a right operand",
	  -EINVAL,
	  2,
	  { { OP(2, right), 8 } } },
	{ "this kind has no source", -EINVAL, 0, { { OP(0, left), 8 } } },
	{ "this kind has no destination", -EINVAL, 2, { { OP(2, result), 8 } } },
	{ "this kind has no bytes", -EINVAL, 6, { { OP(6, bytes), 1 } } },
	{ "it touches bytes outside its buffers", -EINVAL, 2, { { OP(2, left), IN(57) } } },
	{ "it touches bytes outside its buffers", -EINVAL, 0, { { OP(0, bytes), ~0ULL } } },
	{ "it touches bytes outside its buffers", -EINVAL, 0, { { OP(0, result), ~0ULL } } },
	{ "it writes into the input buffer", -EINVAL, 0, { { OP(0, result), IN(0) } } },
	{ "its two sides overlap", -EINVAL, 5, { { OP(5, left), OUT(7) } } },

	{ "optional, it sends from the application's memory",
	  -EINVAL,
	  4,
	  { { OP(4, left), IN(0) } } },
	{ "optional, it receives into the application's memory",
	  -EINVAL,
	  1,
	  { { OP(1, result), OUT(0) } } },

	{ "a peer's message counts do not fit the ops",
	  -EINVAL,
	  COLL_NONE,
	  { { PEER(0, sends), 2 } } },
	{ "waits that belong to no op",
	  -EINVAL,
	  COLL_NONE,
	  { { OP(8, flags), 0 }, { OP(8, waits), 0 } } },
	{ "the final padding is not zero", -EINVAL, COLL_NONE, { { WAIT(WAITS), 1 } } },
};

static void apply(void *schedule, const struct change *change)
{
	memcpy((char *)schedule + change->at, &change->value, change->bytes);
}

static void every_rule_refuses(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		struct coll_schedule *s = valid_schedule();
		struct coll_refusal refusal;
		u64 bytes = s->bytes;

		assert_int_equal(s->ops, OPS);
		assert_int_equal(s->peers, PEERS);
		assert_int_equal(s->waits, WAITS);
		assert_int_equal(check_schedule(s, bytes, &refusal), 0);
		apply(s, &rules[i].change[0]);
		apply(s, &rules[i].change[1]);
		assert_int_equal(check_schedule(s, bytes, &refusal), rules[i].error);
		assert_string_equal(refusal.reason, rules[i].reason);
		assert_int_equal(refusal.op, rules[i].op);
	}
}

/* Every length but the right one, in memory that ends there. */
static void a_cut_schedule_is_refused(void **state)
{
	struct coll_schedule *s = valid_schedule();
	struct coll_refusal refusal;
	u64 bytes;

	(void)state;
	for (bytes = 0; bytes < s->bytes; bytes++) {
		void *cut = malloc(bytes + 1);

		memcpy(cut, s, bytes);
		assert_int_equal(coll_check_bytes(cut, bytes), 0);
		assert_int_equal(check_schedule(cut, bytes, &refusal), -EINVAL);
		assert_string_equal(refusal.reason, bytes < sizeof(*s) ?
							    "shorter than its header" :
							    "its size does not fit its counts");
		free(cut);
	}
}

static void flipped_bytes_do_no_harm(void **state)
{
	const struct coll_schedule *s = valid_schedule();
	struct coll_schedule *copy = malloc(s->bytes);
	struct coll_refusal refusal;
	u32 round, accepted = 0;
	u64 seed = 42;

	(void)state;
	for (round = 0; round < FLIPS; round++) {
		u32 flips = 1 + random_next(&seed) % 3;
		bool finished;

		memcpy(copy, s, s->bytes);
		while (flips--)
			((u8 *)copy)[random_next(&seed) % s->bytes] =
				random_next(&seed) & 1 ? random_next(&seed)
						       : random_next(&seed) % 8;
		if (check_schedule(copy, s->bytes, &refusal)) {
			assert_non_null(refusal.reason);
			continue;
		}
		assert_null(refusal.reason);
		assert_in_range(step_through(copy, &finished), 0, copy->ops);
		accepted++;
	}
	free(copy);
	/* Else this would not test stepping, or not refusing. */
	assert_in_range(accepted, FLIPS / 1000, FLIPS / 2);
}

static void no_peers_need_no_work_space(void **state)
{
	struct coll_schedule *s;
	struct coll_refusal refusal;
	struct coll_build b;

	(void)state;
	coll_build_init(&b, memory, sizeof(memory), 0, 1);
	coll_emit_join(&b);
	assert_int_equal(coll_build_finish(&b, &s), 0);
	assert_int_equal(coll_check_bytes(s, s->bytes), 0);
	assert_int_equal(coll_check(s, s->bytes, NULL, &refusal), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_refuses),
		cmocka_unit_test(a_cut_schedule_is_refused),
		cmocka_unit_test(flipped_bytes_do_no_harm),
		cmocka_unit_test(no_peers_need_no_work_space),
	};

	return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
