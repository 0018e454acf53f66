/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* An engine that does nothing by itself, for tests of what it would move. */
#ifndef COLL_FAKE_ENGINE_H
#define COLL_FAKE_ENGINE_H

#include "libcoll/engine/engine.h"

static int fake_watch(struct coll_engine *of, struct coll_watch *watch, int events)
{
	(void)events;
	watch->engine = of;
	watch->armed = true;
	return 0;
}

static void fake_unwatch(struct coll_engine *of, struct coll_watch *watch)
{
	(void)of;
	watch->armed = false;
}

static const struct coll_engine_ops fake_engine_ops = { .name = "fake", .watch = fake_watch,
							.unwatch = fake_unwatch };

#endif
