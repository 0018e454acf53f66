// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks found and handed to their rules. Probes see forks, execs, renames, changes of
 * cgroup and exits. They may not sleep, so they queue the task for a thread on the
 * housekeeping CPUs. If the thread has not handled the task before it returns to user
 * space, the task handles the queue itself: no matching task ever computes on a CPU
 * where it does not belong. The thread also checks all tasks once a second, for changes
 * that no probe sees (a changed uid) and for changes by other programs.
 *
 * A child starts with its parent's CPUs and is tracked as pinned from then on, because
 * it must get back the CPUs that its parent had before.
 */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/cgroup.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <linux/wait.h>

#include <trace/events/cgroup.h>
#include <trace/events/sched.h>
#include <trace/events/task.h>

#include "kmod/common/compat.h"
#include "kmod/common/netlink.h"
#include "pin_entry.h"
#include "kmod/common/trace.h"

#define LOOK_EVERY	HZ
#define BIRTHS		(20 * NSEC_PER_MSEC)	/* a fork takes less */

static struct pin_rules __rcu *rules;
static struct task_struct *thread;
static LLIST_HEAD(seen);
static bool look_at_all;
static atomic_t task_works = ATOMIC_INIT(0);	/* tasks that will serve the list themselves */
static bool any_task_work;			/* ever */
static DECLARE_WAIT_QUEUE_HEAD(task_works_done);

static struct pin_rule *pin_rule_of(int index)
{
	return &rcu_dereference_protected(rules, lockdep_is_held(&kcoll_pin_mutex))->rule[index];
}

static void pin_report_changed(struct pin_task *pinned)
{
	char comm[TASK_COMM_LEN];

	strscpy(comm, pinned->task->comm, sizeof(comm));
	kcoll_pin_set_state(pinned, COLL_PIN_CHANGED, 0);
	if (pinned->rule >= 0)
		pin_rule_of(pinned->rule)->changed++;
	kcoll_tell(&(struct kcoll_happened){
		.kind = COLL_EVENT_PIN_CHANGED, .cpu = -1, .pid = task_pid_nr(pinned->task),
		.name = comm, .reason = "somebody else changed its CPUs; left alone" });
}

/* ---- looking at a task ------------------------------------------------------------- */

static struct pin_task *pin_track(struct task_struct *task)
{
	struct pin_task *pinned = kcoll_pin_entry_make(GFP_KERNEL);

	if (!pinned)
		return NULL;
	cpumask_copy(pinned->saved, &task->cpus_mask);
	cpumask_copy(pinned->set, &task->cpus_mask);
	pinned->state = COLL_PIN_KEPT;
	pinned->rule = -1;
	kcoll_pin_entry_add(pinned, task);
	return pinned;
}

/* The task matches this rule: it is moved to the rule's CPUs, unless it is there. */
static void pin_settle(struct pin_task *pinned, int index)
{
	struct pin_rule *rule = pin_rule_of(index);
	bool known = pinned->rule == index && !pinned->inherited;
	const struct cpumask *has = &pinned->task->cpus_mask;

	if (pinned->state == COLL_PIN_CHANGED)
		return;
	if (pinned->state == COLL_PIN_MOVED && !pinned->inherited && !kcoll_pin_in_place(pinned)) {
		pin_report_changed(pinned);
		return;
	}
	if (!known)
		rule->matched++;
	pinned->rule = index;
	if (cpumask_subset(has, rule->cpus)) {
		if (pinned->state != COLL_PIN_MOVED)
			pinned->state = COLL_PIN_KEPT;
		else if (!known)
			rule->moved++;
		kcoll_pin_set_where(pinned);
	} else if (!known || pinned->state == COLL_PIN_KEPT) {
		if (pinned->state != COLL_PIN_MOVED)
			cpumask_copy(pinned->saved, has);
		kcoll_pin_move(pinned, rule);
	}
	pinned->inherited = false;
}

/*
 * Who makes a kernel thread binds it to its CPU a little later, and then it must
 * not be moved: that is waited for, so that it cannot happen while we look.
 */
static bool pin_too_young(const struct task_struct *task)
{
	return task->flags & PF_KTHREAD && ktime_get_ns() - task->start_time < NSEC_PER_SEC;
}

