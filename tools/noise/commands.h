/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The subcommands of collnoise. */
#ifndef COLL_NOISE_COMMANDS_H
#define COLL_NOISE_COMMANDS_H

struct option_table;

int noise_calibrate(int argc, char **argv);
int noise_check(int argc, char **argv);
int noise_export(int argc, char **argv);
int noise_import_files(int argc, char **argv);
int noise_inject(int argc, char **argv);
int noise_latency(int argc, char **argv);
int noise_measure(int argc, char **argv);
int noise_nodes(int argc, char **argv);
int noise_pin(int argc, char **argv);
int noise_predict(int argc, char **argv);
int noise_record(int argc, char **argv);
int noise_report(int argc, char **argv);
int noise_replay(int argc, char **argv);

extern const struct option_table noise_calibrate_options, noise_check_options,
	noise_export_options, noise_import_options, noise_inject_options, noise_latency_options,
	noise_measure_options, noise_nodes_options,
	noise_pin_options, noise_predict_options, noise_record_options, noise_report_options,
	noise_replay_options;

#endif
