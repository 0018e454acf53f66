/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A subsystem of the module. main.c starts and stops it; netlink.c adds its
 * commands to the family `coll`. A subsystem keeps its commands, their policies
 * and its state in its own folder and does not touch those of others.
 */
#ifndef COLL_KMOD_SUBSYSTEM_H
#define COLL_KMOD_SUBSYSTEM_H

#include <net/genetlink.h>

#include "uapi/coll_netlink.h"

/*
 * For sizes that come from user space: charged to the caller's memory cgroup, and no
 * warning in the log if the size is too large.
 */
#define COLL_GFP (GFP_KERNEL_ACCOUNT | __GFP_NOWARN)

/*
 * The netlink socket that started something. `net` is compared only, never
 * dereferenced: the namespace may have been freed.
 */
struct kcoll_owner {
	const struct net *net;
	u32 portid;
};

struct kcoll_subsystem {
	const char *name;
	int (*init)(void);
	/* Called after the last command: stops and undoes everything. */
	void (*exit)(void);

	/* Each with its own policy and maxattr; validate stays 0: all is strict. */
	const struct genl_ops *ops;
	unsigned int n_ops;

	/*
	 * The socket was closed. Undoes what it owns before it returns, because the
	 * port number may be reused. Process context, possibly of an exiting task; may
	 * sleep. No lock is held but those of the netlink notifier.
	 */
	void (*owner_gone)(const struct kcoll_owner *owner);
};

extern const struct kcoll_subsystem kcoll_noise_subsystem;
extern const struct kcoll_subsystem kcoll_pin_subsystem;
extern const struct kcoll_subsystem kcoll_watch_subsystem;
extern const struct kcoll_subsystem kcoll_circuit_subsystem;
extern const struct kcoll_subsystem kcoll_device_subsystem;

static inline bool coll_owner_is(const struct kcoll_owner *a, const struct kcoll_owner *b)
{
	return a->net == b->net && a->portid == b->portid;
}

#endif
