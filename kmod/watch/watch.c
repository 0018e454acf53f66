// SPDX-License-Identifier: GPL-2.0
/*
 * The attributor's commands: what took the time of a CPU. A CPU has one watcher, which may
 * yield to another; any admin may read what it sees. Probes are attached while there is one, and a while longer.
 *
 * Locks: kcoll_watch_mutex, then the CPUs' hotplug lock. The table of watched CPUs is
 * written under both; hotplug callbacks have it to themselves.
 */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/cpu.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>

#include "kmod/common/compat.h"
#include "kmod/common/netlink.h"
#include "watch.h"

static unsigned int watched_cpus;
static unsigned long watches_made;
static bool attached;			/* the probes are; all three are under the mutex */
static int hotplug_state;

/*
 * To attach probes and to detach them changes the kernel's code, which all CPUs are interrupted for. So they stay
 * a while when nothing is watched any more: who stops a watch often starts another, and jobs follow each other.
 */
enum { DETACH_SECONDS = 180 };

/* Of its own: what others put into a shared queue may fill it, and wait for them. */
static struct workqueue_struct *probes_queue;
static int probes_error;	/* of the worker, for who waits for it */

static void probes_attach(struct work_struct *work)
{
	probes_error = kcoll_watch_attach();
}

static void probes_detach(struct work_struct *work)
{
	kcoll_watch_detach();
}

static DECLARE_WORK(attach_work, probes_attach);
static DECLARE_WORK(detach_now_work, probes_detach);

/*
 * Each of some three hundred changes of code waits for all CPUs in a loop. A worker does, where workers may be, and
 * who asks sleeps, as does who waits for the mutex meanwhile: colld pauses for a hundred times the CPU time that a
 * look takes, which this would be the most of. It is once in DETACH_SECONDS at most, whoever asks how often.
 */
static void probes_by_worker(struct work_struct *work)
{
	queue_work(probes_queue, work);
	flush_work(work);
}

static void watch_detach_unused(struct work_struct *work)
{
	mutex_lock(&kcoll_watch_mutex);
	if (attached && !watched_cpus) {
		probes_by_worker(&detach_now_work);
		attached = false;
	}
	mutex_unlock(&kcoll_watch_mutex);
}

static DECLARE_DELAYED_WORK(detach_work, watch_detach_unused);

/* The later of two calls counts. */
static void watch_unused(void)
{
	mod_delayed_work(coll_unbound_wq, &detach_work, DETACH_SECONDS * HZ);
}

static int watch_attach(void)
{
	if (attached)
		return 0;
	probes_by_worker(&attach_work);
	attached = !probes_error;
	return probes_error;
}

/* ---- CPUs ---------------------------------------------------------------------------- */

static void watch_begin_here(void *data)
{
	unsigned long flags;

	local_irq_save(flags);
	kcoll_watch_begin(data);
	local_irq_restore(flags);
}

static void watch_end_here(void *data)
{
	unsigned long flags;

	local_irq_save(flags);
	kcoll_watch_end(data);
	local_irq_restore(flags);
}

/* On the CPU that comes, or goes. Its record stays: it may come back. */
static int watch_cpu_online(unsigned int cpu)
{
	struct watch_cpu *watch = per_cpu(kcoll_watch_records, cpu);

	if (!watch || watch->online)
		return 0;
	watch_begin_here(watch);
	if (watch->latency && kcoll_latency_start(watch->latency))
		pr_warn("no thread for the latency of CPU %u: it is not measured\n", cpu);
	return 0;
}

static int watch_cpu_offline(unsigned int cpu)
{
	struct watch_cpu *watch = per_cpu(kcoll_watch_records, cpu);

	if (!watch || !watch->online)
		return 0;
	kcoll_latency_stop(watch->latency);
	watch_end_here(watch);
	return 0;
}

static void watch_put_limit(struct watch_limit *limit)
{
	if (limit && !--limit->cpus)
		kfree(limit);
}

static void watch_free(struct watch_cpu *watch)
{
	if (!watch)
		return;
	watch_put_limit(watch->limit);
	kvfree(watch->latency);
	kvfree(watch->log.events);
	kvfree(watch);
}

