// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/port.h"
#include "ring.h"

enum {
	/* The other side sees bytes, or space, after so many at the latest. */
	PIECE = 32 << 10,
	/* The writer learns that this part of the ring is free, and is woken if it sleeps. */
	FREE_PART = 4,
};

void coll_ring_init(struct coll_ring *ring, void *place, uint64_t size)
{
	coll_assert(size && !(size & (size - 1)) && !((uintptr_t)place & 127));
	*ring = (struct coll_ring){
		.shared = place,
		.data = (uint8_t *)place + sizeof(struct coll_ring_shared),
		.size = size,
	};
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Bytes from this count on that lie together. */
static uint64_t ring_together(const struct coll_ring *ring, uint64_t bytes)
{
	return least_of(bytes, ring->size - (ring->count & (ring->size - 1)));
}

static uint8_t *place_of(const struct coll_ring *ring)
{
	return ring->data + (ring->count & (ring->size - 1));
}

/* ---- the writer ------------------------------------------------------------ */

static int64_t space_now(struct coll_ring *ring, int order)
{
	const uint64_t other = order == __ATOMIC_SEQ_CST ?
				       __atomic_load_n(&ring->shared->reader.count, __ATOMIC_SEQ_CST) :
				       __atomic_load_n(&ring->shared->reader.count, __ATOMIC_ACQUIRE);

	if (ring->count - other > ring->size)
		return -EPROTO;
	ring->other = other;
	return ring->size - (ring->count - other);
}

int64_t coll_ring_space(struct coll_ring *ring)
{
	const uint64_t space = ring->size - (ring->count - ring->other);

	/* The reader's line is fetched only when the space that is known is used up. */
	return space >= least_of(PIECE, ring->size / 2) ? (int64_t)space :
						       space_now(ring, __ATOMIC_ACQUIRE);
}

bool coll_ring_put(struct coll_ring *ring, const struct iovec *iov, int count, uint64_t bytes)
{
	uint8_t *place = place_of(ring);

	if (bytes > PIECE || ring_together(ring, bytes) < bytes ||
	    coll_ring_space(ring) < (int64_t)bytes)
		return false;
	for (; count; place += iov->iov_len, iov++, count--)
		memcpy(place, iov->iov_base, iov->iov_len);
	ring->count += bytes;
	__atomic_store_n(&ring->shared->writer.count, ring->count, __ATOMIC_RELEASE);
	return true;
}

void coll_ring_announce(struct coll_ring *ring, uint64_t after, uint64_t bytes, bool busy)
{
	struct coll_ring_long *latest = &ring->shared->writer.latest;

	__atomic_store_n(&latest->begin, ring->count + after, __ATOMIC_RELAXED);
	__atomic_store_n(&latest->end, ring->count + after + bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&latest->busy, busy, __ATOMIC_RELAXED);
}

ssize_t coll_ring_write(struct coll_ring *ring, const struct iovec *iov, int count)
{
	ssize_t written = 0;
	uint64_t at = 0;	/* of *iov */
	int64_t space;

	while (count) {
		uint64_t piece = 0;

		space = coll_ring_space(ring);
		if (space < 0)
			return space;
		if (!space)
			break;
		while (count && piece < PIECE && space) {
			const uint64_t left = iov->iov_len - at;
			const uint64_t part = ring_together(ring, least_of(least_of(left, space), PIECE - piece));

			memcpy(place_of(ring), (const uint8_t *)iov->iov_base + at, part);
			ring->count += part;
			piece += part;
			space -= part;
			at += part;
			if (at < iov->iov_len)
				continue;
			at = 0;
			iov++;
			count--;
		}
		written += piece;
		__atomic_store_n(&ring->shared->writer.count, ring->count, __ATOMIC_RELEASE);
	}
	return written;
}

static enum coll_ring_sleep sleep_of(uint32_t sleeps)
{
	return sleeps <= COLL_RING_AWAITS_BELL ? sleeps : COLL_RING_AWAITS_BYTE;
}

/*
 * What is taken is answered: who sleeps may wake, and sleep again in another way, between a look
 * and a store. A look alone while nobody sleeps: it leaves the line shared.
 */
static enum coll_ring_sleep flag_taken(uint32_t *sleeps)
{
	if (!__atomic_load_n(sleeps, __ATOMIC_SEQ_CST))
		return COLL_RING_AWAKE;
	return sleep_of(__atomic_exchange_n(sleeps, 0, __ATOMIC_SEQ_CST));
}

enum coll_ring_sleep coll_ring_wakes_reader(struct coll_ring *ring)
{
	return flag_taken(&ring->shared->reader.sleeps);
}

void coll_ring_await_reader(struct coll_ring *ring, enum coll_ring_sleep sleep)
{
	__atomic_store_n(&ring->shared->writer.sleeps, sleep, __ATOMIC_SEQ_CST);
}

bool coll_ring_await_space(struct coll_ring *ring, enum coll_ring_sleep sleep)
{
	coll_ring_await_reader(ring, sleep);
	return !space_now(ring, __ATOMIC_SEQ_CST);
}

void coll_ring_ring_bell(struct coll_ring *ring)
{
	uint32_t *bell = &ring->shared->writer.bell;

	/* No other process changes it. The flag was cleared before. */
	__atomic_store_n(bell, *bell + 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* ---- the reader ------------------------------------------------------------ */

static int64_t available_now(struct coll_ring *ring, int order)
{
	const uint64_t other = order == __ATOMIC_SEQ_CST ?
				       __atomic_load_n(&ring->shared->writer.count, __ATOMIC_SEQ_CST) :
				       __atomic_load_n(&ring->shared->writer.count, __ATOMIC_ACQUIRE);

	if (other - ring->count > ring->size)
		return -EPROTO;
	ring->other = other;
	return other - ring->count;
}

int64_t coll_ring_available(struct coll_ring *ring)
{
	return ring->other != ring->count ? (int64_t)(ring->other - ring->count) :
					    available_now(ring, __ATOMIC_ACQUIRE);
}

/*
 * A short message and the counter are in lines of their own, so both are fetched at once: the message's would be asked
 * for only when the counter's is there, a line's way later.
 */
ssize_t coll_ring_peek(struct coll_ring *ring, const uint8_t **data)
{
	const uint8_t *place = place_of(ring);
	int64_t available;

	__builtin_prefetch(place);
	__builtin_prefetch(place + 63);		/* it may lie in two; no prefetch faults */
	available = coll_ring_available(ring);
	*data = place;
	if (available <= 0)
		return available;
	return least_of(ring_together(ring, available), PIECE);
}

struct coll_ring_long coll_ring_latest(const struct coll_ring *ring)
{
	const struct coll_ring_long *latest = &ring->shared->writer.latest;

	return (struct coll_ring_long){
		.begin = __atomic_load_n(&latest->begin, __ATOMIC_RELAXED),
		.end = __atomic_load_n(&latest->end, __ATOMIC_RELAXED),
		.busy = __atomic_load_n(&latest->busy, __ATOMIC_RELAXED) & 1,
	};
}

void coll_ring_consume(struct coll_ring *ring, uint64_t bytes)
{
	coll_assert(bytes <= ring->other - ring->count);
	ring->count += bytes;
	if (ring->count - ring->told < ring->size / FREE_PART)
		return;
	ring->told = ring->count;
	__atomic_store_n(&ring->shared->reader.count, ring->told, __ATOMIC_SEQ_CST);
}

enum coll_ring_sleep coll_ring_wakes_writer(struct coll_ring *ring)
{
	if (ring->other - ring->count > ring->size - ring->size / FREE_PART)
		return COLL_RING_AWAKE;
	return flag_taken(&ring->shared->writer.sleeps);
}

bool coll_ring_await_bytes(struct coll_ring *ring, enum coll_ring_sleep sleep)
{
	__atomic_store_n(&ring->shared->reader.sleeps, sleep, __ATOMIC_SEQ_CST);
	return !available_now(ring, __ATOMIC_SEQ_CST);
}

/* ---- both ------------------------------------------------------------------ */

void coll_ring_writer_awake(struct coll_ring *ring)
{
	__atomic_store_n(&ring->shared->writer.sleeps, 0, __ATOMIC_RELAXED);
}

void coll_ring_reader_awake(struct coll_ring *ring)
{
	__atomic_store_n(&ring->shared->reader.sleeps, 0, __ATOMIC_RELAXED);
}
