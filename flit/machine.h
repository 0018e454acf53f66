/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The state of a run.
 *
 * Flits of a packet are alike, so none is stored: a channel counts the flits in its buffer
 * and those on their way to it. A channel stands for the buffer at its link's end and, with
 * out_buffer, for the one at its beginning. It holds one packet at a time and accepts the
 * next when its buffer is empty. Bitmaps have what can move: a link is processed only when a
 * flit waits for it and has a credit.
 *
 *	a cycle:  timers, messages	arrivals, credits	links serve a channel
 *		  heads allocate channels (with out_buffer before the links)
 *		  input buffers to out_buffers
 */
#ifndef FLIT_MACHINE_H
#define FLIT_MACHINE_H

#include "flit.h"

struct flit_vc {
	u32 packet;		/* in its buffer, or on the way into it; or FLIT_NONE */
	u32 owner;		/* the buffer its packet comes from */
	u32 next;		/* the channel in which its packet continues */
	u32 left;		/* flits still to come from the owner */
	u32 stored;		/* flits in its buffer; for a PE: of the message to send */
	u32 born;		/* when its packet was born; low bits */
	s16 credit;		/* free places in the buffer, as the sender knows */
	u16 ready;		/* flits in the out_buffer */
	u8 in_port, in_vc;	/* of the owner, at its router */
};

/* A head that waits for a channel. */
struct flit_wish {
	u32 count;
	u32 since;		/* when it arrived; low bits */
	struct flit_choice choice[FLIT_CHOICES];
};

struct flit_lane {		/* a link's */
	u64 want;		/* heads that wait for it: bit in_port * vcs + vc */
	u64 order;		/* its packets by arrival, 4 bits each: the channel */
	u16 first;		/* channels whose packets travel between modules */
	u8 packets;		/* in order */
	u8 turn;		/* round robin: the next to be served */
	u8 head_turn, vc_turn;
	u8 accept, offset;	/* as an input, one_port: round robin of outputs and channels */
	u8 last;		/* the channel served last, or FLIT_NO_VC */
};

enum { FLIT_NO_VC = 0xff };

struct flit_packet {
	u64 born;
	u32 from, to, flits, arrived;
	u32 tag;
	u32 next;		/* in its PE's queue, or among the free ones */
	u8 state;		/* of the routing */
	bool between;		/* modules */
	bool counted;		/* born during the measurement */
};

struct flit_pe {
	u32 first, last;	/* messages to send */
	u32 waiting;
	bool busy;		/* its network interface */
};

struct flit_timer {
	u64 at, number, tag;
	bool interface;		/* a network interface's; else the program's */
};

/* Arrivals and credits of a cycle. */
struct flit_events {
	u32 *vc;
	u32 count;
};

struct flit_sim {
	const struct flit_config *config;
	const struct flit_net *net;
	struct flit_machine machine;
	enum flit_policy policy;
	u32 heads_order;	/* enum flit_heads, not FLIT_HEADS_POLICY */
	u64 now, end;
	u32 shift, stride;	/* channels of a link: 1 << shift */
	u32 vcs;		/* of all links; PEs follow */
	struct flit_vc *vc;
	struct flit_wish *wish;
	struct flit_lane *lane;
	u16 *has, *credited;	/* per link: channels with a flit to send, with a credit */
	u16 *owned, *spare;	/* per link: channels in use, available */
	u16 *between;		/* per link: all bits for those between routers */
	u8 *kind;		/* per link: see enum flit_kind */
	u32 *outer, outer_left;	/* links between modules; not yet in the list */
	u64 *active, *allocate, *cross;		/* bitmaps: links, links, channels */
	u32 link_words, vc_words;
	u32 *chosen;		/* credit 0: cycle and channel of the last service */
	struct flit_events *arrivals, *credits, *heads;	/* rings of ring_size */
	u32 ring_size;
	u8 port_of[64], vc_of[64];	/* of a bit of `want` */
	/* messages */
	struct flit_packet *packet;
	u32 packets, packets_size, packet_free;
	struct flit_pe *pe;
	struct flit_timer *timer;
	u32 timers, timers_size;
	u64 timer_number;
	u64 random, trial;	/* the next message: cycle * nodes + PE */
	u32 pending;		/* credits in flight */
	u32 travelling;		/* packets in flight */
	u32 held;		/* messages at network interfaces and in queues */
	u64 outstanding;	/* measured ones that have not arrived */
	/* measuring */
	u64 served[4];		/* flits over links, per kind */
	u64 sent, arrived;	/* flits */
	u64 offered;		/* requested flits */
	u64 idle_none, idle_gap, outer_none, outer_gap;
	u64 window_arrived, window_served[4], window_offered;
	struct flit_counts counts, local, modules;
	int error;		/* the run cannot continue */
	/* the program */
	void *program;
	void (*on_timer)(struct flit_sim *sim, u64 tag);
	void (*on_sent)(struct flit_sim *sim, const struct flit_packet *packet);
	void (*on_arrived)(struct flit_sim *sim, const struct flit_packet *packet);
	bool done;
};

enum flit_kind { FLIT_KIND_MESH, FLIT_KIND_OUTER, FLIT_KIND_EJECT, FLIT_KIND_INJECT };

int flit_machine_make(struct flit_sim *sim, const struct flit_config *config);
void flit_machine_free(struct flit_sim *sim);

/* Executes one cycle, or skips cycles in which nothing can happen. */
void flit_cycle(struct flit_sim *sim);

/* A message of `flits` (the header is added), requested now. */
void flit_send(struct flit_sim *sim, u32 from, u32 to, u32 flits, u32 tag);
/* Calls on_timer(tag) at that cycle, now or later. */
void flit_alarm(struct flit_sim *sim, u64 at, u64 tag);

/* The next random number, and one below `limit`. */
u64 flit_random(u64 *state);
u32 flit_below(u64 *state, u32 limit);

/* ---- stuck.c ------------------------------------------------------------ */

/* Packets that can never move again: whether there are any, and a ring of them. */
bool flit_stuck(struct flit_sim *sim, struct flit_cycle *cycle);

/* ---- traffic.c ---------------------------------------------------------- */

/* Requests the pattern's messages of this cycle. */
void flit_traffic(struct flit_sim *sim);
/* The cycle of the next one. */
u64 flit_traffic_next(const struct flit_sim *sim);
void flit_traffic_start(struct flit_sim *sim);

/* ---- program_*.c: each sets sim->program and the callbacks --------------- */

struct flit_program {
	int (*start)(struct flit_sim *sim);	/* at cycle 0 */
	/* After a successful start: writes the finish times; frees. */
	void (*finish)(struct flit_sim *sim, struct flit_result *result);
};

/* One of `of` participants finished at this cycle. */
void flit_finished(struct flit_result *result, u64 at, u32 of);

extern const struct flit_program flit_program_fft, flit_program_four, flit_program_trace,
	flit_program_schedule;

#endif
