/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * libcollmpi: MPI's collectives, done by libcoll, under a program that does not
 * know of it.
 *
 *	collective	a call comes in: ours, or handed to the MPI below
 *	comm		what we know of a communicator: its group, or why none
 *	stage		the caller's buffers as rows of bytes, packed where need be
 *	type, op	MPI's types and operations in libcoll's terms
 *	task		a collective under way, and all that are
 *	request		MPI_Wait, MPI_Test ...: our requests among MPI's own
 *	point		MPI_Recv ...: our tasks move while MPI waits
 *	report, trace	what was done, for people and for the simulator
 *
 * The one rule: whether a call is ours is decided from what MPI requires to be the
 * same on all ranks (which collective, the communicator and what was called on it
 * before, the operation and type of a reduction), so all ranks decide the same.
 * Types of data that is only moved may differ between ranks: all of them are ours.
 *
 * An MPI is one to a process, and so is its state here.
 */
#ifndef COLLMPI_SHIM_H
#define COLLMPI_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcoll/shim.h"
#include "real.h"

enum which {
#define WHICH(Name, name) WHICH_##Name,
	EACH_COLLECTIVE(WHICH)
	WHICH_COUNT,
};
extern const char *const which_names[WHICH_COUNT];	/* "allreduce" */

enum form {
	BLOCKING,
	NONBLOCKING,
	PERSISTENT,
};

/* Why a call was handed to the MPI. */
enum reason {
	OURS,
	OTHER_SWITCHED_OFF,
	OTHER_INTER,
	OTHER_JOB,
	OTHER_SESSION,
	OTHER_UNMET,
	OTHER_REFUSED,
	OTHER_TYPE,
	OTHER_FAILED,
	REASONS,
};
extern const char *const reason_texts[REASONS];

/* ---- this process ------------------------------------------------------- */

struct settings {		/* rank 0's, on all ranks */
	uint32_t on;		/* bit per enum which */
	int32_t report, trace;
};

struct shim {
	bool on;		/* between MPI_Init and MPI_Finalize, unless COLL_MPI=off */
	bool threads;		/* several at once: MPI_THREAD_MULTIPLE */
	bool yields;		/* waits offer the core, which the MPI's own do not */
	int rank, ranks;
	struct coll_context *context;
	MPI_Comm self, all;	/* communicators for our own messages */
	MPI_Group world;
	struct settings settings;
	uint64_t opened;	/* coll_shim_now() */
	uint64_t ours, handed;	/* collective calls */
};
extern struct shim shim;

/* Around everything that touches libcoll or our lists; may nest. */
void shim_lock(void);
void shim_unlock(void);

/* Says why on stderr and calls the communicator's error handler; returns the code. */
int shim_fail(MPI_Comm comm, const char *what, int error, const char *why);

/* Whether it is so on all ranks. Collective over MPI_COMM_WORLD. */
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
};

int comm_start(void);
void comm_end(void);
/* NULL: not met yet. */
struct comm *comm_find(MPI_Comm handle);
/* Agrees on a group for a communicator. Collective over it. */
struct comm *comm_meet(MPI_Comm handle);
void comm_hold(struct comm *comm);
void comm_drop(struct comm *comm);
/* A group of the same ranks for a persistent collective. Local: its name follows. */
int comm_own_group(struct comm *comm, struct coll_group **group);
/*
 * Before the MPI blocks in a collective of its own: all ranks are in the call, so
 * nobody waits for what we have in flight. Collective.
 */
void comm_gather_round(MPI_Comm handle);

/* ---- types and operations ----------------------------------------------- */

struct type {
	int coll;			/* enum coll_type, or -1 */
	uint32_t reductions;		/* if -1: which the MPI has on it, bit per coll_reduction */
	bool derived;
	bool dense;			/* n elements are n * size bytes, in order */
	bool solid;			/* n elements fill n * extent bytes, in any order */
	MPI_Count size, extent, lb, true_lb, true_extent;
};

