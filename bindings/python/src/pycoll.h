/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The extension module coll._coll: what its files share. It uses coll.h alone, and of Python
 * the stable ABI of 3.11.
 *
 * Every call of the library is made without the GIL, since the library may wait for a thread
 * that runs a reduction written in Python; and with the context's mutex, since a context is used by
 * one thread at a time. pycoll_enter() and pycoll_leave() stand around each call. A wait for
 * a run enters again and again, so it keeps no other thread out.
 */
#ifndef PYCOLL_H
#define PYCOLL_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <coll.h>

struct pycoll_garbage;

typedef struct pycoll_context {
	PyObject_HEAD
	struct coll_context *context;	/* NULL: closed. Changed inside enter and leave */
	pthread_mutex_t mutex;
	pid_t pid;			/* of the process that opened it */
	/* The rest under the GIL. */
	int waiting;			/* threads that wait for a run */
	PyObject *world;		/* borrowed: the live object, or NULL */
	struct pycoll_flight *orphans;	/* in flight, and their requests are gone */
	struct pycoll_garbage *garbage;	/* dropped while it could not be freed */
	struct pycoll_context *next, **link;	/* all open contexts */
} pycoll_context;

typedef struct {
	PyObject_HEAD
	pycoll_context *context;
	struct coll_group *group;	/* NULL: freed. Read and changed inside enter and leave */
	int rank, ranks;
	bool world, closed;
	int flights;			/* that have a run: it is freed after the last */
} pycoll_group;

typedef struct {
	PyObject_HEAD
	pycoll_context *context;
	PyObject *function;
	enum coll_reduction number;
	bool made;
	int flights;			/* in flight with it. Changed with the GIL, as the next */
	PyObject *raised;		/* by the function, while one is in flight; or NULL */
} pycoll_op;

/* A buffer of Python that a call reads or writes. */
struct pycoll_buffer {
	Py_buffer view;
	bool held;			/* view is to be released */
	bool in_place;			/* IN_PLACE was passed: the rest is not set */
	bool is_bool;
	enum coll_type type;
	size_t element;			/* bytes */
	size_t count;			/* elements */
};

/* A run and all that must live as long as it does. */
struct pycoll_flight {
	struct coll_run *run;		/* NULL: it has ended and is freed */
	const char *call;		/* "allreduce" */
	bool persistent, active;
	struct pycoll_buffer send, recv;
	PyObject *result;		/* what wait() returns, or NULL */
	bool receives;			/* a message: wait() returns a Received of ... */
	struct coll_received received;	/* ... this. Source -1: there is none */
	PyObject *op;			/* an Op, or NULL */
	PyObject *raised;		/* the run has ended, and its Op had raised this; or NULL */
	pycoll_group *group;
	struct pycoll_flight *next;	/* of the context's orphans */
};

typedef struct {
	PyObject_HEAD
	struct pycoll_flight *flight;
} pycoll_request;

/* An error of the library, kept until the GIL is there. */
struct pycoll_failure {
	int error;
	int rank;			/* that it names, or -1 */
	int failed_count;
	int *failed;
	char text[512];
};

extern PyTypeObject *pycoll_context_type, *pycoll_group_type, *pycoll_request_type,
	*pycoll_op_type;
extern PyObject *pycoll_in_place;
extern PyType_Spec pycoll_context_spec, pycoll_group_spec, pycoll_request_spec, pycoll_op_spec;

/* ---- context.c ---- */

/* -1: a reduction in Python calls, or this is a fork, whose mutex may be held for ever; an exception is set. */
int pycoll_may_enter(const pycoll_context *self);
/* NULL: that, or the context is closed; an exception is set. */
struct coll_context *pycoll_enter(pycoll_context *self, PyThreadState **thread);
void pycoll_leave(pycoll_context *self, PyThreadState *thread);
/* To be freed, at once or by the next call. Never fails; works in any destructor. */
void pycoll_drop_group(pycoll_context *self, struct coll_group *group);
void pycoll_drop_op(pycoll_context *self, enum coll_reduction op);
void pycoll_drop_flight(struct pycoll_flight *flight);
/* Frees what was dropped and is not in flight any more. Each call of a group begins with it. */
void pycoll_reap(pycoll_context *self);
PyObject *pycoll_open(PyObject *module, PyObject *args);
/* At the end of the program. */
PyObject *pycoll_close_all(PyObject *module, PyObject *unused);

