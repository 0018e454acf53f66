/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Pins tasks, interrupts and unbound kernel work as the policy says. */
#ifndef COLL_DAEMON_PIN_H
#define COLL_DAEMON_PIN_H

#include <stdio.h>

#include "node/rules.h"

struct colld_pin;

/*
 * The rules are the caller's and outlive the pin. With coll.ko, its rules also move tasks
 * that fork or exec later; colld itself moves interrupts and unbound work, and without the
 * module tasks too. Adopts what an earlier colld had moved, by the files in `state`. On failure it
 * is still to be closed: files that could not be read, or whose rules the module refuses, then stay.
 */
int colld_pin_open(struct colld_pin **pin, const struct node_rules *rules, const char *state);
/* Scans for new tasks and interrupts; to be called at an interval. */
int colld_pin_renew(struct colld_pin *pin);
/* Closes; `restore` moves everything back first. What is not moved back the next colld adopts. */
void colld_pin_close(struct colld_pin *pin, bool restore);
void colld_pin_metrics(struct colld_pin *pin, FILE *to);

#endif
