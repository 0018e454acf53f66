// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libcoll/base/log.h"
#include "channel.h"
#include "core/port.h"
#include "held.h"
#include "libcoll/link/groups.h"
#include "libcoll/link/stream.h"
#include "shared_memory.h"

enum {
	FRAME_SMALL = URGENT_MAX + sizeof(struct coll_header),
};

/* More than any receiver grants: the sum cannot overflow. */
static const uint64_t credit_max = 1ull << 40;

static struct coll_channel *channel_of(const struct coll_arrival *arrival)
{
	return (struct coll_channel *)arrival;
}

static void channel_send_control(const struct coll_channel *channel, enum coll_channel_kind kind,
				 uint64_t value)
{
	const struct coll_channel_control control = { .kind = kind, .channel = channel->number,
						      .value = value };

	coll_mux_queue_frame(channel->mux, 0, &control, sizeof(control));
}

/* ---- begin and end --------------------------------------------------------- */

static struct coll_channel *channel_make(struct coll_mux *mux, uint32_t number)
{
	struct coll_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->mux = mux;
	channel->number = number;
	channel->credit = channel->window = COLL_CHANNEL_FIRST;
	if (!coll_mux_add(mux, channel))
		return channel;
	free(channel);
	return NULL;
}

/* The connection is up, so the link is. -ENOMEM: the link has no transport. */
static int channel_attach_link(struct coll_channel *channel, uint32_t streams)
{
	struct coll_link *link = channel->link;
	int error = link->number ? 0 : coll_streams_make(link, streams);

	coll_assert(!link->attached && link->channel == channel);
	if (error)
		return error;
	link->transport = &coll_channel_transport;
	link->socket.ops = &coll_link_socket_ops;
	coll_link_up(link, channel->mux->local);
	return 0;
}

static void channel_up(struct coll_channel *channel)
{
	struct coll_link *link = channel->link;
	int error = channel_attach_link(channel, coll_streams_wanted(link));

	if (error)
		coll_link_lost(link, error);
	else
		coll_link_open_streams(link);
}

/* If the group has failed, with the news: the link may not have got it through its bulk. */
static void channel_send_reset(const struct coll_channel *channel)
{
	const struct coll_link *link = channel->link;
	struct coll_channel_control control = { .kind = COLL_CHANNEL_RESET,
						.channel = channel->number };

	if (link && link->group->state != GROUP_OK) {
		const struct coll_header news = coll_link_events(link->group)->news(link->group);

		control.value = news.hash;
		control.from = news.run;
		control.to = news.slot;
	}
	coll_mux_queue_frame(channel->mux, 0, &control, sizeof(control));
}

static void channel_close(struct coll_channel *channel)
{
	struct coll_mux *mux = channel->mux;
	struct coll_link *link = channel->link;

	if (!link && channel->arrival.context)
		coll_arrival_remove(&channel->arrival);
	channel_send_reset(channel);
	coll_mux_remove(mux, channel);
	if (link)
		link->channel = NULL;
}

/* ---- arriving -------------------------------------------------------------- */

static int channel_attach(struct coll_arrival *arrival, struct coll_link *link, uint32_t streams)
{
	struct coll_channel *channel = channel_of(arrival);
	int error;

	channel->link = link;
	link->channel = channel;
	error = channel_attach_link(channel, streams);
	if (!error) {
		coll_mux_touch(channel->mux, channel);
		return 0;
	}
	link->channel = NULL;
	channel->link = NULL;
	return error;
}

static void channel_notify(struct coll_arrival *arrival, const struct coll_header *news)
{
	struct coll_channel *channel = channel_of(arrival);

	coll_mux_queue_frame(channel->mux, channel->number, news, sizeof(*news));
	channel_close(channel);
}

static void channel_drop(struct coll_arrival *arrival, const char *reason)
{
	if (reason && !arrival->context->counters.refused++)
		coll_log(&arrival->context->options, COLL_LOG_WARN,
			 "rank %d: refused a channel of rank %u: %s (told once)",
			 arrival->context->boot->rank, arrival->world, reason);
	channel_close(channel_of(arrival));
}

static bool channel_is_ended(const struct coll_arrival *arrival)
{
	return channel_of(arrival)->peer_ended;
}

static const struct coll_arrival_ops channel_arrival_ops = {
	.attach = channel_attach,
	.notify = channel_notify,
	.drop = channel_drop,
	.is_ended = channel_is_ended,
};

