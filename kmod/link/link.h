/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A link: messages between two ranks over a TCP socket that the process attached.
 *
 * The link moves bytes. It knows neither schedules nor groups: what a message is
 * for is decided above, through struct kcoll_link_ops. All functions are called
 * with the lock of the set held, unless their comment says otherwise.
 *
 *	link.c		links, their state, their wake-ups
 *	send.c		the queue of messages to the peer
 *	receive.c	headers and payloads from the peer
 *	pair.h		long messages between two links of this machine
 *	unexpected.c	messages that arrived before their receive
 *	attach.c	sockets that come and go
 */
#ifndef COLL_KMOD_LINK_H
#define COLL_KMOD_LINK_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "core/match.h"
#include "kmod/memory/memory.h"
#include "pair.h"
#include "uapi/coll_device.h"

enum {
	COLL_POLL_BYTES = 1 << 18,	/* that one poll of a link moves, about */
	COLL_STAGE_BYTES = 4096,	/* shorter payloads are received with their header */
	COLL_BVECS = 24,		/* pieces of one send or receive */
	COLL_LINK_CONTROLS = 64,	/* control messages queued for a peer that does not read */
};

struct kcoll_link;
struct kcoll_run;

/*
 * A message that is offered is in the queue, until its header is sent, and in the pair, until it is
 * taken, returned or withdrawn: in either order, since a program may write such a header itself. It
 * ends when it is in neither.
 */
enum kcoll_offered {
	COLL_OFFERED_NOT,	/* any more: when it leaves the queue, it is sent */
	COLL_OFFERED,		/* it is in the pair */
	COLL_OFFERED_RETURNED,	/* its header is partly sent: to be sent whole after that */
};

/* A message to the peer: of a send op, or a control message. */
struct kcoll_sending {
	struct coll_header header __aligned(32);	/* never crosses a page */
	struct kcoll_sending *next;
	const struct kcoll_memory *buffer;	/* its payload is at `offset` in there */
	u64 offset;
	struct kcoll_run *run;		/* of the send op; NULL: control, freed once sent */
	u32 op;
	bool queued;
	enum kcoll_offered offered;
	struct list_head offer;		/* in struct kcoll_offers */
};

/* A message that arrived before its receive, or before its run. */
struct kcoll_unexpected {
	struct list_head node;		/* in set->unexpected */
	struct rb_node by_key;		/* in set->unexpected_by_key */
	struct coll_header header;
	u32 rank;
	bool complete;
	u64 got;			/* bytes of the payload received */
	u64 accounted;			/* pages beyond the set's capacity */
	u8 data[];
};

enum kcoll_link_state {
	COLL_LINK_ABSENT,	/* no socket: messages to the peer are queued */
	COLL_LINK_UP,
	COLL_LINK_LEFT,		/* the peer has said goodbye */
	COLL_LINK_LOST,		/* the connection is of no use any more */
};

/* Links whose sockets woke up, and the thread that polls them. */
struct kcoll_ready {
	raw_spinlock_t lock;		/* of the list: sockets wake links in softirqs */
	struct list_head links;		/* in the order of their wake-ups */
	u32 woken;			/* how many */
	struct task_struct *thread;
};

/* News from links. Called with the lock held; none is NULL. */
struct kcoll_link_ops {
	/*
	 * The header of a data message or chunk has arrived. The callee says where its
	 * payload goes, by kcoll_link_receive_into() or kcoll_unexpected_make();
	 * otherwise the payload is discarded. False: no capacity, the link is not read
	 * until it is woken, and then the call is repeated.
	 */
	bool (*data)(struct kcoll_link *link);
	/* A message without payload has arrived: link->header. */
	void (*control)(struct kcoll_link *link);
	/* The next bytes of a message that link->reduces, in the sender's pages. Must not sleep. */
	void (*reduce)(struct kcoll_run *run, u32 op, const struct bio_vec *pages, int count);
	/* `got` bytes of the receive's message are there; `whole`: all of them. */
	void (*received)(struct kcoll_run *run, u32 op, u64 got, bool whole);
	/* An unexpected message is complete. */
	void (*unexpected)(struct kcoll_link *link, struct kcoll_unexpected *message);
	/* The receive in progress was abandoned. */
	void (*abandoned)(struct kcoll_run *run);
	/* The message is sent or discarded; the link does not use it any more. */
	void (*sent)(struct kcoll_sending *sending);
	/* Whether a run in progress sends to the peer or receives from it. */
	bool (*needs)(const struct kcoll_link *link);
	/* The connection or its bytes are of no use; ranks as in coll_device_fail. */
	void (*failed)(struct kcoll_link *link, int error, u32 failed_rank, u32 reporter);
};

