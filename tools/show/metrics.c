// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The jobs of a node for Prometheus: how many ranks wait, for how long, and for what. */
#include <string.h>

#include "show.h"
#include "tools/common/command.h"
#include "tools/common/metrics.h"

static double ranks_here(const struct coll_flight_job *job)
{
	return job->count;
}

static bool rank_waits(const struct coll_flight_seen *seen, uint64_t *since)
{
	return !strcmp(show_state(seen, since), "waits");
}

static double ranks_waiting(const struct coll_flight_job *job)
{
	uint64_t since;
	size_t i, count = 0;

	for (i = 0; i < job->count; i++)
		count += rank_waits(job->seen[i], &since);
	return count;
}

static double longest_wait(const struct coll_flight_job *job)
{
	double longest = 0;
	uint64_t since;
	size_t i;

	for (i = 0; i < job->count; i++)
		if (rank_waits(job->seen[i], &since) && show_seconds(job->seen[i], since) > longest)
			longest = show_seconds(job->seen[i], since);
	return longest;
}

static double fewest_calls(const struct coll_flight_job *job)
{
	uint64_t fewest = UINT64_MAX;
	size_t i;

	for (i = 0; i < job->count; i++)
		if (job->seen[i]->page.runs < fewest)
			fewest = job->seen[i]->page.runs;
	return fewest;
}

static double job_age(const struct coll_flight_job *job)
{
	return show_seconds(job->seen[0], job->seen[0]->page.opened);
}

/* A counter's samples have another name than its family. */
static const struct family {
	const char *name, *type, *help, *sample;
	double (*value)(const struct coll_flight_job *job);
} families[] = {
	{ "coll_job_ranks", "gauge", "Ranks of the job on this node.", "", ranks_here },
	{ "coll_job_ranks_waiting", "gauge", "Ranks on this node that wait in a call.", "",
	  ranks_waiting },
	{ "coll_job_wait_seconds_max", "gauge", "Longest time that one of them has waited.", "",
	  longest_wait },
	{ "coll_job_calls", "counter", "Calls begun by the rank on this node that has begun fewest.",
	  "_total", fewest_calls },
	{ "coll_job_age_seconds", "gauge", "Time since its first rank here joined.", "", job_age },
};

static void print_job_labels(const struct coll_flight_job *job)
{
	metrics_label(stdout, "job", job->seen[0]->page.job);
	printf(",");
	metrics_label(stdout, "program", job->seen[0]->page.program);
}

static bool next_job(const struct coll_flight_set *set, size_t *first,
		     struct coll_flight_job *job)
{
	const size_t from = *first;

	if (from == set->count)
		return false;
	*first = coll_flight_job_end(set, from);
	*job = (struct coll_flight_job){ set->seen + from, *first - from };
	return true;
}

/* Nothing for jobs that wait for nobody, and of which no rank is slow. */
static void print_causes(const struct coll_flight_set *set)
{
	struct coll_flight_cause cause;
	struct coll_flight_job job;
	size_t first = 0;

	metrics_family(stdout, "coll_job_cause_seconds", "gauge",
		       "Longest wait of the job here, by its first cause (coll-show(1)) and rank; "
		       "where no rank waits, for how long that rank has been so.");
	while (next_job(set, &first, &job)) {
		coll_flight_find_cause(&job, &cause);
		if (!cause.why)
			continue;
		printf("coll_job_cause_seconds{");
		print_job_labels(&job);
		printf(",why=\"%s\",rank=\"%d\"} %.6f\n", coll_flight_why_names[cause.why],
		       (int)cause.rank, cause.alone ? cause.seconds : longest_wait(&job));
	}
}

int show_metrics(const struct coll_flight_set *set)
{
	struct coll_flight_job job;
	size_t i, first;

	for (i = 0; i < sizeof(families) / sizeof(*families); i++) {
		const struct family *family = &families[i];

		metrics_family(stdout, family->name, family->type, family->help);
		for (first = 0; next_job(set, &first, &job);) {
			printf("%s%s{", family->name, family->sample);
			print_job_labels(&job);
			printf("} %.6f\n", family->value(&job));
		}
	}
	print_causes(set);
	metrics_end(stdout);
	return COMMAND_OK;
}
