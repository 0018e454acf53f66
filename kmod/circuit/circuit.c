// SPDX-License-Identifier: GPL-2.0
/*
 * Circuits of a network namespace: the machine of core/circuit/circuit.c with this node in the
 * middle and its peers around it, a hook that holds traffic while it is dark, and the
 * netlink of whoever drives the switch.
 *
 * The hook is the last of LOCAL_OUT, so what it takes can be sent on by dst_output(),
 * with nothing skipped. It sees all that the node itself sends over IP; forwarded
 * packets, other protocols and what goes past the kernel's network it does not.
 *
 * Locks: `domains_mutex` for domains that come and go (sleeps); inside it or alone a
 * domain's spinlock, with bottom halves off, for machine and queues. The work item alone
 * sends what was held, so it leaves in order; the hook queues behind until it is done.
 * Cost: without a domain none, no hook is there. With one, a hash and a spinlock a
 * packet; all peers' packets of the namespace share that lock.
 */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/inet.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/dst.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "core/circuit/circuit.h"
#include "kmod/common/compat.h"
#include "kmod/common/netlink.h"

enum {
	PEERS_MAX = 255, LEASES_MAX = 1024, HOLDERS_MAX = 64, BUCKETS = 256,
	BYTES_DEFAULT = 1 << 20, BYTES_MAX = 64 << 20, AGE_DEFAULT = 150, AGE_MAX = 60000,
	ORDERS_AT_ONCE = 16, NO_LEASE = -1, TRAFFIC = 0,
};

/* Node 0 of the machine is this one; the others are peers, by their index + 1. */
struct peer {
	struct hlist_node hash;
	struct in6_addr address;
	int lease;			/* the traffic's; NO_LEASE */
	bool sending;			/* the work item empties the queue */
	bool flush, refuse;		/* ... and is to */
	struct sk_buff_head queue;	/* the spinlock is the domain's */
	u32 bytes;			/* of its truesize */
	u64 used;			/* when a packet went to it last, or wanted to */
	u64 since;			/* when the queue ceased to be empty */
	u64 passed, held, sent, refused, expired;
};

struct domain {
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
	struct coll_circuit_node node[PEERS_MAX + 1];
	struct coll_circuit circuit[PEERS_MAX];
	struct coll_circuit_lease lease[LEASES_MAX];
	struct coll_circuit_holder holder[HOLDERS_MAX];
	struct kcoll_owner asked[HOLDERS_MAX];	/* the sockets of the holders */
	struct peer peer[PEERS_MAX];
	u32 peers;
	struct hlist_head bucket[BUCKETS];
	struct delayed_work work;
	bool over;			/* nothing is to be queued or scheduled any more */
};

struct circuit_net {
	struct domain __rcu *domain;
};

static unsigned int circuit_net_id;
static DEFINE_MUTEX(domains_mutex);
static LIST_HEAD(domains);
static struct workqueue_struct *queue;

static u64 now_ns(void)
{
	return ktime_get_ns();
}

static bool is_v4(const struct in6_addr *address)
{
	return ipv6_addr_v4mapped(address);
}

/* Something is to be done by the work item. Under the lock, or while it cannot go. */
static void kick(struct domain *d)
{
	if (!d->over)
		mod_delayed_work(queue, &d->work, 0);
}

/* ---- peers --------------------------------------------------------------- */

static struct hlist_head *bucket_of(struct domain *d, const struct in6_addr *address)
{
	return &d->bucket[jhash2((const u32 *)address, 4, 0) % BUCKETS];
}

/* Made when it is asked for first; NULL: there are too many. */
static struct peer *peer_of(struct domain *d, const struct in6_addr *address)
{
	struct hlist_head *bucket = bucket_of(d, address);
	struct peer *peer;

	hlist_for_each_entry(peer, bucket, hash)
		if (ipv6_addr_equal(&peer->address, address))
			return peer;
	if (d->peers == PEERS_MAX)
		return NULL;
	peer = &d->peer[d->peers++];
	peer->address = *address;
	peer->lease = NO_LEASE;
	__skb_queue_head_init(&peer->queue);
	hlist_add_head(&peer->hash, bucket);
	return peer;
}

static u32 node_of(const struct domain *d, const struct peer *peer)
{
	return peer - d->peer + 1;
}

static struct peer *peer_at(struct domain *d, u32 circuit)
{
	return &d->peer[d->circuit[circuit].node[1] - 1];	/* the higher: 0 is this node */
}

static bool is_open(const struct domain *d, const struct peer *peer)
{
	const u32 i = coll_circuit_find(&d->c, 0, node_of(d, peer));

	return i != COLL_CIRCUIT_NONE && (d->circuit[i].state == COLL_CIRCUIT_UP ||
		(d->circuit[i].state == COLL_CIRCUIT_DRAINING && !d->circuit[i].down_ordered));
}

/* The traffic wants a circuit, as long as there is some. */
static void traffic_wants(struct domain *d, struct peer *peer, u64 now)
{
	u32 lease;

	if (peer->lease != NO_LEASE)
		return;
	if (coll_circuit_request(&d->c, now, TRAFFIC, 0, node_of(d, peer), COLL_CIRCUIT_ONE_SIDED,
				 0, COLL_CIRCUIT_FOREVER, node_of(d, peer), &lease))
		return;
	peer->lease = lease;
	kick(d);
}

