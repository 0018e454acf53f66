// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Arguments: buffers that MPI does not look at, what it refuses, and how much there may be of it. */
#include "mpitest.h"

enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };
enum { GAP = -7 };

static int rank, ranks;

/* ---- buffers of no meaning -------------------------------------------------- */

static void finish(MPI_Request *request, enum form form)
{
	if (form == PERSISTENT)
		must(MPI_Start(request), "MPI_Start");
	must(MPI_Wait(request, MPI_STATUS_IGNORE), "MPI_Wait");
	if (form == PERSISTENT)
		must(MPI_Request_free(request), "MPI_Request_free");
}

static void exscan(enum form form, const void *in, void *out, MPI_Datatype type, MPI_Op op)
{
	const MPI_Comm comm = MPI_COMM_WORLD;
	MPI_Request request = MPI_REQUEST_NULL;

	must(form == BLOCKING ? MPI_Exscan(in, out, 2, type, op, comm) :
	     form == NONBLOCKING ? MPI_Iexscan(in, out, 2, type, op, comm, &request) :
	     INIT(Exscan)(in, out, 2, type, op, comm, MPI_INFO_NULL, &request), "MPI_Exscan");
	if (form != BLOCKING)
		finish(&request, form);
}

static void reduce(enum form form, const void *in, void *out, int root)
{
	const MPI_Comm comm = MPI_COMM_WORLD;
	MPI_Request request = MPI_REQUEST_NULL;

	must(form == BLOCKING ? MPI_Reduce(in, out, 2, MPI_INT, MPI_SUM, root, comm) :
	     form == NONBLOCKING ? MPI_Ireduce(in, out, 2, MPI_INT, MPI_SUM, root, comm, &request) :
	     INIT(Reduce)(in, out, 2, MPI_INT, MPI_SUM, root, comm, MPI_INFO_NULL, &request), "MPI_Reduce");
	if (form != BLOCKING)
		finish(&request, form);
}

static void add_spread(void *in, void *inout, int *count, MPI_Datatype *type)
{
	int i;

	(void)type;
	for (i = 0; i < *count; i++)
		((int *)inout)[2 * i] += ((int *)in)[2 * i];
}

/* Rank 0 gets no result of an exscan. `step`: from an int to the next. */
static void first_of_exscan(enum form form, void *nowhere, MPI_Datatype type, MPI_Op op, int step)
{
	int in[4] = { GAP, GAP, GAP, GAP }, out[4] = { GAP, GAP, GAP, GAP };

	in[0] = rank + 1;
	in[step] = 10 * in[0];
	exscan(form, in, rank ? (void *)out : nowhere, type, op);
	if (rank && (out[0] != rank * (rank + 1) / 2 || out[step] != 10 * out[0]))
		fail("an exscan is wrong: %d and %d", out[0], out[step]);
	if (step > 1 && (out[1] != GAP || out[3] != GAP))
		fail("an exscan has written to gaps");
}

static void others_of_reduce(enum form form, void *nowhere, int root)
{
	int in[2] = { rank, 10 * rank }, out[2] = { 0, 0 };

	reduce(form, in, rank == root ? (void *)out : nowhere, root);
	if (rank == root && (out[0] != ranks * (ranks - 1) / 2 || out[1] != 10 * out[0]))
		fail("a reduction is wrong");
}

static void unused_buffers(void)
{
	static void *const nowhere[] = { NULL, MPI_IN_PLACE };
	MPI_Datatype spread;
	enum form form;
	MPI_Op op;
	int i;

	must(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread), "a type with gaps");
	must(MPI_Type_commit(&spread), "MPI_Type_commit");
	must(MPI_Op_create(add_spread, 1, &op), "MPI_Op_create");
	for (form = BLOCKING; form < FORMS; form++)
		for (i = 0; i < 2; i++) {
			first_of_exscan(form, nowhere[i], MPI_INT, MPI_SUM, 1);
			first_of_exscan(form, nowhere[i], spread, op, 2);
			others_of_reduce(form, nowhere[i], ranks - 1);
		}
	MPI_Op_free(&op);
	MPI_Type_free(&spread);
	must_have_counted(3 * FORMS * 2, 0, "buffers of no meaning");
}