static void pin_check_task(struct task_struct *task, const char *comm)
{
	const struct pin_rules *now =
		rcu_dereference_protected(rules, lockdep_is_held(&kcoll_pin_mutex));
	struct pin_task *pinned = kcoll_pin_find(task);
	int index;

	if (!now || task->flags & PF_EXITING || pin_too_young(task))
		return;
	rcu_read_lock();
	index = kcoll_pin_rules_match(now, task, comm, pinned ? pinned->rule : -1);
	rcu_read_unlock();
	if (index >= 0 && now->rule[index].keep) {
		if (!pinned)
			pin_rule_of(index)->matched++;
		index = -1;
	}
	if (index < 0) {
		if (pinned && pinned->state != COLL_PIN_CHANGED) {
			kcoll_pin_restore(pinned);
			kcoll_pin_entry_free(pinned);
		}
		return;
	}
	if (!pinned)
		pinned = pin_track(task);
	if (pinned)
		pin_settle(pinned, index);
}

/* ---- what probes have seen ------------------------------------------------------------ */

struct pin_sighting {
	struct llist_node node;
	struct task_struct *task;
	bool exited;
	char comm[TASK_COMM_LEN];
};

static void pin_serve(void);

/* The task itself, before it goes on in user space. */
static void pin_task_work(struct callback_head *head)
{
	kfree(head);
	mutex_lock(&kcoll_pin_mutex);
	pin_serve();
	mutex_unlock(&kcoll_pin_mutex);
	if (atomic_dec_and_test(&task_works))
		wake_up(&task_works_done);
}

/*
 * A task that is on its way to user space: itself, or newly born. Who never goes
 * there, or may be held up by its tracer, is left to the thread. In a probe.
 */
static void pin_add_task_work(struct task_struct *task)
{
	struct callback_head *head;

	if (task->flags & (PF_KTHREAD | COLL_PF_WORKER) || task->ptrace)
		return;
	head = kmalloc(sizeof(*head), GFP_NOWAIT | __GFP_NOWARN);
	if (!head)
		return;
	init_task_work(head, pin_task_work);
	WRITE_ONCE(any_task_work, true);
	atomic_inc(&task_works);
	if (!task_work_add(task, head, TWA_RESUME))
		return;
	kfree(head);		/* it exits */
	if (atomic_dec_and_test(&task_works))
		wake_up(&task_works_done);
}

/* Any context, with preemption off. */
static void pin_report(struct task_struct *task, const char *comm, bool exited)
{
	struct pin_sighting *sight = kmalloc(sizeof(*sight), GFP_NOWAIT | __GFP_NOWARN);

	if (sight) {
		sight->task = get_task_struct(task);
		sight->exited = exited;
		strscpy(sight->comm, comm, sizeof(sight->comm));
		llist_add(&sight->node, &seen);
	} else {
		WRITE_ONCE(look_at_all, true);
	}
	wake_up_process(thread);
}

static bool pin_matches(struct task_struct *task, const char *comm)
{
	const struct pin_rules *now;
	bool wanted;

	rcu_read_lock();
	now = rcu_dereference(rules);
	wanted = now && kcoll_pin_rules_match(now, task, comm, -1) >= 0;
	rcu_read_unlock();
	return wanted;
}

static void pin_report_if_matching(struct task_struct *task, const char *comm, bool on_its_way)
{
	if (!kcoll_pin_is_tracked(task) && !pin_matches(task, comm))
		return;
	pin_report(task, comm, false);
	if (on_its_way)
		pin_add_task_work(task);
}

static void probe_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	preempt_disable_notrace();
	if (kcoll_pin_inherit(parent, child))
		pin_report(child, child->comm, false);
	else
		pin_report_if_matching(child, child->comm, true);
	preempt_enable_notrace();
}

static void probe_exec(void *data, struct task_struct *task, pid_t old_pid,
		       struct linux_binprm *binprm)
{
	preempt_disable_notrace();
	pin_report_if_matching(task, task->comm, true);
	preempt_enable_notrace();
}

static void probe_rename(void *data, struct task_struct *task, const char *comm)
{
	preempt_disable_notrace();
	pin_report_if_matching(task, comm, task == current);	/* it has its old name still */
	preempt_enable_notrace();
}

