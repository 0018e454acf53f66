// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks found and handed to their rules. Probes (pin_probe.c) queue tasks for a thread on the
 * housekeeping CPUs. The task waits for the thread before it returns to user space, at most for
 * a second: no matching task ever computes on a CPU where it does not belong. Without
 * task_work_add(), which mainline does not export, it is moved some ten microseconds later. The thread
 * also looks at some tasks each second, all of them in a minute, for changes that no probe sees (a changed
 * uid) and for changes by other programs.
 *
 * A child starts with its parent's CPUs and is tracked as pinned from then on, because
 * it must get back the CPUs that its parent had before.
 */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/delay.h>
#include <linux/idr.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "kmod/common/compat.h"
#include "kmod/common/netlink.h"
#include "kmod/common/thread.h"
#include "pin_entry.h"
#include "pin_probe.h"

#define LOOK_EVERY	HZ
enum {
	LOOK_TASKS = 64,	/* so many tasks at least in each look, */
	LOOKS = 60,		/* all in so many looks, */
	LOOKS_MORE = 16,	/* and of more than there were, such a part of those seen */
};
#define BIRTHS		(20 * NSEC_PER_MSEC)	/* a fork takes less */

static struct pin_rule *pin_rule_of(int index)
{
	struct pin_rules *now = rcu_dereference_protected(kcoll_pin_rules,
							  lockdep_is_held(&kcoll_pin_mutex));

	return &now->rule[index];
}

static void pin_report_changed(struct pin_task *pinned)
{
	char comm[TASK_COMM_LEN];

	strscpy(comm, pinned->task->comm, sizeof(comm));
	kcoll_pin_set_state(pinned, COLL_PIN_CHANGED, 0);
	if (pinned->rule >= 0)
		atomic64_inc(&pin_rule_of(pinned->rule)->changed);
	kcoll_event_send(&(struct kcoll_event){
		.kind = COLL_EVENT_PIN_CHANGED, .cpu = -1, .pid = task_pid_nr(pinned->task),
		.name = comm, .reason = "somebody else changed its CPUs; left alone" });
}

/* ---- looking at a task ------------------------------------------------------------- */

/* Some task is stranded or put off: those are looked at a second later. */
static bool pin_waits;

/* The task matches this rule: it is moved to the rule's CPUs, unless it is there. */
static void pin_settle(struct pin_task *pinned, int index)
{
	struct pin_rule *rule = pin_rule_of(index);
	bool known;

	switch (kcoll_pin_assign(pinned, index, rule->cpus, &known)) {
	case COLL_PIN_ASSIGN_NONE:
		return;
	case COLL_PIN_ASSIGN_CHANGED:
		pin_report_changed(pinned);
		return;
	case COLL_PIN_ASSIGN_IN_PLACE:
		atomic64_add(!known && pinned->state == COLL_PIN_MOVED, &rule->moved);
		break;
	case COLL_PIN_ASSIGN_MOVE:
		if (!kcoll_pin_move(pinned, rule)) {
			pin_waits = true;
			return;
		}
		break;
	case COLL_PIN_ASSIGN_STAY:
		break;
	}
	pin_waits |= pinned->stranded;
	atomic64_add(!known, &rule->matched);
}

/*
 * A kernel thread is bound to its CPU a little after it is made, and must not be moved
 * then. Tasks of that age are left for a later look.
 */
static bool pin_too_young(const struct task_struct *task)
{
	return READ_ONCE(task->flags) & PF_KTHREAD && ktime_get_ns() - task->start_time < NSEC_PER_SEC;
}

/* Some task was not tracked, for lack of memory: all are looked at a second later. */
static bool pin_missed;

/* NULL: no memory, or its exit was told before it was tracked; nobody else would free the entry. */
static struct pin_task *pin_track(struct task_struct *task)
{
	struct pin_task *pinned = kcoll_pin_track(task);

	lockdep_assert_held(&kcoll_pin_mutex);
	pin_missed |= !pinned;
	if (!pinned || !(READ_ONCE(task->flags) & PF_EXITING))
		return pinned;
	kcoll_pin_entry_free(pinned);
	return NULL;
}