/* What a START asks for. */
struct watch_request {
	struct kcoll_owner owner;
	pid_t task;
	pid_t thread[2];	/* 0: all of its threads */
	bool yields;
	u32 log;
	u64 period;		/* 0: no latency */
	u32 priority;
	u64 threshold;		/* 0: none */
	u32 share;		/* that it may cost; 0: any */
	struct watch_limit *limit;
};

static int watch_make_log(struct watch_cpu *watch, u32 size)
{
	if (!size)
		return 0;
	size = roundup_pow_of_two(size);
	/* Too long a log is refused; it kills nobody in the caller's cgroup. */
	watch->log.events = kvmalloc_node(array_size(size, sizeof(*watch->log.events)),
					  COLL_GFP | __GFP_RETRY_MAYFAIL, cpu_to_node(watch->cpu));
	if (!watch->log.events)
		return -ENOMEM;
	watch->log.size = size;
	return 0;
}

static void watch_name_causes(struct watch_cpu *watch)
{
	u8 cause;

	for (cause = 0; cause < COLL_NOISE_CAUSES; cause++) {
		watch->sources[cause].cause = cause;
		watch->sources[cause].used = true;
		strscpy(watch->sources[cause].name, "others", WATCH_NAME);
	}
	strscpy(watch->sources[COLL_NOISE_NMI].name, "nmi", WATCH_NAME);
	strscpy(watch->sources[COLL_NOISE_STEAL].name, "steal", WATCH_NAME);
}

static int watch_make_latency(struct watch_cpu *watch, const struct watch_request *request)
{
	if (!request->period)
		return 0;
	watch->latency = kcoll_latency_make(watch, request->period, request->priority);
	return watch->latency ? 0 : -ENOMEM;
}

static struct watch_cpu *watch_make(unsigned int cpu, const struct watch_request *request)
{
	struct watch_cpu *watch = kvzalloc_node(sizeof(*watch), COLL_GFP, cpu_to_node(cpu));

	if (!watch)
		return NULL;
	watch->cpu = cpu;
	watch->owner = request->owner;
	watch->serial = ++watches_made;
	watch->task = request->task;
	watch->thread[0] = request->thread[0];
	watch->thread[1] = request->thread[1];
	watch->yields = request->yields;
	watch->cost.share = request->share;
	watch->folds = !request->log && !request->period && !request->limit;
	watch_name_causes(watch);
	if (watch_make_log(watch, request->log) || watch_make_latency(watch, request)) {
		watch_free(watch);
		return NULL;
	}
	watch->limit = request->limit;
	if (watch->limit)
		watch->limit->cpus++;
	return watch;
}

/* ---- start, stop ------------------------------------------------------------------------ */

/* All records of this owner, or of everybody, on these CPUs, or on all (NULL); with the mutex held. */
static void watch_stop_on(const struct kcoll_owner *owner, const struct cpumask *cpus)
{
	struct watch_cpu *watch, *stopped = NULL;
	unsigned int cpu;

	lockdep_assert_held(&kcoll_watch_mutex);
	cpus_read_lock();
	for_each_possible_cpu(cpu) {
		watch = per_cpu(kcoll_watch_records, cpu);
		if (cpus && !cpumask_test_cpu(cpu, cpus))
			continue;
		if (!watch || (owner && !coll_owner_is(owner, &watch->owner)))
			continue;
		kcoll_latency_stop(watch->latency);
		if (watch->online)
			smp_call_function_single(cpu, watch_end_here, watch, 1);
		per_cpu(kcoll_watch_records, cpu) = NULL;
		watch->next = stopped;
		stopped = watch;
		watched_cpus--;
	}
	cpus_read_unlock();
	if (!stopped)
		return;
	if (!watched_cpus)
		watch_unused();
	synchronize_rcu();	/* probes of other CPUs that look at one of them */
	while ((watch = stopped)) {
		stopped = watch->next;
		watch_free(watch);
	}
}

static void watch_stop_owner(const struct kcoll_owner *owner)
{
	watch_stop_on(owner, NULL);
}