/* The links of a group. */
struct kcoll_links {
	const struct kcoll_link_ops *ops;
	struct mutex *lock;		/* the device's */
	struct kcoll_ready *ready;
	struct coll_device_counters *counters;
	const struct kcoll_account *account;	/* of locked memory */
	u32 rank, ranks;
	struct xarray by_rank;
	u32 count;			/* links in there */
	struct list_head stalled;	/* links that are not read */
	struct list_head unexpected;	/* struct kcoll_unexpected, in order of arrival */
	struct rb_root unexpected_by_key;	/* of run, rank and slot: each once */
	s64 unexpected_left;		/* bytes of capacity left */
	bool failed;			/* freed capacity wakes no link any more */
};

struct kcoll_link {
	struct kcoll_links *set;
	u32 rank;			/* the peer's */
	enum kcoll_link_state state;	/* kcoll_link_set_state() alone changes it */
	struct socket *socket;

	/* For the socket's wake-up, in interrupt context. */
	wait_queue_entry_t wait;
	wait_queue_head_t *wait_head;
	struct list_head ready;		/* in set->ready->links, or empty */

	/* Sending: `sent` bytes of the first queued message are sent. */
	struct kcoll_sending *queue, **queue_end;
	u64 sent;
	u32 controls;			/* control messages in it */

	/* Receiving: the header, then payload_left bytes of its chunk. */
	struct coll_header header;
	u32 header_got;
	u64 payload_left;
	struct kcoll_run *run;		/* the payload goes to a receive of this run, */
	u32 op;
	const struct kcoll_memory *buffer;	/* at `offset` in there, */
	u64 offset;
	struct kcoll_unexpected *unexpected;	/* or is kept here, or else discarded */
	u64 answered;			/* when the latest pong came, ns; 0: none */
	u32 pong_suspect;		/* the rank that the peer waited for then */
	bool heard;			/* the peer has sent something */
	bool left;			/* it has said goodbye, also once the link is lost */
	struct list_head stalled;	/* in set->stalled: no capacity for unexpected messages */
	bool handed;			/* bytes that the program has read: no limit */
	bool broken;			/* no more can be sent; received bytes are still read */
	u8 *stage;			/* bytes read from the socket in advance */
	u32 stage_at, stage_end;

	/* With the link that has the other end of the socket: pair.c alone changes these three. */
	struct kcoll_pair *pair;	/* or NULL */
	u32 side;			/* in there */
	struct hlist_node joined;	/* in the table of links with sockets */
	bool from_pair;			/* the payload comes from there, not from the socket, */
	bool reduces;			/* and is not written to the buffer: ops->reduce() */
};

/* link.c */
/* The link to `rank`, made when it is first asked for. NULL: no memory, or no such peer. */
struct kcoll_link *kcoll_link_get(struct kcoll_links *set, u32 rank);
/* What `count` links of a set are accounted as. */
u64 kcoll_link_pages(u32 count);
void kcoll_link_set_state(struct kcoll_link *link, enum kcoll_link_state state);
static inline bool kcoll_link_ended(const struct kcoll_link *link)
{
	return link->state == COLL_LINK_LEFT || link->state == COLL_LINK_LOST;
}

/* A link that is not read until it is woken. */
static inline bool kcoll_link_stalled(const struct kcoll_link *link)
{
	return !list_empty(&link->stalled);
}

void kcoll_link_set_stalled(struct kcoll_link *link, bool stalled);

