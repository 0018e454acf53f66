/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * libcoll: collective communication for clusters whose nodes are noisy, far apart, or
 * joined by optical circuits.
 *
 *	struct coll_context *context;
 *
 *	coll_open(NULL, &context);		joins the job (coll run, mpirun, srun, ...)
 *	coll_allreduce(in, out, n, COLL_DOUBLE, COLL_SUM, coll_world(context));
 *	coll_close(context);
 *
 * Length: it is the one header of the library.
 *
 * Words: a group is MPI's communicator, a run is MPI's request.
 *
 * Units: counts and displacements are in elements, times in nanoseconds.
 *
 * Errors: a function that returns int returns 0 or a negative errno, unless its comment
 * says otherwise. coll_last_error() gives the reason in words, with the rank and the op.
 *	-EINVAL		an argument is out of range; the text names it
 *	-EOPNOTSUPP	the requested algorithm does not support this call
 *	-EPROTO		the ranks' arguments do not match
 *	-ETIMEDOUT	the deadline passed; the text names the rank that did not answer
 *	-ECONNRESET	a rank died or its connection was lost
 *	-ECANCELED	coll_run_cancel() or coll_revoke() was called on some rank
 *	-ENOMEM		memory or locked memory ran out
 *	-EMSGSIZE	a message is longer than the receive's buffer
 *	-EMFILE, -ENFILE  the rank that the text names has no file descriptor left
 * -EPROTO, -ETIMEDOUT, -ECONNRESET, -ECANCELED, -EMFILE and -ENFILE fail the group: all
 * its runs, also later ones, end with the same error. coll_shrink() makes a new group of
 * the living ranks. -ENOMEM from a call leaves the group as it was, and the same call may come again:
 * until then no other one, as the other ranks are in this one. Of a run that was started before, as with
 * progress by thread or in the kernel, it fails the group: the next one may have been started as well.
 *
 * Deadlines: nothing hangs. Every call has a deadline, 60 s unless set (option deadline,
 * coll_run_deadline()). If a rank is dead, stopped or unreachable, the calls of all other
 * ranks fail within it, with an error that names the failed rank.
 *
 * Threads: there is no global state, and different contexts are independent. A context
 * and everything made from it may be used by one thread at a time. With the engine uring
 * and progress by call that must be the thread that called coll_open(), unless the option
 * threads is any; a call of another one returns -EPERM and changes nothing. With progress by
 * thread, several threads may call at once, each for groups of its own; calls that make groups
 * come from one thread at a time. A call in a forked child returns -EPERM; only coll_close()
 * may be called there.
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
/*
 * The result must be looked at: without it the output buffers, the new object or *done
 * mean nothing. Not on functions whose failure changes nothing for the caller.
 */
#define COLL_MUST_CHECK __attribute__((warn_unused_result))
#else
#define COLL_MUST_CHECK
#endif

/* ---- version ---------------------------------------------------------- */

#define COLL_VERSION_MAJOR 0
#define COLL_VERSION_MINOR 1

/* Versions as numbers that compare as the versions do. */
#define COLL_VERSION_NUMBER(major, minor) ((major) * 65536 + (minor))

/* Of this header. COLL_VERSION_AT_LEAST() works in #if, too. */
#define COLL_VERSION COLL_VERSION_NUMBER(COLL_VERSION_MAJOR, COLL_VERSION_MINOR)
#define COLL_VERSION_AT_LEAST(major, minor) (COLL_VERSION >= COLL_VERSION_NUMBER(major, minor))

/* Of the loaded library, as a COLL_VERSION_NUMBER(). */
int coll_version_number(void);

/* Of the loaded library, as text: "0.1". */
const char *coll_version(void);

/* The name of an error number, negative or positive. Never NULL. */
const char *coll_strerror(int error);

/* ---- context: this process in its job --------------------------------- */

struct coll_context;
struct coll_group;
struct coll_run;

/*
 * Joins the job that the environment describes; without one, a job of one rank. Waits for
 * all ranks, at most for the deadline. Ranks connect later, when a call first needs it.
 *
 * `options`: NULL or "key=value key=value ..." (coll.7 lists the keys). They override
 * COLL_<KEY> in the environment, which overrides the file $COLL_CONFIG.
 * Errors: coll_context_error(NULL) has the words.
 */
