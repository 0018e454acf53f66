/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * libcollmpi: libcoll does the collectives of an unmodified MPI program.
 *
 *	collective	each call: libcoll does it, or the MPI below
 *	comm		communicators: the group of each, or why it has none
 *	stage, piece	the caller's buffers as contiguous bytes, packed where needed
 *	type, op	MPI's types and operations in libcoll's terms
 *	task		collectives under way
 *	hand		calls that the MPI does faster: tried in the job, handed over
 *	await		the tasks under way before such a call
 *	nan		their results, of floating point numbers
 *	board		which ranks of the node have arrived at it
 *	request		MPI_Wait, MPI_Test ...: our requests among MPI's own
 *	failure		codes of our tasks that have failed, for these
 *	point		MPI_Recv ...: our tasks advance while the MPI waits
 *	boot_mpi	joining libcoll's job over the MPI
 *	report, trace	records, for people and for the simulator
 *
 * All ranks must decide alike whether libcoll does a call. So the decision depends only
 * on what MPI requires to be the same on all ranks: the collective, the communicator and
 * its earlier calls, the operation and type of a reduction. Types of data that is only
 * moved may differ between ranks, so libcoll takes all of them.
 *
 * A process has one MPI, so the state here is global.
 */
#ifndef COLLMPI_SHIM_H
#define COLLMPI_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libcoll/shim.h"
#include "real.h"

enum which {
#define WHICH(Name, name) WHICH_##Name,
	EACH_COLLECTIVE(WHICH)
	WHICH_COUNT,
};
extern const char *const which_names[WHICH_COUNT];	/* "allreduce" */

static inline bool which_reduces(enum which which)
{
	return which >= WHICH_Reduce && which <= WHICH_Exscan;
}

enum form {
	BLOCKING,
	NONBLOCKING,
	PERSISTENT,
};

/* Why the MPI does a call. */
enum reason {
	OURS,
	OTHER_SWITCHED_OFF,
	OTHER_INTER,
	OTHER_JOB,
	OTHER_SESSION,
	OTHER_UNMET,
	OTHER_FORTRAN,
	OTHER_REFUSED,
	OTHER_TYPE,
	OTHER_FAILED,
	OTHER_TRIED,
	OTHER_FASTER,
	REASONS,
};
extern const char *const reason_texts[REASONS];

/* ---- this process ------------------------------------------------------- */

/* COLL_MPI_HAND: which calls go to the MPI where it is faster. */
enum hand {
	HAND_OFF,
	HAND_SAME,		/* "auto": those whose results have the same bits either way */
	HAND_ALL,
};

struct settings {		/* rank 0's, on all ranks */
	uint32_t on;		/* bit per enum which */
	int32_t hand;		/* enum hand */
	int32_t report, trace;
};

struct shim {
	bool on;		/* between MPI_Init and MPI_Finalize, unless COLL_MPI=off */
	bool threads;		/* several at once: MPI_THREAD_MULTIPLE */
	bool yields;		/* waits yield the core, which the MPI's own do not */
	bool polls;		/* ... or another thread may begin a task while one waits: the MPI never blocks */
	bool lingering;		/* there are tasks, or libcoll may still have messages to send */
	int rank, ranks;
	pid_t process;		/* a child of it is no rank */
	struct coll_context *context;
	void *left;		/* memory of MPI_Alloc_mem that outlives it, or NULL */
	MPI_Comm self, all;	/* communicators for our own messages */
	MPI_Comm node;		/* of this node's ranks, as the MPI knows them */
	MPI_Group world;
	struct settings settings;
	uint64_t opened;	/* coll_shim_now() */
	uint64_t ours, handed;	/* collective calls */
};
extern struct shim shim;

/* Around each use of libcoll and of our lists; may nest. */
void shim_lock(void);
void shim_unlock(void);

/* Prints the reason and calls the communicator's error handler; returns the code. */
int shim_fail(MPI_Comm comm, const char *what, int error, const char *why);

/*
 * Says why and ends the job: this rank cannot decide who executes a call, as it has no memory, and the others would
 * wait for it in the other library; or its result would be wrong without a word.
 */
_Noreturn void shim_end_job(const char *why);
/* The same where calls are compared (hand.c). */
_Noreturn void shim_no_memory(void);

/* Whether `mine` is true on all ranks. Collective over MPI_COMM_WORLD. */
bool shim_all(bool mine);

/*
 * Joins the MPI's job: fills in *context. Collective over MPI_COMM_WORLD; fails on all
 * ranks or on none, and says why.
 */
int boot_mpi_open(const char *options, struct coll_context **context);

/* ---- communicators ------------------------------------------------------ */

