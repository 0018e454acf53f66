// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../tools/netlink.h"
#include "colld.h"

enum { LINGER_MS = 60000 };	/* rules wait so long for a colld that died */

struct colld_pin {
	const struct noise_rules *rules;
	struct noise_rules here;	/* what is not the module's: a copy that owns no memory */
	struct noise_rule *rule;
	const char *state;
	struct netlink *netlink;	/* NULL: no module */
	struct noise_pinning pinning;
	u32 changed;			/* that were said */
	u64 scans, moved;
	/* the module's, all rules together */
	u64 module_matched, module_moved, module_refused, module_changed;
};

/* ---- the module ---------------------------------------------------------------------------- */

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

static int put_rule(struct nl_msg *message, const struct noise_rule *rule)
{
	char list[NOISE_CPUS_TEXT];
	struct nlattr *nest;
	u64 id = 0;

	if (rule->cgroup && cgroup_id(rule->cgroup, &id)) {
		colld_say(4, "policy:%u: there is no cgroup %s (the module takes no globs of "
			  "cgroups); the rule rests", rule->line, rule->cgroup);
		return 0;
	}
	nest = nla_nest_start(message, COLL_PIN_A_RULE);
	if (rule->comm)
		nla_put_string(message, COLL_PIN_A_COMM, rule->comm);
	if (rule->cgroup)
		nla_put_u64(message, COLL_PIN_A_CGROUP, id);
	if (rule->uid >= 0)
		nla_put_u32(message, COLL_PIN_A_UID, rule->uid);
	if (rule->parent)
		nla_put_u32(message, COLL_PIN_A_PARENT, rule->parent);
	if (rule->kthread)
		nla_put_flag(message, COLL_PIN_A_KTHREAD);
	if (rule->keep)
		nla_put_flag(message, COLL_PIN_A_KEEP);
	if (rule->to)
		nla_put_string(message, COLL_PIN_A_CPUS,
			       noise_cpus_list(rule->to, list, sizeof(list)));
	nla_nest_end(message, nest);
	return 1;
}

static int set_module(struct colld_pin *pin)
{
	struct nl_msg *message = netlink_message(pin->netlink, COLL_CMD_PIN_SET, 0);
	char list[NOISE_CPUS_TEXT];
	int put = 0;
	u32 i;

	if (!message)
		return -ENOMEM;
	nla_put_string(message, COLL_PIN_A_HOUSEKEEPING,
		       noise_cpus_list(&pin->rules->housekeeping, list, sizeof(list)));
	nla_put_u32(message, COLL_PIN_A_LINGER, LINGER_MS);
	for (i = 0; i < pin->rules->rules; i++)
		if (!pin->rules->rule[i].irq)
			put += put_rule(message, &pin->rules->rule[i]);
	if (put)
		return netlink_ask(pin->netlink, message, NULL, NULL);
	nlmsg_free(message);
	return 0;
}

static int take_rule(enum coll_command command, struct nlattr **attributes, void *data)
{
	struct colld_pin *pin = data;

	(void)command;
	if (attributes[COLL_PIN_A_PID] || !attributes[COLL_PIN_A_MATCHED])
		return 0;
	pin->module_matched += nla_get_u64(attributes[COLL_PIN_A_MATCHED]);
	if (attributes[COLL_PIN_A_MOVED])
		pin->module_moved += nla_get_u64(attributes[COLL_PIN_A_MOVED]);
	if (attributes[COLL_PIN_A_REFUSED])
		pin->module_refused += nla_get_u64(attributes[COLL_PIN_A_REFUSED]);
	if (attributes[COLL_PIN_A_CHANGED])
		pin->module_changed += nla_get_u64(attributes[COLL_PIN_A_CHANGED]);
	return 0;
}

static void ask_module(struct colld_pin *pin)
{
	pin->module_matched = pin->module_moved = pin->module_refused = pin->module_changed = 0;
	netlink_ask(pin->netlink, netlink_message(pin->netlink, COLL_CMD_PIN_GET, NLM_F_DUMP),
		    take_rule, pin);
}

/* ---- from here ------------------------------------------------------------------------------- */

/* With the module, only rules of interrupts are ours. */
static int choose_rules(struct colld_pin *pin)
{
	u32 i;

	pin->here = *pin->rules;
	pin->rule = calloc(pin->rules->rules + 1, sizeof(*pin->rule));
	if (!pin->rule)
		return -ENOMEM;
	pin->here.rule = pin->rule;
	pin->here.rules = 0;
	for (i = 0; i < pin->rules->rules; i++)
		if (!pin->netlink || pin->rules->rule[i].irq)
			pin->rule[pin->here.rules++] = pin->rules->rule[i];
	return 0;
}

