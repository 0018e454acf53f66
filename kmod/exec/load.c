// SPDX-License-Identifier: GPL-2.0
/*
 * Schedules come from user space: copied, checked as hostile input, planned once. A
 * schedule that has passed the check is executed without further checks.
 */
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "core/check.h"
#include "core/reduce.h"
#include "fused.h"
#include "kmod/common/subsystem.h"

/* Why the group cannot run this schedule in the kernel, or NULL. */
static const char *load_unsuitable(const struct kcoll_group *group, const struct coll_schedule *s,
				   u32 *op)
{
	const struct coll_op *ops = coll_ops(s);
	u32 i;

	*op = COLL_NONE;
	if (s->rank != group->rank || s->ranks != group->ranks)
		return "rank or number of ranks differs from the group's";
	for (i = 0; i < s->ops; i++) {
		*op = i;
		if (ops[i].kind == COLL_OP_REDUCE && ops[i].reduction == COLL_USER_REDUCTION)
			return "the application's own reduction cannot run in the kernel";
	}
	return NULL;
}

static int load_refuse(const struct coll_device_load *asked, u32 op, const char *reason, int error)
{
	struct coll_device_refusal refusal = { .op = op };

	strscpy(refusal.reason, reason, sizeof(refusal.reason));
	if (asked->refusal &&
	    copy_to_user((void __user *)(unsigned long)asked->refusal, &refusal, sizeof(refusal)))
		return -EFAULT;
	return error;
}

static int load_check(struct kcoll_loaded *loaded, const struct coll_device_load *asked)
{
	struct coll_refusal refusal;
	const char *reason;
	u64 bytes = coll_check_bytes(loaded->schedule, asked->bytes);
	void *work = kvmalloc(bytes ?: 1, COLL_GFP);
	u32 op;
	int error;

	if (!work)
		return -ENOMEM;
	error = coll_check(loaded->schedule, asked->bytes, work, &refusal);
	kvfree(work);
	if (error)
		return load_refuse(asked, refusal.op, refusal.reason, error);
	reason = load_unsuitable(loaded->group, loaded->schedule, &op);
	return reason ? load_refuse(asked, op, reason, -EOPNOTSUPP) : 0;
}

static int load_marks(struct kcoll_loaded *loaded, const struct coll_device_load *asked)
{
	const char *reason = NULL;
	u32 op = COLL_NONE;
	const int error = kcoll_fused_load(loaded, asked->fused, &op, &reason);

	return reason ? load_refuse(asked, op, reason, error) : error;
}

/* Only buffers that are reduced must be mapped. */
static void load_note_touched(struct kcoll_loaded *loaded)
{
	const struct coll_op *ops = coll_ops(loaded->schedule);
	u32 i;

	for (i = 0; i < loaded->schedule->ops; i++) {
		loaded->sends += ops[i].kind == COLL_OP_SEND;
		if (ops[i].kind == COLL_OP_REDUCE)
			loaded->touched |= 1u << COLL_ADDRESS_BUFFER(ops[i].result) |
					   1u << COLL_ADDRESS_BUFFER(ops[i].left) |
					   1u << COLL_ADDRESS_BUFFER(ops[i].right);
	}
}

static int load_find_links(struct kcoll_loaded *loaded)
{
	const struct coll_schedule *s = loaded->schedule;
	u32 i;

	loaded->links = kvcalloc(s->peers ?: 1, sizeof(*loaded->links), COLL_GFP);
	if (!loaded->links)
		return -ENOMEM;
	for (i = 0; i < s->peers; i++) {
		loaded->links[i] = kcoll_link_get(&loaded->group->links, coll_peers(s)[i].rank);
		if (!loaded->links[i])
			return -ENOMEM;
	}
	return 0;
}

static int load_plan(struct kcoll_loaded *loaded)
{
	u64 bytes = coll_plan_bytes(loaded->schedule);
	void *memory = kvmalloc(bytes, COLL_GFP);

	if (!memory)
		return -ENOMEM;
	coll_plan_init(&loaded->plan, loaded->schedule, memory);
	return 0;
}

static void loaded_free(struct kcoll_loaded *loaded)
{
	struct kcoll_device *device = loaded->group->device;

	if (loaded->spare)
		kcoll_run_free(loaded->spare);
	kvfree(loaded->plan.pending);	/* where the plan's memory begins */
	kvfree(loaded->fused);
	kvfree(loaded->links);
	kvfree(loaded->schedule);
	kcoll_memory_account(&device->account, loaded->accounted, false);
	kfree(loaded);
}

static u64 load_pages(u64 bytes)
{
	/* The schedule, its plan and marks (which are smaller) and the memory of its check. */
	return DIV_ROUND_UP(2 * bytes, PAGE_SIZE) + 1;
}

int kcoll_load(struct kcoll_group *group, const struct coll_device_load *asked)
{
	struct kcoll_device *device = group->device;
	struct kcoll_loaded *loaded;
	int number;

	lockdep_assert_held(&device->lock);
	if (asked->bytes < sizeof(struct coll_schedule))
		return load_refuse(asked, COLL_NONE, "the schedule is shorter than its header",
				   -EINVAL);
	if (asked->bytes > coll_schedule_bytes(COLL_OPS_MAX, COLL_OPS_MAX, COLL_WAITS_MAX))
		return load_refuse(asked, COLL_NONE,
				   "the schedule is longer than the largest valid one", -E2BIG);
	loaded = kzalloc(sizeof(*loaded), COLL_GFP);
	if (!loaded)
		return -ENOMEM;
	loaded->group = group;
	number = kcoll_memory_account(&device->account, load_pages(asked->bytes), true);
	if (number)
		goto err_free;
	loaded->accounted = load_pages(asked->bytes);
	number = -ENOMEM;
	loaded->schedule = kvmalloc(asked->bytes, COLL_GFP);
	if (!loaded->schedule)
		goto err_free;
	number = -EFAULT;
	if (copy_from_user(loaded->schedule, (void __user *)(unsigned long)asked->schedule,
			   asked->bytes))
		goto err_free;
	number = load_check(loaded, asked) ?: load_marks(loaded, asked) ?: load_plan(loaded) ?:
		 load_find_links(loaded);
	if (number)
		goto err_free;
	load_note_touched(loaded);
	loaded->hash = asked->hash;
	number = idr_alloc(&device->loaded_by_number, loaded, 0, COLL_DEVICE_NUMBERS_MAX,
			   COLL_GFP);
	if (number < 0)
		goto err_free;
	loaded->number = number;
	list_add_tail(&loaded->node, &group->loaded);
	return number;

err_free:
	loaded_free(loaded);
	return number;
}

void kcoll_loaded_maybe_free(struct kcoll_loaded *loaded)
{
	if (loaded->number != COLL_NONE || loaded->running)
		return;
	list_del(&loaded->node);
	loaded_free(loaded);
}

void kcoll_loaded_unload(struct kcoll_loaded *loaded)
{
	if (loaded->number != COLL_NONE)
		idr_remove(&loaded->group->device->loaded_by_number, loaded->number);
	loaded->number = COLL_NONE;
	kcoll_loaded_maybe_free(loaded);
}
