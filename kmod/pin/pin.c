// SPDX-License-Identifier: GPL-2.0
/*
 * Pinning's orders: a set of rules, all at once; clear; look. There is one owner.
 * When it dies its rules are cleared, or wait for another to take them over.
 */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/cgroup.h>
#include <linux/cpuhotplug.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "kmod/common/compat.h"
#include "kmod/common/netlink.h"
#include "pin.h"
#include "pin_probe.h"

static DEFINE_MUTEX(orders);		/* one at a time; outside the tasks' mutex */
static struct kcoll_owner owner;
static bool orphaned;			/* rules wait for a new owner, */
static unsigned long orphaned_until;	/* until these jiffies, unless `linger` is for ever */
static u32 linger;

static void pin_end_linger(struct work_struct *work);
static DECLARE_DELAYED_WORK(lingering, pin_end_linger);

static void pin_clear_rules(const char *reason)
{
	if (!kcoll_pin_tasks_active())
		return;
	kcoll_pin_tasks_clear();
	orphaned = false;
	kcoll_event_send(&(struct kcoll_event){
		.kind = COLL_EVENT_PIN_ENDED, .cpu = -1, .reason = reason });
}

static void pin_end_linger(struct work_struct *work)
{
	mutex_lock(&orders);
	/* Perhaps queued for an earlier owner, whose rules another has taken over. */
	if (orphaned && linger != PIN_LINGER_ON && time_after_eq(jiffies, orphaned_until))
		pin_clear_rules("its owner is gone, and nobody took over");
	mutex_unlock(&orders);
}

static void pin_owner_gone(const struct kcoll_owner *caller)
{
	mutex_lock(&orders);
	if (kcoll_pin_tasks_active() && !orphaned && coll_owner_is(&owner, caller)) {
		orphaned = linger;
		orphaned_until = jiffies + msecs_to_jiffies(linger);
		if (orphaned && linger != PIN_LINGER_ON)
			mod_delayed_work(coll_system_wq, &lingering, msecs_to_jiffies(linger));
		else if (!orphaned)
			pin_clear_rules("its owner is gone");
	}
	mutex_unlock(&orders);
}

/* ---- set: what was asked --------------------------------------------------------------- */

static const struct nla_policy rule_policy[COLL_PIN_A_CPUS + 1] = {
	[COLL_PIN_A_COMM] = { .type = NLA_NUL_STRING, .len = PIN_GLOB_MAX },
	[COLL_PIN_A_CGROUP] = { .type = NLA_U64 },
	[COLL_PIN_A_UID] = { .type = NLA_U32 },
	[COLL_PIN_A_KTHREAD] = { .type = NLA_FLAG },
	[COLL_PIN_A_PARENT] = { .type = NLA_U32 },
	[COLL_PIN_A_KEEP] = { .type = NLA_FLAG },
	[COLL_PIN_A_CPUS] = COLL_POLICY_CPUS,
};

static const struct nla_policy set_policy[COLL_PIN_A_RULE + 1] = {
	[COLL_PIN_A_HOUSEKEEPING] = COLL_POLICY_CPUS,
	[COLL_PIN_A_LINGER] = { .type = NLA_U32 },
	[COLL_PIN_A_RULE] = NLA_POLICY_NESTED(rule_policy),
};

#define refuse(extack, attr, error, text) ({				\
	NL_SET_ERR_MSG_ATTR(extack, attr, text);			\
	(error);							\
})

static int rule_read_cgroup(struct nlattr *attr, struct netlink_ext_ack *extack,
			    struct pin_rules *rules, struct pin_rule *rule)
{
	struct cgroup *cgroup = cgroup_get_from_id(nla_get_u64(attr));

	if (IS_ERR(cgroup))
		return refuse(extack, attr, -ENOENT,
			      "cgroup: no cgroup has this id, the inode of its folder");
	rule->cgroup = cgroup;
	rules->by_cgroup = true;
	return 0;
}

static int rule_read_parent(struct nlattr *attr, struct netlink_ext_ack *extack,
			    struct pin_rule *rule)
{
	rule->parent = find_get_pid(nla_get_u32(attr));
	return rule->parent ? 0 :
			      refuse(extack, attr, -ESRCH, "parent: no process has this pid");
}

/* Where its tasks go: it must be possible now. */
static int rule_read_cpus(struct nlattr *attr, struct netlink_ext_ack *extack,
			  const struct pin_rules *rules, struct pin_rule *rule)
{
	int error;

	if (!attr) {
		cpumask_copy(rule->cpus, rules->housekeeping);
		return 0;
	}
	error = kcoll_cpus_in(attr, extack, rule->cpus);
	if (error)
		return error;
	return cpumask_intersects(rule->cpus, cpu_online_mask) ? 0 :
		refuse(extack, attr, -ENXIO, "cpus: none of them is online");
}

