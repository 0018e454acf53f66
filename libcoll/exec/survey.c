// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/port.h"
#include "exec.h"
#include "libcoll/base/clock.h"
#include "libcoll/base/core_wait.h"
#include "libcoll/link/link.h"
#include "offload.h"
#include "survey.h"

static int survey_open(struct coll_group *group)
{
	struct coll_survey *survey = calloc(1, sizeof(*survey));
	struct coll_samples *samples = malloc(sizeof(*samples));
	struct coll_own_costs *own = malloc(sizeof(*own));

	if (!survey || !samples || !own) {
		free(survey);
		free(samples);
		free(own);
		return -ENOMEM;
	}
	coll_samples_init(samples, group->rank, group->ranks);
	coll_own_init(own);
	survey->calls = survey->latest =
		coll_options_measure_first(&group->context->options) ? 0 : SURVEY_UNSEEN;
	survey->due = survey->calls + SURVEY_FIRST;
	survey->interval = SURVEY_CALLS_MIN / 2;
	survey->since = coll_now();
	survey->looks = survey->taken = true;
	survey->machine = group->options.machine;
	survey->costs = group->costs;
	survey->received = group->received;
	coll_delays_init(&survey->delays);
	group->samples = samples;
	group->own = own;
	group->survey = survey;
	return 0;
}

static void survey_free(struct coll_survey_run *one)
{
	if (one->run.planned)
		coll_planned_put(one->run.planned);
	free(one);
}

/* Nobody refers to those that have ended, but for the one that decides. */
static void survey_reap(struct coll_survey *survey)
{
	struct coll_survey_run **slot = &survey->runs, *one;

	while ((one = *slot)) {
		if (one->run.exec || one->run.word || one->run.waiting || one == survey->decides) {
			slot = &one->next;
			continue;
		}
		*slot = one->next;
		survey_free(one);
	}
}

void coll_survey_close(struct coll_group *group)
{
	struct coll_survey_run *one;

	while (group->survey && (one = group->survey->runs)) {
		group->survey->runs = one->next;
		survey_free(one);
	}
	if (group->own)
		group->events = NULL;
	free(group->survey);
	free(group->samples);
	free(group->own);
	group->survey = NULL;
	group->samples = NULL;
	group->own = NULL;
}

/* ---- the sum ---------------------------------------------------------------- */

/*
 * What sampling adds to a call on average takes its half of the time; asking the kernel for lost cores, too. Of short
 * calls between which a program computes, that half would be many.
 */
static void survey_pace(struct coll_group *group, uint64_t ns_a_call)
{
	struct coll_survey *survey = group->survey;
	uint32_t every = survey->mostly_short ? SAMPLE_SELDOM : SAMPLE_OFTEN;

	survey->delays.call_ns = ns_a_call;
	/* Noise that is answered makes calls short: it is not to be forgotten for that. */
	survey->looks = ns_a_call >= SURVEY_LOOKS_NS || group->options.machine.link_noise.rate > 0;
	survey->adds = SURVEY_SAMPLED_NS + (survey->looks ? SURVEY_LOOKED_NS : 0);
	while (every < SAMPLE_RARELY && every * ns_a_call < 2 * survey->adds * SURVEY_SHARE)
		every *= 2;
	if (every > group->samples->every || 2 * every < group->samples->every)
		coll_samples_pace(group->samples, every, group->next_run);	/* which empties the table */
}

/* A core that ranks share has the work of all of these. */
static uint64_t survey_work(const struct coll_group *group)
{
	const double crowding = group->options.machine.crowding;

	return group->survey->work * (crowding < 1 ? 1 : crowding < group->ranks ? crowding : group->ranks);
}

/*
 * So many calls that a survey like the latest one has what sampling leaves, half at least. Rank 0 sees what it takes
 * until it has ended: not the work of ranks which came earlier, nor what it takes to use what was found. So the longer
 * one counts.
 */
