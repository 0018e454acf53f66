// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "core/names.h"
#include "log.h"
#include "memory.h"

static const struct sim_class *class_of(const struct sim_log *log, u32 rank)
{
	return &log->program->class[program_class_of(log->program, rank)];
}

static const struct coll_schedule *schedule_of(const struct sim_log *log, u32 rank)
{
	return class_of(log, rank)->schedule;
}

static u32 most_ops(const struct sim_program *program)
{
	u32 most = 0, c;

	for (c = 0; c < program->classes; c++)
		if (program->class[c].schedule->ops > most)
			most = program->class[c].schedule->ops;
	return most;
}

int log_new(const struct sim_program *program, const bool *watched, struct sim_log **log)
{
	struct sim_log *l = calloc(1, sizeof(*l));
	u64 ops = watched ? most_ops(program) : 0, i;
	u32 rank;

	if (!l)
		return -ENOMEM;
	l->program = program;
	l->first = calloc(program->ranks, sizeof(*l->first));
	for (rank = 0; rank < program->ranks && l->first; rank++) {
		if (watched && !watched[rank])
			continue;
		l->first[rank] = ops;
		ops += schedule_of(l, rank)->ops;
	}
	if (ops < memory_usable() / sizeof(*l->span))
		l->span = malloc((ops + 1) * sizeof(*l->span));
	if (!l->first || !l->span) {
		sim_log_free(l);
		return -ENOMEM;
	}
	for (i = 0; i < ops; i++)
		l->span[i] = (struct sim_span){ SIM_NEVER, SIM_NEVER, 0, SIM_NEVER, SIM_NEVER, 0 };
	*log = l;
	return 0;
}

void sim_log_free(struct sim_log *log)
{
	if (!log)
		return;
	free(log->first);
	free(log->span);
	free(log);
}

/* ---- the critical path ------------------------------------------------------------- */

/* The wait that completed last, or COLL_NONE; *ready is the time. */
static u32 last_wait(const struct sim_log *log, u32 rank, u32 index, sim_time *ready)
{
	const struct coll_schedule *s = schedule_of(log, rank);
	const struct coll_op *op = &coll_ops(s)[index];
	u32 found = COLL_NONE, i;

	*ready = SIM_NEVER;
	for (i = 0; i < op->waits; i++) {
		const u32 wait = coll_waits(s)[op->wait + i];
		const sim_time end = log_span(log, rank, wait)->end;

		if (end == SIM_NEVER)
			continue;
		if (found == COLL_NONE ||
		    (op->flags & COLL_WAIT_ANY ? end < *ready : end > *ready)) {
			found = wait;
			*ready = end;
		}
	}
	return found;
}

/* The op that ended last on the last rank. */
static u32 last_op(const struct sim_log *log, u32 rank)
{
	u32 found = COLL_NONE, i;

	for (i = 0; i < schedule_of(log, rank)->ops; i++) {
		const sim_time end = log_span(log, rank, i)->end;

		if (end <= log->outcome.finish && (found == COLL_NONE ||
						   end >= log_span(log, rank, found)->end))
			found = i;
	}
	return found;
}

struct log_end {
	sim_time end;
	u32 op;
};

/* Of one rank; NULL: not asked for yet. */
struct log_ends {
	struct log_end *list;
	u32 count;
};

/* The path from the end backwards: op `op` of `rank` took the time until `time`. */
struct log_step_back {
	const struct sim_log *log;
	u32 rank, op;		/* COLL_NONE: the beginning */
	sim_time time;
	struct log_ends *ends;	/* per rank */
	struct sim_stage *stage;
	u32 count, capacity;
	int error;
};

static int ends_compare(const void *left, const void *right)
{
	const struct log_end *a = left, *b = right;

	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return a->op < b->op ? -1 : 1;
}

/* The ops of this rank that took CPU time, by their ends: sorted when the path first asks. */
static const struct log_ends *ends_of(struct log_step_back *back, u32 rank)
{
	const u32 ops = schedule_of(back->log, rank)->ops;
	struct log_ends *ends = &back->ends[rank];
	u32 i;

	if (ends->list)
		return ends;
	ends->list = malloc((ops + 1) * sizeof(*ends->list));
	if (!ends->list) {
		back->error = -ENOMEM;
		return NULL;
	}
	for (i = 0; i < ops; i++)
		if (log_span(back->log, rank, i)->work)
			ends->list[ends->count++] = (struct log_end){ log_span(back->log, rank, i)->end, i };
	qsort(ends->list, ends->count, sizeof(*ends->list), ends_compare);
	return ends;
}

