/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The flit-level simulator: wormhole routers with virtual channels, cycle by cycle. A run is a
 * pure function of its configuration, which includes the seed.
 *
 *	net.h		the network: routers and links
 *	route.h		where a packet may go; depend.h: proof that it cannot deadlock
 *	machine.h	a cycle of the routers and network interfaces
 *	policy.h	which channel a link serves next
 *	stuck.c		packets that wait for each other in a ring
 *	traffic.c	random traffic; program_*.c: programs, traces, schedules
 *	result.h	measured values
 *	sweep.h		many runs in parallel
 */
#ifndef FLIT_H
#define FLIT_H

#include "depend.h"
#include "result.h"

enum flit_policy {
	FLIT_RR,		/* round robin, one flit each */
	FLIT_OCCUPANCY,		/* the packet that arrived first, while it can advance */
	FLIT_OCCUPANCY_HIER,	/* the same, packets between modules first */
	FLIT_AGE,		/* the packet that was born first */
	FLIT_OCCUPANCY_AGE,	/* occupancy on the link; a free channel goes to the oldest */
	FLIT_HOLD,		/* the last one, while it can advance; else round robin */
	FLIT_POLICIES,
};

extern const char *const flit_policy_names[];

enum flit_pattern {
	FLIT_UNIFORM,		/* all other PEs, equally likely */
	FLIT_HOTSPOT,		/* every source, few targets */
	FLIT_TRANSPOSE,		/* the halves of the address swapped */
	FLIT_COMPLEMENT,	/* every bit of the address inverted */
	FLIT_FFT,		/* program: the exchanges of an FFT */
	FLIT_FOUR,		/* program: exchanges with the four neighbours */
	FLIT_TRACE,		/* program: messages from a file */
	FLIT_SCHEDULE,		/* program: a collective's schedules */
	FLIT_PATTERNS,
};

extern const char *const flit_pattern_names[];

/* Which of the heads that wait for a link gets its next free channel. */
enum flit_heads {
	FLIT_HEADS_POLICY,	/* age, occupancy-age: the oldest; others: round robin */
	FLIT_HEADS_TURN,
	FLIT_HEADS_FIRST,
	FLIT_HEADS_OLDEST,
	FLIT_HEADS,
};

extern const char *const flit_heads_names[];

/* The machine; delays in cycles, sizes in flits. */
struct flit_machine {
	u32 vcs;		/* virtual channels of a link */
	u32 inject_vcs, eject_vcs;	/* of the links from and to a PE */
	u32 buffer;		/* capacity of a channel's buffer at the link's end */
	u32 out_buffer;		/* and at its beginning, before the link; 0: none */
	u32 link;		/* from the selection to the arrival in the next buffer */
	u32 inject;		/* the same, from the network interface */
	u32 credit;		/* until the sender gets a credit; 0: at once */
	u32 route;		/* until a head requests a channel */
	u32 setup;		/* from a send's request to its first flit */
	u32 header;		/* flits of a packet before its payload */
	u32 queue;		/* capacity of a PE's queue, 0: any; patterns only */
	u32 heads;		/* enum flit_heads */
	bool one_port;		/* a router's input passes one flit per cycle in all */
	bool to_self;		/* uniform: a PE may send to itself */
	bool classes_first;	/* a packet takes a channel without a class only if needed */
};

extern const struct flit_machine flit_thesis, flit_booksim;

/* Programs. */
struct flit_work {
	u32 data;		/* fft: n, the data of a PE */
	u32 butterfly, setup, address;	/* fft: Tb, Ts, Tt */
	u32 per_datum;		/* fft: flits, Ld */
	u32 jitter;		/* fft, four: a PE starts up to this many cycles late */
	u32 rounds;		/* four: steps; schedule: runs one after the other */
	const struct flit_message *trace;
	u64 messages;
	const struct coll_schedule *const *schedule;	/* per rank */
	u32 ranks;
	const u32 *place;	/* per rank: its PE */
	u32 flit_bytes;		/* schedule: payload of a flit */
	double reduce, copy;	/* schedule: cycles a byte takes */
};

struct flit_message {
	u64 at;
	u32 from, to, flits;
};

struct flit_config {
	const struct flit_net *net;
	struct flit_route route;
	struct flit_machine machine;
	enum flit_policy policy;
	enum flit_pattern pattern;
	u32 hot, hot_step;	/* hotspot: number of targets, and their distance */
	double rate;		/* messages per PE and cycle, patterns only */
	u32 length;		/* flits of a message, header not counted */
	struct flit_work work;
	u64 cycles, warmup;	/* maximum; a program ends earlier */
	bool drain;		/* measure messages born in the window until all arrive */
	u64 seed;
	u32 interval;		/* cycles of a point of the time series; 0: none */
	u32 bin;		/* cycles of a bin of the distribution */
};

/* The latency of a message in an idle network, in cycles. */
u64 flit_zero_load(const struct flit_config *config, u32 from, u32 to, u32 length);

/*
 * Runs. 0, -ENOMEM, -EINVAL (a schedule that does not fit), -EDEADLK (the result has the channels
 * that wait for each other), or -ETIME: a program that has not ended after config->cycles.
 */
int flit_run(const struct flit_config *config, struct flit_result *result);

#endif
