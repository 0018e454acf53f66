// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * collnoise: what takes time from programs. One command, a table of subcommands.
 * Exit codes: 0 ok, 1 error, 2 usage or a threshold that was passed.
 */
#include <stddef.h>

#include "tools/common/command.h"
#include "tools/noise/commands.h"

static const struct command commands[] = {
	{ "calibrate", noise_calibrate, "how far measuring and injecting are to be trusted here" },
	{ "check", noise_check, "how well this machine keeps noise away from CPUs" },
	{ "export", noise_export, "a capture in another tool's format" },
	{ "import", noise_import_files, "another tool's files as a capture" },
	{ "inject", noise_inject, "make noise after a model" },
	{ "measure", noise_measure, "see noise from user space, and judge it" },
	{ "pin", noise_pin, "move daemons and interrupts away from CPUs, and back" },
	{ "predict", noise_predict, "what noise costs at N ranks, and what would help" },
	{ "record", noise_record, "measure, and keep every event in a file" },
	{ "report", noise_report, "draw a capture: one picture, or one page" },
	{ "replay", noise_replay, "make the noise of a capture again" },
	{ NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
	return command_run("collnoise", commands, argc, argv);
}
