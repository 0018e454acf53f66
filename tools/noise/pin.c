// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* collnoise pin: check, init, fini and suggest. */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/command.h"
#include "node/netlink.h"
#include "commands.h"
#include "compare.h"
#include "formats.h"
#include "options.h"
#include "pin_report.h"
#include "node/pin_module.h"
#include "node/pinning.h"
#include "watch.h"

enum { RULES_MAX = 1 << 20 };

/* The default rules. */
static const char usual_rules[] = "pin irq=*\npin comm=*\npin comm=* kthread\n";

/* ---- options and rules ------------------------------------------------------------------- */

static bool add_text(struct pin *pin, const char *text, size_t length)
{
	char *more = realloc(pin->text, pin->length + length + 2);

	if (!more)
		return false;
	pin->text = more;
	memcpy(more + pin->length, text, length);
	pin->length += length;
	more[pin->length++] = '\n';
	more[pin->length] = 0;
	return true;
}

static bool read_rules_file(struct pin *pin, const char *path)
{
	FILE *from = fopen(path, "re");
	char *text = malloc(RULES_MAX);
	size_t length = from && text ? fread(text, 1, RULES_MAX, from) : 0;
	const bool good = from && text && !ferror(from) && length < RULES_MAX &&
			  !memchr(text, 0, length) && add_text(pin, text, length);

	if (!good)
		fprintf(stderr, "collnoise pin: cannot read rules from %s: %s\n", path,
			from ? "no text, or more than 1 MB" : strerror(errno));
	if (from)
		fclose(from);
	free(text);
	pin->rules_file = path;
	return good;
}

static bool read_rules_option(const struct option_table *table, const struct option_entry *option,
			      void *settings, const char *text)
{
	(void)table;
	(void)option;
	return read_rules_file(settings, text);
}

static bool read_rule(const struct option_table *table, const struct option_entry *option,
		      void *settings, const char *text)
{
	(void)table;
	(void)option;
	return add_text(settings, text, strlen(text));
}

static bool read_housekeeping(const struct option_table *table, const struct option_entry *option,
			      void *settings, const char *text)
{
	struct pin *pin = settings;

	if (strcmp(text, "siblings"))
		return noise_option_cpus(table, option, settings, text);
	return node_cpus_siblings(&pin->housekeeping, "/sys/devices/system/cpu") ||
	       option_refuse(table, option, text,
			     "a list: no core of this machine has two threads");
}

static const char *const usage[] = {
	"usage: collnoise pin check [OPTION ...]     what would be moved, and what cannot be",
	"       collnoise pin init [OPTION ...]      move it, and keep the former state",
	"       collnoise pin fini [OPTION ...]      restore the former state",
	"       collnoise pin suggest CAPTURE        rules for the sources of noise in a capture",
	"",
	"Moves tasks, interrupts and the kernel's unbound work away from the CPUs of the",
	"application.",
	NULL,
};

static const char *const closing[] = {
	"Rules, one a line; the first that matches decides:",
	"  keep comm=ptp4l",
	"  pin cgroup=/system.slice",
	"  pin comm=kswapd* kthread",
	"  pin uid=33 to=1",
	"  pin irq=eth0-*",
	"",
	"What cannot be moved is listed with the reason. fini leaves alone, and lists, what others",
	"have changed meanwhile. Exit code: 0; 1 on errors; 2 for wrong options.",
	NULL,
};

static const char *const action_names[] = { "check", "init", "fini", "suggest", NULL };

static const struct option_entry pin_entries[] = {
	{ "cpus", 'c', "LIST", "CPUs of the application", NOISE_OPTION_CPUS(struct pin, cpus),
	  .otherwise = "all but housekeeping" },
	{ "house-keeping", 'H', "LIST",
	  "CPUs where everything goes; siblings: all threads of each "
	  "core but its first",
	  .read = read_housekeeping, OPTION_FIELD(struct pin, housekeeping),
	  .otherwise = "the first CPU, or all but --cpus" },
	{ "rules", 0, "FILE", "rules for what is moved", .read = read_rules_option,
	  .otherwise = "all interrupts and tasks, but for the caller and its parents" },
	{ "rule", 0, "TEXT", "one more rule, after those of the file; may be repeated",
	  .read = read_rule },
	{ "workqueues", 0, NULL,
	  "also the kernel's unbound work. Some kernels leave work undone "
	  "when this changes (mlx5 then stalls)",
	  OPTION_FLAG(struct pin, workqueues) },
	{ "module", 0, NULL,
	  "let the module move the tasks, also those that come later, until "
	  "fini; tasks that the caller's parent has started stay",
	  OPTION_FLAG(struct pin, module) },
	{ "state", 0, "DIR", "folder of the former state", OPTION_TEXT(struct pin, state),
	  .preset = "/run/coll" },
	{ "measure", 0, "T", "measure before and after, each for this time, and compare",
	  OPTION_TIME(struct pin, measure, "s", 100 * NODE_MS, 3600 * NODE_S) },
	{ "dry-run", 0, NULL, "print what would be done, as commands, and do nothing",
	  OPTION_FLAG(struct pin, dry_run) },
	{ "all", 0, NULL, "also list what stays where it is", OPTION_FLAG(struct pin, all) },
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct pin, json) },
	{ NULL },
};

