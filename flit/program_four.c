// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Four directions: in each step a PE sends up, down, left and right, across the edges too,
 * and begins the next step when its four messages have arrived.
 */
#include <errno.h>
#include <stdlib.h>

#include "machine.h"

struct four {
	u32 left;
	struct {
		u32 step, came[2];	/* of this step and of the next: neighbours may be ahead */
		bool began;		/* with jitter: messages may come before */
		u64 finished;
	} *pe;
};

/* TESH as one mesh: the digits of all levels side by side. */
static u32 wide_coordinate(const struct flit_net *net, u32 node, bool vertical)
{
	u32 level, sum = 0;

	if (net->shape != FLIT_TESH)
		return flit_coordinate(net, node, vertical);
	for (level = net->levels; level >= 1; level--)
		sum = sum << net->m | flit_digit(net, node, level, vertical);
	return sum;
}

static u32 wide_node(const struct flit_net *net, u32 x, u32 y)
{
	const u32 mask = (1u << net->m) - 1;
	u32 level, node = 0;

	if (net->shape != FLIT_TESH)
		return x + y * net->size[0];
	for (level = 1; level <= net->levels; level++) {
		u32 shift = net->m * (level - 1);

		node |= (x >> shift & mask) << 2 * shift | (y >> shift & mask)
								   << (2 * shift + net->m);
	}
	return node;
}

static u32 wide_size(const struct flit_net *net, bool vertical)
{
	return net->shape == FLIT_TESH ? 1u << net->m * net->levels : net->size[vertical];
}

static void send_four(struct flit_sim *sim, u32 node)
{
	static const int move[4][2] = { { 0, 1 }, { 0, -1 }, { -1, 0 }, { 1, 0 } };
	const struct flit_net *net = sim->net;
	const u32 width = wide_size(net, false), height = wide_size(net, true);
	const u32 x = wide_coordinate(net, node, false), y = wide_coordinate(net, node, true);
	struct four *four = sim->program;
	u32 i;

	for (i = 0; i < 4; i++)
		flit_send(sim, node, wide_node(net, (x + width + move[i][0]) % width,
					       (y + height + move[i][1]) % height),
			  sim->config->length, four->pe[node].step);
}

/* Begins the next step when this one's messages have arrived; where routes differ, the next one's may have. */
static void program_four_advance(struct flit_sim *sim, u32 node)
{
	const u32 rounds = sim->config->work.rounds;
	struct four *four = sim->program;
	u32 *step = &four->pe[node].step;

	while (four->pe[node].began && *step < rounds && four->pe[node].came[*step & 1] == 4) {
		four->pe[node].came[*step & 1] = 0;
		if (++*step < rounds) {
			send_four(sim, node);
			continue;
		}
		four->pe[node].finished = sim->now;
		sim->done = !--four->left;
	}
}

static void program_four_begin(struct flit_sim *sim, u64 node)
{
	struct four *four = sim->program;

	four->pe[node].began = true;
	send_four(sim, node);
	program_four_advance(sim, node);
}

static void program_four_arrived(struct flit_sim *sim, const struct flit_packet *packet)
{
	struct four *four = sim->program;
	const u32 node = packet->to;

	four->pe[node].came[packet->tag & 1]++;
	program_four_advance(sim, node);
}

static int program_four_start(struct flit_sim *sim)
{
	const u32 nodes = sim->net->nodes;
	struct four *four;
	u32 node;

	if (sim->net->dimensions != 2)
		return -EINVAL;
	four = calloc(1, sizeof(*four));
	if (four)
		four->pe = calloc(nodes, sizeof(*four->pe));
	if (!four || !four->pe) {
		free(four);
		return -ENOMEM;
	}
	four->left = nodes;
	sim->program = four;
	sim->on_timer = program_four_begin;
	sim->on_arrived = program_four_arrived;
	for (node = 0; node < nodes; node++)
		flit_alarm(sim, flit_below(&sim->random, sim->config->work.jitter + 1), node);
	return 0;
}

static void program_four_finish(struct flit_sim *sim, struct flit_result *result)
{
	struct four *four = sim->program;
	u32 node;

	for (node = 0; node < sim->net->nodes; node++)
		flit_finished(result, four->pe[node].finished, sim->net->nodes);
	free(four->pe);
	free(four);
}

const struct flit_program flit_program_four = { program_four_start, program_four_finish };
