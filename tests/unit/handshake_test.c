// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The handshake: what proves a side, and that nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/base/handshake.h"

static const uint8_t secret[COLL_SECRET_BYTES] = "the secret of this test";
static uint8_t key[COLL_KEY_BYTES], hello[100];
static struct coll_challenge challenge;
static struct coll_proof proof;

static int shake(void **state)
{
	(void)state;
	coll_key_derive(key, secret, "test");
	assert_true(coll_nonce_make(hello, sizeof(hello)));
	assert_true(coll_challenge_make(&challenge, key, hello, sizeof(hello)));
	coll_proof_make(&proof, &challenge, key, hello, sizeof(hello));
	return 0;
}

static bool accepted(void)
{
	return coll_challenge_verify(&challenge, key, hello, sizeof(hello));
}

static bool connected(void)
{
	return coll_proof_verify(&proof, &challenge, key, hello, sizeof(hello));
}

static void both_sides_prove_themselves(void **state)
{
	(void)state;
	assert_true(accepted());
	assert_true(connected());
}

/* Whether either side still proves itself after any bit of these bytes has changed. */
static void assert_no_bit_may_change(void *bytes, size_t count, bool (*proven)(void))
{
	uint8_t *at = bytes;
	size_t bit;

	for (bit = 0; bit < 8 * count; bit++) {
		at[bit / 8] ^= 1 << bit % 8;
		assert_false(proven());
		at[bit / 8] ^= 1 << bit % 8;
	}
	assert_true(proven());
}

static void no_bit_may_change(void **state)
{
	(void)state;
	assert_no_bit_may_change(hello, sizeof(hello), accepted);
	assert_no_bit_may_change(hello, sizeof(hello), connected);
	assert_no_bit_may_change(key, sizeof(key), accepted);
	assert_no_bit_may_change(key, sizeof(key), connected);
	assert_no_bit_may_change(&challenge, sizeof(challenge), accepted);
	assert_no_bit_may_change(challenge.nonce, sizeof(challenge.nonce), connected);
	assert_no_bit_may_change(&proof, sizeof(proof), connected);
}

static void no_side_proves_itself_with_the_others_proof(void **state)
{
	struct coll_challenge reflected = challenge;

	(void)state;
	memcpy(proof.bytes, challenge.proof, sizeof(proof.bytes));
	assert_false(connected());
	coll_proof_make(&proof, &challenge, key, hello, sizeof(hello));
	memcpy(reflected.proof, proof.bytes, sizeof(reflected.proof));
	assert_false(coll_challenge_verify(&reflected, key, hello, sizeof(hello)));
}

static void a_recorded_proof_is_of_no_use(void **state)
{
	const struct coll_challenge recorded = challenge;

	(void)state;
	assert_true(coll_challenge_make(&challenge, key, hello, sizeof(hello)));
	assert_memory_not_equal(recorded.nonce, challenge.nonce, sizeof(recorded.nonce));
	assert_false(connected());		/* for the same hello, sent again */
	challenge = recorded;
	hello[0] ^= 1;				/* the connecting side's next nonce */
	assert_false(accepted());
}

static void keys_differ_by_secret_and_purpose(void **state)
{
	uint8_t other_secret[COLL_SECRET_BYTES] = { 1 }, other[COLL_KEY_BYTES];

	(void)state;
	coll_key_derive(other, secret, "test");
	assert_memory_equal(other, key, sizeof(key));
	coll_key_derive(other, secret, "tests");
	assert_memory_not_equal(other, key, sizeof(key));
	coll_key_derive(other, other_secret, "test");
	assert_memory_not_equal(other, key, sizeof(key));
	assert_memory_not_equal(key, secret, sizeof(key));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(both_sides_prove_themselves, shake),
		cmocka_unit_test_setup(no_bit_may_change, shake),
		cmocka_unit_test_setup(no_side_proves_itself_with_the_others_proof, shake),
		cmocka_unit_test_setup(a_recorded_proof_is_of_no_use, shake),
		cmocka_unit_test_setup(keys_differ_by_secret_and_purpose, shake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