static uint32_t survey_interval(const struct coll_group *group, const struct coll_survey_sum *sum,
				uint32_t calls)
{
	const double sampled = (double)group->survey->adds / group->samples->every * calls;
	const uint32_t least = group->survey->mostly_short ? SURVEY_CALLS_SHORT : SURVEY_CALLS_MIN;
	double interval = sum->elapsed >= (uint64_t)SURVEY_LONG_NS * calls ? SURVEY_CALLS_MIN : SURVEY_SECOND;
	double left;

	if (sum->cost && sum->elapsed) {
		const double work = (double)sum->work / group->ranks, cost = work > sum->cost ? work : sum->cost;

		left = (double)sum->elapsed / SURVEY_SHARE - sampled;
		if (left < sum->elapsed / (2.0 * SURVEY_SHARE))
			left = sum->elapsed / (2.0 * SURVEY_SHARE);
		interval = cost * calls / left;
	}
	return interval < least ? least :
	       interval > SURVEY_CALLS_MAX ? SURVEY_CALLS_MAX : (uint32_t)interval;
}

/* What messages cost now is in runs from here on. */
static uint32_t survey_recent(const struct coll_group *group, uint32_t number)
{
	const uint32_t recent = SAMPLE_CELLS * group->samples->every;

	return number > recent ? number - recent : 0;
}

/* What ranks told of themselves; of more ranks than slots also what others told in the surveys before. */
static void survey_take_own(struct coll_survey *survey, const struct coll_survey_sum *sum, uint32_t ranks,
			    struct coll_samples_found *found)
{
	struct coll_own_found now[OWN_SLOTS];
	uint32_t count = 0, older = ranks > OWN_SLOTS ? survey->owns : 0, i;

	for (i = 0; i < OWN_SLOTS && i < ranks; i++)	/* others have no rank, but a lying one's votes */
		count += coll_own_read(&sum->own[i], &now[count]);
	if (older > OWN_KEPT * OWN_SLOTS - count)
		older = OWN_KEPT * OWN_SLOTS - count;
	memmove(survey->own + count, survey->own, older * sizeof(*survey->own));
	memcpy(survey->own, now, count * sizeof(*now));
	found->own = survey->own;
	found->owns = survey->owns = count + older;
}

static void survey_take_sum(struct coll_group *group, const struct coll_survey_run *one)
{
	struct coll_survey *survey = group->survey;
	struct coll_sample sample[SAMPLE_CELLS];
	const uint32_t number = one->sum.number;	/* ours may differ: runs wait for the kernel */
	struct coll_samples_found found = {
		.sample = sample,
		.call = one->call,
		.ranks = group->ranks,
		.seconds = one->sum.elapsed * 1e-9,
		.looks = one->looks,
		.held = one->looks && one->sum.accounts == group->ranks,
		.own_cores = !one->sum.crowded,
		.told = one->sum.told,
		.stolen = one->sum.stolen,
		.from = survey->counted,
		.until = number - SURVEY_LAG,
		.recent = survey_recent(group, number),
	};
	bool changed;

	/*
	 * Where ranks share cores, they wait for these most of the time, which the costs of algorithms have
	 * already (crowded_cost()): nobody is late, and no message slow.
	 */
	found.shared = !found.own_cores && !coll_options_measure_first(&group->context->options);
	if (one->sum.blocking != group->ranks)
		return;
	survey->taken = true;
	survey->counted = found.until;
	found.samples = coll_samples_collect(group->samples, one->sum.cell, sample);
	found.delays = coll_delays_collect(&survey->delays, one->sum.delay, one->sum.notes);
	found.received = one->sum.received;
	found.unmissed = one->sum.unmissed;
	survey_take_own(survey, &one->sum, group->ranks, &found);
	changed = group->context->job->surveyed(group, &found);
	/* Where ranks share cores a call takes turns of the scheduler, and more than its sample. */
	survey->mostly_short = !one->sum.crowded && 2 * one->sum.short_calls > (uint64_t)one->calls * group->ranks;
	survey_pace(group, one->calls ? one->sum.elapsed / one->calls : 0);
	survey->interval = survey_interval(group, &one->sum, one->calls);
	survey->due = one->call + survey->interval;
	if (!changed)
		return;
	group->costs_agreed++;
	coll_planned_forget(group);
}

