// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A job without a store: ranks that exchange their values over a caller's allgather. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/boot/exchange.h"

/* What the other ranks give, before this rank's own; and the exchange's error. */
static struct {
	uint8_t data[256];
	size_t bytes;
	int error;
	int calls;
} others;

static int exchange(void *argument, const void *mine, size_t bytes, void **all, size_t *all_bytes)
{
	assert_ptr_equal(argument, &others);
	others.calls++;
	if (others.error)
		return others.error;
	*all_bytes = others.bytes + bytes;
	*all = malloc(*all_bytes + 1);
	memcpy(*all, others.data, others.bytes);
	if (bytes)
		memcpy((uint8_t *)*all + others.bytes, mine, bytes);
	others.bytes = 0;
	return 0;
}

static int begin(void **state)
{
	memset(&others, 0, sizeof(others));
	*state = coll_boot_exchange_new(exchange, &others);
	return *state ? 0 : -1;
}

static int end(void **state)
{
	struct coll_boot *boot = *state;

	boot->ops->close(boot);
	return 0;
}

/* Another rank puts this: the lengths may lie. */
static void other_puts(uint32_t key_bytes, uint32_t value_bytes, const char *text)
{
	const uint32_t lengths[] = { key_bytes, value_bytes };

	memcpy(others.data + others.bytes, lengths, sizeof(lengths));
	others.bytes += sizeof(lengths);
	memcpy(others.data + others.bytes, text, strlen(text));
	others.bytes += strlen(text);
}

static void assert_value(struct coll_boot *boot, const char *key, const char *value)
{
	char got[32];
	size_t bytes = sizeof(got);

	assert_int_equal(boot->ops->get(boot, key, got, &bytes, 0), 0);
	assert_int_equal(bytes, strlen(value));
	assert_memory_equal(got, value, bytes);
}

static void values_are_there_after_the_fence(void **state)
{
	struct coll_boot *boot = *state;
	char got[4];
	size_t bytes = sizeof(got);

	assert_int_equal(boot->ops->put(boot, "mine", "value", 5), 0);
	assert_int_equal(boot->ops->put(boot, "empty", "", 0), 0);
	assert_true(boot->ops->get(boot, "mine", got, &bytes, 0) < 0);
	other_puts(5, 3, "theirabc");
	assert_int_equal(boot->ops->fence(boot, 0), 0);
	assert_value(boot, "mine", "value");
	assert_value(boot, "their", "abc");
	assert_value(boot, "empty", "");
	bytes = sizeof(got);
	assert_int_equal(boot->ops->get(boot, "mine", got, &bytes, 0), -EMSGSIZE);
}

/* A fence gives only what is new. */
static void a_second_fence_adds_values(void **state)
{
	struct coll_boot *boot = *state;

	assert_int_equal(boot->ops->put(boot, "a", "1", 1), 0);
	assert_int_equal(boot->ops->fence(boot, 0), 0);
	assert_int_equal(boot->ops->put(boot, "b", "2", 1), 0);
	assert_int_equal(boot->ops->fence(boot, 0), 0);
	assert_int_equal(others.calls, 2);
	assert_value(boot, "a", "1");
	assert_value(boot, "b", "2");
}

static void wrong_keys_and_values_are_refused(void **state)
{
	static char text[COLL_BOOT_VALUE_MAX + 1];
	struct coll_boot *boot = *state;

	memset(text, 'k', COLL_BOOT_KEY_MAX + 1);
	assert_int_equal(boot->ops->put(boot, "", "x", 1), -EINVAL);
	assert_int_equal(boot->ops->put(boot, text, "x", 1), -EINVAL);
	assert_int_equal(boot->ops->put(boot, "key", text, sizeof(text)), -EINVAL);
}

/* What other ranks give is checked: nothing behind its end is read. */
static void a_lie_of_another_rank_fails_the_fence(void **state)
{
	struct coll_boot *boot = *state;

	other_puts(UINT32_MAX, UINT32_MAX, "key");
	assert_int_equal(boot->ops->fence(boot, 0), -EPROTO);
	memset(others.data, 0, sizeof(others.data));
	others.bytes = 5;
	assert_int_equal(boot->ops->fence(boot, 0), -EPROTO);
	others.bytes = 0;
	other_puts(1, 1, "ab");
	other_puts(1, 1, "ac");
	assert_int_equal(boot->ops->fence(boot, 0), -EEXIST);
}

static void a_failed_exchange_fails_the_fence(void **state)
{
	struct coll_boot *boot = *state;

	others.error = -ECONNRESET;
	assert_int_equal(boot->ops->put(boot, "a", "1", 1), 0);
	assert_int_equal(boot->ops->fence(boot, 0), -ECONNRESET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(values_are_there_after_the_fence, begin, end),
		cmocka_unit_test_setup_teardown(a_second_fence_adds_values, begin, end),
		cmocka_unit_test_setup_teardown(wrong_keys_and_values_are_refused, begin, end),
		cmocka_unit_test_setup_teardown(a_lie_of_another_rank_fails_the_fence, begin, end),
		cmocka_unit_test_setup_teardown(a_failed_exchange_fails_the_fence, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
