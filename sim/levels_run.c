// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* One run by levels: a pass over all ranks for each column of ops. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "levels_column.h"

/* ---- times of a column ---------------------------------------------------- */

/* Times of a column: when its ops are done; of a receive at first: when its message arrives. */
struct levels_run {
	const struct sim_levels *levels;
	const struct sim_machine *machine;
	sim_time **time;	/* per column; NULL: not yet, or released */
	u32 *users;		/* per column: readers that have not read it yet */
	sim_time **spare;	/* per class: an array to be reused */
	/* Per rank; NULL if no rank's CPU can ever have two ops ready. */
	sim_time *cpu, *ready;
	sim_time *finish;
	sim_time *phase;	/* of the ranks' noise, or NULL */
	bool sends_show;	/* a send may end later than the op that it waits for */
	bool out_of_order, too_late;
};

static sim_time *column_new(struct levels_run *run, u32 class)
{
	sim_time *time = run->spare[class];

	/* A spare array links to the next one by its first element. */
	if (!time)
		return malloc(run->levels->program->class[class].members * sizeof(*time));
	memcpy(&run->spare[class], time, sizeof(sim_time *));
	return time;
}

static void column_drop(struct levels_run *run, u32 index)
{
	const u32 class = run->levels->column[index].class;
	sim_time *time = run->time[index];

	run->time[index] = NULL;
	memcpy(time, &run->spare[class], sizeof(sim_time *));
	run->spare[class] = time;
}

/* When an op's waits are met: the latest of these times. */
struct levels_inputs {
	u32 count;
	const sim_time *time[WAITS_MAX + 1];
};

static struct levels_inputs column_inputs(const struct levels_run *run,
					  const struct sim_column *column)
{
	const struct sim_class *class = &run->levels->program->class[column->class];
	const struct coll_op *op = &coll_ops(class->schedule)[column->op];
	const u32 *wait = coll_waits(class->schedule) + op->wait;
	struct levels_inputs inputs = { .count = op->waits };
	u32 i;

	for (i = 0; i < op->waits; i++)
		inputs.time[i] = run->time[run->levels->first[column->class] + wait[i]];
	return inputs;
}

/* Each op reads the times it waits for once; the last reader releases them. */
static void drop_inputs(struct levels_run *run, const struct sim_column *column)
{
	const struct sim_class *class = &run->levels->program->class[column->class];
	const struct coll_op *op = &coll_ops(class->schedule)[column->op];
	u32 i;

	for (i = 0; i < op->waits; i++) {
		u32 index = run->levels->first[column->class] +
			    coll_waits(class->schedule)[op->wait + i];

		if (!--run->users[index])
			column_drop(run, index);
	}
}

static inline sim_time ready_at(const struct sim_machine *machine,
				const struct levels_inputs *inputs, u32 member, u32 rank)
{
	sim_time ready;
	u32 i;

	if (!inputs->count)
		return machine_start(machine, rank);
	ready = inputs->time[0][member];
	for (i = 1; i < inputs->count; i++)
		if (ready < inputs->time[i][member])
			ready = inputs->time[i][member];
	return ready;
}

/*
 * CPU work that is ready at `ready`. Columns are processed in the order of ops, but the CPU serves
 * in the order of readiness: if that differs and matters, the run is out of order.
 */
static inline sim_time levels_serve(struct levels_run *run, const struct sim_column *column,
				    u32 rank, sim_time ready, sim_time work)
{
	sim_time begin = ready, end;

	if (work && run->machine->slowness)
		work = to_time(work * run->machine->slowness[rank]);
	if (work && run->cpu) {
		if (ready < run->cpu[rank]) {
			begin = run->cpu[rank];
			run->out_of_order |= ready < run->ready[rank] ||
					     (ready == run->ready[rank] && !column->same_waits);
		}
		run->ready[rank] = ready;
	}
	end = noise_end_at(&run->machine->os, run->phase, rank, begin, work);
	run->too_late |= !machine_in_time(end);
	if (work && run->cpu)
		run->cpu[rank] = end;
	return end;
}

