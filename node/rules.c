// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/noise/text.h"
#include "rules.h"
#include "units.h"

__attribute__((format(printf, 2, 3)))
static int rules_refuse(struct coll_text_error *error, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(error->reason, sizeof(error->reason), format, list);
	va_end(list);
	return -EINVAL;
}

static bool read_number(const char *text, u64 *number)
{
	char *rest;

	errno = 0;
	*number = strtoull(text, &rest, 10);
	return *text >= '0' && *text <= '9' && !*rest && !errno && *number <= INT32_MAX;
}

static int keep_text(const char *value, char **to)
{
	free(*to);
	*to = strdup(value);
	return *to ? 0 : -ENOMEM;
}

/* ---- rules ---------------------------------------------------------------- */

static int read_to(struct node_rule *rule, const char *value, struct coll_text_error *error)
{
	struct node_cpus cpus;

	if (rule->keep || !node_cpus_read_list(&cpus, value) || !node_cpus_count(&cpus))
		return rules_refuse(error, "to '%s' is not a list of CPUs for what is pinned",
				    value);
	if (!rule->to)			/* else it is said twice: the last one counts */
		rule->to = malloc(sizeof(*rule->to));
	if (!rule->to)
		return -ENOMEM;
	*rule->to = cpus;
	return 0;
}

static int read_word(struct node_rule *rule, char *word, struct coll_text_error *error)
{
	char *value = strchrnul(word, '=');
	u64 number;

	if (!strcmp(word, "kthread")) {
		rule->kthread = true;
		return 0;
	}
	if (!*value || !value[1])
		return rules_refuse(error,
				    "'%s' is not comm=, cgroup=, uid=, parent=, irq=, to= or "
				    "kthread",
				    word);
	*value++ = 0;
	if (!strcmp(word, "comm")) {
		rule->comm_plain = strcspn(value, "*?[\\");
		return keep_text(value, &rule->comm);
	}
	if (!strcmp(word, "cgroup"))
		return keep_text(value, &rule->cgroup);
	if (!strcmp(word, "irq"))
		return keep_text(value, &rule->irq);
	if (!strcmp(word, "to"))
		return read_to(rule, value, error);
	if (strcmp(word, "uid") && strcmp(word, "parent"))
		return rules_refuse(error,
				    "there is no '%s'; valid: comm, cgroup, uid, parent, irq, to, "
				    "kthread",
				    word);
	if (!read_number(value, &number))
		return rules_refuse(error, "%s '%s' is not a number", word, value);
	if (*word == 'u')
		rule->uid = number;
	else
		rule->parent = number;
	return 0;
}

static int read_rule(struct node_rules *rules, bool keep, char **save, u32 line,
		     struct coll_text_error *error)
{
	struct node_rule *more = reallocarray(rules->rule, rules->rules + 1, sizeof(*more)), *rule;
	char *word;
	bool any = false;
	int status = 0;

	if (!more)
		return -ENOMEM;
	rules->rule = more;
	rule = &more[rules->rules++];
	*rule = (struct node_rule){ .keep = keep, .uid = -1, .line = line };
	while (!status && (word = strtok_r(NULL, " \t", save))) {
		any = true;
		status = read_word(rule, word, error);
	}
	if (status)
		return status;
	if (!any)
		return rules_refuse(error, "a rule without words; comm=* is everything");
	if (rule->irq && (rule->comm || rule->cgroup || rule->uid >= 0 || rule->parent ||
			  rule->kthread))
		return rules_refuse(error, "a rule is for tasks or for interrupts");
	return 0;
}

/* ---- windows -------------------------------------------------------------- */

static int read_window_word(struct node_window *window, char *word, struct coll_text_error *error)
{
	char *value = strchrnul(word, '=');
	u64 *time;

	if (*value)
		*value++ = 0;
	if (!strcmp(word, "cgroup"))
		return *value == '/' ? keep_text(value, &window->cgroup) :
				       rules_refuse(error, "cgroup '%s' is no path: /name", value);
	time = !strcmp(word, "period") ? &window->period : !strcmp(word, "open") ? &window->open :
	       !strcmp(word, "phase") ? &window->phase : NULL;
	if (!time)
		return rules_refuse(error, "there is no '%s'; valid: cgroup, period, open, phase",
				    word);
	return coll_text_time(value, NODE_S, time) ? 0 :
	       rules_refuse(error, "%s '%s' is no time: 50ms", word, value);
}

