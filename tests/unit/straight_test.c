// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Messages that a link takes straight from memory: only the one that is looked for, whole, and
 * next. What is not taken comes as ever, and a hostile peer gains nothing. And publications: those that no
 * link reads, and those that wait until their link reads them, one after the other.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "core/match.h"
#include "libcoll/engine/memory.h"
#include "libcoll/engine/memory_parts.h"
#include "libcoll/transport/mux_parts.h"
#include "tests/lib/two_sides.h"

enum { SIZE = 16 << 10, SHORT = 24 };

static struct coll_mux *mux;
static struct coll_ring peer;		/* what side 1 receives, it writes */
static enum coll_look found;		/* by the latest look */
static struct coll_link *mine;		/* of side 1 */

/* Links of side 1 await so many messages more, and the mux knows that they do. */
static void expect(int group, int messages)
{
	expect_from(1, group, messages);
	coll_mux_serve_touched(mux);
}

/* Side 1 receives from memory from now on. */
static int begin(void **state)
{
	const size_t bytes = coll_memory_bytes(SIZE);
	uint8_t *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)state;
	memset(received, 0, sizeof(received));
	sides_begin(false);
	mux = side[1].context.muxes;
	mine = link_at(1, 0);
	mux->socket.memory = coll_memory_make(map, SIZE, true);
	mux->socket.memory->socket = &mux->socket;
	coll_exposed_attach(&mux->socket.memory->exposed_in, &mux->socket.memory->in, 0);
	mux->socket.receiving = false;	/* from the wire */
	mux->socket.engine->memories = mux->socket.memory;
	coll_ring_init(&peer, map + bytes / 2, SIZE);
	expect(0, 1);
	return 0;
}

static int end(void **state)
{
	(void)state;
	mux->socket.engine->memories = NULL;
	mux->socket.memory->regions.area = (struct coll_region){ .base = NULL };
	coll_memory_free(mux->socket.memory);
	mux->socket.memory = NULL;
	sides_end();
	return 0;
}

static struct coll_header header_of(uint64_t bytes)
{
	return (struct coll_header){ .kind = COLL_MESSAGE_DATA, .version = COLL_WIRE_VERSION,
				     .run = 3, .slot = 1, .hash = 77, .bytes = bytes };
}

static void put(const void *data, size_t bytes)
{
	const struct iovec iov = { (void *)data, bytes };

	assert_int_equal(coll_ring_write(&peer, &iov, 1), bytes);
}

/* A frame of the link's channel with so many bytes. */
static void put_frame(uint32_t bytes)
{
	const struct coll_frame frame = { .channel = mine->channel->number, .bytes = bytes };

	put(&frame, sizeof(frame));
}

static void put_message(const struct coll_header *header)
{
	put_frame(sizeof(*header) + header->bytes);
	put(header, sizeof(*header));
	put(payload, header->bytes);
}

static const uint8_t *look(uint64_t bytes)
{
	const struct coll_header header = header_of(bytes);
	const uint8_t *data;

	found = mine->transport->look(mine, &header, &data);
	return found == COLL_LOOK_MESSAGE ? data : NULL;
}

static void took(uint64_t bytes)
{
	const struct coll_header header = header_of(bytes);

	mine->transport->took(mine, &header);
}

static void the_next_message_is_taken(void **state)
{
	const struct coll_header header = header_of(SHORT);
	const uint8_t *data;

	(void)state;
	mine->channel->window = CHANNEL_WINDOW;	/* enough: nothing is granted */
	assert_null(look(SHORT));
	assert_int_equal(found, COLL_LOOK_NOTHING);
	put_message(&header);
	data = look(SHORT);
	assert_non_null(data);
	assert_memory_equal(data, payload, SHORT);
	assert_ptr_equal(look(SHORT), data);
	took(SHORT);
	assert_int_equal(mine->channel->window, CHANNEL_WINDOW - sizeof(header) - SHORT);
	assert_int_equal(coll_ring_available(&mux->socket.memory->in), 0);
	assert_true(mine->heard);
	assert_null(look(SHORT));
	assert_int_equal(told[1][0].begun, 0);	/* the link did not see it */
}

static void one_without_bytes_is_taken(void **state)
{
	const struct coll_header header = header_of(0);

	(void)state;
	put_message(&header);
	assert_non_null(look(0));
	took(0);
	assert_int_equal(coll_ring_available(&mux->socket.memory->in), 0);
}