/* ---- MPI_BOTTOM --------------------------------------------------------------- */

/* Addresses in the type, with gaps between: MPICH's MPI_Pack refuses MPI_BOTTOM. */
static void from_bottom(void)
{
	int first = rank ? GAP : 1, rest[4] = { rank ? GAP : 2, GAP, rank ? GAP : 3, GAP }, all[64 * 3], i;
	const int ones[3] = { 1, 1, 1 };
	MPI_Request request;
	MPI_Datatype spread;
	MPI_Aint at[3];

	MPI_Get_address(&rest[2], &at[0]);
	MPI_Get_address(&first, &at[1]);
	MPI_Get_address(&rest[0], &at[2]);
	must(MPI_Type_create_hindexed(3, ones, at, MPI_INT, &spread), "MPI_Type_create_hindexed");
	must(MPI_Type_commit(&spread), "MPI_Type_commit");
	must(MPI_Bcast(MPI_BOTTOM, 1, spread, 0, MPI_COMM_WORLD), "MPI_Bcast");
	if (first != 1 || rest[0] != 2 || rest[1] != GAP || rest[2] != 3 || rest[3] != GAP)
		fail("a broadcast from MPI_BOTTOM is wrong");
	first += rank;
	must(MPI_Allgather(MPI_BOTTOM, 1, spread, all, 3, MPI_INT, MPI_COMM_WORLD), "MPI_Allgather");
	for (i = 0; i < ranks; i++)
		if (all[3 * i] != 3 || all[3 * i + 1] != 1 + i || all[3 * i + 2] != 2)
			fail("an allgather from MPI_BOTTOM is wrong");
	must(MPI_Ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier");
	must(MPI_Sendrecv_replace(MPI_BOTTOM, 1, spread, (rank + 1) % ranks, 1, (rank + ranks - 1) % ranks, 1,
				  MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Sendrecv_replace");
	must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
	if (first != 1 + (rank + ranks - 1) % ranks || rest[0] != 2 || rest[1] != GAP)
		fail("a message from MPI_BOTTOM is wrong");
	MPI_Type_free(&spread);
	must_have_counted(3, 0, "MPI_BOTTOM");
}

/* ---- what the MPI refuses ---------------------------------------------------- */

/* What MPI_Pack refuses, a type with gaps that nobody has committed, is that rank's error, and no other waits. */
static void cannot_be_packed(void)
{
	int data[4] = { 1, 2, 3, 4 }, packed[4], position = 0, code, refused;
	MPI_Datatype spread;
	MPI_Comm comm;

	must(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	must(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread), "a type with gaps");
	refused = MPI_Pack(data, 2, spread, packed, sizeof(packed), &position, comm);
	code = rank ? MPI_Bcast(data, 2, MPI_INT, 0, comm) : MPI_Bcast(data, 2, spread, 0, comm);
	if (!code != !(refused && !rank))
		fail("a broadcast of a type that is not committed: %d, and of MPI_Pack %d", code, refused);
	must(MPI_Barrier(comm), "and then a barrier");
	MPI_Type_free(&spread);
	MPI_Comm_free(&comm);
	must_have_counted(2, 0, "a type that is not committed");
}

static void must_be_refused(int code, const char *what)
{
	int class;

	MPI_Error_class(code, &class);
	if (class != MPI_ERR_REQUEST)
		fail("%s of a collective: error class %d, not %d", what, class, MPI_ERR_REQUEST);
}

/* MPI has no such thing for collectives. They go on. */
static void freed_and_cancelled(void)
{
	int mine = 1, sum = 0, round;
	MPI_Request request;
	MPI_Status status;
	MPI_Comm comm;

	must(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	if (rank)
		MPI_Recv(NULL, 0, MPI_INT, rank - 1, 1, comm, MPI_STATUS_IGNORE);
	must(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &request), "MPI_Iallreduce");
	if (rank < ranks - 1) {		/* under way, since the next rank waits for this message */
		must_be_refused(MPI_Request_free(&request), "MPI_Request_free");
		must_be_refused(MPI_Cancel(&request), "MPI_Cancel");
		MPI_Send(NULL, 0, MPI_INT, rank + 1, 1, comm);
	}
	must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
	must(INIT(Allreduce)(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request), "MPI_Allreduce_init");
	for (round = 0; round < 3; round++) {
		sum = 0;
		must(MPI_Start(&request), "MPI_Start");
		must_be_refused(MPI_Cancel(&request), "MPI_Cancel");
		must(MPI_Wait(&request, &status), "MPI_Wait");
		if (sum != ranks)
			fail("a sum that could not be cancelled is %d", sum);
	}
	MPI_Request_free(&request);
	MPI_Comm_free(&comm);
	must_have_counted(2, 0, "freed and cancelled");
}

/* A persistent collective that is freed under way goes on, and a request that has its handle then is another's. */
static void freed_when_active(void)
{
	static volatile int sum;
	int mine = 1, out = 3, in = 0, flag;
	MPI_Request request, send, receive;

	must(INIT(Allreduce)(&mine, (void *)&sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
	     "MPI_Allreduce_init");
	if (rank)
		MPI_Recv(NULL, 0, MPI_INT, rank - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	must(MPI_Start(&request), "MPI_Start");
	must(MPI_Request_free(&request), "MPI_Request_free");
	must(MPI_Send_init(&out, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &send), "MPI_Send_init");
	must(MPI_Irecv(&in, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &receive), "MPI_Irecv");
	must(MPI_Start(&send), "MPI_Start of a message");
	must(MPI_Wait(&send, MPI_STATUS_IGNORE), "MPI_Wait");
	must(MPI_Wait(&receive, MPI_STATUS_IGNORE), "MPI_Wait");
	must(MPI_Request_free(&send), "MPI_Request_free of a message");
	if (in != 3)
		fail("a message is wrong");
	if (rank < ranks - 1)
		MPI_Send(NULL, 0, MPI_INT, rank + 1, 2, MPI_COMM_WORLD);
	while (sum != ranks)
		MPI_Iprobe(rank, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	must_have_counted(1, 0, "freed when active");
}

/* ---- a rank's block to itself ------------------------------------------------ */

/* An error says so, and neither buffer is read or written behind its end; the others have what they are sent. */
static void own_block(int which, bool spread, MPI_Comm comm)
{
	const bool root = !rank, all = which > 2;
	const int less = root || all ? 1 : 2;
	int in[64], out[256], counts[64], displs[64], code = 0, i;
	MPI_Datatype type = MPI_INT;

	for (i = 0; i < 64; i++)
		in[i] = counts[i] = 2, displs[i] = 2 * i;
	for (i = 0; i < 256; i++)
		out[i] = GAP;
	if (spread) {
		must(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type), "a type with gaps");
		must(MPI_Type_commit(&type), "MPI_Type_commit");
	}
	switch (which) {
	case 0:
		code = MPI_Gather(in, less, type, out, 2, MPI_INT, 0, comm);
		break;
	case 1:
		code = MPI_Scatter(in, 2, MPI_INT, out, less, type, 0, comm);
		break;
	case 2:
		code = MPI_Scatterv(in, counts, displs, MPI_INT, out, less, type, 0, comm);
		break;
	case 3:
		code = MPI_Allgather(in, 1, type, out, 2, MPI_INT, comm);
		break;
	case 4:
		code = MPI_Allgatherv(in, 1, type, out, counts, displs, MPI_INT, comm);
		break;
	case 5:
		code = MPI_Alltoall(in, 1, type, out, 2, MPI_INT, comm);
		break;
	}
	if (!code != !(root || all))
		fail("collective %d with two sizes of a rank's own block: %d", which, code);
	if (code && (which == 1 || which == 2) && out[spread ? 2 : 1] != GAP)
		fail("collective %d has written behind a buffer", which);
	if (spread)
		MPI_Type_free(&type);
}

static void own_blocks(void)
{
	MPI_Comm comm;
	int which;

	must(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (which = 0; which < 6; which++) {
		own_block(which, false, comm);
		own_block(which, true, comm);
	}
	must(MPI_Barrier(comm), "and then a barrier");
	MPI_Comm_free(&comm);
	must_have_counted(13, 0, "blocks of a rank to itself");
}

/* ---- sizes -------------------------------------------------------------------- */

/* libcoll does not have this type: MPI_Reduce_local reduces the 3 Mi elements, in parts. */
static void parts_of_a_reduction(void)
{
	enum { COUNT = 3 << 20 };
	unsigned char *in = malloc(COUNT), *out = malloc(COUNT);
	int i;

	for (i = 0; i < COUNT; i++)
		in[i] = i % 251 + rank % 2;
	must(MPI_Allreduce(in, out, COUNT, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD), "MPI_Allreduce");
	for (i = 0; i < COUNT; i++)
		if (out[i] != ((unsigned char)(i % 251) | (ranks > 1 ? (unsigned char)(i % 251 + 1) : 0)))
			fail("byte %d of a large reduction is wrong", i);
	free(in);
	free(out);
	must_have_counted(1, 0, "parts of a reduction");
}

#if MPI_VERSION >= 4
/* Each rank sees the root's two ints as they lie there, or in the order of a type. */
static void broadcast_pair(MPI_Datatype type, bool swapped, const char *what)
{
	int data[2] = { 1, 2 };

	must(MPI_Type_commit(&type), what);
	must(rank ? MPI_Bcast(data, 2, MPI_INT, 0, MPI_COMM_WORLD) :
		    MPI_Bcast(data, 1, type, 0, MPI_COMM_WORLD), what);
	if (rank && (data[0] != 1 + swapped || data[1] != 2 - swapped))
		fail("%s: %d comes first", what, data[0]);
	MPI_Type_free(&type);
	must_have_counted(1, 0, what);
}

/* MPI does not tell of them what it tells of others; the error handler returns, or ends the job. */
static void types_of_large_counts(MPI_Errhandler handler)
{
	const MPI_Count ones[2] = { 1, 1 }, backwards[2] = { 1, 0 }, bytes[2] = { sizeof(int), 0 };
	const MPI_Datatype ints[2] = { MPI_INT, MPI_INT };
	MPI_Datatype type, inner;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
	must(MPI_Type_contiguous_c(2, MPI_INT, &type), "MPI_Type_contiguous_c");
	broadcast_pair(type, false, "contiguous");
	must(MPI_Type_indexed_c(2, ones, backwards, MPI_INT, &type), "MPI_Type_indexed_c");
	broadcast_pair(type, true, "indexed");
	must(MPI_Type_create_struct_c(2, ones, bytes, ints, &type), "MPI_Type_create_struct_c");
	broadcast_pair(type, true, "struct");
	must(MPI_Type_indexed_c(2, ones, backwards, MPI_INT, &inner), "MPI_Type_indexed_c");
	must(MPI_Type_dup(inner, &type), "MPI_Type_dup");
	broadcast_pair(type, true, "a copy");
	must(MPI_Type_contiguous(1, inner, &type), "MPI_Type_contiguous");
	broadcast_pair(type, true, "one in another");
	MPI_Type_free(&inner);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}
#endif

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	unused_buffers();
	from_bottom();
	cannot_be_packed();
	own_blocks();
	freed_and_cancelled();
	freed_when_active();
	parts_of_a_reduction();
#if MPI_VERSION >= 4
	types_of_large_counts(MPI_ERRORS_RETURN);
	types_of_large_counts(MPI_ERRORS_ARE_FATAL);
#endif
	MPI_Finalize();
	if (!rank)
		printf("arguments are taken rightly\n");
	return 0;
}