static int read_window(struct node_rules *rules, char **save, struct coll_text_error *error)
{
	struct node_window *more, *window;
	char *word;
	int status = 0;

	more = reallocarray(rules->window, rules->windows + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	rules->window = more;
	window = &more[rules->windows++];
	*window = (struct node_window){ .phase = 0 };
	while (!status && (word = strtok_r(NULL, " \t\r", save)))
		status = read_window_word(window, word, error);
	if (status)
		return status;
	if (!window->cgroup || window->period < 10 * NODE_MS || window->period > 3600 * NODE_S ||
	    window->open < NODE_MS || window->open >= window->period ||
	    window->phase >= window->period)
		return rules_refuse(
			error, "a window needs cgroup=, period= from 10ms to 1h, open= from 1ms "
			       "and shorter than that, and a phase= below it");
	return 0;
}

/* ---- what is stopped ------------------------------------------------------ */

static bool is_unit(const char *name)
{
	return *name && *name != '-' && strlen(name) < 200 && strchr(name, '.') &&
	       !name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			    "0123456789:-_.\\@")];
}

static int read_stop(struct node_rules *rules, char **save, struct coll_text_error *error)
{
	struct node_stop *more = reallocarray(rules->stop, rules->stops + 1, sizeof(*more));
	const char *word = strtok_r(NULL, " \t\r", save);

	if (!more)
		return -ENOMEM;
	rules->stop = more;
	more += rules->stops++;
	*more = (struct node_stop){ NULL, NULL };
	if (word && !strtok_r(NULL, " \t\r", save)) {
		if (!strncmp(word, "cgroup=/", 8) && word[8])
			return keep_text(word + 7, &more->cgroup);
		if (!strncmp(word, "unit=", 5) && is_unit(word + 5))
			return keep_text(word + 5, &more->unit);
	}
	return rules_refuse(error, "stop needs cgroup=/name or unit=name.service");
}

/* ---- what takes cores ------------------------------------------------------ */

bool node_act_mode_read(const char *text, enum node_act_mode *mode)
{
	static const char *const names[] = { "off", "advise", "act", "hold" };
	u32 i;

	for (i = 0; i < 4; i++)
		if (!strcmp(text, names[i])) {
			*mode = i;
			return true;
		}
	return false;
}

/* Its bit in `said`; 0: there is no such word. */
static u32 act_word_bit(const char *word)
{
	static const char *const words[] = { "share", "for", "leave", "most" };
	u32 i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(word, words[i]))
			return 1u << i;
	return 0;
}

static int read_act_word(struct node_act *act, char *word, u32 *said, struct coll_text_error *error)
{
	char *value = strchrnul(word, '=');
	u64 number;

	if (*value)
		*value++ = 0;
	if (*said & act_word_bit(word))
		return rules_refuse(error, "a second %s=; valid: one", word);
	*said |= act_word_bit(word);
	if (!strcmp(word, "share"))
		return node_share_read(value, &act->share) && act->share >= 0.001 &&
				       act->share <= 1 ? 0 :
		       rules_refuse(error, "share '%s'; valid: 0.1%% to 100%%, of a core", value);
	if (!strcmp(word, "for"))
		return coll_text_time(value, NODE_S, &act->longest) && act->longest >= NODE_S &&
				       act->longest <= 7 * 24 * 3600 * NODE_S ? 0 :
		       rules_refuse(error, "for '%s'; valid: a time from 1s to 168h, such as 30m",
				    value);
	if (!strcmp(word, "leave"))
		return node_share_read(value, &act->leave) && act->leave >= 0.01 && act->leave <= 0.5 ? 0 :
		       rules_refuse(error, "leave '%s'; valid: 1%% to 50%%, of each second", value);
	if (strcmp(word, "most"))
		return rules_refuse(error, "there is no '%s'; valid: share, for, most, leave", word);
	if (!read_number(value, &number) || !number || number > 1000)
		return rules_refuse(error, "most '%s'; valid: 1 to 1000", value);
	act->most = number;
	return 0;
}

