// SPDX-License-Identifier: GPL-2.0
/*
 * Who has the other end. Links with sockets are in a table by their addresses; two of one network
 * namespace with each other's addresses are the ends of one connection, unless addresses are
 * translated on the way: the numbers of both streams, which began at random, tell. So what is
 * offered to a link is what its socket would have received.
 */
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/netns/hash.h>
#include <net/tcp.h>

#include "kmod/common/subsystem.h"
#include "link.h"
#include "pair.h"

/* The lock guards the table, the seats of all pairs, and link->pair. */
static DEFINE_SPINLOCK(joined_lock);
static DEFINE_HASHTABLE(joined, 10);

/* ---- the ends of a connection ----------------------------------------------------- */

struct end {
	struct in6_addr address;	/* IPv4: mapped */
	u16 port;
};

struct ends {
	struct end near, far;
};

static struct ends ends_of(const struct sock *sk)
{
	struct ends ends = {
		.near.port = sk->sk_num,
		.far.port = ntohs(sk->sk_dport),
	};

#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		ends.near.address = sk->sk_v6_rcv_saddr;
		ends.far.address = sk->sk_v6_daddr;
		return ends;
	}
#endif
	ipv6_addr_set_v4mapped(sk->sk_rcv_saddr, &ends.near.address);
	ipv6_addr_set_v4mapped(sk->sk_daddr, &ends.far.address);
	return ends;
}

static bool end_equal(const struct end *a, const struct end *b)
{
	return a->port == b->port && ipv6_addr_equal(&a->address, &b->address);
}

static u32 end_key(const struct end *end, u32 seed)
{
	return jhash2((const u32 *)&end->address, sizeof(end->address) / sizeof(u32),
		      seed ^ end->port);
}

/* The same from both ends. A namespace's mix is random. */
static u32 connection_key(const struct sock *sk)
{
	const struct ends ends = ends_of(sk);
	const u32 seed = net_hash_mix(sock_net(sk));

	return end_key(&ends.near, seed) ^ end_key(&ends.far, seed);
}

/* What one end has received the other has sent: read in an order in which that holds. */
static bool streams_meet(const struct sock *from, const struct sock *to)
{
	const u32 acknowledged = READ_ONCE(tcp_sk(from)->snd_una);
	u32 received;

	smp_rmb();
	received = READ_ONCE(tcp_sk(to)->rcv_nxt);
	smp_rmb();
	return !before(received, acknowledged) &&
	       !after(received, READ_ONCE(tcp_sk(from)->write_seq));
}

static bool sockets_meet(const struct sock *a, const struct sock *b)
{
	struct ends of_a, of_b;

	if (a->sk_num != ntohs(b->sk_dport) || !net_eq(sock_net(a), sock_net(b)) ||
	    READ_ONCE(a->sk_bound_dev_if) != READ_ONCE(b->sk_bound_dev_if) ||
	    READ_ONCE(a->sk_state) != TCP_ESTABLISHED || READ_ONCE(b->sk_state) != TCP_ESTABLISHED)
		return false;
	of_a = ends_of(a);
	of_b = ends_of(b);
	return end_equal(&of_a.near, &of_b.far) && end_equal(&of_b.near, &of_a.far) &&
	       streams_meet(a, b) && streams_meet(b, a);
}

/* ---- seats ------------------------------------------------------------------------ */

static struct kcoll_pair *pair_make(void)
{
	struct kcoll_pair *pair = kzalloc(sizeof(*pair), COLL_GFP);

	if (pair) {
		kcoll_offers_init(&pair->offers[0]);
		kcoll_offers_init(&pair->offers[1]);
	}
	return pair;
}

static void offers_set(struct kcoll_link **end, struct kcoll_offers *offers,
		       struct kcoll_link *link)
{
	raw_spin_lock(&offers->lock);
	*end = link;
	raw_spin_unlock(&offers->lock);
}

/* The thread of the link's set finds the pair whole. */
static void pair_seat(struct kcoll_pair *pair, u32 side, struct kcoll_link *link)
{
	lockdep_assert_held(&joined_lock);
	offers_set(&pair->offers[side].from, &pair->offers[side], link);
	offers_set(&pair->offers[!side].to, &pair->offers[!side], link);
	link->side = side;
	smp_store_release(&link->pair, pair);
}

static bool pair_is_full(const struct kcoll_pair *pair)
{
	lockdep_assert_held(&joined_lock);
	return pair->offers[0].from && pair->offers[1].from;
}

/* With that of the other end, if it waits there for its peer; else *fresh is used up. */
static void pair_with(struct kcoll_link *link, struct kcoll_link *other,
		      struct kcoll_pair **fresh)
{
	if (!other->pair && *fresh) {
		pair_seat(*fresh, 0, other);
		*fresh = NULL;
	}
	if (other->pair)
		pair_seat(other->pair, !other->side, link);
}

/*
 * *other: the link that waits for this socket's end, or NULL. False: the socket is in the table
 * already. So there is one entry for each socket, and what a program attaches twice makes no walk
 * longer.
 */
static bool joined_find(const struct sock *sk, u32 key, struct kcoll_link **other)
{
	struct kcoll_link *link;

	lockdep_assert_held(&joined_lock);
	*other = NULL;
	hash_for_each_possible(joined, link, joined, key) {
		if (link->socket->sk == sk)
			return false;
		if (sockets_meet(sk, link->socket->sk) &&
		    !(link->pair && pair_is_full(link->pair)))
			*other = link;
	}
	return true;
}

/* Without memory there is no pair, and all goes through the sockets. */
void kcoll_pair_join(struct kcoll_link *link)
{
	const u32 key = connection_key(link->socket->sk);
	struct kcoll_link *other;
	struct kcoll_pair *fresh;

	lockdep_assert_held(link->set->lock);
	fresh = pair_make();
	spin_lock(&joined_lock);
	if (joined_find(link->socket->sk, key, &other)) {
		if (other)
			pair_with(link, other, &fresh);
		hash_add(joined, &link->joined, key);
	}
	spin_unlock(&joined_lock);
	kfree(fresh);
}

/* Whoever leaves last frees it. */
void kcoll_pair_leave(struct kcoll_link *link)
{
	struct kcoll_pair *pair;

	lockdep_assert_held(link->set->lock);
	spin_lock(&joined_lock);
	pair = link->pair;
	hash_del(&link->joined);
	link->pair = NULL;
	if (pair) {
		offers_set(&pair->offers[link->side].from, &pair->offers[link->side], NULL);
		kcoll_offers_return(&pair->offers[!link->side]);
		if (pair->offers[!link->side].from)
			pair = NULL;
	}
	spin_unlock(&joined_lock);
	kfree(pair);
}
