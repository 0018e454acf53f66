/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * libcoll: collective communication that survives noise, distance and slow
 * circuits.
 *
 *	struct coll_context *context;
 *	struct coll_group *world;
 *
 *	coll_open(NULL, &context);		joins the job (coll run, mpirun, srun, ...)
 *	world = coll_world(context);
 *	coll_allreduce(in, out, n, COLL_DOUBLE, COLL_SUM, world);
 *	coll_close(context);
 *
 * Every function that returns int returns 0 or a negative errno; the words for
 * it, with the rank, the op and the reason, are in coll_last_error(). There is
 * no global state. A context and all that comes from it belong to one thread at
 * a time, with the engine uring and progress by call to the one that opened it;
 * different contexts are independent. Counts and displacements are in elements, times in
 * nanoseconds.
 *
 * Nothing hangs: every call has a deadline (60 s unless set). A rank that is
 * dead, stopped or out of reach makes every other rank's call fail with an error
 * that names it; a call whose arguments differ between ranks fails with -EPROTO.
 *
 * Errors of collectives and runs:
 *	-EINVAL		an argument is out of range (which one: coll_last_error)
 *	-EOPNOTSUPP	the algorithm asked for cannot serve this call
 *	-EPROTO		the ranks' arguments do not match
 *	-ETIMEDOUT	the deadline passed; coll_last_error names who was waited for
 *	-ECONNRESET	a rank died or its connection was lost
 *	-ECANCELED	coll_run_cancel() or coll_revoke()
 *	-ENOMEM		memory or locked memory ran out
 *	-EMFILE, -ENFILE  a rank, which is named, has no file descriptor left
 * After -ECONNRESET, -ETIMEDOUT and -EPROTO the group is failed: all its runs,
 * also later ones, end with the same error. coll_shrink() makes a new group of
 * those that live.
 */
#ifndef COLL_H
#define COLL_H

#include <stddef.h>
#include <stdint.h>
#include "coll_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

#define COLL_VERSION_MAJOR 0
#define COLL_VERSION_MINOR 1

struct coll_context;
struct coll_group;
struct coll_run;

/* "0.1", of the library that is loaded. */
const char *coll_version(void);

/* The name of an error this library returns; never NULL. */
const char *coll_strerror(int error);

/* ---- context: this process in its job --------------------------------- */

/*
 * Joins the job that the environment describes; without one, a job of one
 * rank. `options` is NULL or "key=value key=value ..." (coll.7 lists the keys);
 * these win over COLL_<KEY> in the environment, those over the file
 * $COLL_CONFIG. Collective over the job in that all ranks must come within the
 * deadline; connections are made later, when first needed.
 */
int coll_open(const char *options, struct coll_context **context);

/*
 * Ends all runs, leaves the job, frees everything. NULL is allowed. Waits until
 * what other ranks need from this one has reached their hosts, not until they
 * have read it; so it takes long only where a rank has yet to make its first
 * call that needs us, or takes nothing any more: at most the deadline.
 */
void coll_close(struct coll_context *context);

/*
 * Why the last call on this context failed, in words. Valid until the next call
 * on it. "" if none has. With NULL: why the last coll_open() of this thread
 * failed.
 */
const char *coll_context_error(const struct coll_context *context);

/*
 * Turns the engine without waiting; moves every run in flight. Some tens of ns
 * when nothing is due. With a progress thread (option progress) runs move without.
 */
int coll_progress(struct coll_context *context);

/*
 * A file descriptor that polls readable when coll_progress() has something to
 * do, or a negative errno. Owned by the context. Poll with a timeout: that a
 * deadline has passed is noticed in calls only.
 */
int coll_fd(struct coll_context *context);

