/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The traffic of this node as a client of the manager: coll.ko holds packets to a peer whose
 * circuit is down and orders circuits by events. Each order up becomes a request, and what
 * becomes of that is the answer to the kernel. Closing ends the domain and sends what is held.
 */
#ifndef COLL_DAEMON_CIRCUIT_KERNEL_H
#define COLL_DAEMON_CIRCUIT_KERNEL_H

#include "manager.h"

/* To be closed in any case. */
int circuit_kernel_open(struct circuit_manager *manager);
int circuit_kernel_fd(const struct circuit_manager *manager);	/* readable: orders */
void circuit_kernel_read(struct circuit_manager *manager);
void circuit_kernel_close(struct circuit_manager *manager);

/* For struct circuit_listener. */
void circuit_kernel_notify(struct circuit_manager *manager,
			   const struct coll_circuit_notification *notification);

#endif