/* Perhaps of a whole process, with interrupts off. */
static void probe_attach(void *data, struct cgroup *cgroup, const char *path,
			 struct task_struct *task, bool threadgroup)
{
	preempt_disable_notrace();
	WRITE_ONCE(look_at_all, true);
	wake_up_process(thread);
	preempt_enable_notrace();
}

static void probe_exit(void *data, COLL_PROCESS_EXIT_ARGS)
{
	preempt_disable_notrace();
	if (kcoll_pin_is_tracked(task))
		pin_report(task, task->comm, true);
	preempt_enable_notrace();
}

static struct kcoll_probe probes[] = {
	{ .name = "sched_process_fork", .function = probe_fork },
	{ .name = "sched_process_exec", .function = probe_exec },
	{ .name = "sched_process_exit", .function = probe_exit },
	{ .name = "task_rename", .function = probe_rename },
	{ .name = "cgroup_attach_task", .function = probe_attach },
};

COLL_PROBE_CHECK(sched_process_fork, probe_fork);
COLL_PROBE_CHECK(sched_process_exec, probe_exec);
COLL_PROBE_CHECK(sched_process_exit, probe_exit);
COLL_PROBE_CHECK(task_rename, probe_rename);
COLL_PROBE_CHECK(cgroup_attach_task, probe_attach);

/* ---- the thread ------------------------------------------------------------------------ */

static void pin_task_exited(const struct task_struct *task)
{
	struct pin_task *pinned = kcoll_pin_find(task);

	if (pinned)
		kcoll_pin_entry_free(pinned);
}

static void pin_serve(void)
{
	struct llist_node *list = llist_reverse_order(llist_del_all(&seen));
	struct pin_sighting *sight, *next;

	lockdep_assert_held(&kcoll_pin_mutex);
	llist_for_each_entry_safe(sight, next, list, node) {
		if (sight->exited)
			pin_task_exited(sight->task);
		else
			pin_check_task(sight->task, sight->comm);
		put_task_struct(sight->task);
		kfree(sight);
		cond_resched();
	}
}

/* All tasks that match and are not tracked, and all that are tracked. */
static void pin_serve_all(void)
{
	struct task_struct *process, *task;
	struct pin_task *pinned, *next;

	lockdep_assert_held(&kcoll_pin_mutex);
	rcu_read_lock();
	for_each_process_thread(process, task)
		if (!(task->flags & PF_EXITING) && !kcoll_pin_is_tracked(task) &&
		    pin_matches(task, task->comm))
			pin_report(task, task->comm, false);
	rcu_read_unlock();
	pin_serve();
	for (pinned = kcoll_pin_next(NULL); pinned; pinned = next) {
		next = kcoll_pin_next(pinned);
		if (pinned->task->flags & PF_EXITING)
			kcoll_pin_entry_free(pinned);
		else
			pin_check_task(pinned->task, pinned->task->comm);
		cond_resched();
	}
}

static int pin_thread(void *unused)
{
	unsigned long due = jiffies + LOOK_EVERY;

	while (!kthread_should_stop()) {
		set_current_state(TASK_IDLE);
		if (llist_empty(&seen) && !READ_ONCE(look_at_all) && !kthread_should_stop())
			schedule_timeout(max_t(long, 1, due - jiffies));
		__set_current_state(TASK_RUNNING);
		mutex_lock(&kcoll_pin_mutex);
		pin_serve();
		if (xchg(&look_at_all, false) || time_after_eq(jiffies, due)) {
			pin_serve_all();
			due = jiffies + LOOK_EVERY;
		}
		mutex_unlock(&kcoll_pin_mutex);
	}
	return 0;
}

static int pin_make_thread(const struct pin_rules *first)
{
	struct task_struct *task = kthread_create(pin_thread, NULL, "coll-pin");

	if (IS_ERR(task))
		return PTR_ERR(task);
	set_cpus_allowed_ptr(task, first->housekeeping);
	sched_set_fifo_low(task);	/* it works little, but at once */
	thread = task;
	wake_up_process(thread);
	return 0;
}

/* ---- set, clear ---------------------------------------------------------------------- */

bool kcoll_pin_tasks_active(void)
{
	return thread;
}

static void pin_publish(struct pin_rules *next)
{
	struct pin_rules *old;

	mutex_lock(&kcoll_pin_mutex);
	old = rcu_replace_pointer(rules, next, lockdep_is_held(&kcoll_pin_mutex));
	mutex_unlock(&kcoll_pin_mutex);
	synchronize_rcu();
	kcoll_pin_rules_free(old);
}