static int read_act(struct node_act *act, char **save, struct coll_text_error *error)
{
	char *word = strtok_r(NULL, " \t\r", save);
	u32 said = 0;		/* which words, as bits */
	int status = 0;

	if (act->given)
		return rules_refuse(error, "a second act; valid: one line");
	act->given = true;
	if (!word || !node_act_mode_read(word, &act->mode))
		return rules_refuse(error, "act '%s'; valid: off, advise, act or hold, then share=, "
				    "for=, most=, leave=", word ? word : "");
	while (!status && (word = strtok_r(NULL, " \t\r", save)))
		status = read_act_word(act, word, &said, error);
	return status;
}

/*
 * A user's session, init's, or the root: what is there is of many. What colld itself may wait for, as for its log,
 * would never be let go. And none that is cut off in struct node_task.
 */
static bool may_be_frozen(const char *cgroup)
{
	return *cgroup == '/' && cgroup[1] && strlen(cgroup) < NODE_TASK_CGROUP &&
	       cgroup[strlen(cgroup) - 1] != '/' && !strstr(cgroup, "/.") && !strstr(cgroup, "//") &&
	       !strstr(cgroup, "/systemd-") && !strstr(cgroup, "/dbus") &&
	       strcmp(cgroup, "/init.scope") && strcmp(cgroup, "/system.slice") &&
	       fnmatch("/user.slice", cgroup, FNM_LEADING_DIR) && !strstr(cgroup, "/session-");
}

static int read_hold(struct node_rules *rules, char **save, struct coll_text_error *error)
{
	struct node_hold *more = reallocarray(rules->hold, rules->holds + 1, sizeof(*more));
	const char *word = strtok_r(NULL, " \t\r", save);

	if (!more)
		return -ENOMEM;
	rules->hold = more;
	more += rules->holds++;
	*more = (struct node_hold){ NULL };
	if (word && !strtok_r(NULL, " \t\r", save) && !strncmp(word, "cgroup=", 7) &&
	    may_be_frozen(word + 7))
		return keep_text(word + 7, &more->cgroup);
	return rules_refuse(error, "hold '%.40s'; valid: cgroup=/name of one service, below 128 characters; "
			    "no user's session, init's, systemd-*, dbus*", word ? word : "");
}

static int read_cpus(struct node_cpus *cpus, const char *what, char **save,
		     struct coll_text_error *error)
{
	const char *list = strtok_r(NULL, " \t\r", save);

	if (list && !strcmp(list, "siblings") && !strtok_r(NULL, " \t\r", save))
		return node_cpus_siblings(cpus, "/sys/devices/system/cpu")
			       ? 0
			       : rules_refuse(
					 error,
					 "%s siblings: no core of this machine has two threads",
					 what);
	if (!list || !node_cpus_read_list(cpus, list) || !node_cpus_count(cpus) ||
	    strtok_r(NULL, " \t\r", save))
		return rules_refuse(error, "%s needs a list of CPUs: 0-1,8, or siblings", what);
	return 0;
}

static int read_line(struct node_rules *rules, char *text, u32 line,
		     struct coll_text_error *error)
{
	char *save, *word;

	text[strcspn(text, "#")] = 0;
	word = strtok_r(text, " \t\r", &save);
	if (!word)
		return 0;
	if (!strcmp(word, "housekeeping"))
		return read_cpus(&rules->housekeeping, word, &save, error);
	if (!strcmp(word, "application"))
		return read_cpus(&rules->application, word, &save, error);
	if (!strcmp(word, "keep") || !strcmp(word, "pin"))
		return read_rule(rules, *word == 'k', &save, line, error);
	if (!strcmp(word, "window"))
		return read_window(rules, &save, error);
	if (!strcmp(word, "stop"))
		return read_stop(rules, &save, error);
	if (!strcmp(word, "act"))
		return read_act(&rules->act, &save, error);
	if (!strcmp(word, "hold"))
		return read_hold(rules, &save, error);
	if (strcmp(word, "workqueues"))
		return rules_refuse(error,
				    "there is no '%s'; valid: housekeeping, application, keep, "
				    "pin, workqueues, window, stop, act, hold",
				    word);
	word = strtok_r(NULL, " \t\r", &save);
	if (word)
		return rules_refuse(error, "workqueues '%s'; valid: no word after it", word);
	rules->workqueues = true;
	return 0;
}