static int watch_check_cpus(struct genl_info *info, const struct cpumask *cpus, bool yields)
{
	const struct watch_cpu *watch;
	unsigned int cpu;

	for_each_cpu(cpu, cpus) {
		watch = per_cpu(kcoll_watch_records, cpu);
		if (watch && (yields || !watch->yields))
			return coll_refuse(info, COLL_WATCH_A_CPUS, -EBUSY,
					   "cpus: one of them is watched already");
	}
	return 0;
}

static int watch_start_cpu(unsigned int cpu, const struct watch_request *request)
{
	struct watch_cpu *watch = watch_make(cpu, request);

	if (!watch)
		return -ENOMEM;
	per_cpu(kcoll_watch_records, cpu) = watch;
	watched_cpus++;
	if (!cpu_online(cpu))
		return 0;
	smp_call_function_single(cpu, watch_begin_here, watch, 1);
	return watch->latency ? kcoll_latency_start(watch->latency) : 0;
}

static int watch_start_cpus(const struct cpumask *cpus, const struct watch_request *request)
{
	unsigned int cpu;
	int error = 0;

	cpus_read_lock();
	for_each_cpu(cpu, cpus) {
		error = watch_start_cpu(cpu, request);
		if (error)
			break;
	}
	cpus_read_unlock();
	return error;
}

/* Its first user makes it stay. */
static int watch_make_limit(struct watch_request *request)
{
	if (!request->threshold)
		return 0;
	request->limit = kzalloc(sizeof(*request->limit), COLL_GFP);
	if (!request->limit)
		return -ENOMEM;
	request->limit->threshold = request->threshold;
	request->limit->cpus = 1;	/* the request's own, until all have it */
	return 0;
}

/* A refusal changes nothing; a failure ends those that yield to it. An owner's CPUs of before are none of `cpus`. */
static int watch_start_owner(struct genl_info *info, const struct cpumask *cpus,
			     struct watch_request *request)
{
	int error;

	mutex_lock(&kcoll_watch_mutex);
	error = watch_check_cpus(info, cpus, request->yields) ?: watch_make_limit(request);
	if (!error)	/* those that yield */
		watch_stop_on(NULL, cpus);
	error = error ?: watch_attach();
	if (!error) {
		error = watch_start_cpus(cpus, request);
		if (error)
			watch_stop_on(&request->owner, cpus);
		/* If the first CPU failed nothing was stopped, and probes are still attached. */
		if (error && !watched_cpus)
			watch_unused();
	}
	watch_put_limit(request->limit);
	mutex_unlock(&kcoll_watch_mutex);
	return error;
}

/* ---- commands ------------------------------------------------------------------------------ */

static struct netlink_range_validation task_range = { .min = 1, .max = PID_MAX_LIMIT };
static struct netlink_range_validation log_range = { .max = WATCH_LOG_MAX };
static struct netlink_range_validation period_range = {
	.min = 100 * NSEC_PER_USEC, .max = 10ull * NSEC_PER_SEC,
};
static struct netlink_range_validation priority_range = { .max = MAX_RT_PRIO - 1 };
static struct netlink_range_validation threshold_range = {
	.min = NSEC_PER_USEC, .max = 100ull * NSEC_PER_SEC,
};
static struct netlink_range_validation share_range = { .max = 1000000 };
static const struct nla_policy start_policy[] = {
	[COLL_WATCH_A_CPUS] = COLL_POLICY_CPUS,
	[COLL_WATCH_A_TASK] = NLA_POLICY_FULL_RANGE(NLA_U32, &task_range),
	[COLL_WATCH_A_LOG] = NLA_POLICY_FULL_RANGE(NLA_U32, &log_range),
	[COLL_WATCH_A_PERIOD] = NLA_POLICY_FULL_RANGE(NLA_U64, &period_range),
	[COLL_WATCH_A_PRIORITY] = NLA_POLICY_FULL_RANGE(NLA_U32, &priority_range),
	[COLL_WATCH_A_THRESHOLD] = NLA_POLICY_FULL_RANGE(NLA_U64, &threshold_range),
	[COLL_WATCH_A_YIELDS] = { .type = NLA_FLAG },
	[COLL_WATCH_A_THREAD] = NLA_POLICY_FULL_RANGE(NLA_U32, &task_range),
	[COLL_WATCH_A_SHARE] = NLA_POLICY_FULL_RANGE(NLA_U32, &share_range),
};

