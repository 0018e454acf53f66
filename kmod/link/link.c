// SPDX-License-Identifier: GPL-2.0
/*
 * Links, their state and their wake-ups. A socket keeps its callbacks: the link is
 * woken through the socket's wait queue, as epoll is, and never blocks on it.
 */
#include <linux/file.h>
#include <linux/kthread.h>
#include <linux/slab.h>

#include "core/port.h"
#include "kmod/common/subsystem.h"
#include "link.h"

/* ---- state --------------------------------------------------------------------- */

/* The states that may follow each state. */
static const u8 link_moves[] = {
	[COLL_LINK_ABSENT] = BIT(COLL_LINK_UP) | BIT(COLL_LINK_LOST),
	[COLL_LINK_UP] = BIT(COLL_LINK_LEFT) | BIT(COLL_LINK_LOST) | BIT(COLL_LINK_ABSENT),
	[COLL_LINK_LEFT] = BIT(COLL_LINK_LEFT) | BIT(COLL_LINK_LOST) | BIT(COLL_LINK_ABSENT),
	[COLL_LINK_LOST] = BIT(COLL_LINK_LOST) | BIT(COLL_LINK_ABSENT),
};

void kcoll_link_set_state(struct kcoll_link *link, enum kcoll_link_state state)
{
	lockdep_assert_held(link->set->lock);
	coll_assert(link_moves[link->state] & BIT(state));
	link->state = state;
	if (state == COLL_LINK_LEFT)
		link->left = true;
	else if (state == COLL_LINK_ABSENT)
		link->left = false;
}

/* ---- waking -------------------------------------------------------------------- */

void kcoll_ready_kick(struct kcoll_ready *ready)
{
	struct task_struct *thread;

	smp_mb();	/* The work, then the thread: it becomes known before it looks for work. */
	thread = READ_ONCE(ready->thread);
	if (thread)
		wake_up_process(thread);
}

void kcoll_ready_init(struct kcoll_ready *ready)
{
	raw_spin_lock_init(&ready->lock);
	INIT_LIST_HEAD(&ready->links);
}

static void ready_remove(struct kcoll_ready *ready, struct kcoll_link *link)
{
	lockdep_assert_held(&ready->lock);
	list_del_init(&link->ready);
	WRITE_ONCE(ready->woken, ready->woken - 1);
}

struct kcoll_link *kcoll_ready_take(struct kcoll_ready *ready)
{
	struct kcoll_link *link;
	unsigned long flags;

	raw_spin_lock_irqsave(&ready->lock, flags);
	link = list_first_entry_or_null(&ready->links, struct kcoll_link, ready);
	if (link)
		ready_remove(ready, link);
	raw_spin_unlock_irqrestore(&ready->lock, flags);
	return link;
}

void kcoll_link_wake(struct kcoll_link *link)
{
	struct kcoll_ready *ready = link->set->ready;
	unsigned long flags;
	bool first;

	raw_spin_lock_irqsave(&ready->lock, flags);
	first = list_empty(&link->ready);
	if (first) {
		list_add_tail(&link->ready, &ready->links);
		WRITE_ONCE(ready->woken, ready->woken + 1);
	}
	raw_spin_unlock_irqrestore(&ready->lock, flags);
	if (first)
		kcoll_ready_kick(ready);
}

void kcoll_link_wake_stalled(struct kcoll_links *set)
{
	struct kcoll_link *link;

	lockdep_assert_held(set->lock);
	list_for_each_entry(link, &set->stalled, stalled)
		kcoll_link_wake(link);
}

void kcoll_link_set_stalled(struct kcoll_link *link, bool stalled)
{
	lockdep_assert_held(link->set->lock);
	if (stalled && !kcoll_link_stalled(link))
		list_add_tail(&link->stalled, &link->set->stalled);
	else if (!stalled)
		list_del_init(&link->stalled);
}

/* Its socket wakes it no more. */
static void link_forget(struct kcoll_link *link)
{
	struct kcoll_ready *ready = link->set->ready;
	unsigned long flags;

	raw_spin_lock_irqsave(&ready->lock, flags);
	if (!list_empty(&link->ready))
		ready_remove(ready, link);
	raw_spin_unlock_irqrestore(&ready->lock, flags);
}

/* ---- links --------------------------------------------------------------------- */

u64 kcoll_link_pages(u32 count)
{
	return DIV_ROUND_UP_ULL((u64)count * sizeof(struct kcoll_link), PAGE_SIZE);
}

static struct kcoll_link *link_make(struct kcoll_links *set, u32 rank)
{
	struct kcoll_link *link = kzalloc(sizeof(*link), COLL_GFP);

	if (!link)
		return NULL;
	link->set = set;
	link->rank = rank;
	link->queue_end = &link->queue;
	INIT_LIST_HEAD(&link->ready);
	INIT_LIST_HEAD(&link->stalled);
	if (xa_err(xa_store(&set->by_rank, rank, link, COLL_GFP))) {
		kfree(link);
		return NULL;
	}
	set->count++;
	return link;
}

struct kcoll_link *kcoll_link_get(struct kcoll_links *set, u32 rank)
{
	struct kcoll_link *link = xa_load(&set->by_rank, rank);
	const u64 pages = kcoll_link_pages(set->count + 1) - kcoll_link_pages(set->count);

	lockdep_assert_held(set->lock);
	if (link || rank >= set->ranks || rank == set->rank)
		return link;
	/* They stay until the group is freed, whatever is unloaded. */
	if (kcoll_memory_account(set->account, pages, true))
		return NULL;
	link = link_make(set, rank);
	if (!link)
		kcoll_memory_account(set->account, pages, false);
	return link;
}

void kcoll_link_release(struct kcoll_link *link)
{
	lockdep_assert_held(link->set->lock);
	if (link->wait_head)
		remove_wait_queue(link->wait_head, &link->wait);
	link->wait_head = NULL;
	if (link->socket)
		sockfd_put(link->socket);
	link->socket = NULL;
	kfree(link->stage);
	link->stage = NULL;
	kcoll_link_set_stalled(link, false);
	link_forget(link);
}
