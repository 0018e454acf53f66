/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The generic netlink family `coll` of coll.ko. coll.yaml, made from this file, is its
 * specification for YNL. Each part of the module has its commands and its attributes:
 *
 *	noise	inject noise, and log each injected event
 *	watch	attribute the time of a CPU to its users
 *	pin	keep tasks away from CPUs
 *	circuit	hold traffic until its circuit is up
 *
 * The socket that starts something owns it: when the socket is closed, the kernel
 * undoes it. Commands that change something need CAP_NET_ADMIN in the initial user
 * namespace, CAP_SYS_NICE where they move or outrank tasks, and all of WATCH needs
 * CAP_PERFMON. Noise, watch and pin are asked from the initial network namespace, since CPUs
 * belong to no other, PIN_GET from the initial pid namespace too. Circuits belong to a
 * network namespace: they are asked from within, and their events are sent there. Who listens
 * to events needs CAP_NET_ADMIN in the user namespace of the network namespace. A
 * refusal's extended acknowledgement names the attribute and the valid values.
 */
#ifndef COLL_NETLINK_H
#define COLL_NETLINK_H

#include <linux/types.h>

#define COLL_GENL_NAME		"coll"
#define COLL_GENL_EVENTS	"events"	/* multicast group of COLL_CMD_EVENT */
enum { COLL_GENL_VERSION = 1 };

/*
 * Each comment: attributes of the request -> attributes of the replies, of which a dump
 * has many.
 */
enum coll_command {
	COLL_CMD_NOISE_START = 1, /* NOISE_* -> NOISE_ID: one injector on a set of CPUs */
	COLL_CMD_NOISE_STOP,	/* NOISE_ID; without it all injectors of this socket; frees an ended one */
	COLL_CMD_NOISE_GET,	/* dump: NOISE_ID -> NOISE_*: counters of each CPU; else of all */
	COLL_CMD_NOISE_LOG,	/* dump: NOISE_ID -> NOISE_CPU NOISE_EVENTS: events are read once */

	COLL_CMD_WATCH_START,	/* WATCH_CPUS WATCH_TASK WATCH_THREAD WATCH_LOG WATCH_PERIOD WATCH_PRIORITY WATCH_THRESHOLD WATCH_YIELDS WATCH_SHARE: watches these CPUs */
	COLL_CMD_WATCH_STOP,	/* WATCH_CPUS: stops this socket's watches of these CPUs; without it all of them */
	COLL_CMD_WATCH_GET,	/* dump: WATCH_OWN -> WATCH_*: of each CPU each SOURCE, then a summary; with OWN of this socket's watches only */
	COLL_CMD_WATCH_LOG,	/* dump: -> WATCH_CPU WATCH_EVENTS: of this socket; events are read once */
	COLL_CMD_WATCH_LATENCY,	/* dump: -> WATCH_CPU WATCH_PERIOD WATCH_MISSED WATCH_LATENCY WATCH_STAGE WATCH_BUCKETS WATCH_CASE: of each CPU with PERIOD: a summary, buckets, the longest cases */
	COLL_CMD_WATCH_PASSED,	/* dump: -> WATCH_CPU WATCH_THRESHOLD WATCH_CASE WATCH_PID WATCH_COMM WATCH_STACK: what passed a threshold */

	COLL_CMD_PIN_SET,	/* PIN_HOUSEKEEPING PIN_LINGER PIN_RULE: replaces all rules */
	COLL_CMD_PIN_CLEAR,	/* removes all rules and restores every changed affinity */
	COLL_CMD_PIN_GET,	/* dump: -> PIN_*: rules with counters, tasks with states */

	COLL_CMD_CIRCUIT_DOMAIN, /* CIRCUIT_*: manages these addresses; again: changes the domain */
	COLL_CMD_CIRCUIT_CLEAR,	/* ends the domain; held traffic is sent on without circuits */
	COLL_CMD_CIRCUIT_REQUEST, /* CIRCUIT_ADDRESS CIRCUIT_AHEAD CIRCUIT_DEADLINE -> CIRCUIT_ID: a lease */
	COLL_CMD_CIRCUIT_RELEASE, /* CIRCUIT_ID: releases a lease */
	COLL_CMD_CIRCUIT_SET,	/* CIRCUIT_ID CIRCUIT_SERIAL CIRCUIT_STATE CIRCUIT_ERROR: reports an order */
	COLL_CMD_CIRCUIT_GET,	/* dump: -> CIRCUIT_*: the domain, then each peer */
	COLL_CMD_EVENT,		/* multicast: -> EVENT_* */
	__COLL_CMD_MAX,
};