/* ---- error.c ---- */

/* Inside enter and leave: takes text and ranks of the last error of the group. */
struct pycoll_failure pycoll_failure_of(const struct coll_group *group, int error);
struct pycoll_failure pycoll_failure_text(int error, const char *text);
/* With the GIL: sets an exception of coll.errors and returns NULL. */
PyObject *pycoll_raise(struct pycoll_failure *failure, const char *call);
/* Of the library, which cites the environment and files: what is no UTF-8 is replaced. */
PyObject *pycoll_text(const char *text);
/* "call: name: ...", an exception of Python. Returns NULL. */
PyObject *pycoll_refuse(PyObject *type, const char *call, const char *name, const char *format,
			...);

/* ---- buffer.c ---- */

enum pycoll_access { PYCOLL_READ, PYCOLL_WRITE };

/* `type`: -1, or the enum coll_type that replaces the buffer's own. */
int pycoll_buffer_get(struct pycoll_buffer *buffer, PyObject *object, enum pycoll_access access,
		      long long type, const char *call, const char *name);
void pycoll_buffer_release(struct pycoll_buffer *buffer);
/* Bytes of an element; 0: there is no such type. */
size_t pycoll_type_bytes(long long type);
/* For errors; `text` has room for 32 bytes. */
const char *pycoll_type_name(enum coll_type type, char *text);
/* NumPy's dtype for elements of the type; `text` has room for 32 bytes. */
const char *pycoll_type_dtype(enum coll_type type, char *text);

/* ---- call.c: one call, from its arguments to its run ---- */

enum pycoll_form { PYCOLL_BLOCKING, PYCOLL_NONBLOCKING, PYCOLL_PERSISTENT };

struct pycoll_call;

/* What a collective takes and does. */
struct pycoll_kind {
	const char *name;
	int (*parse)(struct pycoll_call *call, PyObject *args, PyObject *kwargs);
	/* Gets the buffers, and compares their sizes. */
	int (*check)(struct pycoll_call *call);
	/* Calls the library, inside enter and leave. */
	int (*issue)(struct pycoll_call *call, struct coll_run **run);
};

struct pycoll_call {
	const struct pycoll_kind *kind;
	pycoll_group *self;
	struct coll_group *group;	/* inside enter and leave */
	bool persistent;
	struct pycoll_flight *flight;
	int root;			/* of a message: the other rank */
	int tag;
	/* As passed; NULL or None: not passed. */
	PyObject *sendbuf, *recvbuf, *op_object, *type_object;
	PyObject *counts_object, *displs_object, *recv_counts_object, *recv_displs_object;
	/* As understood. */
	long long type_wanted;		/* -1: the type of the buffers */
	size_t count;
	enum coll_type type;
	enum coll_reduction op;
	size_t *counts, *displs, *recv_counts, *recv_displs;
};

PyObject *pycoll_call(pycoll_group *self, PyObject *args, PyObject *kwargs,
		      const struct pycoll_kind *kind, enum pycoll_form form);

int pycoll_call_send(struct pycoll_call *call);
int pycoll_call_recv(struct pycoll_call *call, enum pycoll_access access);
/* As pycoll_call_recv(), but None makes an array: `shape` is for coll.arrays.result(). */
int pycoll_call_result(struct pycoll_call *call, const char *shape);
/* Whether an argument was passed. */
bool pycoll_given(PyObject *object);
/* The buffer must have `count` elements, since `why`. */
int pycoll_call_expect(struct pycoll_call *call, const struct pycoll_buffer *buffer, size_t count,
		       const char *why);
/* IN_PLACE where it means nothing is refused: the library would take it for an address. */
int pycoll_not_in_place(const struct pycoll_call *call, const struct pycoll_buffer *buffer,
			const char *name);
/* Its elements in blocks, one for each rank: *block gets the elements of one. */
int pycoll_call_blocks(struct pycoll_call *call, const struct pycoll_buffer *buffer,
		       size_t *block);
