/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Formats of noise: the models that generate it, the events that were injected or
 * measured, and the file of a capture. The module, the tools, the library and the
 * simulator read and write them.
 *
 * Times are in nanoseconds. All structs are little-endian, of fixed size, with explicit
 * padding. Non-zero padding and unknown values are refused.
 */
#ifndef COLL_NOISE_H
#define COLL_NOISE_H

#include <linux/types.h>

/* ---- models: arrival and length of events -------------------------------------- */

enum coll_noise_arrival {
	COLL_NOISE_PERIODIC,	/* every `period` */
	COLL_NOISE_POISSON,	/* `period` is the mean time from start to start */
	COLL_NOISE_REPLAY,	/* starts and durations of a table, repeated every `period` */
	COLL_NOISE_ARRIVALS,
};

/* How the streams (CPUs, ranks) of one plan relate to each other. */
enum coll_noise_phase {
	COLL_NOISE_SAME,	/* the same events at the same time on every stream */
	COLL_NOISE_RANDOM,	/* independent: from the seed and the number of the stream */
	COLL_NOISE_STAGGERED,	/* `streams` streams, evenly spaced over a period */
	COLL_NOISE_PHASES,
};

enum coll_noise_length {
	COLL_NOISE_FIXED,	/* always `duration` */
	COLL_NOISE_EXPONENTIAL,	/* `duration` is the mean */
	COLL_NOISE_PARETO,	/* `duration` is the mean, `shape` / 1000 the exponent, > 1 */
	COLL_NOISE_TABLE,	/* each entry of a table equally likely */
	COLL_NOISE_LENGTHS,
};

/* Unused fields are 0, and so is `duration` with TABLE. REPLAY always has TABLE. */
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
	__u64 longest;		/* longer events are cut to this; 0: no limit */
	__u64 seed;
};

/* One entry of a table. REPLAY: `start` counts from the table's start, in order; else 0. */
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

/* The cause of an event, in osnoise's words; UNKNOWN, STEAL and INJECTED are added. */
enum coll_noise_cause {
	COLL_NOISE_UNKNOWN,	/* measured in user space, not attributed */
	COLL_NOISE_HARDWARE,	/* not the kernel: firmware, or a hypervisor that does not report */
	COLL_NOISE_STEAL,	/* reported by the hypervisor */
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
	__u32 source;		/* 1 + index into the capture's sources; 0: not attributed */
	__u16 cpu;		/* or rank */
	__u8 cause;
	__u8 zero;
};

/* One injected event: as planned and as it happened. */
struct coll_noise_injected {
	__u64 asked_start;	/* planned start, on the clock of the plan's epoch */
	__s64 late;		/* the actual start is asked_start + late */
	__u32 asked_duration;
	__u32 duration;
};

/* Where injected noise runs. */
enum coll_noise_context {
	COLL_NOISE_HARDIRQ,	/* hard interrupt of a pinned timer: nothing preempts it */
	COLL_NOISE_TASKLET,	/* a softirq: interrupts preempt it */
	COLL_NOISE_FIFO,	/* a real-time thread */
	COLL_NOISE_OTHER,	/* an ordinary thread, as daemons are */
	COLL_NOISE_CONTEXTS,
};

/* ---- captures --------------------------------------------------------------- */

/*
 * The file of a capture: this header, then `cpus` of struct coll_noise_cpu, `sources` of
 * struct coll_noise_source, `events` of struct coll_noise_event, sorted by (cpu, start).
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
	__u64 threshold;	/* shorter events were not recorded */
	char host[64];
	char kernel[64];
};

struct coll_noise_cpu {
	__u32 cpu;
	__u32 loop;		/* picoseconds of one iteration of the measuring loop */
	__u64 first;		/* start of the measurement, from the epoch */
	__u64 watched;		/* its duration */
	__u64 events;
	__u64 lost;		/* events not recorded because the memory was full */
};

/*
 * `times` and `total` are the kernel's own counts on the watched CPUs, independent of
 * the events. A source without events is a suspect.
 */
struct coll_noise_source {
	__u8 cause;
	__u8 zero[3];
	__u32 number;		/* irq, softirq vector or pid */
	__u64 times;
	__u64 total;		/* ns, without nested interruptions; 0: not counted */
	__u64 inclusive;	/* ns, with them, as a thread's CPU clock counts; 0: not counted */
	char name[40];
};

#endif