int coll_open(const char *options, struct coll_context **context) COLL_MUST_CHECK;

/*
 * A job that the caller describes: who is in it, and a key-value store that all its ranks reach,
 * by which they find each other. Each key is put once: a store that serves several jobs keeps
 * their keys apart, for example by a prefix.
 *
 * put and get return 0 or a negative errno. Threads of the library call them, one at a time,
 * from coll_open_with() until coll_close(): ranks look each other up when they first connect.
 */
struct coll_job {
	uint64_t size;		/* sizeof of this struct, set by the caller */
	int rank, ranks;	/* of the job; all ranks have the same `ranks` */
	int local_rank, local_ranks;	/* of those on this node; local_ranks 0: not known */
	const char *name;	/* for coll show, at most 63 bytes; NULL: it has none */
	void *argument;		/* of put and get */
	/* Stores a value of at most 4124 bytes under a key of at most 127 characters. */
	int (*put)(void *argument, const char *key, const void *value, size_t bytes);
	/*
	 * Waits until some rank has put the key, for at most `ns` nanoseconds: -ETIMEDOUT then.
	 * *bytes: capacity in, size out. -EMSGSIZE: the value is longer.
	 */
	int (*get)(void *argument, const char *key, void *value, size_t *bytes, uint64_t ns);
};

/*
 * coll_open() in the job that `job` describes; it is copied. Options and COLL_SECRET are still
 * those of the environment. Without COLL_SECRET the store carries a new secret, readable, so
 * option protect=seal then works on one node only. With one rank the store is not called.
 *
 * -EINVAL: an entry of `job` is out of range; the text names it. An error of put or get ends the
 * call. If one of them does not return within a second of its time the call ends with -ETIMEDOUT,
 * and the store is not called again until it does; `argument` must live that long.
 */
int coll_open_with(const char *options, const struct coll_job *job,
		   struct coll_context **context) COLL_MUST_CHECK;

/*
 * Ends all runs, leaves the job and frees everything made from the context. Blocks until
 * the peers' hosts have acknowledged all outgoing data, at most for the world's deadline. NULL is
 * allowed.
 */
void coll_close(struct coll_context *context);

/*
 * Why the last call on this context failed, in words; "" if none has. Valid until the
 * next call on it. With NULL: why the last coll_open() of this thread failed.
 */
const char *coll_context_error(const struct coll_context *context);

/*
 * Polls the engine without waiting: every run in flight advances. Takes some tens of ns
 * when nothing is due. Not needed with a progress thread (option progress).
 */
int coll_progress(struct coll_context *context);

/*
 * A file descriptor that polls readable when coll_progress() has something to do, deadlines
 * that have passed included, or a negative errno. It belongs to the context: do not read,
 * write or close it.
 */
int coll_fd(struct coll_context *context);

/* What the engine has done so far, for benchmarks and tests. */
struct coll_counters {
	uint64_t size;		/* sizeof of this struct, set by the caller */
	uint64_t runs;		/* completed */
	uint64_t enters;	/* io_uring_enter or epoll_wait calls */
	uint64_t syscalls;	/* system calls of the data path, enters included */
	uint64_t sends;		/* messages */
	uint64_t recvs;
	uint64_t sent_bytes;	/* payload */
	uint64_t recv_bytes;
	uint64_t copied_bytes;	/* payload copied between a socket and its buffer */
	uint64_t unexpected;	/* messages that came before their receive */
	uint64_t stale;		/* messages of completed runs, discarded */
	uint64_t skipped;	/* optional ops that were not needed */
	uint64_t links;		/* made: each joins two ranks of a group */
	uint64_t allocations;	/* by started runs: should stay 0 */
	uint64_t far_sends;	/* of sends, those to other clusters */
	uint64_t far_bytes;	/* of sent_bytes */
	uint64_t chunks;	/* pieces of messages that are longer than one chunk */
	uint64_t expedited;	/* small messages sent ahead of queued bulk */
	uint64_t deferred;	/* times that a link's bulk waited for another link's */
	uint64_t bypassed;	/* times that a blocked link lost its turn to send bulk */
	uint64_t streams;	/* connections for bulk alone, beside those of links */
	uint64_t streamed;	/* chunks and messages sent over streams */
	uint64_t refused;	/* connections that did not prove the job's secret */
	uint64_t connections;	/* made: links of all groups to a process share one */
	uint64_t sealed;	/* of these: encrypted and authenticated (option protect) */
	uint64_t sealed_by_kernel;	/* of these: by the kernel's TLS */
	uint64_t memory_connections;	/* of connections: through memory of this node */
	uint64_t exposed_bytes;	/* of what they sent: for peers to read in this process */
	uint64_t mapped_bytes;	/* of these: in memory that peers map (coll_alloc()) */
	uint64_t published_bytes;	/* of what they sent: copied once, for several peers to read */
	uint64_t board_sends;	/* of sends: short ones, written once for several peers to read */
};

