/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The generic netlink family `coll` of coll.ko; coll.yaml says the same for
 * YNL. One part of the module, one set of commands, one space of attributes.
 *
 *	noise	inject it; a log of what really came
 *	watch	who took the time of a CPU
 *	pin	keep tasks away from CPUs
 *	circuit	hold traffic until its circuit is up
 *
 * Whoever starts something owns it: when the socket that asked is closed, the
 * kernel undoes it. Commands that change something need CAP_NET_ADMIN in the
 * first user namespace (and CAP_SYS_NICE where they move or outrank tasks) and
 * come from the first network namespace, for CPUs belong to nobody's namespace
 * but that one. Circuits belong to a network namespace: its root rules them, from
 * within, and their events are told there. A refusal names the attribute and what is valid in its extended
 * acknowledgement.
 */
#ifndef COLL_NETLINK_H
#define COLL_NETLINK_H

#define COLL_GENL_NAME		"coll"
#define COLL_GENL_EVENTS	"events"	/* multicast: what began, ended or went wrong */
enum { COLL_GENL_VERSION = 1 };

/* Their attributes: of the request -> of the answers; a dump has many. */
enum coll_command {
	COLL_CMD_NOISE_START = 1, /* NOISE_* -> NOISE_ID: one injector on a set of CPUs */
	COLL_CMD_NOISE_STOP,	/* NOISE_ID: or all of this socket's; who is over is forgotten */
	COLL_CMD_NOISE_GET,	/* dump: NOISE_ID -> NOISE_*: with counters, of each CPU; or of all */
	COLL_CMD_NOISE_LOG,	/* dump: NOISE_ID -> NOISE_CPU NOISE_EVENTS: in bulk; read once */

	COLL_CMD_WATCH_START,	/* WATCH_CPUS WATCH_TASK WATCH_LOG: this socket watches these CPUs */
	COLL_CMD_WATCH_STOP,	/* all that this socket watches */
	COLL_CMD_WATCH_GET,	/* dump: -> WATCH_*: of each CPU a summary, then each SOURCE */
	COLL_CMD_WATCH_LOG,	/* dump: -> WATCH_CPU WATCH_EVENTS: of this socket's; read once */

	COLL_CMD_PIN_SET,	/* PIN_HOUSEKEEPING PIN_LINGER PIN_RULE: replaces the rules there are */
	COLL_CMD_PIN_CLEAR,	/* restores every affinity that was changed */
	COLL_CMD_PIN_GET,	/* dump: -> PIN_*: rules with their counts, tasks with their state */

	COLL_CMD_CIRCUIT_DOMAIN, /* CIRCUIT_*: this socket manages these addresses; again: changes it */
	COLL_CMD_CIRCUIT_CLEAR,	/* no more; held traffic goes its way */
	COLL_CMD_CIRCUIT_REQUEST, /* CIRCUIT_ADDRESS CIRCUIT_AHEAD CIRCUIT_DEADLINE -> CIRCUIT_ID: a lease of this socket */
	COLL_CMD_CIRCUIT_RELEASE, /* CIRCUIT_ID */
	COLL_CMD_CIRCUIT_SET,	/* CIRCUIT_ID CIRCUIT_SERIAL CIRCUIT_STATE CIRCUIT_ERROR: what became of an order */
	COLL_CMD_CIRCUIT_GET,	/* dump: -> CIRCUIT_*: the domain, then each peer */
	COLL_CMD_EVENT,		/* multicast: -> EVENT_* */
	__COLL_CMD_MAX,
};

/* ---- noise ------------------------------------------------------------------ */

/*
 * An injector that was stopped, or whose lifetime ended, keeps its counters and
 * log until it is stopped by its number again, or its socket is closed. Several
 * may be on a CPU, if their shares are not more than 9000 together; one CPU at
 * least stays without any. In an interrupt no event lasts longer than 10 ms, in
 * a FIFO thread 1 s, in an ordinary one 4 s of its own time: a model that may
 * make longer ones is refused, unless its `longest` cuts them. Events come every
 * 20 us on average, not more often. On a CPU that goes offline the injector
 * rests until it is back.
 *
 * An event is injected, late perhaps; or missed; or refused, because it would
 * go over the share.
 */
