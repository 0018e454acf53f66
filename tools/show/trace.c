// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The events of all ranks as a Chrome trace, which Perfetto and chrome://tracing read. A rank is
 * a process; its calls are thread 0, what it receives from and sends to rank r is thread r + 1.
 */
#include <stdio.h>
#include <stdlib.h>

#include "algo/common/algo.h"
#include "tools/common/command.h"
#include "trace.h"

struct trace {
	const struct coll_flight_job *job;
	struct coll_flight_clocks clocks;
	uint64_t start;			/* ns: the first rank's clock when the trace begins */
	json_t *events;
};

/* us since the trace's start. */
static double trace_time(const struct trace *trace, size_t index, uint64_t time)
{
	return (int64_t)(time + trace->clocks.offset[index] - trace->start) / 1e3;
}

static void trace_span(struct trace *trace, const char *category, const char *name, size_t index,
		       uint32_t thread, uint64_t from, uint64_t to, uint32_t run)
{
	json_array_append_new(trace->events, json_pack(
		"{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:{s:i}}", "ph", "X", "cat", category, "name",
		name, "pid", (int)trace->job->seen[index]->page.rank, "tid", (int)thread, "ts",
		trace_time(trace, index, from), "dur", (to - from) / 1e3, "args", "number",
		(int)run + 1));
}

static void trace_instant(struct trace *trace, const char *name, size_t index, uint32_t thread,
			  uint64_t time, uint32_t value)
{
	json_array_append_new(trace->events, json_pack(
		"{s:s, s:s, s:s, s:s, s:i, s:i, s:f, s:{s:i}}", "ph", "i", "s", "t", "cat", "op",
		"name", name, "pid", (int)trace->job->seen[index]->page.rank, "tid", (int)thread,
		"ts", trace_time(trace, index, time), "args", "value", (int)value));
}

/* ---- a rank ---------------------------------------------------------------------------- */

static const char *call_name(const struct coll_flight_page *page, uint32_t entry)
{
	const uint32_t collective =
		page->call[entry % COLL_FLIGHT_CALLS].collective;

	return collective < COLL_CALLS ? coll_collective_names[collective] : "?";
}

static bool is_end_of(const struct trace_event *event, const struct trace_event *begin)
{
	if (event->entry != begin->entry || event->run != begin->run)
		return false;
	return begin->kind == COLL_FLIGHT_BEGIN ?
		       event->kind == COLL_FLIGHT_END :
		       event->kind == COLL_FLIGHT_GOT && event->peer == begin->peer &&
				event->which == begin->which;
}

/* What has not ended lasts until it was looked at. */
static uint64_t end_of(const struct trace_event *events, size_t count, size_t begin, uint64_t now)
{
	size_t i;

	for (i = begin + 1; i < count; i++)
		if (is_end_of(&events[i], &events[begin]))
			return events[i].time;
	return now > events[begin].time ? now : events[begin].time;
}

static void trace_rank(struct trace *trace, size_t index)
{
	static const char *const names[COLL_FLIGHT_KINDS] = {
		[COLL_FLIGHT_SEND] = "send", [COLL_FLIGHT_SENT] = "sent",
		[COLL_FLIGHT_REDUCE] = "reduce", [COLL_FLIGHT_COPY] = "copy",
		[COLL_FLIGHT_CONNECT] = "connect", [COLL_FLIGHT_CONNECTED] = "connected",
		[COLL_FLIGHT_LINK] = "link", [COLL_FLIGHT_FAIL] = "failed",
	};
	const struct coll_flight_seen *seen = trace->job->seen[index];
	struct trace_event *events;
	const size_t count = trace_events(seen, &events);
	char name[96];
	size_t i;

	snprintf(name, sizeof(name), "rank %u on %s", seen->page.rank, seen->page.host);
	json_array_append_new(trace->events, json_pack("{s:s, s:s, s:i, s:{s:s}}", "ph", "M",
		"name", "process_name", "pid", (int)seen->page.rank, "args", "name", name));
	for (i = 0; i < count; i++) {
		const struct trace_event *event = &events[i];
		const uint32_t thread = event->peer == 0xffffff ? 0 : event->peer + 1;

		if (event->kind == COLL_FLIGHT_BEGIN)
			trace_span(trace, "run", call_name(&seen->page, event->which), index, 0,
				   event->time, end_of(events, count, i, seen->time), event->run);
		else if (event->kind == COLL_FLIGHT_RECV)
			trace_span(trace, "op", "recv", index, thread, event->time,
				   end_of(events, count, i, seen->time), event->run);
		else if (names[event->kind])
			trace_instant(trace, names[event->kind], index, thread, event->time,
				      event->which);
	}
	free(events);
}

/* ---- messages ------------------------------------------------------------------------------ */

static void trace_arrow(struct trace *trace, const struct coll_flight_message *message,
			size_t number)
{
	const struct coll_flight_page *from = &trace->job->seen[message->from]->page;
	const struct coll_flight_page *to = &trace->job->seen[message->to]->page;
	const double sent = trace_time(trace, message->from, message->sent);
	double got = trace_time(trace, message->to, message->got);

	if (got < sent)		/* noted at an earlier look at the clock: see "late" */
		got = sent;
	json_array_append_new(trace->events, json_pack(
		"{s:s, s:s, s:s, s:i, s:i, s:i, s:f}", "ph", "s", "cat", "message", "name",
		"message", "id", (int)number, "pid", (int)from->rank, "tid", (int)to->rank + 1,
		"ts", sent));
	json_array_append_new(trace->events, json_pack(
		"{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:f}", "ph", "f", "bp", "e", "cat", "message",
		"name", "message", "id", (int)number, "pid", (int)to->rank, "tid",
		(int)from->rank + 1, "ts", got));
}

/* The earliest event is at 0. */
static void trace_begin(struct trace *trace)
{
	size_t i;

	trace->start = UINT64_MAX;
	for (i = 0; i < trace->job->count; i++) {
		struct trace_event *events;

		if (trace_events(trace->job->seen[i], &events) &&
		    events[0].time + trace->clocks.offset[i] < trace->start)
			trace->start = events[0].time + trace->clocks.offset[i];
		free(events);
	}
}

int show_trace(const struct coll_flight_job *job)
{
	struct trace trace = { .job = job, .events = json_array() };
	struct coll_flight_message *messages;
	const size_t count = trace_messages(job, &messages);
	int err = COMMAND_ERROR;
	json_t *root;
	size_t i;

	if (coll_flight_align(job, messages, count, &trace.clocks)) {
		trace_begin(&trace);
		for (i = 0; i < job->count; i++)
			trace_rank(&trace, i);
		for (i = 0; i < count; i++)
			trace_arrow(&trace, &messages[i], i + 1);
	}
	root = json_pack("{s:o, s:s, s:{s:s, s:f, s:f}}", "traceEvents", trace.events,
			 "displayTimeUnit", "ns", "otherData", "job", job->seen[0]->page.job,
			 "clock_error_us", trace.clocks.error < 0 ? -1 : trace.clocks.error * 1e6,
			 "late_us", trace.clocks.late * 1e6);
	if (trace.clocks.offset && root)
		err = json_dumpf(root, stdout, JSON_COMPACT) ? COMMAND_ERROR : COMMAND_OK;
	printf("\n");
	json_decref(root);
	free(trace.clocks.offset);
	free(messages);
	return err;
}
