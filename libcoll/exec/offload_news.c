// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What /dev/coll tells: failures of its runs, and what it has heard beside them. */
#include <errno.h>

#include "core/match.h"
#include "failure.h"
#include "offload_device.h"

static const char *failure_reason(int error, uint32_t reporter)
{
	switch (error) {
	case -ETIMEDOUT:
		return "nothing came from it before the deadline";
	case -ECONNRESET:
		return reporter == COLL_NONE
			       ? "its connection ended: it has died, left or was cut off"
			       : "failed";
	case -EPROTO:
		return "called with different arguments";
	case -ECANCELED:
		return "revoked the group";
	default:
		return "its runs in the kernel failed";
	}
}

void coll_offload_failed(struct coll_group *group, int error, uint32_t failed_rank,
			 uint32_t reporter)
{
	coll_group_fail(group, error, failed_rank < group->ranks ? failed_rank : group->rank,
			reporter < group->ranks ? reporter : COLL_NONE,
			failure_reason(error, reporter));
}

void coll_offload_hear(struct coll_group *group)
{
	struct coll_device_control got = { .group = group->offload.number };
	const struct coll_header *header = &got.header;

	while (!coll_offload_command(coll_offload_of(group), COLL_DEVICE_CONTROL_GET, &got,
				     sizeof(got))) {
		if (header->kind == COLL_MESSAGE_FAIL)
			coll_offload_failed(group, coll_header_error(header), header->slot, header->run);
		else if (header->kind == COLL_MESSAGE_BYE && group->links[got.rank] &&
			 group->links[got.rank]->state == LINK_UP)
			coll_group_link_left(group->links[got.rank]);
	}
}

void coll_offload_hear_all(struct coll_context *context)
{
	struct coll_group *group;

	if (!__atomic_load_n(&context->offload->shared->control, __ATOMIC_RELAXED))
		return;
	for (group = context->groups; group; group = group->next)
		if (group->offload.made)
			coll_offload_hear(group);
}
