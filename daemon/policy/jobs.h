/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The jobs of this node, as coll-job begins and ends them: a file each in the state's folder `jobs`.
 * Only who may write there, root, can say that there is one.
 */
#ifndef COLL_DAEMON_JOBS_H
#define COLL_DAEMON_JOBS_H

#include "core/port.h"

struct colld_jobs {
	char folder[512];
	int watch;		/* inotify: readable when a job has begun or ended; -1: not open */
};
#define COLLD_JOBS_NONE ((struct colld_jobs){ .watch = -1 })

/* Makes the folder if it is not there. 0 or -errno; to be closed in any case. */
int colld_jobs_open(struct colld_jobs *jobs, const char *state);
/* What has happened is read. */
void colld_jobs_drain(const struct colld_jobs *jobs);
/* 1: there is one; 0: there is none; -errno: that cannot be read now (-EMFILE), and may be either. */
int colld_jobs_any(const struct colld_jobs *jobs);
/*
 * The users of the jobs, each once: a line `uid N` of the file, which is this user's and nobody
 * else's to write. Returns how many, at most `room`; -errno: it cannot be read now (-EMFILE).
 */
int colld_jobs_users(const struct colld_jobs *jobs, u32 *uid, u32 room);
void colld_jobs_close(struct colld_jobs *jobs);

#endif
