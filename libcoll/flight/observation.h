/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What observers saw of ranks, in files: of this user's, and of colld for this user. */
#ifndef COLL_FLIGHT_OBSERVATION_H
#define COLL_FLIGHT_OBSERVATION_H

#include "find.h"

/*
 * Into the records of the ranks that it is of. Of two observers of a rank the one counts that looked for
 * longer, so nothing is counted twice. What cannot be is dropped: of it the causes are lost, and not
 * the report.
 */
void coll_flight_observation_take(struct coll_flight_set *set, struct coll_flight_observation *one);
/* All of a file; `job` NULL: of any. It may not be there. */
void coll_flight_observation_read(struct coll_flight_set *set, int folder, const char *name,
				  const char *job);

/* What colld of this node saw of these ranks; nothing where there is none, or it has not looked. */
void coll_flight_observation_colld(struct coll_flight_set *set);
/* ... of one rank of this process. false: nothing. */
bool coll_flight_observation_of(const struct coll_flight_page *page,
				struct coll_flight_observation *one);
/*
 * By colld: instead of the file for that user, whole, in a folder that nobody else can write to. It is
 * colld's, and the user may read it. -errno; -EOPNOTSUPP: the file system has no access lists.
 */
int coll_flight_observation_leave(const char *folder, uid_t uid,
				  const struct coll_flight_observation *all, uint32_t count);
void coll_flight_observation_remove(const char *folder, uid_t uid);

#endif