/* ---- the hook ------------------------------------------------------------ */

/* As if the host could not be reached: sockets hear of it. Not under the lock. */
static void answer_unreachable(struct sk_buff *skb)
{
	if (!skb->dev)
		skb->dev = skb_dst(skb)->dev;
	dst_link_failure(skb);
}

/* Under the lock: whether the packet was taken. */
static bool hold(struct domain *d, struct peer *peer, struct sk_buff *skb)
{
	if (d->refuse || d->over || peer->bytes + skb->truesize > d->bytes_max ||
	    !skb_dst_force(skb))
		return false;
	skb->tstamp = 0;	/* it would be of the time before it was held */
	if (skb_queue_empty(&peer->queue)) {
		peer->since = peer->used;
		kick(d);	/* its age is watched from now on */
	}
	__skb_queue_tail(&peer->queue, skb);
	peer->bytes += skb->truesize;
	peer->held++;
	return true;
}

static unsigned int look_at(struct net *net, const struct in6_addr *to, struct sk_buff *skb)
{
	const struct circuit_net *cn = net_generic(net, circuit_net_id);
	struct domain *d = rcu_dereference(cn->domain);	/* hooks run under RCU */
	struct peer *peer;
	bool room = false;
	u64 now;

	if (!d || !ipv6_prefix_equal(to, &d->address, d->prefix))
		return NF_ACCEPT;
	/* To itself: also the news that a peer is unreachable. */
	if (skb_dst(skb)->dev->flags & IFF_LOOPBACK)
		return NF_ACCEPT;
	now = now_ns();
	spin_lock_bh(&d->lock);
	peer = peer_of(d, to);
	if (peer) {
		peer->used = now;
		traffic_wants(d, peer, now);
		if (is_open(d, peer) && !peer->sending && skb_queue_empty(&peer->queue)) {
			peer->passed++;
			spin_unlock_bh(&d->lock);
			return NF_ACCEPT;
		}
		room = hold(d, peer, skb);
		peer->refused += !room;
	}
	spin_unlock_bh(&d->lock);
	if (room)
		return NF_STOLEN;
	answer_unreachable(skb);
	return NF_DROP_ERR(-EHOSTUNREACH);
}

static unsigned int hook_v4(void *unused, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct in6_addr to;

	ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr, &to);
	return look_at(state->net, &to, skb);
}

static unsigned int hook_v6(void *unused, struct sk_buff *skb, const struct nf_hook_state *state)
{
	return look_at(state->net, &ipv6_hdr(skb)->daddr, skb);
}

static const struct nf_hook_ops hooks[] = {
	{ .hook = hook_v4, .pf = NFPROTO_IPV4, .hooknum = NF_INET_LOCAL_OUT,
	  .priority = NF_IP_PRI_LAST },
	{ .hook = hook_v6, .pf = NFPROTO_IPV6, .hooknum = NF_INET_LOCAL_OUT,
	  .priority = NF_IP6_PRI_LAST },
};

/* ---- what was held ------------------------------------------------------- */

static struct sk_buff *take_held(struct peer *peer)
{
	struct sk_buff *skb = __skb_dequeue(&peer->queue);

	if (skb)
		peer->bytes -= skb->truesize;
	return skb;
}

static void send_on(struct domain *d, struct sk_buff *skb)
{
	local_bh_disable();
	dst_output(d->net, skb->sk, skb);
	local_bh_enable();
}

/* In order, for only this sends; what comes meanwhile queues behind. */
static void flush(struct domain *d, struct peer *peer, bool whatever)
{
	struct sk_buff *skb;

	spin_lock_bh(&d->lock);
	peer->flush = false;
	peer->sending = true;
	while ((whatever || is_open(d, peer)) && (skb = take_held(peer))) {
		peer->sent++;
		spin_unlock_bh(&d->lock);
		send_on(d, skb);
		cond_resched();
		spin_lock_bh(&d->lock);
	}
	peer->sending = false;
	spin_unlock_bh(&d->lock);
}

static void refuse_held(struct domain *d, struct peer *peer)
{
	struct sk_buff *skb;

	for (;;) {
		spin_lock_bh(&d->lock);
		peer->refuse = false;
		skb = take_held(peer);
		peer->expired += !!skb;
		spin_unlock_bh(&d->lock);
		if (!skb)
			return;
		local_bh_disable();
		answer_unreachable(skb);
		local_bh_enable();
		kfree_skb(skb);
	}
}

/* Under the lock. What is in the queue waits since it was empty, at most. */
static void check_age(struct domain *d, struct peer *peer, u64 now, u64 *next)
{
	const bool waits = !skb_queue_empty(&peer->queue);

	if (waits && now >= peer->since + d->age)
		peer->refuse = true;
	else if (waits)
		*next = min(*next, peer->since + d->age);
	/* No traffic for a while: its lease is given back. */
	if (peer->lease == NO_LEASE || waits || peer->sending)
		return;
	if (now >= peer->used + d->c.policy.keep) {
		coll_circuit_release(&d->c, now, peer->lease);
		peer->lease = NO_LEASE;
	} else {
		*next = min(*next, peer->used + d->c.policy.keep);
	}
}

