/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A sealed connection (option protect=seal): what goes over it after the handshake is encrypted
 * and authenticated (base/record.h). Where the kernel has TLS the socket does it and nobody
 * else knows of it. Otherwise a seal stands between a socket's owner, who sees plain bytes, and
 * the engine, which moves records: it has the owner's place in socket->ops.
 *
 * Costs where the kernel does not do it: a copy of each byte on both sides, and the cipher.
 */
#ifndef COLL_SEAL_H
#define COLL_SEAL_H

#include "libcoll/link/context.h"
#include "uapi/coll_wire.h"

struct coll_seal;

/*
 * Seals a connection at the end of its handshake; `connects`: this side has begun it. *seal:
 * NULL if the kernel seals, or the option does not ask for it. -errno: it cannot be used.
 */
int coll_seal_make(struct coll_context *context, int fd, const struct coll_hello *hello,
		   const struct coll_challenge *challenge, bool connects,
		   struct coll_seal **seal);

/* For a connection that no engine has got: NULL is allowed. */
void coll_seal_free(struct coll_seal *seal);
/* Sends bytes on it, as far as the socket takes them at once. NULL: as they are. */
void coll_seal_send(struct coll_seal *seal, int fd, const void *data, size_t bytes);

/* Before the engine gets the socket: from now on the seal is its owner's, NULL included. */
void coll_seal_attach(struct coll_seal *seal, struct coll_socket *socket);
/* The engine did not take the socket: as before attach(). */
void coll_seal_take_back(struct coll_socket *socket);

/* Whether sealed bytes still wait for the socket. */
bool coll_seal_is_pending(const struct coll_socket *socket);

#endif