/* All ranks do this between the same two runs, with the same sum. */
static void survey_take(struct coll_group *group, const struct coll_survey_run *one)
{
	const uint64_t before = coll_thread_time();

	survey_take_sum(group, one);
	group->survey->work += coll_thread_time() - before;
}

/* ---- the run ------------------------------------------------------------------- */

/* Where ranks share cores, costs are to follow only if that was asked for. */
static bool survey_tells_costs(const struct coll_group *group)
{
	return !group->context->engine.crowded || coll_options_measure_first(&group->context->options);
}

/*
 * Where gamma is not known, and no reduction of the application told it: those that arrive in pieces are no samples of
 * it. Ranks that never reduce would outvote those that do.
 */
static bool survey_lacks_gamma(const struct coll_group *group, const struct coll_own_found *found)
{
	return found->gamma <= 0 && group->options.machine.gamma <= 0;
}

static void survey_tell_own(struct coll_group *group, struct coll_survey_run *one)
{
	const uint32_t slot = coll_own_slot_of(group->rank, group->ranks, one->call);
	struct coll_own_found found;

	if (slot == COLL_NONE || !survey_tells_costs(group))
		return;
	found = coll_own_fit(group->own, &group->options.machine, survey_recent(group, group->next_run));
	if (survey_lacks_gamma(group, &found))
		found.gamma = coll_own_gamma(SURVEY_GAMMA_BYTES, SURVEY_GAMMA_ROUNDS);
	one->sum.own[slot] = coll_own_write(&found);
}

static struct coll_survey_run *survey_make(struct coll_group *group, bool blocking)
{
	struct coll_survey *survey = group->survey;
	struct coll_survey_run *one = calloc(1, sizeof(*one));

	if (!one)
		return NULL;
	one->call = survey->calls;
	one->calls = survey->calls - survey->latest;
	one->looks = survey->looks;
	one->began = coll_now();
	one->run.group = group;
	one->run.out = &one->sum;
	one->sum.blocking = blocking;
	one->sum.accounts = one->looks && coll_core_wait_has(&group->context->core_wait);
	one->sum.crowded = group->context->engine.crowded;
	one->sum.short_calls = survey->short_calls;
	one->sum.told = one->looks && coll_stolen_ask(&group->context->stolen, group->context->flight.page,
						      one->began, &one->sum.stolen);
	if (!one->sum.told)
		one->sum.stolen = (struct coll_stolen){ .seen = 0 };
	if (!group->rank) {
		one->sum.elapsed = one->began - survey->since;
		one->sum.cost = survey->cost;
		one->sum.number = group->next_run;
	}
	one->sum.work = survey_work(group);
	one->sum.received = group->received - survey->received;
	one->sum.notes = survey->delays.notes;
	one->sum.unmissed = survey->delays.unmissed;
	coll_delays_take(&survey->delays, one->sum.delay);
	survey_tell_own(group, one);
	memcpy(one->sum.cell, group->samples->cell, sizeof(one->sum.cell));
	return one;
}

static int survey_start(struct coll_survey_run *one, uint64_t ns)
{
	const uint64_t deadline = one->began + ns;
	struct coll_group *group = one->run.group;
	struct coll_call call = coll_call_of(group, COLL_ALLREDUCE);
	int error;

	call.type = COLL_UINT64;
	call.element = sizeof(uint64_t);
	call.count = sizeof(one->sum) / sizeof(uint64_t);
	call.reduction = COLL_SUM;
	call.in_place = true;
	error = coll_planned_get(group, &call, COLL_OWN_CALL, &one->run.planned);
	if (error)
		return error;
	one->run.allowed = ns;
	return group->context->offload ? coll_offload_start(&one->run, deadline) :
					 coll_exec_start(&one->run, deadline);
}

