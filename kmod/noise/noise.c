// SPDX-License-Identifier: GPL-2.0
/*
 * The noise injector: start and stop by netlink. An injector
 * lives from its start until its socket is closed or it is stopped twice; it
 * injects until it is stopped, its lifetime ends, or no CPU would be free of
 * noise. On a CPU that goes offline it rests until the CPU is back.
 *
 * Locks: cpus_read_lock(), then the mutex, then the list's lock. Timers and threads take none.
 */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "core/port.h"
#include "kmod/common/compat.h"
#include "kmod/common/netlink.h"
#include "noise.h"

static u32 injector_count, last_id;
static enum cpuhp_state hotplug;

static void injector_end_lifetimes(struct work_struct *work);
static DECLARE_DELAYED_WORK(lifetimes, injector_end_lifetimes);

/* ---- injectors ---------------------------------------------------------------- */

static struct kcoll_noise_cpu *injector_on(const struct kcoll_noise_injector *injector,
					   unsigned int cpu)
{
	u32 i;

	for (i = 0; i < injector->cpus; i++)
		if (injector->cpu[i].number == cpu)
			return &injector->cpu[i];
	return NULL;
}

static void injector_stop(struct kcoll_noise_injector *injector, const char *reason)
{
	u32 i;

	lockdep_assert_held(&kcoll_noise_mutex);
	if (injector->ended)
		return;
	injector->ended = true;
	for (i = 0; i < injector->cpus; i++) {
		kcoll_noise_cpu_stop(&injector->cpu[i]);
		injector->cpu[i].state = COLL_NOISE_ENDED;
	}
	kcoll_event_send(&(struct kcoll_event){
		.kind = COLL_EVENT_NOISE_ENDED, .id = injector->id, .cpu = -1, .reason = reason });
}

static void injector_free(struct kcoll_noise_injector *injector)
{
	u32 i;

	for (i = 0; injector->cpu && i < injector->cpus; i++)
		kvfree(injector->cpu[i].log);
	kvfree(injector->cpu);
	kvfree(injector->table);
	kfree(injector);
}

/* Removes an injector that has ended. */
static void injector_forget(struct kcoll_noise_injector *injector)
{
	lockdep_assert_held(&kcoll_noise_mutex);
	coll_assert(injector->ended);
	spin_lock(&kcoll_noise_lock);
	list_del(&injector->list);
	spin_unlock(&kcoll_noise_lock);
	injector_count--;
	injector_free(injector);
}

/* Also queued when an injector was added: the work computes its next time. */
static void injector_end_lifetimes(struct work_struct *work)
{
	u64 now = ktime_get_ns(), next = U64_MAX;
	struct kcoll_noise_injector *injector;

	mutex_lock(&kcoll_noise_mutex);
	list_for_each_entry(injector, &kcoll_noise_injectors, list) {
		if (!injector->ended && injector->deadline <= now)
			injector_stop(injector, "its lifetime ended");
		if (!injector->ended)
			next = min(next, injector->deadline);
	}
	if (next != U64_MAX)
		mod_delayed_work(coll_system_wq, &lifetimes, nsecs_to_jiffies(next - now) + 1);
	mutex_unlock(&kcoll_noise_mutex);
}

/* ---- CPUs ---------------------------------------------------------------------- */

/* CPUs where something is injected, or will be when they are back. */
static void noise_cpus(struct cpumask *cpus)
{
	struct kcoll_noise_injector *injector;
	u32 i;

	cpumask_clear(cpus);
	list_for_each_entry(injector, &kcoll_noise_injectors, list)
		for (i = 0; !injector->ended && i < injector->cpus; i++)
			cpumask_set_cpu(injector->cpu[i].number, cpus);
}

/* What the injectors of a CPU may take together, in 1/10000. */
static u32 noise_share_of(unsigned int cpu)
{
	struct kcoll_noise_injector *injector;
	u32 sum = 0;

	list_for_each_entry(injector, &kcoll_noise_injectors, list)
		if (!injector->ended && injector_on(injector, cpu))
			sum += injector->share;
	return sum;
}

static void noise_stop_all(const char *reason)
{
	struct kcoll_noise_injector *injector;

	list_for_each_entry(injector, &kcoll_noise_injectors, list)
		injector_stop(injector, reason);
}