/* -EINVAL: counters->size is larger than this library knows. */
int coll_counters(struct coll_context *context, struct coll_counters *counters);

/* One step of the measurement between clusters. */
struct coll_wan_point {
	uint64_t links;		/* that sent at once */
	double rate;		/* bytes a second, all of them together */
};

/* What links inside a cluster and between clusters carry. */
struct coll_wan {
	uint64_t size;		/* sizeof of this struct, set by the caller */
	double alpha;		/* inside a cluster: seconds of a small message */
	double beta;		/* inside a cluster: seconds of a byte */
	double wan_alpha;	/* between clusters: seconds of a small message */
	double wan_beta;	/* between clusters, all links together: seconds of a byte;
				   0: the links did not fill it */
	double wan_loss;	/* what overload costs (option wan_loss) */
	uint32_t streams;	/* connections that carry the bulk of one link */
	uint32_t points;	/* entries of point[] that were measured */
	struct coll_wan_point point[32];
};

/*
 * Measured by coll_open() with the option wan=auto. -ENODATA: it was not measured, or there
 * is one cluster only. -EINVAL: wan->size is larger than this library knows.
 */
int coll_wan(struct coll_context *context, struct coll_wan *wan) COLL_MUST_CHECK;

/*
 * The costs by which algorithms are chosen, as text: a line for each that is measured or given,
 * with its reason, as the file of option `costs` has them. The same on all ranks. Returns the
 * length of the text, which is cut if it has `bytes` or more; text may be NULL with 0 bytes.
 */
int coll_costs(struct coll_context *context, char *text, size_t bytes);

/* ---- memory for buffers ------------------------------------------------- */

/*
 * Memory of `bytes` bytes, aligned to 128 bytes, its content undefined; *memory is NULL if `bytes`
 * is 0. Any other memory serves as well for buffers; what is in this, ranks of the same node map:
 * they copy or reduce long messages from where they are, without a system call, also where a process
 * may not read in another one (Yama, seccomp, containers).
 *
 * Costs: the first call, and any for which no room is left, makes a region (4 MiB at least, less where
 * more than 16 ranks share the node), all of whose pages are there at once, and keeps a file
 * descriptor; others take about a microsecond. Each rank of the node that reads in a region maps it
 * once. There are at most 32; where no more can be had, or ranks of the node do not share memory
 * (option memory), it is ordinary memory. A child of fork() shares what is in a region with its
 * parent.
 *
 * -EINVAL: `bytes` is more than 2^48. -ENOMEM.
 */
int coll_alloc(struct coll_context *context, size_t bytes, void **memory) COLL_MUST_CHECK;

/*
 * Frees what coll_alloc() of this context gave; no run may need it any more. NULL is allowed.
 * coll_close() frees the rest. -EINVAL: it was not given, or is freed already.
 */
int coll_free_memory(struct coll_context *context, void *memory);

/* ---- groups: ranks that act together (MPI: communicators) -------------- */

/* All ranks of the job. It belongs to the context: do not free it. */
struct coll_group *coll_world(struct coll_context *context);

/* This process in the group, 0 to coll_ranks() - 1. */
int coll_rank(const struct coll_group *group);
int coll_ranks(const struct coll_group *group);

/*
 * Returns the number of clusters that the group's ranks are in, at least 1. cluster[]
 * gets each rank's cluster, counted from 0, unless it is NULL.
 */
int coll_clusters(const struct coll_group *group, int *cluster);

