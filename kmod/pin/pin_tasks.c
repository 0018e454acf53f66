// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks found, moved and given back. Probes see forks, execs, renames, changes
 * of cgroup and exits; they may not sleep, so they put the task on a list, for a
 * thread on the housekeeping CPUs that may. If that has not come to it before the
 * task goes on in user space, the task looks after the list itself: so none that
 * matches ever computes where it does not belong. The thread also looks at all
 * tasks once a second: for what no probe sees (a uid that changes) and for changes
 * by somebody else.
 *
 * A child is born with its parent's CPUs. It is known to be pinned from then
 * on, for it has to be given back what its parent had before.
 */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/cgroup.h>
#include <linux/delay.h>
#include <linux/hashtable.h>
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
#include "pin.h"
#include "kmod/common/trace.h"

#define LOOK_EVERY	HZ
#define BIRTHS		(20 * NSEC_PER_MSEC)	/* a fork takes less */

/* Given back, but children may have been under way. */
enum { RESTORED = COLL_PIN_CHANGED + 1 };

static DEFINE_MUTEX(mutex);			/* entries are freed and changed under it ... */
static DEFINE_RAW_SPINLOCK(lock);		/* ... and are found and added under this */
static DEFINE_HASHTABLE(table, 12);
static LIST_HEAD(tasks);
static u64 last_number;

static struct pin_rules __rcu *rules;
static struct cpumask target;			/* of the move that the mutex's holder makes */
static struct task_struct *thread;
static LLIST_HEAD(seen);
static bool look_at_all;
static atomic_t promised = ATOMIC_INIT(0);	/* tasks that will serve the list themselves */
static bool any_promised;			/* ever */
static DECLARE_WAIT_QUEUE_HEAD(all_kept);

/* ---- entries -------------------------------------------------------------------- */

static struct pin_task *find(const struct task_struct *task)
{
	struct pin_task *pinned;

	hash_for_each_possible(table, pinned, hash, (unsigned long)task)
		if (pinned->task == task)
			return pinned;
	return NULL;
}

/* For the mutex's holder, who alone frees. */
static struct pin_task *find_locked(const struct task_struct *task)
{
	struct pin_task *pinned;
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	pinned = find(task);
	raw_spin_unlock_irqrestore(&lock, flags);
	return pinned;
}

static struct pin_task *make(gfp_t gfp)
{
	struct pin_task *pinned = kzalloc(sizeof(*pinned) + 2 * cpumask_size(), gfp);

	if (!pinned)
		return NULL;
	pinned->saved = (struct cpumask *)(pinned + 1);
	pinned->set = (struct cpumask *)((char *)pinned->saved + cpumask_size());
	return pinned;
}

/* Under the lock. */
static void add(struct pin_task *pinned, struct task_struct *task)
{
	pinned->task = get_task_struct(task);
	pinned->number = ++last_number;
	hash_add(table, &pinned->hash, (unsigned long)task);
	list_add_tail(&pinned->list, &tasks);
}

static void forget(struct pin_task *pinned)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	hash_del(&pinned->hash);
	list_del(&pinned->list);
	raw_spin_unlock_irqrestore(&lock, flags);
	put_task_struct(pinned->task);
	kfree(pinned);
}

/* Others add at the end while one walks: the next is taken under the lock. */
static struct pin_task *next_of(struct pin_task *pinned)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	pinned = pinned ? list_next_entry(pinned, list) :
			  list_first_entry(&tasks, struct pin_task, list);
	if (list_entry_is_head(pinned, &tasks, list))
		pinned = NULL;
	raw_spin_unlock_irqrestore(&lock, flags);
	return pinned;
}

/* ---- moving ---------------------------------------------------------------------- */

static struct pin_rule *rule_of(int index)
{
	return &rcu_dereference_protected(rules, lockdep_is_held(&mutex))->rule[index];
}

static bool is_where_we_put_it(const struct pin_task *pinned)
{
	return cpumask_equal(&pinned->task->cpus_mask, pinned->set);
}

static bool in_own_cpuset(struct task_struct *task)
{
#ifdef CONFIG_CPUSETS
	bool own;

	rcu_read_lock();
	own = task_css(task, cpuset_cgrp_id)->parent;
	rcu_read_unlock();
	return own;
#else
	return false;
#endif
}

