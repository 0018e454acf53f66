/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Circuits as colld's loop sees them: one descriptor, one thread.
 *
 *	circuits	this: opens the parts and gives each its events
 *	client		connections to the socket
 *	kernel		the traffic that coll.ko holds
 *	manager		core/circuit and the switch; news to the two above by a table
 *	delays		measured reconfiguration delays
 *	setup		the file of nodes and switch
 *	../switch/	drivers, and the thread that calls them
 */
#ifndef COLL_DAEMON_CIRCUITS_H
#define COLL_DAEMON_CIRCUITS_H

#include <stdio.h>

#include "setup.h"

struct colld_circuits;

/* Logs why it fails; to be closed in any case. */
int colld_circuits_open(struct colld_circuits **circuits, const struct circuit_setup *setup);
/* Readable when colld_circuits_progress() is due. */
int colld_circuits_fd(const struct colld_circuits *circuits);
void colld_circuits_progress(struct colld_circuits *circuits);
void colld_circuits_metrics(const struct colld_circuits *circuits, FILE *to);
/* Circuits that are up stay up. */
void colld_circuits_close(struct colld_circuits *circuits);

#endif
