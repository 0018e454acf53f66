// SPDX-License-Identifier: GPL-2.0
/* A group: made, freed, and its deadlines. */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "control.h"
#include "core/port.h"
#include "kmod/common/subsystem.h"
#include "receive.h"
#include "run.h"

enum { UNEXPECTED_DEFAULT = 4 << 20 };

static u64 group_unexpected_pages(const struct kcoll_group *group)
{
	return DIV_ROUND_UP(group->unexpected_bytes, PAGE_SIZE);
}

int kcoll_group_make(struct kcoll_device *device, const struct coll_device_group *asked)
{
	struct kcoll_group *group;
	int number;

	lockdep_assert_held(&device->lock);
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
	group->unexpected_bytes = asked->unexpected_bytes ?: UNEXPECTED_DEFAULT;
	group->links.ops = &kcoll_receive_ops;
	group->links.lock = &device->lock;
	group->links.ready = &device->ready;
	group->links.counters = &device->counters;
	group->links.account = &device->account;
	group->links.rank = asked->rank;
	group->links.ranks = asked->ranks;
	xa_init(&group->links.by_rank);
	INIT_LIST_HEAD(&group->links.stalled);
	INIT_LIST_HEAD(&group->links.unexpected);
	group->links.unexpected_by_key = RB_ROOT;
	INIT_LIST_HEAD(&group->loaded);
	INIT_LIST_HEAD(&group->runs);
	INIT_LIST_HEAD(&group->control);
	number = kcoll_memory_account(&device->account, group_unexpected_pages(group), true);
	if (number)
		goto err_free;
	group->links.unexpected_left = group->unexpected_bytes;
	number = idr_alloc(&device->groups_by_number, group, 0, COLL_DEVICE_NUMBERS_MAX,
			   COLL_GFP);
	if (number < 0)
		goto err_account;
	group->number = number;
	list_add_tail(&group->node, &device->groups);
	return number;

err_account:
	kcoll_memory_account(&device->account, group_unexpected_pages(group), false);
err_free:
	kfree(group);
	return number;
}

static void group_drop_unexpected(struct kcoll_group *group)
{
	struct kcoll_unexpected *message, *next;

	list_for_each_entry_safe(message, next, &group->links.unexpected, node)
		kcoll_unexpected_free(&group->links, message);
}

/* The failure is over: messages that are still queued are discarded. */
static void group_give_up(struct kcoll_group *group)
{
	struct kcoll_link *link;
	unsigned long rank;

	group->failing_until = U64_MAX;
	xa_for_each(&group->links.by_rank, rank, link)
		if (link->queue)
			kcoll_link_cut(link);
}

void kcoll_group_shut(struct kcoll_group *group)
{
	struct kcoll_link *link;
	unsigned long rank;

	lockdep_assert_held(&group->device->lock);
	xa_for_each(&group->links.by_rank, rank, link)
		if (link->socket)
			kernel_sock_shutdown(link->socket, SHUT_RDWR);
}

void kcoll_group_free(struct kcoll_group *group)
{
	struct kcoll_device *device = group->device;
	struct kcoll_loaded *loaded, *next;
	struct kcoll_link *link;
	unsigned long rank;

	lockdep_assert_held(&device->lock);
	group->error = group->error ?: -ECANCELED;
	kcoll_run_end_all(group, group->error, true);
	list_for_each_entry_safe(loaded, next, &group->loaded, node)
		kcoll_loaded_unload(loaded);
	coll_assert(list_empty(&group->runs) && list_empty(&group->loaded));
	xa_for_each(&group->links.by_rank, rank, link)
		kcoll_link_free(link);
	xa_destroy(&group->links.by_rank);
	kcoll_memory_account(&device->account, kcoll_link_pages(group->links.count), false);
	group_drop_unexpected(group);
	kcoll_control_drop(group);
	list_del(&group->node);
	idr_remove(&device->groups_by_number, group->number);
	kcoll_memory_account(&device->account, group_unexpected_pages(group), false);
	kfree(group);
}

/*
 * What comes of runs that the program executed itself since the link was here is late, also a
 * chunk whose message began there.
 */
static void group_skip_runs(struct kcoll_group *group, u32 next_run)
{
	if ((s32)(next_run - group->next_run) <= 0)
		return;
	kcoll_unexpected_drop(&group->links, group->next_run, next_run);
	group->next_run = next_run;
}

int kcoll_group_attach(struct kcoll_group *group, const struct coll_device_link *asked)
{
	struct kcoll_link *link;

	lockdep_assert_held(&group->device->lock);
	if (asked->rank >= group->ranks || asked->rank == group->rank)
		return -EINVAL;
	link = kcoll_link_get(&group->links, asked->rank);
	if (!link)
		return -ENOMEM;
	group_skip_runs(group, asked->next_run);
	return kcoll_link_attach(link, asked);
}

/* No run may be in progress: it might use the link. */
long kcoll_group_detach(struct kcoll_group *group, const struct coll_device_link *asked)
{
	struct kcoll_link *link = xa_load(&group->links.by_rank, asked->rank);
	const struct kcoll_run *run;

	lockdep_assert_held(&group->device->lock);
	if (!link || !link->socket)
		return -ENOENT;
	list_for_each_entry(run, &group->runs, node)
		if (!run->completed)
			return -EBUSY;
	return kcoll_link_detach(link, asked);
}

/* A run pings the rank it waits for from half of its deadline on, eight times. */
static void group_ping(struct kcoll_run *run, u64 now)
{
	struct coll_header ping = {
		.kind = COLL_MESSAGE_PING,
		.version = COLL_WIRE_VERSION,
		.run = run->number,
		.slot = COLL_NONE,
		.hash = run->loaded->hash,
	};
	u32 rank = kcoll_run_awaits(run);
	struct kcoll_link *link =
		rank == COLL_NONE ? NULL : xa_load(&run->loaded->group->links.by_rank, rank);

	if (link && link->state == COLL_LINK_UP)
		kcoll_link_send_control(link, &ping);
	run->next_ping = now + (run->deadline - run->started) / 16;
}

void kcoll_group_deadlines(struct kcoll_group *group, u64 now)
{
	struct kcoll_device *device = group->device;
	struct kcoll_run *run;

	lockdep_assert_held(&device->lock);
	list_for_each_entry(run, &group->runs, node) {
		if (run->completed)
			continue;
		if (run->deadline <= now) {
			kcoll_run_fail(group, -ETIMEDOUT, kcoll_group_suspect(group), COLL_NONE);
			break;
		}
		if (run->next_ping <= now)
			group_ping(run, now);
		WRITE_ONCE(device->deadline,
			   min3(device->deadline, run->deadline, run->next_ping));
	}
	if (group->failing_until <= now)
		group_give_up(group);
	WRITE_ONCE(device->deadline, min(device->deadline, group->failing_until));
}