int node_rules_parse(const char *text, struct node_rules *rules, struct coll_text_error *error)
{
	char *copy = strdup(text), *line = copy, *end;
	int status = copy ? 0 : -ENOMEM;

	*rules = (struct node_rules){
		.act = { NODE_ACT_OFF, 0.05, 30 * 60 * NODE_S, 16, 0.1 },
	};
	*error = (struct coll_text_error){ 0 };
	for (; !status && line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = 0;
		error->line++;
		status = read_line(rules, line, error->line, error);
	}
	free(copy);
	return status;
}

void node_rules_free(struct node_rules *rules)
{
	u32 i;

	for (i = 0; i < rules->rules; i++) {
		free(rules->rule[i].comm);
		free(rules->rule[i].cgroup);
		free(rules->rule[i].irq);
		free(rules->rule[i].to);
	}
	for (i = 0; i < rules->windows; i++)
		free(rules->window[i].cgroup);
	for (i = 0; i < rules->stops; i++) {
		free(rules->stop[i].cgroup);
		free(rules->stop[i].unit);
	}
	for (i = 0; i < rules->holds; i++)
		free(rules->hold[i].cgroup);
	free(rules->hold);
	free(rules->stop);
	free(rules->window);
	free(rules->rule);
	*rules = (struct node_rules){ .rules = 0 };
}

bool node_rules_may_freeze(const struct node_rules *rules, const char *cgroup)
{
	u32 i;

	for (i = 0; i < rules->holds; i++)
		if (!strcmp(rules->hold[i].cgroup, cgroup))
			return true;
	return false;
}

static bool has_window(const struct node_rules *rules, const char *cgroup)
{
	u32 i;

	for (i = 0; i < rules->windows; i++)
		if (!strcmp(rules->window[i].cgroup, cgroup))
			return true;
	return false;
}

/* Two that freeze and thaw one cgroup would be at odds. */
static int check_freezers(const struct node_rules *rules, struct coll_text_error *error)
{
	u32 i;

	for (i = 0; i < rules->stops; i++) {
		const char *cgroup = rules->stop[i].cgroup;

		if (cgroup && has_window(rules, cgroup))
			return rules_refuse(error, "cgroup %s has a window, so it cannot be stopped too",
					    cgroup);
		if (cgroup && node_rules_may_freeze(rules, cgroup))
			return rules_refuse(error, "cgroup %s is stopped, so it cannot be held back too",
					    cgroup);
	}
	for (i = 0; i < rules->holds; i++)
		if (has_window(rules, rules->hold[i].cgroup))
			return rules_refuse(error, "cgroup %s has a window, so it cannot be held back too",
					    rules->hold[i].cgroup);
	return 0;
}

/* As for the CPUs of all rules, some must be there. */
static int check_places(const struct node_rules *rules, const struct node_cpus *online,
			struct coll_text_error *error)
{
	u32 i;

	for (i = 0; i < rules->rules; i++) {
		struct node_cpus to;

		if (!rules->rule[i].to)
			continue;
		to = *rules->rule[i].to;
		node_cpus_keep(&to, online);
		error->line = rules->rule[i].line;
		if (!node_cpus_count(&to))
			return rules_refuse(error, "to: none of these CPUs is online");
	}
	error->line = 0;
	return 0;
}

char *node_rules_glob(const char *name, char *glob, size_t bytes)
{
	size_t i;

	snprintf(glob, bytes, "%s", name);
	for (i = 0; glob[i]; i++)
		if (!isalnum((unsigned char)glob[i]) && !strchr("-_.:/@+,%=", glob[i]))
			glob[i] = '?';
	return glob;
}

