// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "goal.h"

enum kind { SEND, RECV, CALC };
enum edge_kind { REQUIRES, IREQUIRES, MESSAGE };

struct op {
	enum kind kind;
	u32 rank, peer, tag;
	u64 size, start, arrival, done;
	u32 awaited;		/* edges to it that are not yet walked */
};

struct edge {
	u32 from, to;		/* ops */
	enum edge_kind kind;
};

struct program {
	struct op *op;
	struct edge *edge;
	u32 ops, edges, ranks;
	u32 ranks_read, first;	/* the rank being read: its first op */
	bool open;
	struct goal_outcome *outcome;
};

static bool goal_wrong(struct program *p, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(p->outcome->why, sizeof(p->outcome->why), format, arguments);
	va_end(arguments);
	return false;
}

static void *one_more(void *array, u32 count, size_t bytes)
{
	if (!(count & (count - 1)))
		array = realloc(array, (count ? 2 * (size_t)count : 1) * bytes);
	if (!array)
		abort();
	return array;
}

static void add_edge(struct program *p, u32 from, u32 to, enum edge_kind kind)
{
	p->edge = one_more(p->edge, p->edges, sizeof(*p->edge));
	p->edge[p->edges++] = (struct edge){ from, to, kind };
	p->op[to].awaited++;
}

/* ---- lines --------------------------------------------------------------- */

/* Whether the line is exactly that: no space, sign or leading zero more. */
static bool goal_says(const char *line, const char *format, ...)
{
	char wanted[128];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(wanted, sizeof(wanted), format, arguments);
	va_end(arguments);
	return !strcmp(line, wanted);
}

static bool add_op(struct program *p, u32 label, struct op op)
{
	if (label != p->ops - p->first)
		return goal_wrong(p, "label o%u is not the next one", label);
	if (op.kind != CALC && op.peer >= p->ranks)
		return goal_wrong(p, "there is no rank %u", op.peer);
	if (op.kind != CALC && !op.size)
		return goal_wrong(p, "a message of no bytes");
	if (op.kind != CALC && op.tag == ~0u)
		return goal_wrong(p, "the tag means any tag");
	op.rank = p->ranks_read - 1;
	p->op = one_more(p->op, p->ops, sizeof(*p->op));
	p->op[p->ops++] = op;
	return true;
}

static bool read_op(struct program *p, const char *line)
{
	unsigned long long size;
	u32 label, peer, tag;

	if (sscanf(line, "o%u: send %llub to %u tag %u", &label, &size, &peer, &tag) == 4 &&
	    goal_says(line, "o%u: send %llub to %u tag %u", label, size, peer, tag))
		return add_op(p, label, (struct op){ .kind = SEND, .size = size, .peer = peer,
						     .tag = tag });
	if (sscanf(line, "o%u: recv %llub from %u tag %u", &label, &size, &peer, &tag) == 4 &&
	    goal_says(line, "o%u: recv %llub from %u tag %u", label, size, peer, tag))
		return add_op(p, label, (struct op){ .kind = RECV, .size = size, .peer = peer,
						     .tag = tag });
	if (sscanf(line, "o%u: calc %llu", &label, &size) == 2 &&
	    goal_says(line, "o%u: calc %llu", label, size))
		return add_op(p, label, (struct op){ .kind = CALC, .size = size });
	return goal_wrong(p, "no op: %.60s", line);
}

static bool read_dependence(struct program *p, const char *line)
{
	enum edge_kind kind = REQUIRES;
	u32 to, from;

	if (sscanf(line, "o%u irequires o%u", &to, &from) == 2 &&
	    goal_says(line, "o%u irequires o%u", to, from))
		kind = IREQUIRES;
	else if (sscanf(line, "o%u requires o%u", &to, &from) != 2 ||
		 !goal_says(line, "o%u requires o%u", to, from))
		return goal_wrong(p, "no dependence: %.60s", line);
	if (to >= p->ops - p->first || from >= to)
		return goal_wrong(p, "o%u cannot depend on o%u", to, from);
	add_edge(p, p->first + from, p->first + to, kind);
	return true;
}

static bool read_line(struct program *p, const char *line)
{
	if (!p->ranks) {
		if (sscanf(line, "num_ranks %u", &p->ranks) == 1 && p->ranks &&
		    goal_says(line, "num_ranks %u", p->ranks))
			return true;
		return goal_wrong(p, "not the number of ranks: %.60s", line);
	}
	if (!p->open) {
		p->open = true;
		p->first = p->ops;
		return (p->ranks_read < p->ranks &&
			goal_says(line, "rank %u {", p->ranks_read++)) ||
		       goal_wrong(p, "not the next rank: %.60s", line);
	}
	if (!strcmp(line, "}")) {
		p->open = false;
		return p->ops > p->first || goal_wrong(p, "a rank without an op");
	}
	return strchr(line, ':') ? read_op(p, line) : read_dependence(p, line);
}

