// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What happens in a round, all of it from the seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "round.h"
#include "tests/lib/interpret.h"

enum {
	STOPPED_S = 6,
	WALK_RANKS = 3,
};

const char *const kind_names[KINDS] = {
	"none",	     "kill",   "stop-short", "stop-long", "cut",
	"reset", "strangers", "memory", "descriptor", "clock", "disk",
	"suspend", "half-open", "replay", "store", "full", "colld", "module",
};

static const char *one_of(u64 *random, const char *const *words)
{
	uint32_t count = 0;

	while (words[count])
		count++;
	return words[interpret_random(random, count)];
}

/* Where ranks wait for their deadline in vain, it is shorter. */
static bool may_wait(const struct round *round)
{
	return round->kind == KIND_STOP_LONG || round->kind == KIND_HALF_OPEN ||
	       round->kind == KIND_FULL ||
	       (round->kind == KIND_KILL && !round->event[0].calls);
}

static void plan_options(struct round *round, u64 *random)
{
	static const char *const engines[] = { "uring", "epoll", NULL };
	static const char *const progress[] = { "call", "call", "thread", "helper", NULL };
	static const char *const open[] = { "none", "proof", NULL };
	static const char *const protect[] = { "none", "proof", "proof", "seal", NULL };
	static const char *const threads[] = { "one", "any", NULL };
	static const char *const extra[] = { "", "", " COLL_LINK_CHUNK=4K",
					     " COLL_INJECT=short:probability=0.3",
					     " COLL_UNEXPECTED_BYTES=64K", NULL };
	static const char *const lent[] = { "kernel", "auto", NULL };
	const char *engine = one_of(random, engines);
	const char *how = one_of(random, round->kind == KIND_MODULE ? lent : progress);
	const char *guard = one_of(random, round->kind == KIND_MODULE ? open : protect);
	const char *who = one_of(random, threads);
	const uint32_t deadline = may_wait(round) && round->settings->deadline_s > STOPPED_S ?
					  STOPPED_S : round->settings->deadline_s;

	snprintf(round->options, sizeof(round->options),
		 "COLL_ENGINE=%s COLL_PROGRESS=%s COLL_PROTECT=%s COLL_THREADS=%s COLL_DEADLINE=%us%s",
		 engine, how, guard, who, deadline, one_of(random, extra));
	if (round->kind == KIND_DISK || round->kind == KIND_FULL)
		strcat(round->options, " COLL_EXPLAIN=1");
	/* What goes through memory has no connection that could be cut, or a hello over TCP. */
	if (round->kind == KIND_CUT || round->kind == KIND_RESET || round->kind == KIND_HALF_OPEN ||
	    round->kind == KIND_REPLAY || !interpret_random(random, 3))
		strcat(round->options, " COLL_MEMORY=off");
}

static void plan_events(struct round *round, u64 *random)
{
	const bool once = round->kind == KIND_STOP_LONG || round->kind == KIND_NONE ||
			  (round->kind >= KIND_STRANGERS && round->kind != KIND_SUSPEND &&
			   round->kind != KIND_COLLD && round->kind != KIND_MODULE);
	const uint32_t calls = round->phases * 10;
	uint32_t i;

	round->events = once ? 1 : 1 + interpret_random(random, 3);
	if (round->kind == KIND_KILL && (int)round->events > round->ranks - 1)
		round->events = round->ranks - 1;
	for (i = 0; i < round->events; i++)
		round->event[i] = (struct event){
			.victim = interpret_random(random, round->ranks),
			.calls = i || interpret_random(random, 20) ?
					 1 + interpret_random(random, calls) : 0,
			.delay_us = interpret_random(random, 5000),
			.duration_us = 1000 + interpret_random(random, 400000),
		};
	if (round->kind == KIND_STOP_LONG && !round->event[0].calls)
		round->event[0].calls = 1;
}

static void plan_fail(struct round *round, u64 *random)
{
	static const uint32_t limits[] = { 40, 200, 1000, 3000 };
	const uint32_t limit = limits[interpret_random(random, 4)];

	round->fail = 1 + interpret_random(random, round->kind == KIND_MEMORY ? limit : limit / 8);
}

const char *round_lacks(const struct settings *settings, enum kind kind)
{
	char interposer[300];

	snprintf(interposer, sizeof(interposer), "%s/fault.so", settings->folder);
	switch (kind) {
	case KIND_FULL:
		return settings->mounts ? NULL : "the right to mount";
	case KIND_MODULE:
		return settings->module ? NULL : "--module and its kernel";
	case KIND_MEMORY:
	case KIND_DESCRIPTOR:
	case KIND_CLOCK:
	case KIND_SUSPEND:
	case KIND_REPLAY:
		return access(interposer, R_OK) ? "the interposer, which no sanitizer allows" : NULL;
	default:
		return NULL;
	}
}

void round_plan(struct round *round, const struct settings *settings, uint64_t seed)
{
	/* What is cheap and finds most comes most often. */
	static const enum kind often[] = {
		KIND_NONE, KIND_KILL, KIND_KILL, KIND_KILL, KIND_STOP_SHORT, KIND_STOP_LONG,
		KIND_CUT, KIND_CUT, KIND_RESET, KIND_RESET, KIND_STRANGERS, KIND_MEMORY,
		KIND_MEMORY, KIND_DESCRIPTOR, KIND_DESCRIPTOR, KIND_CLOCK, KIND_DISK,
		KIND_SUSPEND, KIND_HALF_OPEN, KIND_REPLAY, KIND_REPLAY, KIND_STORE, KIND_FULL,
		KIND_COLLD, KIND_MODULE,
	};
	u64 random = seed * 0x9e3779b97f4a7c15ull | 1;

	interpret_random(&random, 2);
	*round = (struct round){ .settings = settings, .seed = seed };
	round->kind = often[interpret_random(&random, sizeof(often) / sizeof(*often))];
	if (settings->only >= 0)
		round->kind = settings->only;
	if (round_lacks(settings, round->kind))
		round->kind = KIND_KILL;
	round->ranks = 2 + interpret_random(&random, BOARD_RANKS_MAX - 1);
	round->phases = 1 + interpret_random(&random, 6);
	round->launched = !interpret_random(&random, 3) && !settings->plant &&
			  round->kind != KIND_COLLD;	/* each rank is a node of its own */
	plan_events(round, &random);
	plan_options(round, &random);
	plan_fail(round, &random);
}

void round_plan_walk(struct round *round, const struct settings *settings, uint64_t seed,
		     enum kind kind, uint64_t n)
{
	struct settings only = *settings;

	only.only = kind;
	round_plan(round, &only, seed);
	round->settings = settings;
	round->ranks = WALK_RANKS;
	round->phases = 1;
	round->launched = false;
	round->event[0].victim = n % WALK_RANKS;
	round->fail = 1 + n / WALK_RANKS;
}
