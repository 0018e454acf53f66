// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "netlink.h"
#include "pin_module.h"

/* The kernel knows a cgroup by the number of its folder. */
static int cgroup_id(const char *name, u64 *id)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	struct stat folder;
	char path[512];
	u32 i;

	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/cgroup.procs", roots[i]);
		if (stat(path, &folder))
			continue;	/* not where version 2 is */
		snprintf(path, sizeof(path), "%s%s", roots[i], name);
		if (stat(path, &folder))
			return -ENOENT;
		*id = folder.st_ino;
		return 0;
	}
	return -ENOENT;
}

/* 0, or less: the message has no room for it. */
static int put_rule(struct nl_msg *message, const struct node_rule *rule, u64 cgroup)
{
	struct nlattr *nest = nla_nest_start(message, COLL_PIN_A_RULE);
	char list[NODE_CPUS_TEXT];
	int error = nest ? 0 : -1;

	if (!error && rule->comm)
		error = nla_put_string(message, COLL_PIN_A_COMM, rule->comm);
	if (!error && rule->cgroup)
		error = nla_put_u64(message, COLL_PIN_A_CGROUP, cgroup);
	if (!error && rule->uid >= 0)
		error = nla_put_u32(message, COLL_PIN_A_UID, rule->uid);
	if (!error && rule->parent)
		error = nla_put_u32(message, COLL_PIN_A_PARENT, rule->parent);
	if (!error && rule->kthread)
		error = nla_put_flag(message, COLL_PIN_A_KTHREAD);
	if (!error && rule->keep)
		error = nla_put_flag(message, COLL_PIN_A_KEEP);
	if (!error && rule->to)
		error = nla_put_string(message, COLL_PIN_A_CPUS,
				       node_cpus_list(rule->to, list, sizeof(list)));
	return error ? error : nla_nest_end(message, nest);
}

/* The number of rules put, or less: the message has no room for all. */
static int put_rules(struct nl_msg *message, const struct node_rules *rules,
		     void (*skipped)(const struct node_rule *rule))
{
	int put = 0;
	u32 i;

	for (i = 0; i < rules->rules; i++) {
		const struct node_rule *rule = &rules->rule[i];
		u64 cgroup = 0;

		if (rule->irq)
			continue;
		if (rule->cgroup && cgroup_id(rule->cgroup, &cgroup)) {
			skipped(rule);
			continue;
		}
		if (put_rule(message, rule, cgroup))
			return -1;
		put++;
	}
	return put;
}

int node_pin_module_set(struct netlink *netlink, const struct node_rules *rules, u32 linger,
			u32 kept, void (*skipped)(const struct node_rule *rule))
{
	const struct node_rule keep = { .keep = true, .uid = -1, .parent = kept };
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_PIN_SET, 0);
	char list[NODE_CPUS_TEXT];
	int put;

	if (!message)
		return -ENOMEM;
	nla_put_string(message, COLL_PIN_A_HOUSEKEEPING,
		       node_cpus_list(&rules->housekeeping, list, sizeof(list)));
	nla_put_u32(message, COLL_PIN_A_LINGER, linger);
	put = kept && put_rule(message, &keep, 0) ? -1 : put_rules(message, rules, skipped);
	if (put > 0)
		return netlink_ask(netlink, message, NULL, NULL);
	nlmsg_free(message);
	return put ? netlink_fail(netlink, -EMSGSIZE, "rules: more text than a message to coll.ko "
				  "holds; valid: 256 KiB together") : 0;
}

int node_pin_module_clear(struct netlink *netlink)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_PIN_CLEAR, 0);

	return message ? netlink_ask(netlink, message, NULL, NULL) : -ENOMEM;
}

static u64 pin_module_value(struct nlattr *attribute)
{
	return attribute ? nla_get_u64(attribute) : 0;
}

static int take_rule(enum coll_command command, struct nlattr **attributes, void *data)
{
	struct node_pin_counts *counts = data;

	(void)command;
	if (attributes[COLL_PIN_A_PID])
		return 1;	/* all rules come before the first task */
	counts->matched += pin_module_value(attributes[COLL_PIN_A_MATCHED]);
	counts->moved += pin_module_value(attributes[COLL_PIN_A_MOVED]);
	counts->refused += pin_module_value(attributes[COLL_PIN_A_REFUSED]);
	counts->changed += pin_module_value(attributes[COLL_PIN_A_CHANGED]);
	return 0;
}

int node_pin_module_count(struct node_pin_counts *counts)
{
	struct netlink *netlink = NULL;
	int error = netlink_open(&netlink);

	*counts = (struct node_pin_counts){ 0 };
	if (!error)
		error = netlink_ask(netlink, netlink_message(netlink, COLL_CMD_PIN_GET, NLM_F_DUMP), take_rule,
				    counts);
	netlink_close(netlink);
	return error;
}

int node_pin_module_left(const struct node_rules *rules, struct node_rules *left)
{
	u32 i;

	*left = *rules;
	left->rules = 0;
	left->rule = calloc(rules->rules + 1, sizeof(*left->rule));
	if (!left->rule)
		return -ENOMEM;
	for (i = 0; i < rules->rules; i++)
		if (rules->rule[i].irq)
			left->rule[left->rules++] = rules->rule[i];
	return 0;
}
