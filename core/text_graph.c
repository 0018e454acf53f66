// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Schedules of several ranks as one graph: DOT to look at, GOAL to simulate.
 */
#include "text_parsed.h"

static bool waits_for_any(const struct coll_op *op)
{
	return op->flags & COLL_WAIT_ANY;
}

/* ---- DOT --------------------------------------------------------------- */

static const struct coll_schedule *schedule_of(const struct coll_schedule *const *s, u32 count,
					       u32 rank)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (s[i]->rank == rank)
			return s[i];
	return NULL;
}

/* The receive of that message, or COLL_NONE. */
static u32 find_recv(const struct coll_schedule *s, u32 rank, u32 slot)
{
	const struct coll_op *op = coll_ops(s);
	u32 i;

	for (i = 0; i < s->ops; i++)
		if (op[i].kind == COLL_OP_RECV && op[i].slot == slot &&
		    coll_op_rank(s, &op[i]) == rank)
			return i;
	return COLL_NONE;
}

static void dot_op(const struct coll_schedule *s, u32 index, FILE *to)
{
	const struct coll_op *op = &coll_ops(s)[index];
	u32 i;

	fprintf(to, "\t\tr%u_%u [label=\"%u ", s->rank, index, index);
	coll_text_print_op(s, index, to);
	fprintf(to, "\"%s];\n", op->flags & COLL_OPTIONAL ? " style=dashed" : "");
	for (i = 0; i < op->waits; i++)
		fprintf(to, "\t\tr%u_%u -> r%u_%u%s;\n", s->rank, coll_waits(s)[op->wait + i],
			s->rank, index, waits_for_any(op) ? " [style=dashed]" : "");
	if (op->unless != COLL_NONE)
		fprintf(to, "\t\tr%u_%u -> r%u_%u [style=dotted arrowhead=tee];\n", s->rank,
			op->unless, s->rank, index);
}

static void dot_rank(const struct coll_schedule *s, FILE *to)
{
	u32 i;

	fprintf(to, "\tsubgraph cluster_%u {\n\t\tlabel=\"rank %u\";\n", s->rank, s->rank);
	for (i = 0; i < s->ops; i++)
		dot_op(s, i, to);
	fprintf(to, "\t}\n");
}

static void dot_messages(const struct coll_schedule *const *all, u32 count,
			 const struct coll_schedule *s, FILE *to)
{
	const struct coll_op *op = coll_ops(s);
	u32 i;

	for (i = 0; i < s->ops; i++) {
		const struct coll_schedule *other = NULL;
		u32 recv = COLL_NONE;

		if (op[i].kind == COLL_OP_SEND)
			other = schedule_of(all, count, coll_op_rank(s, &op[i]));
		if (other)
			recv = find_recv(other, s->rank, op[i].slot);
		if (recv != COLL_NONE)
			fprintf(to, "\tr%u_%u -> r%u_%u [color=blue constraint=false];\n",
				s->rank, i, other->rank, recv);
	}
}

int coll_dot_print(const struct coll_schedule *const *s, u32 count, FILE *to)
{
	u32 i;

	fprintf(to, "digraph schedule {\n\tnode [shape=box fontname=monospace];\n");
	for (i = 0; i < count; i++)
		dot_rank(s[i], to);
	for (i = 0; i < count; i++)
		dot_messages(s, count, s[i], to);
	fprintf(to, "}\n");
	return ferror(to) ? -EIO : 0;
}

/* ---- GOAL -------------------------------------------------------------- */

/* What LogGOPSim's 64-bit sums can take without overflowing: about 146 years. */
#define GOAL_NS_MAX ((double)(1ULL << 62))

static int goal_refuses(const struct coll_schedule *s, double reduce_ns,
			struct coll_text_error *error)
{
	const struct coll_op *op = coll_ops(s);
	u32 i;

	for (i = 0; i < s->ops; i++) {
		const char *reason = NULL;

		if (waits_for_any(&op[i]))
			reason = "waits for any of several ops, GOAL only knows all";
		else if (op[i].flags & COLL_OPTIONAL)
			reason = "is optional, GOAL has no such op";
		if (reason) {
			coll_parse_error(error, "rank %u, op %u %s", s->rank, i, reason);
			return -EOPNOTSUPP;
		}
		if (op[i].kind == COLL_OP_REDUCE && op[i].bytes * reduce_ns > GOAL_NS_MAX)
			return coll_parse_error(
				error, "rank %u, op %u takes too long to be a number", s->rank, i);
	}
	return 0;
}

