// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "gather.h"
#include "libcoll/base/clock.h"
#include "libcoll/flight/observation.h"

/* Less than a child may take. */
static const u64 SEARCH_NS = 7 * COLL_SECOND;

struct report_search {
	const struct report_question *question;
	struct report_gathered *gathered;
	bool found;			/* a rank of the job lives: its user is known */
	int error;
};

/* ---- a list -------------------------------------------------------------------- */

static struct report_job *list_entry(struct report_gathered *gathered, u32 user,
				     const struct coll_flight_page *page)
{
	struct report_job *job;
	u32 i, has = 0;

	for (i = 0; i < gathered->jobs; i++) {
		if (gathered->job[i].user != user)
			continue;
		if (!strcmp(gathered->job[i].job, page->job))
			return &gathered->job[i];
		has++;
	}
	if (gathered->jobs == REPORT_JOBS || has == REPORT_JOBS_USER) {
		gathered->more = true;
		return NULL;
	}
	job = &gathered->job[gathered->jobs++];
	*job = (struct report_job){ .user = user, .ranks = page->ranks, .opened = page->opened };
	snprintf(job->job, sizeof(job->job), "%s", page->job);
	snprintf(job->program, sizeof(job->program), "%s", page->program);
	return job;
}

static void list_add(struct report_gathered *gathered, u32 user, const struct coll_flight_page *page)
{
	struct report_job *job = list_entry(gathered, user, page);

	if (!job)
		return;
	job->here++;
	if (page->opened < job->opened)
		job->opened = page->opened;
	if (page->runs > job->calls)
		job->calls = page->runs;
}

static int by_user_and_name(const void *left, const void *right)
{
	const struct report_job *a = left, *b = right;

	return a->user != b->user ? (a->user > b->user) - (a->user < b->user) :
				    strcmp(a->job, b->job);
}

/* ---- a job ------------------------------------------------------------------------ */

static u64 clock_of(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * COLL_SECOND + time.tv_nsec;
}

static int set_take(struct report_gathered *gathered, struct coll_flight_seen *seen)
{
	static const struct coll_flight_found nothing = { .page = -1, .device = -1 };

	/* Children that a rank has forked have its page as well. */
	if (coll_flight_take_over(&gathered->set, seen))
		return 0;
	if (gathered->set.count == REPORT_RANKS) {
		gathered->more = true;
		return 0;
	}
	seen->time = clock_of(CLOCK_MONOTONIC);
	seen->realtime = clock_of(CLOCK_REALTIME);
	if (!(seen->flags & COLL_FLIGHT_ENDED))
		coll_flight_look(seen, &nothing);
	return coll_flight_add(&gathered->set, seen, sizeof(*seen));
}

/* Of another user's job of that name nothing is taken, unless there is no other that runs. */
static void set_add(struct report_search *search, u32 user, struct coll_flight_seen *seen)
{
	struct report_gathered *gathered = search->gathered;
	const bool lives = !(seen->flags & COLL_FLIGHT_ENDED) && !seen->page.ended;

	if (gathered->set.count && user != gathered->user) {
		gathered->several |= lives && search->found;
		if (!lives || search->found)
			return;
		coll_flight_free(&gathered->set);
		gathered->more = false;
	}
	gathered->user = user;
	search->found |= lives;
	search->error = set_take(gathered, seen);
}

/* ---- the search --------------------------------------------------------------------- */

static bool search_each(struct coll_flight_seen *seen, int page, void *argument)
{
	struct report_search *search = argument;
	struct stat file;

	if (search->error || fstat(page, &file))
		return false;
	if (!search->question->list)
		set_add(search, file.st_uid, seen);
	else if (!(seen->flags & COLL_FLIGHT_ENDED) && !seen->page.ended)
		list_add(search->gathered, file.st_uid, &seen->page);
	return false;
}

/* Whoever reads the records, of this node or of several, is told by them. */
static void set_cut(struct coll_flight_set *set)
{
	size_t i;

	for (i = 0; i < set->count; i++)
		set->seen[i]->flags |= COLL_FLIGHT_CUT;
}

static void add_observed(const struct report_question *question, const char *state,
			 struct report_gathered *gathered)
{
	char path[512];
	const int length = snprintf(path, sizeof(path), "%s/observed/%u", state, gathered->user);

	if (length < (int)sizeof(path))
		coll_flight_observation_read(&gathered->set, AT_FDCWD, path, question->job);
}

int report_gather(const struct report_question *question, const char *state,
		  struct report_gathered *gathered)
{
	struct report_search mine = { .question = question, .gathered = gathered };
	struct coll_flight_search search = {
		.job = question->list ? NULL : question->job,
		.uid = question->of_user ? question->user : COLL_FLIGHT_ANY_USER,
		.until = coll_now() + SEARCH_NS, .each = search_each, .argument = &mine,
	};
	int error;

	*gathered = (struct report_gathered){ .jobs = 0 };
	if (question->list)
		gathered->job = calloc(REPORT_JOBS, sizeof(*gathered->job));
	if (question->list && !gathered->job)
		return -ENOMEM;
	error = coll_flight_search(&search);
	gathered->more |= search.from != 0;
	error = error ? error : mine.error ? mine.error : search.from && !question->list ? -ETIMEDOUT : 0;
	if (question->list)
		qsort(gathered->job, gathered->jobs, sizeof(*gathered->job), by_user_and_name);
	else if (!mine.found)
		coll_flight_free(&gathered->set);
	coll_flight_sort(&gathered->set);
	if (gathered->more)
		set_cut(&gathered->set);
	add_observed(question, state, gathered);
	return error;
}

void report_gathered_free(struct report_gathered *gathered)
{
	coll_flight_free(&gathered->set);
	free(gathered->job);
	gathered->job = NULL;
}
