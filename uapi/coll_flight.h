/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The flight page of a rank: what it does now, and its latest events. The library writes it in
 * memory that `coll show` reads from outside, without any help of the rank; a dump is a file of
 * it. Times are ns of CLOCK_MONOTONIC of the rank's machine.
 *
 * Why a page in a memfd, and neither a socket nor a named file:
 *
 * - A rank that is stopped, spins, or sleeps in the kernel cannot answer on a socket. Memory
 *   answers for it.
 * - A memfd has no name. It is found as a descriptor of the rank, /proc/PID/fd, which the kernel
 *   shows to those who may trace the process: the same user and root. Nobody else can read it,
 *   forge it, or be there first. It ends with the process, also with a killed one, so nothing is
 *   stale and nothing is to be cleaned up. A full /dev/shm or a lack of XDG_RUNTIME_DIR does
 *   not matter.
 * - /proc/PID/fd can be read without the lock of the process' memory, which a rank in trouble may
 *   hold for ever; /proc/PID/maps and cmdline cannot.
 *
 * A reader copies the page while it is written, and trusts no number in it. Lists in the page
 * have a sequence that is odd while they are written. The page's size does not depend on the
 * number of ranks, groups or ops: of more of them than it has room for it has the latest.
 */
#ifndef COLL_FLIGHT_FORMAT_H
#define COLL_FLIGHT_FORMAT_H

#include <linux/types.h>

#define COLL_FLIGHT_MAGIC	0x54474c464c4c4f43ULL	/* "COLLFLGT" */
#define COLL_FLIGHT_VERSION	6	/* readers refuse any other */
#define COLL_FLIGHT_NAME	"coll-flight"		/* of the memfd; then :RANK */

enum coll_flight_limits {
	COLL_FLIGHT_GROUPS = 64,
	COLL_FLIGHT_CALLS = 64,
	COLL_FLIGHT_RUNS = 64,
	COLL_FLIGHT_WAITS = 128,
	COLL_FLIGHT_LINKS = 128,
	COLL_FLIGHT_EVENTS = 2048,	/* a power of two */
	COLL_FLIGHT_TIMED = 256,
	COLL_FLIGHT_EXCHANGES = 6,	/* of a timed run: as many rounds as a butterfly of 64 ranks */
	COLL_FLIGHT_TAKERS = 6,
};

#define COLL_FLIGHT_NO_RANK	0xffffffffu

/* A group that has had a run. */
struct coll_flight_group {
	__u64 id;
	__u64 since;			/* when it got this entry; 0: unused */
	__u32 rank, ranks;
	__u32 begun;			/* runs so far: the next run has this number */
	__u32 ended;
	__s32 error;			/* 0, or the errno it failed with */
	__u32 failed_rank;		/* in the group */
	char text[96];			/* why it failed */
};

/* The runs of a call that have completed without an error, added up. */
struct coll_flight_sum {
	__u64 runs;
	__u64 ns;			/* from the begin of each to its end */
	__u64 shortest;			/* ns, of one; 0: there was none */
};

/* What a run executes. */
struct coll_flight_call {
	__u64 since;			/* 0: unused */
	__u64 count;
	__u32 element;			/* bytes */
	__u32 collective;		/* as coll_collective_names */
	__u32 root;
	__u32 hash;			/* of the whole call: equal on all ranks */
	__u32 type, reduction;
	__u32 ops, peers;
	char algo[32];
	struct coll_flight_sum sum;
	__u64 predicted;		/* ns of one run, by the model; 0: not known */
	__u64 best;			/* ... of the algorithm that the model takes for the best */
	__u64 segment;			/* bytes of one; 0: the algorithm has none */
	__u32 asked;			/* 1: an option names the algorithm */
	__u32 ranks;			/* of its group */
};

enum coll_flight_where {
	COLL_FLIGHT_FREE,		/* the entry is unused */
	COLL_FLIGHT_HERE,		/* the library executes it */
	COLL_FLIGHT_KERNEL,		/* coll.ko does */
};

/* A run in flight. */
struct coll_flight_run {
	__u64 since;
	__u64 deadline;
	__u32 number;			/* in its group, from 0 */
	__u8 where;			/* enum coll_flight_where */
	__u8 group, call;		/* indices of groups and calls */
	__u8 zero;
};

/* An op of a run in flight that has started and is not done. */
struct coll_flight_wait {
	__u64 bytes;
	__u32 number;			/* of the run ... */
	__u32 op, slot;
	__u32 peer;			/* rank of the job */
	__u8 run;			/* ... and its entry */
	__u8 kind;			/* enum coll_op_kind: send, recv or connect */
	__u8 zero[6];
};

