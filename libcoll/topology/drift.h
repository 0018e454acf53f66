/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Costs that have changed since they were measured, by what all ranks sampled of a group's messages
 * (exec/survey.h). A number stays as long as the new one is near it, so that choices do not come
 * and go.
 */
#ifndef COLL_TOPOLOGY_DRIFT_H
#define COLL_TOPOLOGY_DRIFT_H

#include "libcoll/exec/samples.h"
#include "libcoll/link/link.h"

/*
 * Changes alpha and beta of each class in `machine`, and in `costs` what is known of them, where
 * they were measured or nobody gave them. Between clusters alpha alone: no link fills a WAN.
 * Returns whether there was a change.
 */
bool coll_drift(struct coll_machine *machine, struct coll_costs *costs,
		const struct coll_samples_found *found);

/*
 * The same for a group, and the noise (lateness.h). The context has those of the world from then on: for how bytes are
 * cut (link/arbiter.h), and for groups that are made of no other one.
 */
bool coll_costs_surveyed(struct coll_group *group, const struct coll_samples_found *found);

#endif