static u64 goal_message_bytes(u64 bytes)
{
	return bytes ? bytes : 1;
}

static void goal_op(const struct coll_schedule *s, u32 index, double reduce_ns, FILE *to)
{
	const struct coll_op *op = &coll_ops(s)[index];
	const bool send = op->kind == COLL_OP_SEND;

	fprintf(to, "o%u: ", index);
	if (send || op->kind == COLL_OP_RECV)
		fprintf(to, "%s %llub %s %u tag %u\n", send ? "send" : "recv",
			(unsigned long long)goal_message_bytes(op->bytes), send ? "to" : "from",
			coll_op_rank(s, op), op->slot);
	else if (op->kind == COLL_OP_REDUCE)
		fprintf(to, "calc %llu\n", (unsigned long long)(op->bytes * reduce_ns + 0.5));
	else
		fprintf(to, "calc 0\n");
}

static void goal_waits(const struct coll_schedule *s, u32 index, FILE *to)
{
	const struct coll_op *op = &coll_ops(s)[index];
	u32 i;

	for (i = 0; i < op->waits; i++)
		fprintf(to, "o%u requires o%u\n", index, coll_waits(s)[op->wait + i]);
}

static bool waits_for(const struct coll_schedule *s, const struct coll_op *op, u32 index)
{
	u32 i;

	for (i = 0; i < op->waits; i++)
		if (coll_waits(s)[op->wait + i] == index)
			return true;
	return false;
}

/* Whether `later` starts after `earlier` has in any case. */
static bool starts_after(const struct coll_schedule *s, const struct coll_op *later,
			 const struct coll_op *earlier)
{
	u32 i;

	for (i = 0; i < earlier->waits; i++)
		if (!waits_for(s, later, coll_waits(s)[earlier->wait + i]))
			return false;
	return true;
}

/*
 * Receives from one source are posted in the order of their slots, so that a
 * simulator that ignores tags or sorts its free ops badly matches them rightly
 * all the same. But only where that delays nothing: waiting for an earlier
 * receive that waits for more could deadlock.
 */
static void goal_chain_recv(const struct coll_schedule *s, u32 index, FILE *to)
{
	const struct coll_op *ops = coll_ops(s), *op = &ops[index];
	u32 before = index;

	if (op->kind != COLL_OP_RECV || !op->slot)
		return;
	while (ops[--before].kind != COLL_OP_RECV || ops[before].peer != op->peer)
		;	/* slot > 0: there is one */
	if (starts_after(s, op, &ops[before]))
		fprintf(to, "o%u irequires o%u\n", index, before);
}

static void goal_rank(const struct coll_schedule *s, double reduce_ns, FILE *to)
{
	u32 i;

	fprintf(to, "rank %u {\n", s->rank);
	if (!s->ops)
		fprintf(to, "o0: calc 0\n");
	for (i = 0; i < s->ops; i++)
		goal_op(s, i, reduce_ns, to);
	for (i = 0; i < s->ops; i++) {
		goal_waits(s, i, to);
		goal_chain_recv(s, i, to);
	}
	fprintf(to, "}\n");
}

int coll_goal_print(const struct coll_schedule *const *s, u32 count, double reduce_ns, FILE *to,
		    struct coll_text_error *error)
{
	int status;
	u32 i;

	*error = (struct coll_text_error){ .line = 0 };
	if (!(reduce_ns >= 0 && reduce_ns <= GOAL_NS_MAX))
		return coll_parse_error(error, "a byte's reduction takes no number of nanoseconds");
	for (i = 0; i < count; i++) {
		if (s[i]->rank != i || s[i]->ranks != count)
			return coll_parse_error(error,
						"GOAL needs every rank's schedule, in order");
		status = goal_refuses(s[i], reduce_ns, error);
		if (status)
			return status;
	}
	fprintf(to, "num_ranks %u\n", count);
	for (i = 0; i < count; i++)
		goal_rank(s[i], reduce_ns, to);
	return ferror(to) ? -EIO : 0;
}