enum coll_noise_attr {
	COLL_NOISE_A_UNSPEC,
	COLL_NOISE_A_ID,	/* u32: which injector; answered by START */
	COLL_NOISE_A_CPUS,	/* string: a list such as "1-3,7" */
	COLL_NOISE_A_CONTEXT,	/* u8: enum coll_noise_context */
	COLL_NOISE_A_MODEL,	/* binary: struct coll_noise_model */
	COLL_NOISE_A_TABLE,	/* binary: struct coll_noise_span[], in one or several NOISE_A_TABLEs */
	COLL_NOISE_A_EPOCH,	/* u64: CLOCK_REALTIME ns at which the plan is at 0; default: now + 10 ms */
	COLL_NOISE_A_LIFETIME,	/* u64: ns from START; default 60 s, at most 1 day */
	COLL_NOISE_A_SHARE,	/* u32: most of a CPU it may take, in 1/10000; default 5000, at most 9000 */
	COLL_NOISE_A_LOG,	/* u32: events kept per CPU, at most 2^20; 0: none */
	COLL_NOISE_A_STREAM,	/* u32: number of the first CPU's stream; on the next node go on from there */
	COLL_NOISE_A_CPU,	/* u32, in answers */
	COLL_NOISE_A_INJECTED,	/* u64: events so far */
	COLL_NOISE_A_MISSED,	/* u64: began during another and joined it, or came a period too late */
	COLL_NOISE_A_REFUSED,	/* u64: would have gone over the share */
	COLL_NOISE_A_TIME,	/* u64: ns taken so far */
	COLL_NOISE_A_EVENTS,	/* binary: struct coll_noise_injected[] */
	COLL_NOISE_A_LOST,	/* u64: log entries that found no room */
	COLL_NOISE_A_STATE,	/* u8: 0 over, 1 injecting, 2 its CPU is offline */
	COLL_NOISE_A_COST,	/* u32: ns an event takes beyond itself and is shortened by; at most 1 ms, default 0 */
	COLL_NOISE_A_PAD,
	__COLL_NOISE_A_MAX,
};

/* ---- watch ------------------------------------------------------------------ */

/*
 * Every nanosecond of a watched CPU belongs to one owner: what interrupts takes
 * its time away from what it interrupted. So WATCHED is the sum of RAN, IDLE
 * and all TOTALs, but for those of STEAL, which the hypervisor took from any of
 * them. Times are of CLOCK_MONOTONIC.
 */
enum coll_watch_attr {
	COLL_WATCH_A_UNSPEC,
	COLL_WATCH_A_CPUS,	/* string: a list */
	COLL_WATCH_A_TASK,	/* u32: thread group from which time is taken; none: whatever runs */
	COLL_WATCH_A_LOG,	/* u32: interruptions kept per CPU, at most 2^20; 0: none */
	COLL_WATCH_A_CPU,	/* u32, in answers from here on */
	COLL_WATCH_A_WATCHED,	/* u64: ns watched */
	COLL_WATCH_A_RAN,	/* u64: ns that TASK itself ran */
	COLL_WATCH_A_IDLE,	/* u64: ns that nobody ran, or that TASK did not ask for the CPU */
	COLL_WATCH_A_COST,	/* u64: ns that watching itself took, of all the others' time */
	COLL_WATCH_A_LOST,	/* u64: interruptions that found no room in the log */
	COLL_WATCH_A_STATE,	/* u8: 1 watching, 2 the CPU is offline */
	COLL_WATCH_A_SOURCE,	/* nest: one source */
	COLL_WATCH_A_INDEX,	/* u32: what `source` in this CPU's events says */
	COLL_WATCH_A_CAUSE,	/* u8: enum coll_noise_cause */
	COLL_WATCH_A_NUMBER,	/* u32: irq, vector, softirq, pid or injector */
	COLL_WATCH_A_NAME,	/* string; "others" is what found no room */
	COLL_WATCH_A_CGROUP,	/* u64: id of a thread's cgroup */
	COLL_WATCH_A_COUNT,	/* u64 */
	COLL_WATCH_A_TOTAL,	/* u64: ns, without what interrupted it in turn */
	COLL_WATCH_A_INCLUSIVE,	/* u64: ns, with that: what a thread's own CPU clock says */
	COLL_WATCH_A_MAX,	/* u64: ns */
	COLL_WATCH_A_HISTOGRAM,	/* binary: __u64[32], [i] counts 2^i <= ns < 2^(i+1) */
	COLL_WATCH_A_EVENTS,	/* binary: struct coll_noise_event[] */
	COLL_WATCH_A_PAD,
	__COLL_WATCH_A_MAX,
};

