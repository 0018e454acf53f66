// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/coll: opening it, its commands, its shared memory, and its end.
 */
#include <linux/cred.h>
#include <linux/fdtable.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "kmod/exec/device.h"

/* ---- words ---------------------------------------------------------------------- */

void kcoll_device_complete(struct kcoll_device *device, u32 word, int status, u32 failed_rank,
			   u32 reporter)
{
	struct coll_device_word *w = &device->shared->word[word];
	struct kcoll_waiter *waiter, *next;

	w->status = status;
	w->failed_rank = failed_rank;
	w->reporter = reporter;
	smp_store_release(&w->state, COLL_DEVICE_DONE);		/* whoever polls has the result */
	smp_store_release(&device->shared->ended, device->shared->ended + 1);
	list_for_each_entry_safe(waiter, next, &device->waiters, node)
		if (waiter->word == word)
			kcoll_waiter_complete(waiter, status);
	if (wq_has_sleeper(&device->word_set))
		wake_up_interruptible_all(&device->word_set);
}

/* The kernel's own view: what user space writes there harms itself alone. */
static bool word_is_done(struct kcoll_device *device, u32 word)
{
	/* Its status is read next. */
	return smp_load_acquire(&device->shared->word[word].state) == COLL_DEVICE_DONE;
}

/* ---- commands ------------------------------------------------------------------- */

static int do_setup(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_setup *asked = argument;
	struct coll_device_shared *shared;
	u64 bytes = PAGE_ALIGN(struct_size(shared, word, asked->words));
	int error;

	if (device->thread)
		return -EBUSY;
	if (asked->version != COLL_DEVICE_VERSION)
		return -EPROTONOSUPPORT;
	if (!asked->words || asked->words > COLL_DEVICE_WORDS_MAX)
		return -EINVAL;
	error = kcoll_account(device, bytes >> PAGE_SHIFT, true);
	if (error)
		return error;
	shared = __vmalloc(bytes, COLL_GFP | __GFP_ZERO);
	error = shared ? kcoll_runner_start(device, asked) : -ENOMEM;
	if (error) {
		vfree(shared);
		kcoll_account(device, bytes >> PAGE_SHIFT, false);
		return error;
	}
	device->words = asked->words;
	smp_store_release(&device->shared, shared);	/* device_mmap() takes no lock */
	return 0;
}

static u64 shared_pages(const struct kcoll_device *device)
{
	return DIV_ROUND_UP(struct_size(device->shared, word, device->words), PAGE_SIZE);
}

static int do_buffer(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_buffer *asked = argument;
	struct kcoll_memory *buffer;
	int number;

	if (asked->zero || asked->writable > 1)
		return -EINVAL;
	buffer = kcoll_memory_pin(device, asked->address, asked->bytes, asked->writable);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	number = idr_alloc(&device->buffers, buffer, 0, COLL_DEVICE_NUMBERS_MAX,
			   COLL_GFP);
	if (number < 0)
		kcoll_memory_put(buffer);
	return number;
}

static int do_buffer_free(struct kcoll_device *device, const void *argument)
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

static int do_group(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_group *asked = argument;

	return asked->zero ? -EINVAL : kcoll_group_make(device, asked);
}

static int do_group_free(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_number *asked = argument;
	struct kcoll_group *group = asked->zero ? NULL :
						 idr_find(&device->groups_by_number, asked->number);

	if (!group)
		return asked->zero ? -EINVAL : -ENOENT;
	kcoll_group_free(group);
	return 0;
}

static int do_link(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_link *asked = argument;
	struct kcoll_group *group = idr_find(&device->groups_by_number, asked->group);
	struct kcoll_link *link;

	if (asked->zero)
		return -EINVAL;
	if (!group)
		return -ENOENT;
	if (asked->rank >= group->ranks || asked->rank == group->rank)
		return -EINVAL;
	link = kcoll_link_get(group, asked->rank);
	return link ? kcoll_link_lend(link, asked) : -ENOMEM;
}

static long do_unlink(struct kcoll_device *device, const struct coll_device_link *asked)
{
	struct kcoll_group *group = idr_find(&device->groups_by_number, asked->group);
	struct kcoll_link *link = group ? xa_load(&group->links, asked->rank) : NULL;

	if (asked->zero || asked->fd != -1)
		return -EINVAL;
	return link && link->socket ? kcoll_link_unlend(link, asked) : -ENOENT;
}

