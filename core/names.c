// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "names.h"

static const char *const type_names[COLL_TYPES] = {
	[COLL_INT8] = "int8",
	[COLL_INT16] = "int16",
	[COLL_INT32] = "int32",
	[COLL_INT64] = "int64",
	[COLL_UINT8] = "uint8",
	[COLL_UINT16] = "uint16",
	[COLL_UINT32] = "uint32",
	[COLL_UINT64] = "uint64",
	[COLL_FP16] = "fp16",
	[COLL_BF16] = "bf16",
	[COLL_FLOAT] = "float",
	[COLL_DOUBLE] = "double",
	[COLL_COMPLEX_FLOAT] = "complex_float",
	[COLL_COMPLEX_DOUBLE] = "complex_double",
	[COLL_INT16_INT32] = "int16_int32",
	[COLL_INT32_INT32] = "int32_int32",
	[COLL_INT64_INT32] = "int64_int32",
	[COLL_FLOAT_INT32] = "float_int32",
	[COLL_DOUBLE_INT32] = "double_int32",
};

static const char *const reduction_names[COLL_REDUCTIONS] = {
	[COLL_SUM] = "sum",
	[COLL_PROD] = "prod",
	[COLL_MIN] = "min",
	[COLL_MAX] = "max",
	[COLL_LAND] = "land",
	[COLL_LOR] = "lor",
	[COLL_LXOR] = "lxor",
	[COLL_BAND] = "band",
	[COLL_BOR] = "bor",
	[COLL_BXOR] = "bxor",
	[COLL_MINLOC] = "minloc",
	[COLL_MAXLOC] = "maxloc",
};

static const char *const kind_names[COLL_OP_KINDS] = {
	[COLL_OP_SEND] = "send",
	[COLL_OP_RECV] = "recv",
	[COLL_OP_REDUCE] = "reduce",
	[COLL_OP_COPY] = "copy",
	[COLL_OP_CONNECT] = "connect",
	[COLL_OP_RELEASE] = "release",
};

static const char *const buffer_names[COLL_BUFFERS] = {
	[COLL_IN] = "in",
	[COLL_OUT] = "out",
	[COLL_SCRATCH] = "scratch",
};

/* The two numbers that stand outside their tables. */
static const char opaque[] = "opaque";
static const char user[] = "user";

static bool name_is(const char *name, const char *word, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (!name[i] || name[i] != word[i])
			return false;
	return !name[length];
}

static int name_find(const char *const *names, u32 count, const char *word, size_t length)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (name_is(names[i], word, length))
			return (int)i;
	return -EINVAL;
}

const char *coll_type_name(u32 type)
{
	if (type == COLL_OPAQUE_TYPE)
		return opaque;
	return type < COLL_TYPES ? type_names[type] : "?";
}

const char *coll_reduction_name(u32 reduction)
{
	if (reduction == COLL_USER_REDUCTION)
		return user;
	return reduction < COLL_REDUCTIONS ? reduction_names[reduction] : "?";
}

const char *coll_op_kind_name(u32 kind)
{
	return kind < COLL_OP_KINDS ? kind_names[kind] : "?";
}

const char *coll_buffer_name(u32 buffer)
{
	return buffer < COLL_BUFFERS ? buffer_names[buffer] : "?";
}

int coll_type_find(const char *name, size_t length)
{
	if (name_is(opaque, name, length))
		return COLL_OPAQUE_TYPE;
	return name_find(type_names, COLL_TYPES, name, length);
}

int coll_reduction_find(const char *name, size_t length)
{
	if (name_is(user, name, length))
		return COLL_USER_REDUCTION;
	return name_find(reduction_names, COLL_REDUCTIONS, name, length);
}

int coll_op_kind_find(const char *name, size_t length)
{
	return name_find(kind_names, COLL_OP_KINDS, name, length);
}

int coll_buffer_find(const char *name, size_t length)
{
	return name_find(buffer_names, COLL_BUFFERS, name, length);
}