static int pin_start(struct pin_rules *first)
{
	int error = pin_make_thread(first);

	if (error)
		return error;
	error = kcoll_probes_attach(probes, ARRAY_SIZE(probes), NULL);
	if (error) {
		kthread_stop(thread);
		thread = NULL;
	}
	return error;
}

/* Rules count from the beginning; what somebody else changed stays theirs. */
static void pin_forget_indices(void)
{
	struct pin_task *pinned;

	for (pinned = kcoll_pin_next(NULL); pinned; pinned = kcoll_pin_next(pinned))
		pinned->rule = -1;
}

int kcoll_pin_tasks_set(struct pin_rules *next)
{
	struct pin_rules *old;
	int error = 0;

	if (thread)
		set_cpus_allowed_ptr(thread, next->housekeeping);
	else
		error = pin_start(next);
	if (error)
		return error;
	mutex_lock(&kcoll_pin_mutex);
	pin_forget_indices();
	old = rcu_replace_pointer(rules, next, lockdep_is_held(&kcoll_pin_mutex));
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
static void pin_restore_young_children(u64 cleared_at)
{
	struct task_struct *process, *task;

	rcu_read_lock();
	for_each_process_thread(process, task)
		if (task->start_time >= cleared_at && !kcoll_pin_is_tracked(task) &&
		    !kcoll_pin_inherit(rcu_dereference(task->real_parent), task))
			kcoll_pin_inherit(task->group_leader, task);
	rcu_read_unlock();
	mutex_lock(&kcoll_pin_mutex);
	pin_restore_all();
	mutex_unlock(&kcoll_pin_mutex);
}

static void pin_empty(void)
{
	struct llist_node *list = llist_del_all(&seen);
	struct pin_sighting *sight, *next;
	struct pin_task *pinned;

	llist_for_each_entry_safe(sight, next, list, node) {
		put_task_struct(sight->task);
		kfree(sight);
	}
	mutex_lock(&kcoll_pin_mutex);
	while ((pinned = kcoll_pin_next(NULL)))
		kcoll_pin_entry_free(pinned);
	mutex_unlock(&kcoll_pin_mutex);
}

void kcoll_pin_tasks_clear(void)
{
	u64 cleared_at = ktime_get_ns();

	if (!thread)
		return;
	mutex_lock(&kcoll_pin_mutex);
	pin_serve();
	mutex_unlock(&kcoll_pin_mutex);
	pin_publish(NULL);
	pin_restore_with_children();
	kcoll_probes_detach(probes, ARRAY_SIZE(probes), NULL);
	kthread_stop(thread);
	thread = NULL;
	pin_restore_young_children(cleared_at);
	pin_empty();
}

/*
 * No task can be told to forget its promise: it keeps it when it next leaves the
 * kernel. After the wait one may still be on its way out of pin_task_work().
 */
void kcoll_pin_tasks_end(void)
{
	if (!any_task_work)
		return;
	wait_event(task_works_done, !atomic_read(&task_works));
	synchronize_rcu_tasks();
}

/* ---- for dumps ------------------------------------------------------------------------- */

int kcoll_pin_tasks_each_rule(u32 from,
			      int (*each)(const struct pin_rule *rule, u32 index, void *data),
			      void *data)
{
	const struct pin_rules *now;
	int error = 0;
	u32 i;

	mutex_lock(&kcoll_pin_mutex);
	now = rcu_dereference_protected(rules, lockdep_is_held(&kcoll_pin_mutex));
	for (i = from; now && i < now->count && !error; i++)
		error = each(&now->rule[i], i, data);
	mutex_unlock(&kcoll_pin_mutex);
	return error;
}

int kcoll_pin_tasks_each(u64 from, int (*each)(const struct pin_task *task, void *data), void *data)
{
	struct pin_task *pinned;
	int error = 0;

	mutex_lock(&kcoll_pin_mutex);
	for (pinned = kcoll_pin_next(NULL); pinned && !error; pinned = kcoll_pin_next(pinned))
		if (pinned->number >= from && !(pinned->task->flags & PF_EXITING) &&
		    pinned->state <= COLL_PIN_CHANGED)
			error = each(pinned, data);
	mutex_unlock(&kcoll_pin_mutex);
	return error;
}
