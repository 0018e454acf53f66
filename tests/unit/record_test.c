// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Records: what was sealed opens once, in its place, unchanged; the form is that of TLS 1.3. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/base/record.h"

static const struct coll_record_secret secret = {
	.key = { 0x9c, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
	.iv = { 0xa0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 },
};
static struct coll_record_stream sends, receives;
static uint8_t record[COLL_RECORD_MAX], kept[COLL_RECORD_MAX];

static int begin(void **state)
{
	(void)state;
	coll_record_begin(&sends, &secret);
	coll_record_begin(&receives, &secret);
	return 0;
}

static size_t seal(size_t plain)
{
	size_t i, bytes, size;

	for (i = 0; i < plain; i++)
		record[COLL_RECORD_HEADER + i] = i * 31 + plain;
	bytes = coll_record_seal(&sends, record, plain);
	assert_int_equal(bytes, plain + COLL_RECORD_OVERHEAD);
	assert_int_equal(coll_record_size(record, &size), 0);
	assert_int_equal(size, bytes);
	return bytes;
}

static void each_size_opens(void **state)
{
	static const size_t sizes[] = { 1, 2, 15, 16, 17, 31, 32, 1000, 16383, 16384 };
	size_t i, j, bytes, plain;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		bytes = seal(sizes[i]);
		assert_int_equal(coll_record_open(&receives, record, bytes, &plain), 0);
		assert_int_equal(plain, sizes[i]);
		for (j = 0; j < plain; j++)
			assert_int_equal(record[COLL_RECORD_HEADER + j], (uint8_t)(j * 31 + plain));
	}
}

/* The second record, with "one", as OpenSSL's AES-256-GCM makes it. */
static void the_form_is_known(void **state)
{
	static const uint8_t expected[] = {
		0x17, 0x03, 0x03, 0x00, 0x14, 0x05, 0x77, 0xc0, 0x64, 0xfe, 0xb0, 0x6c,
		0xc2, 0x63, 0x51, 0xed, 0x4a, 0x70, 0x53, 0xbc, 0xda, 0x8c, 0x17, 0x3e,
		0x28,
	};

	(void)state;
	memcpy(record + COLL_RECORD_HEADER, "zero", 4);
	coll_record_seal(&sends, record, 4);
	memcpy(record + COLL_RECORD_HEADER, "one", 3);
	assert_int_equal(coll_record_seal(&sends, record, 3), sizeof(expected));
	assert_memory_equal(record, expected, sizeof(expected));
}

static void each_bit_counts(void **state)
{
	const size_t bytes = seal(40);
	size_t bit, size, plain;

	(void)state;
	memcpy(kept, record, bytes);
	for (bit = 0; bit < 8 * bytes; bit++) {
		memcpy(record, kept, bytes);
		record[bit / 8] ^= 1 << bit % 8;
		receives.number = 0;
		if (!coll_record_size(record, &size) && size == bytes)
			assert_int_equal(coll_record_open(&receives, record, bytes, &plain), -EBADMSG);
	}
	receives.number = 0;
	memcpy(record, kept, bytes);
	assert_int_equal(coll_record_open(&receives, record, bytes, &plain), 0);
}

static void a_record_has_one_place(void **state)
{
	size_t bytes, plain;

	(void)state;
	bytes = seal(10);
	memcpy(kept, record, bytes);
	assert_int_equal(coll_record_open(&receives, record, bytes, &plain), 0);
	memcpy(record, kept, bytes);
	assert_int_equal(coll_record_open(&receives, record, bytes, &plain), -EBADMSG);	/* again */
	receives.number = 1;
	seal(10);			/* left out */
	bytes = seal(10);
	assert_int_equal(coll_record_open(&receives, record, bytes, &plain), -EBADMSG);
}

static void other_headers_are_none(void **state)
{
	static const uint8_t headers[][COLL_RECORD_HEADER] = {
		{ 22, 3, 3, 0, 40 }, { 23, 3, 1, 0, 40 }, { 23, 2, 3, 0, 40 }, { 23, 3, 3, 0, 17 },
		{ 23, 3, 3, 0, 0 }, { 23, 3, 3, 0x40, 0x12 }, { 23, 3, 3, 0xff, 0xff },
	};
	size_t i, size;

	(void)state;
	for (i = 0; i < sizeof(headers) / sizeof(*headers); i++)
		assert_int_equal(coll_record_size(headers[i], &size), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_size_opens, begin),
		cmocka_unit_test_setup(the_form_is_known, begin),
		cmocka_unit_test_setup(each_bit_counts, begin),
		cmocka_unit_test_setup(a_record_has_one_place, begin),
		cmocka_unit_test_setup(other_headers_are_none, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
