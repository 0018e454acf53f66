// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <nettle/memops.h>

#include "aead.h"

void coll_aead_seal(struct gcm_aes256_ctx *key, const uint8_t nonce[COLL_AEAD_NONCE],
		    const void *beside, size_t beside_bytes, uint8_t *to, const void *from,
		    size_t bytes)
{
	gcm_aes256_set_iv(key, COLL_AEAD_NONCE, nonce);
	gcm_aes256_update(key, beside_bytes, beside);
	gcm_aes256_encrypt(key, bytes, to, from);
	gcm_aes256_digest(key, COLL_AEAD_TAG, to + bytes);
}

bool coll_aead_open(struct gcm_aes256_ctx *key, const uint8_t nonce[COLL_AEAD_NONCE],
		    const void *beside, size_t beside_bytes, uint8_t *sealed, size_t bytes)
{
	uint8_t tag[COLL_AEAD_TAG];

	gcm_aes256_set_iv(key, COLL_AEAD_NONCE, nonce);
	gcm_aes256_update(key, beside_bytes, beside);
	gcm_aes256_decrypt(key, bytes, sealed, sealed);
	gcm_aes256_digest(key, sizeof(tag), tag);
	return memeql_sec(tag, sealed + bytes, sizeof(tag));
}
