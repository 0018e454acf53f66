/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Names of the enums of the schedule language, one table each, for printing and
 * parsing. A number without a name gives "?", a name without a number -EINVAL.
 */
#ifndef COLL_NAMES_H
#define COLL_NAMES_H

#include "port.h"
#include "uapi/coll_schedule.h"

const char *coll_type_name(u32 type);		/* "int8", ..., "opaque" */
const char *coll_reduction_name(u32 reduction);	/* "sum", ..., "user" */
const char *coll_op_kind_name(u32 kind);	/* "send", "recv", ... */
const char *coll_buffer_name(u32 buffer);	/* "in", "out", "scratch" */

/* The name is the `length` bytes at `name`; it need not be terminated. */
int coll_type_find(const char *name, size_t length);
int coll_reduction_find(const char *name, size_t length);
int coll_op_kind_find(const char *name, size_t length);
int coll_buffer_find(const char *name, size_t length);

#endif
