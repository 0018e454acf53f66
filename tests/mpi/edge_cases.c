// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Edge cases: progress while MPI waits and the reverse, handles freed early, inter-
 * communicators, errors, requests in all states, large counts, sessions.
 */
#include <unistd.h>

#include "test_case.h"

static int rank, ranks;
static uint64_t ours, handed;

static void counted_so_far(const char *where)
{
	must_have_counted(ours, handed, where);
	ours = handed = 0;
}

/* ---- progress --------------------------------------------------------------- */

enum { SENDS = 6, WAYS = MPI_VERSION >= 4 ? 7 : 4 };

/* Ways to block until a message comes from the last rank; SENDS: until it takes one. */
static void block_by(int *token, int way)
{
	const int last = ranks - 1;
	MPI_Message message;
	MPI_Status status;
	int flag = 0;

	switch (way) {
	case 0:
		MPI_Recv(token, 1, MPI_INT, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		break;
	case 1:
		MPI_Probe(last, 1, MPI_COMM_WORLD, &status);
		MPI_Recv(token, 1, MPI_INT, last, 1, MPI_COMM_WORLD, &status);
		break;
	case 2:
		MPI_Mprobe(last, 1, MPI_COMM_WORLD, &message, &status);
		MPI_Mrecv(token, 1, MPI_INT, &message, &status);
		break;
	case 3:
		while (!flag)
			MPI_Iprobe(last, 1, MPI_COMM_WORLD, &flag, &status);
		MPI_Recv(token, 1, MPI_INT, last, 1, MPI_COMM_WORLD, &status);
		break;
#if MPI_VERSION >= 4
	case 4:
		MPI_Recv_c(token, 1, MPI_INT, last, 1, MPI_COMM_WORLD, &status);
		break;
	case 5:
		MPI_Sendrecv_c(token, 1, MPI_INT, MPI_PROC_NULL, 1, token, 1, MPI_INT, last, 1, MPI_COMM_WORLD,
			       &status);
		break;
	case SENDS:
		MPI_Ssend_c(token, 1, MPI_INT, last, 1, MPI_COMM_WORLD);
		break;
#endif
	}
}

/*
 * Rank 1 may be in the middle of the broadcast's tree, but blocks in MPI until the
 * last rank, which waits for the broadcast first, has sent it a message.
 */
static void blocked_in_mpi(void)
{
	static char data[3000000];
	const int last = ranks - 1;
	MPI_Request request;
	int token = 0, i;

	for (i = 0; i < WAYS; i++) {
		memset(data, rank ? 0 : 5 + i, sizeof(data));
		must(MPI_Ibcast(data, sizeof(data), MPI_CHAR, 0, MPI_COMM_WORLD, &request),
		     "MPI_Ibcast");
		if (rank == last) {
			must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
			for (token = 0; token < last; token++)
				if (i == SENDS)
					MPI_Recv(&token, 1, MPI_INT, token, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
				else
					MPI_Send(&token, 1, MPI_INT, token, 1, MPI_COMM_WORLD);
		} else {
			block_by(&token, i);
		}
		if (rank != last && token != rank)
			fail("a message is wrong");
		must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
		if (data[sizeof(data) - 1] != 5 + i)
			fail("a broadcast is wrong");
		ours++;
	}
	counted_so_far("blocked in MPI");
}

/* A large message of MPI's needs its sender, which is in a barrier of coll. */
static void blocked_in_ours(void)
{
	static char data[2000000];
	MPI_Request request;

	if (ranks < 2)
		return;
	if (rank == 0)
		MPI_Isend(data, sizeof(data), MPI_CHAR, 1, 2, MPI_COMM_WORLD, &request);
	else if (rank == 1)
		MPI_Recv(data, sizeof(data), MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	ours++;
	counted_so_far("blocked in a barrier");
}

/* The root has left the first broadcast on a communicator when the others come. */
static void root_goes_on(void)
{
	MPI_Comm comm;
	int value = 42;

	if (ranks < 2)
		return;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	if (rank == 1)
		usleep(50000);
	must(MPI_Bcast(&value, 1, MPI_INT, 0, comm), "MPI_Bcast");
	if (rank == 0)
		MPI_Recv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else if (rank == 1)
		MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
	if (value != 42)
		fail("a broadcast is wrong");
	MPI_Comm_free(&comm);
	ours++;
	counted_so_far("root goes on");
}

static void collectives_while_ours_wait(void)
{
	MPI_Comm comm;
	MPI_Request request;
	int mine = 1, sum = 0;

	/* The last rank needs the sum before it comes to the split. */
	must(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request),
	     "MPI_Iallreduce");
	if (rank == ranks - 1)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
	if (rank != ranks - 1)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (sum != ranks)
		fail("a sum is wrong");
	MPI_Comm_free(&comm);
	ours++;
	counted_so_far("a split among them");
}

/* ---- handles ------------------------------------------------------------------ */

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
	int i;

	(void)type;
	for (i = 0; i < 2 * *count; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

static void freed_too_soon(void)
{
	int mine[200], sum[200], data[200], i;
	MPI_Datatype pair, gaps;
	MPI_Request requests[2];
	MPI_Status statuses[2];
	MPI_Comm comm;
	MPI_Op op;

	for (i = 0; i < 200; i++)
		mine[i] = data[i] = rank + i;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	MPI_Type_vector(50, 1, 2, MPI_INT, &gaps);
	MPI_Type_commit(&gaps);
	MPI_Op_create(add, 1, &op);
	must(MPI_Iallreduce(mine, sum, 100, pair, op, comm, &requests[0]), "MPI_Iallreduce");
	must(MPI_Ibcast(data, 1, gaps, 0, comm, &requests[1]), "MPI_Ibcast");
	MPI_Op_free(&op);
	MPI_Type_free(&pair);
	MPI_Type_free(&gaps);
	MPI_Comm_free(&comm);
	if (op != MPI_OP_NULL || pair != MPI_DATATYPE_NULL || comm != MPI_COMM_NULL)
		fail("a freed handle is not null");
	must(MPI_Waitall(2, requests, statuses), "MPI_Waitall");
	for (i = 0; i < 200; i++)
		if (sum[i] != ranks * i + ranks * (ranks - 1) / 2)
			fail("a sum is wrong");
	if (data[98] != 98 || data[1] != rank + 1)
		fail("a broadcast is wrong");
	ours += 2;
	counted_so_far("freed too soon");
}

static void unmet(void)
{
	MPI_Request request;
	MPI_Comm comm;

	must(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request), "MPI_Comm_idup");
	must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
	must(MPI_Ibarrier(comm, &request), "MPI_Ibarrier");
	must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
	handed++;
	must(MPI_Barrier(comm), "MPI_Barrier");
	must(MPI_Ibarrier(comm, &request), "MPI_Ibarrier");
	must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
	ours += 2;
	MPI_Comm_free(&comm);
	counted_so_far("a communicator that nobody met");
}

static void request_states(void)
{
	MPI_Request request, inactive;
	int flag = 0, mine = 3, sum = 0;
	MPI_Status status;

	must(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request),
	     "MPI_Iallreduce");
	while (!flag)
		must(MPI_Request_get_status(request, &flag, &status), "MPI_Request_get_status");
	must(MPI_Test(&request, &flag, &status), "MPI_Test");
	if (!flag || request != MPI_REQUEST_NULL || sum != 3 * ranks)
		fail("a request is not done");
	must(INIT(Allreduce)(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
			     &inactive), "MPI_Allreduce_init");
	must(MPI_Wait(&inactive, &status), "MPI_Wait");	/* inactive: at once */
	sum = 0;
	must(MPI_Startall(1, &inactive), "MPI_Startall");
	must(MPI_Waitall(1, &inactive, &status), "MPI_Waitall");
	if (sum != 3 * ranks || inactive == MPI_REQUEST_NULL)
		fail("a persistent request is not done");
	must(MPI_Request_free(&inactive), "MPI_Request_free");
	ours += 2;
	counted_so_far("states of requests");
}

/* Persistent collectives may be started in another order on each rank. */
static void any_order(void)
{
	MPI_Request requests[2];
	MPI_Status statuses[2];
	int in[2] = { 1, 10 }, out[2], round, i;

	for (i = 0; i < 2; i++)
		must(INIT(Allreduce)(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
				     MPI_INFO_NULL, &requests[i]), "MPI_Allreduce_init");
	for (round = 0; round < 10; round++) {
		out[0] = out[1] = 0;
		must(MPI_Start(&requests[rank % 2]), "MPI_Start");
		must(MPI_Start(&requests[1 - rank % 2]), "MPI_Start");
		must(MPI_Waitall(2, requests, statuses), "MPI_Waitall");
		if (out[0] != ranks || out[1] != 10 * ranks)
			fail("a persistent sum is wrong");
	}
	MPI_Request_free(&requests[0]);
	MPI_Request_free(&requests[1]);
	ours += 2;
	counted_so_far("any order");
}

/*
 * After 32768 others a persistent collective is not mistaken for one that is under way since before them. It waits
 * for rank 1, which waits for a message.
 */
static void many_persistent(void)
{
	enum { OTHERS = 32768 };
	MPI_Request old, new;
	int old_done = 0, new_done = 0, i;

	if (ranks < 2)
		return;
	must(INIT(Barrier)(MPI_COMM_WORLD, MPI_INFO_NULL, &old), "MPI_Barrier_init");
	if (rank == 1)
		MPI_Recv(NULL, 0, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	must(MPI_Start(&old), "MPI_Start");
	for (i = 1; !rank && i <= OTHERS; i++) {
		must(INIT(Barrier)(MPI_COMM_SELF, MPI_INFO_NULL, &new), "MPI_Barrier_init");
		ours++;
		if (i < OTHERS)
			must(MPI_Request_free(&new), "MPI_Request_free");
	}
	if (!rank) {
		must(MPI_Start(&new), "MPI_Start");
		while (!old_done && !new_done) {
			must(MPI_Test(&new, &new_done, MPI_STATUS_IGNORE), "MPI_Test");
			must(MPI_Test(&old, &old_done, MPI_STATUS_IGNORE), "MPI_Test");
		}
		if (old_done)
			fail("a persistent collective is done before rank 1 has begun");
		must(MPI_Request_free(&new), "MPI_Request_free");
		MPI_Send(NULL, 0, MPI_INT, 1, 4, MPI_COMM_WORLD);
	}
	must(MPI_Wait(&old, MPI_STATUS_IGNORE), "MPI_Wait");
	must(MPI_Request_free(&old), "MPI_Request_free");
	ours++;
	counted_so_far("many persistent collectives");
}

/* ---- what is not ours ----------------------------------------------------------- */

static void inter(void)
{
	MPI_Comm half, between, all;
	int low = rank < ranks / 2, value = low ? 1 : 2, sum = 0;

	if (ranks < 2)
		return;
	MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? ranks / 2 : 0, 8, &between);
	must(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, between), "MPI_Allreduce");
	if (sum != (low ? 2 * (ranks - ranks / 2) : ranks / 2))
		fail("a sum over an inter-communicator is wrong: %d", sum);
	must(MPI_Barrier(between), "MPI_Barrier");
	handed += 2;
	MPI_Intercomm_merge(between, low, &all);
	must(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, all), "MPI_Allreduce");
	if (sum != 2 * ranks - ranks / 2)
		fail("a sum over a merged communicator is wrong");
	ours++;
	MPI_Comm_free(&all);
	MPI_Comm_free(&between);
	MPI_Comm_free(&half);
	counted_so_far("inter-communicators");
}

