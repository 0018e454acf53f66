// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Sockets through memory (libcoll/engine/memory.h), of which the peer is hostile: what it stores
 * is impossible. A fake owner sends a header and its payload, as links do.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake_connection.h"
#include "fake_engine.h"
#include "libcoll/engine/memory.h"
#include "libcoll/engine/memory_parts.h"
#include "libcoll/engine/ring.h"

enum { SIZE = 16 << 10, LONG = 4 * SIZE, HEADER = 40 };

static struct coll_counters counters;
static struct coll_engine engine;
static struct coll_socket owner;
static struct coll_ring peer_in, peer_out;
static int peer;
static uint8_t *peer_map;
static uint8_t data[LONG];
static ssize_t sent;			/* what the owner was told; 0: nothing yet */
static bool detached;

/* ---- an owner, and an engine ---------------------------------------------------------- */

static bool owner_wants_send(struct coll_socket *socket)
{
	return !socket->sending && sent >= 0 && sent < HEADER + LONG;
}

static int owner_send_iov(struct coll_socket *socket, struct iovec *iov, int max)
{
	static uint8_t header[HEADER];
	int count = 0;

	(void)socket;
	(void)max;
	if (sent < HEADER)
		iov[count++] = (struct iovec){ header + sent, HEADER - sent };
	iov[count++] = (struct iovec){ sent < HEADER ? data : data + sent - HEADER,
				       sent < HEADER ? LONG : HEADER + LONG - sent };
	return count;
}

/* There is more to send: links say so at once. */
static void owner_sent(struct coll_socket *socket, ssize_t result)
{
	sent = result < 0 ? result : sent + result;
	if (owner_wants_send(socket))
		coll_socket_touch(socket);
}

static bool peer_goes_on;		/* it has more whenever something is received */

static void peer_sends(void)
{
	const struct iovec some = { data, 10 };

	assert_int_equal(coll_ring_write(&peer_out, &some, 1), 10);
}

/* Bytes, or the end. */
static void owner_received_in(struct coll_socket *socket, const uint8_t *bytes, ssize_t result)
{
	(void)socket;
	(void)bytes;
	if (result > 0 && peer_goes_on)
		peer_sends();
}

static void owner_detached(struct coll_socket *socket)
{
	(void)socket;
	detached = true;
}

static const struct coll_socket_ops owner_ops = {
	.wants_send = owner_wants_send,
	.send_iov = owner_send_iov,
	.sent = owner_sent,
	.wants_recv = fake_wants_recv,
	.received_in = owner_received_in,
	.detached = owner_detached,
};

static void message_goes(void)
{
	sent = 0;
	coll_memory_work(&owner);
	coll_socket_untouch(&owner);
}

/* A socket of an engine that has nothing else to do. */
static void owner_attach(void)
{
	const struct fake_connection c = fake_connect(SIZE);

	peer = c.fd[1];
	peer_map = c.map[1];
	detached = false;
	counters.exposed_bytes = counters.mapped_bytes = 0;
	engine = (struct coll_engine){ .ops = &fake_engine_ops, .counters = &counters, .exposes = true,
				       .waits = true, .spin_ns = 1000 };
	coll_ring_init(&peer_in, peer_map, SIZE);
	coll_ring_init(&peer_out, peer_map + coll_memory_bytes(SIZE) / 2, SIZE);
	fake_attach(&owner, &owner_ops, &engine, &c, 0);
	message_goes();
}

/* The peer takes so many bytes of what lies in the ring. */
static uint64_t peer_receives(uint64_t most)
{
	const uint8_t *there;
	uint64_t got = 0;
	ssize_t now;

	while (got < most && (now = coll_ring_peek(&peer_in, &there)) > 0) {
		if ((uint64_t)now > most - got)
			now = most - got;
		coll_ring_consume(&peer_in, now);
		got += now;
	}
	return got;
}

