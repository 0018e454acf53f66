// SPDX-License-Identifier: GPL-2.0
/*
 * The generic netlink family `coll`. Each subsystem brings its commands; this file has
 * what they share: the family, closed owner sockets, permission checks, events.
 *
 * Most commands act on the machine's CPUs, which belong to no namespace. Such commands
 * are accepted from the initial network namespace only, and their events are sent
 * there. Circuits belong to each network namespace.
 */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/capability.h>
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/netlink.h>
#include <linux/pid_namespace.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/netlink.h>

#include "coll_events.h"
#include "compat.h"
#include "netlink.h"

/* Events name tasks of all users, by numbers that only the initial pid namespace may have. */
static const struct genl_multicast_group groups[] = {
	{ .name = COLL_GENL_EVENTS, .flags = GENL_MCAST_CAP_NET_ADMIN },
};

/* The commands of all subsystems. Written before the family is registered. */
static struct genl_ops commands[__COLL_CMD_MAX];
static const struct kcoll_subsystem *const *subsystems;
static size_t subsystem_count;
static bool is_open;

static struct genl_family family = {
	.name = COLL_GENL_NAME,
	.version = COLL_GENL_VERSION,
	.netnsok = true,
	/*
	 * Each subsystem has its own mutex, which the end of an owner takes without any other. So
	 * a set of rules that looks at all tasks does not hold up other families' commands.
	 */
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = commands,
	.mcgrps = groups,
	.n_mcgrps = ARRAY_SIZE(groups),
};

/* ---- owners ------------------------------------------------------------------ */

/* Sockets that own something, by port number. */
struct owning_socket {
	struct hlist_node node;
	struct kcoll_owner owner;
};

static DEFINE_SPINLOCK(owning_lock);
static DEFINE_HASHTABLE(owning, 6);

static struct owning_socket *owning_find(const struct kcoll_owner *owner)
{
	struct owning_socket *socket;

	lockdep_assert_held(&owning_lock);
	hash_for_each_possible(owning, socket, node, owner->portid)
		if (coll_owner_is(&socket->owner, owner))
			return socket;
	return NULL;
}

int kcoll_own(struct genl_info *info)
{
	struct owning_socket *socket = kmalloc(sizeof(*socket), GFP_KERNEL_ACCOUNT);
	struct kcoll_owner owner = coll_owner_of(info);

	if (!socket)
		return -ENOMEM;
	socket->owner = owner;
	spin_lock(&owning_lock);
	if (!owning_find(&owner)) {
		hash_add(owning, &socket->node, owner.portid);
		socket = NULL;
	}
	spin_unlock(&owning_lock);
	kfree(socket);
	return 0;
}

/* Whether the socket, which is being closed, owned something. */
static bool owning_forget(const struct kcoll_owner *owner)
{
	struct owning_socket *socket;

	spin_lock(&owning_lock);
	socket = owning_find(owner);
	if (socket)
		hash_del(&socket->node);
	spin_unlock(&owning_lock);
	kfree(socket);
	return socket;
}

static void owning_forget_all(void)
{
	struct owning_socket *socket;
	struct hlist_node *next;
	int i;

	hash_for_each_safe(owning, i, next, socket, node) {
		hash_del(&socket->node);
		kfree(socket);
	}
}

/*
 * Called for each netlink socket of any protocol and namespace when it is closed. Nearly all
 * of them own nothing here: for these it costs a spinlock and no mutex of a subsystem.
 */
static int socket_event(struct notifier_block *block, unsigned long event, void *data)
{
	const struct netlink_notify *notify = data;
	const struct kcoll_owner owner = { .net = notify->net, .portid = notify->portid };
	size_t i;

	if (event != NETLINK_URELEASE || notify->protocol != NETLINK_GENERIC ||
	    !owning_forget(&owner))
		return NOTIFY_DONE;
	for (i = 0; i < subsystem_count; i++)
		if (subsystems[i]->owner_gone)
			subsystems[i]->owner_gone(&owner);
	return NOTIFY_DONE;
}

static struct notifier_block sockets = { .notifier_call = socket_event };

/* ---- for commands -------------------------------------------------------------- */

void *kcoll_reply_put(struct sk_buff *skb, struct genl_info *info, u8 command)
{
	return genlmsg_put_reply(skb, info, &family, 0, command);
}

const struct nla_policy kcoll_no_attributes[2] = { [1] = { .type = NLA_REJECT } };

int kcoll_may(struct sk_buff *skb, struct net *net, struct netlink_ext_ack *extack, u32 needs)
{
	if (net != &init_net) {
		NL_SET_ERR_MSG(extack, "only from the initial network namespace");
		return -EPERM;
	}
	if (needs & KCOLL_NEEDS_NICE && !netlink_capable(skb, CAP_SYS_NICE)) {
		NL_SET_ERR_MSG(extack, "needs CAP_SYS_NICE");
		return -EPERM;
	}
	if (needs & KCOLL_NEEDS_PERFMON && !netlink_capable(skb, CAP_PERFMON) &&
	    !netlink_capable(skb, CAP_SYS_ADMIN)) {
		NL_SET_ERR_MSG(extack, "needs CAP_PERFMON");
		return -EPERM;
	}
	if (needs & KCOLL_NEEDS_PERFMON && security_locked_down(LOCKDOWN_PERF)) {
		NL_SET_ERR_MSG(extack, "the kernel is locked down: confidentiality");
		return -EPERM;
	}
	if (needs & KCOLL_NEEDS_PIDS && task_active_pid_ns(current) != &init_pid_ns) {
		NL_SET_ERR_MSG(extack, "only from the initial pid namespace");
		return -EPERM;
	}
	return 0;
}

