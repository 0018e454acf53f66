// SPDX-License-Identifier: GPL-2.0
/*
 * Circuits by netlink: domains, requests, and what became of orders. The domain's owner
 * drives the switch.
 */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <net/netns/generic.h>

#include "domain.h"
#include "kmod/common/compat.h"
#include "kmod/common/netlink.h"

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

static int circuit_read_address(struct genl_info *info, struct in6_addr *address)
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

static int circuit_read_prefix(struct genl_info *info, struct kcoll_domain *d)
{
	const struct nlattr *prefix = info->attrs[COLL_CIRCUIT_A_PREFIX];
	const int error = circuit_read_address(info, &d->address);
	u32 bits;

	if (error)
		return error;
	bits = kcoll_address_is_v4(&d->address) ? 32 : 128;
	if (prefix && nla_get_u8(prefix) > bits)
		return coll_refuse(info, COLL_CIRCUIT_A_PREFIX, -ERANGE,
				   "prefix: at most 32 (IPv4) or 128 (IPv6) bits");
	d->prefix = 128 - bits + (prefix ? nla_get_u8(prefix) : bits);
	if (!info->attrs[COLL_CIRCUIT_A_PORTS])
		return coll_refuse(info, COLL_CIRCUIT_A_PORTS, -EINVAL, "ports: missing; 0 to 64");
	return 0;
}

/* Attributes that may change later. Nothing is changed if one of them is invalid. */
static int circuit_read_limits(struct genl_info *info, struct kcoll_domain *d)
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

	if (bytes && nla_get_u32(bytes) > CIRCUIT_BYTES_MAX)
		return coll_refuse(info, COLL_CIRCUIT_A_BYTES, -ERANGE, "bytes: at most 64 MiB");
	if (age && (!nla_get_u32(age) || nla_get_u32(age) > CIRCUIT_AGE_MAX))
		return coll_refuse(info, COLL_CIRCUIT_A_AGE, -ERANGE, "age: 1 to 60000, in ms");
	if (info->attrs[COLL_CIRCUIT_A_TIMEOUT] &&
	    !nla_get_u32(info->attrs[COLL_CIRCUIT_A_TIMEOUT]))
		return coll_refuse(info, COLL_CIRCUIT_A_TIMEOUT, -ERANGE, "timeout: 1 ms and more");
	spin_lock_bh(&d->lock);
	if (bytes)
		d->bytes_max = nla_get_u32(bytes);
	if (age)
		d->age = nla_get_u32(age) * (u64)NSEC_PER_MSEC;
	d->refuse = info->attrs[COLL_CIRCUIT_A_REFUSE];
	for (i = 0; i < ARRAY_SIZE(times); i++)
		if (info->attrs[times[i].attr])
			*(u64 *)((u8 *)&d->c.policy + times[i].offset) =
				nla_get_u32(info->attrs[times[i].attr]) * (u64)NSEC_PER_MSEC;
	if (info->attrs[COLL_CIRCUIT_A_RETRIES])
		d->c.policy.retries = nla_get_u32(info->attrs[COLL_CIRCUIT_A_RETRIES]);
	if (ports)
		coll_circuit_set_ports(&d->c, ktime_get_ns(), 0, nla_get_u32(ports) == 64 ? ~0ull :
				       (1ull << nla_get_u32(ports)) - 1);
	kcoll_domain_kick(d);
	spin_unlock_bh(&d->lock);
	return 0;
}

static int circuit_make(struct genl_info *info)
{
	struct kcoll_domain *d = kcoll_domain_make(genl_info_net(info));
	int error;

	if (!d)
		return -ENOMEM;
	d->owner = coll_owner_of(info);
	d->ended = true;			/* no work before it begins */
	error = circuit_read_prefix(info, d);
	if (!error)
		error = circuit_read_limits(info, d);
	d->ended = false;
	if (!error)
		error = kcoll_domain_begin(d);
	if (error)
		kvfree(d);
	return error;
}

