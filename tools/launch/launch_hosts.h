/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A job on several hosts: on each, by a remote shell, runs an agent, "coll run --agent",
 * which starts that host's ranks as coll run starts those of this node. It reads its
 * order from its input, and then signals for its ranks, a byte each; at the end of the
 * input it ends them. So nothing secret is on a command line, and nothing outlives the
 * connection.
 */
#ifndef COLL_LAUNCH_HOSTS_H
#define COLL_LAUNCH_HOSTS_H

#include "launch.h"

/*
 * "name[:ranks],..."; an IPv6 address in brackets. Allocates *hosts. -EINVAL: no such list;
 * *ranks: of all.
 */
int hosts_parse(const char *list, struct launch_host **hosts, int *count, int *ranks);

/* The job takes `ranks` of them, from the first host on: the others get fewer, or go. */
int hosts_limit(struct launch_host *hosts, int count, int ranks);

/* What the agent of a host reads; to be freed. NULL: no memory. */
char *hosts_order(const struct launch *launch, int host, const char *store, const char *secret,
		  const char *job, size_t *bytes);

/* The agent's side: fills in *launch from the order on `fd`. -EPROTO: it is none. */
int hosts_take_order(int fd, struct launch *launch);

/* Becomes the remote shell that starts a host's agent. Returns an errno if it cannot. */
int hosts_exec(const struct launch *launch, int host);

#endif