struct comm {
	struct comm *next;
	MPI_Comm handle;
	struct coll_group *group;	/* NULL: handed to the MPI */
	enum reason reason;
	uint32_t *members;		/* ranks of the job */
	int rank, ranks;
	uint64_t id;
	uint64_t inits;			/* persistent collectives made so far */
	uint32_t users;			/* tasks under way */
	bool freed;
	bool keeps;			/* no call of it is handed over as a faster one */
	struct class *classes;		/* hand.c; the latest is the first */
	uint64_t calls;			/* ... that might be handed over, so far */
	uint64_t tries_from;		/* ... and before which no trial begins */
	uint32_t hopeless;		/* trials in a row in which the MPI was far slower */
	int slot;			/* board.c; -1: none yet */
	uint64_t arrived;		/* ... what this rank has written there */
};

int comm_start(void);
void comm_end(void);
/* NULL: not met yet. */
struct comm *comm_find(MPI_Comm handle);
/* Agrees on a group for a communicator. Collective over it. */
struct comm *comm_meet(MPI_Comm handle);
void comm_hold(struct comm *comm);
void comm_drop(struct comm *comm);
/* A group of the same ranks for a persistent collective. Local: its id is derived. */
int comm_own_group(struct comm *comm, struct coll_group **group);
/*
 * Before the MPI blocks in a collective of its own: returns when all ranks are in the
 * call, so that none waits for our runs in flight. Collective.
 */
void comm_gather_round(MPI_Comm handle);

/* ---- types and operations ----------------------------------------------- */

struct type {
	int coll;			/* enum coll_type, or -1 */
	uint32_t reductions;		/* if -1: those of the MPI, a bit each */
	bool derived;
	bool dense;			/* n elements are n * size bytes, in order */
	bool solid;			/* n elements fill n * extent bytes, in any order */
	MPI_Count size, extent, lb, true_lb, true_extent;
};

int type_start(void);
void type_end(void);
/* NULL: the MPI does not know it either. */
const struct type *type_find(MPI_Datatype handle);
/* Of the data in so many elements. */
size_t type_bytes(MPI_Count count, MPI_Datatype handle);

int op_start(void);
/*
 * The type and op for libcoll's calls. OTHER_TYPE: libcoll does not have this
 * reduction, on any rank.
 */
enum reason op_find(MPI_Op op, MPI_Datatype datatype, enum coll_type *coll_type,
		    enum coll_reduction *coll_op);

/* ---- calls and tasks ---------------------------------------------------- */

/* The arguments of a collective. Arrays are of int, or of the large kind. */
struct call {
	enum which which;
	MPI_Comm comm;
	int root;
	MPI_Op op;
	const void *in;
	void *out;
	MPI_Count in_count, out_count;
	MPI_Datatype in_type, out_type;
	const void *in_counts, *in_displs, *out_counts, *out_displs;
	const MPI_Datatype *in_types, *out_types;
	bool large;
	bool fortran;			/* it is to get no request but the MPI's own (real.h) */
	struct comm *met;		/* found when the executor of the call was chosen */
	struct class *timed;		/* the call is one of a trial of this class, or NULL */
	uint64_t began;			/* ... and was handed on then */
	size_t sums;			/* it was handed over, and nan_settle() is to see so many results */
	int failed;			/* MPI's code: it ended before either library began with it */
	enum coll_type coll_type;
	enum coll_reduction coll_op;
};

static inline MPI_Count count_at(const struct call *call, const void *counts, int i)
{
	return call->large ? ((const MPI_Count *)counts)[i] : ((const int *)counts)[i];
}

static inline MPI_Aint displ_at(const struct call *call, const void *displs, int i)
{
	return call->large ? ((const MPI_Aint *)displs)[i] : ((const int *)displs)[i];
}

/* Whether this rank's buffer for the result of a reduction counts; else it may be anything, also no address. */
static inline bool call_has_result(const struct call *call)
{
	if (call->which == WHICH_Reduce)
		return call->met->rank == call->root;
	return call->which != WHICH_Exscan || call->met->rank || call->in == MPI_IN_PLACE;
}

/* Data of the caller's that is not contiguous, and the buffer that stands for it. */
struct piece {
	uint8_t *user;
	MPI_Count count;
	MPI_Datatype type;
	const struct type *info;
	uint8_t *packed;
	bool in, out;
	bool spread;		/* the packed buffer has the gaps of the type, too */
	bool held;
};

enum { FEW = 32 };

/* The arguments for libcoll. */
struct stage {
	const void *in;
	void *out;
	size_t count;
	size_t *counts, *displs, *out_counts, *out_displs;
	uint64_t bytes;		/* that this rank moves, for the report */

