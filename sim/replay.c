// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "replay_program.h"
#include "tape.h"

#define KEY_CALL (1ull << 63)	/* in keys of collectives' messages; other keys are numbers */

/* A collective of a group, combined from its ranks' traces. */
struct replay_call {
	u32 rank, event;	/* the first that was read */
	u32 sizes_rank, sizes_event;	/* the rank whose lists apply to all; COLL_NONE: none */
	struct coll_tuning tuning;
	const struct coll_algo *algo;
};

struct replay_run {
	const struct sim_replay *replay;
	const struct replay_how *how;
	struct replay_call *call;
	u64 *first;		/* per group: its calls in the array */
	struct sim_tape *tape;
	u32 *cluster;		/* per group member, of the current call */
	u64 *counts;		/* likewise: what it sends and receives, and where */
	u32 *done;		/* per event of the current rank: the op that is done with it */
	struct sim_emit_memory emit_buffer;
	char *why;
	size_t why_bytes;
};

static const struct replay_rank *trace_of(const struct sim_replay *replay, u32 rank)
{
	u32 i;

	if (!replay->alike)
		return &replay->rank[rank];
	for (i = 0; !replay->rank[i].name; i++)
		;
	return &replay->rank[i];
}

static int no_memory(struct replay_run *p)
{
	snprintf(p->why, p->why_bytes, "out of memory");
	return -ENOMEM;
}

/* ---- collectives of all ranks -------------------------------------------------------- */

static struct replay_call *call_of(const struct replay_run *p, const struct replay_event *e)
{
	return &p->call[p->first[e->group] + e->call];
}

/* The rank whose lists apply to the whole call; COLL_NONE: each has its own, or none. */
static u32 sizes_source(const struct replay_group *group, const struct replay_event *e)
{
	switch (e->collective) {
	case COLL_GATHERV:
	case COLL_SCATTERV:
		return group->rank[e->root];
	case COLL_ALLGATHERV:
	case COLL_REDUCE_SCATTER:
		return group->rank[0];
	default:
		return COLL_NONE;
	}
}

/* All ranks of a group must make the same calls. */
static int note_call(struct replay_run *p, u32 rank, u32 index)
{
	const struct replay_rank *r = trace_of(p->replay, rank);
	const struct replay_event *e = &r->event[index], *other;
	const struct replay_group *group = &p->replay->group[e->group];
	struct replay_call *call = call_of(p, e);
	const struct replay_rank *first;

	if (call->rank == COLL_NONE) {
		call->rank = rank;
		call->event = index;
	}
	if (sizes_source(group, e) == rank) {
		call->sizes_rank = rank;
		call->sizes_event = index;
	}
	first = trace_of(p->replay, call->rank);
	other = &first->event[call->event];
	if (other->collective == e->collective && other->root == e->root &&
	    (other->bytes == e->bytes || e->collective == COLL_GATHERV ||
	     e->collective == COLL_SCATTERV))
		return 0;
	return replay_wrong(p->why, p->why_bytes, r, e->line,
			    "%s, root %u, %llu bytes; %s:%u, of the same group's call, has %s, "
			    "root %u, %llu bytes", coll_collective_names[e->collective], e->root,
			    (unsigned long long)e->bytes, first->name, other->line,
			    coll_collective_names[other->collective], other->root,
			    (unsigned long long)other->bytes);
}

static u32 calls_of(const struct replay_rank *r, u32 group)
{
	return group < r->call_capacity ? r->calls[group] : 0;
}

/* Every member must have as many calls of its group as the others. */
static int count_calls(struct replay_run *p, u32 group, u64 *calls)
{
	const struct replay_group *g = &p->replay->group[group];
	const struct replay_rank *first = trace_of(p->replay, g->rank[0]);
	u32 i;

	for (i = 1; i < g->ranks; i++) {
		const struct replay_rank *r = trace_of(p->replay, g->rank[i]);

		if (calls_of(r, group) == calls_of(first, group))
			continue;
		snprintf(p->why, p->why_bytes, "%s: rank %u makes %u collective calls in a group "
			 "of %u ranks where rank %u makes %u", r->name, g->rank[i],
			 calls_of(r, group), g->ranks, g->rank[0], calls_of(first, group));
		return -EINVAL;
	}
	*calls = calls_of(first, group);
	return 0;
}

static int note_calls(struct replay_run *p)
{
	const struct sim_replay *replay = p->replay;
	u64 all = 0, calls;
	u32 rank, i;
	int error = 0;

	p->first = malloc((replay->groups + 1) * sizeof(*p->first));
	if (!p->first)
		return no_memory(p);
	for (i = 0; i < replay->groups && !error; i++) {
		p->first[i] = all;
		error = count_calls(p, i, &calls);
		all += error ? 0 : calls;
	}
	p->call = error ? NULL : malloc((all + 1) * sizeof(*p->call));
	if (!p->call)
		return error ? error : no_memory(p);
	while (all--)
		p->call[all] = (struct replay_call){ .rank = COLL_NONE, .sizes_rank = COLL_NONE };
	for (rank = 0; rank < replay->ranks && !error; rank++) {
		const struct replay_rank *r = trace_of(replay, rank);

		for (i = 0; i < r->events && !error; i++)
			if (r->event[i].kind == EVENT_COLLECTIVE &&
			    replay_group_index(&replay->group[r->event[i].group], rank) != COLL_NONE)
				error = note_call(p, rank, i);
	}
	return error;
}

