// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Calls that the shim hands to the MPI because it is faster (COLL_MPI_HAND). What a trial measures is
 * scaled, on some ranks only, so that it is known what it has to find.
 *
 *	handed agree	all ranks hand over the same calls; libcoll gets them back when it is faster
 *	handed tasks	nonblocking collectives under way while ranks come to a handed call at any time
 *	handed nodes	the same on several nodes: calls of a node's communicator are handed over, of others not
 *	handed late	a rank with a task under way does not wait for ever for the others
 *	handed dead	... nor for one that has died
 *	handed comms	communicators made and freed in the middle of trials; more of them than slots
 *	handed fork	a child ends during trials
 *	handed floats	exits with the number of float sums that were handed over, at most 100
 *	handed memory CALL N	the Nth allocation in a call fails on rank 1 (needs tests/chaos/fault.so); says
 *			"none" if there are fewer
 *	handed apart	what a rank waits for a late one is no part of either library's time
 *	handed nans	NaNs of sums of two floats are libcoll's, bit by bit, whoever executes them
 *	handed kept	no call may be handed over
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mpitest.h"

static int rank, ranks, node_rank;
static struct dice shared = { 4711 }, own;

/* The times of one rank of the node say that the MPI is far faster, or far slower. */
static void mpi_seems(bool faster)
{
	if (!scale_trials(node_rank ? 1 : faster ? 1e9 : 1e-9) && getenv("EXPECT_SHIM"))
		fail("the shim makes no trials");
	if (!faster)
		scale_trials(1e-9);
}

/* Handed calls since the last time: the same number on all ranks of the communicator. */
static uint64_t handed_alike_in(MPI_Comm comm, const char *where)
{
	uint64_t ours = 0, handed = 0, least, most;

	if (!counted(&ours, &handed) && getenv("EXPECT_SHIM"))
		fail("%s: the shim is not at work", where);
	MPI_Allreduce(&handed, &least, 1, MPI_UINT64_T, MPI_BAND, comm);
	MPI_Allreduce(&handed, &most, 1, MPI_UINT64_T, MPI_BOR, comm);
	if (least != most)
		fail("%s: this rank handed over %llu calls, others another number", where,
		     (unsigned long long)handed);
	counted(&ours, &handed);
	return most;
}

static uint64_t handed_alike(const char *where)
{
	return handed_alike_in(MPI_COMM_WORLD, where);
}

/* Between calls ranks take their time, each its own. */
static void dawdle(void)
{
	if (!roll(&own, 20))
		usleep(roll(&own, 300));
}

/* ---- calls, checked ----------------------------------------------------- */

enum { COUNT_MAX = 40000, RANKS = 16 };
static int in[COUNT_MAX * RANKS], out[COUNT_MAX * RANKS];

static void check(MPI_Comm comm, const char *what, int i, int wanted)
{
	if (out[i] != wanted)
		fail("%s: %d at %d, not %d, %s", what, out[i], i, wanted,
		     comm == MPI_COMM_WORLD ? "world" : "another communicator");
}