static int channel_opened(struct coll_mux *mux, const struct coll_channel_control *control)
{
	struct coll_channel *channel;

	if (!control->channel || control->channel % 2 == mux->mine ||
	    coll_mux_find(mux, control->channel) || control->stream != mux->number ||
	    control->streams > WAN_STREAMS_MAX)
		return -EPROTO;
	channel = channel_make(mux, control->channel);
	if (!channel)
		return -ENOMEM;
	channel->arrival = (struct coll_arrival){
		.ops = &channel_arrival_ops,
		.context = mux->context,
		.world = mux->world,
		.group = control->value,
		.from = control->from,
		.to = control->to,
		.streams = control->streams,
		.stream = control->stream,
	};
	coll_arrival_add(&channel->arrival);
	return 0;
}

static struct coll_header news_of(const struct coll_channel_control *control, uint32_t error)
{
	return (struct coll_header){
		.kind = COLL_MESSAGE_FAIL,
		.version = COLL_WIRE_VERSION,
		.run = control->from,
		.slot = control->to,
		.hash = error,
	};
}

/* A peer that this rank has not connected to waits for it. */
static void channels_asked(struct coll_mux *mux, uint64_t group)
{
	struct coll_channel_control answer = { .kind = COLL_CHANNEL_NEWS, .value = group };
	struct coll_header news;

	mux->context->events->called_for(mux->context, group, mux->world);
	coll_arrivals_news(mux->context, group, &news);
	answer.channel = news.hash;
	answer.from = news.run;
	answer.to = news.slot;
	coll_mux_queue_frame(mux, 0, &answer, sizeof(answer));
}

/* The answer. */
static void channels_take_news(struct coll_mux *mux, const struct coll_channel_control *control)
{
	struct coll_header news = news_of(control, control->channel);
	struct coll_group *group = coll_groups_find(mux->context, control->value);
	uint32_t rank;

	if (!news.hash)
		news.kind = COLL_MESSAGE_PONG;
	for (rank = 0; group && rank < group->ranks; rank++)
		if (group->world[rank] == mux->world && group->links[rank] &&
		    group->links[rank]->awaited)
			coll_link_events(group)->control(group->links[rank], &news);
}

/* The peer's group has failed. */
static void channel_take_news(struct coll_channel *channel,
			      const struct coll_channel_control *control)
{
	const struct coll_header news = news_of(control, control->value);

	if (control->value && channel->link && channel->link->state == LINK_UP)
		coll_link_events(channel->link->group)->control(channel->link, &news);
}

/* Fields that the kind does not use are 0. */
static bool control_is_valid(const struct coll_channel_control *control)
{
	if (control->kind < COLL_CHANNEL_OPEN || control->kind > COLL_CHANNEL_NEWS ||
	    control->zero || control->unused)
		return false;
	if (control->kind == COLL_CHANNEL_OPEN)
		return true;
	if (control->streams || control->stream)
		return false;
	if (control->kind == COLL_CHANNEL_NEWS)
		return true;
	if (control->kind == COLL_CHANNEL_ASK)
		return !control->channel && !control->from && !control->to;
	return control->kind == COLL_CHANNEL_RESET ||
	       (!control->from && !control->to &&
		(control->kind == COLL_CHANNEL_WINDOW || !control->value));
}

static int channel_control(struct coll_mux *mux, const struct coll_channel_control *control)
{
	struct coll_channel *channel;

	if (!control_is_valid(control))
		return -EPROTO;
	switch (control->kind) {
	case COLL_CHANNEL_OPEN:
		return channel_opened(mux, control);
	case COLL_CHANNEL_ASK:
		channels_asked(mux, control->value);
		return 0;
	case COLL_CHANNEL_NEWS:
		channels_take_news(mux, control);
		return 0;
	}
	channel = coll_mux_find(mux, control->channel);
	if (!channel)			/* this side has closed it */
		return 0;
	switch (control->kind) {
	case COLL_CHANNEL_WINDOW:
		if (control->value > credit_max - channel->credit)
			return -EPROTO;
		channel->credit += control->value;
		break;
	case COLL_CHANNEL_END:
		channel->peer_ended = true;
		break;
	case COLL_CHANNEL_RESET:
		channel->peer_ended = channel->peer_reset = true;
		channel_take_news(channel, control);
		break;
	}
	coll_mux_touch(channel->mux, channel);
	return 0;
}

/* ---- bytes ----------------------------------------------------------------- */

static bool channel_wants_recv(const struct coll_channel *channel)
{
	return channel->link && channel->link->attached && !channel->held_bytes &&
	       !channel->feeding && coll_link_wants_recv(channel->link);
}

static bool channel_wants_send(const struct coll_channel *channel)
{
	const struct coll_link *link = channel->link;

	return link && link->attached && link->socket.ops->wants_send(&channel->link->socket);
}

/* Both sides copy, and neither looks often what the other waits for. */
static bool link_exchanges(const struct coll_link *link)
{
	return link->queue && coll_link_through_memory(link);
}

/*
 * A rank that is late in an exchange among all may have to hold as much of each peer, so their number
 * divides it. Beyond a cgroup's limit the kernel kills it: there it is as without an exchange.
 */
