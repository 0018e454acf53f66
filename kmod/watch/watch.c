// SPDX-License-Identifier: GPL-2.0
/*
 * The attributor's commands: what took the time of a CPU. A CPU has one watcher;
 * any admin may read what it sees. Probes are attached while there is one.
 *
 * Locks: control, then the CPUs' hotplug lock. The table of watched CPUs is
 * written under both; hotplug callbacks have it to themselves.
 */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/cpu.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>

#include "kmod/common/compat.h"
#include "kmod/common/netlink.h"
#include "watch.h"

static DEFINE_MUTEX(control);
static DEFINE_PER_CPU(struct watch_cpu *, records);
static unsigned int watched_cpus;	/* probes are attached while there are any */
static int hotplug_state;

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

static void watch_flush_here(void *data)
{
	unsigned long flags;

	local_irq_save(flags);
	kcoll_watch_flush(data);
	local_irq_restore(flags);
}

/* On the CPU that comes, or goes. Its record stays: it may come back. */
static int watch_cpu_online(unsigned int cpu)
{
	struct watch_cpu *watch = per_cpu(records, cpu);

	if (watch && !watch->online)
		watch_begin_here(watch);
	return 0;
}

static int watch_cpu_offline(unsigned int cpu)
{
	struct watch_cpu *watch = per_cpu(records, cpu);

	if (watch && watch->online)
		watch_end_here(watch);
	return 0;
}

static void watch_free(struct watch_cpu *watch)
{
	if (!watch)
		return;
	kvfree(watch->log.events);
	kvfree(watch);
}

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

static struct watch_cpu *watch_make(unsigned int cpu, const struct kcoll_owner *owner, pid_t task,
				    u32 log)
{
	struct watch_cpu *watch = kvzalloc_node(sizeof(*watch), COLL_GFP, cpu_to_node(cpu));
	u8 cause;

	if (!watch)
		return NULL;
	watch->cpu = cpu;
	watch->owner = *owner;
	watch->task = task;
	watch->steal_start = kcoll_watch_steal(watch);
	for (cause = 0; cause < COLL_NOISE_CAUSES; cause++) {
		watch->sources[cause].cause = cause;
		watch->sources[cause].used = true;
		strscpy(watch->sources[cause].name, "others", WATCH_NAME);
	}
	strscpy(watch->sources[COLL_NOISE_NMI].name, "nmi", WATCH_NAME);
	strscpy(watch->sources[COLL_NOISE_STEAL].name, "steal", WATCH_NAME);
	if (watch_make_log(watch, log)) {
		watch_free(watch);
		return NULL;
	}
	return watch;
}

/* ---- start, stop ------------------------------------------------------------------------ */

/* All records of this owner, or of everybody; with `control` held. */
static void watch_stop_owner(const struct kcoll_owner *owner)
{
	struct watch_cpu *watch, *stopped = NULL;
	unsigned int cpu;

	lockdep_assert_held(&control);
	cpus_read_lock();
	for_each_possible_cpu(cpu) {
		watch = per_cpu(records, cpu);
		if (!watch || (owner && !coll_owner_is(owner, &watch->owner)))
			continue;
		if (watch->online)
			smp_call_function_single(cpu, watch_end_here, watch, 1);
		per_cpu(records, cpu) = NULL;
		watch->next = stopped;
		stopped = watch;
		watched_cpus--;
	}
	cpus_read_unlock();
	if (!stopped)
		return;
	if (!watched_cpus)
		kcoll_watch_detach();
	synchronize_rcu();	/* probes of other CPUs that look at one of them */
	while ((watch = stopped)) {
		stopped = watch->next;
		watch_free(watch);
	}
}

static int watch_check_cpus(struct genl_info *info, const struct cpumask *cpus)
{
	unsigned int cpu;

	for_each_cpu(cpu, cpus)
		if (per_cpu(records, cpu))
			return coll_refuse(info, COLL_WATCH_A_CPUS, -EBUSY,
					   "cpus: one of them is watched already");
	return 0;
}

