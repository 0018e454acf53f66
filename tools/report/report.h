/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* coll report: cmd_report.c has the options, json.c, page.c and picture.c print; the text is the library's. */
#ifndef COLL_REPORT_H
#define COLL_REPORT_H

#include <jansson.h>

#include "libcoll/flight/report.h"

/* NULL: no memory. */
json_t *report_json(const struct coll_flight_report *report, const struct coll_flight_job *job);

/* Kinds of loss: their colours are series of the palette. */
struct report_part {
	const char *name, *place, *colour;
};

extern const struct report_part report_parts[COLL_FLIGHT_LOSS_KINDS];

/* The picture of a page: where the time in collectives went, a row a node; of one node, a rank. */
void report_picture(const struct coll_flight_report *report, const struct coll_flight_job *job,
		    FILE *to);

/* One page that needs no other file. Errors are reported on stderr. 0 or -errno. */
int report_page(const struct coll_flight_report *report, const struct coll_flight_job *job,
		const char *path);

#endif
