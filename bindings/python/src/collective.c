// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The collectives: what each takes, what must fit, and which function of the library it is.
 * Each is a method of Group in three forms, as in the library: x, ix, x_init.
 */
#include "pycoll.h"

/* ---- arguments: 1 if the collective reduces, else 0 --------------------------------- */

#define PARSE(format, ...) \
	PyArg_ParseTupleAndKeywords(args, kwargs, format, (char **)keywords, __VA_ARGS__)

static int parse_none(struct pycoll_call *call, PyObject *args, PyObject *kwargs)
{
	static const char *const keywords[] = { NULL };

	(void)call;
	(void)!PyArg_ParseTupleAndKeywords(args, kwargs, "", (char **)keywords);
	return 0;
}

static int parse_data(struct pycoll_call *call, PyObject *args, PyObject *kwargs)
{
	static const char *const keywords[] = { "buf", "root", "type", NULL };

	(void)!PARSE("O|i$O", &call->recvbuf, &call->root, &call->type_object);
	return 0;
}

static int parse_rooted(struct pycoll_call *call, PyObject *args, PyObject *kwargs)
{
	static const char *const keywords[] = { "sendbuf", "recvbuf", "root", "type", NULL };

	(void)!PARSE("O|Oi$O", &call->sendbuf, &call->recvbuf, &call->root, &call->type_object);
	return 0;
}

static int parse_rooted_counts(struct pycoll_call *call, PyObject *args, PyObject *kwargs)
{
	static const char *const keywords[] = { "sendbuf", "recvbuf", "counts", "displs", "root",
						"type", NULL };

	(void)!PARSE("O|OOOi$O", &call->sendbuf, &call->recvbuf, &call->counts_object,
		     &call->displs_object, &call->root, &call->type_object);
	return 0;
}

static int parse_both(struct pycoll_call *call, PyObject *args, PyObject *kwargs)
{
	static const char *const keywords[] = { "sendbuf", "recvbuf", "type", NULL };

	(void)!PARSE("O|O$O", &call->sendbuf, &call->recvbuf, &call->type_object);
	return 0;
}

static int parse_counts(struct pycoll_call *call, PyObject *args, PyObject *kwargs)
{
	static const char *const keywords[] = { "sendbuf", "recvbuf", "counts", "displs", "type",
						NULL };

	(void)!PARSE("OOO|O$O", &call->sendbuf, &call->recvbuf, &call->counts_object,
		     &call->displs_object, &call->type_object);
	return 0;
}

static int parse_two_counts(struct pycoll_call *call, PyObject *args, PyObject *kwargs)
{
	static const char *const keywords[] = { "sendbuf", "recvbuf", "send_counts", "recv_counts",
						"send_displs", "recv_displs", "type", NULL };

	(void)!PARSE("OOOO|OO$O", &call->sendbuf, &call->recvbuf, &call->counts_object,
		     &call->recv_counts_object, &call->displs_object, &call->recv_displs_object,
		     &call->type_object);
	return 0;
}

static int parse_reduce(struct pycoll_call *call, PyObject *args, PyObject *kwargs)
{
	static const char *const keywords[] = { "sendbuf", "recvbuf", "op", "root", "type", NULL };

	(void)!PARSE("O|OOi$O", &call->sendbuf, &call->recvbuf, &call->op_object, &call->root,
		     &call->type_object);
	return 1;
}

static int parse_reduction(struct pycoll_call *call, PyObject *args, PyObject *kwargs)
{
	static const char *const keywords[] = { "sendbuf", "recvbuf", "op", "type", NULL };

	(void)!PARSE("O|OO$O", &call->sendbuf, &call->recvbuf, &call->op_object,
		     &call->type_object);
	return 1;
}

static int parse_reduction_counts(struct pycoll_call *call, PyObject *args, PyObject *kwargs)
{
	static const char *const keywords[] = { "sendbuf", "recvbuf", "counts", "op", "type",
						NULL };

	(void)!PARSE("OOO|O$O", &call->sendbuf, &call->recvbuf, &call->counts_object,
		     &call->op_object, &call->type_object);
	return 1;
}

