// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/probe.h"
#include "daemon/common/log.h"
#include "daemon/common/metrics.h"
#include "node/netlink.h"
#include "node/pin_module.h"
#include "node/pinning.h"
#include "pin.h"

enum { LINGER_MS = 60000 };	/* rules outlive a colld that died by this */

struct colld_pin {
	const struct node_rules *rules;
	struct node_rules here;	/* those that the module does not take */
	const char *state;
	struct netlink *netlink;	/* NULL: no module */
	struct node_pinning pinning;
	u32 changed;			/* that were logged */
	u64 scans, moved;
	bool in_force;			/* the file is this one's: what it says is known, and the module obeys */
	bool saved;			/* ... and has all that was moved */
	bool lines_gone;		/* ... and more, of tasks that are gone */
	u32 round;			/* of the sweep, as it was */
	struct node_pin_counts module;
};

/* ---- the module ----------------------------------------------------------- */

static void pin_rule_skipped(const struct node_rule *rule)
{
	colld_log(LOG_WARNING,
		  "policy:%u: there is no cgroup %s (coll.ko takes no globs of cgroups); the "
		  "rule is skipped",
		  rule->line, rule->cgroup);
}

/* ---- from here ------------------------------------------------------------ */

/* What an earlier colld had moved. Where that is not known nothing is moved: the file would not have it then. */
static int pin_adopt(struct colld_pin *pin)
{
	const int error = node_pinning_load(&pin->pinning, pin->state);

	if (error && error != -ENOENT) {
		colld_log(LOG_ERR, "%s/pin.state, which says what an earlier colld has moved, cannot be read: %s",
			  pin->state, strerror(-error));
		return error;
	}
	if (pin->pinning.count)
		colld_log(LOG_INFO, "took over %u tasks and interrupts that an earlier colld had "
			  "moved", pin->pinning.count);
	return 0;
}

/* 0 also where there is no module. */
static int pin_set_module(struct colld_pin *pin)
{
	int error;

	if (netlink_open(&pin->netlink)) {
		netlink_close(pin->netlink);
		pin->netlink = NULL;
		colld_log(LOG_INFO,
			  "coll.ko is not loaded: new tasks are moved at the next scan, not "
			  "at once");
		return 0;
	}
	error = node_pin_module_set(pin->netlink, pin->rules, LINGER_MS, 0, pin_rule_skipped);
	if (error)
		colld_log(LOG_ERR, "coll.ko refuses the policy: %s", netlink_reason(pin->netlink));
	return error;
}

int colld_pin_open(struct colld_pin **pin, const struct node_rules *rules, const char *state)
{
	struct colld_pin *new = calloc(1, sizeof(*new));
	int error;

	*pin = new;
	if (!new)
		return -ENOMEM;
	new->rules = rules;
	new->state = state;
	error = pin_adopt(new);
	if (!error)
		error = pin_set_module(new);
	if (error)
		return error;
	new->in_force = true;
	new->here = *rules;
	error = new->netlink ? node_pin_module_left(rules, &new->here) : 0;
	return error ? error : colld_pin_renew(new);
}

static int pin_save(struct colld_pin *pin)
{
	const int error = node_pinning_save(&pin->pinning, pin->state, true);

	pin->saved = !error;
	return error;
}

/* Whether what has become of these is what the file says since before they were moved. */
static bool pin_went_as_saved(const struct colld_pin *pin, u32 from)
{
	for (; from < pin->pinning.count; from++)
		if (pin->pinning.pin[from].state != NODE_PIN_MOVED || pin->pinning.pin[from].cut)
			return false;
	return true;
}

/*
 * The last `wanted`. The former state is saved before the change, behind what is there; all of it
 * is saved again where that is not how it went.
 */
static int pin_move(struct colld_pin *pin, u32 wanted)
{
	const u32 from = pin->pinning.count - wanted;
	const u32 before = node_pinning_count(&pin->pinning, NODE_PIN_MOVED);
	int error = pin->saved ? node_pinning_append(&pin->pinning, from, pin->state) : -ENOENT;

	if (error)
		error = pin_save(pin);
	if (!error) {
		node_pinning_apply(&pin->pinning);
		pin->moved += node_pinning_count(&pin->pinning, NODE_PIN_MOVED) - before;
		if (!pin_went_as_saved(pin, from))
			error = pin_save(pin);
	}
	COLL_PROBE2(colld, rule_pin, pin->moved, error);
	if (error)
		colld_log(LOG_ERR, "cannot save the state in %s: %s", pin->state, strerror(-error));
	return error;
}

