// SPDX-License-Identifier: GPL-2.0
/*
 * Whom it counts for: a CPU's sources, found by what they are, in a table with short ways.
 *
 * A CPU sees more and more threads, and each is a source that readers pay for. So, of more than THREADS_KEPT,
 * those that took nothing for QUIET are folded into the rest of their cause: what they had is added to it, and
 * no sum over all sources changes. Their places are given again, with `reused` one more. Where a way is full
 * the thread goes that took nothing for longest. Each new thread looks at more places than one, so there are
 * never many that could go.
 *
 * While a reader copies the sources nothing is folded: it would be read twice, or not at all. Events of a log and parts
 * of a case name their sources; a watch that has these folds none.
 */
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/string.h>

#include "watch.h"

enum { WAY = 32, THREADS_KEPT = 64, PLACES = 16 };
static const u64 QUIET = 10 * NSEC_PER_SEC;

/* What it is of. */
struct source_key {
	u8 cause;
	u32 number;
	u64 born;	/* of a thread, whose name may change, and whose number is given again; 0: its name tells it apart */
};

static bool source_is(const struct watch_source *source, const struct source_key *key, const char *name)
{
	return source->cause == key->cause && source->number == key->number && source->born == key->born &&
	       (key->born || !strncmp(source->name, name, WATCH_NAME - 1));
}

/* ---- folding ----------------------------------------------------------------------- */

/* Threads alone: of all others there are few. */
static bool source_may_fold(const struct watch_cpu *watch, const struct watch_source *source)
{
	int depth;

	for (depth = watch->depth; depth >= 0; depth--)
		if (watch->frames[depth].source == source)
			return false;
	return source->used && source->born;
}

/* All that it had is the rest's: `used` is cleared, and it is as new. */
static void source_fold(struct watch_cpu *watch, struct watch_source *source)
{
	struct watch_source *rest = &watch->sources[source->cause];
	const u32 reused = source->reused + 1;
	int i;

	kcoll_sum_add(&rest->count, source->count);
	kcoll_sum_add(&rest->total, source->total);
	kcoll_sum_add(&rest->inclusive, source->inclusive);
	WRITE_ONCE(rest->max, max(rest->max, source->max));
	for (i = 0; i < WATCH_BUCKETS; i++)
		kcoll_sum_add(&rest->histogram[i], source->histogram[i]);
	memset(source, 0, sizeof(*source));
	source->reused = reused;
	watch->threads--;
	kcoll_sum_add(&watch->folded, 1);
}

/* false: it may not, and nothing is to be folded. Else folding_ends() follows. */
static bool folding_begins(struct watch_cpu *watch)
{
	if (!watch->folds)
		return false;
	WRITE_ONCE(watch->folding, true);
	smp_mb();		/* pairs with kcoll_sources_hold(): one of both sees the other */
	if (!READ_ONCE(watch->held))
		return true;
	WRITE_ONCE(watch->folding, false);
	return false;
}

static void folding_ends(struct watch_cpu *watch)
{
	smp_store_release(&watch->folding, false);	/* what was folded is seen whole */
}

void kcoll_sources_hold(struct watch_cpu *watch)
{
	lockdep_assert_held(&kcoll_watch_mutex);
	WRITE_ONCE(watch->held, true);
	smp_mb();		/* pairs with folding_begins() */
	smp_cond_load_acquire(&watch->folding, !VAL);
}

void kcoll_sources_release(struct watch_cpu *watch)
{
	smp_store_release(&watch->held, false);		/* what was read was read before */
}

void kcoll_sources_tidy(struct watch_cpu *watch, u32 places)
{
	struct watch_source *source;

	if (watch->threads <= THREADS_KEPT || !folding_begins(watch))
		return;
	for (; places; places--) {
		source = &watch->sources[watch->hand++ % WATCH_SOURCES];
		if (source_may_fold(watch, source) && watch->last - source->latest > QUIET)
			source_fold(watch, source);
	}
	folding_ends(watch);
}

