// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Shared connections by themselves (tests/lib/two_sides.h), plain and sealed
 * (libcoll/transport/seal.h); an attacker may change what is on the wire.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/link/groups.h"
#include "libcoll/transport/arrival.h"
#include "tests/lib/two_sides.h"
static bool sealed;

static int begin(void **state)
{
	int i;

	(void)state;
	memset(received, 0, sizeof(received));
	for (i = 0; i < BYTES; i++)
		payload[i] = i * 7 + i / 251;
	sides_begin(sealed);
	return 0;
}

static int end(void **state)
{
	int i, k;

	(void)state;
	for (i = 0; i < SIDES; i++)
		for (k = 0; k < GROUPS; k++)
			assert_int_equal(told[i][k].failed, 0);
	sides_end();
	return 0;
}

/* ---- tests ---------------------------------------------------------------------- */

/* Whatever the socket takes and gives at a time, all messages of all links arrive. */
static void messages_of_all_links_arrive(void **state)
{
	uint64_t max;
	int k;

	for (max = 1; max < 300000; max = max * 9 + 5) {
		end(state);
		begin(state);
		for (k = 0; k < GROUPS; k++) {
			expect_from(1, k, 2);
			expect_from(0, k, 1);
			send_from(0, k, 0, 2);
			send_from(1, k, 0, 1);
		}
		sides_move(max);
		for (k = 0; k < GROUPS; k++) {
			assert_int_equal(told[1][k].ended, 2);
			assert_int_equal(told[0][k].ended, 1);
			assert_int_equal(told[0][k].sent, 2);
			assert_memory_equal(received[1][k], payload, BYTES);
			assert_memory_equal(received[0][k], payload, BYTES);
		}
	}
}

/* A link that is not read keeps no other waiting, and its peer sends only so much ahead. */
static void no_link_waits_for_another(void **state)
{
	const struct coll_channel *channel;

	(void)state;
	send_from(0, 0, 0, MESSAGES);
	expect_from(1, 1, MESSAGES);
	send_from(0, 1, 0, MESSAGES);
	sides_move(WIRE);
	assert_int_equal(told[1][1].ended, MESSAGES);
	assert_int_equal(told[1][0].ended, 0);
	channel = link_at(1, 0)->channel;
	assert_true(channel->held_bytes > 0);
	assert_true(channel->held_bytes <= CHANNEL_WINDOW_IDLE);
	assert_true(told[0][0].sent < MESSAGES);
	expect_from(1, 0, MESSAGES);
	sides_move(WIRE);
	assert_int_equal(told[1][0].ended, MESSAGES);
	assert_int_equal(told[0][0].sent, MESSAGES);
	assert_int_equal(channel->held_bytes, 0);
}

/* What the peer of a link may send ahead, which exchanges through memory with so many ranks here. */
static uint64_t granted_among(void **state, int32_t ranks, bool limited)
{
	static uint8_t memory;
	struct coll_channel *channel;
	struct coll_mux *mux;

	end(state);
	begin(state);
	mux = side[1].context.muxes;
	channel = link_at(1, 0)->channel;
	side[1].boot.local_ranks = ranks;
	side[1].context.memory_is_limited = limited;
	expect_from(1, 0, 1);
	send_from(1, 0, 0, 1);
	mux->socket.memory = (struct coll_memory *)&memory;	/* nothing looks into it */
	mux->ops->grant(channel);
	mux->socket.memory = NULL;
	return channel->window;
}

/* Two exchange with long strides; a late rank of many does not hold as much of each. */
static void those_who_exchange_divide_what_is_held(void **state)
{
	assert_int_equal(granted_among(state, 2, false), CHANNEL_WINDOW_LONG);
	assert_int_equal(granted_among(state, 0, false), CHANNEL_WINDOW_LONG);	/* the job has two */
	assert_int_equal(granted_among(state, 8, false), CHANNEL_WINDOW_LONG / 2);
	assert_int_equal(granted_among(state, 64, false), CHANNEL_WINDOW);
	assert_int_equal(granted_among(state, 2, true), CHANNEL_WINDOW);
}