/* ---- news and orders ----------------------------------------------------- */

static const char *const news_names[] = {
	[COLL_CIRCUIT_NOTIFY_UP] = "up", [COLL_CIRCUIT_NOTIFY_DRAINING] = "draining",
	[COLL_CIRCUIT_NOTIFY_DOWN] = "down", [COLL_CIRCUIT_NOTIFY_ENDED] = "ended",
};

/* Told outside the lock. */
struct telling {
	struct kcoll_happened happened;
	struct in6_addr address;
};

static void address_of(struct telling *t, const struct peer *peer)
{
	t->address = peer->address;
	t->happened.address =
		is_v4(&t->address) ? &t->address.s6_addr32[3] : &t->address.s6_addr32[0];
	t->happened.address_bytes = is_v4(&t->address) ? 4 : 16;
}

/* Under the lock: the next thing to be told, or false. */
static bool news_told(struct domain *d, u64 now, struct telling *t)
{
	struct coll_circuit_notification told;

	while (coll_circuit_next_notification(&d->c, now, &told)) {
		if (told.holder == TRAFFIC) {
			struct peer *peer = &d->peer[told.cookie - 1];

			peer->flush |= told.kind == COLL_CIRCUIT_NOTIFY_UP;
			if (told.kind != COLL_CIRCUIT_NOTIFY_ENDED)
				continue;
			peer->lease = NO_LEASE;
			peer->refuse = true;	/* in vain */
			continue;
		}
		t->happened = (struct kcoll_happened){
			.kind = COLL_EVENT_CIRCUIT_LEASE, .id = told.lease + 1, .cpu = -1,
			.name = news_names[told.kind], .net = d->net,
		};
		return true;
	}
	return false;
}

static bool order_told(struct domain *d, u64 now, struct telling *t)
{
	struct coll_circuit_order order;

	if (!coll_circuit_next_order(&d->c, now, &order))
		return false;
	t->happened = (struct kcoll_happened){
		.kind = order.kind == COLL_CIRCUIT_ORDER_UP ? COLL_EVENT_CIRCUIT_UP :
							COLL_EVENT_CIRCUIT_DOWN,
		.id = order.circuit + 1, .cpu = -1, .serial = order.serial, .port = order.port[0],
		.net = d->net,
	};
	address_of(t, peer_at(d, order.circuit));
	return true;
}

static bool change_told(struct domain *d, struct telling *t)
{
	u32 circuit;

	if (!coll_circuit_next_change(&d->c, &circuit))
		return false;
	t->happened = (struct kcoll_happened){
		.kind = COLL_EVENT_CIRCUIT_STATE, .id = circuit + 1, .cpu = -1,
		.name = coll_circuit_state_names[d->circuit[circuit].state], .net = d->net,
	};
	address_of(t, peer_at(d, circuit));
	return true;
}

static bool tell_next(struct domain *d, u64 now)
{
	struct telling t = { };
	bool any;

	spin_lock_bh(&d->lock);
	any = order_told(d, now, &t) || news_told(d, now, &t) || change_told(d, &t);
	spin_unlock_bh(&d->lock);
	if (any)
		kcoll_tell(&t.happened);
	return any;
}

static void circuit_work(struct work_struct *work)
{
	struct domain *d = container_of(to_delayed_work(work), struct domain, work);
	u64 now = now_ns(), next = COLL_CIRCUIT_FOREVER;
	u32 i;

	spin_lock_bh(&d->lock);
	coll_circuit_tick(&d->c, now);
	spin_unlock_bh(&d->lock);
	while (tell_next(d, now))
		cond_resched();
	for (i = 0; i < READ_ONCE(d->peers); i++) {
		struct peer *peer = &d->peer[i];

		if (peer->flush || !skb_queue_empty(&peer->queue))
			flush(d, peer, false);
		spin_lock_bh(&d->lock);
		check_age(d, peer, now, &next);
		spin_unlock_bh(&d->lock);
		if (peer->refuse)
			refuse_held(d, peer);
	}
	spin_lock_bh(&d->lock);
	next = min(next, coll_circuit_next_tick(&d->c));
	if (d->c.orders || d->c.notifications)
		next = 0;
	now = now_ns();
	if (!d->over && next != COLL_CIRCUIT_FOREVER)
		mod_delayed_work(queue, &d->work,
				 next > now ? nsecs_to_jiffies(next - now) + 1 : 0);
	spin_unlock_bh(&d->lock);
}

/* ---- domains that come and go -------------------------------------------- */

static struct domain *domain_make(struct net *net)
{
	struct domain *d = kvzalloc(sizeof(*d), GFP_KERNEL_ACCOUNT);
	u32 i;