static int rule_read(struct nlattr *attr, struct netlink_ext_ack *extack, struct pin_rules *rules)
{
	struct pin_rule *rule = &rules->rule[rules->count];
	struct nlattr *attrs[COLL_PIN_A_CPUS + 1];
	int error = nla_parse_nested(attrs, COLL_PIN_A_CPUS, attr, rule_policy, extack);

	if (error)
		return error;
	if (!zalloc_cpumask_var(&rule->cpus, GFP_KERNEL_ACCOUNT))
		return -ENOMEM;
	rules->count++;		/* from here on it is freed with the others */
	rule->kthread = attrs[COLL_PIN_A_KTHREAD];
	rule->keep = attrs[COLL_PIN_A_KEEP];
	rule->uid = INVALID_UID;
	if (!attrs[COLL_PIN_A_COMM] && !attrs[COLL_PIN_A_CGROUP] && !attrs[COLL_PIN_A_UID] &&
	    !attrs[COLL_PIN_A_PARENT] && !rule->kthread)
		return refuse(extack, attr, -EINVAL,
			      "rule: needs comm, cgroup, uid, parent or kthread");
	if (attrs[COLL_PIN_A_COMM])
		nla_strscpy(rule->comm, attrs[COLL_PIN_A_COMM], sizeof(rule->comm));
	if (attrs[COLL_PIN_A_UID])
		rule->uid = make_kuid(current_user_ns(), nla_get_u32(attrs[COLL_PIN_A_UID]));
	if (attrs[COLL_PIN_A_UID] && !uid_valid(rule->uid))
		return refuse(extack, attrs[COLL_PIN_A_UID], -EINVAL, "uid: below 4294967295");
	if (attrs[COLL_PIN_A_CGROUP])
		error = rule_read_cgroup(attrs[COLL_PIN_A_CGROUP], extack, rules, rule);
	if (!error && attrs[COLL_PIN_A_PARENT])
		error = rule_read_parent(attrs[COLL_PIN_A_PARENT], extack, rule);
	return error ? error : rule_read_cpus(attrs[COLL_PIN_A_CPUS], extack, rules, rule);
}

static u32 pin_count_rules(struct genl_info *info)
{
	struct nlattr *attr;
	u32 count = 0;
	int left;

	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, left)
		count += nla_type(attr) == COLL_PIN_A_RULE;
	return count;
}

static int pin_read_housekeeping(struct genl_info *info, struct pin_rules *rules)
{
	int error;

	if (!info->attrs[COLL_PIN_A_HOUSEKEEPING])
		return coll_refuse(info, COLL_PIN_A_HOUSEKEEPING, -EINVAL,
				   "housekeeping: missing; a list of CPUs such as 0-1");
	error = kcoll_cpus_of(info, COLL_PIN_A_HOUSEKEEPING, rules->housekeeping);
	if (error)
		return error;
	if (!cpumask_intersects(rules->housekeeping, cpu_online_mask))
		return coll_refuse(info, COLL_PIN_A_HOUSEKEEPING, -ENXIO,
				   "housekeeping: none of these CPUs is online");
	if (info->attrs[COLL_PIN_A_LINGER])
		rules->linger = nla_get_u32(info->attrs[COLL_PIN_A_LINGER]);
	if (rules->linger > PIN_LINGER_MAX && rules->linger != PIN_LINGER_ON)
		return coll_refuse(info, COLL_PIN_A_LINGER, -ERANGE,
				   "linger: at most 600000, in ms, or 4294967295: until cleared");
	return 0;
}

static int pin_read_rules(struct genl_info *info, struct pin_rules *rules)
{
	struct nlattr *attr;
	int left, error = pin_read_housekeeping(info, rules);

	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, left) {
		if (error)
			break;
		if (nla_type(attr) == COLL_PIN_A_RULE)
			error = rule_read(attr, info->extack, rules);
	}
	kcoll_pin_rules_chain(rules);
	return error;
}

static struct pin_rules *pin_make_rules(u32 count)
{
	struct pin_rules *rules;

	rules = kvzalloc(struct_size(rules, rule, count), COLL_GFP);
	if (!rules)
		return NULL;
	if (!zalloc_cpumask_var(&rules->housekeeping, GFP_KERNEL_ACCOUNT)) {
		kvfree(rules);
		return NULL;
	}
	return rules;
}

