/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * One rank whose links are bad, by what all ranks sampled (lateness.h): the messages of and to it come late,
 * and hardly any other. It counts from twelve late exchanges in memory on, if the other exchanges are so many
 * that by its share twelve of those would be late, and at most an eighth of that is.
 *
 * A leaf sends no more than its first message, so its links are hardly looked at any more: it is judged by
 * its own exchanges alone, and its noise is that of its messages. It counts until a sequential test says that
 * they are in time again (counted_noise.h), or until other links are late.
 *
 * Where nearly all late exchanges are with one peer, it is that link that is bad. Of the two ranks the one met
 * more often counts, else the lower. If the algorithm that takes it for a leaf does not use that link,
 * nobody sees how it is: after LINK_UNSEEN_SECONDS it is used again, and learned anew.
 */
#ifndef COLL_TOPOLOGY_LATE_LINKS_H
#define COLL_TOPOLOGY_LATE_LINKS_H

#include "libcoll/exec/samples.h"

enum { LINK_UNSEEN_SECONDS = 30 };

/* An exchange, whose messages usually take so long, and took longer by `excess`. */
void coll_late_links_add(struct coll_late_links *links, const struct coll_sample *sample, double usual,
			 double excess);

void coll_late_links_fade(struct coll_late_links *links, double keep);

/* After a survey of so many ranks; 0: no rank is looked for. */
void coll_late_links_follow(struct coll_late_links *links, uint32_t ranks, double seconds);

/* The one that counts; NULL: there is none. */
const struct coll_late_link *coll_late_links_bad(const struct coll_late_links *links);

#endif
