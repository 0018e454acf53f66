// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/match.h"
#include "core/port.h"
#include "libcoll/transport/arrival.h"
#include "libcoll/transport/seal.h"
#include "libcoll/transport/transport.h"
#include "libcoll/link/groups.h"
#include "two_sides.h"

struct side side[SIDES];
struct side_events told[SIDES][GROUPS];
struct coll_message message[SIDES][GROUPS][MESSAGES];
uint8_t payload[BYTES], received[SIDES][GROUPS][BYTES];

static char line[] = "node process 1@1 shared 4711", *published[SIDES] = { line, line };

static int side_of(const struct coll_link *link)
{
	return link->group->context == &side[1].context;
}

static int group_of(const struct coll_group *group)
{
	return group - side[group->context == &side[1].context].group;
}

#define TOLD(link) (&told[side_of(link)][group_of((link)->group)])

/* ---- above ------------------------------------------------------------------- */

static void fake_begin(struct coll_link *link)
{
	const uint64_t offset = link->header.offset, bytes = coll_chunk_bytes(&link->header);

	TOLD(link)->begun++;
	/* A hostile header is discarded, as one of no op is. */
	if (offset <= BYTES && bytes <= BYTES - offset)
		link->target = received[side_of(link)][group_of(link->group)] + offset;
}

static void fake_end(struct coll_link *link)
{
	TOLD(link)->ended++;
	link->target = NULL;
	link->expected -= !!link->expected;
}

static struct coll_exec *fake_expect(struct coll_link *link, uint8_t **target, uint64_t *bytes)
{
	*target = received[side_of(link)][group_of(link->group)];
	*bytes = BYTES;
	return (struct coll_exec *)link;
}

static void fake_release(struct coll_exec *exec)
{
	(void)exec;
}

static void fake_sent(struct coll_message *gone)
{
	const struct coll_link *link = (const struct coll_link *)gone->exec;

	TOLD(link)->sent++;
}

static void fake_control(struct coll_link *link, const struct coll_header *header)
{
	if (header->kind == COLL_MESSAGE_BYE)
		coll_link_set_state(link, LINK_LEFT);
}

static int fake_up(struct coll_link *link)
{
	coll_link_touch(link);
	return 0;
}

static void fake_closing(struct coll_link *link)
{
	TOLD(link)->closing++;
}

static bool fake_needs(const struct coll_link *link)
{
	return link->expected;
}

static void fake_lost(struct coll_link *link, int error, const char *reason)
{
	(void)error;
	(void)reason;
	coll_link_set_state(link, LINK_LOST);
	TOLD(link)->lost++;
}

static void fake_failed(struct coll_group *group, int error, uint32_t failed_rank,
			uint32_t reporter, const char *reason)
{
	(void)error;
	(void)failed_rank;
	(void)reporter;
	(void)reason;
	told[group->context == &side[1].context][group_of(group)].failed++;
}

static struct coll_header fake_news(const struct coll_group *group)
{
	(void)group;
	return (struct coll_header){ .run = COLL_NONE, .slot = COLL_NONE };
}

static void fake_called_for(struct coll_context *context, uint64_t group, uint32_t world)
{
	(void)context;
	(void)group;
	(void)world;
}

static const struct coll_link_events events = {
	.begin = fake_begin,
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
	.news = fake_news,
	.called_for = fake_called_for,
};

/* ---- below: a wire ------------------------------------------------------------ */

static int fake_attach(struct coll_socket *socket)
{
	(void)socket;
	return 0;
}

static void fake_detach(struct coll_socket *socket)
{
	close(socket->fd);
	socket->sending = socket->receiving = false;
	socket->ops->detached(socket);
}

/* A receive that is under way ends without bytes. */
static int fake_pause(struct coll_socket *socket)
{
	if (socket->receiving)
		socket->ops->received_none(socket);
	if (socket->sending)
		socket->ops->sent(socket, 0);
	return 0;
}

static void fake_resume(struct coll_socket *socket)
{
	(void)socket;
}

/* Descriptors that a side watches. */
enum { WATCHES_MAX = 32 };
static struct coll_watch *watched[SIDES][WATCHES_MAX];

static struct coll_watch **watch_slot(const struct coll_engine *engine,
				      const struct coll_watch *watch)
{
	struct coll_watch **slot = watched[engine == &side[1].context.engine];
	int i;

	for (i = 0; i < WATCHES_MAX; i++)
		if (slot[i] == watch)
			return &slot[i];
	return NULL;
}

