// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 *	{"rank": 1, "ranks": 4, "element": 0,
 *	 "buffers": {"in": 8, "out": 8, "scratch": 72},
 *	 "ops": [
 *	  {"kind": "recv", "bytes": 8, "result": "scratch+0", "peer": 0, "slot": 0},
 *	  {"kind": "reduce", "bytes": 8, "result": ..., "left": ..., "right": ...,
 *	   "type": "double", "reduction": "sum", "after": [0]}, ...]}
 *
 * Circuits may have a "way", "out" or "in". Waits are "after" (all) or "after_any"; flags are "optional": true and
 * "unless": 7. An op has the members that its kind has, and no others.
 */
#include <string.h>
#include <jansson.h>

#include "names.h"
#include "text_parsed.h"

/* ---- printing ---------------------------------------------------------- */

static json_t *json_place(u64 place)
{
	return json_sprintf("%s+%llu", coll_buffer_name(COLL_ADDRESS_BUFFER(place)),
			    (unsigned long long)COLL_ADDRESS_OFFSET(place));
}

static void set_number(json_t *object, const char *key, u64 number)
{
	json_object_set_new(object, key, json_integer((json_int_t)number));
}

static void set_action(json_t *object, const struct coll_schedule *s, const struct coll_op *op)
{
	const bool local = op->kind == COLL_OP_REDUCE || op->kind == COLL_OP_COPY;
	const bool message = op->kind == COLL_OP_SEND || op->kind == COLL_OP_RECV;

	json_object_set_new(object, "kind", json_string(coll_op_kind_name(op->kind)));
	if (local || message)
		set_number(object, "bytes", op->bytes);
	if (local || op->kind == COLL_OP_RECV)
		json_object_set_new(object, "result", json_place(op->result));
	if (local || op->kind == COLL_OP_SEND)
		json_object_set_new(object, "left", json_place(op->left));
	if (op->kind == COLL_OP_REDUCE) {
		json_object_set_new(object, "right", json_place(op->right));
		json_object_set_new(object, "type", json_string(coll_type_name(op->type)));
		json_object_set_new(object, "reduction",
				    json_string(coll_reduction_name(op->reduction)));
	}
	if (!local)
		set_number(object, "peer", coll_op_rank(s, op));
	if (message)
		set_number(object, "slot", op->slot);
	if (op->flags & COLL_ONE_WAY)
		json_object_set_new(object, "way",
				    json_string(op->flags & COLL_CIRCUIT_OUT ? "out" : "in"));
}

static void set_conditions(json_t *object, const struct coll_schedule *s,
			   const struct coll_op *op)
{
	json_t *waits = json_array();
	u32 i;

	for (i = 0; i < op->waits; i++)
		json_array_append_new(waits, json_integer(coll_waits(s)[op->wait + i]));
	if (op->waits)
		json_object_set(object, op->flags & COLL_WAIT_ANY ? "after_any" : "after", waits);
	json_decref(waits);
	if (op->flags & COLL_OPTIONAL)
		json_object_set_new(object, "optional", json_true());
	if (op->unless != COLL_NONE)
		set_number(object, "unless", op->unless);
}

/* A value as one line; memory that ran out shows as a value that is missing. */
static int print_value(json_t *value, FILE *to)
{
	int status = value ? json_dumpf(value, to, JSON_COMPACT | JSON_ENCODE_ANY) : -1;

	json_decref(value);
	return status ? -EIO : 0;
}

static int print_op(const struct coll_schedule *s, u32 index, FILE *to)
{
	json_t *object = json_object();

	set_action(object, s, &coll_ops(s)[index]);
	set_conditions(object, s, &coll_ops(s)[index]);
	return print_value(object, to);
}

int coll_json_print(const struct coll_schedule *s, FILE *to)
{
	json_t *buffers = json_object();
	int status;
	u32 i;

	for (i = 0; i < COLL_BUFFERS; i++)
		set_number(buffers, coll_buffer_name(i), s->buffer[i]);
	fprintf(to, "{\"rank\":%u,\"ranks\":%u,\"element\":%u,\n\"buffers\":", s->rank, s->ranks,
		s->element);
	status = print_value(buffers, to);
	fprintf(to, ",\n\"ops\":[");
	for (i = 0; i < s->ops && !status; i++) {
		fprintf(to, i ? ",\n" : "\n");
		status = print_op(s, i, to);
	}
	fprintf(to, "]}\n");
	return ferror(to) ? -EIO : status;
}

/* ---- parsing ----------------------------------------------------------- */

