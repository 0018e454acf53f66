// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "algo/common/levels.h"
#include "libcoll/link/link.h"
#include "machine.h"

/* That of a link to its first rank, since the classes nest. */
void coll_group_find_farthest(struct coll_group *group)
{
	const struct coll_context *context = group->context;
	uint32_t i;

	/* With all ranks of the job on one node the costs between nodes are those inside (job/machine.c). */
	group->farthest = context->node_of ? context->nearest : COLL_CLASS_CLUSTER;
	for (i = 1; i < group->ranks && context->node_of; i++) {
		const enum coll_link_class class = coll_link_class_of(context, group->world[0], group->world[i]);

		group->farthest = class > group->farthest ? class : group->farthest;
	}
}

static struct coll_machine machine_below_switch(const struct coll_machine *m)
{
	struct coll_machine near = *m;

	if (m->switch_alpha > 0)
		near.alpha = m->switch_alpha;
	if (near.overhead > near.alpha)
		near.overhead = near.alpha;
	if (m->switch_beta > 0)
		near.beta = m->switch_beta;
	if (near.byte_gap > near.beta)
		near.byte_gap = near.beta;
	return near;
}

struct coll_machine coll_group_machine(const struct coll_group *group)
{
	const struct coll_machine *m = &group->options.machine;
	struct coll_machine usual;

	if (group->farthest == COLL_CLASS_SWITCH)
		return machine_below_switch(m);
	if (group->farthest >= COLL_CLASS_CLUSTER)
		return *m;
	usual = coll_machine_or_usual(m);	/* what is not known inside is no more than that */
	return coll_machine_inside(&usual, coll_class_level(group->farthest));
}