static const struct nla_policy stop_policy[] = {
	[COLL_WATCH_A_CPUS] = COLL_POLICY_CPUS,
};

/* That thread and its group, in numbers of the first namespace; or -ESRCH. */
static int watch_find_thread(pid_t number, pid_t *thread, pid_t *group)
{
	struct task_struct *task;

	rcu_read_lock();
	task = pid_task(find_vpid(number), PIDTYPE_PID);
	if (task) {
		*thread = task->pid;
		*group = task->tgid;
	}
	rcu_read_unlock();
	return task ? 0 : -ESRCH;
}

/* THREAD may be of another process: a thread of this module's makes progress for the task. */
static int watch_read_task(struct genl_info *info, struct watch_request *request)
{
	struct nlattr *task = info->attrs[COLL_WATCH_A_TASK], *thread = info->attrs[COLL_WATCH_A_THREAD];
	pid_t first, group;

	if (thread && !task)
		return coll_refuse(info, COLL_WATCH_A_THREAD, -EINVAL, "thread: only with task");
	if (!task)
		return 0;
	if (watch_find_thread(nla_get_u32(task), &first, &request->task))
		return coll_refuse(info, COLL_WATCH_A_TASK, -ESRCH, "task: no such process");
	if (!thread)
		return 0;
	request->thread[0] = first;
	if (watch_find_thread(nla_get_u32(thread), &request->thread[1], &group))
		return coll_refuse(info, COLL_WATCH_A_THREAD, -ESRCH, "thread: no such thread");
	return 0;
}

/* The thread that is woken outranks tasks, which asks for more. */
static u32 watch_needs(struct genl_info *info)
{
	return KCOLL_NEEDS_PERFMON | (info->attrs[COLL_WATCH_A_PERIOD] ? KCOLL_NEEDS_NICE : 0);
}

static int watch_read_latency(struct genl_info *info, struct watch_request *request)
{
	struct nlattr **attrs = info->attrs;

	if (attrs[COLL_WATCH_A_PRIORITY] && !attrs[COLL_WATCH_A_PERIOD])
		return coll_refuse(info, COLL_WATCH_A_PRIORITY, -EINVAL,
				   "priority: only with period");
	if (attrs[COLL_WATCH_A_PERIOD] && attrs[COLL_WATCH_A_TASK])
		return coll_refuse(info, COLL_WATCH_A_TASK, -EINVAL,
				   "task: not with period, which measures a thread of its own");
	if (attrs[COLL_WATCH_A_PERIOD])
		request->period = nla_get_u64(attrs[COLL_WATCH_A_PERIOD]);
	request->priority = WATCH_PRIORITY;
	if (attrs[COLL_WATCH_A_PRIORITY])
		request->priority = nla_get_u32(attrs[COLL_WATCH_A_PRIORITY]);
	return 0;
}

static int watch_read(struct genl_info *info, struct watch_request *request)
{
	struct nlattr **attrs = info->attrs;

	request->owner = coll_owner_of(info);
	request->yields = attrs[COLL_WATCH_A_YIELDS];
	if (attrs[COLL_WATCH_A_LOG])
		request->log = nla_get_u32(attrs[COLL_WATCH_A_LOG]);
	if (attrs[COLL_WATCH_A_THRESHOLD])
		request->threshold = nla_get_u64(attrs[COLL_WATCH_A_THRESHOLD]);
	if (attrs[COLL_WATCH_A_SHARE])
		request->share = nla_get_u32(attrs[COLL_WATCH_A_SHARE]);
	return watch_read_task(info, request) ?: watch_read_latency(info, request);
}

static int watch_start(struct sk_buff *skb, struct genl_info *info)
{
	struct watch_request request = { 0 };
	cpumask_var_t cpus;
	int error;

	error = kcoll_may_change(skb, info, watch_needs(info)) ?: watch_read(info, &request) ?:
		kcoll_own(info);
	if (error)
		return error;
	if (!zalloc_cpumask_var(&cpus, GFP_KERNEL))
		return -ENOMEM;
	error = kcoll_cpus_of(info, COLL_WATCH_A_CPUS, cpus);
	if (!error)
		error = watch_start_owner(info, cpus, &request);
	free_cpumask_var(cpus);
	return error;
}