/* ---- noise ------------------------------------------------------------------ */

/*
 * An injector ends when it is stopped or its lifetime is over. It keeps its counters
 * and log until it is stopped by its number once more, or its socket is closed. Several
 * injectors may share a CPU, if their shares are at most 9000 together; at least one CPU
 * stays without injectors. An event lasts at most 10 ms in an interrupt, 1 s in a FIFO
 * thread, and 4 s of CPU time in an ordinary thread: a model that may exceed this is
 * refused, unless its `longest` cuts the events. The mean time between events is at least
 * 20 us. While a CPU is offline its injector pauses.
 *
 * Each event of the plan is injected, perhaps late; or missed; or refused, because it
 * would exceed the share.
 */
enum coll_noise_attr {
	COLL_NOISE_A_UNSPEC,
	COLL_NOISE_A_ID,	/* u32: number of the injector, from START */
	COLL_NOISE_A_CPUS,	/* string: a list such as "1-3,7" */
	COLL_NOISE_A_CONTEXT,	/* u8: enum coll_noise_context */
	COLL_NOISE_A_MODEL,	/* binary: struct coll_noise_model */
	COLL_NOISE_A_TABLE,	/* binary: struct coll_noise_span[], in one or more attributes */
	COLL_NOISE_A_EPOCH,	/* u64: start of the plan, CLOCK_REALTIME ns; default: now + 10 ms */
	COLL_NOISE_A_LIFETIME,	/* u64: ns from START; default 60 s, at most 1 day */
	COLL_NOISE_A_SHARE,	/* u32: maximum part of a CPU, in 1/10000; default 5000, at most 9000 */
	COLL_NOISE_A_LOG,	/* u32: events kept per CPU, at most 2^20; 0: none */
	COLL_NOISE_A_STREAM,	/* u32: number of the first CPU's stream; the next node continues the count */
	COLL_NOISE_A_CPU,	/* u32: in replies */
	COLL_NOISE_A_INJECTED,	/* u64: events injected */
	COLL_NOISE_A_MISSED,	/* u64: events that began during another one, or a period late */
	COLL_NOISE_A_REFUSED,	/* u64: events that would have exceeded the share */
	COLL_NOISE_A_TIME,	/* u64: ns of all injected events */
	COLL_NOISE_A_EVENTS,	/* binary: struct coll_noise_injected[] */
	COLL_NOISE_A_LOST,	/* u64: events not logged because the log was full */
	COLL_NOISE_A_STATE,	/* u8: 0 ended, 1 injecting, 2 its CPU is offline */
	COLL_NOISE_A_COST,	/* u32: ns that shorten an event for its overhead; at most 1 ms, default 0 */
	COLL_NOISE_A_PAD,
	__COLL_NOISE_A_MAX,
};

/* ---- watch ------------------------------------------------------------------ */