/* The domain, if this socket manages it. */
static int circuit_own_domain(struct genl_info *info, struct kcoll_domain **d)
{
	const struct kcoll_owner caller = coll_owner_of(info);

	lockdep_assert_held(&kcoll_domains_mutex);
	*d = kcoll_domain_of(genl_info_net(info));
	if (!*d) {
		NL_SET_ERR_MSG(
			info->extack,
			"domain: none in this network namespace; set one with CIRCUIT_DOMAIN");
		return -ENOENT;
	}
	if (coll_owner_is(&(*d)->owner, &caller))
		return 0;
	NL_SET_ERR_MSG(info->extack,
		       "domain: managed by another socket, which must be closed first");
	return -EBUSY;
}

static int circuit_domain(struct sk_buff *skb, struct genl_info *info)
{
	struct kcoll_domain *d;
	int error;

	error = kcoll_own(info);
	if (error)
		return error;
	mutex_lock(&kcoll_domains_mutex);
	if (!kcoll_domain_of(genl_info_net(info))) {
		error = circuit_make(info);
	} else {
		error = circuit_own_domain(info, &d);
		if (!error && info->attrs[COLL_CIRCUIT_A_ADDRESS])
			error = coll_refuse(
				info, COLL_CIRCUIT_A_ADDRESS, -EEXIST,
				"address: fixed while the domain exists; clear the domain first");
		if (!error)
			error = circuit_read_limits(info, d);
	}
	mutex_unlock(&kcoll_domains_mutex);
	return error;
}

static int circuit_clear(struct sk_buff *skb, struct genl_info *info)
{
	struct kcoll_domain *d;
	int error;

	mutex_lock(&kcoll_domains_mutex);
	error = circuit_own_domain(info, &d);
	if (!error)
		kcoll_domain_end(d, "it was cleared", true);
	mutex_unlock(&kcoll_domains_mutex);
	return error;
}

/* ---- requests ---- */

/* The holder of this socket's leases, or COLL_CIRCUIT_NONE. */
static u32 circuit_holder(struct kcoll_domain *d, const struct kcoll_owner *caller, bool join)
{
	u32 i;

	lockdep_assert_held(&d->lock);
	for (i = 1; i < CIRCUIT_HOLDERS_MAX; i++)
		if (d->holder[i].known && coll_owner_is(&d->holder_owner[i], caller))
			return i;
	i = join ? coll_circuit_add_holder(&d->c, 0) : COLL_CIRCUIT_NONE;
	if (i != COLL_CIRCUIT_NONE)
		d->holder_owner[i] = *caller;
	return i;
}

static const struct nla_policy request_policy[COLL_CIRCUIT_A_DEADLINE + 1] = {
	[COLL_CIRCUIT_A_ADDRESS] = { .type = NLA_BINARY, .len = 16 },
	[COLL_CIRCUIT_A_AHEAD] = { .type = NLA_FLAG },
	[COLL_CIRCUIT_A_DEADLINE] = { .type = NLA_U32 },
};

static int circuit_request_lease(struct kcoll_domain *d, struct genl_info *info,
				 const struct in6_addr *address, u32 *lease)
{
	const struct nlattr *deadline = info->attrs[COLL_CIRCUIT_A_DEADLINE];
	const struct kcoll_owner caller = coll_owner_of(info);
	const u64 now = ktime_get_ns();
	const u32 flags = COLL_CIRCUIT_ONE_SIDED |
			  (info->attrs[COLL_CIRCUIT_A_AHEAD] ? COLL_CIRCUIT_AHEAD : 0);
	struct kcoll_peer *peer = NULL;
	u32 holder;
	int error;

	spin_lock_bh(&d->lock);
	holder = circuit_holder(d, &caller, true);
	if (holder != COLL_CIRCUIT_NONE)
		peer = kcoll_domain_peer(d, address, current_uid(), now);
	error = !peer ? -ENOSPC :
		coll_circuit_request(&d->c, now, holder, 0, kcoll_peer_node(d, peer), flags, 0,
				     deadline ? now + nla_get_u32(deadline) * (u64)NSEC_PER_MSEC :
				     COLL_CIRCUIT_FOREVER, 0, lease);
	kcoll_domain_kick(d);
	spin_unlock_bh(&d->lock);
	return error;
}

