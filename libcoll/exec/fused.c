// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdlib.h>
#include <string.h>

#include "core/port.h"
#include "core/reduce.h"
#include "exec.h"
#include "fused.h"
#include "live.h"

/* To copy a shorter message costs no more than this: docs/results/node.md. */
enum { FUSED_MIN = 4096 };

/* ---- marks: which bytes of scratch an op touches ----------------------------- */

struct scratch_use {
	uint64_t begin, end;		/* addresses */
	uint64_t reach;			/* the largest end so far, in the order of `begin` */
	uint32_t op;
};

struct scratch_uses {
	struct scratch_use *use;
	uint32_t count;
};

static void use_add(struct scratch_uses *all, uint32_t op, uint64_t address, uint64_t bytes)
{
	if (bytes && COLL_ADDRESS_BUFFER(address) == COLL_SCRATCH)
		all->use[all->count++] =
			(struct scratch_use){ .begin = address, .end = address + bytes, .op = op };
}

/* At most three an op. An address that the kind does not have is 0, which is not in scratch. */
static void uses_of(struct scratch_uses *all, const struct coll_schedule *s)
{
	uint32_t i;

	for (i = 0; i < s->ops; i++) {
		const struct coll_op *op = &coll_ops(s)[i];

		use_add(all, i, op->result, op->bytes);
		use_add(all, i, op->left, op->bytes);
		use_add(all, i, op->right, op->bytes);
	}
}

static int use_compare(const void *a, const void *b)
{
	const struct scratch_use *one = a, *other = b;

	return (one->begin > other->begin) - (one->begin < other->begin);
}

static void uses_sort(struct scratch_uses *all)
{
	uint64_t reach = 0;
	uint32_t i;

	qsort(all->use, all->count, sizeof(*all->use), use_compare);
	for (i = 0; i < all->count; i++) {
		reach = all->use[i].end > reach ? all->use[i].end : reach;
		all->use[i].reach = reach;
	}
}