enum coll_flight_link_flags {
	COLL_FLIGHT_LOCAL = 1,		/* the peer is on this node */
	COLL_FLIGHT_MEMORY = 2,		/* bytes go through memory that both have */
	COLL_FLIGHT_FULL = 4,		/* not read: too many unexpected messages are kept */
	COLL_FLIGHT_PINGED = 8,		/* a ping is unanswered */
};

/* A link that a run in flight needs. */
struct coll_flight_link {
	__u64 inode;			/* of its socket; 0: it has none */
	__u64 heard;			/* when bytes came last; 0: never */
	__u64 queued;			/* bytes of messages that wait to be sent */
	__u32 peer;			/* rank of the job */
	__u8 state;			/* enum coll_flight_link_state */
	__u8 flags;
	__u8 group;
	__u8 zero;
};

enum coll_flight_link_state {
	COLL_FLIGHT_LINK_IDLE,
	COLL_FLIGHT_LINK_CONNECTING,
	COLL_FLIGHT_LINK_UP,
	COLL_FLIGHT_LINK_LEFT,
	COLL_FLIGHT_LINK_LOST,
	COLL_FLIGHT_LINK_CLOSED,
	COLL_FLIGHT_LINK_STATES,
};

enum coll_flight_kind {
	COLL_FLIGHT_NONE,
	COLL_FLIGHT_BEGIN,		/* a run; op: the entry of its call */
	COLL_FLIGHT_END,		/* op: 0, or the errno */
	COLL_FLIGHT_SEND,		/* a message is queued */
	COLL_FLIGHT_SENT,		/* a message longer than 200 bytes has gone */
	COLL_FLIGHT_RECV,		/* a receive has started */
	COLL_FLIGHT_GOT,		/* its message is here */
	COLL_FLIGHT_REDUCE,		/* 4 KiB or more */
	COLL_FLIGHT_COPY,
	COLL_FLIGHT_CONNECT,		/* a circuit is requested */
	COLL_FLIGHT_CONNECTED,
	COLL_FLIGHT_LINK,		/* op: enum coll_flight_link_state; run: 0 */
	COLL_FLIGHT_FAIL,		/* the group; peer: rank of the job, op: the errno */
	COLL_FLIGHT_KINDS,
};

/*
 * An event, in two words. The first: ns since page->opened (52 bits), kind (6), entry of the
 * group (6). The second: the run's number modulo 2^16, the peer's rank of the job (24; all ones:
 * none), and (24) the slot of a message, the op of other work, or what the kind says.
 */
struct coll_flight_event {
	__u64 when;
	__u64 what;
};

/*
 * A timed run: when it began, and when its first messages to and from each peer moved. All ranks
 * time the same runs: those whose block of four draws at least page->timed_level
 * (coll_flight_draw()). When the table is full, the level goes up by one, which halves it: so
 * the table has runs of the whole job, evenly.
 */
#define COLL_FLIGHT_TICK	16	/* ns */

struct coll_flight_exchange {
	__u32 peer;			/* rank of the job */
	/* Ticks since the run began, at least 1; 0: it has not happened. */
	__u32 sent;			/* the first message to it was queued */
	__u32 posted;			/* the first receive from it has started ... */
	__u32 arrived;			/* ... and had its message */
};

struct coll_flight_timed {
	__u64 group;			/* id */
	__u64 began;			/* 0: the entry is unused */
	__u64 ended;			/* 0: it has not, or has failed */
	__u64 bytes;			/* of the call: count times element */
	__u32 number;			/* in its group, from 0 */
	__u32 stolen;			/* ticks during it that the thread was kept from running */
	__u32 stolen_before;		/* ... between the run before, if that was timed, and it */
	__u8 collective;
	__u8 exchanges;
	__u8 call;			/* index of page.call, if that is not since later than this */
	__u8 zero;
	struct coll_flight_exchange with[COLL_FLIGHT_EXCHANGES];
};

struct coll_flight_page {
	__u64 magic;
	__u32 version;
	__u32 bytes;			/* sizeof(struct coll_flight_page) */
	__u32 rank, ranks;		/* of the job */
	__u32 pid;			/* in its own namespace */
	__u32 owner;			/* the thread that makes progress */
	__s32 local_rank, local_ranks;	/* -1: not known */
	char job[64];
	char program[32];
	char host[64];
	char progress[16], engine[16];
	__u64 opened;			/* when the job was joined ... */
	__u64 realtime;			/* ... and what CLOCK_REALTIME was */