static int watch_start_cpus(const struct cpumask *cpus, const struct kcoll_owner *owner, pid_t task,
			    u32 log)
{
	struct watch_cpu *watch;
	unsigned int cpu;
	int error = 0;

	cpus_read_lock();
	for_each_cpu(cpu, cpus) {
		watch = watch_make(cpu, owner, task, log);
		if (!watch) {
			error = -ENOMEM;
			break;
		}
		per_cpu(records, cpu) = watch;
		watched_cpus++;
		if (cpu_online(cpu))
			smp_call_function_single(cpu, watch_begin_here, watch, 1);
	}
	cpus_read_unlock();
	return error;
}

/* A refusal changes nothing: an owner's CPUs of before are none of `cpus`, but stop too. */
static int watch_start_owner(struct genl_info *info, const struct cpumask *cpus, pid_t task,
			     u32 log)
{
	const struct kcoll_owner owner = coll_owner_of(info);
	int error;

	mutex_lock(&control);
	error = watch_check_cpus(info, cpus);
	if (!error && !watched_cpus)
		error = kcoll_watch_attach();
	if (!error) {
		error = watch_start_cpus(cpus, &owner, task, log);
		if (error)
			watch_stop_owner(&owner);
		/* If the first CPU failed nothing was stopped, and probes are still attached. */
		if (error && !watched_cpus)
			kcoll_watch_detach();
	}
	mutex_unlock(&control);
	return error;
}

/* ---- commands ------------------------------------------------------------------------------ */

static struct netlink_range_validation task_range = { .min = 1, .max = PID_MAX_LIMIT };
static struct netlink_range_validation log_range = { .max = WATCH_LOG_MAX };
static const struct nla_policy start_policy[] = {
	[COLL_WATCH_A_CPUS] = COLL_POLICY_CPUS,
	[COLL_WATCH_A_TASK] = NLA_POLICY_FULL_RANGE(NLA_U32, &task_range),
	[COLL_WATCH_A_LOG] = NLA_POLICY_FULL_RANGE(NLA_U32, &log_range),
};

/* The thread group of that thread, in numbers of the first namespace; or -ESRCH. */
static pid_t watch_thread_group(pid_t number)
{
	struct task_struct *task;
	pid_t group = -ESRCH;

	rcu_read_lock();
	task = pid_task(find_vpid(number), PIDTYPE_PID);
	if (task)
		group = task->tgid;
	rcu_read_unlock();
	return group;
}

static int watch_start(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr **attrs = info->attrs;
	cpumask_var_t cpus;
	pid_t task = 0;
	u32 log = 0;
	int error;

	error = kcoll_may_change(skb, info, KCOLL_NEEDS_PERFMON) ?: kcoll_own(info);
	if (error)
		return error;
	if (attrs[COLL_WATCH_A_LOG])
		log = nla_get_u32(attrs[COLL_WATCH_A_LOG]);
	if (attrs[COLL_WATCH_A_TASK]) {
		task = watch_thread_group(nla_get_u32(attrs[COLL_WATCH_A_TASK]));
		if (task < 0)
			return coll_refuse(info, COLL_WATCH_A_TASK, task, "task: no such process");
	}
	if (!zalloc_cpumask_var(&cpus, GFP_KERNEL))
		return -ENOMEM;
	error = kcoll_cpus_of(info, COLL_WATCH_A_CPUS, cpus);
	if (!error)
		error = watch_start_owner(info, cpus, task, log);
	free_cpumask_var(cpus);
	return error;
}

static int watch_stop(struct sk_buff *skb, struct genl_info *info)
{
	const struct kcoll_owner owner = coll_owner_of(info);

	mutex_lock(&control);
	watch_stop_owner(&owner);
	mutex_unlock(&control);
	return 0;
}

static void watch_owner_gone(const struct kcoll_owner *owner)
{
	mutex_lock(&control);
	watch_stop_owner(owner);
	mutex_unlock(&control);
}

/* ---- answers --------------------------------------------------------------------------- */

/* Where a dump has come to. */
struct watch_cursor {
	long cpu;
	long source;	/* 0: the CPU's summary; then source - 1 */
};

static_assert(sizeof(struct watch_cursor) <= sizeof_field(struct netlink_callback, args));

static int watch_put_u64(struct sk_buff *skb, int attribute, u64 value)
{
	return nla_put_u64_64bit(skb, attribute, READ_ONCE(value), COLL_WATCH_A_PAD);
}

