// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/sockios.h>

#include "core/match.h"
#include "core/port.h"
#include "arbiter.h"
#include "channel.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/inject.h"
#include "link.h"
#include "receive.h"
#include "seal.h"
#include "stream.h"

#define TO(state) (1u << (state))

static const uint8_t link_moves[] = {
	[LINK_IDLE] = TO(LINK_CONNECTING) | TO(LINK_UP) | TO(LINK_LOST) | TO(LINK_CLOSED),
	[LINK_CONNECTING] = TO(LINK_UP) | TO(LINK_LOST) | TO(LINK_CLOSED),
	[LINK_UP] = TO(LINK_LEFT) | TO(LINK_LOST) | TO(LINK_CLOSED),
	[LINK_LEFT] = TO(LINK_CLOSED),
	[LINK_LOST] = TO(LINK_CLOSED),
	[LINK_CLOSED] = 0,
};

void coll_link_set_state(struct coll_link *link, enum coll_link_state state)
{
	coll_assert(link_moves[link->state] & TO(state));
	link->state = state;
	link->group->context->awaited -= link->awaited;
	link->awaited = false;
}

void coll_link_init(struct coll_link *link, struct coll_group *group, uint32_t rank)
{
	*link = (struct coll_link){ .group = group, .rank = rank, .whole = link,
				    .socket = { .ops = &coll_link_socket_ops,
						.engine = &group->context->engine,
						.fd = -1 },
				    .suspect = COLL_NONE };
	link->queue_end = link->urgent_end = &link->queue;
	link->kept_end = &link->kept;
	group->open_links++;
}

struct coll_link *coll_link_get(struct coll_group *group, uint32_t rank)
{
	struct coll_link *link = group->links[rank];

	if (link)
		return link;
	link = calloc(1, sizeof(*link));
	if (!link)
		return NULL;
	coll_link_init(link, group, rank);
	group->links[rank] = link;
	return link;
}

void coll_link_touch(struct coll_link *link)
{
	uint32_t i;

	for (i = 0; i < link->streams; i++)
		coll_link_touch(&link->stream[i]);
	if (link->channel)
		coll_channel_touch(link->channel);
	else if (link->attached)
		coll_socket_touch(&link->socket);
}

int coll_link_fd(const struct coll_link *link)
{
	return link->channel ? coll_mux_fd(link->channel->mux) : link->socket.fd;
}

/* ---- connecting --------------------------------------------------------- */

/*
 * What the kernel of either side takes over, and what is measured, is a connection of the link
 * alone.
 */
static int link_shares(const struct coll_link *link, bool *shares)
{
	const struct coll_group *group = link->group;

	*shares = false;
	if (group->own_connections || group->context->offload)
		return 0;
	return coll_connect_shares(group->context, group->world[link->rank], shares);
}

static int link_connected(struct coll_connect *attempt, int fd, struct coll_seal *seal)
{
	struct coll_link *link = attempt->owner;
	int error = coll_link_attach(link, fd, attempt->hello.streams, seal);
	uint32_t i;

	if (error)
		return error;
	if (link->connect == attempt)	/* else it has been closed already */
		link->connect = NULL;
	free(attempt);
	for (i = 0; i < link->streams && link->state == LINK_UP; i++)
		coll_link_open(&link->stream[i]);
	return 0;
}

static void link_connect_failed(struct coll_connect *attempt, int error)
{
	coll_link_lost(attempt->owner, error);
}

static int link_connect(struct coll_link *link)
{
	const struct coll_group *group = link->group;

	link->connect = calloc(1, sizeof(*link->connect));
	if (!link->connect)
		return -ENOMEM;
	*link->connect = (struct coll_connect){
		.context = group->context,
		.world = group->world[link->rank],
		.spread = group->rank + link->rank + link->number,
		.hello = {
			.streams = coll_streams_wanted(link->whole),
			.stream = link->number,
			.from = group->rank,
			.to = link->rank,
			.group = group->id,
		},
		.owner = link,
		.connected = link_connected,
		.failed = link_connect_failed,
	};
	return coll_connect_begin(link->connect);
}

void coll_link_open(struct coll_link *link)
{
	bool shares;
	int error;

	if (link->state != LINK_IDLE || link->rank < link->group->rank)
		return;
	coll_link_set_state(link, LINK_CONNECTING);
	error = link_shares(link, &shares);
	if (!error)
		error = shares ? coll_channel_open(link) : link_connect(link);
	if (error)
		coll_link_lost(link, error);
}