void kcoll_ready_init(struct kcoll_ready *ready);
/* The link that woke up first, for the thread to poll: a wake-up from now on is another. */
struct kcoll_link *kcoll_ready_take(struct kcoll_ready *ready);
/* There is work for the thread. Any context, without the lock. */
void kcoll_ready_kick(struct kcoll_ready *ready);
/* The thread polls the link soon. Any context, without the lock. */
void kcoll_link_wake(struct kcoll_link *link);
/* Wakes the links that were not read because there was no capacity. */
void kcoll_link_wake_stalled(struct kcoll_links *set);
/* Releases the socket; no wake-up comes any more. */
void kcoll_link_release(struct kcoll_link *link);

/* send.c */
void kcoll_link_send(struct kcoll_link *link, struct kcoll_sending *sending);
/*
 * -ENOBUFS: the peer does not read, COLL_LINK_CONTROLS are queued already; one FAIL more
 * is. A peer that floods pings gets no more memory of this host than that.
 */
int kcoll_link_send_control(struct kcoll_link *link, const struct coll_header *header);
/*
 * Abandons all runs: the receive in progress, and queued messages except one that is
 * partly sent (unless `all`). Control messages stay.
 */
void kcoll_link_drop(struct kcoll_link *link, bool all);
/* Discards everything that is queued, and leaves the pair: the link is lost, or freed. */
void kcoll_link_discard(struct kcoll_link *link);
/* Shuts the connection down: nothing is read or written any more. */
void kcoll_link_cut(struct kcoll_link *link);
/* What the peer has taken is sent; what it has returned goes through the socket. */
void kcoll_link_collect(struct kcoll_link *link);
/*
 * The same, and what the peer has not taken goes through the socket as well. False: it is copying a
 * message, whose bytes may be in a result already.
 */
bool kcoll_link_withdraw(struct kcoll_link *link);
/* Sends a bounded amount; true: more could be sent at once. */
bool kcoll_link_poll_send(struct kcoll_link *link);

/* receive.c */
/*
 * The payload that follows goes to `offset` in `buffer`. For ops->data, which may set
 * link->reduces then.
 */
void kcoll_link_receive_into(struct kcoll_link *link, struct kcoll_run *run, u32 op,
			     const struct kcoll_memory *buffer, u64 offset);
/* Uses the bytes of the stage, until they are used up or the link stalls. */
void kcoll_link_consume(struct kcoll_link *link);
/* What it takes from its pair, it never gets from there: as if nothing of it had come. */
void kcoll_link_forsake(struct kcoll_link *link);
/* Receives a bounded amount; true: there may be more at once. */
bool kcoll_link_poll_receive(struct kcoll_link *link);

/* unexpected.c */
bool kcoll_unexpected_fits(const struct kcoll_link *link);
/* Keeps the message whose header is link->header; beyond the capacity it is accounted. */
int kcoll_unexpected_make(struct kcoll_link *link);
/* The incomplete message that the chunk of link->header continues, or NULL. */
struct kcoll_unexpected *kcoll_unexpected_begun(const struct kcoll_link *link);
/* Complete or not, or NULL. */
struct kcoll_unexpected *kcoll_unexpected_find(const struct kcoll_links *set, u32 rank, u32 run,
					       u32 slot);
/* All messages of a run, one after the other; NULL at their end. */
struct kcoll_unexpected *kcoll_unexpected_first(const struct kcoll_links *set, u32 run);
struct kcoll_unexpected *kcoll_unexpected_next(const struct kcoll_unexpected *message);
void kcoll_unexpected_free(struct kcoll_links *set, struct kcoll_unexpected *message);
/* Frees the complete messages of runs from `first` on and before `end`. */
void kcoll_unexpected_drop(struct kcoll_links *set, u32 first, u32 end);

/* attach.c */
int kcoll_link_attach(struct kcoll_link *link, const struct coll_device_link *asked);
/* As COLL_DEVICE_DETACH; the caller has checked that no run is in progress. */
long kcoll_link_detach(struct kcoll_link *link, const struct coll_device_link *asked);
void kcoll_link_free(struct kcoll_link *link);
/* Receives and sends a bounded amount; true: the link wants another poll at once. */
bool kcoll_link_poll(struct kcoll_link *link);

#endif