int colld_pin_open(struct colld_pin **pin, const struct noise_rules *rules, const char *state)
{
	struct colld_pin *new = calloc(1, sizeof(*new));
	int error;

	*pin = new;
	if (!new)
		return -ENOMEM;
	new->rules = rules;
	new->state = state;
	error = netlink_open(&new->netlink);
	if (error) {
		netlink_close(new->netlink);
		new->netlink = NULL;
		colld_say(6, "without the module: who forks or execs later is moved when it is "
			  "seen");
	} else {
		error = set_module(new);
		if (error)
			colld_say(3, "the module refuses the policy: %s",
				  netlink_reason(new->netlink));
	}
	if (new->netlink && error)
		return error;
	error = choose_rules(new);
	if (!error && noise_pinning_load(&new->pinning, state) == 0 && new->pinning.count)
		colld_say(6, "took over %u that were moved before", new->pinning.count);
	return error ? error : colld_pin_renew(new);
}

/* What was is written down before it is changed, and how it became after that. */
static int move(struct colld_pin *pin)
{
	int error = noise_pinning_save(&pin->pinning, pin->state, true);
	const u32 before = noise_pinning_count(&pin->pinning, NOISE_PIN_MOVED);

	if (!error) {
		noise_pinning_apply(&pin->pinning);
		pin->moved += noise_pinning_count(&pin->pinning, NOISE_PIN_MOVED) - before;
		error = noise_pinning_save(&pin->pinning, pin->state, true);
	}
	if (error)
		colld_say(3, "cannot keep the state in %s: %s", pin->state, strerror(-error));
	return error;
}

int colld_pin_renew(struct colld_pin *pin)
{
	const int wanted = noise_pinning_renew(&pin->pinning, &pin->here);
	const u32 changed = noise_pinning_count(&pin->pinning, NOISE_PIN_CHANGED);
	const int error = wanted > 0 ? move(pin) : wanted;

	pin->scans++;
	if (changed > pin->changed)
		colld_say(5, "%u were moved back by somebody else: left alone",
			  changed - pin->changed);
	pin->changed = changed;
	if (pin->netlink)
		ask_module(pin);
	return error;
}

void colld_pin_close(struct colld_pin *pin, bool restore)
{
	if (!pin)
		return;
	if (restore && pin->netlink)
		netlink_ask(pin->netlink, netlink_message(pin->netlink, COLL_CMD_PIN_CLEAR, 0),
			    NULL, NULL);
	if (restore) {
		noise_pinning_undo(&pin->pinning);
		noise_pinning_forget(pin->state);
	}
	if (pin->netlink)
		netlink_close(pin->netlink);
	noise_pinning_free(&pin->pinning);
	free(pin->rule);
	free(pin);
}

void colld_pin_metrics(const struct colld_pin *pin, FILE *to)
{
	fprintf(to, "# HELP coll_module Whether coll.ko is there.\n# TYPE coll_module gauge\n"
		"coll_module %d\n"
		"# HELP coll_pinned Tasks, interrupts and masks that are kept away by colld.\n"
		"# TYPE coll_pinned gauge\ncoll_pinned{state=\"moved\"} %u\n"
		"coll_pinned{state=\"changed\"} %u\ncoll_pinned{state=\"refused\"} %u\n"
		"coll_pinned{state=\"managed\"} %u\n"
		"# HELP coll_pin_moved_total Moves since colld began.\n"
		"# TYPE coll_pin_moved_total counter\ncoll_pin_moved_total %llu\n"
		"# HELP coll_pin_scans_total Times that it looked for more.\n"
		"# TYPE coll_pin_scans_total counter\ncoll_pin_scans_total %llu\n",
		pin->netlink != NULL, noise_pinning_count(&pin->pinning, NOISE_PIN_MOVED),
		noise_pinning_count(&pin->pinning, NOISE_PIN_CHANGED),
		noise_pinning_count(&pin->pinning, NOISE_PIN_REFUSED),
		noise_pinning_count(&pin->pinning, NOISE_PIN_MANAGED),
		(unsigned long long)pin->moved, (unsigned long long)pin->scans);
	if (!pin->netlink)
		return;
	fprintf(to, "# HELP coll_module_pin_tasks Tasks that the module's rules met.\n"
		"# TYPE coll_module_pin_tasks gauge\ncoll_module_pin_tasks{state=\"matched\"} %llu\n"
		"coll_module_pin_tasks{state=\"moved\"} %llu\n"
		"coll_module_pin_tasks{state=\"refused\"} %llu\n"
		"coll_module_pin_tasks{state=\"changed\"} %llu\n",
		(unsigned long long)pin->module_matched, (unsigned long long)pin->module_moved,
		(unsigned long long)pin->module_refused, (unsigned long long)pin->module_changed);
}