/* Elements that reach into each other, as a user function sees them: the MPI's. */
static void add_two(void *in, void *inout, int *count, MPI_Datatype *type)
{
	int i;

	(void)type;
	for (i = 0; i < *count; i++)
		((int *)inout)[i * 2] += ((int *)in)[i * 2];
}

static void overlapping(void)
{
	MPI_Datatype apart, near;
	int in[8] = { 1, 0, 2, 0, 3, 0, 4, 0 }, out[8] = { 0 };
	MPI_Op op;

	MPI_Type_vector(2, 1, 6, MPI_INT, &apart);
	MPI_Type_create_resized(apart, 0, 8, &near);
	MPI_Type_commit(&near);
	MPI_Op_create(add_two, 1, &op);
	must(MPI_Allreduce(in, out, 1, near, op, MPI_COMM_WORLD), "MPI_Allreduce");
	if (out[0] != ranks)
		fail("a sum of elements with gaps is wrong");
	handed++;
	MPI_Op_free(&op);
	MPI_Type_free(&near);
	MPI_Type_free(&apart);
	counted_so_far("overlapping elements");
}

/* ---- errors ----------------------------------------------------------------------- */

static void must_be(int code, int class, const char *what)
{
	int got;

	MPI_Error_class(code, &got);
	if (got != class)
		fail("%s: error class %d, not %d", what, got, class);
}

