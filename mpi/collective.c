// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The collectives as the program calls them: libcoll does a call, or the MPI. */
#include "shim.h"

/* ---- which library executes a call -------------------------------------------- */

static bool has_root(enum which which)
{
	return which == WHICH_Bcast || which == WHICH_Gather || which == WHICH_Gatherv ||
	       which == WHICH_Scatter || which == WHICH_Scatterv || which == WHICH_Reduce;
}

static bool row_valid(MPI_Count count, MPI_Datatype type)
{
	return !count || (count > 0 && type_find(type));
}

static bool blocks_valid(const struct call *call, const void *counts, const void *displs,
			 MPI_Datatype type, const MPI_Datatype *types)
{
	int i;

	if (!counts || (!displs && call->which != WHICH_Reduce_scatter))
		return false;
	for (i = 0; i < call->met->ranks; i++)
		if (!row_valid(count_at(call, counts, i), types ? types[i] : type))
			return false;
	return true;
}

static bool in_valid(const struct call *call)
{
	if (call->in == MPI_IN_PLACE)
		return true;
	return call->in_counts ? blocks_valid(call, call->in_counts, call->in_displs, call->in_type,
					      call->in_types) :
				 row_valid(call->in_count, call->in_type);
}

static bool out_valid(const struct call *call)
{
	if (call->out == MPI_IN_PLACE)
		return call->which == WHICH_Scatter || call->which == WHICH_Scatterv;
	return call->out_counts ? blocks_valid(call, call->out_counts, call->out_displs,
					       call->out_type, call->out_types) :
				  row_valid(call->out_count, call->out_type);
}

/*
 * Arguments that every MPI refuses go to the MPI, which has the right error for them.
 * Arguments that only the root needs are ignored elsewhere.
 */
static bool collective_valid(const struct call *call)
{
	const struct comm *comm = call->met;
	bool root = call->root == comm->rank;

	if (has_root(call->which) && (call->root < 0 || call->root >= comm->ranks))
		return false;
	switch (call->which) {
	case WHICH_Barrier:
		return true;
	case WHICH_Gather:
	case WHICH_Gatherv:
		return in_valid(call) && (!root || out_valid(call));
	case WHICH_Scatter:
	case WHICH_Scatterv:
		return out_valid(call) && (!root || in_valid(call));
	case WHICH_Allgather:
	case WHICH_Allgatherv:
	case WHICH_Alltoall:
	case WHICH_Alltoallv:
	case WHICH_Alltoallw:
		return in_valid(call) && out_valid(call);
	case WHICH_Bcast:
		return out_valid(call);
	default:
		return call_has_result(call) ? out_valid(call) : row_valid(call->out_count, call->out_type);
	}
}

static bool collective_has_arrays(enum which which)
{
	return which == WHICH_Gatherv || which == WHICH_Scatterv || which == WHICH_Allgatherv ||
	       which == WHICH_Alltoallv || which == WHICH_Alltoallw ||
	       which == WHICH_Reduce_scatter;
}

static enum reason collective_decide(struct call *call, enum form form)
{
	enum reason reason = OURS;

	if (!(shim.settings.on >> call->which & 1))
		return OTHER_SWITCHED_OFF;
	if (call->comm == MPI_COMM_NULL)
		return OTHER_REFUSED;
	if (call->fortran && collective_has_arrays(call->which))
		return OTHER_FORTRAN;
	call->met = comm_find(call->comm);
	if (!call->met && form == BLOCKING)
		call->met = comm_meet(call->comm);
	if (!call->met)
		return OTHER_UNMET;
	if (!call->met->group)
		return call->met->reason;
	if (which_reduces(call->which))
		reason = op_find(call->op, call->out_type, &call->coll_type, &call->coll_op);
	return reason != OURS ? reason : collective_valid(call) ? OURS : OTHER_REFUSED;
}

/* Where the MPI may block while runs of ours are under way. hand.c has its own way of that. */
static bool must_gather(enum reason reason)
{
	return reason != OURS && reason != OTHER_REFUSED && reason != OTHER_TRIED &&
	       reason != OTHER_FASTER;
}

/* Whether libcoll does it. If not, the report counts it, and the MPI may block in it. */
static bool collective_ours(struct call *call, enum form form)
{
	enum reason reason;

	if (!shim.on)
		return false;
	trace_begin();
	shim_lock();
	reason = collective_decide(call, form);
	if (reason == OURS && form == BLOCKING)
		reason = hand_decide(call);
	if (reason == OURS)
		shim.ours++;
	else
		report_handed(call->which, reason, 1);
	shim_unlock();
	if (form == BLOCKING && must_gather(reason))
		comm_gather_round(call->comm);
	if (call->timed && reason == OURS)
		call->began = coll_shim_now();
	return reason == OURS;
}

static int collective_done(struct call *call, enum form form, const MPI_Request *request, int code)
{
	if (call->sums && !code)
		nan_settle(call->out, call->sums, call->coll_type);
	if (call->timed)
		hand_done(call);
	if (shim.on)
		trace_collective(call, form, request, code);
	return code;
}

/* ---- what the program calls ----------------------------------------------- */

#define UNWRAP(...) __VA_ARGS__

/* Not part of the short way, whose struct call then never is in memory. */
#define LONG_WAY static __attribute__((noinline))