/* The op of this rank that had the CPU until `time`; COLL_NONE: there is none. */
static u32 cpu_until(struct log_step_back *back, u32 rank, u32 op, sim_time time)
{
	const struct log_ends *ends = ends_of(back, rank);
	u32 from = 0, until = ends ? ends->count : 0;

	while (from < until) {
		const u32 middle = from + (until - from) / 2;

		if (ends->list[middle].end < time)
			from = middle + 1;
		else
			until = middle;
	}
	for (; ends && from < ends->count && ends->list[from].end == time; from++)
		if (ends->list[from].op != op)
			return ends->list[from].op;
	return COLL_NONE;
}

/* A stage from `begin` on; `alone` is its time without noise and congestion. */
static void add_stage(struct log_step_back *back, u32 from, sim_time begin, sim_time alone)
{
	const sim_time length = back->time - begin;
	u32 capacity = back->capacity ? 2 * back->capacity : 64;
	void *more;

	if (length <= 0)
		return;
	if (back->count == back->capacity) {
		more = realloc(back->stage, capacity * sizeof(*back->stage));
		if (!more) {
			back->error = -ENOMEM;
			return;
		}
		back->stage = more;
		back->capacity = capacity;
	}
	back->stage[back->count++] = (struct sim_stage){
		.rank = back->rank,
		.op = back->op,
		.from = from,
		.begin = begin,
		.end = back->time,
		.late = length > alone ? length - alone : 0,
	};
	back->time = begin;
}

static void step_back(struct log_step_back *back)
{
	const struct sim_log *log = back->log;
	const struct sim_class *class = class_of(log, back->rank);
	const struct sim_span *span = log_span(log, back->rank, back->op);
	const bool recv = coll_ops(class->schedule)[back->op].kind == COLL_OP_RECV;
	sim_time ready;
	u32 wait = last_wait(log, back->rank, back->op, &ready), holder = COLL_NONE, from;

	if (wait != COLL_NONE && ready > span->end) {	/* its message was received before */
		back->op = wait;
		return;
	}
	add_stage(back, back->rank, span->begin, span->work);
	if (wait == COLL_NONE)
		ready = INT64_MIN;
	if (span->work && span->begin > ready && (!recv || span->begin > span->there))
		holder = cpu_until(back, back->rank, back->op, span->begin);
	if (holder != COLL_NONE) {
		back->op = holder;
	} else if (recv && span->there >= ready) {
		from = program_peer_rank(log->program, &class->peer[back->op], back->rank);
		add_stage(back, from, span->left, span->way);
		back->op = program_match_op(log->program, class, back->op, back->rank);
		back->rank = from;
	} else {
		back->op = wait;
	}
}

int sim_log_path(const struct sim_log *log, struct sim_stage **path, u32 *count)
{
	struct log_step_back back = {
		.log = log,
		.rank = log->outcome.last,
		.op = last_op(log, log->outcome.last),
		.time = log->outcome.finish,
		.ends = calloc(log->program->ranks, sizeof(*back.ends)),
	};
	u32 i;

	if (!back.ends)
		return -ENOMEM;
	while (back.op != COLL_NONE && !back.error)
		step_back(&back);
	for (i = 0; i < log->program->ranks; i++)
		free(back.ends[i].list);
	free(back.ends);
	if (back.error) {
		free(back.stage);
		return back.error;
	}
	for (i = 0; i < back.count / 2; i++) {
		struct sim_stage swap = back.stage[i];

		back.stage[i] = back.stage[back.count - 1 - i];
		back.stage[back.count - 1 - i] = swap;
	}
	*path = back.stage;
	*count = back.count;
	return 0;
}

/* ---- shares ---------------------------------------------------------------------- */

