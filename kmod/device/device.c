// SPDX-License-Identifier: GPL-2.0
/*
 * The file /dev/coll: opened, mapped, polled, closed. Commands come by ioctl or by
 * io_uring.
 */
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/fdtable.h>
#include <linux/fs.h>
#include <linux/memcontrol.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "command.h"
#include "kmod/common/compat.h"
#include "kmod/common/subsystem.h"
#include "kmod/exec/group.h"
#include "kmod/exec/runner.h"
#include "user.h"
#include "word.h"

static long device_ioctl(struct file *file, unsigned int op, unsigned long address)
{
	struct coll_device_command command;

	if (copy_from_user(&command, (void __user *)address, sizeof(command)))
		return -EFAULT;
	return kcoll_command(file->private_data, op, &command, NULL, 0);
}

static int device_uring_cmd(struct io_uring_cmd *uring, unsigned int issue_flags)
{
	const struct coll_device_command *sqe;
	struct coll_device_command command;
	struct kcoll_device *device = uring->file->private_data;

	if (coll_uring_is_cancel(issue_flags)) {
		kcoll_waiter_cancel(device, uring, issue_flags);
		return 0;
	}
	if (coll_uring_is_multishot(uring))
		return -EINVAL;
	sqe = coll_uring_sqe_command(uring, struct coll_device_command);
	command.argument = READ_ONCE(sqe->argument);
	command.bytes = READ_ONCE(sqe->bytes);
	command.zero = READ_ONCE(sqe->zero);
	return kcoll_command(device, uring->cmd_op, &command, uring, issue_flags);
}

/* ---- life ---------------------------------------------------------------------- */

static void device_end_locked(struct kcoll_device *device)
{
	struct kcoll_group *group, *next_group;
	struct kcoll_memory *buffer;
	int number;

	lockdep_assert_held(&device->lock);
	list_for_each_entry_safe(group, next_group, &device->groups, node)
		kcoll_group_free(group);
	idr_for_each_entry(&device->buffers, buffer, number) {
		idr_remove(&device->buffers, number);
		kcoll_memory_put(buffer);
	}
	kcoll_waiter_complete_all(device, -ECANCELED);
}

/* Ends all runs and releases everything but the thread and the file's own memory. */
static void device_end_runs(struct kcoll_device *device)
{
	kcoll_device_lock(device);
	WRITE_ONCE(device->ended, true);
	if (!device->released)
		device_end_locked(device);
	kcoll_device_unlock(device);
	wake_up_interruptible_all(&device->word_set);
}

/*
 * Peers hear of it now: what the files of a dying program hold ends with its last thread, after
 * the dump of its memory.
 */
static void device_killed(struct kcoll_device *device)
{
	struct kcoll_group *group;

	kcoll_device_lock(device);
	if (!device->ended)
		list_for_each_entry(group, &device->groups, node)
			kcoll_group_shut(group);
	kcoll_device_unlock(device);
	device_end_runs(device);
}

static const struct kcoll_device_ops device_ops = {
	.completed = kcoll_word_set,
	.due = kcoll_waiter_look,
	.killed = device_killed,
};

/*
 * The thread ends, too, which its cgroups would wait for: others may hold the file for as long
 * as they like.
 */
static void device_end(struct kcoll_device *device)
{
	device_end_runs(device);
	kcoll_runner_stop(device);
}

/*
 * The opener's address space ends, by exit or exec: its pages are not pinned any longer, and
 * what they count against goes. A file that survives an exec would else be a way round
 * RLIMIT_MEMLOCK, which counts from 0 again in the new address space. Whoever lets go of the
 * address space last comes here: also who moves tasks to a cpuset, and meanwhile no thread ends.
 */
static void device_space_ends(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct kcoll_device *device = container_of(notifier, struct kcoll_device, notifier);

	device_end_runs(device);
	kcoll_runner_retire(device);
}

static void device_free(struct mmu_notifier *notifier)
{
	kfree(container_of(notifier, struct kcoll_device, notifier));
}

static const struct mmu_notifier_ops device_notifier_operations = {
	.release = device_space_ends,
	.free_notifier = device_free,
};

static int device_open(struct inode *inode, struct file *file)
{
	struct kcoll_device *device = kzalloc(sizeof(*device), COLL_GFP);
	int error;

	if (!device)
		return -ENOMEM;
	mutex_init(&device->lock);
	mutex_init(&device->stopping);
	init_waitqueue_head(&device->let_in);
	device->ops = &device_ops;
	device->owner = current->files;
	device->account.mm = current->mm;
	device->notifier.ops = &device_notifier_operations;
	device->user = kcoll_user_get();
	error = PTR_ERR_OR_ZERO(device->user);
	if (error)
		goto err_free;
	error = mmu_notifier_register(&device->notifier, current->mm);
	if (error)
		goto err_user;
	mmgrab(current->mm);
	device->account.task = get_task_struct(current->group_leader);
	device->memcg = get_mem_cgroup_from_mm(current->mm);
	device->cred = get_current_cred();
	device->deadline = U64_MAX;
	device->hold_until = jiffies;
	idr_init(&device->groups_by_number);
	idr_init(&device->loaded_by_number);
	idr_init(&device->buffers);
	INIT_LIST_HEAD(&device->groups);
	INIT_LIST_HEAD(&device->fresh);
	INIT_LIST_HEAD(&device->waiters);
	init_waitqueue_head(&device->word_set);
	kcoll_ready_init(&device->ready);
	file->private_data = device;
	return nonseekable_open(inode, file);

err_user:
	kcoll_user_put(device->user);
err_free:
	kfree(device);
	return error;
}

