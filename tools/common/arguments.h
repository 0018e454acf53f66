/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Values of command line options. Each function reports an invalid value and the valid ones on
 * stderr, and returns false.
 */
#ifndef COLL_ARGUMENTS_H
#define COLL_ARGUMENTS_H

#include <getopt.h>
#include <stdio.h>

#include "algo/common/algo.h"

/* Start of the messages: "coll" or "collnoise"; command_run() sets it. */
extern const char *argument_program;

/* Reports that `text` is invalid for `what`; always false. */
bool argument_refuse(const char *command, const char *what, const char *text, const char *valid);
/* The same for --OPTION. */
bool argument_refuse_option(const char *command, const char *option, const char *text,
			    const char *valid);
/* The text of --help: lines up to a NULL. */
void argument_help(const char *const *lines, FILE *to);

/* A whole number; `what` is the option or argument as the user knows it. */
bool argument_number(const char *command, const char *what, const char *text, u64 least, u64 most,
		     u64 *value);
/* "N" or "A-B", both from 1 to `most`. */
bool argument_range(const char *command, const char *what, const char *text, u32 most, u32 *first,
		    u32 *last);
/* "A+B+...": up to `most` sizes, each at least 1, in all up to `all`. */
bool argument_sizes(const char *command, const char *what, const char *text, u32 most, u32 all,
		    u32 *size, u32 *count);
bool argument_collective(const char *command, const char *text, int *collective);
/* One of `count` names, or of names up to a NULL. */
bool argument_word(const char *command, const char *what, const char *text,
		   const char *const *names, u32 count, u32 *index);

/*
 * Reports what getopt_long() refused, with optstring ":" and opterr 0; `key` is its result. Always
 * false.
 */
bool argument_unknown(const char *command, int key, char *const *argv,
		      const struct option *options);

#endif
