// SPDX-License-Identifier: GPL-2.0
/*
 * The noise injector's orders: start, stop, look, read the log. An injector
 * lives from its start until its socket is closed or it is stopped twice; it
 * injects until it is stopped, its lifetime ends, or no CPU would be free of
 * noise. On a CPU that goes offline it rests until the CPU is back.
 *
 * Locks: cpus_read_lock(), then the mutex. Timers and threads take neither.
 */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "kmod/common/compat.h"
#include "kmod/common/netlink.h"
#include "noise.h"

#define ENTRIES_MAX	2000u	/* in an attribute of the log */
#define ENTRIES_WORTH	8u	/* a message of its own */

static DEFINE_MUTEX(mutex);
static LIST_HEAD(injectors);		/* by ascending id */
static u32 injector_count, last_id;
static enum cpuhp_state hotplug;

static void end_lifetimes(struct work_struct *work);
static DECLARE_DELAYED_WORK(lifetimes, end_lifetimes);

/* ---- injectors ---------------------------------------------------------------- */

static struct kcoll_noise_injector *find(u32 id)
{
	struct kcoll_noise_injector *injector;

	list_for_each_entry(injector, &injectors, list)
		if (injector->id == id)
			return injector;
	return NULL;
}

static struct kcoll_noise_seat *seat_of(const struct kcoll_noise_injector *injector,
					unsigned int cpu)
{
	u32 i;

	for (i = 0; i < injector->seats; i++)
		if (injector->seat[i].cpu == cpu)
			return &injector->seat[i];
	return NULL;
}

static void stop(struct kcoll_noise_injector *injector, const char *reason)
{
	u32 i;

	if (injector->over)
		return;
	injector->over = true;
	for (i = 0; i < injector->seats; i++) {
		kcoll_noise_seat_stop(&injector->seat[i]);
		injector->seat[i].state = COLL_NOISE_OVER;
	}
	kcoll_tell(&(struct kcoll_happened){
		.kind = COLL_EVENT_NOISE_OVER, .id = injector->id, .cpu = -1, .reason = reason });
}

static void release(struct kcoll_noise_injector *injector)
{
	u32 i;

	for (i = 0; injector->seat && i < injector->seats; i++)
		kvfree(injector->seat[i].log);
	kvfree(injector->seat);
	kvfree(injector->table);
	kfree(injector);
}

/* It must be over. */
static void forget(struct kcoll_noise_injector *injector)
{
	list_del(&injector->list);
	injector_count--;
	release(injector);
}

/* Also when an injector came or went: the work finds its time again. */
static void end_lifetimes(struct work_struct *work)
{
	u64 now = ktime_get_ns(), next = U64_MAX;
	struct kcoll_noise_injector *injector;

	mutex_lock(&mutex);
	list_for_each_entry(injector, &injectors, list) {
		if (!injector->over && injector->deadline <= now)
			stop(injector, "its lifetime ended");
		if (!injector->over)
			next = min(next, injector->deadline);
	}
	if (next != U64_MAX)
		mod_delayed_work(system_wq, &lifetimes, nsecs_to_jiffies(next - now) + 1);
	mutex_unlock(&mutex);
}

/* ---- CPUs ---------------------------------------------------------------------- */

/* CPUs where something is injected, or will be when they are back. */
static void noisy_cpus(struct cpumask *cpus)
{
	struct kcoll_noise_injector *injector;
	u32 i;

	cpumask_clear(cpus);
	list_for_each_entry(injector, &injectors, list)
		for (i = 0; !injector->over && i < injector->seats; i++)
			cpumask_set_cpu(injector->seat[i].cpu, cpus);
}

/* What the injectors of a CPU may take together, in 1/10000. */
static u32 share_of(unsigned int cpu)
{
	struct kcoll_noise_injector *injector;
	u32 sum = 0;

	list_for_each_entry(injector, &injectors, list)
		if (!injector->over && seat_of(injector, cpu))
			sum += injector->share;
	return sum;
}

static void stop_all(const char *reason)
{
	struct kcoll_noise_injector *injector;

	list_for_each_entry(injector, &injectors, list)
		stop(injector, reason);
}

static void go_offline(struct kcoll_noise_injector *injector, struct kcoll_noise_seat *seat)
{
	kcoll_noise_seat_stop(seat);
	seat->state = COLL_NOISE_OFFLINE;
	kcoll_tell(&(struct kcoll_happened){ .kind = COLL_EVENT_NOISE_OFFLINE, .id = injector->id,
					   .cpu = seat->cpu, .reason = "its CPU went offline" });
}

