// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "goal.h"
#include "tape.h"

enum goal_kind { GOAL_SEND, GOAL_RECV, GOAL_CALC };

/* An op as the file has it. */
struct goal_op {
	enum goal_kind kind;
	u32 line, peer, tag;
	u64 size;
	u32 need;		/* the first of its requirements, + 1; chained */
	u32 place;		/* in the tape; COLL_NONE: not yet */
	bool begun;		/* its requirements are being placed */
};

struct goal_need {
	u32 op;
	u32 next;
	bool start_only;	/* irequires */
};

/* A key: a label, or (empty text) all messages of a tag with a peer. */
struct goal_name {
	const char *text;
	u32 length;
	u32 peer, tag, kind;
};

/* of a label: its op; else the number of messages so far */
struct goal_entry {
	struct goal_name name;
	bool used;
	u32 value;
};

struct goal {
	const char *name, *at, *end;
	u32 line;
	char *why;
	size_t why_bytes;
	u32 ranks;		/* according to the file */
	struct sim_tape *tape;
	u32 tapes, tape_room;
	/* the current rank */
	struct goal_op *op;
	struct goal_need *need;
	struct goal_entry *entry;	/* a hash, open addressing */
	u32 *stack;
	u32 ops, op_capacity, needs, need_room, entries, slots, depth, stack_room;
};

static int __attribute__((format(printf, 2, 3))) goal_wrong(struct goal *g, const char *format, ...)
{
	char text[160];
	va_list values;

	va_start(values, format);
	vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	snprintf(g->why, g->why_bytes, "%s:%u: %s", g->name, g->line, text);
	return -EINVAL;
}

static int no_memory(struct goal *g)
{
	snprintf(g->why, g->why_bytes, "out of memory");
	return -ENOMEM;
}

/* Makes *array at least count + 1 long. */
static bool goal_grow(void **array, u32 *capacity, u32 count, size_t piece)
{
	u32 wanted = *capacity ? 2 * *capacity : 64;
	void *more;

	if (count < *capacity)
		return true;
	more = realloc(*array, wanted * piece);
	if (!more)
		return false;
	*array = more;
	*capacity = wanted;
	return true;
}

/* ---- tokens ----------------------------------------------------------------------- */

/* Skips blanks and comments; false: a comment without an end. */
static bool skip_blank(struct goal *g)
{
	while (g->at < g->end) {
		if (g->end - g->at > 1 && g->at[0] == '/' && g->at[1] == '/') {
			while (g->at < g->end && *g->at != '\n')
				g->at++;
		} else if (g->end - g->at > 1 && g->at[0] == '/' && g->at[1] == '*') {
			const char *stop = memmem(g->at + 2, g->end - g->at - 2, "*/", 2);

			if (!stop)
				return false;
			for (; g->at < stop + 2; g->at++)
				g->line += *g->at == '\n';
		} else if (isspace((unsigned char)*g->at)) {
			g->line += *g->at++ == '\n';
		} else {
			break;
		}
	}
	return true;
}

/* The next word, number or mark; its length, 0 at the end of the file. */
static u32 next_token(struct goal *g, const char **token)
{
	const char *at;

	if (!skip_blank(g))
		g->at = g->end;
	*token = at = g->at;
	while (at < g->end && (isalnum((unsigned char)*at) || *at == '_' ||
			       (*at == '-' && at == g->at)) && at - g->at < 4096)
		at++;
	if (at == g->at && at < g->end)
		at++;
	g->at = at;
	return at - *token;
}

static u32 peek_token(struct goal *g, const char **token)
{
	struct goal before;
	u32 length;

	skip_blank(g);
	before = *g;
	length = next_token(g, token);
	g->at = before.at;
	g->line = before.line;
	return length;
}

static bool goal_is(const char *token, u32 length, const char *word)
{
	return strlen(word) == length && !memcmp(token, word, length);
}

static int goal_expect(struct goal *g, const char *word)
{
	const char *token;
	u32 length = next_token(g, &token);

	if (goal_is(token, length, word))
		return 0;
	return goal_wrong(g, "'%s' expected, not '%.*s'", word, (int)length, token);
}