static void fake_unwatch(struct coll_engine *engine, struct coll_watch *watch)
{
	struct coll_watch **slot = watch_slot(engine, watch);

	watch->armed = false;
	if (slot)
		*slot = NULL;
}

static int fake_watch(struct coll_engine *engine, struct coll_watch *watch, int awaited)
{
	struct coll_watch **slot;

	(void)awaited;
	fake_unwatch(engine, watch);
	slot = watch_slot(engine, NULL);
	if (!slot)
		return -ENOMEM;
	*slot = watch;
	watch->armed = true;
	watch->engine = engine;
	return 0;
}

bool sides_ready(int which, int fd, int ready_events)
{
	struct coll_watch *watch;
	int i;

	for (i = 0; i < WATCHES_MAX; i++) {
		watch = watched[which][i];
		if (!watch || watch->fd != fd)
			continue;
		fake_unwatch(watch->engine, watch);
		watch->ready(watch, ready_events);
		return true;
	}
	return false;
}

static const struct coll_engine_ops engine = {
	.name = "fake",
	.attach = fake_attach,
	.detach = fake_detach,
	.pause = fake_pause,
	.resume = fake_resume,
	.watch = fake_watch,
	.unwatch = fake_unwatch,
};

void sides_send(struct side *from, struct coll_socket *socket, uint64_t max)
{
	struct side *to = from == &side[0] ? &side[1] : &side[0];
	struct iovec iov[COLL_SEND_IOV_MAX];
	uint64_t bytes = 0;
	int i, count = socket->ops->send_iov(socket, iov, COLL_SEND_IOV_MAX);

	socket->sending = true;
	for (i = 0; i < count && bytes < max; i++) {
		const uint64_t part = iov[i].iov_len < max - bytes ? iov[i].iov_len : max - bytes;

		coll_assert(to->written + part <= WIRE);
		memcpy(to->wire + to->written, iov[i].iov_base, part);
		to->written += part;
		bytes += part;
	}
	socket->ops->sent(socket, bytes);
}

void sides_recv(struct side *s, struct coll_socket *socket, uint64_t max)
{
	uint64_t left = s->written - s->read, bytes = 0;
	bool whole;
	int i;

	if (!socket->receiving) {
		s->entries = socket->ops->recv_iov(socket, s->receive, &whole);
		socket->receiving = true;
	}
	left = left < max ? left : max;
	if (!left)
		return;			/* the receive stays under way */
	if (!s->entries) {
		s->read += left;
		socket->ops->received_in(socket, s->wire + s->read - left, left);
		return;
	}
	for (i = 0; i < s->entries && bytes < left; i++) {
		const uint64_t wanted = s->receive[i].iov_len;
		const uint64_t part = wanted < left - bytes ? wanted : left - bytes;

		memcpy(s->receive[i].iov_base, s->wire + s->read + bytes, part);
		bytes += part;
	}
	s->read += bytes;
	socket->ops->received(socket, bytes);
}

/* Work of both sides until there is none, with transfers of at most `max` bytes. */
void sides_move(uint64_t max)
{
	uint64_t before;
	int i;

	do {
		before = side[0].read + side[1].read + side[0].written + side[1].written;
		for (i = 0; i < SIDES; i++) {
			struct coll_mux *mux = side[i].context.muxes;
			struct coll_socket *socket = &mux->socket;

			coll_socket_untouch(socket);
			if (!mux->attached)
				continue;
			if (socket->ops->wants_send(socket))
				sides_send(&side[i], socket, max);
			if (socket->receiving || socket->ops->wants_recv(socket))
				sides_recv(&side[i], socket, max);
		}
		for (i = 0; i < SIDES; i++)
			if (side[i].read == side[i].written)
				side[i].read = side[i].written = 0;
	} while (before != side[0].read + side[1].read + side[0].written + side[1].written ||
		 side[0].context.engine.touched || side[1].context.engine.touched);
}

/* ---- two processes -------------------------------------------------------------- */