/* ---- pin -------------------------------------------------------------------- */

/*
 * Rules keep tasks away from the application's CPUs: those that match when the
 * rules are set, and those that fork, exec, rename themselves or change their
 * cgroup later. A rule's conditions must all hold; the first rule that matches
 * decides. A task that forks hands on where it is pinned; one that matches no
 * more is given back what it had before. There is one owner of rules at a time;
 * rules that linger when it has died may be taken over by another's PIN_SET, and
 * nobody is moved for that.
 *
 * What the kernel lets no module do (interrupts, the workqueues' mask, a restore
 * within a cpuset that changed meanwhile) user space does: PIN_GET tells it each
 * task with its saved CPUs; a task that it has changed is left alone.
 */
enum coll_pin_attr {
	COLL_PIN_A_UNSPEC,
	COLL_PIN_A_HOUSEKEEPING, /* string: CPU list where matching tasks go */
	COLL_PIN_A_LINGER,	/* u32: ms that rules outlive their owner; default 0, at most 600000, or 2^32 - 1: until cleared */
	COLL_PIN_A_RULE,	/* nest, repeated, at most 256; in it the attributes up to CPUS */
	COLL_PIN_A_COMM,	/* string: a glob; of the task or of its process */
	COLL_PIN_A_CGROUP,	/* u64: id; tasks in it or below */
	COLL_PIN_A_UID,		/* u32: the real one; it may be noticed a second late */
	COLL_PIN_A_KTHREAD,	/* flag: kernel threads; else none of them */
	COLL_PIN_A_PARENT,	/* u32: pid; its descendants */
	COLL_PIN_A_KEEP,	/* flag: matching tasks are left alone */
	COLL_PIN_A_CPUS,	/* string: where this rule's tasks go, if elsewhere */
	COLL_PIN_A_INDEX,	/* u32, in answers from here on: which rule */
	COLL_PIN_A_MATCHED,	/* u64: tasks so far */
	COLL_PIN_A_MOVED,	/* u64: with those that were born where they belong */
	COLL_PIN_A_REFUSED,	/* u64: could not be moved */
	COLL_PIN_A_CHANGED,	/* u64: somebody else changed them afterwards */
	COLL_PIN_A_PID,		/* u32; answers with it are tasks, with COMM, INDEX, STATE ... */
	COLL_PIN_A_STATE,	/* u8: enum coll_pin_state */
	COLL_PIN_A_ERROR,	/* u32: errno of a refusal */
	COLL_PIN_A_SAVED,	/* string: CPU list before */
	COLL_PIN_A_PAD,
	__COLL_PIN_A_MAX,
};

/*
 * ERROR of a refusal: EINVAL its cpuset has none of these CPUs, EPERM the kernel
 * decides itself where this thread runs, EBUSY it has a deadline, else what the
 * scheduler said.
 */
enum coll_pin_state {
	COLL_PIN_MOVED,
	COLL_PIN_KEPT,		/* it is not allowed elsewhere anyway */
	COLL_PIN_PER_CPU,	/* a kernel thread of one CPU: it must not move */
	COLL_PIN_REFUSED,	/* see ERROR */
	COLL_PIN_CHANGED,	/* moved, then somebody else changed it: left alone */
};

/* ---- circuit ---------------------------------------------------------------- */

/*
 * A domain is the addresses that this network namespace reaches by circuits. Traffic to
 * one whose circuit is not up asks for it, and is held meanwhile: up to BYTES a peer
 * and AGE. When it is up, what was held leaves first, in order. What cannot be held,
 * or is not to be (REFUSE), is counted and answered as if the host were unreachable.
 * Who manages the domain is told to set up and take down by events, and says by
 * CIRCUIT_SET what became of it; when its socket is closed the domain is no more, and
 * what is held goes its way.
 */