static void link_abandon_connect(struct coll_link *link)
{
	if (!link->connect)
		return;
	coll_connect_abandon(link->connect);
	free(link->connect);
	link->connect = NULL;
}

/* If the peer is to open it: its channel may come in any of the connections to the peer. */
static void link_await_peer(struct coll_link *link)
{
	struct coll_context *context = link->group->context;

	if (link->state != LINK_IDLE || link->rank > link->group->rank || link->awaited)
		return;
	link->awaited = true;
	if (!context->awaited++)
		coll_muxes_touch(context);
}

void coll_link_await(struct coll_link *link)
{
	if (link->streams || coll_link_wants_recv(link))
		coll_link_touch(link);
	link_await_peer(link);
}

/* ---- sending ------------------------------------------------------------ */

void coll_link_send(struct coll_link *link, struct coll_message *message)
{
	coll_debug_assert(coll_context_is_owned(link->group->context));
	coll_arbiter_queue(link, message);
	coll_link_touch(link);
	link_await_peer(link);
}

int coll_link_control(struct coll_link *link, enum coll_message_kind kind, uint32_t run,
		      uint32_t slot, uint32_t hash)
{
	struct coll_message *message = calloc(1, sizeof(*message));

	if (!message)
		return -ENOMEM;
	message->header = (struct coll_header){
		.kind = kind,
		.version = COLL_WIRE_VERSION,
		.run = run,
		.slot = slot,
		.hash = hash,
	};
	coll_link_send(link, message);
	return 0;
}

/* Bytes of the message's next chunk. */
static uint64_t chunk_bytes(const struct coll_message *message)
{
	return sizeof(message->header) + coll_chunk_bytes(&message->header);
}

static void message_release(struct coll_link *link, struct coll_message *message)
{
	if (message == link->chunk) {
		message = coll_stream_chunk_sent(link);
		if (!message)
			return;
	}
	if (message->streaming)		/* the streams that have the rest release it */
		message->header.offset = message->header.bytes;
	else if (message->exec)
		coll_link_events(link->group)->sent(message);
	else
		free(message);
}

void coll_link_drop_queue(struct coll_link *link, bool keep_begun)
{
	struct coll_message **keep = &link->queue, *message;
	uint32_t begun = 0;

	if (keep_begun)
		begun = link->socket.sending ? link->in_iov : link->sent > 0;
	while (*keep && begun--)
		keep = &(*keep)->next;
	while ((message = *keep)) {
		*keep = message->next;
		message_release(link, message);
	}
	link->queue_end = link->urgent_end = keep;
	if (!link->queue)
		link->sent = 0;
	coll_arbiter_update(link);
}

static bool link_wants_send(struct coll_socket *socket)
{
	struct coll_link *link = coll_link_of(socket);

	if (link->socket.sending || !link->attached || link->offloaded || link->broken ||
	    link->state == LINK_CLOSED || link->state == LINK_LOST)
		return false;
	if (!link->queue)
		return link->number && coll_stream_has_work(link);
	return link->sent || coll_arbiter_allows(link, link->queue);
}

/*
 * Adds `bytes` at `base` without the first *skip, which are sent already. A message that is
 * larger than one transfer is cut: it is the last in its iov.
 */
static int add_iov(struct iovec *iov, const void *base, uint64_t bytes, uint64_t *skip)
{
	if (*skip >= bytes) {
		*skip -= bytes;
		return 0;
	}
	iov->iov_base = (uint8_t *)base + *skip;
	iov->iov_len = bytes - *skip < COLL_TRANSFER_MAX ? bytes - *skip : COLL_TRANSFER_MAX;
	*skip = 0;
	return 1;
}

static int send_iov(struct coll_link *link, struct iovec *iov, int max)
{
	struct coll_message *message, **slot;
	uint64_t skip = link->sent;
	int count = 0;

	if (!link->queue)
		coll_stream_take(link);
	link->in_iov = 0;
	for (slot = &link->queue; (message = *slot) && count + 2 <= max; slot = &message->next) {
		const struct coll_header *header = &message->header;

		if (!skip && !coll_arbiter_allows(link, message))
			break;
		coll_arbiter_begin(link, slot);
		if (header->kind == COLL_MESSAGE_BYE)
			message->header.slot = coll_streams_attached(link);
		link->in_iov++;
		if (message->payload) {
			count += add_iov(&iov[count], header, sizeof(*header), &skip);
			count += add_iov(&iov[count], message->payload + header->offset,
					 coll_chunk_bytes(header), &skip);
		} else {	/* the payload follows the header in the message */
			count += add_iov(&iov[count], header, chunk_bytes(message), &skip);
		}
		/*
		 * A failure cuts the queue behind what has begun, and urgent messages wait
		 * for it: keep that short. The policy decides what follows a chunk.
		 */
		if (header->chunk || coll_chunk_bytes(header) > SPECULATIVE_MAX)
			break;
	}
	return count;
}

