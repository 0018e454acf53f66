/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Exposed memory: instead of writing many bytes to a ring, a process says where they are, and its
 * peer reads them there: one copy instead of two, by the reader alone. They follow all bytes of the
 * ring; the writer writes nothing more until they are taken. Memory of the writer's arena, of which
 * the reader has been told the region, is read where that is mapped; other memory, and a region that
 * the reader could not map, by process_vm_readv(2).
 *
 * Exposed bytes are counted from the first on. The writer maps the counts from `begin` to `end` to
 * an address. It may map the rest to another address at any time and have its memory back at
 * once: what was read while the version changed is read again.
 *
 * What is in a mapped region may also be used there, without a copy, and cannot be used again: a reduction
 * replaces its operand. So the reader holds it meanwhile, and a writer that wants it back waits until it
 * does not. Either stores its flag, or its version, and then looks at the other's. A writer that has
 * waited for long enough goes on, and says so; the reader, which then has used what it should not, ends
 * the connection. It never holds the last bytes of what is exposed: without them nothing is complete.
 *
 * With each read by the system call comes a nonce from the writer's memory. So a process that got the
 * number of one that has died is not read from. A reader that may not read (Yama, seccomp, another
 * namespace) says so, and the rest comes through the ring; likewise one that could not map a region.
 */
#ifndef COLL_EXPOSED_H
#define COLL_EXPOSED_H

#include "regions.h"
#include "ring.h"

/* What a reader refuses, by bits. */
enum coll_exposed_way {
	COLL_EXPOSED_MEMORY = 1,	/* memory that is in no region */
	COLL_EXPOSED_REGION = 2,
};

/* One direction, at one of its sides. */
struct coll_exposed {
	struct coll_ring *ring;
	uint64_t begin, end;		/* the writer's: what was exposed last */
	uint64_t region;		/* the writer's: which has it; 0: none */
	uint64_t taken;			/* the reader's: bytes so far */
	int pid;			/* the reader's: of the writer; 0: not known */
	struct coll_regions *regions;	/* the reader's: of the writer; NULL: it maps none */
	uint64_t calls;			/* the reader's: system calls so far */
	uint32_t refused;		/* ways in which nothing is exposed (any more): bits */
	uint8_t nonce[COLL_EXPOSED_NONCE];	/* the writer's: the peer reads it here */
	bool maps;			/* the reader said that it maps regions */
	bool left;			/* the writer did not wait for a reader that held: it does so once */
};

/* ---- the writer ------------------------------------------------------------ */

/* Before the peer has the ring. It stays where it is until the ring ends. */
void coll_exposed_init(struct coll_exposed *exposed, struct coll_ring *ring);
/* Of a writer that exposed nothing that is not taken. */
void coll_exposed_begin(struct coll_exposed *exposed, const void *address, uint64_t bytes);
/* The same of memory in a region that the reader was told of by this number, and maps regions. */
void coll_exposed_begin_there(struct coll_exposed *exposed, const void *address, uint64_t bytes,
			      uint64_t region, uint64_t offset);
/* Whether the reader maps regions: may be told of them, and may be exposed memory there. */
bool coll_exposed_maps(struct coll_exposed *exposed);
/*
 * Bytes of it that are taken, since it was moved. All of them: the memory is the writer's again.
 * *refused: no more will be taken, and the exposure has ended. -EPROTO: the reader's counter is
 * impossible.
 */
int64_t coll_exposed_taken(struct coll_exposed *exposed, bool *refused);
/* What is not taken is at `address` from here on. On return the old memory is the writer's. */
void coll_exposed_move(struct coll_exposed *exposed, uint64_t taken, const void *address);
/*
 * After it was moved or withdrawn, unless the peer is dead: until the reader does not use the old place
 * any more. False: it still does, and is told so; the connection is to end. Takes a second at most, and of
 * several readers that hold on each further one 20 ms: they share *owed_until, which begins as 0. What the
 * first has taken all had.
 */
bool coll_exposed_await_reader(struct coll_exposed *exposed, uint64_t *owed_until);
/* After a refusal, of which so many bytes were taken: the rest is not exposed any more. */
void coll_exposed_stop(struct coll_exposed *exposed, uint64_t taken);
/* For good. The memory is the writer's; what the reader has not taken it never gets. */
void coll_exposed_withdraw(struct coll_exposed *exposed);

/* ---- the reader ------------------------------------------------------------ */

void coll_exposed_attach(struct coll_exposed *exposed, struct coll_ring *ring, int pid);
/* From now on it maps the writer's regions. They live as long as the ring. */
void coll_exposed_map_regions(struct coll_exposed *exposed, struct coll_regions *regions);
/* Whether what waits is in a region that was announced, and was not heard of yet. */
bool coll_exposed_awaits_region(const struct coll_exposed *exposed);
/* Bytes that come next, before those of the ring. -EPROTO: what the writer says is impossible. */
int64_t coll_exposed_waits(struct coll_exposed *exposed);
/*
 * Where at most `max` of them are mapped: so many lie there, until coll_exposed_took(). 0: they are to
 * be read.
 */
int64_t coll_exposed_hold(struct coll_exposed *exposed, uint64_t max, const uint8_t **data);
/* All of them were used. False: the writer did not wait, so they may have been others: all is lost. */
bool coll_exposed_took(struct coll_exposed *exposed, uint64_t bytes);
/*
 * Reads at most `max` of them. 0: not now, ask again; or never, if the reader refuses: the writer
 * learns it.
 */
int64_t coll_exposed_read(struct coll_exposed *exposed, const struct iovec *iov, int count,
			  uint64_t max);

#endif
