// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Flight pages of three ranks in which any bytes are at any places, as other processes and dump
 * files have them: refused, or a cause is found, printed as JSON, the events are matched and
 * aligned, and the report is made. What is printed is printable.
 */
#include <ctype.h>

#include "libcoll/flight/report.h"
#include "node/report/report.h"
#include "tests/lib/flight.h"
#include "tools/show/trace.h"
#include "fuzz.h"

enum { RANKS = 3 };

/* What an input puts somewhere. */
struct poke {
	uint8_t rank, bytes;
	uint32_t at;
} __attribute__((packed));

static void page_poke(struct coll_flight_seen *seen, struct fuzz_input *in)
{
	const uint8_t *data;
	struct poke poke;
	size_t bytes;

	fuzz_copy(in, &poke, sizeof(poke));
	bytes = fuzz_some(in, &data, poke.bytes % 64);
	memcpy((char *)&seen[poke.rank % RANKS] + poke.at % (sizeof(*seen) - 64), data, bytes);
}

/* Numbers may make no sense; they are printed all the same. */
static void report_look(const struct coll_flight_job *job)
{
	static FILE *nowhere;
	struct coll_flight_report report;
	json_t *json;

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	if (coll_flight_report_make(&report, job))
		return;
	fuzz_must(nowhere != NULL, "/dev/null is closed");
	coll_flight_report_print(&report, job, nowhere);
	json = node_report_json(&report, job);
	fuzz_must(json != NULL, "a report is not printed");
	json_decref(json);
	node_report_page(&report, job, nowhere);
	coll_flight_report_free(&report);
}

static void job_look(const struct coll_flight_job *job)
{
	struct coll_flight_cause cause;
	struct coll_flight_message *messages;
	struct coll_flight_clocks clocks;
	const size_t count = trace_messages(job, &messages);
	json_t *json = show_json(job);
	const char *c;

	fuzz_must(json != NULL, "pages are not printed");
	json_decref(json);
	coll_flight_find_cause(job, &cause);
	for (c = cause.text; *c; c++)
		fuzz_must(isprint((unsigned char)*c), "a terminal would obey the cause");
	fuzz_must(cause.length <= COLL_FLIGHT_CHAIN_MAX, "a chain is longer than its room");
	fuzz_must(coll_flight_align(job, messages, count, &clocks), "clocks are not aligned");
	free(clocks.offset);
	free(messages);
	report_look(job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct coll_flight_seen seen[RANKS];
	struct fuzz_input in = { data, bytes };
	struct coll_flight_set set = { .count = 0 };
	struct flight_job job;
	size_t first, end;
	uint32_t i;

	flight_open(&job, RANKS);
	flight_wait(&job, 0, 0, 18, 1);
	flight_wait(&job, 1, 0, 17, 0);
	flight_wait(&job, 2, 1, 5, 0);
	flight_lost(&job, 0, 1, 3);
	for (i = 0; i < 4; i++) {
		flight_message(&job, i % RANKS, (i + 1) % RANKS, 17);
		flight_message(&job, (i + 1) % RANKS, i % RANKS, 17);
	}
	for (i = 0; i < RANKS; i++)
		flight_exchange(flight_timed(&job, i, 0, 1000 + i, 2000), (i + 1) % RANKS, 1, 2, 900);
	for (i = 0; i < RANKS; i++) {
		seen[i] = *job.set.seen[i];
		seen[i].observed = (struct coll_flight_observed){
			.since = 1, .until = 1000000, .cost = 1000, .looks = 10, .cpus = 1, .cpu = i,
			.outside = { 2 * i, i, i, i }, .taker = { { .ns = 5000, .name = "backup" } },
		};
	}
	flight_close(&job);
	while (in.bytes)
		page_poke(seen, &in);
	for (i = 0; i < RANKS; i++)
		coll_flight_add(&set, &seen[i], sizeof(seen[i]));
	coll_flight_sort(&set);
	for (first = 0; first < set.count; first = end) {
		end = coll_flight_job_end(&set, first);
		job_look(&(struct coll_flight_job){ set.seen + first, end - first });
	}
	coll_flight_free(&set);
	return 0;
}

static void take_poke(take_seed *take, void *argument, uint8_t rank, size_t at, const void *bytes,
		      uint8_t count)
{
	const struct poke poke = { .rank = rank, .bytes = count, .at = at };
	uint8_t input[sizeof(poke) + 64];

	memcpy(input, &poke, sizeof(poke));
	memcpy(input + sizeof(poke), bytes, count);
	take(input, sizeof(poke) + count, argument);
}

#define POKE(rank, field, value)	do {							\
	const __typeof__(((struct coll_flight_seen *)0)->field) bytes = value;			\
	take_poke(take, argument, rank, offsetof(struct coll_flight_seen, field), &bytes,	\
		  sizeof(bytes));								\
} while (0)

/* The places where a word turns the judgement. */
void fuzz_seeds(take_seed *take, void *argument)
{
	POKE(0, state, 'T');
	POKE(1, owner_state, 't');
	POKE(1, flags, COLL_FLIGHT_ENDED);
	POKE(2, time, UINT64_MAX);
	POKE(0, page.ranks, 2);
	POKE(0, page.rank, 1);
	POKE(1, page.joined, 0);
	POKE(2, page.inside, 0);
	POKE(1, page.user_function, 1);
	POKE(1, page.opened, UINT64_MAX);
	POKE(1, page.realtime, 1);
	POKE(0, page.waits, COLL_FLIGHT_WAITS);
	POKE(0, page.links, COLL_FLIGHT_LINKS);
	POKE(0, page.head, UINT64_MAX);
	POKE(1, page.host[0], 1);
	POKE(2, page.job[0], 27);
	POKE(1, page.group[0].id, 2);
	POKE(1, page.group[0].begun, 0);
	POKE(0, page.call[0].collective, UINT32_MAX);
	POKE(1, page.call[0].hash, 8);
	POKE(0, page.run[0].number, UINT32_MAX);
	POKE(0, page.run[0].group, COLL_FLIGHT_GROUPS);
	POKE(0, page.wait[0].kind, 9);
	POKE(0, page.wait[0].peer, UINT32_MAX);
	POKE(0, page.link[0].flags, COLL_FLIGHT_FULL);
	POKE(0, page.event[0].when, UINT64_MAX);
	POKE(1, page.spent, UINT64_MAX);
	POKE(1, page.ended, UINT64_MAX);
	POKE(0, page.call[COLL_FLIGHT_CALLS - 1].predicted, UINT64_MAX);
	POKE(0, page.call[COLL_FLIGHT_CALLS - 1].best, UINT64_MAX >> 1);
	POKE(0, page.call[COLL_FLIGHT_CALLS - 1].sum.runs, UINT64_MAX);
	POKE(0, page.call[COLL_FLIGHT_CALLS - 1].sum.shortest, UINT64_MAX);
	POKE(2, page.timed[0].stolen, UINT32_MAX);
	POKE(2, page.event[1].what, UINT64_MAX);
}