/* A number of at most `most`, perhaps followed by this letter. */
static int goal_number(struct goal *g, const char *what, u64 most, char letter, u64 *value)
{
	const char *token;
	const u32 length = next_token(g, &token);
	u32 i;

	*value = 0;
	for (i = 0; i < length && isdigit((unsigned char)token[i]); i++) {
		*value = *value * 10 + (token[i] - '0');
		if (*value > most)
			return goal_wrong(g, "%s '%.*s': at most %llu", what, (int)length, token,
					  (unsigned long long)most);
	}
	if (i && (i == length || (i + 1 == length && letter && token[i] == letter)))
		return 0;
	if (goal_is(token, length, "-1"))
		return goal_wrong(g, "%s -1: a receive from any rank, or with any tag, cannot be "
				  "replayed", what);
	return goal_wrong(g, "%s '%.*s' is not a number", what, (int)length, token);
}

/* ---- labels and messages -------------------------------------------------------------- */

static u32 hash_name(const struct goal_name *name)
{
	u32 hash = 2166136261u, i;

	for (i = 0; i < name->length; i++)
		hash = (hash ^ (unsigned char)name->text[i]) * 16777619u;
	hash ^= name->peer * 2654435761u ^ name->tag * 2246822519u ^ name->kind;
	return hash ^ hash >> 15;
}

static bool same_name(const struct goal_name *a, const struct goal_name *b)
{
	return a->length == b->length && a->peer == b->peer && a->tag == b->tag &&
	       a->kind == b->kind && !memcmp(a->text, b->text, a->length);
}

/* The key's entry, or the free one for it. */
static struct goal_entry *find_entry(const struct goal *g, const struct goal_name *name)
{
	u32 at = hash_name(name) & (g->slots - 1);

	while (g->entry[at].used && !same_name(&g->entry[at].name, name))
		at = (at + 1) & (g->slots - 1);
	return &g->entry[at];
}

static bool entries_grow(struct goal *g)
{
	const u32 old_slots = g->slots;
	struct goal_entry *old = g->entry;
	u32 i;

	g->slots = old_slots ? 2 * old_slots : 64;
	g->entry = calloc(g->slots, sizeof(*g->entry));
	for (i = 0; i < old_slots && g->entry; i++)
		if (old[i].used)
			*find_entry(g, &old[i].name) = old[i];
	free(old);
	return g->entry;
}

/* The key's entry, or a new one: then *is_new. NULL: no memory. */
static struct goal_entry *add_entry(struct goal *g, const struct goal_name *name, bool *is_new)
{
	struct goal_entry *entry;

	if (2 * (g->entries + 1) > g->slots && !entries_grow(g))
		return NULL;
	entry = find_entry(g, name);
	*is_new = !entry->used;
	if (*is_new) {
		*entry = (struct goal_entry){ *name, true, 0 };
		g->entries++;
	}
	return entry;
}

static int add_label(struct goal *g, const char *text, u32 length, u32 op)
{
	bool is_new;
	struct goal_entry *entry =
		add_entry(g, &(struct goal_name){ text, length, 0, 0, 0 }, &is_new);

	if (!entry)
		return no_memory(g);
	if (!is_new)
		return goal_wrong(g, "label '%.*s' is defined twice", (int)length, text);
	entry->value = op;
	return 0;
}

/* The key of a message: its tag, and its number among those with that tag. */
static int message_key(struct goal *g, const struct goal_op *op, u64 *key)
{
	const struct goal_name name = { "", 0, op->peer, op->tag, op->kind };
	bool is_new;
	struct goal_entry *entry = add_entry(g, &name, &is_new);

	if (!entry)
		return no_memory(g);
	*key = (u64)op->tag << 32 | entry->value++;
	return 0;
}

/* ---- lines ------------------------------------------------------------------------- */

/* "tag T", "cpu C", "nic N" after an op. */
static int read_rest(struct goal *g, struct goal_op *op)
{
	const char *token;
	u32 length;
	u64 value;
	int error;

	for (;;) {
		length = peek_token(g, &token);
		if (goal_is(token, length, "tag") && op->kind != GOAL_CALC) {
			next_token(g, &token);
			error = goal_number(g, "tag", COLL_NONE, 0, &value);
			op->tag = value;
		} else if (goal_is(token, length, "cpu")) {
			next_token(g, &token);
			error = goal_number(g, "cpu", 255, 0, &value);
			if (!error && value)
				error = goal_wrong(g, "cpu %u: a rank has one CPU here, number 0",
						   (u32)value);
		} else if (goal_is(token, length, "nic")) {
			next_token(g, &token);
			error = goal_number(g, "nic", 255, 0, &value);
		} else {
			return 0;
		}
		if (error)
			return error;
	}
}