/* More than go round the ring: those that do not lie together are for the engine. */
static void all_of_many_arrive(void **state)
{
	const struct coll_header header = header_of(SHORT);
	int i, straight = 0;

	(void)state;
	expect(0, 2000);
	for (i = 0; i < 2000; i++) {
		put_message(&header);
		if (look(SHORT)) {
			took(SHORT);
			straight++;
		} else {
			assert_true(coll_memory_serve(mux->socket.engine));
		}
	}
	assert_true(straight > 1900);
	assert_int_equal(straight + told[1][0].ended, 2000);
	assert_int_equal(coll_ring_available(&mux->socket.memory->in), 0);
}

/* It is not taken, and then the engine brings it to the link. */
static void assert_left_to_the_engine(void)
{
	assert_null(look(SHORT));
	assert_null(look(SHORT));
	assert_int_equal(found, COLL_LOOK_OTHER);
	assert_int_equal(told[1][0].ended, 0);
	assert_true(coll_memory_serve(mux->socket.engine));
	assert_int_equal(told[1][0].ended, 1);
}

static void another_message_is_left(void **state)
{
	struct coll_header header[5];
	size_t i;

	for (i = 0; i < 5; i++)
		header[i] = header_of(SHORT);
	header[0].run++;
	header[1].slot++;
	header[2].hash++;
	header[3].bytes++;
	header[4].bytes = 0;
	for (i = 0; i < 5; i++) {
		end(state);
		begin(state);
		put_message(&header[i]);
		assert_left_to_the_engine();
	}
}

static void two_in_one_frame_are_left(void **state)
{
	const struct coll_header header = header_of(SHORT);

	(void)state;
	expect(0, 1);
	put_frame(2 * (sizeof(header) + SHORT));
	put(&header, sizeof(header));
	put(payload, SHORT);
	assert_null(look(SHORT));
	put(&header, sizeof(header));
	put(payload, SHORT);
	assert_null(look(SHORT));
	assert_true(coll_memory_serve(mux->socket.engine));
	assert_int_equal(told[1][0].ended, 2);
}

static void a_part_is_left(void **state)
{
	const struct coll_header header = header_of(SHORT);

	(void)state;
	put_frame(sizeof(header) + SHORT);
	assert_null(look(SHORT));
	put(&header, sizeof(header));
	put(payload, SHORT - 1);
	assert_null(look(SHORT));
	/* The engine has begun with it: the rest is not a frame. */
	coll_memory_serve(mux->socket.engine);
	put(payload + SHORT - 1, 1);
	assert_null(look(SHORT));
	coll_memory_serve(mux->socket.engine);
	assert_int_equal(told[1][0].ended, 1);
	assert_memory_equal(received[1][0], payload, SHORT);
}

static void another_channels_frame_is_left(void **state)
{
	const struct coll_header header = header_of(SHORT);
	const struct coll_frame frame = { .channel = link_at(1, 1)->channel->number,
					  .bytes = sizeof(header) + SHORT };

	(void)state;
	expect(1, 1);
	put(&frame, sizeof(frame));
	put(&header, sizeof(header));
	put(payload, SHORT);
	assert_null(look(SHORT));
	coll_memory_serve(mux->socket.engine);
	assert_int_equal(told[1][1].ended, 1);
	assert_int_equal(told[1][0].ended, 0);
}

/* In a callback of the mux the ring still has the bytes that are being delivered. */
static void not_amid_a_delivery(void **state)
{
	const struct coll_header header = header_of(SHORT);

	(void)state;
	put_message(&header);
	coll_mux_enter(mux);
	assert_null(look(SHORT));
	coll_mux_leave(mux);
	assert_non_null(look(SHORT));
}

static void more_than_was_granted_is_left(void **state)
{
	const struct coll_header header = header_of(SHORT);

	(void)state;
	put_message(&header);
	mine->channel->window = sizeof(header) + SHORT - 1;
	assert_null(look(SHORT));
	mine->channel->window++;
	assert_non_null(look(SHORT));
}

static void nothing_is_taken_from_an_impossible_ring(void **state)
{
	const struct coll_header header = header_of(SHORT);

	(void)state;
	put_message(&header);
	__atomic_store_n(&peer.shared->writer.count, UINT64_MAX / 2, __ATOMIC_RELEASE);
	assert_null(look(SHORT));
}

static void nothing_is_taken_for_a_link_that_does_not_receive(void **state)
{
	const struct coll_header header = header_of(SHORT);

	(void)state;
	put_message(&header);
	expect(0, -1);
	assert_null(look(SHORT));
	expect(0, 1);
	mine->offloaded = true;
	assert_null(look(SHORT));
	mine->offloaded = false;
	assert_non_null(look(SHORT));
}

