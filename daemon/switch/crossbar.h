/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Forwards frames between devices: a table in the kernel, and on each device a filter (a BPF
 * program) that looks its frames' output device up. Changing a path takes 1 us, and thirty
 * paths no longer; replacing a filter takes 30 us each. The table exists for as long as a
 * device has the filter, whichever process has died.
 */
#ifndef COLL_DAEMON_CROSSBAR_H
#define COLL_DAEMON_CROSSBAR_H

struct nl_sock;

struct crossbar {
	int table, program;		/* fds */
};

/* The crossbar of this device, else a new one. 0 or a negative errno. */
int crossbar_open(struct crossbar *crossbar, struct nl_sock *socket, int device);
/* Adds the filter for incoming frames to the device, which has a clsact qdisc. */
int crossbar_attach(const struct crossbar *crossbar, struct nl_sock *socket, int device);
void crossbar_close(struct crossbar *crossbar);

/* `out` is a device; 0: frames are dropped. */
int crossbar_lead(const struct crossbar *crossbar, int in, int out);
int crossbar_where(const struct crossbar *crossbar, int in);

#endif
