/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Where frames that come in at a device leave: a table in the kernel, and a filter (a BPF
 * program) on each device that looks there. To change a path takes a microsecond, for
 * thirty circuits at once as for one; a filter that is replaced takes thirty, one after
 * the other. The table stays for as long as a device has the filter, whoever has died.
 */
#ifndef COLL_DAEMON_CROSSBAR_H
#define COLL_DAEMON_CROSSBAR_H

struct nl_sock;

struct crossbar {
	int table, program;		/* fds */
};

/* That of this device, if it has one, else a new one. 0 or a negative errno. */
int crossbar_open(struct crossbar *crossbar, struct nl_sock *socket, int device);
/* The device gets the filter, for all that comes in; it has a clsact qdisc. */
int crossbar_attach(const struct crossbar *crossbar, struct nl_sock *socket, int device);
void crossbar_close(struct crossbar *crossbar);

/* `out` is a device; 0: nowhere, what comes in is lost. */
int crossbar_lead(const struct crossbar *crossbar, int in, int out);
int crossbar_where(const struct crossbar *crossbar, int in);

#endif