	struct piece *pieces;
	uint32_t pieces_count;
	struct piece few_pieces[2];
	size_t *arrays, few[FEW];
	void *memory[2];	/* packed buffers */
	uint32_t memories;
	int code;		/* the MPI's, of packing and unpacking */
	int refused;		/* ... of the sizes of this rank's block to itself: then nothing is packed */
	size_t sent, received;
};

struct task {
	struct task *next;
	struct comm *comm;
	struct call call;
	enum form form;
	struct stage stage;
	struct coll_group *group;
	struct coll_run *run;
	MPI_Request request;
	int tag;			/* persistent: of the message that completes it */
	char *event;			/* ... and what the trace says of its starts, or NULL */
	bool active, freed;
	int code;			/* MPI's */
	uint64_t started;
};

/*
 * The types and the operation that a task under way needs: MPI lets the program free them meanwhile, so the hold
 * delays that. Predefined handles are never freed and need no hold.
 */
void hold_handles(struct task *task);
void drop_handles(struct task *task);
/* 0 or -ENOMEM. No other error: the MPI cannot take the call any more. */
int stage_make(struct task *task);
/*
 * An error of the MPI's is kept in stage->code. The run goes on with what there is, as the other ranks are in it or
 * will be, and its end says so.
 */
void pieces_pack(struct stage *stage);
void pieces_unpack(struct stage *stage);
void stage_free(struct stage *stage);

/* Whether runs must advance while the MPI waits. */
bool task_any(void);
/* Whether the MPI must be polled: it may not block. */
static inline bool must_poll(void)
{
	return shim.polls || task_any();
}
/* Polls the engine without waiting, and completes tasks that have ended. */
void task_progress(void);
/* Prints why the call failed, and calls the error handler. Returns the MPI's code. */
int task_refuse(const struct call *call, int error, const char *why);
/* The three forms of calls that libcoll does. They return an MPI code. */
int task_block(const struct call *call);
int task_begin(const struct call *call, MPI_Request *request);
int task_prepare(const struct call *call, MPI_Request *request);
/*
 * libcoll's allreduce of a few numbers, for the shim itself; in `all` on all ranks. An error is one that all
 * ranks hear of.
 */
int task_agree(struct comm *comm, const void *mine, void *all, size_t count, enum coll_type type,
	       enum coll_reduction op);
/* Polls the MPI: its messages must not wait for ours. */
void task_poke(void);
/* The task behind a request, or NULL: it is the MPI's, or a nonblocking one that has ended. */
const struct task *task_of(MPI_Request request);
/* The persistent task behind a request, or NULL. */
struct task *task_persistent(MPI_Request request);
int task_start(struct task *task);
/* False: it is under way, and frees itself and its request when it has ended. */
bool task_free_persistent(struct task *task);
/* All of these requests are ours: the MPI need not be polled all the time. */
bool task_all_ours(int count, const MPI_Request *requests);
void task_end(void);

/* ---- failed tasks ------------------------------------------------------- */

/* Before a request is done whose task has failed: the wait or test that finds it done returns the MPI's code. */
void failure_note(MPI_Request request, int code);
bool failure_any(void);
/* The code of a request that is done, or MPI_SUCCESS. failure_take(): it is told now. */
int failure_of(MPI_Request request);
int failure_take(MPI_Request request);

/* Waiting by polling both engines in turn. Starts as { 0 }. */
struct pace {
	uint64_t slice;
	uint32_t rounds;
};
/* May sleep: all that is waited for is ours. Returns the engine's error. */
int pace_turn(struct pace *pace);
/* Never sleeps. */
void pace_poll(struct pace *pace);

/* ---- calls that the MPI does faster --------------------------------------- */

/* After joining; collective over MPI_COMM_WORLD. Which collectives may be handed over at all. */
void hand_start(void);
void hand_end(void);
/*
 * OURS; OTHER_TRIED, OTHER_FASTER: the MPI does this blocking call, which may wait for no task. The
 * same on all ranks of the communicator. Before the call; hand_done() follows it if call->timed.
 */
enum reason hand_decide(struct call *call);
/*
 * The short way, of a few loads: a call that differs from the latest one of its collective that was handed
 * over in its buffers at most is handed over, too, unless hand_decide() has to see it: it is to be timed, a
 * trial or a check is due, or there are tasks under way.
 */
struct memo {
	uint32_t left;			/* calls that may go this way */
	uint32_t used;			/* ... that have, and are not counted yet */
	int root;
	bool in_place, out_place;
	MPI_Comm handle;
	MPI_Op op;
	MPI_Count in_count, out_count;
	MPI_Datatype in_type, out_type;
	struct comm *comm;
	struct class *class;
	uint64_t *word;			/* on the board */
	size_t sums;			/* results for nan_settle() */
	enum coll_type coll_type;
};
extern struct memo hand_memos[WHICH_COUNT];

