/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A survey: a group's samples of all ranks, added up by a run of the library's own (option
 * measure=auto or always). It begins on all ranks just before the same run of the application, its *call*,
 * and is under way together with it. That run ends after it.
 *
 * A rank that blocks in the call has begun no other run when the survey ends. If all ranks do,
 * which the sum says, what it found counts from the next run on, for all. Otherwise some may have
 * begun more runs, and nothing changes.
 *
 * The sum has rank 0's clock too: how long the calls and the latest survey took. So all ranks know
 * which call is the next: sampling and surveys together have SURVEY_SHARE of the time.
 */
#ifndef COLL_SURVEY_H
#define COLL_SURVEY_H

#include "delays.h"
#include "own_costs.h"
#include "run.h"
#include "samples.h"

enum {
	SURVEY_UNSEEN = 256,		/* calls of a group that measure=auto lets pass: it may soon be over */
	SURVEY_FIRST = 256,		/* calls before the first survey ... */
	SURVEY_SECOND = 1024,		/* ... and to the next one, while no cost of one is known and
					   calls are short; else SURVEY_CALLS_MIN */
	SURVEY_SHARE = 200,		/* of so much time, samples and surveys may have one part; each
					   of them half, surveys what is left over as well */
	SURVEY_CALLS_MIN = 256,
	SURVEY_CALLS_SHORT = 1024,	/* ... where calls are short: of a hundred none has a survey or a sample */
	SURVEY_CALLS_MAX = 1 << 20,	/* between two surveys */
	SURVEY_LAG = 64,		/* messages of so many runs may be on their way still */
	SURVEY_LOOKS_NS = 20000,	/* where calls take so long, ranks look for lost cores ... */
	SURVEY_LONG_NS = 100000,	/* the second survey comes soon where calls take so long */
	SURVEY_SAMPLED_NS = 3000,	/* a sampled call takes longer by so much; ... */
	SURVEY_LOOKED_NS = 4000,	/* ... by so much more where the kernel is asked twice for lost cores */
	SURVEY_GAMMA_BYTES = 8192,	/* a rank that does not know gamma adds so much, ... */
	SURVEY_GAMMA_ROUNDS = 8,	/* ... so often: some 10 us */
};

/* What is added up: all words are summed. */
struct coll_survey_sum {
	uint64_t blocking;		/* ranks that block in the call */
	uint64_t elapsed, cost;		/* rank 0: ns since the latest survey began, and of it; 0: none */
	uint64_t work;			/* of each rank: ns of its core, to begin that one and to use what it found */
	uint64_t number;		/* rank 0: of its run, as runs of the program are numbered */
	uint64_t accounts;		/* ranks whose kernel tells for how long they have no core */
	uint64_t crowded;		/* ranks that share cores */
	uint64_t short_calls;		/* of the calls, of all ranks: executed in order */
	uint64_t told;			/* ranks whose colld has told what others took of their cores; */
	struct coll_stolen stolen;	/* ... of these */
	struct coll_own_slot own[OWN_SLOTS];
	uint64_t received;		/* messages of the group, since the latest survey: as `delay` is of its runs */
	uint64_t notes, unmissed;	/* of delays, likewise */
	struct coll_delay_cell delay[DELAY_CELLS];
	struct coll_sample_cell cell[SAMPLE_CELLS];
};

struct coll_survey_run {
	struct coll_survey_run *next;
	uint32_t call, calls;		/* calls: since the one before */
	bool looks;			/* its samples tell for how long their ranks had no core */
	uint64_t began;
	struct coll_run run;
	struct coll_survey_sum sum;
};

/* Of a group. */
struct coll_survey {
	uint32_t calls;			/* runs of the application so far */
	uint32_t short_calls;		/* since the latest survey: executed in order, within microseconds */
	uint32_t due;			/* the call of the next survey */
	uint32_t counted;		/* messages of runs before this one were looked at for delays */
	bool looks;			/* samples tell for how long their ranks had no core */
	bool mostly_short;		/* most of the calls before were, of all ranks together */
	uint64_t adds;			/* ns to a sampled call */
	bool taken;			/* what the latest one found, by all ranks: it began without since */
	uint32_t latest, interval;	/* the call of the latest one; calls from there to `due` */
	uint64_t since, cost;		/* when that began; ns, once it has ended */
	uint64_t work;			/* ns of this rank's thread to begin it, and to take what it found */
	struct coll_delays delays;
	uint64_t received;		/* messages of the group, when that began */
	struct coll_survey_run *runs;	/* begun and not freed yet, the latest first */
	struct coll_survey_run *decides;	/* the one that all ranks may go by */
	/* What the latest one found of ranks' own costs; in a group of more than OWN_SLOTS, the latest OWN_KEPT. */
	struct coll_own_found own[OWN_KEPT * OWN_SLOTS];
	uint32_t owns;
	struct coll_machine machine;	/* what the group had before the first one: the same ... */
	struct coll_costs costs;	/* ... on all ranks, also where some have taken one more */
};

/* The survey run that the group's next run has to await, or NULL. */
struct coll_run *coll_survey_decides(struct coll_group *group);

/*
 * Before a run of the application begins, and after what it has to await: takes over what the
 * latest survey found, and begins one if it is due, which has `ns` from now on. On error nothing has
 * begun. Where none is due the clock is not looked at.
 */
int coll_survey_begin(struct coll_run *run, uint64_t ns);

/* Whether the group's next run ends a survey or begins one: its turn is coll_survey_begin()'s. */
static inline bool coll_survey_is_due(const struct coll_group *group)
{
	const struct coll_survey *survey = group->survey;

	return survey ? survey->decides || survey->calls == survey->due : !group->unsampled;
}

/* A run of the application has begun. */
static inline void coll_survey_count(struct coll_group *group)
{
	if (group->survey)
		group->survey->calls++;
	else
		group->unsampled--;
}

/* It has ended without a turn of the engine. */
static inline void coll_survey_count_short(struct coll_group *group)
{
	if (group->survey)
		group->survey->short_calls++;
}

/* The run of the survey with this call, or NULL: it has ended. */
struct coll_run *coll_survey_run(const struct coll_group *group, uint32_t call);

/* Whether the run is one of the group's surveys, which end with them and are no program's. */
bool coll_survey_has(const struct coll_group *group, const struct coll_run *run);

/*
 * What options say of the machine, as coll_survey_undo() leaves it: an option that is set later is to be set there
 * too. NULL: the group has no survey yet, and what it uses is that.
 */
struct coll_machine *coll_survey_machine(const struct coll_group *group);

/* The group `from` has failed, perhaps amid a survey: `to` has the costs from before all of them. */
void coll_survey_undo(const struct coll_group *from, struct coll_group *to);

/* It was seen to have ended. */
void coll_survey_ended(struct coll_group *group, uint32_t call, uint64_t now);

/* The group ends; no run of it is under way. */
void coll_survey_close(struct coll_group *group);

#endif