static bool read_lines(struct program *p, const char *text)
{
	u32 *number = &p->outcome->line;
	char line[128];

	for (*number = 1; *text; ++*number) {
		size_t length = strcspn(text, "\n");

		if (text[length] != '\n' || length >= sizeof(line))
			return goal_wrong(p, "not a whole line");
		memcpy(line, text, length);
		line[length] = '\0';
		text += length + 1;
		if (!read_line(p, line))
			return false;
	}
	*number = 0;
	return (!p->open && p->ranks && p->ranks_read == p->ranks) ||
	       goal_wrong(p, "it is not all");
}

/* ---- messages ------------------------------------------------------------ */

static int goal_compare(u32 a, u32 b)
{
	return (a > b) - (a < b);
}

/* Messages by source, destination and tag, the send first. */
static int compare_messages(const void *left, const void *right)
{
	const struct op *a = *(const struct op *const *)left;
	const struct op *b = *(const struct op *const *)right;
	int order = goal_compare(a->kind == SEND ? a->rank : a->peer,
				 b->kind == SEND ? b->rank : b->peer);

	if (!order)
		order = goal_compare(a->kind == SEND ? a->peer : a->rank,
				     b->kind == SEND ? b->peer : b->rank);
	if (!order)
		order = goal_compare(a->tag, b->tag);
	return order ? order : goal_compare(a->kind, b->kind);
}

/* The sorted messages are pairs of a send and its receive. */
static bool join_pairs(struct program *p, struct op *const *message, u32 count)
{
	u32 i;

	for (i = 0; i < count; i += 2) {
		const struct op *send = message[i], *recv = i + 1 < count ? message[i + 1] : NULL;

		if (send->kind != SEND || !recv || recv->kind != RECV ||
		    send->rank != recv->peer || send->peer != recv->rank || send->tag != recv->tag)
			return goal_wrong(p, "rank %u, peer %u, tag %u: no pair", send->rank,
					  send->peer, send->tag);
		if (send->size != recv->size)
			return goal_wrong(p, "rank %u, peer %u, tag %u: sizes differ", send->rank,
					  send->peer, send->tag);
		add_edge(p, send - p->op, recv - p->op, MESSAGE);
	}
	return true;
}

static bool join_messages(struct program *p)
{
	struct op **message = calloc(p->ops, sizeof(struct op *));
	u32 i, count = 0;
	bool fine;

	if (!message)
		abort();
	for (i = 0; i < p->ops; i++)
		if (p->op[i].kind != CALC)
			message[count++] = &p->op[i];
	qsort(message, count, sizeof(struct op *), compare_messages);
	fine = join_pairs(p, message, count);
	free(message);
	return fine;
}

/* ---- time ---------------------------------------------------------------- */

static void raise_to(u64 *time, u64 least)
{
	if (*time < least)
		*time = least;
}

static void finish_op(struct op *op, const struct goal_costs *costs)
{
	op->done = op->start;
	if (op->kind == SEND)
		op->done += costs->overhead;
	else if (op->kind == CALC)
		op->done += op->size;
	else
		raise_to(&op->done, op->arrival + costs->overhead + (op->size - 1) * costs->byte);
}

static void walk_edge(struct program *p, const struct edge *edge, const struct goal_costs *costs)
{
	const struct op *from = &p->op[edge->from];
	struct op *to = &p->op[edge->to];

	if (edge->kind == REQUIRES)
		raise_to(&to->start, from->done);
	else if (edge->kind == IREQUIRES)
		raise_to(&to->start, from->start);
	else
		to->arrival = from->done + costs->latency;
	to->awaited--;
}

static int compare_edges(const void *left, const void *right)
{
	const struct edge *a = left, *b = right;

	return goal_compare(a->from, b->from);
}

/* Sorted edges: the first that leaves op `from` or a later one. */
static u32 first_edge(const struct program *p, u32 from)
{
	u32 low = 0, high = p->edges;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (p->edge[middle].from < from)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Every op once all that it awaits is done; in a cycle none ever is. */
static bool goal_run(struct program *p, const struct goal_costs *costs)
{
	u32 *ready = calloc(p->ops, sizeof(*ready));
	u32 i, k, done, count = 0;

	if (!ready)
		abort();
	if (p->edges)
		qsort(p->edge, p->edges, sizeof(*p->edge), compare_edges);
	for (i = 0; i < p->ops; i++)
		if (!p->op[i].awaited)
			ready[count++] = i;
	for (done = 0; done < count; done++) {
		i = ready[done];
		finish_op(&p->op[i], costs);
		raise_to(&p->outcome->finish, p->op[i].done);
		for (k = first_edge(p, i); k < p->edges && p->edge[k].from == i; k++) {
			walk_edge(p, &p->edge[k], costs);
			if (!p->op[p->edge[k].to].awaited)
				ready[count++] = p->edge[k].to;
		}
	}
	free(ready);
	return done == p->ops || goal_wrong(p, "%u ops wait for each other", p->ops - done);
}

bool goal_runs(const char *text, const struct goal_costs *costs, struct goal_outcome *outcome)
{
	struct program p = { .outcome = outcome };
	bool fine;

	*outcome = (struct goal_outcome){ .finish = 0 };
	fine = read_lines(&p, text) && join_messages(&p) && goal_run(&p, costs);
	free(p.op);
	free(p.edge);
	return fine;
}
