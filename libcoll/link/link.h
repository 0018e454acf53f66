/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A link: bytes between two ranks of a group. It is made when first needed: the lower rank
 * connects, the higher accepts. A transport carries the bytes (libcoll/transport/transport.h).
 *
 * link.c has its state, queue.c what it is to send, send.c and receive.c what moves, end.c how
 * it is lost or closed, link_up.c how it opens. arbiter.c and stream.c decide what goes next.
 *
 * The receive state is computed, not stored: first header bytes are missing, then payload
 * bytes.
 */
#ifndef COLL_LINK_H
#define COLL_LINK_H

#include "context.h"
#include "group.h"
#include "message.h"

struct coll_channel;
struct coll_connect;
struct coll_unexpected;
struct coll_inject_link;

enum coll_link_state {
	LINK_IDLE,		/* never used */
	LINK_CONNECTING,
	LINK_UP,
	LINK_LEFT,		/* the peer said goodbye */
	LINK_LOST,		/* it broke: the group will fail */
	LINK_CLOSED,		/* ended by us or lost */
};

enum coll_look {
	COLL_LOOK_NOTHING,	/* nothing has come */
	COLL_LOOK_MESSAGE,	/* the message is here */
	COLL_LOOK_OTHER,	/* something else, or not to be looked at: it is for the engine */
};

/*
 * A transport: what carries a link's bytes to the peer's process and back. It calls
 * link->socket.ops for them, as an engine does.
 */
struct coll_transport {
	/* Begins to connect; coll_link_up() or coll_link_lost() follows. -errno: neither does. */
	int (*open)(struct coll_link *link);
	/* The link is one now that its peer is to connect. */
	void (*await)(struct coll_link *link);
	/* The link has something to send, wants to receive, or is in another state. */
	void (*touch)(struct coll_link *link);
	/* It wants to receive, and that is all: touch() for less. NULL: touch() it is. */
	void (*receive)(struct coll_link *link);
	/*
	 * Sends a message, header and payload, at once and whole, without the turns of touch(). The
	 * link is up and has nothing else to send. False: nothing was sent. NULL: this transport cannot.
	 */
	bool (*send_now)(struct coll_link *link, const struct iovec message[2]);
	/*
	 * Where the payload of the message with this header lies, if it is whole and the next of the
	 * connection; until took(). The peer may still change it. NULL: this transport cannot look.
	 */
	enum coll_look (*look)(struct coll_link *link, const struct coll_header *header,
			       const uint8_t **payload);
	void (*took)(struct coll_link *link, const struct coll_header *header);
	/* The descriptor below, for questions to the kernel; -1: there is none. */
	int (*fd)(const struct coll_link *link);
	/* The socket below whose bytes go through memory that both processes have. NULL: they do not. */
	struct coll_socket *(*memory)(const struct coll_link *link);
	/*
	 * What was published in this slot was read (published.h). What a closed link had not read is
	 * acknowledged by the transport. False: the peer did not say that it is a publication.
	 */
	bool (*read_published)(struct coll_link *link, uint32_t slot);
	/* Whether the peer's host has acknowledged all that it was given. */
	bool (*delivered)(const struct coll_link *link);
	/* The peer reads the end after what was sent. */
	void (*stop_sending)(struct coll_link *link);
	/* The link reads what has arrived, and then the end. */
	void (*stop_reading)(struct coll_link *link);
	/* Gives the link up, at once or when transfers have ended: coll_link_detached(). */
	void (*close)(struct coll_link *link);
};

