// SPDX-License-Identifier: GPL-2.0
/* Injectors read by netlink: their counters, a message per CPU, and their logs. */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/slab.h>

#include "kmod/common/compat.h"
#include "kmod/common/netlink.h"
#include "noise.h"

#define ENTRIES_MAX	2000u	/* in an attribute of the log */
#define ENTRIES_WORTH	8u	/* a message of its own */

static int noise_put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, COLL_NOISE_A_PAD);
}

/*
 * What is shown of an injector on one CPU: copied first, since any user may ask, and may be without CPU time
 * for as long as it likes.
 */
struct noise_shown {
	struct kcoll_noise_injector injector;	/* its members alone, nothing that they point to */
	struct kcoll_noise_cpu cpu;		/* likewise */
	cpumask_var_t cpus;
};

static int noise_put_cpus(struct sk_buff *skb, const struct cpumask *cpus)
{
	char *list = kasprintf(GFP_KERNEL, "%*pbl", cpumask_pr_args(cpus));
	int error = list ? nla_put_string(skb, COLL_NOISE_A_CPUS, list) : -ENOMEM;

	kfree(list);
	return error;
}

static int noise_put_injector(struct sk_buff *skb, const struct noise_shown *shown)
{
	const struct kcoll_noise_injector *injector = &shown->injector;

	return nla_put_u32(skb, COLL_NOISE_A_ID, injector->id) ||
	       noise_put_cpus(skb, shown->cpus) ||
	       nla_put_u8(skb, COLL_NOISE_A_CONTEXT, injector->context) ||
	       nla_put(skb, COLL_NOISE_A_MODEL, sizeof(injector->model), &injector->model) ||
	       noise_put_u64(skb, COLL_NOISE_A_EPOCH, injector->epoch) ||
	       noise_put_u64(skb, COLL_NOISE_A_LIFETIME, injector->lifetime) ||
	       nla_put_u32(skb, COLL_NOISE_A_SHARE, injector->share) ||
	       nla_put_u32(skb, COLL_NOISE_A_LOG, injector->log) ||
	       nla_put_u32(skb, COLL_NOISE_A_STREAM, injector->stream) ||
	       nla_put_u32(skb, COLL_NOISE_A_COST, injector->cost) ? -EMSGSIZE : 0;
}

static int noise_put_cpu(struct sk_buff *skb, const struct kcoll_noise_cpu *ncpu)
{
	return nla_put_u32(skb, COLL_NOISE_A_CPU, ncpu->number) ||
	       nla_put_u8(skb, COLL_NOISE_A_STATE, ncpu->state) ||
	       noise_put_u64(skb, COLL_NOISE_A_INJECTED, ncpu->injected) ||
	       noise_put_u64(skb, COLL_NOISE_A_MISSED, ncpu->missed) ||
	       noise_put_u64(skb, COLL_NOISE_A_REFUSED, ncpu->refused) ||
	       noise_put_u64(skb, COLL_NOISE_A_TIME, ncpu->taken) ||
	       noise_put_u64(skb, COLL_NOISE_A_LOST, ncpu->lost) ? -EMSGSIZE : 0;
}

static int noise_put_shown(struct sk_buff *skb, struct netlink_callback *cb, const struct noise_shown *shown)
{
	void *header = kcoll_dump_put(skb, cb, COLL_CMD_NOISE_GET);

	if (!header)
		return -EMSGSIZE;
	if (noise_put_injector(skb, shown) || noise_put_cpu(skb, &shown->cpu)) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}

/* Where a dump is: in this injector, at this ncpu, until that entry of its log. */
struct noise_cursor {
	u32 id, ncpu;
	u64 until;
};

static struct noise_cursor *noise_cursor(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct noise_cursor) > sizeof(cb->ctx));
	return (struct noise_cursor *)cb->ctx;
}

/* With the lock held. The CPU writes its counters meanwhile. */
static void noise_copy(struct noise_shown *shown, const struct kcoll_noise_injector *injector, u32 i)
{
	const struct kcoll_noise_cpu *ncpu = &injector->cpu[i];
	u32 k;

	lockdep_assert_held(&kcoll_noise_lock);
	shown->injector.id = injector->id;
	shown->injector.context = injector->context;
	shown->injector.model = injector->model;
	shown->injector.epoch = injector->epoch;
	shown->injector.lifetime = injector->lifetime;
	shown->injector.share = injector->share;
	shown->injector.log = injector->log;
	shown->injector.stream = injector->stream;
	shown->injector.cost = injector->cost;
	cpumask_clear(shown->cpus);
	for (k = 0; k < injector->cpus; k++)
		cpumask_set_cpu(injector->cpu[k].number, shown->cpus);
	shown->cpu.number = ncpu->number;
	shown->cpu.state = READ_ONCE(ncpu->state);
	shown->cpu.injected = READ_ONCE(ncpu->injected);
	shown->cpu.missed = READ_ONCE(ncpu->missed);
	shown->cpu.refused = READ_ONCE(ncpu->refused);
	shown->cpu.taken = READ_ONCE(ncpu->taken);
	shown->cpu.lost = READ_ONCE(ncpu->lost);
}

