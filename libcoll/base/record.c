// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <string.h>

#include "core/port.h"
#include "record.h"

enum { APPLICATION_DATA = 23, VERSION_HIGH = 3, VERSION_LOW = 3 };

void coll_record_begin(struct coll_record_stream *stream, const struct coll_record_secret *secret)
{
	gcm_aes256_set_key(&stream->gcm, secret->key);
	memcpy(stream->iv, secret->iv, sizeof(stream->iv));
	stream->number = 0;
}

/* The nonce of the next record, which is used once: the number cannot wrap in 2^64 records. */
static void record_next(struct coll_record_stream *stream, uint8_t nonce[COLL_RECORD_IV_BYTES])
{
	int i;

	memcpy(nonce, stream->iv, COLL_RECORD_IV_BYTES);
	for (i = 0; i < 8; i++)
		nonce[COLL_RECORD_IV_BYTES - 1 - i] ^= stream->number >> 8 * i;
	stream->number++;
}

size_t coll_record_seal(struct coll_record_stream *stream, uint8_t *record, size_t plain)
{
	uint8_t *content = record + COLL_RECORD_HEADER, nonce[COLL_RECORD_IV_BYTES];
	const size_t bytes = plain + 1, follows = bytes + COLL_AEAD_TAG;

	coll_assert(plain && plain <= COLL_RECORD_PLAIN_MAX);
	record[0] = APPLICATION_DATA;
	record[1] = VERSION_HIGH;
	record[2] = VERSION_LOW;
	record[3] = follows >> 8;
	record[4] = follows;
	content[plain] = APPLICATION_DATA;
	record_next(stream, nonce);
	coll_aead_seal(&stream->gcm, nonce, record, COLL_RECORD_HEADER, content, content, bytes);
	return COLL_RECORD_HEADER + follows;
}

int coll_record_size(const uint8_t header[COLL_RECORD_HEADER], size_t *bytes)
{
	const size_t follows = header[3] << 8 | header[4];

	if (header[0] != APPLICATION_DATA || header[1] != VERSION_HIGH ||
	    header[2] != VERSION_LOW || follows < 1 + 1 + COLL_AEAD_TAG ||
	    follows > COLL_RECORD_PLAIN_MAX + 1 + COLL_AEAD_TAG)
		return -EBADMSG;
	*bytes = COLL_RECORD_HEADER + follows;
	return 0;
}

int coll_record_open(struct coll_record_stream *stream, uint8_t *record, size_t bytes,
		     size_t *plain)
{
	uint8_t *content = record + COLL_RECORD_HEADER, nonce[COLL_RECORD_IV_BYTES];
	const size_t inner = bytes - COLL_RECORD_HEADER - COLL_AEAD_TAG;

	record_next(stream, nonce);
	if (!coll_aead_open(&stream->gcm, nonce, record, COLL_RECORD_HEADER, content, inner) ||
	    content[inner - 1] != APPLICATION_DATA)
		return -EBADMSG;
	*plain = inner - 1;
	return 0;
}