/* The NaNs of so many sums or products are libcoll's. COLL_FLOAT or COLL_DOUBLE. */
void nan_settle(void *values, size_t count, enum coll_type type);

static inline __attribute__((always_inline)) bool hand_again(const struct call *call)
{
	struct memo *memo = &hand_memos[call->which];

	if (!memo->left || shim.lingering || memo->handle != call->comm ||
	    memo->out_count != call->out_count || memo->out_type != call->out_type ||
	    memo->in_count != call->in_count || memo->in_type != call->in_type ||
	    memo->op != call->op || memo->root != call->root ||
	    memo->in_place != (call->in == MPI_IN_PLACE) ||
	    memo->out_place != (call->out == MPI_IN_PLACE))
		return false;
	memo->left--;
	memo->used++;
	memo->comm->calls++;
	__atomic_store_n(memo->word, ++memo->comm->arrived, __ATOMIC_RELEASE);
	return true;
}

/* The MPI has executed a call after hand_again(). */
static inline __attribute__((always_inline)) int hand_again_done(const struct call *call, int code)
{
	const struct memo *memo = &hand_memos[call->which];

	if (which_reduces(call->which) && memo->sums && !code)
		nan_settle(call->out, memo->sums, memo->coll_type);
	return code;
}
/*
 * Ends all short ways and counts their calls: a handle is about to be freed, and may then name another object,
 * or somebody wants to know.
 */
void hand_unlearn(void);
void hand_done(struct call *call);
void hand_forget(struct comm *comm);

void await_start(void);
/* All ranks have come to this handed call. False: one does not, and call->failed says so. */
bool await_others(struct call *call);

/*
 * Maps memory of all ranks of this node, if that is `wanted` there and the node has several. Collective over
 * MPI_COMM_WORLD; true on all ranks of a node or on none.
 */
bool board_open(bool wanted);
void board_close(void);
/*
 * Gives the communicator a slot. Collective over it. False, on all ranks: none is free, or not all ranks
 * are of one node with a board.
 */
bool board_take(struct comm *comm);
void board_give(struct comm *comm);
/* Where this rank writes for the communicator. */
uint64_t *board_word(const struct comm *comm);
/* This rank is in the communicator's next call that is handed over. */
void board_arrive(struct comm *comm);
/* A rank of the job that is not yet in that call; -1: all are. */
int board_absent(const struct comm *comm);
/* Whether the process of a rank of the job, on this board, is still there. */
bool board_alive(int rank);

/* ---- report and trace --------------------------------------------------- */

void report_ours(const struct task *task, const char *algo, uint64_t ns);
void report_handed(enum which which, enum reason reason, uint64_t calls);
/* A trial of calls of 2^(log2 - 1) bytes and more has ended: times of a call, ns. */
void report_trial(enum which which, int log2, uint64_t ours, uint64_t of_mpi);
/* So many calls of that size were handed over because of one. */
void report_faster(enum which which, int log2, uint64_t calls);
int report_log2(uint64_t bytes);
void report_print(void);
/* Of this rank alone, which ends without MPI_Finalize: appended. Calls no MPI function. */
void report_print_unfinished(const char *end);

/*
 * An event is between trace_begin() and one of the others, which are cheap when
 * nothing is recorded. An MPI call inside another is no event.
 */
void trace_start(void);
void trace_end(void);
bool trace_begin(void);
/* The event is discarded: a test that found nothing. */
void trace_nothing(void);
/* "send", "to": or "recv", "from"; `request` if it only began. */
void trace_message(const char *what, const char *side, int peer, int tag, MPI_Count count,
		   MPI_Datatype type, MPI_Comm comm, const MPI_Request *request, int code);
/* Ends a probe that waited: no event, and its time is no computing, as the receive after it waits. */
void trace_probed(int code);
/* A message that was probed for; its receive, "recv" or "irecv", has nothing but the handle. */
void trace_matched(MPI_Message handle, int from, int tag, MPI_Comm comm);
void trace_received(const char *what, MPI_Message handle, MPI_Count count, MPI_Datatype type,
		    const MPI_Request *request, int code);
/* A wait or test: the requests that changed are done. */
void trace_wait(int count, const MPI_Request *before, const MPI_Request *after, int code);
/* `request`: of a nonblocking one. With PERSISTENT it was only prepared, which is not recorded. */
void trace_collective(const struct call *call, enum form form, const MPI_Request *request,
		      int code);
/*
 * A persistent collective, as it is to be recorded at each start: then the program may have freed its communicator
 * and types. To be freed; NULL: there is no trace, or no memory.
 */
char *trace_prepared(const struct call *call);
void trace_started(const char *prepared, MPI_Request request, int code);

#endif
