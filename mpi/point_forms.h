/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The messages that have counts. Included twice by point.c, for int and for large counts; no guard. COUNT: their type,
 * FORM(name): the name of that kind, PACKED_MOST: bytes that may be packed.
 */
/* The real functions of a kind of send: standard, synchronous, ready. */
typedef int (*FORM(send_function))(const void *data, COUNT count, MPI_Datatype type, int to, int tag,
				   MPI_Comm comm);
typedef int (*FORM(isend_function))(const void *data, COUNT count, MPI_Datatype type, int to, int tag,
				    MPI_Comm comm, MPI_Request *request);

static int FORM(point_isend)(FORM(isend_function) isend, const void *data, COUNT count, MPI_Datatype type,
			     int to, int tag, MPI_Comm comm, MPI_Request *request)
{
	int code;

	trace_begin();
	code = isend(data, count, type, to, tag, comm, request);
	trace_message("isend", "to", to, tag, count, type, comm, request, code);
	return code;
}

int FORM(MPI_Isend)(const void *data, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
		    MPI_Request *request)
{
	return FORM(point_isend)(real.FORM(Isend), data, count, type, to, tag, comm, request);
}
ALSO(FORM(PMPI_Isend), FORM(MPI_Isend))

int FORM(MPI_Issend)(const void *data, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
		     MPI_Request *request)
{
	return FORM(point_isend)(real.FORM(Issend), data, count, type, to, tag, comm, request);
}
ALSO(FORM(PMPI_Issend), FORM(MPI_Issend))

int FORM(MPI_Irsend)(const void *data, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
		     MPI_Request *request)
{
	return FORM(point_isend)(real.FORM(Irsend), data, count, type, to, tag, comm, request);
}
ALSO(FORM(PMPI_Irsend), FORM(MPI_Irsend))

int FORM(MPI_Ibsend)(const void *data, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
		     MPI_Request *request)
{
	return FORM(point_isend)(real.FORM(Ibsend), data, count, type, to, tag, comm, request);
}
ALSO(FORM(PMPI_Ibsend), FORM(MPI_Ibsend))

int FORM(MPI_Irecv)(void *data, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
		    MPI_Request *request)
{
	int code;

	trace_begin();
	code = real.FORM(Irecv)(data, count, type, from, tag, comm, request);
	trace_message("irecv", "from", from, tag, count, type, comm, request, code);
	return code;
}
ALSO(FORM(PMPI_Irecv), FORM(MPI_Irecv))

static int FORM(block_send)(FORM(send_function) send, FORM(isend_function) isend, const void *data, COUNT count,
			    MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	MPI_Request request;
	int code;

	if (!must_poll())
		return send(data, count, type, to, tag, comm);
	code = isend(data, count, type, to, tag, comm, &request);
	return code ? code : point_complete(&request, MPI_STATUS_IGNORE);
}

static int FORM(point_send)(FORM(send_function) send, FORM(isend_function) isend, const void *data, COUNT count,
			    MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	int code;

	trace_begin();
	code = FORM(block_send)(send, isend, data, count, type, to, tag, comm);
	trace_message("send", "to", to, tag, count, type, comm, NULL, code);
	return code;
}

int FORM(MPI_Send)(const void *data, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	return FORM(point_send)(real.FORM(Send), real.FORM(Isend), data, count, type, to, tag, comm);
}
ALSO(FORM(PMPI_Send), FORM(MPI_Send))

int FORM(MPI_Ssend)(const void *data, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	return FORM(point_send)(real.FORM(Ssend), real.FORM(Issend), data, count, type, to, tag, comm);
}
ALSO(FORM(PMPI_Ssend), FORM(MPI_Ssend))

int FORM(MPI_Rsend)(const void *data, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	return FORM(point_send)(real.FORM(Rsend), real.FORM(Irsend), data, count, type, to, tag, comm);
}
ALSO(FORM(PMPI_Rsend), FORM(MPI_Rsend))

/* It waits for nobody. */
int FORM(MPI_Bsend)(const void *data, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	int code;

	trace_begin();
	code = real.FORM(Bsend)(data, count, type, to, tag, comm);
	trace_message("send", "to", to, tag, count, type, comm, NULL, code);
	return code;
}
ALSO(FORM(PMPI_Bsend), FORM(MPI_Bsend))

