// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Continuing after a failure. The survivors agree on a flag and on the failed ranks,
 * through the store, whose keys are written once:
 *
 *	agree/<group>/<number>/<rank>		that rank's opinion
 *	agree/<group>/<number>/decision		the decision for all
 *
 * The lowest rank that is not known to have failed collects the others' opinions and
 * decides. A rank without an opinion in time has failed. If the decision does not come, the
 * next rank decides with the opinions that are there. Several ranks may decide: the first
 * decision that is written holds, and all ranks read that one. So all ranks that return
 * have the same outcome, whichever rank dies meanwhile. An opinion is forgotten after the next
 * agreement.
 *
 * Nobody waits for a rank whose process is known to have ended, or of which an opinion says
 * that it has failed. Time for the rest, in parts of the group's deadline: 3/8 for the
 * opinions, 3/16 more for the decision, then 1/8 for each further rank that may have to decide.
 * Ranks learn of a failure within 1/32 of each other (health.c), so these steps do not overlap.
 * As long as nobody knows of a failure, a rank that is missing may still be in a call that this
 * rank has passed, waiting for one that is stopped, and notices late (health.c): so all this
 * begins one deadline later, or when the first opinion with a failed rank comes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcoll/exec/failure.h"
#include "libcoll/exec/group.h"
#include "libcoll/exec/health.h"
#include "libcoll/exec/poll.h"
#include "libcoll/exec/survey.h"
#include "libcoll/progress/progress.h"

enum { SLICE_NS = 20000000 };	/* waits for the store between polls of the engine */

/* An opinion or the decision: the flag, then a bit for each failed rank. */
struct opinion {
	uint64_t flag;
	uint8_t failed[COLL_BOOT_VALUE_MAX - sizeof(uint64_t)];
};

struct agreement {
	struct coll_group *group;
	uint32_t number;
	size_t bytes;			/* bytes of an opinion in use */
	bool calm;			/* this rank knew of no failure when it came */
	uint64_t start, deadline_ns;
	struct opinion mine, decision;
};

static bool has_failed(const struct opinion *opinion, uint32_t rank)
{
	return opinion->failed[rank / 8] >> rank % 8 & 1;
}

static bool knows_failure(const struct agreement *a, const struct opinion *opinion)
{
	size_t i;

	for (i = 0; i < a->bytes - sizeof(opinion->flag); i++)
		if (opinion->failed[i])
			return true;
	return false;
}

static void set_failed(struct opinion *opinion, uint32_t rank)
{
	opinion->failed[rank / 8] |= 1 << rank % 8;
}

/* ---- the store ---------------------------------------------------------- */

static void key_of(const struct agreement *a, char *key, const char *what)
{
	snprintf(key, COLL_BOOT_KEY_MAX, "agree/%" PRIx64 "/%u/%s", a->group->id, a->number, what);
}

static int opinion_put(const struct agreement *a, const char *what, const struct opinion *opinion)
{
	char key[COLL_BOOT_KEY_MAX];

	key_of(a, key, what);
	return coll_boot_put(a->group->context->boot, key, opinion, a->bytes);
}

/*
 * A rank has an opinion on this agreement when it has left the one before: all that are not failed have,
 * so nobody decides there any more. Whoever counts as failed and is still there finds the decision, which stays.
 */
static void opinion_forget_before(const struct agreement *a)
{
	char key[COLL_BOOT_KEY_MAX];

	if (!a->number)
		return;
	snprintf(key, sizeof(key), "agree/%" PRIx64 "/%u/%u", a->group->id, a->number - 1, a->group->rank);
	(void)coll_boot_forget(a->group->context->boot, key);	/* then it stays */
}

/* Of an opinion or decision that rank `by` is to give; -ETIMEDOUT also if it cannot any more. */
static int opinion_get(const struct agreement *a, const char *what, uint32_t by,
		       struct opinion *opinion, uint64_t until)
{
	struct coll_context *context = a->group->context;
	char key[COLL_BOOT_KEY_MAX];
	uint64_t now, slice;
	size_t bytes;
	bool ended;
	int error;

