// SPDX-License-Identifier: GPL-2.0
/* Long messages that one end of a pair offers and the other copies. */
#include <linux/highmem.h>

#include "link.h"
#include "pair.h"

enum {
	OFFER_LEAST = 1 << 16,		/* bytes; a shorter message is as fast through the socket */
	OFFER_SECTION = 1 << 14,	/* copied without being preempted: some microseconds */
	OFFER_PAGES = DIV_ROUND_UP(OFFER_SECTION, PAGE_SIZE) + 1,
};

/* A pair that is seen stays until the link leaves it, which takes the lock of its set. */
static struct kcoll_pair *pair_of(const struct kcoll_link *link)
{
	lockdep_assert_held(link->set->lock);
	return smp_load_acquire(&link->pair);
}

static struct kcoll_offers *own_offers(const struct kcoll_link *link)
{
	struct kcoll_pair *pair = pair_of(link);

	return pair ? &pair->offers[link->side] : NULL;
}

static struct kcoll_offers *others_offers(const struct kcoll_link *link)
{
	struct kcoll_pair *pair = pair_of(link);

	return pair ? &pair->offers[!link->side] : NULL;
}

void kcoll_offers_init(struct kcoll_offers *offers)
{
	raw_spin_lock_init(&offers->lock);
	INIT_LIST_HEAD(&offers->open);
	INIT_LIST_HEAD(&offers->taken);
	INIT_LIST_HEAD(&offers->returned);
}

static void end_wake(struct kcoll_link *end)
{
	if (end)
		kcoll_link_wake(end);
}

/* ---- the sender ------------------------------------------------------------------- */

bool kcoll_offer(struct kcoll_link *link, struct kcoll_sending *sending)
{
	struct kcoll_offers *offers = own_offers(link);
	bool offered;

	if (!offers || sending->header.bytes < OFFER_LEAST)
		return false;
	raw_spin_lock(&offers->lock);
	offered = offers->to;
	if (offered) {
		sending->header.kind = COLL_MESSAGE_OFFER;
		list_add_tail(&sending->offer, &offers->open);
	}
	raw_spin_unlock(&offers->lock);
	return offered;
}

static void offers_close(struct kcoll_offers *offers, struct list_head *returned)
{
	offers->begun = NULL;
	list_splice_tail_init(&offers->open, returned);
	end_wake(offers->to);	/* it may have no room for one of them, and not read on */
}

bool kcoll_offers_collect(struct kcoll_link *link, enum kcoll_collect which,
			  struct list_head *taken, struct list_head *returned)
{
	struct kcoll_offers *offers = own_offers(link);
	bool closed;

	if (!offers)
		return true;
	raw_spin_lock(&offers->lock);
	list_splice_tail_init(&offers->taken, taken);
	list_splice_tail_init(&offers->returned, returned);
	if (!list_empty(&offers->open) &&
	    (which == COLL_COLLECT_ALL || (which == COLL_COLLECT_OPEN && !offers->begun)))
		offers_close(offers, returned);
	closed = list_empty(&offers->open);
	raw_spin_unlock(&offers->lock);
	return closed;
}

/* ---- the receiver ----------------------------------------------------------------- */

void kcoll_offers_return(struct kcoll_offers *offers)
{
	raw_spin_lock(&offers->lock);
	offers->to = NULL;
	offers->begun = NULL;
	list_splice_tail_init(&offers->open, &offers->returned);
	end_wake(offers->from);
	raw_spin_unlock(&offers->lock);
}

bool kcoll_offer_begin(struct kcoll_link *link)
{
	struct kcoll_offers *offers = others_offers(link);
	struct kcoll_sending *first;

	if (!offers)
		return false;
	raw_spin_lock(&offers->lock);
	first = list_first_entry_or_null(&offers->open, struct kcoll_sending, offer);
	link->from_pair = first && !memcmp(&first->header, &link->header, sizeof(link->header));
	if (link->from_pair) {
		offers->begun = first;
		link->header.kind = COLL_MESSAGE_DATA;
	}
	raw_spin_unlock(&offers->lock);
	return link->from_pair;
}

bool kcoll_offer_is_whole(const struct kcoll_link *link, u32 element)
{
	struct kcoll_offers *offers = others_offers(link);
	const struct kcoll_sending *sending;
	bool whole;

	raw_spin_lock(&offers->lock);
	sending = offers->begun;
	whole = sending && !((sending->buffer->first + sending->offset) & (element - 1));
	raw_spin_unlock(&offers->lock);
	return whole;
}

void kcoll_offer_put_back(struct kcoll_link *link)
{
	struct kcoll_offers *offers = others_offers(link);

	raw_spin_lock(&offers->lock);
	offers->begun = NULL;
	raw_spin_unlock(&offers->lock);
	link->header.kind = COLL_MESSAGE_OFFER;
	link->from_pair = false;
}

/* Page by page, as long as neither page ends: nobody maps pages of another process. */
static void copy_to_memory(const struct kcoll_memory *to, u64 at, const struct kcoll_memory *from,
			   u64 offset, u64 bytes)
{
	struct bio_vec source, target;
	u64 part;

	for (; bytes; bytes -= part, at += part, offset += part) {
		part = bytes;
		kcoll_memory_bvecs(from, offset, &part, &source, 1);
		kcoll_memory_bvecs(to, at, &part, &target, 1);
		memcpy_page(target.bv_page, target.bv_offset, source.bv_page, source.bv_offset,
			    part);
	}
}

static void copy_to_kept(u8 *to, const struct kcoll_memory *from, u64 offset, u64 bytes)
{
	struct bio_vec source;
	u64 part;

	for (; bytes; bytes -= part, to += part, offset += part) {
		part = bytes;
		kcoll_memory_bvecs(from, offset, &part, &source, 1);
		memcpy_from_page(to, source.bv_page, source.bv_offset, part);
	}
}

static void reduce_section(const struct kcoll_link *link, const struct kcoll_memory *from,
			   u64 offset, u64 bytes)
{
	struct bio_vec pages[OFFER_PAGES];
	const int count = kcoll_memory_bvecs(from, offset, &bytes, pages, OFFER_PAGES);

	link->set->ops->reduce(link->run, link->op, pages, count);
}

static u64 take_section(const struct kcoll_link *link, const struct kcoll_sending *sending)
{
	const u64 done = link->header.bytes - link->payload_left;
	const u64 from = sending->offset + done;
	u64 part = min_t(u64, link->payload_left, OFFER_SECTION);

	if (link->run && link->reduces)
		reduce_section(link, sending->buffer, from, part);
	else if (link->run)
		copy_to_memory(link->buffer, link->offset + done, sending->buffer, from, part);
	else if (link->unexpected)
		copy_to_kept(link->unexpected->data + done, sending->buffer, from, part);
	else
		part = link->payload_left;
	return part;
}

s64 kcoll_offer_take(struct kcoll_link *link)
{
	struct kcoll_offers *offers = others_offers(link);
	struct kcoll_sending *sending;
	s64 part = -ESTALE;

	raw_spin_lock(&offers->lock);
	sending = offers->begun;
	if (sending) {
		part = take_section(link, sending);
		link->payload_left -= part;
		if (!link->payload_left) {
			offers->begun = NULL;
			list_move_tail(&sending->offer, &offers->taken);
			end_wake(offers->from);
		}
	}
	raw_spin_unlock(&offers->lock);
	if (part < 0 || !link->payload_left)
		link->from_pair = false;
	return part;
}