/* Reads counts and displacements, and checks that the blocks are within the buffer. */
int pycoll_call_counts(struct pycoll_call *call, PyObject *object, const char *name,
		       size_t **counts);
int pycoll_call_displs(struct pycoll_call *call, PyObject *object, const char *name,
		       const size_t *counts, const struct pycoll_buffer *buffer, size_t **displs);

/* ---- collective.c, message.c ---- */

extern PyMethodDef pycoll_collectives[], pycoll_messages[];

/* A method in one form. */
#define PYCOLL_FORM(method, kind, form)                                                               \
	static PyObject *method_##method(PyObject *self, PyObject *args, PyObject *kwargs)     \
	{                                                                                      \
		return pycoll_call((pycoll_group *)self, args, kwargs, &kind_##kind, form);    \
	}
#define PYCOLL_METHOD(method, text)                                                                   \
	{ #method, (PyCFunction)(void (*)(void))method_##method, METH_VARARGS | METH_KEYWORDS, \
	  #method text }

/* ---- group.c ---- */

/* Before the type is made. */
int pycoll_group_prepare(void);
/* Takes the library's group, also when it fails. */
PyObject *pycoll_group_new(pycoll_context *context, struct coll_group *group, bool world);
/* pycoll_enter() for a group that is open. */
struct coll_group *pycoll_group_enter(pycoll_group *self, PyThreadState **thread);
/* A flight of the group has no run any more. */
void pycoll_group_flight_ended(pycoll_group *self);

/* ---- flight.c ---- */

struct pycoll_flight *pycoll_flight_new(pycoll_group *group, const char *call);
/* What a wait for it returns: a new reference. */
PyObject *pycoll_flight_result(const struct pycoll_flight *flight);
/* Its run is not in flight, and not in the library unless the context is closed. */
void pycoll_flight_free(struct pycoll_flight *flight);
/*
 * Inside enter and leave: polls without waiting. -EINPROGRESS: it is in flight. Its group is revoked
 * when its reduction has raised: the results are worth nothing, on all ranks.
 */
int pycoll_flight_test(struct pycoll_flight *flight, struct pycoll_failure *failure);
/*
 * Waits until the run has ended; handles signals meanwhile. -1: an exception is set; the run is
 * in flight if flight->active.
 */
int pycoll_flight_wait(struct pycoll_flight *flight);
/* The same for a blocking call: when a signal's handler raises, the run is cancelled. */
int pycoll_flight_wait_or_cancel(struct pycoll_flight *flight);
/* Polls once. 1: it has ended, 0: it is in flight, -1: an exception is set. */
int pycoll_flight_poll(struct pycoll_flight *flight);
/* With the GIL, for one that was tested: 0, or -1 and what its reduction has raised or the failure is set. */
int pycoll_flight_raise(struct pycoll_flight *flight, struct pycoll_failure *failure);

/* ---- request.c, requests.c ---- */

PyObject *pycoll_request_new(struct pycoll_flight *flight);
extern PyMethodDef pycoll_request_functions[];

/* ---- wait.c ---- */

/* What a wait looks at without waiting: 0, or -EINPROGRESS to be asked again. */
typedef int pycoll_look(void *argument);
/*
 * Looks until it answers; -1: a signal's handler raised, the context is closed, or a call is refused as
 * by pycoll_may_enter(). `look` is called inside enter and leave.
 */
int pycoll_wait(pycoll_context *context, pycoll_look *look, void *argument, bool signals);

/* ---- op.c ---- */

/* `object`: a number, an Op (a reference is kept in *kept), or NULL for SUM. */
int pycoll_op_get(PyObject *object, pycoll_context *context, const char *call,
		  enum coll_reduction *op, PyObject **kept);
/* Whether this thread runs a reduction in Python. */
bool pycoll_in_reduction(void);
PyObject *pycoll_op_new(pycoll_context *context, PyObject *function, int commutative);
/*
 * With the GIL: a flight with this Op, or without one, is about to start; has ended, or did not start.
 * The latter returns a reference to what the function has raised, or NULL. It frees nothing.
 */
void pycoll_op_begin(PyObject *op);
PyObject *pycoll_op_end(PyObject *op);
/* Also without the GIL. */
bool pycoll_op_has_raised(PyObject *op);

#endif
