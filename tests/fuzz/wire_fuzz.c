// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What a peer may send on a shared connection: frames, channels' control messages, messages'
 * headers and chunks, between those that are right, and the connection's end. The input says
 * what happens in turn; side 1 (tests/lib/two_sides.h) reads it. A link holds no more than it
 * has granted, and all memory is free again at the end.
 */
#include <errno.h>
#include <unistd.h>

#include "core/match.h"
#include "libcoll/engine/engine.h"
#include "tests/lib/two_sides.h"
#include "fuzz.h"

enum { STEPS_MAX = 20, RAW_MAX = 200, GARBAGE_MAX = 1 << 16, TRANSFERS_MAX = 10, MESSAGE = 24 };

enum step {
	STEP_MOVE,		/* both sides, with transfers of so many bytes */
	STEP_EXPECT, STEP_SEND, STEP_BACK,
	STEP_RAW,		/* any bytes */
	STEP_CONTROL,		/* a whole control message */
	STEP_MESSAGE,		/* a whole frame with a message's header */
	STEP_PAYLOAD,		/* a frame's header, and so many bytes */
	STEP_CLOSE,		/* side 1 gives a link up */
	STEP_END,		/* the connection ends */
	STEPS,
};

static uint8_t queued[SIDES][GROUPS];

static void put(const void *data, size_t bytes)
{
	struct side *to = &side[1];

	if (!bytes || bytes > WIRE - to->written)
		return;
	memcpy(to->wire + to->written, data, bytes);
	to->written += bytes;
}

static void put_frame(uint32_t channel, const void *data, uint32_t bytes)
{
	const struct coll_frame frame = { .channel = channel, .bytes = bytes };

	put(&frame, sizeof(frame));
	put(data, bytes);
}

static void put_control(struct fuzz_input *in)
{
	struct coll_channel_control control;

	fuzz_copy(in, &control, sizeof(control));
	put_frame(0, &control, sizeof(control));
}

/* The version is right: or hardly anything gets behind it. */
static void put_message(struct fuzz_input *in)
{
	static uint8_t text[sizeof(struct coll_header) + 256];
	struct coll_header header;
	const uint32_t channel = fuzz_byte(in), bytes = fuzz_byte(in);

	fuzz_copy(in, &header, sizeof(header));
	header.version = COLL_WIRE_VERSION;
	memcpy(text, &header, sizeof(header));
	put_frame(channel, text, sizeof(header) + bytes);
}

static void put_payload(struct fuzz_input *in)
{
	static const uint8_t garbage[GARBAGE_MAX];
	const uint32_t channel = fuzz_byte(in);
	uint16_t bytes;

	fuzz_copy(in, &bytes, sizeof(bytes));
	put_frame(channel, garbage, bytes);
}

static void put_raw(struct fuzz_input *in)
{
	const uint8_t *data;
	const size_t bytes = fuzz_some(in, &data, fuzz_byte(in) % RAW_MAX);

	put(data, bytes);
}

/* The socket ends: side 1 reads no more of the wire. */
static void end_connection(int error)
{
	struct coll_mux *mux = side[1].context.muxes;

	side[1].read = side[1].written = 0;
	if (mux->attached && mux->socket.receiving) {
		if (side[1].entries)
			mux->socket.ops->received(&mux->socket, error);
		else
			mux->socket.ops->received_in(&mux->socket, NULL, error);
	}
}

/* In few transfers, so that an input takes microseconds. */
static void move_some(uint8_t how)
{
	static const uint64_t most[] = { 20, 60, 100, 333, 5000, WIRE };
	const uint64_t left = side[1].written / TRANSFERS_MAX;
	const uint64_t chosen = most[how % (sizeof(most) / sizeof(*most))];

	sides_move(chosen > left ? chosen : left);
}

/* Each message is queued once. */
static void queue_message(int which, int group)
{
	const int number = queued[which][group];

	if (link_at(which, group)->state != LINK_UP || number == MESSAGES)
		return;
	message[which][group][number].header.bytes = MESSAGE * (number + 1) * (number + 1);
	send_from(which, group, queued[which][group]++, 1);
}

