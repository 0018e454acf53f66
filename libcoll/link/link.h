/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A link: bytes between two ranks of a group, over one TCP connection made when
 * first needed. The lower rank connects, the higher accepts.
 *
 * The receive state is not stored but follows from what is missing: header
 * bytes, then payload bytes.
 */
#ifndef COLL_LINK_H
#define COLL_LINK_H

#include "context.h"
#include "group.h"
#include "message.h"

struct coll_unexpected;
struct coll_inject_link;

enum coll_link_state {
	LINK_IDLE,		/* never used */
	LINK_CONNECTING,
	LINK_UP,
	LINK_LEFT,		/* the peer said goodbye */
	LINK_LOST,		/* it broke: the group will fail, for this or a better reason */
	LINK_CLOSED,		/* ended by us or lost */
};

struct coll_link {
	struct coll_socket socket;	/* what the engine knows of it */
	struct coll_group *group;
	uint32_t rank;			/* the peer's, in the group */
	enum coll_link_state state;
	/*
	 * Between clusters a link may have streams: connections of their own, links to
	 * the engine, which carry its bulk and nothing else (stream.h).
	 */
	struct coll_link *whole;	/* of a stream: its link; else this one */
	struct coll_link *stream;	/* `streams` of them */
	uint32_t streams, number;	/* which of them it is, from 1; 0: no stream */
	struct coll_message *chunk;	/* of a stream: what it sends, a part of ... */
	struct coll_message *message;	/* ... this one; or NULL */
	char *where;			/* the peer's published line, kept for streams */
	bool farewell;			/* the peer said goodbye on this connection ... */
	uint32_t farewells;		/* ... and will on these streams (bits) */
	bool attached;			/* the engine knows it */
	bool local;			/* the peer is on this machine */
	bool offloaded;			/* to the kernel: the engine lets it be */
	bool circuit_up;		/* its circuit has been up once */
	bool heard;			/* something has come from the peer */
	bool leaving;			/* we said goodbye, or the socket is shut down */
	uint32_t attempts;		/* addresses tried so far */
	struct coll_watch connecting;

	/*
	 * Sending: a queue, of whose first message's chunk `sent` bytes are gone. In it
	 * the messages that are under way, the urgent, the bulk (arbiter.h).
	 */
	struct coll_message *queue, **queue_end, **urgent_end;
	uint64_t sent;
	uint64_t overtaken;		/* bytes of urgent messages since bulk has waited */
	bool promoted;			/* the first bulk counts as urgent, having waited */
	uint32_t in_iov;		/* how many messages of it */
	bool contends;			/* its bulk waits for the exit, or has it */
	bool stalled;			/* it had the exit and did not use it */
	bool finishing;			/* the last of its message goes while others have begun */
	struct coll_link *next_contender;
	int broken;			/* why no more can be sent; what came is read yet */
	bool cut;			/* injected: not all of these bytes are sent */

	/*
	 * Receiving: what comes next follows from what is missing. Header first;
	 * then payload_left bytes to `target` (NULL: thrown away); with them comes
	 * the next header, where another chunk is sure to follow.
	 */
	struct coll_header header, next_header;
	uint32_t header_got;
	uint64_t payload_left;
	uint8_t *target;
	struct coll_exec *exec;		/* whose payload it is, or NULL */
	uint32_t op;
	struct coll_unexpected *unexpected;	/* or the message is kept here */
	struct coll_unexpected *kept, **kept_end; /* unexpected messages, oldest first */
	uint32_t expected;		/* receives started and not arrived */
	uint8_t *speculative;		/* where payload is received speculatively, or NULL */
	struct coll_exec *speculative_exec;	/* whose memory that is */

	uint64_t pinged;		/* since when a ping is unanswered, or 0 */
	uint32_t suspect;		/* whom the peer suspects, or COLL_NONE */
	struct coll_inject_link *inject; /* when something is injected */
};

/*
 * The way up: what a link tells the floor above, and what it asks there. The floor above
 * registers its table in the context; a test, one of its own. Called on the engine's
 * thread.
 */
