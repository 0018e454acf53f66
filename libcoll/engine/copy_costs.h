/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What a long message has cost by either way: through the ring, which the writer copies it to and
 * the reader from; or read in the writer's memory (exposed.h), where the reader copies it alone
 * and the writer waits until it has. Which is faster depends on the two cores: each line of a ring
 * moves between their caches twice, once to be written and once to be read. Where they share a
 * cache both copy at once and are done sooner; where they do not, it takes four times as long
 * (docs/results/node.md). It depends on the length, for what comes from outside of the
 * caches is copied at another speed; on what else the writer has to do; and on whether readers
 * are late, for whom the writer of a ring does not wait. So both look at the clock, and the
 * writer chooses. It takes the other way now and then, since threads move.
 *
 * A cost is in nanoseconds for 2^20 bytes; 0: not met. Costs are kept for each octave of lengths.
 * Those that the reader has met are in shared memory, where a hostile one may store anything: it
 * changes the way of bytes that it gets, and nothing else.
 */
#ifndef COLL_COPY_COSTS_H
#define COLL_COPY_COSTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	COLL_COPY_LEAST = 16 << 10,	/* shorter messages always go through the ring */
	COLL_COPY_OCTAVES = 11,		/* from there on; the last one has all longer ones */
};

/*
 * The reader's, in shared memory: only it stores them. From the first bytes of a ring to the last;
 * with a writer that has nothing else to do, or has: it does not copy meanwhile.
 */
struct coll_copy_reader {
	uint32_t ring[2][COLL_COPY_OCTAVES];
};

/* The writer's. */
struct coll_copy_writer {
	uint32_t in[COLL_COPY_OCTAVES];		/* to copy to the ring */
	uint32_t read[2][COLL_COPY_OCTAVES];	/* until the reader has it all */
	uint32_t since[2][COLL_COPY_OCTAVES];	/* messages since the other way was tried */
	uint8_t first[2][COLL_COPY_OCTAVES];	/* messages of the beginning, which go by turns */
};

uint32_t coll_copy_octave(uint64_t bytes);

/*
 * So many bytes took so long. It follows what changes within ten messages; a thread that has lost
 * its core meanwhile changes little.
 */
void coll_copy_met(uint32_t *cost, uint64_t ns, uint64_t bytes);

/*
 * Whether the reader is to read these bytes, at least COLL_COPY_LEAST, in the writer's memory, if
 * that is or is not busy. Asked once for a message.
 */
bool coll_copy_reads(struct coll_copy_writer *writer, const struct coll_copy_reader *reader,
		     uint64_t bytes, bool busy);

#endif
