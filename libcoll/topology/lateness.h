/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Noise by what all ranks sampled of a group's messages (exec/samples.h): how often one is late,
 * and by how much.
 *
 * Of an exchange both latencies together are known, whoever came later. Their usual time is that
 * of the costs, scaled to the lower quartile of the latest exchanges, so wrong costs do no harm. A
 * message is late if the exchange took longer by LATE_TIMES times the usual time of a message;
 * what a rank had no core for is not the message's. With a part s of late exchanges, one of
 * messages is late with h = 1 - sqrt(1 - s), for E seconds on average, and
 *
 *	link noise = E seconds, -log(1 - h) / (usual + E) times a second:
 *
 * the events that make as many messages late, each by as much, in the model that chooses T
 * (algo/redundancy). Events of random length, or of one message each, have this rate and length.
 * Of events of one length that hold up whatever is under way, E is half of it, and the rate twice
 * theirs.
 *
 * A rank that came late itself for its call hides the delays of messages that it finds there, and
 * those harm nobody: such exchanges count as in time. An exchange counts as late only if
 * both ranks waited, so a late rank alone is never one. Nor is a receiver without a core: that is a
 * *stop*, noise of ranks. It needs the kernel's account, and ranks with a core each, else it is
 * the job's own, and noise of ranks is what colld of their nodes tells (colld_noise.h).
 *
 * Ranks that are waited for are named, up to COLL_LATE_RANKS of those met most often: those without
 * a core, and those that came last while their message took its usual time. That is the application's
 * imbalance, or what it is made of.
 *
 * The floor: delays under LATE_TIMES latencies, and less than LATE_LEAST late exchanges in memory,
 * which is two seconds, or two surveys where these are rarer; of links 2000 exchanges, where those
 * have fewer. Delays of a few times that floor come out too long and too rare, by what it hides of
 * them. More than three quarters of late messages are
 * not noise but the costs. Noise is over when a sequential test says so (counted_noise.h): eight events
 * or more were to be expected, and hardly one came. Of calls
 * that take less than 20 us on average it is not known who had a core, and samples tell nothing, but while noise is
 * answered, which makes calls short.
 *
 * Sends nothing, reads no clock: a function of what all ranks have.
 */
#ifndef COLL_TOPOLOGY_LATENESS_H
#define COLL_TOPOLOGY_LATENESS_H

#include "libcoll/exec/samples.h"

enum {
	LATE_TIMES = 4,
	LATE_LEAST = 3,		/* noise counts from so many in memory on */
	LATE_MEMORY_SECONDS = 2,	/* and so long counts what counts, at least */
};

/*
 * Adds what was found and sets `machine`'s noise, of links and of ranks, unless it was given. It
 * stays while it is within a factor of 1.5, or what its events differ by chance, and for 2 s. Nothing
 * of one rank's own decides, and no function whose last bit may differ. Returns whether it has changed.
 */
bool coll_lateness(struct coll_machine *machine, struct coll_lateness *late,
		   const struct coll_samples_found *found);

#endif