static int read_op(struct goal *g, enum goal_kind kind)
{
	struct goal_op op = { .kind = kind, .line = g->line, .place = COLL_NONE };
	const bool message = kind != GOAL_CALC;
	u64 peer = 0;
	int error = goal_number(g, message ? "size" : "calc", COLL_BYTES_MAX, message ? 'b' : 0,
				&op.size);

	if (!error && message)
		error = goal_expect(g, kind == GOAL_SEND ? "to" : "from");
	if (!error && message)
		error = goal_number(g, "rank", g->ranks - 1, 0, &peer);
	if (!error && message && peer == g->tapes)
		error = goal_wrong(g, "rank %u sends a message to itself", g->tapes);
	op.peer = peer;
	if (!error)
		error = read_rest(g, &op);
	if (error)
		return error;
	if (g->ops == COLL_OPS_MAX)
		return goal_wrong(g, "more ops than a schedule can have");
	if (!goal_grow((void **)&g->op, &g->op_capacity, g->ops, sizeof(op)))
		return no_memory(g);
	g->op[g->ops++] = op;
	return 0;
}

static int find_label(struct goal *g, const char *text, u32 length, u32 *op)
{
	const struct goal_name name = { text, length, 0, 0, 0 };
	const struct goal_entry *entry = g->entries ? find_entry(g, &name) : NULL;

	if (!entry || !entry->used)
		return goal_wrong(g, "op '%.*s' is not defined above", (int)length, text);
	*op = entry->value;
	return 0;
}

static int read_need(struct goal *g, const char *text, u32 length, bool start_only)
{
	struct goal_need need = { .start_only = start_only };
	const char *other;
	u32 other_length, op = 0;
	int error = find_label(g, text, length, &op);

	other_length = next_token(g, &other);
	if (!error)
		error = find_label(g, other, other_length, &need.op);
	if (error)
		return error;
	if (g->needs == COLL_WAITS_MAX)
		return goal_wrong(g, "more waits than a schedule can have");
	if (!goal_grow((void **)&g->need, &g->need_room, g->needs, sizeof(need)))
		return no_memory(g);
	need.next = g->op[op].need;
	g->need[g->needs++] = need;
	g->op[op].need = g->needs;
	return 0;
}

static bool read_kind(const char *token, u32 length, enum goal_kind *kind)
{
	*kind = goal_is(token, length, "send") ? GOAL_SEND :
		goal_is(token, length, "recv") ? GOAL_RECV : GOAL_CALC;
	return *kind != GOAL_CALC || goal_is(token, length, "calc");
}

/* "LABEL: OP", "OP", or "LABEL requires LABEL". */
static int read_line(struct goal *g, const char *token, u32 length)
{
	const char *next;
	u32 next_length;
	enum goal_kind kind;
	int error;

	if (read_kind(token, length, &kind))
		return read_op(g, kind);
	if (!isalpha((unsigned char)*token))
		return goal_wrong(g, "'%.*s' is neither an op nor a label", (int)length, token);
	next_length = next_token(g, &next);
	if (goal_is(next, next_length, "requires") || goal_is(next, next_length, "irequires"))
		return read_need(g, token, length, *next == 'i');
	if (!goal_is(next, next_length, ":"))
		return goal_wrong(g, "after '%.*s': ':', requires or irequires expected",
				  (int)length, token);
	error = add_label(g, token, length, g->ops);
	if (error)
		return error;
	length = next_token(g, &token);
	return read_kind(token, length, &kind) ?
		       read_op(g, kind) :
		       goal_wrong(g, "send, recv or calc expected, not '%.*s'", (int)length, token);
}

/* ---- an order ------------------------------------------------------------------------ */

/* Passes an op's waits to the tape. All of them have been placed. */
static void place_waits(const struct goal *g, struct sim_tape *t, const struct goal_op *op)
{
	u32 i, k;

	for (i = op->need; i; i = g->need[i - 1].next) {
		const u32 place = g->op[g->need[i - 1].op].place;

		if (!g->need[i - 1].start_only)
			tape_after(t, place);
		for (k = 0; g->need[i - 1].start_only && k < t->op[place].waits && !t->error; k++)
			tape_after(t, t->wait[t->op[place].wait + k]);
	}
}

static int place_op(struct goal *g, struct sim_tape *t, struct goal_op *op)
{
	u64 key = 0;
	int error = 0;

	t->line = op->line;
	place_waits(g, t, op);
	if (op->kind != GOAL_CALC)
		error = message_key(g, op, &key);
	if (error)
		return error;
	op->place = op->kind == GOAL_SEND ? tape_send(t, op->peer, op->size, key) :
		    op->kind == GOAL_RECV ? tape_recv(t, op->peer, op->size, key) :
					    tape_compute(t, op->size);
	return t->error;
}