static int watch_put_summary(struct sk_buff *skb, const struct watch_cpu *watch)
{
	return nla_put_u32(skb, COLL_WATCH_A_CPU, watch->cpu) ||
	       watch_put_u64(skb, COLL_WATCH_A_WATCHED, watch->watched) ||
	       watch_put_u64(skb, COLL_WATCH_A_RAN, watch->ran) ||
	       watch_put_u64(skb, COLL_WATCH_A_IDLE, watch->idle) ||
	       watch_put_u64(skb, COLL_WATCH_A_COST, watch->cost) ||
	       watch_put_u64(skb, COLL_WATCH_A_LOST, watch->lost) ||
	       nla_put_u8(skb, COLL_WATCH_A_STATE, watch->online ? 1 : 2);
}

static int watch_put_source(struct sk_buff *skb, const struct watch_cpu *watch, long index)
{
	const struct watch_source *source = &watch->sources[index];
	struct nlattr *nest;

	if (nla_put_u32(skb, COLL_WATCH_A_CPU, watch->cpu))
		return -EMSGSIZE;
	nest = nla_nest_start(skb, COLL_WATCH_A_SOURCE);
	if (!nest ||
	    nla_put_u32(skb, COLL_WATCH_A_INDEX, index + 1) ||
	    nla_put_u8(skb, COLL_WATCH_A_CAUSE, source->cause) ||
	    nla_put_u32(skb, COLL_WATCH_A_NUMBER, source->number) ||
	    nla_put_string(skb, COLL_WATCH_A_NAME, source->name) ||
	    (source->cgroup && watch_put_u64(skb, COLL_WATCH_A_CGROUP, source->cgroup)) ||
	    watch_put_u64(skb, COLL_WATCH_A_COUNT, source->count) ||
	    watch_put_u64(skb, COLL_WATCH_A_TOTAL, source->total) ||
	    watch_put_u64(skb, COLL_WATCH_A_INCLUSIVE, source->inclusive) ||
	    watch_put_u64(skb, COLL_WATCH_A_MAX, source->max) ||
	    nla_put_64bit(skb, COLL_WATCH_A_HISTOGRAM, sizeof(source->histogram),
			  source->histogram, COLL_WATCH_A_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Everything one message of a dump: 0, or -EMSGSIZE when the buffer is full. */
static int watch_put_message(struct sk_buff *skb, struct netlink_callback *cb, u8 command,
			     const struct watch_cpu *watch, long source)
{
	void *header = kcoll_dump_put(skb, cb, command);
	int full;

	if (!header)
		return -EMSGSIZE;
	full = source ? watch_put_source(skb, watch, source - 1) : watch_put_summary(skb, watch);
	if (full) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}

static bool watch_source_counts(const struct watch_source *source)
{
	/* Pairs with source_set(): its name is whole. */
	return smp_load_acquire(&source->used) && source->total;
}

/* Number 0 is the summary, i the (i - 1)th source. */
static int watch_put_cpu(struct sk_buff *skb, struct netlink_callback *cb,
			 const struct watch_cpu *watch, struct watch_cursor *at)
{
	for (; at->source <= WATCH_SOURCES; at->source++) {
		if (at->source && !watch_source_counts(&watch->sources[at->source - 1]))
			continue;
		if (watch_put_message(skb, cb, COLL_CMD_WATCH_GET, watch, at->source))
			return -EMSGSIZE;
	}
	at->source = 0;
	return 0;
}

/* Every CPU counts what it has open, so that the sums add up. */
static int watch_get_start(struct netlink_callback *cb)
{
	int error = kcoll_may_dump(cb, KCOLL_NEEDS_PERFMON);
	struct watch_cpu *watch;
	unsigned int cpu;

	if (error)
		return error;

	mutex_lock(&control);
	cpus_read_lock();
	for_each_online_cpu(cpu) {
		watch = per_cpu(records, cpu);
		if (watch)
			smp_call_function_single(cpu, watch_flush_here, watch, 1);
	}
	cpus_read_unlock();
	mutex_unlock(&control);
	return 0;
}

static int watch_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct watch_cursor *at = (void *)cb->args;
	struct watch_cpu *watch;
	int full = 0;

	mutex_lock(&control);
	for (; at->cpu < nr_cpu_ids && !full; at->cpu += !full) {
		watch = cpu_possible(at->cpu) ? per_cpu(records, at->cpu) : NULL;
		if (watch)
			full = watch_put_cpu(skb, cb, watch, at);
	}
	mutex_unlock(&control);
	return skb->len;
}

/* ---- the log ----------------------------------------------------------------------------- */

enum { EVENTS_A_MESSAGE = 128 };

/* As many as one message takes; they are read once. */
static int watch_put_events(struct sk_buff *skb, struct netlink_callback *cb,
			    struct watch_cpu *watch)
{
	struct watch_log *log = &watch->log;
	struct coll_noise_event *event;
	struct nlattr *events;
	u32 head, count, i;
	void *header;

	head = smp_load_acquire(&log->head);	/* pairs with log_add(): they are whole */
	count = min3(head - log->tail, log->size, (u32)EVENTS_A_MESSAGE);
	header = kcoll_dump_put(skb, cb, COLL_CMD_WATCH_LOG);
	if (!header)
		return -EMSGSIZE;
	events = nla_put_u32(skb, COLL_WATCH_A_CPU, watch->cpu) ? NULL :
		 nla_reserve_64bit(skb, COLL_WATCH_A_EVENTS, count * sizeof(*event),
				   COLL_WATCH_A_PAD);
	if (!events) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	event = nla_data(events);
	for (i = 0; i < count; i++)
		event[i] = log->events[(log->tail + i) & (log->size - 1)];
	/* Read, before log_add() may write over it. */
	smp_store_release(&log->tail, log->tail + count);
	genlmsg_end(skb, header);
	return 0;
}

/* A CPU that fills its log faster than it is read would hold a dump up for ever. */
static int watch_put_log(struct sk_buff *skb, struct netlink_callback *cb, struct watch_cpu *watch,
			 struct watch_cursor *at)
{
	const struct watch_log *log = &watch->log;

	while (READ_ONCE(log->head) != log->tail && at->source <= log->size) {
		if (watch_put_events(skb, cb, watch))
			return -EMSGSIZE;
		at->source += EVENTS_A_MESSAGE;
	}
	at->source = 0;
	return 0;
}

static int watch_log(struct sk_buff *skb, struct netlink_callback *cb)
{
	const struct kcoll_owner owner = coll_dump_owner(cb);
	struct watch_cursor *at = (void *)cb->args;
	int full = 0, error = kcoll_may_dump(cb, KCOLL_NEEDS_PERFMON);
	struct watch_cpu *watch;

	if (error)
		return error;
	mutex_lock(&control);
	for (; at->cpu < nr_cpu_ids && !full; at->cpu += !full) {
		watch = cpu_possible(at->cpu) ? per_cpu(records, at->cpu) : NULL;
		if (watch && coll_owner_is(&owner, &watch->owner))
			full = watch_put_log(skb, cb, watch, at);
	}
	mutex_unlock(&control);
	return skb->len;
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
		.policy = kcoll_no_attributes,
		.maxattr = ARRAY_SIZE(kcoll_no_attributes) - 1,
	},
	{
		.cmd = COLL_CMD_WATCH_GET,
		.flags = GENL_ADMIN_PERM,
		.start = watch_get_start,
		.dumpit = watch_get,
		.policy = kcoll_no_attributes,
		.maxattr = ARRAY_SIZE(kcoll_no_attributes) - 1,
	},
	{
		.cmd = COLL_CMD_WATCH_LOG,
		.flags = GENL_ADMIN_PERM,
		.dumpit = watch_log,
		.policy = kcoll_no_attributes,
		.maxattr = ARRAY_SIZE(kcoll_no_attributes) - 1,
	},
};

static int watch_init(void)
{
	hotplug_state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "coll/watch:online",
						  watch_cpu_online, watch_cpu_offline);
	return min(hotplug_state, 0);
}

static void watch_exit(void)
{
	mutex_lock(&control);
	watch_stop_owner(NULL);
	mutex_unlock(&control);
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
