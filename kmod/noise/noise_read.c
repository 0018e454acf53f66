// SPDX-License-Identifier: GPL-2.0
/* What NOISE_START asks for: read, and checked against the limits. */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "kmod/common/netlink.h"
#include "noise.h"

const struct nla_policy kcoll_noise_start_policy[__COLL_NOISE_A_MAX] = {
	[COLL_NOISE_A_CPUS] = COLL_POLICY_CPUS,
	[COLL_NOISE_A_CONTEXT] = { .type = NLA_U8 },
	[COLL_NOISE_A_MODEL] = NLA_POLICY_EXACT_LEN(sizeof(struct coll_noise_model)),
	[COLL_NOISE_A_TABLE] = { .type = NLA_BINARY },
	[COLL_NOISE_A_EPOCH] = { .type = NLA_U64 },
	[COLL_NOISE_A_LIFETIME] = { .type = NLA_U64 },
	[COLL_NOISE_A_SHARE] = { .type = NLA_U32 },
	[COLL_NOISE_A_LOG] = { .type = NLA_U32 },
	[COLL_NOISE_A_STREAM] = { .type = NLA_U32 },
	[COLL_NOISE_A_COST] = { .type = NLA_U32 },
};

static u64 start_u64(struct genl_info *info, int attr, u64 none)
{
	return info->attrs[attr] ? nla_get_u64(info->attrs[attr]) : none;
}

static u32 start_u32(struct genl_info *info, int attr, u32 none)
{
	return info->attrs[attr] ? nla_get_u32(info->attrs[attr]) : none;
}

int kcoll_noise_read_numbers(struct genl_info *info, struct kcoll_noise_injector *injector)
{
	u64 now = ktime_get_real_ns();
	u32 log = start_u32(info, COLL_NOISE_A_LOG, 0);

	if (!info->attrs[COLL_NOISE_A_CONTEXT])
		return coll_refuse(info, COLL_NOISE_A_CONTEXT, -EINVAL,
				   "context: missing; hard interrupt (0), tasklet (1), FIFO thread (2) or ordinary thread (3)");
	injector->context = nla_get_u8(info->attrs[COLL_NOISE_A_CONTEXT]);
	injector->share = start_u32(info, COLL_NOISE_A_SHARE, COLL_NOISE_SHARE);
	injector->lifetime = start_u64(info, COLL_NOISE_A_LIFETIME, COLL_NOISE_LIFETIME);
	injector->epoch = start_u64(info, COLL_NOISE_A_EPOCH, now + 10 * NSEC_PER_MSEC);
	injector->stream = start_u32(info, COLL_NOISE_A_STREAM, 0);
	injector->cost = start_u32(info, COLL_NOISE_A_COST, 0);
	if (injector->context >= COLL_NOISE_CONTEXTS)
		return coll_refuse(info, COLL_NOISE_A_CONTEXT, -EINVAL,
				   "context: hard interrupt (0), tasklet (1), FIFO thread (2) or ordinary thread (3)");
	if (!injector->share || injector->share > COLL_NOISE_SHARE_MAX_HERE)
		return coll_refuse(info, COLL_NOISE_A_SHARE, -ERANGE,
				   "share: 1 to 9000, in 1/10000 of a CPU");
	if (injector->lifetime < NSEC_PER_MSEC || injector->lifetime > COLL_NOISE_LIFETIME_MAX)
		return coll_refuse(info, COLL_NOISE_A_LIFETIME, -ERANGE,
				   "lifetime: from 1 ms to a day, in ns");
	if (injector->epoch > now + injector->lifetime)
		return coll_refuse(info, COLL_NOISE_A_EPOCH, -ERANGE,
				   "epoch: before the lifetime ends, in ns since 1970");
	if (log > COLL_NOISE_LOG_MAX)
		return coll_refuse(info, COLL_NOISE_A_LOG, -ERANGE,
				   "log: at most 1048576 events a CPU");
	if (injector->cost > COLL_NOISE_COST_MAX)
		return coll_refuse(info, COLL_NOISE_A_COST, -ERANGE, "cost: at most 1 ms, in ns");
	injector->log = log ? roundup_pow_of_two(log) : 0;
	return 0;
}