	key_of(a, key, what);
	do {	/* other ranks may still need the news of the failure */
		coll_context_poll(context, 0);
		ended = by != COLL_NONE && coll_health_rank_has_ended(a->group, by);
		now = coll_now();
		slice = now + SLICE_NS < until ? now + SLICE_NS : until;
		bytes = sizeof(*opinion);
		error = coll_boot_get(context->boot, key, opinion, &bytes, slice);
	} while (error == -ETIMEDOUT && slice < until && !ended);
	return error ? error : bytes == a->bytes ? 0 : -EPROTO;
}

static int rank_opinion_get(const struct agreement *a, uint32_t rank, struct opinion *opinion,
			    uint64_t until)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", rank);
	return opinion_get(a, name, rank, opinion, until);
}

/* ---- deciding ----------------------------------------------------------- */

/* Parts of the deadline, in sixteenths. */
enum { ALL_CAME = 6, DECIDED = 9, TAKE_OVER = 2, LAST = 15 };

static uint64_t sixteenths_ns(const struct agreement *a, unsigned int sixteenths)
{
	return a->deadline_ns / 16 * sixteenths;
}

static uint64_t survive_moment(const struct agreement *a, unsigned int sixteenths)
{
	return a->start + (a->calm ? a->deadline_ns : 0) + sixteenths_ns(a, sixteenths);
}

/* Adds one rank's opinion. -ETIMEDOUT: it is not there yet. */
static int collect_one(struct agreement *a, uint32_t rank, uint64_t until)
{
	struct opinion theirs;
	int error = rank_opinion_get(a, rank, &theirs, until);
	size_t i;

	if (error)
		return error;
	a->decision.flag &= theirs.flag;
	for (i = 0; i < sizeof(theirs.failed) && i + sizeof(theirs.flag) < a->bytes; i++)
		a->decision.failed[i] |= theirs.failed[i];
	return 0;
}

static int collect_all(struct agreement *a, uint64_t until)
{
	struct coll_group *group = a->group;
	uint8_t *has = calloc(group->ranks, 1);
	uint64_t wait = 0, news;
	uint32_t rank, missing;
	bool calm = a->calm;
	int error = has ? 0 : -ENOMEM;

	do {	/* those that are there first: they may say which others have failed */
		missing = 0;
		for (rank = 0; rank < group->ranks && !error; rank++) {
			if (rank == group->rank || has[rank] || has_failed(&a->decision, rank))
				continue;
			error = collect_one(a, rank, coll_now() + wait);
			has[rank] = !error;
			if (error != -ETIMEDOUT)
				continue;
			error = 0;
			if (coll_now() >= until || coll_health_rank_has_ended(group, rank))
				set_failed(&a->decision, rank);
			else
				missing++;
		}
		wait = SLICE_NS;
		if (calm && knows_failure(a, &a->decision)) {
			calm = false;
			news = coll_now() + sixteenths_ns(a, ALL_CAME);
			until = news < until ? news : until;
		}
	} while (missing && !error);
	free(has);
	return error;
}

/* The first decision that is written holds, even another rank's. */
static int survive_decide(struct agreement *a, uint64_t until)
{
	int error;

	a->decision = a->mine;
	error = collect_all(a, until);
	if (error)
		return error;
	error = opinion_put(a, "decision", &a->decision);
	if (error == -EEXIST)
		error = opinion_get(a, "decision", COLL_NONE, &a->decision,
				    survive_moment(a, 16));
	return error;
}

/* Waits for the lower ranks, then decides. */
static int reach_decision(struct agreement *a)
{
	unsigned int collected = ALL_CAME, timeout = DECIDED;
	uint32_t rank;
	int error;

	for (rank = 0; rank < a->group->rank; rank++) {
		if (has_failed(&a->mine, rank))
			continue;
		error = opinion_get(a, "decision", rank, &a->decision,
				    survive_moment(a, timeout));
		if (error != -ETIMEDOUT)
			return error;
		set_failed(&a->mine, rank);
		collected = timeout;
		timeout += timeout < LAST ? TAKE_OVER : 0;
	}
	return survive_decide(a, survive_moment(a, collected));
}

static void take_over_failed(const struct agreement *a)
{
	struct coll_group *group = a->group;
	uint32_t rank;

	for (rank = 0; rank < group->ranks; rank++)
		if (has_failed(&a->decision, rank))
			group->failed[rank] = 1;
}