int node_rules_complete(struct node_rules *rules, struct coll_text_error *error)
{
	struct node_cpus online, both;

	error->line = 0;
	if (check_freezers(rules, error))
		return -EINVAL;
	if (!node_cpus_file(&online, "/sys/devices/system/cpu/online"))
		node_cpus_affinity(0, &online);
	if (check_places(rules, &online, error))
		return -EINVAL;
	if (!node_cpus_count(&rules->housekeeping)) {
		if (node_cpus_count(&rules->application)) {
			rules->housekeeping = online;
			node_cpus_remove(&rules->housekeeping, &rules->application);
		} else {
			node_cpus_add(&rules->housekeeping, node_cpus_next(&online, 0));
		}
	}
	if (!node_cpus_count(&rules->application)) {
		rules->application = online;
		node_cpus_remove(&rules->application, &rules->housekeeping);
	}
	node_cpus_keep(&rules->housekeeping, &online);
	node_cpus_keep(&rules->application, &online);
	both = rules->housekeeping;
	node_cpus_keep(&both, &rules->application);
	if (!node_cpus_count(&rules->housekeeping) || !node_cpus_count(&rules->application))
		return rules_refuse(error, "no CPU is left for %s",
				    node_cpus_count(&rules->application) ? "housekeeping" :
								      "the application");
	if (node_cpus_count(&both))
		return rules_refuse(error, "CPU %u is for housekeeping and for the application",
				    node_cpus_next(&both, 0));
	return 0;
}

/* ---- matching ------------------------------------------------------------- */

static bool group_matches(const char *glob, const char *group)
{
	return !fnmatch(glob, group, FNM_LEADING_DIR);	/* it, or what is below */
}

/* Most rules differ in what is before the first special character: cheaper than the glob. */
static bool name_matches(const struct node_rule *rule, const char *name)
{
	return !strncmp(rule->comm, name, rule->comm_plain) &&
	       (rule->comm[rule->comm_plain] ? !fnmatch(rule->comm, name, 0) :
					       !name[rule->comm_plain]);
}

/* Of the task, or of its process. */
static bool comm_matches(const struct node_rule *rule, const struct node_task *task,
			 const struct node_task *process)
{
	return name_matches(rule, task->comm) ||
	       (process && process != task && name_matches(rule, process->comm));
}

/* `process`: the task's, or NULL. */
static bool task_matches(const struct node_rule *rule, const struct node_task *task,
			 const struct node_task *process, const struct node_tasks *tasks)
{
	return !rule->irq && rule->kthread == task->kthread &&
	       (rule->uid < 0 || task->uid == rule->uid) &&
	       (!rule->comm || comm_matches(rule, task, process)) &&
	       (!rule->cgroup || group_matches(rule->cgroup, task->cgroup)) &&
	       (!rule->parent || node_tasks_below(tasks, task, rule->parent));
}

const struct node_rule *node_rules_task(const struct node_rules *rules,
					const struct node_task *task,
					const struct node_tasks *tasks)
{
	const struct node_task *process = node_tasks_find(tasks, task->pid);
	u32 i;

	for (i = 0; i < rules->rules; i++)
		if (task_matches(&rules->rule[i], task, process, tasks))
			return &rules->rule[i];
	return NULL;
}

bool node_rules_any_task(const struct node_rules *rules)
{
	u32 i;

	for (i = 0; i < rules->rules; i++)
		if (!rules->rule[i].irq)
			return true;
	return false;
}

bool node_rules_any_parent(const struct node_rules *rules)
{
	u32 i;

	for (i = 0; i < rules->rules; i++)
		if (rules->rule[i].parent)
			return true;
	return false;
}

const struct node_rule *node_rules_irq(const struct node_rules *rules, u32 number,
				       const char *name)
{
	char text[16];
	u32 i;

	snprintf(text, sizeof(text), "%u", number);
	for (i = 0; i < rules->rules; i++)
		if (rules->rule[i].irq && (!fnmatch(rules->rule[i].irq, text, 0) ||
					   !fnmatch(rules->rule[i].irq, name, 0)))
			return &rules->rule[i];
	return NULL;
}
