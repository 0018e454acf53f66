// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * chaos_job BOARD SEED PHASES [PLANT RANK | fail KIND N MORE ERROR RANK]: one rank of a round.
 * All ranks make the same random calls: in random groups, of random collectives, each checked
 * against a reference. When a call fails the ranks agree, shrink the group and go on. The board
 * gets what happened. Exit code 0: as it should be; 1: a wrong result; 3: a leak; 4: agreement
 * or shrinking failed.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "board.h"
#include "cut.h"
#include "fault.h"
#include "tests/lib/descriptors.h"
#include "tests/lib/interpret.h"
#include "tests/lib/rank.h"
#include "tests/lib/rank_call.h"

enum {
	CALLS = 5,		/* in each group of a phase */
	GENERATIONS_MAX = 12,
	ELEMENTS_MAX = 200000,	/* in all blocks of a call */
};

struct job {
	struct board *board;
	struct board_rank *mine;
	struct coll_context *context;
	uint64_t seed;
	uint32_t phases;
	int self;			/* rank in the job */
	int members[BOARD_RANKS_MAX];	/* of the current group of all survivors */
	enum coll_reduction commuting, ordered;
	struct coll_group *failed;	/* a part in which a call failed, until all know */
	const char *plant;		/* what this rank does wrong, for the campaign's own test */
};

/* One group and who is in it, by ranks of the job. */
struct team {
	struct coll_group *group;
	int members[BOARD_RANKS_MAX];
};

/* ---- what went wrong ------------------------------------------------------- */

static void note_error(struct job *job, const struct team *team, int error)
{
	const uint32_t n = job->mine->errors;
	const int rank = coll_error_rank(team->group);
	struct board_error *entry = &job->mine->error[n];

	if (n == BOARD_ERRORS_MAX)
		return;
	entry->error = error;
	entry->blamed = rank < 0 ? -1 : team->members[rank];
	if (!strcmp(job->plant, "blame"))
		entry->blamed = job->self;
	snprintf(entry->text, sizeof(entry->text), "%s, in a group of %d", coll_last_error(team->group),
		 coll_ranks(team->group));
	job->mine->errors = n + 1;
}

static void end(struct job *job, enum board_state state, int code)
{
	job->mine->injected = fault_disarm();
	fault_where(job->mine->where, sizeof(job->mine->where));
	fflush(NULL);
	job->mine->state = state;
	_Exit(code);
}

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

/* ---- random calls ----------------------------------------------------------- */

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t z = a * 0x9e3779b97f4a7c15ull + b + 0x7f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static const struct coll_algo *random_algo(u64 *random)
{
	const struct coll_algo *algo;
	uint32_t count = 0;

	while (coll_algos[count])
		count++;
	do			/* all ranks are on one node */
		algo = coll_algos[interpret_random(random, count)];
	while (algo->levels);
	return algo;
}

static size_t random_count(u64 *random, int ranks)
{
	static const uint32_t limits[] = { 2, 20, 300, 5000, 70000 };
	const uint32_t limit = limits[interpret_random(random, 5)];

	return interpret_random(random, limit) % (ELEMENTS_MAX / (ranks * ranks) + 1);
}

static void random_type(u64 *random, const struct coll_algo *algo, struct test_case *test_case)
{
	test_case->type = interpret_random(random, COLL_TYPES);
	test_case->op = REFERENCE_ORDERED;
	if (algo->ordered || !interpret_random(random, 4))
		return;
	test_case->op = REFERENCE_COMMUTING;
	if (!interpret_random(random, 3))
		return;
	do {
		test_case->type = interpret_random(random, COLL_TYPES);
		test_case->op = interpret_random(random, COLL_REDUCTIONS);
	} while (!reference_fits(test_case->type, test_case->op));
}

static struct test_case random_call(u64 *random, const struct coll_algo *algo, int ranks)
{
	struct test_case test_case = { .collective = algo->collective,
				       .algo = interpret_random(random, 2) ? algo->name : "auto" };

	random_type(random, algo, &test_case);
	test_case.count = algo->collective == COLL_BARRIER ? 0 : random_count(random, ranks);
	test_case.root = interpret_random(random, ranks);
	test_case.in_place = interpret_random(random, 2) && algo->collective != COLL_BCAST &&
			     algo->collective != COLL_BARRIER;
	test_case.form = interpret_random(random, FORMS);
	return test_case;
}

static enum coll_reduction op_of(const struct job *job, int op)
{
	return op == REFERENCE_COMMUTING ? job->commuting :
	       op == REFERENCE_ORDERED   ? job->ordered : (enum coll_reduction)op;
}

/* What the campaign must notice, done by one rank in the middle of its calls. */
static void misbehave(struct job *job, struct rank_call *call)
{
	if (job->mine->calls < 10)
		return;
	if (!strcmp(job->plant, "wrong") && call->out.bytes)
		call->out.data[call->out.bytes / 2] ^= 1;
	if (!strcmp(job->plant, "hang"))
		for (;;)
			pause();
	if (!strcmp(job->plant, "crash"))
		abort();
}

