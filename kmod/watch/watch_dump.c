// SPDX-License-Identifier: GPL-2.0
/* What the attributor's dumps say: sums of each source, and the log of events. */
#include <linux/mm.h>
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

static int watch_put_u64(struct sk_buff *skb, int attribute, u64 value)
{
	return nla_put_u64_64bit(skb, attribute, value, COLL_WATCH_A_PAD);
}

static int watch_put_histogram(struct sk_buff *skb, const struct watch_source *source)
{
	const size_t bytes = sizeof(source->histogram);
	struct nlattr *attribute =
		nla_reserve_64bit(skb, COLL_WATCH_A_HISTOGRAM, bytes, COLL_WATCH_A_PAD);

	if (!attribute)
		return -EMSGSIZE;
	memcpy(nla_data(attribute), source->histogram, bytes);
	return 0;
}

static int watch_put_summary(struct sk_buff *skb, const struct watch_copy *copy)
{
	return watch_put_u64(skb, COLL_WATCH_A_WATCHED, copy->watched) ||
	       watch_put_u64(skb, COLL_WATCH_A_RAN, copy->ran) ||
	       watch_put_u64(skb, COLL_WATCH_A_IDLE, copy->idle) ||
	       watch_put_u64(skb, COLL_WATCH_A_COST, copy->cost) ||
	       watch_put_u64(skb, COLL_WATCH_A_LOST, copy->lost) ||
	       watch_put_u64(skb, COLL_WATCH_A_FOLDED, copy->folded) ||
	       watch_put_u64(skb, COLL_WATCH_A_AWAY, copy->away) ||
	       nla_put_u8(skb, COLL_WATCH_A_STATE, copy->state);
}

