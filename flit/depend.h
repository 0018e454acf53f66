/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Proof that a routing cannot deadlock: the graph of which channel a packet may
 * hold while it waits for which other has no cycle (Dally and Seitz). Where
 * some channels are free for all, the graph of the others counts, with the ways
 * that lead through free channels, and a packet must always be offered one of
 * the others (Duato); a channel takes a packet only when its buffer is empty.
 *
 * All packets there can be are followed from every source to every target.
 */
#ifndef FLIT_DEPEND_H
#define FLIT_DEPEND_H

#include "route.h"

struct flit_channel {
	u32 link, vc;
};

enum { FLIT_CYCLE_MAX = 64 };

/* Channels each of which waits for the next, and the last for the first. */
struct flit_cycle {
	u32 count;		/* 0: none; the first FLIT_CYCLE_MAX are here */
	struct flit_channel channel[FLIT_CYCLE_MAX];
};

struct flit_proof {
	u32 channels;		/* that depend on others or are depended on */
	u64 dependencies;
	struct flit_cycle cycle;
};

/*
 * 0: it cannot deadlock; -EDEADLK: proof->cycle says how it can; -ENOLINK: `why`
 * says for whom there is no way on; -ENOMEM.
 */
int flit_depend(const struct flit_route *route, struct flit_proof *proof, char *why, size_t bytes);

/* "(0,1)->(0,2) vc 0, (0,2)->..." */
void flit_cycle_print(const struct flit_net *net, const struct flit_cycle *cycle, char *text,
		      size_t bytes);

#endif
