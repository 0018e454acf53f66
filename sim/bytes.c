// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/reduce.h"
#include "bytes.h"

struct sim_bytes {
	const struct sim_program *program;
	u64 ops;		/* of all ranks */
	u64 *first;		/* per rank: its first op */
	void **message;		/* per op: data sent to this receive */
	char *(*buffer)[COLL_BUFFERS];	/* per rank */
};

static const struct sim_class *class_of(const struct sim_bytes *bytes, u32 rank)
{
	return &bytes->program->class[program_class_of(bytes->program, rank)];
}

static const struct coll_op *op_of(const struct sim_bytes *bytes, u32 rank, u32 op)
{
	return &coll_ops(class_of(bytes, rank)->schedule)[op];
}

static char *bytes_at(const struct sim_bytes *bytes, u32 rank, u64 place)
{
	return bytes->buffer[rank][COLL_ADDRESS_BUFFER(place)] + COLL_ADDRESS_OFFSET(place);
}

/* Whether only built-in reductions are used. */
static bool can_reduce(const struct coll_schedule *s)
{
	u32 i;

	for (i = 0; i < s->ops; i++)
		if (coll_ops(s)[i].kind == COLL_OP_REDUCE &&
		    (coll_ops(s)[i].reduction == COLL_USER_REDUCTION ||
		     coll_ops(s)[i].type == COLL_OPAQUE_TYPE))
			return false;
	return true;
}

static int buffers_init(struct sim_bytes *bytes, const void *const *in, void *const *out)
{
	u32 rank;

	for (rank = 0; rank < bytes->program->ranks; rank++) {
		const struct coll_schedule *s = class_of(bytes, rank)->schedule;

		if (!can_reduce(s))
			return -EOPNOTSUPP;
		bytes->buffer[rank][COLL_IN] = (char *)in[rank];	/* never written */
		bytes->buffer[rank][COLL_OUT] = out[rank];
		bytes->buffer[rank][COLL_SCRATCH] = malloc(s->buffer[COLL_SCRATCH] + 1);
		if (!bytes->buffer[rank][COLL_SCRATCH])
			return -ENOMEM;
		bytes->first[rank] = bytes->ops;
		bytes->ops += s->ops;
	}
	return 0;
}

int bytes_new(const struct sim_program *program, const void *const *in, void *const *out,
	      struct sim_bytes **bytes)
{
	struct sim_bytes *b = calloc(1, sizeof(*b));
	int error = -ENOMEM;

	if (!b)
		return -ENOMEM;
	b->program = program;
	b->first = calloc(program->ranks, sizeof(*b->first));
	b->buffer = calloc(program->ranks, sizeof(*b->buffer));
	if (b->first && b->buffer)
		error = buffers_init(b, in, out);
	if (!error)
		b->message = calloc(b->ops + 1, sizeof(*b->message));
	if (!error && !b->message)
		error = -ENOMEM;
	if (error)
		bytes_free(b);
	else
		*bytes = b;
	return error;
}

void bytes_free(struct sim_bytes *bytes)
{
	u64 i;

	if (!bytes)
		return;
	for (i = 0; bytes->message && i < bytes->ops; i++)
		free(bytes->message[i]);
	for (i = 0; bytes->buffer && i < bytes->program->ranks; i++)
		free(bytes->buffer[i][COLL_SCRATCH]);
	free(bytes->message);
	free(bytes->buffer);
	free(bytes->first);
	free(bytes);
}

int bytes_send(struct sim_bytes *bytes, u32 rank, u32 op, u32 to, u32 recv)
{
	const struct coll_op *send = op_of(bytes, rank, op);
	void **message = &bytes->message[bytes->first[to] + recv];

	*message = malloc(send->bytes + 1);
	if (!*message)
		return -ENOMEM;
	memcpy(*message, bytes_at(bytes, rank, send->left), send->bytes);
	return 0;
}

void bytes_done(struct sim_bytes *bytes, u32 rank, u32 index)
{
	const struct coll_op *op = op_of(bytes, rank, index);
	void **message = &bytes->message[bytes->first[rank] + index];

	switch (op->kind) {
	case COLL_OP_RECV:
		memcpy(bytes_at(bytes, rank, op->result), *message, op->bytes);
		free(*message);
		*message = NULL;
		break;
	case COLL_OP_REDUCE:
		coll_reduce_local(op->type, op->reduction, bytes_at(bytes, rank, op->result),
				  bytes_at(bytes, rank, op->left), bytes_at(bytes, rank, op->right),
				  op->bytes);
		break;
	case COLL_OP_COPY:
		memcpy(bytes_at(bytes, rank, op->result), bytes_at(bytes, rank, op->left),
		       op->bytes);
		break;
	default:
		break;
	}
}