	if (!d)
		return NULL;
	d->net = net;
	d->bytes_max = BYTES_DEFAULT;
	d->age = AGE_DEFAULT * NSEC_PER_MSEC;
	spin_lock_init(&d->lock);
	INIT_DELAYED_WORK(&d->work, circuit_work);
	d->c.node = d->node;
	d->c.circuit = d->circuit;
	d->c.lease = d->lease;
	d->c.holder = d->holder;
	d->c.nodes = PEERS_MAX + 1;
	d->c.circuits = PEERS_MAX;
	d->c.leases = LEASES_MAX;
	d->c.holders = HOLDERS_MAX;
	d->c.policy = coll_circuit_policy_default;
	coll_circuit_manager_init(&d->c);
	for (i = 1; i <= PEERS_MAX; i++)
		d->node[i].unbounded = true;
	coll_circuit_add_holder(&d->c, 0);	/* TRAFFIC, the first */
	return d;
}

/* Under domains_mutex. What is held goes its way, for nobody manages it any more. */
static void domain_end(struct domain *d, const char *reason, bool send)
{
	struct circuit_net *cn = net_generic(d->net, circuit_net_id);
	struct sk_buff *skb;
	u32 i;

	nf_unregister_net_hooks(d->net, hooks, ARRAY_SIZE(hooks));
	RCU_INIT_POINTER(cn->domain, NULL);
	synchronize_net();		/* nobody looks at it any more */
	spin_lock_bh(&d->lock);
	d->over = true;
	spin_unlock_bh(&d->lock);
	cancel_delayed_work_sync(&d->work);
	for (i = 0; i < d->peers; i++) {
		if (send)
			flush(d, &d->peer[i], true);
		while ((skb = take_held(&d->peer[i])))
			kfree_skb(skb);
	}
	list_del(&d->list);
	if (send)
		kcoll_tell(&(struct kcoll_happened){ .kind = COLL_EVENT_CIRCUIT_OVER, .cpu = -1,
						   .reason = reason, .net = d->net });
	kvfree(d);
}

static struct domain *domain_of(struct net *net)
{
	const struct circuit_net *cn = net_generic(net, circuit_net_id);

	return rcu_dereference_protected(cn->domain, lockdep_is_held(&domains_mutex));
}

static int domain_begin(struct domain *d)
{
	struct circuit_net *cn = net_generic(d->net, circuit_net_id);
	int error;

	rcu_assign_pointer(cn->domain, d);
	error = nf_register_net_hooks(d->net, hooks, ARRAY_SIZE(hooks));
	if (error) {
		RCU_INIT_POINTER(cn->domain, NULL);
		synchronize_net();
		return error;
	}
	list_add_tail(&d->list, &domains);
	return 0;
}

/* ---- commands ------------------------------------------------------------ */

#define MS_ATTR { .type = NLA_U32 }
static const struct nla_policy domain_policy[COLL_CIRCUIT_A_RETRIES + 1] = {
	[COLL_CIRCUIT_A_ADDRESS] = { .type = NLA_BINARY, .len = 16 },
	[COLL_CIRCUIT_A_PREFIX] = NLA_POLICY_RANGE(NLA_U8, 0, 128),
	[COLL_CIRCUIT_A_PORTS] = NLA_POLICY_MAX(NLA_U32, COLL_CIRCUIT_PORTS_MAX),
	[COLL_CIRCUIT_A_BYTES] = { .type = NLA_U32 },
	[COLL_CIRCUIT_A_AGE] = { .type = NLA_U32 },
	[COLL_CIRCUIT_A_REFUSE] = { .type = NLA_FLAG },
	[COLL_CIRCUIT_A_LEASE] = MS_ATTR,
	[COLL_CIRCUIT_A_GRACE] = MS_ATTR,
	[COLL_CIRCUIT_A_KEEP] = MS_ATTR,
	[COLL_CIRCUIT_A_TIMEOUT] = MS_ATTR,
	[COLL_CIRCUIT_A_RETRY] = MS_ATTR,
	[COLL_CIRCUIT_A_RETRIES] = NLA_POLICY_MAX(NLA_U32, 100),
};

static int read_address(struct genl_info *info, struct in6_addr *address)
{
	const struct nlattr *attr = info->attrs[COLL_CIRCUIT_A_ADDRESS];

	if (!attr || (nla_len(attr) != 4 && nla_len(attr) != 16))
		return coll_refuse(info, COLL_CIRCUIT_A_ADDRESS, -EINVAL,
				   "address: 4 bytes of IPv4 or 16 of IPv6");
	if (nla_len(attr) == 4)
		ipv6_addr_set_v4mapped(nla_get_in_addr(attr), address);
	else
		*address = nla_get_in6_addr(attr);
	return 0;
}

static int read_where(struct genl_info *info, struct domain *d)
{
	const struct nlattr *prefix = info->attrs[COLL_CIRCUIT_A_PREFIX];
	const int error = read_address(info, &d->address);
	u32 bits;

	if (error)
		return error;
	bits = is_v4(&d->address) ? 32 : 128;
	if (prefix && nla_get_u8(prefix) > bits)
		return coll_refuse(info, COLL_CIRCUIT_A_PREFIX, -ERANGE,
				   "prefix: at most the bits of the address");
	d->prefix = 128 - bits + (prefix ? nla_get_u8(prefix) : bits);
	if (!info->attrs[COLL_CIRCUIT_A_PORTS])
		return coll_refuse(info, COLL_CIRCUIT_A_PORTS, -EINVAL, "ports: missing; 0 to 64");
	return 0;
}