/*
 * A close by the opener ends the device: a command in flight holds the file, so release()
 * would not be called. A close by a child that inherited the file ends nothing.
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
	kcoll_device_lock(device);
	device->released = true;	/* device_space_ends() may come still */
	kcoll_device_unlock(device);
	if (device->shared)
		kcoll_memory_account(&device->account, kcoll_command_shared_pages(device), false);
	vfree(device->shared);
	idr_destroy(&device->groups_by_number);
	idr_destroy(&device->loaded_by_number);
	idr_destroy(&device->buffers);
	kcoll_user_put(device->user);
	put_cred(device->cred);
	mem_cgroup_put(device->memcg);
	put_task_struct(device->account.task);
	mmdrop(device->account.mm);
	mmu_notifier_put(&device->notifier);	/* frees the device */
	return 0;
}

/*
 * Called under the lock of the process's memory map. Commands take that lock with the
 * device's lock held, so the device's lock must not be taken here. The shared memory, once
 * made, stays until release.
 */
static int device_mmap(struct file *file, struct vm_area_struct *area)
{
	struct kcoll_device *device = file->private_data;
	struct coll_device_shared *shared = smp_load_acquire(&device->shared);	/* and its size */
	unsigned long bytes = area->vm_end - area->vm_start, at;
	int error = 0;

	if (!shared)
		return -ENODEV;
	if (area->vm_pgoff || bytes >> PAGE_SHIFT > kcoll_command_shared_pages(device))
		return -EINVAL;
	for (at = 0; at < bytes && !error; at += PAGE_SIZE)
		error = vm_insert_page(area, area->vm_start + at,
				       vmalloc_to_page((char *)shared + at));
	return error;
}

/* User space writes `seen`: a wrong value misleads only itself. */
static __poll_t device_poll(struct file *file, poll_table *table)
{
	struct kcoll_device *device = file->private_data;
	const struct coll_device_shared *shared = READ_ONCE(device->shared);

	poll_wait(file, &device->word_set, table);
	if (READ_ONCE(device->ended) || !shared)
		return EPOLLERR;
	/* Pairs with word_set(): after `ended`, the word is valid. */
	return smp_load_acquire(&shared->ended) == READ_ONCE(shared->seen) ? 0 :
									     EPOLLIN | EPOLLRDNORM;
}

static u32 device_count(const struct list_head *list)
{
	const struct list_head *node;
	u32 count = 0;

	list_for_each(node, list)
		count++;
	return count;
}

static void device_show_held(struct seq_file *to, const struct kcoll_device *device)
{
	struct kcoll_group *group;
	u32 links = 0, loaded = 0, runs = 0, failed = 0;

	lockdep_assert_held(&device->lock);
	list_for_each_entry(group, &device->groups, node) {
		links += group->links.count;
		loaded += device_count(&group->loaded);
		runs += device_count(&group->runs);
		failed += !!group->error;
	}
	seq_printf(to, "coll-groups:\t%u\ncoll-groups-failed:\t%u\n",
		   device_count(&device->groups), failed);
	seq_printf(to, "coll-links:\t%u\ncoll-schedules:\t%u\n", links, loaded);
	seq_printf(to, "coll-runs:\t%u\n", runs);
}

/* A command may hold a lock for as long as its program likes; who only looks gives up. */
static bool device_lock_soon(struct mutex *lock)
{
	int tries;

	for (tries = 0; tries < 20; tries++) {
		if (mutex_trylock(lock))
			return true;
		usleep_range(500, 1000);
	}
	return false;
}

/*
 * Without the lock: a thread that gets no time may hold it, and just then its number is wanted. 0:
 * there is none, or it ends.
 */
static void device_show_thread(struct seq_file *to, struct kcoll_device *device)
{
	struct task_struct *thread;
	pid_t number = 0;

	if (device_lock_soon(&device->stopping)) {
		thread = READ_ONCE(device->worker.task);
		number = thread ? task_pid_vnr(thread) : 0;
		mutex_unlock(&device->stopping);
	}
	seq_printf(to, "coll-thread:\t%d\n", number);
}

/*
 * /proc/PID/fdinfo/FD: for who wonders what holds memory and CPU time. Less is shown while a
 * command keeps the lock.
 */
static void device_show(struct seq_file *to, struct file *file)
{
	struct kcoll_device *device = file->private_data;

	seq_printf(to, "coll-ended:\t%d\n", READ_ONCE(device->ended));
	device_show_thread(to, device);
	if (device_lock_soon(&device->lock)) {
		device_show_held(to, device);
		mutex_unlock(&device->lock);
	}
	seq_printf(to, "coll-runs-completed:\t%llu\n", READ_ONCE(device->counters.runs));
	seq_printf(to, "coll-sent-bytes:\t%llu\ncoll-received-bytes:\t%llu\n",
		   READ_ONCE(device->counters.sent_bytes), READ_ONCE(device->counters.recv_bytes));
	seq_printf(to, "coll-taken-bytes:\t%llu\n", READ_ONCE(device->counters.taken_bytes));
	seq_printf(to, "coll-busy-ns:\t%llu\n", READ_ONCE(device->counters.busy));
}

static const struct file_operations device_operations = {
	.owner = THIS_MODULE,
	.open = device_open,
	.flush = device_flush,
	.release = device_release,
	.mmap = device_mmap,
	.poll = device_poll,
	.unlocked_ioctl = device_ioctl,
	.uring_cmd = device_uring_cmd,
	.show_fdinfo = device_show,
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

/* No file is open: an open file holds the module. */
static void device_exit(void)
{
	misc_deregister(&misc);
	mmu_notifier_synchronize();	/* devices are freed by a call into the module */
}

const struct kcoll_subsystem kcoll_device_subsystem = {
	.name = "device",
	.init = device_init,
	.exit = device_exit,
};