/*
 * One new group per colour, its ranks ordered by key, then by old rank. A negative colour
 * gives *part = NULL. The new group has the options of the old one. Collective over
 * `group`.
 */
int coll_group_split(struct coll_group *group, int colour, int key,
		     struct coll_group **part) COLL_MUST_CHECK;

/*
 * A new group of these ranks of `group`, in this order: ranks[i] becomes rank i. A rank
 * that is not listed gets *part = NULL. Collective over `group`, as MPI_Comm_create():
 * all listed ranks pass the same list; ranks of other lists, or of none (count 0), may
 * call with theirs.
 * -EINVAL: a rank is out of range or listed twice. -EPROTO: a listed rank passed another
 * list; `group` itself stays usable.
 */
int coll_group_from_ranks(struct coll_group *group, const int *ranks, int count,
			  struct coll_group **part) COLL_MUST_CHECK;

/* A new group of the same ranks, with runs of its own. Collective over `group`. */
int coll_group_dup(struct coll_group *group, struct coll_group **copy) COLL_MUST_CHECK;

/* Frees a group; the end of each of its runs was returned. Local, does not wait. NULL is allowed. */
void coll_group_free(struct coll_group *group);

/*
 * Sets an option of this group: "deadline" = "5s", "allreduce" =
 * "butterfly-redundant:T=2", ... (coll.7). All ranks must set the same.
 * -EINVAL: no such option or value; the text lists what is valid.
 */
int coll_group_set(struct coll_group *group, const char *key, const char *value) COLL_MUST_CHECK;

/* Why the last call on this group failed, in words: rank, op and reason. */
const char *coll_last_error(const struct coll_group *group);

/* The rank that a failed group's error names, or -1: the group has not failed. */
int coll_error_rank(const struct coll_group *group);

/* Fails the group on every rank with -ECANCELED. */
int coll_revoke(struct coll_group *group);

/*
 * Writes the ranks of `group` that are known to have failed, at most `max`, in ascending
 * order. Returns how many there are.
 */
int coll_failed_ranks(struct coll_group *group, int *ranks, int max);

/*
 * A new group of the ranks of `group` that still live, in the old order. Collective over
 * the survivors, within the deadline if a failure is known, else within two. Works on a failed
 * and on a revoked group.
 */
int coll_shrink(struct coll_group *group, struct coll_group **survivors) COLL_MUST_CHECK;

/*
 * Replaces *flag by the bitwise AND over all living ranks. The result is the same on each
 * of them, also when ranks fail meanwhile. Works on a failed and on a revoked group.
 */
int coll_agree(struct coll_group *group, uint64_t *flag) COLL_MUST_CHECK;

/* ---- reductions of the application ------------------------------------- */

/*
 * out[i] = left[i] op right[i]. `left` is the operand of the lower ranks; `out` may be
 * `left` or `right`. Must be associative and must not call the library.
 */
typedef void coll_function(void *out, const void *left, const void *right, size_t count,
			   enum coll_type type, void *argument);

/*
 * Makes a reduction of a function; *op serves wherever a reduction is asked for. If it
 * does not commute (0), operands keep the order of the ranks. Each rank numbers its own
 * reductions; whether all ranks mean the same function is not checked.
 */
int coll_op_create(struct coll_context *context, coll_function *function, void *argument,
		   int commutative, enum coll_reduction *op) COLL_MUST_CHECK;

/* No run may need it any more. -EINVAL: no such reduction. */
int coll_op_free(struct coll_context *context, enum coll_reduction op);

/* ---- collectives ------------------------------------------------------- */

