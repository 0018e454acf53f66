/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Values of the store are encrypted and authenticated between the ranks (AES-256-GCM, nonce and
 * tag beside the value): who can change what goes to and from the store cannot change what a
 * rank takes from it, nor give it the value of another key.
 */
#ifndef COLL_STORE_VALUE_H
#define COLL_STORE_VALUE_H

#include "boot.h"

enum {
	STORE_VALUE_OVERHEAD = 12 + 16,
	STORE_VALUE_SEALED_MAX = COLL_BOOT_VALUE_MAX + STORE_VALUE_OVERHEAD,
};

/* Seals the value for this key; returns the size in `to`, of STORE_VALUE_SEALED_MAX. -EIO. */
int coll_store_value_seal(const uint8_t secret[COLL_KEY_BYTES], const char *key, const void *value,
			  size_t bytes, uint8_t *to);
/* *bytes: capacity in, size out. -EBADMSG: no rank of this job has sealed it. -EMSGSIZE. */
int coll_store_value_open(const uint8_t secret[COLL_KEY_BYTES], const char *key, uint8_t *sealed,
			  size_t sealed_bytes, void *value, size_t *bytes);

#endif
