/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Records: pieces of a stream of bytes, encrypted and authenticated. They have the form of TLS
 * 1.3 (RFC 8446, 5.2) with AES-256-GCM, so either side may leave them to the kernel's TLS.
 * There is no handshake of TLS: both directions' keys come from the job's (handshake.h).
 *
 * A record is opened only in the place where it was sealed: its number is part of the nonce.
 * One that is changed, left out, repeated or moved is refused.
 */
#ifndef COLL_RECORD_H
#define COLL_RECORD_H

#include "aead.h"

enum {
	COLL_RECORD_HEADER = 5,
	COLL_RECORD_PLAIN_MAX = 16384,
	/* The header, the type of the content, the tag. */
	COLL_RECORD_OVERHEAD = COLL_RECORD_HEADER + 1 + COLL_AEAD_TAG,
	COLL_RECORD_MAX = COLL_RECORD_PLAIN_MAX + COLL_RECORD_OVERHEAD,
	COLL_RECORD_KEY_BYTES = 32,
	COLL_RECORD_IV_BYTES = COLL_AEAD_NONCE,
};

/* One direction of a connection. */
struct coll_record_secret {
	uint8_t key[COLL_RECORD_KEY_BYTES];
	uint8_t iv[COLL_RECORD_IV_BYTES];
};

struct coll_record_stream {
	struct gcm_aes256_ctx gcm;
	uint8_t iv[COLL_RECORD_IV_BYTES];
	uint64_t number;		/* of the next record */
};

void coll_record_begin(struct coll_record_stream *stream, const struct coll_record_secret *secret);

/*
 * Makes a record of the plain bytes that lie at record + COLL_RECORD_HEADER, at least 1 and at
 * most COLL_RECORD_PLAIN_MAX. Returns its size.
 */
size_t coll_record_seal(struct coll_record_stream *stream, uint8_t *record, size_t plain);

/* The size of the record with this header. -EBADMSG: no record begins so. */
int coll_record_size(const uint8_t header[COLL_RECORD_HEADER], size_t *bytes);
/*
 * Opens a whole record in place: its plain bytes are at record + COLL_RECORD_HEADER. -EBADMSG:
 * it is not what the peer sealed next.
 */
int coll_record_open(struct coll_record_stream *stream, uint8_t *record, size_t bytes,
		     size_t *plain);

#endif