static int do_load(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_load *asked = argument;
	struct kcoll_group *group = idr_find(&device->groups_by_number, asked->group);

	return group ? kcoll_load(group, asked) : -ENOENT;
}

static int do_unload(struct kcoll_device *device, const void *argument)
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

static int do_run(struct kcoll_device *device, const void *argument)
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
		kcoll_runner_kick(device);
	return error;
}

static int do_deadline(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_deadline *asked = argument;
	struct kcoll_group *group = idr_find(&device->groups_by_number, asked->group);

	return group ? kcoll_run_deadline(group, asked) : -ENOENT;
}

static int do_fail(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_fail *asked = argument;
	struct kcoll_group *group = idr_find(&device->groups_by_number, asked->group);

	if (!group)
		return -ENOENT;
	if (!asked->error || asked->error > MAX_ERRNO)
		return -EINVAL;
	kcoll_group_fail(group, -(int)asked->error, asked->failed_rank, asked->reporter);
	return 0;
}

static int do_control_send(struct kcoll_device *device, const void *argument)
{
	const struct coll_device_control *asked = argument;
	struct kcoll_group *group = idr_find(&device->groups_by_number, asked->group);
	struct kcoll_link *link;

	if (!group)
		return -ENOENT;
	if (asked->header.kind == COLL_MESSAGE_DATA || !coll_header_valid(&asked->header))
		return -EINVAL;
	link = xa_load(&group->links, asked->rank);
	if (!link || (link->state != COLL_LINK_UP && link->state != COLL_LINK_LEFT))
		return -ENOTCONN;
	return kcoll_link_send_control(link, &asked->header);
}

/* ---- commands that answer: they write to the caller's struct ------------------------ */

static int answer(const struct coll_device_command *command, const void *from, size_t bytes)
{
	return copy_to_user((void __user *)(unsigned long)command->argument, from, bytes) ?
		       -EFAULT : 0;
}

static int do_control_get(struct kcoll_device *device, const struct coll_device_command *command,
			  void *argument)
{
	struct coll_device_control *reply = argument;
	struct kcoll_group *group = idr_find(&device->groups_by_number, reply->group);
	struct kcoll_control *control;

	if (!group)
		return -ENOENT;
	control = list_first_entry_or_null(&group->control, struct kcoll_control, node);
	if (!control)
		return -EAGAIN;
	reply->rank = control->rank;
	reply->header = control->header;
	list_del(&control->node);
	kfree(control);
	group->controls--;
	WRITE_ONCE(device->shared->control, device->shared->control - 1);
	return answer(command, reply, sizeof(*reply));
}

static int do_counters(struct kcoll_device *device, const struct coll_device_command *command)
{
	return answer(command, &device->counters, sizeof(device->counters));
}

/* ---- dispatch ---------------------------------------------------------------------- */

