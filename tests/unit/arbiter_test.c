// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The order of messages on a link, counted in bytes: the bounds that arbiter.h states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/match.h"
#include "libcoll/link/arbiter.h"
#include "libcoll/link/link.h"
#include "libcoll/transport/transport.h"

enum { CHUNK = 65536, SMALL = 1000, MANY = 4000, BULKS = 3, CHUNKS = 20 };

static struct coll_context context;
static struct coll_group group = { .context = &context };
static struct coll_link link_, *const link = &link_;
static struct coll_message bulk[BULKS], small[MANY];
static int smalls;

static int begin(void **state)
{
	int i;

	(void)state;
	memset(bulk, 0, sizeof(bulk));
	memset(small, 0, sizeof(small));
	memset(&context, 0, sizeof(context));
	group.open_links = 0;
	coll_transport_begin(&context);
	context.options.link_chunk = CHUNK;
	strcpy(context.options.link_policy, "occupancy");
	coll_link_init(link, &group, 1);
	link->attached = true;
	smalls = 0;
	for (i = 0; i < BULKS; i++) {
		bulk[i].run_age = i;
		bulk[i].header = (struct coll_header){ .kind = COLL_MESSAGE_DATA,
						       .bytes = CHUNKS * (uint64_t)CHUNK };
	}
	return 0;
}

static void send_small(void)
{
	assert_true(smalls < MANY);
	small[smalls].header = (struct coll_header){ .kind = COLL_MESSAGE_DATA, .bytes = SMALL };
	coll_arbiter_queue(link, &small[smalls++]);
}

static bool is_small(const struct coll_message *message)
{
	return message >= small && message < small + MANY;
}

/* The engine's part: sends what is first, all of it or its next chunk. */
static struct coll_message *send_first(void)
{
	struct coll_message *message;
	uint64_t sent;

	coll_arbiter_begin(link, &link->queue);
	message = coll_arbiter_pop(link);
	if (is_small(message))
		return message;
	sent = coll_chunk_bytes(&message->header);
	assert_true(sent <= CHUNK);
	message->header.offset += sent;
	if (message->header.offset < message->header.bytes)
		coll_arbiter_requeue(link, message);
	coll_arbiter_chunk_sent(link, message->header.offset == message->header.bytes);
	return message;
}

/*
 * Small ones without end, one for each that goes: between two chunks no more than C
 * bytes of them, and the one that made it full.
 */
static void bulk_messages_do_not_starve(void **state)
{
	const uint64_t each = sizeof(struct coll_header) + SMALL;
	uint64_t overtaken = 0;
	int chunks = 0;

	(void)state;
	coll_arbiter_queue(link, &bulk[0]);
	send_small();
	while (chunks < CHUNKS) {
		if (is_small(send_first())) {
			overtaken += each;
			send_small();
		} else {
			overtaken = 0;
			chunks++;
		}
		assert_true(overtaken <= CHUNK + 2 * each);
	}
}

/* Bulk waits: a small one lets at most the chunk go that is under way. */
static void small_messages_go_first(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < BULKS; i++)
		coll_arbiter_queue(link, &bulk[i]);
	for (i = 0; i < BULKS * CHUNKS; i++) {
		assert_false(is_small(send_first()));
		send_small();
		assert_ptr_equal(send_first(), &small[i]);
	}
	assert_null(link->queue);
	assert_int_equal(context.counters.expedited, BULKS * CHUNKS - 1);
}

/* The oldest run's first and whole, though it was queued last. */
static void occupancy_sends_whole_messages(void **state)
{
	int i;

	(void)state;
	for (i = BULKS - 1; i >= 0; i--)
		coll_arbiter_queue(link, &bulk[i]);
	for (i = 0; i < BULKS * CHUNKS; i++)
		assert_ptr_equal(send_first(), &bulk[i / CHUNKS]);
}

static void rr_takes_turns(void **state)
{
	int i;

	(void)state;
	strcpy(context.options.link_policy, "rr");
	for (i = 0; i < BULKS; i++)
		coll_arbiter_queue(link, &bulk[i]);
	for (i = 0; i < BULKS * CHUNKS; i++)
		assert_ptr_equal(send_first(), &bulk[i % BULKS]);
}

/* The same chunks under every policy, the last of them at the same place. */
static void no_policy_sends_more(void **state)
{
	static const char *const policies[] = { "rr", "occupancy", "occupancy-hier" };
	unsigned int p;

	for (p = 0; p < sizeof(policies) / sizeof(*policies); p++) {
		int i, sent = 0;

		begin(state);
		strcpy(context.options.link_policy, policies[p]);
		for (i = 0; i < BULKS; i++)
			coll_arbiter_queue(link, &bulk[i]);
		for (; link->queue; sent++)
			send_first();
		assert_int_equal(sent, BULKS * CHUNKS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(bulk_messages_do_not_starve, begin),
		cmocka_unit_test_setup(small_messages_go_first, begin),
		cmocka_unit_test_setup(occupancy_sends_whole_messages, begin),
		cmocka_unit_test_setup(rr_takes_turns, begin),
		cmocka_unit_test_setup(no_policy_sends_more, begin),
	};

	return cmocka_run_group_tests_name("whose bytes go next", tests, NULL, NULL);
}
