/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A mux: one connection between two processes of a job, shared by the links of all groups.
 * Each link, or stream of one, has a channel in it, which it uses like a socket of its own.
 * So descriptors and sockets' memory are those of the peers, not of the groups.
 *
 * uapi/coll_wire.h has the format. Channels do not wait for each other: a sender has at most
 * as many bytes under way as its receiver has granted, and a receiver holds the bytes that its
 * link does not read yet. Bytes that a link awaits go straight to its memory.
 *
 * Between two processes there is one mux for links and, between clusters, one for each
 * number of a stream. If both connect at once, there are two; each side opens channels on
 * the later one.
 */
#ifndef COLL_MUX_H
#define COLL_MUX_H

#include "connect.h"
#include "libcoll/link/message.h"

enum {
	MUX_FRAMES = 5,			/* of channels, in one transfer */
	MUX_BUFFER_BYTES = SPECULATIVE_MAX + 64,	/* the longest speculative receive */
	/* Bytes that a peer may send ahead of the reader. */
	CHANNEL_WINDOW_IDLE = 256 << 10,	/* the link awaits no message */
	CHANNEL_WINDOW = 4 << 20,		/* it awaits messages */
	CHANNEL_WINDOW_LONG = 16 << 20,		/* ... from another cluster, or sends through memory, too, */
	CHANNEL_WINDOWS_ALL = 64 << 20,		/* ... where the node's ranks divide this, to CHANNEL_WINDOW at least */
};

struct coll_channel;
struct coll_mux;

enum coll_mux_state { MUX_CONNECTING, MUX_UP, MUX_ENDED };

/* What a mux asks of a channel, and tells it. */
struct coll_channel_ops {
	/* Whether the link has bytes to send. */
	bool (*wants_send)(const struct coll_channel *channel);
	/* Whether the link would take bytes now, straight from the connection. */
	bool (*wants_recv)(const struct coll_channel *channel);
	/* Bytes of the peer. -errno: the peer breaks the protocol, or there is no memory. */
	int (*receive)(struct coll_channel *channel, const uint8_t *data, uint32_t bytes);
	/* A control message of the peer. -EPROTO, -ENOMEM. */
	int (*control)(struct coll_mux *mux, const struct coll_channel_control *control);
	/* Grants the peer more bytes when less than half of the window is left. */
	void (*grant)(struct coll_channel *channel);
	/* It was touched: delivers held bytes, errors and the end to the link. */
	void (*serve)(struct coll_channel *channel);
	/* Gives it up. */
	void (*close)(struct coll_channel *channel);
};

/* A frame that is being sent: entries of mux->iov. */
struct coll_mux_frame {
	struct coll_channel *channel;	/* NULL: control messages, or given up */
	struct coll_frame header;
	int entry, entries;		/* its part of mux->iov */
	uint64_t end;			/* bytes of the transfer up to its end */
};

struct coll_mux {
	struct coll_socket socket;	/* for the engine */
	const struct coll_channel_ops *ops;
	struct coll_context *context;
	struct coll_mux *next;		/* of the context; the latest first */
	enum coll_mux_state state;
	int error;			/* why it ended */
	int broken;			/* why sending failed; receiving goes on */
	uint32_t world;			/* the peer's rank in the job */
	uint32_t number;		/* of the stream, or 0 */
	bool mine;			/* this process connected, the peer accepted */
	bool local;			/* the peer is on this machine */
	bool attached;			/* the engine knows it */
	bool detaching;			/* ... and is to close it */
	struct coll_connect *connect;	/* while it connects */

	struct coll_channel *all;	/* channels */
	struct coll_channel **bucket;	/* ... by number */
	uint32_t buckets, channels;
	uint32_t next_number;		/* for channels that this side opens */
	struct coll_channel *touched;	/* channels with something to do */
	struct coll_channel *senders, **senders_end;	/* with bytes to send and a grant */
	struct coll_channel *receivers;	/* whose links want to receive */
	struct coll_channel *closed;	/* to be freed when no caller uses them */
	uint32_t blocked;		/* channels that wait for a grant */
	uint32_t stopping;		/* channels whose links read no further */
	uint32_t users;			/* calls in progress that use channels */

	/* Sending: control messages that wait, then those of the transfer under way. */
	uint8_t *control, *control_sent;
	uint32_t control_bytes, control_capacity, control_sent_capacity;
	struct coll_mux_frame frame[MUX_FRAMES + 1];
	struct iovec iov[COLL_SEND_IOV_MAX];
	uint8_t *copy[COLL_SEND_IOV_MAX];	/* of memory that a link wanted back */
	int frames, frames_reported, iovs, iovs_sent;
	uint64_t sent;			/* bytes of the transfer */
	bool cut;			/* injected: not all of it is sent at once */

