// SPDX-License-Identifier: GPL-2.0
/*
 * Messages that arrived before their receive. The set has a capacity, which is
 * accounted from the start. A message beyond it is kept only when an older run waits
 * for what follows in the stream; then its own pages are accounted.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "kmod/common/subsystem.h"
#include "link.h"

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
	link->unexpected = message;
	set->counters->unexpected++;
	return 0;
}

struct kcoll_unexpected *kcoll_unexpected_begun(const struct kcoll_link *link)
{
	const struct coll_header *header = &link->header;
	struct kcoll_unexpected *message;

	list_for_each_entry(message, &link->set->unexpected, node)
		if (message->rank == link->rank && !message->complete &&
		    message->header.run == header->run && message->header.slot == header->slot &&
		    message->header.bytes == header->bytes && message->got == header->offset)
			return message;
	return NULL;
}

struct kcoll_unexpected *kcoll_unexpected_find(const struct kcoll_links *set, u32 rank, u32 run,
					       u32 slot)
{
	struct kcoll_unexpected *message;

	lockdep_assert_held(set->lock);
	list_for_each_entry(message, &set->unexpected, node)
		if (message->complete && message->rank == rank && message->header.run == run &&
		    message->header.slot == slot)
			return message;
	return NULL;
}

void kcoll_unexpected_free(struct kcoll_links *set, struct kcoll_unexpected *message)
{
	lockdep_assert_held(set->lock);
	list_del(&message->node);
	set->unexpected_left += sizeof(*message) + message->header.bytes;
	kcoll_memory_account(set->account, message->accounted, false);
	kvfree(message);
	if (!set->failed)
		kcoll_link_wake_stalled(set);
}

void kcoll_unexpected_drop(struct kcoll_links *set, u32 first, u32 end)
{
	struct kcoll_unexpected *message, *next;

	list_for_each_entry_safe(message, next, &set->unexpected, node)
		if (message->complete && message->header.run - first < end - first)
			kcoll_unexpected_free(set, message);
}
