/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * colld, one a node: keeps the policy of a file (node/rules.h) in force, and
 * manages circuits (circuit.h). Its parts; each is one thread's.
 */
#ifndef COLL_COLLD_H
#define COLL_COLLD_H

#include <stdio.h>

#include "node/pinning.h"

/* A line on stderr, with the journal's level before it where it is read by systemd. */
void colld_say(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- pin.c: who may be where ---------------------------------------------------------- */

struct colld_pin;

/*
 * The rules are the caller's and stay. With the module its rules take effect on who
 * forks or execs later too; interrupts and the unbound work are moved from here, and
 * tasks as well without the module. What a colld that died had moved is taken over.
 */
int colld_pin_open(struct colld_pin **pin, const struct noise_rules *rules, const char *state);
/* Now and then: what has come since. */
int colld_pin_renew(struct colld_pin *pin);
/* Puts everything back (or leaves it for another colld), and closes. */
void colld_pin_close(struct colld_pin *pin, bool restore);
void colld_pin_metrics(const struct colld_pin *pin, FILE *to);

/* ---- window.c: co-scheduling ----------------------------------------------------------- */

struct colld_windows;

/*
 * Freezes and thaws cgroups on the clock. When this process dies, another thaws
 * all of them: nothing stays frozen.
 */
int colld_windows_open(struct colld_windows **windows, const struct noise_rules *rules);
/* A timer: readable when there is something to be done. */
int colld_windows_fd(const struct colld_windows *windows);
void colld_windows_turn(struct colld_windows *windows);
void colld_windows_close(struct colld_windows *windows);
void colld_windows_metrics(const struct colld_windows *windows, FILE *to);

/* ---- stop.c: who stands still while a job runs -------------------------------------------- */

struct colld_stops;

/*
 * While there is a file in the folder `jobs` of the state: cgroups are frozen, units
 * stopped. All comes back afterwards, and when this process ends or dies.
 */
int colld_stops_open(struct colld_stops **stops, const struct noise_rules *rules,
		     const char *state);
/* Readable when a job has begun or ended; -1: nothing is ever stopped. */
int colld_stops_fd(const struct colld_stops *stops);
void colld_stops_turn(struct colld_stops *stops);
void colld_stops_close(struct colld_stops *stops);
void colld_stops_metrics(const struct colld_stops *stops, FILE *to);

/* ---- metrics.c: Prometheus --------------------------------------------------------------- */

struct colld_metrics;

/* `write` is called for each request, by colld_metrics_turn(). */
typedef void colld_metrics_write(void *data, FILE *to);
int colld_metrics_open(struct colld_metrics **metrics, const char *address, int port,
		       colld_metrics_write *write, void *data);
int colld_metrics_fd(const struct colld_metrics *metrics);
void colld_metrics_turn(struct colld_metrics *metrics);
void colld_metrics_close(struct colld_metrics *metrics);

/* ---- notify.c: systemd ------------------------------------------------------------------- */

/* "READY=1"; nothing where nobody asked to be told. */
void colld_notify(const char *text);

#endif