/* ---- one call ------------------------------------------------------------------------- */

/* A built-in type of this size; bytes if there is none. */
static u32 type_of(u64 bytes, u32 element, u32 *size)
{
	if (!element)
		element = bytes % sizeof(double) ? 1 : sizeof(double);
	*size = bytes % element ? 1 : element;
	switch (*size) {
	case 2:
		return COLL_INT16;
	case 4:
		return COLL_FLOAT;
	case 8:
		return COLL_DOUBLE;
	default:
		*size = 1;
		return COLL_UINT8;
	}
}

/* Consecutive blocks of these sizes. */
static void fill_blocks(const u64 *size, u32 ranks, u64 *counts)
{
	u64 at = 0;
	u32 i;

	for (i = 0; i < ranks; i++) {
		counts[i] = size[i];
		counts[ranks + i] = at;
		at += size[i];
	}
}

static int fill_sizes(struct replay_run *p, const struct replay_rank *r,
		      const struct replay_event *e, struct coll_call *call)
{
	const struct replay_call *said = call_of(p, e);
	const u64 *sizes = r->list + e->received;
	u64 *counts = p->counts;

	if (e->collective == COLL_ALLTOALLV) {
		fill_blocks(e->sents ? r->list + e->sent : sizes, call->ranks, counts);
		fill_blocks(sizes, call->ranks, counts + 2 * call->ranks);
		call->send_counts = counts;
		call->send_displs = counts + call->ranks;
		call->recv_counts = counts + 2 * call->ranks;
		call->recv_displs = counts + 3 * call->ranks;
		return 0;
	}
	if (said->sizes_rank != COLL_NONE) {
		const struct replay_rank *who = trace_of(p->replay, said->sizes_rank);
		const struct replay_event *theirs = &who->event[said->sizes_event];
		const bool sent = e->collective == COLL_SCATTERV;

		if (!(sent ? theirs->sents : theirs->receiveds))
			return replay_wrong(p->why, p->why_bytes, who, theirs->line,
					    "%s= is missing", sent ? "send" : "recv");
		fill_blocks(who->list + (sent ? theirs->sent : theirs->received), call->ranks,
			    counts);
		call->counts = counts;
		call->displs = e->collective == COLL_REDUCE_SCATTER ? NULL :
								      counts + call->ranks;
		call->count = counts[call->rank];
	}
	return 0;
}

/* Clusters of the group's ranks, numbered from 0, none empty. */
static void fill_clusters(struct replay_run *p, const struct replay_group *group,
			  struct coll_call *call)
{
	u32 here[REPLAY_CLUSTERS_MAX], i;

	memset(here, 0xff, sizeof(here));
	call->clusters = 0;
	for (i = 0; i < group->ranks; i++) {
		u32 *number = &here[p->how->cluster[group->rank[i]]];

		if (*number == COLL_NONE)
			*number = call->clusters++;
		p->cluster[i] = *number;
	}
	call->cluster = p->cluster;
}

static int make_call(struct replay_run *p, const struct replay_rank *r, u32 rank,
		     const struct replay_event *e, struct coll_call *call)
{
	const struct replay_group *group = &p->replay->group[e->group];

	*call = (struct coll_call){
		.collective = e->collective,
		.rank = replay_group_index(group, rank),
		.ranks = group->ranks,
		.root = e->root,
		.reduction = COLL_SUM,
		.commutative = e->commutative,
	};
	call->type = type_of(e->bytes, e->element, &call->element);
	call->count = e->bytes / call->element;
	if (e->sents || e->receiveds || e->collective == COLL_GATHERV ||
	    e->collective == COLL_SCATTERV) {
		call->type = COLL_UINT8;
		call->element = 1;
		call->count = e->bytes;
	}
	if (p->how->cluster)
		fill_clusters(p, group, call);
	return fill_sizes(p, r, e, call);
}

static int emit_call(struct replay_run *p, const struct replay_rank *r,
		     const struct replay_event *e, const struct coll_call *call,
		     struct coll_schedule **s)
{
	struct replay_call *said = call_of(p, e);
	const char *refusal;
	int error;

	if (!said->algo) {
		said->tuning = COLL_TUNING_UNSET;
		said->algo = p->how->choose(p->how->argument, call, &said->tuning);
	}
	refusal = said->algo ? coll_algo_refuses(said->algo, call, &said->tuning) :
			       "no algorithm fits";
	if (refusal) {
		replay_wrong(p->why, p->why_bytes, r, e->line, "%s %s: %s",
			     coll_collective_names[e->collective],
			     said->algo ? said->algo->name : "", refusal);
		return -EOPNOTSUPP;
	}
	error = emit_into(&p->emit_buffer, said->algo, call, &said->tuning, s);
	if (error == -ENOMEM)
		return no_memory(p);
	return error ? replay_wrong(p->why, p->why_bytes, r, e->line, "%s cannot be emitted",
				    said->algo->name) : 0;
}