static void call_one(MPI_Comm comm, int kind, int count)
{
	int me, all, root, i, counts[RANKS];
	static int calls;
	MPI_Datatype type;

	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &all);
	root = (count + calls++ / 3) % all;
	for (i = 0; i < count * all; i++) {
		in[i] = me + 1;
		out[i] = -1;
	}
	switch (kind) {
	case 0:
		must(MPI_Barrier(comm), "MPI_Barrier");
		break;
	case 1:
		must(MPI_Bcast(me == root ? in : out, count, MPI_INT, root, comm), "MPI_Bcast");
		if (me != root)
			check(comm, "bcast", count - 1, root + 1);
		break;
	case 2:
		must(MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm), "MPI_Allreduce");
		check(comm, "allreduce", count - 1, all * (all + 1) / 2);
		break;
	case 3:
		must(MPI_Reduce(in, out, count, MPI_INT, MPI_MAX, root, comm), "MPI_Reduce");
		if (me == root)
			check(comm, "reduce", 0, all);
		break;
	case 4:
		must(MPI_Allgather(in, count, MPI_INT, out, count, MPI_INT, comm), "MPI_Allgather");
		check(comm, "allgather", count * all - 1, all);
		break;
	case 5:
		must(MPI_Gather(in, count, MPI_INT, out, count, MPI_INT, root, comm), "MPI_Gather");
		if (me == root)
			check(comm, "gather", count * all - 1, all);
		break;
	case 6:
		must(MPI_Scatter(in, count, MPI_INT, out, count, MPI_INT, root, comm), "MPI_Scatter");
		check(comm, "scatter", count - 1, root + 1);
		break;
	case 7:
		must(MPI_Alltoall(in, count, MPI_INT, out, count, MPI_INT, comm), "MPI_Alltoall");
		check(comm, "alltoall", count * all - 1, all);
		break;
	case 8:
		for (i = 0; i < all; i++)
			counts[i] = count;
		must(MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm), "MPI_Reduce_scatter");
		check(comm, "reduce_scatter", count - 1, all * (all + 1) / 2);
		break;
	case 9:
		must(MPI_Scan(in, out, count, MPI_INT, MPI_SUM, comm), "MPI_Scan");
		check(comm, "scan", count - 1, (me + 1) * (me + 2) / 2);
		break;
	case 10:	/* in place, and a handle that is another type each time */
		MPI_Type_contiguous(1 + calls % 2, MPI_INT, &type);
		MPI_Type_commit(&type);
		out[me * (1 + calls % 2)] = out[me * (1 + calls % 2) + calls % 2] = me + 1;
		must(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 1, type, comm),
		     "MPI_Allgather");
		check(comm, "allgather in place", all * (1 + calls % 2) - 1, all);
		out[0] = me == root ? 5 : -1;
		must(MPI_Bcast(out, 1, type, root, comm), "MPI_Bcast");
		check(comm, "bcast of a new type", 0, 5);
		MPI_Type_free(&type);
		break;
	}
}
enum { KINDS = 11 };

static void call_many(MPI_Comm comm, int kind, int count, int calls)
{
	while (calls--)
		call_one(comm, kind, count);
}

/* ---- cases -------------------------------------------------------------- */

static void case_agree(void)
{
	static const int counts[] = { 1, 100, 40000 };
	uint64_t before, handed;
	int kind, i, call;

	mpi_seems(true);
	for (i = 0; i < 3; i++)
		for (kind = 0; kind < KINDS; kind++) {
			for (call = 0; call < (i < 2 ? 100 : 40); call++) {
				dawdle();
				call_one(MPI_COMM_WORLD, kind, counts[i]);
			}
			handed = handed_alike("MPI faster");
			/* A trial has 26 calls of the MPI's, of long ones 11; barriers have one class. */
			if (handed <= 26 && i < 2 && getenv("EXPECT_SHIM"))
				fail("kind %d of %d ints: only %llu calls were handed over", kind,
				     counts[i], (unsigned long long)handed);
			if (handed <= 11 && getenv("EXPECT_SHIM"))
				fail("kind %d of %d ints: only %llu calls were handed over", kind,
				     counts[i], (unsigned long long)handed);
		}
	/* A check finds that libcoll is faster; trials that follow confirm that. */
	mpi_seems(false);
	call_many(MPI_COMM_WORLD, 2, 1, 4000);
	before = handed_alike("libcoll faster");
	if (before > 3000)
		fail("%llu of 4000 calls were handed over to an MPI that is slower",
		     (unsigned long long)before);
	call_many(MPI_COMM_WORLD, 2, 1, 500);
	before = handed_alike("libcoll faster, later");
	if (before > 30)
		fail("%llu of 500 calls were handed over to an MPI that is slower",
		     (unsigned long long)before);
}