/* What the engine has done so far; for benchmarks and tests. */
struct coll_counters {
	uint64_t size;		/* sizeof of this struct, set by the caller */
	uint64_t runs;		/* finished */
	uint64_t enters;	/* io_uring_enter or epoll_wait calls */
	uint64_t syscalls;	/* all system calls of the data path, enters included */
	uint64_t sends;		/* messages */
	uint64_t recvs;
	uint64_t sent_bytes;	/* payload */
	uint64_t recv_bytes;
	uint64_t copied_bytes;	/* payload copied between a socket and its place */
	uint64_t early;		/* messages that came before their receive */
	uint64_t late;		/* messages whose run was over */
	uint64_t skipped;	/* optional ops that were not needed */
	uint64_t links;		/* connections made */
	uint64_t allocations;	/* by started runs: should stay 0 */
	uint64_t far_sends;	/* of sends, those to other clusters */
	uint64_t far_bytes;	/* of sent_bytes */
	uint64_t chunks;	/* that messages longer than one were cut into */
	uint64_t overtakes;	/* small messages that went before bulk */
	uint64_t held;		/* times that a link waited for another's bulk */
	uint64_t passed;	/* times that one was passed over, being blocked */
	uint64_t streams;	/* connections made for bulk alone, beside those of links */
	uint64_t streamed;	/* chunks and messages that went over these */
};
int coll_counters(struct coll_context *context, struct coll_counters *counters);

/*
 * What links inside a cluster and between clusters carry, measured by coll_open() with
 * the option wan=auto (coll wan prints it). -ENODATA: it was not, or there is one
 * cluster only.
 */
struct coll_wan {
	uint64_t size;		/* sizeof of this struct, set by the caller */
	double alpha, beta;	/* inside a cluster: s a small message takes, s a byte */
	double wan_alpha;	/* s a small message takes across */
	double wan_beta;	/* s a byte takes of all that goes across; 0: it was not filled */
	double wan_loss;	/* what overload of that costs; see option wan_loss */
	uint32_t streams;	/* connections that carry the bulk of a link across */
	uint32_t points;	/* how many of these were measured */
	struct coll_wan_point {
		uint64_t links;	/* at once */
		double rate;	/* bytes a second, together */
	} point[32];
};
int coll_wan(struct coll_context *context, struct coll_wan *wan);

/* ---- groups: ranks that act together ---------------------------------- */

/* All ranks of the job. Belongs to the context: never freed by the caller. */
struct coll_group *coll_world(struct coll_context *context);

int coll_rank(const struct coll_group *group);
int coll_ranks(const struct coll_group *group);

/*
 * How many clusters the group's ranks are in, at least 1; cluster[] gets each rank's,
 * numbered from 0, unless it is NULL.
 */
int coll_clusters(const struct coll_group *group, int *cluster);

/*
 * One new group per colour, ranks ordered by key, then by old rank; a negative
 * colour gives *part = NULL. Collective over `group`.
 */
int coll_group_split(struct coll_group *group, int colour, int key, struct coll_group **part);

/* The same ranks once more, with runs of their own. Collective. */
int coll_group_dup(struct coll_group *group, struct coll_group **copy);

/* Frees a group; its runs must have ended. Local. NULL is allowed. */
void coll_group_free(struct coll_group *group);

/*
 * Sets an option of this group: "deadline" = "5s", "allreduce" =
 * "butterfly-redundant:T=2", ... (coll.7). The same on all ranks. -EINVAL names
 * what is valid.
 */
int coll_group_set(struct coll_group *group, const char *key, const char *value);

/* Why the last call on this group failed, in words: rank, op, reason. */
const char *coll_last_error(const struct coll_group *group);

/* Ends all runs of the group on every rank with -ECANCELED; it stays unusable. */
int coll_revoke(struct coll_group *group);

/* Ranks of `group` known to have failed. Returns how many; at most `max` are written. */
int coll_failed_ranks(struct coll_group *group, int *ranks, int max);

/*
 * A new group of those ranks of a failed one that still live, in the old order.
 * Collective over the survivors, within the deadline.
 */
int coll_shrink(struct coll_group *group, struct coll_group **survivors);

/*
 * The bitwise AND of *flag over all living ranks, the same on each, also when
 * ranks fail meanwhile. Works on a failed or revoked group.
 */
int coll_agree(struct coll_group *group, uint64_t *flag);

/* ---- collectives ------------------------------------------------------ */

/*
 * The reductions are `enum coll_reduction` or a number from coll_op_create();
 * types are `enum coll_type` or COLL_OPAQUE(bytes). COLL_IN_PLACE as `in` means
 * that the input is in `out` (scatter: as `out` on the root; alltoall, gather,
 * allgather, reduce_scatter: as MPI has it). Arguments that only the root needs
 * are ignored elsewhere. Any number of ranks, any count including 0.
 *
 * gatherv and scatterv: counts and displs are needed on the root only; algorithms
 * that route through other ranks (binomial) need counts on every rank.
 *
 * Three forms each: coll_x blocks; coll_ix starts and returns a run, freed by
 * coll_run_wait() or by coll_run_test() once it says done; coll_x_init prepares a run
 * that coll_run_start() starts any number of times and coll_run_free() frees. Ranks
 * start the runs of a group in the same order; where a helper makes progress, the
 * runs of all groups. With a progress thread coll_ix hands the run over, and what
 * is wrong with it may be told by coll_run_wait(). Buffers belong to the library
 * until the run is done.
 */
