/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A domain: the addresses that a network namespace reaches by circuits.
 *
 *	held.c		packets held while a circuit is down
 *	domain.c	peers, the hook, notifications, the work item; made and ended
 *	circuit.c	netlink commands
 *
 * Locks: kcoll_domains_mutex for domains that are made and ended (sleeps); inside it,
 * or alone, a domain's spinlock with bottom halves off, for the manager and the queues.
 * The work item alone sends held packets, so they leave in order; the hook queues behind
 * it until it has finished.
 */
#ifndef COLL_KMOD_DOMAIN_H
#define COLL_KMOD_DOMAIN_H

#include <linux/in6.h>
#include <linux/mutex.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>

#include "core/circuit/circuit.h"
#include "kmod/common/subsystem.h"

enum {
	CIRCUIT_PEERS_MAX = 255,
	CIRCUIT_LEASES_MAX = 1024,
	CIRCUIT_HOLDERS_MAX = 64,
	CIRCUIT_BUCKETS = 256,
	CIRCUIT_CROWDS = 64,
	CIRCUIT_BYTES_DEFAULT = 1 << 20,
	CIRCUIT_BYTES_MAX = 64 << 20,
	CIRCUIT_AGE_DEFAULT = 150,
	CIRCUIT_AGE_MAX = 60000,
	CIRCUIT_NO_LEASE = -1,
	CIRCUIT_TRAFFIC = 0,
};

/* Node 0 of the machine is this one; the others are peers, by their index + 1. */
struct kcoll_peer {
	struct hlist_node hash;
	struct in6_addr address;
	kuid_t user;			/* of the first sender */
	int lease;			/* the traffic's, or CIRCUIT_NO_LEASE */
	bool sending;			/* the work item is emptying the queue */
	bool flush, refuse;		/* the work item has to send or refuse the queue */
	struct sk_buff_head queue;	/* the spinlock is the domain's */
	u32 bytes;			/* of its truesize */
	u64 used;			/* time of the latest packet to it, sent or not */
	u64 since;			/* when the queue ceased to be empty */
	u64 passed, held, sent, refused, expired;
};

struct kcoll_domain {
	struct net *net;
	struct list_head list;
	struct kcoll_owner owner;
	struct in6_addr address;	/* IPv4 as ::ffff:a.b.c.d */
	u32 prefix;			/* of the 128 */
	u32 bytes_max;
	u64 age;
	bool refuse;

	spinlock_t lock;	/* of the machine, the peers and their queues */
	struct coll_circuit_manager c;
	struct coll_circuit_node node[CIRCUIT_PEERS_MAX + 1];
	struct coll_circuit circuit[CIRCUIT_PEERS_MAX];
	struct coll_circuit_lease lease[CIRCUIT_LEASES_MAX];
	struct coll_circuit_holder holder[CIRCUIT_HOLDERS_MAX];
	struct kcoll_owner holder_owner[CIRCUIT_HOLDERS_MAX];	/* the sockets of the holders */
	struct kcoll_peer peer[CIRCUIT_PEERS_MAX];
	u32 peers;
	struct hlist_head bucket[CIRCUIT_BUCKETS];
	u32 crowd[CIRCUIT_CROWDS];	/* peers by a hash of their user */
	struct sk_buff_head evicted;	/* packets of peers that made room, to be refused */
	struct delayed_work work;
	bool ended;			/* nothing may be queued or scheduled any more */
};

struct kcoll_circuit_net {
	struct kcoll_domain __rcu *domain;
};

extern struct mutex kcoll_domains_mutex;
extern struct list_head kcoll_domains;
extern struct workqueue_struct *kcoll_circuit_queue;
extern unsigned int kcoll_circuit_net_id;

static inline bool kcoll_address_is_v4(const struct in6_addr *address)
{
	return ipv6_addr_v4mapped(address);
}

static inline u32 kcoll_peer_node(const struct kcoll_domain *d, const struct kcoll_peer *peer)
{
	return peer - d->peer + 1;
}

/* held.c */
bool kcoll_peer_is_up(const struct kcoll_domain *d, const struct kcoll_peer *peer);
/* Answers as if the host were unreachable: sockets hear of it. Not under the lock. */
void kcoll_held_refuse(struct sk_buff *skb);
struct sk_buff *kcoll_held_take(struct kcoll_peer *peer);
/* Sends the queue in order, while the circuit is up (or `whatever`). Not under the lock. */
void kcoll_held_flush(struct kcoll_domain *d, struct kcoll_peer *peer, bool whatever);
/*
 * Refuses the queue if peer->refuse says so, which is asked under the lock: another peer may have
 * got this place since the caller looked. Not under the lock.
 */
void kcoll_held_expire(struct kcoll_domain *d, struct kcoll_peer *peer);

/* domain.c: the first three under the domain's lock, the others under the mutex */
/* The work item has something to do. */
void kcoll_domain_kick(struct kcoll_domain *d);
/*
 * The peer, made when `user` first asks for it. If there are too many, one without a circuit
 * makes room: an idle one, or one of the user that has most. NULL: all have circuits.
 */
struct kcoll_peer *kcoll_domain_peer(struct kcoll_domain *d, const struct in6_addr *address,
				     kuid_t user, u64 now);
struct kcoll_domain *kcoll_domain_make(struct net *net);
int kcoll_domain_begin(struct kcoll_domain *d);
/* Held packets are sent if `send`: nobody manages their circuits any more. */
void kcoll_domain_end(struct kcoll_domain *d, const char *reason, bool send);
struct kcoll_domain *kcoll_domain_of(struct net *net);

#endif
