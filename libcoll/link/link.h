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

#include "libcoll/internal.h"

/* The link to a rank, made on first use but not connected yet. NULL: no memory. */
struct coll_link *coll_link_get(struct coll_group *group, uint32_t rank);

/* Whether it leads to another cluster. */
static inline bool coll_link_is_far(const struct coll_link *link)
{
	const uint32_t *cluster = link->group->cluster;

	return cluster && cluster[link->rank] != cluster[link->group->rank];
}

/* Makes a link or a stream of one as good as new. */
void coll_link_init(struct coll_link *link, struct coll_group *group, uint32_t rank);

/* Whether its end fails nobody: the peer, or we, have left, or never needed it. */
bool coll_link_may_go(const struct coll_link *link);

/* Begins to connect if that is our part and nobody has yet. Else it is lost. */
void coll_link_open(struct coll_link *link);

/* Queues a message; it goes out with the engine's next turn. */
void coll_link_send(struct coll_link *link, struct coll_message *message);

/* Queues a message without payload, of our own memory. */
int coll_link_control(struct coll_link *link, enum coll_message_kind kind, uint32_t run,
		      uint32_t slot, uint32_t hash);

/* Puts the link on the list that the engine looks at in its next turn. */
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