/* 0: it may be moved to `to`, which a cpuset makes smaller; else a state, and *error. */
static int may_move(struct task_struct *task, const struct cpumask *had, struct cpumask *to,
		    int *error)
{
	bool kthread = task->flags & PF_KTHREAD;

	*error = 0;
	if (kthread && cpumask_weight(had) == 1)
		return COLL_PIN_PER_CPU;
	if (task->flags & PF_NO_SETAFFINITY)
		*error = EPERM;
	else if (task->policy == SCHED_DEADLINE)
		*error = EBUSY;
	else if (in_own_cpuset(task) && !cpumask_and(to, to, had))
		*error = EINVAL;
	return *error ? COLL_PIN_REFUSED : 0;
}

static void set_state(struct pin_task *pinned, u8 state, int error)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	pinned->state = state;
	pinned->error = error;
	raw_spin_unlock_irqrestore(&lock, flags);
}

/* It is where it should be. */
static void set_where(struct pin_task *pinned)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	cpumask_copy(pinned->set, &pinned->task->cpus_mask);
	raw_spin_unlock_irqrestore(&lock, flags);
}

static void put_back(const struct pin_task *pinned)
{
	/* All of them offline by now: anywhere, as the scheduler would. */
	if (set_cpus_allowed_ptr(pinned->task, pinned->saved) == -EINVAL)
		set_cpus_allowed_ptr(pinned->task, cpu_possible_mask);
}

/*
 * Before the task moves the entry says that it has, and what it had: a child born
 * meanwhile is told that, whichever CPUs it was born with. Who was moved by an
 * earlier rule and cannot go where this one wants it gets back what it had.
 */
static void move(struct pin_task *pinned, struct pin_rule *rule)
{
	const bool had_moved = pinned->state == COLL_PIN_MOVED;
	int error, state;

	cpumask_copy(&target, rule->cpus);
	state = may_move(pinned->task, pinned->saved, &target, &error);
	if (state == COLL_PIN_MOVED) {
		set_state(pinned, COLL_PIN_MOVED, 0);
		error = -set_cpus_allowed_ptr(pinned->task, &target);
		if (error)
			state = COLL_PIN_REFUSED;
	}
	if (had_moved && state != COLL_PIN_MOVED)
		put_back(pinned);
	set_state(pinned, state, error);
	set_where(pinned);
	rule->moved += state == COLL_PIN_MOVED;
	rule->refused += state == COLL_PIN_REFUSED;
}

static void give_back(struct pin_task *pinned)
{
	if (pinned->state == COLL_PIN_MOVED && is_where_we_put_it(pinned))
		put_back(pinned);
}

static void tell_changed(struct pin_task *pinned)
{
	char comm[TASK_COMM_LEN];

	strscpy(comm, pinned->task->comm, sizeof(comm));
	set_state(pinned, COLL_PIN_CHANGED, 0);
	if (pinned->rule >= 0)
		rule_of(pinned->rule)->changed++;
	kcoll_tell(&(struct kcoll_happened){
		.kind = COLL_EVENT_PIN_CHANGED, .cpu = -1, .pid = task_pid_nr(pinned->task),
		.name = comm, .reason = "somebody else changed its CPUs; left alone" });
}

/* ---- looking at a task ------------------------------------------------------------- */

static struct pin_task *track(struct task_struct *task)
{
	struct pin_task *pinned = make(GFP_KERNEL);
	unsigned long flags;

	if (!pinned)
		return NULL;
	cpumask_copy(pinned->saved, &task->cpus_mask);
	cpumask_copy(pinned->set, &task->cpus_mask);
	pinned->state = COLL_PIN_KEPT;
	pinned->rule = -1;
	raw_spin_lock_irqsave(&lock, flags);
	add(pinned, task);
	raw_spin_unlock_irqrestore(&lock, flags);
	return pinned;
}

