// SPDX-License-Identifier: GPL-2.0
/*
 * Messages that arrived before their receive. The set has a capacity, which is
 * accounted from the start. A message beyond it is kept only when an older run waits
 * for what follows in the stream; then its own pages are accounted.
 */
#include <linux/mm.h>
#include <linux/rbtree.h>
#include <linux/slab.h>

#include "kmod/common/subsystem.h"
#include "link.h"

/* ---- by key -------------------------------------------------------------------- */

struct unexpected_key {
	u32 run, rank, slot;
};

static struct unexpected_key key_of(const struct kcoll_unexpected *message)
{
	return (struct unexpected_key){ message->header.run, message->rank, message->header.slot };
}

static int key_compare(struct unexpected_key a, struct unexpected_key b)
{
	if (a.run != b.run)
		return a.run < b.run ? -1 : 1;
	if (a.rank != b.rank)
		return a.rank < b.rank ? -1 : 1;
	return a.slot < b.slot ? -1 : a.slot > b.slot;
}

static struct kcoll_unexpected *by_key(const struct rb_node *node)
{
	return rb_entry_safe(node, struct kcoll_unexpected, by_key);
}

static bool node_less(struct rb_node *left, const struct rb_node *right)
{
	return key_compare(key_of(by_key(left)), key_of(by_key(right))) < 0;
}

static int node_compare(const void *key, const struct rb_node *node)
{
	return key_compare(*(const struct unexpected_key *)key, key_of(by_key(node)));
}

struct kcoll_unexpected *kcoll_unexpected_find(const struct kcoll_links *set, u32 rank, u32 run,
					       u32 slot)
{
	const struct unexpected_key key = { run, rank, slot };

	lockdep_assert_held(set->lock);
	return by_key(rb_find(&key, &set->unexpected_by_key, node_compare));
}

/* The first of this run or a higher one. */
static struct kcoll_unexpected *unexpected_from(const struct kcoll_links *set, u32 run)
{
	struct rb_node *node = set->unexpected_by_key.rb_node, *found = NULL;

	lockdep_assert_held(set->lock);
	while (node) {
		if (by_key(node)->header.run < run) {
			node = node->rb_right;
		} else {
			found = node;
			node = node->rb_left;
		}
	}
	return by_key(found);
}

struct kcoll_unexpected *kcoll_unexpected_first(const struct kcoll_links *set, u32 run)
{
	struct kcoll_unexpected *first = unexpected_from(set, run);

	return first && first->header.run == run ? first : NULL;
}

struct kcoll_unexpected *kcoll_unexpected_next(const struct kcoll_unexpected *message)
{
	struct kcoll_unexpected *next = by_key(rb_next(&message->by_key));

	return next && next->header.run == message->header.run ? next : NULL;
}

/* ---- make and free --------------------------------------------------------------- */

static u64 unexpected_bytes(const struct kcoll_link *link)
{
	return sizeof(struct kcoll_unexpected) + link->header.bytes;
}

bool kcoll_unexpected_fits(const struct kcoll_link *link)
{
	return (s64)unexpected_bytes(link) <= link->set->unexpected_left;
}

int kcoll_unexpected_make(struct kcoll_link *link)
{
	struct kcoll_links *set = link->set;
	const u64 bytes = unexpected_bytes(link);
	const u64 pages = kcoll_unexpected_fits(link) ? 0 : DIV_ROUND_UP(bytes, PAGE_SIZE);
	struct kcoll_unexpected *message;
	int error;

	lockdep_assert_held(set->lock);
	error = kcoll_memory_account(set->account, pages, true);
	if (error)
		return error;
	/* A message that is too long is refused; it kills no process of the owner's cgroup. */
	message = kvmalloc(bytes, COLL_GFP | __GFP_RETRY_MAYFAIL);
	if (!message) {
		kcoll_memory_account(set->account, pages, false);
		return -ENOMEM;
	}
	message->accounted = pages;
	set->unexpected_left -= bytes;
	message->header = link->header;
	message->rank = link->rank;
	message->complete = false;
	message->got = 0;
	list_add_tail(&message->node, &set->unexpected);
	rb_add(&message->by_key, &set->unexpected_by_key, node_less);
	link->unexpected = message;
	set->counters->unexpected++;
	return 0;
}

struct kcoll_unexpected *kcoll_unexpected_begun(const struct kcoll_link *link)
{
	const struct coll_header *header = &link->header;
	struct kcoll_unexpected *message =
		kcoll_unexpected_find(link->set, link->rank, header->run, header->slot);

	return message && !message->complete && message->header.bytes == header->bytes &&
	       message->got == header->offset ? message : NULL;
}

static void unexpected_free(struct kcoll_links *set, struct kcoll_unexpected *message)
{
	lockdep_assert_held(set->lock);
	list_del(&message->node);
	rb_erase(&message->by_key, &set->unexpected_by_key);
	set->unexpected_left += sizeof(*message) + message->header.bytes;
	kcoll_memory_account(set->account, message->accounted, false);
	kvfree(message);
}

/* There is capacity again. */
static void unexpected_freed(struct kcoll_links *set)
{
	if (!set->failed)
		kcoll_link_wake_stalled(set);
}

void kcoll_unexpected_free(struct kcoll_links *set, struct kcoll_unexpected *message)
{
	unexpected_free(set, message);
	unexpected_freed(set);
}

static void drop_runs(struct kcoll_links *set, u32 first, u32 last)
{
	struct kcoll_unexpected *message = unexpected_from(set, first), *next;

	for (; message && message->header.run <= last; message = next) {
		next = by_key(rb_next(&message->by_key));
		if (message->complete)
			unexpected_free(set, message);
	}
}

void kcoll_unexpected_drop(struct kcoll_links *set, u32 first, u32 end)
{
	if (first == end || list_empty(&set->unexpected))
		return;
	if (first < end || !end) {
		drop_runs(set, first, end - 1);
	} else {	/* numbers go on from 0 */
		drop_runs(set, first, U32_MAX);
		drop_runs(set, 0, end - 1);
	}
	unexpected_freed(set);
}