/* The owner's message is exposed, and the peer may take it. */
static int begin(void **state)
{
	(void)state;
	owner_attach();
	/* The first message of a length goes this way (copy_costs.h). */
	assert_int_equal(counters.exposed_bytes, LONG);
	assert_true(owner.sending);
	assert_int_equal(peer_receives(LONG), HEADER);
	counters.exposed_bytes = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	coll_socket_detach(&owner);
	assert_true(detached);
	munmap(peer_map, coll_memory_bytes(SIZE));
	close(peer);
	return 0;
}

/* ---- tests ----------------------------------------------------------------------------- */

/* The rest is in a copy, which the peer takes. */
static void the_owner_has_its_memory_back(void **state)
{
	(void)state;
	peer_in.shared->reader.taken = LONG / 4;
	assert_int_equal(coll_socket_pause(&owner), 0);
	assert_int_equal(sent, HEADER + LONG);
	assert_false(owner.sending);
	assert_false(coll_socket_is_delivered(&owner));
	peer_in.shared->reader.taken = LONG;
	coll_memory_work(&owner);
	assert_true(coll_socket_is_delivered(&owner));
}

/* What the peer has sent before would be read first: the owner wants its memory at once. */
static void it_has_it_back_from_a_peer_that_lies(void **state)
{
	const struct iovec some = { data, 10 };

	(void)state;
	assert_int_equal(coll_ring_write(&peer_out, &some, 1), 10);
	peer_in.shared->reader.taken = LONG + 1;
	assert_int_equal(coll_socket_pause(&owner), 0);
	assert_int_equal(sent, -EPROTO);
	assert_false(owner.sending);
	assert_true(coll_socket_is_delivered(&owner));	/* there is nothing left to take */
}

/* Of a message by the ring the peer has got all. Returns whether it was announced as of a busy writer. */
static bool comes_by_ring(void)
{
	uint64_t got = 0;

	while (got < HEADER + LONG) {
		const uint64_t more = peer_receives(HEADER + LONG - got);

		assert_true(more);
		got += more;
		coll_memory_work(&owner);
	}
	coll_socket_untouch(&owner);
	assert_int_equal(sent, HEADER + LONG);
	assert_int_equal(peer_in.shared->writer.latest.end - peer_in.shared->writer.latest.begin, LONG);
	return peer_in.shared->writer.latest.busy;
}

/*
 * The first eight go by turns; then the way that is told to be cheaper, whatever the header's end makes of the
 * engine. A message that the ring has begun with goes on there.
 */
static void the_way_is_chosen_once_for_a_message(void **state)
{
	uint64_t taken = LONG;
	int i;

	(void)state;
	for (i = 0; i < 40; i++) {
		if (i)
			message_goes();
		if (!owner.sending) {
			assert_true(i % 2 || i >= 8);
			assert_false(comes_by_ring());
			peer_in.shared->costs.ring[0][coll_copy_octave(LONG)] = 1;
			continue;
		}
		assert_true(i % 2 == 0 && i < 8);
		if (i)
			assert_int_equal(peer_receives(LONG), HEADER);
		usleep(1000);		/* reading costs more */
		peer_in.shared->reader.taken = taken;
		taken += LONG;
		coll_memory_work(&owner);
		coll_socket_untouch(&owner);
		assert_int_equal(sent, HEADER + LONG);
	}
}

/* The same message, of an owner that has something else to do. */
static void a_busy_owner_counts_its_copy(void **state)
{
	(void)state;
	peer_in.shared->reader.taken = LONG;
	coll_memory_work(&owner);
	engine.expected = 1;
	message_goes();
	assert_true(owner.sending);	/* the first of a busy one */
	assert_int_equal(peer_receives(LONG), HEADER);
	peer_in.shared->reader.taken = 2 * LONG;
	coll_memory_work(&owner);
	message_goes();
	assert_false(owner.sending);
	assert_true(comes_by_ring());
}