int type_start(void);
void type_end(void);
/* NULL: the MPI does not know it either. */
const struct type *type_find(MPI_Datatype handle);

int op_start(void);
/*
 * How libcoll reduces so: type and op for its calls. OTHER_TYPE: it cannot,
 * whoever asks.
 */
enum reason op_find(MPI_Op op, MPI_Datatype datatype, enum coll_type *coll_type,
		    enum coll_reduction *coll_op);

/*
 * A handle that a task under way needs: MPI lets the program free it meanwhile,
 * so that is put off. Predefined ones are never freed and need no hold.
 */
void hold_type(MPI_Datatype handle);
void drop_type(MPI_Datatype handle);
void hold_op(MPI_Op handle);
void drop_op(MPI_Op handle);

/* ---- calls and tasks ---------------------------------------------------- */

/* What a collective was called with. Arrays are of int, or of the large kind. */
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
	struct comm *met;		/* what was found out when deciding whose it is */
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

/* Data of the caller's that is not a row of bytes, and the row that stands for it. */
struct piece {
	uint8_t *user;
	MPI_Count count;
	MPI_Datatype type;
	const struct type *info;
	uint8_t *place;
	bool in, out;
	bool spread;		/* the place has the type's gaps too */
	bool held;
};

enum { FEW = 32 };

/* What libcoll is called with. */
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
	void *memory[2];	/* of places */
	uint32_t memories;
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
	bool active, freed;
	int code;			/* MPI's */
	uint64_t started;
};

/* 0, or a negative errno. Collective calls that are ours cannot be refused here. */
int stage_make(struct task *task);
void stage_pack(struct stage *stage);
void stage_unpack(struct stage *stage);
void stage_free(struct stage *stage);

/* Whether there is something that has to move while the MPI waits. */
bool task_any(void);
/* Whether the MPI must be asked again and again instead of being left to wait. */
static inline bool must_poll(void)
{
	return shim.yields || task_any();
}
/* Turns the engine without waiting, and completes what has ended. */
void task_progress(void);
/* The three forms, of calls that are ours. They return an MPI code. */
int task_block(const struct call *call);
int task_begin(const struct call *call, MPI_Request *request);
int task_prepare(const struct call *call, MPI_Request *request);
/* The persistent task behind a request, or NULL. */
struct task *task_persistent(MPI_Request request);
int task_start(struct task *task);
void task_free_persistent(struct task *task);
/* No request among these but ours: nothing is gained by looking at MPI all the time. */
bool task_all_ours(int count, const MPI_Request *requests);
void task_end(void);

/* Waiting in turns: ours, then the MPI's. Starts as { 0 }. */
struct pace {
	uint64_t slice;
	uint32_t rounds;
};
/* May sleep: only ours is waited for. Returns the engine's error. */
int pace_turn(struct pace *pace);
/* Never sleeps. */
void pace_poll(struct pace *pace);

/* ---- report and trace --------------------------------------------------- */

void report_ours(const struct task *task, const char *algo, uint64_t ns);
void report_handed(enum which which, enum reason reason);
void report_print(void);

/*
 * An event is between trace_begin() and one of the others, which are cheap when
 * nothing is recorded. Calls inside of calls are no events.
 */
void trace_start(void);
void trace_end(void);
bool trace_begin(void);
/* It led to nothing, like a test of what is not done. */
void trace_nothing(MPI_Request *before);
/* "send", "to": or "recv", "from"; `request` if it only began. */
void trace_message(const char *what, const char *side, int peer, int tag, MPI_Count count,
		   MPI_Datatype type, MPI_Comm comm, const MPI_Request *request, int code);
/* Begins a wait, which ends with the copy: those requests that changed are done. */
MPI_Request *trace_copy(int count, const MPI_Request *requests);
void trace_wait(int count, MPI_Request *before, const MPI_Request *after, int code);
/* `request`: of one that began; NULL with PERSISTENT: one that was only prepared. */
void trace_collective(const struct call *call, enum form form, const MPI_Request *request,
		      int code);

#endif