/* What may change while it is there. Nothing is changed if something is wrong. */
static int read_limits(struct genl_info *info, struct domain *d)
{
	static const struct { int attr; size_t offset; } times[] = {
		{ COLL_CIRCUIT_A_LEASE, offsetof(struct coll_circuit_policy, lease) },
		{ COLL_CIRCUIT_A_GRACE, offsetof(struct coll_circuit_policy, grace) },
		{ COLL_CIRCUIT_A_KEEP, offsetof(struct coll_circuit_policy, keep) },
		{ COLL_CIRCUIT_A_TIMEOUT, offsetof(struct coll_circuit_policy, timeout) },
		{ COLL_CIRCUIT_A_RETRY, offsetof(struct coll_circuit_policy, retry) },
	};
	const struct nlattr *bytes = info->attrs[COLL_CIRCUIT_A_BYTES];
	const struct nlattr *age = info->attrs[COLL_CIRCUIT_A_AGE];
	const struct nlattr *ports = info->attrs[COLL_CIRCUIT_A_PORTS];
	size_t i;

	if (bytes && nla_get_u32(bytes) > BYTES_MAX)
		return coll_refuse(info, COLL_CIRCUIT_A_BYTES, -ERANGE, "bytes: at most 64 MiB");
	if (age && (!nla_get_u32(age) || nla_get_u32(age) > AGE_MAX))
		return coll_refuse(info, COLL_CIRCUIT_A_AGE, -ERANGE, "age: 1 to 60000, in ms");
	if (info->attrs[COLL_CIRCUIT_A_TIMEOUT] &&
	    !nla_get_u32(info->attrs[COLL_CIRCUIT_A_TIMEOUT]))
		return coll_refuse(info, COLL_CIRCUIT_A_TIMEOUT, -ERANGE, "timeout: 1 ms and more");
	spin_lock_bh(&d->lock);
	if (bytes)
		d->bytes_max = nla_get_u32(bytes);
	if (age)
		d->age = nla_get_u32(age) * NSEC_PER_MSEC;
	d->refuse = info->attrs[COLL_CIRCUIT_A_REFUSE];
	for (i = 0; i < ARRAY_SIZE(times); i++)
		if (info->attrs[times[i].attr])
			*(u64 *)((u8 *)&d->c.policy + times[i].offset) =
				nla_get_u32(info->attrs[times[i].attr]) * (u64)NSEC_PER_MSEC;
	if (info->attrs[COLL_CIRCUIT_A_RETRIES])
		d->c.policy.retries = nla_get_u32(info->attrs[COLL_CIRCUIT_A_RETRIES]);
	if (ports)
		coll_circuit_set_ports(&d->c, now_ns(), 0, nla_get_u32(ports) == 64 ? ~0ull :
				       (1ull << nla_get_u32(ports)) - 1);
	kick(d);
	spin_unlock_bh(&d->lock);
	return 0;
}

static int make(struct genl_info *info)
{
	struct domain *d = domain_make(genl_info_net(info));
	int error;

	if (!d)
		return -ENOMEM;
	d->owner = coll_owner_of(info);
	d->over = true;			/* no work before it is there */
	error = read_where(info, d);
	if (!error)
		error = read_limits(info, d);
	d->over = false;
	if (!error)
		error = domain_begin(d);
	if (error)
		kvfree(d);
	return error;
}

/* With domains_mutex held: the domain, of this socket. */
static int own_domain(struct genl_info *info, struct domain **d)
{
	const struct kcoll_owner who = coll_owner_of(info);

	*d = domain_of(genl_info_net(info));
	if (!*d) {
		NL_SET_ERR_MSG(info->extack, "there is no domain in this network namespace");
		return -ENOENT;
	}
	if (coll_owner_is(&(*d)->owner, &who))
		return 0;
	NL_SET_ERR_MSG(info->extack, "the domain is another socket's");
	return -EBUSY;
}

static int circuit_domain(struct sk_buff *skb, struct genl_info *info)
{
	struct domain *d;
	int error;

	mutex_lock(&domains_mutex);
	if (!domain_of(genl_info_net(info))) {
		error = make(info);
	} else {
		error = own_domain(info, &d);
		if (!error && info->attrs[COLL_CIRCUIT_A_ADDRESS])
			error = coll_refuse(info, COLL_CIRCUIT_A_ADDRESS, -EEXIST,
					    "address: a domain's stays; clear it first");
		if (!error)
			error = read_limits(info, d);
	}
	mutex_unlock(&domains_mutex);
	return error;
}

static int circuit_clear(struct sk_buff *skb, struct genl_info *info)
{
	struct domain *d;
	int error;

	mutex_lock(&domains_mutex);
	error = own_domain(info, &d);
	if (!error)
		domain_end(d, "it was cleared", true);
	mutex_unlock(&domains_mutex);
	return error;
}

/* ---- requests ---- */

