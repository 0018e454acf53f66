// SPDX-License-Identifier: GPL-2.0
/* The commands of /dev/coll: arguments checked, objects found by number, calls made. */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "command.h"
#include "kmod/common/compat.h"
#include "kmod/common/subsystem.h"
#include "kmod/exec/control.h"
#include "kmod/exec/run.h"
#include "kmod/exec/runner.h"
#include "word.h"

static int command_setup(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_setup *asked = argument;
	struct coll_device_shared *shared;
	u64 bytes = PAGE_ALIGN(struct_size(shared, word, asked->words));
	int error;

	if (kcoll_worker_exists(&device->worker))
		return -EBUSY;
	if (asked->version != COLL_DEVICE_VERSION)
		return -EPROTONOSUPPORT;
	if (!asked->words || asked->words > COLL_DEVICE_WORDS_MAX)
		return -EINVAL;
	error = kcoll_memory_account(&device->account, bytes >> PAGE_SHIFT, true);
	if (error)
		return error;
	shared = __vmalloc(bytes, COLL_GFP | __GFP_ZERO);
	error = shared ? kcoll_runner_start(device, asked) : -ENOMEM;
	if (error) {
		vfree(shared);
		kcoll_memory_account(&device->account, bytes >> PAGE_SHIFT, false);
		return error;
	}
	device->words = asked->words;
	smp_store_release(&device->shared, shared);	/* device_mmap() takes no lock */
	return 0;
}

u64 kcoll_command_shared_pages(const struct kcoll_device *device)
{
	return DIV_ROUND_UP(struct_size(device->shared, word, device->words), PAGE_SIZE);
}

static int command_buffer(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_buffer *asked = argument;
	struct kcoll_memory *buffer;
	int number;

	if (asked->zero || asked->writable > 1)
		return -EINVAL;
	buffer = kcoll_memory_pin(&device->account, asked->address, asked->bytes, asked->writable);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	number = idr_alloc(&device->buffers, buffer, 0, COLL_DEVICE_NUMBERS_MAX,
			   COLL_GFP);
	if (number < 0)
		kcoll_memory_put(buffer);
	return number;
}

static int command_buffer_free(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_number *asked = argument;
	struct kcoll_memory *buffer =
		asked->zero ? NULL : idr_find(&device->buffers, asked->number);

	if (!buffer)
		return asked->zero ? -EINVAL : -ENOENT;
	idr_remove(&device->buffers, asked->number);
	kcoll_memory_put(buffer);
	return 0;
}

static int command_group(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_group *asked = argument;

	return asked->zero ? -EINVAL : kcoll_group_make(device, asked);
}

static int command_group_free(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_number *asked = argument;
	struct kcoll_group *group = asked->zero ? NULL :
						 idr_find(&device->groups_by_number, asked->number);

	if (!group)
		return asked->zero ? -EINVAL : -ENOENT;
	kcoll_group_free(group);
	return 0;
}

static int command_attach(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_link *asked = argument;
	struct kcoll_group *group = idr_find(&device->groups_by_number, asked->group);

	if (asked->zero || asked->flags & ~COLL_DEVICE_LINK_FLAGS)
		return -EINVAL;
	return group ? kcoll_group_attach(group, asked) : -ENOENT;
}

static long command_detach(struct kcoll_device *device, const struct coll_device_link *asked)
{
	struct kcoll_group *group = idr_find(&device->groups_by_number, asked->group);

	if (asked->zero || asked->flags || asked->next_run || asked->fd != -1)
		return -EINVAL;
	return group ? kcoll_group_detach(group, asked) : -ENOENT;
}

static int command_load(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_load *asked = argument;
	struct kcoll_group *group = idr_find(&device->groups_by_number, asked->group);

	return group ? kcoll_load(group, asked) : -ENOENT;
}

static int command_unload(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_number *asked = argument;
	struct kcoll_loaded *loaded = NULL;

	if (!asked->zero)
		loaded = idr_find(&device->loaded_by_number, asked->number);
	if (!loaded)
		return asked->zero ? -EINVAL : -ENOENT;
	kcoll_loaded_unload(loaded);
	return 0;
}

static int command_run(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_run *asked = argument;
	struct kcoll_loaded *loaded = idr_find(&device->loaded_by_number, asked->schedule);
	int error;

	if (asked->flags & ~COLL_DEVICE_QUIET || asked->word >= device->words)
		return -EINVAL;
	if (!loaded)
		return -ENOENT;
	error = kcoll_run_start(loaded, asked);
	if (!error)
		kcoll_ready_kick(&device->ready);
	return error;
}

