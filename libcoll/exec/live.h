/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What the executing floor tells the flight recorder (libcoll/flight/flight.h): runs and ops as
 * they begin and end, and, of a run that takes long, what it waits for.
 */
#ifndef COLL_EXEC_LIVE_H
#define COLL_EXEC_LIVE_H

#include "core/probe.h"
#include "exec.h"
#include "libcoll/flight/timed.h"

/* A run begins, in the library or in the kernel. Returns its entry of the page. */
uint8_t coll_live_begin(struct coll_group *group, struct coll_planned *planned, uint32_t number,
			uint64_t now, uint64_t deadline, enum coll_flight_where where);
void coll_live_end(struct coll_group *group, uint8_t entry, uint32_t number, int status);

/*
 * Whether the times of a run that begins are kept (flight/timed.h): for coll_live_timed_end(), and
 * for the ops of an exec. The library's own runs and messages point to point are not timed. A run that
 * the application does not wait for from its begin on is not to be: it may compute.
 */
uint16_t coll_live_timed(struct coll_group *group, const struct coll_planned *planned,
			 uint32_t number, uint64_t now);
void coll_live_timed_end(struct coll_group *group, uint16_t timed, uint32_t number);

/* The entry of an exec for an op that is the first one with its peer; NULL: its time is not kept. */
static inline struct coll_flight_timed *coll_live_times(const struct coll_exec *exec,
							const struct coll_op *op)
{
	return exec->timed && !op->slot ?
		       coll_flight_timed_of(&exec->group->context->flight, exec->timed,
					    exec->group->id, exec->number) : NULL;
}

/* An op of a run. `link`: with whom, and `which` is the slot; NULL: it is of this rank alone. */
static inline void coll_live_op(const struct coll_exec *exec, enum coll_flight_kind kind,
				const struct coll_link *link, uint32_t which)
{
	const struct coll_group *group = exec->group;
	struct coll_context *context = group->context;

	if (kind == COLL_FLIGHT_SEND || kind == COLL_FLIGHT_RECV || kind == COLL_FLIGHT_CONNECT)
		COLL_PROBE5(libcoll, op_begin, (int)kind, group->id, exec->number,
			    link ? link->rank : COLL_NONE, which);
	else
		COLL_PROBE5(libcoll, op_end, (int)kind, group->id, exec->number,
			    link ? link->rank : COLL_NONE, which);
	coll_flight_event(&context->flight, context->engine.now, kind, group->flight - 1,
			  exec->number, link ? group->world[link->rank] : COLL_FLIGHT_PEER_NONE, which);
}

/* The group has failed: its text is final. */
void coll_live_fail(struct coll_group *group);

/* A run has taken long. */
static inline void coll_live_slow(struct coll_context *context)
{
	context->flight.slow = true;
}

/* After each poll while there are such runs: writes what they wait for, if that may be new. */
void coll_live_show(struct coll_context *context, uint64_t now);

#endif
