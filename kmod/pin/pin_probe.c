// SPDX-License-Identifier: GPL-2.0
/*
 * Probes that see forks, execs, renames, changes of cgroup and exits. They may neither sleep
 * nor allocate, so they queue the task for the thread of pin_tasks.c. Where the kernel exports
 * task_work_add() the task waits for the thread before it returns to user space. It does not handle
 * the queue itself: other users' tasks would wait for its CPU time, of which it may have none.
 */
#include <linux/cgroup.h>
#include <linux/ktime.h>
#include <linux/llist.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <linux/wait.h>

#include <trace/events/cgroup.h>
#include <trace/events/sched.h>
#include <trace/events/task.h>

#include "kmod/common/compat.h"
#include "kmod/common/trace.h"
#include "pin_entry.h"
#include "pin_pool.h"
#include "pin_probe.h"

static bool pin_at_once = true;
module_param(pin_at_once, bool, 0444);
MODULE_PARM_DESC(pin_at_once,
		 "a matching task moves before it returns to user space, where the kernel exports task_work_add; N: soon after");

struct pin_rules __rcu *kcoll_pin_rules;
struct task_struct *kcoll_pin_thread;

static LLIST_HEAD(seen);
static bool look_at_all;
static atomic_t task_works = ATOMIC_INIT(0);	/* tasks that will wait for the thread */
static bool any_task_work;			/* ever */
static DECLARE_WAIT_QUEUE_HEAD(task_works_done);
static u32 rounds_begun, rounds_ended;		/* through the queue; written under the mutex */
static DECLARE_WAIT_QUEUE_HEAD(round_ended);
#define ROUND_WAIT	HZ			/* the thread is held up: the task goes on, and is moved later */
static bool thread_held_up;			/* since then no task waits, until a round has ended */

/* task_work_add(), or NULL: mainline does not export it, some distributions do. */
static int (*add_task_work)(struct task_struct *task, struct callback_head *work,
			    enum task_work_notify_mode notify);

static PIN_POOL(sightings, sizeof(struct pin_sighting));
static PIN_POOL(works, sizeof(struct callback_head));

int kcoll_pin_reserve(void)
{
	return kcoll_pin_pool_fill(&sightings) ?: kcoll_pin_pool_fill(&works) ?:
	       kcoll_pin_entries_reserve();
}

/* Whether all is handled that was queued when so many rounds had begun. */
static bool pin_is_served(u32 begun)
{
	bool empty = llist_empty(&seen);

	smp_rmb();	/* who has emptied it has begun a round before */
	return (empty && READ_ONCE(rounds_begun) == READ_ONCE(rounds_ended)) ||
	       (s32)(READ_ONCE(rounds_ended) - begun) > 0;
}

/* The task itself, before it goes on in user space. */
static void pin_task_work(struct callback_head *head)
{
	u32 begun = READ_ONCE(rounds_begun);

	kcoll_pin_pool_free(&works, head);
	if (!wait_event_timeout(round_ended, pin_is_served(begun) || READ_ONCE(thread_held_up), ROUND_WAIT)) {
		WRITE_ONCE(thread_held_up, true);
		wake_up_all(&round_ended);
	}
	if (atomic_dec_and_test(&task_works))
		wake_up(&task_works_done);
}

/*
 * A task that is on its way to user space: itself, or newly born. A task that never goes
 * there, or that its tracer may hold up, is left to the thread. In a probe.
 */
static void pin_add_task_work(struct task_struct *task)
{
	struct callback_head *head;

	if (!add_task_work || task->flags & (PF_KTHREAD | COLL_PF_WORKER) || task->ptrace)
		return;
	head = kcoll_pin_pool_take(&works);
	if (!head)
		return;
	init_task_work(head, pin_task_work);
	WRITE_ONCE(any_task_work, true);
	atomic_inc(&task_works);
	if (!add_task_work(task, head, TWA_RESUME))
		return;
	kcoll_pin_pool_give(&works, head);	/* it exits */
	atomic_dec(&task_works);	/* nobody waits while a probe is attached */
}

/* The thread is told. Any context, with preemption off. */
static void pin_report(struct task_struct *task, const char *comm,
		       enum kcoll_pin_sighting_kind kind)
{
	struct pin_sighting *sight = kcoll_pin_pool_take(&sightings);

	if (sight) {
		sight->task = get_task_struct(task);
		sight->kind = kind;
		strscpy(sight->comm, comm, sizeof(sight->comm));
		llist_add(&sight->node, &seen);
	} else {
		WRITE_ONCE(look_at_all, true);
	}
	wake_up_process(kcoll_pin_thread);
}

bool kcoll_pin_matches(struct task_struct *task, const char *comm)
{
	const struct pin_rules *now;
	int index;
	bool wanted;

	rcu_read_lock();
	now = rcu_dereference(kcoll_pin_rules);
	index = now ? kcoll_pin_rules_match(now, task, comm, -1) : -1;
	wanted = index >= 0 && !now->rule[index].keep;
	rcu_read_unlock();
	return wanted;
}

