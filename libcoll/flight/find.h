/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The pages of this user's ranks on this node, as any process of the user sees them. */
#ifndef COLL_FLIGHT_FIND_H
#define COLL_FLIGHT_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "uapi/coll_flight.h"

struct coll_flight_set {
	struct coll_flight_seen **seen;	/* ordered by job and rank */
	size_t count, capacity;
	uint32_t foreign;		/* pages of another version of the library */
	uint32_t hidden;		/* processes of the user that cannot be looked into */
};

/*
 * Adds the pages of `job`, or of all jobs (NULL). Nothing is asked of the ranks, so it takes a few
 * ms whatever they do. -ENOMEM, -errno: no /proc.
 */
int coll_flight_find(struct coll_flight_set *set, const char *job);
/*
 * The pages of a user alone, another one's too, or of all, for who may read them. The user makes what is read,
 * so all of it has an end. Of each page found `each` is told; with true it keeps the descriptor. Of `seen`
 * it gets the page, the pid and whether the rank has ended, and nothing that the kernel says. The page's owner is
 * the rank's user.
 */
#define COLL_FLIGHT_ANY_USER ((uid_t)-1)
struct coll_flight_search {
	const char *job;		/* or NULL */
	uid_t uid;			/* or COLL_FLIGHT_ANY_USER */
	uint64_t until;			/* coll_now(): it ends after the process it is at */
	uint32_t from;			/* the first pid; then the one to go on at, 0: it saw all */
	bool (*each)(struct coll_flight_seen *seen, int page, void *argument);
	void *argument;
};
/* -ENOMEM, -errno: no /proc. Of a process at most 4096 descriptors are read, up to the first page. */
int coll_flight_search(struct coll_flight_search *search);
/* That of the same page, in place of which this one is taken if its rank lives; NULL: there is none. */
struct coll_flight_seen *coll_flight_take_over(struct coll_flight_set *set, const struct coll_flight_seen *seen);
/* Adds a dump's bytes. -EPROTO: it is none, or of another version. */
int coll_flight_add(struct coll_flight_set *set, const void *bytes, size_t size);
/*
 * Names of other users' programs and cgroups end, and have nothing that a terminal obeys. An
 * observation that does not fit is none: it gets zeros.
 */
void coll_flight_observed_clean(struct coll_flight_observed *observed);
/* ns of at most 100 years. */
bool coll_flight_is_time(uint64_t ns);
/* Whether its times can be of a job. */
bool coll_flight_observed_fits(const struct coll_flight_observed *observed);
/* By job and rank. Of a rank the page that was opened last remains. */
void coll_flight_sort(struct coll_flight_set *set);
void coll_flight_free(struct coll_flight_set *set);

/* The part of the set from `first` on that is of one job; returns where it ends. */
size_t coll_flight_job_end(const struct coll_flight_set *set, size_t first);

/* Marks those whose process or progress thread has not moved since `before` was found. */
void coll_flight_compare(struct coll_flight_set *set, const struct coll_flight_set *before);

/* What is found among a process' descriptors. */
enum { FLIGHT_SOCKETS_MAX = 4096 };
struct coll_flight_found {
	size_t most;			/* descriptors to be read; 0: all. Else a page is enough */
	int page;			/* a descriptor of the page here, or -1 */
	int device;			/* its own descriptor of /dev/coll, or -1 */
	size_t sockets;
	uint64_t socket[FLIGHT_SOCKETS_MAX];	/* inodes */
};

/* What the kernel says of the process (process.c); of its connections: queues.h. */
void coll_flight_look(struct coll_flight_seen *seen, const struct coll_flight_found *found);
/* proc(5)'s letter for its first thread: 'T' is stopped. 0: it has ended. */
uint8_t coll_flight_state(const struct coll_flight_seen *seen);
/*
 * Its thread that makes progress, as this process numbers it. 0: not found. In another namespace of pids each of
 * its threads is asked, of 1024 at most, some 40 ms: the process is a user's.
 */
uint32_t coll_flight_owner(const struct coll_flight_seen *seen);
/*
 * Its kernel thread is ready and does not run: which real-time task has its CPU, as the tracer. Reads
 * a file of each thread of this node.
 */
void coll_flight_who_has_cpu(struct coll_flight_seen *seen);

#endif