/* What is under way when a link is closed: the others' bytes are whole, its memory is free. */
static void a_closed_link_harms_no_other(void **state)
{
	static uint8_t own[BYTES];
	struct coll_mux *mux;
	uint64_t cut;

	for (cut = 1; cut < BYTES + 100; cut = cut * 3 + 1) {
		end(state);
		begin(state);
		mux = side[0].context.muxes;
		expect_from(1, 0, 1);
		expect_from(1, 1, 1);
		memcpy(own, payload, BYTES);
		message[0][0][0].payload = own;
		send_from(0, 0, 0, 1);
		coll_socket_untouch(&mux->socket);
		assert_true(mux->socket.ops->wants_send(&mux->socket));
		send_from(0, 1, 0, 1);
		sides_send(&side[0], &mux->socket, cut);
		coll_link_close(link_at(0, 0));
		assert_int_equal(told[0][0].sent, 1);
		memset(own, 0x55, BYTES);	/* it is the caller's again */
		sides_move(WIRE);
		assert_int_equal(told[1][1].ended, 1);
		assert_memory_equal(received[1][1], payload, BYTES);
		/* The peer got what was under way, as it was. */
		assert_memory_equal(received[1][0], payload, BYTES);
		assert_int_equal(told[0][1].lost + told[1][1].lost, 0);
		assert_int_equal(link_at(0, 1)->state, LINK_UP);
	}
}

/* The receiver gives up a link in the midst of a message. */
static void a_receiver_may_close(void **state)
{
	uint64_t max = 1000;
	int i;

	(void)state;
	expect_from(1, 0, 1);
	send_from(0, 0, 0, 2);
	for (i = 0; i < 5; i++) {
		struct coll_mux *from = side[0].context.muxes, *to = side[1].context.muxes;

		if (from->socket.ops->wants_send(&from->socket))
			sides_send(&side[0], &from->socket, max);
		if (to->socket.receiving || to->socket.ops->wants_recv(&to->socket))
			sides_recv(&side[1], &to->socket, max);
	}
	coll_link_close(link_at(1, 0));
	memset(received[1][0], 0, BYTES);
	expect_from(1, 1, 1);
	send_from(0, 1, 0, 1);
	sides_move(WIRE);
	assert_int_equal(told[1][1].ended, 1);
	assert_memory_equal(received[1][1], payload, BYTES);
	for (i = 0; i < BYTES; i++)		/* nothing came to its memory since */
		assert_int_equal(received[1][0][i], 0);
}

/* A connection that ends is the end of all its links that need something. */
static void all_links_are_lost_with_it(void **state)
{
	struct coll_mux *mux = side[1].context.muxes;
	int k;

	(void)state;
	for (k = 0; k < GROUPS; k++) {
		expect_from(1, k, 1);
		link_at(1, k)->heard = true;
	}
	coll_mux_lost(mux, -ECONNRESET);
	for (k = 0; k < GROUPS; k++)
		assert_int_equal(told[1][k].lost, 1);
}

/* A peer that has closed may have told why before: that is read, though nobody waits for it. */
static void what_came_is_read_before_a_broken_send_counts(void **state)
{
	struct coll_mux *from = side[0].context.muxes, *mux = side[1].context.muxes;
	struct iovec iov[COLL_SEND_IOV_MAX];

	(void)state;
	expect_from(1, 0, 1);
	send_from(0, 0, 0, 1);
	assert_true(from->socket.ops->wants_send(&from->socket));
	sides_send(&side[0], &from->socket, WIRE);
	link_at(1, 0)->whole->expected = 0;	/* it only sends */
	mux->last_read = coll_now() + COLL_SECOND;
	send_from(1, 0, 0, 1);
	assert_true(mux->socket.ops->wants_send(&mux->socket));
	mux->socket.ops->send_iov(&mux->socket, iov, COLL_SEND_IOV_MAX);
	mux->socket.sending = true;
	mux->socket.ops->sent(&mux->socket, -EPIPE);
	assert_int_equal(mux->state, MUX_UP);
	assert_false(mux->socket.ops->wants_send(&mux->socket));
	while (side[1].read < side[1].written) {
		assert_true(mux->socket.receiving ||
			    mux->socket.ops->wants_recv(&mux->socket));
		sides_recv(&side[1], &mux->socket, WIRE);
	}
	assert_int_equal(told[1][0].ended, 1);
	assert_int_equal(told[1][0].lost, 0);
	mux->socket.ops->received_in(&mux->socket, NULL, 0);
	assert_int_equal(mux->state, MUX_ENDED);
	assert_int_equal(mux->error, -EPIPE);
	assert_int_equal(told[1][0].lost, 1);
}

/* Nor is anybody blamed for what this rank lacks, whether bytes are under way or wait. */
static void a_lack_of_memory_is_not_the_peers_end(void **state)
{
	struct coll_mux *mux = side[1].context.muxes;
	int k;

	(void)state;
	send_from(1, 0, 0, 1);
	send_from(1, 1, 0, 1);
	assert_true(mux->socket.ops->wants_send(&mux->socket));
	sides_send(&side[1], &mux->socket, 100);
	coll_mux_lost(mux, -ENOMEM);
	for (k = 0; k < 2; k++) {
		assert_int_equal(told[1][k].lost, 0);
		assert_true(told[1][k].failed);
		told[1][k].failed = 0;
	}
}

