/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_COMMAND_H
#define COLL_COMMAND_H

#include <stddef.h>

enum command_status {
	COMMAND_OK = 0,
	COMMAND_ERROR = 1,
	COMMAND_USAGE = 2,
};

struct option_table;

struct command {
	const char *name;
	int (*main)(int argc, char **argv);	/* argv[0] is the command's name */
	const char *about;			/* one line */
	/* Its options, and those of its subcommands ("bench overlap"); NULL ends them. */
	const struct option_table *const *options;
};

/* The options of a command that has no subcommands. */
#define COMMAND_OPTIONS(...) ((const struct option_table *const[]){ __VA_ARGS__, NULL })

/*
 * Runs the command that argv[1] names, from a table of `program` that ends with NULL; returns its
 * exit code, which is COMMAND_ERROR if what it printed could not be written: commands need not look. Each
 * program also has the command "completion".
 */
int command_run(const char *program, const struct command *commands, int argc, char **argv);

int cmd_bench(int argc, char **argv);
int cmd_circuit(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_lab(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_schedule(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_sim_circuit(int argc, char **argv);
int cmd_sim_flit(int argc, char **argv);
int cmd_sim_replay(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_wan(int argc, char **argv);

extern const struct option_table cmd_bench_options, cmd_bench_overlap_options,
	cmd_circuit_options, cmd_doctor_options, cmd_lab_options, cmd_report_options,
	cmd_run_options, cmd_schedule_options,
	cmd_show_options, cmd_sim_options,
	cmd_sim_circuit_options, cmd_sim_flit_options, cmd_sim_replay_options,
	cmd_tune_options, cmd_verify_options, cmd_wan_options;

#endif
