// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What is done to processes now, for people and programs, by the files alone. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "deed.h"
#include "node/rules.h"

struct deed_view {
	const char *state;
	json_t *acts;		/* NULL: text */
};

static bool is_let_go(const struct node_pin *pin)
{
	char now[NODE_CPUS_TEXT];

	return !node_pin_read(pin, now) && !strcmp(now, pin->before);
}

static void print_line(const struct node_pin *pin, const char *name)
{
	switch (pin->kind) {
	case NODE_PIN_POLICY:
		printf("held back for a job: %s (thread %u) by policy %s, from %s", name, pin->number,
		       pin->after, pin->before);
		break;
	case NODE_PIN_SESSION:
		printf("held back for a job: %s (process %u) by its session's nice value %s, from %s", name,
		       pin->number, pin->after, pin->before);
		break;
	case NODE_PIN_FREEZER:
		printf("held back for a job: cgroup %s (process %u) by its freezer", name, pin->number);
		break;
	default:
		printf("moved for a job: %s (thread %u) to CPUs %s, from %s", name, pin->number, pin->after,
		       pin->before);
	}
	printf("%s\n", is_let_go(pin) ? "; let go now" : "");
}

static json_t *json_of(const struct node_pin *pin, const char *name, u32 pid)
{
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:b}", "act",
			 pin->kind == NODE_PIN_TASK ? "moved" : "held", "by", node_pin_kind_name(pin->kind),
			 "name", name, "pid", (json_int_t)pid, "thread", (json_int_t)pin->number, "before",
			 pin->before, "after", pin->after, "let_go", is_let_go(pin));
}

static void print_deed(struct act_deed *deed, void *argument)
{
	const struct deed_view *view = argument;
	u32 i;

	if (act_deed_load(deed, view->state))
		act_deed_free(deed);
	for (i = 0; i < deed->pinning.count; i++) {
		const struct node_pin *pin = &deed->pinning.pin[i];
		char name[sizeof(pin->name)];

		if (!strcmp(pin->before, pin->after))
			continue;
		node_rules_glob(pin->name, name, sizeof(name));
		if (view->acts)
			json_array_append_new(view->acts, json_of(pin, name, deed->pid));
		else
			print_line(pin, name);
	}
	act_deed_free(deed);
}

static int print_deeds(const char *state, bool json)
{
	struct deed_view view = { state, json ? json_array() : NULL };
	json_t *all;

	if (json && !view.acts)
		return -ENOMEM;
	act_deed_each(state, print_deed, &view);
	if (!json)
		return 0;
	all = json_pack("{s:o}", "acts", view.acts);
	if (!all)
		return -ENOMEM;
	json_dumpf(all, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(all);
	return 0;
}

int act_deed_print(const char *state, bool json)
{
	int error = print_deeds(state, json);

	if (!error && fflush(stdout))
		error = -errno;
	else if (!error && ferror(stdout))
		error = -EIO;
	if (error)
		fprintf(stderr, "colld: --status: cannot print it: %s\n", strerror(-error));
	return error;
}
