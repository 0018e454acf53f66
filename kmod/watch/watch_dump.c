// SPDX-License-Identifier: GPL-2.0
/* What the attributor's dumps say: sums of each source, and the log of events. */
#include <linux/cpu.h>
#include <linux/mutex.h>
#include <linux/pid_namespace.h>

#include "kmod/common/compat.h"
#include "kmod/common/netlink.h"
#include "watch.h"

/* ---- numbers ----------------------------------------------------------------------------- */

/* What was counted has the numbers of the first pid namespace; who reads that may be in another. */
u32 kcoll_watch_pid(pid_t number)
{
	struct pid_namespace *reader = task_active_pid_ns(current);
	u32 seen = number;

	if (reader == &init_pid_ns)
		return seen;
	rcu_read_lock();
	seen = pid_nr_ns(find_pid_ns(number, &init_pid_ns), reader);
	rcu_read_unlock();
	return seen;
}

/* The injector's threads are known by their names: its other numbers are its own. */
u32 kcoll_watch_number(const struct watch_source *source)
{
	const bool is_thread = source->cause == COLL_NOISE_THREAD ||
			       (source->cause == COLL_NOISE_INJECTED &&
				!strncmp(source->name, COLL_INJECTOR_COMM, strlen(COLL_INJECTOR_COMM)));

	return is_thread && source->number ? kcoll_watch_pid(source->number) : source->number;
}

/* Its CPU may change it meanwhile: what is measured is what is sent. */
int kcoll_watch_put_name(struct sk_buff *skb, const struct watch_source *source)
{
	char name[WATCH_NAME];

	data_race(memcpy(name, source->name, sizeof(name)));
	name[WATCH_NAME - 1] = 0;
	return nla_put_string(skb, COLL_WATCH_A_NAME, name);
}

/* ---- answers --------------------------------------------------------------------------- */

/* Where a dump has come to. */
struct watch_cursor {
	long cpu;
	long source;	/* the next one; WATCH_SOURCES: the CPU's summary. Of a log: how many events were sent */
	unsigned long serial;	/* of the watch that it is of */
};

static_assert(sizeof(struct watch_cursor) <= sizeof_field(struct netlink_callback, args));

/* Its CPU may add to it meanwhile. */
static int watch_put_u64(struct sk_buff *skb, int attribute, const u64 *value)
{
	return nla_put_u64_64bit(skb, attribute, READ_ONCE(*value), COLL_WATCH_A_PAD);
}

static int watch_put_histogram(struct sk_buff *skb, const struct watch_source *source)
{
	const size_t bytes = sizeof(source->histogram);
	struct nlattr *attribute =
		nla_reserve_64bit(skb, COLL_WATCH_A_HISTOGRAM, bytes, COLL_WATCH_A_PAD);
	u64 *bucket;
	int i;

	if (!attribute)
		return -EMSGSIZE;
	bucket = nla_data(attribute);
	for (i = 0; i < WATCH_BUCKETS; i++)
		bucket[i] = READ_ONCE(source->histogram[i]);
	return 0;
}

static u8 watch_state(const struct watch_cpu *watch)
{
	if (READ_ONCE(watch->cost.passed))
		return COLL_WATCH_DEAR;
	if (kcoll_watch_over(watch))
		return COLL_WATCH_STOPPED;
	return READ_ONCE(watch->online) ? COLL_WATCH_COUNTS : COLL_WATCH_OFFLINE;
}

static int watch_put_summary(struct sk_buff *skb, const struct watch_cpu *watch)
{
	const u64 away = atomic64_read(&watch->away);

	return nla_put_u32(skb, COLL_WATCH_A_CPU, watch->cpu) ||
	       watch_put_u64(skb, COLL_WATCH_A_WATCHED, &watch->watched) ||
	       watch_put_u64(skb, COLL_WATCH_A_RAN, &watch->ran) ||
	       watch_put_u64(skb, COLL_WATCH_A_IDLE, &watch->idle) ||
	       watch_put_u64(skb, COLL_WATCH_A_COST, &watch->cost.total) ||
	       watch_put_u64(skb, COLL_WATCH_A_LOST, &watch->lost) ||
	       watch_put_u64(skb, COLL_WATCH_A_FOLDED, &watch->folded) ||
	       watch_put_u64(skb, COLL_WATCH_A_AWAY, &away) ||
	       nla_put_u8(skb, COLL_WATCH_A_STATE, watch_state(watch));
}