static int link_send_iov(struct coll_socket *socket, struct iovec *iov, int max)
{
	struct coll_link *link = coll_link_of(socket);
	return coll_short_io_clip(socket->engine->short_io, iov, send_iov(link, iov, max),
				  &link->cut);
}

static bool link_sends_quietly(const struct coll_socket *socket)
{
	const struct coll_link *link = coll_link_of(socket);
	const struct coll_message *message = link->queue;
	uint32_t i;

	if (link->cut)	/* the rest must follow at once */
		return false;
	for (i = 0; i < link->in_iov; i++, message = message->next)
		if (message->exec && !message->reported)
			return false;
	return !message;	/* the rest of the queue waits until they have gone */
}

/*
 * A rank that fails a group sends the news and closes. A rank that only sends finds the
 * connection broken before it has read the news; so it reads to the end before it blames
 * the peer.
 */
static void link_send_broke(struct coll_link *link, int error)
{
	if (link->group->state != GROUP_OK || link->whole->leaving) {
		coll_link_lost(link, error);
		return;
	}
	link->broken = error;
	coll_link_touch(link);
}

/* The message has gone, or a chunk of it. In a failed group the rest is not needed. */
static void link_chunk_sent(struct coll_link *link, struct coll_message *message)
{
	struct coll_header *header = &message->header;
	const bool bulk = header->bytes > URGENT_MAX;
	bool whole;

	link->group->context->counters.chunks += header->chunk || header->offset;
	link->group->context->counters.streamed += link->number && bulk;
	if (message == link->chunk) {
		message = coll_stream_chunk_sent(link);
		coll_arbiter_chunk_sent(link->whole, message);
		if (message)
			message_release(link->whole, message);
		return;
	}
	header->offset += coll_chunk_bytes(header);
	whole = header->offset == header->bytes || link->group->state != GROUP_OK;
	if (!whole)
		coll_arbiter_requeue(link, message);
	if (bulk)
		coll_arbiter_chunk_sent(link, whole);
	if (whole)
		message_release(link, message);
}

static void link_stop_sending(struct coll_link *link)
{
	if (link->channel)
		coll_channel_end(link->channel);
	else if (!coll_seal_is_pending(&link->socket))	/* else when that has gone */
		shutdown(link->socket.fd, SHUT_WR);
}

static void link_sent(struct coll_socket *socket, ssize_t result)
{
	struct coll_link *link = coll_link_of(socket);
	struct coll_group *group = link->group;

	link->socket.sending = false;
	if (result < 0) {
		link_send_broke(link, result);
		return;
	}
	link->sent += result;
	while (link->queue && link->sent >= chunk_bytes(link->queue)) {
		link->sent -= chunk_bytes(link->queue);
		link_chunk_sent(link, coll_arbiter_pop(link));
	}
	if (link->queue || (link->number && !link->leaving))
		coll_link_touch(link);
	else if (link->leaving)
		link_stop_sending(link);
	if (group->state == GROUP_FAILING)
		coll_engine_check_at(&group->context->engine, coll_now());
}

/* ---- losing ------------------------------------------------------------- */

/* Resources that are missing on this rank. */
static bool is_our_lack(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -ENOBUFS ||
	       error == -ENOSPC;
}

static const char *loss_reason(const struct coll_link *link, int error)
{
	const bool connecting = link->state == LINK_CONNECTING;

	switch (error) {
	case 0:
	case -ECONNRESET:
	case -EPIPE:
		return "its connection ended: it has died or was cut off";
	case -ETIMEDOUT:	/* of the store, or TCP_USER_TIMEOUT */
		return connecting ? "it has not joined the job" : "it receives nothing any more";
	case -EHOSTUNREACH:
		return connecting ? "it accepts no connection at any of its addresses" :
				    "its host is unreachable";
	case -EBADMSG:
		return "what came on its connection is not what it has sealed";
	default:
		return strerror(-error);
	}
}