struct coll_link {
	struct coll_socket socket;	/* for the engine */
	struct coll_group *group;
	uint32_t rank;			/* the peer's, in the group */
	enum coll_link_state state;
	/*
	 * Between clusters a link may have streams: connections of their own, links to the
	 * engine, which carry only its bulk (stream.h).
	 */
	struct coll_link *whole;	/* of a stream: its link; else this one */
	struct coll_link *stream;	/* `streams` of them */
	uint32_t streams, number;	/* number: which stream this is, from 1; 0: none */
	struct coll_message *chunk;	/* of a stream: the chunk that it sends, of ... */
	struct coll_message *message;	/* ... this message, or NULL */
	bool goodbye;			/* the peer said goodbye on this connection ... */
	uint32_t goodbyes;		/* ... and will on these streams (bits) */
	bool attached;			/* the engine or the mux knows it */
	bool local;			/* the peer is on this machine */
	bool offloaded;			/* attached to the kernel: the engine leaves it alone */
	bool circuit_up;		/* its circuit has been up */
	bool heard;			/* bytes have arrived from the peer ... */
	uint64_t heard_at;		/* ... the latest, at about this time */
	bool leaving;			/* our goodbye is queued, or the socket is shut down */
	const struct coll_transport *transport;
	struct coll_channel *channel;	/* transport channel: its channel of a mux */
	struct coll_connect *connect;	/* transport own connection: while it connects */
	bool awaited;			/* there is work for it, and the peer is to connect it */
	uint64_t looked;		/* when its peer was looked for (transport/seek.h), or 0 */
	uint64_t ended;			/* ... since when it is known to have ended, or 0 */
	int end_error;			/* ... how */

	/*
	 * Sending: a queue. `sent` bytes of its first message's chunk have gone. Order:
	 * messages under way, urgent ones, bulk (arbiter.h).
	 */
	struct coll_message *queue, **queue_end, **urgent_end;
	uint64_t sent;
	uint64_t overtaken;		/* bytes of urgent messages that went before waiting bulk */
	bool promoted;			/* the first bulk has waited: it counts as urgent */
	uint32_t in_iov;		/* messages of it in the engine's transfer */
	bool contends;			/* its bulk waits for the exit, or has it */
	bool stalled;			/* it had the exit and did not use it */
	bool finishing;			/* its last chunks go while another link has begun */
	struct coll_link *next_contender;
	int broken;			/* why sending failed; receiving goes on */
	bool cut;			/* injected: not all of these bytes are sent */

	/*
	 * Receiving: header first, then payload_left bytes to `target` (NULL: discarded).
	 * The next header comes with them where another chunk is sure to follow.
	 */
	struct coll_header header, next_header;
	uint32_t header_got;
	uint64_t payload_left;
	uint8_t *target;
	bool published;			/* what comes is its place instead (published.h) */
	struct coll_published_place place;
	bool reduces;			/* the floor above reduces the payload as it arrives, ... */
	bool in_pieces;			/* ... from where it is: `target` is not written */
	struct coll_exec *exec;		/* whose payload it is, or NULL */
	uint32_t op;
	struct coll_unexpected *unexpected;	/* or the unexpected message */
	struct coll_unexpected *kept, **kept_end; /* unexpected messages, oldest first */
	uint32_t expected;		/* started receives whose message has not arrived */
	uint8_t *speculative;		/* where payload is received speculatively, or NULL */
	struct coll_exec *speculative_exec;	/* whose memory that is */

	bool answering;			/* a pong is in the queue: a peer that reads none gets no more */
	uint64_t pinged;		/* when an unanswered ping was sent, or 0 */
	uint32_t suspect;		/* the rank that the peer suspects, or COLL_NONE */
	struct coll_inject_link *inject; /* NULL without injection */
};

/*
 * Events: what a link tells and asks the floor above, which registers its table in the
 * context. A test registers its own. Called on the engine's thread.
 */
struct coll_link_events {
	/*
	 * The header of a data message, or of one of its chunks, is in link->header. Sets
	 * link->target (NULL: the payload is discarded) and what reduce() and end() need.
	 */
	void (*begin)(struct coll_link *link);
	/*
	 * With link->reduces: these bytes of the payload have arrived, which belong to link->target
	 * and may be there already.
	 */
	void (*reduce)(struct coll_link *link, const uint8_t *data, uint64_t bytes);
	/* The payload of that chunk has arrived. */
	void (*end)(struct coll_link *link);
	/*
	 * Where the payload of the next message is likely to go, and how many bytes are
	 * awaited. Returns the exec that this memory belongs to, until release(); or NULL.
	 */
	struct coll_exec *(*expect)(struct coll_link *link, uint8_t **target, uint64_t *bytes);
	void (*release)(struct coll_exec *exec);
	/* A message of an exec has gone out, or never will: its memory is free again. */
	void (*sent)(struct coll_message *message);
	/* A control message has arrived. */
	void (*control)(struct coll_link *link, const struct coll_header *header);

