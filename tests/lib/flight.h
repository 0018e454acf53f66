/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Flight pages made by hand: ranks of one job, each in a call or outside of all calls. */
#ifndef TESTS_FLIGHT_H
#define TESTS_FLIGHT_H

#include "libcoll/flight/cause.h"
#include "libcoll/flight/report.h"

enum { FLIGHT_RANKS_MAX = 16 };

/* Now, in the clock of all ranks; the calls have lasted for FLIGHT_WAITED. */
#define FLIGHT_NOW	(1000 * 1000000000ULL)
#define FLIGHT_WAITED	(5 * 1000000000ULL)

struct flight_job {
	struct coll_flight_set set;
	struct coll_flight_job job;
};

/* So many ranks that have joined a job and are in no call; they compute. */
void flight_open(struct flight_job *job, uint32_t ranks);
void flight_close(struct flight_job *job);
/* What is reported of a job that has lasted for so many us, to be closed with it. */
void flight_report_make(struct flight_job *job, struct coll_flight_report *report, uint32_t us);
void flight_report_close(struct flight_job *job, struct coll_flight_report *report);

/*
 * The rank waits in run `number` of the group, which it is the last to have begun there, for a
 * message of this rank. One call of it a group.
 */
void flight_wait(struct flight_job *job, uint32_t rank, uint32_t group, uint32_t number,
		 uint32_t peer);
/* The rank is through all runs of the group before this number, and computes. */
void flight_went(struct flight_job *job, uint32_t rank, uint32_t group, uint32_t number);
/* Its connection to that rank has bytes that were sent so often in vain. */
void flight_lost(struct flight_job *job, uint32_t rank, uint32_t peer, uint32_t retransmits);
/*
 * A timed run of the first group, a barrier of all ranks, which this rank began and ended at these
 * times (us after the job began, by its own clock). Returns the record, for what follows.
 */
struct coll_flight_timed *flight_timed(struct flight_job *job, uint32_t rank, uint32_t number,
				       uint32_t began, uint32_t ended);
/* In it: to and from that rank, us after the run began; -1: not. */
void flight_exchange(struct coll_flight_timed *run, uint32_t peer, int sent, int posted,
		     int arrived);
/*
 * Rank 0 waits for 1, which waits for 2: it comes `late` us after them and its message to 1 takes
 * `flight`. Others' messages take 10 us.
 */
void flight_chain(struct flight_job *job, uint32_t number, int late, int flight);
/* Events of a message that the rank has sent to the other, which got it. */
void flight_message(struct flight_job *job, uint32_t rank, uint32_t peer, uint32_t number);
/* It has begun all runs of the world before this number, each so long after the others. */
void flight_late(struct flight_job *job, uint32_t rank, uint32_t number, uint64_t late_ns);
/* The rank's run is in the kernel instead; its thread there has this state. */
void flight_offload(struct flight_job *job, uint32_t rank, uint32_t group, char state);

#endif
