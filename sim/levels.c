// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "levels_column.h"

/* ---- the order of columns ------------------------------------------------- */

/* Columns whose dependences are done: the lowest op first, so that few are in progress. */
struct levels_front {
	const struct sim_levels *levels;
	u32 *heap, count;
	u32 *open;		/* per column: columns it still depends on */
};

static bool levels_sooner(const struct levels_front *front, u32 a, u32 b)
{
	const struct sim_column *column = front->levels->column;

	return column[a].op != column[b].op ? column[a].op < column[b].op :
					      column[a].class < column[b].class;
}

static void front_push(struct levels_front *front, u32 new)
{
	u32 i;

	for (i = front->count++; i && levels_sooner(front, new, front->heap[(i - 1) / 2]);
	     i = (i - 1) / 2)
		front->heap[i] = front->heap[(i - 1) / 2];
	front->heap[i] = new;
}

static u32 front_pop(struct levels_front *front)
{
	u32 first = front->heap[0], moved = front->heap[--front->count], i = 0, child;

	while ((child = 2 * i + 1) < front->count) {
		if (child + 1 < front->count &&
		    levels_sooner(front, front->heap[child + 1], front->heap[child]))
			child++;
		if (!levels_sooner(front, front->heap[child], moved))
			break;
		front->heap[i] = front->heap[child];
		i = child;
	}
	front->heap[i] = moved;
	return first;
}

static void front_done(struct levels_front *front, u32 column)
{
	if (!--front->open[column])
		front_push(front, column);
}

static u32 receiver_of(const struct sim_levels *levels, const struct sim_column *column, u32 member)
{
	const struct sim_program *p = levels->program;
	const struct sim_class *class = &p->class[column->class];
	const u32 rank = program_rank(class, member);
	const u32 to = program_peer_rank(p, &class->peer[column->op], rank);

	return levels->first[program_class_of(p, to)] +
	       program_match_op(p, class, column->op, rank);
}

/* Calls `visit` for every column that receives from this one, once per run of equals. */
static void each_receiver(const struct sim_levels *levels, const struct sim_column *column,
			  void (*visit)(struct levels_front *front, u32 receiver),
			  struct levels_front *front)
{
	const struct sim_program *p = levels->program;
	const u32 members = p->classes == 1 && p->class[0].match[column->op] != COLL_NONE ?
				    1 :
				    p->class[column->class].members;
	u32 i, receiver, last = COLL_NONE;

	for (i = 0; i < members; i++) {
		receiver = receiver_of(levels, column, i);
		if (receiver != last)
			visit(front, receiver);
		last = receiver;
	}
}

static void receiver_waits(struct levels_front *front, u32 receiver)
{
	front->open[receiver]++;
}

static void dependents_done(struct levels_front *front, u32 index)
{
	const struct sim_levels *levels = front->levels;
	const struct sim_column *column = &levels->column[index];
	const struct coll_plan *plan = &levels->program->class[column->class].plan;
	u32 i;

	for (i = plan->first_dependent[column->op]; i < plan->first_dependent[column->op + 1]; i++)
		front_done(front, levels->first[column->class] + plan->dependent[i]);
	if (column_op(levels, column)->kind == COLL_OP_SEND)
		each_receiver(levels, column, front_done, front);
}

static int find_order(struct sim_levels *levels)
{
	struct levels_front front = {
		.levels = levels,
		.heap = malloc((levels->columns + 1) * sizeof(u32)),
		.open = calloc(levels->columns + 1, sizeof(u32)),
	};
	u32 i, done = 0;

	if (!front.heap || !front.open) {
		free(front.heap);
		free(front.open);
		return -ENOMEM;
	}
	for (i = 0; i < levels->columns; i++) {
		front.open[i] += column_op(levels, &levels->column[i])->waits;
		if (column_op(levels, &levels->column[i])->kind == COLL_OP_SEND)
			each_receiver(levels, &levels->column[i], receiver_waits, &front);
	}
	for (i = 0; i < levels->columns; i++)
		if (!front.open[i])
			front_push(&front, i);
	while (front.count) {
		levels->order[done] = front_pop(&front);
		dependents_done(&front, levels->order[done++]);
	}
	free(front.heap);
	free(front.open);
	return done == levels->columns ? 0 : -EOPNOTSUPP;
}