	/* The connection is up. -errno: the link cannot be used. */
	int (*up)(struct coll_link *link);
	/* The link is about to be closed. */
	void (*closing)(struct coll_link *link);
	/* Whether a run needs a message that the link still has to receive or to send. */
	bool (*needs)(const struct coll_link *link);
	/* The connection broke. The peer is blamed unless news of another failure arrives soon. */
	void (*lost)(struct coll_link *link, int error, const char *reason);
	/* The group has failed: `failed_rank` is to blame, `reporter` noticed it. */
	void (*failed)(struct coll_group *group, int error, uint32_t failed_rank,
		       uint32_t reporter, const char *reason);
	/*
	 * The message for a peer that connects to a failed group. Without an errno the group has
	 * not failed, and `slot` is the rank that it suspects, or COLL_NONE.
	 */
	struct coll_header (*news)(const struct coll_group *group);
	/*
	 * A peer came for a group that is not known here: the floor above may make it. `world`:
	 * the rank of the job that waits for this one to connect, or COLL_NONE. Of the context's
	 * table.
	 */
	void (*called_for)(struct coll_context *context, uint64_t group, uint32_t world);
};

static inline const struct coll_link_events *coll_link_events(const struct coll_group *group)
{
	return group->events ? group->events : group->context->events;
}

/* A socket is the first member of its link. */
static inline struct coll_link *coll_link_of(const struct coll_socket *socket)
{
	return (struct coll_link *)socket;
}

/* The link to a rank: made on first use, not connected. NULL: no memory. */
struct coll_link *coll_link_get(struct coll_group *group, uint32_t rank);

/* Whether it leads to another cluster. */
static inline bool coll_link_is_far(const struct coll_link *link)
{
	const uint32_t *cluster = link->group->cluster;

	return cluster && cluster[link->rank] != cluster[link->group->rank];
}

/* Whether its bytes go through memory that both processes have. */
static inline bool coll_link_through_memory(const struct coll_link *link)
{
	return link->transport->memory && link->transport->memory(link);
}

/* The class of a link between these ranks of the job, where costs are measured. */
static inline enum coll_link_class coll_link_class_of(const struct coll_context *context, uint32_t a, uint32_t b)
{
	if (context->cluster && context->cluster[a] != context->cluster[b])
		return COLL_CLASS_WAN;
	if (context->node_of && context->node_of[a] != context->node_of[b])
		return context->switch_of && context->switch_of[a] == context->switch_of[b] ?
			COLL_CLASS_SWITCH : COLL_CLASS_CLUSTER;
	if (context->domain_of && context->domain_of[a] != context->domain_of[b])
		return COLL_CLASS_NODE;
	return context->nearest;
}

static inline enum coll_link_class coll_link_class(const struct coll_link *link)
{
	const struct coll_group *group = link->group;

	return coll_link_class_of(group->context, group->world[group->rank], group->world[link->rank]);
}

/*
 * The one place where a link's state changes. Allowed:
 *
 *	IDLE -> CONNECTING, UP, LOST, CLOSED
 *	CONNECTING -> UP, LOST, CLOSED
 *	UP -> LEFT, LOST, CLOSED
 *	LEFT, LOST -> CLOSED
 */
void coll_link_set_state(struct coll_link *link, enum coll_link_state state);

/* Begins to connect, if that is this rank's part and has not begun. On failure it is lost. */
void coll_link_open(struct coll_link *link);

