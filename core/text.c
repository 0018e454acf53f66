// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "text_parsed.h"

/* ---- printing ---------------------------------------------------------- */

static void print_place(u64 place, FILE *to)
{
	fprintf(to, "%s+%llu", coll_buffer_name(COLL_ADDRESS_BUFFER(place)),
		(unsigned long long)COLL_ADDRESS_OFFSET(place));
}

/* The bytes, the buffer and the peer of an op. */
static void print_action(const struct coll_schedule *s, const struct coll_op *op, FILE *to)
{
	bool from = op->kind == COLL_OP_RECV;

	if (op->kind != COLL_OP_CONNECT && op->kind != COLL_OP_RELEASE) {
		fprintf(to, " %llu ", (unsigned long long)op->bytes);
		print_place(op->kind == COLL_OP_SEND ? op->left : op->result, to);
	}
	if (op->kind == COLL_OP_REDUCE || op->kind == COLL_OP_COPY) {
		fprintf(to, " = ");
		print_place(op->left, to);
	}
	if (op->kind == COLL_OP_REDUCE) {
		fprintf(to, " %s ", coll_reduction_name(op->reduction));
		print_place(op->right, to);
		fprintf(to, " %s", coll_type_name(op->type));
	}
	if (op->peer != COLL_NONE)
		fprintf(to, " %s %u", from ? "from" : "to", coll_op_rank(s, op));
	if (op->slot != COLL_NONE)
		fprintf(to, " slot %u", op->slot);
	if (op->flags & COLL_ONE_WAY)
		fprintf(to, op->flags & COLL_CIRCUIT_OUT ? " out" : " in");
}

static void print_conditions(const struct coll_schedule *s, const struct coll_op *op, FILE *to)
{
	u32 i;

	if (op->waits)
		fprintf(to, op->flags & COLL_WAIT_ANY ? " after any of" : " after");
	for (i = 0; i < op->waits; i++)
		fprintf(to, " %u", coll_waits(s)[op->wait + i]);
	if (op->flags & COLL_OPTIONAL)
		fprintf(to, " optional");
	if (op->unless != COLL_NONE)
		fprintf(to, " unless %u", op->unless);
}

/* What coll_emit_join() emits. */
static bool is_join(const struct coll_op *op)
{
	return op->kind == COLL_OP_COPY && !op->bytes &&
	       op->left == COLL_ADDRESS(COLL_SCRATCH, 0) && op->result == op->left;
}

void coll_text_print_op(const struct coll_schedule *s, u32 index, FILE *to)
{
	const struct coll_op *op = &coll_ops(s)[index];

	if (is_join(op)) {
		fprintf(to, "join");
	} else {
		fprintf(to, "%-7s", coll_op_kind_name(op->kind));
		print_action(s, op, to);
	}
	print_conditions(s, op, to);
}

int coll_text_print(const struct coll_schedule *s, FILE *to)
{
	u32 i;

	fprintf(to, "schedule rank %u of %u", s->rank, s->ranks);
	for (i = 0; i < COLL_BUFFERS; i++)
		fprintf(to, " %s %llu", coll_buffer_name(i), (unsigned long long)s->buffer[i]);
	if (s->element)
		fprintf(to, " element %u", s->element);
	fprintf(to, "\n");
	for (i = 0; i < s->ops; i++) {
		fprintf(to, "%4u ", i);
		coll_text_print_op(s, i, to);
		fprintf(to, "\n");
	}
	return ferror(to) ? -EIO : 0;
}

/* ---- parsing ----------------------------------------------------------- */

/* Where the parser is. Lines are counted as they are left. */
struct text_reader {
	const char *at, *end;
	struct coll_text_error *error;
};

struct text_word {
	const char *text;
	size_t length;		/* 0: the line is over */
};

static struct text_word peek_word(struct text_reader *r)
{
	const char *end;

	while (r->at < r->end && *r->at == ' ')
		r->at++;
	for (end = r->at; end < r->end && *end != ' ' && *end != '\n';)
		end++;
	return (struct text_word){ .text = r->at, .length = end - r->at };
}

static struct text_word next_word(struct text_reader *r)
{
	struct text_word word = peek_word(r);