static int command_deadline(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_deadline *asked = argument;
	struct kcoll_group *group = idr_find(&device->groups_by_number, asked->group);

	return group ? kcoll_run_deadline(group, asked) : -ENOENT;
}

static int command_fail(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_fail *asked = argument;
	struct kcoll_group *group = idr_find(&device->groups_by_number, asked->group);

	if (!group)
		return -ENOENT;
	if (!asked->error || asked->error > COLL_ERROR_MAX)
		return -EINVAL;
	kcoll_run_fail(group, -(int)asked->error, asked->failed_rank, asked->reporter);
	return 0;
}

static int command_control_send(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_control *asked = argument;
	struct kcoll_group *group = idr_find(&device->groups_by_number, asked->group);
	struct kcoll_link *link;

	if (!group)
		return -ENOENT;
	if (asked->header.kind == COLL_MESSAGE_DATA || asked->header.kind == COLL_MESSAGE_OFFER ||
	    !coll_header_valid(&asked->header))
		return -EINVAL;
	link = xa_load(&group->links.by_rank, asked->rank);
	if (!link || (link->state != COLL_LINK_UP && link->state != COLL_LINK_LEFT))
		return -ENOTCONN;
	return kcoll_link_send_control(link, &asked->header);
}

static int command_answer(const struct coll_device_command *command, const void *from, size_t bytes)
{
	return copy_to_user((void __user *)(unsigned long)command->argument, from, bytes) ?
		       -EFAULT : 0;
}

static int command_control_get(struct kcoll_device *device,
			       const struct coll_device_command *command, void *argument)
{
	struct coll_device_control *reply = argument;
	struct kcoll_group *group = idr_find(&device->groups_by_number, reply->group);

	if (!group)
		return -ENOENT;
	if (!kcoll_control_take(group, &reply->rank, &reply->header))
		return -EAGAIN;
	return command_answer(command, reply, sizeof(*reply));
}

static int command_counters(struct kcoll_device *device, const struct coll_device_command *command)
{
	return command_answer(command, &device->counters, sizeof(device->counters));
}

/* ---- dispatch ------------------------------------------------------------------ */

/* Per command: the size of its struct, and its function (NULL: command_locked() calls it). */
static const struct command_row {
	size_t bytes;
	int (*execute)(struct kcoll_device *device, const void *argument);
} commands[] = {
	[_IOC_NR(COLL_DEVICE_SETUP)] = { sizeof(struct coll_device_setup), command_setup },
	[_IOC_NR(COLL_DEVICE_BUFFER)] = { sizeof(struct coll_device_buffer), command_buffer },
	[_IOC_NR(COLL_DEVICE_BUFFER_FREE)] = { sizeof(struct coll_device_number),
					       command_buffer_free },
	[_IOC_NR(COLL_DEVICE_GROUP)] = { sizeof(struct coll_device_group), command_group },
	[_IOC_NR(COLL_DEVICE_GROUP_FREE)] = { sizeof(struct coll_device_number),
					      command_group_free },
	[_IOC_NR(COLL_DEVICE_ATTACH)] = { sizeof(struct coll_device_link), command_attach },
	[_IOC_NR(COLL_DEVICE_DETACH)] = { sizeof(struct coll_device_link), NULL },
	[_IOC_NR(COLL_DEVICE_LOAD)] = { sizeof(struct coll_device_load), command_load },
	[_IOC_NR(COLL_DEVICE_UNLOAD)] = { sizeof(struct coll_device_number), command_unload },
	[_IOC_NR(COLL_DEVICE_RUN)] = { sizeof(struct coll_device_run), command_run },
	[_IOC_NR(COLL_DEVICE_DEADLINE)] = { sizeof(struct coll_device_deadline), command_deadline },
	[_IOC_NR(COLL_DEVICE_WAIT)] = { sizeof(struct coll_device_number), NULL },
	[_IOC_NR(COLL_DEVICE_FAIL)] = { sizeof(struct coll_device_fail), command_fail },
	[_IOC_NR(COLL_DEVICE_CONTROL_SEND)] = { sizeof(struct coll_device_control),
						command_control_send },
	[_IOC_NR(COLL_DEVICE_CONTROL_GET)] = { sizeof(struct coll_device_control), NULL },
	[_IOC_NR(COLL_DEVICE_COUNTERS)] = { sizeof(struct coll_device_counters), NULL },
};

union command_argument {
	struct coll_device_setup setup;
	struct coll_device_link link;
	struct coll_device_number number;
	struct coll_device_load load;
	struct coll_device_run run;
	struct coll_device_control control;
	struct coll_device_counters counters;
};