/* Whether this column's op may be a rank's last. */
static bool levels_shows(const struct levels_run *run, const struct sim_column *column)
{
	return column->last || (column->only_sends && !run->sends_show);
}

/* Updates the ranks' ends. */
static inline void levels_seen(struct levels_run *run, u32 rank, sim_time end)
{
	if (run->finish[rank] < end)
		run->finish[rank] = end;
}

static void do_work(struct levels_run *run, const struct sim_column *column, sim_time *time,
		    sim_time work)
{
	const struct sim_class *class = &run->levels->program->class[column->class];
	const struct levels_inputs inputs = column_inputs(run, column);
	const bool shown = levels_shows(run, column);
	u32 i;

	for (i = 0; i < class->members; i++) {
		const u32 rank = program_rank(class, i);

		time[i] = levels_serve(run, column, rank, ready_at(run->machine, &inputs, i, rank),
				       work);
		if (shown)
			levels_seen(run, rank, time[i]);
	}
}

static void do_free(struct levels_run *run, const struct sim_column *column, sim_time *time)
{
	const struct sim_class *class = &run->levels->program->class[column->class];
	const struct levels_inputs inputs = column_inputs(run, column);
	const bool shown = levels_shows(run, column);
	u32 i;

	for (i = 0; i < class->members; i++) {
		const u32 rank = program_rank(class, i);

		time[i] = ready_at(run->machine, &inputs, i, rank);
		if (shown)
			levels_seen(run, rank, time[i]);
	}
}

/* time[] has arrivals; an unexpected message waits for its receive. */
static void do_recv(struct levels_run *run, const struct sim_column *column, sim_time *time,
		    sim_time work)
{
	const struct sim_class *class = &run->levels->program->class[column->class];
	const struct levels_inputs inputs = column_inputs(run, column);
	/* With `occupancy` the successors wait for the end of the noise themselves. */
	const bool plain = !work &&
			   (run->machine->semantics == SIM_EVENT || column->only_work);
	const bool shown = levels_shows(run, column);
	u32 i;

	for (i = 0; i < class->members; i++) {
		const u32 rank = program_rank(class, i);
		sim_time ready = ready_at(run->machine, &inputs, i, rank);

		if (ready < time[i])
			ready = time[i];
		time[i] = plain ? ready : levels_serve(run, column, rank, ready, work);
		if (shown)
			levels_seen(run, rank, time[i]);
	}
}

/* Common properties of a column's sends. */
struct levels_send {
	struct levels_run *run;
	const struct sim_column *column;
	const struct sim_class *class;
	const struct sim_peer *peer;
	struct levels_inputs inputs;
	struct sim_wire wire;
	sim_time work;
	u32 slot;
	bool shown;
	sim_time *there;	/* of all receivers, if they are in the order of ranks */
	sim_time *time;		/* when the sends are done; NULL: not needed */
};

/* Where the message of this rank arrives. */
static sim_time *levels_arrival(const struct levels_send *s, u32 to, u32 rank)
{
	struct levels_run *run = s->run;
	const struct sim_program *p = run->levels->program;
	const u32 index = run->levels->first[program_class_of(p, to)] +
			  program_match_op(p, s->class, s->column->op, rank);

	if (!run->time[index])
		run->time[index] = column_new(run, run->levels->column[index].class);
	return run->time[index] ? run->time[index] + program_member_of(p, to) : NULL;
}

static inline __attribute__((always_inline)) void send_one(const struct levels_send *s, u32 member,
							   u32 rank, u32 to, sim_time *there)
{
	const struct sim_machine *machine = s->run->machine;
	const u64 stream = noise_message(machine->message_key, rank, to, s->slot);
	const sim_time end = levels_serve(s->run, s->column, rank,
					  ready_at(machine, &s->inputs, member, rank), s->work);

	*there = end + machine_travel(machine, rank, to, stream, s->wire);
	if (s->time)
		s->time[member] = end;
	if (s->shown)
		levels_seen(s->run, rank, end);
}

static void send_flip(const struct levels_send *s)
{
	const u32 members = s->class->members, value = s->peer->value;
	u32 i;

	for (i = 0; i < members; i++)
		send_one(s, i, i, i ^ value, s->there + (i ^ value));
}