static int circuit_request(struct sk_buff *skb, struct genl_info *info)
{
	struct sk_buff *reply = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	struct in6_addr address;
	struct kcoll_domain *d;
	int error = reply ? circuit_read_address(info, &address) ?: kcoll_own(info) : -ENOMEM;
	void *header;
	u32 lease = 0;

	if (error)
		goto err;
	mutex_lock(&kcoll_domains_mutex);
	d = kcoll_domain_of(genl_info_net(info));
	if (!d || !ipv6_prefix_equal(&address, &d->address, d->prefix))
		error = coll_refuse(info, COLL_CIRCUIT_A_ADDRESS, -ENOENT,
				    "address: of no domain in this network namespace");
	else
		error = circuit_request_lease(d, info, &address, &lease);
	mutex_unlock(&kcoll_domains_mutex);
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
	const struct kcoll_owner caller = coll_owner_of(info);
	u32 id = 0, holder;
	struct kcoll_domain *d;
	int error = -ENOENT;

	if (info->attrs[COLL_CIRCUIT_A_ID])
		id = nla_get_u32(info->attrs[COLL_CIRCUIT_A_ID]);
	mutex_lock(&kcoll_domains_mutex);
	d = kcoll_domain_of(genl_info_net(info));
	if (d && id && id <= CIRCUIT_LEASES_MAX) {
		spin_lock_bh(&d->lock);
		holder = circuit_holder(d, &caller, false);
		if (holder != COLL_CIRCUIT_NONE && d->lease[id - 1].used &&
		    d->lease[id - 1].holder == holder) {
			coll_circuit_release(&d->c, ktime_get_ns(), id - 1);
			error = 0;
		}
		kcoll_domain_kick(d);
		spin_unlock_bh(&d->lock);
	}
	mutex_unlock(&kcoll_domains_mutex);
	return error ? coll_refuse(info, COLL_CIRCUIT_A_ID, error,
				   "id: this socket has no lease with this number") : 0;
}

/* ---- answers to orders ---- */

static int circuit_set_state(struct kcoll_domain *d, struct genl_info *info)
{
	const u32 circuit = nla_get_u32(info->attrs[COLL_CIRCUIT_A_ID]) - 1;
	const u32 serial = nla_get_u32(info->attrs[COLL_CIRCUIT_A_SERIAL]);
	const struct nlattr *error = info->attrs[COLL_CIRCUIT_A_ERROR];
	const u64 now = ktime_get_ns();

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
		if (d->circuit[circuit].state == COLL_CIRCUIT_DRAINING &&
		    d->circuit[circuit].down_ordered)
			coll_circuit_order_done(&d->c, now, circuit, serial, 0);
		else
			coll_circuit_lost(&d->c, now, circuit);
		break;
	case COLL_CIRCUIT_FAILED:
		coll_circuit_order_done(&d->c, now, circuit, serial,
					error ? -(int)nla_get_u32(error) : -EIO);
		break;
	}
	kcoll_domain_kick(d);
	spin_unlock_bh(&d->lock);
	return 0;
}

static int circuit_set(struct sk_buff *skb, struct genl_info *info)
{
	struct kcoll_domain *d;
	int error, attr;
	u8 state;

	for (attr = COLL_CIRCUIT_A_ID; attr <= COLL_CIRCUIT_A_STATE; attr++)
		if (!info->attrs[attr])
			return coll_refuse(info, attr, -EINVAL, "set: needs id, serial and state");
	state = nla_get_u8(info->attrs[COLL_CIRCUIT_A_STATE]);
	if (state == COLL_CIRCUIT_REQUESTED || state == COLL_CIRCUIT_DRAINING)
		return coll_refuse(info, COLL_CIRCUIT_A_STATE, -EINVAL,
				   "state: down (0), switching (2), up (3) or failed (5)");
	mutex_lock(&kcoll_domains_mutex);
	error = circuit_own_domain(info, &d);
	if (!error)
		error = circuit_set_state(d, info);
	mutex_unlock(&kcoll_domains_mutex);
	return error;
}