/*
 * Every nanosecond of a watched CPU has one owner: the time of an interrupt is not part
 * of what it interrupts. So WATCHED is the sum of RAN, IDLE and all TOTALs. Times are of CLOCK_MONOTONIC.
 *
 * With TASK, a TOTAL is what was taken of a CPU while TASK ran there or was ready to: by threads, interrupts,
 * softirqs and NMIs alike, on each of its CPUs by itself. What they have while it sleeps, or is elsewhere, is
 * IDLE. An NMI counts by what was so at its end.
 *
 * What the hypervisor took is STEAL's, and nobody else's. The kernel finds out at clock ticks how much it took
 * of the CPU, not when. Of that TASK has its part of the time since the tick before for which the CPU did not
 * sleep, at most for how long it wanted the CPU then; that it sleeps when the tick comes does not matter. It is
 * taken off what TASK, and threads that keep it waiting, have from then on. A host that is slow to wake a CPU
 * that sleeps is not told apart from one that stops a CPU that works.
 *
 * With PERIOD a timer on each CPU wakes a thread there. Latencies count from the time for
 * which the timer was set: to its interrupt (stage TIMER), and to the thread (THREAD). A
 * CASE says who took that time, the longest first. RAN is then that thread's time. It needs
 * CAP_SYS_NICE too.
 *
 * With THRESHOLD a watch stops on all its CPUs, and keeps what passed it: a latency of the
 * thread; or, with TASK, a time for which TASK was kept from running; or, with neither, one
 * event of one source. PASSED has the stack of the CPU when that was seen first: at the
 * end of the event or at an interrupt during it. STACK needs CAP_SYSLOG.
 *
 * With SHARE a CPU counts no more, by itself, once the watch takes more than this part of a second, or of the
 * time since that began. Its STATE says so until a STOP: what was counted before is still read. What a watch
 * takes is estimated: one step in 31 to 91 is timed, wake-ups of others by this CPU among them, and counts as
 * at most 20 us. Each call of another CPU, to START it there or to read it, is timed from when the interrupt's
 * handler begins, and counts as at most 20 us. Not in it are how the kernel comes to a step, and the processor
 * to that handler; steps in NMIs; PERIOD's timer and thread; the STOP; and that the kernel's code changes, all
 * CPUs interrupted, with the first watch and three minutes after the last. Such a watch is not interrupted to
 * be read while its CPU is idle or runs TASK: RAN, IDLE and WATCHED are of the latest change then.
 *
 * TASK is kept from running from when it is woken, is preempted, or comes from another CPU and is ready, until
 * it runs. On a CPU that is not watched for it nothing is counted: AWAY says how often it left for one, so
 * while that stays the same, and TASK was bound to its CPUs at the begin, what was counted is all. With THREAD
 * that is so of two threads, TASK and THREAD; all others of the process are a source, which has the process'
 * number and the name "other threads".
 *
 * Whoever may ask, with CAP_NET_ADMIN and CAP_PERFMON, sees the watches of all. The numbers of threads
 * are those of the reader's pid namespace; 0: it has none there, or has ended. A CPU's summary comes
 * after its sources: a CPU without one ceased to be watched meanwhile, and its sources are not all.
 *
 * A CPU has a thousand places for sources, and what comes when all are in use is in the rest of its cause,
 * "others", whose INDEX is CAUSE + 1. Without LOG, PERIOD and THRESHOLD, threads are folded into that, too: of
 * more than 64 those that took nothing for 10 s, and where there is no place the one that took nothing for
 * longest. What such a source had is added to the rest, so sums over all sources go on; another has its INDEX
 * later, with REUSED one more, and so has the thread itself when it comes again.
 *
 * What a GET says of a CPU is of the moment at which it came to that CPU, however slowly it is read: no source is
 * in it twice, and none is missing. Until all of the CPU was read a copy is kept, at most 400 KB, which is charged to
 * the reader's cgroup; where there is no memory for it the GET ends with ENOMEM.
 *
 * A CPU has one watch. One that YIELDS ends on a CPU when another START without YIELDS asks for it;
 * its owner sees in GET that OWN is gone, and may start it again when the CPU is free.
 */