static int watch_put_source(struct sk_buff *skb, const struct watch_source *source, u32 index)
{
	struct nlattr *nest = nla_nest_start(skb, COLL_WATCH_A_SOURCE);

	if (!nest ||
	    nla_put_u32(skb, COLL_WATCH_A_INDEX, index + 1) ||
	    (source->reused && nla_put_u32(skb, COLL_WATCH_A_REUSED, source->reused)) ||
	    nla_put_u8(skb, COLL_WATCH_A_CAUSE, source->cause) ||
	    nla_put_u32(skb, COLL_WATCH_A_NUMBER, kcoll_watch_number(source)) ||
	    kcoll_watch_put_name(skb, source) ||
	    (source->born && watch_put_u64(skb, COLL_WATCH_A_BORN, source->born)) ||
	    (source->cgroup && watch_put_u64(skb, COLL_WATCH_A_CGROUP, source->cgroup)) ||
	    watch_put_u64(skb, COLL_WATCH_A_COUNT, source->count) ||
	    watch_put_u64(skb, COLL_WATCH_A_TOTAL, source->total) ||
	    watch_put_u64(skb, COLL_WATCH_A_INCLUSIVE, source->inclusive) ||
	    watch_put_u64(skb, COLL_WATCH_A_MAX, source->max) ||
	    watch_put_histogram(skb, source))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* One message of a dump: a source, or after the last one the summary. 0, or -EMSGSIZE when the buffer is full. */
static int watch_put_message(struct sk_buff *skb, struct netlink_callback *cb, const struct watch_copy *copy, u32 at)
{
	const struct kcoll_owner owner = coll_dump_owner(cb);
	void *header = kcoll_dump_put(skb, cb, COLL_CMD_WATCH_GET);
	int full;

	if (!header)
		return -EMSGSIZE;
	full = (coll_owner_is(&owner, &copy->owner) && nla_put_flag(skb, COLL_WATCH_A_OWN)) ||
	       nla_put_u32(skb, COLL_WATCH_A_CPU, copy->cpu);
	if (!full)
		full = at < copy->count ? watch_put_source(skb, &copy->of[at].source, copy->of[at].index) :
					  watch_put_summary(skb, copy);
	if (full) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}

/* Where a GET has come to. */
struct get_cursor {
	long cpu;
	struct watch_copy *copy;	/* of that CPU's watch; NULL: nothing of it was sent yet */
	long sent;			/* of its sources */
};

static_assert(sizeof(struct get_cursor) <= sizeof_field(struct netlink_callback, args));

/* The summary is the last: who has that has all of the CPU. */
static int watch_put_cpu(struct sk_buff *skb, struct netlink_callback *cb, struct get_cursor *at)
{
	for (; at->sent <= at->copy->count; at->sent++)
		if (watch_put_message(skb, cb, at->copy, at->sent))
			return -EMSGSIZE;
	return 0;
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

int kcoll_watch_get_start(struct netlink_callback *cb)
{
	return kcoll_may_dump(cb, KCOLL_NEEDS_PERFMON);
}

/* The CPU's watch, if it is to be sent; and the one of which a part was sent already, if there was one. */
static struct watch_cpu *watch_to_send(struct netlink_callback *cb, const struct get_cursor *at)
{
	struct watch_cpu *watch = cpu_possible(at->cpu) ? per_cpu(kcoll_watch_records, at->cpu) : NULL;

	if (!watch_is_asked_for(cb, watch) || (at->copy && at->copy->serial != watch->serial))
		return NULL;
	return watch;
}

/*
 * Without the mutex while memory is looked for. 0: the cursor has a copy, or there is no watch of its CPU any more. There are
 * places for all that may come at last, so it ends.
 */
static int get_copy(struct netlink_callback *cb, struct get_cursor *at)
{
	struct watch_copy *copy = NULL;
	struct watch_cpu *watch;
	u32 places = 0;

	while ((watch = watch_to_send(cb, at))) {
		if (copy && kcoll_copy_fill(copy, watch)) {
			at->copy = copy;
			return 0;
		}
		kvfree(copy);
		places = max(places + 1, kcoll_copy_places(watch));
		mutex_unlock(&kcoll_watch_mutex);
		copy = kcoll_copy_new(places);
		mutex_lock(&kcoll_watch_mutex);
		if (!copy)
			return -ENOMEM;
	}
	kvfree(copy);
	return 0;
}

static void get_next_cpu(struct get_cursor *at)
{
	kvfree(at->copy);
	*at = (struct get_cursor){ .cpu = at->cpu + 1 };
}

int kcoll_watch_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct get_cursor *at = (void *)cb->args;
	int error = 0;

	mutex_lock(&kcoll_watch_mutex);
	while (at->cpu < nr_cpu_ids && !error) {
		if (!at->copy)
			error = get_copy(cb, at);
		if (!error && at->copy && watch_to_send(cb, at))
			error = watch_put_cpu(skb, cb, at);
		if (!error)
			get_next_cpu(at);
	}
	mutex_unlock(&kcoll_watch_mutex);
	return error == -ENOMEM ? error : skb->len;
}

int kcoll_watch_get_done(struct netlink_callback *cb)
{
	kvfree(((struct get_cursor *)cb->args)->copy);
	return 0;
}

/* ---- the log ----------------------------------------------------------------------------- */

enum { EVENTS_A_MESSAGE = 128 };

/* Where a LOG has come to. */
struct log_cursor {
	long cpu;
	long sent;		/* events */
	unsigned long serial;	/* of the watch that they were of */
};

static_assert(sizeof(struct log_cursor) <= sizeof_field(struct netlink_callback, args));

/* The watch of the cursor's CPU; NULL: none, or not the one of which a part was sent already. */
static struct watch_cpu *log_watch(struct log_cursor *at)
{
	struct watch_cpu *watch = cpu_possible(at->cpu) ? per_cpu(kcoll_watch_records, at->cpu) : NULL;

	if (at->sent && (!watch || watch->serial != at->serial))
		watch = NULL;
	if (watch)
		at->serial = watch->serial;
	else
		at->sent = 0;
	return watch;
}

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
			 struct log_cursor *at)
{
	const struct watch_log *log = &watch->log;

	while (READ_ONCE(log->head) != log->tail && at->sent <= log->size) {
		if (watch_put_events(skb, cb, watch))
			return -EMSGSIZE;
		at->sent += EVENTS_A_MESSAGE;
	}
	at->sent = 0;
	return 0;
}

int kcoll_watch_log(struct sk_buff *skb, struct netlink_callback *cb)
{
	const struct kcoll_owner owner = coll_dump_owner(cb);
	struct log_cursor *at = (void *)cb->args;
	int full = 0, error = kcoll_may_dump(cb, KCOLL_NEEDS_PERFMON);
	struct watch_cpu *watch;

	if (error)
		return error;
	mutex_lock(&kcoll_watch_mutex);
	for (; at->cpu < nr_cpu_ids && !full; at->cpu += !full) {
		watch = log_watch(at);
		if (watch && coll_owner_is(&owner, &watch->owner))
			full = watch_put_log(skb, cb, watch, at);
	}
	mutex_unlock(&kcoll_watch_mutex);
	return skb->len;
}
