// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A link by itself: a fake engine below it, a fake floor above it.
 * Length: all that comes and goes on one link.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "core/match.h"
#include "libcoll/engine/inject.h"
#include "libcoll/engine/memory_parts.h"
#include "libcoll/link/link.h"
#include "libcoll/transport/connection.h"
#include "libcoll/transport/own_connection.h"

enum { MESSAGES = 3, BYTES = 300, PEER = 1 };

static struct coll_context context;
static struct coll_flight_page flight_page;
static struct coll_group group;
static uint32_t world[] = { 0, PEER };
static struct coll_link *links[2], link_, *const link = &link_;
static struct coll_message message[MESSAGES];
static uint8_t payload[MESSAGES][BYTES], received[BYTES], reduced[BYTES], wire[4096];

/* ---- above: events of the link ------------------------------------------ */

static struct {
	int begun, ended, controls, lost, failed, closing, released;
	int error, up;
	bool needs, discards;
	bool reduces, in_pieces;	/* the floor above takes payload as it arrives */
	uint64_t reduced;		/* bytes of it */
	bool elsewhere;			/* some of them: not at their place */
	uint8_t kind;
	struct coll_message *sent[MESSAGES];
	int sents;
} told;

static void fake_begin(struct coll_link *from)
{
	assert_ptr_equal(from, link);
	told.begun++;
	from->target = told.discards ? NULL : received + from->header.offset;
	from->reduces = told.reduces;
	from->in_pieces = told.in_pieces;
}

static void fake_reduce(struct coll_link *from, const uint8_t *data, uint64_t bytes)
{
	assert_true(bytes && told.reduced + bytes <= BYTES);
	assert_ptr_equal(from->target, received + told.reduced);
	memcpy(reduced + told.reduced, data, bytes);
	told.reduced += bytes;
	told.elsewhere |= data != from->target;
}

static void fake_end(struct coll_link *from)
{
	assert_ptr_equal(from, link);
	told.ended++;
	from->target = NULL;
}

static struct coll_exec *fake_expect(struct coll_link *from, uint8_t **target, uint64_t *bytes)
{
	(void)from;
	(void)target;
	(void)bytes;
	return NULL;
}

static void fake_release(struct coll_exec *exec)
{
	(void)exec;
	told.released++;
}

static void fake_sent(struct coll_message *which)
{
	told.sent[told.sents++] = which;
}

static void fake_control(struct coll_link *from, const struct coll_header *header)
{
	(void)from;
	told.controls++;
	told.kind = header->kind;
}

static int fake_up(struct coll_link *from)
{
	(void)from;
	return told.up;
}

static void fake_closing(struct coll_link *from)
{
	(void)from;
	told.closing++;
}

static bool fake_needs(const struct coll_link *from)
{
	(void)from;
	return told.needs;
}

static void fake_lost(struct coll_link *from, int error, const char *reason)
{
	(void)reason;
	coll_link_set_state(from, LINK_LOST);
	told.lost++;
	told.error = error;
}

static void fake_failed(struct coll_group *which, int error, uint32_t failed_rank,
			uint32_t reporter, const char *reason)
{
	(void)which;
	(void)reporter;
	(void)reason;
	assert_int_equal(failed_rank, PEER);
	told.failed++;
	told.error = error;
}

static const struct coll_link_events events = {
	.begin = fake_begin,
	.reduce = fake_reduce,
	.end = fake_end,
	.expect = fake_expect,
	.release = fake_release,
	.sent = fake_sent,
	.control = fake_control,
	.up = fake_up,
	.closing = fake_closing,
	.needs = fake_needs,
	.lost = fake_lost,
	.failed = fake_failed,
};

/* ---- below: an engine that has no sockets ------------------------------------- */

static int detached;

static void fake_detach(struct coll_socket *socket)
{
	detached++;
	socket->ops->detached(socket);
}

static int fake_attach(struct coll_socket *socket)
{
	(void)socket;
	return 0;
}

static const struct coll_engine_ops engine = { .name = "fake", .attach = fake_attach,
					       .detach = fake_detach };

