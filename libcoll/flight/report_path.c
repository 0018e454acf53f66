// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The path by which a rank's end was decided, in one timed run. */
#include "report_path.h"
#include "timed.h"

enum {
	PATH_MAX_STEPS = 256, /* records that contradict themselves make no endless path */
	RUNS_BACK = 8,
};

struct trail {
	const struct report_runs *runs;
	const struct report_record *from; /* whose time is lost, in the run that is looked at ... */
	double began;			  /* ... since then */
	report_lost *lost;
	void *argument;
	uint32_t back; /* runs so far */
};

static int compare_to(const struct report_record *record, uint64_t group, uint32_t number,
		      uint32_t rank)
{
	if (record->run->group != group)
		return record->run->group < group ? -1 : 1;
	if (record->run->number != number)
		return record->run->number < number ? -1 : 1;
	return record->rank < rank ? -1 : record->rank > rank;
}

const struct report_record *coll_report_find(const struct report_runs *runs,
					     const struct report_record *of, uint32_t back,
					     uint32_t rank)
{
	const uint32_t number = of->run->number - back;
	size_t low = 0, high = runs->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare_to(&runs->record[middle], of->run->group, number, rank) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < runs->count && !compare_to(&runs->record[low], of->run->group, number, rank)
		       ? &runs->record[low]
		       : NULL;
}

size_t coll_report_run_end(const struct report_runs *runs, size_t first)
{
	size_t end = first + 1;

	while (end < runs->count && coll_report_same_run(&runs->record[first], &runs->record[end]))
		end++;
	return end;
}

bool coll_report_is_first(const struct report_runs *runs, const struct report_record *record)
{
	return record->run->number && !coll_report_find(runs, record, 1, record->rank);
}

bool coll_report_same_block(const struct report_record *a, const struct report_record *b)
{
	return a->run->group == b->run->group &&
	       a->run->number / COLL_FLIGHT_BLOCK == b->run->number / COLL_FLIGHT_BLOCK;
}

static double ticks_ns(uint32_t ticks)
{
	return (double)ticks * COLL_FLIGHT_TICK;
}

/* The part of [since, until) in which this rank waited at all. */
static double path_within(const struct trail *path, double since, double until)
{
	if (since < path->began)
		since = path->began;
	return until > since ? until - since : 0;
}

static void path_lose(const struct trail *path, enum coll_flight_loss_kind kind, uint32_t rank,
		      uint32_t from, double ns)
{
	if (ns > 0)
		path->lost(path->argument, kind, rank, from, ns);
}

/* ... by the clocks of two ranks. */
static void path_blame(const struct trail *path, enum coll_flight_loss_kind kind,
		       const struct report_record *rank, const struct report_record *other,
		       uint32_t from, double ns)
{
	if (rank->host != other->host && ns <= path->runs->blur)
		kind = COLL_FLIGHT_LOSS_UNKNOWN;
	path_lose(path, kind, rank->rank, from, ns);
}

/* Of `ns` on the path, what the rank had no core. Returns the rest. */
static double path_stolen(const struct trail *path, const struct report_record *at, double ns)
{
	const double stolen = ticks_ns(at->run->stolen), part = ns < stolen ? ns : stolen;

	path_lose(path, COLL_FLIGHT_LOSS_STOLEN, at->rank, COLL_FLIGHT_NO_RANK, part);
	return ns - part;
}

/* The last message before `until` that the rank has waited for. NULL: none. */
static const struct coll_flight_exchange *last_wait(const struct trail *path,
						    const struct report_record *at, double until)
{
	const double began = report_began(at, path->runs->base);
	const struct coll_flight_exchange *last = NULL;
	uint32_t i;

	for (i = 0; i < at->run->exchanges; i++) {
		const struct coll_flight_exchange *with = &at->run->with[i];

		if (report_waited(with) && began + ticks_ns(with->arrived) <= until &&
		    (!last || with->arrived > last->arrived))
			last = with;
	}
	return last;
}

static void path_walk(const struct trail *path, const struct report_record *at, double until);

/* By how much the rank left the run before later than the one that is followed. */
static double left_later(const struct trail *path, const struct report_record *at,
			 const struct report_record **before)
{
	const struct report_record *from =
		coll_report_find(path->runs, path->from, 1, path->from->rank);
	double later;

	*before = coll_report_find(path->runs, at, 1, at->rank);
	if (path->back == RUNS_BACK || !*before || !from || !(*before)->run->ended ||
	    !from->run->ended)
		return 0;
	later = report_time(*before, path->runs->base, (*before)->run->ended) -
		report_time(from, path->runs->base, from->run->ended);
	return later > 0 ? later : 0;
}