static bool text_json_listed(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

/* An object with the members needed, and no others but `also`. */
static int object_is(json_t *object, const char *what, const char *const *needed,
		     const char *const *also, struct coll_text_error *error)
{
	const char *const *name;
	const char *key;
	json_t *member;

	if (!json_is_object(object))
		return coll_parse_error(error, "%s is no object", what);
	for (name = needed; *name; name++)
		if (!json_object_get(object, *name))
			return coll_parse_error(error, "%s lacks \"%s\"", what, *name);
	json_object_foreach(object, key, member) {
		if (!text_json_listed(needed, key) && !text_json_listed(also, key))
			return coll_parse_error(error, "%s has a member that it cannot have", what);
	}
	return 0;
}

/* These leave *value alone if there is no such member. */
static int get_number(json_t *object, const char *key, u64 most, u64 *value,
		      struct coll_text_error *error)
{
	json_t *member = json_object_get(object, key);

	if (!member)
		return 0;
	if (!json_is_integer(member) || json_integer_value(member) < 0 ||
	    (u64)json_integer_value(member) > most)
		return coll_parse_error(error, "\"%s\" is no integer from 0 to %llu", key,
					(unsigned long long)most);
	*value = json_integer_value(member);
	return 0;
}

static int get_place(json_t *object, const char *key, u64 *place, struct coll_text_error *error)
{
	json_t *member = json_object_get(object, key);

	if (!member || (json_is_string(member) &&
			coll_parse_address(json_string_value(member), json_string_length(member),
					   place)))
		return 0;
	return coll_parse_error(error, "\"%s\" is no place such as \"scratch+64\"", key);
}

static int get_name(json_t *object, const char *key, int (*find)(const char *, size_t),
		    u32 *value, struct coll_text_error *error)
{
	json_t *member = json_object_get(object, key);
	int found = -EINVAL;

	if (!member)
		return 0;
	if (json_is_string(member))
		found = find(json_string_value(member), json_string_length(member));
	if (found < 0)
		return coll_parse_error(error, "the \"%s\" is an unknown one", key);
	*value = found;
	return 0;
}

/* A circuit's way, if it is parsed. */
static int get_way(json_t *object, u8 *way, struct coll_text_error *error)
{
	const char *text = json_string_value(json_object_get(object, "way"));

	if (!json_object_get(object, "way"))
		return 0;
	if (!text || (strcmp(text, "out") && strcmp(text, "in")))
		return coll_parse_error(error, "the \"way\" is neither \"out\" nor \"in\"");
	*way = strcmp(text, "out") ? COLL_CIRCUIT_IN : COLL_CIRCUIT_OUT;
	return 0;
}

static int get_waits(json_t *object, const char *key, bool any, struct coll_build *b,
		     struct coll_text_error *error)
{
	json_t *waits = json_object_get(object, key), *wait;
	int status = 0;
	size_t i;

	if (!waits)
		return 0;
	if (!json_is_array(waits) || !json_array_size(waits))
		return coll_parse_error(error, "\"%s\" is no list of ops", key);
	json_array_foreach(waits, i, wait) {
		if (!json_is_integer(wait))
			return coll_parse_error(error, "\"%s\" is no list of ops", key);
		/* A negative number becomes one that is too large. */
		status = coll_parse_wait(b, json_integer_value(wait), any, error);
		if (status)
			break;
	}
	return status;
}

static const char *const *members_of(u32 kind)
{
	static const char *const send[] = { "kind", "bytes", "left", "peer", "slot", NULL };
	static const char *const recv[] = { "kind", "bytes", "result", "peer", "slot", NULL };
	static const char *const reduce[] = { "kind",  "bytes", "result",    "left",
					      "right", "type",  "reduction", NULL };
	static const char *const copy[] = { "kind", "bytes", "result", "left", NULL };
	static const char *const circuit[] = { "kind", "peer", NULL };
	static const char *const *const members[COLL_OP_KINDS] = {
		[COLL_OP_SEND] = send,	     [COLL_OP_RECV] = recv,
		[COLL_OP_REDUCE] = reduce,   [COLL_OP_COPY] = copy,
		[COLL_OP_CONNECT] = circuit, [COLL_OP_RELEASE] = circuit,
	};

	return members[kind];
}

static int get_action(json_t *object, struct coll_parsed_op *op, struct coll_text_error *error)
{
	static const char *const conditions[] = { "after", "after_any", "optional", "unless",
						  NULL };
	static const char *const circuit[] = { "after", "after_any", "optional", "unless", "way",
					       NULL };
	int status;

	if (!json_object_get(object, "kind"))
		return coll_parse_error(error, "it has no \"kind\"");
	if ((status = get_name(object, "kind", coll_op_kind_find, &op->kind, error)) ||
	    (status = object_is(object, coll_op_kind_name(op->kind), members_of(op->kind),
				op->kind == COLL_OP_CONNECT || op->kind == COLL_OP_RELEASE ?
					circuit :
					conditions,
				error)) ||
	    (status = get_way(object, &op->way, error)) ||
	    (status = get_number(object, "bytes", COLL_BYTES_MAX, &op->bytes, error)) ||
	    (status = get_place(object, "result", &op->result, error)) ||
	    (status = get_place(object, "left", &op->left, error)) ||
	    (status = get_place(object, "right", &op->right, error)) ||
	    (status = get_name(object, "type", coll_type_find, &op->type, error)) ||
	    (status = get_name(object, "reduction", coll_reduction_find, &op->reduction, error)) ||
	    (status = get_number(object, "peer", COLL_RANKS_MAX, &op->peer, error)))
		return status;
	return get_number(object, "slot", COLL_OPS_MAX, &op->slot, error);
}

static int get_conditions(json_t *object, struct coll_build *b, struct coll_parsed_op *op,
			  struct coll_text_error *error)
{
	json_t *optional = json_object_get(object, "optional");
	int status;

	if (json_object_get(object, "after") && json_object_get(object, "after_any"))
		return coll_parse_error(error, "it has both \"after\" and \"after_any\"");
	if (optional && !json_is_boolean(optional))
		return coll_parse_error(error, "\"optional\" is neither true nor false");
	op->optional = json_is_true(optional);
	if ((status = get_number(object, "unless", COLL_OPS_MAX, &op->unless, error)) ||
	    (status = get_waits(object, "after", false, b, error)))
		return status;
	return get_waits(object, "after_any", true, b, error);
}

static int get_op(json_t *object, struct coll_build *b, struct coll_text_error *error)
{
	struct coll_parsed_op op = COLL_PARSED_OP_INIT;
	int status;

	if ((status = get_action(object, &op, error)) ||
	    (status = get_conditions(object, b, &op, error)))
		return status;
	return coll_parsed_emit(b, &op, error);
}

/* Says which op a reason speaks of, if the reason does not. */
static int blame_op(size_t op, struct coll_text_error *error)
{
	struct coll_text_error plain = *error;

	if (strncmp(plain.reason, "op ", 3))
		coll_parse_error(error, "op %zu: %.100s", op, plain.reason);
	return -EINVAL;
}

static int get_ops(struct coll_build *b, const void *source, struct coll_text_error *error)
{
	const json_t *ops = source;
	json_t *object;
	size_t i;

	json_array_foreach(ops, i, object) {
		int status = get_op(object, b, error);

		if (status)
			return status == -EINVAL ? blame_op(i, error) : status;
	}
	return 0;
}

static int get_header(json_t *object, struct coll_parsed *parsed, struct coll_text_error *error)
{
	static const char *const members[] = { "rank", "ranks", "element", "buffers", "ops",
					       NULL };
	static const char *const buffers[] = { "in", "out", "scratch", NULL };
	static const char *const none[] = { NULL };
	int status;
	u32 i;

	if ((status = object_is(object, "the schedule", members, none, error)) ||
	    (status = get_number(object, "rank", COLL_RANKS_MAX, &parsed->rank, error)) ||
	    (status = get_number(object, "ranks", COLL_RANKS_MAX, &parsed->ranks, error)) ||
	    (status = get_number(object, "element", 0xffffffff, &parsed->element, error)) ||
	    (status = object_is(json_object_get(object, "buffers"), "\"buffers\"", buffers, none,
				error)))
		return status;
	for (i = 0; i < COLL_BUFFERS && !status; i++)
		status = get_number(json_object_get(object, "buffers"), coll_buffer_name(i),
				    COLL_BYTES_MAX, &parsed->buffer[i], error);
	if (!status && !json_is_array(json_object_get(object, "ops")))
		return coll_parse_error(error, "\"ops\" is no list");
	return status;
}

int coll_json_parse(const char *text, size_t bytes, struct coll_schedule **s,
		    struct coll_text_error *error)
{
	const u64 hint = 4096 + 8 * (u64)bytes;	/* a guess: 14 characters an op */
	struct coll_parsed parsed;
	json_error_t syntax;
	json_t *object;
	u32 refused;
	int status;

	*error = (struct coll_text_error){ .line = 0 };
	object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &syntax);
	if (!object) {
		error->line = syntax.line > 0 ? syntax.line : 0;
		return coll_parse_error(error, "%s", syntax.text);
	}
	status = get_header(object, &parsed, error);
	if (!status)
		status = coll_parsed_schedule(&parsed, get_ops, json_object_get(object, "ops"),
					      hint, s, &refused, error);
	json_decref(object);
	return status;
}
