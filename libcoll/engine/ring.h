/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A ring of bytes in memory that two processes share: one writes, one reads. Each side stores
 * only its own counter and, to wake or be woken, a flag; there is no lock and nothing to repair
 * when a process dies. What the other side stores is not trusted: its counter is checked each
 * time, and the bytes may change until they are copied out.
 *
 * Sleeping: a side that finds nothing to do sets its flag, looks again, and sleeps. The other
 * side stores its counter, then looks at the flag. In both a full barrier is between, so one of the
 * two sees the other.
 *
 * The flag says how it is woken: by a byte on the socket of both, or by its bell, a word that the
 * other side changes and then wakes (futex(2)). Then the order of the sleeper is: read the bell,
 * set the flag, look again, sleep unless the bell has changed since it was read. That of the other
 * side: store the counter, see and clear the flag, change the bell, wake. No wake-up is lost: if
 * the flag is seen, the bell changes after it was read; so either the kernel, which compares and
 * queues under one lock, finds the bell changed, or the wake finds the sleeper queued. A wait may
 * stay queued over many sleeps: only a wake ends it, and only with a wake does the bell change. If
 * the flag of a later sleep is cleared by a side that saw an earlier one, its wake is still to
 * come, and ends that later sleep.
 */
#ifndef COLL_RING_H
#define COLL_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "copy_costs.h"
#include "published.h"

enum { COLL_EXPOSED_NONCE = 16 };

/* How a side that sleeps is woken. What a hostile one stores is taken for a byte. */
enum coll_ring_sleep {
	COLL_RING_AWAKE,
	COLL_RING_AWAITS_BYTE,		/* on the socket */
	COLL_RING_AWAITS_BELL,
};

/* Where a long message lies (copy_costs.h), in bytes since the ring began; equal: there is none. */
struct coll_ring_long {
	uint64_t begin, end;
	uint32_t busy;			/* its writer had other work, too: 0 or 1 */
};

/* The shared part: pairs of lines of one side each, since processors fetch two at once. */
struct coll_ring_shared {
	struct {
		uint64_t count;			/* bytes written so far */
		uint32_t sleeps;		/* the writer waits for space: coll_ring_sleep */
		/* Bytes that the writer exposes instead (exposed.h). */
		uint32_t version;		/* odd: what follows changes, or is withdrawn */
		uint64_t address, begin, end;
		uint64_t nonce_address;
		uint8_t nonce[COLL_EXPOSED_NONCE];
		uint32_t bell;			/* the reader's: of the process, in either role */
		struct coll_ring_long latest;	/* written, or about to be */
		uint64_t region, offset;	/* exposed there (regions.h), too; region 0: not */
		uint32_t leaves;		/* it has not waited for a reader that holds: 0 or 1 */
		uint32_t publishes;		/* it has announced its area (published.h): 0 or 1 */
		uint32_t posts;			/* it has announced its boards (board.h): 0 or 1 */
	} writer __attribute__((aligned(128)));
	struct {
		uint64_t count;			/* bytes read so far */
		uint32_t sleeps;		/* the reader waits for bytes: coll_ring_sleep */
		uint32_t refuses;		/* it cannot read what is exposed: coll_exposed_way */
		uint64_t taken;			/* exposed bytes read so far */
		uint32_t maps;			/* it maps regions that it is told of: 0 or 1 */
		uint32_t holds;			/* it uses what is exposed where that is: 0 or 1 */
	} reader __attribute__((aligned(128)));
	/* The reader's too. The writer looks at it before a long message. */
	struct coll_copy_reader costs __attribute__((aligned(128)));
	/* The reader's too, if the writer publishes. */
	struct coll_published_reader published __attribute__((aligned(128)));
};

/* One side of it. */
struct coll_ring {
	struct coll_ring_shared *shared;
	uint8_t *data;
	uint64_t size;				/* a power of two */
	uint64_t count;				/* this side's */
	uint64_t other;				/* the other side's, as it was last seen */
	uint64_t told;				/* the reader's: its count, as the writer may see it */
};

