// SPDX-License-Identifier: GPL-2.0
/*
 * Runs: started, executed op by op, completed. A group fails as a whole: the first
 * failure holds, all its runs end with it, and the peers are told the failed rank.
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "control.h"
#include "core/port.h"
#include "kmod/common/coll_events.h"
#include "kmod/common/sum.h"
#include "run.h"

enum { FAILING_NS = 1000000000 };	/* for partly sent messages and FAIL */

/* Bytes that are reduced or copied before the device may yield; an op counts as some. */
enum { OP_WORK = 1 << 11, STEP_WORK = 1 << 17 };

static const u64 deadline_default = 60 * NSEC_PER_SEC;

/* ---- completion ---------------------------------------------------------------- */

struct kcoll_run *kcoll_run_find(const struct kcoll_group *group, u32 number)
{
	struct kcoll_run *run;

	list_for_each_entry(run, &group->runs, node)
		if (run->number == number)
			return run;
	return NULL;
}

/* The word is set before the pages are unpinned: a program that polls goes on at once. */
static void run_report(struct kcoll_run *run)
{
	struct kcoll_group *group = run->loaded->group;

	if (run->reported)
		return;
	run->reported = true;
	group->device->ops->completed(group->device, run->word, run->status,
				      group->failed_rank, group->reporter);
	kcoll_memory_put(run->buffer[COLL_IN]);
	kcoll_memory_put(run->buffer[COLL_OUT]);
	run->buffer[COLL_IN] = NULL;
	run->buffer[COLL_OUT] = NULL;
}

void kcoll_run_maybe_idle(struct kcoll_run *run)
{
	struct kcoll_loaded *loaded = run->loaded;

	if (!run->completed || run->in_flight || run->stepping)
		return;
	run_report(run);
	list_del(&run->node);
	loaded->running--;
	kcoll_run_give(run);
	kcoll_loaded_maybe_free(loaded);
}

/*
 * Messages still in flight after success are optional and in scratch (core/check.c):
 * the application has its buffers back.
 */
static void run_complete(struct kcoll_run *run, int status)
{
	struct kcoll_group *group = run->loaded->group;

	lockdep_assert_held(&group->device->lock);
	coll_assert(!run->completed);
	run->completed = true;
	run->status = status;
	if (trace_coll_run_completed_enabled())
		trace_coll_run_completed(group->number, run->number, status,
					 ktime_get_ns() - run->started);
	list_del_init(&run->fresh);
	kcoll_sum_add(&group->device->counters.runs, 1);
	kcoll_unexpected_drop(&group->links, run->number, run->number + 1);
	if (!status)
		run_report(run);
}

void kcoll_run_end_all(struct kcoll_group *group, int error, bool all)
{
	struct kcoll_run *run, *next;
	struct kcoll_link *link;
	unsigned long rank;

	lockdep_assert_held(&group->device->lock);
	group->links.failed = true;
	list_for_each_entry(run, &group->runs, node) {
		coll_step_fail(&run->step, error);
		if (!run->completed)
			run_complete(run, error);
	}
	xa_for_each(&group->links.by_rank, rank, link)
		kcoll_link_drop(link, all);
	list_for_each_entry_safe(run, next, &group->runs, node)
		kcoll_run_maybe_idle(run);
}

void kcoll_run_fail(struct kcoll_group *group, int error, u32 failed_rank, u32 reporter)
{
	struct coll_header news = {
		.kind = COLL_MESSAGE_FAIL,
		.version = COLL_WIRE_VERSION,
		.run = reporter,
		.slot = failed_rank,
		.hash = -error,
	};
	struct kcoll_link *link;
	unsigned long rank;

	lockdep_assert_held(&group->device->lock);
	if (group->error)
		return;
	group->error = error;
	group->failed_rank = failed_rank;
	group->reporter = reporter;
	group->failing_until = ktime_get_ns() + FAILING_NS;
	WRITE_ONCE(group->device->deadline, min(group->device->deadline, group->failing_until));
	kcoll_run_end_all(group, error, false);
	xa_for_each(&group->links.by_rank, rank, link)
		if (link->state == COLL_LINK_UP) {
			kcoll_link_send_control(link, &news);
			kcoll_link_wake(link);	/* also if it is stalled */
		}
	/* The rank's own program hears of it too: it may have no run in progress. */
	kcoll_control_add(group, group->rank, &news);
}

/* ---- execution ----------------------------------------------------------------- */

/* The thread goes on with it. */
static void run_park(struct kcoll_run *run)
{
	struct kcoll_device *device = run->loaded->group->device;

	if (list_empty(&run->fresh))
		list_add_tail(&run->fresh, &device->fresh);
	if (current != device->ready.thread)
		kcoll_ready_kick(&device->ready);
}

static void run_start_op(struct kcoll_run *run, u32 op)
{
	u32 failed_rank, reporter;
	const int result = kcoll_op_start(run, op, &failed_rank, &reporter);

	if (result < 0)
		kcoll_run_fail(run->loaded->group, result, failed_rank, reporter);
	else if (result == COLL_OP_COMPLETE)
		coll_step_done(&run->step, op);
	else if (result == COLL_OP_PART)
		coll_step_again(&run->step, op);
}

void kcoll_run_step(struct kcoll_run *run)
{
	const struct kcoll_device *device = run->loaded->group->device;
	const struct coll_op *ops = coll_ops(run->loaded->schedule);
	u64 work = 0;
	u32 op;

	lockdep_assert_held(&device->lock);
	run->stepping = true;
	while (!run->completed && (op = coll_step_next(&run->step)) != COLL_NONE) {
		run_start_op(run, op);
		work += OP_WORK + ops[op].bytes;
		if (work < STEP_WORK)
			continue;
		if (kcoll_device_yields(device))
			break;
		work = 0;
	}
	if (!run->completed && coll_step_finished(&run->step) && !run->step.error)
		run_complete(run, 0);
	run->stepping = false;
	if (!run->completed && !coll_step_idle(&run->step))
		run_park(run);
	kcoll_run_maybe_idle(run);
}