/*
 * All ranks of `group` call the same function with matching arguments, in the same order.
 * Each collective has three forms:
 *
 *	coll_x		blocks until this rank's part is done
 *	coll_ix		starts and returns a run, which coll_run_wait() or coll_run_test()
 *			frees when it has completed
 *	coll_x_init	prepares a persistent run: coll_run_start() starts it any number of
 *			times, coll_run_free() frees it
 *
 * A run is NULL after an error. The buffers belong to the library until the run is done;
 * arrays of counts and displacements may be reused when the call returns. With a progress
 * thread coll_run_wait() may be the first to return an error of coll_ix.
 * When a run that has begun fails, `out` is undefined: it may have a part of the result, and in
 * place the input may be lost.
 *
 * count	elements, 0 to 2^48 bytes in all
 * counts, displs	an entry for each rank: elements of its block, and the element
 *		at which it begins
 * type, op	enums, so that a compiler notices when they are swapped. They have room for
 *		COLL_OPAQUE(bytes) and for the numbers of coll_op_create()
 * root		0 to coll_ranks(group) - 1, the same on all ranks
 * in, out	must not overlap. What only the root needs is ignored elsewhere
 *
 * COLL_IN_PLACE as `in` (scatter, scatterv: as `out`): the input is in the output buffer;
 * each comment says where. The meaning is that of MPI's function of the same name.
 *
 * Errors: see above. -EINVAL and -EOPNOTSUPP come before anything is sent: as long as that
 * rank does not call again, the others wait for it until their deadline.
 */
#define COLL_IN_PLACE ((void *)-1)

/* Returns when all ranks have called. */
int coll_barrier(struct coll_group *group) COLL_MUST_CHECK;
int coll_ibarrier(struct coll_group *group, struct coll_run **run) COLL_MUST_CHECK;
int coll_barrier_init(struct coll_group *group, struct coll_run **run) COLL_MUST_CHECK;

/* Copies `data` of the root to `data` of every rank. */
int coll_bcast(void *data, size_t count, enum coll_type type, int root,
	       struct coll_group *group) COLL_MUST_CHECK;
int coll_ibcast(void *data, size_t count, enum coll_type type, int root,
		struct coll_group *group, struct coll_run **run) COLL_MUST_CHECK;
int coll_bcast_init(void *data, size_t count, enum coll_type type, int root,
		    struct coll_group *group, struct coll_run **run) COLL_MUST_CHECK;

/*
 * The root's `out` gets the block of each rank, in the order of ranks. `count` is of one
 * block; `out` has room for coll_ranks() blocks. In place: on the root only, whose block
 * is already in `out`.
 */
int coll_gather(const void *in, void *out, size_t count, enum coll_type type, int root,
		struct coll_group *group) COLL_MUST_CHECK;
int coll_igather(const void *in, void *out, size_t count, enum coll_type type, int root,
		 struct coll_group *group, struct coll_run **run) COLL_MUST_CHECK;
int coll_gather_init(const void *in, void *out, size_t count, enum coll_type type, int root,
		     struct coll_group *group, struct coll_run **run) COLL_MUST_CHECK;

/*
 * Gather of blocks of different lengths. `count` is of this rank's block. counts and
 * displs describe `out`, on the root; elsewhere they are ignored, whatever they are. (The
 * algorithms that need counts on every rank are used only where they are requested.) In
 * place: on the root only.
 */
int coll_gatherv(const void *in, size_t count, void *out, const size_t *counts,
		 const size_t *displs, enum coll_type type, int root,
		 struct coll_group *group) COLL_MUST_CHECK;
int coll_igatherv(const void *in, size_t count, void *out, const size_t *counts,
		  const size_t *displs, enum coll_type type, int root, struct coll_group *group,
		  struct coll_run **run) COLL_MUST_CHECK;
int coll_gatherv_init(const void *in, size_t count, void *out, const size_t *counts,
		      const size_t *displs, enum coll_type type, int root,
		      struct coll_group *group, struct coll_run **run) COLL_MUST_CHECK;

/*
 * Each rank's `out` gets its block of the root's `in`. `count` is of one block. In place:
 * on the root only, as `out`; its block stays in `in`.
 */
int coll_scatter(const void *in, void *out, size_t count, enum coll_type type, int root,
		 struct coll_group *group) COLL_MUST_CHECK;
int coll_iscatter(const void *in, void *out, size_t count, enum coll_type type, int root,
		  struct coll_group *group, struct coll_run **run) COLL_MUST_CHECK;
int coll_scatter_init(const void *in, void *out, size_t count, enum coll_type type, int root,
		      struct coll_group *group, struct coll_run **run) COLL_MUST_CHECK;

/*
 * Scatter of blocks of different lengths. `count` is of this rank's block. counts and
 * displs describe `in`, on the root, as for coll_gatherv(). In place:
 * on the root only, as `out`.
 */
