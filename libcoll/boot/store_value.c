// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <string.h>

#include "libcoll/base/aead.h"
#include "store_value.h"

_Static_assert(STORE_VALUE_OVERHEAD == COLL_AEAD_NONCE + COLL_AEAD_TAG, "nonce and tag");

int coll_store_value_seal(const uint8_t secret[COLL_KEY_BYTES], const char *key, const void *value,
			  size_t bytes, uint8_t *to)
{
	struct gcm_aes256_ctx gcm;

	if (bytes > COLL_BOOT_VALUE_MAX)
		return -EMSGSIZE;
	if (!coll_nonce_make(to, COLL_AEAD_NONCE))
		return -EIO;
	gcm_aes256_set_key(&gcm, secret);
	coll_aead_seal(&gcm, to, key, strlen(key), to + COLL_AEAD_NONCE, value, bytes);
	return bytes + STORE_VALUE_OVERHEAD;
}

int coll_store_value_open(const uint8_t secret[COLL_KEY_BYTES], const char *key, uint8_t *sealed,
			  size_t sealed_bytes, void *value, size_t *bytes)
{
	const size_t plain = sealed_bytes - STORE_VALUE_OVERHEAD;
	uint8_t *content = sealed + COLL_AEAD_NONCE;
	struct gcm_aes256_ctx gcm;

	if (sealed_bytes < STORE_VALUE_OVERHEAD)
		return -EBADMSG;
	gcm_aes256_set_key(&gcm, secret);
	if (!coll_aead_open(&gcm, sealed, key, strlen(key), content, plain))
		return -EBADMSG;
	if (plain > *bytes)
		return -EMSGSIZE;
	memcpy(value, content, plain);
	*bytes = plain;
	return 0;
}