enum coll_circuit_attr {
	COLL_CIRCUIT_A_UNSPEC,
	COLL_CIRCUIT_A_ADDRESS,	/* binary: 4 bytes of IPv4, 16 of IPv6 */
	COLL_CIRCUIT_A_PREFIX,	/* u8: its bits that all of the domain share; default all */
	COLL_CIRCUIT_A_PORTS,	/* u32: 0 to 64 circuits at once */
	COLL_CIRCUIT_A_BYTES,	/* u32: of memory for traffic held for a peer; default 1 MiB, at most 64 */
	COLL_CIRCUIT_A_AGE,	/* u32: ms that it is held; default 150, at most 60000 */
	COLL_CIRCUIT_A_REFUSE,	/* flag: hold nothing */
	COLL_CIRCUIT_A_LEASE,	/* u32: ms guaranteed to who has a circuit; default 2000 */
	COLL_CIRCUIT_A_GRACE,	/* u32: ms from the notice to the end; default 20 */
	COLL_CIRCUIT_A_KEEP,	/* u32: ms that a circuit stays after its last use; default 1000 */
	COLL_CIRCUIT_A_TIMEOUT,	/* u32: ms for an order; default 2000 */
	COLL_CIRCUIT_A_RETRY,	/* u32: ms after a failure; default 50 */
	COLL_CIRCUIT_A_RETRIES,	/* u32: default 4, at most 100 */
	COLL_CIRCUIT_A_AHEAD,	/* flag: with ports only that nobody needs now */
	COLL_CIRCUIT_A_DEADLINE, /* u32: ms; a request fails when it is not up by then; default never */
	COLL_CIRCUIT_A_ID,	/* u32: of a lease; in SET and GET and events of a circuit */
	COLL_CIRCUIT_A_SERIAL,	/* u32: of the order */
	COLL_CIRCUIT_A_STATE,	/* u8: enum coll_circuit_state; SET takes switching, up, down, failed */
	COLL_CIRCUIT_A_ERROR,	/* u32: errno */
	COLL_CIRCUIT_A_PORT,	/* u32, in answers from here on */
	COLL_CIRCUIT_A_WANTS,	/* u32: leases, with the traffic's */
	COLL_CIRCUIT_A_QUEUED,	/* u32: bytes of memory held now */
	COLL_CIRCUIT_A_PASSED,	/* u64: packets that found it up */
	COLL_CIRCUIT_A_HELD,	/* u64: packets that were held so far */
	COLL_CIRCUIT_A_SENT,	/* u64: of these, that left when it was up */
	COLL_CIRCUIT_A_REFUSED,	/* u64: packets with no room, or not to be held */
	COLL_CIRCUIT_A_EXPIRED,	/* u64: held too long, or in vain */
	COLL_CIRCUIT_A_PAD,
	__COLL_CIRCUIT_A_MAX,
};

/* ---- events ----------------------------------------------------------------- */

enum coll_event_attr {
	COLL_EVENT_A_UNSPEC,
	COLL_EVENT_A_KIND,	/* u8: enum coll_event */
	COLL_EVENT_A_ID,	/* u32: the injector, the circuit, the lease */
	COLL_EVENT_A_CPU,	/* u32 */
	COLL_EVENT_A_PID,	/* u32 */
	COLL_EVENT_A_NAME,	/* string */
	COLL_EVENT_A_REASON,	/* string, for people */
	COLL_EVENT_A_SERIAL,	/* u32: of an order */
	COLL_EVENT_A_PORT,	/* u32: the circuit's */
	COLL_EVENT_A_ADDRESS,	/* binary: the circuit's peer */
	__COLL_EVENT_A_MAX,
};

enum coll_event {
	COLL_EVENT_NOISE_STARTED,
	COLL_EVENT_NOISE_OVER,		/* REASON: stopped, lifetime, owner gone, unloaded */
	COLL_EVENT_NOISE_OFFLINE,	/* its CPU went */
	COLL_EVENT_PIN_CHANGED,		/* somebody else moved a task that was pinned */
	COLL_EVENT_PIN_OVER,		/* REASON: cleared, owner gone, unloaded */
	COLL_EVENT_CIRCUIT_UP,		/* an order: ID SERIAL PORT ADDRESS */
	COLL_EVENT_CIRCUIT_DOWN,	/* an order */
	COLL_EVENT_CIRCUIT_STATE,	/* ID ADDRESS; NAME: its state now */
	COLL_EVENT_CIRCUIT_LEASE,	/* ID: of the lease; NAME: up, draining, down, ended */
	COLL_EVENT_CIRCUIT_OVER,	/* no domain any more. REASON */
};

#endif
