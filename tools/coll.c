// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll: one command, a table of subcommands. Exit codes: 0 ok, 1 error, 2 usage.
 */
#include <stddef.h>

#include "tools/common/command.h"

static const struct command commands[] = {
	{ "bench", cmd_bench, "measure collectives, also under injected noise" },
	{ "circuit", cmd_circuit, "show and manage the circuits of an optical switch" },
	{ "lab", cmd_lab, "run a job on clusters and a WAN made of namespaces" },
	{ "run", cmd_run, "start the ranks of a job on this node" },
	{ "schedule", cmd_schedule, "print the schedules of a collective, or check one" },
	{ "sim", cmd_sim, "simulate a collective, with noise, at any scale" },
	{ "verify", cmd_verify, "verify every algorithm symbolically" },
	{ "wan", cmd_wan, "measure what links between clusters carry" },
	{ NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
	return command_run("coll", commands, argc, argv);
}
