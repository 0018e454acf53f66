// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "algo/common/levels.h"
#include "libcoll/link/link.h"
#include "machine.h"

/* The farthest class of its links: that of one to its first rank, since the classes nest. */
static enum coll_link_class farthest_class(const struct coll_group *group)
{
	const struct coll_context *context = group->context;
	enum coll_link_class class = context->nearest;
	uint32_t i;

	for (i = 1; i < group->ranks; i++) {
		const enum coll_link_class of = coll_link_class_of(context, group->world[0], group->world[i]);

		class = of > class ? of : class;
	}
	return class;
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
	/* With all ranks of the job on one node the costs between nodes are those inside (job/job.c). */
	const enum coll_link_class class = group->context->node_of ? farthest_class(group) : COLL_CLASS_CLUSTER;

	if (class == COLL_CLASS_SWITCH)
		return machine_below_switch(m);
	if (class >= COLL_CLASS_CLUSTER)
		return *m;
	usual = coll_machine_or_usual(m);	/* what is not known inside is no more than that */
	return coll_machine_inside(&usual, coll_class_level(class));
}