static uint64_t exchange_window(const struct coll_context *context)
{
	const uint64_t part = CHANNEL_WINDOWS_ALL / coll_ranks_here(context);

	if (context->memory_is_limited || part < CHANNEL_WINDOW)
		return CHANNEL_WINDOW;
	return part < CHANNEL_WINDOW_LONG ? part : CHANNEL_WINDOW_LONG;
}

/* Bytes that the peer of a link may send ahead. */
static uint64_t channel_window(const struct coll_link *link)
{
	if (!link->whole->expected)
		return CHANNEL_WINDOW_IDLE;
	if (coll_link_is_far(link))
		return CHANNEL_WINDOW_LONG;
	return link_exchanges(link) ? exchange_window(link->group->context) : CHANNEL_WINDOW;
}

/* Bytes that the peer is to be granted now. */
static uint64_t channel_grants(const struct coll_channel *channel)
{
	const struct coll_link *link = channel->link;
	const uint64_t ahead = channel->window + channel->held_bytes;
	uint64_t target;

	if (!link || channel->peer_ended || channel->mux->state != MUX_UP)
		return 0;
	target = channel_window(link);
	return ahead < target / 2 ? target - ahead : 0;
}

static void channel_grant(struct coll_channel *channel)
{
	const uint64_t bytes = channel_grants(channel);

	if (!bytes)
		return;
	channel->window += bytes;
	channel_send_control(channel, COLL_CHANNEL_WINDOW, bytes);
}

/*
 * Whether the link gets these bytes of a frame now. Bulk waits for its receive, and then goes
 * to its place, also if it is published; news and small messages do not wait.
 */
static bool channel_delivers(const struct coll_channel *channel, const uint8_t *data)
{
	const struct coll_link *link = channel->link;

	if (!link || channel->held_bytes || channel->feeding)
		return false;
	return coll_link_wants_recv(link) ||
	       (channel->mux->header.bytes <= FRAME_SMALL && coll_link_accepts(link) &&
		(link->header_got || *data != COLL_MESSAGE_PUBLISHED));
}

/* The channel may be gone on return: its mux is in use, so that it is freed later. */
static int channel_hold(struct coll_channel *channel, const uint8_t *data, uint32_t bytes)
{
	const int error = coll_channel_hold(channel, data, bytes);

	if (!error && !channel->link)
		coll_arrival_hold(&channel->arrival, channel->held_capacity);
	return error;
}

static int channel_receive(struct coll_channel *channel, const uint8_t *data, uint32_t bytes)
{
	struct coll_link *link = channel->link;

	if (!channel_delivers(channel, data))
		return channel_hold(channel, data, bytes);
	link->socket.ops->received_in(&link->socket, data, bytes);
	channel_grant(channel);
	return 0;
}

/*
 * Whether the end is to be delivered. A peer that closes a link closes its streams too: the
 * link itself may bring the reason, so it is read first.
 */
static bool channel_has_ended(const struct coll_channel *channel)
{
	const struct coll_link *link = channel->link;

	if (channel->stopping)
		return coll_mux_is_drained(channel->mux) && !channel->held_bytes;
	if (!channel->peer_ended)
		return false;
	return !link->number || channel->mux->state == MUX_ENDED || !link->whole->channel ||
	       link->whole->channel->peer_ended;
}

/* Reports what a socket would: bytes, then the end; and an error if nothing can be sent. */
static void channel_serve(struct coll_channel *channel)
{
	const struct coll_mux *mux = channel->mux;

	if (channel->link && channel->link->state == LINK_CONNECTING) {
		if (mux->state == MUX_UP && !mux->broken)
			channel_up(channel);
		else if (mux->state == MUX_ENDED)
			coll_link_lost(channel->link, mux->error);
	}
	while (channel->link && channel->held_bytes && coll_link_wants_recv(channel->link))
		coll_channel_feed(channel);
	if (channel->link && channel->peer_reset && channel_wants_send(channel))
		channel->link->socket.ops->sent(&channel->link->socket, coll_mux_send_error(mux));
	if (!channel->end_delivered && channel_wants_recv(channel) &&
	    channel_has_ended(channel) && channel_wants_recv(channel)) {
		channel->end_delivered = true;
		channel->link->socket.ops->received_in(&channel->link->socket, NULL, mux->error);
	}
	channel_grant(channel);
}

static const struct coll_channel_ops channel_ops = {
	.wants_send = channel_wants_send,
	.wants_recv = channel_wants_recv,
	.receive = channel_receive,
	.control = channel_control,
	.grant = channel_grant,
	.serve = channel_serve,
	.close = channel_close,
};

int coll_channels_accept(struct coll_context *context, uint32_t world, uint32_t number,
			 const struct coll_connected *connected)
{
	return coll_mux_accept(context, world, number, &channel_ops, connected);
}

