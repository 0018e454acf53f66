/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Regions of a peer's arena (shared_arena.h) that this process has mapped, to read. The peer announces each
 * by a byte on the socket, with its descriptor, before it exposes memory there; both count these
 * bytes, and the count is the region's number. The latest 32 are known. Its area of publications and its
 * boards, one region each at most, are announced by other bytes, and not counted.
 *
 * What a hostile peer sends harms nothing: a file that could shrink, grow, or lose pages is not
 * mapped, nor is one with holes, which would be filled on this process' account.
 */
#ifndef COLL_REGIONS_H
#define COLL_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	COLL_REGIONS_KNOWN = 32,

	/* Bytes on the socket. Any byte wakes as well; others do nothing but that. */
	COLL_REGION_WAKES = 0,
	COLL_REGION_IS_ANNOUNCED = 1,
	COLL_REGION_IS_DROPPED = 2,	/* and its number, modulo COLL_REGIONS_KNOWN */
	COLL_REGION_IS_PUBLISHED = COLL_REGION_IS_DROPPED + COLL_REGIONS_KNOWN,
	COLL_REGION_HAS_BOARDS,
};

struct coll_region {
	const uint8_t *base;		/* NULL: it is not mapped */
	uint64_t bytes;
};

struct coll_regions {
	uint64_t told;			/* announcements so far */
	struct coll_region mapped[COLL_REGIONS_KNOWN];	/* by number, modulo COLL_REGIONS_KNOWN */
	struct coll_region area;	/* where the peer publishes (published.h) */
	bool area_told;			/* once: another one is not mapped */
	struct coll_region boards;	/* the peer's (board.h) ... */
	bool boards_told;		/* ... likewise */
};

/* These bytes came; a descriptor (else -1) came with the last of them, and is closed. */
void coll_regions_hear(struct coll_regions *regions, const uint8_t *bytes, uint32_t count, int fd);
/* Where these bytes of a region are. NULL: it is not mapped, or has not so many. */
const uint8_t *coll_regions_find(const struct coll_regions *regions, uint64_t number,
				 uint64_t offset, uint64_t bytes);
/* Unmaps all. */
void coll_regions_end(struct coll_regions *regions);

#endif