/*
 * A broadcast to all ranks is under way. Each rank waits for it before or after the handed barrier, and
 * one may begin it after the barrier if nobody waits before.
 */
static void tasks_around(MPI_Comm barriers)
{
	enum { BYTES = 1 << 20 };
	char *data = malloc(BYTES);
	MPI_Request request;
	MPI_Comm other;
	int turn, before;

	mpi_seems(true);
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	MPI_Barrier(other);
	call_many(barriers, 0, 1, 100);
	for (turn = 0; turn < 300; turn++) {
		const int root = turn % ranks, waits = roll(&shared, 1 << ranks);
		const bool late = !waits && rank == (root + 1) % ranks;

		memset(data, rank == root ? turn : -1, BYTES);
		dawdle();
		before = waits >> rank & 1;
		if (!late)
			MPI_Ibcast(data, BYTES, MPI_CHAR, root, other, &request);
		if (before)
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		dawdle();
		MPI_Barrier(barriers);
		if (late)
			MPI_Ibcast(data, BYTES, MPI_CHAR, root, other, &request);
		if (!before)
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		if (data[0] != (char)turn || data[BYTES - 1] != (char)turn)
			fail("turn %d: a broadcast is wrong", turn);
	}
	if (handed_alike_in(barriers, "tasks") < 300 && getenv("EXPECT_SHIM"))
		fail("the barriers were not handed over");
	MPI_Comm_free(&other);
	free(data);
}

static void case_tasks(void)
{
	tasks_around(MPI_COMM_WORLD);
}

static void case_nodes(void)
{
	uint64_t handed, ours;
	MPI_Comm node, across;
	int kind, of_node;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
	MPI_Comm_size(node, &of_node);
	MPI_Comm_rank(node, &node_rank);
	if (of_node < 2 || of_node == ranks)
		fail("%d of %d ranks are on this node", of_node, ranks);
	tasks_around(node);
	for (kind = 0; kind < KINDS; kind++) {
		call_many(node, kind, 7, 100);
		handed = handed_alike_in(node, "node");
		if (handed <= 26 && getenv("EXPECT_SHIM"))
			fail("kind %d: only %llu calls were handed over", kind, (unsigned long long)handed);
	}
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &across);
	counted(&ours, &handed);
	for (kind = 0; kind < KINDS; kind++) {
		call_many(MPI_COMM_WORLD, kind, 7, 100);
		call_many(across, kind, 7, 100);
	}
	if (handed_alike("across"))
		fail("calls of several nodes were handed over");
	MPI_Comm_free(&across);
	MPI_Comm_free(&node);
}

/* Rank 0 comes to a handed barrier with a task under way, and rank 1 does not. Says what rank 0 is told. */
static void case_absent(bool dies)
{
	MPI_Comm other;
	MPI_Request request;
	char data[8] = "", text[MPI_MAX_ERROR_STRING] = "no error";
	int code, length;
	double began;

	mpi_seems(true);
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
	MPI_Barrier(other);
	call_many(MPI_COMM_WORLD, 0, 1, 100);
	if (handed_alike("before") < 50)
		fail("the barriers were not handed over");
	if (rank == 1 && dies)
		raise(SIGKILL);
	if (rank)
		sleep(20);
	if (!hand_deadline(dies ? 10000000000 : 500000000))
		fail("the shim is not at work");
	MPI_Ibcast(data, sizeof(data), MPI_CHAR, 1, other, &request);
	began = MPI_Wtime();
	code = MPI_Barrier(MPI_COMM_WORLD);
	if (code)
		MPI_Error_string(code, text, &length);
	printf("after %s: %s\n", MPI_Wtime() - began < 5 ? "less than 5 s" : "a long time", text);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 3);
}

static MPI_Comm comm_some(void)
{
	MPI_Comm comm = MPI_COMM_NULL;
	uint32_t how = roll(&shared, 3);

	if (how == 0)
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	else
		MPI_Comm_split(MPI_COMM_WORLD, how == 1 ? rank / 2 : rank % 2, how == 1 ? rank : -rank,
			       &comm);
	return comm;
}