/* Where ranks do not block, nobody takes what a survey finds: samples are to cost less and less. */
static void survey_tells_nothing(struct coll_group *group)
{
	const uint32_t every = group->samples->every;

	group->survey->looks = false;
	coll_samples_pace(group->samples, every < SAMPLE_RARELY ? 2 * every : SAMPLE_RARELY, group->next_run);
}

/*
 * Until its sum says otherwise, all ranks expect the next one twice as far away, and one call more:
 * a program may start the same call of each so many, instead of blocking in it.
 */
static void survey_began(struct coll_group *group, struct coll_survey_run *one, bool blocking)
{
	struct coll_survey *survey = group->survey;

	one->next = survey->runs;
	survey->runs = one;
	survey->decides = blocking ? one : NULL;
	survey->interval = survey->interval < SURVEY_CALLS_MAX / 2 ? 2 * survey->interval :
								     SURVEY_CALLS_MAX;
	survey->due = one->call + survey->interval + 1;
	survey->latest = one->call;
	survey->short_calls = 0;
	if (!survey->taken)
		survey_tells_nothing(group);
	survey->taken = false;
	survey->since = one->began;
	survey->received = group->received;
	survey->cost = 0;
}

struct coll_run *coll_survey_run(const struct coll_group *group, uint32_t call)
{
	struct coll_survey_run *one;

	for (one = group->survey->runs; one; one = one->next)
		if (one->call == call)
			return &one->run;
	return NULL;
}

bool coll_survey_has(const struct coll_group *group, const struct coll_run *run)
{
	const struct coll_survey_run *one = group->survey ? group->survey->runs : NULL;

	while (one && &one->run != run)
		one = one->next;
	return one;
}

struct coll_machine *coll_survey_machine(const struct coll_group *group)
{
	return group->survey ? &group->survey->machine : NULL;
}

void coll_survey_undo(const struct coll_group *from, struct coll_group *to)
{
	if (!from->survey)
		return;
	to->options.machine = from->survey->machine;
	to->costs = from->survey->costs;
	coll_late_ranks_forget(&to->options.machine, &to->costs.late);
}

void coll_survey_ended(struct coll_group *group, uint32_t call, uint64_t now)
{
	struct coll_survey *survey = group->survey;

	if (survey->runs && survey->runs->call == call && !survey->cost)
		survey->cost = now - survey->since;
}

struct coll_run *coll_survey_decides(struct coll_group *group)
{
	const struct coll_survey *survey = group->survey;

	return survey && survey->decides && survey->calls > survey->decides->call ?
			&survey->decides->run : NULL;
}

int coll_survey_begin(struct coll_run *run, uint64_t ns)
{
	struct coll_group *group = run->group;
	struct coll_survey *survey = group->survey;
	struct coll_survey_run *one;
	uint64_t before;
	int error;

	if (!survey && group->unsampled)
		return 0;
	error = survey ? 0 : survey_open(group);
	if (error)
		return error;
	survey = group->survey;
	if (coll_survey_decides(group)) {
		one = survey->decides;
		survey->decides = NULL;
		if (!one->run.status && group->state == GROUP_OK)
			survey_take(group, one);
	}
	if (survey->calls != survey->due)
		return 0;
	if (group->state == GROUP_OK)	/* else an exec that was given up may refer to a sum */
		survey_reap(survey);
	before = coll_thread_time();
	one = survey_make(group, run->local);
	error = one ? survey_start(one, ns) : -ENOMEM;
	if (error) {
		if (one)
			survey_free(one);
		return error;
	}
	survey_began(group, one, run->local);
	survey->work = coll_thread_time() - before;
	run->survey = one->call;
	return 0;
}