/*
 * Of the time that it did something else, what it had no core: before its call, as `from` says.
 * Returns the rest.
 */
static double late_without_core(const struct trail *path, const struct report_record *at, double ns)
{
	const double stolen = ticks_ns(at->run->stolen_before), part = ns < stolen ? ns : stolen;

	path_lose(path, COLL_FLIGHT_LOSS_STOLEN, at->rank, at->rank, part);
	return ns - part;
}

/* A rank began so late: it had left the run before late, or it did something else for long. */
static void path_late(const struct trail *path, const struct report_record *at, double late)
{
	const struct report_record *before;
	struct trail further = *path;
	double later = left_later(path, at, &before), left;

	if (later > late)
		later = late;
	path_blame(path, COLL_FLIGHT_LOSS_LATE, at, path->from, COLL_FLIGHT_NO_RANK,
		   late_without_core(path, at, late - later));
	if (!(later > 0))
		return;
	left = report_time(before, path->runs->base, before->run->ended);
	further.from = coll_report_find(path->runs, path->from, 1, path->from->rank);
	further.began = left - later;
	further.back++;
	path_walk(&further, before, left);
}

/* The first rank of the path: what it did itself, and what came before it began. */
static void path_origin(const struct trail *path, const struct report_record *at, double until)
{
	const double began = report_began(at, path->runs->base);

	path_stolen(path, at, path_within(path, began, until));
	if (at != path->from)
		path_late(path, at, path_within(path, path->began, began < until ? began : until));
}

/*
 * When it was sent is not known: the sender's page is elsewhere, or it had too many partners. It
 * was after the sender's last wait before that, and after it began; the path goes on there.
 */
static const struct report_record *path_jump(const struct trail *path,
					     const struct report_record *at,
					     const struct report_record *sender,
					     const struct coll_flight_exchange *with,
					     double *until)
{
	const double began = report_began(at, path->runs->base);
	const double posted = began + ticks_ns(with->posted),
		     arrived = began + ticks_ns(with->arrived);
	const struct coll_flight_exchange *last = sender ? last_wait(path, sender, arrived) : NULL;
	double since = posted;

	if (sender) {
		since = report_began(sender, path->runs->base);
		since += last ? ticks_ns(last->arrived) : 0;
	}
	if (since > arrived)
		since = arrived;
	*until = since > posted ? since : posted;
	path_lose(path, COLL_FLIGHT_LOSS_UNKNOWN, with->peer, COLL_FLIGHT_NO_RANK,
		  path_within(path, *until, arrived));
	if (!sender)
		return NULL;
	return since > posted ? sender : at;
}

/*
 * Over a message that was waited for, to its sender. Where the message was under way before it was
 * waited for, the path stays. Returns where it goes on, NULL: it ends; *until: when.
 */
static const struct report_record *path_cross(const struct trail *path,
					      const struct report_record *at,
					      const struct coll_flight_exchange *with,
					      double *until)
{
	const struct report_runs *runs = path->runs;
	const struct report_record *sender = coll_report_find(runs, at, 0, with->peer);
	const struct coll_flight_exchange *other =
		sender ? report_exchange(sender->run, at->rank) : NULL;
	const double began = report_began(at, runs->base);
	const double posted = began + ticks_ns(with->posted),
		     arrived = began + ticks_ns(with->arrived);
	double sent, due, late;

	if (!other || !other->sent)
		return path_jump(path, at, sender, with, until);
	sent = report_began(sender, runs->base) + ticks_ns(other->sent);
	due = sent + coll_report_usual_ns(runs->flights, at->run, sender->host != at->host);
	late = path_within(path, due > posted ? due : posted, arrived);
	late = path_stolen(path, sender, path_stolen(path, at, late));
	path_blame(path, COLL_FLIGHT_LOSS_LINK, at, sender, with->peer, late);
	*until = sent > posted ? sent : posted;
	return sent > posted ? sender : at;
}

static void path_walk(const struct trail *path, const struct report_record *at, double until)
{
	uint32_t steps;

	for (steps = 0; at && until > path->began && steps < PATH_MAX_STEPS; steps++) {
		const struct coll_flight_exchange *with = last_wait(path, at, until);
		double arrived;

		if (!with) {
			path_origin(path, at, until);
			return;
		}
		arrived = report_began(at, path->runs->base) + ticks_ns(with->arrived);
		path_stolen(path, at, path_within(path, arrived, until));
		at = path_cross(path, at, with, &until);
	}
}

void coll_report_follow(const struct report_runs *runs, const struct report_record *from,
			report_lost *lost, void *argument)
{
	const struct trail path = { runs, from, report_began(from, runs->base), lost, argument, 0 };

	path_walk(&path, from, report_time(from, runs->base, from->run->ended));
}