static int survive_refuse(struct coll_group *group, int error, const char *reason)
{
	coll_group_explain(group, "%s: %s", coll_strerror(error), reason);
	return error;
}

static int survive_agree(struct coll_group *group, uint64_t flag, struct agreement *a)
{
	const size_t bits = (group->ranks + 7) / 8;
	char name[16];
	uint32_t rank;
	int error;

	memset(a, 0, sizeof(*a));
	a->group = group;
	a->number = group->agrees++;
	a->bytes = sizeof(flag) + bits;
	group->watchful = false;
	coll_group_watch(group);	/* ranks that are still in calls of it may ask this one */
	a->start = coll_now();
	a->deadline_ns = group->options.deadline_ns;
	a->mine.flag = flag;
	if (bits > sizeof(a->mine.failed))
		return survive_refuse(group, -EOPNOTSUPP, "the group has too many ranks to agree");
	for (rank = 0; rank < group->ranks; rank++)
		if (group->failed[rank])
			set_failed(&a->mine, rank);
	a->calm = group->state == GROUP_OK && !knows_failure(a, &a->mine);
	snprintf(name, sizeof(name), "%u", group->rank);
	error = opinion_put(a, name, &a->mine);
	if (!error)
		error = reach_decision(a);
	if (error)
		return survive_refuse(group, error, "the job's store did not answer");
	if (has_failed(&a->decision, group->rank))
		return survive_refuse(group, -ECONNRESET,
				      "the other ranks have decided that this rank failed");
	take_over_failed(a);
	opinion_forget_before(a);
	return 0;
}

struct agreeing {
	struct coll_group *group;
	uint64_t flag;
	struct coll_group *survivors;
	int error;
};

static void agree_here(void *argument)
{
	struct agreeing *agreeing = argument;
	struct agreement a;

	agreeing->error = survive_agree(agreeing->group, agreeing->flag, &a);
	agreeing->flag = a.decision.flag;
}

int coll_agree(struct coll_group *group, uint64_t *flag)
{
	struct agreeing agreeing = { .group = group, .flag = *flag };
	const char *why;
	int error = coll_progress_check(group->context, &why);

	if (error)
		return error;
	coll_progress_do(group->context, agree_here, &agreeing);
	if (!agreeing.error)
		*flag = agreeing.flag;
	return agreeing.error;
}

/* ---- shrinking ---------------------------------------------------------- */

/* Names the survivors' group; odd where part_id() of group.c multiplies. */
static uint64_t survivors_id(const struct agreement *a)
{
	uint64_t id = (a->group->id ^ 0xd6e8feb86659fd93ull) + a->number;

	id = (id ^ id >> 32) * 0xff51afd7ed558ccdull;
	return id ^ id >> 31;
}

static int survive_shrink(struct coll_group *group, struct coll_group **survivors)
{
	uint32_t *world, rank, ranks = 0, mine = 0;
	struct agreement a;
	int error;

	error = survive_agree(group, 0, &a);
	if (error)
		return error;
	world = malloc(group->ranks * sizeof(*world));
	if (!world)
		return coll_group_no_memory(group, "shrink");
	for (rank = 0; rank < group->ranks; rank++) {
		if (has_failed(&a.decision, rank))
			continue;
		if (rank == group->rank)
			mine = ranks;
		world[ranks++] = group->world[rank];
	}
	error = coll_group_make(group->context, survivors_id(&a), world, mine, ranks, survivors);
	if (!error) {
		coll_group_inherit(*survivors, group);
		coll_survey_undo(group, *survivors);
	}
	if (!error && group->fabric && ranks > 1)
		group->context->job->agree(*survivors);	/* if it fails, the new group has failed */
	return error;
}

static void shrink_here(void *argument)
{
	struct agreeing *agreeing = argument;

	agreeing->error = survive_shrink(agreeing->group, &agreeing->survivors);
}

int coll_shrink(struct coll_group *group, struct coll_group **survivors)
{
	struct agreeing agreeing = { .group = group };
	const char *why;
	int error = coll_progress_check(group->context, &why);

	*survivors = NULL;
	if (error)
		return error;
	coll_progress_do(group->context, shrink_here, &agreeing);
	*survivors = agreeing.survivors;
	return agreeing.error;
}