static void case_comms(void)
{
	enum { HELD = 80, TURNS = 60 };
	MPI_Comm comm, held[HELD];
	int turn, calls, kind, i;
	uint64_t ours, handed;

	mpi_seems(true);
	for (turn = 0; turn < TURNS; turn++) {
		comm = comm_some();
		calls = roll(&shared, 150);
		kind = roll(&shared, KINDS);
		for (i = 0; i < calls; i++) {
			call_one(comm, kind, 1);
			if (!roll(&shared, 10))
				call_one(MPI_COMM_WORLD, kind, 1);
			if (i == 40)
				MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
		}
		MPI_Comm_free(&comm);
	}
	counted(&ours, &handed);	/* in parts of the world, each its own */
	for (i = 0; i < HELD; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &held[i]);
	for (calls = 0; calls < 90; calls++)
		for (i = 0; i < HELD; i++)
			call_one(held[(i + calls) % HELD], 2, 1);
	if (handed_alike("held") < 64 * 40 && getenv("EXPECT_SHIM"))
		fail("fewer calls were handed over than the slots allow");
	for (i = 0; i < HELD; i += 2)
		MPI_Comm_free(&held[i]);
	call_many(held[HELD - 1], 0, 1, 90);
	handed_alike("after some were freed");
}

static void case_fork(void)
{
	int call, status = -1;
	pid_t child;

	mpi_seems(true);
	for (call = 0; call < 90; call++) {
		if (call % 30 == 20) {
			child = fork();
			if (!child)
				_exit(7);
			if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)
				fail("a child ended with %d", status);
		}
		call_one(MPI_COMM_WORLD, 2, 10);
	}
	handed_alike("fork");
}

/* Calls 1, 17, 27, 35, 67 and 131 make a class, take a slot, and agree on times. */
static void case_memory(int at, int n)
{
	void (*arm)(int, uint64_t, uint64_t, int) =
		(void (*)(int, uint64_t, uint64_t, int))dlsym(RTLD_DEFAULT, "fault_arm");
	uint64_t (*disarm)(void) = (uint64_t(*)(void))dlsym(RTLD_DEFAULT, "fault_disarm");
	int call;

	if (!arm || !disarm)
		fail("fault.so is not preloaded");
	mpi_seems(true);
	for (call = 1; call <= 140; call++) {
		if (rank == 1 && call == at)
			arm(0, n, 0, 0);
		call_one(MPI_COMM_WORLD, 2, 1);
		if (rank == 1 && call == at && !disarm()) {
			printf("none\n");
			fflush(stdout);
		}
	}
	if (handed_alike("memory") < 26)
		fail("fewer calls than a trial has were handed over");
}

static int case_floats(void)
{
	double mine = 0.1 * (rank + 1), sum;
	uint64_t handed;
	int call;

	mpi_seems(true);
	for (call = 0; call < 100; call++)
		MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	handed = handed_alike("floats");
	return handed < 100 ? handed : 100;
}

/*
 * Rank 1 comes 20 ms late to each call: far longer than libcoll seems to take, which is fifty times what it
 * does. Other programs may have its core: in some communicator it is seen that the MPI is faster.
 */
static void case_apart(void)
{
	enum { TRIES = 5, UNTIL_TRIED = 16 + 50, MORE = 4 };
	uint64_t handed = 0;
	int try, call;
	MPI_Comm comm;

	scale_trials(rank == 1 ? 50 : 1);
	for (try = 0; try < TRIES && handed <= 26; try++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		handed_alike_in(comm, "before");
		for (call = 0; call < UNTIL_TRIED + MORE; call++) {
			if (rank == 1)
				usleep(20000);
			MPI_Barrier(comm);
		}
		handed = handed_alike_in(comm, "apart");
		MPI_Comm_free(&comm);
	}
	if (handed <= 26 && getenv("EXPECT_SHIM"))
		fail("no call was handed over to an MPI that is faster");
}