static int watch_put_source(struct sk_buff *skb, const struct watch_cpu *watch, long index)
{
	const struct watch_source *source = &watch->sources[index];
	struct nlattr *nest;

	if (nla_put_u32(skb, COLL_WATCH_A_CPU, watch->cpu))
		return -EMSGSIZE;
	nest = nla_nest_start(skb, COLL_WATCH_A_SOURCE);
	if (!nest ||
	    nla_put_u32(skb, COLL_WATCH_A_INDEX, index + 1) ||
	    (source->reused && nla_put_u32(skb, COLL_WATCH_A_REUSED, source->reused)) ||
	    nla_put_u8(skb, COLL_WATCH_A_CAUSE, source->cause) ||
	    nla_put_u32(skb, COLL_WATCH_A_NUMBER, kcoll_watch_number(source)) ||
	    kcoll_watch_put_name(skb, source) ||
	    (source->born && watch_put_u64(skb, COLL_WATCH_A_BORN, &source->born)) ||
	    (READ_ONCE(source->cgroup) && watch_put_u64(skb, COLL_WATCH_A_CGROUP, &source->cgroup)) ||
	    watch_put_u64(skb, COLL_WATCH_A_COUNT, &source->count) ||
	    watch_put_u64(skb, COLL_WATCH_A_TOTAL, &source->total) ||
	    watch_put_u64(skb, COLL_WATCH_A_INCLUSIVE, &source->inclusive) ||
	    watch_put_u64(skb, COLL_WATCH_A_MAX, &source->max) ||
	    watch_put_histogram(skb, source))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Everything one message of a dump: 0, or -EMSGSIZE when the buffer is full. */
static int watch_put_message(struct sk_buff *skb, struct netlink_callback *cb, u8 command,
			     const struct watch_cpu *watch, long source)
{
	const struct kcoll_owner owner = coll_dump_owner(cb);
	void *header = kcoll_dump_put(skb, cb, command);
	int full;

	if (!header)
		return -EMSGSIZE;
	full = coll_owner_is(&owner, &watch->owner) && nla_put_flag(skb, COLL_WATCH_A_OWN);
	if (!full)
		full = source < WATCH_SOURCES ? watch_put_source(skb, watch, source) : watch_put_summary(skb, watch);
	if (full) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}

static bool watch_source_counts(const struct watch_source *source)
{
	/* Pairs with source_set(): its name is whole. */
	return smp_load_acquire(&source->used) && READ_ONCE(source->total);
}

/* The summary is the last: who has that has all of the CPU. */
static int watch_put_cpu(struct sk_buff *skb, struct netlink_callback *cb,
			 const struct watch_cpu *watch, struct watch_cursor *at)
{
	for (; at->source <= WATCH_SOURCES; at->source++) {
		if (at->source < WATCH_SOURCES && !watch_source_counts(&watch->sources[at->source]))
			continue;
		if (watch_put_message(skb, cb, COLL_CMD_WATCH_GET, watch, at->source))
			return -EMSGSIZE;
	}
	at->source = 0;
	return 0;
}

static void watch_flush_here(void *data)
{
	const u64 began = kcoll_watch_now();
	unsigned long flags;

	local_irq_save(flags);
	kcoll_watch_flush(data);
	kcoll_watch_called(data, began);
	local_irq_restore(flags);
}

const struct nla_policy kcoll_watch_get_policy[COLL_WATCH_A_OWN + 1] = {
	[COLL_WATCH_A_OWN] = { .type = NLA_FLAG },
};

/* Whoever may ask sees all; OWN is for who wants no others. */
static bool watch_is_asked_for(struct netlink_callback *cb, const struct watch_cpu *watch)
{
	const struct kcoll_owner owner = coll_dump_owner(cb);

	return watch && (!coll_dump_attrs(cb)[COLL_WATCH_A_OWN] || coll_owner_is(&owner, &watch->owner));
}

/*
 * A watch that is to take little does not interrupt who computes, or a CPU that sleeps, to be read: nothing is open that
 * was taken from anybody. Read while it changes: who comes meanwhile has had next to nothing.
 */
static bool watch_is_current(const struct watch_cpu *watch)
{
	return watch->cost.share && !READ_ONCE(watch->depth) && READ_ONCE(watch->frames[0].nobody);
}

/* Every CPU counts what it has open, so that the sums add up; and folds no source until the dump is done. */
int kcoll_watch_get_start(struct netlink_callback *cb)
{
	int error = kcoll_may_dump(cb, KCOLL_NEEDS_PERFMON);
	struct watch_cpu *watch;
	unsigned int cpu;

	if (error)
		return error;
	mutex_lock(&kcoll_watch_mutex);
	kcoll_sources_hold();
	cpus_read_lock();
	for_each_online_cpu(cpu) {
		watch = per_cpu(kcoll_watch_records, cpu);
		if (watch_is_asked_for(cb, watch) && !watch_is_current(watch))
			smp_call_function_single(cpu, watch_flush_here, watch, 1);
	}
	cpus_read_unlock();
	mutex_unlock(&kcoll_watch_mutex);
	return 0;
}

int kcoll_watch_get_done(struct netlink_callback *cb)
{
	kcoll_sources_release();
	return 0;
}

/* The watch of the cursor's CPU; NULL: none, or not the one of which a part was sent already. */
static struct watch_cpu *watch_at(struct watch_cursor *at)
{
	struct watch_cpu *watch = cpu_possible(at->cpu) ? per_cpu(kcoll_watch_records, at->cpu) : NULL;

	if (at->source && (!watch || watch->serial != at->serial))
		watch = NULL;
	if (watch)
		at->serial = watch->serial;
	else
		at->source = 0;
	return watch;
}

int kcoll_watch_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct watch_cursor *at = (void *)cb->args;
	struct watch_cpu *watch;
	int full = 0;

	mutex_lock(&kcoll_watch_mutex);
	for (; at->cpu < nr_cpu_ids && !full; at->cpu += !full) {
		watch = watch_at(at);
		if (watch_is_asked_for(cb, watch))
			full = watch_put_cpu(skb, cb, watch, at);
	}
	mutex_unlock(&kcoll_watch_mutex);
	return skb->len;
}

