/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What the jobs of this node lose, told while they run: the same report that coll report makes, as a page and
 * as JSON, for their owners over a Unix socket, and for anybody through the door for HTTP. Children
 * make it: nothing here takes long.
 */
#ifndef COLL_DAEMON_REPORTS_H
#define COLL_DAEMON_REPORTS_H

#include <stdio.h>

#include "daemon/common/http.h"

struct colld_reports;

/* The folder of colld's state, which is the caller's and outlives it, has the socket. 0 or -errno, which is logged. */
int colld_reports_open(struct colld_reports **reports, const char *state);
/* Readable when colld_reports_progress() is due; nothing wakes it while nobody asks. */
int colld_reports_fd(const struct colld_reports *reports);
void colld_reports_progress(struct colld_reports *reports);
/* Whoever asks by this request is shown all jobs. */
void colld_reports_ask(struct colld_reports *reports, struct colld_request *request);
/* Answers all that wait: before colld_http_close(). */
void colld_reports_close(struct colld_reports *reports);
void colld_reports_metrics(const struct colld_reports *reports, FILE *to);

#endif