/* ---- checks --------------------------------------------------------------------------- */

static bool at_root(const struct pycoll_call *call)
{
	return call->root == call->self->rank;
}

static int get_recv(struct pycoll_call *call)
{
	return pycoll_call_recv(call, PYCOLL_WRITE) ||
	       pycoll_not_in_place(call, &call->flight->recv, "recvbuf") ? -1 : 0;
}

static int get_result(struct pycoll_call *call, const char *shape)
{
	return pycoll_call_result(call, shape) ||
	       pycoll_not_in_place(call, &call->flight->recv, "recvbuf") ? -1 : 0;
}

static int check_barrier(struct pycoll_call *call)
{
	(void)call;
	return 0;
}

static int check_bcast(struct pycoll_call *call)
{
	if (pycoll_call_recv(call, at_root(call) ? PYCOLL_READ : PYCOLL_WRITE) ||
	    pycoll_not_in_place(call, &call->flight->recv, "buf"))
		return -1;
	call->count = call->flight->recv.count;
	return 0;
}

/* Of the root's buffer of all blocks. */
static const char whole[] = "as many as all blocks together";
static const char own[] = "as many as this rank's block";
static const char same[] = "as many as sendbuf";

/* recv has a block for each rank; send is one, or in place. */
static int check_gathered(struct pycoll_call *call)
{
	const struct pycoll_buffer *send = &call->flight->send, *recv = &call->flight->recv;

	if (get_result(call, "gathered"))
		return -1;
	if (send->in_place)
		return pycoll_call_blocks(call, recv, &call->count);
	return pycoll_call_expect(call, recv, send->count * call->self->ranks, whole);
}

static int check_gather(struct pycoll_call *call)
{
	if (pycoll_call_send(call))
		return -1;
	call->count = call->flight->send.count;
	return at_root(call) ? check_gathered(call) :
			       pycoll_not_in_place(call, &call->flight->send, "sendbuf");
}

static int check_allgather(struct pycoll_call *call)
{
	if (pycoll_call_send(call))
		return -1;
	call->count = call->flight->send.count;
	return check_gathered(call);
}

static int check_scatter(struct pycoll_call *call)
{
	const struct pycoll_buffer *send = &call->flight->send, *recv = &call->flight->recv;

	if (pycoll_call_recv(call, PYCOLL_WRITE))
		return -1;
	call->count = recv->count;
	if (!at_root(call))
		return pycoll_not_in_place(call, recv, "recvbuf");
	if (pycoll_call_send(call) || pycoll_not_in_place(call, send, "sendbuf") ||
	    pycoll_call_blocks(call, send, &call->count))
		return -1;
	return pycoll_call_expect(call, recv, call->count, own);
}

/* counts and displs of `buffer`. */
static int get_counts(struct pycoll_call *call, const struct pycoll_buffer *buffer)
{
	return pycoll_call_counts(call, call->counts_object, "counts", &call->counts) ||
	       pycoll_call_displs(call, call->displs_object, "displs", call->counts, buffer,
				  &call->displs) ? -1 : 0;
}

static int check_gathered_counts(struct pycoll_call *call)
{
	const size_t rank = call->self->rank;

	if (get_recv(call) || get_counts(call, &call->flight->recv))
		return -1;
	call->count = call->counts[rank];
	return pycoll_call_expect(call, &call->flight->send, call->counts[rank],
				  "as its entry of counts says");
}

static int check_gatherv(struct pycoll_call *call)
{
	if (pycoll_call_send(call))
		return -1;
	call->count = call->flight->send.count;
	return at_root(call) ? check_gathered_counts(call) :
			       pycoll_not_in_place(call, &call->flight->send, "sendbuf");
}

static int check_allgatherv(struct pycoll_call *call)
{
	return pycoll_call_send(call) || check_gathered_counts(call) ? -1 : 0;
}