/* ---- finding ----------------------------------------------------------------------- */

static struct watch_source *source_set(struct watch_cpu *watch, struct watch_source *source,
				       const struct source_key *key, const char *name)
{
	source->cause = key->cause;
	source->number = key->number;
	source->born = key->born;
	source->latest = watch->last;
	strscpy(source->name, name, WATCH_NAME);
	smp_store_release(&source->used, true);	/* for readers on other CPUs */
	watch->threads += key->born != 0;
	return source;
}

static struct watch_source *source_at(struct watch_cpu *watch, u32 slot)
{
	return &watch->sources[slot % WATCH_SOURCES];
}

static bool is_rest(const struct watch_cpu *watch, const struct watch_source *source)
{
	return source < &watch->sources[COLL_NOISE_CAUSES];
}

/* A place on its way, all of which was in use before others were folded. NULL: none may go. */
static struct watch_source *source_make_room(struct watch_cpu *watch, u32 slot)
{
	struct watch_source *source, *oldest = NULL;
	int tries;

	if (!folding_begins(watch))
		return NULL;
	for (tries = 0; tries < WAY; tries++) {
		source = source_at(watch, slot + tries);
		if (is_rest(watch, source))
			continue;
		if (!source->used) {
			oldest = source;
			break;
		}
		if (source_may_fold(watch, source) && (!oldest || source->latest < oldest->latest))
			oldest = source;
	}
	if (oldest && oldest->used)
		source_fold(watch, oldest);
	folding_ends(watch);
	return oldest;
}

/* It is new: in `room`, a place on its way. Else the rest has it. */
static struct watch_source *source_make(struct watch_cpu *watch, const struct source_key *key, const char *name,
					u32 slot, struct watch_source *room)
{
	if (key->born)
		kcoll_sources_tidy(watch, PLACES);
	room = room ?: source_make_room(watch, slot);
	return room ? source_set(watch, room, key, name) : &watch->sources[key->cause];
}

/* Finds it, or makes it; a short way from where it should be. What was folded left places on it that are free. */
static struct watch_source *source_find(struct watch_cpu *watch, const struct source_key *key, const char *name)
{
	const u32 slot = hash_32(key->number * COLL_NOISE_CAUSES + key->cause, ilog2(WATCH_SOURCES));
	struct watch_source *source, *room = NULL;
	int tries;

	for (tries = 0; tries < WAY; tries++) {
		source = source_at(watch, slot + tries);
		if (is_rest(watch, source))
			continue;
		if (source->used && source_is(source, key, name))
			return source;
		if (!source->used && !room)
			room = source;
		if (!source->used && !source->reused)
			break;
	}
	return source_make(watch, key, name, slot, room);
}

struct watch_source *kcoll_source_of(struct watch_cpu *watch, u8 cause, u32 number, const char *name)
{
	return source_find(watch, &(struct source_key){ cause, number, 0 }, name);
}

/* It has the name that the thread has now: who renames itself all the time is one. Readers find it half written at worst. */
struct watch_source *kcoll_source_of_thread(struct watch_cpu *watch, u8 cause, const struct task_struct *task)
{
	const struct source_key key = { cause, task->pid, task->start_boottime };
	struct watch_source *source = source_find(watch, &key, task->comm);

	if (source->born && strncmp(source->name, task->comm, WATCH_NAME))
		strscpy(source->name, task->comm, WATCH_NAME);
	return source;
}

void kcoll_source_event(struct watch_source *source, u64 duration)
{
	const int bucket = min(duration ? ilog2(duration) : 0, WATCH_BUCKETS - 1);

	kcoll_sum_add(&source->histogram[bucket], 1);
	kcoll_sum_add(&source->count, 1);
	WRITE_ONCE(source->max, max(source->max, duration));
}
