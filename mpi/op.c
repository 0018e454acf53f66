// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * MPI's operations. libcoll computes the reductions that it has. All others - the
 * program's own functions, long double, Fortran's logicals - become user reductions
 * that call MPI_Reduce_local, which is right for every operation and type.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

/* One use of an operation on a type, as libcoll knows it. */
struct use {
	struct use *next;
	MPI_Op op;
	MPI_Datatype datatype;
	MPI_Count extent, true_lb;
	size_t alignment;
	bool commutative;
	enum coll_reduction coll_op;
};

static struct use *uses;

/* ---- computing ---------------------------------------------------------- */

enum { BOUNCE = 1 << 16 };

/* Operands at aligned addresses, which a function may expect. */
struct bounce {
	uint8_t *left, *right;
	bool own;
	_Alignas(16) uint8_t small[2][512];
};

static bool bounce_open(struct bounce *bounce, size_t element, size_t *room)
{
	bounce->own = element > sizeof(bounce->small[0]) || *room > sizeof(bounce->small[0]);
	if (!bounce->own) {
		bounce->left = bounce->small[0];
		bounce->right = bounce->small[1];
		return true;
	}
	*room = *room < BOUNCE ? *room : BOUNCE;
	*room = *room < element ? element : *room / element * element;
	bounce->left = malloc(2 * *room + 32);
	bounce->right = bounce->left ? bounce->left + (*room + 15) / 16 * 16 : NULL;
	return bounce->left;
}

/* At a time so many elements, which an int counts. A reduction cannot return an error. */
static void op_compute(const struct use *use, const uint8_t *left, uint8_t *right, size_t count)
{
	enum { MOST = 1 << 20 };
	size_t now;

	for (; count; count -= now, left += now * use->extent, right += now * use->extent) {
		now = count < MOST ? count : MOST;
		if (real.Reduce_local(left - use->true_lb, right - use->true_lb, now, use->datatype, use->op))
			shim_end_job("MPI_Reduce_local refuses an operation that it has for the type");
	}
}

/* In pieces, through memory of our own. */
static void compute_aside(const struct use *use, uint8_t *out, const uint8_t *left,
			  const uint8_t *right, size_t count)
{
	const size_t element = use->extent;
	size_t bytes = count * element, room = bytes, now;
	struct bounce bounce;

	if (!bounce_open(&bounce, element, &room))
		shim_end_job("no memory for a reduction, which cannot return an error");
	for (; bytes; bytes -= now, out += now, left += now, right += now) {
		now = bytes < room ? bytes : room;
		memcpy(bounce.left, left, now);
		memcpy(bounce.right, right, now);
		op_compute(use, bounce.left, bounce.right, now / element);
		memcpy(out, bounce.right, now);
	}
	if (bounce.own)
		free(bounce.left);
}

static bool op_aligned(const struct use *use, const void *a, const void *b)
{
	return !(((uintptr_t)a | (uintptr_t)b) & (use->alignment - 1));
}

static void op_reduce(void *out, const void *left, const void *right, size_t count,
		      enum coll_type type, void *argument)
{
	const struct use *use = argument;

	(void)type;
	if (out == left && use->commutative) {
		const void *swap = left;

		left = right;
		right = swap;
	}
	if (out == left || !op_aligned(use, left, out)) {
		compute_aside(use, out, left, right, count);
		return;
	}
	if (out != right)
		memcpy(out, right, count * use->extent);
	op_compute(use, left, out, count);
}

/* ---- uses --------------------------------------------------------------- */

/* The alignment that the size of the elements implies, at most 16. */
static size_t alignment_of(MPI_Count extent)
{
	size_t alignment = 1;

	while (alignment < 16 && !(extent & (2 * alignment - 1)))
		alignment *= 2;
	return alignment;
}

_Noreturn static void use_without_memory(void)
{
	shim_end_job("no memory for the operation of a call, in which the other ranks would wait");
}

