/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The semi-public interface for libcollmpi.so, beyond coll.h. It is linked from libcoll.a,
 * not installed and not exported by libcoll.so. It changes with mpi/.
 */
#ifndef COLL_SHIM_H
#define COLL_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll.h"

enum { COLL_SHIM_SECRET_BYTES = 32 };

/* COLL_SECRET. 0: it is not set; 1: it is; -EINVAL: `why` in words. */
int coll_shim_secret(uint8_t secret[COLL_SHIM_SECRET_BYTES], char *why, size_t why_bytes);
/* A new secret for a job. False: the kernel has no random bytes. */
bool coll_shim_make_secret(uint8_t secret[COLL_SHIM_SECRET_BYTES]);

/*
 * The job, described by the MPI below. `exchange` gives every rank the bytes of all
 * ranks, one after the other in *all (from malloc), or fails. Collective; it is called
 * by coll_shim_open() only.
 */
struct coll_shim_job {
	int rank, ranks;
	int local_rank, local_ranks;		/* on this node; -1: unknown */
	uint8_t secret[COLL_SHIM_SECRET_BYTES];	/* the same on all ranks */
	bool secret_carried;			/* ... by the MPI, to other nodes */
	int (*exchange)(void *argument, const void *mine, size_t bytes, void **all,
			size_t *all_bytes);
	void *argument;
};

/*
 * coll_open() in this job. Progress is made by calls only: coll_shim_poll(). `job` is
 * copied; what `argument` points to must live until this returns.
 */
int coll_shim_open(const char *options, const struct coll_shim_job *job,
		   struct coll_context **context);

/*
 * coll_close() that waits for the peers for `ns` at most. Memory of coll_shim_alloc() stays, for
 * coll_shim_free_left(). NULL: there is none.
 */
void *coll_shim_close(struct coll_context *context, uint64_t ns);

/* Memory as of coll_alloc(), if it is in a region that ranks of the node map; else NULL. */
void *coll_shim_alloc(struct coll_context *context, size_t bytes);
/* Frees it. False: it is not of this context. */
bool coll_shim_free(struct coll_context *context, void *memory);
/* The same of what coll_shim_close() has left. */
bool coll_shim_free_left(void *left, void *memory);

/* Whether the environment or $COLL_CONFIG sets a deadline. */
bool coll_shim_deadline_set(void);

/*
 * Whether nothing is asked of this collective ("bcast") within a node that the MPI has not: no option names
 * an algorithm for it, a deadline, noise, a report, or the way of its bytes.
 */
bool coll_shim_may_hand(const struct coll_context *context, const char *collective);

/* The deadline of calls, in ns. */
uint64_t coll_shim_deadline(const struct coll_context *context);

/* The node's ranks outnumber the cores that they share. */
bool coll_shim_crowded(const struct coll_context *context);

/*
 * Gives the core away for a moment: yields, or sleeps where yields come back late
 * (engine/neighbour.h). No other thread uses the context meanwhile.
 */
void coll_shim_offer_core(struct coll_context *context);

/* "uring" or "epoll". */
const char *coll_shim_engine(const struct coll_context *context);

/* Now, in ns, CLOCK_MONOTONIC. */
uint64_t coll_shim_now(void);

/*
 * Polls the engine once; sleeps for `ns` at most while nothing happens (0: does not
 * sleep). After an error the engine works no more.
 */
int coll_shim_poll(struct coll_context *context, uint64_t ns);

/* The program has waited for the library since then (coll_shim_now()), outside of its calls. */
void coll_shim_waited(struct coll_context *context, uint64_t since);

/* Whether runs, or messages of completed runs, are under way in any group. */
bool coll_shim_busy(const struct coll_context *context);

/*
 * A group without communication: the caller guarantees that `id` and `world` (ranks of
 * the job, `ranks` of them, this process at `rank`) are the same on all its ranks, and
 * that no other group has this id.
 */
int coll_shim_group(struct coll_context *context, uint64_t id, const uint32_t *world,
		    uint32_t rank, uint32_t ranks, struct coll_group **group);

/*
 * Whether the run has completed and its group's messages have left. Messages that nobody may
 * wait for, of a schedule with optional receives or of a failed group, may never leave; they are
 * not waited for. Those to a late rank are. May be called from any thread, without a lock.
 */
bool coll_shim_completed(const struct coll_run *run);

/* The algorithm of a run that has not been freed. */
const char *coll_shim_algorithm(const struct coll_run *run);

/* Whether libcoll has this reduction of this type (not of opaque or user ones). */
bool coll_shim_reduces(enum coll_type type, enum coll_reduction op);

#endif