enum { NANS = 1001 };

static void nan_call(int kind, const double *in, double *out, int root)
{
	int counts[2] = { NANS - 3, 3 };

	switch (kind) {
	case 0:
		must(MPI_Allreduce(in, out, NANS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
		break;
	case 1:
		must(MPI_Reduce(in, out, NANS, MPI_DOUBLE, MPI_PROD, root, MPI_COMM_WORLD), "MPI_Reduce");
		break;
	case 2:
		must(MPI_Reduce_scatter(in, out, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
		     "MPI_Reduce_scatter");
		break;
	case 3:
		must(MPI_Reduce_scatter_block(in, out, NANS / 2, MPI_DOUBLE, MPI_PROD, MPI_COMM_WORLD),
		     "MPI_Reduce_scatter_block");
		break;
	case 4:
		must(MPI_Scan(in, out, NANS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), "MPI_Scan");
		break;
	case 5:
		must(MPI_Exscan(in, out, NANS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), "MPI_Exscan");
		break;
	case 6:		/* in place */
		memcpy(out, in, NANS * sizeof(*out));
		must(MPI_Allreduce(MPI_IN_PLACE, out, NANS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
		     "MPI_Allreduce in place");
		break;
	}
}

/* The first call is libcoll's; of the others the MPI's trials, the short way, and libcoll's. */
static void case_nans(void)
{
	enum { NAN_KINDS = 7 };
	static double in[NANS], out[NANS], first[NANS];
	uint64_t bits, handed;
	int i, kind, call;

	if (ranks != 2)
		fail("nans is a case of 2 ranks");
	mpi_seems(true);
	for (i = 0; i < NANS; i++) {
		in[i] = i;
		bits = 0x7ff8000000000000 + ((uint64_t)rank << 63) + rank * 1000 + i;
		if (i % 3)
			memcpy(&in[i], &bits, sizeof(bits));
	}
	for (kind = 0; kind < NAN_KINDS; kind++) {
		for (call = 0; call < 150; call++) {
			memset(out, 0, sizeof(out));
			nan_call(kind, in, out, 1);
			if (!call)
				memcpy(first, out, sizeof(first));
			for (i = 0; i < NANS; i++)
				if (memcmp(&out[i], &first[i], sizeof(*out)))
					fail("kind %d: sum %d of call %d has other bits", kind, i, call);
		}
		handed = handed_alike("nans");
		if (handed <= 26 && getenv("EXPECT_SHIM"))
			fail("kind %d: only %llu calls were handed over", kind, (unsigned long long)handed);
	}
}

static void case_kept(void)
{
	uint64_t handed;
	int kind;

	scale_trials(1e9);
	for (kind = 0; kind < KINDS; kind++)
		call_many(MPI_COMM_WORLD, kind, 10, 100);
	handed = handed_alike("kept");
	if (handed)
		fail("%llu calls were handed over", (unsigned long long)handed);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	int code = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	own.state = rank * 977 + 13;
	if (!strcmp(name, "agree"))
		case_agree();
	else if (!strcmp(name, "tasks"))
		case_tasks();
	else if (!strcmp(name, "nodes"))
		case_nodes();
	else if (!strcmp(name, "late") || !strcmp(name, "dead"))
		case_absent(!strcmp(name, "dead"));
	else if (!strcmp(name, "comms"))
		case_comms();
	else if (!strcmp(name, "fork"))
		case_fork();
	else if (!strcmp(name, "memory") && argc > 3)
		case_memory(atoi(argv[2]), atoi(argv[3]));
	else if (!strcmp(name, "floats"))
		code = case_floats();
	else if (!strcmp(name, "apart"))
		case_apart();
	else if (!strcmp(name, "nans"))
		case_nans();
	else if (!strcmp(name, "kept"))
		case_kept();
	else
		fail("no case \"%s\"", name);
	MPI_Finalize();
	return code;
}
