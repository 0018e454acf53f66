/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A job on several hosts. On each host a remote shell runs an agent, "coll run --agent", which
 * starts that host's ranks. The agent reads its order from its input, then signals for its ranks,
 * one byte each; at end of file it ends them. So no secret is on a command line, and no rank
 * outlives the connection.
 */
#ifndef COLL_LAUNCH_HOSTS_H
#define COLL_LAUNCH_HOSTS_H

#include "launch.h"

/*
 * Parses "name[:ranks],..."; an IPv6 address is in brackets. Allocates *hosts; *ranks: the sum.
 * -EINVAL: invalid list.
 */
int hosts_parse(const char *list, struct launch_host **hosts, int *count, int *ranks);

/* Limits the job to `ranks`, filled from the first host on; hosts without ranks are removed. */
int hosts_limit(struct launch_host *hosts, int count, int ranks);

/* The order for the agent of a host; to be freed. NULL: no memory. */
char *hosts_order(const struct launch *launch, int host, const char *store, const char *secret,
		  const char *job, size_t *bytes);

/* In the agent: reads the order from `fd` into *launch. -EPROTO: it is not an order. */
int hosts_take_order(int fd, struct launch *launch);

/*
 * Execs the remote shell that starts coll on a host with these words, as "run --agent", which the
 * shell reads. Returns an errno if it fails.
 */
int hosts_exec(const struct launch *launch, int host, const char *words);

#endif