/* The task matches this rule: it goes where it belongs, unless it is there. */
static void settle(struct pin_task *pinned, int index)
{
	struct pin_rule *rule = rule_of(index);
	bool known = pinned->rule == index && !pinned->inherited;
	const struct cpumask *has = &pinned->task->cpus_mask;

	if (pinned->state == COLL_PIN_CHANGED)
		return;
	if (pinned->state == COLL_PIN_MOVED && !pinned->inherited && !is_where_we_put_it(pinned)) {
		tell_changed(pinned);
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
		set_where(pinned);
	} else if (!known || pinned->state == COLL_PIN_KEPT) {
		if (pinned->state != COLL_PIN_MOVED)
			cpumask_copy(pinned->saved, has);
		move(pinned, rule);
	}
	pinned->inherited = false;
}

/*
 * Who makes a kernel thread binds it to its CPU a little later, and then it must
 * not be moved: that is waited for, so that it cannot happen while we look.
 */
static bool too_young(const struct task_struct *task)
{
	return task->flags & PF_KTHREAD && ktime_get_ns() - task->start_time < NSEC_PER_SEC;
}

static void look_at(struct task_struct *task, const char *comm)
{
	const struct pin_rules *now = rcu_dereference_protected(rules, lockdep_is_held(&mutex));
	struct pin_task *pinned = find_locked(task);
	int index;

	if (!now || task->flags & PF_EXITING || too_young(task))
		return;
	rcu_read_lock();
	index = kcoll_pin_rules_match(now, task, comm, pinned ? pinned->rule : -1);
	rcu_read_unlock();
	if (index >= 0 && now->rule[index].keep) {
		if (!pinned)
			rule_of(index)->matched++;
		index = -1;
	}
	if (index < 0) {
		if (pinned && pinned->state != COLL_PIN_CHANGED) {
			give_back(pinned);
			forget(pinned);
		}
		return;
	}
	if (!pinned)
		pinned = track(task);
	if (pinned)
		settle(pinned, index);
}

/* ---- what probes have seen ------------------------------------------------------------ */

struct sight {
	struct llist_node node;
	struct task_struct *task;
	bool exited;
	char comm[TASK_COMM_LEN];
};

static void serve(void);

/* The task itself, before it goes on in user space. */
static void keep_promise(struct callback_head *head)
{
	kfree(head);
	mutex_lock(&mutex);
	serve();
	mutex_unlock(&mutex);
	if (atomic_dec_and_test(&promised))
		wake_up(&all_kept);
}

/*
 * A task that is on its way to user space: itself, or newly born. Who never goes
 * there, or may be held up by its tracer, is left to the thread. In a probe.
 */
static void promise(struct task_struct *task)
{
	struct callback_head *head;

	if (task->flags & (PF_KTHREAD | COLL_PF_WORKER) || task->ptrace)
		return;
	head = kmalloc(sizeof(*head), GFP_NOWAIT | __GFP_NOWARN);
	if (!head)
		return;
	init_task_work(head, keep_promise);
	WRITE_ONCE(any_promised, true);
	atomic_inc(&promised);
	if (!task_work_add(task, head, TWA_RESUME))
		return;
	kfree(head);		/* it exits */
	if (atomic_dec_and_test(&promised))
		wake_up(&all_kept);
}