static int one_call(struct job *job, struct team *team, u64 *random)
{
	const struct coll_algo *algo = random_algo(random);
	const struct test_case test_case = random_call(random, algo, coll_ranks(team->group));
	struct rank_call call;
	int error;

	error = coll_group_set(team->group, coll_collective_names[algo->collective],
			       test_case.algo);
	if (error)
		return error;
	call = rank_call_make(team->group, op_of(job, test_case.op), &test_case);
	error = rank_call_execute(&call);
	if (!error) {
		misbehave(job, &call);
		rank_call_check(&call);
		job->mine->calls++;
	}
	rank_call_free(&call);
	return error == -EOPNOTSUPP ? 0 : error;	/* all ranks refuse it */
}

static int calls_in(struct job *job, struct team *team, uint64_t seed)
{
	u64 random = seed | 1;
	int error = 0, i;

	for (i = 0; i < CALLS && !error; i++)
		error = one_call(job, team, &random);
	if (error)
		note_error(job, team, error);
	return error;
}

/* ---- groups ------------------------------------------------------------------ */

/* A part of the survivors by colour, which every rank can compute of every other. */
static int split(const struct team *world, uint64_t seed, struct team *part)
{
	const int colours = 1 + seed % 3, ranks = coll_ranks(world->group);
	const int mine = mix(seed, world->members[coll_rank(world->group)]) % colours;
	int i, count = 0;

	for (i = 0; i < ranks; i++)
		if ((int)(mix(seed, world->members[i]) % colours) == mine)
			part->members[count++] = world->members[i];
	return coll_group_split(world->group, mine, 0, &part->group);
}

static int phase(struct job *job, struct team *world, uint64_t seed)
{
	struct team part;
	int error = split(world, seed, &part);

	if (error) {
		note_error(job, world, error);
		return error;
	}
	error = calls_in(job, &part, mix(seed, part.members[0]));
	if (error) {
		coll_revoke(part.group);
		job->failed = part.group;
		return error;
	}
	coll_group_free(part.group);
	return calls_in(job, world, mix(seed, 1000));
}

/* A new group has the options of the old one, where the ranks had come to different calls. */
static int forget_algorithms(struct coll_group *group)
{
	int i, error = 0;

	for (i = 0; i < COLL_COLLECTIVES && !error; i++)
		error = coll_group_set(group, coll_collective_names[i], "auto");
	return error;
}

/* Who is there, by ranks of the job; this is a result that is checked as well. */
static int meet(struct job *job, struct team *world)
{
	int self = job->self, ranks = coll_ranks(world->group), i;
	int error = forget_algorithms(world->group);

	if (!error)
		error = coll_allgather(&self, world->members, 1, COLL_INT32, world->group);
	for (i = 1; i < ranks && !error; i++)
		if (world->members[i] <= world->members[i - 1])
			rank_fail(world->group, "the survivors are out of order");
	if (error)
		note_error(job, world, error);
	return error;
}

/* Calls until one fails. */
static int generation(struct job *job, struct team *world)
{
	const uint64_t seed = mix(job->seed, job->mine->generation);
	uint32_t i;
	int error = meet(job, world);

	for (i = 0; i < job->phases && !error; i++)
		error = phase(job, world, mix(seed, i));
	return error;
}

static void excluded(struct job *job, const struct team *world, int error, const char *what)
{
	note_error(job, world, error);
	printf("rank %d: %s: %s (%s)\n", job->self, what, coll_strerror(error),
	       coll_last_error(world->group));
	end(job, STATE_EXCLUDED, 4);
}

/* Until a generation goes well for all of its ranks. */
static void survive(struct job *job)
{
	struct team world = { .group = coll_world(job->context) };
	struct coll_group *next;
	bool shrunk = false;
	uint64_t good;
	int error, i;

	for (i = 0; i < coll_ranks(world.group); i++)
		world.members[i] = i;
	for (i = 0; i < GENERATIONS_MAX; i++) {
		good = !generation(job, &world);
		if (!good)
			coll_revoke(world.group);
		error = coll_agree(world.group, &good);
		if (error)
			excluded(job, &world, error, "coll_agree");
		coll_group_free(job->failed);
		job->failed = NULL;
		job->mine->ranks = coll_ranks(world.group);
		if (good && shrunk)
			return;
		shrunk = good;		/* a group that is well shrinks, too */
		error = coll_shrink(world.group, &next);
		if (error)
			excluded(job, &world, error, "coll_shrink");
		world.group = next;
		job->mine->generation++;
	}
	excluded(job, &world, -EAGAIN, "no group holds");
}

/* ---- main --------------------------------------------------------------------- */

/* A stopped or cut rank is told by the campaign where others listen. */
static void tell_port(struct job *job)
{
	int port = 0;

	if (files_listener(&port) >= 0)
		job->mine->port = port;
}