int coll_scatterv(const void *in, const size_t *counts, const size_t *displs, void *out,
		  size_t count, enum coll_type type, int root,
		  struct coll_group *group) COLL_MUST_CHECK;
int coll_iscatterv(const void *in, const size_t *counts, const size_t *displs, void *out,
		   size_t count, enum coll_type type, int root, struct coll_group *group,
		   struct coll_run **run) COLL_MUST_CHECK;
int coll_scatterv_init(const void *in, const size_t *counts, const size_t *displs, void *out,
		       size_t count, enum coll_type type, int root, struct coll_group *group,
		       struct coll_run **run) COLL_MUST_CHECK;

/*
 * Every rank's `out` gets the block of each rank. `count` is of one block. In place: this
 * rank's block is at its position in `out`.
 */
int coll_allgather(const void *in, void *out, size_t count, enum coll_type type,
		   struct coll_group *group) COLL_MUST_CHECK;
int coll_iallgather(const void *in, void *out, size_t count, enum coll_type type,
		    struct coll_group *group, struct coll_run **run) COLL_MUST_CHECK;
int coll_allgather_init(const void *in, void *out, size_t count, enum coll_type type,
			struct coll_group *group, struct coll_run **run) COLL_MUST_CHECK;

/*
 * Allgather of blocks of different lengths. `count` equals counts[this rank]; in place it
 * is ignored, and this rank's block is at its position in `out`. counts are the same on
 * all ranks.
 */
int coll_allgatherv(const void *in, size_t count, void *out, const size_t *counts,
		    const size_t *displs, enum coll_type type,
		    struct coll_group *group) COLL_MUST_CHECK;
int coll_iallgatherv(const void *in, size_t count, void *out, const size_t *counts,
		     const size_t *displs, enum coll_type type, struct coll_group *group,
		     struct coll_run **run) COLL_MUST_CHECK;
int coll_allgatherv_init(const void *in, size_t count, void *out, const size_t *counts,
			 const size_t *displs, enum coll_type type, struct coll_group *group,
			 struct coll_run **run) COLL_MUST_CHECK;

/*
 * Block i of rank j becomes block j of rank i. `count` is of one block. In place: the
 * input is in `out` and is replaced.
 */
int coll_alltoall(const void *in, void *out, size_t count, enum coll_type type,
		  struct coll_group *group) COLL_MUST_CHECK;
int coll_ialltoall(const void *in, void *out, size_t count, enum coll_type type,
		   struct coll_group *group, struct coll_run **run) COLL_MUST_CHECK;
int coll_alltoall_init(const void *in, void *out, size_t count, enum coll_type type,
		       struct coll_group *group, struct coll_run **run) COLL_MUST_CHECK;

/*
 * Alltoall of blocks of different lengths: send_counts[j] of rank i equals recv_counts[i]
 * of rank j. In place: the input is in `out`, described by recv_counts and recv_displs;
 * send_counts and send_displs are ignored.
 */
int coll_alltoallv(const void *in, const size_t *send_counts, const size_t *send_displs,
		   void *out, const size_t *recv_counts, const size_t *recv_displs,
		   enum coll_type type, struct coll_group *group) COLL_MUST_CHECK;
int coll_ialltoallv(const void *in, const size_t *send_counts, const size_t *send_displs,
		    void *out, const size_t *recv_counts, const size_t *recv_displs,
		    enum coll_type type, struct coll_group *group,
		    struct coll_run **run) COLL_MUST_CHECK;
int coll_alltoallv_init(const void *in, const size_t *send_counts, const size_t *send_displs,
			void *out, const size_t *recv_counts, const size_t *recv_displs,
			enum coll_type type, struct coll_group *group,
			struct coll_run **run) COLL_MUST_CHECK;

/*
 * The root's `out` gets the reduction of all ranks' vectors, element by element. In place:
 * on the root only, whose vector is in `out`.
 */
int coll_reduce(const void *in, void *out, size_t count, enum coll_type type,
		enum coll_reduction op, int root, struct coll_group *group) COLL_MUST_CHECK;
int coll_ireduce(const void *in, void *out, size_t count, enum coll_type type,
		 enum coll_reduction op, int root, struct coll_group *group,
		 struct coll_run **run) COLL_MUST_CHECK;