/* NULL: the MPI refuses it. */
static struct use *use_make(MPI_Op op, MPI_Datatype datatype, const struct type *type)
{
	struct use *use = calloc(1, sizeof(*use));
	int commutative = 0;

	if (!use)
		use_without_memory();
	if (real.Op_commutative(op, &commutative)) {
		free(use);
		return NULL;
	}
	*use = (struct use){
		.op = op,
		.datatype = datatype,
		.extent = type->extent,
		.true_lb = type->true_lb,
		.alignment = alignment_of(type->extent),
		.commutative = commutative,
	};
	if (coll_op_create(shim.context, op_reduce, use, commutative, &use->coll_op))
		use_without_memory();
	use->next = uses;
	uses = use;
	return use;
}

static struct use *use_find(MPI_Op op, MPI_Datatype datatype)
{
	struct use *use;

	for (use = uses; use; use = use->next)
		if (use->op == op && use->datatype == datatype)
			return use;
	return NULL;
}

/* The handle is about to be freed, and may then name another object. */
static void op_forget(bool is_op, MPI_Op op, MPI_Datatype datatype)
{
	struct use **slot = &uses, *use;

	while ((use = *slot)) {
		if (is_op ? use->op != op : use->datatype != datatype) {
			slot = &use->next;
			continue;
		}
		coll_op_free(shim.context, use->coll_op);
		*slot = use->next;
		free(use);
	}
}

static int coll_reduction_of(MPI_Op op)
{
	static MPI_Op predefined[COLL_REDUCTIONS];
	int i;

	if (predefined[COLL_SUM] != MPI_SUM) {
		predefined[COLL_PROD] = MPI_PROD;
		predefined[COLL_MIN] = MPI_MIN;
		predefined[COLL_MAX] = MPI_MAX;
		predefined[COLL_LAND] = MPI_LAND;
		predefined[COLL_LOR] = MPI_LOR;
		predefined[COLL_LXOR] = MPI_LXOR;
		predefined[COLL_BAND] = MPI_BAND;
		predefined[COLL_BOR] = MPI_BOR;
		predefined[COLL_BXOR] = MPI_BXOR;
		predefined[COLL_MINLOC] = MPI_MINLOC;
		predefined[COLL_MAXLOC] = MPI_MAXLOC;
		predefined[COLL_SUM] = MPI_SUM;
	}
	for (i = 0; i < COLL_REDUCTIONS; i++)
		if (predefined[i] == op)
			return i;
	return -1;
}

enum reason op_find(MPI_Op op, MPI_Datatype datatype, enum coll_type *coll_type,
		    enum coll_reduction *coll_op)
{
	const struct type *type = type_find(datatype);
	const struct use *use;
	int reduction;

	if (!type || op == MPI_OP_NULL)
		return OTHER_REFUSED;
	reduction = coll_reduction_of(op);
	if (type->coll >= 0 && reduction >= 0 && coll_shim_reduces(type->coll, reduction)) {
		*coll_type = type->coll;
		*coll_op = reduction;
		return OURS;
	}
	/* The MPI computes, or refuses, what is not known to be defined. */
	if (op == MPI_REPLACE || op == MPI_NO_OP ||
	    (reduction >= 0 && !(type->reductions >> reduction & 1)))
		return OTHER_TYPE;
	/* Elements that overlap cannot travel as contiguous bytes. */
	if (type->extent < 1 || type->extent >= 1 << 30 || type->true_extent > type->extent)
		return OTHER_TYPE;
	use = use_find(op, datatype);
	if (!use)
		use = use_make(op, datatype, type);
	if (!use)
		return OTHER_REFUSED;
	*coll_type = COLL_OPAQUE(type->extent);
	*coll_op = use->coll_op;
	return OURS;
}

/* ---- holds -------------------------------------------------------------- */

struct hold {
	struct hold *next;
	MPI_Op op;
	MPI_Datatype type;
	bool is_op;
	uint32_t users;
	bool freed;		/* by the program */
};