static int check_scatterv(struct pycoll_call *call)
{
	const struct pycoll_buffer *send = &call->flight->send, *recv = &call->flight->recv;

	if (pycoll_call_recv(call, PYCOLL_WRITE))
		return -1;
	call->count = recv->count;
	if (!at_root(call))
		return pycoll_not_in_place(call, recv, "recvbuf");
	if (pycoll_call_send(call) || pycoll_not_in_place(call, send, "sendbuf") ||
	    get_counts(call, send))
		return -1;
	call->count = call->counts[call->self->rank];
	return pycoll_call_expect(call, recv, call->count, "as its entry of counts says");
}

static int check_alltoall(struct pycoll_call *call)
{
	const struct pycoll_buffer *send = &call->flight->send, *recv = &call->flight->recv;

	if (pycoll_call_send(call) || get_result(call, "same"))
		return -1;
	if (!send->in_place && pycoll_call_expect(call, recv, send->count, same))
		return -1;
	return pycoll_call_blocks(call, recv, &call->count);
}

static int check_alltoallv(struct pycoll_call *call)
{
	const struct pycoll_buffer *send = &call->flight->send, *recv = &call->flight->recv;

	if (pycoll_call_send(call) || get_recv(call))
		return -1;
	if (!send->in_place &&
	    (pycoll_call_counts(call, call->counts_object, "send_counts", &call->counts) ||
	     pycoll_call_displs(call, call->displs_object, "send_displs", call->counts, send,
				&call->displs)))
		return -1;
	return pycoll_call_counts(call, call->recv_counts_object, "recv_counts",
				  &call->recv_counts) ||
	       pycoll_call_displs(call, call->recv_displs_object, "recv_displs",
				  call->recv_counts, recv, &call->recv_displs) ? -1 : 0;
}

/* recv is a vector like send. */
static int check_vectors(struct pycoll_call *call, const char *shape)
{
	const struct pycoll_buffer *send = &call->flight->send, *recv = &call->flight->recv;

	if (get_result(call, shape))
		return -1;
	call->count = recv->count;
	return send->in_place ? 0 : pycoll_call_expect(call, recv, send->count, same);
}

static int check_reduce(struct pycoll_call *call)
{
	if (pycoll_call_send(call))
		return -1;
	call->count = call->flight->send.count;
	return at_root(call) ? check_vectors(call, "same") :
			       pycoll_not_in_place(call, &call->flight->send, "sendbuf");
}

static int check_allreduce(struct pycoll_call *call)
{
	return pycoll_call_send(call) || check_vectors(call, "same") ? -1 : 0;
}

/* Rank 0's result stays as it is: a new array has zeros there. */
static int check_exscan(struct pycoll_call *call)
{
	return pycoll_call_send(call) || check_vectors(call, "zeros") ? -1 : 0;
}

static int check_reduce_scatter_block(struct pycoll_call *call)
{
	const struct pycoll_buffer *send = &call->flight->send, *recv = &call->flight->recv;

	if (pycoll_call_send(call))
		return -1;
	if (!send->in_place && pycoll_call_blocks(call, send, &call->count))
		return -1;
	if (get_result(call, "block"))
		return -1;
	return send->in_place ? pycoll_call_blocks(call, recv, &call->count) :
				pycoll_call_expect(call, recv, call->count, own);
}

static int check_reduce_scatter(struct pycoll_call *call)
{
	const struct pycoll_buffer *send = &call->flight->send, *recv = &call->flight->recv;
	size_t sum = 0;
	int i;

	if (pycoll_call_send(call) || get_recv(call) ||
	    pycoll_call_counts(call, call->counts_object, "counts", &call->counts))
		return -1;
	for (i = 0; i < call->self->ranks; i++)
		if (__builtin_add_overflow(sum, call->counts[i], &sum))
			sum = SIZE_MAX;
	if (send->in_place)
		return pycoll_call_expect(call, recv, sum, "the sum of counts");
	if (pycoll_call_expect(call, send, sum, "the sum of counts"))
		return -1;
	return pycoll_call_expect(call, recv, call->counts[call->self->rank],
				  "as its entry of counts says");
}

/* ---- the library ------------------------------------------------------------------------ */