enum coll_watch_attr {
	COLL_WATCH_A_UNSPEC,
	COLL_WATCH_A_CPUS,	/* string: a CPU list */
	COLL_WATCH_A_TASK,	/* u32: the thread group that noise delays; without it whatever runs */
	COLL_WATCH_A_LOG,	/* u32: events kept per CPU, at most 2^20; 0: none */
	COLL_WATCH_A_PERIOD,	/* u64: ns from 100 us to 10 s: also measures the wake-up latency this often */
	COLL_WATCH_A_PRIORITY,	/* u32: of the thread that is woken: 1 to 99 SCHED_FIFO, 0 SCHED_OTHER; default 95 */
	COLL_WATCH_A_THRESHOLD,	/* u64: ns from 1 us to 100 s: stops when a piece of time is longer */
	COLL_WATCH_A_CPU,	/* u32: this and all following ones are in replies */
	COLL_WATCH_A_WATCHED,	/* u64: ns watched */
	COLL_WATCH_A_RAN,	/* u64: ns that TASK ran */
	COLL_WATCH_A_IDLE,	/* u64: ns that the CPU was idle, or TASK did not want it */
	COLL_WATCH_A_COST,	/* u64: ns of overhead of the watch, within the times above */
	COLL_WATCH_A_LOST,	/* u64: events not logged because the log was full */
	COLL_WATCH_A_STATE,	/* u8: enum coll_watch_state */
	COLL_WATCH_A_SOURCE,	/* nest: one source */
	COLL_WATCH_A_INDEX,	/* u32: `source` in this CPU's events */
	COLL_WATCH_A_CAUSE,	/* u8: enum coll_noise_cause */
	COLL_WATCH_A_NUMBER,	/* u32: irq, vector, softirq, pid or injector */
	COLL_WATCH_A_NAME,	/* string: a thread's as it ran last; "others" for what a cause has without a name */
	COLL_WATCH_A_CGROUP,	/* u64: id of the thread's cgroup */
	COLL_WATCH_A_COUNT,	/* u64: events */
	COLL_WATCH_A_TOTAL,	/* u64: ns, without nested interruptions */
	COLL_WATCH_A_INCLUSIVE,	/* u64: ns, with nested interruptions, as a thread's CPU clock counts */
	COLL_WATCH_A_MAX,	/* u64: ns of the longest event */
	COLL_WATCH_A_HISTOGRAM,	/* binary: __u64[32], [i] counts 2^i <= ns < 2^(i+1) */
	COLL_WATCH_A_EVENTS,	/* binary: struct coll_noise_event[] */
	COLL_WATCH_A_MISSED,	/* u64: periods that began before the thread of the last one ran */
	COLL_WATCH_A_LATENCY,	/* nest: STAGE COUNT TOTAL MIN MAX of one stage */
	COLL_WATCH_A_STAGE,	/* u8: enum coll_watch_stage */
	COLL_WATCH_A_MIN,	/* u64: ns */
	COLL_WATCH_A_BUCKETS,	/* binary: struct coll_watch_bucket[]: a part of a stage's histogram */
	COLL_WATCH_A_CASE,	/* nest: START TOTAL TIMER, and PART for each source */
	COLL_WATCH_A_START,	/* u64: when it began */
	COLL_WATCH_A_TIMER,	/* u64: ns to the timer's interrupt; with PERIOD only */
	COLL_WATCH_A_PART,	/* nest: CAUSE NUMBER NAME CGROUP TOTAL; "idle" the idle CPU, "itself" the thread */
	COLL_WATCH_A_PID,	/* u32: the thread that the CPU had then */
	COLL_WATCH_A_COMM,	/* string: its name */
	COLL_WATCH_A_STACK,	/* string: a function a line, the innermost first */
	COLL_WATCH_A_YIELDS,	/* flag: of START: gives its CPUs up to a START without it */
	COLL_WATCH_A_OWN,	/* flag: the watch is of the socket that asks */
	COLL_WATCH_A_THREAD,	/* u32: of START: of TASK's process only the thread TASK and this one are delayed by noise */
	COLL_WATCH_A_SHARE,	/* u32: of START: part of a CPU that the watch may take, in 1/1000000, at most all; 0, default: any */
	COLL_WATCH_A_BORN,	/* u64: of a source that is a thread: when it was made, CLOCK_BOOTTIME ns: NUMBER is given again */
	COLL_WATCH_A_REUSED,	/* u32: of a source: so many others had its INDEX before; without it none had */
	COLL_WATCH_A_FOLDED,	/* u64: sources that were added to "others" since they had taken nothing for long */
	COLL_WATCH_A_AWAY,	/* u64: times that a thread of TASK left the CPU for one that is not watched for it */
	COLL_WATCH_A_PAD,
	__COLL_WATCH_A_MAX,
};

enum coll_watch_state {
	COLL_WATCH_COUNTS = 1,
	COLL_WATCH_OFFLINE,	/* the CPU is */
	COLL_WATCH_STOPPED,	/* by the threshold */
	COLL_WATCH_DEAR,	/* stopped: it took more than SHARE of the CPU */
};

enum coll_watch_stage {
	COLL_WATCH_TIMER,	/* from the time set to the timer's interrupt */
	COLL_WATCH_THREAD,	/* from the time set to the thread */
	COLL_WATCH_STAGES,
};

/* Latencies from `least` to below the next bucket, which is at most 1/32 more. */
struct coll_watch_bucket {
	__u64 least;		/* ns */
	__u64 count;
};

/* ---- pin -------------------------------------------------------------------- */