/* Under the lock. */
static u32 holder_of(struct domain *d, const struct kcoll_owner *who, bool join)
{
	u32 i;

	for (i = 1; i < HOLDERS_MAX; i++)
		if (d->holder[i].known && coll_owner_is(&d->asked[i], who))
			return i;
	i = join ? coll_circuit_add_holder(&d->c, 0) : COLL_CIRCUIT_NONE;
	if (i != COLL_CIRCUIT_NONE)
		d->asked[i] = *who;
	return i;
}

static const struct nla_policy request_policy[COLL_CIRCUIT_A_DEADLINE + 1] = {
	[COLL_CIRCUIT_A_ADDRESS] = { .type = NLA_BINARY, .len = 16 },
	[COLL_CIRCUIT_A_AHEAD] = { .type = NLA_FLAG },
	[COLL_CIRCUIT_A_DEADLINE] = { .type = NLA_U32 },
};

static int want(struct domain *d, struct genl_info *info, const struct in6_addr *address,
		u32 *lease)
{
	const struct nlattr *deadline = info->attrs[COLL_CIRCUIT_A_DEADLINE];
	const struct kcoll_owner who = coll_owner_of(info);
	const u64 now = now_ns();
	const u32 flags = COLL_CIRCUIT_ONE_SIDED |
			  (info->attrs[COLL_CIRCUIT_A_AHEAD] ? COLL_CIRCUIT_AHEAD : 0);
	struct peer *peer = NULL;
	u32 holder;
	int error;

	spin_lock_bh(&d->lock);
	holder = holder_of(d, &who, true);
	if (holder != COLL_CIRCUIT_NONE)
		peer = peer_of(d, address);
	error = !peer ? -ENOSPC :
		coll_circuit_request(&d->c, now, holder, 0, node_of(d, peer), flags, 0,
				     deadline ? now + nla_get_u32(deadline) * (u64)NSEC_PER_MSEC :
						COLL_CIRCUIT_FOREVER, 0, lease);
	kick(d);
	spin_unlock_bh(&d->lock);
	return error;
}

static int circuit_request(struct sk_buff *skb, struct genl_info *info)
{
	struct sk_buff *reply = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	struct in6_addr address;
	struct domain *d;
	int error = reply ? read_address(info, &address) : -ENOMEM;
	void *header;
	u32 lease = 0;

	if (error)
		goto err;
	mutex_lock(&domains_mutex);
	d = domain_of(genl_info_net(info));
	if (!d || !ipv6_prefix_equal(&address, &d->address, d->prefix))
		error = coll_refuse(info, COLL_CIRCUIT_A_ADDRESS, -ENOENT,
				    "address: of no domain in this network namespace");
	else
		error = want(d, info, &address, &lease);
	mutex_unlock(&domains_mutex);
	if (error)
		goto err;
	header = kcoll_reply_put(reply, info, COLL_CMD_CIRCUIT_REQUEST);
	if (!header || nla_put_u32(reply, COLL_CIRCUIT_A_ID, lease + 1)) {
		error = -EMSGSIZE;
		goto err;
	}
	genlmsg_end(reply, header);
	return genlmsg_reply(reply, info);
err:
	nlmsg_free(reply);
	return error;
}

static const struct nla_policy set_policy[COLL_CIRCUIT_A_ERROR + 1] = {
	[COLL_CIRCUIT_A_ID] = NLA_POLICY_MIN(NLA_U32, 1),
	[COLL_CIRCUIT_A_SERIAL] = { .type = NLA_U32 },
	[COLL_CIRCUIT_A_STATE] = NLA_POLICY_MAX(NLA_U8, COLL_CIRCUIT_FAILED),
	[COLL_CIRCUIT_A_ERROR] = NLA_POLICY_RANGE(NLA_U32, 1, 4095),
};

static int circuit_release(struct sk_buff *skb, struct genl_info *info)
{
	const struct kcoll_owner who = coll_owner_of(info);
	u32 id = 0, holder;
	struct domain *d;
	int error = -ENOENT;

	if (info->attrs[COLL_CIRCUIT_A_ID])
		id = nla_get_u32(info->attrs[COLL_CIRCUIT_A_ID]);
	mutex_lock(&domains_mutex);
	d = domain_of(genl_info_net(info));
	if (d && id && id <= LEASES_MAX) {
		spin_lock_bh(&d->lock);
		holder = holder_of(d, &who, false);
		if (holder != COLL_CIRCUIT_NONE && d->lease[id - 1].used &&
		    d->lease[id - 1].holder == holder) {
			coll_circuit_release(&d->c, now_ns(), id - 1);
			error = 0;
		}
		kick(d);
		spin_unlock_bh(&d->lock);
	}
	mutex_unlock(&domains_mutex);
	return error ? coll_refuse(info, COLL_CIRCUIT_A_ID, error,
				   "id: no lease of this socket has this number") : 0;
}

/* ---- answers to orders ---- */