/* ---- the log ----------------------------------------------------------------------------- */

enum { EVENTS_A_MESSAGE = 128 };

/* As many as one message takes; they are read once. */
static int watch_put_events(struct sk_buff *skb, struct netlink_callback *cb,
			    struct watch_cpu *watch)
{
	struct watch_log *log = &watch->log;
	struct coll_noise_event *event;
	struct nlattr *events;
	u32 head, count, i;
	void *header;

	head = smp_load_acquire(&log->head);	/* pairs with log_add(): they are whole */
	count = min3(head - log->tail, log->size, (u32)EVENTS_A_MESSAGE);
	header = kcoll_dump_put(skb, cb, COLL_CMD_WATCH_LOG);
	if (!header)
		return -EMSGSIZE;
	events = nla_put_u32(skb, COLL_WATCH_A_CPU, watch->cpu) ? NULL :
		 nla_reserve_64bit(skb, COLL_WATCH_A_EVENTS, count * sizeof(*event),
				   COLL_WATCH_A_PAD);
	if (!events) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	event = nla_data(events);
	for (i = 0; i < count; i++)
		event[i] = log->events[(log->tail + i) & (log->size - 1)];
	/* Read, before log_add() may write over it. */
	smp_store_release(&log->tail, log->tail + count);
	genlmsg_end(skb, header);
	return 0;
}

/* A CPU that fills its log faster than it is read would hold a dump up for ever. */
static int watch_put_log(struct sk_buff *skb, struct netlink_callback *cb, struct watch_cpu *watch,
			 struct watch_cursor *at)
{
	const struct watch_log *log = &watch->log;

	while (READ_ONCE(log->head) != log->tail && at->source <= log->size) {
		if (watch_put_events(skb, cb, watch))
			return -EMSGSIZE;
		at->source += EVENTS_A_MESSAGE;
	}
	at->source = 0;
	return 0;
}

int kcoll_watch_log(struct sk_buff *skb, struct netlink_callback *cb)
{
	const struct kcoll_owner owner = coll_dump_owner(cb);
	struct watch_cursor *at = (void *)cb->args;
	int full = 0, error = kcoll_may_dump(cb, KCOLL_NEEDS_PERFMON);
	struct watch_cpu *watch;

	if (error)
		return error;
	mutex_lock(&kcoll_watch_mutex);
	for (; at->cpu < nr_cpu_ids && !full; at->cpu += !full) {
		watch = watch_at(at);
		if (watch && coll_owner_is(&owner, &watch->owner))
			full = watch_put_log(skb, cb, watch, at);
	}
	mutex_unlock(&kcoll_watch_mutex);
	return skb->len;
}
