// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Before a call that is handed to the MPI: a rank with tasks under way waits until all others are in the
 * call. When the tasks have ended it still waits here, where there is a deadline.
 */
#include <errno.h>
#include <stdio.h>

#include "collmpi.h"
#include "shim.h"

static uint64_t deadline_ns;

void await_start(void)
{
	deadline_ns = coll_shim_deadline(shim.context);
}

int collmpi_hand_deadline(uint64_t ns)
{
	deadline_ns = ns;
	return shim.on;
}

static void await_fail(struct call *call, int absent, const char *why)
{
	char text[256];

	snprintf(text, sizeof(text), "%.200s: rank %d has not called it", why, absent);
	call->failed = task_refuse(call, -ETIMEDOUT, text);
}

/* Why this rank does not wait any longer for the absent one, or NULL. Looks for its process now and then. */
static const char *await_ends(const struct call *call, int absent, uint64_t since, uint64_t *look)
{
	enum { EVERY_NS = 100000000 };
	const uint64_t now = coll_shim_now();

	if (now - since > deadline_ns)
		return "the deadline passed";
	if (coll_error_rank(call->met->group) >= 0)
		return coll_last_error(call->met->group);
	if (now < *look)
		return NULL;
	*look = now + EVERY_NS;
	return board_alive(absent) ? NULL : "a rank has died";
}

bool await_others(struct call *call)
{
	const uint64_t since = coll_shim_now();
	struct pace pace = { 0 };
	uint64_t look = since;
	const char *why;
	int absent;

	while ((absent = board_absent(call->met)) >= 0) {
		why = await_ends(call, absent, since, &look);
		if (why) {
			await_fail(call, absent, why);
			return false;
		}
		task_progress();
		task_poke();
		pace_poll(&pace);
	}
	return true;
}
