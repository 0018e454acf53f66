/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two links whose sockets are the two ends of one connection: two ranks of one node that have both
 * lent their links. Of a long message only the header goes through the socket, as an offer
 * (COLL_MESSAGE_OFFER); the receiver's thread, once it has read that, copies the payload from
 * the sender's pinned pages to where its receive wants it.
 *
 *	pair.c		who has the other end
 *	offer.c		what the ends offer to each other
 *
 * An offer is at its place in the stream: what is true of a message is true of it. Either link may
 * leave at any time. Offers to it that are not taken then go back to the sender, which sends them
 * whole before what is queued, and who reads the stream from there on passes over an offer that is
 * not open any more. So a message is taken once or sent once, whoever has the ends.
 *
 * Locks: the lock of a link's set, then the table's, then that of one direction, then those of a
 * wake-up. Nobody takes the locks of two sets: what the two threads share is in struct
 * kcoll_offers. Its lock is held for one section of a copy, without being preempted, so that no
 * end waits for the time of another process.
 */
#ifndef COLL_KMOD_PAIR_H
#define COLL_KMOD_PAIR_H

#include <linux/list.h>
#include <linux/spinlock.h>

struct kcoll_link;
struct kcoll_sending;

/* Messages that one end offers to the other: all that cross from set to set. */
struct kcoll_offers {
	raw_spinlock_t lock;
	struct kcoll_link *from, *to;	/* NULL: not there */
	/* Of kcoll_sending.offer: to be copied, in order; copied; never to be copied from here. */
	struct list_head open, taken, returned;
	struct kcoll_sending *begun;	/* the first open one, while `to` copies it */
};

struct kcoll_pair {
	struct kcoll_offers offers[2];	/* of the link on that side */
};

/* All with the lock of the link's set held, but for init and return. */

/* pair.c */
/* The link has its socket, and pairs with the link that has the other end, once there is one. */
void kcoll_pair_join(struct kcoll_link *link);
/*
 * The link gives its socket up; it is fine if it never joined. It has no open offers and takes
 * none. Afterwards nobody wakes it from the other end.
 */
void kcoll_pair_leave(struct kcoll_link *link);

/* offer.c, the sender */
void kcoll_offers_init(struct kcoll_offers *offers);
/* Offers a message, of which the header is to be sent then. False: it is to be sent whole. */
bool kcoll_offer(struct kcoll_link *link, struct kcoll_sending *sending);
enum kcoll_collect {
	COLL_COLLECT_ENDED,	/* those that the peer has taken, and those that it has returned */
	COLL_COLLECT_OPEN,	/* also all others, unless it is copying one */
	COLL_COLLECT_ALL,	/* also that one, of which it does not get the rest */
};
/* False: some are open still. */
bool kcoll_offers_collect(struct kcoll_link *link, enum kcoll_collect which,
			  struct list_head *taken, struct list_head *returned);

/* offer.c, the receiver */
/* Begins to take the offer of link->header. False: it is not open (any more), and nothing follows. */
bool kcoll_offer_begin(struct kcoll_link *link);
/* Whether no element of this size, a power of two, lies in two pages of the sender's. */
bool kcoll_offer_is_whole(const struct kcoll_link *link, u32 element);
/* Nothing of it has been taken: it is open as before. */
void kcoll_offer_put_back(struct kcoll_link *link);
/*
 * Copies the next section of the payload to where the link wants it, has it reduced, or passes over
 * all of it, and counts link->payload_left down; at 0 the message is the sender's again. Returns bytes; -ESTALE:
 * it was withdrawn, and the rest never comes.
 */
s64 kcoll_offer_take(struct kcoll_link *link);
/* `to` leaves, with the lock of its set held: what is open goes back. */
void kcoll_offers_return(struct kcoll_offers *offers);

#endif
