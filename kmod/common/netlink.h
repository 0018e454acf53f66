/* SPDX-License-Identifier: GPL-2.0 */
/* The family `coll`: the commands of all subsystems, and what they share. */
#ifndef COLL_KMOD_NETLINK_H
#define COLL_KMOD_NETLINK_H

#include <linux/cpumask.h>
#include <net/sock.h>

#include "subsystem.h"

/* Commands arrive from this call until close. Called once, by main.c. */
int kcoll_netlink_open(const struct kcoll_subsystem *const *subsystems, size_t count);
void kcoll_netlink_close(void);

/* ---- for commands --------------------------------------------------------- */

static inline struct kcoll_owner coll_owner_of(struct genl_info *info)
{
	return (struct kcoll_owner){ .net = genl_info_net(info), .portid = info->snd_portid };
}

/* Begins the answer to a command. */
void *kcoll_reply_put(struct sk_buff *skb, struct genl_info *info, u8 command);

/*
 * First line of a command about the whole machine: 0, or -EPERM and the reason. It must come
 * from the initial network namespace; CAP_NET_ADMIN is asked for by .flags = GENL_ADMIN_PERM
 * already. Capabilities count in the initial user namespace only.
 */
enum kcoll_needs {
	KCOLL_NEEDS_NICE = 1,		/* CAP_SYS_NICE: takes or moves other tasks' time */
	/* CAP_PERFMON or CAP_SYS_ADMIN, and no lockdown: shows what others run */
	KCOLL_NEEDS_PERFMON = 2,
	KCOLL_NEEDS_PIDS = 4,		/* the initial pid namespace: shows its pids */
};

int kcoll_may(struct sk_buff *skb, struct net *net, struct netlink_ext_ack *extack, u32 needs);

static inline int kcoll_may_change(struct sk_buff *skb, struct genl_info *info, u32 needs)
{
	return kcoll_may(skb, genl_info_net(info), info->extack, needs);
}

/* The same for a dump. */
int kcoll_may_dump(struct netlink_callback *cb, u32 needs);

/*
 * Notes that the socket of this command owns something from now on: subsystems are told when
 * it is closed. Called before it does; it may then own nothing all the same. Process context.
 */
int kcoll_own(struct genl_info *info);

/*
 * Refuses an attribute: `return coll_refuse(info, COLL_NOISE_A_SHARE, -ERANGE,
 * "share: 1 to 9000, in 1/10000 of a CPU")`. The text is a constant and says
 * what is valid. An attribute that is not there is reported as missing.
 */
#define coll_refuse(info, attr, error, text) ({						\
	if ((info)->attrs[attr])							\
		NL_SET_ERR_MSG_ATTR((info)->extack, (info)->attrs[attr], text);		\
	else										\
		NL_SET_ERR_MSG((info)->extack, text);					\
	(error);									\
})

/* Policy of a command that has none: one is needed, or all of them would be ignored. */
extern const struct nla_policy kcoll_no_attributes[2];

/* Policy of a CPU list such as "1-3,7", and its set of CPUs: present ones, not empty. */
#define COLL_POLICY_CPUS { .type = NLA_NUL_STRING, .len = 4095 }
int kcoll_cpus_of(struct genl_info *info, int attr, struct cpumask *cpus);
int kcoll_cpus_in(struct nlattr *attr, struct netlink_ext_ack *extack, struct cpumask *cpus);

static inline struct kcoll_owner coll_dump_owner(struct netlink_callback *cb)
{
	return (struct kcoll_owner){
		.net = sock_net(cb->skb->sk),
		.portid = NETLINK_CB(cb->skb).portid,
	};
}

/* Begins one message of a dump's answer; NULL: the buffer is full. */
void *kcoll_dump_put(struct sk_buff *skb, struct netlink_callback *cb, u8 command);

/* ---- for all subsystems -------------------------------------------------- */

/* Members that are 0 or NULL are not sent; `cpu` is not if it is below 0. */
struct kcoll_event {
	enum coll_event kind;
	u32 id;
	int cpu;
	u32 pid;
	const char *name;
	const char *reason;
	u32 serial;
	int port;		/* with a serial; not sent below 0 */
	const void *address;
	u32 address_bytes;
	struct net *net;	/* whose listeners get it; NULL: the initial namespace */
};

/* Multicast to the group "events"; costs nothing without a listener. Process context. */
void kcoll_event_send(const struct kcoll_event *event);

#endif
