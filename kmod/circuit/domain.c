// SPDX-License-Identifier: GPL-2.0
/*
 * Circuits of a network namespace: the manager of core/circuit with this node in the
 * middle and its peers around it, and a hook that holds traffic to a peer whose circuit
 * is down.
 *
 * The hook is the last of LOCAL_OUT, so a held packet can be sent by dst_output()
 * without skipping another hook. It sees all IP traffic that the node itself sends, but
 * not forwarded packets, other protocols, or traffic that bypasses the kernel.
 *
 * Cost: none without a domain, because no hook is registered. With a domain a hash and a
 * spinlock per packet; all peers of the namespace share that lock.
 */
#include <linux/hash.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/slab.h>
#include <net/dst.h>
#include <net/inet_sock.h>
#include <net/netns/generic.h>

#include "domain.h"
#include "kmod/common/compat.h"
#include "kmod/common/netlink.h"

struct mutex kcoll_domains_mutex = __MUTEX_INITIALIZER(kcoll_domains_mutex);
LIST_HEAD(kcoll_domains);
struct workqueue_struct *kcoll_circuit_queue;
unsigned int kcoll_circuit_net_id;

static u64 domain_now(void)
{
	return ktime_get_ns();
}

void kcoll_domain_kick(struct kcoll_domain *d)
{
	if (!d->ended)
		mod_delayed_work(kcoll_circuit_queue, &d->work, 0);
}

/* ---- peers --------------------------------------------------------------------- */

static struct hlist_head *domain_bucket(struct kcoll_domain *d, const struct in6_addr *address)
{
	return &d->bucket[jhash2((const u32 *)address, 4, 0) % CIRCUIT_BUCKETS];
}

static u32 *domain_crowd(struct kcoll_domain *d, kuid_t user)
{
	return &d->crowd[hash_32(__kuid_val(user), ilog2(CIRCUIT_CROWDS))];
}

static bool peer_is_idle(const struct kcoll_peer *peer)
{
	return peer->lease == CIRCUIT_NO_LEASE && skb_queue_empty(&peer->queue);
}

/* Its circuit is down, and no lease but the traffic's waits for it. */
static bool peer_may_go(const struct kcoll_domain *d, const struct kcoll_peer *peer)
{
	const u32 i = coll_circuit_find(&d->c, 0, kcoll_peer_node(d, peer));
	u32 l;

	if (peer->sending)
		return false;
	if (i == COLL_CIRCUIT_NONE)
		return true;
	if (d->circuit[i].state != COLL_CIRCUIT_DOWN)
		return false;
	for (l = d->circuit[i].leases; l != COLL_CIRCUIT_NONE; l = d->lease[l].next)
		if (d->lease[l].holder != CIRCUIT_TRAFFIC)
			return false;
	return true;
}

/* Whether `a` makes room before `b`: idle, of a larger crowd, longer without a packet. */
static bool peer_goes_before(struct kcoll_domain *d, const struct kcoll_peer *a,
			     const struct kcoll_peer *b)
{
	const u32 crowd_a = *domain_crowd(d, a->user), crowd_b = *domain_crowd(d, b->user);

	if (peer_is_idle(a) != peer_is_idle(b))
		return peer_is_idle(a);
	if (!peer_is_idle(a) && crowd_a != crowd_b)
		return crowd_a > crowd_b;
	return a->used < b->used;
}

/*
 * A process that sends to all addresses of the prefix must not keep others from new peers. At
 * most COLL_CIRCUIT_PORTS_MAX peers have circuits, so there is one to go.
 */
static struct kcoll_peer *domain_evict(struct kcoll_domain *d, u64 now)
{
	struct kcoll_peer *peer, *found = NULL;
	struct sk_buff *skb;
	u32 i;