/* How many begin below this address. */
static uint32_t uses_below(const struct scratch_uses *all, uint64_t address)
{
	uint32_t low = 0, high = all->count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (all->use[middle].begin < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- marks: pairs of a receive and a reduce ----------------------------------- */

/*
 * An op before the receive is done when that starts, since it touches what that writes. An op
 * between the two reads the message, or may. One after the reduce touches the result, if that
 * replaces the message, else perhaps the message.
 */
static bool pair_may_overlap(const struct coll_schedule *s, uint32_t recv, uint32_t reduce,
			     uint32_t other)
{
	const struct coll_op *ops = coll_ops(s);

	return other <= recv || other == reduce ||
	       (other > reduce && ops[reduce].result == ops[recv].result);
}

static bool nothing_else_reads(const struct coll_schedule *s, const struct scratch_uses *all,
			       uint32_t recv, uint32_t reduce)
{
	const uint64_t begin = coll_ops(s)[recv].result, end = begin + coll_ops(s)[recv].bytes;
	uint32_t i;

	for (i = uses_below(all, end); i-- && all->use[i].reach > begin;)
		if (all->use[i].end > begin &&
		    !pair_may_overlap(s, recv, reduce, all->use[i].op))
			return false;
	return true;
}

/* Exactly one operand is the message, and the other has none of its bytes. */
static bool pair_fits(const struct coll_op *recv, const struct coll_op *reduce)
{
	const bool left = reduce->left == recv->result;
	const uint64_t own = left ? reduce->right : reduce->left;

	return recv->kind == COLL_OP_RECV && !(recv->flags & COLL_OPTIONAL) &&
	       COLL_ADDRESS_BUFFER(recv->result) == COLL_SCRATCH && recv->bytes == reduce->bytes &&
	       (left || reduce->right == recv->result) &&
	       (own > recv->result ? own - recv->result : recv->result - own) >= recv->bytes;
}

static bool reduce_may_be_fused(const struct coll_op *op)
{
	return op->kind == COLL_OP_REDUCE && op->bytes >= FUSED_MIN &&
	       op->reduction != COLL_USER_REDUCTION && !(op->flags & (COLL_OPTIONAL | COLL_WAIT_ANY));
}

/* The receive that it is fused with, or COLL_NONE. */
static uint32_t reduce_find_recv(const struct coll_schedule *s, const struct scratch_uses *all,
				 uint32_t reduce)
{
	const struct coll_op *op = &coll_ops(s)[reduce];
	uint32_t i;

	for (i = 0; i < op->waits; i++) {
		const uint32_t recv = coll_waits(s)[op->wait + i];

		if (pair_fits(&coll_ops(s)[recv], op) && nothing_else_reads(s, all, recv, reduce))
			return recv;
	}
	return COLL_NONE;
}

static void marks_set(struct coll_planned *planned, const struct scratch_uses *all)
{
	const struct coll_schedule *s = planned->schedule;
	uint32_t i;

	for (i = 0; i < s->ops; i++)
		planned->fused[i] = COLL_NONE;
	for (i = 0; i < s->ops; i++) {
		const uint32_t recv = reduce_may_be_fused(&coll_ops(s)[i]) ?
					      reduce_find_recv(s, all, i) : COLL_NONE;

		if (recv == COLL_NONE)
			continue;
		planned->fused[i] = recv;
		planned->fused[recv] = i;
	}
}

static bool schedule_has_candidates(const struct coll_schedule *s)
{
	uint32_t i;

	for (i = 0; i < s->ops; i++)
		if (reduce_may_be_fused(&coll_ops(s)[i]))
			return true;
	return false;
}

void coll_fused_mark(struct coll_planned *planned)
{
	const struct coll_schedule *s = planned->schedule;
	struct scratch_uses all = { 0 };

	if (!schedule_has_candidates(s))
		return;
	all.use = malloc(3 * (size_t)s->ops * sizeof(*all.use));
	planned->fused = malloc(s->ops * sizeof(*planned->fused));
	if (all.use && planned->fused) {
		uses_of(&all, s);
		uses_sort(&all);
		marks_set(planned, &all);
	} else {
		free(planned->fused);
		planned->fused = NULL;
	}
	free(all.use);
}

/* ---- bytes arrive --------------------------------------------------------------- */

static uint32_t fused_with(const struct coll_exec *exec, uint32_t op)
{
	return exec->planned->fused ? exec->planned->fused[op] : COLL_NONE;
}

/* Reduces these bytes of the message, which begin `offset` after its first. */
static void reduce_part(const struct coll_exec *exec, uint32_t recv, uint64_t offset,
			const uint8_t *theirs, uint64_t bytes)
{
	const struct coll_op *ops = coll_ops(exec->planned->schedule);
	const struct coll_op *op = &ops[fused_with(exec, recv)];
	uint8_t *result = coll_exec_address(exec, op->result) + offset;

	if (op->left == ops[recv].result)
		coll_reduce_local(op->type, op->reduction, result, theirs,
				  coll_exec_address(exec, op->right) + offset, bytes);
	else
		coll_reduce_local(op->type, op->reduction, result,
				  coll_exec_address(exec, op->left) + offset, theirs, bytes);
}

/*
 * Whether the message is reduced as it arrives, from the byte at `offset` on. What came before is
 * in scratch, and is reduced now; but for the beginning of an element, whose end is to come.
 */
static bool fused_may_go_on(struct coll_exec *exec, uint32_t recv, uint64_t offset)
{
	const uint32_t reduce = fused_with(exec, recv);
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[reduce];
	const uint64_t whole = offset - offset % coll_type_bytes(op->type);

	if (exec->fused[recv])
		return true;
	if (exec->step.state[reduce] != COLL_OP_WAITING || exec->step.pending[reduce] != 1)
		return false;
	exec->fused[recv] = 1;
	if (whole)
		reduce_part(exec, recv, 0,
			    coll_exec_address(exec, coll_ops(exec->planned->schedule)[recv].result),
			    whole);
	return true;
}

/* The beginning or the end of an element goes to its place in scratch, if it is not there. */
static void scratch_take(uint8_t *place, const uint8_t *data, uint64_t bytes)
{
	if (bytes && data != place)
		memcpy(place, data, bytes);
}

/* `scratch`: the place of the byte at `offset`. Elements may begin and end in other pieces. */
static void fused_reduce(const struct coll_exec *exec, uint32_t recv, uint64_t offset,
			 uint8_t *scratch, const uint8_t *data, uint64_t bytes)
{
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[fused_with(exec, recv)];
	const uint64_t element = coll_type_bytes(op->type), begun = offset % element;
	uint64_t rest = begun ? element - begun : 0;

	rest = rest < bytes ? rest : bytes;
	scratch_take(scratch, data, rest);
	if (begun && begun + rest == element)
		reduce_part(exec, recv, offset - begun, scratch - begun, element);
	offset += rest;
	scratch += rest;
	data += rest;
	bytes -= rest;
	rest = bytes % element;
	if (bytes > rest)
		reduce_part(exec, recv, offset, data, bytes - rest);
	scratch_take(scratch + bytes - rest, data + bytes - rest, rest);
}

void coll_fused_begin(struct coll_link *link, struct coll_exec *exec, uint32_t op)
{
	/* Streams bring chunks in any order. */
	link->reduces = fused_with(exec, op) != COLL_NONE && !link->whole->streams;
	link->in_pieces = link->reduces && fused_may_go_on(exec, op, link->header.offset);
}

void coll_fused_take(struct coll_link *link, const uint8_t *data, uint64_t bytes)
{
	struct coll_exec *exec = link->exec;
	const struct coll_op *recv = &coll_ops(exec->planned->schedule)[link->op];
	const uint64_t offset = link->target - coll_exec_address(exec, recv->result);

	link->in_pieces = fused_may_go_on(exec, link->op, offset);
	if (link->in_pieces) {
		fused_reduce(exec, link->op, offset, link->target, data, bytes);
	} else if (data != link->target) {
		memcpy(link->target, data, bytes);
		exec->group->context->counters.copied_bytes += bytes;
	}
}

/* Executed in order: all that the reduce waits for but this receive is done. */
static bool all_else_is_ahead(const struct coll_exec *exec, uint32_t reduce, uint32_t recv)
{
	const struct coll_schedule *s = exec->planned->schedule;
	const struct coll_op *op = &coll_ops(s)[reduce];
	uint32_t i;

	for (i = 0; i < op->waits; i++) {
		const uint32_t wait = coll_waits(s)[op->wait + i];

		if (wait != recv && !coll_exec_is_ahead(exec, wait))
			return false;
	}
	return true;
}

bool coll_fused_take_whole(struct coll_exec *exec, uint32_t op, const uint8_t *data)
{
	const uint32_t reduce = fused_with(exec, op);

	if (reduce == COLL_NONE ||
	    !(exec->in_order ? all_else_is_ahead(exec, reduce, op) : fused_may_go_on(exec, op, 0)))
		return false;
	reduce_part(exec, op, 0, data, coll_ops(exec->planned->schedule)[op].bytes);
	if (exec->in_order) {
		exec->ahead |= 1ull << reduce;
		coll_live_op(exec, COLL_FLIGHT_REDUCE, NULL, reduce);
	}
	return true;
}

bool coll_fused_is_computed(const struct coll_exec *exec, uint32_t reduce)
{
	const uint32_t recv = fused_with(exec, reduce);

	return recv != COLL_NONE && !exec->in_order && exec->fused[recv];
}