/* After it was told that all is sent: the rest of the copy goes through the ring, and nothing else. */
static void a_reader_that_refuses_gets_the_rest(void **state)
{
	const uint8_t *there;
	uint64_t got = 0;
	ssize_t now;

	(void)state;
	memset(data, 1, LONG / 2);
	memset(data + LONG / 2, 2, LONG / 2);
	peer_in.shared->reader.taken = LONG / 2;
	assert_int_equal(coll_socket_pause(&owner), 0);
	assert_int_equal(sent, HEADER + LONG);
	memset(data, 3, LONG);
	peer_in.shared->reader.refuses = 1;
	coll_memory_work(&owner);
	while ((now = coll_ring_peek(&peer_in, &there)) > 0) {
		assert_int_equal(there[0], 2);
		assert_int_equal(there[now - 1], 2);
		coll_ring_consume(&peer_in, now);
		got += now;
		coll_memory_work(&owner);
	}
	assert_int_equal(got, LONG / 2);
}

/* What was taken is not asked for again: there is no memory of it. */
static void a_reader_that_goes_back_is_refused(void **state)
{
	(void)state;
	peer_in.shared->reader.taken = LONG / 2;
	assert_int_equal(coll_socket_pause(&owner), 0);
	peer_in.shared->reader.taken = 0;
	peer_in.shared->reader.refuses = 1;
	coll_memory_work(&owner);
	assert_true(coll_socket_is_delivered(&owner));	/* nothing is left, and nothing was written */
	assert_int_equal(peer_receives(LONG), 0);
}

/* A caller that sleeps on the engine's descriptor is told when it may not, and is not kept for ever. */
static void a_peer_that_goes_on_keeps_nobody_for_ever(void **state)
{
	(void)state;
	peer_in.shared->reader.taken = LONG;
	coll_memory_work(&owner);
	engine.slept_elsewhere = true;
	peer_goes_on = true;
	peer_sends();
	coll_memory_sleep_elsewhere(&engine);
	assert_true(engine.kept_awake);
	peer_goes_on = false;
	coll_memory_sleep_elsewhere(&engine);
	assert_false(engine.kept_awake);
	assert_int_equal(peer_out.shared->reader.sleeps, COLL_RING_AWAITS_BYTE);
}

/* The peer holds for ever what it was exposed. It has what others have left of the engine's time. */
static void a_peer_that_holds_on_loses_its_connection(void **state)
{
	const uint64_t start = coll_now(), minute = 60 * COLL_SECOND;

	(void)state;
	peer_in.shared->reader.holds = 1;
	engine.owed_until = start + minute;
	assert_int_equal(coll_socket_pause(&owner), 0);
	assert_int_equal(sent, -ECONNRESET);
	assert_int_equal(peer_in.shared->writer.leaves, 1);
	assert_in_range(engine.owed_until, start + minute + 1, start + minute + COLL_SECOND);
}

/* Each of two in one iov goes its own way, and is announced. */
static void one_long_message_is_written_at_a_time(void **state)
{
	const struct iovec two[] = { { data, HEADER }, { data, COLL_COPY_LEAST }, { data, HEADER },
				     { data, 2 * COLL_COPY_LEAST } };
	struct iovec first = two[1], second = two[3];
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {	/* the ring's turns of both lengths */
		coll_memory_may_expose(owner.memory, &first);
		owner.memory->chosen.bytes = 0;
		coll_memory_may_expose(owner.memory, &second);
		owner.memory->chosen.bytes = 0;
	}
	first.iov_len++;		/* read, by turns */
	assert_true(coll_memory_may_expose(owner.memory, &first));
	owner.memory->chosen.bytes = 0;
	assert_int_equal(coll_memory_ring_count(owner.memory, two, 4), 3);
	assert_int_equal(owner.memory->chosen.bytes, COLL_COPY_LEAST);
	assert_int_equal(coll_memory_write(owner.memory, two, 3), SIZE - HEADER);	/* what is free */
	assert_int_equal(peer_in.shared->writer.latest.end - peer_in.shared->writer.latest.begin,
			 COLL_COPY_LEAST);
	/* It goes on where it has begun, whatever follows. */
	assert_false(coll_memory_may_expose(owner.memory, &second));
	assert_int_equal(coll_memory_ring_count(owner.memory, &two[1], 3), 2);
}

