// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/watch_module.h"
#include "module.h"

enum { TABLE_PART = 2048 };	/* spans per attribute */

const char *const noise_context_names[COLL_NOISE_CONTEXTS] = { "hardirq", "softirq", "fifo",
							       "other" };

/* A source of a CPU: its index in the kernel's events, and in the capture. */
struct named {
	u32 cpu, index, source;
	u8 cause;
};

struct noise_module {
	struct netlink *netlink;
	struct named *name;
	u32 names;
	u64 cost;
	struct node_capture *capture;	/* during noise_module_explain() */
	struct coll_noise_event *event;	/* the kernel's, on CLOCK_MONOTONIC */
	u64 events;
};

int noise_module_open(struct noise_module **module)
{
	*module = calloc(1, sizeof(**module));
	return *module ? netlink_open(&(*module)->netlink) : -ENOMEM;
}

void noise_module_close(struct noise_module *module)
{
	if (!module)
		return;
	if (module->netlink)
		netlink_close(module->netlink);
	free(module->name);
	free(module->event);
	free(module);
}

const char *noise_module_reason(const struct noise_module *module)
{
	return module && module->netlink ? netlink_reason(module->netlink) : "no memory";
}

const char *noise_module_state(void)
{
	return access("/sys/module/coll", F_OK) ?
		       "the module is not loaded (insmod coll.ko): causes are not known" : "loaded";
}

static u64 u64_of(struct nlattr *attribute)
{
	return attribute ? nla_get_u64(attribute) : 0;
}

static u32 u32_of(struct nlattr *attribute)
{
	return attribute ? nla_get_u32(attribute) : 0;
}

/* ---- causes: what the kernel reports ------------------------------------------------------- */

int noise_module_watch(struct noise_module *module, const struct node_cpus *cpus, u32 capacity,
		       u64 threshold)
{
	const struct node_watch_order order = { .task = getpid(), .log = capacity, .threshold = threshold };

	return node_watch_begin(module->netlink, cpus, &order);
}

int noise_module_passed(struct noise_module *module, struct noise_passed *passed)
{
	return noise_passed_read(module->netlink, passed);
}