static void send_shift(const struct levels_send *s)
{
	const u32 members = s->class->members, value = s->peer->value;
	u32 i;

	for (i = 0; i < members - value; i++)
		send_one(s, i, i, i + value, s->there + i + value);
	for (; i < members; i++)
		send_one(s, i, i, i - (members - value), s->there + i - (members - value));
}

static int send_any(const struct levels_send *s)
{
	u32 i;

	for (i = 0; i < s->class->members; i++) {
		const u32 rank = program_rank(s->class, i);
		const u32 to = program_peer_rank(s->run->levels->program, s->peer, rank);
		sim_time *there = levels_arrival(s, to, rank);

		if (!there)
			return -ENOMEM;
		send_one(s, i, rank, to, there);
	}
	return 0;
}

static int do_send(struct levels_run *run, const struct sim_column *column, sim_time *time,
		   sim_time work)
{
	const struct sim_program *p = run->levels->program;
	const struct sim_class *class = &p->class[column->class];
	const struct coll_op *op = &coll_ops(class->schedule)[column->op];
	struct levels_send s = {
		.run = run,
		.column = column,
		.class = class,
		.peer = &class->peer[column->op],
		.inputs = column_inputs(run, column),
		.wire = noise_wire(&run->machine->link, machine_way(run->machine, op->bytes)),
		.work = work,
		.slot = op->slot,
		.time = time,
	};

	s.shown = column->last ? run->sends_show || !s.inputs.count : levels_shows(run, column);
	if (p->classes > 1 || class->match[column->op] == COLL_NONE || s.peer->form == FORM_LIST)
		return send_any(&s);
	s.there = levels_arrival(&s, 0, 0);
	if (!s.there)
		return -ENOMEM;
	if (s.peer->form == FORM_FLIP)
		send_flip(&s);
	else
		send_shift(&s);
	return 0;
}

static int do_column(struct levels_run *run, u32 index)
{
	const struct sim_column *column = &run->levels->column[index];
	const struct coll_op *op = column_op(run->levels, column);
	const sim_time work = machine_work(run->machine, op);
	int error = 0;

	if (!run->time[index] && !(op->kind == COLL_OP_SEND && column->last)) {
		run->time[index] = column_new(run, column->class);
		if (!run->time[index])
			return -ENOMEM;
	}
	if (op->kind == COLL_OP_SEND)
		error = do_send(run, column, run->time[index], work);
	else if (op->kind == COLL_OP_RECV)
		do_recv(run, column, run->time[index], work);
	else if (op_is_free(op))
		do_free(run, column, run->time[index]);
	else
		do_work(run, column, run->time[index], work);
	drop_inputs(run, column);
	if (column->last && run->time[index])
		column_drop(run, index);
	return error;
}

/* ---- whether a CPU can ever have two ops ready ---------------------------- */

/* Whether op `to` ends before `from` begins, because `from` waits for it, also through others. */
static bool levels_follows(const struct coll_schedule *s, u32 from, u32 to, u32 depth)
{
	const struct coll_op *op = &coll_ops(s)[from];
	u32 i;

	for (i = 0; i < op->waits; i++) {
		u32 wait = coll_waits(s)[op->wait + i];

		if (wait == to || (depth && wait > to && levels_follows(s, wait, to, depth - 1)))
			return true;
	}
	return false;
}

static bool cpu_matters(const struct sim_program *p, const struct sim_machine *machine)
{
	u32 c, i, before;

	for (c = 0; c < p->classes; c++) {
		const struct coll_schedule *s = p->class[c].schedule;

		for (before = COLL_NONE, i = 0; i < s->ops; i++) {
			if (!machine_work(machine, &coll_ops(s)[i]))
				continue;
			if (before != COLL_NONE && !levels_follows(s, i, before, 2))
				return true;
			before = i;
		}
	}
	return false;
}

