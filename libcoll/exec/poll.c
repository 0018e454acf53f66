// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A poll of the context: the engine, then deadlines and what has ended. */
#include "core/port.h"
#include "group.h"
#include "health.h"
#include "live.h"
#include "libcoll/transport/listen.h"
#include "libcoll/transport/mux.h"
#include "libcoll/transport/transport.h"
#include "offload.h"
#include "poll.h"

int coll_context_poll(struct coll_context *context, uint64_t deadline)
{
	uint64_t now;
	int error;

	coll_debug_assert(coll_context_is_owned(context));
	if (context->offload)
		deadline = coll_offload_poll(context, deadline);
	if (deadline > context->engine.next_check)
		deadline = context->engine.next_check ? context->engine.next_check : 1;
	if (context->listen_again && deadline > context->listen_again)
		deadline = context->listen_again;
	if (context->unpublished && deadline > context->unpublished)
		deadline = context->unpublished;
	error = coll_engine_advance(&context->engine, deadline);
	if (context->polled && context->offload)
		coll_offload_arm(context);
	if (context->engine.next_check != COLL_FOREVER) {
		now = context->engine.now = coll_now();
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
	return error;
}
