/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* collnoise pin: its options, and its output. */
#ifndef COLL_NOISE_PIN_REPORT_H
#define COLL_NOISE_PIN_REPORT_H

#include <jansson.h>

#include "node/pin_module.h"
#include "node/pinning.h"
#include "node/rules.h"

struct pin {
	struct node_cpus cpus, housekeeping;
	const char *rules_file, *state;
	char *text;		/* of the rules */
	size_t length;
	bool workqueues, module, dry_run, all, json;
	u64 measure;
	struct node_rules rules;
	struct node_pinning pinning;
	struct node_pin_counts counts;	/* by the module */
	const char *capture;
};

void pin_print_all(const struct pin *p);
json_t *pin_pins_json(const struct pin *p);
void pin_print_commands(const struct pin *p);

#endif