	r->at += word.length;
	return word;
}

static bool word_is(struct text_word word, const char *text)
{
	return word.length == strlen(text) && !memcmp(word.text, text, word.length);
}

/* Takes the word if it is this one. */
static bool accept_word(struct text_reader *r, const char *text)
{
	if (!word_is(peek_word(r), text))
		return false;
	next_word(r);
	return true;
}

/* "what is wanted, but ... is there"; what is there may be anything at all. */
static int text_unexpected(struct text_reader *r, struct text_word word, const char *wanted)
{
	char shown[24];
	size_t i, length = word.length < sizeof(shown) - 1 ? word.length : sizeof(shown) - 1;

	if (!word.length)
		return coll_parse_error(r->error, "%s is wanted, but the line is over", wanted);
	for (i = 0; i < length; i++)
		shown[i] = word.text[i] > ' ' && word.text[i] < 127 ? word.text[i] : '?';
	shown[length] = '\0';
	return coll_parse_error(r->error, "%s is wanted, but '%s' is there", wanted, shown);
}

static int read_keyword(struct text_reader *r, const char *text)
{
	struct text_word word = next_word(r);
	char wanted[32];

	if (word_is(word, text))
		return 0;
	snprintf(wanted, sizeof(wanted), "'%s'", text);
	return text_unexpected(r, word, wanted);
}

static int read_number(struct text_reader *r, u64 most, const char *what, u64 *number)
{
	struct text_word word = next_word(r);
	char wanted[96];

	if (coll_parse_number(word.text, word.length, most, number))
		return 0;
	snprintf(wanted, sizeof(wanted), "%s, a number up to %llu,", what,
		 (unsigned long long)most);
	return text_unexpected(r, word, wanted);
}

static int read_place(struct text_reader *r, u64 *place)
{
	struct text_word word = next_word(r);

	if (coll_parse_address(word.text, word.length, place))
		return 0;
	return text_unexpected(r, word, "a place such as scratch+64");
}

/* A word of one of the tables of names. */
static int read_name(struct text_reader *r, int (*find)(const char *, size_t), const char *what,
		     u32 *number)
{
	struct text_word word = next_word(r);
	int found = word.length ? find(word.text, word.length) : -EINVAL;

	if (found < 0)
		return text_unexpected(r, word, what);
	*number = found;
	return 0;
}

static int read_line_end(struct text_reader *r)
{
	struct text_word word = peek_word(r);

	if (word.length)
		return text_unexpected(r, word, "the end of the line");
	if (r->at < r->end)
		r->at++;
	r->error->line++;
	return 0;
}

static int read_header(struct text_reader *r, struct coll_parsed *parsed)
{
	int status;
	u32 i;

	if ((status = read_keyword(r, "schedule")) || (status = read_keyword(r, "rank")) ||
	    (status = read_number(r, COLL_RANKS_MAX, "a rank", &parsed->rank)) ||
	    (status = read_keyword(r, "of")) ||
	    (status = read_number(r, COLL_RANKS_MAX, "the number of ranks", &parsed->ranks)))
		return status;
	for (i = 0; i < COLL_BUFFERS; i++)
		if ((status = read_keyword(r, coll_buffer_name(i))) ||
		    (status =
			     read_number(r, COLL_BYTES_MAX, "a buffer's size", &parsed->buffer[i])))
			return status;
	parsed->element = 0;
	if (accept_word(r, "element") &&
	    (status = read_number(r, 0xffffffff, "an element's size", &parsed->element)))
		return status;
	return read_line_end(r);
}

static int read_peer(struct text_reader *r, struct coll_parsed_op *op)
{
	int status = read_keyword(r, op->kind == COLL_OP_RECV ? "from" : "to");

	if (!status)
		status = read_number(r, COLL_RANKS_MAX, "a rank", &op->peer);
	if (status)
		return status;
	if (op->kind == COLL_OP_CONNECT || op->kind == COLL_OP_RELEASE) {
		op->way = accept_word(r, "out") ? COLL_CIRCUIT_OUT :
			  accept_word(r, "in")	? COLL_CIRCUIT_IN :
						  0;
		return 0;
	}
	status = read_keyword(r, "slot");
	return status ? status : read_number(r, COLL_OPS_MAX, "a slot", &op->slot);
}