/* On the CPU that goes, while it still works: its timers have not moved yet. */
static int cpu_goes(unsigned int cpu)
{
	struct kcoll_noise_injector *injector;
	struct kcoll_noise_seat *seat;
	cpumask_var_t noisy, left;

	if (list_empty(&injectors))	/* one that is being started waits for us */
		return 0;
	if (!zalloc_cpumask_var(&noisy, GFP_KERNEL))
		return -ENOMEM;
	if (!zalloc_cpumask_var(&left, GFP_KERNEL)) {
		free_cpumask_var(noisy);
		return -ENOMEM;
	}
	mutex_lock(&mutex);
	noisy_cpus(noisy);
	cpumask_andnot(left, cpu_online_mask, noisy);
	cpumask_clear_cpu(cpu, left);
	if (cpumask_empty(left))
		stop_all("the last CPU without noise went offline");
	list_for_each_entry(injector, &injectors, list) {
		seat = seat_of(injector, cpu);
		if (!injector->over && seat)
			go_offline(injector, seat);
	}
	mutex_unlock(&mutex);
	free_cpumask_var(left);
	free_cpumask_var(noisy);
	return 0;
}

static int cpu_comes(unsigned int cpu)
{
	struct kcoll_noise_injector *injector;
	struct kcoll_noise_seat *seat;

	mutex_lock(&mutex);
	list_for_each_entry(injector, &injectors, list) {
		seat = injector->over ? NULL : seat_of(injector, cpu);
		if (seat && seat->state == COLL_NOISE_OFFLINE && kcoll_noise_seat_start(seat))
			pr_warn("injector %u does not start again on CPU %u\n", injector->id, cpu);
	}
	mutex_unlock(&mutex);
	return 0;
}

/* ---- start: what was asked ------------------------------------------------------- */

static const struct nla_policy start_policy[__COLL_NOISE_A_MAX] = {
	[COLL_NOISE_A_CPUS] = COLL_POLICY_CPUS,
	[COLL_NOISE_A_CONTEXT] = { .type = NLA_U8 },
	[COLL_NOISE_A_MODEL] = NLA_POLICY_EXACT_LEN(sizeof(struct coll_noise_model)),
	[COLL_NOISE_A_TABLE] = { .type = NLA_BINARY },
	[COLL_NOISE_A_EPOCH] = { .type = NLA_U64 },
	[COLL_NOISE_A_LIFETIME] = { .type = NLA_U64 },
	[COLL_NOISE_A_SHARE] = { .type = NLA_U32 },
	[COLL_NOISE_A_LOG] = { .type = NLA_U32 },
	[COLL_NOISE_A_STREAM] = { .type = NLA_U32 },
	[COLL_NOISE_A_COST] = { .type = NLA_U32 },
};

static u64 get_u64(struct genl_info *info, int attr, u64 none)
{
	return info->attrs[attr] ? nla_get_u64(info->attrs[attr]) : none;
}

static u32 get_u32(struct genl_info *info, int attr, u32 none)
{
	return info->attrs[attr] ? nla_get_u32(info->attrs[attr]) : none;
}

