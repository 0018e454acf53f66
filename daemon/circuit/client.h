/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The clients of the manager: connections to its socket (uapi/coll_circuit.h). */
#ifndef COLL_DAEMON_CIRCUIT_CLIENT_H
#define COLL_DAEMON_CIRCUIT_CLIENT_H

#include "manager.h"

/* Listens at the socket of the setup. Each connection is added to `epoll`, with its client. */
int circuit_clients_open(struct circuit_manager *manager, int epoll);
int circuit_clients_fd(const struct circuit_manager *manager);	/* readable: a connection */
void circuit_clients_accept(struct circuit_manager *manager);
/* When its connection is readable; may free the client. */
void circuit_client_read(struct circuit_manager *manager, struct circuit_peer *client);
void circuit_clients_close(struct circuit_manager *manager);

/* For struct circuit_listener. */
void circuit_client_notify(struct circuit_manager *manager, struct circuit_peer *client,
			   const struct coll_circuit_notification *notification);
void circuit_clients_changed(struct circuit_manager *manager, u32 circuit);

#endif
