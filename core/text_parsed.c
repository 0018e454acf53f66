// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "names.h"
#include "text_parsed.h"

int coll_parse_error(struct coll_text_error *error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error->reason, sizeof(error->reason), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

bool coll_parse_number(const char *word, size_t length, u64 most, u64 *number)
{
	size_t i;

	*number = 0;
	for (i = 0; i < length; i++) {
		u64 digit = (u64)word[i] - '0';

		if (digit > 9 || *number > (most - digit) / 10)
			return false;
		*number = *number * 10 + digit;
	}
	return length > 0;
}

bool coll_parse_address(const char *word, size_t length, u64 *place)
{
	const char *plus = length ? memchr(word, '+', length) : NULL;
	int buffer;
	u64 offset;

	if (!plus)
		return false;
	buffer = coll_buffer_find(word, plus - word);
	if (buffer < 0 ||
	    !coll_parse_number(plus + 1, word + length - plus - 1, COLL_BYTES_MAX, &offset))
		return false;
	*place = COLL_ADDRESS(buffer, offset);
	return true;
}

int coll_parse_wait(struct coll_build *b, u64 op, bool any, struct coll_text_error *error)
{
	if (op >= b->schedule->ops)
		return coll_parse_error(error, "op %u names op %llu, which is not before it",
					b->schedule->ops, (unsigned long long)op);
	if (any)
		coll_emit_any(b, op);
	else
		coll_emit_after(b, op);
	return b->error;
}

/* The builder would say -EINVAL; this says why. */
static int parsed_peer_wrong(const struct coll_schedule *s, const struct coll_parsed_op *op,
			     struct coll_text_error *error)
{
	if (op->kind == COLL_OP_REDUCE || op->kind == COLL_OP_COPY)
		return 0;
	if (op->peer >= s->ranks)
		return coll_parse_error(error,
					"op %u: its peer is not below the number of ranks, %u",
					s->ops, s->ranks);
	if (op->peer == s->rank)
		return coll_parse_error(error, "op %u: the rank is its own peer", s->ops);
	return 0;
}

static u32 parsed_emit_kind(struct coll_build *b, const struct coll_parsed_op *op)
{
	switch (op->kind) {
	case COLL_OP_SEND:
		return coll_emit_send(b, op->peer, op->left, op->bytes);
	case COLL_OP_RECV:
		return coll_emit_recv(b, op->peer, op->result, op->bytes);
	case COLL_OP_REDUCE:
		coll_build_reduction(b, op->type, op->reduction, b->schedule->element);
		return coll_emit_reduce(b, op->result, op->left, op->right, op->bytes);
	case COLL_OP_COPY:
		return coll_emit_copy(b, op->result, op->left, op->bytes);
	case COLL_OP_CONNECT:
		return coll_emit_connect(b, op->peer);
	default:
		return coll_emit_release(b, op->peer);
	}
}

int coll_parsed_emit(struct coll_build *b, const struct coll_parsed_op *op,
		     struct coll_text_error *error)
{
	u32 index, slot;

	if (parsed_peer_wrong(b->schedule, op, error))
		return -EINVAL;
	if (op->unless != COLL_NONE && op->unless >= b->schedule->ops)
		return coll_parse_error(error, "op %u names op %llu, which is not before it",
					b->schedule->ops, (unsigned long long)op->unless);
	if (op->optional)
		coll_emit_optional(b);
	coll_emit_unless(b, op->unless);
	coll_emit_one_way(b, op->way);
	index = parsed_emit_kind(b, op);
	if (b->error)
		return b->error;
	slot = b->op[index].slot;
	if (op->slot != slot)
		return coll_parse_error(error,
					"op %u: its slot is %llu, the next of this pair is %u",
					index, (unsigned long long)op->slot, slot);
	return 0;
}

/* Header and ops into `memory`; the builder's errors come back. */
static int parsed_build(const struct coll_parsed *parsed, coll_parsed_ops *ops, const void *source,
			void *memory, u64 bytes, struct coll_schedule **schedule,
			struct coll_text_error *error)
{
	struct coll_build b;
	int status;

	coll_build_init(&b, memory, bytes, parsed->rank, parsed->ranks);
	if (b.error == -EINVAL)
		return coll_parse_error(error, "the rank is not below the number of ranks");
	coll_build_buffers(&b, parsed->buffer[COLL_IN], parsed->buffer[COLL_OUT]);
	coll_build_reduction(&b, 0, 0, parsed->element);
	coll_emit_scratch(&b, parsed->buffer[COLL_SCRATCH]);
	if (b.error)
		return b.error;
	status = ops(&b, source, error);
	return status ? status : coll_build_finish(&b, schedule);
}

static int parsed_check(const struct coll_schedule *s, u32 *refused, struct coll_text_error *error)
{
	struct coll_refusal refusal;
	void *work = malloc(coll_check_bytes(s, s->bytes) + 1);
	int status;

	if (!work)
		return -ENOMEM;
	status = coll_check(s, s->bytes, work, &refusal);
	free(work);
	if (!status)
		return 0;
	*refused = refusal.op;
	if (refusal.op == COLL_NONE)
		coll_parse_error(error, "%s", refusal.reason);
	else
		coll_parse_error(error, "op %u: %s", refusal.op, refusal.reason);
	return status;
}

int coll_parsed_schedule(const struct coll_parsed *parsed, coll_parsed_ops *ops, const void *source,
			 u64 hint, struct coll_schedule **schedule, u32 *refused,
			 struct coll_text_error *error)
{
	struct coll_schedule *s;
	void *memory = NULL;
	int status = -ENOSPC;

	*refused = COLL_NONE;
	for (; status == -ENOSPC; hint *= 2) {
		free(memory);
		memory = malloc(hint);
		if (!memory)
			return -ENOMEM;
		status = parsed_build(parsed, ops, source, memory, hint, &s, error);
	}
	if (!status)
		status = parsed_check(s, refused, error);
	if (status == -E2BIG && !error->reason[0])
		coll_parse_error(error, "more ranks, ops, waits or bytes than a schedule may have");
	if (status) {
		free(memory);
		return status;
	}
	*schedule = s;	/* begins at `memory` */
	return 0;
}