static void side_begin(int which)
{
	static uint8_t wires[SIDES][WIRE];
	struct side *s = &side[which];
	int i;

	s->wire = wires[which];
	s->boot = (struct coll_boot){ .rank = which, .ranks = SIDES };
	s->context = (struct coll_context){ .events = &events, .boot = &s->boot };
	s->context.engine = (struct coll_engine){ .ops = &engine, .next_check = COLL_FOREVER,
						  .counters = &s->context.counters };
	s->context.flight.page = &s->flight;
	coll_transport_begin(&s->context);
	strcpy(s->context.options.link_policy, "occupancy");
	s->context.discard_buffer = malloc(SPECULATIVE_MAX);
	s->context.bounce_buffer = malloc(SPECULATIVE_MAX);
	s->context.mux_buffer = malloc(MUX_BUFFER_BYTES);
	s->context.published = published;
	s->world[1] = 1;
	for (i = GROUPS - 1; i >= 0; i--) {
		s->group[i] = (struct coll_group){ .context = &s->context, .id = 10 + i,
						   .rank = which, .ranks = SIDES,
						   .world = s->world, .links = s->links[i] };
		s->group[i].options.unexpected_bytes = 1 << 20;
		coll_assert(!coll_groups_add(&s->group[i]));
	}
}

/* Both sides have the handshake's messages; NULL unless the test seals. */
static struct coll_seal *seal_of(int which, int fd, bool sealed)
{
	const struct coll_hello hello = { .magic = COLL_WIRE_MAGIC, .nonce = { 1, 2, 3 } };
	const struct coll_challenge challenge = { .nonce = { 4, 5, 6 } };
	struct coll_context *context = &side[which].context;
	struct coll_seal *seal;

	strcpy(context->options.protect, sealed ? "seal" : "proof");
	coll_assert(!coll_seal_make(context, fd, &hello, &challenge, !which, &seal));
	coll_assert(!!seal == sealed);
	return seal;
}

void sides_begin(bool sealed)
{
	int fds[2], i, j, k;

	memset(side, 0, sizeof(side));
	memset(watched, 0, sizeof(watched));
	memset(told, 0, sizeof(told));
	memset(message, 0, sizeof(message));
	for (i = 0; i < SIDES; i++)
		side_begin(i);
	coll_assert(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	for (i = 0; i < SIDES; i++)
		coll_assert(!coll_channels_accept(&side[i].context, !i, 0, &(struct coll_connected){
			.fd = fds[i], .seal = seal_of(i, fds[i], sealed) }));
	/* Side 0 opens the channels, as if it had connected. */
	side[0].context.muxes->mine = true;
	side[0].context.muxes->next_number = 1;
	for (k = 0; k < GROUPS; k++)
		coll_link_open(coll_link_get(&side[0].group[k], 1));
	sides_move(WIRE);
	for (k = 0; k < GROUPS; k++) {
		coll_assert(side[1].links[k][0]);
		coll_assert(side[0].links[k][1]->state == LINK_UP);
		coll_assert(side[1].links[k][0]->state == LINK_UP);
	}
	for (i = 0; i < SIDES; i++)
		for (k = 0; k < GROUPS; k++)
			for (j = 0; j < MESSAGES; j++) {
				struct coll_message *m = &message[i][k][j];

				m->exec = (struct coll_exec *)side[i].links[k][!i];
				m->payload = payload;
				m->header = (struct coll_header){ .kind = COLL_MESSAGE_DATA,
								  .version = COLL_WIRE_VERSION,
								  .slot = j, .bytes = BYTES };
			}
}

struct coll_link *link_at(int which, int group)
{
	return side[which].links[group][!which];
}

void sides_end(void)
{
	int i, k;

	for (i = 0; i < SIDES; i++) {
		for (k = 0; k < GROUPS; k++) {
			if (link_at(i, k))
				coll_link_close(link_at(i, k));
			free(link_at(i, k));
		}
		coll_muxes_close(&side[i].context);
		coll_assert(!side[i].context.muxes);
		coll_assert(!side[i].context.arrivals);
		for (k = 0; k < GROUPS; k++)
			coll_groups_remove(&side[i].group[k]);
		free(side[i].context.discard_buffer);
		free(side[i].context.bounce_buffer);
		free(side[i].context.mux_buffer);
	}
}

void expect_from(int which, int group, uint32_t messages)
{
	link_at(which, group)->expected += messages;
	coll_link_await(link_at(which, group));
}

void send_from(int which, int group, int first, int count)
{
	while (count--)
		coll_link_send(link_at(which, group), &message[which][group][first++]);
}