void kcoll_run_take_unexpected(struct kcoll_run *run, u32 op)
{
	u32 failed_rank, reporter;
	const int result = kcoll_op_take_unexpected(run, op, &failed_rank, &reporter);

	if (result < 0)
		kcoll_run_fail(run->loaded->group, result, failed_rank, reporter);
	if (result == COLL_OP_COMPLETE) {
		coll_step_done(&run->step, op);
		kcoll_run_step(run);
	} else if (result == COLL_OP_PART) {
		coll_step_again(&run->step, op);
		run_park(run);
	}
}

void kcoll_run_op_done(struct kcoll_run *run, u32 op)
{
	if (!run->completed) {
		coll_step_done(&run->step, op);
		kcoll_run_step(run);
	} else {
		kcoll_run_maybe_idle(run);
	}
}

/* ---- start --------------------------------------------------------------------- */

static struct kcoll_memory *run_buffer(struct kcoll_loaded *loaded, u32 which,
				       const struct coll_device_place *asked)
{
	const u64 bytes = loaded->schedule->buffer[which];
	struct kcoll_device *device = loaded->group->device;
	struct kcoll_memory *buffer;

	if (asked->zero)
		return ERR_PTR(-EINVAL);
	if (asked->buffer == COLL_NONE)
		return kcoll_memory_pin(&device->account, asked->address, bytes, which == COLL_OUT);
	buffer = idr_find(&device->buffers, asked->buffer);
	if (!buffer)
		return ERR_PTR(-ENOENT);
	if (asked->address > buffer->bytes || bytes > buffer->bytes - asked->address)
		return ERR_PTR(-ERANGE);
	if (which == COLL_OUT && !buffer->writable)
		return ERR_PTR(-EACCES);
	kref_get(&buffer->ref);
	return buffer;
}

static int run_bind(struct kcoll_run *run, u32 which, const struct coll_device_place *asked)
{
	struct kcoll_memory *buffer = run_buffer(run->loaded, which, asked);
	int error;

	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	error = run->loaded->touched & 1u << which ? kcoll_memory_map(buffer) : 0;
	if (error) {
		kcoll_memory_put(buffer);
		return error;
	}
	run->buffer[which] = buffer;
	run->offset[which] = asked->buffer == COLL_NONE ? 0 : asked->address;
	return 0;
}

static u64 run_deadline_from(u64 asked, u64 now)
{
	return max(asked ?: now + deadline_default, now);
}

int kcoll_run_deadline(struct kcoll_group *group, const struct coll_device_deadline *asked)
{
	struct kcoll_run *run = kcoll_run_find(group, asked->number);

	if (!run || run->completed)
		return -ENOENT;
	run->deadline = run_deadline_from(asked->deadline, run->started);
	run->next_ping = run->started + (run->deadline - run->started) / 2;
	WRITE_ONCE(group->device->deadline, 0);	/* the thread computes it again */
	kcoll_ready_kick(&group->device->ready);
	return 0;
}

/* Messages that came before their run. */
static void run_note_kept(struct kcoll_run *run)
{
	const struct kcoll_unexpected *message;
	u32 op;

	message = kcoll_unexpected_first(&run->loaded->group->links, run->number);
	for (; message; message = kcoll_unexpected_next(message))
		if (message->complete && coll_match(&run->step, message->rank, message->header.slot,
						    message->header.bytes, &op) >= 0)
			run->arrived[op] = 1;
}

int kcoll_run_start(struct kcoll_loaded *loaded, const struct coll_device_run *asked)
{
	struct kcoll_group *group = loaded->group;
	struct kcoll_device *device = group->device;
	struct kcoll_run *run;
	int error;

	lockdep_assert_held(&device->lock);
	if (group->error)
		return group->error;
	if ((s32)(asked->number - group->next_run) < 0)
		return -ESTALE;
	run = kcoll_run_take(loaded);
	if (IS_ERR(run))
		return PTR_ERR(run);
	error = run_bind(run, COLL_IN, &asked->in) ?: run_bind(run, COLL_OUT, &asked->out);
	if (error) {
		kcoll_memory_put(run->buffer[COLL_IN]);
		run->buffer[COLL_IN] = NULL;
		kcoll_run_give(run);
		return error;
	}
	/* Messages of runs that the program executed itself are not wanted here. */
	kcoll_unexpected_drop(&group->links, group->next_run, asked->number);
	run->number = asked->number;
	run_note_kept(run);
	group->next_run = asked->number + 1;
	run->word = asked->word;
	run->started = ktime_get_ns();
	run->deadline = run_deadline_from(asked->deadline, run->started);
	run->next_ping = run->started + (run->deadline - run->started) / 2;
	WRITE_ONCE(device->deadline, min(device->deadline, run->next_ping));
	/* A program that polls must not see the result of the run before. */
	smp_store_release(&device->shared->word[run->word].state, COLL_DEVICE_RUNNING);
	trace_coll_run_started(group->number, run->number, loaded->hash);
	loaded->running++;
	list_add_tail(&run->node, &group->runs);
	list_add_tail(&run->fresh, &device->fresh);
	/* A link that was not read for lack of capacity may have messages for this run. */
	kcoll_link_wake_stalled(&group->links);
	return 0;
}