static int set_state(struct domain *d, struct genl_info *info)
{
	const u32 circuit = nla_get_u32(info->attrs[COLL_CIRCUIT_A_ID]) - 1;
	const u32 serial = nla_get_u32(info->attrs[COLL_CIRCUIT_A_SERIAL]);
	const struct nlattr *error = info->attrs[COLL_CIRCUIT_A_ERROR];
	const u64 now = now_ns();

	if (circuit >= READ_ONCE(d->c.made))
		return coll_refuse(info, COLL_CIRCUIT_A_ID, -ENOENT, "id: no such circuit");
	spin_lock_bh(&d->lock);
	switch (nla_get_u8(info->attrs[COLL_CIRCUIT_A_STATE])) {
	case COLL_CIRCUIT_SWITCHING:
		coll_circuit_order_begun(&d->c, now, circuit, serial);
		break;
	case COLL_CIRCUIT_UP:
		/* Not an answer to an order down: that would be a failure. */
		coll_circuit_order_done(&d->c, now, circuit, serial,
					d->circuit[circuit].state == COLL_CIRCUIT_DRAINING ? -EIO
											   : 0);
		break;
	case COLL_CIRCUIT_DOWN:
		if (d->circuit[circuit].state == COLL_CIRCUIT_DRAINING && d->circuit[circuit].down_ordered)
			coll_circuit_order_done(&d->c, now, circuit, serial, 0);
		else
			coll_circuit_lost(&d->c, now, circuit);
		break;
	case COLL_CIRCUIT_FAILED:
		coll_circuit_order_done(&d->c, now, circuit, serial,
					error ? -(int)nla_get_u32(error) : -EIO);
		break;
	}
	kick(d);
	spin_unlock_bh(&d->lock);
	return 0;
}

static int circuit_set(struct sk_buff *skb, struct genl_info *info)
{
	struct domain *d;
	int error, attr;
	u8 state;

	for (attr = COLL_CIRCUIT_A_ID; attr <= COLL_CIRCUIT_A_STATE; attr++)
		if (!info->attrs[attr])
			return coll_refuse(info, attr, -EINVAL, "set: needs id, serial and state");
	state = nla_get_u8(info->attrs[COLL_CIRCUIT_A_STATE]);
	if (state == COLL_CIRCUIT_REQUESTED || state == COLL_CIRCUIT_DRAINING)
		return coll_refuse(info, COLL_CIRCUIT_A_STATE, -EINVAL,
				   "state: down (0), switching (2), up (3) or failed (5)");
	mutex_lock(&domains_mutex);
	error = own_domain(info, &d);
	if (!error)
		error = set_state(d, info);
	mutex_unlock(&domains_mutex);
	return error;
}

/* ---- look ---- */

static int put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, COLL_CIRCUIT_A_PAD);
}

static int put_address(struct sk_buff *skb, const struct in6_addr *address)
{
	return is_v4(address) ? nla_put_in_addr(skb, COLL_CIRCUIT_A_ADDRESS, address->s6_addr32[3])
			      : nla_put_in6_addr(skb, COLL_CIRCUIT_A_ADDRESS, address);
}

static int put_domain(struct sk_buff *skb, const struct domain *d)
{
	return put_address(skb, &d->address) ||
	       nla_put_u8(skb, COLL_CIRCUIT_A_PREFIX, d->prefix - (is_v4(&d->address) ? 96 : 0)) ||
	       nla_put_u32(skb, COLL_CIRCUIT_A_PORTS, hweight64(d->node[0].ports)) ||
	       nla_put_u32(skb, COLL_CIRCUIT_A_BYTES, d->bytes_max) ||
	       nla_put_u32(skb, COLL_CIRCUIT_A_AGE, div_u64(d->age, NSEC_PER_MSEC)) ||
	       (d->refuse && nla_put_flag(skb, COLL_CIRCUIT_A_REFUSE)) ? -EMSGSIZE : 0;
}

static int put_circuit(struct sk_buff *skb, const struct domain *d, const struct peer *peer)
{
	const u32 i = coll_circuit_find(&d->c, 0, node_of(d, peer));
	const struct coll_circuit *circuit = i == COLL_CIRCUIT_NONE ? NULL : &d->circuit[i];
	u32 wants = 0, l;

	for (l = circuit ? circuit->leases : COLL_CIRCUIT_NONE; l != COLL_CIRCUIT_NONE;
	     l = d->lease[l].next)
		wants++;
	return (circuit && nla_put_u32(skb, COLL_CIRCUIT_A_ID, i + 1)) ||
			       (circuit &&
				nla_put_u32(skb, COLL_CIRCUIT_A_SERIAL, circuit->serial)) ||
			       (circuit && circuit->port[0] != COLL_CIRCUIT_NO_PORT &&
				nla_put_u32(skb, COLL_CIRCUIT_A_PORT, circuit->port[0])) ||
			       nla_put_u8(skb, COLL_CIRCUIT_A_STATE,
					  circuit ? circuit->state : COLL_CIRCUIT_DOWN) ||
			       nla_put_u32(skb, COLL_CIRCUIT_A_WANTS, wants)
		       ? -EMSGSIZE
		       : 0;
}

