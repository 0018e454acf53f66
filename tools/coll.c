// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll: one command, a table of subcommands. Exit codes: 0 ok, 1 error, 2 usage.
 */
#include <stddef.h>

#include "tools/common/command.h"

static const struct command commands[] = {
	{ "bench", cmd_bench, "measure collectives, also under injected noise",
	  COMMAND_OPTIONS(&cmd_bench_options, &cmd_bench_overlap_options) },
	{ "circuit", cmd_circuit, "show and manage the circuits of an optical switch",
	  COMMAND_OPTIONS(&cmd_circuit_options) },
	{ "doctor", cmd_doctor, "what of a node helps or hurts, what it costs, how to change it",
	  COMMAND_OPTIONS(&cmd_doctor_options) },
	{ "lab", cmd_lab, "run a job on clusters and a WAN made of namespaces",
	  COMMAND_OPTIONS(&cmd_lab_options) },
	{ "report", cmd_report, "what the collectives of a job cost, and what causes it",
	  COMMAND_OPTIONS(&cmd_report_options) },
	{ "run", cmd_run, "start the ranks of a job, on this node or on several",
	  COMMAND_OPTIONS(&cmd_run_options) },
	{ "schedule", cmd_schedule, "print the schedules of a collective, or check one",
	  COMMAND_OPTIONS(&cmd_schedule_options) },
	{ "show", cmd_show, "show the jobs of this node, and why one does not go on",
	  COMMAND_OPTIONS(&cmd_show_options) },
	{ "sim", cmd_sim, "simulate a collective, with noise, at any scale",
	  COMMAND_OPTIONS(&cmd_sim_options, &cmd_sim_circuit_options,
			  &cmd_sim_flit_options, &cmd_sim_replay_options) },
	{ "tune", cmd_tune, "measure what messages cost, for the choice of algorithms",
	  COMMAND_OPTIONS(&cmd_tune_options) },
	{ "verify", cmd_verify, "verify every algorithm symbolically",
	  COMMAND_OPTIONS(&cmd_verify_options) },
	{ "wan", cmd_wan, "measure what links between clusters carry",
	  COMMAND_OPTIONS(&cmd_wan_options) },
	{ NULL },
};

int main(int argc, char **argv)
{
	return command_run("coll", commands, argc, argv);
}