static void pin_check_task(struct task_struct *task, const char *comm)
{
	const struct pin_rules *now =
		rcu_dereference_protected(kcoll_pin_rules, lockdep_is_held(&kcoll_pin_mutex));
	struct pin_task *pinned = kcoll_pin_find(task);
	int index;

	if (!now || READ_ONCE(task->flags) & PF_EXITING || pin_too_young(task))
		return;
	rcu_read_lock();
	index = kcoll_pin_rules_match(now, task, comm, pinned ? pinned->rule : -1);
	rcu_read_unlock();
	if (index < 0 || now->rule[index].keep) {
		if (pinned && pinned->state != COLL_PIN_CHANGED) {
			kcoll_pin_restore(pinned);
			kcoll_pin_entry_free(pinned);
		}
		return;
	}
	pinned = pinned ?: pin_track(task);
	if (pinned)
		pin_settle(pinned, index);
}

/* ---- the thread ------------------------------------------------------------------------ */

static void pin_task_exited(const struct task_struct *task)
{
	struct pin_task *pinned = kcoll_pin_find(task);

	if (pinned)
		kcoll_pin_entry_free(pinned);
}

/*
 * As far as its threads are there all the time; the pass over all tasks finds the others. It ends at the
 * leader that the task has now: by an exec a thread becomes the leader, and the one before is gone.
 */
static void pin_check_process(struct task_struct *leader)
{
	struct task_struct *task = get_task_struct(leader), *next;

	while (task) {
		pin_check_task(task, task->comm);
		rcu_read_lock();
		next = pid_alive(task) ? next_thread(task) : NULL;
		if (next == READ_ONCE(task->group_leader))
			next = NULL;
		if (next)
			get_task_struct(next);
		rcu_read_unlock();
		put_task_struct(task);
		task = next;
		cond_resched();
	}
}

/* The work of the thread: all sightings. */
static void pin_serve(void)
{
	struct llist_node *list = kcoll_pin_round_begin();
	struct pin_sighting *sight, *next;

	lockdep_assert_held(&kcoll_pin_mutex);
	llist_for_each_entry_safe(sight, next, list, node) {
		if (sight->kind == COLL_PIN_SEEN_EXIT)
			pin_task_exited(sight->task);
		else if (sight->kind == COLL_PIN_SEEN_PROCESS)
			pin_check_process(sight->task);
		else
			pin_check_task(sight->task, sight->comm);
		kcoll_pin_sighting_free(sight);
		cond_resched();
	}
	kcoll_pin_round_end();
}

/*
 * Calls `look` for the tasks from this number on, at most so many, each with a reference and not
 * under RCU: a pass over a large machine holds up nothing. Returns how many; `number` is the one to
 * go on at, or 0: these were the last.
 */
static u32 pin_visit_tasks(int *number, u32 most, void (*look)(struct task_struct *task, u64 data),
			   u64 data)
{
	struct task_struct *task;
	struct pid *pid;
	u32 count = 0;

	while (count < most) {
		rcu_read_lock();
		pid = idr_get_next(&init_pid_ns.idr, number);
		task = pid ? pid_task(pid, PIDTYPE_PID) : NULL;
		if (task)
			get_task_struct(task);
		rcu_read_unlock();
		if (!pid) {
			*number = 0;
			break;
		}
		++*number;
		if (task) {
			look(task, data);
			put_task_struct(task);
			count++;
		}
		cond_resched();
	}
	return count;
}

/* Of those that are there all the time. Returns how many. */
static u32 pin_visit_all(void (*look)(struct task_struct *task, u64 data), u64 data)
{
	int number = 1;

	return pin_visit_tasks(&number, U32_MAX, look, data);
}

static void pin_check_untracked(struct task_struct *task, u64 unused)
{
	if (!kcoll_pin_is_tracked(task) && kcoll_pin_matches(task, task->comm))
		pin_check_task(task, task->comm);
}

static void pin_check_any(struct task_struct *task, u64 unused)
{
	if (kcoll_pin_is_tracked(task) || kcoll_pin_matches(task, task->comm))
		pin_check_task(task, task->comm);
}

/* How far the pass over all tasks is, and how many the one before met. Under the mutex. */
static struct {
	int number;
	u32 count, before;
} pin_pass = { .number = 1 };

static void pin_pass_begin(u32 before)
{
	pin_pass.number = 1;
	pin_pass.count = 0;
	pin_pass.before = before;
}

/*
 * A part of all tasks, once a second. For what no probe sees: a task gets another user, a leader's name
 * becomes that of its other threads, somebody else changes a task's CPUs, a kernel thread is no longer
 * too young. On a large machine it is seen within a minute: to look at all of 10^4 tasks each second
 * takes 1.5 % of a core. A pass that meets more than the one before goes on faster, so new tasks
 * do not hold it up.
 */