static void errors(void)
{
	int value = 0, sum;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	must_be(MPI_Bcast(&value, 1, MPI_INT, ranks, comm), MPI_ERR_ROOT, "root too high");
	must_be(MPI_Bcast(&value, 1, MPI_INT, -1, comm), MPI_ERR_ROOT, "root negative");
	must_be(MPI_Bcast(&value, -1, MPI_INT, 0, comm), MPI_ERR_COUNT, "count negative");
	must_be(MPI_Bcast(&value, 1, MPI_DATATYPE_NULL, 0, comm), MPI_ERR_TYPE, "no type");
	must_be(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_OP_NULL, comm), MPI_ERR_OP, "no op");
	must_be(MPI_Allreduce(&value, &sum, 1, MPI_FLOAT, MPI_BAND, comm), MPI_ERR_OP,
		"no such op for the type");
	must_be(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM, "no communicator");
	must(MPI_Barrier(comm), "and then a barrier");
	handed += 7;
	ours++;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_free(&comm);
	counted_so_far("errors");
}

/* ---- sizes ------------------------------------------------------------------------- */

static void large(void)
{
	const int n = 1 << 20;
	double *in = malloc(n * sizeof(*in)), *out = malloc(n * sizeof(*out));
	int i;

	for (i = 0; i < n; i++)
		in[i] = rank + i % 1000;
	must(MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
	for (i = 0; i < n; i++)
		if (out[i] != ranks * (i % 1000) + ranks * (ranks - 1) / 2)
			fail("a large sum is wrong at %d", i);
	must(MPI_Allreduce(NULL, NULL, 0, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), "of nothing");
	must(MPI_Bcast(NULL, 0, MPI_DOUBLE, 0, MPI_COMM_WORLD), "of nothing");
	ours += 3;
	free(in);
	free(out);
	counted_so_far("sizes");
}

#if MPI_VERSION >= 4
static void large_counts(void)
{
	int in[64], out[64], i;
	MPI_Count counts[64];
	MPI_Aint displs[64];
	MPI_Request request;

	for (i = 0; i < ranks; i++) {
		counts[i] = 1;
		displs[i] = ranks - 1 - i;
		in[i] = rank;
	}
	must(MPI_Allgatherv_c(in, 1, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD),
	     "MPI_Allgatherv_c");
	for (i = 0; i < ranks; i++)
		if (out[ranks - 1 - i] != i)
			fail("an allgatherv of large counts is wrong");
	must(MPI_Iallreduce_c(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request),
	     "MPI_Iallreduce_c");
	must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
	if (out[0] != ranks * (ranks - 1) / 2)
		fail("a sum of large counts is wrong");
	ours += 2;
	counted_so_far("large counts");
}
#endif

#if HAVE_SESSIONS
/* A communicator of a session: its ranks need not know of us. */
static void sessions(void)
{
	MPI_Session session;
	MPI_Group group;
	MPI_Comm comm, copy;

	must(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session), "MPI_Session_init");
	must(MPI_Group_from_session_pset(session, "mpi://WORLD", &group), "a group");
	must(MPI_Comm_create_from_group(group, "odd", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm),
	     "MPI_Comm_create_from_group");
	must(MPI_Barrier(comm), "MPI_Barrier");
	MPI_Comm_dup(comm, &copy);
	must(MPI_Barrier(copy), "MPI_Barrier");
	handed += 2;
	MPI_Comm_free(&copy);
	MPI_Comm_free(&comm);
	must(PMPI_Comm_create_from_group(group, "odd again", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm),
	     "PMPI_Comm_create_from_group");
	must(MPI_Barrier(comm), "MPI_Barrier");
	handed++;
	MPI_Comm_free(&comm);
	MPI_Group_free(&group);
	MPI_Session_finalize(&session);
	counted_so_far("sessions");
}
#endif

