// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/common/levels.h"
#include "algo/common/ranks.h"
#include "memory.h"
#include "program_make.h"

int program_wrong(const struct sim_program_making *m, int error, const char *text)
{
	snprintf(m->why, m->why_bytes, "%s", text);
	return error;
}

/* In place only if the call can be. */
static bool rank_in_place(const struct coll_call *call, u32 rank)
{
	switch (call->collective) {
	case COLL_REDUCE:
	case COLL_GATHER:
	case COLL_GATHERV:
	case COLL_SCATTER:
	case COLL_SCATTERV:
		return call->in_place && rank == call->root;
	default:
		return call->in_place;
	}
}

static int emit_rank(struct sim_program_making *m, u32 rank, const struct coll_schedule **schedule)
{
	struct coll_call call = m->job->call;
	struct coll_schedule *s = NULL;
	const char *refusal;
	int error;

	call.rank = rank;
	call.in_place = rank_in_place(&m->job->call, rank);
	refusal = coll_algo_refuses(m->job->algo, &call, &m->job->tuning);
	if (refusal)
		return program_wrong(m, -EOPNOTSUPP, refusal);
	error = emit_into(&m->emit_buffer, m->job->algo, &call, &m->job->tuning, &s);
	if (error == -ENOMEM)
		return program_wrong(m, -ENOMEM, "out of memory");
	*schedule = s;
	return error ? program_wrong(m, error, "a schedule exceeds a limit")
		     : 0;
}

static int read_rank(struct sim_program_making *m, u32 rank, const struct coll_schedule **s)
{
	if (!m->schedule)
		return emit_rank(m, rank, s);
	*s = m->schedule[rank];
	return (*s)->rank == rank && (*s)->ranks == m->p->ranks
		       ? 0
		       : program_wrong(m, -EINVAL,
				       "the schedules are not those of all ranks, in order");
}

/* ---- shapes --------------------------------------------------------------- */