/* ---- regions --------------------------------------------------------------------------- */

static uint8_t *there;			/* what the owner sends, in its arena */

static bool there_wants_send(struct coll_socket *socket)
{
	return !socket->sending && sent >= 0 && sent < LONG;
}

static int there_send_iov(struct coll_socket *socket, struct iovec *iov, int max)
{
	(void)socket;
	(void)max;
	iov[0] = (struct iovec){ there + sent, LONG - sent };
	return 1;
}

static const struct coll_socket_ops there_ops = {
	.wants_send = there_wants_send,
	.send_iov = there_send_iov,
	.sent = owner_sent,
	.wants_recv = fake_wants_recv,
	.received_in = owner_received_in,
	.detached = owner_detached,
};

/* The byte that the peer was sent, and a descriptor or -1. -1: there is none. */
static int peer_hears(int *fd)
{
	uint8_t byte;

	*fd = -1;
	return coll_recv_with_descriptor(peer, &byte, 1, fd) == 1 ? byte : -1;
}

/* Exposes a message in the arena, which the peer takes. The number of its region. */
static uint64_t message_there(void)
{
	uint64_t region;

	memset(owner.memory->copies, 0, sizeof(owner.memory->copies));	/* the first is exposed */
	sent = 0;
	coll_memory_work(&owner);
	assert_true(owner.sending);
	region = peer_in.shared->writer.region;
	peer_in.shared->reader.taken += LONG;
	coll_memory_work(&owner);
	coll_socket_untouch(&owner);
	assert_int_equal(sent, LONG);
	return region;
}

static void the_owner_sends_from_its_arena(void)
{
	peer_in.shared->reader.taken = LONG;
	coll_memory_work(&owner);
	coll_socket_untouch(&owner);
	owner.ops = &there_ops;
	engine.arena.shares = true;
	there = coll_memory_block(&engine, 20 << 20);
	assert_non_null(there);
	assert_int_equal(message_there(), 0);		/* the peer maps nothing */
	peer_in.shared->reader.maps = 1;
}

static void a_region_is_announced_once(void **state)
{
	int fd;

	(void)state;
	the_owner_sends_from_its_arena();
	assert_int_equal(message_there(), 1);
	assert_int_equal(peer_in.shared->writer.offset, 0);
	assert_int_equal(peer_hears(&fd), COLL_REGION_IS_ANNOUNCED);
	assert_true(coll_file_sealed(fd, COLL_FILE_SEALS) >= 20 << 20);
	close(fd);
	there += 4096;
	assert_int_equal(message_there(), 1);
	assert_int_equal(peer_in.shared->writer.offset, 4096);
	assert_int_equal(peer_hears(&fd), -1);
	assert_int_equal(counters.mapped_bytes, 2 * LONG);
	/* Nobody keeps what is freed. */
	assert_int_equal(coll_memory_block_free(&engine, there - 4096), 0);
	assert_int_equal(peer_hears(&fd), COLL_REGION_IS_DROPPED + 1);
	assert_int_equal(coll_memory_block_free(&engine, there - 4096), -EINVAL);
	/* The next is another one, in the same place. */
	there = coll_memory_block(&engine, 20 << 20);
	assert_int_equal(message_there(), 2);
	assert_int_equal(peer_hears(&fd), COLL_REGION_IS_ANNOUNCED);
	close(fd);
	coll_shared_end(&engine.arena);
}

