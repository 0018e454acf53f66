// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A program to be replayed, read from the traces of its ranks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay_text.h"

enum { RANKS_MAX = 1 << 16, GROUPS_MAX = 1 << 20 };

/* ---- groups --------------------------------------------------------------- */

static bool same_members(const struct replay_group *group, const u64 *member, u32 members)
{
	u32 i;

	for (i = 0; i < members && members == group->ranks; i++)
		if (group->rank[i] != member[i])
			return false;
	return members == group->ranks;
}

/* The number of groups of this rank with the same ranks and no id. */
static u32 count_alike(const struct replay_reader *r, const u64 *member, u32 members)
{
	u32 count = 0, i;

	for (i = 0; i < r->rank->groups; i++) {
		const u32 index = r->rank->group[i];

		count += index && !r->replay->group[index - 1].id &&
			 same_members(&r->replay->group[index - 1], member, members);
	}
	return count;
}

static int compare_members(const void *left, const void *right)
{
	const struct replay_member *a = left, *b = right;

	return (a->rank > b->rank) - (a->rank < b->rank);
}

u32 replay_group_index(const struct replay_group *group, u32 rank)
{
	const struct replay_member wanted = { .rank = rank };
	const struct replay_member *found = bsearch(&wanted, group->member, group->ranks, sizeof(wanted),
						    compare_members);

	return found ? found->index : COLL_NONE;
}

static int group_new(struct replay_reader *r, u64 id, u32 nth, const u64 *member, u32 members)
{
	struct sim_replay *replay = r->replay;
	struct replay_group *group;
	u32 i;

	if (!replay_grow((void **)&replay->group, &replay->group_capacity, replay->groups,
			 sizeof(*group)))
		return replay_no_memory(r);
	group = &replay->group[replay->groups];
	*group = (struct replay_group){ .id = id, .nth = nth, .ranks = members,
					.rank = malloc(members * sizeof(u32)),
					.member = malloc(members * sizeof(*group->member)) };
	replay->groups++;
	if (!group->rank || !group->member)
		return replay_no_memory(r);
	for (i = 0; i < members; i++) {
		group->rank[i] = member[i];
		group->member[i] = (struct replay_member){ member[i], i };
	}
	qsort(group->member, members, sizeof(*group->member), compare_members);
	for (i = 1; i < members; i++)
		if (group->member[i].rank == group->member[i - 1].rank)
			return replay_line_wrong(r, "rank %u is in the group twice", group->member[i].rank);
	return 0;
}

/* Communicators of the same ranks differ by their id, or else by their order. */
static int find_group(struct replay_reader *r, u64 id, const u64 *member, u32 members, u32 *index)
{
	const u32 nth = id ? 0 : count_alike(r, member, members);
	u32 i;

	for (i = 0; i < r->replay->groups; i++)
		if (r->replay->group[i].id == id && r->replay->group[i].nth == nth &&
		    same_members(&r->replay->group[i], member, members))
			break;
	*index = i;
	return i < r->replay->groups ? 0 : group_new(r, id, nth, member, members);
}

static int read_group(struct replay_reader *r)
{
	struct replay_rank *rank = r->rank;
	u32 first, count, index, i;
	u64 number, id;
	int error = replay_value(r, KEY_NUMBER, 0, GROUPS_MAX, &number);

	if (!error)
		error = replay_value_or(r, KEY_ID, ~(u64)0, 0, &id);
	if (!error && !r->value[KEY_RANKS])
		error = replay_line_wrong(r, "ranks= is missing");
	if (!error && strchr(r->value[KEY_RANKS], '-'))
		error = replay_line_wrong(r, "a group with ranks of another job is not supported");
	if (!error)
		error = replay_value_list(r, KEY_RANKS, r->replay->ranks - 1, &first, &count);
	if (!error && number != rank->groups)
		error = replay_line_wrong(r, "number=%llu, but the next group is %u",
					  (unsigned long long)number, rank->groups);
	if (!error)
		error = find_group(r, id, rank->list + first, count, &index);
	if (error)
		return error;
	for (i = 0; i < count && rank->list[first + i] != r->number; i++)
		;
	if (i == count && !r->replay->alike)
		return replay_line_wrong(r, "rank %u uses this group but is not in it", r->number);
	if (!replay_grow((void **)&rank->group, &rank->group_capacity, rank->groups, sizeof(u32)))
		return replay_no_memory(r);
	rank->group[rank->groups++] = index + 1;
	return 0;
}