/* When the rank was done: its run completed, and all started sends done. */
static sim_time rank_done(const struct sim_log *log, u32 rank)
{
	const struct coll_schedule *s = schedule_of(log, rank);
	sim_time done = 0, sent = 0;
	u32 i;

	for (i = 0; i < s->ops; i++) {
		const struct sim_span *span = log_span(log, rank, i);

		if (span->end != SIM_NEVER && !(coll_ops(s)[i].flags & COLL_OPTIONAL) &&
		    span->end > done)
			done = span->end;
	}
	for (i = 0; i < s->ops; i++) {
		const struct sim_span *span = log_span(log, rank, i);

		if (coll_ops(s)[i].kind == COLL_OP_SEND && span->begin <= done &&
		    span->end != SIM_NEVER && span->end > sent)
			sent = span->end;
	}
	return sent > done ? sent : done;
}

struct sim_share sim_log_share(const struct sim_log *log, u32 rank)
{
	const struct coll_schedule *s = schedule_of(log, rank);
	struct sim_share share = { .done = rank_done(log, rank) };
	u32 i;

	for (i = 0; i < s->ops; i++) {
		const struct coll_op *op = &coll_ops(s)[i];
		const struct sim_span *span = log_span(log, rank, i);

		if (!span->work || span->end == SIM_NEVER || span->end > share.done)
			continue;
		if (op->kind == COLL_OP_REDUCE && op->reduction == COLL_USER_REDUCTION)
			share.computing += span->work;
		else
			share.working += span->work;
		if (op->kind != COLL_OP_SEND)
			share.late += span->end - span->begin - span->work;
	}
	return share;
}

/* ---- timelines -------------------------------------------------------------------- */

static double log_microseconds(sim_time time)
{
	return time / 1e6;
}

static void trace_op(const struct sim_log *log, u32 rank, u32 index, FILE *to)
{
	const struct coll_op *op = &coll_ops(schedule_of(log, rank))[index];
	const struct sim_span *span = log_span(log, rank, index);

	fprintf(to,
		",\n{\"ph\":\"X\",\"pid\":0,\"tid\":%u,\"ts\":%.6f,\"dur\":%.6f,\"name\":\"%s %u\","
		"\"args\":{\"bytes\":%llu,\"late_us\":%.6f}}",
		rank, log_microseconds(span->begin), log_microseconds(span->end - span->begin),
		coll_op_kind_name(op->kind), index, (unsigned long long)op->bytes,
		log_microseconds(span->end - span->begin - span->work));
}

/* An arrow from the send to the receive. */
static void trace_message(const struct sim_log *log, u32 rank, u32 op, FILE *to)
{
	const struct sim_span *span = log_span(log, rank, op);
	const u32 from = program_peer_rank(log->program, &class_of(log, rank)->peer[op], rank);
	const unsigned long long name = log->first[rank] + op;

	fprintf(to,
		",\n{\"ph\":\"s\",\"pid\":0,\"tid\":%u,\"ts\":%.6f,\"id\":%llu,\"cat\":\"message\","
		"\"name\":\"message\"}",
		from, log_microseconds(span->left), name);
	fprintf(to,
		",\n{\"ph\":\"f\",\"bp\":\"e\",\"pid\":0,\"tid\":%u,\"ts\":%.6f,\"id\":%llu,"
		"\"cat\":\"message\",\"name\":\"message\"}",
		rank, log_microseconds(span->there), name);
}

int sim_log_trace(const struct sim_log *log, FILE *to)
{
	u32 rank, op;

	fprintf(to, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	fprintf(to, "{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\","
		    "\"args\":{\"name\":\"coll sim\"}}");
	for (rank = 0; rank < log->program->ranks; rank++) {
		fprintf(to,
			",\n{\"ph\":\"M\",\"pid\":0,\"tid\":%u,\"name\":\"thread_name\","
			"\"args\":{\"name\":\"rank %u\"}}",
			rank, rank);
		for (op = 0; op < schedule_of(log, rank)->ops; op++) {
			const struct sim_span *span = log_span(log, rank, op);

			if (span->end != SIM_NEVER && span->begin != SIM_NEVER)
				trace_op(log, rank, op, to);
			if (span->there != SIM_NEVER)
				trace_message(log, rank, op, to);
		}
	}
	fprintf(to, "\n]}\n");
	return ferror(to) ? -EIO : 0;
}