static int read_numbers(struct genl_info *info, struct kcoll_noise_injector *injector)
{
	u64 now = ktime_get_real_ns();
	u32 log = get_u32(info, COLL_NOISE_A_LOG, 0);

	if (!info->attrs[COLL_NOISE_A_CONTEXT])
		return coll_refuse(info, COLL_NOISE_A_CONTEXT, -EINVAL,
				   "context: missing; hard interrupt (0), tasklet (1), FIFO thread "
				   "(2) or ordinary thread (3)");
	injector->context = nla_get_u8(info->attrs[COLL_NOISE_A_CONTEXT]);
	injector->share = get_u32(info, COLL_NOISE_A_SHARE, COLL_NOISE_SHARE);
	injector->lifetime = get_u64(info, COLL_NOISE_A_LIFETIME, COLL_NOISE_LIFETIME);
	injector->epoch = get_u64(info, COLL_NOISE_A_EPOCH, now + 10 * NSEC_PER_MSEC);
	injector->stream = get_u32(info, COLL_NOISE_A_STREAM, 0);
	injector->cost = get_u32(info, COLL_NOISE_A_COST, 0);
	if (injector->context >= COLL_NOISE_CONTEXTS)
		return coll_refuse(info, COLL_NOISE_A_CONTEXT, -EINVAL,
				   "context: hard interrupt (0), tasklet (1), FIFO thread (2) or "
				   "ordinary thread (3)");
	if (!injector->share || injector->share > COLL_NOISE_SHARE_MAX_HERE)
		return coll_refuse(info, COLL_NOISE_A_SHARE, -ERANGE,
				   "share: 1 to 9000, in 1/10000 of a CPU");
	if (injector->lifetime < NSEC_PER_MSEC || injector->lifetime > COLL_NOISE_LIFETIME_MAX)
		return coll_refuse(info, COLL_NOISE_A_LIFETIME, -ERANGE,
				   "lifetime: from 1 ms to a day, in ns");
	if (injector->epoch > now + injector->lifetime)
		return coll_refuse(info, COLL_NOISE_A_EPOCH, -ERANGE,
				   "epoch: before the lifetime ends, in ns since 1970");
	if (log > COLL_NOISE_LOG_MAX)
		return coll_refuse(info, COLL_NOISE_A_LOG, -ERANGE,
				   "log: at most 1048576 events a CPU");
	if (injector->cost > COLL_NOISE_COST_MAX)
		return coll_refuse(info, COLL_NOISE_A_COST, -ERANGE, "cost: at most 1 ms, in ns");
	injector->log = log ? roundup_pow_of_two(log) : 0;
	return 0;
}

/* All NOISE_A_TABLE attributes, one behind the other. */
static int read_table(struct genl_info *info, struct kcoll_noise_injector *injector)
{
	u64 bytes = 0, at = 0;
	struct nlattr *attr;
	int left;

	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, left)
		if (nla_type(attr) == COLL_NOISE_A_TABLE)
			bytes += nla_len(attr);
	if (!bytes)
		return 0;
	if (bytes % sizeof(*injector->table) ||
	    bytes / sizeof(*injector->table) > COLL_NOISE_SPANS_MAX)
		return coll_refuse(info, COLL_NOISE_A_TABLE, -EINVAL,
				   "table: whole struct coll_noise_span, at most 1048576");
	injector->table = kvmalloc(bytes, COLL_GFP);
	if (!injector->table)
		return -ENOMEM;
	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, left) {
		if (nla_type(attr) != COLL_NOISE_A_TABLE)
			continue;
		memcpy((char *)injector->table + at, nla_data(attr), nla_len(attr));
		at += nla_len(attr);
	}
	injector->plan.table = injector->table;
	injector->plan.spans = bytes / sizeof(*injector->table);
	return 0;
}

static u64 plan_longest(const struct coll_noise_plan *plan)
{
	const struct coll_noise_model *model = plan->model;
	u64 longest = 0;
	u32 i;

	if (model->length == COLL_NOISE_FIXED)
		longest = model->duration;
	else if (model->length != COLL_NOISE_TABLE)
		longest = COLL_NOISE_DURATION_MAX;
	for (i = 0; i < plan->spans; i++)
		longest = max(longest, plan->table[i].duration);
	return model->longest ? min(longest, model->longest) : longest;
}

/* A sound plan may still be more than this machine should bear. */
static int check_rails(struct genl_info *info, struct kcoll_noise_injector *injector)
{
	const struct coll_noise_plan *plan = &injector->plan;
	u64 period = plan->model->period;
	u32 events = plan->model->arrival == COLL_NOISE_REPLAY ? plan->spans : 1;

	injector->longest = plan_longest(plan);
	if (period < events * COLL_NOISE_GAP_MIN)
		return coll_refuse(
			info, COLL_NOISE_A_MODEL, -ERANGE,
			"period: events are injected every 20 us on average, not more often");
	if (coll_noise_load(plan) > div_u64(period * injector->share, 10000))
		return coll_refuse(info, COLL_NOISE_A_SHARE, -ERANGE,
				   "share: the model asks for more on average; give it more share "
				   "or less noise");
	if (injector->longest <= kcoll_noise_context_longest(injector->context))
		return 0;
	if (injector->context == COLL_NOISE_FIFO)
		return coll_refuse(info, COLL_NOISE_A_MODEL, -ERANGE,
				   "duration: in a FIFO thread at most 1 s; longest cuts, ordinary "
				   "threads have 4 s");
	if (injector->context == COLL_NOISE_OTHER)
		return coll_refuse(info, COLL_NOISE_A_MODEL, -ERANGE,
				   "duration: in a thread at most 4 s; longest cuts");
	return coll_refuse(
		info, COLL_NOISE_A_MODEL, -ERANGE,
		"duration: in an interrupt at most 10 ms; longest cuts, FIFO threads have 1 s");
}