/* ---- memory of MPI_Alloc_mem -------------------------------------------------- */

enum { ALLOCATED = 1 << 18 };
static int kept_freed;

/* What a program has not freed serves until it does, also in MPI_Finalize. */
static int free_kept(MPI_Comm comm, int keyval, void *kept, void *unused)
{
	const int *memory = kept;

	(void)comm;
	(void)keyval;
	(void)unused;
	if (memory[ALLOCATED - 1] != 17)
		fail("memory of MPI_Alloc_mem is lost in MPI_Finalize");
	kept_freed = 1;
	return MPI_Free_mem(kept);
}

/* Any number, of any size, with an info or without; in place, in windows, and freed in any order. */
static void allocated_memory(void)
{
	static const MPI_Aint sizes[] = { 0, 1, 1000, 16384, 100000, ALLOCATED * sizeof(int), 5000000 };
	int *memory[7], *more, keyval, i, j;
	MPI_Info info;
	MPI_Win window;

	for (i = 0; i < 7; i++) {
		must(MPI_Alloc_mem(sizes[i], MPI_INFO_NULL, &memory[i]), "MPI_Alloc_mem");
		if (sizes[i])
			memset(memory[i], i, sizes[i]);
	}
	for (i = 1; i < 7; i++)
		for (j = 0; j < sizes[i]; j++)
			if (((char *)memory[i])[j] != i)
				fail("blocks of MPI_Alloc_mem overlap");
	for (j = 0; j < 3; j++) {
		for (i = 0; i < ALLOCATED; i++)
			memory[5][i] = rank + i;
		must(MPI_Allreduce(MPI_IN_PLACE, memory[5], ALLOCATED, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
		     "MPI_Allreduce");
		for (i = 0; i < ALLOCATED; i++)
			if (memory[5][i] != ranks * (ranks - 1) / 2 + ranks * i)
				fail("an allreduce in memory of MPI_Alloc_mem is wrong");
		ours++;
	}
	counted_so_far("memory of MPI_Alloc_mem");
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096");
	must(MPI_Alloc_mem(100000, info, &more), "MPI_Alloc_mem with an info");
	MPI_Info_free(&info);
	memset(more, 1, 100000);
	if (ranks > 1) {	/* Open MPI 4 has no window of one rank */
		must(MPI_Win_create(memory[4], sizes[4], 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window),
		     "MPI_Win_create");
		MPI_Win_free(&window);
	}
	must(MPI_Free_mem(more), "MPI_Free_mem");
	for (i = 6; i; i--)
		if (i != 5)
			must(MPI_Free_mem(memory[i]), "MPI_Free_mem");
	memory[5][ALLOCATED - 1] = 17;
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_kept, &keyval, NULL);
	MPI_Comm_set_attr(MPI_COMM_SELF, keyval, memory[5]);
}

int main(int argc, char **argv)
{
	int provided, done;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	blocked_in_mpi();
	blocked_in_ours();
	root_goes_on();
	collectives_while_ours_wait();
	freed_too_soon();
	unmet();
	request_states();
	any_order();
	many_persistent();
	inter();
	overlapping();
	errors();
	large();
#if MPI_VERSION >= 4
	large_counts();
#endif
#if HAVE_SESSIONS
	sessions();
#endif
	allocated_memory();
	MPI_Finalize();
	if (!kept_freed)
		fail("MPI_Finalize has not called back");
	MPI_Finalized(&done);
	if (!rank && done)
		printf("odd cases are right\n");
	return 0;
}