/*
 * Rules keep tasks away from the application's CPUs: tasks that match when the rules are
 * set, and tasks that match later because they fork, exec, or change their name or cgroup.
 * All conditions of a rule must hold; the first matching rule decides. A child inherits
 * its parent's CPUs. A task that no longer matches gets its earlier CPUs back. There is
 * one owner of rules at a time. After its death rules may linger; another socket's PIN_SET
 * then takes them over without moving a task.
 *
 * User space does what the kernel does not offer to modules: interrupts, the workqueues'
 * mask, a restore within a cpuset that has changed. PIN_GET lists each task with its saved
 * CPUs. A task that user space has changed is left alone.
 */
enum coll_pin_attr {
	COLL_PIN_A_UNSPEC,
	COLL_PIN_A_HOUSEKEEPING, /* string: CPU list for matching tasks */
	COLL_PIN_A_LINGER,	/* u32: ms that rules outlive their owner; default 0, up to 600000; 2^32 - 1: until cleared */
	COLL_PIN_A_RULE,	/* nest: at most 1024 of them, each with attributes from COMM to CPUS */
	COLL_PIN_A_COMM,	/* string: glob for the name of the task or of its process */
	COLL_PIN_A_CGROUP,	/* u64: id; tasks in this cgroup or below it */
	COLL_PIN_A_UID,		/* u32: real user id; a change is noticed within a minute */
	COLL_PIN_A_KTHREAD,	/* flag: kernel threads only; without it no kernel threads */
	COLL_PIN_A_PARENT,	/* u32: pid; descendants of this process */
	COLL_PIN_A_KEEP,	/* flag: matching tasks are left alone */
	COLL_PIN_A_CPUS,	/* string: CPU list for this rule's tasks instead of HOUSEKEEPING */
	COLL_PIN_A_INDEX,	/* u32: number of the rule; this and all following ones are in replies */
	COLL_PIN_A_MATCHED,	/* u64: tasks that matched; 0 of a rule with KEEP */
	COLL_PIN_A_MOVED,	/* u64: tasks moved, or started on the right CPUs */
	COLL_PIN_A_REFUSED,	/* u64: tasks that could not be moved */
	COLL_PIN_A_CHANGED,	/* u64: tasks whose CPUs another program changed afterwards */
	COLL_PIN_A_PID,		/* u32: in the reply of a task, with COMM, INDEX, STATE ... */
	COLL_PIN_A_STATE,	/* u8: enum coll_pin_state */
	COLL_PIN_A_ERROR,	/* u32: errno of a refusal */
	COLL_PIN_A_SAVED,	/* string: CPU list before the move */
	COLL_PIN_A_PAD,
	__COLL_PIN_A_MAX,
};

/*
 * ERROR of a refusal: EINVAL: the task's cpuset has none of these CPUs; EPERM: the kernel
 * places this thread; EBUSY: the task has a SCHED_DEADLINE reservation; EAGAIN: it does not
 * leave its CPU, where it gets no time or may not be moved just now, and is moved when it can be
 * (REFUSED does not count it); else the scheduler's error.
 */
enum coll_pin_state {
	COLL_PIN_MOVED,
	COLL_PIN_KEPT,		/* it was not allowed on other CPUs before */
	COLL_PIN_PER_CPU,	/* a kernel thread bound to one CPU */
	COLL_PIN_REFUSED,	/* see ERROR */
	COLL_PIN_CHANGED,	/* another program moved it afterwards: left alone */
};

/* ---- circuit ---------------------------------------------------------------- */

/*
 * A domain is the set of addresses that this network namespace reaches by circuits.
 * Traffic to an address requests its circuit and is held until the circuit is up: up to
 * BYTES for each peer, up to AGE. Held packets are sent first, in order. A packet that
 * cannot be held, or must not be (REFUSE), is counted and answered with "host
 * unreachable". Events carry orders to the domain's manager: set a circuit up, take it
 * down. The manager reports each order's result by CIRCUIT_SET. When the manager's socket
 * is closed the domain ends, and held packets are sent on without circuits.
 */
