/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* AES-256-GCM: encrypts and authenticates bytes, and authenticates others beside them. */
#ifndef COLL_AEAD_H
#define COLL_AEAD_H

#include <nettle/gcm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COLL_AEAD_NONCE = GCM_IV_SIZE, COLL_AEAD_TAG = GCM_DIGEST_SIZE };

/*
 * Encrypts `bytes` at `from` to `to`, which may be the same, and puts the tag behind them. A key
 * must not meet a nonce twice.
 */
void coll_aead_seal(struct gcm_aes256_ctx *key, const uint8_t nonce[COLL_AEAD_NONCE],
		    const void *beside, size_t beside_bytes, uint8_t *to, const void *from,
		    size_t bytes);
/*
 * Decrypts in place `bytes` that their tag follows. False: they are not what was sealed with this
 * key, nonce and `beside`, and what is there must not be used.
 */
bool coll_aead_open(struct gcm_aes256_ctx *key, const uint8_t nonce[COLL_AEAD_NONCE],
		    const void *beside, size_t beside_bytes, uint8_t *sealed, size_t bytes);

#endif