static int FORM(block_recv)(void *data, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
			    MPI_Status *status)
{
	MPI_Request request;
	int code;

	if (!must_poll())
		return real.FORM(Recv)(data, count, type, from, tag, comm, status);
	code = real.FORM(Irecv)(data, count, type, from, tag, comm, &request);
	return code ? code : point_complete(&request, status);
}

int FORM(MPI_Recv)(void *data, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
		   MPI_Status *status)
{
	int code;

	trace_begin();
	code = FORM(block_recv)(data, count, type, from, tag, comm, status);
	trace_message("recv", "from", from, tag, count, type, comm, NULL, code);
	return code;
}
ALSO(FORM(PMPI_Recv), FORM(MPI_Recv))

int FORM(MPI_Sendrecv)(const void *out, COUNT out_count, MPI_Datatype out_type, int to, int out_tag,
		       void *in, COUNT in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,
		       MPI_Status *status)
{
	MPI_Request recv, send;
	int code, code_send;

	if (!must_poll() && !shim.settings.trace)
		return real.FORM(Sendrecv)(out, out_count, out_type, to, out_tag, in, in_count, in_type,
					   from, in_tag, comm, status);
	code = FORM(MPI_Irecv)(in, in_count, in_type, from, in_tag, comm, &recv);
	if (code)
		return code;
	code_send = FORM(MPI_Isend)(out, out_count, out_type, to, out_tag, comm, &send);
	if (code_send)
		real.Cancel(&recv);	/* of a call that fails nobody may know */
	else
		code_send = point_complete(&send, MPI_STATUS_IGNORE);
	code = point_complete(&recv, status);
	return code ? code : code_send;
}
ALSO(FORM(PMPI_Sendrecv), FORM(MPI_Sendrecv))

int FORM(MPI_Sendrecv_replace)(void *data, COUNT count, MPI_Datatype type, int to, int out_tag, int from,
			       int in_tag, MPI_Comm comm, MPI_Status *status)
{
	MPI_Count bytes = must_poll() || shim.settings.trace ? point_bytes(count, type) : -1;
	COUNT position = 0;
	struct pack_view view;
	void *copy;
	int code;

	if (bytes < 0 || bytes > PACKED_MOST)
		return real.FORM(Sendrecv_replace)(data, count, type, to, out_tag, from, in_tag, comm,
						   status);
	copy = malloc(bytes + 1);
	if (!copy)
		return shim_fail(comm, "MPI_Sendrecv_replace", -ENOMEM, NULL);
	code = pack_view_open(&view, data, type);
	if (!code)
		code = real.FORM(Pack)(view.at, count, view.type, copy, bytes, &position, comm);
	pack_view_close(&view);
	if (!code)
		code = FORM(MPI_Sendrecv)(copy, position, MPI_PACKED, to, out_tag, data, count, type,
					  from, in_tag, comm, status);
	free(copy);
	return code;
}
ALSO(FORM(PMPI_Sendrecv_replace), FORM(MPI_Sendrecv_replace))

static int FORM(block_mrecv)(void *data, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
	MPI_Request request;
	int code;

	if (!must_poll())
		return real.FORM(Mrecv)(data, count, type, message, status);
	code = real.FORM(Imrecv)(data, count, type, message, &request);
	return code ? code : point_complete(&request, status);
}

int FORM(MPI_Mrecv)(void *data, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
	const MPI_Message handle = message ? *message : MPI_MESSAGE_NULL;
	int code;

	trace_begin();
	code = FORM(block_mrecv)(data, count, type, message, status);
	trace_received("recv", handle, count, type, NULL, code);
	return code;
}
ALSO(FORM(PMPI_Mrecv), FORM(MPI_Mrecv))

int FORM(MPI_Imrecv)(void *data, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Request *request)
{
	const MPI_Message handle = message ? *message : MPI_MESSAGE_NULL;
	int code;

	trace_begin();
	code = real.FORM(Imrecv)(data, count, type, message, request);
	trace_received("irecv", handle, count, type, request, code);
	return code;
}
ALSO(FORM(PMPI_Imrecv), FORM(MPI_Imrecv))