static bool machine_has_levels(const struct sim_levels *levels, const struct sim_machine *machine)
{
	u32 i;

	if (machine->semantics == SIM_GOAL && machine->os.sources)
		return false;
	if (machine->gap > 0 || machine->nic > 0 || machine->network ||
	    machine->nodes)
		return false;
	for (i = 0; i < levels->columns; i++) {
		const struct coll_op *op = column_op(levels, &levels->column[i]);

		if (op->kind == COLL_OP_SEND && op->bytes > machine->eager)
			return false;
	}
	return true;
}

/* ---- a run ---------------------------------------------------------------- */

static int run_init(struct levels_run *run, sim_time *finish)
{
	const struct sim_program *p = run->levels->program;
	u32 i;

	run->time = calloc(run->levels->columns + 1, sizeof(*run->time));
	run->users = malloc((run->levels->columns + 1) * sizeof(u32));
	run->spare = calloc(p->classes, sizeof(*run->spare));
	run->finish = finish ? finish : malloc(p->ranks * sizeof(sim_time));
	if (!run->time || !run->users || !run->spare || !run->finish)
		return -ENOMEM;
	for (i = 0; i < run->levels->columns; i++)
		run->users[i] = run->levels->column[i].users;
	for (i = 0; i < p->ranks; i++)
		run->finish[i] = machine_start(run->machine, i);
	run->phase = noise_phases(&run->machine->os, p->ranks);
	run->sends_show = run->machine->send || run->machine->semantics != SIM_EVENT;
	if (!cpu_matters(p, run->machine))
		return 0;
	run->cpu = malloc(p->ranks * sizeof(sim_time));
	run->ready = malloc(p->ranks * sizeof(sim_time));
	if (!run->cpu || !run->ready)
		return -ENOMEM;
	memcpy(run->cpu, run->finish, p->ranks * sizeof(sim_time));
	memcpy(run->ready, run->finish, p->ranks * sizeof(sim_time));
	return 0;
}

static void run_free(struct levels_run *run, const sim_time *finish)
{
	u32 i;

	for (i = 0; run->time && run->spare && i < run->levels->columns; i++)
		if (run->time[i])
			column_drop(run, i);
	for (i = 0; run->spare && i < run->levels->program->classes; i++)
		while (run->spare[i])
			free(column_new(run, i));
	free(run->time);
	free(run->users);
	free(run->spare);
	free(run->cpu);
	free(run->ready);
	free(run->phase);
	if (!finish)
		free(run->finish);
}

static void count_ops(const struct sim_program *p, struct sim_outcome *outcome)
{
	u32 c, i;

	for (c = 0; c < p->classes; c++)
		for (i = 0; i < p->class[c].schedule->ops; i++) {
			const u8 kind = coll_ops(p->class[c].schedule)[i].kind;
			const u32 members = p->class[c].members;

			outcome->messages += kind == COLL_OP_SEND ? members : 0;
			outcome->events += kind == COLL_OP_SEND	  ? members :
					   kind == COLL_OP_RECV	  ? 2 * (u64)members :
					   kind == COLL_OP_REDUCE ? members :
								    0;
		}
}

static void find_last(const struct levels_run *run, struct sim_outcome *outcome)
{
	u32 i;

	for (i = 0; i < run->levels->program->ranks; i++)
		if (run->finish[i] > outcome->finish) {
			outcome->finish = run->finish[i];
			outcome->last = i;
		}
}

int levels_run(const struct sim_levels *levels, const struct sim_machine *machine,
	       struct sim_outcome *outcome, sim_time *finish)
{
	struct levels_run run = { .levels = levels, .machine = machine };
	int error;
	u32 i;

	if (!machine_has_levels(levels, machine))
		return -EOPNOTSUPP;
	*outcome = (struct sim_outcome){ .path = SIM_LEVELS };
	error = run_init(&run, finish);
	for (i = 0; i < levels->columns && !error && !run.out_of_order && !run.too_late; i++)
		error = do_column(&run, levels->order[i]);
	if (!error && (run.out_of_order || run.too_late))
		error = run.out_of_order ? -EOPNOTSUPP : -EOVERFLOW;
	if (!error) {
		count_ops(levels->program, outcome);
		find_last(&run, outcome);
		error = machine_in_time(outcome->finish) ? 0 : -EOVERFLOW;
	}
	run_free(&run, finish);
	return error;
}
