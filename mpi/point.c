// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Messages between two ranks are the MPI's. A rank that blocks in one may have to
 * forward data of a collective under way, or of one that another of its threads begins
 * meanwhile, or may occupy the core of the rank that it waits for. Then it polls instead.
 */
#include <errno.h>
#include <stdlib.h>

#include "piece.h"

/* Completes a request of the MPI's, and advances our tasks meanwhile. */
static int point_complete(MPI_Request *request, MPI_Status *status)
{
	return MPI_Wait(request, status);
}

/* -1: what the MPI refuses. Another thread may learn the same type now, so under the lock. */
static MPI_Count point_bytes(MPI_Count count, MPI_Datatype type)
{
	const struct type *info;
	MPI_Count bytes;

	shim_lock();
	info = count >= 0 ? type_find(type) : NULL;
	bytes = info ? info->size * count : -1;
	shim_unlock();
	return bytes;
}

#define COUNT int
#define FORM(Name) Name
#define PACKED_MOST (1 << 30)
#include "point_forms.h"
#undef PACKED_MOST
#undef FORM
#undef COUNT

#if HAVE_LARGE
#define COUNT MPI_Count
#define FORM(Name) Name##_c
#define PACKED_MOST ((MPI_Count)1 << 60)
#include "point_forms.h"
#endif

/* ---- probes --------------------------------------------------------------- */

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	if (task_any())
		task_progress();
	return real.Iprobe(from, tag, comm, flag, status);
}
ALSO(PMPI_Iprobe, MPI_Iprobe)

int MPI_Improbe(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
		MPI_Status *status)
{
	int code;

	if (task_any())
		task_progress();
	code = real.Improbe(from, tag, comm, flag, message, status);
	if (!code && *flag)
		trace_matched(*message, from, tag, comm);
	return code;
}
ALSO(PMPI_Improbe, MPI_Improbe)

static int block_probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
	struct pace pace = { 0 };
	int flag = 0, code;

	while (must_poll()) {
		task_progress();
		code = real.Iprobe(from, tag, comm, &flag, status);
		if (code || flag)
			return code;
		pace_poll(&pace);
	}
	return real.Probe(from, tag, comm, status);
}

int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
	int code;

	trace_begin();
	code = block_probe(from, tag, comm, status);
	trace_probed(code);
	return code;
}
ALSO(PMPI_Probe, MPI_Probe)

static int block_mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
	struct pace pace = { 0 };
	int flag = 0, code;

	while (must_poll()) {
		task_progress();
		code = real.Improbe(from, tag, comm, &flag, message, status);
		if (code || flag)
			return code;
		pace_poll(&pace);
	}
	return real.Mprobe(from, tag, comm, message, status);
}

int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
	int code;

	trace_begin();
	code = block_mprobe(from, tag, comm, message, status);
	if (!code)
		trace_matched(*message, from, tag, comm);
	trace_probed(code);
	return code;
}
ALSO(PMPI_Mprobe, MPI_Mprobe)
