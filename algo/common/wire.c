// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Messages over wires, of ranks that share cores: what the wires take, what the cores do, and what of it is at the same time. */
#include "levels.h"

/* A rank that waits looks for what has come, and yields to the next one that waits. */
static const double look_seconds = 1.2e-6;

double coll_wire_work(const struct coll_machine *m)
{
	return 4 * m->overhead;	/* of both ends, and as much to wake up */
}

struct coll_machine coll_machine_shared(const struct coll_call *call, const struct coll_machine *m)
{
	const double crowding = m->crowding < call->ranks ? m->crowding : call->ranks;
	struct coll_machine shared = *m;

	if (crowding > 1 && m->core_delay <= 0)
		shared.core_delay = (crowding - 1) * look_seconds;
	return shared;
}

struct coll_wire coll_wire_of(const struct coll_machine *m, double streams)
{
	struct coll_wire wire = { .all = *m, .work = *m, .streams = streams };

	wire.all.crowding = 0;
	wire.all.alpha += m->core_delay;
	wire.work.alpha = coll_wire_work(m);
	wire.work.beta = byte_work(m, m->beta);
	wire.work.byte_gap = byte_work(m, m->byte_gap);
	machine_leave_wan(&wire.work);	/* no core's work */
	return wire;
}

/* Seconds of messages without bytes on the wire, as if no core were shared. */
static double cost_of_messages(const struct coll_algo *algo, const struct coll_call *call,
			       const struct coll_tuning *tuning, const struct coll_machine *m)
{
	struct coll_machine brief = *m;

	brief.crowding = 0;
	brief.beta = brief.byte_gap = brief.wan_beta = 0;
	return algo->cost(call, tuning, &brief);
}

double coll_wire_cost_of(const struct coll_algo *algo, const struct coll_call *call,
			 const struct coll_tuning *tuning, const struct coll_wire *wire, double seconds)
{
	const double work = algo->cost(call, tuning, &wire->work);
	const double latency = cost_of_messages(algo, call, tuning, &wire->all);
	const double waits = latency - cost_of_messages(algo, call, tuning, &wire->work);
	const double bytes = seconds > latency ? seconds - latency : 0;
	struct coll_machine own = wire->work;
	double apart, beside;

	own.crowding = 0;
	apart = seconds - algo->cost(call, tuning, &own);
	apart = work + (apart > 0 ? apart : 0);
	beside = overlap_cost(work, bytes, wire->streams) + (waits > 0 ? waits : 0);
	return beside < apart ? beside : apart;
}

double coll_wire_cost(const struct coll_algo *algo, const struct coll_call *call,
		      const struct coll_tuning *tuning, const struct coll_machine *m)
{
	const struct coll_wire wire = coll_wire_of(m, 1);

	if (m->crowding <= 1)
		return algo->cost(call, tuning, m);
	return coll_wire_cost_of(algo, call, tuning, &wire, algo->cost(call, tuning, &wire.all));
}
