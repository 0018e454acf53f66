/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The schedules of all ranks, each shape stored once. Ranks whose ops differ only in their
 * peers form a class. Most algorithms have few classes, and the peer of an op follows from
 * the rank by a shift or a flipped bit; only otherwise is there a list. So the memory of a
 * regular algorithm does not grow with its ranks.
 *
 * Messages are matched here, once: each send knows the op of its peer that receives it, each
 * receive the op that sends it.
 */
#ifndef COLL_SIM_PROGRAM_H
#define COLL_SIM_PROGRAM_H

#include "core/step.h"
#include "sim.h"

enum sim_peer_form {
	FORM_FLIP,	/* peer = rank ^ value */
	FORM_SHIFT,	/* peer = (rank + value) mod ranks */
	FORM_TURN,	/* ... mod `width`: among so many ranks, from a multiple of it on */
	FORM_LIST,	/* peer = list[member] */
};

struct sim_peer {
	enum sim_peer_form form;
	u32 value, width;
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
	u64 sent, worked;		/* most bytes of a send; of an op that is no message */
};

/* Source of schedules: an algorithm, or existing ones. */
struct sim_program_source {
	const struct sim_job *job;
	const struct coll_schedule *const *schedule;	/* of each rank, or NULL */
	u32 ranks;
};

/*
 * Reads the schedules of all ranks and groups them into classes. With `exact`, ranks share a
 * class only if their ops have equal addresses too, as a run with real bytes needs. Errors as
 * sim_open().
 */
int program_new(const struct sim_program_source *source, bool exact, struct sim_program **program,
		char *why, size_t bytes);
void program_free(struct sim_program *program);
u64 program_bytes(const struct sim_program *program);

/*
 * Whether all schedules follow from that of rank 0: equal shapes, and peers by flips or shifts.
 * struct coll_algo claims it; it is checked on some ranks.
 */
bool program_regular(const struct sim_job *job);

/*
 * A regular program, from a few ranks' schedules. -EAGAIN: they are not, and it is none: that is
 * no error of the algorithm, whose segments may have unequal parts, or nodes unequal ranks.
 */
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
	u32 sum, index;

	switch (peer->form) {
	case FORM_FLIP:
		return rank ^ peer->value;
	case FORM_SHIFT:
		sum = rank + peer->value;
		return sum >= p->ranks ? sum - p->ranks : sum;
	case FORM_TURN:
		index = rank % peer->width;
		sum = index + peer->value;
		return rank - index + (sum >= peer->width ? sum - peer->width : sum);
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