/* ---- events --------------------------------------------------------------- */

static int event_group(struct replay_reader *r, struct replay_event *e)
{
	u64 number;
	int error = replay_value(r, KEY_GROUP, 0, GROUPS_MAX, &number);

	if (error)
		return error;
	if (number >= r->rank->groups)
		return replay_line_wrong(r, "group=%llu has not been defined",
					 (unsigned long long)number);
	e->group = r->rank->group[number] - 1;
	return 0;
}

static int event_request(struct replay_reader *r, struct replay_event *e)
{
	u64 number;
	int error = replay_value(r, KEY_REQUEST, 1, ~(u64)0 >> 1, &number);

	if (error)
		return error;
	e->nonblocking = true;
	if (r->requests && number <= r->request[r->requests - 1])
		return replay_line_wrong(r, "request=%llu; valid: above %llu, the last one",
					 (unsigned long long)number,
					 (unsigned long long)r->request[r->requests - 1]);
	if (!replay_grow((void **)&r->request, &r->request_capacity, r->requests, sizeof(u64)) ||
	    !replay_grow((void **)&r->begun, &r->begun_capacity, r->requests, sizeof(u32)))
		return replay_no_memory(r);
	r->request[r->requests] = number;
	r->begun[r->requests++] = r->rank->events;
	return 0;
}

static int read_message(struct replay_reader *r, struct replay_event *e)
{
	const enum replay_key side = e->kind == EVENT_SEND ? KEY_TO : KEY_FROM;
	const struct replay_group *group;
	u64 peer, tag;
	int error = event_group(r, e);

	if (error)
		return error;
	if (r->replay->alike)
		return replay_line_wrong(r, "a message; valid with --alike: cpu and collectives");
	group = &r->replay->group[e->group];
	error = replay_value(r, side, REPLAY_NONE, group->ranks - 1, &peer);
	if (!error)
		error = replay_value(r, KEY_TAG, REPLAY_ANY, INT32_MAX, &tag);
	if (!error)
		error = replay_value(r, KEY_BYTES, 0, COLL_BYTES_MAX, &e->bytes);
	if (error)
		return error;
	e->tag = tag;
	e->peer = (s64)peer < 0 ? (s32)peer : (s32)group->rank[peer];
	if (e->kind == EVENT_SEND && e->peer == REPLAY_ANY)
		e->peer = REPLAY_NONE;
	return 0;
}