static void receive_garbage(const void *bytes, uint64_t count)
{
	struct coll_mux *mux = side[1].context.muxes;

	memcpy(side[1].wire, bytes, count);
	side[1].written = count;
	if (!mux->socket.receiving)
		expect_from(1, 0, 1);
	while (side[1].read < side[1].written && mux->state == MUX_UP)
		sides_recv(&side[1], &mux->socket, WIRE);
	side[1].read = side[1].written = 0;
}

/* A peer that breaks the protocol loses its connection. */
static void broken_rules_end_the_connection(void **state)
{
	const struct { struct coll_frame header; struct coll_channel_control control; } cases[] = {
		{ { 0, 0 }, { 0 } },
		{ { 0, 5 }, { 0 } },
		{ { 1, 0 }, { 0 } },
		{ { 1, COLL_CHANNEL_FIRST + CHANNEL_WINDOW }, { 0 } },
		{ { 0, sizeof(struct coll_channel_control) }, { .kind = 9 } },
		/* of a channel that this side does not know, too */
		{ { 0, sizeof(struct coll_channel_control) }, { .kind = 0, .channel = 77 } },
		{ { 0, sizeof(struct coll_channel_control) }, { .kind = 9, .channel = 77 } },
		/* fields that the kind has no use for */
		{ { 0, sizeof(struct coll_channel_control) },
		  { .kind = COLL_CHANNEL_END, .channel = 77, .value = 1 } },
		{ { 0, sizeof(struct coll_channel_control) },
		  { .kind = COLL_CHANNEL_RESET, .channel = 77, .streams = 1 } },
		{ { 0, sizeof(struct coll_channel_control) },
		  { .kind = COLL_CHANNEL_WINDOW, .channel = 77, .stream = 1 } },
		{ { 0, sizeof(struct coll_channel_control) },
		  { .kind = COLL_CHANNEL_ASK, .channel = 77, .value = 10 } },
		{ { 0, sizeof(struct coll_channel_control) }, { .kind = 2, .zero = 1 } },
		{ { 0, sizeof(struct coll_channel_control) }, { .kind = 2, .unused = 1 } },
		{ { 0, sizeof(struct coll_channel_control) },	/* a number of the other side */
		  { .kind = COLL_CHANNEL_OPEN, .channel = 2, .value = 99 } },
		{ { 0, sizeof(struct coll_channel_control) },	/* one that exists */
		  { .kind = COLL_CHANNEL_OPEN, .channel = 1, .value = 99 } },
		{ { 0, sizeof(struct coll_channel_control) },	/* a stream on the wrong connection */
		  { .kind = COLL_CHANNEL_OPEN, .channel = 99, .stream = 1, .value = 99 } },
		{ { 0, sizeof(struct coll_channel_control) },
		  { .kind = COLL_CHANNEL_WINDOW, .channel = 1, .value = UINT64_MAX } },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		end(state);
		begin(state);
		receive_garbage(&cases[i], sizeof(cases[i]));
		assert_int_equal(side[1].context.muxes->state, MUX_ENDED);
	}
}

/* A peer that asks without end and reads no answer loses its connection. */
static void unread_answers_are_bounded(void **state)
{
	enum { ASKS = 1 << 16, BOUND = 16 << 20 };
	static struct { struct coll_frame header; struct coll_channel_control control; } asks[ASKS];
	const struct coll_mux *mux = side[1].context.muxes;
	int i;

	(void)state;
	_Static_assert(sizeof(asks) <= WIRE, "they are on the wire at once");
	for (i = 0; i < ASKS; i++) {
		asks[i].header.bytes = sizeof(asks[i].control);
		asks[i].control.kind = COLL_CHANNEL_ASK;
		asks[i].control.value = 10;
	}
	for (i = 0; mux->state == MUX_UP && i < 10; i++) {
		receive_garbage(asks, sizeof(asks));
		assert_in_range(mux->control_capacity, 0, BOUND);
	}
	assert_int_equal(mux->state, MUX_ENDED);
	assert_int_equal(mux->error, -EPROTO);
}

