// SPDX-License-Identifier: GPL-2.0
/* What the attributor's dumps say: latencies with their cases, and what passed a threshold. */
#include <linux/cpu.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "kmod/common/netlink.h"
#include "watch.h"

/* Where a dump has come to. */
struct case_cursor {
	long cpu;
	long at;	/* summaries of the stages; then the next bucket of all stages; then cases */
};

static_assert(sizeof(struct case_cursor) <= sizeof_field(struct netlink_callback, args));

/* What a message has room for, also in a dump's first and smallest buffer. */
enum { BUCKETS_A_MESSAGE = 32, STACK_TEXT = 2800 };

enum {
	FIRST_BUCKET = COLL_WATCH_STAGES,
	FIRST_CASE = FIRST_BUCKET + COLL_WATCH_STAGES * COLL_BUCKETS,
};

static int case_put_u64(struct sk_buff *skb, int attribute, u64 value)
{
	return nla_put_u64_64bit(skb, attribute, value, COLL_WATCH_A_PAD);
}

/* ---- cases ------------------------------------------------------------------------- */

static int case_put_part(struct sk_buff *skb, const struct watch_source *source, u64 time)
{
	struct nlattr *nest = nla_nest_start(skb, COLL_WATCH_A_PART);
	const u64 cgroup = READ_ONCE(source->cgroup);

	if (!nest || nla_put_u8(skb, COLL_WATCH_A_CAUSE, source->cause) ||
	    nla_put_u32(skb, COLL_WATCH_A_NUMBER, kcoll_watch_number(source)) ||
	    kcoll_watch_put_name(skb, source) ||
	    (cgroup && case_put_u64(skb, COLL_WATCH_A_CGROUP, cgroup)) ||
	    case_put_u64(skb, COLL_WATCH_A_TOTAL, time))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* The longest of those that were not shown. */
static u32 case_next_part(const struct watch_case *one, u32 shown)
{
	u32 best = 0, i;
	bool found = false;

	for (i = 0; i < one->parts; i++)
		if (!(shown & BIT(i)) && (!found || one->part[i].time > one->part[best].time)) {
			best = i;
			found = true;
		}
	return best;
}

static int case_put(struct sk_buff *skb, const struct watch_case *one)
{
	struct nlattr *nest = nla_nest_start(skb, COLL_WATCH_A_CASE);
	u32 shown = 0, i, next;

	if (!nest || case_put_u64(skb, COLL_WATCH_A_START, one->start) ||
	    case_put_u64(skb, COLL_WATCH_A_TOTAL, one->total) ||
	    (one->timer && case_put_u64(skb, COLL_WATCH_A_TIMER, one->timer)))
		return -EMSGSIZE;
	for (i = 0; i < one->parts; i++) {
		next = case_next_part(one, shown);
		if (case_put_part(skb, one->part[next].source, one->part[next].time))
			return -EMSGSIZE;
		shown |= BIT(next);
	}
	nla_nest_end(skb, nest);
	return 0;
}

/* ---- latencies --------------------------------------------------------------------- */

/* On its CPU, interrupts off; or that is offline. */
static void latency_show(void *data)
{
	struct watch_cpu *watch = data;
	struct watch_latency *latency = watch->latency;
	const u64 began = kcoll_watch_now();
	unsigned long flags;

	local_irq_save(flags);
	latency->shown_worsts = latency->worsts;
	memcpy(latency->shown, latency->worst, sizeof(latency->shown));
	kcoll_watch_called(watch, began);
	local_irq_restore(flags);
}

int kcoll_watch_latency_start(struct netlink_callback *cb)
{
	int error = kcoll_may_dump(cb, KCOLL_NEEDS_PERFMON);
	struct watch_cpu *watch;
	unsigned int cpu;

	if (error)
		return error;
	mutex_lock(&kcoll_watch_mutex);
	cpus_read_lock();
	for_each_possible_cpu(cpu) {
		watch = per_cpu(kcoll_watch_records, cpu);
		if (!watch || !watch->latency)
			continue;
		if (smp_call_function_single(cpu, latency_show, watch, 1))
			latency_show(watch);
	}
	cpus_read_unlock();
	mutex_unlock(&kcoll_watch_mutex);
	return 0;
}

static int latency_put_stage(struct sk_buff *skb, u8 number, const struct watch_stage *stage)
{
	struct nlattr *nest = nla_nest_start(skb, COLL_WATCH_A_LATENCY);

	if (!nest || nla_put_u8(skb, COLL_WATCH_A_STAGE, number) ||
	    case_put_u64(skb, COLL_WATCH_A_COUNT, READ_ONCE(stage->count)) ||
	    case_put_u64(skb, COLL_WATCH_A_TOTAL, READ_ONCE(stage->total)) ||
	    case_put_u64(skb, COLL_WATCH_A_MIN, READ_ONCE(stage->min)) ||
	    case_put_u64(skb, COLL_WATCH_A_MAX, READ_ONCE(stage->max)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int latency_put_summary(struct sk_buff *skb, const struct watch_latency *latency, u8 stage)
{
	if (!stage && (case_put_u64(skb, COLL_WATCH_A_PERIOD, latency->period) ||
		       case_put_u64(skb, COLL_WATCH_A_MISSED, READ_ONCE(latency->missed))))
		return -EMSGSIZE;
	return latency_put_stage(skb, stage, &latency->stage[stage]);
}

/* Of one stage, from bucket `at` on; `*next` becomes the bucket to go on with. */
static int latency_put_buckets(struct sk_buff *skb, const struct watch_latency *latency, u8 stage,
			       long at, long *next)
{
	struct coll_watch_bucket buckets[BUCKETS_A_MESSAGE];
	u32 count = 0;
	u64 here;

	for (; at < COLL_BUCKETS && count < ARRAY_SIZE(buckets); at++) {
		here = READ_ONCE(latency->stage[stage].histogram[at]);
		if (here)
			buckets[count++] = (struct coll_watch_bucket){ coll_bucket_least(at), here };
	}
	*next = at;
	if (nla_put_u8(skb, COLL_WATCH_A_STAGE, stage) ||
	    nla_put_64bit(skb, COLL_WATCH_A_BUCKETS, count * sizeof(*buckets), buckets,
			  COLL_WATCH_A_PAD))
		return -EMSGSIZE;
	return 0;
}

/* What is at *at; then *at is what comes next. */
static int latency_put_at(struct sk_buff *skb, const struct watch_latency *latency, long *at)
{
	long stage, next = *at + 1, bucket = *at - FIRST_BUCKET;

	if (*at < FIRST_BUCKET) {
		if (latency_put_summary(skb, latency, *at))
			return -EMSGSIZE;
	} else if (*at < FIRST_CASE) {
		stage = bucket / COLL_BUCKETS;
		if (latency_put_buckets(skb, latency, stage, bucket % COLL_BUCKETS, &next))
			return -EMSGSIZE;
		next += FIRST_BUCKET + stage * COLL_BUCKETS;
	} else if (case_put(skb, &latency->shown[*at - FIRST_CASE])) {
		return -EMSGSIZE;
	}
	*at = next;
	return 0;
}

static int latency_put_cpu(struct sk_buff *skb, struct netlink_callback *cb,
			   const struct watch_cpu *watch, struct case_cursor *cursor)
{
	const struct watch_latency *latency = watch->latency;
	void *header;

	while (cursor->at < FIRST_CASE + latency->shown_worsts) {
		header = kcoll_dump_put(skb, cb, COLL_CMD_WATCH_LATENCY);
		if (!header)
			return -EMSGSIZE;
		if (nla_put_u32(skb, COLL_WATCH_A_CPU, watch->cpu) ||
		    latency_put_at(skb, latency, &cursor->at)) {
			genlmsg_cancel(skb, header);
			return -EMSGSIZE;
		}
		genlmsg_end(skb, header);
	}
	cursor->at = 0;
	return 0;
}

int kcoll_watch_latency(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct case_cursor *cursor = (void *)cb->args;
	struct watch_cpu *watch;
	int full = 0;

	mutex_lock(&kcoll_watch_mutex);
	for (; cursor->cpu < nr_cpu_ids && !full; cursor->cpu += !full) {
		watch = cpu_possible(cursor->cpu) ? per_cpu(kcoll_watch_records, cursor->cpu) : NULL;
		if (watch && watch->latency)
			full = latency_put_cpu(skb, cb, watch, cursor);
		else
			cursor->at = 0;	/* it may have been stopped half way */
	}
	mutex_unlock(&kcoll_watch_mutex);
	return skb->len;
}

/* ---- what passed a threshold ------------------------------------------------------- */

/* Names only: an address without one would tell where the kernel is. */
static void stack_text(const struct watch_limit *limit, char *text, int bytes)
{
	char line[KSYM_SYMBOL_LEN];
	int used = 0, length;
	u32 i;

	text[0] = 0;
	for (i = 0; i < limit->depth; i++) {
		length = snprintf(line, sizeof(line), "%pB", (void *)limit->stack[i]);
		if (!strncmp(line, "0x", 2))
			length = strscpy(line, "?", sizeof(line));
		if (used + length + 2 > bytes)
			break;
		used += scnprintf(text + used, bytes - used, "%s%s", i ? "\n" : "", line);
	}
}

static int passed_put_stack(struct sk_buff *skb, const struct watch_limit *limit)
{
	char *text = kmalloc(STACK_TEXT, GFP_KERNEL);
	int error;

	if (!text)
		return -ENOMEM;
	stack_text(limit, text, STACK_TEXT);
	error = nla_put_string(skb, COLL_WATCH_A_STACK, text);
	kfree(text);
	return error;
}

static int passed_put_case(struct sk_buff *skb, const struct watch_limit *limit)
{
	if (case_put_u64(skb, COLL_WATCH_A_THRESHOLD, limit->threshold) ||
	    nla_put_u32(skb, COLL_WATCH_A_PID, kcoll_watch_pid(limit->pid)) ||
	    nla_put_string(skb, COLL_WATCH_A_COMM, limit->comm))
		return -EMSGSIZE;
	return case_put(skb, &limit->kept);
}

/* Message 0 is the case, message 1 the stack, for who may read addresses. */
static int passed_put_cpu(struct sk_buff *skb, struct netlink_callback *cb,
			  const struct watch_limit *limit, struct case_cursor *cursor, long messages)
{
	void *header;
	int error;

	for (; cursor->at < messages; cursor->at++) {
		header = kcoll_dump_put(skb, cb, COLL_CMD_WATCH_PASSED);
		if (!header)
			return -EMSGSIZE;
		error = nla_put_u32(skb, COLL_WATCH_A_CPU, limit->cpu);
		if (!error)
			error = cursor->at ? passed_put_stack(skb, limit) : passed_put_case(skb, limit);
		if (error) {
			genlmsg_cancel(skb, header);
			return error;
		}
		genlmsg_end(skb, header);
	}
	cursor->at = 0;
	return 0;
}

/* Pairs with case_keep(): what passed is whole. */
static bool passed_here(const struct watch_cpu *watch)
{
	return watch && watch->limit && smp_load_acquire(&watch->limit->whole) &&
	       watch->limit->cpu == watch->cpu;
}

int kcoll_watch_passed(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct case_cursor *cursor = (void *)cb->args;
	int full = 0, error = kcoll_may_dump(cb, KCOLL_NEEDS_PERFMON);
	long messages = netlink_capable(cb->skb, CAP_SYSLOG) ? 2 : 1;
	struct watch_cpu *watch;

	if (error)
		return error;
	mutex_lock(&kcoll_watch_mutex);
	for (; cursor->cpu < nr_cpu_ids && !full; cursor->cpu += !full) {
		watch = cpu_possible(cursor->cpu) ? per_cpu(kcoll_watch_records, cursor->cpu) : NULL;
		if (passed_here(watch))
			full = passed_put_cpu(skb, cb, watch->limit, cursor, messages);
		else
			cursor->at = 0;
	}
	mutex_unlock(&kcoll_watch_mutex);
	return full == -ENOMEM ? full : skb->len;
}