int kcoll_may_dump(struct netlink_callback *cb, u32 needs)
{
	return kcoll_may(cb->skb, sock_net(cb->skb->sk), cb->extack, needs);
}

int kcoll_cpus_in(struct nlattr *attr, struct netlink_ext_ack *extack, struct cpumask *cpus)
{
	int error = cpulist_parse(nla_data(attr), cpus);

	if (error != -ERANGE && (error || cpumask_empty(cpus))) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "cpus: a list such as 1-3,7");
		return -EINVAL;
	}
	if (error || !cpumask_subset(cpus, cpu_present_mask)) {
		NL_SET_ERR_MSG_ATTR(
			extack, attr,
			"cpus: some are not there; /sys/devices/system/cpu/present is valid");
		return -ENXIO;
	}
	return 0;
}

int kcoll_cpus_of(struct genl_info *info, int attr, struct cpumask *cpus)
{
	if (!info->attrs[attr])
		return coll_refuse(info, attr, -EINVAL, "cpus: missing; a list such as 1-3,7");
	return kcoll_cpus_in(info->attrs[attr], info->extack, cpus);
}

void *kcoll_dump_put(struct sk_buff *skb, struct netlink_callback *cb, u8 command)
{
	return genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &family,
			   NLM_F_MULTI, command);
}

/* ---- events -------------------------------------------------------------------- */

static int event_put(struct sk_buff *skb, const struct kcoll_event *event)
{
	void *header = genlmsg_put(skb, 0, 0, &family, 0, COLL_CMD_EVENT);

	if (!header ||
	    nla_put_u8(skb, COLL_EVENT_A_KIND, event->kind) ||
	    (event->id && nla_put_u32(skb, COLL_EVENT_A_ID, event->id)) ||
	    (event->cpu >= 0 && nla_put_u32(skb, COLL_EVENT_A_CPU, event->cpu)) ||
	    (event->pid && nla_put_u32(skb, COLL_EVENT_A_PID, event->pid)) ||
	    (event->name && nla_put_string(skb, COLL_EVENT_A_NAME, event->name)) ||
	    (event->reason && nla_put_string(skb, COLL_EVENT_A_REASON, event->reason)) ||
	    (event->serial && nla_put_u32(skb, COLL_EVENT_A_SERIAL, event->serial)) ||
	    (event->serial && event->port >= 0 &&
	     nla_put_u32(skb, COLL_EVENT_A_PORT, event->port)) ||
	    (event->address && nla_put(skb, COLL_EVENT_A_ADDRESS, event->address_bytes,
					  event->address)))
		return -EMSGSIZE;
	genlmsg_end(skb, header);
	return 0;
}

void kcoll_event_send(const struct kcoll_event *event)
{
	struct net *net = event->net ? event->net : &init_net;
	struct sk_buff *skb;

	trace_coll_event(event->kind, event->id, event->serial, event->pid);
	if (!READ_ONCE(is_open) || !genl_has_listeners(&family, net, 0))
		return;
	skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!skb)
		return;
	if (event_put(skb, event)) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_multicast_netns(&family, net, skb, 0, 0, GFP_KERNEL);
}

/* ---- the family -------------------------------------------------------------- */

static int netlink_join(const struct kcoll_subsystem *subsystem)
{
	unsigned int i;

	for (i = 0; i < subsystem->n_ops; i++) {
		if (WARN_ON(family.n_ops == ARRAY_SIZE(commands)))
			return -ENOSPC;
		commands[family.n_ops++] = subsystem->ops[i];
	}
	return 0;
}

/* The notifier is registered first: a socket may own something once the family exists. */
int kcoll_netlink_open(const struct kcoll_subsystem *const *all, size_t count)
{
	size_t i;
	int error;

	subsystems = all;
	subsystem_count = count;
	for (i = 0; i < count; i++) {
		error = netlink_join(subsystems[i]);
		if (error)
			return error;
	}
	error = netlink_register_notifier(&sockets);
	if (error)
		return error;
	error = genl_register_family(&family);
	if (error) {
		netlink_unregister_notifier(&sockets);
		return error;
	}
	WRITE_ONCE(is_open, true);
	return 0;
}

void kcoll_netlink_close(void)
{
	WRITE_ONCE(is_open, false);
	genl_unregister_family(&family);
	netlink_unregister_notifier(&sockets);
	owning_forget_all();
}

/*
 * No MODULE_ALIAS_GENL_FAMILY: by it any user who asks for the family would load the module.
 */
