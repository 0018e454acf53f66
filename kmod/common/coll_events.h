/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Our own tracepoints, in /sys/kernel/tracing/events/coll: what was injected,
 * what was seen. Free while nobody traces.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM coll

#if !defined(COLL_KMOD_EVENTS_H) || defined(TRACE_HEADER_MULTI_READ)
#define COLL_KMOD_EVENTS_H

#include <linux/tracepoint.h>

/* An event was injected on this CPU; times as in struct coll_noise_injected. */
TRACE_EVENT(coll_noise_injected,
	TP_PROTO(u32 id, u8 context, u64 asked_start, s64 late, u64 asked, u64 taken),
	TP_ARGS(id, context, asked_start, late, asked, taken),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u8, context)
		__field(u64, asked_start)
		__field(s64, late)
		__field(u64, asked)
		__field(u64, taken)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->context = context;
		__entry->asked_start = asked_start;
		__entry->late = late;
		__entry->asked = asked;
		__entry->taken = taken;
	),
	TP_printk("id %u context %u start %llu late %lld ns asked %llu ns taken %llu ns",
		  __entry->id, __entry->context, __entry->asked_start, __entry->late,
		  __entry->asked, __entry->taken)
);

/* Somebody took time of a watched CPU; `cause` is an enum coll_noise_cause. */
TRACE_EVENT(coll_watch_taken,
	TP_PROTO(u8 cause, u32 number, u64 duration),
	TP_ARGS(cause, number, duration),
	TP_STRUCT__entry(
		__field(u8, cause)
		__field(u32, number)
		__field(u64, duration)
	),
	TP_fast_assign(
		__entry->cause = cause;
		__entry->number = number;
		__entry->duration = duration;
	),
	TP_printk("cause %u number %u duration %llu ns",
		  __entry->cause, __entry->number, __entry->duration)
);

/* An event of netlink, whether anybody listens; `kind` is an enum coll_event. */
TRACE_EVENT(coll_event,
	TP_PROTO(u8 kind, u32 id, u32 serial, u32 pid),
	TP_ARGS(kind, id, serial, pid),
	TP_STRUCT__entry(
		__field(u8, kind)
		__field(u32, id)
		__field(u32, serial)
		__field(u32, pid)
	),
	TP_fast_assign(
		__entry->kind = kind;
		__entry->id = id;
		__entry->serial = serial;
		__entry->pid = pid;
	),
	TP_printk("kind %u id %u serial %u pid %u",
		  __entry->kind, __entry->id, __entry->serial, __entry->pid)
);

/* A run of /dev/coll was started, with the hash of its call; its task is the caller. */
TRACE_EVENT(coll_run_started,
	TP_PROTO(u32 group, u32 run, u32 hash),
	TP_ARGS(group, run, hash),
	TP_STRUCT__entry(
		__field(u32, group)
		__field(u32, run)
		__field(u32, hash)
	),
	TP_fast_assign(
		__entry->group = group;
		__entry->run = run;
		__entry->hash = hash;
	),
	TP_printk("group %u run %u hash %x", __entry->group, __entry->run, __entry->hash)
);

/* It has completed, with 0 or a negative errno. */
TRACE_EVENT(coll_run_completed,
	TP_PROTO(u32 group, u32 run, int status, u64 duration),
	TP_ARGS(group, run, status, duration),
	TP_STRUCT__entry(
		__field(u32, group)
		__field(u32, run)
		__field(int, status)
		__field(u64, duration)
	),
	TP_fast_assign(
		__entry->group = group;
		__entry->run = run;
		__entry->status = status;
		__entry->duration = duration;
	),
	TP_printk("group %u run %u status %d duration %llu ns",
		  __entry->group, __entry->run, __entry->status, __entry->duration)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE coll_events
#include <trace/define_trace.h>