/* Bytes of shared memory for a ring of this size. */
static inline size_t coll_ring_bytes(uint64_t size)
{
	return sizeof(struct coll_ring_shared) + size;
}

/* One side of the ring at this place, which is aligned to 128 bytes and was zero at first. */
void coll_ring_init(struct coll_ring *ring, void *place, uint64_t size);

/*
 * All stores before it are seen before any load after it. An exchange is a full barrier on x86;
 * ThreadSanitizer knows no fences.
 */
static inline void coll_processor_barrier(void)
{
	uint32_t any = 0;

	__atomic_fetch_add(&any, 0, __ATOMIC_SEQ_CST);
#ifndef __x86_64__
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* ---- the writer ------------------------------------------------------------ */

/* Bytes that fit. -EPROTO: the reader's counter is impossible. */
int64_t coll_ring_space(struct coll_ring *ring);
/*
 * Copies these few bytes, `bytes` in all, if they fit whole and lie together there: the reader finds
 * all of them or none. False: nothing was written.
 */
bool coll_ring_put(struct coll_ring *ring, const struct iovec *iov, int count, uint64_t bytes);
/* A long message is to be written, `after` other bytes: the reader knows when to look at the clock. */
void coll_ring_announce(struct coll_ring *ring, uint64_t after, uint64_t bytes, bool busy);
/* Copies as much as fits, piece by piece, so that the reader can begin. Returns bytes; -EPROTO. */
ssize_t coll_ring_write(struct coll_ring *ring, const struct iovec *iov, int count);
/*
 * Whether the reader sleeps and is to be woken, and how; asked after a coll_processor_barrier() that
 * follows the writes: one for those to many rings.
 */
enum coll_ring_sleep coll_ring_wakes_reader(struct coll_ring *ring);
/* The writer is about to sleep until there is space. False: there is some. */
bool coll_ring_await_space(struct coll_ring *ring, enum coll_ring_sleep sleep);
/* The writer is about to sleep until the reader has read. */
void coll_ring_await_reader(struct coll_ring *ring, enum coll_ring_sleep sleep);
/* Rings the bell of the process that reads, which sleeps by it. Costs a system call. */
void coll_ring_ring_bell(struct coll_ring *ring);

/* ---- the reader ------------------------------------------------------------ */

/* Bytes that are there. -EPROTO: the writer's counter is impossible. */
int64_t coll_ring_available(struct coll_ring *ring);
/*
 * The next bytes where they are, until they are consumed: so many lie together, and no more than
 * are copied before the writer is to have their space again. -EPROTO.
 */
ssize_t coll_ring_peek(struct coll_ring *ring, const uint8_t **data);
/*
 * The writer learns of it when a quarter of the ring is free. Until then neither side stores to the
 * reader's lines, which the writer looks at after each write: both keep them in their caches.
 */
void coll_ring_consume(struct coll_ring *ring, uint64_t bytes);
/* The long message that was announced last. What a hostile writer says of it is in no order. */
struct coll_ring_long coll_ring_latest(const struct coll_ring *ring);
/* Whether the writer sleeps and is to be woken, and how; asked after consume(). */
enum coll_ring_sleep coll_ring_wakes_writer(struct coll_ring *ring);
/* The reader is about to sleep until there are bytes. False: there are some. */
bool coll_ring_await_bytes(struct coll_ring *ring, enum coll_ring_sleep sleep);
/* The bell that the writing process rings. */
static inline const uint32_t *coll_ring_bell(const struct coll_ring *ring)
{
	return &ring->shared->writer.bell;
}

/* ---- both ------------------------------------------------------------------ */

/* The side does not sleep any more: it need not be woken. */
void coll_ring_writer_awake(struct coll_ring *ring);
void coll_ring_reader_awake(struct coll_ring *ring);

#endif