/* From any context, with preemption off. */
static void report(struct task_struct *task, const char *comm, bool exited)
{
	struct sight *sight = kmalloc(sizeof(*sight), GFP_NOWAIT | __GFP_NOWARN);

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

static bool is_tracked(const struct task_struct *task)
{
	unsigned long flags;
	bool tracked;

	raw_spin_lock_irqsave(&lock, flags);
	tracked = find(task);
	raw_spin_unlock_irqrestore(&lock, flags);
	return tracked;
}

static bool is_wanted(struct task_struct *task, const char *comm)
{
	const struct pin_rules *now;
	bool wanted;

	rcu_read_lock();
	now = rcu_dereference(rules);
	wanted = now && kcoll_pin_rules_match(now, task, comm, -1) >= 0;
	rcu_read_unlock();
	return wanted;
}

static void report_if_ours(struct task_struct *task, const char *comm, bool on_its_way)
{
	if (!is_tracked(task) && !is_wanted(task, comm))
		return;
	report(task, comm, false);
	if (on_its_way)
		promise(task);
}

/* Under the lock: what a child of this one has to know. */
static bool hands_on(const struct pin_task *of_parent, const struct task_struct *child)
{
	if (!of_parent)
		return false;
	return of_parent->state == COLL_PIN_MOVED ||
	       (of_parent->state == RESTORED &&
		cpumask_equal(&child->cpus_mask, of_parent->set));
}

/*
 * The child of a pinned task is pinned: it has its CPUs already, and now its past.
 * Kernel threads begin with CPUs of their own.
 */
static bool inherit(const struct task_struct *parent, struct task_struct *child)
{
	struct pin_task *pinned, *of_parent;
	unsigned long flags;
	bool handed_on;

	if (!is_tracked(parent) || child->flags & PF_KTHREAD)
		return false;
	pinned = make(GFP_NOWAIT | __GFP_NOWARN);
	if (!pinned)
		return false;
	raw_spin_lock_irqsave(&lock, flags);
	of_parent = find(parent);
	handed_on = hands_on(of_parent, child);
	if (handed_on) {
		cpumask_copy(pinned->saved, of_parent->saved);
		cpumask_copy(pinned->set, of_parent->set);
		pinned->rule = of_parent->rule;
		pinned->state = COLL_PIN_MOVED;
		pinned->inherited = true;
		add(pinned, child);
	}
	raw_spin_unlock_irqrestore(&lock, flags);
	if (!handed_on)
		kfree(pinned);
	return handed_on;
}

static void probe_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	preempt_disable_notrace();
	if (inherit(parent, child))
		report(child, child->comm, false);
	else
		report_if_ours(child, child->comm, true);
	preempt_enable_notrace();
}

static void probe_exec(void *data, struct task_struct *task, pid_t old_pid,
		       struct linux_binprm *binprm)
{
	preempt_disable_notrace();
	report_if_ours(task, task->comm, true);
	preempt_enable_notrace();
}