struct coll_link_events {
	/*
	 * The header of a data message, or of one of its chunks, is in link->header: sets
	 * link->target (NULL: the payload is discarded) and what else it needs by end().
	 */
	void (*begin)(struct coll_link *link);
	/* The payload of that chunk is here. */
	void (*end)(struct coll_link *link);
	/*
	 * Where the payload of the next message is likely to go, and how many bytes of it
	 * are awaited: whose memory that is, which stays until release(); or NULL.
	 */
	struct coll_exec *(*expect)(struct coll_link *link, uint8_t **target, uint64_t *bytes);
	void (*release)(struct coll_exec *exec);
	/* A message of an exec has gone out, or never will: its memory is free again. */
	void (*sent)(struct coll_message *message);
	/* A control message came. */
	void (*control)(struct coll_link *link, const struct coll_header *header);

	/* The connection has come up. -errno: the link cannot be used. */
	int (*up)(struct coll_link *link);
	/* The link is about to be closed. */
	void (*closing)(struct coll_link *link);
	/* Whether something cannot end without what the link has to bring or to take. */
	bool (*needs)(const struct coll_link *link);
	/* The connection broke; its peer is to blame if nobody tells of another soon. */
	void (*lost)(struct coll_link *link, int error, const char *reason);
	/* The group cannot go on: `failed_rank` is to blame, `reporter` noticed it. */
	void (*failed)(struct coll_group *group, int error, uint32_t failed_rank,
		       uint32_t reporter, const char *reason);
	/* What a late peer of a failed group is told. */
	struct coll_header (*news)(const struct coll_group *group);
};

static inline const struct coll_link_events *coll_link_events(const struct coll_group *group)
{
	return group->context->events;
}

/* A socket is the first member of its link. */
static inline struct coll_link *coll_link_of(const struct coll_socket *socket)
{
	return (struct coll_link *)socket;
}

/* The link to a rank, made on first use but not connected yet. NULL: no memory. */
struct coll_link *coll_link_get(struct coll_group *group, uint32_t rank);

/* Whether it leads to another cluster. */
static inline bool coll_link_is_far(const struct coll_link *link)
{
	const uint32_t *cluster = link->group->cluster;

	return cluster && cluster[link->rank] != cluster[link->group->rank];
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

/* Makes a link or a stream of one as good as new. */
void coll_link_init(struct coll_link *link, struct coll_group *group, uint32_t rank);

/* Whether its end fails nobody: the peer, or we, have left, or never needed it. */
bool coll_link_may_go(const struct coll_link *link);

/* Begins to connect if that is our part and nobody has yet. Else it is lost. */
void coll_link_open(struct coll_link *link);

/* Queues a message; it goes out when the engine is polled next. */
void coll_link_send(struct coll_link *link, struct coll_message *message);

/* Queues a message without payload, of our own memory. */
int coll_link_control(struct coll_link *link, enum coll_message_kind kind, uint32_t run,
		      uint32_t slot, uint32_t hash);

/* Puts the link on the list that the engine looks at when it is polled next. */
void coll_link_touch(struct coll_link *link);

/*
 * The connection broke, or never came about: fails the group, unless the peer was
 * to leave anyway, or was never heard of and need not be.
 */
void coll_link_lost(struct coll_link *link, int error);

/* Releases queued messages, all or all that have not begun to go out. */
void coll_link_drop_queue(struct coll_link *link, bool keep_begun);

/* Says goodbye, then closes when the peer has read it; link is freed later. */
void coll_link_leave(struct coll_link *link);

/* All that we have said is with the peer's host: closing takes nothing from it. */
bool coll_link_delivered(const struct coll_link *link);

/* Closes at once, without goodbye. What is in flight ends. */
void coll_link_close(struct coll_link *link);

/* ---- for the engine ------------------------------------------------------- */

/* What a link answers to its engine. */
extern const struct coll_socket_ops coll_link_socket_ops;

/* Whether bytes are to be received and nobody is receiving them. */
bool coll_link_wants_recv(const struct coll_link *link);

/* ---- connections (connect.c) ----------------------------------------------- */

/* Stops an attempt to connect that is under way. */
void coll_link_abandon_connect(struct coll_link *link);

/* ---- for the context ---------------------------------------------------- */

/* Opens the socket that others connect to, and publishes where it is. */
int coll_listen(struct coll_context *context);
void coll_listen_stop(struct coll_context *context);
/* Turns away those that said nothing for long; accepts again after a pause. */
void coll_listen_check(struct coll_context *context);
/* A new group: connections that came for it before it was there. */
void coll_listen_adopt(struct coll_group *group);

#endif
