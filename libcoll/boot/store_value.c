// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <nettle/gcm.h>
#include <nettle/memops.h>
#include <string.h>

#include "store_value.h"

_Static_assert(STORE_VALUE_OVERHEAD == GCM_IV_SIZE + GCM_DIGEST_SIZE, "nonce and tag");

static void value_begin(struct gcm_aes256_ctx *gcm, const uint8_t *secret, const uint8_t *nonce,
			const char *key)
{
	gcm_aes256_set_key(gcm, secret);
	gcm_aes256_set_iv(gcm, GCM_IV_SIZE, nonce);
	gcm_aes256_update(gcm, strlen(key), (const uint8_t *)key);
}

int coll_store_value_seal(const uint8_t secret[COLL_KEY_BYTES], const char *key, const void *value,
			  size_t bytes, uint8_t *to)
{
	struct gcm_aes256_ctx gcm;

	if (bytes > COLL_BOOT_VALUE_MAX)
		return -EMSGSIZE;
	if (!coll_nonce_make(to, GCM_IV_SIZE))
		return -EIO;
	value_begin(&gcm, secret, to, key);
	gcm_aes256_encrypt(&gcm, bytes, to + GCM_IV_SIZE, value);
	gcm_aes256_digest(&gcm, GCM_DIGEST_SIZE, to + GCM_IV_SIZE + bytes);
	return bytes + STORE_VALUE_OVERHEAD;
}

int coll_store_value_open(const uint8_t secret[COLL_KEY_BYTES], const char *key, uint8_t *sealed,
			  size_t sealed_bytes, void *value, size_t *bytes)
{
	const size_t plain = sealed_bytes - STORE_VALUE_OVERHEAD;
	uint8_t *content = sealed + GCM_IV_SIZE, tag[GCM_DIGEST_SIZE];
	struct gcm_aes256_ctx gcm;

	if (sealed_bytes < STORE_VALUE_OVERHEAD)
		return -EBADMSG;
	value_begin(&gcm, secret, sealed, key);
	gcm_aes256_decrypt(&gcm, plain, content, content);
	gcm_aes256_digest(&gcm, sizeof(tag), tag);
	if (!memeql_sec(tag, content + plain, sizeof(tag)))
		return -EBADMSG;
	if (plain > *bytes)
		return -EMSGSIZE;
	memcpy(value, content, plain);
	*bytes = plain;
	return 0;
}