	for (i = 0; i < d->peers; i++) {
		peer = &d->peer[i];
		if (peer_may_go(d, peer) && (!found || peer_goes_before(d, peer, found)))
			found = peer;
	}
	if (!found)
		return NULL;
	while ((skb = kcoll_held_take(found)))
		__skb_queue_tail(&d->evicted, skb);
	if (found->lease != CIRCUIT_NO_LEASE)
		coll_circuit_release(&d->c, now, found->lease);
	kcoll_domain_kick(d);
	--*domain_crowd(d, found->user);
	hlist_del(&found->hash);
	memset(found, 0, sizeof(*found));
	return found;
}

struct kcoll_peer *kcoll_domain_peer(struct kcoll_domain *d, const struct in6_addr *address,
				     kuid_t user, u64 now)
{
	struct hlist_head *bucket = domain_bucket(d, address);
	struct kcoll_peer *peer;

	lockdep_assert_held(&d->lock);
	hlist_for_each_entry(peer, bucket, hash)
		if (ipv6_addr_equal(&peer->address, address))
			return peer;
	peer = d->peers < CIRCUIT_PEERS_MAX ? &d->peer[d->peers++] : domain_evict(d, now);
	if (!peer)
		return NULL;
	peer->address = *address;
	peer->user = user;
	peer->used = now;
	peer->lease = CIRCUIT_NO_LEASE;
	__skb_queue_head_init(&peer->queue);
	hlist_add_head(&peer->hash, bucket);
	++*domain_crowd(d, user);
	return peer;
}

static struct kcoll_peer *domain_peer_at(struct kcoll_domain *d, u32 circuit)
{
	return &d->peer[d->circuit[circuit].node[1] - 1];	/* the higher: 0 is this node */
}

/* Traffic requests a circuit, for as long as there is traffic. */
static void peer_request(struct kcoll_domain *d, struct kcoll_peer *peer, u64 now)
{
	u32 lease;

	lockdep_assert_held(&d->lock);
	if (peer->lease != CIRCUIT_NO_LEASE)
		return;
	if (coll_circuit_request(&d->c, now, CIRCUIT_TRAFFIC, 0, kcoll_peer_node(d, peer),
				 COLL_CIRCUIT_ONE_SIDED, 0, COLL_CIRCUIT_FOREVER,
				 kcoll_peer_node(d, peer), &lease))
		return;
	peer->lease = lease;
	kcoll_domain_kick(d);
}

/* ---- the hook ------------------------------------------------------------------ */

/* Whether the packet is held. */
static bool peer_hold(struct kcoll_domain *d, struct kcoll_peer *peer, struct sk_buff *skb)
{
	lockdep_assert_held(&d->lock);
	if (d->refuse || d->ended || peer->bytes + skb->truesize > d->bytes_max ||
	    !skb_dst_force(skb))
		return false;
	skb->tstamp = 0;	/* it would lie before the time it was held */
	/*
	 * A neighbour solicitation names its device, and holds no reference on it. What sends it
	 * takes the device from the route, which has one, as for packets that name none.
	 */
	skb->dev = NULL;
	if (skb_queue_empty(&peer->queue)) {
		peer->since = peer->used;
		kcoll_domain_kick(d);	/* its age is checked from now on */
	}
	__skb_queue_tail(&peer->queue, skb);
	peer->bytes += skb->truesize;
	peer->held++;
	return true;
}

