/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A report for programs and for browsers, as coll report and colld give it: json.c, page.c and picture.c
 * print; the text for people is the library's.
 */
#ifndef COLL_NODE_REPORT_H
#define COLL_NODE_REPORT_H

#include <jansson.h>

#include "libcoll/flight/report.h"

/* NULL: no memory. */
json_t *node_report_json(const struct coll_flight_report *report, const struct coll_flight_job *job);

/* Kinds of loss: their colours are series of the palette. */
struct node_report_part {
	const char *name, *place, *colour;
};

extern const struct node_report_part node_report_parts[COLL_FLIGHT_LOSS_KINDS];

/* The picture of a page: where the time in collectives went, a row a node; of one node, a rank. */
void node_report_picture(const struct coll_flight_report *report, const struct coll_flight_job *job,
			 FILE *to);

/* One page that needs no other file. */
void node_report_page(const struct coll_flight_report *report, const struct coll_flight_job *job,
		      FILE *to);

#endif