static int read_model(struct genl_info *info, struct kcoll_noise_injector *injector)
{
	const char *wrong;
	int error;

	if (!info->attrs[COLL_NOISE_A_MODEL])
		return coll_refuse(info, COLL_NOISE_A_MODEL, -EINVAL,
				   "model: missing; a struct coll_noise_model");
	nla_memcpy(&injector->model, info->attrs[COLL_NOISE_A_MODEL], sizeof(injector->model));
	injector->plan.model = &injector->model;
	error = read_table(info, injector);
	if (error)
		return error;
	if (coll_noise_check(&injector->plan, &wrong)) {
		info->extack->_msg = wrong;
		NL_SET_BAD_ATTR(info->extack, info->attrs[COLL_NOISE_A_MODEL]);
		return -EINVAL;
	}
	return check_rails(info, injector);
}

/* ---- start ----------------------------------------------------------------------- */

static int make_seats(struct kcoll_noise_injector *injector, const struct cpumask *cpus)
{
	struct kcoll_noise_seat *seat;
	unsigned int cpu;

	injector->seat = kvcalloc(cpumask_weight(cpus), sizeof(*seat), COLL_GFP);
	if (!injector->seat)
		return -ENOMEM;
	for_each_cpu(cpu, cpus) {
		seat = &injector->seat[injector->seats];
		*seat = (struct kcoll_noise_seat){ .injector = injector, .cpu = cpu };
		seat->stream = coll_noise_stream(&injector->plan,
						 injector->stream + (u64)injector->seats++);
		if (!injector->log)
			continue;
		seat->log = kvmalloc_array(injector->log, sizeof(*seat->log), COLL_GFP);
		if (!seat->log)
			return -ENOMEM;
	}
	return 0;
}

/* Under the locks: whether the CPUs may have one more. */
static int check_cpus(struct genl_info *info, const struct kcoll_noise_injector *injector,
		      const struct cpumask *cpus)
{
	unsigned int cpu;
	cpumask_var_t noisy;
	bool free;

	if (!cpumask_subset(cpus, cpu_online_mask))
		return coll_refuse(
			info, COLL_NOISE_A_CPUS, -ENXIO,
			"cpus: some are offline; /sys/devices/system/cpu/online is valid");
	for_each_cpu(cpu, cpus) if (
		share_of(cpu) + injector->share >
		COLL_NOISE_SHARE_MAX_HERE) return coll_refuse(info, COLL_NOISE_A_SHARE, -EBUSY,
							      "share: with the injectors that a "
							      "CPU has already, more than 9000");
	if (!zalloc_cpumask_var(&noisy, GFP_KERNEL))
		return -ENOMEM;
	noisy_cpus(noisy);
	cpumask_or(noisy, noisy, cpus);
	free = !cpumask_subset(cpu_online_mask, noisy);
	free_cpumask_var(noisy);
	return free ? 0 :
		      coll_refuse(info, COLL_NOISE_A_CPUS, -EBUSY,
				  "cpus: all would have noise; leave one without");
}

static int start_seats(struct kcoll_noise_injector *injector)
{
	int error = 0;
	u32 i;

	injector->deadline = ktime_get_ns() + injector->lifetime;
	for (i = 0; i < injector->seats && !error; i++)
		error = kcoll_noise_seat_start(&injector->seat[i]);
	if (error)
		for (i = 0; i < injector->seats; i++)
			kcoll_noise_seat_stop(&injector->seat[i]);
	return error;
}

/* Under the locks. From here on it is everybody's. */
static int admit(struct genl_info *info, struct kcoll_noise_injector *injector,
		 const struct cpumask *cpus)
{
	int error;

	if (injector_count == COLL_NOISE_INJECTORS)
		return coll_refuse(info, COLL_NOISE_A_UNSPEC, -EBUSY,
				   "64 injectors are there; stop one, or close its socket");
	error = check_cpus(info, injector, cpus);
	if (error)
		return error;
	while (!++last_id || find(last_id))
		;
	injector->id = last_id;
	error = start_seats(injector);
	if (error)
		return error;
	list_add_tail(&injector->list, &injectors);
	injector_count++;
	mod_delayed_work(system_wq, &lifetimes, 0);
	return 0;
}