static int begin(void **state)
{
	int i, j;

	(void)state;
	memset(&context, 0, sizeof(context));
	memset(&group, 0, sizeof(group));
	memset(&told, 0, sizeof(told));
	memset(message, 0, sizeof(message));
	memset(received, 0, sizeof(received));
	detached = 0;
	context.events = &events;
	context.flight.page = &flight_page;
	context.transport = &coll_own_connection;
	context.engine.ops = &engine;
	context.engine.counters = &context.counters;
	context.engine.next_check = COLL_FOREVER;
	strcpy(context.options.link_policy, "occupancy");
	context.discard_buffer = malloc(SPECULATIVE_MAX);
	context.bounce_buffer = malloc(SPECULATIVE_MAX);
	assert_true(context.discard_buffer && context.bounce_buffer);
	group.context = &context;
	group.ranks = 2;
	group.world = world;
	group.links = links;
	coll_link_init(link, &group, PEER);
	links[PEER] = link;
	link->socket.ops = &coll_link_socket_ops;
	coll_link_set_state(link, LINK_UP);
	link->attached = true;
	for (i = 0; i < MESSAGES; i++) {
		for (j = 0; j < BYTES; j++)
			payload[i][j] = i * 91 + j;
		message[i].exec = (struct coll_exec *)&message[i]; /* the link only carries it */
		message[i].payload = payload[i];
		message[i].header = (struct coll_header){ .kind = COLL_MESSAGE_DATA,
							  .version = COLL_WIRE_VERSION,
							  .slot = i, .bytes = BYTES };
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(context.discard_buffer);
	free(context.bounce_buffer);
	return 0;
}

/* Takes at most `max` bytes off the link, as a socket that takes no more; returns how many. */
static uint64_t engine_send(uint8_t *to, uint64_t max)
{
	const struct coll_socket_ops *ops = link->socket.ops;
	struct iovec iov[COLL_SEND_IOV_MAX];
	uint64_t taken = 0;
	int i, count;

	count = ops->send_iov(&link->socket, iov, COLL_SEND_IOV_MAX);
	link->socket.sending = true;
	for (i = 0; i < count && taken < max; i++) {
		uint64_t part = iov[i].iov_len < max - taken ? iov[i].iov_len : max - taken;

		memcpy(to + taken, iov[i].iov_base, part);
		taken += part;
	}
	ops->sent(&link->socket, taken);
	return taken;
}

static uint64_t send_all(uint64_t max)
{
	uint64_t bytes = 0;

	while (link->socket.ops->wants_send(&link->socket))
		bytes += engine_send(wire + bytes, max);
	return bytes;
}

/* `bytes` of the wire come to where the link says, `max` at a time. */
static void receive_all(const uint8_t *from, uint64_t bytes, uint64_t max)
{
	const struct coll_socket_ops *ops = link->socket.ops;

	while (bytes && link->state == LINK_UP) {
		uint64_t got = 0, wanted = bytes < max ? bytes : max;
		struct iovec iov[2];
		bool whole;
		int count = ops->recv_iov(&link->socket, iov, &whole), i;

		link->socket.receiving = true;
		for (i = 0; i < count && got < wanted; i++) {
			uint64_t part = iov[i].iov_len < wanted - got ? iov[i].iov_len :
									wanted - got;

			memcpy(iov[i].iov_base, from + got, part);
			got += part;
		}
		if (count)
			ops->received(&link->socket, got);
		else
			ops->received_in(&link->socket, from, got = wanted);
		from += got;
		bytes -= got;
	}
}

/* The header that stands there on the wire, at any alignment. */
static struct coll_header header_at(const uint8_t *from)
{
	struct coll_header header;

	memcpy(&header, from, sizeof(header));
	return header;
}

/* ---- sending -------------------------------------------------------------------- */

/* However little a socket takes at a time, the bytes come in order, and all of them. */
static void messages_go_in_order_and_whole(void **state)
{
	const uint64_t each = sizeof(struct coll_header) + BYTES;
	uint64_t max;
	int i;

	for (max = 1; max < 3 * each; max = max * 2 + 5) {
		end(state);
		begin(state);
		for (i = 0; i < MESSAGES; i++)
			coll_link_send(link, &message[i]);
		assert_int_equal(send_all(max), MESSAGES * each);
		assert_int_equal(told.sents, MESSAGES);
		for (i = 0; i < MESSAGES; i++) {
			assert_ptr_equal(told.sent[i], &message[i]);
			assert_int_equal(header_at(wire + i * each).slot, i);
			assert_memory_equal(wire + i * each + sizeof(struct coll_header),
					    payload[i], BYTES);
		}
	}
}

static void nothing_is_sent_twice_at_once(void **state)
{
	(void)state;
	coll_link_send(link, &message[0]);
	link->socket.sending = true;
	assert_false(link->socket.ops->wants_send(&link->socket));
}

/* What is dropped is released: its memory is the floor's above again. */
static void a_dropped_queue_is_released(void **state)
{
	(void)state;
	coll_link_send(link, &message[0]);
	coll_link_send(link, &message[1]);
	engine_send(wire, 10);
	coll_link_drop_queue(link, true);
	assert_int_equal(told.sents, 1);
	assert_ptr_equal(told.sent[0], &message[1]);
	send_all(4096);
	assert_int_equal(told.sents, 2);
	assert_ptr_equal(told.sent[1], &message[0]);
}

/* ---- receiving ------------------------------------------------------------------ */

static void a_message_begins_and_ends_once(void **state)
{
	uint64_t max;

	for (max = 1; max < 700; max = max * 2 + 3) {
		end(state);
		begin(state);
		coll_link_send(link, &message[2]);
		receive_all(wire, send_all(4096), max);
		assert_int_equal(told.begun, 1);
		assert_int_equal(told.ended, 1);
		assert_memory_equal(received, payload[2], BYTES);
	}
}

/* Payload without a place is read and thrown away; the message behind it is whole. */
static struct coll_ring_shared shared;
static struct coll_memory below = { .in = { .shared = &shared } };

static struct coll_socket *some_memory(const struct coll_link *any)
{
	static struct coll_socket socket = { .memory = &below };

	(void)any;
	return &socket;
}

static bool some_reading(struct coll_link *any, uint32_t slot)
{
	coll_memory_took_published(some_memory(any), slot);
	return true;
}

/*
 * What is reduced comes in order and whole. Through memory it is not written to its place, but
 * where short receives are injected, which have none but that.
 */
static void payload_is_reduced_as_it_arrives(void **state)
{
	const struct coll_transport memory = { .memory = some_memory };
	struct coll_short_io short_io = { .random = 1, .probability = 0.5 };
	const uint8_t nothing[BYTES] = { 0 };
	uint64_t max, way, bytes;
	bool in_place = false;

	for (max = 1; max < 700; max = max * 2 + 3)
		for (way = 0; way < 4; way++) {
			end(state);
			begin(state);
			told.reduces = true;
			told.in_pieces = way;
			memset(reduced, 0, sizeof(reduced));
			coll_link_send(link, &message[1]);
			bytes = send_all(4096);
			link->transport = way > 1 ? &memory : &coll_own_connection;
			link->socket.engine->short_io = way > 2 ? &short_io : NULL;
			receive_all(wire, bytes, max);
			assert_int_equal(told.ended, 1);
			assert_int_equal(told.reduced, BYTES);
			assert_memory_equal(reduced, payload[1], BYTES);
			assert_int_equal(context.counters.copied_bytes, 0);
			if (way == 2)
				assert_memory_equal(received, nothing, BYTES);
			in_place |= !told.elsewhere;
		}
	assert_true(in_place);
}

static void a_stale_message_touches_nothing(void **state)
{
	uint64_t bytes;

	(void)state;
	coll_link_send(link, &message[1]);
	bytes = send_all(4096);
	told.discards = true;
	receive_all(wire, bytes, 50);
	assert_int_equal(told.ended, 1);
	assert_int_equal(received[1], 0);
	told.discards = false;
	receive_all(wire, bytes, 50);
	assert_int_equal(told.ended, 2);
	assert_memory_equal(received, payload[1], BYTES);
}

static void control_messages_go_up(void **state)
{
	(void)state;
	assert_int_equal(coll_link_control(link, COLL_MESSAGE_PING, 7, 8, 9), 0);
	receive_all(wire, send_all(4096), 4096);
	assert_int_equal(told.controls, 1);
	assert_int_equal(told.kind, COLL_MESSAGE_PING);
	assert_int_equal(told.begun, 0);
}

/* The module's own, in the stream of a link that it has given back: nothing follows. */
static void an_offer_is_passed_over(void **state)
{
	const struct coll_header offer = { .kind = COLL_MESSAGE_OFFER,
					   .version = COLL_WIRE_VERSION, .bytes = 1 << 20 };

	(void)state;
	memcpy(wire, &offer, sizeof(offer));
	receive_all(wire, sizeof(offer), 4096);
	coll_link_send(link, &message[1]);
	receive_all(wire, send_all(4096), 4096);
	assert_int_equal(told.controls, 0);
	assert_int_equal(told.begun, 1);
	assert_memory_equal(received, payload[1], BYTES);
	assert_int_equal(told.failed, 0);
}

/* ---- publications (libcoll/link/published.h) -------------------------------------- */

/* A chunk of message 1 that the peer has published in this slot. Bytes of the wire. */
static uint64_t publication(uint32_t slot, uint32_t offset)
{
	const struct coll_header header = { .kind = COLL_MESSAGE_PUBLISHED,
					    .version = COLL_WIRE_VERSION, .bytes = BYTES };
	const struct coll_published_place place = { .slot = slot, .offset = offset };

	memcpy(wire, &header, sizeof(header));
	memcpy(wire + sizeof(header), &place, sizeof(place));
	return sizeof(header) + sizeof(place);
}

static void what_is_published_is_read_there(void **state)
{
	static uint8_t area[2 * COLL_SLOT_BYTES + 4096];
	struct coll_transport memory = coll_own_connection;
	uint64_t max, way;

	memory.memory = some_memory;
	memory.read_published = some_reading;
	memcpy(area + COLL_SLOT_BYTES + 40, payload[1], BYTES);
	for (way = 0; way < 3; way++)
		for (max = 1; max < 50; max++) {
			end(state);
			begin(state);
			told.reduces = way == 1;
			told.discards = way == 2;
			told.reduced = 0;
			below.regions.area = (struct coll_region){ area, sizeof(area) };
			shared.published.read[1] = 0;
			link->transport = &memory;
			receive_all(wire, publication(1, 40), max);
			assert_int_equal(told.begun, 1);
			assert_int_equal(told.ended, 1);
			assert_int_equal(shared.published.read[1], 1);
			assert_memory_equal(way == 1 ? reduced : way ? payload[1] : received,
					    payload[1], BYTES);
			told.reduced = 0;
			link->transport = &coll_own_connection;
			coll_link_send(link, &message[1]);
			receive_all(wire, send_all(4096), max);
			assert_int_equal(told.ended, 2);
		}
	below.regions.area = (struct coll_region){ NULL, 0 };
}

/*
 * By a socket there is none; nor in a slot that is not there, beyond its end, or that was used again since; nor one
 * that says more than this version knows.
 */
static void a_publication_that_is_none_fails_the_group(void **state)
{
	static uint8_t area[COLL_SLOT_BYTES + 4096];
	struct coll_transport memory = coll_own_connection;
	int way;

	memory.memory = some_memory;
	for (way = 0; way < 6; way++) {
		uint64_t bytes;

		end(state);
		begin(state);
		area[COLL_SLOT_BYTES] = way == 4;
		below.regions.area = (struct coll_region){ area, way == 1 ? 0 : sizeof(area) };
		link->transport = way ? &memory : &coll_own_connection;
		bytes = publication(way == 2, way == 3 ? COLL_SLOT_BYTES - 1 : 0);
		wire[bytes - 1] = way == 5;
		receive_all(wire, bytes, 4096);
		assert_int_equal(told.failed, 1);
		assert_int_equal(told.error, -EPROTO);
		assert_int_equal(told.begun - told.ended, way == 4);
		assert_int_equal(link->state, LINK_CLOSED);
	}
	below.regions.area = (struct coll_region){ NULL, 0 };
}

static void what_is_no_message_fails_the_group(void **state)
{
	(void)state;
	memset(wire, 0xff, sizeof(wire));
	receive_all(wire, sizeof(struct coll_header), 4096);
	assert_int_equal(told.failed, 1);
	assert_int_equal(told.error, -EPROTO);
	assert_int_equal(link->state, LINK_CLOSED);
	assert_int_equal(detached, 1);
}

/* ---- ends ------------------------------------------------------------------------- */

static void a_loss_is_told_once(void **state)
{
	(void)state;
	told.needs = true;
	link->socket.ops->received(&link->socket, 0);
	link->socket.ops->received(&link->socket, 0);
	assert_int_equal(told.lost, 1);
	assert_int_equal(told.error, -ECONNRESET);
	assert_int_equal(link->state, LINK_LOST);
}

/* A peer that is not needed, and that never sent anything, may have ended. */
static void an_end_that_harms_nobody_is_no_loss(void **state)
{
	(void)state;
	link->socket.ops->received(&link->socket, 0);
	assert_int_equal(told.lost, 0);
	assert_int_equal(told.closing, 1);
	assert_int_equal(link->state, LINK_CLOSED);
	assert_int_equal(detached, 1);
	assert_int_equal(group.open_links, 0);
}

/* A goodbye goes behind what is queued, and only once. */
static void a_goodbye_goes_last(void **state)
{
	const uint64_t each = sizeof(struct coll_header) + BYTES;

	(void)state;
	coll_link_send(link, &message[0]);
	coll_link_leave(link);
	coll_link_leave(link);
	assert_int_equal(send_all(100), each + sizeof(struct coll_header));
	assert_int_equal(header_at(wire + each).kind, COLL_MESSAGE_BYE);
	assert_true(link->leaving);
}

/* The engine has the descriptor by then: the link is lost, and the descriptor stays open. */
static void a_refused_connection_is_lost_once(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	coll_link_init(link, &group, PEER);
	told.needs = true;
	told.up = -EOPNOTSUPP;
	assert_int_equal(coll_own_connection_attach(link, 0, &(struct coll_connected){ .fd = fds[0] }), 0);
	assert_int_equal(told.lost, 1);
	assert_int_equal(link->state, LINK_LOST);
	assert_int_equal(detached, 0);
	assert_int_equal(link->socket.fd, fds[0]);
	assert_true(fcntl(fds[0], F_GETFD) >= 0);
	coll_link_close(link);
	assert_int_equal(detached, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(messages_go_in_order_and_whole, begin, end),
		cmocka_unit_test_setup_teardown(nothing_is_sent_twice_at_once, begin, end),
		cmocka_unit_test_setup_teardown(a_dropped_queue_is_released, begin, end),
		cmocka_unit_test_setup_teardown(a_message_begins_and_ends_once, begin, end),
		cmocka_unit_test_setup_teardown(payload_is_reduced_as_it_arrives, begin, end),
		cmocka_unit_test_setup_teardown(a_stale_message_touches_nothing, begin, end),
		cmocka_unit_test_setup_teardown(control_messages_go_up, begin, end),
		cmocka_unit_test_setup_teardown(an_offer_is_passed_over, begin, end),
		cmocka_unit_test_setup_teardown(what_is_published_is_read_there, begin, end),
		cmocka_unit_test_setup_teardown(a_publication_that_is_none_fails_the_group, begin, end),
		cmocka_unit_test_setup_teardown(what_is_no_message_fails_the_group, begin, end),
		cmocka_unit_test_setup_teardown(a_loss_is_told_once, begin, end),
		cmocka_unit_test_setup_teardown(an_end_that_harms_nobody_is_no_loss, begin, end),
		cmocka_unit_test_setup_teardown(a_goodbye_goes_last, begin, end),
		cmocka_unit_test_setup_teardown(a_refused_connection_is_lost_once, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
