/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Proof that a routing cannot deadlock (Dally, Seitz 1987): the graph of channel
 * dependences, from a channel that a packet may hold to each channel that it may wait for,
 * has no cycle. With adaptive channels (Duato 1993) the graph covers the escape channels and
 * the paths through adaptive ones; a packet must always be offered an escape channel, and a
 * channel accepts a packet only when its buffer is empty.
 *
 * All possible packets are followed from every source to every target.
 */
#ifndef FLIT_DEPEND_H
#define FLIT_DEPEND_H

#include "route.h"

struct flit_channel {
	u32 link, vc;
};

enum { FLIT_CYCLE_MAX = 64 };

/* Channels of which each waits for the next, and the last for the first. */
struct flit_cycle {
	u32 count;		/* 0: none; the first FLIT_CYCLE_MAX are in `channel` */
	struct flit_channel channel[FLIT_CYCLE_MAX];
};

struct flit_proof {
	u32 channels;		/* channels with dependencies */
	u64 dependencies;
	struct flit_cycle cycle;
};

/*
 * 0: free of deadlock; -EDEADLK: proof->cycle has a cycle; -ENOLINK: `why` names the packet
 * without a next channel; -ENOMEM.
 */
int flit_depend(const struct flit_route *route, struct flit_proof *proof, char *why, size_t bytes);

/* "(0,1)->(0,2) vc 0, (0,2)->..." */
void flit_cycle_print(const struct flit_net *net, const struct flit_cycle *cycle, char *text,
		      size_t bytes);

#endif
