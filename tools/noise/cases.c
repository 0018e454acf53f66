// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "node/capture.h"
#include "node/cgroup.h"
#include "node/units.h"

/* ---- what the module tells ------------------------------------------------------------- */

static u64 u64_of(struct nlattr *attribute)
{
	return attribute ? nla_get_u64(attribute) : 0;
}

static u32 u32_of(struct nlattr *attribute)
{
	return attribute ? nla_get_u32(attribute) : 0;
}

/* Tasks name themselves. */
static void take_name(char *name, const struct nlattr *from, size_t bytes)
{
	nla_strlcpy(name, from, bytes);
	node_make_printable(name);
}

static int take_part(struct nlattr *nest, struct noise_case *one)
{
	struct nlattr *member[__COLL_WATCH_A_MAX] = { 0 };
	struct noise_part *part = &one->part[one->parts];

	if (one->parts == NOISE_PARTS)
		return 0;
	if (nla_parse_nested(member, __COLL_WATCH_A_MAX - 1, nest, NULL) ||
	    !member[COLL_WATCH_A_CAUSE] || !member[COLL_WATCH_A_NAME])
		return -EPROTO;
	part->cause = nla_get_u8(member[COLL_WATCH_A_CAUSE]);
	part->number = u32_of(member[COLL_WATCH_A_NUMBER]);
	part->cgroup = u64_of(member[COLL_WATCH_A_CGROUP]);
	part->time = u64_of(member[COLL_WATCH_A_TOTAL]);
	take_name(part->name, member[COLL_WATCH_A_NAME], sizeof(part->name));
	one->parts++;
	return 0;
}

int noise_case_take(struct nlattr *nest, u32 cpu, struct noise_case *one)
{
	struct nlattr *attribute;
	int rest, error = 0;

	*one = (struct noise_case){ .cpu = cpu };
	nla_for_each_nested(attribute, nest, rest) {
		if (nla_type(attribute) == COLL_WATCH_A_PART) {
			error = error ? error : take_part(attribute, one);
			continue;
		}
		if (nla_len(attribute) != sizeof(u64))
			continue;
		if (nla_type(attribute) == COLL_WATCH_A_START)
			one->start = nla_get_u64(attribute);
		else if (nla_type(attribute) == COLL_WATCH_A_TOTAL)
			one->total = nla_get_u64(attribute);
		else if (nla_type(attribute) == COLL_WATCH_A_TIMER)
			one->timer = nla_get_u64(attribute);
	}
	return error;
}

static int take_passed(enum coll_command command, struct nlattr **attributes, void *data)
{
	const u32 cpu = u32_of(attributes[COLL_WATCH_A_CPU]);
	struct noise_passed *passed = data;

	(void)command;
	if (passed->any && cpu != passed->one.cpu)
		return 0;	/* of another watch */
	if (attributes[COLL_WATCH_A_STACK])
		nla_strlcpy(passed->stack, attributes[COLL_WATCH_A_STACK], sizeof(passed->stack));
	if (!attributes[COLL_WATCH_A_CASE])
		return 0;
	passed->any = true;
	passed->threshold = u64_of(attributes[COLL_WATCH_A_THRESHOLD]);
	passed->pid = u32_of(attributes[COLL_WATCH_A_PID]);
	if (attributes[COLL_WATCH_A_COMM])
		take_name(passed->comm, attributes[COLL_WATCH_A_COMM], sizeof(passed->comm));
	return noise_case_take(attributes[COLL_WATCH_A_CASE], cpu, &passed->one);
}

int noise_passed_read(struct netlink *netlink, struct noise_passed *passed)
{
	*passed = (struct noise_passed){ 0 };
	return netlink_ask(netlink, netlink_message(netlink, COLL_CMD_WATCH_PASSED, NLM_F_DUMP),
			   take_passed, passed);
}

/* Users name cgroups, too. To be freed; NULL: it has none, or none any more. */
static char *part_cgroup(const struct noise_part *part)
{
	char *path = part->cgroup ? node_cgroup_path(part->cgroup) : NULL;

	if (path)
		node_make_printable(path);
	return path;
}

/* ---- for people ------------------------------------------------------------------------ */

char *noise_part_text(const struct noise_part *part, char *text, size_t bytes)
{
	char *path;

	if (part->cause == COLL_NOISE_UNKNOWN || !strcmp(part->name, "itself")) {
		snprintf(text, bytes, "%s", strcmp(part->name, "itself") ? part->name :
			 "the thread itself");
		return text;
	}
	path = part_cgroup(part);
	if (path)
		snprintf(text, bytes, "%s %s (%u) in %s", node_cause_name(part->cause), part->name,
			 part->number, path);
	else
		snprintf(text, bytes, "%s %s (%u)", node_cause_name(part->cause), part->name,
			 part->number);
	free(path);
	return text;
}

void noise_case_print(const struct noise_case *one, FILE *to)
{
	char time[24], text[400];
	u32 i;

	fprintf(to, "CPU %u: %s", one->cpu, node_time_text(one->total, time));
	if (one->timer)
		fprintf(to, ", to the timer's interrupt %s", node_time_text(one->timer, time));
	fprintf(to, "\n");
	for (i = 0; i < one->parts; i++)
		fprintf(to, "  %9s  %s\n", node_time_text(one->part[i].time, time),
			noise_part_text(&one->part[i], text, sizeof(text)));
}

void noise_passed_print(const struct noise_passed *passed, FILE *to)
{
	const char *line = passed->stack, *end;
	char time[24];

	fprintf(to, "\nthe threshold of %s was passed:\n",
		node_time_text(passed->threshold, time));
	noise_case_print(&passed->one, to);
	fprintf(to, "stack of CPU %u then, in %s (%u)%s\n", passed->one.cpu, passed->comm,
		passed->pid, *line ? ":" : ": only for who has CAP_SYSLOG");
	for (; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		fprintf(to, "  %.*s\n", (int)(end - line), line);
	}
}

/* ---- JSON -------------------------------------------------------------------------------- */

static json_t *part_json(const struct noise_part *part)
{
	char *path = part_cgroup(part);
	json_t *json = json_pack("{ss ss si sI ss*}", "cause", node_cause_name(part->cause),
				 "name", part->name, "number", (int)part->number, "ns",
				 (json_int_t)part->time, "cgroup", path);

	free(path);
	return json;
}

json_t *noise_case_json(const struct noise_case *one)
{
	json_t *parts = json_array();
	u32 i;

	for (i = 0; i < one->parts; i++)
		json_array_append_new(parts, part_json(&one->part[i]));
	return json_pack("{si sI sI sI so}", "cpu", (int)one->cpu, "start_ns",
			 (json_int_t)one->start, "total_ns", (json_int_t)one->total, "timer_ns",
			 (json_int_t)one->timer, "parts", parts);
}

json_t *noise_passed_json(const struct noise_passed *passed)
{
	const char *line = passed->stack, *end;
	json_t *stack = json_array();

	for (; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		json_array_append_new(stack, json_stringn(line, end - line));
	}
	return json_pack("{sI so si ss so}", "threshold_ns", (json_int_t)passed->threshold, "case",
			 noise_case_json(&passed->one), "pid", (int)passed->pid, "comm",
			 passed->comm, "stack", stack);
}
