// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What the model says that a planned call takes, for the flight page. */
#include "machine.h"
#include "planned.h"

/* What is chosen by name may be worse than the choice, also if the name is the same: its segment, its T. */
void coll_planned_predict(struct coll_planned *planned)
{
	const struct coll_machine machine = coll_group_machine(planned->group);
	const struct coll_call *call = &planned->call;
	const struct coll_algo *best = NULL;

	if (planned->predicted_ns || !planned->algo || coll_call_is_message(call))
		return;
	if (planned->user_op != COLL_OWN_CALL && planned->tuning.ports == COLL_UNSET &&
	    planned->group->options.algo[call->collective])
		best = coll_algo_choose(call, &COLL_TUNING_UNSET, &machine);
	planned->predicted_ns =
		coll_algo_predict(planned->algo, call, &planned->tuning, &machine) * 1e9 + 1;
	planned->best_ns = planned->predicted_ns;
	if (best)
		planned->best_ns =
			coll_algo_predict(best, call, &COLL_TUNING_UNSET, &machine) * 1e9 + 1;
	if (planned->best_ns > planned->predicted_ns)
		planned->best_ns = planned->predicted_ns;
}