int colld_pin_renew(struct colld_pin *pin)
{
	const int wanted = node_pinning_renew(&pin->pinning, &pin->here);
	const u32 waiting = node_pinning_count(&pin->pinning, NODE_PIN_WANTED);
	const u32 changed = node_pinning_count(&pin->pinning, NODE_PIN_CHANGED);
	int error = wanted < 0 ? wanted : 0;

	/* Some were not saved, or not moved, when memory or space failed: with all the others. */
	if (wanted < 0 || waiting > (u32)wanted)
		pin->saved = false;
	if (!error && waiting)
		error = pin_move(pin, pin->saved ? (u32)wanted : pin->pinning.count);
	pin->scans++;
	if (changed > pin->changed)
		colld_log(LOG_NOTICE, "%u tasks or interrupts were moved by others: left alone",
			  changed - pin->changed);
	pin->changed = changed;
	/* Those that are gone only make the file longer: it is made anew as the sweep begins anew. */
	if (pin->pinning.round != pin->round && pin->saved && pin->lines_gone)
		pin_save(pin);
	pin->lines_gone = pin->pinning.round == pin->round && pin->lines_gone;
	pin->lines_gone |= pin->pinning.dropped;
	pin->round = pin->pinning.round;
	return error;
}

/* What the kernel refuses, and what could not be looked at, is left to the next one: the file has just that. */
static void pin_restore(struct colld_pin *pin)
{
	u32 left;

	node_pinning_undo(&pin->pinning);
	left = node_pinning_is_undone(&pin->pinning) ? 0 : node_pinning_keep_moved(&pin->pinning);
	if (!left) {
		node_pinning_forget(pin->state);
		return;
	}
	colld_log(LOG_ERR, "%u tasks and interrupts could not be moved back: the next colld takes them over, and "
		  "collnoise pin fini --state %s moves them back", left, pin->state);
	/* Where that fails the file has those that are back, too, which the next one leaves where they are. */
	pin_save(pin);
}

void colld_pin_close(struct colld_pin *pin, bool restore)
{
	if (!pin)
		return;
	if (restore && pin->netlink)
		node_pin_module_clear(pin->netlink);
	/* Else the file stays for the next one. */
	if (restore && pin->in_force)
		pin_restore(pin);
	if (pin->netlink) {
		netlink_close(pin->netlink);
		free(pin->here.rule);
	}
	node_pinning_free(&pin->pinning);
	free(pin);
}

void colld_pin_metrics(struct colld_pin *pin, FILE *to)
{
	static const struct {
		u32 state;
		const char *name;
	} states[] = {
		{ NODE_PIN_MOVED, "moved" }, { NODE_PIN_CHANGED, "changed" },
		{ NODE_PIN_REFUSED, "refused" }, { NODE_PIN_MANAGED, "managed" },
	};
	u32 i;

	/* Asked for only when somebody wants to know. */
	if (pin->netlink)
		node_pin_module_count(&pin->module);
	colld_metrics_gauge(to, "coll_module", "Whether coll.ko is there.");
	colld_metrics_count(to, "coll_module", NULL, NULL, pin->netlink != NULL);
	colld_metrics_gauge(to, "coll_pinned", "Tasks, interrupts and masks by state.");
	for (i = 0; i < sizeof(states) / sizeof(*states); i++)
		colld_metrics_count(to, "coll_pinned", "state", states[i].name,
				    node_pinning_count(&pin->pinning, states[i].state));
	colld_metrics_counter(to, "coll_pin_moved_total", "Moves since the start of colld.");
	colld_metrics_count(to, "coll_pin_moved_total", NULL, NULL, pin->moved);
	colld_metrics_counter(to, "coll_pin_scans_total", "Scans for new tasks and interrupts.");
	colld_metrics_count(to, "coll_pin_scans_total", NULL, NULL, pin->scans);
	if (!pin->netlink)
		return;
	colld_metrics_gauge(to, "coll_module_pin_tasks", "Tasks that coll.ko's rules match, by result.");
	colld_metrics_count(to, "coll_module_pin_tasks", "state", "matched", pin->module.matched);
	colld_metrics_count(to, "coll_module_pin_tasks", "state", "moved", pin->module.moved);
	colld_metrics_count(to, "coll_module_pin_tasks", "state", "refused", pin->module.refused);
	colld_metrics_count(to, "coll_module_pin_tasks", "state", "changed", pin->module.changed);
}