/* -EIOCBQUEUED, which no peer and no program can send: it waits for its word. */
static long command_locked(struct kcoll_device *device, u32 op,
			   const struct coll_device_command *command,
			   union command_argument *argument, struct io_uring_cmd *uring)
{
	long result;

	lockdep_assert_held(&device->lock);
	if (device->ended)
		return -ECANCELED;
	if (!kcoll_worker_exists(&device->worker) && op != COLL_DEVICE_SETUP)
		return -ENODEV;
	switch (op) {
	case COLL_DEVICE_CONTROL_GET:
		return command_control_get(device, command, argument);
	case COLL_DEVICE_COUNTERS:
		return command_counters(device, command);
	case COLL_DEVICE_DETACH:
		return command_detach(device, &argument->link);
	case COLL_DEVICE_WAIT:
		if (argument->number.zero || argument->number.number >= device->words)
			return -EINVAL;
		if (kcoll_word_done(device, argument->number.number))
			return kcoll_word_status(device, argument->number.number);
		return uring ? kcoll_waiter_add(device, uring, argument->number.number) :
			       -EIOCBQUEUED;
	case COLL_DEVICE_RUN:
		result = command_run(device, argument);
		if (result || argument->run.flags & COLL_DEVICE_QUIET)
			return result;
		return uring ? kcoll_waiter_add(device, uring, argument->run.word) : -EIOCBQUEUED;
	default:
		return commands[_IOC_NR(op)].execute(device, argument);
	}
}

static long command_execute(struct kcoll_device *device, u32 op,
			    const struct coll_device_command *command,
			    union command_argument *argument, struct io_uring_cmd *uring)
{
	long result;

	kcoll_device_lock(device);
	result = command_locked(device, op, command, argument, uring);
	kcoll_device_unlock(device);
	return result;
}

/* Whether the command may wait for a word: it is cancelable then. */
static bool command_waits(u32 op, const union command_argument *argument)
{
	return op == COLL_DEVICE_WAIT ||
	       (op == COLL_DEVICE_RUN && !(argument->run.flags & COLL_DEVICE_QUIET));
}

/*
 * A command that may wait is marked as cancelable before the lock is taken: this takes
 * the ring's lock, under which an inline submission takes the device's. From then on it
 * is completed by a call in any case, which takes it off the ring's list.
 */
static long command_uring(struct kcoll_device *device, u32 op,
			  const struct coll_device_command *command,
			  union command_argument *argument, struct io_uring_cmd *uring,
			  unsigned int issue_flags)
{
	const bool marked = COLL_URING_CANCELABLE && command_waits(op, argument);
	long result;

	if (marked)
		coll_uring_cmd_mark_cancelable(uring, issue_flags);
	result = command_execute(device, op, command, argument, uring);
	if (result == -ERESTARTNOINTR)
		result = -EINTR;	/* a ring restarts nothing */
	/* Of -EAGAIN a ring would try again in a worker, which may not do all that the program may. */
	if (result == -EIOCBQUEUED || (!marked && result != -EAGAIN))
		return result;
	coll_uring_cmd_done(uring, result, issue_flags);
	return -EIOCBQUEUED;
}

long kcoll_command(struct kcoll_device *device, u32 op, const struct coll_device_command *command,
		   struct io_uring_cmd *uring, unsigned int issue_flags)
{
	union command_argument argument;
	long result;

	if (current->files != device->owner)
		return -EPERM;
	if (op != COLL_DEVICE_OP(_IOC_NR(op)) || _IOC_NR(op) >= ARRAY_SIZE(commands) ||
	    !commands[_IOC_NR(op)].bytes)
		return -EOPNOTSUPP;
	if (command->zero || command->bytes != commands[_IOC_NR(op)].bytes)
		return -EINVAL;
	if (copy_from_user(&argument, (void __user *)(unsigned long)command->argument,
			   command->bytes))
		return -EFAULT;
	if (uring)
		return command_uring(device, op, command, &argument, uring, issue_flags);
	result = command_execute(device, op, command, &argument, NULL);
	if (result != -EIOCBQUEUED)
		return result;
	/* By ioctl the caller sleeps. The word stays set until its next run. */
	result = op == COLL_DEVICE_RUN ? argument.run.word : argument.number.number;
	if (wait_event_interruptible(device->word_set,
				     kcoll_word_done(device, result) || READ_ONCE(device->ended)))
		return -EINTR;
	return kcoll_word_done(device, result) ? kcoll_word_status(device, result) : -ECANCELED;
}