/* One row a command: how long its struct is, and who does it. */
static const struct command_row {
	size_t bytes;
	int (*does)(struct kcoll_device *device, const void *argument);
} rows[] = {
	[_IOC_NR(COLL_DEVICE_SETUP)] = { sizeof(struct coll_device_setup), do_setup },
	[_IOC_NR(COLL_DEVICE_BUFFER)] = { sizeof(struct coll_device_buffer), do_buffer },
	[_IOC_NR(COLL_DEVICE_BUFFER_FREE)] = { sizeof(struct coll_device_number), do_buffer_free },
	[_IOC_NR(COLL_DEVICE_GROUP)] = { sizeof(struct coll_device_group), do_group },
	[_IOC_NR(COLL_DEVICE_GROUP_FREE)] = { sizeof(struct coll_device_number), do_group_free },
	[_IOC_NR(COLL_DEVICE_ATTACH)] = { sizeof(struct coll_device_link), do_link },
	[_IOC_NR(COLL_DEVICE_DETACH)] = { sizeof(struct coll_device_link), NULL },
	[_IOC_NR(COLL_DEVICE_LOAD)] = { sizeof(struct coll_device_load), do_load },
	[_IOC_NR(COLL_DEVICE_UNLOAD)] = { sizeof(struct coll_device_number), do_unload },
	[_IOC_NR(COLL_DEVICE_RUN)] = { sizeof(struct coll_device_run), do_run },
	[_IOC_NR(COLL_DEVICE_DEADLINE)] = { sizeof(struct coll_device_deadline), do_deadline },
	[_IOC_NR(COLL_DEVICE_WAIT)] = { sizeof(struct coll_device_number), NULL },
	[_IOC_NR(COLL_DEVICE_FAIL)] = { sizeof(struct coll_device_fail), do_fail },
	[_IOC_NR(COLL_DEVICE_CONTROL_SEND)] = { sizeof(struct coll_device_control),
						do_control_send },
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

static long do_locked(struct kcoll_device *device, u32 op,
		      const struct coll_device_command *command, union command_argument *argument,
		      struct io_uring_cmd *uring, unsigned int issue_flags)
{
	long result;

	if (device->ended)
		return -ECANCELED;
	if (!device->thread && op != COLL_DEVICE_SETUP)
		return -ENODEV;
	switch (op) {
	case COLL_DEVICE_CONTROL_GET:
		return do_control_get(device, command, argument);
	case COLL_DEVICE_COUNTERS:
		return do_counters(device, command);
	case COLL_DEVICE_DETACH:
		return do_unlink(device, &argument->link);
	case COLL_DEVICE_WAIT:
		if (argument->number.zero || argument->number.number >= device->words)
			return -EINVAL;
		if (word_is_done(device, argument->number.number))
			return device->shared->word[argument->number.number].status;
		if (!uring)
			return -EINPROGRESS;
		return kcoll_waiter_add(device, uring, argument->number.number, issue_flags);
	case COLL_DEVICE_RUN:
		result = do_run(device, argument);
		if (result || argument->run.flags & COLL_DEVICE_QUIET)
			return result;
		return uring ? kcoll_waiter_add(device, uring, argument->run.word, issue_flags) :
			       -EINPROGRESS;
	default:
		return rows[_IOC_NR(op)].does(device, argument);
	}
}

long kcoll_device_do(struct kcoll_device *device, u32 op, const struct coll_device_command *command,
		     struct io_uring_cmd *uring, unsigned int issue_flags)
{
	union command_argument argument;
	long result;

	if (current->files != device->owner)
		return -EPERM;
	if (op != COLL_DEVICE_OP(_IOC_NR(op)) || _IOC_NR(op) >= ARRAY_SIZE(rows) ||
	    !rows[_IOC_NR(op)].bytes)
		return -EOPNOTSUPP;
	if (command->zero || command->bytes != rows[_IOC_NR(op)].bytes)
		return -EINVAL;
	if (copy_from_user(&argument, (void __user *)(unsigned long)command->argument,
			   command->bytes))
		return -EFAULT;
	mutex_lock(&device->lock);
	result = do_locked(device, op, command, &argument, uring, issue_flags);
	mutex_unlock(&device->lock);
	if (result != -EINPROGRESS || uring)
		return result;
	/* By ioctl the caller sleeps here. The word stays set until its next run. */
	result = op == COLL_DEVICE_RUN ? argument.run.word : argument.number.number;
	if (wait_event_interruptible(device->word_set,
				     word_is_done(device, result) || READ_ONCE(device->ended)))
		return -EINTR;
	return word_is_done(device, result) ? device->shared->word[result].status : -ECANCELED;
}

static long device_ioctl(struct file *file, unsigned int op, unsigned long address)
{
	struct coll_device_command command;

	if (copy_from_user(&command, (void __user *)address, sizeof(command)))
		return -EFAULT;
	return kcoll_device_do(file->private_data, op, &command, NULL, 0);
}

/* ---- life -------------------------------------------------------------------------- */

static int device_open(struct inode *inode, struct file *file)
{
	struct kcoll_device *device = kzalloc(sizeof(*device), COLL_GFP);

	if (!device)
		return -ENOMEM;
	mutex_init(&device->lock);
	device->owner = current->files;
	device->mm = current->mm;
	mmgrab(device->mm);
	device->cred = get_current_cred();
	device->deadline = U64_MAX;
	idr_init(&device->groups_by_number);
	idr_init(&device->loaded_by_number);
	idr_init(&device->buffers);
	INIT_LIST_HEAD(&device->groups);
	INIT_LIST_HEAD(&device->fresh);
	INIT_LIST_HEAD(&device->waiters);
	init_waitqueue_head(&device->word_set);
	init_llist_head(&device->ready);
	file->private_data = device;
	return nonseekable_open(inode, file);
}

/* All runs end and everything is given back but the file's own memory. */
static void device_end(struct kcoll_device *device)
{
	struct kcoll_group *group, *next_group;
	struct kcoll_waiter *waiter, *next;
	struct kcoll_memory *buffer;
	int number;

	mutex_lock(&device->lock);
	WRITE_ONCE(device->ended, true);
	list_for_each_entry_safe(group, next_group, &device->groups, node)
		kcoll_group_free(group);
	idr_for_each_entry(&device->buffers, buffer, number) {
		idr_remove(&device->buffers, number);
		kcoll_memory_put(buffer);
	}
	list_for_each_entry_safe(waiter, next, &device->waiters, node)
		kcoll_waiter_complete(waiter, -ECANCELED);
	mutex_unlock(&device->lock);
	wake_up_interruptible_all(&device->word_set);
}

/*
 * Any close by its opener ends it: a command in flight holds the file, so that
 * release() would not come. A child that inherited the file ends nothing.
 */
static int device_flush(struct file *file, fl_owner_t id)
{
	struct kcoll_device *device = file->private_data;

	if (id == device->owner)
		device_end(device);
	return 0;
}

static int device_release(struct inode *inode, struct file *file)
{
	struct kcoll_device *device = file->private_data;

	device_end(device);
	kcoll_runner_stop(device);
	if (device->shared)
		kcoll_account(device, shared_pages(device), false);
	vfree(device->shared);
	idr_destroy(&device->groups_by_number);
	idr_destroy(&device->loaded_by_number);
	idr_destroy(&device->buffers);
	put_cred(device->cred);
	mmdrop(device->mm);
	kfree(device);
	return 0;
}

/*
 * Under the lock of the process's memory map, which commands take with the device's lock
 * held: so not that one here. What is shared stays, once it is there.
 */
static int device_mmap(struct file *file, struct vm_area_struct *area)
{
	struct kcoll_device *device = file->private_data;
	struct coll_device_shared *shared = smp_load_acquire(&device->shared);	/* and its size */
	unsigned long bytes = area->vm_end - area->vm_start, at;
	int error = 0;

	if (!shared)
		return -ENODEV;
	if (area->vm_pgoff || bytes >> PAGE_SHIFT > shared_pages(device))
		return -EINVAL;
	for (at = 0; at < bytes && !error; at += PAGE_SIZE)
		error = vm_insert_page(area, area->vm_start + at,
				       vmalloc_to_page((char *)shared + at));
	return error;
}

/* What user space writes to `seen` wakes or leaves asleep itself alone. */
static __poll_t device_poll(struct file *file, poll_table *table)
{
	struct kcoll_device *device = file->private_data;
	const struct coll_device_shared *shared = READ_ONCE(device->shared);

	poll_wait(file, &device->word_set, table);
	if (READ_ONCE(device->ended) || !shared)
		return EPOLLERR;
	/* Whoever sees that a run has ended sees its word. */
	return smp_load_acquire(&shared->ended) == READ_ONCE(shared->seen) ? 0 :
									     EPOLLIN | EPOLLRDNORM;
}

static const struct file_operations device_operations = {
	.owner = THIS_MODULE,
	.open = device_open,
	.flush = device_flush,
	.release = device_release,
	.mmap = device_mmap,
	.poll = device_poll,
	.unlocked_ioctl = device_ioctl,
	.uring_cmd = kcoll_device_uring_cmd,
};

static struct miscdevice misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "coll",
	.fops = &device_operations,
	.mode = 0660,
};

static int device_init(void)
{
	return misc_register(&misc);
}

/* Nobody has it open: an open file holds the module. */
static void device_exit(void)
{
	misc_deregister(&misc);
}

const struct kcoll_subsystem kcoll_device_subsystem = {
	.name = "device",
	.init = device_init,
	.exit = device_exit,
};