#define COLL_IN_PLACE ((void *)-1)

/* `out` may be `left` or `right`. `left` is the operand of the lower ranks. */
typedef void coll_function(void *out, const void *left, const void *right, size_t count,
			   int type, void *argument);

/*
 * Makes a reduction of a function. Not commutative: operands keep rank order.
 * Each rank numbers its own operations.
 */
int coll_op_create(struct coll_context *context, coll_function *function, void *argument,
		   int commutative, int *op);
int coll_op_free(struct coll_context *context, int op);

#define COLL_FORMS(name, ...)                                                      \
	int coll_##name(__VA_ARGS__);                                              \
	int coll_i##name(__VA_ARGS__, struct coll_run **run);                      \
	int coll_##name##_init(__VA_ARGS__, struct coll_run **run)

COLL_FORMS(barrier, struct coll_group *group);
COLL_FORMS(bcast, void *data, size_t count, int type, int root, struct coll_group *group);
COLL_FORMS(gather, const void *in, void *out, size_t count, int type, int root,
	   struct coll_group *group);
COLL_FORMS(gatherv, const void *in, size_t count, void *out, const size_t *counts,
	   const size_t *displs, int type, int root, struct coll_group *group);
COLL_FORMS(scatter, const void *in, void *out, size_t count, int type, int root,
	   struct coll_group *group);
COLL_FORMS(scatterv, const void *in, const size_t *counts, const size_t *displs, void *out,
	   size_t count, int type, int root, struct coll_group *group);
COLL_FORMS(allgather, const void *in, void *out, size_t count, int type,
	   struct coll_group *group);
COLL_FORMS(allgatherv, const void *in, size_t count, void *out, const size_t *counts,
	   const size_t *displs, int type, struct coll_group *group);
COLL_FORMS(alltoall, const void *in, void *out, size_t count, int type,
	   struct coll_group *group);
COLL_FORMS(alltoallv, const void *in, const size_t *send_counts, const size_t *send_displs,
	   void *out, const size_t *recv_counts, const size_t *recv_displs, int type,
	   struct coll_group *group);
COLL_FORMS(reduce, const void *in, void *out, size_t count, int type, int op, int root,
	   struct coll_group *group);
COLL_FORMS(allreduce, const void *in, void *out, size_t count, int type, int op,
	   struct coll_group *group);
COLL_FORMS(reduce_scatter, const void *in, void *out, const size_t *counts, int type, int op,
	   struct coll_group *group);
COLL_FORMS(reduce_scatter_block, const void *in, void *out, size_t count, int type, int op,
	   struct coll_group *group);
COLL_FORMS(scan, const void *in, void *out, size_t count, int type, int op,
	   struct coll_group *group);
COLL_FORMS(exscan, const void *in, void *out, size_t count, int type, int op,
	   struct coll_group *group);

/* ---- runs ------------------------------------------------------------- */

int coll_run_start(struct coll_run *run);

/*
 * Turns the engine once. *done tells whether the run has ended; returns how.
 * *run becomes NULL when a nonblocking run has ended (it is freed); a
 * persistent one stays.
 */
int coll_run_test(struct coll_run **run, int *done);

/* Until the run has ended; returns how. At most until its deadline. */
int coll_run_wait(struct coll_run **run);

/* All of them; returns the first error in their order. NULL entries are skipped. */
int coll_run_waitall(struct coll_run **runs, size_t count);

/* Ends the run here with -ECANCELED, and with it the group (see coll_revoke). */
int coll_run_cancel(struct coll_run *run);

/* Frees a persistent run that is not in flight; -EBUSY if it is. */
int coll_run_free(struct coll_run **run);

/* Deadline of this run from its start, in ns; 0: the group's. */
int coll_run_deadline(struct coll_run *run, uint64_t ns);

/* Algorithm, engine and the reason for the choice, as one line of text. */
const char *coll_run_explain(struct coll_run *run);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