/* ---- set, clear ------------------------------------------------------------------------ */

static int pin_take_over(struct genl_info *info, struct pin_rules *rules)
{
	const struct kcoll_owner caller = coll_owner_of(info);
	u32 stay = rules->linger;
	int error;

	if (kcoll_pin_tasks_active() && !orphaned && !coll_owner_is(&owner, &caller))
		return coll_refuse(info, COLL_PIN_A_UNSPEC, -EBUSY,
				   "somebody else's rules hold; its socket must be closed first");
	error = kcoll_pin_tasks_set(rules);
	if (error)
		return error;
	owner = caller;
	orphaned = false;
	linger = stay;
	return 0;
}

static int pin_set(struct sk_buff *skb, struct genl_info *info)
{
	int error = kcoll_may_change(skb, info, KCOLL_NEEDS_NICE) ?: kcoll_own(info);
	struct pin_rules *rules;
	u32 count;

	if (error)
		return error;
	count = pin_count_rules(info);
	if (!count || count > PIN_RULES_MAX)
		return coll_refuse(info, COLL_PIN_A_RULE, -EINVAL, "rule: 1 to 1024 of them");
	rules = pin_make_rules(count);
	if (!rules)
		return -ENOMEM;
	error = pin_read_rules(info, rules);
	if (!error) {
		mutex_lock(&orders);
		error = pin_take_over(info, rules);
		mutex_unlock(&orders);
	}
	if (error)
		kcoll_pin_rules_free(rules);
	return error;
}

static int pin_clear(struct sk_buff *skb, struct genl_info *info)
{
	const struct kcoll_owner caller = coll_owner_of(info);
	int error = kcoll_may_change(skb, info, KCOLL_NEEDS_NICE);

	if (error)
		return error;
	mutex_lock(&orders);
	if (kcoll_pin_tasks_active() && !orphaned && !coll_owner_is(&owner, &caller))
		error = coll_refuse(info, COLL_PIN_A_UNSPEC, -EBUSY,
				    "somebody else's rules hold; its socket must be closed");
	else
		pin_clear_rules("they were cleared");
	mutex_unlock(&orders);
	return error;
}

/* ---- look ------------------------------------------------------------------------------ */

struct pin_dump {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	char *list;			/* for the text of some CPUs */
	struct pin_shown task;
};

/* Where a dump is: the next rule, then the next task. */
struct pin_cursor {
	u64 task;
	u32 rule;
};

static struct pin_cursor *pin_cursor(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct pin_cursor) > sizeof(cb->ctx));
	return (struct pin_cursor *)cb->ctx;
}

static int pin_put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, COLL_PIN_A_PAD);
}

/* At worst two of each three CPUs: two numbers of at most five digits, a dash and a comma. */
static size_t pin_list_bytes(void)
{
	return 4 * nr_cpu_ids + 16;
}

static int pin_put_cpus(const struct pin_dump *look, int attr, const struct cpumask *cpus)
{
	scnprintf(look->list, pin_list_bytes(), "%*pbl", cpumask_pr_args(cpus));
	return nla_put_string(look->skb, attr, look->list);
}

static int pin_put_conditions(struct sk_buff *skb, const struct pin_rule *rule)
{
	return (rule->comm[0] && nla_put_string(skb, COLL_PIN_A_COMM, rule->comm)) ||
	       (rule->cgroup && pin_put_u64(skb, COLL_PIN_A_CGROUP, cgroup_id(rule->cgroup))) ||
	       (uid_valid(rule->uid) &&
		nla_put_u32(skb, COLL_PIN_A_UID, from_kuid(&init_user_ns, rule->uid))) ||
	       (rule->kthread && nla_put_flag(skb, COLL_PIN_A_KTHREAD)) ||
	       (rule->parent && nla_put_u32(skb, COLL_PIN_A_PARENT, pid_nr(rule->parent))) ||
	       (rule->keep && nla_put_flag(skb, COLL_PIN_A_KEEP)) ? -EMSGSIZE : 0;
}