enum coll_circuit_attr {
	COLL_CIRCUIT_A_UNSPEC,
	COLL_CIRCUIT_A_ADDRESS,	/* binary: 4 bytes of IPv4, 16 of IPv6 */
	COLL_CIRCUIT_A_PREFIX,	/* u8: length in bits of the prefix that the domain shares; default all */
	COLL_CIRCUIT_A_PORTS,	/* u32: circuits at once, 0 to 64 */
	COLL_CIRCUIT_A_BYTES,	/* u32: memory for held traffic of a peer; default 1 MiB, at most 64 MiB */
	COLL_CIRCUIT_A_AGE,	/* u32: ms that traffic is held; default 150, at most 60000 */
	COLL_CIRCUIT_A_REFUSE,	/* flag: hold nothing */
	COLL_CIRCUIT_A_LEASE,	/* u32: ms that a lease is guaranteed; default 2000 */
	COLL_CIRCUIT_A_GRACE,	/* u32: ms from the notice of the end to the end; default 20 */
	COLL_CIRCUIT_A_KEEP,	/* u32: ms that a circuit stays after its last use; default 1000 */
	COLL_CIRCUIT_A_TIMEOUT,	/* u32: ms until an order fails; default 2000 */
	COLL_CIRCUIT_A_RETRY,	/* u32: ms from a failure to the next attempt; default 50 */
	COLL_CIRCUIT_A_RETRIES,	/* u32: attempts after the first; default 4, at most 100 */
	COLL_CIRCUIT_A_AHEAD,	/* flag: only with ports that no other request needs now */
	COLL_CIRCUIT_A_DEADLINE, /* u32: ms until a request fails whose circuit is not up; default none */
	COLL_CIRCUIT_A_ID,	/* u32: of a lease; of a circuit in SET, GET and events */
	COLL_CIRCUIT_A_SERIAL,	/* u32: number of the order */
	COLL_CIRCUIT_A_STATE,	/* u8: enum coll_circuit_state; SET accepts switching, up, down, failed */
	COLL_CIRCUIT_A_ERROR,	/* u32: errno */
	COLL_CIRCUIT_A_PORT,	/* u32: this and all following ones are in replies */
	COLL_CIRCUIT_A_REQUESTS,	/* u32: leases, with that of the traffic */
	COLL_CIRCUIT_A_QUEUED,	/* u32: bytes of memory of packets held now */
	COLL_CIRCUIT_A_PASSED,	/* u64: packets that found the circuit up */
	COLL_CIRCUIT_A_HELD,	/* u64: packets held so far */
	COLL_CIRCUIT_A_SENT,	/* u64: held packets sent over the circuit */
	COLL_CIRCUIT_A_REFUSED,	/* u64: packets beyond the capacity, or with REFUSE set */
	COLL_CIRCUIT_A_EXPIRED,	/* u64: held packets dropped after AGE or a failure */
	COLL_CIRCUIT_A_PAD,
	__COLL_CIRCUIT_A_MAX,
};

/* ---- events ----------------------------------------------------------------- */

enum coll_event_attr {
	COLL_EVENT_A_UNSPEC,
	COLL_EVENT_A_KIND,	/* u8: enum coll_event */
	COLL_EVENT_A_ID,	/* u32: number of the injector, circuit or lease */
	COLL_EVENT_A_CPU,	/* u32 */
	COLL_EVENT_A_PID,	/* u32 */
	COLL_EVENT_A_NAME,	/* string */
	COLL_EVENT_A_REASON,	/* string: a sentence for people */
	COLL_EVENT_A_SERIAL,	/* u32: number of the order */
	COLL_EVENT_A_PORT,	/* u32: port of the circuit */
	COLL_EVENT_A_ADDRESS,	/* binary: peer of the circuit */
	__COLL_EVENT_A_MAX,
};

enum coll_event {
	COLL_EVENT_NOISE_STARTED,
	COLL_EVENT_NOISE_ENDED,		/* REASON: stopped, lifetime, owner gone, unloaded */
	COLL_EVENT_NOISE_OFFLINE,	/* its CPU went offline */
	COLL_EVENT_PIN_CHANGED,		/* another program moved a pinned task */
	COLL_EVENT_PIN_ENDED,		/* REASON: cleared, owner gone, unloaded */
	COLL_EVENT_CIRCUIT_UP,		/* order to set up: ID SERIAL PORT ADDRESS */
	COLL_EVENT_CIRCUIT_DOWN,	/* order to take down */
	COLL_EVENT_CIRCUIT_STATE,	/* ID ADDRESS; NAME: the new state */
	COLL_EVENT_CIRCUIT_LEASE,	/* ID of the lease; NAME: up, draining, down, ended */
	COLL_EVENT_CIRCUIT_ENDED,	/* the domain has ended. REASON */
};

#endif
