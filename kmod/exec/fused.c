// SPDX-License-Identifier: GPL-2.0
#include <linux/bvec.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "core/port.h"
#include "core/reduce.h"
#include "fused.h"
#include "kmod/common/compat.h"
#include "kmod/common/subsystem.h"

/* ---- marks ------------------------------------------------------------------------ */

static bool op_waits_for(const struct coll_schedule *s, const struct coll_op *op, u32 other)
{
	u32 i;

	for (i = 0; i < op->waits; i++)
		if (coll_waits(s)[op->wait + i] == other)
			return true;
	return false;
}

/*
 * Whether the result may be had without what the receive writes. That nothing else reads it, only
 * the program knows: if that is not so, its own numbers are wrong.
 */
static bool pair_fits(const struct coll_schedule *s, u32 recv, u32 reduce)
{
	const struct coll_op *from = &coll_ops(s)[recv], *op = &coll_ops(s)[reduce];

	return from->kind == COLL_OP_RECV && op->kind == COLL_OP_REDUCE &&
	       !((from->flags | op->flags) & (COLL_OPTIONAL | COLL_WAIT_ANY)) &&
	       from->bytes == op->bytes && is_power_of_2(coll_type_bytes(op->type)) &&
	       (op->left == from->result) != (op->right == from->result) &&
	       op_waits_for(s, op, recv);
}

static bool mark_fits(const struct coll_schedule *s, const u32 *fused, u32 op)
{
	const u32 other = fused[op];

	return other == COLL_NONE ||
	       (other < s->ops && fused[other] == op &&
		(pair_fits(s, op, other) || pair_fits(s, other, op)));
}

int kcoll_fused_load(struct kcoll_loaded *loaded, u64 address, u32 *op, const char **reason)
{
	const struct coll_schedule *s = loaded->schedule;
	const u64 bytes = s->ops * sizeof(*loaded->fused);

	if (!address || !s->ops)
		return 0;
	loaded->fused = kvmalloc(bytes, COLL_GFP);
	if (!loaded->fused)
		return -ENOMEM;
	if (copy_from_user(loaded->fused, (void __user *)(unsigned long)address, bytes))
		return -EFAULT;
	for (*op = 0; *op < s->ops; (*op)++)
		if (!mark_fits(s, loaded->fused, *op)) {
			*reason = "its mark is of no receive and reduce that may be fused";
			return -EINVAL;
		}
	return 0;
}

/* ---- a message comes -------------------------------------------------------------- */

/*
 * Its reduce lacks nothing but the message: the other operand is there, the result may be written.
 * A message that broke off has left a part of the result: when it comes again it goes to scratch, and
 * the reduce goes on from there.
 */
bool kcoll_fused_begins(const struct kcoll_link *link, const struct kcoll_run *run, u32 recv)
{
	const struct kcoll_loaded *loaded = run->loaded;
	const u32 reduce = loaded->fused ? loaded->fused[recv] : COLL_NONE;

	return reduce != COLL_NONE && run->step.state[reduce] == COLL_OP_WAITING &&
	       run->step.pending[reduce] == 1 && !run->got[reduce] &&
	       kcoll_offer_is_whole(link, coll_type_bytes(coll_ops(loaded->schedule)[reduce].type));
}

static void reduce_piece(const struct kcoll_run *run, const struct coll_op *op, bool left, u64 at,
			 void *theirs, u32 bytes)
{
	void *result = kcoll_op_address(run, op->result) + at;
	void *own = kcoll_op_address(run, left ? op->right : op->left) + at;

	coll_reduce_local(op->type, op->reduction, result, left ? theirs : own,
			  left ? own : theirs, bytes);
}

void kcoll_fused_reduce(struct kcoll_run *run, u32 recv, const struct bio_vec *pages, int count)
{
	const struct coll_op *ops = coll_ops(run->loaded->schedule);
	const u32 reduce = run->loaded->fused[recv];
	const struct coll_op *op = &ops[reduce];
	const bool floats = coll_reduction_floats(op->type, op->reduction);
	const bool left = op->left == ops[recv].result;
	void *theirs;
	int i;

	coll_assert(run->got[reduce] < op->bytes);
	if (floats)
		kernel_fpu_begin();
	for (i = 0; i < count; i++) {
		theirs = kmap_local_page(pages[i].bv_page);
		reduce_piece(run, op, left, run->got[reduce], theirs + pages[i].bv_offset,
			     pages[i].bv_len);
		kunmap_local(theirs);
		run->got[reduce] += pages[i].bv_len;
	}
	if (floats)
		kernel_fpu_end();
}
