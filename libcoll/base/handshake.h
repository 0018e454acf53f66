/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Two processes of a job prove to each other that they know its secret, and never send it:
 *
 *	A to B	hello		A's name, the name that it expects of B, A's nonce
 *	B to A	challenge	B's nonce, B's proof
 *	A to B	proof		A's proof
 *
 * A proof is an HMAC-SHA256 over the side's label, the whole hello and B's nonce, with a key
 * derived from the secret for one protocol. Both nonces are random and used once, so a
 * recorded message proves nothing to anybody later; the labels differ, so no side's proof
 * can be sent back to it. A sends nothing else before it has verified B, and B acts on
 * nothing of the hello before it has verified A. It costs one round trip a connection.
 *
 * The hello is the protocol's own: link/ and the store have one each. It must contain a
 * nonce by coll_nonce_make(), and all that the peers rely on.
 */
#ifndef COLL_HANDSHAKE_H
#define COLL_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uapi/coll_wire.h"

enum {
	COLL_SECRET_BYTES = 32,
	COLL_KEY_BYTES = 32,
};

/* Fresh random bytes. False: the kernel has none; no handshake is possible then. */
bool coll_nonce_make(void *nonce, size_t bytes);

/* The job's key for one purpose, such as "link". Keys of two purposes do not tell each other. */
void coll_key_derive(uint8_t key[COLL_KEY_BYTES], const uint8_t secret[COLL_SECRET_BYTES],
		     const char *purpose);

/* B: answers a hello. False: no random bytes. */
bool coll_challenge_make(struct coll_challenge *challenge, const uint8_t key[COLL_KEY_BYTES],
			 const void *hello, size_t bytes);
/* A: whether B has proved itself for this hello of ours; then our own proof. */
bool coll_challenge_verify(const struct coll_challenge *challenge,
			   const uint8_t key[COLL_KEY_BYTES], const void *hello, size_t bytes);
void coll_proof_make(struct coll_proof *proof, const struct coll_challenge *challenge,
		     const uint8_t key[COLL_KEY_BYTES], const void *hello, size_t bytes);
/* B: whether A has. */
bool coll_proof_verify(const struct coll_proof *proof, const struct coll_challenge *challenge,
		       const uint8_t key[COLL_KEY_BYTES], const void *hello, size_t bytes);

#endif
