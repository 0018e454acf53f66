/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The schedules of all ranks, each shape kept once. Ranks whose ops differ in
 * their peers only form a class. Most algorithms have few classes, and the
 * peers of an op are the same for all ranks of a class but for a shift or a
 * flipped bit; only where that fails is there a list. So the memory of a
 * regular algorithm does not grow with its ranks.
 *
 * Messages are matched here, once: a send knows which op of its peer receives it,
 * and a receive which op sends it.
 */
#ifndef COLL_SIM_PROGRAM_H
#define COLL_SIM_PROGRAM_H

#include "core/step.h"
#include "sim.h"

enum sim_peer_form {
	FORM_FLIP,	/* peer = rank ^ value */
	FORM_SHIFT,	/* peer = (rank + value) mod ranks */
	FORM_LIST,	/* peer = list[member] */
};

struct sim_peer {
	enum sim_peer_form form;
	u32 value;
	u32 *list;
};

struct sim_class {
	struct coll_schedule *schedule;	/* of its first member */
	struct coll_plan plan;
	void *plan_memory;
	u32 members;
	u32 *rank;			/* per member; NULL: every rank is in this class */
	struct sim_peer *peer;	/* per op; sends and receives */
	u32 *match;			/* per op: the peer's; COLL_NONE: see list */
	u32 **match_list;		/* per op */
};

struct sim_program {
	u32 ranks, classes;
	struct sim_class *class;
	u32 *class_of;			/* per rank; NULL: there is one class */
	u32 *member_of;			/* per rank: its place in its class */
	u64 sends;
};

/* Where schedules come from: an algorithm, or they are there. */
struct sim_program_source {
	const struct sim_job *job;
	const struct coll_schedule *const *schedule;	/* of each rank, or NULL */
	u32 ranks;
};

/*
 * Reads and joins the schedules of all ranks. With `exact` ranks are one class
 * only if their ops are the same to the last place, as a run with real bytes
 * needs it. Errors as sim_open().
 */
int program_new(const struct sim_program_source *source, bool exact, struct sim_program **program,
		char *why, size_t bytes);
void program_free(struct sim_program *program);
u64 program_bytes(const struct sim_program *program);

/*
 * Whether the schedule of rank 0 says it all: every rank has its shape, and its
 * peers are flips or shifts. Known of some algorithms, checked on some ranks.
 */
bool program_regular(const struct sim_job *job);
/* Such a program, from a few ranks' schedules. */
int program_new_regular(const struct sim_job *job, struct sim_program **program, char *why,
			size_t bytes);

static inline u32 program_class_of(const struct sim_program *p, u32 rank)
{
	return p->class_of ? p->class_of[rank] : 0;
}

static inline u32 program_member_of(const struct sim_program *p, u32 rank)
{
	return p->member_of ? p->member_of[rank] : rank;
}

static inline u32 program_rank(const struct sim_class *class, u32 member)
{
	return class->rank ? class->rank[member] : member;
}

static inline u32 program_peer_rank(const struct sim_program *p, const struct sim_peer *peer,
				    u32 rank)
{
	u32 sum;

	switch (peer->form) {
	case FORM_FLIP:
		return rank ^ peer->value;
	case FORM_SHIFT:
		sum = rank + peer->value;
		return sum >= p->ranks ? sum - p->ranks : sum;
	default:
		return peer->list[program_member_of(p, rank)];
	}
}

/* The op at the peer that receives what `op` sends, or sends what it receives. */
static inline u32 program_match_op(const struct sim_program *p, const struct sim_class *class,
				   u32 op, u32 rank)
{
	return class->match[op] != COLL_NONE ? class->match[op] :
					       class->match_list[op][program_member_of(p, rank)];
}

#endif