static void *memory_of(const struct pycoll_buffer *buffer)
{
	return buffer->in_place ? COLL_IN_PLACE : buffer->held ? buffer->view.buf : NULL;
}

#define SEND memory_of(&call->flight->send)
#define RECV memory_of(&call->flight->recv)

/* Blocking calls too are started here, and waited for in a way that signals interrupt. */
#define ISSUE(name, ...)                                                                       \
	static int issue_##name(struct pycoll_call *call, struct coll_run **run)               \
	{                                                                                      \
		return call->persistent ? coll_##name##_init(__VA_ARGS__, call->group, run) :  \
					  coll_i##name(__VA_ARGS__, call->group, run);         \
	}

static int issue_barrier(struct pycoll_call *call, struct coll_run **run)
{
	return call->persistent ? coll_barrier_init(call->group, run) :
				  coll_ibarrier(call->group, run);
}

ISSUE(bcast, RECV, call->count, call->type, call->root)
ISSUE(gather, SEND, RECV, call->count, call->type, call->root)
ISSUE(gatherv, SEND, call->count, RECV, call->counts, call->displs, call->type, call->root)
ISSUE(scatter, SEND, RECV, call->count, call->type, call->root)
ISSUE(scatterv, SEND, call->counts, call->displs, RECV, call->count, call->type, call->root)
ISSUE(allgather, SEND, RECV, call->count, call->type)
ISSUE(allgatherv, SEND, call->count, RECV, call->counts, call->displs, call->type)
ISSUE(alltoall, SEND, RECV, call->count, call->type)
ISSUE(alltoallv, SEND, call->counts, call->displs, RECV, call->recv_counts, call->recv_displs,
      call->type)
ISSUE(reduce, SEND, RECV, call->count, call->type, call->op, call->root)
ISSUE(allreduce, SEND, RECV, call->count, call->type, call->op)
ISSUE(reduce_scatter, SEND, RECV, call->counts, call->type, call->op)
ISSUE(reduce_scatter_block, SEND, RECV, call->count, call->type, call->op)
ISSUE(scan, SEND, RECV, call->count, call->type, call->op)
ISSUE(exscan, SEND, RECV, call->count, call->type, call->op)

/* ---- methods ------------------------------------------------------------------------------ */