static void pin_report_if_matching(struct task_struct *task, const char *comm, bool on_its_way)
{
	if (!kcoll_pin_is_tracked(task) && !kcoll_pin_matches(task, comm))
		return;
	pin_report(task, comm, COLL_PIN_SEEN);
	if (on_its_way)
		pin_add_task_work(task);
}

static void probe_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	preempt_disable_notrace();
	if (kcoll_pin_inherit(parent, child))
		pin_report(child, child->comm, COLL_PIN_SEEN);
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

static bool pin_by_cgroup(void)
{
	const struct pin_rules *now;
	bool by_cgroup;

	rcu_read_lock();
	now = rcu_dereference(kcoll_pin_rules);
	by_cgroup = now && now->by_cgroup;
	rcu_read_unlock();
	return by_cgroup;
}

/*
 * With interrupts off. Any user to whom a cgroup is delegated causes this as often as it
 * likes: it costs a look at the threads that have moved, and nothing without cgroup rules.
 */
static void probe_attach(void *data, struct cgroup *cgroup, const char *path,
			 struct task_struct *task, bool threadgroup)
{
	preempt_disable_notrace();
	if (pin_by_cgroup())
		pin_report(task, task->comm, threadgroup ? COLL_PIN_SEEN_PROCESS : COLL_PIN_SEEN);
	preempt_enable_notrace();
}

static void probe_exit(void *data, COLL_PROCESS_EXIT_ARGS)
{
	preempt_disable_notrace();
	if (kcoll_pin_is_tracked(task))
		pin_report(task, task->comm, COLL_PIN_SEEN_EXIT);
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

/* ---- for the thread -------------------------------------------------------------------- */

struct llist_node *kcoll_pin_round_begin(void)
{
	lockdep_assert_held(&kcoll_pin_mutex);
	WRITE_ONCE(rounds_begun, rounds_begun + 1);
	return llist_reverse_order(llist_del_all(&seen));
}

void kcoll_pin_round_end(void)
{
	lockdep_assert_held(&kcoll_pin_mutex);
	WRITE_ONCE(rounds_ended, rounds_begun);
	WRITE_ONCE(thread_held_up, false);
	wake_up_all(&round_ended);
}

void kcoll_pin_sighting_free(struct pin_sighting *sight)
{
	put_task_struct(sight->task);
	kcoll_pin_pool_free(&sightings, sight);
}

bool kcoll_pin_seen_any(void)
{
	return !llist_empty(&seen) || READ_ONCE(look_at_all);
}

bool kcoll_pin_seen_too_many(void)
{
	return xchg(&look_at_all, false);
}

#define HOTPLUG_LOOKS	(100 * NSEC_PER_MSEC)	/* apart */

static void pin_wake_thread(void)
{
	struct task_struct *thread;

	rcu_read_lock();
	thread = READ_ONCE(kcoll_pin_thread);	/* there until pin_tasks.c has waited for this */
	if (thread)
		wake_up_process(thread);
	rcu_read_unlock();
}

/* Of the many CPUs that a suspend takes offline the first wakes it: a look may take some ms. */
int kcoll_pin_cpu_changed(unsigned int cpu)
{
	static u64 woken_at;	/* callbacks come one at a time */
	const u64 now = ktime_get_ns();

	WRITE_ONCE(look_at_all, true);
	if (now - woken_at >= HOTPLUG_LOOKS) {
		woken_at = now;
		pin_wake_thread();
	}
	return 0;
}

int kcoll_pin_probes_attach(void)
{
	add_task_work = pin_at_once ? symbol_get(task_work_add) : NULL;
	return kcoll_probes_attach(probes, ARRAY_SIZE(probes), NULL);
}

void kcoll_pin_probes_detach(void)
{
	kcoll_probes_detach(probes, ARRAY_SIZE(probes), NULL);
}

static void pin_unreserve(void)
{
	kcoll_pin_pool_empty(&sightings);
	kcoll_pin_pool_empty(&works);
	kcoll_pin_entries_end();
}

void kcoll_pin_probes_end(void)
{
	struct llist_node *list = llist_del_all(&seen);
	struct pin_sighting *sight, *next;

	llist_for_each_entry_safe(sight, next, list, node)
		kcoll_pin_sighting_free(sight);
	wake_up_all(&round_ended);
	pin_unreserve();
}

/*
 * No task can be told to forget its promise: it keeps it when it next leaves the kernel.
 * After the wait one may still be on its way out of pin_task_work().
 */
void kcoll_pin_probes_wait(void)
{
	if (any_task_work) {
		wait_event(task_works_done, !atomic_read(&task_works));
		synchronize_rcu_tasks();
	}
	pin_unreserve();
}
