// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Messages between two ranks. As with collectives, a blocking call starts a run and waits for it in
 * a way that signals interrupt.
 */
#include "pycoll.h"

static int parse_send(struct pycoll_call *call, PyObject *args, PyObject *kwargs)
{
	static const char *const keywords[] = { "sendbuf", "dest", "tag", "type", NULL };

	(void)!PyArg_ParseTupleAndKeywords(args, kwargs, "Oi|i$O", (char **)keywords, &call->sendbuf,
					   &call->root, &call->tag, &call->type_object);
	return 0;
}

static int parse_recv(struct pycoll_call *call, PyObject *args, PyObject *kwargs)
{
	static const char *const keywords[] = { "recvbuf", "source", "tag", "type", NULL };

	call->root = COLL_ANY_SOURCE;
	call->tag = COLL_ANY_TAG;
	(void)!PyArg_ParseTupleAndKeywords(args, kwargs, "O|ii$O", (char **)keywords, &call->recvbuf,
					   &call->root, &call->tag, &call->type_object);
	return 0;
}

static int check_send(struct pycoll_call *call)
{
	if (pycoll_call_send(call))
		return -1;
	call->count = call->flight->send.count;
	return pycoll_not_in_place(call, &call->flight->send, "sendbuf");
}

static int check_recv(struct pycoll_call *call)
{
	struct pycoll_flight *flight = call->flight;

	if (pycoll_call_recv(call, PYCOLL_WRITE))
		return -1;
	Py_CLEAR(flight->result);
	flight->receives = true;
	flight->received.source = -1;
	call->count = flight->recv.count;
	return pycoll_not_in_place(call, &flight->recv, "recvbuf");
}

static int issue_send(struct pycoll_call *call, struct coll_run **run)
{
	return coll_isend(call->flight->send.view.buf, call->count, call->type, call->root, call->tag,
			  call->group, run);
}

static int issue_recv(struct pycoll_call *call, struct coll_run **run)
{
	return coll_irecv(call->flight->recv.view.buf, call->count, call->type, call->root, call->tag,
			  call->group, &call->flight->received, run);
}

static const struct pycoll_kind kind_send = { "send", parse_send, check_send, issue_send };
static const struct pycoll_kind kind_recv = { "recv", parse_recv, check_recv, issue_recv };

PYCOLL_FORM(send, send, PYCOLL_BLOCKING)
PYCOLL_FORM(isend, send, PYCOLL_NONBLOCKING)
PYCOLL_FORM(recv, recv, PYCOLL_BLOCKING)
PYCOLL_FORM(irecv, recv, PYCOLL_NONBLOCKING)

PyMethodDef pycoll_messages[] = {
	PYCOLL_METHOD(send, "($self, /, sendbuf, dest, tag=0, *, type=None)\n--\n\n"
		      "Sends sendbuf to rank dest. Ends when the buffer may be used again: a message of more\n"
		      "than 4 KB when it has been received."),
	PYCOLL_METHOD(isend, "($self, /, sendbuf, dest, tag=0, *, type=None)\n--\n\n"
		      "Starts send(), and returns a Request."),
	PYCOLL_METHOD(recv, "($self, /, recvbuf, source=-1, tag=-1, *, type=None)\n--\n\n"
		      "Receives the oldest message of rank source (ANY_SOURCE: any) that has this tag\n"
		      "(ANY_TAG: any) to recvbuf, which may be longer. Returns a Received."),
	PYCOLL_METHOD(irecv, "($self, /, recvbuf, source=-1, tag=-1, *, type=None)\n--\n\n"
		      "Starts recv(), and returns a Request, whose wait() returns a Received."),
	{ NULL, NULL, 0, NULL },
};