/* A channel of a rank that the sender is not is refused; others go on. */
static void nobody_speaks_for_another_rank(void **state)
{
	const struct { struct coll_frame header; struct coll_channel_control control; } lie = {
		{ 0, sizeof(struct coll_channel_control) },
		{ .kind = COLL_CHANNEL_OPEN, .channel = 101, .value = 10, .from = 1, .to = 1 },
	};

	(void)state;
	receive_garbage(&lie, sizeof(lie));
	assert_int_equal(side[1].context.muxes->state, MUX_UP);
	assert_null(coll_mux_find(side[1].context.muxes, 101));
	assert_int_equal(side[1].context.counters.refused, 1);
}

/* A message of a group that does not exist yet on side 1 is on its way. Returns the group. */
static struct coll_group *come_early(void **state)
{
	struct coll_group *late = &side[1].group[0];

	end(state);
	begin(state);
	coll_link_close(link_at(0, 0));
	coll_link_close(link_at(1, 0));
	free(link_at(0, 0));
	free(link_at(1, 0));
	side[0].links[0][1] = side[1].links[0][0] = NULL;
	coll_groups_remove(late);			/* it does not exist yet */
	coll_link_open(coll_link_get(&side[0].group[0], 1));
	message[0][0][0].exec = (struct coll_exec *)link_at(0, 0);
	send_from(0, 0, 0, 1);
	side[1].context.attentive = true;
	return late;
}

/* A channel may come before its group; what came with it is not lost. */
static void a_channel_waits_for_its_group(void **state)
{
	struct coll_group *late = come_early(state);

	sides_move(WIRE);
	assert_non_null(side[1].context.arrivals);
	assert_in_range(side[1].context.arrivals_bytes, COLL_CHANNEL_FIRST, 2 * COLL_CHANNEL_FIRST);
	assert_int_equal(coll_groups_add(late), 0);
	coll_arrivals_adopt(late);
	assert_null(side[1].context.arrivals);
	assert_int_equal(side[1].context.arrivals_bytes, 0);
	assert_non_null(link_at(1, 0));
	expect_from(1, 0, 1);
	sides_move(WIRE);
	assert_int_equal(told[1][0].ended, 1);
}

/* Its first bytes are too many, and none that wait hold more: it is gone, and the connection goes on. */
static void a_channel_may_be_refused_as_it_receives(void **state)
{
	struct coll_group *late = come_early(state);

	side[1].context.arrivals_bytes = 256 << 20;
	sides_move(WIRE);
	assert_null(side[1].context.arrivals);
	assert_int_equal(side[1].context.arrivals_bytes, 256 << 20);
	assert_int_equal(side[1].context.counters.refused, 1);
	assert_int_equal(coll_groups_add(late), 0);
	expect_from(1, 1, 1);
	send_from(0, 1, 0, 1);
	sides_move(WIRE);
	assert_int_equal(told[1][1].ended, 1);
}

/* ---- sealed connections ------------------------------------------------------------ */

static int begin_sealed(void **state)
{
	sealed = true;
	return begin(state);
}

static int end_sealed(void **state)
{
	const int error = end(state);

	sealed = false;
	return error;
}

/* One message of each link of side 0 is on the wire to side 1, which has read nothing of it. */
static void fill_wire(void **state)
{
	int i, k;

	end(state);
	begin(state);
	for (k = 0; k < GROUPS; k++)
		expect_from(1, k, 1);
	sides_move(WIRE);
	for (k = 0; k < GROUPS; k++)
		send_from(0, k, 0, 1);
	for (i = 0; i < 100; i++) {
		struct coll_socket *socket = &side[0].context.muxes->socket;

		coll_socket_untouch(socket);
		if (socket->ops->wants_send(socket))
			sides_send(&side[0], socket, WIRE);
	}
	assert_true(side[1].written > GROUPS * BYTES);
}

/* What an attacker did harms nobody's bytes: those that came are right, then all links end. */
static void assert_refused(void)
{
	int k, i;

	sides_move(WIRE);
	for (k = 0; k < GROUPS; k++) {
		assert_true(told[1][k].ended <= 1);
		for (i = 0; i < BYTES; i++)
			assert_true(received[1][k][i] == payload[i] || !received[1][k][i]);
		if (told[1][k].ended)
			assert_memory_equal(received[1][k], payload, BYTES);
	}
	assert_int_equal(side[1].context.muxes->state, MUX_ENDED);
	assert_int_equal(side[1].context.muxes->error, -EBADMSG);
	assert_true(told[1][0].lost + told[1][1].lost + told[1][2].lost > 0);
}