static void probe_rename(void *data, struct task_struct *task, const char *comm)
{
	preempt_disable_notrace();
	report_if_ours(task, comm, task == current);	/* it has its old name still */
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
	if (is_tracked(task))
		report(task, task->comm, true);
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

static void gone(const struct task_struct *task)
{
	struct pin_task *pinned = find_locked(task);

	if (pinned)
		forget(pinned);
}

/* Under the mutex. */
static void serve(void)
{
	struct llist_node *list = llist_reverse_order(llist_del_all(&seen));
	struct sight *sight, *next;

	llist_for_each_entry_safe(sight, next, list, node) {
		if (sight->exited)
			gone(sight->task);
		else
			look_at(sight->task, sight->comm);
		put_task_struct(sight->task);
		kfree(sight);
		cond_resched();
	}
}

/* Under the mutex: all that match and are not known, and all that are known. */
static void serve_all(void)
{
	struct task_struct *process, *task;
	struct pin_task *pinned, *next;

	rcu_read_lock();
	for_each_process_thread(process, task)
		if (!(task->flags & PF_EXITING) && !is_tracked(task) &&
		    is_wanted(task, task->comm))
			report(task, task->comm, false);
	rcu_read_unlock();
	serve();
	for (pinned = next_of(NULL); pinned; pinned = next) {
		next = next_of(pinned);
		if (pinned->task->flags & PF_EXITING)
			forget(pinned);
		else
			look_at(pinned->task, pinned->task->comm);
		cond_resched();
	}
}

static int watch_tasks(void *unused)
{
	unsigned long due = jiffies + LOOK_EVERY;

	while (!kthread_should_stop()) {
		set_current_state(TASK_IDLE);
		if (llist_empty(&seen) && !READ_ONCE(look_at_all) && !kthread_should_stop())
			schedule_timeout(max_t(long, 1, due - jiffies));
		__set_current_state(TASK_RUNNING);
		mutex_lock(&mutex);
		serve();
		if (xchg(&look_at_all, false) || time_after_eq(jiffies, due)) {
			serve_all();
			due = jiffies + LOOK_EVERY;
		}
		mutex_unlock(&mutex);
	}
	return 0;
}

static int make_thread(const struct pin_rules *first)
{
	struct task_struct *task = kthread_create(watch_tasks, NULL, "coll-pin");

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

static void publish(struct pin_rules *next)
{
	struct pin_rules *old;

	mutex_lock(&mutex);
	old = rcu_replace_pointer(rules, next, lockdep_is_held(&mutex));
	mutex_unlock(&mutex);
	synchronize_rcu();
	kcoll_pin_rules_free(old);
}

static int start(struct pin_rules *first)
{
	int error = make_thread(first);

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
static void forget_indices(void)
{
	struct pin_task *pinned;

	for (pinned = next_of(NULL); pinned; pinned = next_of(pinned))
		pinned->rule = -1;
}

int kcoll_pin_tasks_set(struct pin_rules *next)
{
	struct pin_rules *old;
	int error = 0;

	if (thread)
		set_cpus_allowed_ptr(thread, next->housekeeping);
	else
		error = start(next);
	if (error)
		return error;
	mutex_lock(&mutex);
	forget_indices();
	old = rcu_replace_pointer(rules, next, lockdep_is_held(&mutex));
	serve_all();
	mutex_unlock(&mutex);
	synchronize_rcu();
	kcoll_pin_rules_free(old);
	return 0;
}

/* Under the mutex. Whether there were any. */
static bool restore_all(void)
{
	struct pin_task *pinned;
	bool any = false;

	for (pinned = next_of(NULL); pinned; pinned = next_of(pinned)) {
		if (pinned->state != COLL_PIN_MOVED)
			continue;
		give_back(pinned);
		set_state(pinned, RESTORED, 0);
		any = true;
		cond_resched();
	}
	return any;
}

/*
 * A child that took over its parent's CPUs before those were given back may show
 * up afterwards. The entries wait for them, as long as a fork lasts.
 */
static void restore_with_children(void)
{
	bool any = true;

	while (any) {
		mutex_lock(&mutex);
		any = restore_all();
		mutex_unlock(&mutex);
		if (any)
			fsleep(BIRTHS / NSEC_PER_USEC);
	}
}

/* A child of a fork that took longer still: it is younger than the clearing. */
static void restore_late_children(u64 cleared_at)
{
	struct task_struct *process, *task;

	rcu_read_lock();
	for_each_process_thread(process, task)
		if (task->start_time >= cleared_at && !is_tracked(task) &&
		    !inherit(rcu_dereference(task->real_parent), task))
			inherit(task->group_leader, task);
	rcu_read_unlock();
	mutex_lock(&mutex);
	restore_all();
	mutex_unlock(&mutex);
}

static void empty(void)
{
	struct llist_node *list = llist_del_all(&seen);
	struct sight *sight, *next;
	struct pin_task *pinned;

	llist_for_each_entry_safe(sight, next, list, node) {
		put_task_struct(sight->task);
		kfree(sight);
	}
	mutex_lock(&mutex);
	while ((pinned = next_of(NULL)))
		forget(pinned);
	mutex_unlock(&mutex);
}

void kcoll_pin_tasks_clear(void)
{
	u64 cleared_at = ktime_get_ns();

	if (!thread)
		return;
	mutex_lock(&mutex);
	serve();
	mutex_unlock(&mutex);
	publish(NULL);
	restore_with_children();
	kcoll_probes_detach(probes, ARRAY_SIZE(probes), NULL);
	kthread_stop(thread);
	thread = NULL;
	restore_late_children(cleared_at);
	empty();
}

/*
 * No task can be told to forget its promise: it keeps it when it next leaves the
 * kernel. After the wait one may still be on its way out of keep_promise().
 */
void kcoll_pin_tasks_end(void)
{
	if (!any_promised)
		return;
	wait_event(all_kept, !atomic_read(&promised));
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

	mutex_lock(&mutex);
	now = rcu_dereference_protected(rules, lockdep_is_held(&mutex));
	for (i = from; now && i < now->count && !error; i++)
		error = each(&now->rule[i], i, data);
	mutex_unlock(&mutex);
	return error;
}

int kcoll_pin_tasks_each(u64 from, int (*each)(const struct pin_task *task, void *data), void *data)
{
	struct pin_task *pinned;
	int error = 0;

	mutex_lock(&mutex);
	for (pinned = next_of(NULL); pinned && !error; pinned = next_of(pinned))
		if (pinned->number >= from && !(pinned->task->flags & PF_EXITING) &&
		    pinned->state <= COLL_PIN_CHANGED)
			error = each(pinned, data);
	mutex_unlock(&mutex);
	return error;
}
