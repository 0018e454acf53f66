// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Any bytes as a trace, or as a GOAL program: refused with a reason, or a program that
 * the simulator opens and runs to its end or until its ranks wait for ever.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/tuning.h"
#include "sim/goal.h"
#include "sim/replay.h"
#include "sim/sim.h"
#include "fuzz.h"

/* Of what is run: or it takes too long. A few parts of a pipeline run the same lines as thousands. */
enum { RANKS_MAX = 16, OPS_MAX = 1 << 13, PARTS_MAX = 8 };

static const struct coll_algo *choose(void *argument, const struct coll_call *call,
				      struct coll_tuning *tuning)
{
	const struct coll_algo *algo = coll_algo_choose(call, tuning, &(struct coll_machine){ 0 });

	(void)argument;
	if (algo && coll_algo_has_option(algo, "segment"))
		tuning->segment = (call->count / PARTS_MAX + 1) * call->element;
	return algo;
}

static void run(struct coll_schedule **s, u32 ranks)
{
	const struct sim_model model = { .costs = SIM_COSTS(1e-6, 1e-9, 1e-9) };
	struct sim_outcome outcome;
	struct sim *sim = NULL;
	char why[200] = "";
	u64 ops = 0;
	u32 i;
	int error;

	for (i = 0; i < ranks; i++)
		ops += s[i]->ops;
	if (ranks <= RANKS_MAX && ops <= OPS_MAX) {
		fuzz_must(!sim_open_schedules((const struct coll_schedule *const *)s, ranks, &sim,
					      why, sizeof(why)), "what was read is no job");
		error = sim_run(sim, &model, 1, SIM_EVENTS, &outcome, NULL);
		fuzz_must(!error || error == -EDEADLK, "what was read does not run");
		sim_close(sim);
	}
	for (i = 0; i < ranks; i++)
		free(s[i]);
	free(s);
}

static void try_goal(const char *text, size_t bytes)
{
	struct coll_schedule **s;
	char why[300] = "";
	u32 ranks;

	if (!goal_read("p.goal", text, bytes, &s, &ranks, why, sizeof(why)))
		run(s, ranks);
	else
		fuzz_must(*why, "refused without a reason");
}

/* The traces of all ranks are in one input, a zero byte between two. */
static void try_traces(const char *text, size_t bytes, bool alike)
{
	const struct replay_how how = { .choose = choose };
	struct coll_schedule **s;
	struct sim_replay *replay;
	char why[400] = "";
	size_t at, next;
	int error = replay_new(&replay);
	u32 ranks;

	for (at = 0; at < bytes && !error; at = next + 1) {
		const char *end = memchr(text + at, '\0', bytes - at);

		next = end ? (size_t)(end - text) : bytes;
		error = (alike ? replay_add_alike : replay_add)(replay, "t", text + at, next - at,
								why, sizeof(why));
	}
	ranks = replay_ranks(replay);
	if (!error && (!alike || ranks <= RANKS_MAX))
		error = replay_schedules(replay, &how, &s, why, sizeof(why));
	else
		s = NULL;
	if (!error && s)
		run(s, ranks);
	fuzz_must(!error || *why, "refused without a reason");
	replay_free(replay);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = malloc(bytes + !bytes);	/* of exactly this size: no byte beyond is read */

	memcpy(text, data, bytes);
	try_goal(text, bytes);
	try_traces(text, bytes, false);
	try_traces(text, bytes, true);
	free(text);
	return 0;
}

void fuzz_seeds(take_seed *take, void *argument)
{
	static const char *const seeds[] = {
		"num_ranks 2\nrank 0 {\na: calc 5 // x\nb: send 8b to 1 tag 7\nb requires a\n"
		"c: recv 4b from 1\nc irequires b\n}\nrank 1 {\na: recv 8b from 0 tag 7 cpu 0\n"
		"/* y */ b: send 4b to 0 nic 1 b requires a\n}\n",
		"coll-trace version=1 rank=0 ranks=3\ngroup number=0 id=3 ranks=0,1,2\n"
		"cpu ns=100\nallreduce group=0 bytes=64 element=8 commutative=1 ns=5\n"
		"ialltoall group=0 bytes=9 request=1\ncpu ns=7\nwait requests=1\n"
		"gatherv group=0 root=0 recv=1,2,3\nalltoallv group=0 send=1,2,3 recv=1,2,3\n"
		"bcast group=0 root=2 bytes=100\nscan group=0 bytes=16 element=16\nend\n",
	};
	static const char two[] = "coll-trace version=1 rank=0 ranks=2\ngroup number=0 ranks=0,1\n"
				  "irecv group=0 from=-1 tag=-1 bytes=9 request=2 ns=3\n"
				  "send group=0 to=1 tag=1 bytes=8 ns=5\nwait requests=2 ns=1\n"
				  "barrier group=0\nend\n\0"
				  "coll-trace version=1 rank=1 ranks=2\ngroup number=0 ranks=0,1\n"
				  "recv group=0 from=0 tag=1 bytes=8 ns=9\nisend group=0 to=0 "
				  "tag=4 bytes=9 request=1\n"
				  "barrier group=0\nwait requests=1\nend\n";
	size_t i;

	for (i = 0; i < sizeof(seeds) / sizeof(*seeds); i++)
		take(seeds[i], strlen(seeds[i]), argument);
	take(two, sizeof(two) - 1, argument);
}
