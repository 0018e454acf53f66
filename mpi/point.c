// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Messages between two ranks are the MPI's. A rank that blocks in one may have to
 * forward data of a collective under way, or of one that another of its threads begins
 * meanwhile, or may occupy the core of the rank that it waits for. Then it polls instead.
 */
#include <stdlib.h>

#include "shim.h"

/* Completes a request of the MPI's, and advances our tasks meanwhile. */
static int point_complete(MPI_Request *request, MPI_Status *status)
{
	return MPI_Wait(request, status);
}

/* The real functions of a kind of send: standard, synchronous, ready. */
typedef int (*send_function)(const void *data, int count, MPI_Datatype type, int to, int tag,
			     MPI_Comm comm);
typedef int (*isend_function)(const void *data, int count, MPI_Datatype type, int to, int tag,
			      MPI_Comm comm, MPI_Request *request);

static int point_isend(isend_function isend, const void *data, int count, MPI_Datatype type,
		       int to, int tag, MPI_Comm comm, MPI_Request *request)
{
	int code;

	trace_begin();
	code = isend(data, count, type, to, tag, comm, request);
	trace_message("isend", "to", to, tag, count, type, comm, request, code);
	return code;
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
	      MPI_Request *request)
{
	return point_isend(real.Isend, data, count, type, to, tag, comm, request);
}
ALSO(PMPI_Isend, MPI_Isend)

int MPI_Issend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
	       MPI_Request *request)
{
	return point_isend(real.Issend, data, count, type, to, tag, comm, request);
}
ALSO(PMPI_Issend, MPI_Issend)

int MPI_Irsend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
	       MPI_Request *request)
{
	return point_isend(real.Irsend, data, count, type, to, tag, comm, request);
}
ALSO(PMPI_Irsend, MPI_Irsend)

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
	      MPI_Request *request)
{
	int code;

	trace_begin();
	code = real.Irecv(data, count, type, from, tag, comm, request);
	trace_message("irecv", "from", from, tag, count, type, comm, request, code);
	return code;
}
ALSO(PMPI_Irecv, MPI_Irecv)

static int block_send(send_function send, isend_function isend, const void *data, int count,
		      MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	MPI_Request request;
	int code;

	if (!must_poll())
		return send(data, count, type, to, tag, comm);
	code = isend(data, count, type, to, tag, comm, &request);
	return code ? code : point_complete(&request, MPI_STATUS_IGNORE);
}

static int point_send(send_function send, isend_function isend, const void *data, int count,
		      MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	int code;

	trace_begin();
	code = block_send(send, isend, data, count, type, to, tag, comm);
	trace_message("send", "to", to, tag, count, type, comm, NULL, code);
	return code;
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	return point_send(real.Send, real.Isend, data, count, type, to, tag, comm);
}
ALSO(PMPI_Send, MPI_Send)

int MPI_Ssend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	return point_send(real.Ssend, real.Issend, data, count, type, to, tag, comm);
}
ALSO(PMPI_Ssend, MPI_Ssend)

int MPI_Rsend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	return point_send(real.Rsend, real.Irsend, data, count, type, to, tag, comm);
}
ALSO(PMPI_Rsend, MPI_Rsend)

static int block_recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
		      MPI_Status *status)
{
	MPI_Request request;
	int code;

	if (!must_poll())
		return real.Recv(data, count, type, from, tag, comm, status);
	code = real.Irecv(data, count, type, from, tag, comm, &request);
	return code ? code : point_complete(&request, status);
}

int MPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
	     MPI_Status *status)
{
	int code;

	trace_begin();
	code = block_recv(data, count, type, from, tag, comm, status);
	trace_message("recv", "from", from, tag, count, type, comm, NULL, code);
	return code;
}
ALSO(PMPI_Recv, MPI_Recv)

int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag,
		 void *in, int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,
		 MPI_Status *status)
{
	MPI_Request recv, send;
	int code, code_send;

	if (!must_poll() && !shim.settings.trace)
		return real.Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type,
				     from, in_tag, comm, status);
	code = MPI_Irecv(in, in_count, in_type, from, in_tag, comm, &recv);
	if (code)
		return code;
	code_send = MPI_Isend(out, out_count, out_type, to, out_tag, comm, &send);
	if (code_send)
		real.Cancel(&recv);	/* of a call that fails nobody may know */
	else
		code_send = point_complete(&send, MPI_STATUS_IGNORE);
	code = point_complete(&recv, status);
	return code ? code : code_send;
}
ALSO(PMPI_Sendrecv, MPI_Sendrecv)

int MPI_Sendrecv_replace(void *data, int count, MPI_Datatype type, int to, int out_tag, int from,
			 int in_tag, MPI_Comm comm, MPI_Status *status)
{
	const struct type *info = must_poll() || shim.settings.trace ? type_find(type) : NULL;
	MPI_Count bytes = info ? info->size * count : 0;
	int code, position = 0;
	void *copy;

	if (!info || bytes > 1 << 30)
		return real.Sendrecv_replace(data, count, type, to, out_tag, from, in_tag, comm,
					     status);
	copy = malloc(bytes + 1);
	if (!copy)
		return MPI_ERR_NO_MEM;
	code = real.Pack(data, count, type, copy, bytes, &position, comm);
	if (!code)
		code = MPI_Sendrecv(copy, position, MPI_PACKED, to, out_tag, data, count, type,
				    from, in_tag, comm, status);
	free(copy);
	return code;
}
ALSO(PMPI_Sendrecv_replace, MPI_Sendrecv_replace)

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
	if (task_any())
		task_progress();
	return real.Improbe(from, tag, comm, flag, message, status);
}
ALSO(PMPI_Improbe, MPI_Improbe)

int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
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
ALSO(PMPI_Probe, MPI_Probe)

int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
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
ALSO(PMPI_Mprobe, MPI_Mprobe)

int MPI_Mrecv(void *data, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
	MPI_Request request;
	int code;

	if (!must_poll())
		return real.Mrecv(data, count, type, message, status);
	code = real.Imrecv(data, count, type, message, &request);
	return code ? code : point_complete(&request, status);
}
ALSO(PMPI_Mrecv, MPI_Mrecv)
