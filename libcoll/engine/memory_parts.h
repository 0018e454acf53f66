/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What the files of memory share. */
#ifndef COLL_MEMORY_PARTS_H
#define COLL_MEMORY_PARTS_H

#include "copy_costs.h"
#include "engine.h"
#include "exposed.h"
#include "ring.h"

struct coll_memory {
	struct coll_socket *socket;
	struct coll_memory *next;	/* of the engine */
	void *map;
	size_t bytes;
	struct coll_ring out, in;
	struct coll_exposed exposed_out, exposed_in;
	struct coll_copy_writer copies[2];	/* of messages that are in no region, and in one */
	struct {			/* a long message to be sent, whose way is chosen */
		uint64_t bytes;		/* 0: none */
		bool reads, busy, there;	/* there: in a region */
	} chosen;
	struct coll_regions regions;	/* the peer's */
	bool held;			/* the owner reads in one of these: none may be unmapped */
	uint64_t announced;		/* to the peer: regions so far ... */
	struct {
		uint64_t region, number;	/* ... and which as which; 0: it was not */
	} region[COLL_ARENA_REGIONS];
	bool area_told;			/* the peer was told of the area of publications ... */
	uint32_t lent[COLL_SLOTS];	/* ... and so often of each of its slots */
	uint32_t lent_slots;		/* not yet seen to be acknowledged: bits */
	bool area_awaited;		/* the peer's was looked for */
	bool boards_told;		/* the peer was told of this process' */
	bool boards_awaited;		/* the peer's were looked for */
	uint64_t long_end;		/* of one that the ring has begun with, in bytes since it began */
	uint32_t long_octave;
	bool long_there;
	struct {			/* a long message that the ring brings */
		uint64_t since;		/* its first bytes were there; 0: there is none */
		uint64_t bytes, end;	/* end: in bytes since the ring began */
		uint32_t busy;
	} long_in;
	struct coll_watch watch;	/* of the socket below */
	struct coll_bell bell;		/* which the peer rings */
	bool blocked;			/* the ring is full, and there is more to send */
	bool exposes;			/* the peer is to take bytes from this process */
	const uint8_t *exposed;		/* ... these, of the owner or in `copy` */
	uint64_t exposed_bytes, exposed_since;
	uint8_t *copy;			/* the owner has its memory back; NULL: it has not */
	uint64_t copy_sent, copy_bytes;	/* goes through the ring: the peer refused it */
	uint8_t *buffer;		/* for exposed bytes that have no place yet, or NULL */
	bool unwoken;			/* on the engine's list: */
	struct coll_memory *next_unwoken;
	bool ended;			/* so has the socket below: the peer writes nothing more */
	int error;			/* why; 0: its end */
	bool told;			/* the owner knows that */
};

/* Bytes that wait in the ring, or exposed. */
static inline bool coll_memory_has_bytes(struct coll_memory *memory)
{
	return coll_ring_available(&memory->in) || coll_exposed_waits(&memory->exposed_in);
}

/* ---- memory_peer.c ---------------------------------------------------------- */

/* A full buffer has bytes that wake the peer already. */
void coll_memory_wake_peer(struct coll_memory *memory, enum coll_ring_sleep sleep);
/* After bytes were written, or exposed. */
void coll_memory_wake_reader(struct coll_memory *memory);
/* The reader is woken, if it sleeps, with those of other writes: coll_memory_wake_readers(). */
void coll_memory_wake_reader_soon(struct coll_memory *memory);
/* The first error is kept: a lack of memory here is not the peer's end. 0: it has closed. */
void coll_memory_end(struct coll_memory *memory, int error);
/* A counter of the peer's is impossible. */
void coll_memory_fail(struct coll_memory *memory);
/* Why nothing can be sent any more. */
int coll_memory_loss(const struct coll_memory *memory);

/* ---- memory_regions.c -------------------------------------------------------- */

/*
 * The number by which the peer knows the region that has these bytes, announced now if it is
 * necessary, and where in it they begin. 0: there is none, or the peer cannot be told.
 */
uint64_t coll_memory_region_of(struct coll_memory *memory, const struct iovec *iov,
			       uint64_t *offset);
/* Tells the peer of a region, by this byte. False: its socket is full. */
bool coll_memory_announce(struct coll_memory *memory, uint8_t byte,
			  const struct coll_shared_region *region);
/* Receives what is on the socket below: bytes that wake, announcements. False: nothing now. */
bool coll_memory_listen(struct coll_memory *memory);
/* The same until what is awaited is here: it was announced before what it is for. A peer that lies costs 64 looks. */
void coll_memory_listen_while(struct coll_memory *memory, bool (*awaits)(const struct coll_memory *memory));
/* What waits is in a region that was announced: hears of it. */
void coll_memory_await_region(struct coll_memory *memory);

/* ---- published.c ------------------------------------------------------------ */

/* A long message comes. If the peer has announced its area before, hears of it. */
void coll_memory_await_area(struct coll_memory *memory);
/* This end closes: slots that the peer may read yet are not used again before its process has ended. */
void coll_memory_leave_slots(struct coll_memory *memory);

/* ---- memory_exposed.c ------------------------------------------------------- */

/*
 * Whether these bytes are to be read where they are: chosen once for a message. For a long one that
 * costs a look at all memory of the engine.
 */
bool coll_memory_may_expose(struct coll_memory *memory, const struct iovec *iov);
/*
 * The first of them is not: how many, in their order, go to the ring at once. One long message at
 * most is among them, and none that is to be read where it is.
 */
int coll_memory_ring_count(struct coll_memory *memory, const struct iovec *iov, int count);
/* Writes these to the ring, as coll_ring_write(). */
ssize_t coll_memory_write(struct coll_memory *memory, const struct iovec *iov, int count);
void coll_memory_expose(struct coll_memory *memory, const struct iovec *iov);
/* The peer has taken it all, or refused, or is gone. False: it has yet to take something. */
bool coll_memory_exposed_is_over(struct coll_memory *memory);
/* The owner wants its memory: a copy stands for it. Without memory for one the connection ends. */
void coll_memory_give_back(struct coll_memory *memory);
/* Sends what the peer refused of a copy. True: all of it has gone. */
bool coll_memory_send_copy(struct coll_memory *memory);

#endif