#define STRAIGHT_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* ---- publications (libcoll/engine/published.h) -------------------------------------- */

static void put_publication(uint32_t channel, uint32_t slot)
{
	struct coll_publication_frame publication = { .header = header_of(SHORT), .place = { .slot = slot } };
	const struct coll_frame frame = { .channel = channel,
					  .bytes = sizeof(publication) | COLL_FRAME_PUBLISHED };

	publication.header.kind = COLL_MESSAGE_PUBLISHED;
	put(&frame, sizeof(frame));
	put(&publication, sizeof(publication));
	coll_memory_serve(mux->socket.engine);
}

static uint32_t acknowledged(uint32_t slot)
{
	return peer.shared->published.read[slot];
}

/* What no link will read is acknowledged; what one may read is when that has closed. */
static void a_publication_that_is_discarded_is_acknowledged(void **state)
{
	struct coll_link *other = link_at(1, 1);
	const uint32_t channel = other->channel->number;

	(void)state;
	put_publication(channel, 2);
	put_publication(channel, 2);
	put_publication(channel, 5);
	assert_int_equal(acknowledged(2) + acknowledged(5), 0);
	coll_link_close(other);
	assert_int_equal(acknowledged(2), 2);
	assert_int_equal(acknowledged(5), 1);
	put_publication(channel, 5);
	assert_int_equal(acknowledged(5), 2);
	put_publication(channel, COLL_SLOTS);		/* there is none: only the frame goes */
	assert_int_equal(mux->state, MUX_UP);
}

/* ---- ... which are held ---------------------------------------------------------------- */

enum {
	AREA_SLOTS = 4,
	PIECE = 16 << 10,
	PIECES = (BYTES + PIECE - 1) / PIECE,
	LONG = 5000,			/* what is not small waits for its receive, too */
};

static union {
	uint8_t bytes[AREA_SLOTS * COLL_SLOT_BYTES + 4096];
	uint32_t generation[(AREA_SLOTS * COLL_SLOT_BYTES + 4096) / sizeof(uint32_t)];
} area;
static uint8_t whole[BYTES];		/* the message */

static uint8_t *piece_of(uint32_t i)
{
	return area.bytes + i % AREA_SLOTS * COLL_SLOT_BYTES + i / AREA_SLOTS * PIECE;
}

static void change_slot(uint32_t slot)
{
	area.generation[AREA_SLOTS * COLL_SLOT_BYTES / sizeof(uint32_t) + slot]++;
}

/* The peer's area has all pieces; this side has it mapped. */
static void area_begin(void)
{
	uint32_t i;

	memset(&area, 0, sizeof(area));
	for (i = 0; i < BYTES; i++)
		whole[i] = i * 13 + (i >> 11);
	for (i = 0; i < PIECES; i++)
		memcpy(piece_of(i), whole + i * PIECE, i + 1 < PIECES ? PIECE : BYTES - i * PIECE);
	mux->socket.memory->regions.area = (struct coll_region){ area.bytes, sizeof(area) };
}

/* The frames of an ordinary message, all pieces, and the same message again: so many bytes. */
static size_t frames_of(uint32_t channel, uint8_t *frames)
{
	const struct coll_header header = header_of(LONG);
	const struct coll_frame frame = { .channel = channel, .bytes = sizeof(header) + LONG };
	uint8_t *end = frames;
	uint32_t i;

	for (i = 0; i < PIECES + 2; i++) {
		const uint32_t piece = i - 1;
		struct coll_frame published = { .channel = channel };
		struct coll_publication_frame publication = {
			.header = header_of(BYTES),
			.place = { .slot = piece % AREA_SLOTS, .offset = piece / AREA_SLOTS * PIECE },
		};

		if (!i || piece == PIECES) {
			memcpy(end, &frame, sizeof(frame));
			memcpy(end + sizeof(frame), &header, sizeof(header));
			memcpy(end + sizeof(frame) + sizeof(header), whole, LONG);
			end += sizeof(frame) + sizeof(header) + LONG;
			continue;
		}
		published.bytes = sizeof(publication) | COLL_FRAME_PUBLISHED;
		publication.header.kind = COLL_MESSAGE_PUBLISHED;
		publication.header.offset = piece * PIECE;
		coll_chunk_cut(&publication.header, piece + 1 < PIECES ? PIECE : BYTES - piece * PIECE);
		memcpy(end, &published, sizeof(published));
		memcpy(end + sizeof(published), &publication, sizeof(publication));
		end += sizeof(published) + sizeof(publication);
	}
	return end - frames;
}

