// SPDX-License-Identifier: GPL-2.0
/*
 * A watch as it was when a dump came to its CPU. A dump is sent in parts, each when its reader asks for it: late, or
 * never. So the parts are of a copy, which takes some microseconds, and only for that long the CPU folds no source:
 * none is in it twice, and none is missing. A reader that stands still keeps the copy of one CPU, at most 400 KB
 * charged to its cgroup, and holds up nobody.
 */
#include <linux/cpu.h>
#include <linux/mm.h>
#include <linux/mutex.h>

#include "watch.h"

enum { COPY_MORE = 32 };	/* that may come while memory is looked for */

/* ---- what is open ------------------------------------------------------------------ */

static void copy_flush_here(void *data)
{
	const u64 began = kcoll_watch_now();
	unsigned long flags;

	local_irq_save(flags);
	kcoll_watch_flush(data);
	kcoll_watch_called(data, began);
	local_irq_restore(flags);
}

/*
 * A watch that is to take little does not interrupt who computes, or a CPU that sleeps, to be read: nothing is open
 * that was taken from anybody. Read while it changes: who comes meanwhile has had next to nothing.
 */
static bool copy_is_current(const struct watch_cpu *watch)
{
	return watch->cost.share && !READ_ONCE(watch->depth) && READ_ONCE(watch->frames[0].nobody);
}

/* The CPU counts what it has open, so that the sums add up. */
static void copy_flush(struct watch_cpu *watch)
{
	if (copy_is_current(watch))
		return;
	cpus_read_lock();
	if (watch->online)
		smp_call_function_single(watch->cpu, copy_flush_here, watch, 1);
	cpus_read_unlock();
}

/* ---- sources ----------------------------------------------------------------------- */

static bool copy_wants(const struct watch_source *source)
{
	/* Pairs with source_set(): its name is whole. */
	return smp_load_acquire(&source->used) && READ_ONCE(source->total);
}

static u32 copy_count(const struct watch_cpu *watch)
{
	u32 count = 0, i;

	for (i = 0; i < WATCH_SOURCES; i++)
		count += copy_wants(&watch->sources[i]);
	return count;
}

/* Its CPU may add to it meanwhile, and change its name: number by number. */
static void copy_source(struct watch_source *to, const struct watch_source *from)
{
	int i;

	*to = (struct watch_source){
		.cause = from->cause, .used = true, .number = from->number, .reused = from->reused, .born = from->born,
		.cgroup = READ_ONCE(from->cgroup), .count = READ_ONCE(from->count), .total = READ_ONCE(from->total),
		.inclusive = READ_ONCE(from->inclusive), .max = READ_ONCE(from->max),
	};
	for (i = 0; i < WATCH_BUCKETS; i++)
		to->histogram[i] = READ_ONCE(from->histogram[i]);
	data_race(memcpy(to->name, from->name, sizeof(to->name)));
	to->name[WATCH_NAME - 1] = 0;
}

/* false: there are more than it has places for. */
static bool copy_sources(struct watch_copy *copy, const struct watch_cpu *watch)
{
	u32 i;

	for (i = 0; i < WATCH_SOURCES; i++) {
		if (!copy_wants(&watch->sources[i]))
			continue;
		if (copy->count == copy->places)
			return false;
		copy->of[copy->count].index = i;
		copy_source(&copy->of[copy->count++].source, &watch->sources[i]);
	}
	return true;
}

/* ---- the copy ---------------------------------------------------------------------- */

static u8 copy_state(const struct watch_cpu *watch)
{
	if (READ_ONCE(watch->cost.passed))
		return COLL_WATCH_DEAR;
	if (kcoll_watch_over(watch))
		return COLL_WATCH_STOPPED;
	return READ_ONCE(watch->online) ? COLL_WATCH_COUNTS : COLL_WATCH_OFFLINE;
}

static void copy_summary(struct watch_copy *copy, const struct watch_cpu *watch)
{
	copy->watched = READ_ONCE(watch->watched);
	copy->ran = READ_ONCE(watch->ran);
	copy->idle = READ_ONCE(watch->idle);
	copy->cost = READ_ONCE(watch->cost.total);
	copy->lost = READ_ONCE(watch->lost);
	copy->folded = READ_ONCE(watch->folded);
	copy->away = atomic64_read(&watch->away);
	copy->state = copy_state(watch);
}

u32 kcoll_copy_places(const struct watch_cpu *watch)
{
	lockdep_assert_held(&kcoll_watch_mutex);
	return min(copy_count(watch) + COPY_MORE, (u32)WATCH_SOURCES);
}

/* Too much is refused; it kills nobody in the reader's cgroup. */
struct watch_copy *kcoll_copy_new(u32 places)
{
	struct watch_copy *copy = kvmalloc_node(struct_size(copy, of, places), COLL_GFP | __GFP_RETRY_MAYFAIL,
						NUMA_NO_NODE);

	if (copy)
		copy->places = places;
	return copy;
}

bool kcoll_copy_fill(struct watch_copy *copy, struct watch_cpu *watch)
{
	bool whole;

	lockdep_assert_held(&kcoll_watch_mutex);
	copy->serial = watch->serial;
	copy->owner = watch->owner;
	copy->cpu = watch->cpu;
	copy->count = 0;
	copy_flush(watch);
	kcoll_sources_hold(watch);
	whole = copy_sources(copy, watch);
	copy_summary(copy, watch);
	kcoll_sources_release(watch);
	return whole;
}