static void fuzz_step(struct fuzz_input *in)
{
	const uint8_t what = fuzz_byte(in), how = fuzz_byte(in), group = how % GROUPS;

	switch ((enum step)(what % STEPS)) {
	case STEP_MOVE:
		move_some(how);
		break;
	case STEP_EXPECT:
		if (link_at(1, group)->state == LINK_UP)
			expect_from(1, group, how / GROUPS % 4);
		break;
	case STEP_SEND:
		queue_message(0, group);
		break;
	case STEP_BACK:
		queue_message(1, group);
		break;
	case STEP_RAW:
		put_raw(in);
		break;
	case STEP_CONTROL:
		put_control(in);
		break;
	case STEP_MESSAGE:
		put_message(in);
		break;
	case STEP_PAYLOAD:
		put_payload(in);
		break;
	case STEP_CLOSE:
		coll_link_close(link_at(1, group));
		break;
	default:
		end_connection(how % 2 ? -ECONNRESET : 0);
	}
}

static void check_held(void)
{
	const struct coll_mux *mux = side[1].context.muxes;
	const struct coll_channel *channel;

	for (channel = mux->all; channel; channel = channel->next)
		fuzz_must(channel->held_bytes <= CHANNEL_WINDOW_LONG, "it holds more than it granted");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct fuzz_input in = { data, bytes };
	int steps;

	memset(queued, 0, sizeof(queued));
	sides_begin(false);
	side[1].context.counters.refused = 1;	/* told already */
	for (steps = 0; in.bytes && steps < STEPS_MAX; steps++)
		fuzz_step(&in);
	sides_move(WIRE);
	check_held();
	sides_end();
	return 0;
}

/* ---- seeds ------------------------------------------------------------------- */

struct control_step {
	uint8_t what, how;
	struct coll_channel_control control;
} __attribute__((packed));

struct message_step {
	uint8_t what, how, channel, bytes;
	struct coll_header header;
} __attribute__((packed));

void fuzz_seeds(take_seed *take, void *argument)
{
	static const uint8_t right[] = {
		STEP_EXPECT, 3, STEP_EXPECT, 4, STEP_SEND, 0, STEP_SEND, 1, STEP_MOVE, 5,
		STEP_BACK, 2, STEP_MOVE, 6, STEP_CLOSE, 1, STEP_SEND, 2, STEP_MOVE, 4, STEP_END, 0,
	};
	static const uint8_t held[] = {
		STEP_SEND, 0, STEP_MOVE, 6, STEP_PAYLOAD, 0, 1, 0xff, 0x3f, STEP_MOVE, 5,
		STEP_EXPECT, 3, STEP_MOVE, 6, STEP_RAW, 0, 12, 3, 0, 0, 0, 32, 0, 0, 0, 1, 4, 0, 0,
		STEP_MOVE, 6, STEP_END, 1,
	};
	struct control_step control = { .what = STEP_CONTROL, .control = { .channel = 1 } };
	struct message_step one = {
		.what = STEP_MESSAGE, .channel = 1, .bytes = 100,
		.header = { .kind = COLL_MESSAGE_DATA, .bytes = 100 },
	};
	uint8_t kind;

	take(right, sizeof(right), argument);
	take(held, sizeof(held), argument);
	for (kind = COLL_CHANNEL_WINDOW; kind <= COLL_CHANNEL_NEWS; kind++) {
		control.control.kind = kind;
		control.control.value = 100;
		take(&control, sizeof(control), argument);
	}
	control.control = (struct coll_channel_control){ .kind = COLL_CHANNEL_OPEN, .channel = 101,
							 .value = 10, .from = 0, .to = 1 };
	take(&control, sizeof(control), argument);
	control.control = (struct coll_channel_control){ .kind = COLL_CHANNEL_ASK, .value = 10 };
	take(&control, sizeof(control), argument);
	take(&one, sizeof(one), argument);
	for (kind = COLL_MESSAGE_PING; kind <= COLL_MESSAGE_BYE; kind++) {
		one.header = (struct coll_header){ .kind = kind };
		one.bytes = 0;
		take(&one, sizeof(one), argument);
	}
	one.header = (struct coll_header){ .kind = COLL_MESSAGE_OFFER, .bytes = 1 << 20 };
	take(&one, sizeof(one), argument);
}