/*
 * A peer that needs nothing from this rank may end before it accepts the connection. Then
 * this rank must not need it either.
 */
bool coll_link_may_end(const struct coll_link *link)
{
	return link->state == LINK_LEFT || link->leaving || link->group->freed ||
	       (!link->heard && !coll_link_events(link->group)->needs(link));
}

/* The link is not closed before the group fails: queued messages would count as sent. */
void coll_link_lost(struct coll_link *link, int error)
{
	struct coll_group *group = link->group;

	if (link->state == LINK_LOST || link->state == LINK_CLOSED)
		return;		/* known; or what was in flight has ended since */
	if (is_our_lack(error) && group->state == GROUP_OK) {
		coll_link_events(group)->failed(group, error, group->rank, COLL_NONE,
						"it cannot make a connection");
	} else if (group->state == GROUP_OK && link->number && !coll_stream_may_end(link)) {
		coll_stream_lost(link, error);
		return;
	} else if (group->state == GROUP_OK && !link->number && !coll_link_may_end(link)) {
		coll_link_events(group)->lost(link, error == -ETIMEDOUT ? error : -ECONNRESET,
					      loss_reason(link, error));
		return;
	}
	coll_link_close(link);
}

/* ---- ends --------------------------------------------------------------- */

bool coll_link_delivered(const struct coll_link *link)
{
	int left;

	return !link->queue && !link->socket.sending && !link->offloaded &&
	       !coll_seal_is_pending(&link->socket) &&
	       (ioctl(link->socket.fd, SIOCOUTQ, &left) || !left);
}

void coll_link_leave(struct coll_link *link)
{
	if (link->leaving)
		return;
	/*
	 * Queued messages go out first, even if the connection is not up yet. The
	 * connecting rank says goodbye too, since the peer may have messages queued.
	 */
	if (link->state == LINK_CLOSED || link->state == LINK_LOST ||
	    (link->state == LINK_IDLE && !link->queue)) {
		coll_link_close(link);
		return;
	}
	link->leaving = true;
	coll_link_control(link, COLL_MESSAGE_BYE, 0, 0, 0);
	coll_link_touch(link);
}

static void link_detached(struct coll_link *link);

/*
 * The socket is shut down, so transfers in flight end. The engine reports them; detach()
 * closes the socket after the last report.
 */
void coll_link_close(struct coll_link *link)
{
	uint32_t i;

	if (link->state == LINK_CLOSED)
		return;
	for (i = 0; i < link->streams; i++)
		coll_link_close(&link->stream[i]);
	coll_link_events(link->group)->closing(link);
	coll_link_set_state(link, LINK_CLOSED);
	if (link->channel) {
		coll_channel_close(link->channel);
		link_detached(link);
	} else if (link->attached) {
		shutdown(link->socket.fd, SHUT_RDWR);
		link->group->context->engine.ops->detach(&link->socket);
	} else {
		link_abandon_connect(link);
		link_detached(link);
	}
}

void coll_link_stop_reading(struct coll_link *link)
{
	if (link->channel)
		coll_channel_stop(link->channel);
	else if (link->socket.fd >= 0)
		shutdown(link->socket.fd, SHUT_RD);
}

/* The engine has released the socket. */
static void link_detached(struct coll_link *link)
{
	struct coll_exec *exec = link->exec;

	coll_assert(link->state == LINK_CLOSED && link->group->open_links);
	coll_socket_untouch(&link->socket);
	link->attached = false;
	link->socket.fd = -1;
	link->exec = NULL;
	if (exec)
		coll_link_events(link->group)->release(exec);
	coll_link_drop_queue(link, false);
	link->group->open_links--;
}

static bool link_wants_to_receive(const struct coll_socket *socket)
{
	return coll_link_wants_recv(coll_link_of(socket));
}

static void link_socket_detached(struct coll_socket *socket)
{
	link_detached(coll_link_of(socket));
}

const struct coll_socket_ops coll_link_socket_ops = {
	.wants_send = link_wants_send,
	.send_iov = link_send_iov,
	.sends_quietly = link_sends_quietly,
	.sent = link_sent,
	.wants_recv = link_wants_to_receive,
	.recv_iov = coll_link_recv_iov,
	.received = coll_link_received,
	.received_in = coll_link_received_in,
	.received_none = coll_link_received_none,
	.detached = link_socket_detached,
};