static int prepare(struct genl_info *info, struct kcoll_noise_injector *injector,
		   struct cpumask *cpus)
{
	int error = read_numbers(info, injector);

	if (!error)
		error = kcoll_cpus_of(info, COLL_NOISE_A_CPUS, cpus);
	if (!error)
		error = read_model(info, injector);
	if (!error)
		error = make_seats(injector, cpus);
	return error;
}

static int answer_id(struct genl_info *info, struct sk_buff *skb, u32 id)
{
	void *header = kcoll_reply_put(skb, info, COLL_CMD_NOISE_START);

	if (!header || nla_put_u32(skb, COLL_NOISE_A_ID, id)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return genlmsg_reply(skb, info);
}

static int start_on(struct genl_info *info, struct kcoll_noise_injector *injector,
		    struct cpumask *cpus)
{
	struct sk_buff *skb = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	u32 id;
	int error;

	if (!skb)
		return -ENOMEM;
	error = prepare(info, injector, cpus);
	if (!error) {
		cpus_read_lock();
		mutex_lock(&mutex);
		error = admit(info, injector, cpus);
		id = injector->id;
		mutex_unlock(&mutex);
		cpus_read_unlock();
	}
	if (error) {
		nlmsg_free(skb);
		return error;
	}
	kcoll_tell(
		&(struct kcoll_happened){ .kind = COLL_EVENT_NOISE_STARTED, .id = id, .cpu = -1 });
	answer_id(info, skb, id);
	return 0;
}

static int noise_start(struct sk_buff *skb, struct genl_info *info)
{
	struct kcoll_noise_injector *injector;
	cpumask_var_t cpus;
	int error = kcoll_may_change(skb, info, true);

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
	error = start_on(info, injector, cpus);
	if (error)
		release(injector);
	free_cpumask_var(cpus);
	return error;
}

/* ---- stop ------------------------------------------------------------------------ */

static const struct nla_policy id_policy[__COLL_NOISE_A_MAX] = {
	[COLL_NOISE_A_ID] = { .type = NLA_U32 },
};

static void stop_owned(const struct kcoll_owner *owner)
{
	struct kcoll_noise_injector *injector;

	list_for_each_entry(injector, &injectors, list)
		if (coll_owner_is(&injector->owner, owner))
			stop(injector, "it was stopped");
}

/* Stopped once, an injector's counters and log may still be read; twice, it is gone. */
static int stop_one(struct genl_info *info, u32 id)
{
	struct kcoll_noise_injector *injector = find(id);

	if (!injector)
		return coll_refuse(info, COLL_NOISE_A_ID, -ENOENT, "id: there is no such injector");
	if (injector->over)
		forget(injector);
	else
		stop(injector, "it was stopped");
	return 0;
}

static int noise_stop(struct sk_buff *skb, struct genl_info *info)
{
	const struct kcoll_owner owner = coll_owner_of(info);
	int error = kcoll_may_change(skb, info, true);

	if (error)
		return error;
	mutex_lock(&mutex);
	if (info->attrs[COLL_NOISE_A_ID])
		error = stop_one(info, nla_get_u32(info->attrs[COLL_NOISE_A_ID]));
	else
		stop_owned(&owner);
	mutex_unlock(&mutex);
	return error;
}

static void owner_gone(const struct kcoll_owner *owner)
{
	struct kcoll_noise_injector *injector, *next;

	mutex_lock(&mutex);
	list_for_each_entry_safe(injector, next, &injectors, list) {
		if (!coll_owner_is(&injector->owner, owner))
			continue;
		stop(injector, "its owner is gone");
		forget(injector);
	}
	mutex_unlock(&mutex);
}

/* ---- look: a message for each seat -------------------------------------------------- */

static int put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, COLL_NOISE_A_PAD);
}

