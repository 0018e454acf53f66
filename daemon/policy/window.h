/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Co-scheduling: freezes and thaws cgroups on the wall clock. */
#ifndef COLL_DAEMON_WINDOW_H
#define COLL_DAEMON_WINDOW_H

#include <stdio.h>

#include "node/rules.h"

struct colld_windows;

/* A colld and its second process have died and left cgroups frozen, or that colld is another one, which lives. */
bool colld_windows_left(const char *state);
/* Thaws them: when no other colld has this state. What fails is logged, and is for the next one. */
void colld_windows_recover(const char *state);

/*
 * When this process dies, a second process thaws all cgroups: none stays frozen. What both have left frozen is
 * thawed here, whatever the rules: it is written down in `state`, which outlives the windows.
 */
int colld_windows_open(struct colld_windows **windows, const struct node_rules *rules, const char *state);
/* A timer, readable when colld_windows_progress() is due. */
int colld_windows_fd(const struct colld_windows *windows);
void colld_windows_progress(struct colld_windows *windows);
/*
 * The process is at a real-time priority from colld_windows_open() on, if it may be. Set to false
 * around work that others cause: it could keep every other process off the CPU.
 */
void colld_windows_set_real_time(const struct colld_windows *windows, bool real_time);
void colld_windows_close(struct colld_windows *windows);
void colld_windows_metrics(const struct colld_windows *windows, FILE *to);

#endif