static void noise_go_offline(struct kcoll_noise_injector *injector, struct kcoll_noise_cpu *ncpu)
{
	kcoll_noise_cpu_stop(ncpu);
	ncpu->state = COLL_NOISE_OFFLINE;
	kcoll_event_send(&(struct kcoll_event){ .kind = COLL_EVENT_NOISE_OFFLINE,
						.id = injector->id,
						.cpu = ncpu->number,
						.reason = "its CPU went offline" });
}

/* On the CPU that goes, while it still works: its timers have not moved yet. */
static int noise_cpu_offline(unsigned int cpu)
{
	struct kcoll_noise_injector *injector;
	struct kcoll_noise_cpu *ncpu;
	cpumask_var_t noisy, left;

	if (list_empty(&kcoll_noise_injectors))	/* a start waits for this callback */
		return 0;
	if (!zalloc_cpumask_var(&noisy, GFP_KERNEL))
		return -ENOMEM;
	if (!zalloc_cpumask_var(&left, GFP_KERNEL)) {
		free_cpumask_var(noisy);
		return -ENOMEM;
	}
	mutex_lock(&kcoll_noise_mutex);
	noise_cpus(noisy);
	cpumask_andnot(left, cpu_online_mask, noisy);
	cpumask_clear_cpu(cpu, left);
	if (cpumask_empty(left))
		noise_stop_all("the last CPU without noise went offline");
	list_for_each_entry(injector, &kcoll_noise_injectors, list) {
		ncpu = injector_on(injector, cpu);
		if (!injector->ended && ncpu)
			noise_go_offline(injector, ncpu);
	}
	mutex_unlock(&kcoll_noise_mutex);
	free_cpumask_var(left);
	free_cpumask_var(noisy);
	return 0;
}

static int noise_cpu_online(unsigned int cpu)
{
	struct kcoll_noise_injector *injector;
	struct kcoll_noise_cpu *ncpu;

	mutex_lock(&kcoll_noise_mutex);
	list_for_each_entry(injector, &kcoll_noise_injectors, list) {
		ncpu = injector->ended ? NULL : injector_on(injector, cpu);
		if (ncpu && ncpu->state == COLL_NOISE_OFFLINE && kcoll_noise_cpu_start(ncpu))
			pr_warn("injector %u does not start again on CPU %u\n", injector->id, cpu);
	}
	mutex_unlock(&kcoll_noise_mutex);
	return 0;
}

/* ---- start ----------------------------------------------------------------------- */

static int start_make_cpus(struct kcoll_noise_injector *injector, const struct cpumask *cpus)
{
	struct kcoll_noise_cpu *ncpu;
	unsigned int cpu;

	injector->cpu = kvcalloc(cpumask_weight(cpus), sizeof(*ncpu), COLL_GFP);
	if (!injector->cpu)
		return -ENOMEM;
	for_each_cpu(cpu, cpus) {
		ncpu = &injector->cpu[injector->cpus];
		*ncpu = (struct kcoll_noise_cpu){ .injector = injector, .number = cpu };
		ncpu->stream = coll_noise_stream(&injector->plan,
						 injector->stream + (u64)injector->cpus++);
		if (!injector->log)
			continue;
		ncpu->log = kvmalloc_array(injector->log, sizeof(*ncpu->log), COLL_GFP);
		if (!ncpu->log)
			return -ENOMEM;
	}
	return 0;
}

/* Whether the CPUs may have one more injector. */
static int start_check_cpus(struct genl_info *info, const struct kcoll_noise_injector *injector,
			    const struct cpumask *cpus)
{
	unsigned int cpu;
	cpumask_var_t noisy;
	bool free;

	lockdep_assert_held(&kcoll_noise_mutex);
	if (!cpumask_subset(cpus, cpu_online_mask))
		return coll_refuse(
			info, COLL_NOISE_A_CPUS, -ENXIO,
			"cpus: some are offline; /sys/devices/system/cpu/online is valid");
	for_each_cpu(cpu, cpus)
		if (noise_share_of(cpu) + injector->share > COLL_NOISE_SHARE_MAX_HERE)
			return coll_refuse(info, COLL_NOISE_A_SHARE, -EBUSY,
					   "share: with the CPU's other injectors above 9000");
	if (!zalloc_cpumask_var(&noisy, GFP_KERNEL))
		return -ENOMEM;
	noise_cpus(noisy);
	cpumask_or(noisy, noisy, cpus);
	free = !cpumask_subset(cpu_online_mask, noisy);
	free_cpumask_var(noisy);
	return free ? 0 :
		      coll_refuse(info, COLL_NOISE_A_CPUS, -EBUSY,
				  "cpus: all would have noise; leave one without");
}