/* All NOISE_A_TABLE attributes, one behind the other. */
static int start_read_table(struct genl_info *info, struct kcoll_noise_injector *injector)
{
	u64 bytes = 0, at = 0;
	struct nlattr *attr;
	int left;

	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, left)
		if (nla_type(attr) == COLL_NOISE_A_TABLE)
			bytes += nla_len(attr);
	if (!bytes)
		return 0;
	if (bytes % sizeof(*injector->table) ||
	    bytes / sizeof(*injector->table) > COLL_NOISE_SPANS_MAX)
		return coll_refuse(info, COLL_NOISE_A_TABLE, -EINVAL,
				   "table: whole struct coll_noise_span, at most 1048576");
	injector->table = kvmalloc(bytes, COLL_GFP);
	if (!injector->table)
		return -ENOMEM;
	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, left) {
		if (nla_type(attr) != COLL_NOISE_A_TABLE)
			continue;
		memcpy((char *)injector->table + at, nla_data(attr), nla_len(attr));
		at += nla_len(attr);
	}
	injector->plan.table = injector->table;
	injector->plan.spans = bytes / sizeof(*injector->table);
	return 0;
}

static u64 start_plan_longest(const struct coll_noise_plan *plan)
{
	const struct coll_noise_model *model = plan->model;
	u64 longest = 0;
	u32 i;

	if (model->length == COLL_NOISE_FIXED)
		longest = model->duration;
	else if (model->length != COLL_NOISE_TABLE)
		longest = COLL_NOISE_DURATION_MAX;
	for (i = 0; i < plan->spans; i++)
		longest = max(longest, plan->table[i].duration);
	return model->longest ? min(longest, model->longest) : longest;
}

/* A valid plan may still take more than the limits of this machine allow. */
static int start_check_limits(struct genl_info *info, struct kcoll_noise_injector *injector)
{
	const struct coll_noise_plan *plan = &injector->plan;
	u64 period = plan->model->period;
	u32 events = plan->model->arrival == COLL_NOISE_REPLAY ? plan->spans : 1;

	injector->longest = start_plan_longest(plan);
	if (period < (u64)events * COLL_NOISE_GAP_MIN)
		return coll_refuse(
			info, COLL_NOISE_A_MODEL, -ERANGE,
			"period: events are injected every 20 us on average, not more often");
	if (coll_noise_load(plan) > div_u64(period * injector->share, 10000))
		return coll_refuse(info, COLL_NOISE_A_SHARE, -ERANGE,
				   "share: the model asks for more on average; give it more share or less noise");
	if (injector->longest <= kcoll_noise_context_longest(injector->context))
		return 0;
	if (injector->context == COLL_NOISE_FIFO)
		return coll_refuse(info, COLL_NOISE_A_MODEL, -ERANGE,
				   "duration: in a FIFO thread at most 1 s; longest cuts, ordinary threads have 4 s");
	if (injector->context == COLL_NOISE_OTHER)
		return coll_refuse(info, COLL_NOISE_A_MODEL, -ERANGE,
				   "duration: in a thread at most 4 s; longest cuts");
	return coll_refuse(
		info, COLL_NOISE_A_MODEL, -ERANGE,
		"duration: in an interrupt at most 10 ms; longest cuts, FIFO threads have 1 s");
}

int kcoll_noise_read_model(struct genl_info *info, struct kcoll_noise_injector *injector)
{
	const char *wrong;
	int error;

	if (!info->attrs[COLL_NOISE_A_MODEL])
		return coll_refuse(info, COLL_NOISE_A_MODEL, -EINVAL,
				   "model: missing; a struct coll_noise_model");
	nla_memcpy(&injector->model, info->attrs[COLL_NOISE_A_MODEL], sizeof(injector->model));
	injector->plan.model = &injector->model;
	error = start_read_table(info, injector);
	if (error)
		return error;
	if (coll_noise_check(&injector->plan, &wrong)) {
		info->extack->_msg = wrong;
		NL_SET_BAD_ATTR(info->extack, info->attrs[COLL_NOISE_A_MODEL]);
		return -EINVAL;
	}
	return start_check_limits(info, injector);
}