const struct option_table noise_pin_options = {
	.command = "pin",
	.usage = usage,
	.closing = closing,
	.list = { pin_entries },
	.arguments = 1,
	.first = action_names,
};

/* `arguments`: 1 where a capture is needed, else 0. */
static bool read_options(int argc, char **argv, struct pin *pin, int arguments)
{
	if (!options_read(&noise_pin_options, argc, argv, pin))
		return false;
	if (argc - optind == arguments) {
		pin->capture = arguments ? argv[optind] : NULL;
		return true;
	}
	if (arguments)
		fprintf(stderr, "collnoise pin: a capture is needed; --help tells more\n");
	else
		fprintf(stderr, "collnoise pin: '%s' is one argument too many; --help tells more\n",
			argv[optind]);
	return false;
}

static bool read_rules(struct pin *pin)
{
	struct coll_text_error error;
	int status = node_rules_parse(pin->length ? pin->text : usual_rules, &pin->rules, &error);

	if (!status) {
		if (node_cpus_count(&pin->cpus))
			pin->rules.application = pin->cpus;
		if (node_cpus_count(&pin->housekeeping))
			pin->rules.housekeeping = pin->housekeeping;
		pin->rules.workqueues |= pin->workqueues;
		status = node_rules_complete(&pin->rules, &error);
	}
	if (status) {
		fprintf(stderr, "collnoise pin: %s", pin->rules_file ? pin->rules_file : "rules");
		if (error.line)
			fprintf(stderr, ":%u", error.line);
		fprintf(stderr, ": %s\n", *error.reason ? error.reason : strerror(-status));
	}
	return !status;
}

/* ---- measuring ---------------------------------------------------------- */

static int pin_measure(const struct pin *p, struct node_capture *capture, struct noise_view *view)
{
	struct noise_watch_options options = noise_watch_defaults();
	struct noise_watch watch;
	int status;

	options.cpus = p->rules.application;
	options.housekeeping = p->rules.housekeeping;
	options.duration = p->measure;
	status = noise_watch_begin(&watch, &options, "pin");
	if (!status)
		status = noise_watch_wait(&watch);
	if (!status)
		status = noise_watch_capture(&watch, capture);
	noise_watch_free(&watch);
	return status ? status : noise_view_init(view, capture);
}

/* ---- by the module -------------------------------------------------------------------------- */

static void module_path(const struct pin *p, char path[4096])
{
	snprintf(path, 4096, "%s/pin.module", p->state);
}

static void report_unused_rule(const struct node_rule *rule)
{
	fprintf(stderr,
		"collnoise pin: line %u: there is no cgroup %s (the module takes no globs of "
		"cgroups); the rule has no effect\n",
		rule->line, rule->cgroup);
}

/*
 * The module leaves descendants of this task alone: the caller's parent, so that the caller is
 * included.
 */
static u32 kept_by_module(void)
{
	const struct node_task *caller;
	struct node_tasks tasks;
	u32 kept = getppid();

	if (node_tasks_look(&tasks))
		return kept;
	caller = node_tasks_find(&tasks, kept);
	if (caller && caller->parent > 2)	/* every task descends from these */
		kept = caller->parent;
	node_tasks_free(&tasks);
	return kept;
}

static int refused_by_module(struct netlink *netlink, int error)
{
	fprintf(stderr, "collnoise pin: the module: %s\n",
		netlink && *netlink_reason(netlink) ? netlink_reason(netlink) : strerror(-error));
	return error;
}

/* This file marks that the module has rules, which fini must clear. */
static int module_begins(struct pin *p)
{
	struct netlink *netlink = NULL;
	char path[4096];
	FILE *file;
	int error;

	module_path(p, path);
	file = fopen(path, "we");
	if (!file || fclose(file))
		return -errno;
	error = netlink_open(&netlink);
	if (!error)
		error = node_pin_module_set(netlink, &p->rules, UINT32_MAX, kept_by_module(),
					    report_unused_rule);
	if (!error)
		error = node_pin_module_count(&p->counts);
	if (error) {
		refused_by_module(netlink, error);
		unlink(path);
	}
	netlink_close(netlink);
	return error;
}