/* What the cursor is at, or the next one behind it, which it is at then. false: there is none. */
static bool noise_show(struct noise_shown *shown, const struct nlattr *only, struct noise_cursor *cursor)
{
	const struct kcoll_noise_injector *injector;
	bool found = false;

	spin_lock(&kcoll_noise_lock);
	list_for_each_entry(injector, &kcoll_noise_injectors, list) {
		if (injector->id < cursor->id || (only && injector->id != nla_get_u32(only)))
			continue;
		if (injector->id > cursor->id)
			*cursor = (struct noise_cursor){ .id = injector->id };
		found = cursor->ncpu < injector->cpus;
		if (found) {
			noise_copy(shown, injector, cursor->ncpu);
			break;
		}
	}
	spin_unlock(&kcoll_noise_lock);
	return found;
}

static int noise_put_all(struct sk_buff *skb, struct netlink_callback *cb, struct noise_shown *shown)
{
	const struct nlattr *only = coll_dump_attrs(cb)[COLL_NOISE_A_ID];
	struct noise_cursor *cursor = noise_cursor(cb);
	int error = 0;

	for (; !error && noise_show(shown, only, cursor); cursor->ncpu += !error)
		error = noise_put_shown(skb, cb, shown);
	return error;
}

/* Goes on from where the last message was full. */
int kcoll_noise_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	int error = kcoll_may_dump(cb, 0);
	struct noise_shown *shown;

	if (error)
		return error;
	shown = kzalloc(sizeof(*shown), GFP_KERNEL);
	if (!shown)
		return -ENOMEM;
	error = zalloc_cpumask_var(&shown->cpus, GFP_KERNEL) ? noise_put_all(skb, cb, shown) : -ENOMEM;
	free_cpumask_var(shown->cpus);
	kfree(shown);
	return skb->len ? skb->len : error;
}

/* ---- the log ---- */

/* As many entries as fit: of those that lie in a row in the ring, and worth a message. */
static int noise_put_entries(struct sk_buff *skb, struct kcoll_noise_cpu *ncpu, u64 until)
{
	u32 size = ncpu->injector->log, first = size ? ncpu->read & (size - 1) : 0;
	/* Another dump may have read further than this one wants to. */
	u64 left = until > ncpu->read ? until - ncpu->read : 0;
	u32 wanted = min3(left, (u64)size - first, (u64)ENTRIES_MAX);
	u32 room = skb_tailroom(skb) / sizeof(*ncpu->log);
	u32 count = min(wanted, room ? room - 1 : 0);

	if (count < min(wanted, ENTRIES_WORTH))
		return -EMSGSIZE;
	if (count && nla_put(skb, COLL_NOISE_A_EVENTS, count * sizeof(*ncpu->log),
			     &ncpu->log[first]))
		return -EMSGSIZE;
	/* Read before the ncpu may write over it. */
	smp_store_release(&ncpu->read, ncpu->read + count);
	return 0;
}

static int noise_put_log_head(struct sk_buff *skb, const struct kcoll_noise_cpu *ncpu)
{
	return nla_put_u32(skb, COLL_NOISE_A_ID, ncpu->injector->id) ||
	       nla_put_u32(skb, COLL_NOISE_A_CPU, ncpu->number) ||
	       noise_put_u64(skb, COLL_NOISE_A_LOST, READ_ONCE(ncpu->lost)) ? -EMSGSIZE : 0;
}

static int noise_put_log(struct sk_buff *skb, struct netlink_callback *cb,
			 struct kcoll_noise_cpu *ncpu, u64 until)
{
	void *header = kcoll_dump_put(skb, cb, COLL_CMD_NOISE_LOG);

	if (!header)
		return -EMSGSIZE;
	if (noise_put_log_head(skb, ncpu) || noise_put_entries(skb, ncpu, until)) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}

/* Of each ncpu, what was there when the dump came to it. */
static int noise_put_logs(struct sk_buff *skb, struct netlink_callback *cb,
			  struct kcoll_noise_injector *injector)
{
	struct noise_cursor *cursor = noise_cursor(cb);
	struct kcoll_noise_cpu *ncpu;
	int error;

	for (; cursor->ncpu < injector->cpus; cursor->ncpu++, cursor->until = 0) {
		ncpu = &injector->cpu[cursor->ncpu];
		if (!cursor->until)
			cursor->until = smp_load_acquire(&ncpu->logged); /* and what is in them */
		do {
			error = noise_put_log(skb, cb, ncpu, cursor->until);
			if (error)
				return error;
		} while (ncpu->read < cursor->until);
	}
	return 0;
}

int kcoll_noise_log(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nlattr *id = coll_dump_attrs(cb)[COLL_NOISE_A_ID];
	struct kcoll_noise_injector *injector;
	int error = kcoll_may_dump(cb, 0);

	if (error)
		return error;
	if (!id) {
		NL_SET_ERR_MSG(cb->extack, "id: missing; which injector");
		return -EINVAL;
	}
	mutex_lock(&kcoll_noise_mutex);
	injector = kcoll_noise_find(nla_get_u32(id));
	if (injector) {
		error = noise_put_logs(skb, cb, injector);
	} else {
		NL_SET_ERR_MSG_ATTR(cb->extack, id, "id: there is no such injector");
		error = -ENOENT;
	}
	mutex_unlock(&kcoll_noise_mutex);
	return skb->len ? skb->len : error;
}
