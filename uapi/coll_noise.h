/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Noise, written down: the models that make it, the events that were injected
 * or seen, and the file that a capture is kept in. The module, the tools, the
 * library and the simulator all read and write these.
 *
 * Times are nanoseconds. Everything is little-endian, of fixed size, and has
 * its padding spelled out; padding and unknown values are refused.
 */
#ifndef COLL_NOISE_H
#define COLL_NOISE_H

#include <linux/types.h>

/* ---- models: when noise comes, and how long it stays --------------------------- */

enum coll_noise_arrival {
	COLL_NOISE_PERIODIC,	/* every `period` */
	COLL_NOISE_POISSON,	/* `period` is the mean time from start to start */
	COLL_NOISE_REPLAY,	/* the starts and durations of a table, again every `period` */
	COLL_NOISE_ARRIVALS,
};

/* What the streams (CPUs, ranks) of one plan have to do with each other. */
enum coll_noise_phase {
	COLL_NOISE_SAME,	/* all at once: the same plan on every stream */
	COLL_NOISE_RANDOM,	/* each by itself, from the seed and its number */
	COLL_NOISE_STAGGERED,	/* one after the other, `streams` of them evenly over a period */
	COLL_NOISE_PHASES,
};

enum coll_noise_length {
	COLL_NOISE_FIXED,	/* always `duration` */
	COLL_NOISE_EXPONENTIAL,	/* `duration` is the mean */
	COLL_NOISE_PARETO,	/* `duration` is the mean, `shape` / 1000 the exponent, > 1 */
	COLL_NOISE_TABLE,	/* each entry of a table equally likely */
	COLL_NOISE_LENGTHS,
};

/* What is not used is 0: so is the duration of TABLE, which REPLAY always has. */
struct coll_noise_model {
	__u8 arrival;
	__u8 phase;
	__u8 length;
	__u8 zero;
	__u32 shape;		/* Pareto only */
	__u32 streams;		/* staggered only */
	__u32 zero2;
	__u64 period;
	__u64 duration;
	__u64 longest;		/* no event is longer; 0: as it comes */
	__u64 seed;
};

/* One entry of a table: for REPLAY `start` from its beginning, in order; else 0. */
struct coll_noise_span {
	__u64 start;
	__u64 duration;
};

#define COLL_NOISE_PERIOD_MIN	1000ull			/* 1 us */
#define COLL_NOISE_PERIOD_MAX	86400000000000ull	/* a day */
#define COLL_NOISE_DURATION_MAX	1000000000000ull	/* 1000 s; longer ones are cut */
#define COLL_NOISE_SHAPE_MAX	100000u
#define COLL_NOISE_SPANS_MAX	(1u << 20)
#define COLL_NOISE_SHARE_MAX	95u			/* percent of the time, on average */

/* ---- events ---------------------------------------------------------------- */

/* Who took the time: osnoise's words, and three that it has no word for. */
enum coll_noise_cause {
	COLL_NOISE_UNKNOWN,	/* seen from user space, nobody named */
	COLL_NOISE_HARDWARE,	/* nothing in the kernel explains it: firmware, or a host unasked */
	COLL_NOISE_STEAL,	/* the hypervisor says it took it */
	COLL_NOISE_NMI,
	COLL_NOISE_IRQ,
	COLL_NOISE_SOFTIRQ,
	COLL_NOISE_THREAD,
	COLL_NOISE_INJECTED,
	COLL_NOISE_CAUSES,
};

/* One event of a capture. `start` counts from the capture's epoch. */
struct coll_noise_event {
	__u64 start;
	__u64 duration;
	__u32 source;		/* 1 + index into the capture's sources; 0: none named */
	__u16 cpu;		/* or rank */
	__u8 cause;
	__u8 zero;
};

/* One event that was injected, as asked and as it came. */
struct coll_noise_injected {
	__u64 asked_start;	/* on the clock of the plan's epoch */
	__s64 late;		/* the true start is asked_start + late */
	__u32 asked_duration;
	__u32 duration;
};

/* Where injected noise runs. */
enum coll_noise_context {
	COLL_NOISE_HARDIRQ,	/* a pinned timer's hard interrupt: nothing preempts it */
	COLL_NOISE_TASKLET,	/* a softirq: interrupts still come through */
	COLL_NOISE_FIFO,	/* a real-time thread */
	COLL_NOISE_OTHER,	/* an ordinary thread: what a daemon is */
	COLL_NOISE_CONTEXTS,
};

/* ---- captures --------------------------------------------------------------- */

/*
 * A file: this header, `cpus` CPU entries, `sources` source entries, `events`
 * events in order of (cpu, start).
 */
#define COLL_NOISE_MAGIC	0x65736f6e6c6c6f63ull	/* "collnose" as bytes */
enum { COLL_NOISE_VERSION = 2 };

struct coll_noise_capture {
	__u64 magic;
	__u32 version;
	__u32 cpus;
	__u32 sources;
	__u32 zero;
	__u64 events;
	__u64 epoch;		/* CLOCK_REALTIME, ns */
	__u64 threshold;	/* shorter events were not written down */
	char host[64];
	char kernel[64];
};

struct coll_noise_cpu {
	__u32 cpu;
	__u32 loop;		/* what one turn of the measuring loop costs, picoseconds */
	__u64 first;		/* watched from here, from the epoch */
	__u64 watched;		/* for so long */
	__u64 events;
	__u64 lost;		/* events that found no room */
};

/*
 * `times` and `total` are what the kernel counted of it on the watched CPUs; events need
 * not name it. A source without events is a suspect.
 */
struct coll_noise_source {
	__u8 cause;
	__u8 zero[3];
	__u32 number;		/* irq, softirq vector or pid */
	__u64 times;
	__u64 total;		/* ns, without what interrupted it; 0: not counted */
	__u64 inclusive;	/* ns, with that: as a thread's own clock has it; 0: not counted */
	char name[40];
};

#endif