static unsigned int hook_packet(struct net *net, const struct in6_addr *to, struct sk_buff *skb)
{
	const struct kcoll_circuit_net *cn = net_generic(net, kcoll_circuit_net_id);
	struct kcoll_domain *d = rcu_dereference(cn->domain);	/* hooks run under RCU */
	const struct sock *sk = sk_to_full_sk(skb->sk);
	struct kcoll_peer *peer;
	bool room = false;
	u64 now;

	if (!d || !ipv6_prefix_equal(to, &d->address, d->prefix))
		return NF_ACCEPT;
	/* To this host itself: also the message that a peer is unreachable. */
	if (skb_dst(skb)->dev->flags & IFF_LOOPBACK)
		return NF_ACCEPT;
	now = domain_now();
	spin_lock_bh(&d->lock);
	peer = kcoll_domain_peer(d, to, sock_net_uid(net, sk), now);
	if (peer) {
		peer->used = now;
		peer_request(d, peer, now);
		if (kcoll_peer_is_up(d, peer) && !peer->sending && skb_queue_empty(&peer->queue)) {
			peer->passed++;
			spin_unlock_bh(&d->lock);
			return NF_ACCEPT;
		}
		room = peer_hold(d, peer, skb);
		peer->refused += !room;
	}
	spin_unlock_bh(&d->lock);
	if (room)
		return NF_STOLEN;
	kcoll_held_refuse(skb);
	return NF_DROP_ERR(-EHOSTUNREACH);
}

static unsigned int hook_v4(void *unused, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct in6_addr to;

	ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr, &to);
	return hook_packet(state->net, &to, skb);
}

static unsigned int hook_v6(void *unused, struct sk_buff *skb, const struct nf_hook_state *state)
{
	return hook_packet(state->net, &ipv6_hdr(skb)->daddr, skb);
}

static const struct nf_hook_ops hooks[] = {
	{ .hook = hook_v4, .pf = NFPROTO_IPV4, .hooknum = NF_INET_LOCAL_OUT,
	  .priority = NF_IP_PRI_LAST },
	{ .hook = hook_v6, .pf = NFPROTO_IPV6, .hooknum = NF_INET_LOCAL_OUT,
	  .priority = NF_IP6_PRI_LAST },
};

/* ---- notifications and orders -------------------------------------------------- */

static const char *const notice_names[] = {
	[COLL_CIRCUIT_NOTIFY_UP] = "up", [COLL_CIRCUIT_NOTIFY_DRAINING] = "draining",
	[COLL_CIRCUIT_NOTIFY_DOWN] = "down", [COLL_CIRCUIT_NOTIFY_ENDED] = "ended",
};

/* Sent outside the lock. */
struct circuit_notice {
	struct kcoll_event event;
	struct in6_addr address;
};

static void notice_address(struct circuit_notice *t, const struct kcoll_peer *peer)
{
	t->address = peer->address;
	t->event.address = kcoll_address_is_v4(&t->address) ? &t->address.s6_addr32[3]
							       : &t->address.s6_addr32[0];
	t->event.address_bytes = kcoll_address_is_v4(&t->address) ? 4 : 16;
}

/* The next event to be sent, or false. */
static bool notice_lease(struct kcoll_domain *d, u64 now, struct circuit_notice *t)
{
	struct coll_circuit_notification told;

	lockdep_assert_held(&d->lock);
	while (coll_circuit_next_notification(&d->c, now, &told)) {
		if (told.holder == CIRCUIT_TRAFFIC) {
			struct kcoll_peer *peer = &d->peer[told.cookie - 1];

			peer->flush |= told.kind == COLL_CIRCUIT_NOTIFY_UP;
			if (told.kind != COLL_CIRCUIT_NOTIFY_ENDED)
				continue;
			peer->lease = CIRCUIT_NO_LEASE;
			peer->refuse = true;	/* the request has failed */
			continue;
		}
		t->event = (struct kcoll_event){
			.kind = COLL_EVENT_CIRCUIT_LEASE, .id = told.lease + 1, .cpu = -1,
			.name = notice_names[told.kind], .net = d->net,
		};
		return true;
	}
	return false;
}

static bool notice_order(struct kcoll_domain *d, u64 now, struct circuit_notice *t)
{
	struct coll_circuit_order order;

	lockdep_assert_held(&d->lock);
	if (!coll_circuit_next_order(&d->c, now, &order))
		return false;
	t->event = (struct kcoll_event){
		.kind = order.kind == COLL_CIRCUIT_ORDER_UP ? COLL_EVENT_CIRCUIT_UP :
							COLL_EVENT_CIRCUIT_DOWN,
		.id = order.circuit + 1, .cpu = -1, .serial = order.serial, .port = order.port[0],
		.net = d->net,
	};
	notice_address(t, domain_peer_at(d, order.circuit));
	return true;
}

