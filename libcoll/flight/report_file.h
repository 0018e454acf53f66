/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The report of a job that ends, as a file (option `report`). Nobody waits for anybody, so that
 * leaving takes no longer than some files do: each rank writes its flight record into the folder
 * FILE.JOB when it leaves, and who finds that all are there makes of them FILE, the report, and
 * FILE.flight, all records in one; then the folder goes. If a rank has failed, the lowest one that
 * is there makes them of what is there.
 *
 * Works where all ranks have the file's folder in common, under any launcher.
 */
#ifndef COLL_FLIGHT_REPORT_FILE_H
#define COLL_FLIGHT_REPORT_FILE_H

#include <limits.h>

#include "find.h"
#include "flight.h"

/* Of more ranks the records stay in the folder: `coll report` makes it of its files. */
enum { COLL_FLIGHT_REPORT_RANKS = 128 };

/* The folder of a job's records: FILE.JOB. -ENAMETOOLONG. */
int coll_flight_report_folder(const char *file, const char *job, char *folder, size_t bytes);

/* Writes this rank's record; it has not left yet. -errno. */
int coll_flight_report_record(const struct coll_flight *flight, const char *file);

/* Writes it, and makes the report if it is this rank's turn. `failed`: not all will come. -errno. */
int coll_flight_report_leave(const struct coll_flight *flight, const char *file, bool failed);

/*
 * Writes what an observer of this node saw of the job's ranks into this folder, which is of the report
 * that is to be made; a later one is instead of it. -ENOENT: the report is made, and the folder gone;
 * -EPERM: the folder is of somebody else; -errno.
 */
int coll_flight_report_observe(const char *folder, const char *job,
			       const struct coll_flight_observation *one, uint32_t count);

/*
 * Whether FILE and FILE.flight may be written: there is nothing, or an earlier report, or an empty
 * file. -EEXIST: it is something else, and stays.
 */
int coll_flight_report_check(const char *file);

/*
 * Adds the job's records in its folder but broken ones and those of before `since` (CLOCK_REALTIME, when
 * this job was joined; 0: any), with what observers saw of the ranks. 0 also if there is no folder.
 * -errno.
 */
int coll_flight_report_gather(struct coll_flight_set *set, const char *file, const char *job,
			      uint64_t since);
/*
 * Writes FILE and FILE.flight, each at once and whole. The set is of one job, and not empty; it
 * gets the records that an earlier report of the job has. -EEXIST as above.
 */
int coll_flight_report_write(struct coll_flight_set *set, const char *file);
/* The job's records and what was observed go, and their folder if nothing else is in it. */
void coll_flight_report_clear(const char *file, const char *job);

#endif
