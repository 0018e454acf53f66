// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Messages from a list, each at its cycle; the list is sorted by time. */
#include <errno.h>

#include "machine.h"

static void program_trace_due(struct flit_sim *sim, u64 next)
{
	const struct flit_work *work = &sim->config->work;

	while (next < work->messages && work->trace[next].at <= sim->now) {
		const struct flit_message *message = &work->trace[next++];

		flit_send(sim, message->from, message->to, message->flits, 0);
	}
	if (next < work->messages)
		flit_alarm(sim, work->trace[next].at, next);
	else
		sim->done = true;
}

static int program_trace_start(struct flit_sim *sim)
{
	if (sim->config->work.messages >= FLIT_NONE)
		return -EINVAL;
	sim->on_timer = program_trace_due;
	program_trace_due(sim, 0);
	return 0;
}

static void program_trace_finish(struct flit_sim *sim, struct flit_result *result)
{
	flit_finished(result, sim->now, 1);
}

const struct flit_program flit_program_trace = { program_trace_start, program_trace_finish };