static int start_cpus(struct kcoll_noise_injector *injector)
{
	int error = 0;
	u32 i;

	injector->deadline = ktime_get_ns() + injector->lifetime;
	for (i = 0; i < injector->cpus && !error; i++)
		error = kcoll_noise_cpu_start(&injector->cpu[i]);
	if (error)
		for (i = 0; i < injector->cpus; i++)
			kcoll_noise_cpu_stop(&injector->cpu[i]);
	return error;
}

/* After it, other commands and callbacks find the injector. */
static int start_admit(struct genl_info *info, struct kcoll_noise_injector *injector,
		       const struct cpumask *cpus)
{
	int error;

	lockdep_assert_held(&kcoll_noise_mutex);
	if (injector_count == COLL_NOISE_INJECTORS)
		return coll_refuse(info, COLL_NOISE_A_UNSPEC, -EBUSY,
				   "64 injectors are there; stop one, or close its socket");
	error = start_check_cpus(info, injector, cpus);
	if (error)
		return error;
	while (!++last_id || kcoll_noise_find(last_id))
		;
	injector->id = last_id;
	error = start_cpus(injector);
	if (error)
		return error;
	spin_lock(&kcoll_noise_lock);
	list_add_tail(&injector->list, &kcoll_noise_injectors);
	spin_unlock(&kcoll_noise_lock);
	injector_count++;
	mod_delayed_work(coll_system_wq, &lifetimes, 0);
	return 0;
}

static int start_prepare(struct genl_info *info, struct kcoll_noise_injector *injector,
			 struct cpumask *cpus)
{
	int error = kcoll_noise_read_numbers(info, injector);

	if (!error)
		error = kcoll_cpus_of(info, COLL_NOISE_A_CPUS, cpus);
	if (!error)
		error = kcoll_noise_read_model(info, injector);
	if (!error)
		error = start_make_cpus(injector, cpus);
	return error;
}