/* A module that was unloaded has restored everything itself. */
static int module_ends(const struct pin *p)
{
	struct netlink *netlink = NULL;
	char path[4096];
	int error;

	module_path(p, path);
	if (access(path, F_OK))
		return 0;
	error = netlink_open(&netlink);
	if (!error)
		error = node_pin_module_clear(netlink);
	if (error == -ENOENT)
		error = 0;
	else if (error)
		refused_by_module(netlink, error);
	netlink_close(netlink);
	return error ? error : unlink(path) ? -errno : 0;
}

/* ---- pinning ----------------------------------------------------------------------------- */

static int pin_fail(const char *what, const char *path, int error)
{
	fprintf(stderr, "collnoise pin: %s %s: %s\n", what, path, strerror(-error));
	return COMMAND_ERROR;
}

static int pin_summary(const struct pin *p, const struct noise_view *before,
		       const struct noise_view *after)
{
	json_t *all;

	if (p->json) {
		all = pin_pins_json(p);
		if (p->module)
			json_object_set_new(all, "module", json_pack("{sI sI sI}", "matched",
				(json_int_t)p->counts.matched, "moved",
				(json_int_t)p->counts.moved, "refused",
				(json_int_t)p->counts.refused));
		if (after)
			json_object_set_new(all, "noise", noise_compare_json(before, after));
		noise_json_print(all, stdout);
		return COMMAND_OK;
	}
	pin_print_all(p);
	if (after)
		noise_compare_print(before, after, stdout);
	return COMMAND_OK;
}

static int pin_check(struct pin *p)
{
	if (!read_rules(p))
		return COMMAND_USAGE;
	if (node_pinning_plan(&p->pinning, &p->rules))
		return COMMAND_ERROR;
	if (p->dry_run) {
		pin_print_commands(p);
		return COMMAND_OK;
	}
	return pin_summary(p, NULL, NULL);
}

/* The plan from the present state to the rules. */
static int pin_plan(struct pin *p)
{
	struct node_rules left;
	int status;

	if (!p->module)
		return node_pinning_plan(&p->pinning, &p->rules);
	status = node_pin_module_left(&p->rules, &left);
	if (!status)
		status = node_pinning_plan(&p->pinning, &left);
	free(left.rule);
	return status;
}

static int pin_apply(struct pin *p)
{
	int status = node_pinning_save(&p->pinning, p->state, false);

	if (status == -EEXIST) {
		fprintf(stderr, "collnoise pin: %s/pin.state is there already: collnoise pin fini "
			"first\n", p->state);
		return COMMAND_ERROR;
	}
	if (status)
		return pin_fail("cannot keep the state in", p->state, status);
	if (p->module && module_begins(p)) {
		node_pinning_forget(p->state);
		return COMMAND_ERROR;
	}
	node_pinning_apply(&p->pinning);
	status = node_pinning_save(&p->pinning, p->state, true);
	return status ? pin_fail("cannot keep the state in", p->state, status) : COMMAND_OK;
}

static int pin_init(struct pin *p)
{
	struct node_capture before = { 0 }, after = { 0 };
	struct noise_view was = { 0 }, is = { 0 };
	int status;

	if (p->dry_run)
		return pin_check(p);
	if (!read_rules(p))
		return COMMAND_USAGE;
	if (p->measure && pin_measure(p, &before, &was))
		return COMMAND_ERROR;
	if (pin_plan(p))
		return COMMAND_ERROR;
	status = pin_apply(p);
	if (status == COMMAND_OK && p->measure && pin_measure(p, &after, &is))
		status = COMMAND_ERROR;
	if (status == COMMAND_OK)
		status = pin_summary(p, &was, p->measure ? &is : NULL);
	noise_view_free(&was);
	noise_view_free(&is);
	node_capture_free(&before);
	node_capture_free(&after);
	return status;
}