	/* Now. */
	__u64 now;			/* when the library looked at the clock last */
	__u64 left;			/* when the application's latest call returned */
	__u32 inside;			/* threads of the application that wait in a call */
	__u32 user_function;		/* a reduction of the application runs */
	__u64 runs;			/* begun so far */
	__u64 kept;			/* bytes of unexpected messages of the oldest run's group */
	__u32 manager;			/* of circuits: 0 none, 1 connected, 2 lost */
	__u32 joined;			/* 0: it still joins the job */
	__u64 reported;			/* when it last told on stderr that it waits; or 0 */

	/* Written when a run has taken long; a list is valid if `sequence` is even. */
	__u32 sequence;
	__u32 waits, links;
	__u32 waits_more;		/* that had no room */
	__u64 shown;			/* when */

	/* What its calls have cost so far; ns. */
	__u64 spent;			/* threads of the application, in calls that wait */
	__u64 ended;			/* when the rank left the job; 0: it has not */
	/* That the thread of progress was ready to run, and had no core: by the kernel, looked at ... */
	__u64 delayed;			/* ... in timed runs; since the job was joined */
	__u64 delayed_before;		/* ... before that */
	__u64 injected;			/* that it was stopped by noise of option `inject` */
	struct coll_flight_sum past;	/* of calls whose entries others have got */
	__u32 timed_level;
	__u32 zero;

	__u64 head;			/* events so far */
	struct coll_flight_group group[COLL_FLIGHT_GROUPS];
	struct coll_flight_call call[COLL_FLIGHT_CALLS];
	struct coll_flight_run run[COLL_FLIGHT_RUNS];
	struct coll_flight_wait wait[COLL_FLIGHT_WAITS];
	struct coll_flight_link link[COLL_FLIGHT_LINKS];
	struct coll_flight_event event[COLL_FLIGHT_EVENTS];
	struct coll_flight_timed timed[COLL_FLIGHT_TIMED];
};

/* ---- what a reader sees ------------------------------------------------------------ */

/* Queues of a link's TCP connection, in the order of page.link. */
struct coll_flight_queue {
	__u32 known;			/* 0: the connection was not found */
	__u32 unsent, unread;		/* bytes: not acknowledged by the peer's host; not read here */
	__u32 retransmits;		/* of the oldest segment that is not acknowledged */
};

enum coll_flight_process_flags {
	COLL_FLIGHT_ENDED = 1,		/* only a child still has the page */
	COLL_FLIGHT_BY_RANK = 2,	/* the rank wrote the dump itself */
	COLL_FLIGHT_STEADY = 4,		/* its state and CPU time did not change for a while */
	COLL_FLIGHT_OWNER_STEADY = 8,	/* ... those of its progress thread */
	COLL_FLIGHT_KERNEL_THREAD = 16,	/* that is coll.ko's: a run is in the kernel */
	COLL_FLIGHT_CUT = 32,		/* its node has more ranks of the job than were read */
};

/* ---- what an observer outside of the rank sees ------------------------------------------ */

/* What had the core of a rank's thread that was ready to run, or interrupted it. */
enum coll_flight_taker_kind {
	COLL_FLIGHT_TAKER_TASK,		/* a program, or a kernel thread */
	COLL_FLIGHT_TAKER_RANK,		/* another rank of the job */
	COLL_FLIGHT_TAKER_LIMIT,	/* cpu.max of its own cgroup, or of one above */
	COLL_FLIGHT_TAKER_INTERRUPTS,
	COLL_FLIGHT_TAKER_SOFTIRQS,
	COLL_FLIGHT_TAKER_STEAL,	/* the machine's host ran something else */
	COLL_FLIGHT_TAKER_OTHERS,	/* tasks that took little each, ended between two looks, or are hidden */
	COLL_FLIGHT_TAKER_OWN,		/* the rank's other threads, and what it started */
	COLL_FLIGHT_TAKER_KINDS,
};

/* Of a task. */
enum coll_flight_taker_flags {
	COLL_FLIGHT_TAKER_KTHREAD = 1,	/* a kernel thread */
	COLL_FLIGHT_TAKER_BOUND = 2,	/* the kernel refuses to move it */
	COLL_FLIGHT_TAKER_USER = 4,	/* uid is known, and that of all of this name */
	COLL_FLIGHT_TAKER_MOVED = 8,	/* colld has moved it away for the job since */
	COLL_FLIGHT_TAKER_HELD = 16,	/* ... or held it back */
};

