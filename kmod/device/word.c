// SPDX-License-Identifier: GPL-2.0
/*
 * Completion words, and commands over io_uring that wait for them. A waiter is
 * completed exactly once: by the function that removes it from device->waiters, under
 * the device's lock.
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "core/port.h"
#include "kmod/common/compat.h"
#include "kmod/common/subsystem.h"
#include "word.h"

#define WAITER_LOOK	NSEC_PER_SEC

struct waiter_pdu {
	struct kcoll_waiter *waiter;
};

static struct waiter_pdu *waiter_pdu(struct io_uring_cmd *command)
{
	BUILD_BUG_ON(sizeof(struct waiter_pdu) > sizeof(command->pdu));
	return (struct waiter_pdu *)command->pdu;
}

/* In the submitter, or in a kworker if the submitter has exited. */
static void waiter_task_work(COLL_TASK_WORK_ARGUMENTS)
{
	struct io_uring_cmd *command = COLL_TASK_WORK_COMMAND;
	struct kcoll_waiter *waiter = waiter_pdu(command)->waiter;
	int result = waiter->result;

	kfree(waiter);
	coll_uring_cmd_done(command, result, COLL_TASK_WORK_FLAGS);
}

/* The thread is woken for it once a second at most, however many commands come. */
static void waiter_look_soon(struct kcoll_device *device)
{
	const u64 then = COLL_URING_CANCELABLE ? U64_MAX : ktime_get_ns() + WAITER_LOOK;

	if (device->deadline <= then)
		return;
	WRITE_ONCE(device->deadline, then);
	kcoll_ready_kick(&device->ready);
}

int kcoll_waiter_add(struct kcoll_device *device, struct io_uring_cmd *command, u32 word)
{
	struct kcoll_waiter *waiter = kzalloc(sizeof(*waiter), COLL_GFP);

	lockdep_assert_held(&device->lock);
	if (!waiter)
		return -ENOMEM;
	waiter->command = command;
	waiter->word = word;
	waiter_pdu(command)->waiter = waiter;
	list_add_tail(&waiter->node, &device->waiters);
	waiter_look_soon(device);
	return -EIOCBQUEUED;
}

static void waiter_complete(struct kcoll_waiter *waiter, int status)
{
	list_del(&waiter->node);
	waiter->result = status;
	io_uring_cmd_complete_in_task(waiter->command, waiter_task_work);
}

void kcoll_waiter_complete_all(struct kcoll_device *device, int status)
{
	struct kcoll_waiter *waiter, *next;

	lockdep_assert_held(&device->lock);
	list_for_each_entry_safe(waiter, next, &device->waiters, node)
		waiter_complete(waiter, status);
}

/* An exec() that fails, as when a program is looked for along PATH, is over half a second later. */
void kcoll_waiter_look(struct kcoll_device *device, u64 now)
{
	struct kcoll_waiter *waiter, *next;

	lockdep_assert_held(&device->lock);
	if (COLL_URING_CANCELABLE)
		return;
	list_for_each_entry_safe(waiter, next, &device->waiters, node) {
		if (!coll_uring_execs(waiter->command))
			waiter->execs = 0;
		else if (!waiter->execs)
			waiter->execs = now;
		else if (now - waiter->execs >= WAITER_LOOK / 2)
			waiter_complete(waiter, -ECANCELED);
	}
	if (!list_empty(&device->waiters))
		waiter_look_soon(device);
}

void kcoll_waiter_cancel(struct kcoll_device *device, struct io_uring_cmd *command,
			 unsigned int issue_flags)
{
	struct kcoll_waiter *waiter, *found = NULL;

	kcoll_device_lock(device);
	/* A ring cancels from the latest on. */
	list_for_each_entry_reverse(waiter, &device->waiters, node)
		if (waiter->command == command) {
			found = waiter;
			break;
		}
	if (found)
		list_del(&found->node);
	kcoll_device_unlock(device);
	if (!found)
		return;
	kfree(found);
	coll_uring_cmd_done(command, -ECANCELED, issue_flags);
}

/* ---- words --------------------------------------------------------------------- */

/* User space may overwrite its words: then it misleads only itself. */
bool kcoll_word_done(const struct kcoll_device *device, u32 word)
{
	/* Its status is read next. */
	return smp_load_acquire(&device->shared->word[word].state) == COLL_DEVICE_DONE;
}

/*
 * The status of a word that is done. An errno of the kernel's own, such as EIOCBQUEUED,
 * would make io_uring wait for ever: whatever the program has written, it gets none.
 */
int kcoll_word_status(const struct kcoll_device *device, u32 word)
{
	const int status = READ_ONCE(device->shared->word[word].status);

	return status <= 0 && status >= -COLL_ERROR_MAX ? status : -EPROTO;
}

void kcoll_word_set(struct kcoll_device *device, u32 word, int status, u32 failed_rank,
		    u32 reporter)
{
	struct coll_device_word *w = &device->shared->word[word];
	struct kcoll_waiter *waiter, *next;

	lockdep_assert_held(&device->lock);
	coll_assert(word < device->words);
	w->status = status;
	w->failed_rank = failed_rank;
	w->reporter = reporter;
	smp_store_release(&w->state, COLL_DEVICE_DONE);		/* after it, the result is valid */
	smp_store_release(&device->shared->ended, device->shared->ended + 1);
	list_for_each_entry_safe(waiter, next, &device->waiters, node)
		if (waiter->word == word)
			waiter_complete(waiter, status);
	if (wq_has_sleeper(&device->word_set))
		wake_up_interruptible_all(&device->word_set);
}