#define COLLECTIVE(name, parse, check)                                                         \
	static const struct pycoll_kind kind_##name = { #name, parse, check, issue_##name };   \
	PYCOLL_FORM(name, name, PYCOLL_BLOCKING)                                                      \
	PYCOLL_FORM(i##name, name, PYCOLL_NONBLOCKING)                                                \
	PYCOLL_FORM(name##_init, name, PYCOLL_PERSISTENT)

COLLECTIVE(barrier, parse_none, check_barrier)
COLLECTIVE(bcast, parse_data, check_bcast)
COLLECTIVE(gather, parse_rooted, check_gather)
COLLECTIVE(gatherv, parse_rooted_counts, check_gatherv)
COLLECTIVE(scatter, parse_rooted, check_scatter)
COLLECTIVE(scatterv, parse_rooted_counts, check_scatterv)
COLLECTIVE(allgather, parse_both, check_allgather)
COLLECTIVE(allgatherv, parse_counts, check_allgatherv)
COLLECTIVE(alltoall, parse_both, check_alltoall)
COLLECTIVE(alltoallv, parse_two_counts, check_alltoallv)
COLLECTIVE(reduce, parse_reduce, check_reduce)
COLLECTIVE(allreduce, parse_reduction, check_allreduce)
COLLECTIVE(reduce_scatter, parse_reduction_counts, check_reduce_scatter)
COLLECTIVE(reduce_scatter_block, parse_reduction, check_reduce_scatter_block)
COLLECTIVE(scan, parse_reduction, check_allreduce)
COLLECTIVE(exscan, parse_reduction, check_exscan)

#define METHODS(name, arguments, text)                                                         \
	PYCOLL_METHOD(name, "($self" arguments ")\n--\n\n" text),                                     \
	PYCOLL_METHOD(i##name, "($self" arguments ")\n--\n\n"                                         \
	       "Starts " #name "(), and returns a Request."),                                  \
	PYCOLL_METHOD(name##_init, "($self" arguments ")\n--\n\n"                                     \
	       "Prepares " #name "(): a persistent Request; start() starts it any number of "  \
	       "times.")

PyMethodDef pycoll_collectives[] = {
	METHODS(barrier, "", "Returns when all ranks have called."),
	METHODS(bcast, ", /, buf, root=0, *, type=None",
		"Copies the root's buf to buf of every rank. Returns buf."),
	METHODS(gather, ", /, sendbuf, recvbuf=None, root=0, *, type=None",
		"The root's recvbuf gets sendbuf of each rank. On the root sendbuf may be IN_PLACE.\n"
		"Returns recvbuf, a new array without one; None elsewhere."),
	METHODS(gatherv, ", /, sendbuf, recvbuf=None, counts=None, displs=None, root=0, *, type=None",
		"gather() of blocks of different lengths; the root has recvbuf and counts. Without\n"
		"displs the blocks follow each other."),
	METHODS(scatter, ", /, sendbuf, recvbuf=None, root=0, *, type=None",
		"Each rank's recvbuf gets its block of the root's sendbuf, which is None elsewhere.\n"
		"On the root recvbuf may be IN_PLACE."),
	METHODS(scatterv, ", /, sendbuf, recvbuf=None, counts=None, displs=None, root=0, *, type=None",
		"scatter() of blocks of different lengths; the root has sendbuf and counts. Without\n"
		"displs the blocks follow each other."),
	METHODS(allgather, ", /, sendbuf, recvbuf=None, *, type=None",
		"Every recvbuf gets sendbuf of each rank; sendbuf may be IN_PLACE. Returns recvbuf, a\n"
		"new array without one, whose first index is the rank."),
	METHODS(allgatherv, ", /, sendbuf, recvbuf, counts, displs=None, *, type=None",
		"allgather() of blocks of different lengths; counts are the same on all ranks."),
	METHODS(alltoall, ", /, sendbuf, recvbuf=None, *, type=None",
		"Block i of rank j becomes block j of rank i; sendbuf may be IN_PLACE. Returns\n"
		"recvbuf, a new array without one."),
	METHODS(alltoallv, ", /, sendbuf, recvbuf, send_counts, recv_counts, send_displs=None, "
		"recv_displs=None, *, type=None",
		"alltoall() of blocks of different lengths. With sendbuf IN_PLACE send_counts may be\n"
		"None."),
	METHODS(reduce, ", /, sendbuf, recvbuf=None, op=0, root=0, *, type=None",
		"The root's recvbuf gets the reduction of all sendbufs by op (default SUM). On the\n"
		"root sendbuf may be IN_PLACE. Returns recvbuf, a new array without one; None\n"
		"elsewhere."),
	METHODS(allreduce, ", /, sendbuf, recvbuf=None, op=0, *, type=None",
		"Every recvbuf gets the reduction of all sendbufs by op (default SUM), with the same\n"
		"bits; sendbuf may be IN_PLACE. Returns recvbuf, a new array without one."),
	METHODS(reduce_scatter, ", /, sendbuf, recvbuf, counts, op=0, *, type=None",
		"Each rank's recvbuf gets its block, of counts[rank] elements, of the reduction."),
	METHODS(reduce_scatter_block, ", /, sendbuf, recvbuf=None, op=0, *, type=None",
		"reduce_scatter() with blocks of equal length. Returns recvbuf, a new array without\n"
		"one."),
	METHODS(scan, ", /, sendbuf, recvbuf=None, op=0, *, type=None",
		"Rank r's recvbuf gets the reduction of ranks 0 to r. Returns recvbuf, a new array\n"
		"without one."),
	METHODS(exscan, ", /, sendbuf, recvbuf=None, op=0, *, type=None",
		"Rank r's recvbuf gets the reduction of ranks 0 to r - 1; rank 0's stays as it is.\n"
		"Returns recvbuf, a new array (of zeros on rank 0) without one."),
	{ NULL, NULL, 0, NULL },
};
