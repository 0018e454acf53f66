// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Output of collnoise pin. */
#include <stdio.h>
#include <string.h>

#include "pin_report.h"
#include "view.h"

static const char *pin_reason(const struct node_pin *pin)
{
	switch (pin->state) {
	case NODE_PIN_KEPT:
		return "a rule keeps it, or it is the caller or one of its parents";
	case NODE_PIN_PER_CPU:
		return "a kernel thread that the kernel binds";
	case NODE_PIN_BOUND:
		return "it may run nowhere else: bound on purpose, or by its cpuset";
	case NODE_PIN_MANAGED:
		return "its driver binds it, or it belongs to one CPU";
	case NODE_PIN_CHANGED:
		return "changed by others since; left alone";
	case NODE_PIN_REFUSED:
		return strerror(pin->error);
	default:
		return "";
	}
}

/* A task names itself, also by what ends a line: what follows would be a command of its own. */
static const char *pin_name(const struct node_pin *pin, char name[sizeof(pin->name)])
{
	strcpy(name, pin->name);
	node_make_printable(name);
	return name;
}

static bool is_worth_a_line(const struct pin *p, const struct node_pin *pin)
{
	return p->all || (pin->state != NODE_PIN_AWAY && pin->state != NODE_PIN_KEPT &&
			  pin->state != NODE_PIN_GONE);
}

static void print_pin(const struct node_pin *pin)
{
	char what[NODE_TASK_CGROUP + 32], name[sizeof(pin->name)];

	if (pin->kind == NODE_PIN_FILE)
		snprintf(what, sizeof(what), "%s", pin->name);
	else
		snprintf(what, sizeof(what), "%s %u %s", node_pin_kind_name(pin->kind), pin->number,
			 pin_name(pin, name));
	printf("%-17s %-44s %s -> %s%s%s\n", node_pin_state_name(pin->state), what, pin->before,
	       pin->after, *pin_reason(pin) ? "; " : "", pin_reason(pin));
}

void pin_print_all(const struct pin *p)
{
	char application[256], housekeeping[256];
	u32 i, state;

	printf("application: %s; housekeeping: %s\n",
	       node_cpus_list(&p->rules.application, application, sizeof(application)),
	       node_cpus_list(&p->rules.housekeeping, housekeeping, sizeof(housekeeping)));
	for (i = 0; i < p->pinning.count; i++)
		if (is_worth_a_line(p, &p->pinning.pin[i]))
			print_pin(&p->pinning.pin[i]);
	if (p->module)
		printf("by the module: %llu tasks matched, %llu moved, %llu refused\n",
		       (unsigned long long)p->counts.matched, (unsigned long long)p->counts.moved,
		       (unsigned long long)p->counts.refused);
	for (state = 0; state < NODE_PIN_STATES; state++)
		if (node_pinning_count(&p->pinning, state))
			printf("%u %s\n", node_pinning_count(&p->pinning, state),
			       node_pin_state_name(state));
}

json_t *pin_pins_json(const struct pin *p)
{
	json_t *pins = json_array(), *counts = json_object();
	u32 i, state;

	for (i = 0; i < p->pinning.count; i++) {
		const struct node_pin *pin = &p->pinning.pin[i];
		char name[sizeof(pin->name)];

		if (is_worth_a_line(p, pin))
			json_array_append_new(pins, json_pack("{ss sI ss* ss ss ss ss}", "kind",
				node_pin_kind_name(pin->kind), "number", (json_int_t)pin->number, "name",
				pin_name(pin, name), "before", pin->before, "after", pin->after, "state",
				node_pin_state_name(pin->state), "reason", pin_reason(pin)));
	}
	for (state = 0; state < NODE_PIN_STATES; state++)
		json_object_set_new(counts, node_pin_state_name(state),
				    json_integer(node_pinning_count(&p->pinning, state)));
	return json_pack("{so so}", "counts", counts, "pins", pins);
}

/* The plan as commands. */
void pin_print_commands(const struct pin *p)
{
	u32 i;

	for (i = 0; i < p->pinning.count; i++) {
		const struct node_pin *pin = &p->pinning.pin[i];
		char name[sizeof(pin->name)];

		if (pin->state != NODE_PIN_WANTED)
			continue;
		if (pin->kind == NODE_PIN_TASK)
			printf("taskset -pc %s %u\t# %s\n", pin->after, pin->number, pin_name(pin, name));
		else if (pin->kind == NODE_PIN_IRQ)
			printf("echo %s >/proc/irq/%u/smp_affinity\t# %s\n", pin->after,
			       pin->number, pin_name(pin, name));
		else
			printf("echo %s >%s\n", pin->after, pin->name);
	}
}