static int pin_put_rule(const struct pin_rule *rule, u32 index, void *data)
{
	struct pin_dump *look = data;
	void *header = kcoll_dump_put(look->skb, look->cb, COLL_CMD_PIN_GET);

	if (!header)
		return -EMSGSIZE;
	if (nla_put_u32(look->skb, COLL_PIN_A_INDEX, index) ||
	    pin_put_conditions(look->skb, rule) ||
	    pin_put_cpus(look, COLL_PIN_A_CPUS, rule->cpus) ||
	    pin_put_u64(look->skb, COLL_PIN_A_MATCHED, atomic64_read(&rule->matched)) ||
	    pin_put_u64(look->skb, COLL_PIN_A_MOVED, atomic64_read(&rule->moved)) ||
	    pin_put_u64(look->skb, COLL_PIN_A_REFUSED, atomic64_read(&rule->refused)) ||
	    pin_put_u64(look->skb, COLL_PIN_A_CHANGED, atomic64_read(&rule->changed))) {
		genlmsg_cancel(look->skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(look->skb, header);
	pin_cursor(look->cb)->rule = index + 1;
	return 0;
}

static int pin_put_task(const struct pin_dump *look)
{
	const struct pin_shown *task = &look->task;
	void *header = kcoll_dump_put(look->skb, look->cb, COLL_CMD_PIN_GET);

	if (!header)
		return -EMSGSIZE;
	if (nla_put_u32(look->skb, COLL_PIN_A_PID, task->pid) ||
	    nla_put_string(look->skb, COLL_PIN_A_COMM, task->comm) ||
	    (task->rule >= 0 && nla_put_u32(look->skb, COLL_PIN_A_INDEX, task->rule)) ||
	    nla_put_u8(look->skb, COLL_PIN_A_STATE, task->state) ||
	    (task->error && nla_put_u32(look->skb, COLL_PIN_A_ERROR, task->error)) ||
	    pin_put_cpus(look, COLL_PIN_A_SAVED, task->saved)) {
		genlmsg_cancel(look->skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(look->skb, header);
	return 0;
}

static int pin_put_tasks(struct pin_dump *look)
{
	struct pin_cursor *cursor = pin_cursor(look->cb);
	int error = 0;

	for (; !error && kcoll_pin_show(cursor->task, &look->task); cond_resched()) {
		if (look->task.state <= COLL_PIN_CHANGED)
			error = pin_put_task(look);
		if (!error)
			cursor->task = look->task.number + 1;
	}
	return error;
}

static int pin_put_all(struct pin_dump *look)
{
	return kcoll_pin_tasks_each_rule(pin_cursor(look->cb)->rule, pin_put_rule, look) ?:
	       pin_put_tasks(look);
}

static int pin_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct pin_dump look = { .skb = skb, .cb = cb };
	int error = kcoll_may_dump(cb, KCOLL_NEEDS_PIDS);

	if (error)
		return error;
	if (!zalloc_cpumask_var(&look.task.saved, GFP_KERNEL))
		return -ENOMEM;
	look.list = kmalloc(pin_list_bytes(), GFP_KERNEL);
	error = look.list ? pin_put_all(&look) : -ENOMEM;
	kfree(look.list);
	free_cpumask_var(look.task.saved);
	return skb->len ? skb->len : error;
}

/* ---- the subsystem -------------------------------------------------------------------------- */

static const struct genl_ops ops[] = {
	{
		.cmd = COLL_CMD_PIN_SET, .flags = GENL_ADMIN_PERM, .doit = pin_set,
		.policy = set_policy, .maxattr = ARRAY_SIZE(set_policy) - 1,
	},
	{
		.cmd = COLL_CMD_PIN_CLEAR, .flags = GENL_ADMIN_PERM, .doit = pin_clear,
		.policy = kcoll_no_attributes, .maxattr = ARRAY_SIZE(kcoll_no_attributes) - 1,
	},
	{
		.cmd = COLL_CMD_PIN_GET, .dumpit = pin_get,
		.policy = kcoll_no_attributes, .maxattr = ARRAY_SIZE(kcoll_no_attributes) - 1,
	},
};

static enum cpuhp_state online, dead;

static int pin_init(void)
{
	int state = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "coll/pin:dead", NULL,
					      kcoll_pin_cpu_changed);

	if (state < 0)
		return state;
	dead = state;
	state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "coll/pin:online", kcoll_pin_cpu_changed,
					  NULL);
	if (state < 0) {
		cpuhp_remove_state_nocalls(dead);
		return state;
	}
	online = state;
	return 0;
}

static void pin_exit(void)
{
	cpuhp_remove_state_nocalls(online);
	cpuhp_remove_state_nocalls(dead);
	mutex_lock(&orders);
	pin_clear_rules("coll.ko is unloaded");
	mutex_unlock(&orders);
	cancel_delayed_work_sync(&lingering);
	kcoll_pin_tasks_end();
}

const struct kcoll_subsystem kcoll_pin_subsystem = {
	.name = "pin",
	.init = pin_init,
	.exit = pin_exit,
	.ops = ops,
	.n_ops = ARRAY_SIZE(ops),
	.owner_gone = pin_owner_gone,
};