static int put_peer(struct sk_buff *skb, const struct domain *d, const struct peer *peer)
{
	return put_address(skb, &peer->address) || put_circuit(skb, d, peer) ||
	       nla_put_u32(skb, COLL_CIRCUIT_A_QUEUED, peer->bytes) ||
	       put_u64(skb, COLL_CIRCUIT_A_PASSED, peer->passed) ||
	       put_u64(skb, COLL_CIRCUIT_A_HELD, peer->held) ||
	       put_u64(skb, COLL_CIRCUIT_A_SENT, peer->sent) ||
	       put_u64(skb, COLL_CIRCUIT_A_REFUSED, peer->refused) ||
	       put_u64(skb, COLL_CIRCUIT_A_EXPIRED, peer->expired) ? -EMSGSIZE : 0;
}

/* cb->args[0]: 0 the domain, i the (i - 1)th peer. */
static int circuit_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct domain *d;
	void *header;
	int error = 0;

	mutex_lock(&domains_mutex);
	d = domain_of(sock_net(cb->skb->sk));
	while (d && !error && cb->args[0] <= READ_ONCE(d->peers)) {
		header = kcoll_dump_put(skb, cb, COLL_CMD_CIRCUIT_GET);
		if (!header)
			break;
		spin_lock_bh(&d->lock);
		error = cb->args[0] ? put_peer(skb, d, &d->peer[cb->args[0] - 1]) :
				      put_domain(skb, d);
		spin_unlock_bh(&d->lock);
		if (error) {
			genlmsg_cancel(skb, header);
		} else {
			genlmsg_end(skb, header);
			cb->args[0]++;
		}
	}
	mutex_unlock(&domains_mutex);
	return skb->len;
}

static const struct genl_ops circuit_ops[] = {
	{ .cmd = COLL_CMD_CIRCUIT_DOMAIN, .flags = GENL_UNS_ADMIN_PERM, .doit = circuit_domain,
	  .policy = domain_policy, .maxattr = ARRAY_SIZE(domain_policy) - 1 },
	{ .cmd = COLL_CMD_CIRCUIT_CLEAR, .flags = GENL_UNS_ADMIN_PERM, .doit = circuit_clear,
	  .policy = kcoll_no_attributes, .maxattr = 1 },
	{ .cmd = COLL_CMD_CIRCUIT_REQUEST, .flags = GENL_UNS_ADMIN_PERM, .doit = circuit_request,
	  .policy = request_policy, .maxattr = ARRAY_SIZE(request_policy) - 1 },
	{ .cmd = COLL_CMD_CIRCUIT_RELEASE, .flags = GENL_UNS_ADMIN_PERM, .doit = circuit_release,
	  .policy = set_policy, .maxattr = ARRAY_SIZE(set_policy) - 1 },
	{ .cmd = COLL_CMD_CIRCUIT_SET, .flags = GENL_UNS_ADMIN_PERM, .doit = circuit_set,
	  .policy = set_policy, .maxattr = ARRAY_SIZE(set_policy) - 1 },
	{ .cmd = COLL_CMD_CIRCUIT_GET, .dumpit = circuit_get,
	  .policy = kcoll_no_attributes, .maxattr = 1 },
};

/* ---- owners, namespaces, the subsystem ---------------------------------------- */

static void owner_gone(const struct kcoll_owner *who)
{
	struct domain *d, *next;
	u32 holder;

	mutex_lock(&domains_mutex);
	list_for_each_entry_safe(d, next, &domains, list) {
		if (coll_owner_is(&d->owner, who)) {
			domain_end(d, "its owner is gone", true);
			continue;
		}
		spin_lock_bh(&d->lock);
		holder = holder_of(d, who, false);
		if (holder != COLL_CIRCUIT_NONE)
			coll_circuit_remove_holder(&d->c, now_ns(), holder);
		kick(d);
		spin_unlock_bh(&d->lock);
	}
	mutex_unlock(&domains_mutex);
}

static void __net_exit circuit_net_exit(struct net *net)
{
	struct domain *d;

	mutex_lock(&domains_mutex);
	d = domain_of(net);
	if (d)
		domain_end(d, NULL, false);	/* its devices are going as well */
	mutex_unlock(&domains_mutex);
}

static struct pernet_operations circuit_net_ops = {
	.exit = circuit_net_exit, .id = &circuit_net_id, .size = sizeof(struct circuit_net),
};

static int circuit_init(void)
{
	int error;

	/* Nobody reclaims memory through it: no rescuer, which would be a thread of ours. */
	queue = alloc_workqueue("coll_circuit", WQ_UNBOUND, 0);
	if (!queue)
		return -ENOMEM;
	error = register_pernet_subsys(&circuit_net_ops);
	if (error)
		destroy_workqueue(queue);
	return error;
}

static void circuit_exit(void)
{
	struct domain *d, *next;

	mutex_lock(&domains_mutex);
	list_for_each_entry_safe(d, next, &domains, list)
		domain_end(d, "coll.ko is unloaded", true);
	mutex_unlock(&domains_mutex);
	unregister_pernet_subsys(&circuit_net_ops);
	destroy_workqueue(queue);
}

const struct kcoll_subsystem kcoll_circuit_subsystem = {
	.name = "circuit", .init = circuit_init, .exit = circuit_exit,
	.ops = circuit_ops, .n_ops = ARRAY_SIZE(circuit_ops), .owner_gone = owner_gone,
};
