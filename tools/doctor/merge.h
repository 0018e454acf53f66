/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The reports of many nodes in one: those that differ from the others first, by name. */
#ifndef COLL_DOCTOR_MERGE_H
#define COLL_DOCTOR_MERGE_H

#include <jansson.h>
#include <stdio.h>

#include "check.h"

/* What is known of a host. */
struct doctor_row {
	const char *host;
	json_t *report;		/* NULL: none came */
	json_t *pairs;		/* its connections to the others; NULL: none came */
};

/*
 * What the hosts have in common, and what not, as
 *	{"hosts": N, "worst": LEVEL, "whole": BOOL, "findings": [{check, level, found, cost, advice,
 *	 "nodes": [...], "differs": true}], "nodes": [the reports]}
 * whole: each host reported, and tried all others that did;
 * findings of other nodes than the most are marked as differing, and stand first.
 * NULL: there is no memory.
 */
json_t *doctor_merge(const struct doctor_row *rows, int count, enum doctor_level *worst);
void doctor_merge_print(json_t *merged, bool all, FILE *to);

#endif