/* ---- the columns of a program --------------------------------------------- */

static bool same_waits(const struct coll_schedule *s, const struct coll_op *a,
		       const struct coll_op *b)
{
	return a->waits == b->waits && !memcmp(coll_waits(s) + a->wait, coll_waits(s) + b->wait,
					       a->waits * sizeof(u32));
}

static bool op_has_level(const struct coll_op *op)
{
	return !op->flags && op->unless == COLL_NONE && op->waits <= WAITS_MAX;
}

static bool only_sends_follow(const struct sim_class *class, u32 op)
{
	const u32 *first = class->plan.first_dependent;
	u32 i;

	for (i = first[op]; i < first[op + 1]; i++) {
		u32 next = class->plan.dependent[i];

		if (coll_ops(class->schedule)[next].kind != COLL_OP_SEND ||
		    first[next] != first[next + 1])
			return false;
	}
	return true;
}

static bool only_work_follows(const struct sim_class *class, u32 op)
{
	const u32 *first = class->plan.first_dependent;
	u32 i;

	for (i = first[op]; i < first[op + 1]; i++) {
		const struct coll_op *next = &coll_ops(class->schedule)[class->plan.dependent[i]];

		if (op_is_free(next) || next->kind == COLL_OP_RECV)
			return false;
	}
	return first[op] != first[op + 1];
}

static int fill_columns(struct sim_levels *levels)
{
	const struct sim_program *p = levels->program;
	u32 c, i, n = 0;

	for (c = 0; c < p->classes; c++) {
		const struct coll_schedule *s = p->class[c].schedule;
		const struct coll_op *op = coll_ops(s), *before = NULL;
		const u32 *dependents = p->class[c].plan.first_dependent;

		levels->first[c] = n;
		for (i = 0; i < s->ops; i++) {
			if (!op_has_level(&op[i]))
				return -EOPNOTSUPP;
			levels->column[n++] = (struct sim_column){
				.class = c,
				.op = i,
				.users = dependents[i + 1] - dependents[i],
				.same_waits = before && same_waits(s, before, &op[i]),
				.last = dependents[i + 1] == dependents[i],
				.only_sends = only_sends_follow(&p->class[c], i),
				.only_work = only_work_follows(&p->class[c], i),
			};
			if (!op_is_free(&op[i]) && op[i].kind != COLL_OP_RECV)
				before = &op[i];
		}
	}
	return 0;
}

int levels_new(const struct sim_program *program, struct sim_levels **levels)
{
	struct sim_levels *l;
	u64 columns = 0, ops = 0;
	u32 c;
	int error;

	for (c = 0; c < program->classes; c++) {
		columns += program->class[c].schedule->ops;
		ops += (u64)program->class[c].schedule->ops * program->class[c].members;
	}
	if (columns > 1 << 20 || (columns > 4096 && columns * MEMBERS_LEAST > ops))
		return -EOPNOTSUPP;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->program = program;
	l->columns = columns;
	l->first = malloc((program->classes + 1) * sizeof(u32));
	l->column = malloc((columns + 1) * sizeof(*l->column));
	l->order = malloc((columns + 1) * sizeof(u32));
	error = l->first && l->column && l->order ? fill_columns(l) : -ENOMEM;
	if (!error)
		error = find_order(l);
	if (error)
		levels_free(l);
	else
		*levels = l;
	return error;
}

void levels_free(struct sim_levels *levels)
{
	if (!levels)
		return;
	free(levels->first);
	free(levels->column);
	free(levels->order);
	free(levels);
}