static int goal_push(struct goal *g, u32 op)
{
	if (!goal_grow((void **)&g->stack, &g->stack_room, g->depth, sizeof(*g->stack)))
		return no_memory(g);
	g->stack[g->depth++] = op;
	return 0;
}

/* Places an op's requirements before it; else in the order of the file. */
static int place_from(struct goal *g, struct sim_tape *t, u32 first)
{
	int error = goal_push(g, first);
	u32 i;

	while (!error && g->depth) {
		const u32 top = g->stack[g->depth - 1];
		const u32 depth = g->depth;
		struct goal_op *op = &g->op[top];

		for (i = op->place == COLL_NONE ? op->need : 0; i && !error;
		     i = g->need[i - 1].next) {
			const struct goal_op *other = &g->op[g->need[i - 1].op];

			if (other->place != COLL_NONE)
				continue;
			if (other->begun || other == op) {
				g->line = op->line;
				error = goal_wrong(g, "this op requires itself, through others");
			} else {
				error = goal_push(g, g->need[i - 1].op);
			}
		}
		op->begun = true;
		if (error || g->depth > depth)
			continue;
		g->depth--;
		if (op->place == COLL_NONE)
			error = place_op(g, t, op);
	}
	return error;
}

/* ---- ranks ----------------------------------------------------------------------------- */

static void rank_begin(struct goal *g)
{
	g->ops = g->needs = g->entries = g->depth = 0;
	if (g->entry)
		memset(g->entry, 0, g->slots * sizeof(*g->entry));
}

static int read_rank(struct goal *g)
{
	struct sim_tape *t;
	const char *token;
	u32 length, i;
	u64 rank;
	int error = goal_expect(g, "rank");

	if (!error)
		error = goal_number(g, "rank", g->ranks - 1, 0, &rank);
	if (!error && rank != g->tapes)
		error = goal_wrong(g, "rank %llu; valid: rank %u, the next one",
				   (unsigned long long)rank, g->tapes);
	if (!error)
		error = goal_expect(g, "{");
	rank_begin(g);
	while (!error) {
		length = next_token(g, &token);
		if (goal_is(token, length, "}"))
			break;
		error = length ? read_line(g, token, length) :
				 goal_wrong(g, "the file ends inside rank %u", g->tapes);
	}
	if (error)
		return error;
	if (!goal_grow((void **)&g->tape, &g->tape_room, g->tapes, sizeof(*t)))
		return no_memory(g);
	t = &g->tape[g->tapes];
	*t = (struct sim_tape){ .name = g->name, .rank = g->tapes, .line = g->line };
	g->tapes++;
	for (i = 0; i < g->ops && !error; i++)
		error = place_from(g, t, i);
	return error == t->error ? 0 : error;	/* the first error is reported */
}

static int read_all(struct goal *g)
{
	const char *token;
	u64 ranks = 0;
	int error = goal_expect(g, "num_ranks");

	if (!error)
		error = goal_number(g, "num_ranks", COLL_RANKS_MAX, 0, &ranks);
	if (!error && !ranks)
		error = goal_wrong(g, "num_ranks 0; valid: at least 1");
	g->ranks = ranks;
	while (!error && g->tapes < g->ranks)
		error = read_rank(g);
	if (!error && next_token(g, &token))
		error = goal_wrong(g, "text after the last rank");
	return error;
}

int goal_read(const char *name, const char *text, size_t bytes, struct coll_schedule ***schedule,
	      u32 *ranks, char *why, size_t why_bytes)
{
	struct goal g = { .name = name, .at = text, .end = text + bytes, .line = 1, .why = why,
			  .why_bytes = why_bytes };
	int error = read_all(&g);
	u32 i;

	*schedule = NULL;
	if (!error) {
		*ranks = g.tapes;
		*schedule = malloc(g.tapes * sizeof(**schedule));
		error = *schedule ? tapes_finish(g.tape, g.tapes, *schedule, why, why_bytes) :
				    no_memory(&g);
	}
	if (error) {
		free(*schedule);
		*schedule = NULL;
	}
	for (i = 0; i < g.tapes; i++)
		tape_free(&g.tape[i]);
	free(g.tape);
	free(g.op);
	free(g.need);
	free(g.entry);
	free(g.stack);
	return error;
}
