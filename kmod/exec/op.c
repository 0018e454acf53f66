// SPDX-License-Identifier: GPL-2.0
/*
 * The ops of a schedule: a send is queued in its link, a receive waits for its message,
 * reduce and copy are done on the spot, in sections. Between two of them the thread may be
 * preempted, and the op stops if the device yields; run->got says how far it has come.
 */
#include <linux/bvec.h>
#include <linux/highmem.h>
#include <linux/mm.h>

#include "core/reduce.h"
#include "kmod/common/compat.h"
#include "run.h"

enum {
	FPU_SECTION = 16384,		/* bytes; preemption is off for some microseconds */
	INTEGER_SECTION = 1 << 17,
	MESSAGE_SECTION = 1 << 17,
};

void *kcoll_op_address(const struct kcoll_run *run, u64 place)
{
	u32 buffer = COLL_ADDRESS_BUFFER(place);

	return run->buffer[buffer]->address + run->offset[buffer] + COLL_ADDRESS_OFFSET(place);
}

static bool op_yields(const struct kcoll_run *run)
{
	cond_resched();
	return kcoll_device_yields(run->loaded->group->device);
}

static int op_reduce(struct kcoll_run *run, u32 index, const struct coll_op *op)
{
	void *result = kcoll_op_address(run, op->result), *left = kcoll_op_address(run, op->left);
	void *right = kcoll_op_address(run, op->right);
	bool floats = coll_reduction_floats(op->type, op->reduction);
	u64 most = floats ? FPU_SECTION : INTEGER_SECTION, *done = &run->got[index], part;

	while (*done < op->bytes) {
		part = min(op->bytes - *done, most);
		if (floats)
			kernel_fpu_begin();
		coll_reduce_local(op->type, op->reduction, result + *done, left + *done,
				  right + *done, part);
		if (floats)
			kernel_fpu_end();
		*done += part;
		if (op_yields(run))
			break;
	}
	return *done < op->bytes ? COLL_OP_PART : COLL_OP_COMPLETE;
}

/* The piece of a page that begins at `place`, at most `bytes` bytes. */
static struct bio_vec op_piece(const struct kcoll_run *run, u64 place, u64 bytes)
{
	u32 buffer = COLL_ADDRESS_BUFFER(place);
	struct bio_vec piece;

	kcoll_memory_bvecs(run->buffer[buffer], run->offset[buffer] + COLL_ADDRESS_OFFSET(place),
			   &bytes, &piece, 1);
	return piece;
}

/*
 * Page by page: a mapping of the application's memory would cost more, and an interrupt
 * on every CPU when it is flushed.
 */
static int op_copy(struct kcoll_run *run, u32 index, const struct coll_op *op)
{
	u64 *done = &run->got[index];

	while (*done < op->bytes) {
		struct bio_vec to = op_piece(run, op->result + *done, op->bytes - *done);
		struct bio_vec from = op_piece(run, op->left + *done, to.bv_len);

		memcpy_page(to.bv_page, to.bv_offset, from.bv_page, from.bv_offset, from.bv_len);
		*done += from.bv_len;
		if (op_yields(run))
			break;
	}
	return *done < op->bytes ? COLL_OP_PART : COLL_OP_COMPLETE;
}

static int op_send(struct kcoll_run *run, u32 index, const struct coll_op *op)
{
	struct kcoll_loaded *loaded = run->loaded;
	struct kcoll_link *link = loaded->links[op->peer];
	struct kcoll_sending *sending = &run->sends[run->send_of[index]];
	const u32 buffer = COLL_ADDRESS_BUFFER(op->left);

	if (kcoll_link_ended(link))
		return op->flags & COLL_OPTIONAL ? COLL_OP_BEGUN : -ECONNRESET;
	sending->header = (struct coll_header){
		.kind = COLL_MESSAGE_DATA,
		.version = COLL_WIRE_VERSION,
		.run = run->number,
		.slot = op->slot,
		.hash = loaded->hash,
		.bytes = op->bytes,
	};
	sending->buffer = run->buffer[buffer];
	sending->offset = run->offset[buffer] + COLL_ADDRESS_OFFSET(op->left);
	loaded->group->device->counters.sends++;
	run->in_flight++;
	kcoll_link_send(link, sending);
	return COLL_OP_BEGUN;
}

const struct kcoll_memory *kcoll_op_target(const struct kcoll_run *run, u32 index, u64 *offset)
{
	const u64 place = coll_ops(run->loaded->schedule)[index].result;
	const u32 buffer = COLL_ADDRESS_BUFFER(place);

	*offset = run->offset[buffer] + COLL_ADDRESS_OFFSET(place);
	return run->buffer[buffer];
}

/* The payload of a message that is complete, to where its receive wants it. */
static int op_write(struct kcoll_run *run, u32 index, const u8 *from, u64 bytes)
{
	u64 offset, *done = &run->got[index], part;
	const struct kcoll_memory *target = kcoll_op_target(run, index, &offset);

	while (*done < bytes) {
		part = min_t(u64, bytes - *done, MESSAGE_SECTION);
		kcoll_memory_write(target, offset + *done, from + *done, part);
		*done += part;
		if (op_yields(run))
			break;
	}
	return *done < bytes ? COLL_OP_PART : COLL_OP_COMPLETE;
}

int kcoll_op_take_unexpected(struct kcoll_run *run, u32 index, u32 *failed_rank, u32 *reporter)
{
	const struct coll_op *op = &coll_ops(run->loaded->schedule)[index];
	struct kcoll_link *link = run->loaded->links[op->peer];
	struct kcoll_group *group = run->loaded->group;
	struct kcoll_unexpected *message =
		kcoll_unexpected_find(&group->links, link->rank, run->number, op->slot);

	if (!message || !message->complete)
		return COLL_OP_BEGUN;
	if (message->header.hash != run->loaded->hash || message->header.bytes != op->bytes) {
		*failed_rank = link->rank;
		*reporter = group->rank;
		return -EPROTO;
	}
	if (op_write(run, index, message->data, op->bytes) == COLL_OP_PART)
		return COLL_OP_PART;
	kcoll_unexpected_free(&group->links, message);
	group->device->counters.recvs++;
	return COLL_OP_COMPLETE;
}

static int op_receive(struct kcoll_run *run, u32 index, const struct coll_op *op,
		      u32 *failed_rank, u32 *reporter)
{
	const int result = kcoll_op_take_unexpected(run, index, failed_rank, reporter);

	if (result != COLL_OP_BEGUN)
		return result;
	return kcoll_link_ended(run->loaded->links[op->peer]) && !(op->flags & COLL_OPTIONAL) ?
		       -ECONNRESET : COLL_OP_BEGUN;
}

int kcoll_op_start(struct kcoll_run *run, u32 index, u32 *failed_rank, u32 *reporter)
{
	const struct coll_op *op = &coll_ops(run->loaded->schedule)[index];

	lockdep_assert_held(&run->loaded->group->device->lock);
	run->loaded->group->device->counters.ops++;
	*reporter = COLL_NONE;
	switch (op->kind) {
	case COLL_OP_SEND:
		*failed_rank = run->loaded->links[op->peer]->rank;
		return op_send(run, index, op);
	case COLL_OP_RECV:
		*failed_rank = run->loaded->links[op->peer]->rank;
		return op_receive(run, index, op, failed_rank, reporter);
	case COLL_OP_REDUCE:
		return op_reduce(run, index, op);
	case COLL_OP_COPY:
		return op_copy(run, index, op);
	default:	/* connect, release: sockets have their circuits always */
		return COLL_OP_COMPLETE;
	}
}