/* On a connection that is being made one question waits, not one of each time. */
void coll_channels_ask(const struct coll_link *link)
{
	const struct coll_group *group = link->group;
	const struct coll_channel_control ask = { .kind = COLL_CHANNEL_ASK, .value = group->id };
	struct coll_mux *mux;
	int error;

	mux = coll_mux_get(group->context, group->world[link->rank], 0, &channel_ops, &error);
	if (mux && (mux->state == MUX_UP || !mux->control_bytes))
		coll_mux_queue_frame(mux, 0, &ask, sizeof(ask));
}

/* ---- the transport --------------------------------------------------------- */

static int channel_open(struct coll_link *link)
{
	const struct coll_group *group = link->group;
	struct coll_channel_control control = {
		.kind = COLL_CHANNEL_OPEN,
		.streams = coll_streams_wanted(link),
		.stream = link->number,
		.value = group->id,
		.from = group->rank,
		.to = link->rank,
	};
	struct coll_channel *channel;
	struct coll_mux *mux;
	int error;

	mux = coll_mux_get(group->context, group->world[link->rank], link->number, &channel_ops,
			   &error);
	if (!mux)
		return error;
	channel = channel_make(mux, mux->next_number);
	if (!channel)
		return -ENOMEM;
	mux->next_number += 2;
	channel->link = link;
	link->channel = channel;
	control.channel = channel->number;
	coll_mux_queue_frame(mux, 0, &control, sizeof(control));
	if (mux->state == MUX_UP)
		channel_up(channel);
	return 0;
}

static void channel_touch(struct coll_link *link)
{
	if (link->channel)
		coll_mux_touch(link->channel->mux, link->channel);
}

/*
 * The mux looks for the bytes of all of its links, or waits for them, while one of them receives;
 * memory only as long as this thread waits itself. Bytes that are held, the end, and credit for the
 * peer want a turn of their own.
 */
static bool channel_is_read(const struct coll_channel *channel)
{
	const struct coll_mux *mux = channel->mux;

	return channel->receives && !channel->held_bytes && !channel->peer_ended &&
	       !channel->stopping && mux->state == MUX_UP && !mux->broken &&
	       !channel_grants(channel) &&
	       ((mux->socket.memory && !mux->socket.engine->slept_elsewhere) ||
		mux->socket.receiving);
}

static void channel_await_bytes(struct coll_link *link)
{
	if (!link->channel || !channel_is_read(link->channel))
		channel_touch(link);
}

static bool channel_send_now(struct coll_link *link, const struct iovec message[2])
{
	return link->channel && coll_mux_send_now(link->channel->mux, link->channel, message);
}

static enum coll_look channel_look(struct coll_link *link, const struct coll_header *header,
				   const uint8_t **payload)
{
	const struct coll_channel *channel = link->channel;

	return channel && channel->mux->socket.memory && !link->header_got &&
	       channel_wants_recv(channel) ?
		       coll_mux_look(channel->mux, channel, header, payload) : COLL_LOOK_OTHER;
}

static void channel_took(struct coll_link *link, const struct coll_header *header)
{
	coll_mux_took(link->channel->mux, link->channel, header);
	coll_link_hear(link);
}

static int channel_fd(const struct coll_link *link)
{
	return link->channel ? coll_mux_fd(link->channel->mux) : -1;
}

static struct coll_socket *channel_memory(const struct coll_link *link)
{
	return link->channel && link->channel->mux->socket.memory ? &link->channel->mux->socket : NULL;
}

/* coll_muxes_delivered() has the rest. */
static bool channel_delivered(const struct coll_link *link)
{
	(void)link;
	return true;
}

static void channel_stop_sending(struct coll_link *link)
{
	struct coll_channel *channel = link->channel;

	if (channel->ended)
		return;
	channel->ended = true;
	channel_send_control(channel, COLL_CHANNEL_END, 0);
}

static void channel_stop_reading(struct coll_link *link)
{
	struct coll_channel *channel = link->channel;

	if (!channel || channel->stopping)
		return;
	channel->stopping = true;
	channel->mux->stopping++;
	coll_mux_touch(channel->mux, channel);
}

static void channel_close_link(struct coll_link *link)
{
	if (link->channel)
		channel_close(link->channel);
	coll_link_detached(link);
}

const struct coll_transport coll_channel_transport = {
	.open = channel_open,
	.touch = channel_touch,
	.receive = channel_await_bytes,
	.send_now = channel_send_now,
	.look = channel_look,
	.took = channel_took,
	.fd = channel_fd,
	.memory = channel_memory,
	.read_published = coll_channel_read_published,
	.delivered = channel_delivered,
	.stop_sending = channel_stop_sending,
	.stop_reading = channel_stop_reading,
	.close = channel_close_link,
};
