/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * coll show: cmd_show.c has the options, gather.c brings pages of this node, of other hosts and
 * of files, table.c, json.c and metrics.c print, trace.c writes the events for a viewer.
 */
#ifndef COLL_SHOW_H
#define COLL_SHOW_H

#include <jansson.h>

#include "libcoll/flight/cause.h"
#include "tools/launch/launch.h"

struct show {
	const char *command;		/* "show", or another that asks for the same */
	bool json, metrics, trace, raw;
	const char *dump;		/* a folder, or NULL */
	uint64_t watch;			/* ns between two looks; 0: one look */
	uint64_t over;			/* ns: exit code 2 if a rank waits longer in a call; 0: no */
	struct launch remote;		/* --hosts, --ssh, --coll */
	int slots;			/* of --hosts, not used */
	const char *job;		/* NULL: all */
	char **files;			/* dumps instead of living ranks, or NULL */
	int files_count;
};

/* Takes JOB or FILE ... . An enum command_status; stderr has what is valid. */
int show_take_arguments(struct show *show, int count, char **arguments);
/* Fills the set. An enum command_status; stderr has the reason. */
int show_gather(const struct show *show, struct coll_flight_set *set);
/* Writes each page of the set: to stdout, or as a file of the folder --dump. */
int show_raw(const struct coll_flight_set *set);
int show_dump(const struct show *show, const struct coll_flight_set *set);

/* One line a job. */
void show_list(const struct coll_flight_set *set);
/* All of one job. */
void show_job(const struct coll_flight_job *job);
json_t *show_json(const struct coll_flight_job *job);
/* All jobs as OpenMetrics. An enum command_status. */
int show_metrics(const struct coll_flight_set *set);
/* All events of a job as a Chrome trace. */
int show_trace(const struct coll_flight_job *job);

/* What a rank does: "waits", "outside", "stopped", ...; *since: since when. */
const char *show_state(const struct coll_flight_seen *seen, uint64_t *since);
/* How long that is, in s. */
double show_seconds(const struct coll_flight_seen *seen, uint64_t since);

#endif
