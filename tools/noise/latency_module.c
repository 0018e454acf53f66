// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/common/arguments.h"
#include "clock.h"
#include "latency.h"
#include "node/units.h"

enum { GLANCE_MS = 50 };

static u64 u64_of(struct nlattr *attribute)
{
	return attribute ? nla_get_u64(attribute) : 0;
}

/* ---- what the module tells ------------------------------------------------------------- */

static struct noise_latency_cpu *find_cpu(struct noise_latency *latency, u32 cpu)
{
	u32 i;

	for (i = 0; i < latency->cpus; i++)
		if (latency->cpu[i].cpu == cpu)
			return &latency->cpu[i];
	return NULL;	/* somebody else's */
}

static struct noise_stage *stage_of(struct noise_latency_cpu *cpu, struct nlattr *attribute)
{
	const u8 stage = attribute ? nla_get_u8(attribute) : COLL_WATCH_STAGES;

	return stage < COLL_WATCH_STAGES ? &cpu->stage[stage] : NULL;
}

static int take_stage(struct noise_latency_cpu *cpu, struct nlattr *nest)
{
	struct nlattr *member[__COLL_WATCH_A_MAX] = { 0 };
	struct noise_stage *stage;

	if (nla_parse_nested(member, __COLL_WATCH_A_MAX - 1, nest, NULL))
		return -EPROTO;
	stage = stage_of(cpu, member[COLL_WATCH_A_STAGE]);
	if (!stage)
		return -EPROTO;
	stage->total = u64_of(member[COLL_WATCH_A_TOTAL]);
	stage->min = u64_of(member[COLL_WATCH_A_MIN]);
	stage->max = u64_of(member[COLL_WATCH_A_MAX]);
	stage->count = u64_of(member[COLL_WATCH_A_COUNT]);
	return 0;
}

static void take_buckets(struct noise_stage *stage, struct nlattr *attribute)
{
	const u32 count = nla_len(attribute) / sizeof(struct coll_watch_bucket);
	struct coll_watch_bucket bucket;
	u32 i;

	for (i = 0; i < count; i++) {
		memcpy(&bucket, (char *)nla_data(attribute) + i * sizeof(bucket), sizeof(bucket));
		stage->bucket[coll_bucket(bucket.least)] += bucket.count;
	}
}

static int take_latency(enum coll_command command, struct nlattr **attributes, void *data)
{
	struct noise_latency_cpu *cpu;
	struct noise_stage *stage;
	int error = 0;

	(void)command;
	if (!attributes[COLL_WATCH_A_CPU])
		return -EPROTO;
	cpu = find_cpu(data, nla_get_u32(attributes[COLL_WATCH_A_CPU]));
	if (!cpu)
		return 0;
	if (attributes[COLL_WATCH_A_MISSED])
		cpu->missed = u64_of(attributes[COLL_WATCH_A_MISSED]);
	if (attributes[COLL_WATCH_A_LATENCY])
		error = take_stage(cpu, attributes[COLL_WATCH_A_LATENCY]);
	stage = stage_of(cpu, attributes[COLL_WATCH_A_STAGE]);
	if (stage && attributes[COLL_WATCH_A_BUCKETS])
		take_buckets(stage, attributes[COLL_WATCH_A_BUCKETS]);
	if (!error && attributes[COLL_WATCH_A_CASE] && cpu->worsts < NOISE_WORST)
		error = noise_case_take(attributes[COLL_WATCH_A_CASE], cpu->cpu,
					&cpu->worst[cpu->worsts++]);
	return error;
}

/* ---- measuring ----------------------------------------------------------------------------- */

static int latency_start(struct netlink *netlink, const struct noise_latency_options *options)
{
	struct nl_msg *message = netlink_message(netlink, COLL_CMD_WATCH_START, 0);
	char list[NODE_CPUS_TEXT];

	if (!message)
		return -ENOMEM;
	nla_put_string(message, COLL_WATCH_A_CPUS,
		       node_cpus_list(&options->cpus, list, sizeof(list)));
	nla_put_u64(message, COLL_WATCH_A_PERIOD, options->period);
	nla_put_u32(message, COLL_WATCH_A_PRIORITY, options->policy.priority);
	if (options->stop)
		nla_put_u64(message, COLL_WATCH_A_THRESHOLD, options->stop);
	return netlink_ask(netlink, message, NULL, NULL);
}

/* Until its end, the user's word or what passes the threshold. */
static int latency_wait(struct netlink *netlink, const struct noise_latency_options *options,
			struct noise_latency *latency)
{
	const struct timespec glance = { .tv_nsec = GLANCE_MS * NODE_MS };
	const u64 begin = noise_clock_read(CLOCK_MONOTONIC);
	int error = 0;

	while (!error && !latency->passed.any && !noise_latency_interrupted &&
	       latency->took < options->duration) {
		nanosleep(&glance, NULL);
		if (options->stop)
			error = noise_passed_read(netlink, &latency->passed);
		latency->took = noise_clock_read(CLOCK_MONOTONIC) - begin;
	}
	latency->interrupted = noise_latency_interrupted;
	return error;
}

static int latency_refuse(const struct noise_latency_options *options, struct netlink *netlink,
			  int error)
{
	fprintf(stderr, "%s %s: %s\n", argument_program, options->command, netlink_reason(netlink));
	return error;
}

int noise_latency_module(const struct noise_latency_options *options,
			 struct noise_latency *latency)
{
	struct netlink *netlink;
	int error = netlink_open(&netlink);

	if (error == -ENOENT) {
		netlink_close(netlink);
		return error;
	}
	latency->module = true;
	latency->policy = options->policy;
	if (!error)
		error = latency_start(netlink, options);
	if (!error)
		error = latency_wait(netlink, options, latency);
	if (!error)
		error = netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_LATENCY,
							     NLM_F_DUMP), take_latency, latency);
	if (error)
		latency_refuse(options, netlink, error);
	netlink_close(netlink);		/* which ends it */
	return error;
}
