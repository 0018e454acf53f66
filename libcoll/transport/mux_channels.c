// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The channels of a mux: by number, and in lists of those that have something to do. */
#include <errno.h>
#include <stdlib.h>

#include "channel.h"
#include "core/port.h"
#include "libcoll/engine/engine.h"
#include "libcoll/link/arbiter.h"
#include "mux_parts.h"

enum { BUCKETS_MIN = 8 };

/* ---- channels by number ---------------------------------------------------- */

static struct coll_channel **bucket_of(const struct coll_mux *mux, uint32_t number)
{
	return &mux->bucket[(number >> 1) & (mux->buckets - 1)];
}

static void bucket_add(struct coll_mux *mux, struct coll_channel *channel)
{
	struct coll_channel **slot = bucket_of(mux, channel->number);

	channel->next_in_bucket = *slot;
	*slot = channel;
}

/* Twice as many buckets, if they are full. */
static int buckets_grow(struct coll_mux *mux)
{
	const uint32_t buckets = mux->buckets ? 2 * mux->buckets : BUCKETS_MIN;
	struct coll_channel **bucket, *channel;

	if (mux->channels < mux->buckets)
		return 0;
	bucket = calloc(buckets, sizeof(struct coll_channel *));
	if (!bucket)
		return -ENOMEM;
	free(mux->bucket);
	mux->bucket = bucket;
	mux->buckets = buckets;
	for (channel = mux->all; channel; channel = channel->next)
		bucket_add(mux, channel);
	return 0;
}

int coll_mux_add(struct coll_mux *mux, struct coll_channel *channel)
{
	int error = buckets_grow(mux);

	if (error)
		return error;
	bucket_add(mux, channel);
	channel->next = mux->all;
	channel->slot = &mux->all;
	if (mux->all)
		mux->all->slot = &channel->next;
	mux->all = channel;
	mux->channels++;
	return 0;
}

struct coll_channel *coll_mux_find(const struct coll_mux *mux, uint32_t number)
{
	struct coll_channel *channel = mux->buckets ? *bucket_of(mux, number) : NULL;

	while (channel && channel->number != number)
		channel = channel->next_in_bucket;
	return channel;
}

/* ---- lists ----------------------------------------------------------------- */

void coll_mux_touch(struct coll_mux *mux, struct coll_channel *channel)
{
	if (!channel->touched) {
		channel->touched = true;
		channel->next_touched = mux->touched;
		mux->touched = channel;
	}
	if (mux->attached)
		coll_socket_touch(&mux->socket);
}

static void senders_add(struct coll_mux *mux, struct coll_channel *channel)
{
	if (channel->sends || channel->blocked)
		return;
	channel->sends = true;
	channel->next_sender = NULL;
	*mux->senders_end = channel;
	mux->senders_end = &channel->next_sender;
}

void coll_mux_senders_remove(struct coll_mux *mux, struct coll_channel *channel)
{
	struct coll_channel **slot = &mux->senders;

	if (!channel->sends)
		return;
	channel->sends = false;
	while (*slot != channel)
		slot = &(*slot)->next_sender;
	*slot = channel->next_sender;
	if (!*slot)
		mux->senders_end = slot;
}

static void receivers_remove(struct coll_mux *mux, struct coll_channel *channel)
{
	struct coll_channel **slot = &mux->receivers;

	if (!channel->receives)
		return;
	channel->receives = false;
	while (*slot != channel)
		slot = &(*slot)->next_receiver;
	*slot = channel->next_receiver;
}

static void set_blocked(struct coll_mux *mux, struct coll_channel *channel, bool blocked)
{
	if (channel->blocked == blocked)
		return;
	channel->blocked = blocked;
	mux->blocked += blocked ? 1 : -1;
	mux->context->grants_awaited += blocked;
	mux->context->channels_blocked += blocked ? 1 : -1;
}

struct coll_channel *coll_mux_next_sender(struct coll_mux *mux)
{
	struct coll_channel *channel, *next, *first = NULL;

	for (channel = mux->senders; channel; channel = next) {
		next = channel->next_sender;
		if (channel->credit && mux->ops->wants_send(channel)) {
			if (!coll_arbiter_bulk_is_next(channel->link))
				return channel;
			first = first ? first : channel;
			continue;
		}
		coll_mux_senders_remove(mux, channel);
		set_blocked(mux, channel, mux->ops->wants_send(channel));
	}
	return first;
}

struct coll_channel *coll_mux_only_receiver(struct coll_mux *mux)
{
	struct coll_channel *channel, *next, *only = NULL;

	for (channel = mux->receivers; channel; channel = next) {
		next = channel->next_receiver;
		if (!mux->ops->wants_recv(channel))
			receivers_remove(mux, channel);
		else if (only)
			return NULL;
		else
			only = channel;
	}
	return only;
}

/* The only one stays on the list: it will receive again, and has no turn to take for that then. */
bool coll_mux_has_receiver(struct coll_mux *mux)
{
	struct coll_channel *first;

	while ((first = mux->receivers) && !mux->ops->wants_recv(first)) {
		if (!first->next_receiver)
			return false;
		receivers_remove(mux, first);
	}
	return first;
}

void coll_mux_leave(struct coll_mux *mux)
{
	struct coll_channel *channel;

	if (--mux->users)
		return;
	while ((channel = mux->closed)) {
		mux->closed = channel->next;
		free(channel->held);
		free(channel);
	}
}

void coll_mux_serve_touched(struct coll_mux *mux)
{
	struct coll_channel *channel;

	coll_mux_enter(mux);
	while ((channel = mux->touched)) {
		mux->touched = channel->next_touched;
		channel->touched = false;
		mux->ops->serve(channel);
		if (!channel->link)
			continue;
		if (channel->credit)
			set_blocked(mux, channel, false);
		if (mux->ops->wants_send(channel))
			senders_add(mux, channel);
		if (!channel->receives && mux->ops->wants_recv(channel)) {
			channel->receives = true;
			channel->next_receiver = mux->receivers;
			mux->receivers = channel;
		}
	}
	coll_mux_leave(mux);
}

void coll_mux_touch_all(struct coll_mux *mux)
{
	struct coll_channel *channel;

	for (channel = mux->all; channel; channel = channel->next)
		coll_mux_touch(mux, channel);
}

static void bucket_remove(struct coll_mux *mux, struct coll_channel *channel)
{
	struct coll_channel **slot = bucket_of(mux, channel->number);

	while (*slot != channel)
		slot = &(*slot)->next_in_bucket;
	*slot = channel->next_in_bucket;
}

static void touched_remove(struct coll_mux *mux, struct coll_channel *channel)
{
	struct coll_channel **slot = &mux->touched;

	if (!channel->touched)
		return;
	while (*slot != channel)
		slot = &(*slot)->next_touched;
	*slot = channel->next_touched;
	channel->touched = false;
}

void coll_mux_unlink(struct coll_mux *mux, struct coll_channel *channel)
{
	touched_remove(mux, channel);
	coll_mux_senders_remove(mux, channel);
	receivers_remove(mux, channel);
	set_blocked(mux, channel, false);
	mux->stopping -= channel->stopping;
	bucket_remove(mux, channel);
	*channel->slot = channel->next;
	if (channel->next)
		channel->next->slot = channel->slot;
	mux->channels--;
	channel->next = mux->closed;
	mux->closed = channel;
}