/* They come in parts of so many bytes, for a link that does not receive yet. */
static void hold_all(const struct coll_link *link, size_t part)
{
	static uint8_t frames[PIECES * 128 + 2 * (LONG + 128)];
	size_t bytes, at;

	area_begin();
	bytes = frames_of(link->channel->number, frames);
	for (at = 0; at < bytes; at += part) {
		put(frames + at, at + part < bytes ? part : bytes - at);
		coll_memory_serve(mux->socket.engine);
	}
}

/* So many pieces were. */
static void assert_acknowledged(uint32_t pieces)
{
	uint32_t slot;

	for (slot = 0; slot < AREA_SLOTS; slot++)
		assert_int_equal(acknowledged(slot), (pieces + AREA_SLOTS - 1 - slot) / AREA_SLOTS);
}

/* However they were cut, and whatever came before: one piece for each receive, acknowledged when it is read. */
static void pieces_that_come_in_parts_are_fed_one_by_one(void **state)
{
	size_t part;
	int i;

	for (part = 1; part < 1000; part += part < 150 ? 1 : 400) {
		end(state);
		begin(state);
		hold_all(link_at(1, 1), part);
		assert_int_equal(told[1][1].begun, 0);
		assert_acknowledged(0);
		expect(1, 1);
		assert_int_equal(told[1][1].ended, 1);
		assert_memory_equal(received[1][1], whole, LONG);
		for (i = 0; i < PIECES; i++) {
			assert_acknowledged(i);
			expect(1, 1);
			assert_int_equal(told[1][1].ended, i + 2);
		}
		assert_acknowledged(PIECES);
		assert_memory_equal(received[1][1], whole, BYTES);
		expect(1, 1);
		assert_int_equal(told[1][1].ended, PIECES + 2);
		assert_memory_equal(received[1][1], whole, BYTES);
		assert_int_equal(told[1][1].failed, 0);
	}
}

/* Its peer fails, and gets all slots back: nobody reads the rest. */
static void a_piece_that_is_changed_while_it_is_held_is_not_taken(void **state)
{
	const struct coll_link *link = link_at(1, 1);

	(void)state;
	hold_all(link, 40);
	change_slot(2);
	expect(1, 3);				/* the ordinary message, and the pieces of slots 0 and 1 */
	assert_int_equal(told[1][1].ended, 3);
	assert_int_equal(told[1][1].failed, 0);
	assert_acknowledged(2);
	expect(1, 2);
	assert_int_equal(told[1][1].ended, 3);
	assert_int_equal(told[1][1].failed, 1);
	assert_int_equal(link->state, LINK_CLOSED);
	assert_acknowledged(PIECES);
	assert_int_equal(mux->state, MUX_UP);	/* which has other links */
}

/* A frame that says that it is a publication, and cannot be one. */
static void a_publication_of_another_length_ends_the_connection(void **state)
{
	(void)state;
	put_frame(COLL_FRAME_PUBLISHED | SHORT);
	coll_memory_serve(mux->socket.engine);
	assert_int_equal(mux->state, MUX_ENDED);
	assert_int_equal(mux->error, -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STRAIGHT_TEST(the_next_message_is_taken),
		STRAIGHT_TEST(one_without_bytes_is_taken),
		STRAIGHT_TEST(all_of_many_arrive),
		STRAIGHT_TEST(another_message_is_left),
		STRAIGHT_TEST(two_in_one_frame_are_left),
		STRAIGHT_TEST(a_part_is_left),
		STRAIGHT_TEST(another_channels_frame_is_left),
		STRAIGHT_TEST(not_amid_a_delivery),
		STRAIGHT_TEST(more_than_was_granted_is_left),
		STRAIGHT_TEST(nothing_is_taken_from_an_impossible_ring),
		STRAIGHT_TEST(nothing_is_taken_for_a_link_that_does_not_receive),
		STRAIGHT_TEST(a_publication_that_is_discarded_is_acknowledged),
		STRAIGHT_TEST(pieces_that_come_in_parts_are_fed_one_by_one),
		STRAIGHT_TEST(a_piece_that_is_changed_while_it_is_held_is_not_taken),
		STRAIGHT_TEST(a_publication_of_another_length_ends_the_connection),
	};
	int i;

	for (i = 0; i < BYTES; i++)
		payload[i] = i * 5 + i / 251;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