static int add_name(struct noise_module *module, const struct named *name)
{
	struct named *more = reallocarray(module->name, module->names + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	module->name = more;
	more[module->names++] = *name;
	return 0;
}

/* One source of one CPU; the capture has one entry for all CPUs. */
static int take_source(struct noise_module *module, const struct node_watched *watched)
{
	struct named name = { .cpu = watched->cpu, .index = watched->index, .cause = watched->cause };
	struct coll_noise_source *source;
	int error = node_capture_source(module->capture, watched->cause, watched->number, watched->name,
					&name.source);

	if (error)
		return error;
	source = &module->capture->source[name.source - 1];
	source->times += watched->count;
	source->total += watched->total;
	source->inclusive += watched->inclusive;
	return add_name(module, &name);
}

static int take_watched(const struct node_watched *watched, void *data)
{
	struct noise_module *module = data;

	if (watched->is_source)
		return take_source(module, watched);
	module->cost += watched->cost;
	return 0;
}

static int take_events(enum coll_command command, struct nlattr **attributes, void *data)
{
	struct nlattr *part = attributes[COLL_WATCH_A_EVENTS];
	const u32 count = part ? nla_len(part) / sizeof(struct coll_noise_event) : 0;
	struct noise_module *module = data;
	struct coll_noise_event *more;

	(void)command;
	if (!count)
		return 0;
	more = reallocarray(module->event, module->events + count, sizeof(*more));
	if (!more)
		return -ENOMEM;
	memcpy(more + module->events, nla_data(part), count * sizeof(*more));
	module->event = more;
	module->events += count;
	return 0;
}

/*
 * ---- causes: joined to the capture
 * --------------------------------------------------------------
 */

static int in_order(const void *a, const void *b)
{
	const struct coll_noise_event *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

/*
 * CLOCK_REALTIME less CLOCK_MONOTONIC: of many tries the one with the least time between readings.
 */
static u64 wall_offset(void)
{
	u64 best = UINT64_MAX, offset = 0;
	int i;

	for (i = 0; i < 64; i++) {
		const u64 before = noise_clock_read(CLOCK_MONOTONIC);
		const u64 wall = noise_clock_read(CLOCK_REALTIME);
		const u64 after = noise_clock_read(CLOCK_MONOTONIC);

		if (after - before < best) {
			best = after - before;
			offset = wall - before - (after - before) / 2;
		}
	}
	return offset;
}

static const struct named *find_name(const struct noise_module *module, u32 cpu, u32 index)
{
	u32 i;

	for (i = 0; i < module->names; i++)
		if (module->name[i].cpu == cpu && module->name[i].index == index)
			return &module->name[i];
	return NULL;
}

/*
 * The source that took most of the gap. Candidates are the kernel's events that begin in the gap
 * or end in it; an event's time excludes the events nested in it.
 */
static void explain_event(const struct noise_module *module, struct coll_noise_event *gap,
			  u64 start, u64 *first)
{
	enum { PARTS = 32, EARLY = 2000 };
	struct { u32 index; u64 time; } part[PARTS] = { { 0, 0 } };
	const struct named *name;
	u32 parts = 0, most = 0, k;
	u64 i;

	while (*first < module->events && (module->event[*first].cpu < gap->cpu ||
	       (module->event[*first].cpu == gap->cpu &&
		module->event[*first].start + module->event[*first].duration < start)))
		++*first;
	for (i = *first; i < module->events && module->event[i].cpu == gap->cpu &&
	     module->event[i].start <= start + gap->duration; i++) {
		const struct coll_noise_event *event = &module->event[i];

		if (event->start + EARLY < start &&
		    event->start + event->duration / 2 < start)
			continue;	/* mostly before the gap */
		for (k = 0; k < parts && part[k].index != event->source; k++)
			;
		if (k == PARTS)
			continue;
		parts += k == parts;
		part[k].index = event->source;
		part[k].time += event->duration;
		most = part[k].time > part[most].time ? k : most;
	}
	name = parts ? find_name(module, gap->cpu, part[most].index) : NULL;
	gap->cause = name ? name->cause : COLL_NOISE_HARDWARE;
	gap->source = name ? name->source : 0;
}

static void explain_all(struct noise_module *module, struct node_capture *capture)
{
	const u64 offset = wall_offset();
	u64 i, first = 0;

	qsort(module->event, module->events, sizeof(*module->event), in_order);
	for (i = 0; i < capture->head.events; i++)
		explain_event(module, &capture->event[i],
			      capture->head.epoch + capture->event[i].start - offset, &first);
}

int noise_module_explain(struct noise_module *module, struct node_capture *capture, u64 *cost)
{
	int error;

	module->capture = capture;
	error = netlink_ask(module->netlink,
			    netlink_message(module->netlink, COLL_CMD_WATCH_LOG, NLM_F_DUMP),
			    take_events, module);
	if (!error)
		error = node_watch_read(module->netlink, NODE_WATCH_OWN, take_watched, module);
	netlink_ask(module->netlink, netlink_message(module->netlink, COLL_CMD_WATCH_STOP, 0), NULL,
		    NULL);
	*cost = module->cost;
	if (!error && module->events)
		explain_all(module, capture);
	return error;
}

/* ---- injecting -------------------------------------------------------------------------- */

static int take_id(enum coll_command command, struct nlattr **attributes, void *data)
{
	(void)command;
	if (!attributes[COLL_NOISE_A_ID])
		return -EPROTO;
	*(u32 *)data = nla_get_u32(attributes[COLL_NOISE_A_ID]);
	return 0;
}

static bool put_table(struct nl_msg *message, const struct coll_noise_plan *plan)
{
	u32 at, count;

	for (at = 0; at < plan->spans; at += count) {
		count = plan->spans - at < TABLE_PART ? plan->spans - at : TABLE_PART;
		if (nla_put(message, COLL_NOISE_A_TABLE, count * sizeof(*plan->table),
			    plan->table + at))
			return false;
	}
	return true;
}

int noise_module_inject(struct noise_module *module, const struct noise_module_order *order,
			u32 *id)
{
	struct nl_msg *message = netlink_message(module->netlink, COLL_CMD_NOISE_START, 0);
	char list[NODE_CPUS_TEXT];

	if (!message)
		return -ENOMEM;
	nla_put_string(message, COLL_NOISE_A_CPUS,
		       node_cpus_list(order->cpus, list, sizeof(list)));
	nla_put_u8(message, COLL_NOISE_A_CONTEXT, order->context);
	nla_put(message, COLL_NOISE_A_MODEL, sizeof(*order->plan->model), order->plan->model);
	nla_put_u64(message, COLL_NOISE_A_EPOCH, order->epoch);
	nla_put_u64(message, COLL_NOISE_A_LIFETIME, order->lifetime);
	nla_put_u32(message, COLL_NOISE_A_SHARE, order->share);
	nla_put_u32(message, COLL_NOISE_A_LOG, order->log);
	nla_put_u32(message, COLL_NOISE_A_STREAM, order->stream);
	nla_put_u32(message, COLL_NOISE_A_COST, order->cost);
	if (!put_table(message, order->plan)) {
		nlmsg_free(message);
		return -EMSGSIZE;
	}
	return netlink_ask(module->netlink, message, take_id, id);
}

static struct nl_msg *module_about(struct noise_module *module, enum coll_command command,
				   int flags, u32 id)
{
	struct nl_msg *message = netlink_message(module->netlink, command, flags);

	if (message)
		nla_put_u32(message, COLL_NOISE_A_ID, id);
	return message;
}

int noise_module_stop(struct noise_module *module, u32 id)
{
	return netlink_ask(module->netlink, module_about(module, COLL_CMD_NOISE_STOP, 0, id), NULL,
			   NULL);
}

struct taker {
	noise_module_take *take;
	void *data;
};

static int take_log(enum coll_command command, struct nlattr **attributes, void *data)
{
	struct nlattr *part = attributes[COLL_NOISE_A_EVENTS];
	const struct taker *taker = data;

	(void)command;
	taker->take(u32_of(attributes[COLL_NOISE_A_CPU]), part ? nla_data(part) : NULL,
		    part ? nla_len(part) / sizeof(struct coll_noise_injected) : 0,
		    u64_of(attributes[COLL_NOISE_A_LOST]), taker->data);
	return 0;
}

int noise_module_log(struct noise_module *module, u32 id, noise_module_take *take, void *data)
{
	struct taker taker = { take, data };

	return netlink_ask(module->netlink,
			   module_about(module, COLL_CMD_NOISE_LOG, NLM_F_DUMP, id), take_log,
			   &taker);
}

struct counters {
	u32 id, cpu;
	u64 missed, refused;
};

static int take_counters(enum coll_command command, struct nlattr **attributes, void *data)
{
	struct counters *counters = data;

	(void)command;
	if (u32_of(attributes[COLL_NOISE_A_ID]) == counters->id && attributes[COLL_NOISE_A_CPU] &&
	    nla_get_u32(attributes[COLL_NOISE_A_CPU]) == counters->cpu) {
		counters->missed = u64_of(attributes[COLL_NOISE_A_MISSED]);
		counters->refused = u64_of(attributes[COLL_NOISE_A_REFUSED]);
	}
	return 0;
}

int noise_module_missed(struct noise_module *module, u32 id, u32 cpu, u64 *missed, u64 *refused)
{
	struct counters counters = { .id = id, .cpu = cpu };
	int error = netlink_ask(module->netlink,
				netlink_message(module->netlink, COLL_CMD_NOISE_GET, NLM_F_DUMP),
				take_counters, &counters);

	*missed = counters.missed;
	*refused = counters.refused;
	return error;
}
