// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * collnoise: what takes time from programs. One command, a table of subcommands.
 * Exit codes: 0 ok, 1 error, 2 usage or a threshold that was passed.
 */
#include <stddef.h>

#include "tools/common/command.h"
#include "tools/noise/commands.h"

static const struct command commands[] = {
	{ "calibrate", noise_calibrate, "check how accurately this machine measures and injects",
	  COMMAND_OPTIONS(&noise_calibrate_options) },
	{ "check", noise_check, "check what keeps noise away from this machine's CPUs",
	  COMMAND_OPTIONS(&noise_check_options) },
	{ "export", noise_export, "write a capture in another tool's format",
	  COMMAND_OPTIONS(&noise_export_options) },
	{ "import", noise_import_files, "make a capture of another tool's files",
	  COMMAND_OPTIONS(&noise_import_options) },
	{ "inject", noise_inject, "inject noise by a model",
	  COMMAND_OPTIONS(&noise_inject_options) },
	{ "latency", noise_latency, "measure how late wake-ups are, and who holds them up",
	  COMMAND_OPTIONS(&noise_latency_options) },
	{ "measure", noise_measure, "measure noise from user space, and judge it",
	  COMMAND_OPTIONS(&noise_measure_options) },
	{ "nodes", noise_nodes, "compare the noise of nodes, and name those that differ",
	  COMMAND_OPTIONS(&noise_nodes_options) },
	{ "pin", noise_pin, "move daemons and interrupts away from CPUs, and back",
	  COMMAND_OPTIONS(&noise_pin_options) },
	{ "predict", noise_predict, "predict the cost of noise at N ranks, and what helps",
	  COMMAND_OPTIONS(&noise_predict_options) },
	{ "record", noise_record, "measure, and write every event to a file",
	  COMMAND_OPTIONS(&noise_record_options) },
	{ "report", noise_report, "draw a capture: one picture, or one page",
	  COMMAND_OPTIONS(&noise_report_options) },
	{ "replay", noise_replay, "replay the noise of a capture",
	  COMMAND_OPTIONS(&noise_replay_options) },
	{ NULL },
};

int main(int argc, char **argv)
{
	return command_run("collnoise", commands, argc, argv);
}