static int pin_fini(struct pin *p)
{
	int status = node_pinning_load(&p->pinning, p->state);

	if (status == -ENOENT) {
		fprintf(stderr, "collnoise pin: nothing is pinned: there is no %s/pin.state\n",
			p->state);
		return COMMAND_ERROR;
	}
	if (status)
		return pin_fail("cannot read the state in", p->state, status);
	if (module_ends(p))
		return COMMAND_ERROR;
	node_pinning_undo(&p->pinning);
	status = node_pinning_is_undone(&p->pinning)			? node_pinning_forget(p->state) :
		 node_pinning_count(&p->pinning, NODE_PIN_REFUSED)	? -EPERM :
									  -EAGAIN;	/* no look at tasks */
	if (p->json)
		noise_json_print(pin_pins_json(p), stdout);
	else
		pin_print_all(p);
	return status ? pin_fail("not everything was restored; the state is kept in", p->state,
				 status)
		      : COMMAND_OK;
}

/* If the module is still loaded. */
static bool is_kthread(const struct coll_noise_source *source, const struct node_tasks *tasks)
{
	const struct node_task *task = node_tasks_find(tasks, source->number);

	return task && task->kthread && !strncmp(task->comm, source->name, 15);
}

/* Threads by the time they took, each name once; per-CPU kernel threads as comments. */
static void suggest_rules(const struct noise_view *view, const struct node_tasks *tasks)
{
	const struct node_capture *capture = view->capture;
	u32 i, k;

	for (i = 0; i < capture->head.sources; i++) {
		const struct coll_noise_source *source = &capture->source[i];
		u64 total = 0, times = 0;
		char time[24], glob[sizeof(source->name)];

		if (source->cause != COLL_NOISE_THREAD && source->cause != COLL_NOISE_IRQ)
			continue;
		for (k = 0; k < capture->head.sources; k++)
			if (capture->source[k].cause == source->cause &&
			    !strcmp(capture->source[k].name, source->name)) {
				if (k < i)
					break;
				total += capture->source[k].total;
				times += capture->source[k].times;
			}
		if (k < capture->head.sources || (!total && !times))
			continue;
		for (k = 0; k < view->blames; k++)
			if (view->blame[k].source && !strcmp(view->blame[k].source->name,
							     source->name))
				total = view->blame[k].total;
		node_time_text(total, time);
		if (source->cause == COLL_NOISE_IRQ && !source->number)
			printf("# %s: %llu times, cannot be moved\n", source->name,
			       (unsigned long long)times);
		else if (source->cause == COLL_NOISE_IRQ)
			printf("pin irq=%s\t# %llu times\n",
			       node_rules_glob(source->name, glob, sizeof(glob)),
			       (unsigned long long)times);
		else if (!fnmatch("*/[0-9]*", source->name, 0))
			printf("# %s: %s, a kernel thread of one CPU\n", source->name, time);
		else
			printf("pin comm=%s%s\t# %s in %llu slices\n",
			       node_rules_glob(source->name, glob, NODE_TASK_COMM),
			       is_kthread(source, tasks) ? " kthread" : "", time,
			       (unsigned long long)times);
	}
}

static int pin_suggest(struct pin *p)
{
	const struct noise_import any = { .format = NOISE_GUESS };
	struct node_capture capture;
	struct node_tasks tasks;
	struct noise_view view;
	int status = COMMAND_ERROR;

	if (noise_load("pin", p->capture, &any, &capture))
		return COMMAND_ERROR;
	if (!noise_view_init(&view, &capture)) {
		node_tasks_look(&tasks);
		suggest_rules(&view, &tasks);
		node_tasks_free(&tasks);
		status = COMMAND_OK;
		noise_view_free(&view);
	}
	node_capture_free(&capture);
	return status;
}

static const struct action {
	const char *name;
	int (*run)(struct pin *p);
	int arguments;
} actions[] = {
	{ "check", pin_check, 0 },
	{ "init", pin_init, 0 },
	{ "fini", pin_fini, 0 },
	{ "suggest", pin_suggest, 1 },
};

int noise_pin(int argc, char **argv)
{
	struct pin p = { .state = NULL };
	size_t i;
	int status = COMMAND_USAGE;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		options_help(&noise_pin_options, stdout);
		return COMMAND_OK;
	}
	for (i = 0; argc > 1 && i < sizeof(actions) / sizeof(*actions); i++)
		if (!strcmp(argv[1], actions[i].name))
			break;
	if (argc < 2 || i == sizeof(actions) / sizeof(*actions)) {
		fprintf(stderr, "collnoise pin: check, init, fini or suggest is needed, not '%s'\n",
			argc > 1 ? argv[1] : "");
		return COMMAND_USAGE;
	}
	if (read_options(argc - 1, argv + 1, &p, actions[i].arguments))
		status = actions[i].run(&p);
	node_pinning_free(&p.pinning);
	node_rules_free(&p.rules);
	free(p.text);
	return status;
}
