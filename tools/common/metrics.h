/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* OpenMetrics, as Prometheus and its node exporter read it. */
#ifndef COLL_METRICS_H
#define COLL_METRICS_H

#include <stdio.h>

/* The head of a family: its type and what it means, in one sentence. */
void metrics_family(FILE *to, const char *name, const char *type, const char *help);
/* NAME="TEXT", escaped. */
void metrics_label(FILE *to, const char *name, const char *text);
void metrics_end(FILE *to);

#endif