static void pin_look(void)
{
	u32 most = max_t(u32, LOOK_TASKS, pin_pass.before / LOOKS + 1);

	lockdep_assert_held(&kcoll_pin_mutex);
	if (pin_pass.count > pin_pass.before)
		most = max_t(u32, most, pin_pass.count / LOOKS_MORE + 1);
	pin_pass.count += pin_visit_tasks(&pin_pass.number, most, pin_check_any, 0);
	if (!pin_pass.number)
		pin_pass_begin(pin_pass.count);
}

/* All tasks that match and are not tracked, and all that are tracked. */
static void pin_serve_all(void)
{
	struct pin_task *pinned, *next;

	lockdep_assert_held(&kcoll_pin_mutex);
	pin_missed = false;
	pin_pass_begin(pin_visit_all(pin_check_untracked, 0));
	pin_serve();
	for (pinned = kcoll_pin_next(NULL); pinned; pinned = next) {
		next = kcoll_pin_next(pinned);
		if (READ_ONCE(pinned->task->flags) & PF_EXITING)
			kcoll_pin_entry_free(pinned);
		else
			pin_check_task(pinned->task, pinned->task->comm);
		cond_resched();
	}
}

/*
 * For a CPU that comes back is told of before it is active. Costs a look at each entry a second,
 * while there is one that waits.
 */
static void pin_look_at_waiting(void)
{
	struct pin_task *pinned, *next;

	lockdep_assert_held(&kcoll_pin_mutex);
	if (!pin_waits)
		return;
	pin_waits = false;
	for (pinned = kcoll_pin_next(NULL); pinned; pinned = next) {
		next = kcoll_pin_next(pinned);
		if (pinned->stranded || pinned->put_off)
			pin_check_task(pinned->task, pinned->task->comm);
		cond_resched();
	}
}

/* 6.1's cpusets give this thread other CPUs when they change. */
static void pin_stay(void)
{
	const struct pin_rules *now =
		rcu_dereference_protected(kcoll_pin_rules, lockdep_is_held(&kcoll_pin_mutex));

	if (now && !cpumask_equal(current->cpus_ptr, now->housekeeping))
		set_cpus_allowed_ptr(current, now->housekeeping);
}

static int pin_thread(void *unused)
{
	unsigned long due = jiffies + LOOK_EVERY;

	while (!kthread_should_stop()) {
		set_current_state(TASK_IDLE);
		if (!kcoll_pin_seen_any() && !kthread_should_stop())
			schedule_timeout(max_t(long, 1, due - jiffies));
		__set_current_state(TASK_RUNNING);
		kcoll_pin_reserve();
		mutex_lock(&kcoll_pin_mutex);
		pin_serve();
		if (kcoll_pin_seen_too_many())
			pin_serve_all();
		if (time_after_eq(jiffies, due)) {
			pin_stay();
			if (pin_missed)
				pin_serve_all();
			else
				pin_look();
			pin_look_at_waiting();
			due = jiffies + LOOK_EVERY;
		}
		mutex_unlock(&kcoll_pin_mutex);
	}
	return 0;
}

static int pin_make_thread(const struct pin_rules *first)
{
	struct task_struct *task =
		kcoll_thread_make(pin_thread, NULL, NULL, first->housekeeping, "coll-pin");

	if (IS_ERR(task))
		return PTR_ERR(task);
	sched_set_fifo_low(task);	/* it works little, but at once */
	WRITE_ONCE(kcoll_pin_thread, task);
	wake_up_process(task);
	return 0;
}

/* ---- set, clear ---------------------------------------------------------------------- */

bool kcoll_pin_tasks_active(void)
{
	return kcoll_pin_thread;
}

/* When no probe is attached: then the CPUs' hotplug alone may be about to wake it. */
static void pin_stop_thread(void)
{
	struct task_struct *task = kcoll_pin_thread;

	WRITE_ONCE(kcoll_pin_thread, NULL);
	synchronize_rcu();
	kthread_stop(task);
}

static void pin_publish(struct pin_rules *next)
{
	struct pin_rules *old;

	mutex_lock(&kcoll_pin_mutex);
	old = rcu_replace_pointer(kcoll_pin_rules, next, lockdep_is_held(&kcoll_pin_mutex));
	mutex_unlock(&kcoll_pin_mutex);
	synchronize_rcu();
	kcoll_pin_rules_free(old);
}

