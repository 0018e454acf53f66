/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Reports by HTTP over a Unix socket: the owner of a job and root have its report. Each connection has a
 * child, which reads the request as well: what a client sends, and how slowly, does not reach colld.
 */
#ifndef COLL_DAEMON_DOOR_H
#define COLL_DAEMON_DOOR_H

#include <stdbool.h>

#include "child.h"
#include "share.h"

enum {
	REPORT_CLIENTS = 16,		/* at once ... */
	REPORT_CLIENTS_ROOT = 2,	/* ... of which root alone has so many */
	REPORT_CLIENTS_USER = 4,	/* the most of another user */
	REPORT_REFUSED = 32,		/* that are kept open for a moment */
};

struct report_client {
	struct report_child child;
	int fd;
	u32 user;
};

struct report_door {
	const char *state;		/* colld's folder; the caller's, as are the shares */
	struct report_shares *shares;
	char path[512];
	int listener;			/* readable when report_door_accept() is due; -1: not open */
	struct report_client client[REPORT_CLIENTS];
	/* What a refused client has still to send would fail otherwise, and it would not read why. */
	int closing[REPORT_REFUSED];	/* -1: none */
	u64 closing_since;		/* of the latest */
	u64 served, refused, cost;	/* ns of CPU time of its children */
};

/* At `state`/reports. `state` and the shares outlive it. 0 or -errno, which is logged. */
int report_door_open(struct report_door *door, const char *state, struct report_shares *shares);
/* The new client; NULL: it was refused, or *error is why there is none now. */
struct report_client *report_door_accept(struct report_door *door, int *error);
/* Forgets clients whose child has ended, and those that were refused; returns how many there are. */
u32 report_door_reap(struct report_door *door);
void report_door_close(struct report_door *door);

#endif
