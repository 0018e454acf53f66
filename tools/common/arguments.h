/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Values of command line options. Each says on stderr what is wrong and what is
 * valid, and returns false.
 */
#ifndef COLL_ARGUMENTS_H
#define COLL_ARGUMENTS_H

#include <getopt.h>
#include <stdio.h>

#include "algo/common/algo.h"

/* What the messages begin with: "coll" or "collnoise"; command_run() sets it. */
extern const char *argument_program;

/* Says that `text` is not what `what` takes; always false. */
bool argument_refuse(const char *command, const char *what, const char *text, const char *valid);
/* The same of --OPTION. */
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
/* "A+B+...": at most `most` sizes from 1 on, of at most `all` together. */
bool argument_sizes(const char *command, const char *what, const char *text, u32 most, u32 all,
		    u32 *size, u32 *count);
bool argument_collective(const char *command, const char *text, int *collective);
/* One of `count` names, or of those up to a NULL. */
bool argument_word(const char *command, const char *what, const char *text,
		   const char *const *names, u32 count, u32 *index);

/*
 * What getopt_long() did not take, with optstring ":" and opterr 0; `key` is
 * what it returned. Always false.
 */
bool argument_unknown(const char *command, int key, char *const *argv,
		      const struct option *options);

#endif
