// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "context.h"
#include "explain.h"
#include "group.h"

void coll_context_explain(struct coll_context *context, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(context->error, sizeof(context->error), format, arguments);
	va_end(arguments);
}

void coll_group_explain(struct coll_group *group, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(group->text, sizeof(group->text), format, arguments);
	va_end(arguments);
	coll_context_explain(group->context, "%s", group->text);
}

int coll_group_no_memory(struct coll_group *group, const char *call)
{
	if (group->state == GROUP_OK)
		coll_group_explain(group, "%s: memory ran out on rank %u", call, group->rank);
	return -ENOMEM;
}
