/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A Prometheus endpoint. */
#ifndef COLL_DAEMON_METRICS_H
#define COLL_DAEMON_METRICS_H

#include <stdio.h>

struct colld_metrics;

/* Called for each request, by colld_metrics_progress(). */
typedef void colld_metrics_write(void *data, FILE *to);
/* On an error *metrics is NULL. */
int colld_metrics_open(struct colld_metrics **metrics, const char *address, int port,
		       colld_metrics_write *write, void *data);
int colld_metrics_fd(const struct colld_metrics *metrics);
void colld_metrics_progress(struct colld_metrics *metrics);
void colld_metrics_close(struct colld_metrics *metrics);

#endif
