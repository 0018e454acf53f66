// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/common/algo.h"
#include "flight.h"
#include "libcoll/flight/timed.h"

static struct coll_flight_page *page_of(struct flight_job *job, uint32_t rank)
{
	assert(rank < job->set.count);
	return &job->set.seen[rank]->page;
}

static void open_rank(struct coll_flight_seen *seen, uint32_t rank, uint32_t ranks)
{
	struct coll_flight_page *page = &seen->page;

	memset(seen, 0, sizeof(*seen));
	seen->magic = page->magic = COLL_FLIGHT_MAGIC;
	seen->version = page->version = COLL_FLIGHT_VERSION;
	seen->bytes = sizeof(*seen);
	seen->time = FLIGHT_NOW;
	seen->pid = page->pid = 100 + rank;
	seen->state = 'R';
	page->bytes = sizeof(*page);
	page->rank = page->local_rank = rank;
	page->ranks = page->local_ranks = ranks;
	page->joined = 1;
	page->opened = page->left = page->now = FLIGHT_NOW - 2 * FLIGHT_WAITED;
	snprintf(page->job, sizeof(page->job), "job");
	snprintf(page->program, sizeof(page->program), "program");
	snprintf(page->host, sizeof(page->host), "host");
	snprintf(page->progress, sizeof(page->progress), "call");
	snprintf(page->engine, sizeof(page->engine), "uring");
}

void flight_open(struct flight_job *job, uint32_t ranks)
{
	static struct coll_flight_seen seen;
	uint32_t rank;

	assert(ranks && ranks <= FLIGHT_RANKS_MAX);
	memset(job, 0, sizeof(*job));
	for (rank = 0; rank < ranks; rank++) {
		int err;

		open_rank(&seen, rank, ranks);
		err = coll_flight_add(&job->set, &seen, sizeof(seen));
		assert(!err);
		(void)err;
	}
	job->job = (struct coll_flight_job){ job->set.seen, job->set.count };
}

void flight_close(struct flight_job *job)
{
	coll_flight_free(&job->set);
}

void flight_report_make(struct flight_job *job, struct coll_flight_report *report, uint32_t us)
{
	size_t i;
	int error;

	for (i = 0; i < job->set.count; i++)
		job->set.seen[i]->page.ended = job->set.seen[i]->page.opened + us * 1000ull;
	error = coll_flight_report_make(report, &job->job);
	assert(!error);
}

void flight_report_close(struct flight_job *job, struct coll_flight_report *report)
{
	coll_flight_report_free(report);
	flight_close(job);
}

/* The world is entry 0. */
static void has_group(struct coll_flight_page *page, uint32_t group, uint32_t begun, uint32_t ended)
{
	page->group[group] = (struct coll_flight_group){
		.id = group + 1, .since = page->opened, .rank = page->rank, .ranks = page->ranks,
		.begun = begun, .ended = ended,
	};
}

void flight_wait(struct flight_job *job, uint32_t rank, uint32_t group, uint32_t number,
		 uint32_t peer)
{
	struct coll_flight_page *page = page_of(job, rank);

	has_group(page, group, number + 1, number);
	page->inside = 1;
	page->now = FLIGHT_NOW;
	job->set.seen[rank]->state = 'S';
	page->call[group] = (struct coll_flight_call){
		.since = page->opened, .count = 1, .element = 4, .collective = COLL_ALLREDUCE,
		.hash = 7, .algo = "twotier", .ranks = page->ranks,
	};
	page->run[group] = (struct coll_flight_run){
		.since = FLIGHT_NOW - FLIGHT_WAITED, .number = number,
		.where = COLL_FLIGHT_HERE, .group = group, .call = group,
	};
	page->wait[page->waits++] = (struct coll_flight_wait){
		.bytes = 4, .number = number, .op = 1, .peer = peer, .run = group,
		.kind = COLL_OP_RECV,
	};
	page->link[page->links++] = (struct coll_flight_link){
		.peer = peer, .state = COLL_FLIGHT_LINK_UP, .group = group,
	};
}

void flight_went(struct flight_job *job, uint32_t rank, uint32_t group, uint32_t number)
{
	has_group(page_of(job, rank), group, number, number);
}

