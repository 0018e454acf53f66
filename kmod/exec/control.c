// SPDX-License-Identifier: GPL-2.0
#include <linux/slab.h>

#include "control.h"
#include "kmod/common/subsystem.h"

void kcoll_control_add(struct kcoll_group *group, u32 rank, const struct coll_header *header)
{
	struct kcoll_control *control;

	lockdep_assert_held(&group->device->lock);
	if (group->controls == COLL_CONTROL_MAX)
		return;		/* pings are repeated */
	control = kmalloc(sizeof(*control), COLL_GFP);
	if (!control)
		return;
	control->rank = rank;
	control->header = *header;
	list_add_tail(&control->node, &group->control);
	group->controls++;
	WRITE_ONCE(group->device->shared->control, group->device->shared->control + 1);
}

void kcoll_control_drop(struct kcoll_group *group)
{
	struct coll_device_shared *shared = group->device->shared;
	struct kcoll_control *control, *next;

	list_for_each_entry_safe(control, next, &group->control, node)
		kfree(control);
	WRITE_ONCE(shared->control, shared->control - group->controls);
}

bool kcoll_control_take(struct kcoll_group *group, u32 *rank, struct coll_header *header)
{
	struct coll_device_shared *shared = group->device->shared;
	struct kcoll_control *control;

	lockdep_assert_held(&group->device->lock);
	control = list_first_entry_or_null(&group->control, struct kcoll_control, node);
	if (!control)
		return false;
	*rank = control->rank;
	*header = control->header;
	list_del(&control->node);
	kfree(control);
	group->controls--;
	WRITE_ONCE(shared->control, shared->control - 1);
	return true;
}