int coll_reduce_init(const void *in, void *out, size_t count, enum coll_type type,
		     enum coll_reduction op, int root, struct coll_group *group,
		     struct coll_run **run) COLL_MUST_CHECK;

/*
 * Every rank's `out` gets the reduction of all ranks' vectors, with the same bits. In
 * place: the vector is in `out`.
 */
int coll_allreduce(const void *in, void *out, size_t count, enum coll_type type,
		   enum coll_reduction op, struct coll_group *group) COLL_MUST_CHECK;
int coll_iallreduce(const void *in, void *out, size_t count, enum coll_type type,
		    enum coll_reduction op, struct coll_group *group,
		    struct coll_run **run) COLL_MUST_CHECK;
int coll_allreduce_init(const void *in, void *out, size_t count, enum coll_type type,
			enum coll_reduction op, struct coll_group *group,
			struct coll_run **run) COLL_MUST_CHECK;

/*
 * The vectors have a block for each rank, one after the other, of counts[rank] elements;
 * counts are the same on all ranks. Each rank's `out` gets its block of the reduction. In
 * place: the whole vector is in `out`; the result goes to its beginning, the rest becomes
 * undefined.
 */
int coll_reduce_scatter(const void *in, void *out, const size_t *counts, enum coll_type type,
			enum coll_reduction op, struct coll_group *group) COLL_MUST_CHECK;
int coll_ireduce_scatter(const void *in, void *out, const size_t *counts, enum coll_type type,
			 enum coll_reduction op, struct coll_group *group,
			 struct coll_run **run) COLL_MUST_CHECK;
int coll_reduce_scatter_init(const void *in, void *out, const size_t *counts,
			     enum coll_type type, enum coll_reduction op,
			     struct coll_group *group, struct coll_run **run) COLL_MUST_CHECK;

/* Reduce_scatter with blocks of `count` elements each. */
int coll_reduce_scatter_block(const void *in, void *out, size_t count, enum coll_type type,
			      enum coll_reduction op, struct coll_group *group) COLL_MUST_CHECK;
int coll_ireduce_scatter_block(const void *in, void *out, size_t count, enum coll_type type,
			       enum coll_reduction op, struct coll_group *group,
			       struct coll_run **run) COLL_MUST_CHECK;
int coll_reduce_scatter_block_init(const void *in, void *out, size_t count, enum coll_type type,
				   enum coll_reduction op, struct coll_group *group,
				   struct coll_run **run) COLL_MUST_CHECK;

/* Rank r's `out` gets the reduction of ranks 0 to r. In place: the vector is in `out`. */
int coll_scan(const void *in, void *out, size_t count, enum coll_type type,
	      enum coll_reduction op, struct coll_group *group) COLL_MUST_CHECK;
int coll_iscan(const void *in, void *out, size_t count, enum coll_type type,
	       enum coll_reduction op, struct coll_group *group,
	       struct coll_run **run) COLL_MUST_CHECK;
int coll_scan_init(const void *in, void *out, size_t count, enum coll_type type,
		   enum coll_reduction op, struct coll_group *group,
		   struct coll_run **run) COLL_MUST_CHECK;

/*
 * Rank r's `out` gets the reduction of ranks 0 to r - 1. Rank 0's stays as it is, and may be
 * NULL. In place: the vector is in `out`, rank 0's too.
 */
int coll_exscan(const void *in, void *out, size_t count, enum coll_type type,
		enum coll_reduction op, struct coll_group *group) COLL_MUST_CHECK;
int coll_iexscan(const void *in, void *out, size_t count, enum coll_type type,
		 enum coll_reduction op, struct coll_group *group,
		 struct coll_run **run) COLL_MUST_CHECK;
int coll_exscan_init(const void *in, void *out, size_t count, enum coll_type type,
		     enum coll_reduction op, struct coll_group *group,
		     struct coll_run **run) COLL_MUST_CHECK;

/* ---- point to point: messages between two ranks ------------------------ */