static int start_answer(struct genl_info *info, struct sk_buff *skb, u32 id)
{
	void *header = kcoll_reply_put(skb, info, COLL_CMD_NOISE_START);

	if (!header || nla_put_u32(skb, COLL_NOISE_A_ID, id)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return genlmsg_reply(skb, info);
}

static int start_injector(struct genl_info *info, struct kcoll_noise_injector *injector,
			  struct cpumask *cpus)
{
	struct sk_buff *skb = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	u32 id;
	int error;

	if (!skb)
		return -ENOMEM;
	error = start_prepare(info, injector, cpus);
	if (!error) {
		cpus_read_lock();
		mutex_lock(&kcoll_noise_mutex);
		error = start_admit(info, injector, cpus);
		id = injector->id;
		if (!error)	/* here, so that its end cannot be told before */
			kcoll_event_send(&(struct kcoll_event){
				.kind = COLL_EVENT_NOISE_STARTED, .id = id, .cpu = -1 });
		mutex_unlock(&kcoll_noise_mutex);
		cpus_read_unlock();
	}
	if (error) {
		nlmsg_free(skb);
		return error;
	}
	start_answer(info, skb, id);
	return 0;
}

static int noise_start(struct sk_buff *skb, struct genl_info *info)
{
	struct kcoll_noise_injector *injector;
	cpumask_var_t cpus;
	int error = kcoll_may_change(skb, info, KCOLL_NEEDS_NICE) ?: kcoll_own(info);

	if (error)
		return error;
	injector = kzalloc(sizeof(*injector), GFP_KERNEL_ACCOUNT);
	if (!injector)
		return -ENOMEM;
	if (!zalloc_cpumask_var(&cpus, GFP_KERNEL)) {
		kfree(injector);
		return -ENOMEM;
	}
	injector->owner = coll_owner_of(info);
	error = start_injector(info, injector, cpus);
	if (error)
		injector_free(injector);
	free_cpumask_var(cpus);
	return error;
}

/* ---- stop ------------------------------------------------------------------------ */

static const struct nla_policy id_policy[__COLL_NOISE_A_MAX] = {
	[COLL_NOISE_A_ID] = { .type = NLA_U32 },
};

static void noise_stop_owned(const struct kcoll_owner *owner)
{
	struct kcoll_noise_injector *injector;

	list_for_each_entry(injector, &kcoll_noise_injectors, list)
		if (coll_owner_is(&injector->owner, owner))
			injector_stop(injector, "it was stopped");
}

/* Stopped once, an injector's counters and log may still be read; twice, it is gone. */
static int noise_stop_one(struct genl_info *info, u32 id)
{
	struct kcoll_noise_injector *injector = kcoll_noise_find(id);

	if (!injector)
		return coll_refuse(info, COLL_NOISE_A_ID, -ENOENT, "id: there is no such injector");
	if (injector->ended)
		injector_forget(injector);
	else
		injector_stop(injector, "it was stopped");
	return 0;
}

static int noise_stop(struct sk_buff *skb, struct genl_info *info)
{
	const struct kcoll_owner owner = coll_owner_of(info);
	int error = kcoll_may_change(skb, info, KCOLL_NEEDS_NICE);

	if (error)
		return error;
	mutex_lock(&kcoll_noise_mutex);
	if (info->attrs[COLL_NOISE_A_ID])
		error = noise_stop_one(info, nla_get_u32(info->attrs[COLL_NOISE_A_ID]));
	else
		noise_stop_owned(&owner);
	mutex_unlock(&kcoll_noise_mutex);
	return error;
}

static void noise_owner_gone(const struct kcoll_owner *owner)
{
	struct kcoll_noise_injector *injector, *next;

	mutex_lock(&kcoll_noise_mutex);
	list_for_each_entry_safe(injector, next, &kcoll_noise_injectors, list) {
		if (!coll_owner_is(&injector->owner, owner))
			continue;
		injector_stop(injector, "its owner is gone");
		injector_forget(injector);
	}
	mutex_unlock(&kcoll_noise_mutex);
}

/* ---- the subsystem ------------------------------------------------------------------------ */

static const struct genl_ops ops[] = {
	{
		.cmd = COLL_CMD_NOISE_START,
		.flags = GENL_ADMIN_PERM,
		.doit = noise_start,
		.policy = kcoll_noise_start_policy,
		.maxattr = ARRAY_SIZE(kcoll_noise_start_policy) - 1,
	},
	{
		.cmd = COLL_CMD_NOISE_STOP,
		.flags = GENL_ADMIN_PERM,
		.doit = noise_stop,
		.policy = id_policy,
		.maxattr = ARRAY_SIZE(id_policy) - 1,
	},
	{
		.cmd = COLL_CMD_NOISE_GET,
		.dumpit = kcoll_noise_get,
		.policy = id_policy,
		.maxattr = ARRAY_SIZE(id_policy) - 1,
	},
	{
		.cmd = COLL_CMD_NOISE_LOG,
		.flags = GENL_ADMIN_PERM,
		.dumpit = kcoll_noise_log,
		.policy = id_policy,
		.maxattr = ARRAY_SIZE(id_policy) - 1,
	},
};

static int noise_init(void)
{
	int state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "coll/noise:online",
					      noise_cpu_online, noise_cpu_offline);

	if (state < 0)
		return state;
	hotplug = state;
	return 0;
}

static void noise_exit(void)
{
	struct kcoll_noise_injector *injector, *next;

	cpuhp_remove_state_nocalls(hotplug);
	mutex_lock(&kcoll_noise_mutex);
	list_for_each_entry_safe(injector, next, &kcoll_noise_injectors, list) {
		injector_stop(injector, "coll.ko is unloaded");
		injector_forget(injector);
	}
	mutex_unlock(&kcoll_noise_mutex);
	cancel_delayed_work_sync(&lifetimes);
}

const struct kcoll_subsystem kcoll_noise_subsystem = {
	.name = "noise",
	.init = noise_init,
	.exit = noise_exit,
	.ops = ops,
	.n_ops = ARRAY_SIZE(ops),
	.owner_gone = noise_owner_gone,
};