/* ---- look ---- */

static int circuit_put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, COLL_CIRCUIT_A_PAD);
}

static int circuit_put_address(struct sk_buff *skb, const struct in6_addr *address)
{
	return kcoll_address_is_v4(address)
		       ? nla_put_in_addr(skb, COLL_CIRCUIT_A_ADDRESS, address->s6_addr32[3])
		       : nla_put_in6_addr(skb, COLL_CIRCUIT_A_ADDRESS, address);
}

static int circuit_put_domain(struct sk_buff *skb, const struct kcoll_domain *d)
{
	return circuit_put_address(skb, &d->address) ||
			       nla_put_u8(skb, COLL_CIRCUIT_A_PREFIX,
					  d->prefix -
						  (kcoll_address_is_v4(&d->address) ? 96 : 0)) ||
			       nla_put_u32(skb, COLL_CIRCUIT_A_PORTS,
					   hweight64(d->node[0].ports)) ||
			       nla_put_u32(skb, COLL_CIRCUIT_A_BYTES, d->bytes_max) ||
			       nla_put_u32(skb, COLL_CIRCUIT_A_AGE,
					   div_u64(d->age, NSEC_PER_MSEC)) ||
			       (d->refuse && nla_put_flag(skb, COLL_CIRCUIT_A_REFUSE))
		       ? -EMSGSIZE
		       : 0;
}

static int circuit_put_circuit(struct sk_buff *skb, const struct kcoll_domain *d,
			       const struct kcoll_peer *peer)
{
	const u32 i = coll_circuit_find(&d->c, 0, kcoll_peer_node(d, peer));
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
			       nla_put_u32(skb, COLL_CIRCUIT_A_REQUESTS, wants)
		       ? -EMSGSIZE
		       : 0;
}

static int circuit_put_peer(struct sk_buff *skb, const struct kcoll_domain *d,
			    const struct kcoll_peer *peer)
{
	return circuit_put_address(skb, &peer->address) || circuit_put_circuit(skb, d, peer) ||
	       nla_put_u32(skb, COLL_CIRCUIT_A_QUEUED, peer->bytes) ||
	       circuit_put_u64(skb, COLL_CIRCUIT_A_PASSED, peer->passed) ||
	       circuit_put_u64(skb, COLL_CIRCUIT_A_HELD, peer->held) ||
	       circuit_put_u64(skb, COLL_CIRCUIT_A_SENT, peer->sent) ||
	       circuit_put_u64(skb, COLL_CIRCUIT_A_REFUSED, peer->refused) ||
	       circuit_put_u64(skb, COLL_CIRCUIT_A_EXPIRED, peer->expired) ? -EMSGSIZE : 0;
}

/*
 * cb->args[0]: 0 the domain, i the (i - 1)th peer. Any user may ask, and may be without CPU time for as long
 * as it likes: not under the mutex, for which other namespaces wait. The domain stays while RCU is held.
 */
static int circuit_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	const struct kcoll_circuit_net *cn = net_generic(sock_net(cb->skb->sk), kcoll_circuit_net_id);
	struct kcoll_domain *d;
	void *header;
	int error = 0;

	rcu_read_lock();
	d = rcu_dereference(cn->domain);
	while (d && !error && cb->args[0] <= READ_ONCE(d->peers)) {
		header = kcoll_dump_put(skb, cb, COLL_CMD_CIRCUIT_GET);
		if (!header)
			break;
		spin_lock_bh(&d->lock);
		error = cb->args[0] ? circuit_put_peer(skb, d, &d->peer[cb->args[0] - 1]) :
				      circuit_put_domain(skb, d);
		spin_unlock_bh(&d->lock);
		if (error) {
			genlmsg_cancel(skb, header);
		} else {
			genlmsg_end(skb, header);
			cb->args[0]++;
		}
	}
	rcu_read_unlock();
	return skb->len;
}