static int emit_collective(struct replay_run *p, struct sim_tape *t, const struct replay_rank *r,
			   const struct replay_event *e, u32 after, u32 *end)
{
	const struct replay_group *group = &p->replay->group[e->group];
	struct coll_schedule *s;
	struct coll_call call;
	int error;

	*end = after;
	if (replay_group_index(group, t->rank) == COLL_NONE || group->ranks == 1)
		return 0;
	error = make_call(p, r, t->rank, e, &call);
	if (!error)
		error = emit_call(p, r, e, &call, &s);
	if (!error)
		*end = tape_splice(t, s, group->rank, after,
				   KEY_CALL | (call_of(p, e) - p->call));
	return error;
}

/* ---- one rank ---------------------------------------------------------------------------- */

/* A message to itself takes no time; neither does a receive without a wait. */
static u32 emit_message(const struct replay_run *p, struct sim_tape *t,
			const struct replay_event *e, u32 after)
{
	const bool circuit = p->how->circuits && e->bytes;
	u32 op;

	if (!e->message || e->peer == (s32)t->rank)
		return after;
	tape_after(t, after);
	if (circuit) {
		op = tape_connect(t, e->peer);
		tape_after(t, op);
	}
	op = e->kind == EVENT_SEND ? tape_send(t, e->peer, e->bytes, e->message) :
				     tape_recv(t, e->peer, e->bytes, e->message);
	if (circuit) {
		tape_after(t, op);
		op = tape_release(t, e->peer);
	}
	return op;
}

static u32 emit_wait(const struct replay_run *p, struct sim_tape *t, const struct replay_rank *r,
		     const struct replay_event *e, u32 after)
{
	u32 i;

	tape_after(t, after);
	for (i = 0; i < e->sents; i++)
		tape_after(t, p->done[r->list[e->sent + i]]);
	return tape_join(t);
}

static int emit_rank(struct replay_run *p, u32 rank)
{
	const struct replay_rank *r = trace_of(p->replay, rank);
	struct sim_tape *t = &p->tape[rank];
	u32 last = COLL_NONE, i;
	int error = 0;

	*t = (struct sim_tape){ .name = r->name, .rank = rank };
	p->done = malloc((r->events + 1) * sizeof(*p->done));
	if (!p->done)
		return no_memory(p);
	for (i = 0; i < r->events && !error && !t->error; i++) {
		const struct replay_event *e = &r->event[i];
		u32 done = COLL_NONE;

		t->line = e->line;
		switch (e->kind) {
		case EVENT_CPU:
			tape_after(t, last);
			done = tape_compute(t, e->bytes);
			break;
		case EVENT_WAIT:
			done = emit_wait(p, t, r, e, last);
			break;
		case EVENT_COLLECTIVE:
			error = emit_collective(p, t, r, e, last, &done);
			break;
		default:
			done = emit_message(p, t, e, last);
		}
		p->done[i] = done;
		if (!e->nonblocking)
			last = done;
	}
	free(p->done);
	return error;
}

static int check_traces(const struct sim_replay *replay, char *why, size_t bytes)
{
	u32 i;

	if (replay->read == (replay->alike ? 1 : replay->ranks) && replay->read)
		return 0;
	for (i = 0; i < replay->ranks && replay->rank[i].name; i++)
		;
	if (replay->alike && replay->read)
		snprintf(why, bytes, "%u traces; valid with --alike: one", replay->read);
	else
		snprintf(why, bytes, "%u of %u traces; that of rank %u is missing", replay->read,
			 replay->ranks, i);
	return -EINVAL;
}

int replay_schedules(struct sim_replay *replay, const struct replay_how *how,
		     struct coll_schedule ***schedule, char *why, size_t why_bytes)
{
	struct replay_run p = { .replay = replay, .how = how, .why = why, .why_bytes = why_bytes };
	int error = check_traces(replay, why, why_bytes);
	u32 i;

	*schedule = NULL;
	if (!error && !replay->alike && !replay->matched)
		error = replay_match(replay, why, why_bytes);
	if (error)
		return error;
	replay->matched = true;
	p.tape = calloc(replay->ranks, sizeof(*p.tape));
	p.cluster = malloc(replay->ranks * sizeof(*p.cluster));
	p.counts = malloc(4 * (size_t)replay->ranks * sizeof(*p.counts));
	*schedule = calloc(replay->ranks, sizeof(**schedule));
	error = p.tape && p.cluster && p.counts && *schedule ? note_calls(&p) : no_memory(&p);
	for (i = 0; i < replay->ranks && !error; i++)
		error = emit_rank(&p, i);
	if (!error)
		error = tapes_finish(p.tape, replay->ranks, *schedule, why, why_bytes);
	for (i = 0; p.tape && i < replay->ranks; i++)
		tape_free(&p.tape[i]);
	if (error) {
		free(*schedule);
		*schedule = NULL;
	}
	free(p.tape);
	free(p.cluster);
	free(p.counts);
	free(p.call);
	free(p.first);
	free(p.emit_buffer.memory);
	return error;
}
