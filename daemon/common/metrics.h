/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What /metrics says, in Prometheus's text format: of each metric its head, then its values. */
#ifndef COLL_DAEMON_METRICS_H
#define COLL_DAEMON_METRICS_H

#include <stdio.h>

#include "core/port.h"

/* `help` is one line. */
void colld_metrics_counter(FILE *to, const char *name, const char *help);
void colld_metrics_gauge(FILE *to, const char *name, const char *help);
/* Of one label; its value has nothing that has to be escaped. NULL: it has none. */
void colld_metrics_count(FILE *to, const char *name, const char *label, const char *value, u64 count);
void colld_metrics_seconds(FILE *to, const char *name, const char *label, const char *value, u64 ns);

#endif