/*
 * Messages with a tag, in any order with collectives of the same group; other groups have
 * other messages. A receive takes the oldest message that its rank and tag fit: between two
 * ranks messages do not overtake each other. The forms without i block; the others give a
 * run, as those of collectives do.
 *
 * rank		of the group, also this one
 * tag		0 to 2^31 - 1
 *
 * A send ends when the buffer may be used again. Up to 4 KB go at once, received or not, as
 * long as the receiver has room: 64 KiB from each sender. A longer one ends when it has been
 * received. With progress by call what is not connected yet goes out in later calls.
 *
 * -EMSGSIZE of a receive: the message is longer than `count`, or has no whole number of
 * elements. It is lost, the buffer is undefined, and the group goes on.
 */
#define COLL_ANY_SOURCE (-1)
#define COLL_ANY_TAG (-1)

/* What a receive got. Not set if it fails, unless with -EMSGSIZE. */
struct coll_received {
	int source, tag;
	size_t count;		/* elements */
};

int coll_send(const void *data, size_t count, enum coll_type type, int rank, int tag,
	      struct coll_group *group) COLL_MUST_CHECK;
int coll_isend(const void *data, size_t count, enum coll_type type, int rank, int tag,
	       struct coll_group *group, struct coll_run **run) COLL_MUST_CHECK;

/*
 * `count` is what the buffer has at most. With COLL_ANY_SOURCE from any rank, which connects
 * this one to all; with COLL_ANY_TAG of any tag. `received`: NULL, or where the end is told,
 * which must live as long as the buffer.
 */
int coll_recv(void *data, size_t count, enum coll_type type, int rank, int tag,
	      struct coll_group *group, struct coll_received *received) COLL_MUST_CHECK;
int coll_irecv(void *data, size_t count, enum coll_type type, int rank, int tag,
	       struct coll_group *group, struct coll_received *received,
	       struct coll_run **run) COLL_MUST_CHECK;

/* ---- runs: collectives under way (MPI: requests) ----------------------- */

/*
 * The ranks start the runs of a group in the same order, blocking calls included; with
 * progress by a helper thread, the runs of all groups. Several may be in flight.
 */

/* Starts a persistent run. -EBUSY: it is in flight. -EINVAL: it is not persistent. */
int coll_run_start(struct coll_run *run) COLL_MUST_CHECK;

/*
 * The following functions return how the run ended. A nonblocking run that has ended is
 * freed and *run becomes NULL; a persistent one stays and may start again. NULL counts as
 * ended well.
 *
 * coll_run_wait() returns when the run has ended, at the latest at its deadline.
 * coll_run_test() polls the engine once; *done says whether the run has ended.
 */
int coll_run_wait(struct coll_run **run) COLL_MUST_CHECK;
int coll_run_test(struct coll_run **run, int *done) COLL_MUST_CHECK;

/*
 * All of `count` runs; they return the first error in the order of runs[].
 * coll_run_waitall() waits for each; where they are of several contexts it polls all of these
 * meanwhile, without a sleep. coll_run_testall() polls each engine once: *done says whether all
 * have ended; if not, no run is freed.
 */
int coll_run_waitall(struct coll_run **runs, size_t count) COLL_MUST_CHECK;
int coll_run_testall(struct coll_run **runs, size_t count, int *done) COLL_MUST_CHECK;

/*
 * One of `count` runs of the same context: *index says which has ended, and its error is
 * returned. NULL entries, and persistent runs that were not started since they last
 * ended, are skipped; if there are no others *index becomes `count`. coll_run_waitany()
 * returns at the latest when the first of their deadlines passes. coll_run_testany()
 * polls the engine once; *done says whether there is one, or none to wait for.
 * -EINVAL: the runs are of different contexts.
 */
int coll_run_waitany(struct coll_run **runs, size_t count, size_t *index) COLL_MUST_CHECK;
int coll_run_testany(struct coll_run **runs, size_t count, size_t *index,
		     int *done) COLL_MUST_CHECK;

/* Ends the run with -ECANCELED, and fails the group with it on all ranks. */
int coll_run_cancel(struct coll_run *run);

/* Frees a persistent run. -EBUSY: it is in flight. NULL is allowed. */
int coll_run_free(struct coll_run **run);

/*
 * The deadline of this run, in ns from its start; 0: the group's; more than a year counts as
 * a year. Also during the run.
 */
int coll_run_deadline(struct coll_run *run, uint64_t ns);

/* One line of text: algorithm, engine, and why they were chosen. Belongs to the run. */
const char *coll_run_explain(struct coll_run *run);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