static int compare_requests(const void *left, const void *right)
{
	const u64 *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* Replaces requests by the events that began them. */
static int read_wait(struct replay_reader *r, struct replay_event *e)
{
	u32 i;
	int error;

	if (!r->value[KEY_REQUESTS])
		return replay_line_wrong(r, "requests= is missing");
	error = replay_value_list(r, KEY_REQUESTS, ~(u64)0 >> 1, &e->sent, &e->sents);
	for (i = 0; i < e->sents && !error; i++) {
		u64 *number = &r->rank->list[e->sent + i];
		const u64 *found = r->requests ? bsearch(number, r->request, r->requests,
							 sizeof(u64), compare_requests) : NULL;

		if (!found)
			error = replay_line_wrong(r, "request %llu has not been begun",
						  (unsigned long long)*number);
		else
			*number = r->begun[found - r->request];
	}
	return error;
}

static bool has_root(enum coll_collective collective)
{
	return collective == COLL_BCAST || collective == COLL_GATHER ||
	       collective == COLL_GATHERV || collective == COLL_SCATTER ||
	       collective == COLL_SCATTERV || collective == COLL_REDUCE;
}

/* The lists, one number for each rank of the group. */
static int read_sizes(struct replay_reader *r, struct replay_event *e)
{
	const u32 ranks = r->replay->group[e->group].ranks;
	int error = 0;

	if (r->value[KEY_SEND])
		error = replay_value_list(r, KEY_SEND, COLL_BYTES_MAX / ranks, &e->sent, &e->sents);
	if (!error && r->value[KEY_RECV])
		error = replay_value_list(r, KEY_RECV, COLL_BYTES_MAX / ranks, &e->received,
					  &e->receiveds);
	if (!error && ((e->sents && e->sents != ranks) || (e->receiveds && e->receiveds != ranks)))
		error = replay_line_wrong(r, "a list of %u sizes, but the group has %u ranks",
			      e->sents && e->sents != ranks ? e->sents : e->receiveds, ranks);
	return error;
}

/* The number of this call among its group's. */
static int count_call(struct replay_reader *r, struct replay_event *e)
{
	struct replay_rank *rank = r->rank;
	const u32 before = rank->call_capacity;

	while (rank->call_capacity <= e->group)
		if (!replay_grow((void **)&rank->calls, &rank->call_capacity, rank->call_capacity,
				 sizeof(u32)))
			return replay_no_memory(r);
	memset(rank->calls + before, 0, (rank->call_capacity - before) * sizeof(u32));
	e->call = rank->calls[e->group]++;
	return 0;
}

static int read_collective(struct replay_reader *r, struct replay_event *e)
{
	const bool list = e->collective == COLL_ALLGATHERV || e->collective == COLL_ALLTOALLV ||
			  e->collective == COLL_REDUCE_SCATTER;
	u64 root = 0, element, commutative;
	int error = event_group(r, e);

	if (!error && has_root(e->collective))
		error = replay_value(r, KEY_ROOT, 0, r->replay->group[e->group].ranks - 1, &root);
	if (!error)
		error = read_sizes(r, e);
	if (!error && list && !e->receiveds)
		error = replay_line_wrong(r, "recv= is missing");
	if (!error && !list && !e->sents && !e->receiveds && e->collective != COLL_BARRIER)
		error = replay_value(r, KEY_BYTES, 0,
				     COLL_BYTES_MAX / r->replay->group[e->group].ranks, &e->bytes);
	if (!error)
		error = replay_value_or(r, KEY_ELEMENT, 1 << 20, 0, &element);
	if (!error)
		error = replay_value_or(r, KEY_COMMUTATIVE, 1, 1, &commutative);
	if (error)
		return error;
	e->root = root;
	e->element = element;
	e->commutative = commutative;
	return count_call(r, e);
}

static bool collective_of(const char *word, struct replay_event *e)
{
	int i;

	for (i = 0; i < COLL_COLLECTIVES; i++) {
		const bool begun = *word == 'i' && !strcmp(word + 1, coll_collective_names[i]);

		if (begun || !strcmp(word, coll_collective_names[i])) {
			e->collective = i;
			e->nonblocking = begun;
			return true;
		}
	}
	if (strcmp(word + (*word == 'i'), "alltoallw"))
		return false;
	e->collective = COLL_ALLTOALLV;
	e->nonblocking = *word == 'i';
	return true;
}

static int read_event(struct replay_reader *r, const char *word)
{
	struct replay_rank *rank = r->rank;
	struct replay_event e = { .line = r->line };
	int error = replay_value_or(r, KEY_NS, ~(u64)0 >> 2, 0, &e.took);

	if (error)
		return error;
	if (!strcmp(word, "cpu")) {
		e.kind = EVENT_CPU;
		error = replay_value(r, KEY_NS, 0, COLL_BYTES_MAX, &e.bytes);
	} else if (!strcmp(word, "send") || !strcmp(word, "isend")) {
		e.kind = EVENT_SEND;
		e.nonblocking = *word == 'i';
		error = read_message(r, &e);
	} else if (!strcmp(word, "recv") || !strcmp(word, "irecv")) {
		e.kind = EVENT_RECV;
		e.nonblocking = *word == 'i';
		error = read_message(r, &e);
	} else if (!strcmp(word, "wait")) {
		e.kind = EVENT_WAIT;
		error = read_wait(r, &e);
	} else if (collective_of(word, &e)) {
		e.kind = EVENT_COLLECTIVE;
		error = read_collective(r, &e);
	} else {
		return 0;	/* of a later version */
	}
	if (!error && e.nonblocking)
		error = event_request(r, &e);
	if (error)
		return error;
	if (!replay_grow((void **)&rank->event, &rank->event_capacity, rank->events, sizeof(e)))
		return replay_no_memory(r);
	rank->event[rank->events++] = e;
	return 0;
}

/* ---- a file --------------------------------------------------------------- */

static int read_head(struct replay_reader *r, const char *word)
{
	struct sim_replay *replay = r->replay;
	u64 version, rank, ranks;
	int error = 0;

	if (!word || strcmp(word, "coll-trace"))
		return replay_line_wrong(r, "not a coll-trace: wrong first line");
	error = replay_value(r, KEY_VERSION, 1, 1, &version);
	if (!error)
		error = replay_value(r, KEY_RANKS, 1, RANKS_MAX, &ranks);
	if (!error)
		error = replay_value(r, KEY_RANK, 0, ranks - 1, &rank);
	if (error)
		return error;
	if (replay->ranks && replay->ranks != ranks)
		return replay_line_wrong(r, "ranks=%llu, but the other traces are of %u ranks",
					 (unsigned long long)ranks, replay->ranks);
	if (!replay->rank) {
		replay->rank = calloc(ranks, sizeof(*replay->rank));
		if (!replay->rank)
			return replay_no_memory(r);
		replay->ranks = ranks;
	}
	if (replay->rank[rank].name)
		return replay_line_wrong(r, "rank %llu has a trace already: %.80s",
					 (unsigned long long)rank, replay->rank[rank].name);
	r->number = rank;
	replay->rank[rank] = *r->rank;
	r->rank = &replay->rank[rank];
	replay->read++;
	return 0;
}

static int read_lines(struct replay_reader *r, char *text, size_t bytes)
{
	char *line = text, *next, *word;
	bool headed = false;
	int error = 0;

	for (; line < text + bytes && !error && !r->ended; line = next) {
		next = memchr(line, '\n', text + bytes - line);
		next = next ? next + 1 : text + bytes + 1;
		next[-1] = '\0';
		r->line++;
		if (strlen(line) != (size_t)(next - 1 - line))
			return replay_line_wrong(r, "a zero byte: not a text file");
		if (*line == '#')
			continue;
		word = replay_cut_line(r, line);
		if (!headed)
			error = read_head(r, word);
		else if (!word)
			continue;
		else if (!strcmp(word, "end"))
			r->ended = true;
		else if (!strcmp(word, "group"))
			error = read_group(r);
		else
			error = read_event(r, word);
		headed = true;
	}
	if (error)
		return error;
	r->line += !r->line;
	if (!headed)
		return replay_line_wrong(r, "not a coll-trace: the file is empty");
	return r->ended ? 0
			: replay_line_wrong(
				  r, "the trace has no end: the program did not exit normally");
}

static void rank_free(struct replay_rank *rank)
{
	free(rank->name);
	free(rank->event);
	free(rank->list);
	free(rank->group);
	free(rank->calls);
}

int replay_add(struct sim_replay *replay, const char *name, const char *text, size_t bytes,
	       char *why, size_t why_bytes)
{
	struct replay_rank rank = { .name = strdup(name) };
	struct replay_reader r = {
		.replay = replay, .rank = &rank, .why = why, .why_bytes = why_bytes
	};
	char *copy = malloc(bytes + 1);
	int error;

	if (copy && bytes)
		memcpy(copy, text, bytes);
	error = rank.name && copy ? read_lines(&r, copy, bytes) : replay_no_memory(&r);
	if (r.rank == &rank)	/* not stored */
		rank_free(&rank);
	free(copy);
	free(r.request);
	free(r.begun);
	return error;
}

int replay_add_alike(struct sim_replay *replay, const char *name, const char *text, size_t bytes,
		     char *why, size_t why_bytes)
{
	replay->alike = true;
	return replay_add(replay, name, text, bytes, why, why_bytes);
}

int replay_new(struct sim_replay **replay)
{
	*replay = calloc(1, sizeof(**replay));
	return *replay ? 0 : -ENOMEM;
}

void replay_free(struct sim_replay *replay)
{
	u32 i;

	if (!replay)
		return;
	for (i = 0; i < replay->ranks; i++)
		rank_free(&replay->rank[i]);
	for (i = 0; i < replay->groups; i++) {
		free(replay->group[i].rank);
		free(replay->group[i].member);
	}
	free(replay->rank);
	free(replay->group);
	free(replay);
}

u32 replay_ranks(const struct sim_replay *replay)
{
	return replay->ranks;
}