void flight_lost(struct flight_job *job, uint32_t rank, uint32_t peer, uint32_t retransmits)
{
	const struct coll_flight_page *page = page_of(job, rank);
	uint32_t i;

	for (i = 0; i < page->links; i++)
		if (page->link[i].peer == peer)
			job->set.seen[rank]->queue[i] = (struct coll_flight_queue){
				.known = 1, .unsent = 88, .retransmits = retransmits,
			};
}

/* The clock of each rank begins when it joined. */
static uint64_t clock_of(const struct coll_flight_page *page, uint32_t us)
{
	return page->opened + us * 1000ull;
}

static void add_run(struct coll_flight_call *call, uint32_t ranks, uint64_t ns)
{
	call->since = 1;
	call->ranks = ranks;
	call->collective = COLL_BARRIER;
	coll_flight_sum_add(&call->sum, ns);
}

struct coll_flight_timed *flight_timed(struct flight_job *job, uint32_t rank, uint32_t number,
				       uint32_t began, uint32_t ended)
{
	struct coll_flight_page *page = page_of(job, rank);
	struct coll_flight_timed *run = &page->timed[number % COLL_FLIGHT_TIMED];

	*run = (struct coll_flight_timed){
		.group = 1, .number = number, .collective = COLL_BARRIER,
		.call = COLL_FLIGHT_CALLS - 1,
		.began = clock_of(page, began), .ended = clock_of(page, ended),
	};
	page->spent += (ended - began) * 1000ull;
	page->runs++;
	add_run(&page->call[COLL_FLIGHT_CALLS - 1], page->ranks, (ended - began) * 1000ull);
	return run;
}

static uint32_t ticks_of(int us)
{
	return us < 0 ? 0 : us * 1000 / COLL_FLIGHT_TICK + 1;
}

void flight_exchange(struct coll_flight_timed *run, uint32_t peer, int sent, int posted, int arrived)
{
	run->with[run->exchanges++] = (struct coll_flight_exchange){
		.peer = peer, .sent = ticks_of(sent), .posted = ticks_of(posted),
		.arrived = ticks_of(arrived),
	};
}

void flight_chain(struct flight_job *job, uint32_t number, int late, int flight)
{
	const uint32_t at = 1000 * (number + 1);
	struct coll_flight_timed *run;

	run = flight_timed(job, 0, number, at, at + late + flight + 12);
	flight_exchange(run, 1, -1, 1, late + flight + 11);
	run = flight_timed(job, 1, number, at, at + late + flight + 2);
	flight_exchange(run, 2, -1, 1, late + flight);
	flight_exchange(run, 0, late + flight + 1, -1, -1);
	run = flight_timed(job, 2, number, at + late, at + late + 1);
	flight_exchange(run, 1, 0, -1, -1);
}

static void add_event(struct coll_flight_page *page, enum coll_flight_kind kind, uint64_t time,
		      uint32_t peer, uint32_t number)
{
	page->event[page->head++ % COLL_FLIGHT_EVENTS] = (struct coll_flight_event){
		.when = time << 12 | kind << 6,
		.what = (uint64_t)number << 48 | (uint64_t)peer << 24,
	};
}

void flight_message(struct flight_job *job, uint32_t rank, uint32_t peer, uint32_t number)
{
	add_event(page_of(job, rank), COLL_FLIGHT_SEND, 1000 * number, peer, number);
	add_event(page_of(job, peer), COLL_FLIGHT_RECV, 1000 * number, rank, number);
	add_event(page_of(job, peer), COLL_FLIGHT_GOT, 1000 * number + 500, rank, number);
}

/* A call each second. */
void flight_late(struct flight_job *job, uint32_t rank, uint32_t number, uint64_t late_ns)
{
	uint32_t i, each;

	for (each = 0; each < job->set.count; each++)
		for (i = 0; i < number; i++)
			add_event(page_of(job, each), COLL_FLIGHT_BEGIN,
				  i * 1000000000ULL + each + (each == rank ? late_ns : 0),
				  0xffffff, i);
}

void flight_offload(struct flight_job *job, uint32_t rank, uint32_t group, char state)
{
	struct coll_flight_page *page = page_of(job, rank);
	struct coll_flight_seen *seen = job->set.seen[rank];

	page->run[group].where = COLL_FLIGHT_KERNEL;
	page->waits = page->links = 0;
	snprintf(page->progress, sizeof(page->progress), "kernel");
	seen->owner_state = state;
	seen->flags |= COLL_FLIGHT_KERNEL_THREAD | COLL_FLIGHT_OWNER_STEADY;
}