static int watch_stop(struct sk_buff *skb, struct genl_info *info)
{
	const struct kcoll_owner owner = coll_owner_of(info);
	const bool some = info->attrs[COLL_WATCH_A_CPUS];
	cpumask_var_t cpus;
	int error = 0;

	if (!zalloc_cpumask_var(&cpus, GFP_KERNEL))
		return -ENOMEM;
	if (some)
		error = kcoll_cpus_of(info, COLL_WATCH_A_CPUS, cpus);
	if (!error) {
		mutex_lock(&kcoll_watch_mutex);
		watch_stop_on(&owner, some ? cpus : NULL);
		mutex_unlock(&kcoll_watch_mutex);
	}
	free_cpumask_var(cpus);
	return error;
}

static void watch_owner_gone(const struct kcoll_owner *owner)
{
	mutex_lock(&kcoll_watch_mutex);
	watch_stop_owner(owner);
	mutex_unlock(&kcoll_watch_mutex);
}

/* ---- the subsystem ------------------------------------------------------------------ */

static const struct genl_ops watch_ops[] = {
	{
		.cmd = COLL_CMD_WATCH_START,
		.flags = GENL_ADMIN_PERM,
		.doit = watch_start,
		.policy = start_policy,
		.maxattr = ARRAY_SIZE(start_policy) - 1,
	},
	{
		.cmd = COLL_CMD_WATCH_STOP,
		.flags = GENL_ADMIN_PERM,
		.doit = watch_stop,
		.policy = stop_policy,
		.maxattr = ARRAY_SIZE(stop_policy) - 1,
	},
	{
		.cmd = COLL_CMD_WATCH_GET,
		.flags = GENL_ADMIN_PERM,
		.start = kcoll_watch_get_start,
		.dumpit = kcoll_watch_get,
		.done = kcoll_watch_get_done,
		.policy = kcoll_watch_get_policy,
		.maxattr = ARRAY_SIZE(kcoll_watch_get_policy) - 1,
	},
	{
		.cmd = COLL_CMD_WATCH_LOG,
		.flags = GENL_ADMIN_PERM,
		.dumpit = kcoll_watch_log,
		.policy = kcoll_no_attributes,
		.maxattr = ARRAY_SIZE(kcoll_no_attributes) - 1,
	},
	{
		.cmd = COLL_CMD_WATCH_LATENCY,
		.flags = GENL_ADMIN_PERM,
		.start = kcoll_watch_latency_start,
		.dumpit = kcoll_watch_latency,
		.policy = kcoll_no_attributes,
		.maxattr = ARRAY_SIZE(kcoll_no_attributes) - 1,
	},
	{
		.cmd = COLL_CMD_WATCH_PASSED,
		.flags = GENL_ADMIN_PERM,
		.dumpit = kcoll_watch_passed,
		.policy = kcoll_no_attributes,
		.maxattr = ARRAY_SIZE(kcoll_no_attributes) - 1,
	},
};

static int watch_init(void)
{
	probes_queue = alloc_workqueue("coll_probes", WQ_UNBOUND, 1);
	if (!probes_queue)
		return -ENOMEM;
	hotplug_state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "coll/watch:online",
						  watch_cpu_online, watch_cpu_offline);
	if (hotplug_state < 0)
		destroy_workqueue(probes_queue);
	return min(hotplug_state, 0);
}

static void watch_exit(void)
{
	mutex_lock(&kcoll_watch_mutex);
	watch_stop_owner(NULL);
	mutex_unlock(&kcoll_watch_mutex);
	cancel_delayed_work_sync(&detach_work);
	watch_detach_unused(NULL);
	destroy_workqueue(probes_queue);
	cpuhp_remove_state_nocalls(hotplug_state);
}

const struct kcoll_subsystem kcoll_watch_subsystem = {
	.name = "watch",
	.init = watch_init,
	.exit = watch_exit,
	.ops = watch_ops,
	.n_ops = ARRAY_SIZE(watch_ops),
	.owner_gone = watch_owner_gone,
};