/* It reads nothing on the socket: then it is not told, and memory is exposed as any other is. */
static void a_peer_that_does_not_listen(void **state)
{
	const int bytes = 1;

	(void)state;
	the_owner_sends_from_its_arena();
	assert_int_equal(setsockopt(owner.fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
	while (send(owner.fd, "", 1, MSG_DONTWAIT) == 1)
		;
	assert_int_equal(message_there(), 0);
	assert_int_equal(coll_memory_block_free(&engine, there), 0);
	coll_shared_end(&engine.arena);
}

/* Who could not map it gets it in another way; who refuses that, too, gets the ring. */
static void a_peer_that_refuses_regions(void **state)
{
	(void)state;
	the_owner_sends_from_its_arena();
	assert_int_equal(message_there(), 1);
	peer_in.shared->reader.refuses = COLL_EXPOSED_REGION;
	memset(owner.memory->copies, 0, sizeof(owner.memory->copies));
	sent = 0;
	coll_memory_work(&owner);
	assert_true(owner.sending);
	assert_int_equal(message_there(), 0);
	peer_in.shared->reader.refuses |= COLL_EXPOSED_MEMORY;
	sent = 0;
	coll_memory_work(&owner);
	coll_memory_work(&owner);
	assert_true(!owner.sending && sent > 0 && sent <= SIZE);
	coll_socket_untouch(&owner);
	coll_shared_end(&engine.arena);
}

/* Any bytes, with any descriptors, at any time: nothing is mapped that could do harm, all are closed. */
static void a_hostile_peer_announces(void **state)
{
	const int first = dup(0);
	int i, fd;

	(void)state;
	close(first);
	srand(3);
	for (i = 0; i < 5000; i++) {
		const uint8_t byte = rand() % 4 ? COLL_REGION_IS_ANNOUNCED : rand() % 256;

		fd = rand() % 3 ? memfd_create("hostile", MFD_ALLOW_SEALING) : open("/dev/zero", O_RDWR);
		assert_true(fd >= 0);
		if (rand() % 2 && ftruncate(fd, rand() % 100000))
			assert_int_equal(errno, EINVAL);	/* a device */
		if (rand() % 2)
			fcntl(fd, F_ADD_SEALS, rand() % 2 ? COLL_FILE_SEALS : rand() % 32);
		assert_int_equal(coll_send_with_descriptor(peer, &byte, 1, rand() % 4 ? fd : -1), 1);
		close(fd);
		if (rand() % 10)
			continue;
		peer_out.shared->writer.region = rand() % 2 ? (uint64_t)rand() % 100 : UINT64_MAX;
		coll_memory_await_region(owner.memory);
		owner.memory->watch.ready(&owner.memory->watch, POLLIN);
		assert_false(owner.memory->ended);
	}
	while (coll_memory_listen(owner.memory))
		;
	for (i = 0; i < COLL_REGIONS_KNOWN; i++)
		assert_null(owner.memory->regions.mapped[i].base);
	fd = dup(0);
	assert_int_equal(fd, first);
	close(fd);
	coll_socket_untouch(&owner);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_owner_has_its_memory_back, begin, end),
		cmocka_unit_test_setup_teardown(it_has_it_back_from_a_peer_that_lies, begin, end),
		cmocka_unit_test_setup_teardown(the_way_is_chosen_once_for_a_message, begin, end),
		cmocka_unit_test_setup_teardown(a_busy_owner_counts_its_copy, begin, end),
		cmocka_unit_test_setup_teardown(a_reader_that_refuses_gets_the_rest, begin, end),
		cmocka_unit_test_setup_teardown(a_reader_that_goes_back_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(a_peer_that_goes_on_keeps_nobody_for_ever, begin, end),
		cmocka_unit_test_setup_teardown(a_peer_that_holds_on_loses_its_connection, begin, end),
		cmocka_unit_test_setup_teardown(one_long_message_is_written_at_a_time, begin, end),
		cmocka_unit_test_setup_teardown(a_region_is_announced_once, begin, end),
		cmocka_unit_test_setup_teardown(a_peer_that_does_not_listen, begin, end),
		cmocka_unit_test_setup_teardown(a_peer_that_refuses_regions, begin, end),
		cmocka_unit_test_setup_teardown(a_hostile_peer_announces, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