static int put_cpus(struct sk_buff *skb, const struct kcoll_noise_injector *injector)
{
	cpumask_var_t cpus;
	char *list = NULL;
	int error = -ENOMEM;
	u32 i;

	if (!zalloc_cpumask_var(&cpus, GFP_KERNEL))
		return error;
	for (i = 0; i < injector->seats; i++)
		cpumask_set_cpu(injector->seat[i].cpu, cpus);
	list = kasprintf(GFP_KERNEL, "%*pbl", cpumask_pr_args(cpus));
	if (list)
		error = nla_put_string(skb, COLL_NOISE_A_CPUS, list);
	kfree(list);
	free_cpumask_var(cpus);
	return error;
}

static int put_injector(struct sk_buff *skb, const struct kcoll_noise_injector *injector)
{
	return nla_put_u32(skb, COLL_NOISE_A_ID, injector->id) ||
	       put_cpus(skb, injector) ||
	       nla_put_u8(skb, COLL_NOISE_A_CONTEXT, injector->context) ||
	       nla_put(skb, COLL_NOISE_A_MODEL, sizeof(injector->model), &injector->model) ||
	       put_u64(skb, COLL_NOISE_A_EPOCH, injector->epoch) ||
	       put_u64(skb, COLL_NOISE_A_LIFETIME, injector->lifetime) ||
	       nla_put_u32(skb, COLL_NOISE_A_SHARE, injector->share) ||
	       nla_put_u32(skb, COLL_NOISE_A_LOG, injector->log) ||
	       nla_put_u32(skb, COLL_NOISE_A_STREAM, injector->stream) ||
	       nla_put_u32(skb, COLL_NOISE_A_COST, injector->cost) ? -EMSGSIZE : 0;
}

static int put_seat(struct sk_buff *skb, const struct kcoll_noise_seat *seat)
{
	return nla_put_u32(skb, COLL_NOISE_A_CPU, seat->cpu) ||
	       nla_put_u8(skb, COLL_NOISE_A_STATE, seat->state) ||
	       put_u64(skb, COLL_NOISE_A_INJECTED, READ_ONCE(seat->injected)) ||
	       put_u64(skb, COLL_NOISE_A_MISSED, READ_ONCE(seat->missed)) ||
	       put_u64(skb, COLL_NOISE_A_REFUSED, READ_ONCE(seat->refused)) ||
	       put_u64(skb, COLL_NOISE_A_TIME, READ_ONCE(seat->taken)) ||
	       put_u64(skb, COLL_NOISE_A_LOST, READ_ONCE(seat->lost)) ? -EMSGSIZE : 0;
}

static int put_state(struct sk_buff *skb, struct netlink_callback *cb,
		     const struct kcoll_noise_seat *seat)
{
	void *header = kcoll_dump_put(skb, cb, COLL_CMD_NOISE_GET);

	if (!header)
		return -EMSGSIZE;
	if (put_injector(skb, seat->injector) || put_seat(skb, seat)) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}

/* Where a dump is: in this injector, at this seat, until that entry of its log. */
struct place {
	u32 id, seat;
	u64 until;
};

static struct place *place_of(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct place) > sizeof(cb->ctx));
	return (struct place *)cb->ctx;
}

/* Goes on from where the last message was full. */
static int noise_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nlattr *only = coll_dump_attrs(cb)[COLL_NOISE_A_ID];
	struct place *place = place_of(cb);
	struct kcoll_noise_injector *injector;
	int error = 0;

	mutex_lock(&mutex);
	list_for_each_entry(injector, &injectors, list) {
		if (injector->id < place->id || (only && injector->id != nla_get_u32(only)))
			continue;
		if (injector->id > place->id)
			*place = (struct place){ .id = injector->id };
		for (; place->seat < injector->seats && !error; place->seat += !error)
			error = put_state(skb, cb, &injector->seat[place->seat]);
		if (error)
			break;
	}
	mutex_unlock(&mutex);
	return skb->len ? skb->len : error;
}

/* ---- read the log ------------------------------------------------------------------- */

/* As many entries as fit: of those that lie in a row in the ring, and worth a message. */
static int put_entries(struct sk_buff *skb, struct kcoll_noise_seat *seat, u64 until)
{
	u32 size = seat->injector->log, first = size ? seat->read & (size - 1) : 0;
	u32 wanted = min3(until - seat->read, (u64)size - first, (u64)ENTRIES_MAX);
	u32 room = skb_tailroom(skb) / sizeof(*seat->log);
	u32 count = min(wanted, room ? room - 1 : 0);

	if (count < min(wanted, ENTRIES_WORTH))
		return -EMSGSIZE;
	if (count && nla_put(skb, COLL_NOISE_A_EVENTS, count * sizeof(*seat->log),
			     &seat->log[first]))
		return -EMSGSIZE;
	/* Read before the seat may write over it. */
	smp_store_release(&seat->read, seat->read + count);
	return 0;
}