	/* Receiving: the frame's header, then its bytes. */
	struct coll_frame header;
	uint32_t header_got;
	uint32_t left;			/* bytes of the frame */
	struct coll_channel *current;	/* whose frame it is; NULL: control, or discarded */
	struct coll_channel *direct;	/* a receive is under way to memory of its link */
	bool speculative;		/* ... and begins with the frame's header */
	struct iovec direct_iov[COLL_RECV_IOV_MAX];
	uint64_t last_read;		/* when it was read although no link wanted to */
	struct coll_channel_control control_in;
	bool published;			/* the frame is one publication: */
	struct coll_publication_frame {
		struct coll_header header;
		struct coll_published_place place;
	} publication;
	uint8_t next_frame[sizeof(struct coll_frame) + sizeof(struct coll_header)];
};

/* ---- connections ------------------------------------------------------------ */

/*
 * The mux to a rank of the job: the latest of this number, or a new one that connects, for
 * channels with these ops. NULL and *error: there is none.
 */
struct coll_mux *coll_mux_get(struct coll_context *context, uint32_t world, uint32_t number,
			      const struct coll_channel_ops *ops, int *error);

/*
 * Whether another connection of this rank may be accepted, of whatever number: whoever has proved the
 * secret once can again and again, and each costs a descriptor and what waits for it.
 */
bool coll_muxes_may_accept(const struct coll_context *context, uint32_t world);

/*
 * A connection that a peer has made. -errno: all of it is still the caller's.
 */
int coll_mux_accept(struct coll_context *context, uint32_t world, uint32_t number,
		    const struct coll_channel_ops *ops,
		    const struct coll_connected *connected);

/* Has the engine look at all muxes again: a peer may open a channel on any of them. */
void coll_muxes_touch(struct coll_context *context);

/* The peer's process has ended: its bytes on this host are read to the end. */
void coll_muxes_peer_ended(struct coll_context *context, uint32_t world);

/* All that was queued has reached the peers' hosts. */
bool coll_muxes_delivered(const struct coll_context *context);
/* Closes all, at once. */
void coll_muxes_close(struct coll_context *context);
/* Frees those that have ended and have no channel. Not from within the engine. */
void coll_muxes_reap(struct coll_context *context);

/* This side has read a piece of the slot, or never will. */
void coll_mux_read_published(struct coll_mux *mux, uint32_t slot);

/* The descriptor of its connection, for questions to the kernel; -1: it has none. */
static inline int coll_mux_fd(const struct coll_mux *mux)
{
	return mux->socket.fd;
}

/* ---- for channels ----------------------------------------------------------- */

/*
 * Queues a frame with these bytes; it goes before all that links send. `channel` 0: a control
 * message. If there is no memory, or too many wait, the mux is lost.
 */
void coll_mux_queue_frame(struct coll_mux *mux, uint32_t channel, const void *data, uint32_t bytes);
/* As look() of a transport, for a mux that is memory: the message is in a frame of its own. */
enum coll_look coll_mux_look(struct coll_mux *mux, const struct coll_channel *channel,
			     const struct coll_header *header, const uint8_t **payload);
void coll_mux_took(struct coll_mux *mux, struct coll_channel *channel,
		   const struct coll_header *header);
/*
 * Sends a message of a channel, header and payload, as a frame, at once and whole, if the connection
 * is memory and nothing of it waits to be sent. False: nothing was sent.
 */
bool coll_mux_send_now(struct coll_mux *mux, struct coll_channel *channel,
		       const struct iovec message[2]);
/* Looks at the channel when the engine is polled next. */
void coll_mux_touch(struct coll_mux *mux, struct coll_channel *channel);
/* -ENOMEM. */
int coll_mux_add(struct coll_mux *mux, struct coll_channel *channel);
struct coll_channel *coll_mux_find(const struct coll_mux *mux, uint32_t number);
/* On return no transfer uses memory of the channel's link. The channel is freed soon. */
void coll_mux_remove(struct coll_mux *mux, struct coll_channel *channel);
/* Whether this host holds no unread bytes of the connection. Costs system calls. */
bool coll_mux_is_drained(struct coll_mux *mux);
/* The connection cannot be used any more. */
void coll_mux_lost(struct coll_mux *mux, int error);
/* What a send gets that can no longer go out: a lack of this rank's own is not the peer's end. */
int coll_mux_send_error(const struct coll_mux *mux);

#endif