static int read_operands(struct text_reader *r, struct coll_parsed_op *op)
{
	int status;

	if ((status = read_place(r, &op->result)) || (status = read_keyword(r, "=")) ||
	    (status = read_place(r, &op->left)) || op->kind == COLL_OP_COPY)
		return status;
	if ((status = read_name(r, coll_reduction_find, "a reduction", &op->reduction)) ||
	    (status = read_place(r, &op->right)))
		return status;
	return read_name(r, coll_type_find, "a type", &op->type);
}

/* The twin of print_action(). */
static int read_action(struct text_reader *r, struct coll_parsed_op *op)
{
	int status;

	if (accept_word(r, "join")) {
		op->kind = COLL_OP_COPY;
		op->left = op->result = COLL_ADDRESS(COLL_SCRATCH, 0);
		return 0;
	}
	status = read_name(r, coll_op_kind_find, "a kind of op", &op->kind);
	if (status)
		return status;
	if (op->kind == COLL_OP_CONNECT || op->kind == COLL_OP_RELEASE)
		return read_peer(r, op);
	status = read_number(r, COLL_BYTES_MAX, "a number of bytes", &op->bytes);
	if (status)
		return status;
	if (op->kind == COLL_OP_REDUCE || op->kind == COLL_OP_COPY)
		return read_operands(r, op);
	status = read_place(r, op->kind == COLL_OP_SEND ? &op->left : &op->result);
	return status ? status : read_peer(r, op);
}

static int read_waits(struct text_reader *r, struct coll_build *b)
{
	bool any = accept_word(r, "any");
	int status = any ? read_keyword(r, "of") : 0;

	while (!status) {
		struct text_word word;
		u64 op;

		status = read_number(r, COLL_OPS_MAX, "an op's number", &op);
		if (!status)
			status = coll_parse_wait(b, op, any, r->error);
		word = peek_word(r);
		if (!word.length || *word.text < '0' || *word.text > '9')
			break;
	}
	return status;
}

static int read_conditions(struct text_reader *r, struct coll_build *b, struct coll_parsed_op *op)
{
	int status;

	if (accept_word(r, "after") && (status = read_waits(r, b)))
		return status;
	op->optional = accept_word(r, "optional");
	if (accept_word(r, "unless"))
		return read_number(r, COLL_OPS_MAX, "an op's number", &op->unless);
	return 0;
}

static int read_op(struct text_reader *r, struct coll_build *b)
{
	struct coll_parsed_op op = COLL_PARSED_OP_INIT;
	u64 index;
	int status;

	if ((status = read_number(r, COLL_OPS_MAX, "an op's number", &index)))
		return status;
	if (index != b->schedule->ops)
		return coll_parse_error(r->error, "op %llu stands where op %u is due",
					(unsigned long long)index, b->schedule->ops);
	if ((status = read_action(r, &op)) || (status = read_conditions(r, b, &op)) ||
	    (status = coll_parsed_emit(b, &op, r->error)))
		return status;
	return read_line_end(r);
}

static int read_ops(struct coll_build *b, const void *source, struct coll_text_error *error)
{
	struct text_reader r = *(const struct text_reader *)source;
	int status = 0;

	error->line = 2;
	while (!status && r.at < r.end)
		status = read_op(&r, b);
	return status;
}

int coll_text_parse(const char *text, size_t bytes, struct coll_schedule **s,
		    struct coll_text_error *error)
{
	struct text_reader r = { .at = text, .end = text + bytes, .error = error };
	const u64 hint = 4096 + 8 * (u64)bytes;	/* a guess: 14 characters an op */
	struct coll_parsed parsed;
	u32 refused;
	int status;

	*error = (struct coll_text_error){ .line = 1 };
	status = read_header(&r, &parsed);
	if (status)
		return status;
	status = coll_parsed_schedule(&parsed, read_ops, &r, hint, s, &refused, error);
	if (refused != COLL_NONE)
		error->line = refused + 2;	/* one line an op, after the header */
	return status;
}
