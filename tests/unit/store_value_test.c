// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Values of the store: only ranks of the job make and read them, each for its own key. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/boot/store_value.h"

static const uint8_t secret[COLL_KEY_BYTES] = { 1, 2, 3 }, other[COLL_KEY_BYTES] = { 1, 2, 4 };
static uint8_t sealed[STORE_VALUE_SEALED_MAX], copy[STORE_VALUE_SEALED_MAX];
static uint8_t value[COLL_BOOT_VALUE_MAX], found[COLL_BOOT_VALUE_MAX];

static int open_copy(const uint8_t *with, const char *key, int bytes, size_t *found_bytes)
{
	memcpy(copy, sealed, sizeof(copy));
	return coll_store_value_open(with, key, copy, bytes, found, found_bytes);
}

static void sizes_come_back(void **state)
{
	static const size_t sizes[] = { 0, 1, 16, 100, COLL_BOOT_VALUE_MAX };
	size_t i, bytes;
	int size;

	(void)state;
	for (i = 0; i < sizeof(value); i++)
		value[i] = i * 7;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		size = coll_store_value_seal(secret, "addr/1", value, sizes[i], sealed);
		assert_int_equal(size, sizes[i] + STORE_VALUE_OVERHEAD);
		bytes = sizeof(found);
		assert_int_equal(open_copy(secret, "addr/1", size, &bytes), 0);
		assert_int_equal(bytes, sizes[i]);
		assert_memory_equal(found, value, bytes);
	}
	assert_int_equal(coll_store_value_seal(secret, "k", value, COLL_BOOT_VALUE_MAX + 1, sealed),
			 -EMSGSIZE);
	bytes = 10;
	size = coll_store_value_seal(secret, "k", value, 11, sealed);
	assert_int_equal(open_copy(secret, "k", size, &bytes), -EMSGSIZE);
}

static void nobody_else_makes_one(void **state)
{
	size_t bytes = sizeof(found);
	const int size = coll_store_value_seal(secret, "agree/1", "no", 2, sealed);
	int i;

	(void)state;
	assert_int_equal(open_copy(other, "agree/1", size, &bytes), -EBADMSG);
	assert_int_equal(open_copy(secret, "agree/2", size, &bytes), -EBADMSG);
	for (i = 0; i < size; i++)
		assert_int_equal(open_copy(secret, "agree/1", i, &bytes), -EBADMSG);
	for (i = 0; i < 8 * size; i++) {
		sealed[i / 8] ^= 1 << i % 8;
		assert_int_equal(open_copy(secret, "agree/1", size, &bytes), -EBADMSG);
		sealed[i / 8] ^= 1 << i % 8;
	}
	assert_int_equal(open_copy(secret, "agree/1", size, &bytes), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_come_back),
		cmocka_unit_test(nobody_else_makes_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
