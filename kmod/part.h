/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A part of the module: what main.c starts and stops, what netlink.c joins into
 * the family `coll`. A part has its commands, their policies and its state in
 * its own file; other parts are not its business.
 */
#ifndef COLL_PART_H
#define COLL_PART_H

#include <net/genetlink.h>

#include "uapi/coll_netlink.h"

/* Sizes come from users: they pay, and a size too large is no news for the log. */
#define COLL_GFP (GFP_KERNEL_ACCOUNT | __GFP_NOWARN)

/*
 * The netlink socket that started something. `net` is compared only, never
 * followed: the namespace may be gone.
 */
struct kcoll_owner {
	const struct net *net;
	u32 portid;
};

struct kcoll_part {
	const char *name;
	int (*init)(void);
	/* No command comes any more: stop and undo all there is. */
	void (*exit)(void);

	/* Each with its own policy and maxattr; validate stays 0: all is strict. */
	const struct genl_ops *ops;
	unsigned int n_ops;

	/*
	 * The socket was closed: undo what it owns before you return, for its
	 * number may be given out again. In process context, perhaps of a dying
	 * task; may sleep, with no lock held but those of the netlink notifier.
	 */
	void (*owner_gone)(const struct kcoll_owner *owner);
};

extern const struct kcoll_part kcoll_noise;
extern const struct kcoll_part kcoll_pin;
extern const struct kcoll_part kcoll_watch;
extern const struct kcoll_part kcoll_circuit_part;
extern const struct kcoll_part kcoll_device_part;

static inline bool coll_owner_is(const struct kcoll_owner *a, const struct kcoll_owner *b)
{
	return a->net == b->net && a->portid == b->portid;
}

#endif