/* Sizes of the records on the wire to side 1; returns how many. */
static int records_of(uint64_t *begin_of, int max)
{
	const struct side *s = &side[1];
	uint64_t at = s->read;
	int count = 0;

	while (at < s->written && count < max) {
		begin_of[count++] = at;
		at += 5 + (s->wire[at + 3] << 8 | s->wire[at + 4]);
	}
	assert_int_equal(at, s->written);
	begin_of[count] = at;
	return count;
}

static void no_changed_bit_passes(void **state)
{
	uint64_t at;
	int trial;

	srand(1);
	for (trial = 0; trial < 400; trial++) {
		fill_wire(state);
		at = side[1].read + (trial < 100 ? (uint64_t)trial :
					(uint64_t)rand() % (side[1].written - side[1].read));
		side[1].wire[at] ^= 1 << rand() % 8;
		if (trial < 100 && at - side[1].read < 5)	/* a length that was changed: more comes */
			memset(side[1].wire + side[1].written, 7, 70000), side[1].written += 70000;
		assert_refused();
	}
}

static void no_record_is_left_out_moved_or_repeated(void **state)
{
	static uint8_t kept[WIRE];
	uint64_t begin_of[200];
	int what, count, i;

	for (what = 0; what < 3; what++)
		for (i = 0; i < 10; i++) {
			struct side *s = &side[1];
			uint64_t at, next, end_of_next;

			fill_wire(state);
			count = records_of(begin_of, 199);
			assert_true(count > 12);
			at = begin_of[i], next = begin_of[i + 1], end_of_next = begin_of[i + 2];
			memcpy(kept, s->wire, s->written);
			if (what == 0) {		/* left out */
				memcpy(s->wire + at, kept + next, s->written - next);
				s->written -= next - at;
			} else if (what == 1) {		/* the next one first */
				memcpy(s->wire + at, kept + next, end_of_next - next);
				memcpy(s->wire + at + end_of_next - next, kept + at, next - at);
			} else {			/* again */
				memcpy(s->wire + next, kept + at, s->written - at);
				s->written += next - at;
			}
			assert_refused();
		}
}

/* What one side has sealed cannot be sent back to it. */
static void nothing_is_sent_back(void **state)
{
	fill_wire(state);
	memcpy(side[0].wire + side[0].written, side[1].wire + side[1].read, 40000);
	side[0].written += 40000;
	expect_from(0, 0, 1);
	sides_move(WIRE);
	assert_int_equal(side[0].context.muxes->error, -EBADMSG);
}

static void the_wire_shows_nothing(void **state)
{
	static const char secret[] = "these words are on no wire";

	memcpy(payload + 500, secret, sizeof(secret));
	fill_wire(state);
	memcpy(payload + 500, secret, sizeof(secret));
	assert_null(memmem(side[1].wire, side[1].written, secret, sizeof(secret) - 1));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(messages_of_all_links_arrive, begin, end),
		cmocka_unit_test_setup_teardown(no_link_waits_for_another, begin, end),
		cmocka_unit_test_setup_teardown(those_who_exchange_divide_what_is_held, begin, end),
		cmocka_unit_test_setup_teardown(a_closed_link_harms_no_other, begin, end),
		cmocka_unit_test_setup_teardown(a_receiver_may_close, begin, end),
		cmocka_unit_test_setup_teardown(all_links_are_lost_with_it, begin, end),
		cmocka_unit_test_setup_teardown(
			what_came_is_read_before_a_broken_send_counts, begin, end),
		cmocka_unit_test_setup_teardown(a_lack_of_memory_is_not_the_peers_end, begin, end),
		cmocka_unit_test_setup_teardown(broken_rules_end_the_connection, begin, end),
		cmocka_unit_test_setup_teardown(unread_answers_are_bounded, begin, end),
		cmocka_unit_test_setup_teardown(nobody_speaks_for_another_rank, begin, end),
		cmocka_unit_test_setup_teardown(a_channel_waits_for_its_group, begin, end),
		cmocka_unit_test_setup_teardown(a_channel_may_be_refused_as_it_receives, begin, end),
#define SEALED(test) { #test " (sealed)", test, begin_sealed, end_sealed, NULL }
		SEALED(messages_of_all_links_arrive),
		SEALED(no_link_waits_for_another),
		SEALED(a_closed_link_harms_no_other),
		SEALED(a_receiver_may_close),
		SEALED(all_links_are_lost_with_it),
		SEALED(a_channel_waits_for_its_group),
		SEALED(no_changed_bit_passes),
		SEALED(no_record_is_left_out_moved_or_repeated),
		SEALED(nothing_is_sent_back),
		SEALED(the_wire_shows_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
