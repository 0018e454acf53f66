// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A poll of the context: the engine, then deadlines and what has ended. */
#include "alarm.h"
#include "board.h"
#include "core/port.h"
#include "group.h"
#include "health.h"
#include "inject_engine.h"
#include "libcoll/engine/memory.h"
#include "live.h"
#include "libcoll/transport/listen.h"
#include "libcoll/transport/mux.h"
#include "libcoll/transport/pending.h"
#include "libcoll/transport/transport.h"
#include "offload.h"
#include "poll.h"

/* When a poll is due, whatever descriptors say. */
static uint64_t poll_due(const struct coll_context *context)
{
	const uint64_t pending = context->pending_peers ? coll_pending_due(context) : COLL_FOREVER;
	uint64_t due = context->engine.next_check < pending ? context->engine.next_check : pending;

	if (context->listen_again && context->listen_again < due)
		due = context->listen_again;
	if (context->unpublished && context->unpublished < due)
		due = context->unpublished;
	if (context->offload_again && context->offload_again < due)
		due = context->offload_again;
	return due ? due : 1;
}

void coll_context_rest(struct coll_context *context)
{
	uint64_t due, late;

	coll_memory_wake_readers(&context->engine);
	if (!context->alarm)
		return;
	while (context->board_readers && coll_board_poll(context, true))
		;		/* nobody tells a caller that sleeps of what is posted: all leave */
	/* News from health checks goes out now. That may hear the alarm expire: it is set after. */
	if (context->engine.touched)
		coll_engine_advance(&context->engine, 0);
	if (context->offload)
		coll_offload_arm(context);
	/* What that has begun, or peers go on with: the caller's descriptor is readable at once. */
	due = context->engine.touched || context->engine.kept_awake ? 1 : poll_due(context);
	late = context->inject ? coll_inject_due(context) : COLL_FOREVER;
	coll_alarm_set(context, late < due ? late : due);
}

int coll_context_poll(struct coll_context *context, uint64_t deadline)
{
	uint64_t due, now;
	int error;

	coll_debug_assert(coll_context_is_owned(context));
	if (context->offload)
		deadline = coll_offload_poll(context, deadline);
	due = poll_due(context);
	if (deadline > due)
		deadline = due;
	if (context->board_readers && coll_board_poll(context, deadline))
		deadline = 0;
	error = coll_engine_advance(&context->engine, deadline);
	if (context->engine.next_check != COLL_FOREVER) {
		now = coll_engine_look(&context->engine);
		coll_flight_now(&context->flight, now);
		if (now >= context->engine.next_check)
			coll_health_check(context, now);
		if (context->flight.slow)
			coll_live_show(context, now);
	}
	if (context->pending_peers || context->listen_again)
		coll_listen_check(context);
	if (context->unpublished)
		coll_transport_check(context, coll_now());
	coll_groups_reap(context);
	coll_muxes_reap(context);
	context->polled_at = context->engine.now;
	return error;
}
