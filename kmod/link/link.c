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
	if (ready->thread)
		wake_up_process(ready->thread);
}

void kcoll_link_wake(struct kcoll_link *link)
{
	if (test_and_set_bit(0, &link->woken))
		return;
	llist_add(&link->ready, &link->set->ready->links);
	kcoll_ready_kick(link->set->ready);
}

void kcoll_link_wake_stalled(struct kcoll_links *set)
{
	struct kcoll_link *link;
	unsigned long rank;

	lockdep_assert_held(set->lock);
	xa_for_each(&set->by_rank, rank, link)
		if (link->stalled)
			kcoll_link_wake(link);
}

/*
 * Takes the link off the list of those that woke up. Its socket wakes it no more. The thread
 * may have seen the list empty and go to sleep; the others wake it only once: so it is kicked.
 */
static void link_forget(struct kcoll_link *link)
{
	struct kcoll_ready *ready = link->set->ready;
	struct kcoll_link *other, *next;
	bool others = false;

	llist_for_each_entry_safe(other, next, llist_del_all(&ready->links), ready)
		if (other != link) {
			llist_add(&other->ready, &ready->links);
			others = true;
		}
	if (others)
		kcoll_ready_kick(ready);
}

/* ---- links --------------------------------------------------------------------- */

struct kcoll_link *kcoll_link_get(struct kcoll_links *set, u32 rank)
{
	struct kcoll_link *link = xa_load(&set->by_rank, rank);

	lockdep_assert_held(set->lock);
	if (link || rank >= set->ranks || rank == set->rank)
		return link;
	link = kzalloc(sizeof(*link), COLL_GFP);
	if (!link)
		return NULL;
	link->set = set;
	link->rank = rank;
	link->queue_end = &link->queue;
	if (xa_err(xa_store(&set->by_rank, rank, link, COLL_GFP))) {
		kfree(link);
		return NULL;
	}
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
	link_forget(link);
}
