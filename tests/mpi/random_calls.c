// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * random_calls SEED CALLS: a random sequence of collectives in all forms on random
 * communicators that are created and freed, with point-to-point messages of MPI among them.
 * All completion calls (wait and test in every form) are used in random order.
 */
#include "test_case.h"

enum { COMMS = 6, OPEN = 6 };

struct open {
	bool used, message;
	bool resting;			/* a persistent one between its rounds */
	struct test_case test_case;
	int rounds;			/* of it still to come; the same on all ranks */
	long sent, got;
	MPI_Request send;
};

static MPI_Comm comms[COMMS];
static struct open open[OPEN];
static struct dice shared, own;		/* the same on all ranks, and not */
static uint64_t calls;
static int rank, ranks;

/* ---- communicators ---------------------------------------------------------- */

static MPI_Comm comm_of_some(void)
{
	MPI_Group world, some;
	int members[RANKS_MAX], count = 0, i;
	bool in = false;
	MPI_Comm comm = MPI_COMM_NULL;

	for (i = ranks - 1; i >= 0; i--)
		if (roll(&shared, 3)) {
			members[count++] = i;
			in |= i == rank;
		}
	if (!count || !in)
		return comm;
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, count, members, &some);
	must(MPI_Comm_create_group(MPI_COMM_WORLD, some, 5, &comm), "MPI_Comm_create_group");
	MPI_Group_free(&some);
	MPI_Group_free(&world);
	return comm;
}

static MPI_Comm comm_new(void)
{
	MPI_Comm comm = MPI_COMM_NULL, cart;
	int periods[2] = { 0, 0 }, dims[2] = { 0, 0 }, keep[2] = { 1, 0 };
	MPI_Request request;

	switch (roll(&shared, 6)) {
	case 0:
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		break;
	case 1:
		MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comm);
		break;
	case 2:
		MPI_Comm_split(MPI_COMM_WORLD, rank % 3 ? 0 : MPI_UNDEFINED, rank, &comm);
		break;
	case 3:
		MPI_Dims_create(ranks, 2, dims);
		MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &cart);
		MPI_Cart_sub(cart, keep, &comm);
		MPI_Comm_free(&cart);
		break;
	case 4:
		return comm_of_some();
	case 5:		/* met in its first blocking collective */
		must(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request), "MPI_Comm_idup");
		must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
		MPI_Barrier(comm);
		calls++;
		break;
	}
	return comm;
}

/* ---- calls -------------------------------------------------------------------- */

static void begin(struct open *one)
{
	struct test_case *test_case = &one->test_case;
	int number = roll(&shared, COMMS);

	*test_case = (struct test_case){
		.comm = comms[number],
		.what = roll(&shared, WHATS),
		.form = roll(&shared, FORMS),
		.root = roll(&shared, 64),
		.count = roll(&shared, 8) ? roll(&shared, 40) : roll(&shared, 9000),
		.in_place = roll(&shared, 2),
		.seed = roll(&shared, 1000000),
	};
	reduction_choose(test_case, roll(&shared, reductions()));
	one->rounds = test_case->form == PERSISTENT ? roll(&shared, 3) : 0;
	if (test_case->comm == MPI_COMM_NULL)
		return;
	test_case->in_layout = roll(&own, LAYOUTS);
	test_case->out_layout = roll(&own, LAYOUTS);
	if (test_case->what == BCAST || test_case->what == BARRIER)
		test_case->in_place = false;
	if (test_case->what == ALLTOALLV || test_case->what == ALLTOALLW)
		test_case->in_layout = test_case->out_layout;
	test_case_begin(test_case);
	calls++;
	if (test_case->form == BLOCKING) {
		test_case_check(test_case);
		test_case_free(test_case);
		return;
	}
	one->used = true;
	one->message = false;
}

/* To the next rank and from the one before, around all of them. */
static void begin_message(struct open *one)
{
	one->used = one->message = true;
	one->sent = rank * 1000 + 17;
	must(MPI_Irecv(&one->got, 1, MPI_LONG, (rank + ranks - 1) % ranks, 9, MPI_COMM_WORLD,
		       &one->test_case.request), "MPI_Irecv");
	must(MPI_Isend(&one->sent, 1, MPI_LONG, (rank + 1) % ranks, 9, MPI_COMM_WORLD, &one->send),
	     "MPI_Isend");
}

/* Its request is done. */
static void end(struct open *one)
{
	one->used = false;
	if (one->message) {
		must(MPI_Wait(&one->send, MPI_STATUS_IGNORE), "MPI_Wait");
		if (one->got != (rank + ranks - 1) % ranks * 1000 + 17)
			fail("a message is wrong: %ld", one->got);
		return;
	}
	test_case_check(&one->test_case);
	one->resting = one->rounds > 0;
	if (!one->resting)
		test_case_free(&one->test_case);
}