/* Whether a short message might go at once: nothing of the link waits to be sent. */
bool coll_link_sends_at_once(const struct coll_link *link);
/* Sends a message at once, if it is short and the peer can have it now. False: it is as it was. */
bool coll_link_send_now(struct coll_link *link, struct coll_message *message);
/* Queues it: it goes out when the engine is polled next. */
void coll_link_queue(struct coll_link *link, struct coll_message *message);
/* One or the other. */
void coll_link_send(struct coll_link *link, struct coll_message *message);

/* Queues a message without payload, in memory of its own. */
int coll_link_control(struct coll_link *link, enum coll_message_kind kind, uint32_t run,
		      uint32_t slot, uint32_t hash);

/* A receive has started: the link is read, once it is connected. */
void coll_link_await(struct coll_link *link);

/* The descriptor of its connection, for questions to the kernel; -1: it has none. */
int coll_link_fd(const struct coll_link *link);

/* Bytes of its peer have come. */
static inline void coll_link_hear(struct coll_link *link)
{
	link->whole->heard = true;
	link->whole->heard_at = link->socket.engine->now;
}

/* Has the engine look at the link when it is polled next. */
void coll_link_touch(struct coll_link *link);
/* So many receives of this link begin to wait, or (below 0) no longer do. */
static inline void coll_link_expect(struct coll_link *link, int receives)
{
	link->expected += receives;
	link->group->context->engine.expected += receives;
}

/*
 * The connection broke, or was never made. Fails the group, unless the peer has left, or
 * was never heard of and is not needed.
 */
void coll_link_lost(struct coll_link *link, int error);

/* Whether the error is of resources that are missing on this rank; or of its store (-ENOLINK). */
bool coll_is_our_lack(int error);

/* Releases queued messages: all, or those that have not begun to go out. */
void coll_link_drop_queue(struct coll_link *link, bool keep_begun);

/* Says goodbye. The link closes when the peer has read it, and is freed later. */
void coll_link_leave(struct coll_link *link);

/* The peer's host has acknowledged all data: closing loses nothing. */
bool coll_link_delivered(const struct coll_link *link);

/* Reads what the peer has sent so far, and then the end. */
void coll_link_stop_reading(struct coll_link *link);

/* Closes at once, without goodbye. Transfers in flight end. */
void coll_link_close(struct coll_link *link);

/* ---- for transports -------------------------------------------------------- */

/* The answers to an engine, or to what stands for one. */
extern const struct coll_socket_ops coll_link_socket_ops;

/*
 * The transport is connected: link->socket.ops is set, a link's streams are made. If the floor
 * above cannot use the link, it is lost. `local`: the peer is on this machine.
 */
void coll_link_up(struct coll_link *link, bool local);
/* Opens the streams of a link that is up. */
void coll_link_open_streams(struct coll_link *link);
/* A closed link has no transfer in flight any more. */
void coll_link_detached(struct coll_link *link);

/* Whether bytes are to be received and no receive is in flight. */
bool coll_link_wants_recv(const struct coll_link *link);
/* Whether bytes that are here may be given to it, if it wants them or not. */
bool coll_link_accepts(const struct coll_link *link);
/* Whether the payload that comes next is discarded. */
static inline bool coll_link_discards(const struct coll_link *link)
{
	return link->header_got == sizeof(link->header) && !link->target;
}

/* ---- between the files of a link -------------------------------------------- */

/* Initializes a link or a stream. */
void coll_link_init(struct coll_link *link, struct coll_group *group, uint32_t rank);

/* Whether its end fails nothing: the peer or this rank has left, or no run needs it. */
bool coll_link_may_end(const struct coll_link *link);

/* There is work for it. If the peer is to connect it, the transports look for that. */
void coll_link_await_peer(struct coll_link *link);

/* A stream's chunk has gone or is given up. Returns the message if that was its last chunk. */
struct coll_message *coll_link_chunk_gone(struct coll_link *stream);
/* The message of its queue has gone or is given up. */
void coll_link_release(struct coll_link *link, struct coll_message *message);

#endif
