// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What must hold after a round, whatever happened in it. */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "round.h"

__attribute__((format(printf, 2, 3)))
static void find(struct round *round, const char *format, ...)
{
	va_list arguments;

	if (round->finding[0])
		return;
	va_start(arguments, format);
	vsnprintf(round->finding, sizeof(round->finding), format, arguments);
	va_end(arguments);
}

static bool is_victim(const struct round *round, int rank)
{
	uint32_t i;

	if (round->kind == KIND_MEMORY || round->kind == KIND_DESCRIPTOR)
		return round->event[0].victim == rank && round->board->rank[rank].injected;
	for (i = 0; i < round->events; i++)
		if (round->event[i].victim == rank && round->event[i].injected)
			return true;
	return false;
}

/* Whether a fault may make calls fail at all. */
static bool is_fatal(const struct round *round)
{
	switch (round->kind) {
	case KIND_KILL:
	case KIND_STOP_LONG:
	case KIND_CUT:
	case KIND_RESET:
	case KIND_HALF_OPEN:
	case KIND_MEMORY:
	case KIND_DESCRIPTOR:
	case KIND_FULL:
		return round->injected;
	default:
		return false;
	}
}

/* A connection has two ends: either may be named. */
static bool may_be_blamed(const struct round *round, int rank)
{
	int i;

	if (rank < 0)
		return false;
	if (!round_cuts(round))
		return is_victim(round, rank);
	for (i = 0; i < round->ranks; i++)
		if (round->cut[i] >> rank & 1 || (round->cut[i] && i == rank))
			return true;
	return false;
}

/* The group was revoked after the error of another rank, which that one has told. */
static bool is_told_elsewhere(const struct board_error *error)
{
	return error->error == -ECANCELED;
}

/* Of its own resources a rank may run out without naming anybody. */
static bool is_own(const struct round *round, int rank, const struct board_error *error)
{
	return is_victim(round, rank) &&
	       (round->kind == KIND_MEMORY || round->kind == KIND_DESCRIPTOR) && error->error;
}

static void judge_error(struct round *round, int rank, const struct board_error *error)
{
	if (!is_fatal(round))
		find(round, "rank %d: a call failed without a reason: %s", rank, error->text);
	else if (!is_told_elsewhere(error) && !is_own(round, rank, error) &&
		 !may_be_blamed(round, error->blamed))
		find(round, "rank %d blames rank %d, which is not to blame: %s", rank,
		     error->blamed, error->text);
}

/* A fault while ranks join: coll_open() may fail; it names nobody on the board. */
static bool may_be_refused(const struct round *round)
{
	uint32_t i;

	if (round->kind == KIND_MEMORY || round->kind == KIND_DESCRIPTOR)
		return is_fatal(round);
	if (round->kind == KIND_MODULE)	/* progress=kernel without it */
		return round->injected;
	if (round->kind == KIND_FULL)	/* the file by which ranks find the store */
		return !round->launched;
	for (i = 0; i < round->events; i++)
		if (round->event[i].injected && round->event[i].early)
			return true;
	return false;
}

/* Without a launcher rank 0's death is the end of the store, and of the job. */
static bool store_is_lost(const struct round *round)
{
	return !round->launched && round->board->rank[0].state != STATE_DONE &&
	       (is_victim(round, 0) || may_be_blamed(round, 0));
}

/* The others go on without a rank that did not answer, or that they were cut from. */
static bool may_be_excluded(const struct round *round, int rank)
{
	if (store_is_lost(round))
		return true;
	if (round->kind == KIND_MEMORY || round->kind == KIND_DESCRIPTOR)
		return is_victim(round, rank);	/* its links were lost */
	return round->kind == KIND_STOP_LONG ? is_victim(round, rank) :
	       round_cuts(round) ? may_be_blamed(round, rank) : false;
}

static void judge_state(struct round *round, int rank)
{
	static const char *const states[] = {
		"did not begin", "did not leave coll_open()", "ended in the middle",
		"could not join", "was excluded", "has descriptors left", "done",
	};
	const struct board_rank *entry = &round->board->rank[rank];

	if (entry->state == STATE_DONE || (entry->state == STATE_REFUSED && may_be_refused(round)))
		return;
	if (is_victim(round, rank) && round->kind == KIND_KILL)
		return;
	if (entry->state == STATE_EXCLUDED && may_be_excluded(round, rank))
		return;
	find(round, "rank %d %s%s%s", rank, states[entry->state], entry->errors ? ": " : "",
	     entry->errors ? entry->error[entry->errors - 1].text : "");
}

static void judge_rank(struct round *round, int rank)
{
	const struct board_rank *entry = &round->board->rank[rank];
	uint32_t i;

	judge_state(round, rank);
	if (entry->state == STATE_REFUSED)
		return;
	if (is_victim(round, rank) && (round->kind == KIND_KILL || round->kind == KIND_STOP_LONG))
		return;
	if (entry->state == STATE_EXCLUDED && store_is_lost(round))
		return;
	for (i = 0; i < entry->errors; i++) {
		/* The last error of an excluded rank may be that it was: it names nobody. */
		if (entry->state == STATE_EXCLUDED && i == entry->errors - 1 &&
		    entry->error[i].blamed < 0)
			continue;
		judge_error(round, rank, &entry->error[i]);
	}
}

/* Ranks that were in the last group, or not, without having been done. */
static bool is_lost(const struct round *round, int rank)
{
	return round->board->rank[rank].state != STATE_DONE &&
	       ((round->kind == KIND_KILL && is_victim(round, rank)) ||
		may_be_excluded(round, rank));
}

/* All that were done, were done in the same group; of the living ranks nobody was left out. */
static void judge_survivors(struct round *round)
{
	const struct board_rank *first = NULL;
	uint32_t done = 0, lost = 0;
	int i;

	for (i = 0; i < round->ranks; i++) {
		const struct board_rank *rank = &round->board->rank[i];

		lost += is_lost(round, i);
		if (rank->state != STATE_DONE)
			continue;
		if (!first)
			first = rank;
		done++;
		if (rank->generation != first->generation || rank->ranks != first->ranks)
			find(round, "rank %d ended in a group of %u after %u shrinks, another in one "
			     "of %u after %u", i, rank->ranks, rank->generation, first->ranks,
			     first->generation);
	}
	if (!first && !may_be_refused(round) && !store_is_lost(round))
		find(round, "no rank has survived");
	if (first && (first->ranks < done || first->ranks > done + lost))
		find(round, "%u ranks ended well, in a group of %u", done, first->ranks);
}

static void judge_folder(struct round *round, const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, "board") &&
		    strcmp(entry->d_name, "out") && strcmp(entry->d_name, "coll") &&
		    strcmp(entry->d_name, "full") && strncmp(entry->d_name, "colld", 5))
			find(round, "the file %s/%s was left", path, entry->d_name);
	if (folder)
		closedir(folder);
}

/* No files but the round's own. The folder of rendezvous files stays, but they do not. */
static void judge_files(struct round *round)
{
	char rendezvous[100];

	snprintf(rendezvous, sizeof(rendezvous), "%s/coll", round->folder);
	judge_folder(round, round->folder);
	judge_folder(round, rendezvous);
}

void round_judge(struct round *round)
{
	int i;

	if (round->hung)
		find(round, "it hangs: not over after %u s", round->settings->limit_s);
	for (i = 0; i < round->ranks; i++)
		judge_rank(round, i);
	judge_survivors(round);
	if (round->orphans)
		find(round, "processes were left behind");
	if (round->held)
		find(round, "coll.ko does not go, or does not come, though nobody is left");
	judge_files(round);
}