/* Another round, on the ranks that are in it; false: it has had all. */
static bool again(struct open *one)
{
	if (!one->rounds)
		return false;
	one->rounds--;
	if (one->resting) {
		one->resting = false;
		one->used = true;
		test_case_again(&one->test_case);
	}
	return true;
}

/* ---- waits ---------------------------------------------------------------------- */

static int collect(MPI_Request *requests)
{
	int i, count = 0;

	for (i = 0; i < OPEN; i++) {
		requests[i] = open[i].used ? open[i].test_case.request : MPI_REQUEST_NULL;
		count += open[i].used;
	}
	return count;
}

static void put_back(const MPI_Request *requests)
{
	int i;

	for (i = 0; i < OPEN; i++)
		if (open[i].used)
			open[i].test_case.request = requests[i];
}

/* Some of what is under way; how is each rank's own choice. */
static void wait_for_some(MPI_Request *requests, int *done, int *indices)
{
	MPI_Status statuses[OPEN];
	int flag = 0, i;

	switch (roll(&own, 7)) {
	case 0:
		must(MPI_Waitall(OPEN, requests, statuses), "MPI_Waitall");
		break;
	case 1:
		must(MPI_Waitany(OPEN, requests, indices, MPI_STATUS_IGNORE), "MPI_Waitany");
		*done = 1;
		return;
	case 2:
		must(MPI_Waitsome(OPEN, requests, done, indices, statuses),
		     "MPI_Waitsome");
		return;
	case 3:
		while (!flag)
			must(MPI_Testall(OPEN, requests, &flag, statuses),
			     "MPI_Testall");
		break;
	case 4:
		while (!flag)
			must(MPI_Testany(OPEN, requests, indices, &flag, MPI_STATUS_IGNORE),
			     "MPI_Testany");
		*done = 1;
		return;
	case 5:
		for (*done = 0; !*done;)
			must(MPI_Testsome(OPEN, requests, done, indices, statuses),
			     "MPI_Testsome");
		return;
	case 6:
		for (i = 0; i < OPEN; i++)
			for (flag = 0; !flag;)
				must(MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE), "MPI_Test");
		break;
	}
	for (*done = 0; *done < OPEN; ++*done)
		indices[*done] = *done;
}

static void end_some(void)
{
	MPI_Request requests[OPEN];
	int indices[OPEN], done = 0, i;

	if (!collect(requests))
		return;
	wait_for_some(requests, &done, indices);
	put_back(requests);
	for (i = 0; i < done; i++)
		if (open[indices[i]].used)
			end(&open[indices[i]]);
}

static bool any_open(void)
{
	MPI_Request requests[OPEN];

	return collect(requests);
}

/* ---- all -------------------------------------------------------------------------- */

static void replace_comm(int number)
{
	if (comms[number] != MPI_COMM_NULL && comms[number] != MPI_COMM_WORLD)
		must(MPI_Comm_free(&comms[number]), "MPI_Comm_free");
	comms[number] = comm_new();
}

int main(int argc, char **argv)
{
	int seed = argc > 1 ? atoi(argv[1]) : 1, total = argc > 2 ? atoi(argv[2]) : 300, step, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	shared.state = seed;
	own.state = seed * 1000 + rank;
	test_cases_start();
	comms[0] = MPI_COMM_WORLD;
	for (i = 1; i < COMMS; i++)
		comms[i] = comm_new();
	for (step = 0; step < total; step++) {
		int slot = roll(&shared, OPEN), odd = roll(&shared, 40);

		/* The slots in use differ between ranks; what is called must not. */
		while (open[slot].used)
			end_some();
		if (again(&open[slot]))
			continue;
		if (odd == 0)
			replace_comm(1 + roll(&shared, COMMS - 1));
		else if (odd < 8)
			begin_message(&open[slot]);
		else
			begin(&open[slot]);
	}
	while (any_open())
		end_some();
	for (i = 0; i < OPEN; i++)
		if (open[i].resting)
			test_case_free(&open[i].test_case);
	must_have_counted(calls, 0, "random");
	for (i = 1; i < COMMS; i++)
		if (comms[i] != MPI_COMM_NULL)
			MPI_Comm_free(&comms[i]);
	test_cases_end();
	MPI_Finalize();
	if (!rank)
		printf("random %d: %llu calls\n", seed, (unsigned long long)calls);
	return 0;
}