static int pin_start(struct pin_rules *first)
{
	int error = kcoll_pin_reserve();

	if (!error)
		error = pin_make_thread(first);
	if (error) {
		kcoll_pin_probes_end();
		return error;
	}
	error = kcoll_pin_probes_attach();
	if (error) {
		pin_stop_thread();
		kcoll_pin_probes_end();
	}
	return error;
}

/* Rules count from the beginning; what somebody else changed stays theirs. */
static void pin_forget_indices(void)
{
	struct pin_task *pinned;

	for (pinned = kcoll_pin_next(NULL); pinned; pinned = kcoll_pin_next(pinned))
		WRITE_ONCE(pinned->rule, -1);
}

int kcoll_pin_tasks_set(struct pin_rules *next)
{
	struct pin_rules *old;
	int error = 0;

	if (kcoll_pin_thread)
		set_cpus_allowed_ptr(kcoll_pin_thread, next->housekeeping);
	else
		error = pin_start(next);
	if (error)
		return error;
	mutex_lock(&kcoll_pin_mutex);
	pin_forget_indices();
	old = rcu_replace_pointer(kcoll_pin_rules, next, lockdep_is_held(&kcoll_pin_mutex));
	pin_serve_all();
	mutex_unlock(&kcoll_pin_mutex);
	synchronize_rcu();
	kcoll_pin_rules_free(old);
	return 0;
}

/* Whether there were any. */
static bool pin_restore_all(void)
{
	struct pin_task *pinned;
	bool any = false;

	lockdep_assert_held(&kcoll_pin_mutex);
	for (pinned = kcoll_pin_next(NULL); pinned; pinned = kcoll_pin_next(pinned)) {
		if (pinned->state != COLL_PIN_MOVED)
			continue;
		kcoll_pin_restore(pinned);
		kcoll_pin_set_state(pinned, COLL_PIN_RESTORED, 0);
		any = true;
		cond_resched();
	}
	return any;
}

/*
 * A child that took over its parent's CPUs before those were given back may show
 * up afterwards. The entries wait for them, as long as a fork lasts.
 */
static void pin_restore_with_children(void)
{
	bool any = true;

	while (any) {
		mutex_lock(&kcoll_pin_mutex);
		any = pin_restore_all();
		mutex_unlock(&kcoll_pin_mutex);
		if (any)
			fsleep(BIRTHS / NSEC_PER_USEC);
	}
}

/* A child of a fork that took longer still: it is younger than the clearing. */
static void pin_inherit_young(struct task_struct *task, u64 cleared_at)
{
	if (task->start_time < cleared_at || kcoll_pin_is_tracked(task) ||
	    kcoll_pin_entries_reserve())
		return;
	rcu_read_lock();
	if (pid_alive(task) && !kcoll_pin_inherit(rcu_dereference(task->real_parent), task))
		kcoll_pin_inherit(task->group_leader, task);
	rcu_read_unlock();
}

static void pin_restore_young_children(u64 cleared_at)
{
	pin_visit_all(pin_inherit_young, cleared_at);
	mutex_lock(&kcoll_pin_mutex);
	pin_restore_all();
	mutex_unlock(&kcoll_pin_mutex);
}

static void pin_empty(void)
{
	struct pin_task *pinned;

	mutex_lock(&kcoll_pin_mutex);
	while ((pinned = kcoll_pin_next(NULL)))
		kcoll_pin_entry_free(pinned);
	mutex_unlock(&kcoll_pin_mutex);
	kcoll_pin_probes_end();
}

void kcoll_pin_tasks_clear(void)
{
	u64 cleared_at = ktime_get_ns();

	if (!kcoll_pin_thread)
		return;
	mutex_lock(&kcoll_pin_mutex);
	pin_serve();
	mutex_unlock(&kcoll_pin_mutex);
	pin_publish(NULL);
	pin_restore_with_children();
	kcoll_pin_probes_detach();
	pin_stop_thread();
	pin_restore_young_children(cleared_at);
	pin_empty();
}

void kcoll_pin_tasks_end(void)
{
	kcoll_pin_probes_wait();
}

/* ---- for dumps ------------------------------------------------------------------------- */

int kcoll_pin_tasks_each_rule(u32 from,
			      int (*each)(const struct pin_rule *rule, u32 index, void *data),
			      void *data)
{
	const struct pin_rules *now;
	int error = 0;
	u32 i;

	rcu_read_lock();
	now = rcu_dereference(kcoll_pin_rules);
	for (i = from; now && i < now->count && !error; i++)
		error = each(&now->rule[i], i, data);
	rcu_read_unlock();
	return error;
}