static bool notice_state(struct kcoll_domain *d, struct circuit_notice *t)
{
	u32 circuit;

	lockdep_assert_held(&d->lock);
	if (!coll_circuit_next_change(&d->c, &circuit))
		return false;
	t->event = (struct kcoll_event){
		.kind = COLL_EVENT_CIRCUIT_STATE, .id = circuit + 1, .cpu = -1,
		.name = coll_circuit_state_names[d->circuit[circuit].state], .net = d->net,
	};
	notice_address(t, domain_peer_at(d, circuit));
	return true;
}

static bool notice_next(struct kcoll_domain *d, u64 now)
{
	struct circuit_notice t = { };
	bool any;

	spin_lock_bh(&d->lock);
	any = notice_order(d, now, &t) || notice_lease(d, now, &t) || notice_state(d, &t);
	spin_unlock_bh(&d->lock);
	if (any)
		kcoll_event_send(&t.event);
	return any;
}

/* ---- the work item ------------------------------------------------------------- */

/* No packet of the queue is older than the time since the queue was last empty. */
static void held_check_age(struct kcoll_domain *d, struct kcoll_peer *peer, u64 now, u64 *next)
{
	const bool waits = !skb_queue_empty(&peer->queue);

	lockdep_assert_held(&d->lock);
	if (waits && now >= peer->since + d->age)
		peer->refuse = true;
	else if (waits)
		*next = min(*next, peer->since + d->age);
	/* No traffic for a while: the lease is released. */
	if (peer->lease == CIRCUIT_NO_LEASE || waits || peer->sending)
		return;
	if (now >= peer->used + d->c.policy.keep) {
		coll_circuit_release(&d->c, now, peer->lease);
		peer->lease = CIRCUIT_NO_LEASE;
	} else {
		*next = min(*next, peer->used + d->c.policy.keep);
	}
}

static void domain_refuse_evicted(struct kcoll_domain *d)
{
	struct sk_buff_head evicted;
	struct sk_buff *skb;

	__skb_queue_head_init(&evicted);
	spin_lock_bh(&d->lock);
	skb_queue_splice_init(&d->evicted, &evicted);
	spin_unlock_bh(&d->lock);
	while ((skb = __skb_dequeue(&evicted))) {
		local_bh_disable();
		kcoll_held_refuse(skb);
		local_bh_enable();
		kfree_skb(skb);
		cond_resched();
	}
}

static void domain_work(struct work_struct *work)
{
	struct kcoll_domain *d = container_of(to_delayed_work(work), struct kcoll_domain, work);
	u64 now = domain_now(), next = COLL_CIRCUIT_FOREVER;
	u32 i;

	spin_lock_bh(&d->lock);
	coll_circuit_tick(&d->c, now);
	spin_unlock_bh(&d->lock);
	while (notice_next(d, now))
		cond_resched();
	domain_refuse_evicted(d);
	for (i = 0; i < READ_ONCE(d->peers); i++) {
		struct kcoll_peer *peer = &d->peer[i];

		if (peer->flush || !skb_queue_empty(&peer->queue))
			kcoll_held_flush(d, peer, false);
		spin_lock_bh(&d->lock);
		held_check_age(d, peer, now, &next);
		spin_unlock_bh(&d->lock);
		kcoll_held_expire(d, peer);
	}
	spin_lock_bh(&d->lock);
	next = min(next, coll_circuit_next_tick(&d->c));
	if (d->c.orders || d->c.notifications)
		next = 0;
	now = domain_now();
	if (!d->ended && next != COLL_CIRCUIT_FOREVER)
		mod_delayed_work(kcoll_circuit_queue, &d->work,
				 next > now ? nsecs_to_jiffies(next - now) + 1 : 0);
	spin_unlock_bh(&d->lock);
}

