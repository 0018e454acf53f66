// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <string.h>

#include "engines.h"
#include "libcoll/base/open_error.h"
#include "libcoll/engine/engine.h"
#include "libcoll/exec/exec.h"
#include "libcoll/exec/inject_engine.h"

static const struct coll_engine_ops *const engines[] = {
	&coll_engine_uring,
	&coll_engine_epoll,
	NULL,
};

static int wrap_engine(struct coll_context *context)
{
	int error = coll_inject_open(context, coll_exec_received);

	if (!error)
		return 0;
	coll_engine_close(&context->engine);
	return coll_open_fail(error, "inject: %s", strerror(-error));
}

int coll_job_open_engine(struct coll_context *context)
{
	const struct coll_engine_ops *const *engine;
	bool any = !strcmp(context->options.engine, "auto");
	int error = -EINVAL;

	for (engine = engines; *engine; engine++) {
		if (!any && strcmp(context->options.engine, (*engine)->name))
			continue;
		context->engine.ops = *engine;
		error = (*engine)->open(&context->engine);
		if (!error)
			return context->options.inject[0] ? wrap_engine(context) : 0;
		coll_open_fail(error, "engine %s: %s", (*engine)->name, strerror(-error));
	}
	context->engine.ops = NULL;
	return error;
}