struct coll_flight_taker {
	__u64 ns;			/* that it took from the rank */
	__u32 kind;			/* enum coll_flight_taker_kind */
	__u32 id;			/* of a rank its number, of several COLL_FLIGHT_NO_RANK; of a task its latest pid */
	__u32 flags, uid;		/* of a task: enum coll_flight_taker_flags; its user */
	char name[32];			/* as the kernel has it; of a limit: its cgroup's is below */
	char cgroup[88];		/* "" where it is not known; the end of a longer one */
};

/* What the rank's threads did when they were looked at. */
enum coll_flight_doing {
	COLL_FLIGHT_DOING_RUN,		/* it runs, or is ready to */
	COLL_FLIGHT_DOING_SLEEP,
	COLL_FLIGHT_DOING_DISK,		/* it waits for a device, and no signal wakes it (D) */
	COLL_FLIGHT_DOING_STOP,		/* stopped by a signal, or held by a debugger */
	COLL_FLIGHT_DOINGS,
};

/* Who has looked. */
enum coll_flight_source {
	COLL_FLIGHT_BY_USER,		/* a command of the rank's user */
	COLL_FLIGHT_BY_COLLD,		/* colld of its node */
	COLL_FLIGHT_SOURCES,
};

/*
 * The rank as /proc shows it, by whoever looks from time to time: coll run --report, coll report
 * --watch. All zeros: nobody has looked.
 */
struct coll_flight_observed {
	__u64 since, until;		/* CLOCK_MONOTONIC */
	__u64 cost;			/* ns of CPU time that the looks at the whole node took */
	__u64 ran, waited;		/* ns of its threads: on a core; ready to run without one */
	__u64 inside;			/* ns in calls of the library */
	/* That programs, none of the job, took of its cores: ns, and in how many pieces. */
	__u64 stolen, stops;
	__u64 counted;			/* ns for which coll.ko counted that; else it is shared out by what /proc says */
	__u32 cpu, cpus;		/* its latest CPU, and how many it may use */
	__u32 looks;			/* at what it does ... */
	__u32 outside[COLL_FLIGHT_DOINGS];	/* ... that found it outside of calls */
	__u32 within[COLL_FLIGHT_DOINGS];	/* ... and in one */
	__u32 online;			/* CPUs of the node */
	__u32 wholes;			/* looks at all threads of the node */
	__u32 source;			/* enum coll_flight_source */
	struct coll_flight_taker taker[COLL_FLIGHT_TAKERS];	/* the largest first; ns 0: no more */
};

/* A process and its page at one moment: a dump file is one of these, or several. */
struct coll_flight_seen {
	__u64 magic;
	__u32 version;
	__u32 bytes;			/* sizeof(struct coll_flight_seen) */
	__u64 time;			/* CLOCK_MONOTONIC */
	__u64 realtime;
	__u32 pid;			/* for the reader */
	__u32 flags;
	__u8 state, owner_state;	/* of the process and of the progress thread: R S D T t Z; 0: unknown */
	__u8 zero[2];
	__u32 tracer;			/* pid of the debugger, or of who has a kernel thread's CPU */
	char wchan[40], owner_wchan[40];	/* of a kernel thread that is ready: its CPU */
	__u64 ticks, owner_ticks;	/* CPU time so far, in clock ticks; of a kernel thread in ns */
	/* Of all its TCP connections: bytes that it does not read, and that it cannot send. */
	__u64 unread, unsent;
	char tracer_name[16];
	struct coll_flight_queue queue[COLL_FLIGHT_LINKS];
	struct coll_flight_observed observed;
	struct coll_flight_page page;
};

/* Where colld leaves what it saw of a user's ranks: a file named by the user's number. */
#define COLL_FLIGHT_OBSERVED_FOLDER	"/run/coll/observed"
#define COLL_FLIGHT_OBSERVED_MAGIC	0x53424f4c4c4f43ULL	/* "COLLOBS" */

/*
 * One a rank, in a file there, which that user alone can read; or in coll-JOB-HOST-PID.observed in the
 * folder of a report that is to be made. Who makes the report puts it into the rank's record.
 */
struct coll_flight_observation {
	__u64 magic;
	__u32 version;			/* COLL_FLIGHT_VERSION */
	__u32 rank;
	char job[64];
	__u64 opened;			/* of the rank's page: a later job may have the name as well */
	__u32 pid, zero;		/* the same */
	struct coll_flight_observed observed;
};

#endif