static const struct genl_ops circuit_ops[] = {
	{ .cmd = COLL_CMD_CIRCUIT_DOMAIN, .flags = GENL_ADMIN_PERM, .doit = circuit_domain,
	  .policy = domain_policy, .maxattr = ARRAY_SIZE(domain_policy) - 1 },
	{ .cmd = COLL_CMD_CIRCUIT_CLEAR, .flags = GENL_ADMIN_PERM, .doit = circuit_clear,
	  .policy = kcoll_no_attributes, .maxattr = 1 },
	{ .cmd = COLL_CMD_CIRCUIT_REQUEST, .flags = GENL_ADMIN_PERM, .doit = circuit_request,
	  .policy = request_policy, .maxattr = ARRAY_SIZE(request_policy) - 1 },
	{ .cmd = COLL_CMD_CIRCUIT_RELEASE, .flags = GENL_ADMIN_PERM, .doit = circuit_release,
	  .policy = set_policy, .maxattr = ARRAY_SIZE(set_policy) - 1 },
	{ .cmd = COLL_CMD_CIRCUIT_SET, .flags = GENL_ADMIN_PERM, .doit = circuit_set,
	  .policy = set_policy, .maxattr = ARRAY_SIZE(set_policy) - 1 },
	{ .cmd = COLL_CMD_CIRCUIT_GET, .dumpit = circuit_get,
	  .policy = kcoll_no_attributes, .maxattr = 1 },
};

/* ---- owners, namespaces, the subsystem ---------------------------------------- */

static void circuit_owner_gone(const struct kcoll_owner *caller)
{
	struct kcoll_domain *d, *next;
	u32 holder;

	mutex_lock(&kcoll_domains_mutex);
	list_for_each_entry_safe(d, next, &kcoll_domains, list) {
		if (coll_owner_is(&d->owner, caller)) {
			kcoll_domain_end(d, "its owner is gone", true);
			continue;
		}
		spin_lock_bh(&d->lock);
		holder = circuit_holder(d, caller, false);
		if (holder != COLL_CIRCUIT_NONE)
			coll_circuit_remove_holder(&d->c, ktime_get_ns(), holder);
		kcoll_domain_kick(d);
		spin_unlock_bh(&d->lock);
	}
	mutex_unlock(&kcoll_domains_mutex);
}

static void __net_exit circuit_net_exit(struct net *net)
{
	struct kcoll_domain *d;

	mutex_lock(&kcoll_domains_mutex);
	d = kcoll_domain_of(net);
	if (d)
		kcoll_domain_end(d, NULL, false); /* its network devices are removed as well */
	mutex_unlock(&kcoll_domains_mutex);
}

static struct pernet_operations circuit_net_ops = {
	.exit = circuit_net_exit,
	.id = &kcoll_circuit_net_id,
	.size = sizeof(struct kcoll_circuit_net),
};

static int circuit_init(void)
{
	int error;

	/* Memory reclaim does not depend on it, so it needs no rescuer thread. */
	kcoll_circuit_queue = alloc_workqueue("coll_circuit", WQ_UNBOUND, 0);
	if (!kcoll_circuit_queue)
		return -ENOMEM;
	error = register_pernet_subsys(&circuit_net_ops);
	if (error)
		destroy_workqueue(kcoll_circuit_queue);
	return error;
}

static void circuit_exit(void)
{
	struct kcoll_domain *d, *next;

	mutex_lock(&kcoll_domains_mutex);
	list_for_each_entry_safe(d, next, &kcoll_domains, list)
		kcoll_domain_end(d, "coll.ko is unloaded", true);
	mutex_unlock(&kcoll_domains_mutex);
	unregister_pernet_subsys(&circuit_net_ops);
	destroy_workqueue(kcoll_circuit_queue);
}

const struct kcoll_subsystem kcoll_circuit_subsystem = {
	.name = "circuit", .init = circuit_init, .exit = circuit_exit,
	.ops = circuit_ops, .n_ops = ARRAY_SIZE(circuit_ops), .owner_gone = circuit_owner_gone,
};
