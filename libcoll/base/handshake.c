// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <string.h>
#include <sys/random.h>

#include "handshake.h"

_Static_assert(COLL_PROOF_BYTES == SHA256_DIGEST_SIZE, "a proof is a whole digest");
_Static_assert(COLL_KEY_BYTES == SHA256_DIGEST_SIZE, "a key is a whole digest");

bool coll_nonce_make(void *nonce, size_t bytes)
{
	ssize_t got;

	do
		got = getrandom(nonce, bytes, 0);
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)bytes;
}

void coll_key_derive(uint8_t key[COLL_KEY_BYTES], const uint8_t secret[COLL_SECRET_BYTES],
		     const char *purpose)
{
	struct hmac_sha256_ctx hmac;

	hmac_sha256_set_key(&hmac, COLL_SECRET_BYTES, secret);
	hmac_sha256_update(&hmac, strlen("coll key "), (const uint8_t *)"coll key ");
	hmac_sha256_update(&hmac, strlen(purpose), (const uint8_t *)purpose);
	hmac_sha256_digest(&hmac, COLL_KEY_BYTES, key);
}

/* All parts but the last have a fixed length, so they cannot be taken for one another. */
static void handshake_prove(uint8_t proof[COLL_PROOF_BYTES], const char label[8],
			    const uint8_t *nonce, const uint8_t key[COLL_KEY_BYTES],
			    const void *hello, size_t bytes)
{
	struct hmac_sha256_ctx hmac;

	hmac_sha256_set_key(&hmac, COLL_KEY_BYTES, key);
	hmac_sha256_update(&hmac, 8, (const uint8_t *)label);
	hmac_sha256_update(&hmac, COLL_NONCE_BYTES, nonce);
	hmac_sha256_update(&hmac, bytes, hello);
	hmac_sha256_digest(&hmac, COLL_PROOF_BYTES, proof);
}

static void prove_accepting(uint8_t proof[COLL_PROOF_BYTES], const uint8_t *nonce,
			    const uint8_t key[COLL_KEY_BYTES], const void *hello, size_t bytes)
{
	handshake_prove(proof, "accepts", nonce, key, hello, bytes);
}

static void prove_connecting(uint8_t proof[COLL_PROOF_BYTES], const uint8_t *nonce,
			     const uint8_t key[COLL_KEY_BYTES], const void *hello, size_t bytes)
{
	handshake_prove(proof, "connect", nonce, key, hello, bytes);
}

bool coll_challenge_make(struct coll_challenge *challenge, const uint8_t key[COLL_KEY_BYTES],
			 const void *hello, size_t bytes)
{
	if (!coll_nonce_make(challenge->nonce, sizeof(challenge->nonce)))
		return false;
	prove_accepting(challenge->proof, challenge->nonce, key, hello, bytes);
	return true;
}

bool coll_challenge_verify(const struct coll_challenge *challenge,
			   const uint8_t key[COLL_KEY_BYTES], const void *hello, size_t bytes)
{
	uint8_t proof[COLL_PROOF_BYTES];

	prove_accepting(proof, challenge->nonce, key, hello, bytes);
	return memeql_sec(proof, challenge->proof, COLL_PROOF_BYTES);	/* in constant time */
}

void coll_proof_make(struct coll_proof *proof, const struct coll_challenge *challenge,
		     const uint8_t key[COLL_KEY_BYTES], const void *hello, size_t bytes)
{
	prove_connecting(proof->bytes, challenge->nonce, key, hello, bytes);
}

bool coll_proof_verify(const struct coll_proof *proof, const struct coll_challenge *challenge,
		       const uint8_t key[COLL_KEY_BYTES], const void *hello, size_t bytes)
{
	uint8_t expected[COLL_PROOF_BYTES];

	prove_connecting(expected, challenge->nonce, key, hello, bytes);
	return memeql_sec(expected, proof->bytes, COLL_PROOF_BYTES);
}
