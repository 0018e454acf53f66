/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The findings of a node: as a table, as JSON, as OpenMetrics. */
#ifndef COLL_DOCTOR_REPORT_H
#define COLL_DOCTOR_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "check.h"

struct doctor_report {
	struct doctor_finding finding[DOCTOR_CHECKS_MAX];
	u32 count;
};

/* Of all checks, or of those with a true place in `wanted`, by the checks' index. */
void doctor_report_make(struct doctor_report *report, const struct doctor_facts *facts,
			const bool *wanted);
enum doctor_level doctor_report_worst(const struct doctor_report *report);

/* The worst first; `all`: those that are good, too. */
void doctor_report_print(const struct doctor_report *report, bool all, FILE *to);
json_t *doctor_report_json(const struct doctor_report *report, const char *node);
void doctor_report_metrics(const struct doctor_report *report, FILE *to);

/* A line "fail  NAME  FOUND" with its cost and its advice below it, wrapped. */
void doctor_print_finding(FILE *to, const char *level, const char *name, const char *found,
			  const char *cost, const char *advice);

#endif