static int put_log_head(struct sk_buff *skb, const struct kcoll_noise_seat *seat)
{
	return nla_put_u32(skb, COLL_NOISE_A_ID, seat->injector->id) ||
	       nla_put_u32(skb, COLL_NOISE_A_CPU, seat->cpu) ||
	       put_u64(skb, COLL_NOISE_A_LOST, READ_ONCE(seat->lost)) ? -EMSGSIZE : 0;
}

static int put_log(struct sk_buff *skb, struct netlink_callback *cb, struct kcoll_noise_seat *seat,
		   u64 until)
{
	void *header = kcoll_dump_put(skb, cb, COLL_CMD_NOISE_LOG);

	if (!header)
		return -EMSGSIZE;
	if (put_log_head(skb, seat) || put_entries(skb, seat, until)) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}

/* Of each seat, what was there when the dump came to it. */
static int put_logs(struct sk_buff *skb, struct netlink_callback *cb,
		    struct kcoll_noise_injector *injector)
{
	struct place *place = place_of(cb);
	struct kcoll_noise_seat *seat;
	int error;

	for (; place->seat < injector->seats; place->seat++, place->until = 0) {
		seat = &injector->seat[place->seat];
		if (!place->until)
			place->until = smp_load_acquire(&seat->logged);	/* and what is in them */
		do {
			error = put_log(skb, cb, seat, place->until);
			if (error)
				return error;
		} while (seat->read < place->until);
	}
	return 0;
}

static int noise_log(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nlattr *id = coll_dump_attrs(cb)[COLL_NOISE_A_ID];
	struct kcoll_noise_injector *injector;
	int error;

	if (!id) {
		NL_SET_ERR_MSG(cb->extack, "id: missing; which injector");
		return -EINVAL;
	}
	mutex_lock(&mutex);
	injector = find(nla_get_u32(id));
	if (injector) {
		error = put_logs(skb, cb, injector);
	} else {
		NL_SET_ERR_MSG_ATTR(cb->extack, id, "id: there is no such injector");
		error = -ENOENT;
	}
	mutex_unlock(&mutex);
	return skb->len ? skb->len : error;
}

/* ---- the subsystem ------------------------------------------------------------------------ */

static const struct genl_ops ops[] = {
	{
		.cmd = COLL_CMD_NOISE_START, .flags = GENL_ADMIN_PERM, .doit = noise_start,
		.policy = start_policy, .maxattr = ARRAY_SIZE(start_policy) - 1,
	},
	{
		.cmd = COLL_CMD_NOISE_STOP, .flags = GENL_ADMIN_PERM, .doit = noise_stop,
		.policy = id_policy, .maxattr = ARRAY_SIZE(id_policy) - 1,
	},
	{
		.cmd = COLL_CMD_NOISE_GET, .dumpit = noise_get,
		.policy = id_policy, .maxattr = ARRAY_SIZE(id_policy) - 1,
	},
	{
		.cmd = COLL_CMD_NOISE_LOG, .flags = GENL_ADMIN_PERM, .dumpit = noise_log,
		.policy = id_policy, .maxattr = ARRAY_SIZE(id_policy) - 1,
	},
};

static int noise_init(void)
{
	int state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "coll/noise:online", cpu_comes,
					      cpu_goes);

	if (state < 0)
		return state;
	hotplug = state;
	return 0;
}

static void noise_exit(void)
{
	struct kcoll_noise_injector *injector, *next;

	cpuhp_remove_state_nocalls(hotplug);
	mutex_lock(&mutex);
	list_for_each_entry_safe(injector, next, &injectors, list) {
		stop(injector, "coll.ko is unloaded");
		forget(injector);
	}
	mutex_unlock(&mutex);
	cancel_delayed_work_sync(&lifetimes);
}

const struct kcoll_subsystem kcoll_noise_subsystem = {
	.name = "noise",
	.init = noise_init,
	.exit = noise_exit,
	.ops = ops,
	.n_ops = ARRAY_SIZE(ops),
	.owner_gone = owner_gone,
};