static u64 hash_of(u64 hash, u64 value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

static u64 shape_hash(const struct coll_schedule *s, bool exact)
{
	const struct coll_op *op = coll_ops(s);
	u64 hash = hash_of(s->ops, s->waits);
	u32 i;

	for (i = 0; i < s->ops; i++) {
		hash = hash_of(hash, op[i].kind | op[i].flags << 8 | (u64)op[i].reduction << 16 |
					     (u64)op[i].slot << 32);
		hash = hash_of(hash, op[i].bytes ^ (u64)op[i].unless << 32);
		hash = hash_of(hash, op[i].waits);
		if (exact)
			hash = hash_of(hash, op[i].result ^ op[i].left * 3 ^ op[i].right * 5);
	}
	for (i = 0; i < s->waits; i++)
		hash = hash_of(hash, coll_waits(s)[i]);
	return hash;
}

static bool same_op(const struct coll_op *a, const struct coll_op *b, bool exact)
{
	if (a->kind != b->kind || a->flags != b->flags || a->reduction != b->reduction ||
	    a->slot != b->slot ||
	    a->wait != b->wait || a->waits != b->waits || a->unless != b->unless ||
	    a->bytes != b->bytes)
		return false;
	return !exact || (a->result == b->result && a->left == b->left && a->right == b->right);
}

static bool same_shape(const struct coll_schedule *a, const struct coll_schedule *b, bool exact)
{
	u32 i;

	if (a->ops != b->ops || a->waits != b->waits ||
	    memcmp(coll_waits(a), coll_waits(b), a->waits * sizeof(u32)))
		return false;
	if (exact && memcmp(a->buffer, b->buffer, sizeof(a->buffer)))
		return false;
	for (i = 0; i < a->ops; i++)
		if (!same_op(&coll_ops(a)[i], &coll_ops(b)[i], exact))
			return false;
	return true;
}

static u32 shift_to(u32 rank, u32 peer, u32 ranks)
{
	return rank_minus(peer, rank, ranks);
}

/* The first member: peers are flips until another member contradicts. */
static int class_init(struct sim_program_making *m, struct sim_class *class,
		      const struct coll_schedule *s)
{
	u32 i;

	*class = (struct sim_class){ .members = 0 };
	m->kept += s->bytes + coll_plan_bytes(s);
	if (m->kept > memory_usable() / 3)
		return program_wrong(m, -ENOMEM,
				     "ranks have too many different schedules for the memory");
	*class = (struct sim_class){
		.schedule = malloc(s->bytes),
		.peer = calloc(s->ops + 1, sizeof(*class->peer)),
		.match = malloc((s->ops + 1) * sizeof(u32)),
		.match_list = calloc(s->ops + 1, sizeof(u32 *)),
		.plan_memory = malloc(coll_plan_bytes(s)),
	};
	if (class->schedule)	/* class_free() reads it, also after a failure */
		memcpy(class->schedule, s, s->bytes);
	if (!class->schedule || !class->peer || !class->match || !class->match_list ||
	    !class->plan_memory)
		return program_wrong(m, -ENOMEM, "out of memory");
	coll_plan_init(&class->plan, class->schedule, class->plan_memory);
	for (i = 0; i < s->ops; i++) {
		class->match[i] = COLL_NONE;
		if (coll_ops(s)[i].peer != COLL_NONE)
			class->peer[i].value = s->rank ^ coll_op_rank(s, &coll_ops(s)[i]);
	}
	return 0;
}

/* Converts an op's peer for the first `members` ranks into a list. */
static int peer_to_list(struct sim_program_making *m, struct sim_class *class,
			struct sim_peer *peer)
{
	u32 *list = malloc(m->p->ranks * sizeof(u32)), i;

	if (!list)
		return program_wrong(m, -ENOMEM, "out of memory");
	for (i = 0; i < class->members; i++)
		list[i] = program_peer_rank(m->p, peer, class->rank[i]);
	*peer = (struct sim_peer){ .form = FORM_LIST, .list = list };
	return 0;
}

/* The value of a form with which `rank` has this peer; false: there is none. */
static bool peer_value(const struct sim_program *p, struct sim_peer *peer, u32 rank, u32 to)
{
	if (peer->form == FORM_TURN && rank / peer->width != to / peer->width)
		return false;
	peer->value = peer->form == FORM_TURN ?
			      shift_to(rank % peer->width, to % peer->width, peer->width) :
			      shift_to(rank, to, p->ranks);
	return true;
}

/* Whether the form gives all members the peers that they have, and `rank` this one. */
static bool peer_fits(const struct sim_program_making *m, const struct sim_class *class,
		      const struct sim_peer *had, struct sim_peer *peer, u32 rank, u32 to)
{
	const struct sim_program *p = m->p;
	u32 i;

	if (!peer_value(p, peer, rank, to))
		return false;
	for (i = 0; i < class->members; i++)
		if (program_peer_rank(p, peer, class->rank[i]) !=
		    program_peer_rank(p, had, class->rank[i]))
			return false;
	return true;
}

/* The next member's peer must match the form; else the form changes. */
static int peer_add(struct sim_program_making *m, struct sim_class *class,
		    struct sim_peer *peer, u32 rank, u32 to)
{
	struct sim_peer other = { .form = FORM_SHIFT };
	u32 i;

	if (peer->form != FORM_LIST && program_peer_rank(m->p, peer, rank) == to)
		return 0;
	if (peer->form == FORM_FLIP && peer_fits(m, class, peer, &other, rank, to)) {
		*peer = other;
		return 0;
	}
	for (i = 0; i < m->widths && peer->form != FORM_LIST; i++) {
		other = (struct sim_peer){ .form = FORM_TURN, .width = m->width[i] };
		if (peer_fits(m, class, peer, &other, rank, to)) {
			*peer = other;
			return 0;
		}
	}
	if (peer->form != FORM_LIST) {
		int error = peer_to_list(m, class, peer);

		if (error)
			return error;
	}
	peer->list[class->members] = to;
	return 0;
}

/* Makes space for one more: arrays of members double. */
static int class_add(struct sim_program_making *m, struct sim_class *class,
		     const struct coll_schedule *s)
{
	const u32 members = class->members;
	u32 i;
	int error = 0;

	if (!(members & (members - 1))) {
		u32 *more = realloc(class->rank, (members ? 2 * (size_t)members : 1) * sizeof(u32));

		if (!more)
			return program_wrong(m, -ENOMEM, "out of memory");
		class->rank = more;
	}
	for (i = 0; members && i < s->ops && !error; i++)
		if (coll_ops(s)[i].peer != COLL_NONE)
			error = peer_add(m, class, &class->peer[i], s->rank,
					 coll_op_rank(s, &coll_ops(s)[i]));
	m->p->class_of[s->rank] = class - m->p->class;
	m->p->member_of[s->rank] = members;
	class->rank[class->members++] = s->rank;
	return error;
}

static int buckets_grow(struct sim_program_making *m)
{
	const u32 buckets = m->buckets ? 2 * m->buckets : 64;
	u32 *bucket = calloc(buckets, sizeof(u32)), i, at;
	struct sim_class *class = realloc(m->p->class, buckets / 2 * sizeof(*class));

	if (class)
		m->p->class = class;
	if (!bucket || !class) {
		free(bucket);
		return program_wrong(m, -ENOMEM, "out of memory");
	}
	for (i = 0; i < m->p->classes; i++) {
		at = shape_hash(class[i].schedule, m->exact) & (buckets - 1);
		while (bucket[at])
			at = (at + 1) & (buckets - 1);
		bucket[at] = i + 1;
	}
	free(m->bucket);
	m->bucket = bucket;
	m->buckets = buckets;
	return 0;
}

/* The class of this shape, new or old. */
static int class_find(struct sim_program_making *m, const struct coll_schedule *s, u32 *index)
{
	struct sim_program *p = m->p;
	u32 at;
	int error;

	if (2 * (p->classes + 1) > m->buckets) {
		error = buckets_grow(m);
		if (error)
			return error;
	}
	at = shape_hash(s, m->exact) & (m->buckets - 1);
	for (; m->bucket[at]; at = (at + 1) & (m->buckets - 1)) {
		*index = m->bucket[at] - 1;
		if (same_shape(p->class[*index].schedule, s, m->exact))
			return 0;
	}
	*index = p->classes++;
	m->bucket[at] = p->classes;
	return class_init(m, &p->class[*index], s);
}

static int classes_begin(struct sim_program_making *m)
{
	struct sim_program *p = m->p;

	p->class_of = malloc(p->ranks * sizeof(u32));
	p->member_of = malloc(p->ranks * sizeof(u32));
	return p->class_of && p->member_of ? 0 : program_wrong(m, -ENOMEM, "out of memory");
}

/* Members of one class are ranks: no tables. */
static void classes_end(struct sim_program *p)
{
	if (p->classes > 1)
		return;
	free(p->class_of);
	free(p->member_of);
	free(p->class[0].rank);
	p->class_of = p->member_of = p->class[0].rank = NULL;
}

static int read_all_ranks(struct sim_program_making *m)
{
	struct sim_program *p = m->p;
	const struct coll_schedule *s;
	u32 rank, index;
	int error = classes_begin(m);

	for (rank = 0; rank < p->ranks && !error; rank++) {
		error = read_rank(m, rank, &s);
		if (!error)
			error = class_find(m, s, &index);
		if (!error)
			error = class_add(m, &p->class[index], s);
	}
	if (!error)
		classes_end(p);
	return error;
}

/* ---- a program ------------------------------------------------------------ */

static void class_free(struct sim_class *class)
{
	u32 i;

	for (i = 0; class->schedule && i < class->schedule->ops; i++) {
		if (class->peer)
			free(class->peer[i].list);
		if (class->match_list)
			free(class->match_list[i]);
	}
	free(class->schedule);
	free(class->plan_memory);
	free(class->rank);
	free(class->peer);
	free(class->match);
	free(class->match_list);
}

void program_free(struct sim_program *p)
{
	u32 i;

	if (!p)
		return;
	for (i = 0; i < p->classes; i++)
		class_free(&p->class[i]);
	free(p->class);
	free(p->class_of);
	free(p->member_of);
	free(p);
}

static int program_make(struct sim_program_making *m, u32 ranks,
			int (*read)(struct sim_program_making *m), struct sim_program **program)
{
	int error;

	m->p = calloc(1, sizeof(*m->p));
	if (!m->p)
		return program_wrong(m, -ENOMEM, "out of memory");
	m->p->ranks = ranks;
	error = read(m);
	if (!error)
		error = program_match(m);
	free(m->emit_buffer.memory);
	free(m->bucket);
	if (error) {
		program_free(m->p);
		return error;
	}
	*program = m->p;
	return 0;
}

/* Ranks of the parts of each level, if all are equal runs. */
static void find_widths(struct sim_program_making *m)
{
	const struct coll_call *call = &m->job->call;
	u32 i;

	for (i = 0; i < call->levels && coll_levels_are_even(call); i++)
		m->width[m->widths++] = call->ranks / call->level[i].parts;
}

int program_new(const struct sim_program_source *source, bool exact, struct sim_program **program,
		char *why, size_t bytes)
{
	struct sim_program_making m = { .job = source->job,
					.schedule = source->schedule,
					.exact = exact,
					.why = why,
					.why_bytes = bytes };

	if (m.job)
		find_widths(&m);
	return program_make(&m, source->ranks, read_all_ranks, program);
}

u64 program_bytes(const struct sim_program *p)
{
	u64 bytes = sizeof(*p) + (p->class_of ? 2 * (u64)p->ranks * sizeof(u32) : 0);
	u32 c, i;

	for (c = 0; c < p->classes; c++) {
		const struct sim_class *class = &p->class[c];

		bytes += class->schedule->bytes + coll_plan_bytes(class->schedule);
		bytes += class->schedule->ops *
			 (sizeof(*class->peer) + sizeof(u32) + sizeof(u32 *));
		bytes += class->rank ? class->members * sizeof(u32) : 0;
		for (i = 0; i < class->schedule->ops; i++)
			bytes += ((class->peer[i].list ? (u64)p->ranks : 0) +
				  (class->match_list[i] ? class->members : 0)) *
				 sizeof(u32);
	}
	return bytes;
}

/* ---- regular algorithms --------------------------------------------------- */

u32 program_sample_rank(u32 i, u32 ranks)
{
	if (i < 4)
		return i % ranks;
	if (i < 8)
		return ranks - 1 - (i - 4) % ranks;
	return (u64)(i - 7) * 2654435761u % ranks;
}

bool program_regular(const struct sim_job *job)
{
	const struct coll_call *call = &job->call;
	const u32 regular = job->algo->regular;

	if (!regular || call->ranks < 2 || job->tuning.ports != COLL_UNSET || call->ports)
		return false;
	if (regular & COLL_REGULAR_NODES)
		return coll_levels_are_even(call) && coll_across_is_regular(call, &job->tuning);
	return !(regular & COLL_REGULAR_POWER_OF_TWO && call->ranks & (call->ranks - 1)) &&
	       !(regular & COLL_REGULAR_EVEN_PARTS && call->count % call->ranks);
}

/* Ranks that do not divide a segment's elements have different shapes: that is no error. */
static int read_samples(struct sim_program_making *m)
{
	struct sim_program *p = m->p;
	struct sim_class class;
	const struct coll_schedule *s;
	u32 sampled[SAMPLES], i, k;
	int error = emit_rank(m, 0, &s);

	if (error)
		return error;
	p->class = calloc(1, sizeof(*p->class));
	if (!p->class)
		return program_wrong(m, -ENOMEM, "out of memory");
	p->classes = 1;
	error = class_init(m, p->class, s);
	if (error)
		return error;
	sampled[0] = 0;
	class = *p->class;
	class.rank = sampled;
	class.members = 1;
	for (i = 1; i < SAMPLES && !error; i++) {
		error = emit_rank(m, program_sample_rank(i, p->ranks), &s);
		if (!error && !same_shape(s, class.schedule, false))
			error = -EAGAIN;
		for (k = 0; k < class.schedule->ops && !error; k++)
			if (coll_ops(s)[k].peer != COLL_NONE)
				error = peer_add(m, &class, &class.peer[k], s->rank,
						 coll_op_rank(s, &coll_ops(s)[k]));
		if (!error)
			sampled[class.members++] = s->rank;
	}
	for (k = 0; k < class.schedule->ops && !error; k++)
		if (class.peer[k].form == FORM_LIST)
			error = -EAGAIN;
	p->class->members = p->ranks;
	return error;
}

/* ---- regular on nodes ------------------------------------------------------ */

/* Of a node all ranks are read, of the first one before all others. */
static int read_node(struct sim_program_making *m, u32 node, u32 size, u32 *class_at)
{
	const struct coll_schedule *s;
	u32 i, index;
	int error = 0;

	for (i = 0; i < size && !error; i++) {
		error = emit_rank(m, node * size + i, &s);
		if (!error)
			error = class_find(m, s, &index);
		if (!error && node && index != class_at[i])
			error = -EAGAIN;
		class_at[i] = index;
		if (!error)
			error = class_add(m, &m->p->class[index], s);
	}
	return error;
}

static int classes_are_formulas(const struct sim_program *p)
{
	u32 c, i;

	for (c = 0; c < p->classes; c++)
		for (i = 0; i < p->class[c].schedule->ops; i++)
			if (p->class[c].peer[i].form == FORM_LIST)
				return -EAGAIN;
	return 0;
}

/* Gives each class the ranks of its indices in all nodes. */
static int classes_spread(struct sim_program_making *m, u32 size, const u32 *class_at)
{
	struct sim_program *p = m->p;
	u32 c, rank;

	for (c = 0; c < p->classes; c++) {
		free(p->class[c].rank);
		p->class[c].members = 0;
		p->class[c].rank = malloc(p->ranks * sizeof(u32));
		if (!p->class[c].rank)
			return program_wrong(m, -ENOMEM, "out of memory");
	}
	for (rank = 0; rank < p->ranks; rank++) {
		struct sim_class *class = &p->class[class_at[rank % size]];

		p->class_of[rank] = class - p->class;
		p->member_of[rank] = class->members;
		class->rank[class->members++] = rank;
	}
	return 0;
}

static int read_nodes(struct sim_program_making *m)
{
	const struct coll_level *top = &m->job->call.level[m->job->call.levels - 1];
	const u32 size = m->p->ranks / top->parts;
	const u32 samples = top->parts < SAMPLES ? top->parts : SAMPLES;
	u32 *class_at = malloc(size * sizeof(u32)), i;
	int error = class_at ? classes_begin(m) : program_wrong(m, -ENOMEM, "out of memory");

	for (i = 0; i < samples && !error; i++)
		error = read_node(m, samples == top->parts ? i : program_sample_rank(i, top->parts),
				  size, class_at);
	if (!error)
		error = classes_are_formulas(m->p);
	if (!error)
		error = classes_spread(m, size, class_at);
	if (!error)
		classes_end(m->p);
	free(class_at);
	return error;
}

int program_new_regular(const struct sim_job *job, struct sim_program **program, char *why,
			size_t bytes)
{
	struct sim_program_making m = {
		.job = job, .sampled = true, .why = why, .why_bytes = bytes
	};

	find_widths(&m);
	return program_make(&m, job->call.ranks,
			    job->algo->regular & COLL_REGULAR_NODES ? read_nodes : read_samples,
			    program);
}