/* ---- domains ------------------------------------------------------------------- */

struct kcoll_domain *kcoll_domain_make(struct net *net)
{
	struct kcoll_domain *d = kvzalloc(sizeof(*d), GFP_KERNEL_ACCOUNT);
	u32 i;

	if (!d)
		return NULL;
	d->net = net;
	d->bytes_max = CIRCUIT_BYTES_DEFAULT;
	d->age = CIRCUIT_AGE_DEFAULT * NSEC_PER_MSEC;
	spin_lock_init(&d->lock);
	__skb_queue_head_init(&d->evicted);
	INIT_DELAYED_WORK(&d->work, domain_work);
	d->c.node = d->node;
	d->c.circuit = d->circuit;
	d->c.lease = d->lease;
	d->c.holder = d->holder;
	d->c.nodes = CIRCUIT_PEERS_MAX + 1;
	d->c.circuits = CIRCUIT_PEERS_MAX;
	d->c.leases = CIRCUIT_LEASES_MAX;
	d->c.holders = CIRCUIT_HOLDERS_MAX;
	d->c.policy = coll_circuit_policy_default;
	coll_circuit_manager_init(&d->c);
	for (i = 1; i <= CIRCUIT_PEERS_MAX; i++)
		d->node[i].unbounded = true;
	coll_circuit_add_holder(&d->c, 0);	/* CIRCUIT_TRAFFIC, the first */
	return d;
}

/* The hooks are gone: no packet and no work uses it any more. */
static void domain_stop(struct kcoll_domain *d)
{
	struct kcoll_circuit_net *cn = net_generic(d->net, kcoll_circuit_net_id);

	RCU_INIT_POINTER(cn->domain, NULL);
	synchronize_net();
	spin_lock_bh(&d->lock);
	d->ended = true;
	spin_unlock_bh(&d->lock);
	cancel_delayed_work_sync(&d->work);
}

static void domain_drop_held(struct kcoll_domain *d)
{
	struct sk_buff *skb;
	u32 i;

	for (i = 0; i < d->peers; i++)
		while ((skb = kcoll_held_take(&d->peer[i])))
			kfree_skb(skb);
	__skb_queue_purge(&d->evicted);
}

void kcoll_domain_end(struct kcoll_domain *d, const char *reason, bool send)
{
	u32 i;

	lockdep_assert_held(&kcoll_domains_mutex);
	nf_unregister_net_hooks(d->net, hooks, ARRAY_SIZE(hooks));
	domain_stop(d);
	for (i = 0; i < d->peers && send; i++)
		kcoll_held_flush(d, &d->peer[i], true);
	domain_drop_held(d);
	list_del(&d->list);
	if (send)
		kcoll_event_send(&(struct kcoll_event){ .kind = COLL_EVENT_CIRCUIT_ENDED, .cpu = -1,
				 .reason = reason, .net = d->net });
	kvfree(d);
}

struct kcoll_domain *kcoll_domain_of(struct net *net)
{
	const struct kcoll_circuit_net *cn = net_generic(net, kcoll_circuit_net_id);

	return rcu_dereference_protected(cn->domain, lockdep_is_held(&kcoll_domains_mutex));
}

int kcoll_domain_begin(struct kcoll_domain *d)
{
	struct kcoll_circuit_net *cn = net_generic(d->net, kcoll_circuit_net_id);
	int error;

	lockdep_assert_held(&kcoll_domains_mutex);
	rcu_assign_pointer(cn->domain, d);
	error = nf_register_net_hooks(d->net, hooks, ARRAY_SIZE(hooks));
	if (error) {	/* of the second; the first may have seen packets */
		domain_stop(d);
		domain_drop_held(d);
		return error;
	}
	list_add_tail(&d->list, &kcoll_domains);
	return 0;
}
