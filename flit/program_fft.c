// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The exchanges of an FFT whose data are distributed over the PEs by the low bits of the
 * index: in stage j a PE computes, sends to the PE that differs in bit j, and continues when
 * the message of that PE has arrived.
 */
#include <errno.h>
#include <stdlib.h>

#include "machine.h"

struct fft {
	u32 stages, left;	/* PEs that are not done */
	u64 compute;		/* cycles before each exchange */
	struct {
		u32 stage, came;	/* bit per stage */
		bool waits;
		u64 finished;
	} *pe;
};

/* Continues with the next stage if the PE's message of this stage has arrived. */
static void program_fft_advance(struct flit_sim *sim, u32 node)
{
	struct fft *fft = sim->program;

	if (!fft->pe[node].waits || !(fft->pe[node].came >> fft->pe[node].stage & 1))
		return;
	fft->pe[node].waits = false;
	if (++fft->pe[node].stage < fft->stages) {
		flit_alarm(sim, sim->now + fft->compute, node);
		return;
	}
	fft->pe[node].finished = sim->now;
	sim->done = !--fft->left;
}

static void program_fft_computed(struct flit_sim *sim, u64 tag)
{
	struct fft *fft = sim->program;
	u32 node = tag, stage = fft->pe[node].stage;

	fft->pe[node].waits = true;
	flit_send(sim, node, node ^ 1u << stage,
		  sim->config->work.data * sim->config->work.per_datum, stage);
	program_fft_advance(sim, node);
}

static void program_fft_arrived(struct flit_sim *sim, const struct flit_packet *packet)
{
	struct fft *fft = sim->program;

	fft->pe[packet->to].came |= 1u << packet->tag;
	program_fft_advance(sim, packet->to);
}

static int program_fft_start(struct flit_sim *sim)
{
	const struct flit_work *work = &sim->config->work;
	const u32 nodes = sim->net->nodes;
	struct fft *fft = calloc(1, sizeof(*fft));
	u32 node;

	if (nodes & (nodes - 1)) {
		free(fft);
		return -EINVAL;
	}
	if (fft)
		fft->pe = calloc(nodes, sizeof(*fft->pe));
	if (!fft || !fft->pe) {
		free(fft);
		return -ENOMEM;
	}
	fft->stages = __builtin_ctz(nodes);
	fft->left = nodes;
	fft->compute = work->address + work->setup + (u64)work->data * work->butterfly;
	sim->program = fft;
	sim->on_timer = program_fft_computed;
	sim->on_arrived = program_fft_arrived;
	for (node = 0; node < nodes; node++)
		flit_alarm(sim, fft->compute + flit_below(&sim->random, work->jitter + 1), node);
	return 0;
}

static void program_fft_finish(struct flit_sim *sim, struct flit_result *result)
{
	struct fft *fft = sim->program;
	u32 node;

	for (node = 0; node < sim->net->nodes; node++)
		flit_finished(result, fft->pe[node].finished, sim->net->nodes);
	free(fft->pe);
	free(fft);
}

const struct flit_program flit_program_fft = { program_fft_start, program_fft_finish };
