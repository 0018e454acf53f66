// SPDX-License-Identifier: GPL-2.0
/*
 * A group: ranks that act together. It fails as a whole: the first failure
 * holds, all its runs end with it, and all peers that have a link hear who is
 * to blame.
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "device.h"

enum {
	EARLY_DEFAULT = 4 << 20,
	FAILING_NS = 1000000000,	/* for what is partly sent, and for the bad news */
};

static u64 early_pages(const struct kcoll_group *group)
{
	return DIV_ROUND_UP(group->early_bytes, PAGE_SIZE);
}

int kcoll_group_make(struct kcoll_device *device, const struct coll_device_group *asked)
{
	struct kcoll_group *group;
	int number;

	if (!asked->ranks || asked->ranks > COLL_RANKS_MAX || asked->rank >= asked->ranks)
		return -EINVAL;
	group = kzalloc(sizeof(*group), COLL_GFP);
	if (!group)
		return -ENOMEM;
	group->device = device;
	group->rank = asked->rank;
	group->ranks = asked->ranks;
	group->next_run = asked->next_run;
	group->failing_until = U64_MAX;
	group->failed_rank = COLL_NONE;
	group->reporter = COLL_NONE;
	group->early_bytes = asked->unexpected_bytes ?: EARLY_DEFAULT;
	xa_init(&group->links);
	INIT_LIST_HEAD(&group->loaded);
	INIT_LIST_HEAD(&group->runs);
	INIT_LIST_HEAD(&group->early);
	INIT_LIST_HEAD(&group->control);
	number = kcoll_account(device, early_pages(group), true);
	if (number)
		goto err_free;
	group->early_room = group->early_bytes;
	number = idr_alloc(&device->groups_by_number, group, 0, COLL_DEVICE_NUMBERS_MAX,
			   COLL_GFP);
	if (number < 0)
		goto err_account;
	group->number = number;
	list_add_tail(&group->node, &device->groups);
	return number;

err_account:
	kcoll_account(device, early_pages(group), false);
err_free:
	kfree(group);
	return number;
}

void kcoll_group_early_free(struct kcoll_group *group, struct kcoll_early *early)
{
	struct kcoll_link *link;
	unsigned long rank;

	list_del(&early->node);
	group->early_room += sizeof(*early) + early->header.bytes;
	kcoll_account(group->device, early->accounted, false);
	kvfree(early);
	if (group->error)
		return;
	xa_for_each(&group->links, rank, link)
		if (link->stalled)
			kcoll_link_wake(link);
}

static void group_drop_early(struct kcoll_group *group)
{
	struct kcoll_early *early, *next;

	list_for_each_entry_safe(early, next, &group->early, node)
		kcoll_group_early_free(group, early);
}

static void group_end_runs(struct kcoll_group *group, int error, bool all)
{
	struct kcoll_running *run, *next;
	struct kcoll_link *link;
	unsigned long rank;

	list_for_each_entry(run, &group->runs, node) {
		coll_step_fail(&run->step, error);
		if (!run->over)
			kcoll_run_over(run, error);
	}
	xa_for_each(&group->links, rank, link)
		kcoll_link_drop(link, all);
	list_for_each_entry_safe(run, next, &group->runs, node)
		kcoll_run_maybe_home(run);
}

void kcoll_group_fail(struct kcoll_group *group, int error, u32 failed_rank, u32 reporter)
{
	struct coll_header news = {
		.kind = COLL_MESSAGE_FAIL,
		.version = COLL_WIRE_VERSION,
		.run = reporter,
		.slot = failed_rank,
		.hash = -error,
	};
	struct kcoll_link *link;
	unsigned long rank;

	if (group->error)
		return;
	group->error = error;
	group->failed_rank = failed_rank;
	group->reporter = reporter;
	group->failing_until = ktime_get_ns() + FAILING_NS;
	group->device->deadline = min(group->device->deadline, group->failing_until);
	group_end_runs(group, error, false);
	xa_for_each(&group->links, rank, link)
		if (link->state == COLL_LINK_UP) {
			kcoll_link_send_control(link, &news);
			kcoll_link_wake(link);	/* also if it was not read for want of room */
		}
	/* Its own program hears of it too: it may wait for no run at all. */
	kcoll_group_control(group, group->rank, &news);
}

u32 kcoll_group_suspect(struct kcoll_group *group)
{
	const struct kcoll_running *run;
	const struct kcoll_link *link;
	u32 rank = COLL_NONE;

	list_for_each_entry(run, &group->runs, node) {
		if (run->over)
			continue;
		rank = kcoll_run_awaits(run);
		break;
	}
	link = rank == COLL_NONE ? NULL : xa_load(&group->links, rank);
	/* It may be in an earlier run, and wait for another; who never came waits for nobody. */
	if (!link || link->answered < run->started || link->pong_suspect >= group->ranks ||
	    link->pong_suspect == group->rank)
		return rank;
	return link->pong_suspect;
}

void kcoll_group_give_up(struct kcoll_group *group)
{
	struct kcoll_link *link;
	unsigned long rank;

	group->failing_until = U64_MAX;
	xa_for_each(&group->links, rank, link)
		if (link->queue)
			kcoll_link_cut(link);
}

void kcoll_group_control(struct kcoll_group *group, u32 rank, const struct coll_header *header)
{
	struct kcoll_control *control;

	if (group->controls == COLL_CONTROL_MAX)
		return;		/* nobody reads them; pings are asked again */
	control = kmalloc(sizeof(*control), COLL_GFP);
	if (!control)
		return;
	control->rank = rank;
	control->header = *header;
	list_add_tail(&control->node, &group->control);
	group->controls++;
	WRITE_ONCE(group->device->shared->control, group->device->shared->control + 1);
}

static void group_drop_control(struct kcoll_group *group)
{
	struct coll_device_shared *shared = group->device->shared;
	struct kcoll_control *control, *next;

	list_for_each_entry_safe(control, next, &group->control, node)
		kfree(control);
	WRITE_ONCE(shared->control, shared->control - group->controls);
}

void kcoll_group_free(struct kcoll_group *group)
{
	struct kcoll_device *device = group->device;
	struct kcoll_loaded *loaded, *next;
	struct kcoll_link *link;
	unsigned long rank;

	group->error = group->error ?: -ECANCELED;
	group_end_runs(group, group->error, true);
	list_for_each_entry_safe(loaded, next, &group->loaded, node)
		kcoll_loaded_unload(loaded);
	WARN_ON_ONCE(!list_empty(&group->runs) || !list_empty(&group->loaded));
	xa_for_each(&group->links, rank, link)
		kcoll_link_free(link);
	xa_destroy(&group->links);
	group_drop_early(group);
	group_drop_control(group);
	list_del(&group->node);
	idr_remove(&device->groups_by_number, group->number);
	kcoll_account(device, early_pages(group), false);
	kfree(group);
}
