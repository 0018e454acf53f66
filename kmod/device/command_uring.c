// SPDX-License-Identifier: GPL-2.0
/*
 * Commands that come over io_uring, and those of them that end later. A waiter
 * is completed exactly once, by whoever takes it off device->waiters under the
 * device's lock.
 */
#include <linux/slab.h>

#include "kmod/common/compat.h"
#include "kmod/exec/device.h"

struct waiter_pdu {
	struct kcoll_waiter *waiter;
};

static struct waiter_pdu *pdu(struct io_uring_cmd *command)
{
	BUILD_BUG_ON(sizeof(struct waiter_pdu) > sizeof(command->pdu));
	return (struct waiter_pdu *)command->pdu;
}

/* In the submitter, or in a kworker when it is gone. */
static void complete_in_task(COLL_TASK_WORK_ARGUMENTS)
{
	struct io_uring_cmd *command = COLL_TASK_WORK_COMMAND;
	struct kcoll_waiter *waiter = pdu(command)->waiter;
	int result = waiter->result;

	kfree(waiter);
	coll_uring_cmd_done(command, result, COLL_TASK_WORK_FLAGS);
}

int kcoll_waiter_add(struct kcoll_device *device, struct io_uring_cmd *command, u32 word,
		     unsigned int issue_flags)
{
	struct kcoll_waiter *waiter = kzalloc(sizeof(*waiter), COLL_GFP);

	if (!waiter)
		return -ENOMEM;
	waiter->command = command;
	waiter->word = word;
	pdu(command)->waiter = waiter;
	list_add_tail(&waiter->node, &device->waiters);
	coll_uring_cmd_mark_cancelable(command, issue_flags);
	return -EIOCBQUEUED;
}

void kcoll_waiter_complete(struct kcoll_waiter *waiter, int status)
{
	list_del(&waiter->node);
	waiter->result = status;
	io_uring_cmd_complete_in_task(waiter->command, complete_in_task);
}

/* The ring or its task ends and calls this until the command is complete. */
static void cancel(struct kcoll_device *device, struct io_uring_cmd *command,
		   unsigned int issue_flags)
{
	struct kcoll_waiter *waiter, *found = NULL;

	mutex_lock(&device->lock);
	list_for_each_entry(waiter, &device->waiters, node)
		if (waiter->command == command)
			found = waiter;
	if (found)
		list_del(&found->node);
	mutex_unlock(&device->lock);
	if (!found)
		return;
	kfree(found);
	coll_uring_cmd_done(command, -ECANCELED, issue_flags);
}

int kcoll_device_uring_cmd(struct io_uring_cmd *uring, unsigned int issue_flags)
{
	const struct coll_device_command *sqe;
	struct coll_device_command command;
	struct kcoll_device *device = uring->file->private_data;

	if (coll_uring_is_cancel(issue_flags)) {
		cancel(device, uring, issue_flags);
		return 0;
	}
	sqe = coll_uring_sqe_command(uring, struct coll_device_command);
	command.argument = READ_ONCE(sqe->argument);
	command.bytes = READ_ONCE(sqe->bytes);
	command.zero = READ_ONCE(sqe->zero);
	return kcoll_device_do(device, uring->cmd_op, &command, uring, issue_flags);
}