/* The forms of a collective; INIT defines the persistent one. */
#define CALL(Name, ...) { .which = WHICH_##Name, .comm = comm, LARGE, __VA_ARGS__ }
#define FORMS_NAMED(Name, Blocking, Nonblocking, INIT, parameters, arguments, ...)          \
	LONG_WAY int block_##Blocking(UNWRAP parameters, MPI_Comm comm)                     \
	{                                                                                   \
		struct call call = CALL(Name, __VA_ARGS__);                                 \
                                                                                            \
		return collective_done(&call, BLOCKING, NULL, collective_ours(&call, BLOCKING) ? \
			    task_block(&call) : real.Blocking(UNWRAP arguments, comm));     \
	}                                                                                   \
	int MPI_##Blocking(UNWRAP parameters, MPI_Comm comm)                                \
	{                                                                                   \
		const struct call call = CALL(Name, __VA_ARGS__);                           \
                                                                                            \
		return hand_again(&call) ?                                                  \
			       hand_again_done(&call, real.Blocking(UNWRAP arguments, comm)) : \
			       block_##Blocking(UNWRAP arguments, comm);                    \
	}                                                                                   \
	ALSO(PMPI_##Blocking, MPI_##Blocking)                                               \
	static int begin_##Nonblocking(UNWRAP parameters, MPI_Comm comm, MPI_Request *request,\
				       bool fortran)                                        \
	{                                                                                   \
		struct call call = CALL(Name, .fortran = fortran, __VA_ARGS__);             \
                                                                                            \
		return collective_done(&call, NONBLOCKING, request, collective_ours(&call, NONBLOCKING) ?\
			    task_begin(&call, request) :                                    \
			    real.Nonblocking(UNWRAP arguments, comm, request));             \
	}                                                                                   \
	int MPI_##Nonblocking(UNWRAP parameters, MPI_Comm comm, MPI_Request *request)       \
	{                                                                                   \
		return begin_##Nonblocking(UNWRAP arguments, comm, request, false);         \
	}                                                                                   \
	int PMPI_##Nonblocking(UNWRAP parameters, MPI_Comm comm, MPI_Request *request)      \
	{                                                                                   \
		return begin_##Nonblocking(UNWRAP arguments, comm, request,                 \
					   FORTRAN_WRITES_REQUESTS);                        \
	}                                                                                   \
	INIT(Name, parameters, arguments, __VA_ARGS__)

#define PERSISTENT_FORM(Name, function, pfunction, Real, parameters, arguments, ...)        \
	static int prepare_##Real(UNWRAP parameters, MPI_Comm comm, MPI_Info info,          \
				  MPI_Request *request, bool fortran)                       \
	{                                                                                   \
		struct call call = CALL(Name, .fortran = fortran, __VA_ARGS__);             \
                                                                                            \
		return collective_done(&call, PERSISTENT, NULL, collective_ours(&call, PERSISTENT) ?\
			    task_prepare(&call, request) :                                  \
			    real.Real(UNWRAP arguments, comm, info, request));              \
	}                                                                                   \
	int function(UNWRAP parameters, MPI_Comm comm, MPI_Info info, MPI_Request *request) \
	{                                                                                   \
		return prepare_##Real(UNWRAP arguments, comm, info, request, false);        \
	}                                                                                   \
	int pfunction(UNWRAP parameters, MPI_Comm comm, MPI_Info info, MPI_Request *request)\
	{                                                                                   \
		return prepare_##Real(UNWRAP arguments, comm, info, request,                \
				      FORTRAN_WRITES_REQUESTS);                             \
	}

#if HAVE_INIT
#define INIT_FORM(Name, ...)                                                                \
	PERSISTENT_FORM(Name, INIT_NAME(Name), INIT_PNAME(Name), Name##_init, __VA_ARGS__)
#else
#define INIT_FORM(...)
#endif
#define LARGE_INIT_FORM(Name, ...)                                                          \
	PERSISTENT_FORM(Name, MPI_##Name##_init_c, PMPI_##Name##_init_c, Name##_init_c,     \
			__VA_ARGS__)

#define COUNT int
#define DISPL int
#define LARGE .large = false
#define FORMS(Name, name, ...) FORMS_NAMED(Name, Name, I##name, INIT_FORM, __VA_ARGS__)
#include "forms.h"
#undef FORMS
#undef LARGE
#undef DISPL
#undef COUNT

#if HAVE_LARGE
#define COUNT MPI_Count
#define DISPL MPI_Aint
#define LARGE .large = true
#define FORMS(Name, name, ...)                                                              \
	FORMS_NAMED(Name, Name##_c, I##name##_c, LARGE_INIT_FORM, __VA_ARGS__)
#include "forms.h"
#undef LARGE
#endif

LONG_WAY int block_Barrier(MPI_Comm comm)
{
	struct call call = { .which = WHICH_Barrier, .comm = comm };

	return collective_done(&call, BLOCKING, NULL, collective_ours(&call, BLOCKING) ?
			       task_block(&call) : real.Barrier(comm));
}

int MPI_Barrier(MPI_Comm comm)
{
	const struct call call = { .which = WHICH_Barrier, .comm = comm };

	return hand_again(&call) ? real.Barrier(comm) : block_Barrier(comm);
}
ALSO(PMPI_Barrier, MPI_Barrier)

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
	struct call call = { .which = WHICH_Barrier, .comm = comm };

	return collective_done(&call, NONBLOCKING, request, collective_ours(&call, NONBLOCKING) ?
			       task_begin(&call, request) : real.Ibarrier(comm, request));
}
ALSO(PMPI_Ibarrier, MPI_Ibarrier)

#if HAVE_INIT
int INIT_NAME(Barrier)(MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct call call = { .which = WHICH_Barrier, .comm = comm };

	return collective_done(&call, PERSISTENT, NULL,
			       collective_ours(&call, PERSISTENT)
				       ? task_prepare(&call, request)
				       : real.Barrier_init(comm, info, request));
}
ALSO(INIT_PNAME(Barrier), INIT_NAME(Barrier))
#endif