/* The job's store is the first that a rank has connected to. */
static void tell_store(struct job *job)
{
	struct sockaddr_in peer;
	socklen_t bytes;
	int fd;

	for (fd = 3; fd < 64 && !job->board->store_port; fd++) {
		bytes = sizeof(peer);
		if (!getpeername(fd, (struct sockaddr *)&peer, &bytes) && peer.sin_family == AF_INET)
			job->board->store_port = ntohs(peer.sin_port);
	}
}

static struct board_rank *recorder;

/* Hellos to the ports of ranks, and the proof after each: for who replays them. */
static void record(int fd, const void *data, size_t bytes)
{
	static __thread int greeted = -1;
	struct sockaddr_in to;
	socklen_t to_bytes = sizeof(to);

	if (fd == greeted && bytes == sizeof(recorder->proof)) {
		memcpy(&recorder->proof, data, bytes);
		greeted = -1;
	}
	if (bytes != sizeof(recorder->hello) || *(const uint32_t *)data != COLL_WIRE_MAGIC ||
	    getpeername(fd, (struct sockaddr *)&to, &to_bytes) || to.sin_family != AF_INET)
		return;
	memcpy(&recorder->hello, data, bytes);
	recorder->hello_port = ntohs(to.sin_port);
	greeted = fd;
}

static int join(struct job *job)
{
	int error;

	job->mine->state = STATE_JOINING;
	error = coll_open(NULL, &job->context);
	if (!error)
		return 0;
	job->mine->error[0].error = error;
	job->mine->error[0].blamed = -1;
	snprintf(job->mine->error[0].text, sizeof(job->mine->error[0].text), "coll_open: %s: %s",
		 coll_strerror(error), coll_context_error(NULL));
	job->mine->errors = 1;
	return error;
}

/* Memory that was shared with other ranks and is still mapped. */
static int shared_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[400];
	int count = 0;

	while (maps && fgets(line, sizeof(line), maps))
		count += !!strstr(line, "/memfd:coll");
	if (maps)
		fclose(maps);
	return count;
}

static void leave(struct job *job, int before)
{
	coll_close(job->context);
	fault_disarm();		/* what follows is the test's own */
	if (!strcmp(job->plant, "leak") && dup(1) < 0)
		abort();
	if (!strcmp(job->plant, "process") && !fork()) {
		sleep(600);
		_Exit(0);
	}
	if (descriptors() == before && !shared_mappings())
		return;
	printf("rank %d: %d descriptors after coll_close, %d before coll_open; %d mappings of "
	       "shared memory\n", job->self, descriptors(), before, shared_mappings());
	end(job, STATE_LEAKED, 3);
}

static void arm(char **argument)
{
	const enum fault_kind kind = strcmp(argument[0], "memory") ? FAULT_DESCRIPTOR : FAULT_MEMORY;

	fault_arm(kind, strtoull(argument[1], NULL, 10), strtoull(argument[2], NULL, 10),
		  atoi(argument[3]));
}

/* Once more if there was no memory: one failure may be injected. */
static enum coll_reduction reduction(struct job *job, coll_function *function, int commutes)
{
	enum coll_reduction op;
	int error = coll_op_create(job->context, function, NULL, commutes, &op);

	if (error == -ENOMEM)
		error = coll_op_create(job->context, function, NULL, commutes, &op);
	rank_must(coll_world(job->context), error);
	return op;
}

static struct board *jumper;

/*
 * Two years ahead, then two years back; or the monotonic clock a little ahead. Stores of numbers
 * are all that happens here.
 */
static void jump(int signal)
{
	static const int64_t years = 2 * 365 * 86400ll * 1000000000;
	static int jumps;

	(void)signal;
	if (jumper->jump_ns)
		fault_clocks(0, jumper->jump_ns);
	else
		fault_clocks(jumps++ % 2 ? -years : years, 0);
}

static void play(struct job *job, int before)
{
	if (!join(job)) {
		job->mine->state = STATE_RUNNING;
		tell_port(job);
		tell_store(job);
		job->commuting = reduction(job, reference_commuting, 1);
		job->ordered = reduction(job, reference_ordered, 0);
		survive(job);
		leave(job, before);
		end(job, STATE_DONE, 0);
	}
	end(job, STATE_REFUSED, 0);
}

int main(int argc, char **argv)
{
	struct job job = { .self = atoi(getenv("COLL_RANK")), .plant = "" };
	const int before = descriptors();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc < 4)
		return 2;
	job.board = board_open(argv[1]);
	if (!job.board)
		return 2;
	job.seed = strtoull(argv[2], NULL, 10);
	job.phases = atoi(argv[3]);
	job.mine = &job.board->rank[job.self];
	cut_on_signal(job.board, job.self);
	jumper = job.board;
	recorder = job.mine;
	signal(SIGUSR2, jump);
	fault_watch_sends(record);
	job.mine->pid = getpid();	/* from now on signals may come */
	if (argc == 6 && atoi(argv[5]) == job.self)
		job.plant = argv[4];
	if (argc == 10 && atoi(argv[9]) == job.self)
		arm(argv + 5);
	play(&job, before);
}