static struct hold *holds;

static struct hold **hold_find(bool is_op, MPI_Op op, MPI_Datatype type)
{
	struct hold **slot;

	for (slot = &holds; *slot; slot = &(*slot)->next)
		if ((*slot)->is_op == is_op &&
		    (is_op ? (*slot)->op == op : (*slot)->type == type))
			break;
	return slot;
}

static void op_hold(bool is_op, MPI_Op op, MPI_Datatype type)
{
	struct hold *one = *hold_find(is_op, op, type);

	if (!one) {
		one = calloc(1, sizeof(*one));
		if (!one)
			shim_end_job("no memory to keep a type or an operation for a call under way");
		*one = (struct hold){ .next = holds, .op = op, .type = type, .is_op = is_op };
		holds = one;
	}
	one->users++;
}

static int free_now(bool is_op, MPI_Op *op, MPI_Datatype *type)
{
	hand_unlearn();
	if (shim.on)
		op_forget(is_op, is_op ? *op : MPI_OP_NULL, is_op ? MPI_DATATYPE_NULL : *type);
	return is_op ? real.Op_free(op) : real.Type_free(type);
}

static void op_drop(bool is_op, MPI_Op op, MPI_Datatype type)
{
	struct hold **slot = hold_find(is_op, op, type), *one = *slot;

	if (!one || --one->users)
		return;
	*slot = one->next;
	if (one->freed)
		free_now(is_op, &op, &type);
	free(one);
}

void hold_handles(struct task *task)
{
	struct stage *stage = &task->stage;
	const struct call *call = &task->call;
	uint32_t i;

	for (i = 0; i < stage->pieces_count; i++) {
		stage->pieces[i].held = stage->pieces[i].info->derived;
		if (stage->pieces[i].held)
			op_hold(false, MPI_OP_NULL, stage->pieces[i].type);
	}
	if (which_reduces(call->which) && call->coll_op > COLL_USER_REDUCTION) {
		op_hold(false, MPI_OP_NULL, call->out_type);
		op_hold(true, call->op, MPI_DATATYPE_NULL);
	}
}

void drop_handles(struct task *task)
{
	struct stage *stage = &task->stage;
	const struct call *call = &task->call;
	uint32_t i;

	for (i = 0; i < stage->pieces_count; i++)
		if (stage->pieces[i].held)
			op_drop(false, MPI_OP_NULL, stage->pieces[i].type);
	if (which_reduces(call->which) && call->coll_op > COLL_USER_REDUCTION) {
		op_drop(false, MPI_OP_NULL, call->out_type);
		op_drop(true, call->op, MPI_DATATYPE_NULL);
	}
}

int MPI_Op_free(MPI_Op *op)
{
	struct hold *one;
	int code;

	if (!op || *op == MPI_OP_NULL || !shim.on)
		return real.Op_free(op);
	shim_lock();
	one = *hold_find(true, *op, MPI_DATATYPE_NULL);
	if (one) {
		one->freed = true;
		*op = MPI_OP_NULL;
	}
	code = one ? MPI_SUCCESS : free_now(true, op, NULL);
	shim_unlock();
	return code;
}
ALSO(PMPI_Op_free, MPI_Op_free)

int MPI_Type_free(MPI_Datatype *type)
{
	struct hold *one;
	int code;

	if (!type || *type == MPI_DATATYPE_NULL || !shim.on)
		return real.Type_free(type);
	shim_lock();
	one = *hold_find(false, MPI_OP_NULL, *type);
	if (one) {
		one->freed = true;
		*type = MPI_DATATYPE_NULL;
	}
	code = one ? MPI_SUCCESS : free_now(false, NULL, type);
	shim_unlock();
	return code;
}
ALSO(PMPI_Type_free, MPI_Type_free)

int op_start(void)
{
	uses = NULL;
	holds = NULL;
	return 0;
}
